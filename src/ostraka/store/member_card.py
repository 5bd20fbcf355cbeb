"""The card of a member file: what stands in it, field by field, and what each field may be.

The page docs/member-file.md says the same for people. A field that is not listed is refused, so
that a misspelt one is noticed and everything that a party tells can be shown; what a party wants to
say beside them goes to `more`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite, prod
from typing import Any

from torch import Tensor

from ostraka.core.card import BANDS, Card, band_of
from ostraka.core.kind import KINDS, NORMED, check_form
from ostraka.core.member import Making, Member, Model
from ostraka.core.names import class_flaw, look
from ostraka.core.net import Recipe
from ostraka.core.samples import View
from ostraka.core.settings import build, choice, plain_choice, values_of
from ostraka.core.told import CURVES, DOUBT, HELD, check_told
from ostraka.errors import ReportRefused, choices, did_you_mean
from ostraka.registry import OBJECTIVES
from ostraka.store.container import Entry

FORMAT = 4
"""The format that is written and read."""

MODEL = ("classes", "unknown", "kind", "shape", "unit", "view", "net", "objective")
"""The fields that say what the weights belong to."""
NEEDED = ("format", *MODEL, "size", "sha256")
OPTIONAL = (
    "name", "party", "counts", "bands", "scores", "calibration",
    "method", "recipe", "task", "created", "more",
)  # fmt: skip

CLASSES, SAMPLE, TEXT, LONG_TEXT, MANY = 10_000, 2**22, 200, 1000, 64
"""At most so many classes, values of a sample, characters of a name and of a text in `more`,
entries of `scores` and of `more`."""

WIDEST = 1e6
"""The largest unit; what a view may make of a value of one unit; and its inverse the least."""
LARGEST = 1e30
"""Far from the end of 32-bit numbers: the largest mean and deviation of a view."""

SHARES = ("validation", "accuracy", "confidence")
"""Scores that are shares or probabilities, from 0 to 1."""


def check_fields(said: Any) -> dict[str, Any]:
    """The fields of a card, each of which is known and none of which is lacking."""
    if not isinstance(said, dict):
        raise ReportRefused("its card is no JSON object")
    version = said.get("format")
    if type(version) is not int or version != FORMAT:
        raise ReportRefused(
            f"it is of format {version!r:.40}, made by another version; this one reads format "
            f"{FORMAT}. Have it written anew with the ostraka that is installed here"
        )
    known = (*NEEDED, *OPTIONAL)
    for name in said:
        if name not in known:
            hint = did_you_mean(name, known) if len(name) < TEXT else ""
            raise ReportRefused(
                f"its card has the field {name!r:.80}, which format {FORMAT} does not have.{hint} "
                f"Fields: {choices(known)}; what else is to be told goes to 'more'"
            )
    lacking = [name for name in NEEDED if name not in said]
    if lacking:
        raise ReportRefused(f"its card lacks {', '.join(lacking)}; it is not whole")
    if not isinstance(said["unknown"], bool):
        raise ReportRefused(f"'unknown' is {said['unknown']!r:.40}; it takes true or false")
    return said


def card_of(said: Mapping[str, Any]) -> Card:
    """What the party tells of its model; tensors in it are still the header's entries."""
    classes = len(said["classes"])
    size = _whole(said["size"], "size")
    return Card(
        party=_whole(said.get("party", 0), "party"),
        size=size,
        counts=_counts(said, classes, size),
        scores=_scores(said.get("scores", {})),
        calibration=_calibration(said.get("calibration", {}), size),
        name=_text(said.get("name", ""), "name"),
    )


def making_of(said: Mapping[str, Any]) -> Making:
    """How the member came about."""
    created = _text(said.get("created", ""), "created")
    if created and not _is_time(created):
        raise ReportRefused(
            f"'created' is {created!r}; write it as 2026-11-18T04:45:52Z, or leave it out"
        )
    return Making(
        method=_text(said.get("method", ""), "method"),
        recipe=_text(said.get("recipe", ""), "recipe"),
        task=_text(said.get("task", ""), "task"),
        created=created,
        more=_more(said.get("more", {})),
        banded="bands" in said,
    )


