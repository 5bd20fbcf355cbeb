"""A method from outside the package: found by its entry point, listed, built,
checked and run like a built-in one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ostraka

METHOD = '''
"""A plug-in: the median of the parties' models."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ostraka.core.fit import Budget, fit
from ostraka.core.learner import build_net, load_predictor
from ostraka.core.card import Card
from ostraka.core.method import Iterative, Memory, Report, Round
from ostraka.core.net import Params, params_of
from ostraka.core.objective import Objective
from ostraka.core.party import Party, PartyRef
from ostraka.core.predictor import Predictor
from ostraka.core.settings import setting
from ostraka.core.task import Task
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import OBJECTIVES


@dataclass(frozen=True)
class FedMedian(Iterative[Params, Params, Params]):
    """Median of the parties' models, number by number."""

    objective: Objective = setting(CrossEntropy(), "what the parties minimise", registry=OBJECTIVES)
    local: Budget = setting(Budget(epochs=2), "the parties' training")

    def init(self, task: Task, seed: int) -> Params:
        return params_of(build_net(task, self.objective, seed))

    def message(self, state: Params, party: PartyRef) -> Params:
        return state

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        net, own = build_net(rnd.task, self.objective), party.samples
        fitted = fit(
            net, rnd.message, own, self.objective, self.local, rnd.seed, progress=party.progress
        )
        return Report(fitted.params, 1.0, Card(party.id, len(own)))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Params]]) -> Params:
        models = [report.payload for report in reports]
        return {
            name: torch.stack([model[name] for model in models]).median(dim=0).values
            for name in state
        }

    def predictor(self, task: Task, state: Params) -> Predictor:
        return load_predictor(task, self.objective, state)
'''

USE = """
import json, sys
from pathlib import Path
from ostraka.registry import METHODS
from ostraka.runs import config
from ostraka.runs.loop import execute
from ostraka.runs.plan import make_plan
from ostraka.runs.record import RunDir
from ostraka.testing import check_method

if __name__ == "__main__":
    values = {"method": "fedmedian", "parties": 3, "partition": "iid", "train_per_class": 20}
    values["net"] = {"name": "mlp"}
    values["set"] = {"rounds": 2, "local": {"epochs": 5, "lr": 0.05, "batch": 16}}
    plan = make_plan(config.make({**values, "engine": "pool", "workers": 1}))
    check_method(METHODS.get("fedmedian")())
    summary = execute(plan, RunDir(Path(sys.argv[1])))
    listed = "fedmedian" in METHODS.names()
    print(json.dumps({"listed": listed, "method": summary.method, "accuracy": summary.accuracy}))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package, as pip leaves it: modules,
    and metadata that name the entry point.
    """
    site = tmp_path / "site"
    (site / "ostraka_median").mkdir(parents=True)
    (site / "ostraka_median" / "__init__.py").write_text("")
    (site / "ostraka_median" / "method.py").write_text(METHOD)
    info = site / "ostraka_median-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ostraka-median\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ostraka.methods]\nfedmedian = ostraka_median.method:FedMedian\n"
    )
    return site


def test_a_plug_in_is_listed_built_checked_and_run(site: Path, tmp_path: Path) -> None:
    script = tmp_path / "use.py"
    script.write_text(USE)
    source = str(Path(ostraka.__file__).parents[1])
    paths = os.pathsep.join([str(site), source, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["listed"]
    assert said["method"] == "fedmedian"
    assert said["accuracy"] > 30, "ten classes: chance is 10 %"
