"""How long a choice among many members takes, and how representation, reduction and
the way to compare several networks change it.

    python -m benchmarks.selection_study time --members 400
    python -m benchmarks.selection_study ablation runs/cells/...
    python -m benchmarks.selection_study bad runs/cells/... --party 3 --lr 1.0
    python -m benchmarks.selection_study mixed --data digits
    python -m benchmarks.selection_study pareto runs/grid --out pareto.svg

`time` needs no data: members are random networks of LeNet-5's size. `ablation` chooses anew among
the members of a finished run, with the run's own ballot and size, and judges the teams on its
test set. `bad` has one party of such a run train again with another learning rate, and tells
whether the filters leave its member out. `mixed` trains members of two networks and compares both
ways to choose among them. `pareto` draws accuracy against the cost of answers, from a grid.
CPU-seconds on one thread; libraries are loaded before.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.method import Round
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.task import Task
from ostraka.display.curves import Curve, accuracy_curves
from ostraka.display.teams import Members
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import FILTERS
from ostraka.runs.config import make
from ostraka.runs.division import divide
from ostraka.runs.plan import party_seed
from ostraka.voting.ballots import Plurality
from ostraka.voting.choice import NOWHERE
from ostraka.voting.dedes import DeDES
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.inspection import team_accuracy
from ostraka.voting.panel import Seat
from ostraka.voting.selectors import Pool, Random, Selector
from ostraka.voting.training import Terms, train_member


def lenets(count: int, classes: int = 10) -> Pool:
    """Random members of LeNet-5's size with sizes, counts and scores."""
    names = tuple(str(c) for c in range(classes))
    model = Model.of(Task(names, (1, 28, 28), Recipe("lenet5")), CrossEntropy())
    rng, members = torch_rng(0, "study"), []
    for i in range(count):
        counts = tuple(torch.randint(0, 200, (classes,), generator=rng).tolist())
        score = 0.8 + 0.1 * float(torch.rand((), generator=rng))
        params = params_of(model.task.build_net(unknown=False, seed=i))
        scores = {"validation": score, "confidence": score}
        members.append(Member(Card(i, sum(counts), counts, scores), model, params))
    return Pool(members, names)


def timed(selector: Selector, pool: Pool) -> tuple[float, int]:
    """CPU-seconds of a choice, and how many were chosen."""
    selector.load()
    begun = time.process_time()
    chosen = selector.choose(pool).chosen
    return time.process_time() - begun, len(chosen)


def time_all(count: int) -> None:
    """Print the seconds of every way to choose."""
    pool, half = lenets(count), count // 2
    ways = {
        f"dedes, {how}, size {size}": DeDES(size, clustering=how)
        for how in ("kmeans", "spectral", "hierarchical")
        for size in (half, "auto")
    }
    ways |= {
        f"dedes, kmeans, size {half}, {name}": DeDES(half, clustering="kmeans", **values)
        for name, values in {
            "all layers": {"representation": "all"},
            "answers": {"representation": "answers"},
            "pca": {"reduction": "pca"},
            "kernel-pca": {"reduction": "kernel-pca"},
        }.items()
    }
    print(f"| way to choose among {count} | CPU-seconds | chosen |\n|---|---|---|")
    for name, selector in ways.items():
        seconds, chosen = timed(selector, pool)
        print(f"| {name} | {seconds:.2f} | {chosen} |", flush=True)


def ablation(folder: Path, draws: int = 20) -> None:
    """Print the accuracy of teams by representation and reduction, beside random teams."""
    run = Members.of(folder)
    size = len(run.choice.chosen)
    if size == len(run.members):
        size = size // 2
    print(f"| representation | reduction | accuracy (%) of {size} |\n|---|---|---|")
    for representation in ("first", "last", "all", "answers"):
        for reduction in ("none", "pca", "kernel-pca"):
            selector = DeDES(size, representation=representation, reduction=reduction)
            accuracy = run.accuracy(selector.choose(run.pool).chosen)
            print(f"| {representation} | {reduction} | {accuracy:.2f} |", flush=True)
    drawn = [run.accuracy(Random(size, d).choose(run.pool).chosen) for d in range(draws)]
    print(f"| by lot, mean of {draws} | | {fmean(drawn):.2f} |")
    print(f"| all {len(run.members)} members | | {run.accuracy(range(len(run.members))):.2f} |")