def model_of(said: Mapping[str, Any]) -> Model:
    """What the weights belong to. Settings that are out of their range are a ConfigError."""
    classes = _list(said["classes"], "classes", CLASSES)
    names = tuple(_text(name, "a class") for name in classes)
    if not names or not all(map(look, names)) or len(set(names)) < len(names):
        raise ReportRefused(
            "'classes' must be at least one name, none of them empty and each only once"
        )
    wrong = class_flaw(names)
    if wrong:
        raise ReportRefused(f"it {wrong}. Train it with other names")
    shape = tuple(_list(said["shape"], "shape", 8))
    if not all(type(n) is int and n > 0 for n in shape) or prod(shape) > SAMPLE:
        raise ReportRefused(
            f"'shape' is {list(shape)!r:.80}; it takes whole numbers from 1, "
            f"whose product is at most {SAMPLE:,}"
        )
    net, objective = (_table(said[name], name) for name in ("net", "objective"))
    if net.keys() - {"name", "options"} or "name" not in net or "name" not in objective:
        raise ReportRefused("'net' takes a name and options, 'objective' a name and its settings")
    _text(objective["name"], "objective.name")
    model = Model(
        classes=names,
        shape=shape,
        net=Recipe(_text(net["name"], "net.name"), _table(net.get("options", {}), "net.options")),
        objective=choice(objective, OBJECTIVES, "objective"),
        view=_view(said, shape),
    )
    if said["unknown"] != model.objective.unknown:
        raise ReportRefused(
            f"'unknown' is {said['unknown']}, but the objective "
            f"{objective['name']!r} gives a network {'an' if model.objective.unknown else 'no'} "
            "unknown output"
        )
    return model


def said_of(member: Member, name: Callable[[str, Tensor], str]) -> dict[str, Any]:
    """The fields of a member's card but for the hash.

    `name` is told of every tensor of the card, by its path, and says what the file calls it.
    """
    card, model, made = member.card, member.model, member.made
    view = values_of(model.view)
    told: dict[str, Any] = {
        "format": FORMAT,
        "classes": list(model.classes),
        "unknown": model.objective.unknown,
        "kind": view.pop("kind"),
        "shape": list(model.shape),
        "unit": view.pop("unit"),
        "view": view,
        "net": {"name": model.net.name, "options": dict(model.net.options)},
        "objective": plain_choice(model.objective, OBJECTIVES),
        "party": card.party,
        "size": card.size,
    }
    if card.counts is not None and made.banded:
        told["bands"] = [band_of(count) for count in card.counts]
    elif card.counts is not None:
        told["counts"] = list(card.counts)
    rest = {
        "name": card.name,
        "scores": dict(card.scores),
        "calibration": _written(card.calibration, "calibration", name),
        "method": made.method,
        "recipe": made.recipe,
        "task": made.task,
        "created": made.created,
        "more": dict(made.more),
    }
    return told | {key: value for key, value in rest.items() if value}


def _written(value: Any, path: str, name: Callable[[str, Tensor], str]) -> Any:
    if isinstance(value, Tensor):
        return {"tensor": name(path, value)}
    if isinstance(value, Mapping):
        return {key: _written(item, f"{path}/{key}", name) for key, item in value.items()}
    return list(value) if isinstance(value, tuple | list) else value


