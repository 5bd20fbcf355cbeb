"""The numbers that a setting takes: written as an interval, told in words.

`[0, 1)` is from 0 to below 1; `[1, inf)` at least 1; `(0, inf]` above 0,
and infinity too. NaN lies in no interval.
"""

from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import Any

from ostraka.errors import ConfigError


@dataclass(frozen=True)
class Span:
    """An interval; `with_low` and `with_high` say whether its ends belong to it."""

    low: float
    high: float
    with_low: bool
    with_high: bool

    @classmethod
    def read(cls, text: str) -> "Span":
        """The interval that `text` writes, such as `[0, 1)`."""
        first, last = text[0], text[-1]
        if first not in "[(" or last not in "])":
            raise ValueError(f"{text!r} is no interval; write it as [0, 1) or (0, inf)")
        low, high = (float(end) for end in text[1:-1].split(","))
        return cls(low, high, first == "[", last == "]")

    def __contains__(self, value: Any) -> bool:
        above = self.low <= value if self.with_low else self.low < value
        return bool(above and (value <= self.high if self.with_high else value < self.high))

    def words(self) -> str:
        """`at least 0 and below 1`; nothing where every finite number lies inside."""
        low = f"{'at least' if self.with_low else 'above'} {self.low:g}" if self.low > -inf else ""
        high = (
            f"{'at most' if self.with_high else 'below'} {self.high:g}" if self.high < inf else ""
        )
        both = " and ".join(part for part in (low, high) if part)
        return f"{both} (inf: no limit)" if both and inf in self else both

    def check(self, value: Any, name: str) -> None:
        """Refuse a value of the setting `name` that is no number, or one outside."""
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ConfigError(f"{name!r} takes a number; {value!r} was given")
        if value not in self:
            finite = isinstance(value, int) or isfinite(value)
            wanted = (
                self.words()
                if finite
                else ", ".join(filter(None, ("a finite number", self.words())))
            )
            raise ConfigError(f"{name!r} is {value}; it must be {wanted}")


ANYTHING = Span(-inf, inf, True, True)
"""Every number but NaN: the range of a setting that declares none."""
