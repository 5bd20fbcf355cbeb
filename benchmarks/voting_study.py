"""Every ballot, and the promise that a known sample is called unknown once in twenty,
on members of finished runs.

    ostraka compare fedov --data mnist --partition labels:2 dirichlet:0.1 --seeds 31,32,33 \\
        --out runs/study
    python benchmarks/voting_study.py runs/study [runs/... ...] --out study.jsonl

Members are read from the runs' folders, so any number of ballots costs one training. For each run
and ballot: accuracy of the closed answer, AUROC, OSCR and FPR95 of the unknown score, and, with the
threshold placed by what the parties told (`--rate`, default 0.05), the known and the unknown
samples that are called unknown, and balanced open accuracy. All in percent, on the run's test
samples. "best top-k" picks k with the test labels: nobody can have it, and a label-free rule is
measured against it.

`--batches 1 10 100` adds the guarded ballot when it may look at batches of that size only (their
samples drawn at random, 2,000 in all) and `--skewed` when it looks at batches of 500 samples of two
classes. Runs that are in `--out` already are not counted again. At the end: means over seeds.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from ostraka.evaluation.evaluate import evaluate
from ostraka.evaluation.metrics import accuracy
from ostraka.evaluation.sight import after_looking
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import load_state
from ostraka.voting.ballots import Ballot, Sum, TopK
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.guarded import Guarded
from ostraka.voting.panel import Panel

BALLOTS: dict[str, Ballot] = {
    "sum": Sum(),
    "calibrated": Calibrated(typicality="off"),
    "guarded": Guarded(typicality="off"),
}
STATISTICS: dict[str, Ballot] = {
    "calibrated+M": Calibrated(typicality="on"),
    "guarded+M": Guarded(typicality="on"),
}
"""Where every member tells statistics of its embedding."""
SHOWN = ("accuracy", "known_refused", "unknown_refused", "balanced", "auroc", "oscr")
PLACE = ("data", "partition", "known", "parties", "train_per_class")
SAMPLES, SKEWED = 2000, 500
"""Samples that are answered batch by batch; samples of a batch of two classes."""

Figures = dict[str, float | None]


def folders(roots: Sequence[Path]) -> Iterator[Path]:
    """The finished runs at or below the given folders."""
    for root in roots:
        yield from sorted(
            path.parent
            for path in root.rglob("summary.json")
            if (path.parent / "config.toml").exists()
        )


def figures_of(plan: Plan, ensemble: Ensemble, rate: float) -> Figures:
    """What a ballot is worth on the run's test samples, its threshold placed by what was told."""
    seen = after_looking(ensemble, plan.test.samples)
    kept, promise = seen.keeping(rate)
    found = evaluate(kept, plan.test.samples, plan.task.classes)
    opened = found.open.as_dict()
    opened["balanced"] = opened.pop("balanced_accuracy")
    return {
        "accuracy": found.accuracy,
        **opened,
        "promised": None if promise.rate is None else 100 * promise.rate,
    }


def best_top_k(plan: Plan, ensemble: Ensemble) -> Figures:
    parts = [ensemble.votes(x) for x in plan.test.samples.stored().split(1000)]
    answers = [
        torch.cat([TopK(k).count(v).closed for v in parts])
        for k in range(1, len(ensemble.cards) + 1)
    ]
    return {
        "accuracy": max(
            100 * (accuracy(found, plan.test.samples.labels) or 0.0) for found in answers
        )
    }


def in_batches(plan: Plan, ensemble: Ensemble, batches: Sequence[Tensor]) -> Figures:
    """Accuracy where the ballot looks at each batch alone."""
    right = total = 0
    for batch in batches:
        x, labels = plan.test.samples.stored(batch), plan.test.samples.labels[batch]
        answers = ensemble.seeing(x).scores(x).closed
        right, total = right + int((answers == labels).sum()), total + len(batch)
    return {"accuracy": 100 * right / total}


def batches_of(plan: Plan, size: int) -> list[Tensor]:
    known = (plan.test.samples.labels >= 0).nonzero().squeeze(1)
    order = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(0))][:SAMPLES]
    return list(order.split(size))


