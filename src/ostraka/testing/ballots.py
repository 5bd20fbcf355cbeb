"""The contract of ballots, checked on made-up votes of three members on four classes."""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.predictor import UNKNOWN, Scores
from ostraka.core.seeds import torch_rng
from ostraka.errors import ConfigError
from ostraka.testing.expect import (
    SEED,
    difference,
    expect,
    expect_picklable,
    expect_scores,
    expect_settings,
    hoped,
    near,
    rows_of,
    unlike,
)
from ostraka.voting.ballots import Ballot, Votes

MEMBERS, SAMPLES, CLASSES = 3, 12, 4
SURE = 12.0
"""A logit so far above the others that nobody can doubt what is meant."""


def check_ballot(ballot: Ballot) -> None:
    """Raise a ContractBroken if `ballot` fails any of CHECKS; takes a moment."""
    for check in CHECKS:
        check(ballot)


def check_settings(ballot: Ballot) -> None:
    """The ballot can be written as plain values, and sent to a worker process."""
    expect_settings(ballot)
    expect_picklable(ballot)


def check_scores(ballot: Ballot) -> None:
    """Scores have the right shapes and are finite,
    whatever the members say and however many they are.
    """
    for case, votes in _cases(ballot).items():
        _, samples, outputs = votes.logits.shape
        ask = partial(ballot.count, votes)
        expect_scores(ballot, ask, samples, outputs - 1, f"it counts {case}")


def check_closed(ballot: Ballot) -> None:
    """Where no member can answer unknown, neither does the ballot: its threshold is infinite."""
    threshold = _count(ballot, _cases(ballot)["members without an unknown output"]).threshold
    what = "closed-set members are never overruled by unknown"
    wrong = threshold != math.inf and f"the threshold is {threshold:g}"
    expect(ballot, what, wrong, "give math.inf where votes.closed")


def check_unanimous(ballot: Ballot) -> None:
    """What all members are sure of is the answer: each class, and unknown."""
    name = {UNKNOWN: "unknown"}
    for answer in range(CLASSES + 1):
        logits = torch.zeros(MEMBERS, SAMPLES, CLASSES + 1)
        logits[:, :, answer] = SURE
        given = int(_count(ballot, _votes(ballot, logits)).open[0])
        wanted = answer if answer < CLASSES else UNKNOWN
        expect(
            ballot,
            f"what all members are sure of ({name.get(wanted, wanted)}) wins",
            given != wanted and f"it answered {name.get(given, given)}",
            "a higher known score means a likelier class; "
            "unknown is answered where its score is above the threshold",
        )


def check_members(ballot: Ballot) -> None:
    """The order of the members does not matter."""
    votes, order = _cases(ballot)["mixed votes"], [2, 0, 1]
    turned = _votes(ballot, votes.logits[order], [votes.cards[i] for i in order])
    _expect(ballot, _count(ballot, votes), turned, "the order of the members does not matter")


