"""What a run's result is given before it is evaluated: the look that was asked for, and a threshold
with what is promised of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isinf
from typing import Any

import torch

from ostraka.core.predictor import Placed, Predictor, Promise, Solo
from ostraka.evaluation.placing import placed_on
from ostraka.evaluation.sight import MOST, after_looking
from ostraka.runs.plan import Plan
from ostraka.runs.start import HALF_TEST

ALL = "all"
"""Under this name lies the threshold of a result that is one predictor."""

NEVER = Promise(why="it never answers unknown")
"""Of a result that has no such answer, and needs no promise."""


def look(plan: Plan, predictor: Predictor, device: str = "cpu") -> tuple[Predictor, dict[str, Any]]:
    """The predictor after the look at unlabelled samples that the configuration names, and how many
    of what they were; nothing where it names none, or the predictor has no use for them.
    """
    wanted, half = plan.config.look, plan.config.public == HALF_TEST
    found = {
        "none": None,
        "validation": plan.validation.samples if plan.validation is not None else None,
        "public": plan.task.commons.public,
        "test": plan.test.samples,
    }[wanted]
    if found is None or not predictor.looks:
        return predictor, {}
    seen = after_looking(predictor, found.to(device))
    of = HALF_TEST if wanted == "public" and half else wanted
    return seen, {"samples": min(MOST, len(found)), "of": of}


def look_note(name: str, looked: Mapping[str, Any]) -> str:
    """What must be said with the figures of a result that has looked."""
    return (
        f"{name} looked at {looked['samples']:,} unlabelled {looked['of']} samples to estimate "
        "which members to trust"
    )


def told_of_look(plan: Plan, looked: Mapping[str, Any]) -> list[str]:
    """The notes of a run that was to look; none if it was not."""
    if plan.config.look == "none":
        return []
    useless = f"look is {plan.config.look!r}, but {plan.name} has no use for unlabelled samples"
    return [look_note(plan.name, looked) if looked else useless]


def place(plan: Plan, predictor: Predictor, device: str = "cpu") -> tuple[Predictor, Promise]:
    """The predictor with its threshold where the configuration wants it,
    and what may be expected of that.
    """
    config = plan.config
    if config.threshold is not None:
        return _by_hand(predictor, config.threshold)
    if not answers_unknown(predictor, plan, device):
        return predictor, NEVER
    if config.rate_from == "own":
        return predictor, Promise(why="rate_from is own: the threshold is the method's own")
    if plan.validation is not None and config.rate_from in ("auto", "validation"):
        return placed_on(
            predictor, plan.validation.samples.to(device), config.unknown_rate, "validation"
        )
    if config.rate_from == "public":
        assert plan.task.commons.public is not None  # the plan has seen to it
        return placed_on(
            predictor, plan.task.commons.public.to(device), config.unknown_rate, "public"
        )
    return predictor.keeping(config.unknown_rate)


def thresholds(predictor: Predictor) -> dict[str, float]:
    """Where thresholds were placed: by party where models stand alone,
    else under ALL; plain values.
    """
    if isinstance(predictor, Solo):
        alone = {str(party): thresholds(model) for party, model in predictor.alone.items()}
        return {party: found[ALL] for party, found in alone.items() if found}
    return {ALL: predictor.threshold} if isinstance(predictor, Placed) else {}


def placed_at(predictor: Predictor, lines: Mapping[str, float]) -> Predictor:
    """The predictor with its thresholds where `thresholds` found them."""
    if isinstance(predictor, Solo):
        alone = {
            party: Placed(model, lines[str(party)]) if str(party) in lines else model
            for party, model in predictor.alone.items()
        }
        return replace(predictor, alone=alone)
    return Placed(predictor, lines[ALL]) if ALL in lines else predictor


@torch.no_grad()
def answers_unknown(predictor: Predictor, plan: Plan, device: str) -> bool:
    """Whether any answer can be unknown; with models that stand alone, of the first one."""
    one = next(iter(predictor.alone.values())) if isinstance(predictor, Solo) else predictor
    nothing = torch.zeros_like(plan.test.samples.to(device).stored(slice(0, 1)))
    return not isinf(one.scores(nothing).threshold)


def _by_hand(predictor: Predictor, threshold: float) -> tuple[Predictor, Promise]:
    placed: Predictor = Placed(predictor, threshold)
    if isinstance(predictor, Solo):
        alone = {party: Placed(model, threshold) for party, model in predictor.alone.items()}
        placed = Solo(alone, predictor.names)
    return placed, Promise(None, "hand", threshold, "the threshold was given by hand")
