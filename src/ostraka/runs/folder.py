"""Whose folder is it: a run's, a grid's, or somebody else's, in which nothing may be written."""

from pathlib import Path
from typing import Literal

from ostraka.errors import ConfigError
from ostraka.runs.config import Config, canonical_method
from ostraka.store.files import is_left

RUN = (
    "config.toml",
    "run.json",
    "summary.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "model.safetensors",
    "work",
)
"""What only a run's folder holds."""

GRID = ("cells", "shelf", "results.json")
"""What only a grid's folder holds."""

EITHER = ("lock", "failures.log", "environment.json", "partition.json", ".DS_Store")
"""What says nothing: the rests of a run that was killed as it began, and what the system leaves."""

SHOWN = 3
"""Names that the message lists."""


def check_free(out: Path, kind: Literal["run", "grid"]) -> None:
    """Refuse `out` as the folder of a run or grid if it is a file, or holds something else."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file, and a {kind} needs a folder; choose another --out")
    if not out.is_dir():
        return
    found = kind_of(out)
    if found == kind or found is None:
        return
    if found != "foreign":
        raise ConfigError(
            f"{out} is the folder of a {found}, not of a {kind}; choose another --out"
        )
    strange = sorted(path.name for path in out.iterdir() if path.name not in EITHER)
    more = f" and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
    raise ConfigError(
        f"{out} holds files that are not of a {kind}: {', '.join(strange[:SHOWN])}{more}; "
        "choose an empty or new folder for --out"
    )


def kind_of(folder: Path) -> Literal["run", "grid", "foreign"] | None:
    """What a folder holds; None: nothing yet."""
    names = {path.name for path in folder.iterdir() if not is_left(path.name)}
    if names & set(GRID):
        return "grid"
    if names & set(RUN):
        return "run"
    return "foreign" if names - set(EITHER) else None


def free_folder(config: Config) -> Path:
    """A new folder under runs/ that says what is in it."""
    parts = (
        canonical_method(config.method),
        Path(config.data).name,
        config.partition,
        f"s{config.seed}",
    )
    name = "-".join(parts).replace(":", "").replace("/", "_").replace(",", "_")
    number = 1
    while (Path("runs") / f"{name}-{number}").exists():
        number += 1
    return Path("runs") / f"{name}-{number}"
