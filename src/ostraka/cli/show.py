"""`ostraka show`: a run or a grid once more, from its stored files alone; or a member file."""

import argparse
from pathlib import Path

from ostraka.cli.group import TASK, form_of
from ostraka.cli.options import JSON, numbers, option, place, titled
from ostraka.display.formats import FORMATS
from ostraka.errors import ConfigError

NAME = "show"
HELP = "show a finished run or grid again, how far one is, or a member file"
DESCRIPTION = """\
Show a run or a grid from its stored files, the data is not needed;
or a member file: its card, its classes and its unknown scores.
"""
EXAMPLE = """\
examples:
  ostraka show runs/mine
  ostraka show runs/compare --format markdown
  ostraka show runs/compare --at 5,10
  ostraka show st-anna.member --data scans/ --out scores.svg
"""


OPTIONS = (
    option("folder FILE", "folder of a run or a grid, or a member file", place),
    option("--format", "how a grid's tables are printed", choices=tuple(FORMATS), default="rich"),
    JSON,
    option(
        "--at R,R,...",
        "what was reached by these rounds: test accuracy of the round that was best on "
        "validation samples, best and mean over rounds",
        numbers("not a list of rounds such as 125,250", least=1),
    ),
    option(
        "--relative-to ACC",
        "with --at: also divided by this accuracy in %% (default: that of a pooled run in the "
        "grid, if there is one)",
        float,
    ),
    titled(
        "a member file",
        option(
            "--data DATA",
            "unknown scores of these samples (folder or file), not of what its party told",
            place,
            dest="samples",
        ),
        TASK,
        option("--out FILE", "draw them into a file too: .svg, .png or .pdf", place),
    ),
)


def act(options: argparse.Namespace) -> int:
    """Look what the folder holds, and show it."""
    from ostraka.runs.folder import kind_of

    folder: Path = options.folder
    if folder.is_file():
        return _show_member(options)
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder or file {folder}; give the folder of a run or a grid, or a member "
            "file"
        )
    if options.samples is not None or options.out is not None:
        raise ConfigError(f"--data and --out are for member files; {folder} is a folder")
    kind = kind_of(folder)
    if options.relative_to is not None and (options.at is None or not options.relative_to > 0):
        raise ConfigError(
            f"--relative-to is {options.relative_to:g}; it takes an accuracy above 0, and --at"
        )
    if options.at is not None:
        from ostraka.display.grid import show_tables
        from ostraka.display.rounds import courses, milestones

        tables = milestones(courses([folder]), options.at, options.relative_to)
        show_tables(tables, options.format, options.json)
        return 0
    if kind == "grid":
        from ostraka.display.grid import stored_grid

        drawn = [name for name in ("rounds.svg", "bytes.svg") if (folder / name).exists()]
        stored_grid(folder).show(options.format, options.json, drawn)
        return 0
    if kind == "run":
        from ostraka.display.summary import show_run

        show_run(folder, options.json)
        return 0
    inside = sorted(
        path.name for path in folder.iterdir() if path.is_dir() and kind_of(path) in ("run", "grid")
    )
    hint = f"it has some in it: {', '.join(inside[:5])}" if inside else "give the folder of one"
    raise ConfigError(f"{folder} is neither a run nor a grid; {hint}")


def _show_member(options: argparse.Namespace) -> int:
    """Card, classes, unknown scores."""
    import json

    from rich.console import Console

    from ostraka.display.canvas import check_suffix
    from ostraka.display.member import draw_picture, member_facts, show_member
    from ostraka.parties.scores import data_picture, told_picture
    from ostraka.store.member import load_member

    path, out, data = options.folder, options.out, options.samples
    if options.at is not None or options.relative_to is not None:
        raise ConfigError(f"--at is for the folders of runs and grids; {path} is a file")
    if out is not None:
        check_suffix(out)
    member = load_member(path)
    picture = told_picture(member) if data is None else data_picture(member, data, form_of(options))
    if out is not None and picture is None:
        raise ConfigError(
            f"{path} tells nothing of held-out samples, so there is nothing to draw; give --data"
        )
    if out is not None and picture is not None:
        draw_picture(picture, out, str(member.card))
    if options.json:
        print(json.dumps(member_facts(member, path, picture)))
    else:
        show_member(Console(), member, path, picture)
    return 0
