"""What choosing members costs and gives: seconds, teams by representation, reduction and size,
bad parties, several networks, and accuracy against the cost of answers.

    python -m benchmarks.selection_study time --members 400
    python -m benchmarks.selection_study table runs/grid
    python -m benchmarks.selection_study ablation runs/grid/cells/dedes-*
    python -m benchmarks.selection_study sizes runs/ten/cells/*
    python -m benchmarks.selection_study bad runs/one --party 3 --lr 1.0
    python -m benchmarks.selection_study filters --data digits --seeds 0 1 2 3
    python -m benchmarks.selection_study mixed --data digits
    python -m benchmarks.selection_study pareto runs/grid --figure pareto.svg

Every one prints a table, line by line, and stores it where `--out FILE` says. `time` needs no data:
members are random networks of LeNet-5's size. `table` and `pareto` read a finished grid. `ablation`
and `sizes` choose anew among the members of finished runs, with the run's own ballot, and judge
the teams on its test set; `sizes` tries all teams, so of up to 12 members. `bad` has one party of
such a run train again with another learning rate, and tells whether the filters leave its member
out. `mixed` trains members of two networks and chooses among them.
CPU-seconds on one thread; libraries are loaded before.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import get_args

import torch

from benchmarks.selection_tables import Lines, head, pareto, row, table
from ostraka.core.card import Card
from ostraka.core.member import Member, Model
from ostraka.core.method import Round
from ostraka.core.net import Params, Recipe, params_of
from ostraka.core.party import Party, PartyRef
from ostraka.core.seeds import derive, torch_rng
from ostraka.core.task import Task
from ostraka.display.teams import Members
from ostraka.methods.closed_voting import ClosedVoting
from ostraka.methods.panel import VotingMethod
from ostraka.objectives.cross_entropy import CrossEntropy
from ostraka.registry import FILTERS
from ostraka.runs.config import make
from ostraka.runs.division import divide
from ostraka.runs.plan import make_plan, party_seed
from ostraka.voting.ballots import Plurality
from ostraka.voting.choice import NOWHERE
from ostraka.voting.clustering import Reduction
from ostraka.voting.dedes import DeDES
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.inspection import MOST, team_accuracy
from ostraka.voting.panel import Seat
from ostraka.voting.selectors import All, Pool, Random, Selector
from ostraka.voting.training import Terms, train_member

AUTO = {"auto, by silhouette": "silhouette", "auto, by votes on probes": "votes"}
"""Both ways by which dedes finds a size."""
BAD = (3, 7)
"""The parties that are bad in turn, of ten."""
REPRESENTATIONS = ("first", "last", "all", "answers", "counts")
REDUCTIONS = get_args(Reduction)
ALL, BEST = "all members", "the best team, by the labels"


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


def time_all(count: int) -> Lines:
    """The seconds of every way to choose."""
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
    yield from head(f"way to choose among {count}", "CPU-seconds", "chosen")
    for name, selector in ways.items():
        seconds, chosen = timed(selector, pool)
        yield row(name, f"{seconds:.2f}", chosen)


def ablation(folders: Sequence[Path], draws: int = 20) -> Lines:
    """The accuracy of teams by representation and reduction, beside random teams and all members:
    a column for each division, the mean over its runs.
    """
    runs = grouped(folders)
    yield from head("representation", "reduction", *runs)
    for representation, reduction in product(REPRESENTATIONS, REDUCTIONS):
        way = DeDES(representation=representation, reduction=reduction)
        yield row(representation, reduction, *means(runs, [way]))
    lots = [Random(draw=draw) for draw in range(draws)]
    yield row(f"by lot, mean of {draws}", "", *means(runs, lots))
    yield row("all members", "", *means(runs, [All()]))


def means(runs: Mapping[str, Sequence[Members]], ways: Sequence[Selector]) -> list[str]:
    """The mean accuracy of the teams that several selectors choose, for each division."""
    found = []
    for same in runs.values():
        teams = [(run, sized(way, run).choose(run.pool).chosen) for run in same for way in ways]
        found.append(f"{fmean(run.accuracy(team) for run, team in teams):.2f}")
    return found


def sized(way: Selector, run: Members) -> Selector:
    """The selector for a team as large as the run's own; half of the members, where that is all."""
    if not isinstance(way, DeDES | Random):
        return way
    own, count = len(run.choice.chosen), len(run.members)
    return replace(way, size=own if own < count else max(1, count // 2))


def grouped(folders: Sequence[Path]) -> dict[str, list[Members]]:
    """The runs of each division of data, by what the column is called."""
    found: dict[str, list[Members]] = {}
    for folder in folders:
        run = Members.of(folder)
        config = run.plan.config
        found.setdefault(f"{config.data} / {config.partition}", []).append(run)
    return found


def sizes(folders: Sequence[Path]) -> Lines:
    """The accuracy of dedes's team by its size, fixed or found, the mean over the runs of a
    division, and its mean rank among all teams.
    """
    runs = grouped(folders)
    found = {title: [all_sizes(run) for run in same] for title, same in runs.items()}
    rules = [rule for rule in [*range(1, MOST + 1), *AUTO, ALL, BEST]
             if all(rule in of for same in found.values() for of in same)]  # fmt: skip
    yield from head("size", *(f"{title}: accuracy (%) | rank | size" for title in found))
    for rule in rules:
        cells = []
        for same in found.values():
            means = [fmean(column) for column in zip(*(of[rule] for of in same), strict=True)]
            cells.append(f"{means[0]:.2f} | {means[1]:.0f} | {means[2]:.1f}")
        yield row(rule, *cells)


def all_sizes(run: Members) -> dict[int | str, tuple[float, int, int]]:
    """Accuracy, rank among all teams and members of dedes's team for every size, and for those
    that it finds itself.
    """
    inspection, count = run.inspect(), len(run.members)
    ways: dict[int | str, DeDES] = {size: DeDES(size) for size in range(1, count + 1)}
    ways |= {name: DeDES(size_by=by) for name, by in AUTO.items()}
    teams = {name: way.choose(run.pool).chosen for name, way in ways.items()}
    best = {BEST: inspection.best, ALL: tuple(range(count))}
    return {
        name: (100 * inspection.accuracy[team], inspection.rank(team), len(team))
        for name, team in {**teams, **best}.items()
    }


def bad(folder: Path, party: int, lr: float) -> Lines:
    """What filters do to a member that was trained with another rate, and to the team."""
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
    told = ", ".join(
        f"{card.scores.get('validation', float('nan')):.2f}" for card in run.pool.cards
    )
    yield f"party {party}: {was:.2f} % alone before, {run.alone()[place]:.2f} % now, tells {score}"
    yield f"scores that are told: {told}\n"
    yield from head("filter", "left out", "votes", f"accuracy (%) of {size}")
    for name in FILTERS:
        choice = DeDES(size, filter=FILTERS.get(name)()).choose(run.pool)
        out = [i for i, group in enumerate(choice.groups) if group == NOWHERE]
        votes = "yes" if place in choice.chosen else "no"
        yield row(name, out, votes, f"{run.accuracy(choice.chosen):.2f}")


def filters(data: str, partitions: Sequence[str], seeds: Sequence[int], lr: float) -> Lines:
    """How many badly and how many well trained parties of ten each filter leaves out: two parties
    are bad in turn; and where nobody is.
    """
    yield from head("division", "filter", "bad ones out", "honest ones out", "where nobody is bad")
    for spec in partitions:
        found = {name: [0] * 3 for name in FILTERS}
        for seed in seeds:
            good, bad_ones = well_and_badly(data, spec, seed, lr)
            for name, seen in found.items():
                way = DeDES(5, filter=FILTERS.get(name)())
                seen[2] += len(dismissed(way, good))
                for party, worse in bad_ones.items():
                    out = dismissed(way, [worse if i == party else m for i, m in enumerate(good)])
                    seen[0] += party in out
                    seen[1] += len(out - {party})
        bads = len(seeds) * len(BAD)
        for name, (caught, lost, idle) in found.items():
            yield row(spec, name, f"{caught} of {bads}", f"{lost} of {9 * bads}",
                      f"{idle} of {10 * len(seeds)}")  # fmt: skip


def well_and_badly(
    data: str, spec: str, seed: int, lr: float
) -> tuple[list[Member], dict[int, Member]]:
    """Members of ten parties, and those of the BAD ones if they train at the rate `lr`."""
    given = {"data": data, "parties": 10, "partition": spec, "seed": seed, "method": "dedes"}
    plan = make_plan(make({**given, "set": {"local": {"epochs": 12}}}))
    usual = plan.method
    assert isinstance(usual, VotingMethod)

    def made(party: int, method: VotingMethod) -> Member:
        order: Round[Params] = Round(plan.task, 1, {}, party_seed(plan.config, 1, party))
        report = method.local_update(order, plan.parties[party], {})
        return Member(report.card, Model.of(plan.task, method.objective), report.payload)

    worse = replace(usual, local=replace(usual.local, lr=lr))
    return [made(i, usual) for i in range(10)], {i: made(i, worse) for i in BAD}


def dismissed(way: DeDES, members: Sequence[Member]) -> set[int]:
    """The places of those that the filter leaves out."""
    groups = way.choose(Pool(members, members[0].model.classes)).groups
    return {i for i, group in enumerate(groups) if group == NOWHERE}


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
        terms = Terms(ClosedVoting().local.changed(epochs=15), scored=True)
        party = Party(PartyRef(i, len(own)), own)
        members.append(train_member(model, terms, party, derive(seed, "party", i)))
    return Pool(members, names, seed), test.stored(), test.labels


def mixed(data: str, parties: int, seeds: Sequence[int]) -> Lines:
    """The accuracy of teams chosen among members of two networks."""
    yield from head("seed", "size", "answers", "by lot", "all")
    for seed in seeds:
        pool, x, labels = two_networks(data, parties, seed)
        votes = Ensemble.of(pool.members, Plurality(), pool.classes).votes(x)
        for size in (parties // 4, parties // 2):
            ways: list[list[Selector]] = [
                [DeDES(size)],
                [Random(size, draw) for draw in range(20)],
                [All()],
            ]
            found = [
                fmean(
                    100 * team_accuracy(votes, labels, Plurality(), one.choose(pool).chosen)
                    for one in way
                )
                for way in ways
            ]
            yield row(seed, size, *(f"{value:.2f}" for value in found))


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = {name: verbs.add_parser(name) for name in VERBS}
    for verb in made.values():
        verb.add_argument("--out", type=Path, help="a file that the table is stored in too")
    made["time"].add_argument("--members", type=int, default=400)
    for name in ("table", "pareto"):
        made[name].add_argument("grid", type=Path)
    for name in ("ablation", "sizes"):
        made[name].add_argument("run", type=Path, nargs="+")
    made["pareto"].add_argument("--figure", type=Path, required=True)
    made["bad"].add_argument("run", type=Path)
    made["bad"].add_argument("--party", type=int, default=3)
    made["bad"].add_argument("--lr", type=float, default=1.0)
    made["mixed"].add_argument("--data", default="digits")
    made["mixed"].add_argument("--parties", type=int, default=20)
    made["mixed"].add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    made["filters"].add_argument("--data", default="digits")
    made["filters"].add_argument("--partition", nargs="+", default=["dirichlet:0.5"])
    made["filters"].add_argument("--seeds", type=int, nargs="+", default=[0])
    made["filters"].add_argument("--lr", type=float, default=1.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    say(VERBS[options.verb](options), options.out)


def say(lines: Lines, out: Path | None) -> None:
    """Print the lines as they come, and store them."""
    said = []
    for line in lines:
        print(line, flush=True)
        said.append(line)
        if out is not None:
            out.write_text("\n".join([*said, ""]))


VERBS: dict[str, Callable[[argparse.Namespace], Lines]] = {
    "time": lambda options: time_all(options.members),
    "table": lambda options: table(options.grid),
    "ablation": lambda options: ablation(options.run),
    "sizes": lambda options: sizes(options.run),
    "bad": lambda options: bad(options.run, options.party, options.lr),
    "filters": lambda o: filters(o.data, o.partition, o.seeds, o.lr),
    "mixed": lambda options: mixed(options.data, options.parties, options.seeds),
    "pareto": lambda options: pareto(options.grid, options.figure),
}

if __name__ == "__main__":
    main()
