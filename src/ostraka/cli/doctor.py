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
from ostraka.registry import all_registries
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
        "broken_plug_ins": [reason for registry in all_registries() for reason in registry.broken()],
        "data_folders": [str(folder) for folder in folders],
        "data_sets": sorted({found.name for found in available(folders)}),
    }
    if options.json:
        print(json.dumps(facts))
    else:
        rows = [(key.replace("_", " "), _text(value, NONE.get(key, "none"))) for key, value in facts.items()]
        Console().print(Table(("what", "found"), rows).rich())
    return 0


NONE = {"data_folders": "none (set OSTRAKA_DATA or --data-dir)"}
"""What is said of an empty list, beside none."""


def _text(value: Any, empty: str) -> str:
    return (", ".join(value) or empty) if isinstance(value, list) else str(value)
