"""What a federation over Flower costs beside its parties' work, and Flower's own FedAvg.

    python -m benchmarks.flower_overhead --out overhead.json

The work of `engine_overhead` with fewer parties: a round starts a process at every one. Both run on
what `ostraka federation` starts on this machine: a SuperLink and a SuperNode for each party, TLS,
a key for each party, the party's samples in a file of its own. Only the apps differ: `flower` is
ours; `flower-fedavg` is Flower's strategy FedAvg with a plain network in torch (`flower_apps`).
Run in turn, wall seconds. Needs the extra `flower`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.engine_overhead import ROUNDS, Lap, measure
from benchmarks.flower_apps import BEGAN, SHARE, WORK
from ostraka.federation.party import free_port
from ostraka.federation.project import Federation, PartyFolder, create
from ostraka.runs.config import make, write_toml
from ostraka.runs.plan import make_plan

FEW, MANY = 2, 5
LIMIT = 400.0
"""Seconds that a run may take."""
PROJECT, OUTPUT = "app/pyproject.toml", "output.txt"
ROOT = Path(__file__).parents[1]
APPS = {
    "flower": ("benchmarks.flower_apps:ours", "ostraka.federation.apps:client"),
    "flower-fedavg": ("benchmarks.flower_apps:server", "benchmarks.flower_apps:client"),
}
"""The apps of the server and of a party."""


def lap(engine: str, parties: int, hidden: int) -> Lap:
    """Run one small federation."""
    with tempfile.TemporaryDirectory() as folder:
        made = prepared(Path(folder, "federation"), engine, parties, hidden)
        launched = time.time()
        with started(made) as server:
            began = watched(made, server)
    weights = 64 * hidden + hidden * hidden + hidden * 10 + 2 * hidden + 10
    return Lap.of(launched, began, 4 * weights / 1e6)


def prepared(root: Path, engine: str, parties: int, hidden: int) -> Federation:
    """The folder of a federation whose parties have their samples, with the apps to compare."""
    run = {
        "method": "fedavg",
        "data": "digits",
        "partition": "iid",
        "net": {"name": "mlp", "options": {"hidden": [hidden, hidden]}},
        "set": {"rounds": ROUNDS, "local": {"epochs": 1, "batch": 1000}},
        "eval_every": ROUNDS,
    }
    names = [f"party{number}" for number in range(parties)]
    made = create(root, run, names, port=free_port())
    shares = make_plan(make({**run, "parties": parties, "engine": "serial"})).parties
    for name, share in zip(names, shares, strict=True):
        folder = PartyFolder.load(root / "parties" / name)
        held = share.samples
        pixels = (held.stored().float() * held.view.scale * 255).round().byte()
        np.savez(folder.root / SHARE, x=pixels.numpy(), y=held.labels.numpy())
        replace(folder, data=str(folder.root / SHARE)).save()
    work = {"parties": parties, "hidden": hidden, "rounds": ROUNDS}
    (root / WORK).write_text(json.dumps(work))
    project = tomllib.loads((root / PROJECT).read_text())
    apps = dict(zip(("serverapp", "clientapp"), APPS[engine], strict=True))
    project["tool"]["flwr"]["app"]["components"] = apps
    (root / PROJECT).write_text(write_toml(project))
    return made


@contextmanager
def started(made: Federation) -> Iterator["subprocess.Popen[bytes]"]:
    """The server and all parties at work; ended at the end."""
    verb = [sys.executable, "-m", "ostraka", "federation"]
    words = [["server", str(made.root), "--bind", "127.0.0.1"]]
    words += [["party", str(made.root / "parties" / name)] for name in made.parties]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    with (made.root / OUTPUT).open("wb") as out:
        processes = [
            subprocess.Popen(
                [*verb, *more], env=variables, stdout=out, stderr=out, start_new_session=True
            )
            for more in words
        ]
        try:
            yield processes[0]
        finally:
            for process in processes:  # the server first: it ends Flower's own processes
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()


def watched(made: Federation, server: "subprocess.Popen[bytes]") -> list[float]:
    """When each round began, as soon as the last one has."""
    began, limit = made.root / BEGAN, time.monotonic() + LIMIT
    while time.monotonic() < limit:
        held = began.read_text().split() if began.exists() else []
        if len(held) == ROUNDS:
            return [float(moment) for moment in held]
        if server.poll() is not None:
            break
        time.sleep(0.2)
    said = (made.root / OUTPUT).read_text(errors="replace")[-2000:]
    log = made.log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"only {len(held)} of {ROUNDS} rounds began\n{said}\n{log}")


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--times", type=int, default=2)
    ask.add_argument("--out", type=Path, required=True)
    options = ask.parse_args()
    measure(lap, list(APPS), options.times, options.out, FEW, MANY)


if __name__ == "__main__":
    main()
