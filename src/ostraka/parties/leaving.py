"""What leaves the machine: everything that a member file holds, with its size and what it may
reveal, in words.

A field of the card without words here would leave unseen; a test holds this page to the fields that
the file can have.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from ostraka.core.member import Member
from ostraka.core.told import CURVES, LEVELS
from ostraka.store.layout import bytes_of
from ostraka.store.member_card import said_of

REVEALS: Mapping[str, str] = {
    "format": "nothing",
    "classes": "the names of all classes of the task; not which of them this party has",
    "unknown": "nothing: whether the network can answer unknown",
    "kind": "nothing: image, table or sound",
    "shape": "nothing: the size of a sample",
    "unit": "nothing: how values of samples are stored",
    "view": "how values become inputs",
    "net": "nothing: which network it is",
    "objective": "nothing: what it was trained for",
    "party": "a number, the same for every party that trains on its own",
    "name": "who this party is",
    "size": "how many samples it was trained on, exactly",
    "counts": "how many samples of each class this party has, exactly; 0: it never saw that class",
    "bands": "roughly how many samples of each class this party has",
    "scores": "how well it learnt its own samples",
    "calibration": "how sure its network is of own samples",
    "method": "nothing: how it was trained",
    "recipe": "nothing: how it was trained",
    "task": "which task file it was trained by",
    "created": "when it was made",
    "more": "what else this party says; read it",
    "sha256": "nothing: a hash of the tensors",
}
"""What each field of a card may reveal."""

WEIGHTS = (
    "what the network learnt. Whoever has weights can test whether a given sample was among those "
    "it was trained on, and guess how many samples of each class there were; patterns of the "
    "samples can be in them. No sample is stored"
)
PROMISE = (
    "the differential privacy that this party claims; nobody can check it from the file, and it "
    "says nothing of single samples"
)
STATISTICS = (
    "the mean and the deviation of every column, channel or coefficient over this party's samples"
)
EXTREMES = f"; {len(LEVELS)} quantiles, the lowest and the highest are those of single samples"
PLACES = (
    "; class means in the network's last layer: with few samples of a class they say much of each"
)


@final
@dataclass(frozen=True)
class Leaving:
    """One thing in a member file."""

    what: str
    bytes: int
    reveals: str
    value: Any = None
    """The value itself, where it is short."""


def leaving(member: Member, file_bytes: int) -> list[Leaving]:
    """Everything in the file of a member, which has so many bytes in all."""
    own: dict[str, Tensor] = {}

    def put(path: str, tensor: Tensor) -> str:
        own[path] = tensor
        return path

    said = said_of(member, put)
    weights = sum(len(bytes_of(tensor)) for tensor in member.params.values())
    numbers = sum(tensor.numel() for tensor in member.params.values())
    things = [Leaving(f"weights ({numbers:,} numbers)", weights, WEIGHTS)]
    for name, value in said.items():
        size = len(json.dumps({name: value}, ensure_ascii=True)) - len("{}")
        extra = sum(len(bytes_of(own[path])) for path in own if path.split("/")[0] == name)
        things.append(Leaving(name, size + extra, _reveals(name, value), value))
    rest = file_bytes - sum(thing.bytes for thing in things)
    things.append(
        Leaving("names and shapes of tensors, hashes", rest, "nothing beside the network")
    )
    return things


def _reveals(name: str, value: Any) -> str:
    words = REVEALS[name]
    if name == "view" and value.get("mean"):
        return STATISTICS
    if name == "scores" and "epsilon" in value:
        return PROMISE
    if name == "calibration":
        quantiles = EXTREMES if any(curve in value for curve in CURVES) else ""
        return words + quantiles + (PLACES if "typicality" in value else "")
    return words
