"""Reports that no honest party sends: one thing in an honest one is changed.

A party may be faulty or hostile. What `inspect` lets through goes into `aggregate`, where an error
ends the run of all parties, and a tensor of another shape may spread over others in silence.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ostraka.core.arrival import check_size
from ostraka.core.method import Report
from ostraka.core.task import Task
from ostraka.errors import ReportRefused
from ostraka.testing.answers import SEED
from ostraka.testing.stage import known_randomness, make_stage, update
from ostraka.testing.verdict import AnyMethod, fail, hoped

Changed = Iterator[tuple[str, Any]]
ODD: tuple[Any, ...] = (None, "text", {}, -1, 10**6)
"""What may stand in the place of anything."""
ODD_CARDS: tuple[tuple[str, Any], ...] = (
    ("size", -1),
    ("size", "9"),
    ("size", 1.5),
    ("name", 7),
    ("counts", 3),
    ("scores", 0.5),
    ("scores", {"loss": "0.5"}),
    ("calibration", [1.0]),
)


def check_strange_reports(method: AnyMethod, task: Task | None = None) -> None:
    """A payload or card with something wrong in it is refused by `inspect`, or does no harm."""
    stage = make_stage(method, task)
    with hoped(method, "local_update works", "fix the error above"), known_randomness(0):
        state = method.init(stage.task, SEED)
        honest = [update(method, stage, i, 1, state, {}) for i in range(len(stage.parties))]
        honest = [replace(report, memory={}) for report in honest]
        for party, report in zip(stage.parties, honest, strict=True):
            method.inspect(stage.task, report)
            check_size(party.ref.size, weight=report.weight, size=report.card.size)
        usual = _kinds(method.aggregate(stage.task, state, honest))
    advice = "in inspect, raise ReportRefused for it (core.arrival has checks of tensors)"
    for words, odd in strange(honest[0]):
        expected = f"a report is refused, or of use, where {words}"
        with hoped(method, expected, advice), known_randomness(0):
            try:
                method.inspect(stage.task, odd)
            except ReportRefused:
                continue
            made = _kinds(method.aggregate(stage.task, state, [odd, *honest[1:]]))
        for path in usual.keys() & made.keys():
            if usual[path] != made[path]:
                done = f"the state's {path} became {made[path]} instead of {usual[path]}"
                fail(method, expected, done, advice)


def strange(report: Report[Any]) -> Iterator[tuple[str, Report[Any]]]:
    """Reports with one thing changed, and what that is."""
    for words, payload in _in_place_of("the payload", report.payload):
        yield words, replace(report, payload=payload)
    for name, value in ODD_CARDS:
        changed: dict[str, Any] = {name: value}
        card = replace(report.card, **changed)
        yield f"{name} of the card is {value!r}", replace(report, card=card)
    yield "the weight is text", replace(report, weight="1")  # type: ignore[arg-type]


def _in_place_of(path: str, value: Any) -> Changed:
    """What may stand where `value` stood: something else, or the same with one thing changed."""
    for other in ODD:
        if type(other) is not type(value) or (isinstance(value, int) and value != other):
            yield f"{path} is {other!r}", other
    if isinstance(value, Tensor):
        yield f"{path} has one dimension more", value.unsqueeze(0)
        yield f"{path} has a single value", value.flatten()[:1].clone()
        yield f"{path} has another precision", value.to(_other(value.dtype))
    elif isinstance(value, Mapping):
        yield f"{path} has a tensor that nobody knows", {**value, "stranger": torch.ones(1)}
        for key in value:
            yield f"{path} lacks {key}", {k: v for k, v in value.items() if k != key}
            for words, new in _in_place_of(f"{path}.{key}", value[key]):
                yield words, {**value, key: new}
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            for words, new in _in_place_of(f"{path}[{i}]", item):
                yield words, type(value)([*value[:i], new, *value[i + 1 :]])
    elif is_dataclass(value) and not isinstance(value, type):
        for spec in fields(value):
            for words, new in _in_place_of(f"{path}.{spec.name}", getattr(value, spec.name)):
                yield words, replace(value, **{spec.name: new})


def _other(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype == torch.float64 else torch.float64


def _kinds(value: Any, path: str = "value") -> dict[str, str]:
    """Shape and type of every tensor in a value, by where it is."""
    if isinstance(value, Tensor):
        return {path: f"{value.dtype} {list(value.shape)}"}
    inner: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        inner = value
    elif isinstance(value, list | tuple):
        inner = dict(enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {spec.name: getattr(value, spec.name) for spec in fields(value)}
    return {
        where: kind
        for key, item in inner.items()
        for where, kind in _kinds(item, f"{path}.{key}").items()
    }
