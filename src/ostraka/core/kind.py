"""The kind of a sample. The source of the data says it; everything that depends on it asks it."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from ostraka.errors import DataError, choices

Kind = Literal["image", "table", "sound"]
"""What one sample is: an image, a row of a table, or the features of a recording."""

KINDS: tuple[Kind, ...] = get_args(Kind)

FORMS: Mapping[Kind, tuple[str, ...]] = {
    "image": ("channels", "height", "width"),
    "table": ("features",),
    "sound": ("1", "frames", "coefficients"),
}
"""The axes of one sample."""

NORMED: Mapping[Kind, int] = {"image": 0, "table": 0, "sound": 2}
"""The axis of one sample whose entries have a mean and a deviation each."""


def check_form(kind: Kind, shape: Sequence[int], owner: str = "samples") -> None:
    """Refuse a shape of one sample that is none of its kind."""
    if len(shape) != len(FORMS[kind]) or (kind == "sound" and shape[0] != 1):
        raise DataError(
            f"{owner}: the kind is {kind!r}, which is {' x '.join(FORMS[kind])}, but one sample "
            f"has the shape {tuple(shape)}; give the kind that it is ({choices(KINDS)}), or reshape"
        )
