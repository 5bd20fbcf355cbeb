"""All parties' shares in one file, for processes of this machine."""

from functools import lru_cache
from pathlib import Path

from ostraka.core.party import Parties
from ostraka.core.samples import Samples, View
from ostraka.core.settings import build, values_of
from ostraka.store import codec


def save_parties(folder: Path, parties: Parties) -> None:
    """Put all shares where processes of this machine can read them."""
    held = parties.samples
    values = {
        "x": held.x,
        "y": held.y,
        "view": values_of(held.view),
        "rows": parties.rows,
        "ends": parties.ends,
        "names": parties.names,
    }
    codec.save(folder / "parties.safetensors", values, durable=False)


@lru_cache(maxsize=1)
def load_parties(folder: str) -> Parties:
    """The shares, read once by each process."""
    held = codec.load(Path(folder) / "parties.safetensors")
    view = build(View, held["view"])
    return Parties(
        Samples(held["x"], held["y"], view=view), held["rows"], held["ends"], held["names"]
    )
