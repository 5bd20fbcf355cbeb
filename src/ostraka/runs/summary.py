"""The final figures of a run, from its evaluated rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

from ostraka.core.method import Iterative
from ostraka.core.party import labels
from ostraka.errors import choices
from ostraka.evaluation.evaluate import Evaluation
from ostraka.runs.plan import Plan
from ostraka.runs.promise import NEVER
from ostraka.runs.results import BESIDE_ACCURACY, Best, DomainFigures, MetricsRow, Summary

LAST = 20
"""Rounds at the end whose mean accuracy is reported (as FedOVA does)."""

MOVED = 0.95
"""A loss above this share of that of guessing is no lower."""

FEW, FEW_FOR_CLASS = 100, 30
"""Optimiser steps of a party in all, and for each class it holds, below which it is said: on
digits and MNIST members were then 5 to 60 points below longer training (docs/results/defaults.md).
"""

LEVELS = (50, 60, 70, 80, 85, 90, 95)
"""Percent of accuracy of which the first round that has them is reported."""


@dataclass
class Totals:
    """What a run has cost so far."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    dropped: list[dict[str, Any]] = field(default_factory=list)
    """Name, round and reason of each party that failed and was dropped."""
    losses: list[float] = field(default_factory=list)
    """The parties' mean loss after the first round and after the last one."""
    reused: int = 0
    """Reports that another run had made already."""
    equipped: list[int] = field(default_factory=list)
    """Parties that were sent the generator."""
    spent: dict[str, float] = field(default_factory=dict)
    """CPU-seconds of some parts of the server's work, each as it was last."""

    def spend(self, parts: Mapping[str, float]) -> None:
        """Note what parts of the server's work took; of one that comes again, the last."""
        self.spent = {**self.spent, **parts}


def summarise(plan: Plan, rows: Sequence[MetricsRow], costs: Totals, out: Path) -> Summary:
    """Last, best, best-on-validation, mean of the last 20 evaluated rounds, costs, the last tables.

    The start of a run that has one is not among its rounds; `start` says what it was.
    """
    before, rows = [row for row in rows if row.round == 0], [row for row in rows if row.round > 0]
    last, names = rows[-1].test, labels(plan.partition.names)
    best = max(rows, key=lambda row: (row.test.accuracy or 0.0, -row.round))  # the first of equals
    judged = [(row.validation, row) for row in rows if row.validation is not None]
    validation, chosen = max(judged, key=lambda pair: pair[0], default=(None, best))
    at_the_end = [row.test.accuracy for row in rows[-LAST:]]
    defined = [accuracy for accuracy in at_the_end if accuracy is not None]
    return Summary(
        method=plan.name,
        data=plan.config.data,
        partition=plan.config.partition,
        parties=len(plan.partition.parties),
        seed=plan.config.seed,
        rounds=plan.method.rounds if isinstance(plan.method, Iterative) else 1,
        accuracy=last.accuracy,
        balanced_accuracy=last.balanced_accuracy,
        f1=last.f1,
        open=last.open,
        answer=rows[-1].answer,
        best=Best(best.test.accuracy, best.round),
        best_on_validation=Best(chosen.test.accuracy, chosen.round, validation) if judged else None,
        mean_last_20=fmean(defined) if at_the_end[-1] is not None else None,
        reached=_reached(rows),
        per_class=last.per_class,
        per_party=_named(rows[-1].per_party or {}, names),
        per_part=_named({party: part.accuracy for party, part in last.per_part.items()}, names),
        per_domain={name: DomainFigures.of(part) for name, part in last.per_domain.items()},
        confusion=rows[-1].confusion or (),
        notes=(*plan.notes, *last.notes),
        hardly_trained=hardly_trained(plan, last, costs.losses),
        seconds=costs.seconds,
        cpu_seconds=costs.cpu_seconds,
        bytes_up=costs.bytes_up,
        bytes_down=costs.bytes_down,
        dropped=tuple(costs.dropped),
        reused=costs.reused,
        spent=dict(costs.spent),
        start=plan.start.figures(before[0].test.accuracy) if plan.start else None,
        out=str(out),
    )


