"""What the server looks at when a report arrives:
numbers that cannot be used are the fault of one party, by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from math import isfinite, prod
from typing import Any

import torch
from torch import Tensor

from ostraka.core.build import lent_net
from ostraka.core.card import Card
from ostraka.core.learner import NetPredictor
from ostraka.core.net import Params, load_params
from ostraka.core.objective import Objective
from ostraka.core.predictor import Scores, join
from ostraka.core.seeds import torch_rng
from ostraka.core.task import Task
from ostraka.errors import ReportRefused

PROBES = 4
"""Random inputs that a network is asked about."""
MOST = 2**16
"""Values of inputs that it is asked about at once: layers may make a hundred times as many."""


class NoNumbers(ReportRefused):
    """NaN or infinity, which the same training would most likely give again."""


def check_numbers(value: Any, name: str) -> None:
    """Refuse NaN and infinity, wherever they are in `value`."""
    for path, number in _numbers(value, name):
        if isfinite(number.sum()):  # much cheaper than to look at each; a sum may overflow
            continue
        bad = int((~number.isfinite()).sum())
        if bad:
            raise NoNumbers(
                f"{path} holds {bad} of {number.numel()} numbers that are NaN or infinite"
            )


def check_card(card: Card, classes: int) -> None:
    """Refuse a card whose entries are of another kind than they should be."""
    if not _whole(card.size):
        raise ReportRefused(f"its card tells the size {card.size!r}; it must be a number from 0")
    if not isinstance(card.name, str):
        raise ReportRefused(f"its card has the name {card.name!r}, which is no text")
    if not isinstance(card.calibration, Mapping) or not isinstance(card.scores, Mapping):
        raise ReportRefused("its card's scores and calibration numbers must have names")
    for name, score in card.scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ReportRefused(f"its card tells {score!r} as its {name}, which is no number")
    check_counts(card.counts, classes)
    check_numbers(card, "its card")


def check_size(held: int, **told: float) -> None:
    """Refuse a weight or size above the number of samples that the party joined with: nobody is to
    own a mean by what it says of itself afterwards."""
    for name, value in told.items():
        if value > max(1, held):
            raise ReportRefused(
                f"its {name} is {value:g}; it must be at most {max(1, held)}, for its party joined "
                f"with {held} samples"
            )


def check_counts(counts: tuple[int, ...] | None, classes: int) -> None:
    """Refuse class counts that are not one whole number for each class."""
    if counts is None:
        return
    if not isinstance(counts, list | tuple):
        raise ReportRefused(f"its card tells {counts!r} as class counts, which is no list")
    if len(counts) != classes:
        raise ReportRefused(
            f"its card tells {len(counts)} class counts, but there are {classes} classes"
        )
    if not all(_whole(n) for n in counts):
        raise ReportRefused(
            f"its card tells the class counts {list(counts)}; they must be whole numbers from 0"
        )


def check_kind(value: Any, kind: type[Any]) -> None:
    """Refuse what is not of the kind that a method's parties send."""
    if not isinstance(value, kind):
        raise ReportRefused(f"it holds a {type(value).__name__} instead of a {kind.__name__}")


def check_tensors(given: Any, like: Mapping[str, Tensor], what: str, part: bool = False) -> None:
    """Refuse what has other names, shapes or types than `like`; with `part`, some may be missing.

    Tensors of another shape may be spread over others without an error, and one of another type
    changes the type of a sum.
    """
    wrong = _wrong(given, like, part)
    if wrong:
        raise ReportRefused(f"its tensors are not those of {what}: {wrong}")


def _wrong(given: Any, like: Mapping[str, Tensor], part: bool) -> str:
    if not isinstance(given, dict):
        return f"there is a {type(given).__name__} in their place"
    odd = sorted(map(str, given.keys() - like.keys()))
    missing = [] if part else sorted(like.keys() - given.keys())
    if odd or missing:
        said = [f"{w} {', '.join(n[:3])}" for w, n in (("without", missing), ("with", odd)) if n]
        return " and ".join(said)
    for name, tensor in given.items():
        if not isinstance(tensor, Tensor):
            return f"{name} is a {type(tensor).__name__}"
        wanted = like[name]
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            return f"{name} is {_form(tensor)} instead of {_form(wanted)}"
    return ""


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@torch.no_grad()
def check_answers(task: Task, objective: Objective, params: Params) -> None:
    """Refuse a network that is not the task's,
    or whose weights are so large that its answers are no numbers.
    """
    _finite_answers(task, objective, params, _probes(task.shape))


@torch.no_grad()
def check_varied(task: Task, objective: Objective, params: Params) -> None:
    """As `check_answers`, and refuse a network that gives the same answer to whatever it is shown:
    normal noise, uniform noise and constants.
    """
    rng, size = torch_rng(0, "varied"), (PROBES, *task.shape)
    noise = (torch.randn(size, generator=rng), torch.rand(size, generator=rng))
    constants = torch.linspace(-1.0, 1.0, PROBES).view(PROBES, *[1] * len(task.shape))
    scores = _finite_answers(task, objective, params, torch.cat([*noise, constants.expand(size)]))
    answers = torch.cat([scores.known, scores.unknown.unsqueeze(1)], dim=1)
    if bool((answers == answers[0]).all()):
        raise ReportRefused(
            f"its network gives the same answer to {len(answers)} different probes, noise and "
            "constants; it has learnt nothing, or its weights were lost"
        )


@torch.no_grad()
def embedding_width(task: Task, objective: Objective) -> int:
    """How many values the last layer of a task's network sees."""
    with lent_net(task, objective) as net:
        return net.eval().embed(torch.zeros(1, *task.shape)).flatten(1).shape[1]


def _finite_answers(task: Task, objective: Objective, params: Params, probes: Tensor) -> Scores:
    """The network's answers to inputs, which must be numbers."""
    with lent_net(task, objective) as net:
        check_tensors(params, net.state_dict(), "this task's network")
        load_params(net, params)
        asked = NetPredictor(net, objective)
        at_once = max(1, MOST // prod(task.shape))
        scores = join([asked.answers(some) for some in probes.split(at_once)])
    if not (scores.known.isfinite().all() and scores.unknown.isfinite().all()):
        largest = max(float(tensor.abs().max()) for tensor in params.values() if tensor.numel())
        raise NoNumbers(
            f"its network answers with NaN or infinity; its largest weight is {largest:.3g}. Its "
            "training has probably diverged: lower the learning rate or check the data"
        )
    return scores


@lru_cache(maxsize=4)
def _probes(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(PROBES, *shape, generator=torch_rng(0, "arrival"))


def _numbers(value: Any, path: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        if value.is_complex():
            yield path, torch.view_as_real(value.resolve_conj())
        elif value.is_floating_point():
            yield path, value.float() if value.element_size() == 1 else value  # no sum of float8
    elif isinstance(value, float):
        yield path, torch.tensor(value, dtype=torch.float64)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{path}[{i}]")
    elif is_dataclass(value):
        for spec in fields(value):
            yield from _numbers(getattr(value, spec.name), f"{path}.{spec.name}")
