"""`ostraka partition`: who holds what, before anything is trained."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from ostraka.cli.options import DATA, add_data_options, given, option
from ostraka.display.canvas import FORMATS, check_suffix
from ostraka.errors import writing

NAME = "partition"
HELP = "divide data among parties and show who holds what"
DESCRIPTION = "Divide data among parties; print the party x class table, draw it, save it."

EXAMPLE = """\
examples:
  ostraka partition labels:2 --parties 10 --plot division.svg
  ostraka partition dirichlet:0.1 --data digits --seed 3 --save mine.json
  ostraka partition file:mine.json --data digits
"""

OPTIONS = (
    option("partition P", "how to divide (ostraka list partitions), or file:PATH"),
    option("--data D", "data set (default: fashion-4k)", default="fashion-4k"),
    option("--seed S", "seed (default 0)", int, default=0),
    add_data_options,
    option("--save FILE", "write the indices as JSON, for file:FILE", Path),
    option("--plot FILE", f"draw the table as a heatmap ({FORMATS})", Path),
    option("--json", "print one JSON object instead of a table"),
)


def act(options: argparse.Namespace) -> int:
    """Divide, show, save."""
    from rich.console import Console

    from ostraka.display.heatmap import heatmap_svg, show_division
    from ostraka.runs.commons import public_and_test
    from ostraka.runs.config import make
    from ostraka.runs.division import divide

    if options.plot is not None:
        check_suffix(options.plot)  # before the table is printed
    config = make(given(options, ("partition", "data", "seed", *DATA)))
    division = divide(config)
    public, test = public_and_test(config, division.data)
    apart = {
        "validation": len(division.held or ()),
        "shared": len(division.shared or ()),
        "public": len(public or ()),
        "test": len(test),
    }
    partition, classes = division.partition, division.data.classes
    title = f"{config.data} divided by {config.partition} (seed {config.seed})"
    if options.json:
        found = {"partition": partition.spec, "parties": partition.names, "classes": classes}
        print(json.dumps({**found, "counts": division.counts.tolist(), **apart}))
    else:
        show_division(Console(), division)
        for line in _held_apart(apart, config.public):
            print(line)
    if options.save is not None:
        with writing(options.save):
            options.save.parent.mkdir(parents=True, exist_ok=True)
            partition.save(options.save)
        _tell(f"Saved: {options.save} (use it with --partition file:{options.save})", options.json)
    if options.plot is not None:
        heatmap_svg(division.counts, partition.names, classes, options.plot, title)
        _tell(f"Drawn: {options.plot}", options.json)
    return 0


def _held_apart(apart: Mapping[str, int], public: str | None) -> list[str]:
    """What no party holds for itself, where there is any of it."""
    words = {
        "validation": "kept by the server for validation",
        "shared": "that all parties may use, with labels",
    }
    lines = [
        f"Held back before the division: {apart[key]} samples {said}"
        for key, said in words.items()
        if apart[key]
    ]
    if public is not None:
        lines.append(
            f"Public ({public}): {apart['public']} samples without labels; "
            f"{apart['test']} to test on"
        )
    return lines


def _tell(text: str, quiet: bool) -> None:
    if not quiet:
        print(text)
