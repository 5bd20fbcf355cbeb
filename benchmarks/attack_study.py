"""Ballots on the members of finished FedOV runs, honest and with liars among them:
tables of docs/results/voting.md.

    ostraka run fedov --data usps --partition labels:2 --out runs/usps-c2
    python -m benchmarks.attack_study runs/usps-c2 [runs/... ...]
    python -m benchmarks.attack_study runs/usps-c2 --parts
    python -m benchmarks.attack_study runs/usps-c2 --batches

Prints accuracy (%), the mean over the runs and over --draws choices of attackers. The
guarded ballot is shown as evaluation uses it: it looks at 1,000 of the test samples, without
labels. "removed" is the calibrated ballot without the attackers: what a server could do that
knew them. --parts leaves out one part of the guarded ballot at a time; --batches shows it
looking at fewer samples, and at samples of one, two and three classes only (which are then
also the ones that are answered).
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from benchmarks.attackers import ATTACKERS, attacked, without
from ostraka.core.seeds import torch_rng
from ostraka.evaluation.sight import MOST, drawn
from ostraka.runs.plan import make_plan
from ostraka.runs.record import load_state
from ostraka.voting.ballots import Ballot, Sum, Votes
from ostraka.voting.calibrated import Calibrated
from ostraka.voting.ensemble import Ensemble
from ostraka.voting.guarded import Guarded
from ostraka.voting.panel import Panel

NO_LOOK = "guarded, no look"
MAIN: dict[str, Ballot] = {
    "sum": Sum(),
    "calibrated": Calibrated(),
    NO_LOOK: Guarded(),
    "guarded": Guarded(),
}
PARTS: dict[str, Ballot] = {
    "guarded": Guarded(),
    **{f"no {part}": replace(Guarded(), **{part: False})
       for part in ("cap", "doubt", "junk", "copies", "agreement", "budget", "rescale")},
}  # fmt: skip
SIZES = (1, 10, 30, 100, 300, MOST)
Rule = Callable[[Votes, Tensor], Tensor]
"""Closed answers from votes on all samples and the positions of those that may be looked at."""


def answers(ballot: Ballot, look: bool = True) -> Rule:
    """The rule of a ballot, after a look or without one."""

    def rule(votes: Votes, shown: Tensor) -> Tensor:
        some = replace(votes, logits=votes.logits[:, shown])
        seen = ballot.assess(some) if look and ballot.looks else None
        return ballot.count(replace(votes, assessment=seen)).closed

    return rule


def load(folder: Path) -> tuple[Votes, Tensor, Tensor]:
    """Votes on the known test samples of a run, their labels, and which of them are shown."""
    config, panel = load_state(folder)
    assert isinstance(panel, Panel), f"{folder} is not a run of a voting method"
    plan = make_plan(config)
    ensemble = Ensemble.of(plan.method.members(plan.task, panel), Guarded())
    junk = panel.junk or ensemble.known_junk()
    test = plan.test.samples.take((plan.test.samples.labels >= 0).nonzero().squeeze(1))
    return replace(ensemble.votes_on(test), junk=junk), test.labels, drawn(test)


def accuracy(rule: Rule, votes: Votes, labels: Tensor, shown: Tensor) -> float:
    return 100 * float((rule(votes, shown) == labels).double().mean())


def show(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    print(f"\n| {title} | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def honest(runs: Mapping[str, tuple[Votes, Tensor, Tensor]], rules: Mapping[str, Rule]) -> None:
    rows = {name: [accuracy(rule, *run) for rule in rules.values()] for name, run in runs.items()}
    rows["mean"] = [fmean(column) for column in zip(*rows.values(), strict=True)]
    show("honest", list(rules), {name: [f"{v:.1f}" for v in row] for name, row in rows.items()})


def under_attack(
    runs: Mapping[str, tuple[Votes, Tensor, Tensor]], rules: Mapping[str, Rule], draws: int
) -> None:
    """A row for each attack, cells "with one attacker / with three",
    and the mean of all attacks.
    """
    figures = {}
    for how in ATTACKERS:
        figures[how] = [
            [
                _mean(runs, rule, draws, lambda v, s, how=how, n=n: attacked(v, how, n, s))
                for n in (1, 3)
            ]  # type: ignore[misc]
            for rule in rules.values()
        ]
    figures["mean"] = [
        [fmean(row[i][j] for row in figures.values()) for j in (0, 1)] for i in range(len(rules))
    ]
    best = [
        _mean(runs, answers(Calibrated()), draws, lambda v, s, n=n: without(v, n, s))
        for n in (1, 3)
    ]  # type: ignore[misc]
    rows = {how: [f"{a:.1f} / {b:.1f}" for a, b in row] for how, row in figures.items()}
    rows["attackers removed"] = ["", *[""] * (len(rules) - 2), f"{best[0]:.1f} / {best[1]:.1f}"]
    show("1 / 3 attackers", list(rules), rows)


def _mean(
    runs: Mapping[str, tuple[Votes, Tensor, Tensor]],
    rule: Rule,
    draws: int,
    change: Callable[[Votes, int], Votes],
) -> float:
    return fmean(
        accuracy(rule, change(run[0], seed), *run[1:])
        for run in runs.values()
        for seed in range(draws)
    )


def batches(runs: Mapping[str, tuple[Votes, Tensor, Tensor]], draws: int) -> None:
    """How many samples are looked at, and of how many classes."""
    cases = {
        "honest": ("told numbers faked", 0),
        "constant, 1": ("constant", 1),
        "constant, 3": ("constant", 3),
    }
    guarded = answers(Guarded())
    rows = {}
    for name, (how, number) in cases.items():
        cells = [
            _mean(
                runs,
                lambda v, shown, n=n: guarded(v, shown[:n]),
                draws,
                lambda v, s, how=how, number=number: attacked(v, how, number, s),
            )  # type: ignore[misc]
            for n in SIZES
        ]
        rows[name] = [f"{v:.1f}" for v in cells]
    show("looking at", [str(size) for size in SIZES], rows)
    rows = {}
    for name, (how, number) in cases.items():
        rows[name] = [_skewed(runs, draws, how, number, classes) for classes in (1, 2, 3, 5)]
    show("calibrated / guarded, all samples of", ["1 class", "2", "3", "5"], rows)


def _skewed(
    runs: Mapping[str, tuple[Votes, Tensor, Tensor]],
    draws: int,
    how: str,
    number: int,
    classes: int,
) -> str:
    found: list[list[float]] = [[], []]
    for votes, labels, _ in runs.values():
        for seed in range(draws):
            chosen = torch.randperm(int(labels.max()) + 1, generator=torch_rng(seed, "skew"))[
                :classes
            ]
            rows = torch.isin(labels, chosen).nonzero().squeeze(1)
            part = attacked(replace(votes, logits=votes.logits[:, rows]), how, number, seed)
            for figures, ballot in zip(found, (Calibrated(), Guarded()), strict=True):
                shown = torch.randperm(len(rows), generator=torch_rng(seed, "shown"))[:MOST]
                figures.append(accuracy(answers(ballot), part, labels[rows], shown))
    return " / ".join(f"{fmean(figures):.1f}" for figures in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of finished FedOV runs")
    parser.add_argument("--parts", action="store_true", help="leave out one part at a time")
    parser.add_argument(
        "--batches", action="store_true", help="look at fewer samples, and at few classes"
    )
    parser.add_argument("--honest", action="store_true", help="without attacks")
    parser.add_argument("--draws", type=int, default=3, help="choices of attackers (default 3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        runs = {folder.name: load(folder) for folder in options.runs}
        if options.batches:
            return batches(runs, options.draws)
        rules = {
            name: answers(ballot, name != NO_LOOK)
            for name, ballot in (PARTS if options.parts else MAIN).items()
        }
        honest(runs, rules)
        if not options.honest:
            under_attack(runs, rules, options.draws)


if __name__ == "__main__":
    main()
