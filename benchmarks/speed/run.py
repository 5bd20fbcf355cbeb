"""Variants take turns, each in a process of its own, so that a busy moment hits all of them."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, final

import torch

from benchmarks.speed.table import BEFORE, Table

ROOT = Path(__file__).parents[2]
Figures = dict[str, Any]
"""A table's: date, machine, matmul, and for each cell and variant CPU and wall seconds of every
round, and peak memory."""


@final
@dataclass(frozen=True)
class Runners:
    """Which Python and which sources a variant runs with."""

    against: Path | None = None
    """Another checkout, for the variant `BEFORE`."""
    peers: Path | None = None
    """The Python that has the other frameworks."""
    guests: Sequence[str] = ()
    """The variants that need it."""

    def command(self, variant: str) -> tuple[str, dict[str, str]]:
        """The interpreter, and its environment."""
        source = self.against if variant == BEFORE and self.against else ROOT
        path = os.pathsep.join([str(source / "src"), str(ROOT)])
        python = str(self.peers) if variant in self.guests and self.peers else sys.executable
        return python, {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@final
@dataclass(frozen=True)
class Remote:
    """A variant in another process."""

    process: "subprocess.Popen[str]"
    log: Path

    def do(self, cell: str) -> dict[str, float]:
        """One turn at a cell."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(cell + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{cell}: no answer\n{self.log.read_text()[-3000:]}")
        figures: dict[str, float] = json.loads(line)
        return figures


@contextmanager
def remote(table: Table, variant: str, runners: Runners, small: bool) -> Iterator[Remote]:
    """A process for a variant, ended with the block."""
    python, environment = runners.command(variant)
    command = [python, "-m", "benchmarks.speed.worker", table.name, variant]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("w") as errors,
            subprocess.Popen(
                [*command, *(["small"] if small else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=environment,
            ) as process,
        ):
            try:
                yield Remote(process, log)
            finally:
                assert process.stdin is not None
                process.stdin.close()


def matmul(size: int = 1024) -> float:
    """GFLOP/s of a square float32 product on one thread: the limit of the core."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    began = time.process_time()
    for _ in range(4):
        a @ b
    return 4 * 2 * size**3 / (time.process_time() - began) / 1e9


def measure(
    table: Table, variants: Sequence[str], rounds: int, runners: Runners, small: bool
) -> Figures:
    """All cells of a table by all variants, in turns."""
    seen: dict[str, dict[str, list[dict[str, float]]]] = {
        cell: {variant: [] for variant in variants} for cell in table.cells
    }
    limits = []
    with ExitStack() as stack:
        crew = {v: stack.enter_context(remote(table, v, runners, small)) for v in variants}
        for number in range(-int(table.warm), rounds):
            limits.append(matmul())
            for cell, found in seen.items():
                for variant, there in crew.items():
                    figures = there.do(cell)
                    if number >= 0:
                        found[variant].append(figures)
    return {
        "date": str(date.today()),
        "machine": machine(),
        "matmul": round(median(limits), 1),
        "cells": {
            cell: {variant: _joined(turns) for variant, turns in found.items()}
            for cell, found in seen.items()
        },
    }


def _joined(turns: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The figures of all rounds, to four digits."""
    times = {what: [float(f"{t[what]:.4g}") for t in turns] for what in ("cpu", "wall")}
    return {**times, "memory": round(max(t["memory"] for t in turns))}


def machine() -> str:
    """The processor, torch, and whether the convolution is native."""
    from ostraka.nets import native

    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    name = names[0] if names else platform.machine()
    return f"{name}, {len(names)} cores; torch {torch.__version__}; {native.describe()}"