def hardly_trained(plan: Plan, test: Evaluation, losses: Sequence[float]) -> tuple[str, ...]:
    """Signs that the models have learned next to nothing; the last one says what to set.

    Models of parties that stand alone are at chance wherever a party has few of the classes, which
    is no fault of theirs.
    """
    alone = plan.method.regime == "alone"
    guessing = log(max(2, sum(figure is not None for figure in test.per_class.values())))
    still = bool(losses) and losses[-1] >= MOVED * guessing
    few, signs = _few_steps(plan), list[str]()
    if few:
        signs.append(few)
    if still:
        first, last = losses[0], losses[-1]
        signs.append(
            "the loss on the parties' own samples has hardly moved "
            f"({first:.3g} after round 1, {last:.3g} at the end; guessing: {guessing:.3g})"
        )
    if test.at_chance and not alone:
        signs.append(f"the result is at chance ({test.at_chance})")
        if losses and not still:
            signs[-1] += f", although the parties' own models have learned (loss {losses[-1]:.3g})"
    elif test.never_right and not alone:
        signs.append(f"no test sample of {choices(test.never_right)} is answered correctly")
    if not signs:
        return ()
    rounds = isinstance(plan.method, Iterative) and not plan.method.pooled
    longer = f"train longer ({'--rounds, ' * rounds}--epochs, or --set local.least_class_steps)"
    other = f"{longer}, or use a method for parties that hold different classes, such as fedov"
    remedy = longer if few else "try another learning rate (--lr)" if still else other
    return (*signs[:-1], f"{signs[-1]}; {remedy}")


def _few_steps(plan: Plan) -> str:
    """What to say where half of the parties make few steps in all; nothing where they do not, or
    where each step is one on all samples (differential privacy)."""
    private = getattr(plan.method, "dp", None)
    if private is not None and private.wanted:
        return ""
    turns = plan.method.fraction * plan.method.exchanges
    made = [
        (held, steps * turns, held / max(1, networks))
        for held, networks, steps in zip(plan.classes_held, plan.trainings, plan.steps, strict=True)
        if held and networks and steps is not None
    ]
    few = [one for one in made if one[1] < max(FEW, FEW_FOR_CLASS * one[2])]
    if 2 * len(few) <= len(made):
        return ""
    held, steps, _ = sorted(few, key=lambda one: one[1])[len(few) // 2]
    return (
        f"{len(few)} of {len(made)} parties make few optimiser steps, a typical one {steps:.0f} "
        f"for {held} class{'es' * (held != 1)}"
    )


def _named(figures: Mapping[int, float | None], names: Sequence[str]) -> dict[str, float | None]:
    return {names[party]: figure for party, figure in figures.items()}


def _reached(rows: Sequence[MetricsRow]) -> dict[str, int]:
    """The first round at each of the LEVELS; those that were never reached are left out."""
    firsts = {
        level: next((row.round for row in rows if (row.test.accuracy or 0.0) >= level), None)
        for level in LEVELS
    }
    return {str(level): first for level, first in firsts.items() if first is not None}


JSON_KEYS = (
    "method", "data", "partition", "parties", "accuracy", "balanced_accuracy", "f1",
    *BESIDE_ACCURACY, "seconds", "cpu_seconds", "bytes_up", "bytes_down", "rounds", "seed",
    "per_domain", "looked", "hardly_trained", "notes", "out",
)  # fmt: skip
"""What `--json` prints."""

WHERE_THERE_IS_ONE = (*BESIDE_ACCURACY, "per_domain", "looked", "hardly_trained", "notes")
"""Keys that `--json` leaves out where they say nothing."""


def notes_of(summary: Summary) -> list[str]:
    """What must stand beside the figures: the run's own notes, and why it answers unknown without
    a promise of how often."""
    answer, opened = summary.answer, summary.open
    closed = opened.unknown_refused is None and opened.auroc is None and not opened.known_refused
    if closed or answer is None or not answer.why or answer.rate is not None or answer == NEVER:
        return [*summary.notes]
    said = "nothing is promised of how often a known sample is called unknown"
    return [*summary.notes, f"{said}: {answer.why}"]


def brief(summary: Summary) -> dict[str, Any]:
    """The summary as `--json` prints it; open-set figures only where the test defines them,
    per_domain with domains.
    """
    told = summary.to_json() | {"notes": notes_of(summary)}
    empty = [key for key in WHERE_THERE_IS_ONE if told[key] in (None, {}, [])]
    return {key: told[key] for key in JSON_KEYS if key not in empty}
