"""`ostraka vote`: what the members of a group are worth together, on labelled samples."""

import argparse

from ostraka.cli.group import (
    MEMBERS,
    SHOWING,
    VOTING,
    asked_by,
    check_page,
    form_of,
    like_of,
    print_json,
    say,
    say_notes,
)
from ostraka.cli.options import option

NAME = "vote"
HELP = "judge the members of a group together on labelled samples"
DESCRIPTION = """\
Let members vote on labelled samples: accuracy, AUROC where some are of classes
that nobody knows, figures per class, who answered, whom not to trust.
"""
EXAMPLE = """\
examples:
  ostraka vote wards/ --data test.npz
  ostraka vote anna.member berta.member --data scans/ --html vote.html
  ostraka vote runs/mine --data digits --select dedes --size 6 --json
"""

OPTIONS = (
    MEMBERS,
    option("--data DATA", "labelled samples: a folder, file or data set", required=True),
    VOTING,
    SHOWING,
)


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
