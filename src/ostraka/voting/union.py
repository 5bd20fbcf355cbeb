"""Members that know different classes vote together:
votes are brought to one list of classes, by name.

A member has no say on a class that it does not know, neither for nor against. With its logits
padded by minus infinity there, and its told counts by zero, that means for each ballot:

* sum, top-k: its probabilities of its own classes and of unknown stay what they are;
  to the others it adds nothing;
* plurality: its one voice goes to a class of its own, or it abstains;
* calibrated, guarded: a class is judged by its owners, and who has no samples of it has no weight.

Where a member knows a class that the ensemble was not asked for, its probability of that class is
one of *unknown*: the sample is none of those that were asked for. A member without an unknown
output then gets one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.names import normal
from ostraka.errors import DataError


def all_classes(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Every class that occurs, in the order in which they come first; the spellings of one name
    (NFKC) are one class, called as it is spelt first.
    """
    first: dict[str, str] = {}
    for names in lists:
        for name in names:
            first.setdefault(normal(name), name)
    return tuple(first.values())


@dataclass(frozen=True)
class Standing:
    """Where the classes of one member stand among those of the ensemble."""

    own: tuple[int, ...]
    """The member's outputs that the ensemble has, in the member's order."""
    places: tuple[int, ...]
    """Where they stand there."""
    others: tuple[int, ...]
    """The member's outputs that the ensemble does not have."""
    size: int
    """Classes of the ensemble."""

    @classmethod
    def of(cls, mine: Sequence[str], classes: Sequence[str]) -> "Standing":
        """The standing of a member that knows the classes `mine`."""
        for names, whose in ((mine, "a member"), (classes, "the ensemble")):
            compared = [normal(name) for name in names]
            twice = next((name for name in compared if compared.count(name) > 1), None)
            if twice is not None:
                raise DataError(
                    f"{whose} lists the class {twice!r} twice; classes are told apart by name"
                )
        where = {normal(name): place for place, name in enumerate(classes)}
        mine = [normal(name) for name in mine]
        own = [i for i, name in enumerate(mine) if name in where]
        if not own:
            raise DataError(
                f"a member knows {few(mine)}, and none of the ensemble's "
                f"classes {few(classes)}; leave it out"
            )
        others = [i for i, name in enumerate(mine) if name not in where]
        places = tuple(where[mine[i]] for i in own)
        return cls(tuple(own), places, tuple(others), len(classes))

    @property
    def same(self) -> bool:
        """Whether the two lists are one."""
        return self.own == self.places == tuple(range(self.size)) and not self.others

    def votes(self, logits: Tensor) -> Tensor:
        """A member's votes [B, own + 1] as votes on the ensemble's classes [B, K + 1]."""
        if self.same:
            return logits
        padded = self.spread(logits[:, :-1], float("-inf"))
        unknown = logits[:, -1:]
        if self.others:
            rest = torch.cat([logits[:, list(self.others)], unknown], dim=1)
            unknown = rest.logsumexp(dim=1, keepdim=True)
        return torch.cat([padded, unknown], dim=1)

    def spread(self, values: Tensor, missing: float) -> Tensor:
        """Values of the member's classes [B, own] at their places among the ensemble's [B, K]."""
        if self.same:
            return values
        out = values.new_full((len(values), self.size), missing)
        out[:, list(self.places)] = values[:, list(self.own)]
        return out

    def card(self, card: Card) -> Card:
        """The card with its counts in the order of the ensemble's classes.

        None of those that it does not know.
        """
        if self.same or card.counts is None:
            return card
        counts = [0] * self.size
        for i, place in zip(self.own, self.places, strict=True):
            counts[place] = card.counts[i]
        return replace(card, counts=tuple(counts))


def few(names: Sequence[str]) -> str:
    """The first four of many names, and how many there are."""
    return ", ".join(names[:4]) + (f" ... ({len(names)})" if len(names) > 4 else "")