def skewed(plan: Plan) -> list[Tensor]:
    """Batches of two neighbouring classes each."""
    labels, classes = plan.test.samples.labels, len(plan.task.classes)
    pairs = [
        ((labels == c) | (labels == (c + 1) % classes)).nonzero().squeeze(1)
        for c in range(0, classes, 2)
    ]
    rng = torch.Generator().manual_seed(0)
    return [rows[torch.randperm(len(rows), generator=rng)][:SKEWED] for rows in pairs]


@torch.no_grad()
def study(folder: Path, options: argparse.Namespace) -> dict[str, Figures]:
    config, panel = load_state(folder)
    assert isinstance(panel, Panel), f"{folder} is not a run of a voting method"
    plan = make_plan(config)
    method: Any = plan.method
    base = Ensemble.of(method.members(plan.task, panel), Sum())
    base = replace(base, junk=base.known_junk())
    told = all("typicality" in card.calibration for card in base.cards)
    ballots = BALLOTS | (STATISTICS if told else {})
    found = {
        name: figures_of(plan, replace(base, ballot=ballot), options.rate)
        for name, ballot in ballots.items()
    }
    found["best top-k"] = best_top_k(plan, base)
    guarded = replace(base, ballot=BALLOTS["guarded"])
    for size in options.batches:
        found[f"guarded, batches of {size}"] = in_batches(plan, guarded, batches_of(plan, size))
    if options.skewed:
        for name in ("calibrated", "guarded"):
            found[f"{name}, two classes"] = in_batches(
                plan, replace(base, ballot=BALLOTS[name]), skewed(plan)
            )
    return found


def place_of(folder: Path) -> dict[str, Any]:
    config, _ = load_state(folder)
    run = {name: getattr(config, name) for name in PLACE}
    return {**run, "objective": config.set.get("objective"), "seed": config.seed}


def table(records: Sequence[dict[str, Any]]) -> None:
    """Means over the seeds of each place, then over all."""
    groups: dict[str, list[dict[str, Figures]]] = {}
    for record in records:
        place = record["place"]
        named = [f"{place['data']} {place['partition']}"]
        named += [f"{place['known']} known"] if place["known"] else []
        named += [f"{place['parties']} parties"] if place["parties"] else []
        groups.setdefault(", ".join(named), []).append(record["figures"])
        groups.setdefault("all", []).append(record["figures"])
    print("| place | ballot | " + " | ".join(SHOWN) + " | runs |\n|" + "---|" * (len(SHOWN) + 3))
    for name, runs in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0])):
        for ballot in dict.fromkeys(ballot for run in runs for ballot in run):
            rows = [run[ballot] for run in runs if ballot in run]
            means = [[row[key] for row in rows if row.get(key) is not None] for key in SHOWN]
            shown = [f"{fmean(values):.1f}" if values else "—" for values in means]
            print(f"| {name} | {ballot} | " + " | ".join(shown) + f" | {len(rows)} |")
    rates = sorted(record["figures"]["guarded"]["known_refused"] for record in records)
    inside = sum(2 <= rate <= 8 for rate in rates)
    print(
        f"\nguarded: known samples called unknown {rates[0]:.1f} to {rates[-1]:.1f} %, median "
        f"{rates[len(rates) // 2]:.1f}; within 2 to 8 % in {inside} of {len(rates)} runs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        help="folders of finished runs of a voting method, or of grids",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="results, one JSON line for each run; added to"
    )
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--batches", type=int, nargs="*", default=[])
    parser.add_argument("--skewed", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = (
        [json.loads(line) for line in options.out.read_text().splitlines()]
        if options.out.exists()
        else []
    )
    wanted = []
    for folder in folders(options.runs):
        place = place_of(folder)
        if place in wanted:
            continue
        wanted.append(place)
        if not any(record["place"] == place for record in records):
            records.append({"place": place, "figures": study(folder, options)})
            with options.out.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
            print(folder, place["data"], place["partition"], place["seed"], flush=True)
    table([record for record in records if record["place"] in wanted])


if __name__ == "__main__":
    main()
