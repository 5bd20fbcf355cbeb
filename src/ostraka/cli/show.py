"""`ostraka show`: a run or a grid once more, from its stored files alone."""

import argparse
from pathlib import Path
from typing import Any

from ostraka.cli.options import place
from ostraka.errors import ConfigError

NAME = "show"

EXAMPLE = """\
examples:
  ostraka show runs/mine
  ostraka show runs/compare --format markdown
  ostraka show runs/compare --at 5,10
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="show a finished run or grid again, or how far one is",
        description="Show a run or a grid from its stored files; the data is not needed.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=place, metavar="DIR", help="folder of a run or a grid")
    parser.add_argument(
        "--format",
        choices=("rich", "markdown", "csv"),
        default="rich",
        help="how a grid's tables are printed",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    parser.add_argument(
        "--at",
        type=round_list,
        metavar="R,R,...",
        help="what was reached by these rounds: test accuracy of the round that was best on "
        "validation samples, best and mean over rounds",
    )
    parser.add_argument(
        "--relative-to",
        type=float,
        metavar="ACC",
        help="with --at: also divided by this accuracy in %% (default: that of a pooled run in the "
        "grid, if there is one)",
    )
    parser.set_defaults(act=act)


def round_list(text: str) -> list[int]:
    """`125,250` as numbers."""
    try:
        rounds = [int(part) for part in text.split(",")]
    except ValueError:
        rounds = [0]
    if min(rounds) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of rounds such as 125,250")
    return rounds


def act(options: argparse.Namespace) -> int:
    """Look what the folder holds, and show it."""
    from ostraka.runs.folder import kind_of

    folder: Path = options.folder
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; give the folder of a run or a grid")
    kind = kind_of(folder)
    if options.relative_to is not None and (options.at is None or not options.relative_to > 0):
        raise ConfigError(
            f"--relative-to is {options.relative_to:g}; it takes an accuracy above 0, and --at"
        )
    if options.at is not None:
        from ostraka.display.grid import show_tables
        from ostraka.display.milestones import courses, milestones

        tables = milestones(courses([folder]), options.at, options.relative_to)
        show_tables(tables, options.format, options.json)
        return 0
    if kind == "grid":
        from ostraka.display.grid import show_stored

        show_stored(folder, options.format, options.json)
        return 0
    if kind == "run":
        from ostraka.display.stored import show_run

        show_run(folder, options.json)
        return 0
    inside = sorted(
        path.name for path in folder.iterdir() if path.is_dir() and kind_of(path) in ("run", "grid")
    )
    hint = f"it has some in it: {', '.join(inside[:5])}" if inside else "give the folder of one"
    raise ConfigError(f"{folder} is neither a run nor a grid; {hint}")
