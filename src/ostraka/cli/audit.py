"""`ostraka audit`: what a member file reveals of the samples that it was trained on, measured."""

import argparse
import json
from typing import TYPE_CHECKING

from ostraka.cli.options import JSON, option, place

if TYPE_CHECKING:
    from ostraka.display.tables import Table
    from ostraka.parties.audit import Audit, Range

NAME = "audit"
HELP = "try to tell from a member file which samples it was trained on"
DESCRIPTION = """\
Attack a member file as anybody who has it could: does its loss tell which
samples it was trained on, and its last layer how many there are of a class?
"""
EXAMPLE = """\
examples:
  ostraka audit st-anna.member --members trained/ --non-members others/
  ostraka audit st-anna.member --members mine.npz --non-members new.npz --json
Members are samples that the model was trained on; non-members are labelled
samples like them that it was not. Nothing is sent anywhere.
"""

OPTIONS = (
    option("file FILE", "a member file", place),
    option(
        "--members DATA",
        "folder, table or .npz with samples that it was trained on",
        place,
        required=True,
    ),
    option(
        "--non-members DATA",
        "the same with samples that it was not trained on",
        place,
        required=True,
    ),
    option("--label COLUMN", "of a table: the column with the classes"),
    option("--seed N", "of what is drawn (default 0)", int, default=0),
    JSON,
)


def act(options: argparse.Namespace) -> int:
    """Attack one file, and say what came of it."""
    from ostraka.parties.audit import audit, samples_for
    from ostraka.store.member import load_member

    member = load_member(options.file)
    inside, outside = (
        samples_for(member, path, options.label) for path in (options.members, options.non_members)
    )
    found = audit(member, inside, outside, options.seed)
    if options.json:
        print(json.dumps(found.record()))
    else:
        _show(found, options.file.name)
    return 0


def _show(found: "Audit", name: str) -> None:
    from rich.console import Console

    from ostraka.display.tables import Table

    figures = Table(
        ("figure", "value", "95 % range", "no leak"),
        [
            ("area under the curve (AUC)", *_cells(found.auc, 1), "50.0 %"),
            ("caught at 1 % false alarms", *_cells(found.caught, 1), "1.0 %"),
            ("mean loss of trained-on samples", f"{found.loss_members:.3f}", "", ""),
            ("mean loss of others", f"{found.loss_others:.3f}", "", "the same"),
        ],
        title=f"who was trained on, by the loss: {name}",
    )
    console = Console()
    console.print(figures.rich())
    console.print(_shares(found).rich())
    print(
        f"{found.members:,} trained-on samples against {found.others:,} others: {found.verdict()}."
    )
    if found.claimed:
        claim = ", ".join(f"{key} {value:g}" for key, value in found.claimed.items())
        print(f"Its card claims differential privacy: {claim}. A claim cannot be checked here.")
    for note in found.notes:
        print(f"Note: {note}.")


def _cells(figure: "Range", digits: int) -> tuple[str, str]:
    value, low, high = (f"{100 * v:.{digits}f}" for v in (figure.value, figure.low, figure.high))
    return f"{value} %", f"{low} to {high} %"


def _shares(found: "Audit") -> "Table":
    """The classes with the largest guessed shares first."""
    from ostraka.display.tables import Table

    told = found.told or {}
    rows = [
        (name, f"{share:.1%}", f"{told[name]:.1%}" if name in told else "not told")
        for name, share in sorted(found.shares.items(), key=lambda pair: -pair[1])
    ]
    title = "shares of the classes, guessed from the last layer"
    return Table(("class", "guessed", "told"), rows, title=title)
