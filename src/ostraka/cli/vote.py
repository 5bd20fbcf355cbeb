"""`ostraka vote`: what the members of a group are worth together, on labelled samples."""

import argparse
from typing import Any

from ostraka.cli.group import (
    add_members,
    add_output,
    add_unknown,
    add_voting,
    asked_by,
    check_page,
    form_of,
    like_of,
    print_json,
    say,
    say_notes,
)

NAME = "vote"

EXAMPLE = """\
examples:
  ostraka vote wards/ --data test.npz
  ostraka vote anna.member berta.member --data scans/ --html vote.html
  ostraka vote runs/mine --data digits --select dedes --size 6 --json
"""


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="judge the members of a group together on labelled samples",
        description=(
            "Let members vote on labelled samples: accuracy, AUROC where some are of classes\n"
            "that nobody knows, figures per class, who answered, whom not to trust."
        ),
        epilog=EXAMPLE,
    )
    add_members(parser)
    parser.add_argument(
        "--data", required=True, metavar="DATA", help="labelled samples: a folder, file or data set"
    )
    add_voting(parser)
    add_unknown(parser)
    add_output(parser)
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Read, vote, show."""
    from rich.console import Console

    from ostraka.display.answers import classes_table, safe_csv, show_verdict
    from ostraka.display.page import verdict_page, write_page
    from ostraka.engines.threads import one_thread
    from ostraka.parties.asked import labels_for, read_for, shown_before
    from ostraka.parties.verdict import judge

    check_page(options)
    with one_thread():
        asked = asked_by(options)
        held = read_for(asked, options.data, form=form_of(options))
        samples, notes = labels_for(asked, held)
        ready, looked = shown_before(asked, held, like_of(options, asked))
        verdict = judge(ready, samples, held.name, [*held.notes, *notes, *looked])
    if options.json:
        print_json(verdict.to_json())
    elif options.csv:
        print(safe_csv(classes_table(verdict)), end="")
        say_notes(looked, options)
    else:
        show_verdict(Console(), verdict)
    if options.html is not None:
        write_page(options.html, verdict_page(verdict))
        say(f"Page: {options.html}", options)
    return 0
