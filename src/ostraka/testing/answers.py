"""What several kinds of plug-ins are asked alike: settings that can be written down, and scores
that can be trusted.
"""

import math
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ostraka.core import settings
from ostraka.core.predictor import Scores
from ostraka.core.seeds import torch_rng
from ostraka.testing.verdict import fail, hoped

SEED = 20230501


def expect_settings(subject: Any) -> None:
    """The frozen dataclass can be written as plain values and built again from them."""
    what = "its settings are written as plain values and read back"
    advice = (
        "use plain values, other settings dataclasses, or setting(..., "
        "registry=...) for what has a name"
    )
    with hoped(subject, what, advice):
        again = settings.build(type(subject), settings.values_of(subject))
        if again != subject:
            fail(subject, what, f"{subject} became {again}", advice)


def expect_picklable(subject: Any) -> None:
    """It can be sent to a worker process."""
    with hoped(subject, "it is pickled and read back", "define it at the top of a module"):
        again = pickle.loads(pickle.dumps(subject))
        if again != subject:
            done = f"{subject} became {again}"
            fail(
                subject, "its copy in a worker is equal to it", done, "leave pickling to dataclass"
            )


def expect_scores(
    subject: object, ask: Callable[[], Scores], count: int, classes: int, what: str
) -> None:
    """The right shapes, and finite numbers."""
    with hoped(subject, what, "fix the error above"):
        scores = ask()
    shapes = tuple(scores.known.shape), tuple(scores.unknown.shape)
    if shapes != ((count, classes), (count,)):
        done = f"known has {shapes[0]} and unknown {shapes[1]}"
        fail(
            subject,
            f"{what} with known [{count}, {classes}] and unknown [{count}]",
            done,
            "one column per class",
        )
    if not (scores.known.isfinite().all() and scores.unknown.isfinite().all()) or math.isnan(
        scores.threshold
    ):
        fail(
            subject,
            f"{what} with finite numbers",
            "some are infinite or NaN",
            "only the threshold may be infinite",
        )


def expect_rows(subject: object, ask: Callable[[Tensor], Scores], x: Tensor) -> None:
    """A sample's scores depend on that sample alone,
    not on its place in the batch or on the others.
    """
    order = torch.randperm(len(x), generator=torch_rng(SEED, "order"))
    half = torch.arange(len(x) // 2)
    whole = ask(x)
    for rows, case in ((order, "in another order"), (half, "without the second half of the batch")):
        part = ask(x[rows])
        for name, a, b in (
            ("known", whole.known, part.known),
            ("unknown", whole.unknown, part.unknown),
        ):
            if not near(a[rows], b):
                done = f"its {name} scores changed by up to {float((a[rows] - b).abs().max()):g}"
                advice = (
                    "put networks in evaluation mode, and use no statistic "
                    "of the batch or position in it"
                )
                fail(subject, f"a sample scores the same {case}", done, advice)


def near(a: Tensor, b: Tensor) -> bool:
    """Equal but for the last bits, which sums of other length or in another order may change."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4)
