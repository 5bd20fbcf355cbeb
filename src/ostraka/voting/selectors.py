"""Selectors: which of the members that arrived may vote.

They see what a server sees: members with their cards, public samples where there are any, and the
ballot that will count.
Their choice depends on nothing else, so trained members are shared by all selectors of a grid.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, final

import torch

from ostraka.core.card import Card
from ostraka.core.member import Member
from ostraka.core.samples import Samples
from ostraka.core.seeds import torch_rng
from ostraka.core.settings import Settings, setting
from ostraka.errors import ConfigError
from ostraka.registry import SELECTORS
from ostraka.voting.ballots import Ballot, Plurality
from ostraka.voting.choice import Choice, uncovered
from ostraka.voting.union import Standing

Size = Literal["auto"] | int
Score = Literal["validation", "confidence"]
"""What a party tells of samples that it kept from training:
the share that its member answers rightly, or how sure it is of its answers.
"""
UNSCORED = (
    "let the parties hold samples out (--set scored=true, and hold_out above 0): "
    "they then tell it on their cards"
)


@dataclass(frozen=True)
class Pool:
    """Whom a selector chooses among, and what it may look at."""

    members: Sequence[Member]
    classes: tuple[str, ...]
    seed: int = 0
    public: Samples | None = None
    ballot: Ballot = Plurality()
    """How the votes of the chosen will be counted."""

    @property
    def cards(self) -> list[Card]:
        """The members' cards, counts in the order of these classes."""
        return [
            member.card
            if member.model.classes == self.classes
            else Standing.of(member.model.classes, self.classes).card(member.card)
            for member in self.members
        ]

    def lots(self) -> list[int]:
        """A place for each member in a drawn order: it decides where nothing else does."""
        count = len(self.members)
        order = torch.randperm(count, generator=torch_rng(self.seed, "select", "lots"))
        places = [0] * count
        for place, member in enumerate(order.tolist()):
            places[member] = place
        return places


@dataclass(frozen=True)
class Selector(Settings, ABC):
    """A rule that says who votes."""

    _: KW_ONLY
    every_class: bool = setting(
        True, "add owners of classes that no chosen member has samples of, as far as is disclosed"
    )

    def load(self) -> None:
        """Import libraries that take long, so that the seconds of `choose` are its own."""

    @abstractmethod
    def choose(self, pool: Pool) -> Choice:
        """The members that vote; at least one, whatever the pool of one or more."""


def chosen(selector: Selector, pool: Pool) -> Choice:
    """What the selector chooses, and unless it is set otherwise, of every class that nobody chosen
    has the member with most samples of it.
    """
    made, count = selector.choose(pool), len(pool.members)
    team = [*made.chosen]
    if not team or team != sorted({*team} & {*range(count)}) or len(made.why) != count:
        raise ConfigError(
            f"the selector {SELECTORS.name_of(type(selector))} chose {team} of {count} members and "
            f"gave {len(made.why)} reasons; expected places from 0 to {count - 1}, ascending, and "
            "a reason for each member. Use another selector, or ostraka.testing.check_selector"
        )
    why, cards, lots = list(made.why), pool.cards, pool.lots()
    while selector.every_class and (missing := uncovered(cards, team)):
        label = missing[0]
        most = max(range(count), key=lambda i: ((cards[i].counts or {label: 0})[label], -lots[i]))
        why[most] = f"added for class {pool.classes[label]}; {why[most]}"
        team.append(most)
    more = len(team) - len(made.chosen)
    notes = (f"{more} added, so that every class has an owner",) if more else ()
    return replace(made, chosen=(*sorted(team),), why=(*why,), notes=(*made.notes, *notes))


@final
@SELECTORS.add("all", "as")
@dataclass(frozen=True)
class All(Selector):
    """Every member that arrived votes (DeDES calls it AS)."""

    def choose(self, pool: Pool) -> Choice:
        """All of them."""
        count = len(pool.members)
        return Choice(tuple(range(count)), ("all vote",) * count)


@dataclass(frozen=True)
class Best(Selector, ABC):
    """The members that are first in some order vote."""

    size: Size = setting("auto", "members that vote; auto: half of them", span="[1, inf)")

    @abstractmethod
    def worth(self, pool: Pool) -> tuple[str, Sequence[float | None]]:
        """A number for each member, higher is better, and what it is; None: it tells none."""

    def choose(self, pool: Pool) -> Choice:
        """As many as `size` says, the best ones; equal ones by lot, who tells nothing last."""
        what, worth = self.worth(pool)
        ranks = [float("-inf") if own is None else own for own in worth]
        lots, count = pool.lots(), len(pool.members)
        order = sorted(range(count), key=lambda i: (-ranks[i], lots[i]))
        size = min(count, -(-count // 2) if self.size == "auto" else self.size)
        place = {member: number for number, member in enumerate(order, 1)}
        words = [f"no {what}" if own is None else f"{what} {own:.4g}" for own in worth]
        why = tuple(f"{words[i]}: place {place[i]} of {count}" for i in range(count))
        silent = sum(own is None for own in worth)
        notes = (f"{silent} of {count} members tell no {what} and come last",) if silent else ()
        return Choice(tuple(sorted(order[:size])), why, notes=notes)


@final
@SELECTORS.add("cv", "best-validation")
@dataclass(frozen=True)
class BestValidation(Best):
    """The members with the best local validation scores vote (DeDES calls it CV)."""

    score: Score = setting("validation", "accuracy on held-out samples, or mean confidence in them")

    def worth(self, pool: Pool) -> tuple[str, Sequence[float | None]]:
        """The scores that the parties tell. A party with too few samples to hold any out tells
        none; if nobody tells one, there is nothing to choose by.
        """
        scores = scores_of(pool.cards, self.score)
        if all(score is None for score in scores):
            raise ConfigError(
                f"the selector cv chooses by the parties' {self.score} scores, and none of "
                f"{len(scores)} members tells one; {UNSCORED}"
            )
        return f"{self.score} score", scores


@final
@SELECTORS.add("ds", "most-data")
@dataclass(frozen=True)
class MostData(Best):
    """The members of the parties with most samples vote (DeDES calls it DS)."""

    def worth(self, pool: Pool) -> tuple[str, Sequence[float | None]]:
        """The sizes that the parties tell."""
        return "samples", [float(card.size) for card in pool.cards]


@final
@SELECTORS.add("rs", "random")
@dataclass(frozen=True)
class Random(Best):
    """Members drawn by lot vote (DeDES calls it RS)."""

    draw: int = setting(0, "which of many draws; the seed of a run decides too", span="[0, inf)")

    def worth(self, pool: Pool) -> tuple[str, Sequence[float | None]]:
        """Random numbers."""
        rng = torch_rng(pool.seed, "select", "random", self.draw)
        return "drawn number", torch.rand(len(pool.members), generator=rng).tolist()


def scores_of(cards: Sequence[Card], score: Score) -> list[float | None]:
    """The score that each party tells; None: it tells none."""
    return [card.scores.get(score) for card in cards]
