"""What every kind of plug-in is asked alike, and how a broken contract is said: what was expected,
what the plug-in did, and what to do.
"""

import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ostraka.core import settings
from ostraka.core.method import Method
from ostraka.core.predictor import Scores
from ostraka.core.seeds import torch_rng
from ostraka.store import codec

AnyMethod: TypeAlias = Method[Any, Any, Any]

SEED = 20230501


class ContractBroken(AssertionError):
    """A method, or another plug-in, that does not keep the contract of its kind."""


@contextmanager
def hoped(
    subject: object,
    what: str,
    advice: str = "fix the error above",
    refusal: type[Exception] | None = None,
) -> Iterator[None]:
    """Turn any error into a ContractBroken that says what should have worked.

    An error of the kind `refusal` is as good: it ends the block in silence.
    """
    try:
        yield
    except ContractBroken:
        raise
    except Exception as error:
        if refusal is None or not isinstance(error, refusal):
            done = f"it raised {type(error).__name__}: {error}"
            raise ContractBroken(_sentence(subject, what, done, advice)) from error


def expect(subject: object, what: str, problem: str | bool | None, advice: str) -> None:
    """Raise a ContractBroken if there is a problem: what the plug-in did in place of `what`.

    None or False where there is none, so that its words are only made where they are needed:
    `expect(ballot, "it counts", total != 3 and f"it counted {total}", "count members once")`.
    """
    if problem:
        raise ContractBroken(_sentence(subject, what, problem, advice))


def _sentence(subject: object, expected: str, done: object, advice: str) -> str:
    """`subject` is what is checked, or its name."""
    name = subject if isinstance(subject, str) else type(subject).__name__
    return f"{name}: expected that {expected}; {done}. What to do: {advice}"


def expect_settings(subject: Any) -> None:
    """The frozen dataclass can be written as plain values and built again from them."""
    what = "its settings are written as plain values and read back"
    advice = (
        "use plain values, other settings dataclasses, or setting(..., "
        "registry=...) for what has a name"
    )
    with hoped(subject, what, advice):
        again = settings.build(type(subject), settings.values_of(subject))
        expect(subject, what, again != subject and f"{subject} became {again}", advice)


def expect_picklable(subject: Any) -> None:
    """It can be sent to a worker process."""
    with hoped(subject, "it is pickled and read back", "define it at the top of a module"):
        again = pickle.loads(pickle.dumps(subject))
        lost = again != subject and f"{subject} became {again}"
        expect(subject, "its copy in a worker is equal to it", lost, "leave pickling to dataclass")


def expect_scores(
    subject: object, ask: Callable[[], Scores], count: int, classes: int, what: str
) -> None:
    """The right shapes, and finite numbers."""
    with hoped(subject, what):
        scores = ask()
    known, unknown = tuple(scores.known.shape), tuple(scores.unknown.shape)
    right = known == (count, classes) and unknown == (count,)
    odd = not right and f"known has {known} and unknown {unknown}"
    shapes = f"known [{count}, {classes}] and unknown [{count}]"
    expect(subject, f"{what} with {shapes}", odd, "one column per class")
    finite = bool(scores.known.isfinite().all() and scores.unknown.isfinite().all())
    odd = (not finite or math.isnan(scores.threshold)) and "some are infinite or NaN"
    expect(subject, f"{what} with finite numbers", odd, "only the threshold may be infinite")


def expect_rows(subject: object, ask: Callable[[Tensor], Scores], x: Tensor) -> None:
    """A sample's scores depend on that sample alone,
    not on its place in the batch or on the others.
    """
    order = torch.randperm(len(x), generator=torch_rng(SEED, "order"))
    half = torch.arange(len(x) // 2)
    whole = ask(x)
    for rows, case in ((order, "in another order"), (half, "without the second half of the batch")):
        wanted, part = rows_of(whole, rows), ask(x[rows])
        for name in unlike(wanted, part):
            gap = float((getattr(wanted, name) - getattr(part, name)).abs().max())
            expect(
                subject,
                f"a sample scores the same {case}",
                f"its {name} scores changed by up to {gap:g}",
                "put networks in evaluation mode, and use no statistic "
                "of the batch or position in it",
            )


def rows_of(scores: Scores, rows: Tensor) -> Scores:
    """The scores of some of the samples."""
    return replace(scores, known=scores.known[rows], unknown=scores.unknown[rows])


def unlike(a: Scores, b: Scores) -> list[str]:
    """Which scores differ by more than the last bits: `known`, `unknown`."""
    pairs = {"known": (a.known, b.known), "unknown": (a.unknown, b.unknown)}
    return [name for name, pair in pairs.items() if not near(*pair)]


def near(a: Tensor, b: Tensor) -> bool:
    """Equal but for the last bits, which sums of other length or in another order may change."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4)


def difference(a: Any, b: Any, name: str) -> str | None:
    """Where two values differ, in words; None where they are equal
    to the bit, structure included.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        same = codec.encode(a) == codec.encode(b)
        return None if same else f"{name} differs: {_brief(a)} and {_brief(b)}"
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"{name} has the keys {sorted(a)} and {sorted(b)}"
        return _first(difference(a[key], b[key], f"{name}[{key!r}]") for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        if len(a) != len(b):
            return f"{name} has {len(a)} and {len(b)} items"
        return _first(difference(a[i], b[i], f"{name}[{i}]") for i in range(len(a)))
    if is_dataclass(a) and type(a) is type(b):
        pairs = {f".{f.name}": (getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
        return _first(difference(*pair, name + field) for field, pair in pairs.items())
    plain = all(isinstance(value, bool | int | float | str | None) for value in (a, b))
    if plain and (a == b or (a != a and b != b)):
        return None
    return f"{name} was {type(a).__name__} {_brief(a)} and is {type(b).__name__} {_brief(b)}"


def _first(found: Iterator[str | None]) -> str | None:
    return next((text for text in found if text), None)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        start = ", ".join(f"{v:.6g}" for v in value.flatten()[:3].tolist())
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} ({start}, ...)"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
