"""`ostraka doctor`: what this installation has and what it lacks."""

import argparse
import json
import os
from typing import Any

import torch
from rich.console import Console

from ostraka import __version__
from ostraka.data.sources import available, data_dirs
from ostraka.nets import native
from ostraka.report.tables import Table
from ostraka.runs.plan import pick_device
from ostraka.runs.record import environment

NAME = "doctor"


def add_to(verbs: Any) -> None:
    """Register the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        NAME,
        help="versions, cores, the fast convolution, data found",
        description="Show versions, cores, the fast convolution and the data sets found.",
        epilog="example:\n  ostraka doctor --data-dir ~/datasets",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", metavar="DIR", help="folders with data sets (also: OSTRAKA_DATA)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(act=act)


def act(options: argparse.Namespace) -> int:
    """Look and tell."""
    folders = data_dirs(options.data_dir)
    facts: dict[str, Any] = {
        "ostraka": __version__,
        "python": environment()["python"],
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "device": pick_device("auto"),
        "convolution": native.describe(),
        "data_folders": [str(folder) for folder in folders],
        "missing_folders": [str(folder) for folder in folders if not folder.is_dir()],
        "data_sets": sorted({found.name for found in available(folders)}),
    }
    if options.json:
        print(json.dumps(facts))
    else:
        absent = facts.pop("missing_folders")
        facts["data_folders"] = [f"{f} (does not exist)" if f in absent else f for f in facts["data_folders"]]
        rows = [(key.replace("_", " "), _text(value)) for key, value in facts.items()]
        Console().print(Table(("what", "found"), rows).rich())
    return 0


def _text(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value) or "none (set OSTRAKA_DATA or --data-dir)"