def check_samples(ballot: Ballot) -> None:
    """A sample's scores depend on the votes on that sample alone."""
    votes = _cases(ballot)["mixed votes"]
    whole = _count(ballot, votes)
    order = torch.randperm(SAMPLES, generator=torch_rng(SEED, "order"))
    half = order[: SAMPLES // 2]
    for rows, case in ((order, "in another order"), (half, "without half of the others")):
        part, wanted = _on(votes, rows), rows_of(whole, rows)
        _expect(ballot, wanted, part, f"a sample scores the same {case}")


def check_classes(ballot: Ballot) -> None:
    """Classes are treated alike: with other numbers for them,
    their scores change places and nothing else does.
    """
    votes, order = _cases(ballot)["mixed votes"], [3, 1, 0, 2]
    cards = [
        replace(card, counts=tuple((card.counts or ())[i] for i in order)) for card in votes.cards
    ]
    turned = _votes(ballot, votes.logits[:, :, [*order, CLASSES]], cards)
    whole = _count(ballot, votes)
    wanted = replace(whole, known=whole.known[:, order])
    _expect(ballot, wanted, turned, "classes with other numbers score the same")


def check_unchanged(ballot: Ballot) -> None:
    """The votes are left as they were."""
    votes = _cases(ballot)["mixed votes"]
    before = deepcopy(votes)
    _count(ballot, votes)
    change = difference(before.logits, votes.logits, "logits")
    change = change or difference(before.cards, votes.cards, "cards")
    advice = "work on a copy: the votes are used again"
    expect(ballot, "count leaves the votes unchanged", change, advice)


def check_shares(ballot: Ballot) -> None:
    """`shares` gives what a student learns: from 0 to 1, with the sum 1,
    and the likeliest class the largest.
    """
    for case, votes in _cases(ballot).items():
        scores = _count(ballot, votes)
        with hoped(ballot, f"shares takes the scores of {case}"):
            shares = ballot.shares(scores)
        good = (
            shares.shape == scores.known.shape
            and bool((shares >= 0).all())
            and near(shares.sum(dim=1), torch.ones(len(shares)))
            and torch.equal(shares.argmax(dim=1), scores.closed)
        )
        expect(
            ballot,
            "shares are probabilities in the order of the known scores",
            not good and f"for {case} the first row is {[round(v, 4) for v in shares[0].tolist()]}",
            "override shares if the known scores are not probabilities, "
            "for example with their softmax",
        )


def check_say(ballot: Ballot) -> None:
    """`say` gives each member's share of the say in each class: from 0 to 1, with the sum 1, or 0
    where nobody has any.
    """
    for case, votes in _cases(ballot).items():
        with hoped(ballot, f"say takes {case}"):
            say = ballot.say(votes)
        total = say.sum(dim=0)
        good = (
            say.shape == votes.logits[..., :-1].shape
            and bool((say >= 0).all())
            and near(total, (total > 0.5).to(total))
        )
        wrong = not good and f"for {case} the sums of the first sample are {total[:1].tolist()}"
        advice = "divide weights by their sum over the members (voting.ballots.shared_say)"
        expect(ballot, "the members' say in a class are shares of one whole", wrong, advice)


def check_silent(ballot: Ballot) -> None:
    """Members that tell nothing but their size are counted, or refused with a ConfigError."""
    cards = [Card(i, 10) for i in range(MEMBERS)]
    what = "members that do not tell their class counts are counted or refused in words"
    with hoped(ballot, what, "raise a ConfigError that says what to do", ConfigError):
        ballot.count(_votes(ballot, _logits(), cards))


def check_tuned(ballot: Ballot) -> None:
    """A ballot that wants public samples finds one finite number for each member on them."""
    if not ballot.wants_public:
        return
    with hoped(ballot, "tune finds a number for each member"):
        found = ballot.tune(Votes(_logits(), _cards()))
    good = len(found) == MEMBERS and all(math.isfinite(number) for number in found)
    what = "tune finds one finite number for each member"
    expect(ballot, what, not good and f"it gave {found}", "return a tuple of floats")


def check_assessed(ballot: Ballot) -> None:
    """A ballot that looks at samples finds something.

    Given it, a sample's scores are finite and its own.
    """
    if not ballot.looks:
        return
    votes = _cases(ballot)["mixed votes"]
    with hoped(ballot, "it looks at the votes"):
        seen = replace(votes, assessment=ballot.assess(votes))
    nothing = seen.assessment is None and "it found None"
    advice = "leave `looks` False, or return a value"
    expect(ballot, "a ballot that looks finds something", nothing, advice)
    ask = partial(ballot.count, seen)
    expect_scores(ballot, ask, SAMPLES, CLASSES, "it counts with its own assessment")
    half = torch.arange(SAMPLES // 2)
    what = "with an assessment a sample scores the same without half of the others"
    _expect(ballot, rows_of(_count(ballot, seen), half), _on(seen, half), what)


CHECKS: tuple[Callable[[Ballot], None], ...] = (
    check_settings,
    check_tuned,
    check_unchanged,
    check_scores,
    check_closed,
    check_unanimous,
    check_members,
    check_samples,
    check_classes,
    check_shares,
    check_say,
    check_assessed,
    check_silent,
)
"""All checks, those with the plainest message first."""


def _logits(members: int = MEMBERS) -> Tensor:
    return 2 * torch.randn(members, SAMPLES, CLASSES + 1, generator=torch_rng(SEED, "votes"))


def _cards(members: int = MEMBERS) -> list[Card]:
    """Every class has owners; counts, sizes and doubt differ."""
    counts = [tuple(20 + 7 * m + 3 * c for c in range(CLASSES)) for m in range(members)]
    told = [{"doubt": -1.0 - m, "typicality": {}} for m in range(members)]
    return [
        Card(m, sum(n), n, calibration=told[m], name=f"member {m}") for m, n in enumerate(counts)
    ]


def _votes(ballot: Ballot, logits: Tensor, cards: Sequence[Card] = ()) -> Votes:
    """Votes with all that the ballot asks for; typicality is made of the logits,
    so that it moves with them.
    """
    votes = Votes(logits, cards or _cards(len(logits)))
    usual = logits[..., :-1].tanh() if ballot.wants_typicality(votes.cards) else None
    return replace(votes, typicality=usual, tuned=ballot.tune(votes) if ballot.wants_public else ())


def _cases(ballot: Ballot) -> dict[str, Votes]:
    mixed, closed, sure = _logits(), _logits(), torch.zeros(MEMBERS, SAMPLES, CLASSES + 1)
    closed[..., -1] = -math.inf
    # every pair of members contradicts each other, some of them with unknown
    samples = torch.arange(SAMPLES)
    for member in range(MEMBERS):
        sure[member, samples, (samples + member) % (CLASSES + 1)] = 200.0
    given = {
        "mixed votes": mixed,
        "members without an unknown output": closed,
        "members that are wholly sure and contradict each other": sure,
        "a single member": mixed[:1],
    }
    with hoped(ballot, "it says what it wants to know of the members"):
        return {case: _votes(ballot, logits) for case, logits in given.items()}


def _on(votes: Votes, rows: Tensor) -> Votes:
    """The votes on some of the samples."""
    usual = None if votes.typicality is None else votes.typicality[:, rows]
    return replace(votes, logits=votes.logits[:, rows], typicality=usual)


def _count(ballot: Ballot, votes: Votes) -> Scores:
    with hoped(ballot, "it counts the votes"):
        return ballot.count(votes)


def _expect(ballot: Ballot, wanted: Scores, votes: Votes, what: str) -> None:
    """The votes are counted to these scores."""
    given = _count(ballot, votes)
    advice = "use only the votes on the sample itself, and no number of a member or class"
    for name in unlike(wanted, given):
        expect(ballot, what, f"the {name} scores changed", advice)
    expect(
        ballot,
        what,
        wanted.threshold != given.threshold
        and f"the threshold was {wanted.threshold:g} and is {given.threshold:g}",
        "a threshold must not depend on the batch or on any order",
    )
