"""`--dry-run`: what a run or a grid would be and cost,
shown before anything is trained or written.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ostraka.display.summary import SHOWN
from ostraka.display.tables import MISSING, Cell, Number, Table, human_bytes, human_seconds
from ostraka.runs.config import Config
from ostraka.runs.estimate import Estimator
from ostraka.runs.grid import cell_folder
from ostraka.runs.memory import available
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import RunDir

ESTIMATED = "time, memory and bytes are estimates from a short trial at one party"


def show_run(plan: Plan, as_json: bool) -> None:
    """What one run would be and cost."""
    found = Estimator().of(plan)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    console = Console()
    parties = [
        (p.name, _count(p.samples), _count(p.classes), _count(p.steps)) for p in found.parties
    ]
    columns, title = ("party", "samples", "classes", "steps in a round"), f"{len(parties)} parties"
    console.print(Table(columns, parties, title=title).head(SHOWN).rich())
    room = available()
    free = "" if room is None else f" ({human_bytes(room)} are available)"
    rows = [
        ("rounds", str(found.rounds)),
        ("network", f"{found.net}, {found.parameters:,} parameters"),
        ("optimiser steps", MISSING if found.steps is None else f"{found.steps:,}"),
        ("memory", f"about {human_bytes(found.memory)}{free}"),
        (
            "sent up / down",
            f"about {human_bytes(found.bytes_up)} / {human_bytes(found.bytes_down)}",
        ),
        ("time", f"about {human_seconds(found.seconds)} with {found.workers} at work at once"),
    ]
    title = f"{found.method} on {found.data}: {found.partition}, seed {found.seed}"
    console.print(Table(("what", "needed"), rows, title=title, notes=(ESTIMATED,)).rich())
    for note in found.notes:
        console.print(f"Note: {note}", soft_wrap=True, highlight=False)
    console.print("Nothing was trained or written.", highlight=False)


def show_grid(cells: Sequence[Config], out: Path, as_json: bool) -> None:
    """A line for every cell, and the sum of those that are not finished yet."""
    estimator = Estimator()
    done = [RunDir(cell_folder(cell, out)).summary.exists() for cell in cells]
    found = [estimator.of(make_plan(cell)) for cell in cells]
    left = sum(one.seconds for one, ready in zip(found, done, strict=True) if not ready)
    if as_json:
        lines = [{**asdict(one), "finished": ready} for one, ready in zip(found, done, strict=True)]
        print(json.dumps({"cells": lines, "seconds": left, "out": str(out)}))
        return
    counted = (
        f"{len(cells)} cells, {sum(done)} of them finished; the rest may take about "
        f"{human_seconds(left)}"
    )
    most = human_bytes(max(one.memory for one in found))
    notes = (
        ESTIMATED,
        "members that several cells share are trained once, which the sum leaves out",
    )
    rows: list[tuple[Cell, ...]] = []
    for one, ready in zip(found, done, strict=True):
        counts = (_count(number) for number in (one.seed, len(one.parties), one.rounds, one.steps))
        time = Number(0.0, "finished") if ready else Number(one.seconds, human_seconds(one.seconds))
        rows.append((one.method, f"{one.data} / {one.partition}", *counts, time))
    console = Console()
    console.print(Table(COLUMNS, rows, title="Cells", notes=notes).rich())
    console.print(
        f"{counted} and up to {most} of memory. Nothing was trained or written.",
        soft_wrap=True,
        highlight=False,
    )


COLUMNS = ("method", "data / partition", "seed", "parties", "rounds", "steps", "time")


def _count(number: int | None) -> Cell:
    return MISSING if number is None else Number(number, f"{number:,}")
