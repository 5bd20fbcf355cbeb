"""Who is not to be trusted: what a ballot found of its members,
as plain values for people and files.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.party import labels
from ostraka.voting.assessment import Assessment
from ostraka.voting.guards import CLAIMS_JUNK, OVERCLAIMED

LOW = 0.2
"""Agreement below which an owner is suspicious: noise stays below,
sound owners with enough samples far above.
"""
FEW = 10
"""Told samples of a class below which nothing is expected of its owner."""
COPY = 0.5
"""How far two members must be one to be named."""


def trust(
    cards: Sequence[Card],
    seen: Assessment,
    junk: Sequence[float] = (),
    classes: Sequence[str] = (),
) -> dict[str, Any]:
    """For each party, in the order of `parties`: agreement and claims by class (None:
    not its class), and junk.

    `claims` are mean claims in multiples of the class's share; `copies` are pairs of parties that
    answer as one; `suspects` says in words what is unusual, by party, and `panel` what is so of
    most members and hence of no one. Classes are called by their numbers, or as in `classes`.
    """
    names = labels([card.name or f"party {card.party}" for card in cards])
    counts = [list(card.counts or [0] * seen.agreement.shape[1]) for card in cards]
    owned = [[n >= 1 for n in own] for own in counts]
    found = {
        "samples": seen.size,
        "parties": list(names),
        "counts": counts,
        "agreement": _owned(seen.agreement, owned),
        "claims": _owned(seen.claimed, owned),
        "copies": [[names[i], names[j]] for i, j in _pairs(seen.copies)],
        "junk": [round(mass, 3) for mass in junk],
    }
    notes = {
        "agree with nobody on some class": _disagreeing(found, classes),
        "claim far too much": _overclaiming(found, classes),
        "take junk for known classes": _knowing_junk(found),
        "answer as others do": _copying(found),
    }
    common = [what for what, who in notes.items() if 2 * len(who) > len(names)]
    said = {
        names[p]: [w for what, who in notes.items() if what not in common for w in who.get(p, ())]
        for p in range(len(names))
    }
    return {
        **found,
        "suspects": {name: words for name, words in said.items() if words},
        "panel": common,
    }


def flagged(cards: Sequence[Card], seen: Assessment, junk: Sequence[float] = ()) -> Tensor:
    """Where a member is flagged for what it answers itself [M, K]: the classes on which it agrees
    with nobody; all classes if these are half of those on which others can judge it, if it claims
    far too much, or takes junk for known classes.

    Nowhere if some answer alike: nobody can say who copied whom, and whom the copies contradict.
    """
    found = trust(cards, seen, junk)
    owned = torch.tensor(found["counts"]) >= FEW
    low, judged = torch.zeros_like(owned), owned & (owned.sum(dim=0) > 1)
    for party, label in low_agreement(found):
        low[party, label] = found["parties"][party] in found["suspects"]
    half = low.any(dim=1) & (2 * low.sum(dim=1) >= judged.sum(dim=1))
    for party, name in enumerate(found["parties"]):
        said = [word.split()[0] for word in found["suspects"].get(name, ())]
        low[party] |= bool(half[party] or {"claims", "takes"} & {*said})
    return low & (not found["copies"])


def low_agreement(found: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The pairs (party, class), by position, that agree too little with the others.

    Who alone owns a class is left out: the others can only say that a sample is
    none of theirs, which tells little.
    """
    counts = found["counts"]
    return [
        (party, label)
        for party, row in enumerate(found["agreement"])
        for label, value in enumerate(row)
        if value is not None and value < LOW and counts[party][label] >= FEW
        and sum(told[label] >= FEW for told in counts) > 1
    ]  # fmt: skip


Said = dict[int, list[str]]
"""What is said of a party, by its position."""


def _disagreeing(found: Mapping[str, Any], names: Sequence[str]) -> Said:
    by_party: dict[int, list[int]] = {}
    for party, label in low_agreement(found):
        # of two owners that contradict each other nobody knows who is wrong
        if any(row[label] is not None and row[label] >= LOW for row in found["agreement"]):
            by_party.setdefault(party, []).append(label)
    return {
        party: [f"agrees with nobody on class {_listed(classes, names)}"]
        for party, classes in by_party.items()
    }


def _overclaiming(found: Mapping[str, Any], names: Sequence[str]) -> Said:
    most = OVERCLAIMED[1]
    much = [[c for c, v in enumerate(row) if v is not None and v > most] for row in found["claims"]]
    words = f"claims more than {most:g} times its share of class "
    return {
        party: [words + _listed(classes, names)] for party, classes in enumerate(much) if classes
    }


def _knowing_junk(found: Mapping[str, Any]) -> Said:
    taken = enumerate(found["junk"])
    return {
        p: [f"takes {100 * mass:.0f} % of junk for known classes"]
        for p, mass in taken
        if mass > CLAIMS_JUNK[1]
    }


def _copying(found: Mapping[str, Any]) -> Said:
    pairs = [pair for a, b in found["copies"] for pair in ((a, b), (b, a))]
    twins = {p: [b for a, b in pairs if a == name] for p, name in enumerate(found["parties"])}
    return {party: [f"answers as {', '.join(names)}"] for party, names in twins.items() if names}


def _owned(values: Tensor, owned: Sequence[Sequence[bool]]) -> list[list[float | None]]:
    return [
        [round(value, 3) if own else None for value, own in zip(row, mine, strict=True)]
        for row, mine in zip(values.tolist(), owned, strict=True)
    ]


def _pairs(copies: Tensor) -> list[tuple[int, int]]:
    return [(i, j) for i, j in (copies.triu(diagonal=1) > COPY).nonzero().tolist()]


def _listed(classes: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(names[label] if names else str(label) for label in classes)