def filled(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """A value with its tensors in place of the header's entries."""
    if isinstance(value, Mapping):
        return {key: filled(item, tensors) for key, item in value.items()}
    return tensors[value.name] if isinstance(value, Entry) else value


def entries_in(value: Any) -> set[str]:
    """The names of the header's entries in a value."""
    if isinstance(value, Mapping):
        return set[str]().union(*map(entries_in, value.values()))
    return {value.name} if isinstance(value, Entry) else set()


def with_entries(value: Any, entries: Mapping[str, Entry]) -> Any:
    """A value of JSON with the header's entries where it names a tensor."""
    if not isinstance(value, dict):
        return value
    if value.keys() != {"tensor"}:
        return {key: with_entries(item, entries) for key, item in value.items()}
    name = value["tensor"]
    if not isinstance(name, str) or name not in entries:
        raise ReportRefused(f"its card names the tensor {name!r:.80}, which is not there")
    return entries[name]


def _view(said: Mapping[str, Any], shape: tuple[int, ...]) -> View:
    kind, unit, held = said["kind"], said["unit"], _table(said["view"], "view")
    if kind not in KINDS or held.keys() & {"kind", "unit"}:
        raise ReportRefused(
            f"'kind' is {kind!r:.40}; it is one of {choices(KINDS)}, beside the view, as the unit"
        )
    if not _is_number(unit) or not 1 / WIDEST <= unit <= WIDEST:
        raise ReportRefused(
            f"'unit' is {unit!r:.40}; it must be a number from {1 / WIDEST:g} to {WIDEST:g}. Write "
            "255 for bytes of images, 1 for values as they are"
        )
    _text(held.get("augment", "none"), "view.augment")
    view = build(View, {**held, "kind": kind, "unit": float(unit)}, path="view.")
    check_form(kind, shape, "'shape'")
    places = shape[NORMED[kind]]
    if (len(view.mean), len(view.std)) not in ((0, 0), (places, places)):
        raise ReportRefused(
            f"'view' has {len(view.mean)} means and {len(view.std)} deviations; it takes {places} "
            "of each, or none"
        )
    if not 1 / WIDEST <= abs(view.scale * view.unit) <= WIDEST:
        raise ReportRefused(
            f"'view.scale' is {view.scale:g}, which makes {view.scale * view.unit:g} of the value "
            f"{view.unit:g}; it must make {1 / WIDEST:g} to {WIDEST:g} of it. Use {1 / view.unit:g}"
        )
    if not all(1 / LARGEST <= n <= LARGEST for n in view.std) or any(
        abs(n) > LARGEST for n in view.mean
    ):
        raise ReportRefused(
            f"'view' has a mean beyond {LARGEST:g}, or a deviation that is not from "
            f"{1 / LARGEST:g} to {LARGEST:g}; such values are no statistics of samples. Write "
            "those of the samples that it was trained on"
        )
    return view


def _counts(said: Mapping[str, Any], classes: int, size: int) -> tuple[int, ...] | None:
    banded = "bands" in said
    told = said.get("bands", said.get("counts"))
    if told is None:
        return None
    if banded and "counts" in said:
        raise ReportRefused("its card tells counts and bands; it takes one of them, or neither")
    name = "bands" if banded else "counts"
    values = _list(told, name, CLASSES)
    if len(values) != classes:
        raise ReportRefused(
            f"its card tells {len(values)} {name} of {classes} classes; one for each"
        )
    if banded and not all(isinstance(one, str) and one in BANDS for one in values):
        raise ReportRefused(f"'bands' is {values!r:.120}; each is one of {', '.join(BANDS)}")
    counts = tuple(BANDS[one] if banded else _whole(one, "a class count") for one in values)
    if sum(counts) > size or (not banded and sum(counts) < size):
        raise ReportRefused(
            f"its card tells {'at least ' * banded}{sum(counts):,} samples by class, and {size:,} "
            "in all; they must add up"
        )
    return counts


def _scores(said: Any) -> dict[str, float]:
    scores = _table(said, "scores")
    for name, value in scores.items():
        _text(name, "a score's name")
        if not _is_number(value):
            raise ReportRefused(f"the score {name!r} is {value!r:.40}; it takes a number")
        if name in SHARES and not 0 <= value <= 1:
            raise ReportRefused(
                f"the score {name!r} is {value}; it is a share or a probability, from 0 to 1"
            )
    if len(scores) > MANY:
        raise ReportRefused(f"its card tells {len(scores)} scores; at most {MANY} are read")
    return scores


def _calibration(said: Any, size: int) -> dict[str, Any]:
    numbers = {
        _text(name, "a calibration number"): _told(value, name)
        for name, value in _table(said, "calibration").items()
    }
    for name in CURVES:
        if name in numbers and not isinstance(numbers[name], tuple):
            raise ReportRefused(f"'calibration.{name}' takes a list of numbers")
    if not _is_number(numbers.get(DOUBT, 0.0)):
        raise ReportRefused(f"'calibration.{DOUBT}' takes a number")
    if _whole(numbers.get(HELD, 0), f"calibration.{HELD}") > size:
        raise ReportRefused(
            f"its card tells of more held-out samples than it has: {numbers[HELD]} of {size}"
        )
    check_told(numbers)
    return numbers


def _told(value: Any, name: str) -> Any:
    """A calibration number: a number, a list of them, a tensor, or a table of such."""
    if isinstance(value, Mapping):
        return {_text(key, name): _told(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple) and all(map(_is_number, value)):
        return tuple(value)
    if not isinstance(value, Entry) and not _is_number(value):
        raise ReportRefused(f"'calibration.{name:.80}' takes numbers, lists of them and tensors")
    return value


def _more(said: Any) -> dict[str, Any]:
    more = _table(said, "more")
    if len(more) > MANY:
        raise ReportRefused(f"'more' has {len(more)} entries; at most {MANY} are read")
    for name, value in more.items():
        _text(name, "a name in 'more'")
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, str):
                _text(one, f"more.{name}", LONG_TEXT)
            elif not isinstance(one, bool) and not _is_number(one):
                raise ReportRefused(
                    f"'more.{name}' takes text, numbers, true or false, and lists of them"
                )
    return more


def _text(value: Any, name: str, most: int = TEXT) -> str:
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise ReportRefused(
            f"{name!r} is {value!r:.80}; it takes text of at most {most} printable characters"
        )
    return value


def _whole(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ReportRefused(f"{name!r} is {value!r:.40}; it takes a whole number from 0")
    return value


def _list(value: Any, name: str, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ReportRefused(
            f"{name!r} is {value!r:.80}; it takes a list of at most {most:,} values"
        )
    return value


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReportRefused(f"{name!r} is {value!r:.80}; it takes a JSON object")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_time(text: str) -> bool:
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text, re.ASCII) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:  # a month 13
        return False
    return True
