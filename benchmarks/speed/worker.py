"""One variant in a process of its own: none inherits what another did to the C library's memory.

    python -m benchmarks.speed.worker TABLE VARIANT [small]

Every line that it reads is the name of a cell, which it does once; the answer is a line of JSON
with CPU and wall seconds for one unit of work, and with its peak memory in MB.
"""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.speed.table import Job, Table, keeps_memory
from benchmarks.speed.tables import TABLES

TICK = os.sysconf("SC_CLK_TCK")
ADOPT = 36
"""PR_SET_CHILD_SUBREAPER, Linux's name for it."""


def family() -> list[Path]:
    """This process and all that descend from it, in /proc."""
    parents: dict[str, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(stat)
        if fields:
            parents.setdefault(fields[1], []).append(stat.parent.name)
    found, new = [], [str(os.getpid())]
    while new:
        found += new
        new = [child for parent in new for child in parents.get(parent, [])]
    return [Path("/proc", name) for name in found]


def _fields(stat: Path) -> list[str]:
    """What follows the name of the program; empty if the process has just ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def children_cpu() -> float:
    """CPU-seconds of all descendants, those that have ended too."""
    own, *others = (_fields(path / "stat") for path in family())
    ticks = sum(map(int, own[13:15])) + sum(sum(map(int, f[11:15])) for f in others if f)
    return ticks / TICK


def peak_memory() -> float:
    """The highest resident memory in MB, added up over this process and its descendants."""
    total = 0
    for path in family():
        try:
            lines = (path / "status").read_text().splitlines()
        except OSError:
            continue  # it has just ended
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return total / 1024


def measured(job: Job, alone: bool) -> tuple[float, float]:
    """CPU and wall seconds for one unit of work; `alone`: the job starts no processes."""
    laps: list[tuple[float, float]] = []

    def lap() -> None:
        others = 0.0 if alone else children_cpu()
        laps.append((time.process_time() + others, time.perf_counter()))

    lap()
    job.run(lap)
    lap()
    # with laps of its own, what came before the first and after the last does not count
    counted = laps[1:-1] if len(laps) > 3 else laps
    units = job.work * (len(counted) - 1)
    return (counted[-1][0] - counted[0][0]) / units, (counted[-1][1] - counted[0][1]) / units


def main() -> None:
    """Answer until there are no more lines."""
    table: Table = TABLES[sys.argv[1]]
    variant, small = sys.argv[2], "small" in sys.argv[3:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what jobs print is no answer
    prepare(variant)
    if not table.alone:
        adopt_orphans()
    jobs: dict[str, Job] = {}
    for line in sys.stdin:
        cell = line.strip()
        if cell not in jobs:
            jobs[cell] = table.job(cell, variant, small)
        cpu, wall = measured(jobs[cell], alone=table.alone)
        print(json.dumps({"cpu": cpu, "wall": wall, "memory": peak_memory()}), file=answers)
        answers.flush()


def adopt_orphans() -> None:
    """Let descendants whose parent has ended become children of this process, so that their
    CPU-seconds are not lost.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(ADOPT, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) was refused")


def prepare(variant: str) -> None:
    """One thread, and what the C library is told."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    if keeps_memory(variant):
        from ostraka.engines.memory import keep_freed_memory

        if not keep_freed_memory():
            raise SystemExit(f"{variant}: the C library cannot be told to keep memory")


if __name__ == "__main__":
    main()
