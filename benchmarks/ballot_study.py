"""Variants of the calibrated ballot on the members of finished FedOV runs (docs/results/voting.md).

    ostraka run fedov --data usps --partition labels:2 --set tell=statistics --out runs/usps-c2
    python benchmarks/ballot_study.py runs/usps-c2 [runs/... ...]

Prints accuracy (%) of each rule on the run's test samples. "best top-k" picks k with the test
labels: a label-free rule is measured against it, but nobody can have it. P and P+M take 1,000
training samples that no party was given (when --train-per-class leaves some over), unlabelled, as
public ones; they are never evaluation samples.

Where every party has one class, the last columns tell how far any rule that only shifts
("shifts by labels") or shifts and scales ("scales by labels") each member's log odds could
come: the numbers are fitted to the labels of every second test sample, by logistic
regression, and judged on the others.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.samples import Samples
from ostraka.runs.plan import Plan, make_plan
from ostraka.runs.record import load_state
from ostraka.voting.ballots import Ballot, Plurality, Sum, TopK, Votes
from ostraka.voting.calibrated import Calibrated, counts_of
from ostraka.voting.calibration import log_odds
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.panel import Panel

RULES: dict[str, Ballot] = {
    "sum": Sum(),
    "plurality": Plurality(),
    "calibrated": Calibrated(typicality="off"),
    "calibrated+M": Calibrated(typicality="on"),
    "R": Calibrated(doubt="own", typicality="off"),
    "R+M": Calibrated(doubt="own", typicality="on"),
    "P": Calibrated(typicality="off", public="probe"),
    "P+M": Calibrated(typicality="on", public="probe"),
    "mix": Calibrated(doubt="own", typicality="off", public="mix"),
    "mix+M": Calibrated(doubt="own", typicality="on", public="mix"),
}


LIMITS = {"shifts by labels": False, "scales by labels": True}


def leftover(plan: Plan, count: int = 1000) -> Samples | None:
    """Training samples that no party holds, unlabelled."""
    used = torch.zeros(len(plan.parties.samples.x), dtype=torch.bool)
    used[plan.parties.rows] = True
    rows = (~used).nonzero().squeeze(1)
    if len(rows) < count:
        return None
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:count]]
    return Samples(plan.parties.samples.x, None, rows, plan.test.samples.view)


def fitted(votes: list[Votes], labels: Tensor, scales: bool) -> float | None:
    """Accuracy after fitting one shift for each member,
    and a scale if asked, to half of the labels.
    """
    owners = counts_of(votes[0])
    if not bool(
        (owners.count_nonzero(dim=1) == 1).all() and (owners.count_nonzero(dim=0) == 1).all()
    ):
        return None
    classes = owners.argmax(dim=1)
    odds = torch.cat([-log_odds(v.logits) for v in votes], dim=1).t().double()[labels >= 0]
    target = classes.argsort()[labels[labels >= 0]]
    scale, shift = (
        torch.ones(odds.shape[1], dtype=odds.dtype),
        torch.zeros(odds.shape[1], dtype=odds.dtype),
    )
    free = [x.requires_grad_() for x in ((scale, shift) if scales else (shift,))]
    optimiser = torch.optim.LBFGS(free, max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimiser.zero_grad()
        value = F.cross_entropy(scale * odds[::2] + shift, target[::2])
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimiser.step(loss)
    answers = (scale * odds[1::2] + shift).argmax(dim=1)
    return 100 * float((answers == target[1::2]).double().mean())


@torch.no_grad()
def study(folder: Path) -> dict[str, float]:
    config, panel = load_state(folder)
    assert isinstance(panel, Panel), f"{folder} is not a run of a voting method"
    plan = make_plan(config)
    with_typicality = Ensemble.of(plan.method.members(plan.task, panel), RULES["R+M"])
    public = leftover(plan)
    chunks = [part.stored() for part in plan.test.samples.chunks(500)]
    parts = [with_typicality.votes(x) for x in chunks]
    labels = plan.test.samples.labels
    known = labels >= 0

    def accuracy(ballot: Ballot, tuned: tuple[float, ...] = ()) -> float:
        use = ballot.wants_typicality(parts[0].cards)
        scored = [
            ballot.count(Votes(v.logits, v.cards, v.typicality if use else None, tuned))
            for v in parts
        ]
        answers = torch.cat([s.closed for s in scored])
        return 100 * float((answers[known] == labels[known]).double().mean())

    figures = {}
    for name, ballot in RULES.items():
        if not ballot.wants_public:
            figures[name] = accuracy(ballot)
        elif public is not None:
            figures[name] = accuracy(ballot, ballot.tune(with_typicality.votes_on(public)))
    curve = {k: accuracy(TopK(k)) for k in range(1, len(panel.members) + 1)}
    best = max(curve, key=lambda k: curve[k])
    with torch.enable_grad():
        limits = {name: fitted(parts, labels, scales) for name, scales in LIMITS.items()}
    return (
        figures
        | {"best top-k": curve[best], "best k": best}
        | {n: v for n, v in limits.items() if v is not None}
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of finished FedOV runs")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = ["sum", "best top-k", *[name for name in RULES if name != "sum"], *LIMITS]
    print("| run | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    rows = {}
    for folder in options.runs:
        rows[folder.name] = row = study(folder)
        cells = [f"{row[c]:.1f}" if c in row else "—" for c in columns]
        print(f"| {folder.name} | " + " | ".join(cells) + " |", flush=True)
    means = {
        c: sum(row[c] for row in rows.values()) / len(rows)
        for c in columns
        if all(c in r for r in rows.values())
    }
    print(
        "| mean | " + " | ".join(f"{means[c]:.1f}" if c in means else "—" for c in columns) + " |"
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
