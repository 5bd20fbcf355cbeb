"""`ostraka select`: which members of a group shall vote, and why."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.group import MEMBERS, print_json, selector_of
from ostraka.cli.options import JSON, option, place, titled
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from ostraka.parties.gathering import Gathered

NAME = "select"
HELP = "choose which members of a group vote"
DESCRIPTION = "Choose members by what their files tell; no data is needed."
EXAMPLE = """\
examples:
  ostraka select wards/ --method dedes --size 6
  ostraka select 'offers/*.member' --method ds --size 3 --out chosen.txt
  ostraka select wards/ --method dedes --set filter=learnt --set filter.errors=1
  ostraka vote chosen.txt --data test.npz
"""

OPTIONS = (
    MEMBERS,
    option(
        "--method NAME",
        "how they are chosen (ostraka list selectors); default: cover",
        dest="select",
        default="cover",
    ),
    option("--size N", "members that are chosen, a number or auto; default: auto"),
    option(
        "--set NAME=VALUE",
        "a setting of the selector, such as every_class=false; repeatable",
        action="append",
        default=[],
    ),
    option("--seed S", "seed of lots (default 0)", int, default=0),
    option(
        "--out FILE",
        "where the choice goes: a list (.txt), or a folder into which the files are copied",
        place,
    ),
    titled("showing", JSON),
)


def act(options: argparse.Namespace) -> int:
    """Read, choose, show, write."""
    from rich.console import Console

    from ostraka.display.answers import show_choice
    from ostraka.parties.ensemble import selected
    from ostraka.parties.gathering import LIST, answering, gather

    out: Path | None = options.out
    if out is not None and out.suffix != LIST and out.exists() and not out.is_dir():
        raise ConfigError(f"--out is {out}, a file; give a list ({LIST}) or a folder")
    found = answering(gather(options.files, options.skip_broken))
    kept, why = selected(found, _selector(options), None, options.seed)
    why = why or {
        "selector": "all",
        "parties": list(found.names),
        "chosen": list(found.names),
        "why": dict.fromkeys(found.names, "all vote"),
        "notes": [],
    }
    notes = [*found.notes, *why["notes"]]
    if options.json:
        print_json({**why, "notes": notes, "files": list(kept.files)})
    else:
        show_choice(Console(), {**why, "notes": notes})
    if out is not None:
        _write(kept, out, LIST)
    return 0


def _selector(options: argparse.Namespace) -> dict[str, Any]:
    """The selector with its size and its other settings, which may be called select.NAME too."""
    from ostraka.core.settings import merge
    from ostraka.runs.config import parse_assignments

    table = selector_of(options)
    assigned = parse_assignments([pair.removeprefix("select.") for pair in options.set])
    both = sorted({*table} & {*assigned})
    if both:
        raise ConfigError(
            f"--set {both[0]} is {assigned[both[0]]!r} and --{both[0].replace('name', 'method')} "
            f"is {table[both[0]]!r}; give one of them"
        )
    return merge(table, assigned)


def _write(kept: "Gathered", out: Path, suffix: str) -> None:
    """The chosen files as a list beside which they are found, or copied into a folder."""
    from ostraka.store.codec import read_bytes, write_atomically
    from ostraka.store.files import sweep

    if out.suffix == suffix:
        paths = [_line(os.path.relpath(file, out.parent)) for file in kept.files]
        write_atomically(out, "".join(f"{path}\n" for path in paths).encode())
        return
    names = _free(kept.files)
    _check_alone(out, names)
    sweep(out)
    for file, name in zip(kept.files, names, strict=True):
        write_atomically(out / name, read_bytes(Path(file)))


def _check_alone(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder that holds other members, of an earlier choice: they would vote as well."""
    from ostraka.parties.gathering import SUFFIXES

    found = sorted(folder.iterdir()) if folder.is_dir() else []
    others = [p.name for p in found if p.suffix in SUFFIXES and p.name not in names]
    if others:
        raise ConfigError(
            f"--out is {folder}, which holds {len(others)} other members, {others[0]!r:.80} among "
            "them, and whoever asks the folder would ask these too; give a new folder"
        )


def _line(path: str) -> str:
    """A path as the line of a list; one that would be read as another path, or as none, is not."""
    if path.splitlines() != [path] or path != path.strip():
        raise ConfigError(
            f"{path!r} has a line break, or a space at an end, and cannot stand in a list; "
            "rename the file, or give a folder as --out"
        )
    return os.path.join(".", path) if path.startswith("#") else path


def _free(files: Sequence[str]) -> list[str]:
    """A name for each file in one folder: its own, or where two are alike, a number before each."""
    names = [Path(file).name for file in files]
    if len({*names}) == len(names):
        return names
    return [f"{i}-{name}" for i, name in enumerate(names)]
