"""A trivial run from the command line, beside the time that `import torch` takes."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from benchmarks.speed.table import OURS, Job, Lap, Table

TORCH = "import torch"
RUN = ("run", "fedavg", "--data", "digits", "--partition", "iid", "--parties", "2", "-q")
SHORT = ("--rounds", "1", "--epochs", "1")


def job(cell: str, variant: str, small: bool) -> Job:
    """A process that does nothing else."""
    if variant == TORCH:
        return Job(lambda lap: _wait(["-c", "import torch"]))
    engine = ["--engine", "serial"] if cell == "serial" else []

    def run(lap: Lap) -> None:
        with tempfile.TemporaryDirectory() as folder:
            _wait(["-m", "ostraka", *RUN, *SHORT, *engine, "--out", str(Path(folder) / "run")])

    return Job(run)


def _wait(command: list[str]) -> None:
    # the command line sets the number of threads itself; a user has not limited them
    free = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    subprocess.run([sys.executable, *command], check=True, timeout=300, env=free)
    with suppress(ChildProcessError):  # helpers that outlive their parent have become ours
        while True:
            os.wait()


TABLE = Table(
    name="startup",
    title="Start-up: FedAvg of two parties on digits, one round",
    unit="seconds",
    cells={"default": "the default engine", "serial": "`--engine serial`"},
    variants=(TORCH, OURS),
    opponents=(TORCH,),
    job=job,
    rounds=7,
    counts="less",
    alone=False,
)
