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
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Look what the folder holds, and show it."""
    from ostraka.runs.folder import kind_of

    folder: Path = options.folder
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; give the folder of a run or a grid")
    kind = kind_of(folder)
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
