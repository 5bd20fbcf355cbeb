"""Options of the verbs that ask a group's members: which members, how they vote, what is shown."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ostraka.cli.options import JSON, either, option, place, share, titled, together
from ostraka.errors import ConfigError, printable

if TYPE_CHECKING:
    from ostraka.data.own import Collection, Form
    from ostraka.parties.answering import Answering
    from ostraka.parties.ensemble import Ensemble
    from ostraka.parties.task_file import TaskFile

TASK = option(
    "--task FILE",
    "the task of the members; tables with named columns need it, members of another one "
    "are refused",
    place,
)
"""What the samples look like, where the members cannot tell."""

MEMBERS = together(
    option(
        "files FILE",
        "member files, folders of them, patterns in quotes ('wards/*.member'), lists of files "
        "(.txt), or a run",
        nargs="+",
    ),
    option(
        "--skip-broken",
        "leave out files that cannot be used, or do not fit the others, with a note",
    ),
)

VOTING = together(
    option("--ballot NAME", "how votes are counted (ostraka list ballots); default: guarded"),
    option("--select NAME", "who votes (ostraka list selectors); default: all"),
    option("--size N", "with --select: members that vote, a number or auto"),
    TASK,
)

SHOWING = together(
    option(
        "--like DATA",
        "unlabelled samples for estimating which members to trust; default: those that are "
        "asked about, and then an answer depends on them all",
    ),
    titled(
        "unknown",
        option(
            "--unknown-rate RATE",
            "share of samples of known classes that may be called unknown; default: 5%%",
            share,
        ),
        option(
            "--known DATA",
            "held-out samples of known classes to place the threshold on; default: by what the "
            "members tell of theirs",
        ),
        option("--threshold T", "unknown score above which the answer is unknown, by hand", float),
    ),
    titled(
        "showing",
        either(JSON, option("--csv", "print a table for spreadsheets")),
        option("--html FILE", "write a page for a browser as well", place),
    ),
)
"""By what members are trusted, where the line between known and unknown lies, what is printed and
where else it goes."""


def asked_by(options: argparse.Namespace) -> "Answering":
    """What answers: one run as it is, or the members with a ballot."""
    from ostraka.parties.ensemble import RunAnswering
    from ostraka.parties.gathering import is_run

    alone = len(options.files) == 1 and is_run(options.files[0])
    if alone and options.ballot is None and options.select is None:
        _check_size(options)
        return _placed(RunAnswering(options.files[0]), options)
    return _placed(ensemble_of(options), options)


def ensemble_of(options: argparse.Namespace) -> "Ensemble":
    """The members of these options, with their ballot and selector."""
    from ostraka.parties.ensemble import Ensemble

    return Ensemble(
        options.files,
        options.ballot or "guarded",
        select=selector_of(options),
        skip_broken=options.skip_broken,
        task=task_of(options),
    )


def selector_of(options: argparse.Namespace) -> dict[str, Any]:
    """The selector that --select (or --method) names, with its size."""
    _check_size(options)
    table: dict[str, Any] = {"name": options.select or "all"}
    if options.size is None:
        return table
    if options.size != "auto" and not options.size.isdecimal():
        raise ConfigError(f"--size is {options.size!r}; it takes a number of members, or auto")
    return {**table, "size": options.size if options.size == "auto" else int(options.size)}


def _check_size(options: argparse.Namespace) -> None:
    if options.size is None or options.select not in (None, "all"):
        return
    other = "give --select too"
    if options.select is not None:
        other = "all takes everybody: choose by another one, such as dedes"
    raise ConfigError(f"--size says how many members a selector takes; {other}")


def _placed(asked: "Answering", options: argparse.Namespace) -> "Answering":
    """With its threshold where the options want it."""
    from ostraka.parties.answering import RATE
    from ostraka.parties.asked import labels_for, read_for

    given = [options.threshold is not None, bool(options.unknown_rate or options.known)]
    if all(given):
        raise ConfigError("--threshold is set by hand; leave --unknown-rate and --known out")
    if options.threshold is not None:
        return asked.placed(options.threshold)
    if not any(given):
        return asked
    known = None
    if options.known is not None:
        held = read_for(asked, options.known, form=form_of(options))
        known = labels_for(asked, held)[0] if held.labelled else held.samples
    return asked.keeping(options.unknown_rate or RATE, known)


def like_of(options: argparse.Namespace, asked: "Answering") -> "Collection | None":
    """The samples of --like, without labels."""
    from ostraka.parties.asked import read_for

    if options.like is None:
        return None
    return read_for(asked, options.like, labelled=False, form=form_of(options))


def form_of(options: argparse.Namespace) -> "Form | None":
    """The form of samples that a task file says."""
    task = task_of(options)
    return None if task is None else task.form


def task_of(options: argparse.Namespace) -> "TaskFile | None":
    """The task of the members."""
    if options.task is None:
        return None
    from ostraka.parties.task_file import load_task

    return load_task(options.task)


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on the standard output."""
    print(json.dumps(values, allow_nan=False))


def say(line: str, options: argparse.Namespace) -> None:
    """A line for people, beside what is for programs."""
    stream = sys.stderr if options.json or getattr(options, "csv", False) else sys.stdout
    print(line, file=stream)


def say_notes(notes: Sequence[str], options: argparse.Namespace) -> None:
    """What has to be said of the answers, beside a table for programs."""
    for note in notes:
        say(f"Note: {printable(note)}", options)


def check_page(options: argparse.Namespace) -> None:
    """Refuse a page that cannot be written before anything is computed."""
    path: Path | None = options.html
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ConfigError(
            f"--html is {path}; give a file in a folder that exists, such as answers.html"
        )
