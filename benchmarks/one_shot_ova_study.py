"""Is FedOVA worth anything in one exchange?

    python -m benchmarks.one_shot_ova_study --data mnist fashion-mnist \\
        --partition labels:2 dirichlet:0.5 --known 8 --train-per-class 1200 --seeds 0 1 \\
        --outliers none wide --out one_shot.jsonl

Every party trains the binary networks of its labels once, from a start that all have in common, and
sends them. What then answers for a class:

* averaged: the mean of its networks' weights, which is `fedova` with one round of all parties;
* mean, max: its networks stay as they are, and the mean or the largest of their probabilities
  counts. Who holds no sample of a class has no network of it, and no say.

`--outliers` is what all parties make beside their own samples, those with several labels too (as
none else does in `fedova`): none, or a mix of destructions. Members of `fedov` and `closed-voting`
for comparison are made by `ostraka compare`. The training is FedOV's, of `--set` other settings.

Columns: accuracy (%) of the closed answer among the known classes, AUROC (%) of known against
unknown samples, networks that are kept, CPU-seconds of the training. Every finished training is a
line of the file `--out`; a second call trains only what is missing there.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, final

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.method import Report, Round
from ostraka.core.party import Party
from ostraka.core.predictor import Predictor, Scores
from ostraka.core.settings import merge, values_of
from ostraka.core.task import Task
from ostraka.evaluation.evaluate import evaluate
from ostraka.methods.fedov import SHORT
from ostraka.methods.fedova import FedOVA, Networks, Server, relabelled
from ostraka.objectives.one_vs_all import HALF, NONE, OneVsAll
from ostraka.runs.config import make, parse_assignments
from ostraka.runs.plan import Plan, make_plan, party_seed

WAYS = ("averaged", "mean", "max")
SHOWN = {"accuracy": ".1f", "auroc": ".1f", "networks": ".0f", "cpu_seconds": ".0f"}
PLACE = ("data", "partition", "seed", "known", "parties", "train_per_class")
GROUP = ("data", "partition", "outliers", "way")

Cell = dict[str, Any]
"""What decides the numbers, as it is written into the results."""


@final
@dataclass(frozen=True)
class Kept(Predictor):
    """All parties' networks: those of a class are heard together."""

    parties: Sequence[Predictor]
    held: Tensor
    """[M, K]: whether a party has a network of a class."""
    way: str

    @torch.no_grad()
    def scores(self, x: Tensor) -> Scores:
        """The mean or the largest probability of each class; unknown where all are small."""
        held = self.held.float().unsqueeze(1)
        chances = torch.stack([party.scores(x).known for party in self.parties]).sigmoid() * held
        if self.way == "max":
            known = chances.max(dim=0).values
        else:
            known = chances.sum(dim=0) / held.sum(dim=0).clamp(min=1)
        return Scores(known, 1 - known.max(dim=1).values, HALF)


def trained(method: FedOVA, rnd: Round[Networks], party: Party, outliers: str) -> Report[Networks]:
    """What a party sends; with outliers, every party makes some, whatever it holds."""
    if outliers == NONE:
        return method.local_update(rnd, party, {})
    labels = party.samples.labels.unique().tolist()
    names = [rnd.task.classes[label] for label in labels]
    starts = [rnd.message[name] for name in names]
    own = relabelled(party.samples, labels)
    _, nets = method._train(rnd, party, own, starts, OneVsAll(outliers))
    return Report(dict(zip(names, nets, strict=True)), 1.0, Card(party.id, len(own)))


def answering(
    method: FedOVA, task: Task, start: Server, sent: Sequence[Report[Networks]], way: str
) -> Predictor:
    """What the server answers with, of the networks that were sent."""
    if way == "averaged":
        return method.predictor(task, method.aggregate(task, start, sent))
    each = [method.predictor(task, method.aggregate(task, start, [one])) for one in sent]
    held = torch.tensor([[name in one.payload for name in task.classes] for one in sent])
    return Kept(each, held, way)


def study(plan: Plan, outliers: str) -> Iterator[dict[str, Any]]:
    """Train once; the figures of every way to answer."""
    method, task = plan.method, plan.task
    assert isinstance(method, FedOVA)
    start = method.init(task, plan.config.seed)
    begun, reports = time.process_time(), []
    for party in plan.parties:
        seed = party_seed(plan.config, 1, party.id)
        rnd = Round(task, 1, method.message(start, party.ref), seed)
        reports.append(trained(method, rnd, party, outliers))
    spent = time.process_time() - begun
    sent = [report for report in reports if report.payload]
    classes = [name for report in sent for name in report.payload]
    for way in WAYS:
        found = evaluate(answering(method, task, start, sent, way), plan.test.samples, task.classes)
        yield {
            "way": way,
            "accuracy": found.accuracy,
            "auroc": found.open.auroc,
            "networks": len(set(classes) if way == "averaged" else classes),
            "cpu_seconds": spent,
        }


def plan_of(cell: Cell) -> Plan:
    """One round of all parties, trained as FedOV's members are unless `set` says otherwise."""
    usual = {"rounds": 1, "fraction": 1.0, "local": values_of(SHORT)}
    place = {name: cell[name] for name in PLACE}
    return make_plan(
        make({"method": "fedova", "set": merge(usual, parse_assignments(cell["set"])), **place})
    )


def finished(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(records: Sequence[dict[str, Any]]) -> None:
    """Means over seeds."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for record in records:
        for found in record["figures"]:
            row = {**record["cell"], **found}
            groups.setdefault(tuple(row[name] for name in GROUP), []).append(row)
    print("\n| " + " | ".join((*GROUP, *SHOWN, "seeds")) + " |")
    print("|" + "---|" * (len(GROUP) + len(SHOWN) + 1))
    for group, rows in groups.items():
        shown = []
        for name, how in SHOWN.items():
            values = [row[name] for row in rows if row[name] is not None]
            shown.append(format(fmean(values), how) if values else "—")
        print("| " + " | ".join((*group, *shown, str(len(rows)))) + " |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="results; added to")
    parser.add_argument("--data", nargs="+", default=["fashion-4k"])
    parser.add_argument("--partition", nargs="+", default=["labels:2"])
    parser.add_argument("--outliers", nargs="+", default=[NONE])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--known", type=int, default=None)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--train-per-class", type=int, default=None)
    parser.add_argument("--set", nargs="+", default=[], metavar="SETTING=VALUE")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    wanted = []
    for seed, data, partition, outliers in product(
        options.seeds, options.data, options.partition, options.outliers
    ):
        cell: Cell = {
            "data": data, "partition": partition, "outliers": outliers, "seed": seed,
            "known": options.known, "parties": options.parties,
            "train_per_class": options.train_per_class, "set": sorted(options.set),
        }  # fmt: skip
        wanted.append(cell)
        if any(cell == record["cell"] for record in finished(options.out)):
            continue
        figures = list(study(plan_of(cell), outliers))
        with options.out.open("a") as file:
            file.write(json.dumps({"cell": cell, "figures": figures}) + "\n")
        print(data, partition, outliers, seed, figures, flush=True)
    table([record for record in finished(options.out) if record["cell"] in wanted])


if __name__ == "__main__":
    main()
