"""`ostraka predict`: what a group of members, or a run, answers to samples."""

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

NAME = "predict"
HELP = "ask the members of a group, or a run: a class or unknown for each sample"
DESCRIPTION = """\
Ask members about samples: for each a class or UNKNOWN, how sure they are
together, and who answered so.
"""
EXAMPLE = """\
examples:
  ostraka predict wards/*.member --on scan-1.png scan-2.png
  ostraka predict wards/ --on new.csv --task task.toml --csv > answers.csv
  ostraka predict runs/mine --on digits --unknown-rate 1% --html answers.html
"""

OPTIONS = (
    MEMBERS,
    option(
        "--on DATA",
        "samples: images, recordings, tables, folders or files of them, or a data set",
        required=True,
        nargs="+",
    ),
    option("--explain", "also say what every member said, with its weight"),
    VOTING,
    SHOWING,
)


def act(options: argparse.Namespace) -> int:
    """Read, ask, show."""
    from rich.console import Console

    from ostraka.display.answers import (
        Answered,
        answers_table,
        safe_csv,
        show_answers,
        voices_table,
    )
    from ostraka.display.page import answers_page, pictured, pictures_in, write_page
    from ostraka.engines.threads import one_thread
    from ostraka.parties.asked import read_for, shown_before

    check_page(options)
    with one_thread():
        asked = asked_by(options)
        held = read_for(asked, options.on, labelled=False, form=form_of(options))
        ready, looked = shown_before(asked, held, like_of(options, asked))
        ready, answers = ready.asked(held.samples.stored())
        found = tuple(answers.explanations())
    notes = (*ready.notes, *held.notes, *looked)
    answered = Answered(held.items, found, ready.names, ready.promise, notes, ready.looked)
    if options.json:
        print_json(answered.to_json(options.explain))
    elif options.csv:
        print(safe_csv((voices_table if options.explain else answers_table)(answered)), end="")
        say_notes(looked, options)
    else:
        show_answers(Console(), answered, options.explain)
    if options.html is not None:
        page = answers_page(answered, held.name, held.samples.stored(), ready.units.kind)
        write_page(options.html, page)
        say(f"Page: {options.html}", options)
        shown = pictures_in(len(held.items), ready.units.kind)
        if shown:
            say(pictured(shown), options)
    return 0
