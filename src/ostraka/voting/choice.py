"""What a selector chose among the members that arrived, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ostraka.core.card import Card
from ostraka.core.party import labels
from ostraka.core.wire import wire

NOWHERE = -1
"""The group of a member that is in none."""


@wire("choice/1")
@dataclass(frozen=True)
class Choice:
    """Who votes, by position among the members that arrived."""

    chosen: tuple[int, ...]
    """Ascending, without repeats."""
    why: tuple[str, ...]
    """For every member that arrived, chosen or not: the reason in words."""
    groups: tuple[int, ...] = ()
    """For every member: its cluster, NOWHERE if it was left out before;
    empty where nothing was clustered.
    """
    notes: tuple[str, ...] = ()
    """What was decided on the way, and what was missing."""


def told(choice: Choice, cards: Sequence[Card], classes: Sequence[str] = ()) -> dict[str, Any]:
    """The choice as plain values for people and files; `cards` are those of all that arrived, and
    `classes` the names of what they count (none: their numbers).
    """
    left = ", ".join(classes[i] if classes else str(i) for i in uncovered(cards, choice.chosen))
    warning = [f"no selected member is known to have samples of class {left}"] if left else []
    names = labels([card.name or f"party {card.party}" for card in cards])
    return {
        "parties": list(names),
        "chosen": [names[i] for i in choice.chosen],
        "groups": list(choice.groups),
        "why": dict(zip(names, choice.why, strict=True)),
        "notes": [*choice.notes, *warning],
    }


def uncovered(cards: Sequence[Card], team: Sequence[int]) -> list[int]:
    """The classes of which others disclose samples but nobody in the team does."""
    told = {i: card.counts for i, card in enumerate(cards) if card.counts is not None}
    have = [sum(column) for column in zip(*told.values(), strict=True)]
    kept = [told[i] for i in team if i in told]
    return [c for c, n in enumerate(have) if n and not any(counts[c] for counts in kept)]