def bad(folder: Path, party: int, lr: float) -> None:
    """Print what filters do to a member that was trained with another rate, and to the team."""
    run = Members.of(folder)
    plan, size = run.plan, max(1, len(run.members) // 2)
    worse = replace(run.method, local=replace(run.method.local, lr=lr))
    order: Round[Params] = Round(plan.task, 1, {}, party_seed(plan.config, 1, party))
    report = worse.local_update(order, plan.parties[party], {})
    seats = list(run.panel.members)
    place = [seat.card.party for seat in seats].index(party)
    was = run.alone()[place]
    seats[place] = Seat(report.card, report.payload)
    run = replace(run, panel=replace(run.panel, members=tuple(seats), choice=None))
    score = report.card.scores.get("validation")
    print(f"party {party}: {was:.2f} % alone before, {run.alone()[place]:.2f} % now, tells {score}")
    print(f"| filter | left out | votes | accuracy (%) of {size} |\n|---|---|---|---|")
    for name in FILTERS:
        choice = DeDES(size, filter=FILTERS.get(name)()).choose(run.pool)
        out = [i for i, group in enumerate(choice.groups) if group == NOWHERE]
        votes = "yes" if place in choice.chosen else "no"
        print(f"| {name} | {out} | {votes} | {run.accuracy(choice.chosen):.2f} |")


def two_networks(data: str, parties: int, seed: int) -> tuple[Pool, torch.Tensor, torch.Tensor]:
    """Members of two networks in turn, and the test samples with their labels."""
    config = make({"data": data, "parties": parties, "partition": "dirichlet:0.5", "seed": seed})
    division = divide(config)
    samples, test = division.data.train, division.data.test
    names, members = tuple(division.data.classes), []
    for i, rows in enumerate(division.partition.parties):
        net = (
            Recipe("mlp", {"hidden": [64]}) if i % 2 else Recipe("simple-cnn", {"padding": "same"})
        )
        model = Model.of(Task(names, samples.shape, net, view=samples.view), CrossEntropy())
        own = samples.take(torch.as_tensor(rows))
        terms = Terms(replace(ClosedVoting().local, epochs=15), scored=True)
        party = Party(PartyRef(i, len(own)), own)
        members.append(train_member(model, terms, party, derive(seed, "party", i)))
    return Pool(members, names, seed), test.stored(), test.labels


def mixed(data: str, parties: int, seeds: Sequence[int]) -> None:
    """Print the accuracy of teams chosen among members of two networks, both ways."""
    print("| seed | size | answers | grouped | by lot | all |\n|---|---|---|---|---|---|")
    for seed in seeds:
        pool, x, labels = two_networks(data, parties, seed)
        votes = Ensemble.of(pool.members, Plurality(), pool.classes).votes(x)
        for size in (parties // 4, parties // 2):
            ways: list[list[Selector]] = [
                [DeDES(size, mixed="answers")],
                [DeDES(size, mixed="grouped")],
                [Random(size, draw) for draw in range(20)],
            ]
            found = [
                fmean(
                    100 * team_accuracy(votes, labels, Plurality(), one.choose(pool).chosen)
                    for one in way
                )
                for way in ways
            ]
            whole = 100 * team_accuracy(votes, labels, Plurality(), range(parties))
            figures = " | ".join(f"{value:.2f}" for value in [*found, whole])
            print(f"| {seed} | {size} | {figures} |", flush=True)


def pareto(grid: Path, out: Path) -> None:
    """Draw accuracy against the CPU-seconds of all answers to the test set, means over seeds,
    a panel for each data set and division; who is beaten in both by none is named in the table.
    """
    cells: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line in json.loads((grid / "results.json").read_text()):
        if line["status"] == "ok" and "inference" in line.get("spent", {}):
            where = cells.setdefault(f"{line['data']} / {line['partition']}", {})
            found = (line["spent"]["inference"], line["accuracy"])
            where.setdefault(line["method"], []).append(found)
    panels = {}
    for title, methods in cells.items():
        means = {m: (fmean(s for s, _ in f), fmean(a for _, a in f)) for m, f in methods.items()}
        panels[title] = [
            Curve(method, [means[method][0]], [[accuracy] for _, accuracy in found])
            for method, found in methods.items()
        ]
        print(f"| {title} | seconds | accuracy (%) | beaten by none |\n|---|---|---|---|")
        for method, (seconds, accuracy) in sorted(means.items(), key=lambda item: item[1]):
            beaten = any(s <= seconds and a >= accuracy and (s, a) != (seconds, accuracy)
                         for s, a in means.values())  # fmt: skip
            print(f"| {method} | {seconds:.2f} | {accuracy:.2f} | {'' if beaten else 'yes'} |")
    accuracy_curves(panels, out, xlabel="CPU-seconds of all answers")


def main() -> None:
    """Run one of the five."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("time").add_argument("--members", type=int, default=400)
    verbs.add_parser("ablation").add_argument("run", type=Path)
    worse = verbs.add_parser("bad")
    worse.add_argument("run", type=Path)
    worse.add_argument("--party", type=int, default=3)
    worse.add_argument("--lr", type=float, default=1.0)
    cost = verbs.add_parser("pareto")
    cost.add_argument("grid", type=Path)
    cost.add_argument("--out", type=Path, required=True)
    both = verbs.add_parser("mixed")
    both.add_argument("--data", default="digits")
    both.add_argument("--parties", type=int, default=20)
    both.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.verb == "time":
        time_all(options.members)
    elif options.verb == "ablation":
        ablation(options.run)
    elif options.verb == "pareto":
        pareto(options.grid, options.out)
    elif options.verb == "bad":
        bad(options.run, options.party, options.lr)
    else:
        mixed(options.data, options.parties, options.seeds)


if __name__ == "__main__":
    main()
