"""`ostraka verify`: is it a member file, what does it make of junk, and what leaves the machine."""

import argparse
import json

from ostraka.cli.options import JSON, option, place

NAME = "verify"
HELP = "check member files, and show what leaves the machine with them"
DESCRIPTION = """\
Check member files one by one, as the reader does that opens them anywhere,
and show what leaves the machine with each.
"""
EXAMPLE = """\
examples:
  ostraka verify st-anna.member
  ostraka verify wards/*.member --json

The exit code is 2 if a file fails.
"""

OPTIONS = (option("files FILE", "member files", place, nargs="+"), JSON)


def act(options: argparse.Namespace) -> int:
    """Look at every file; one that fails stops no other."""
    from rich.console import Console

    from ostraka.display.member import show_verdict, verdict_line
    from ostraka.parties.verify import verify

    verdicts = [verify(path) for path in options.files]
    passed = all(verdict.passed for verdict in verdicts)
    if options.json:
        print(json.dumps({"passed": passed, "files": [v.as_dict() for v in verdicts]}))
    else:
        for verdict in verdicts:
            show_verdict(Console(), verdict)
        print(verdict_line(verdicts))
    return 0 if passed else 2
