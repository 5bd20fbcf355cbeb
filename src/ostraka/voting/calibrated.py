"""The calibrated ballot: every class is judged by its owners, in the log domain,
each on its own scale of doubt.

The plain sum loses most where a class has several owners: it then has several chances to be claimed
wrongly, and an owner's *unknown* counts for nothing. Here a class's score is the mean of its
owners' log probabilities, so that every owner has a veto, and a member's doubt is judged against
the doubt it has of its own samples. With, for member m:

    g_m(x)   log odds of unknown
    q_m(c|x) softmax over known classes
    a_m      mean of g_m over the party's own samples (card: `doubt`)
    n_mc     its samples of class c (card: `counts`)
    pi_c     the class's share of all samples

    b_m     = share * median of all a_m ("common"), or share * a_m ("own"); with public samples
              the b with mean_x sigmoid(b - g_m(x)) = tau_m over them, or half of each ("mix")
    tau_m   = sum_c pi_c min(1, n_mc / max_m n_mc), kept in [0.02, 0.98]
    l_mc(x) = max(log sigmoid(b_m - g_m(x)), -30) + max(log q_m(c|x), -30)
              [+ max(log sigmoid(t_mc(x)), -30), typicality]; what lies below -veto counts a
              hundredth: the order stays, the power to sink a class does not
    w_mc    = n_mc / (n_mc + kappa) if n_mc >= 2 or n_mc >= max_m n_mc / 10 else 0
    S_c(x)  = sum_m w_mc l_mc(x) / sum_m w_mc

A member that discloses no counts has n_mc = a tenth of its size spread evenly over the classes that
it knows; where nobody discloses any, S is the log of the plain sum.

The answer is argmax S; the unknown score is -max S, and unknown where the best class has a mean
probability below 1/2. Counts are trusted, and a false count gives its party a say in a class that
it does not know; so counts are shown with the members, and `veto` limits what one member can take
from a class. Doubt is not trusted: a common offset is a median, which one broken or lying member
cannot move far, and with one owner per class it leaves the plain sum's answers nearly as they are,
where offsets of their own cost up to a point.
"""

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.errors import ConfigError
from ostraka.registry import BALLOTS
from ostraka.voting.ballots import Ballot, Votes, knowing, shared_say
from ostraka.voting.calibration import log_odds
from ostraka.voting.union import few

NOBODY = -1e4
"""Score of a class that no member has seen."""
LEAST = -30.0
"""The least of each part of a claim. A probability of 0 would make NaN of a class that the member
has no say in, and a network with huge weights would outweigh all others by its doubt.
"""
LEAK = 0.01
"""What counts of a claim beyond the veto; not nothing,
or a class's only owner could no longer tell bad from worse.
"""


OWNER = 0.1
"""Share of the largest owner's samples of a class from which on a member is an owner too, however
few they are."""
UNSAID = 0.1
"""What counts of the samples of a member that does not disclose of which classes they are."""


@dataclass(frozen=True)
class ByOwners(Ballot, ABC):
    """A ballot that judges each class by the members that know it, in the log domain."""

    share: float = setting(
        0.5, "how much of the members' doubt of their own samples is forgiven", span="[0, inf)"
    )
    kappa: float = setting(
        100.0, "samples of a class at which an owner has half of its full weight", span="[0, inf)"
    )
    veto: float = setting(
        8.0,
        "the most that one member can take from a class, as a negative log probability",
        span="(0, inf]",
    )
    typicality: Literal["auto", "on", "off"] = setting(
        "auto", "use embedding statistics; auto: if all members tell them"
    )

    def notes(self, cards: Sequence[Card]) -> tuple[str, ...]:
        """Who discloses no class counts."""
        return uncounted(cards)

    def wants_typicality(self, cards: Sequence[Card]) -> bool:
        """Whether the embedding statistics of the members are used;
        refused if they are wanted and not told.
        """
        if self.typicality == "off":
            return False
        silent = [str(card) for card in cards if "typicality" not in card.calibration]
        if silent and self.typicality == "on":
            raise ConfigError(
                f"typicality is on, but {few(silent)} did not tell embedding statistics; "
                "train with --set tell=statistics, or set ballot.typicality=auto"
            )
        return not silent

    def shares(self, scores: Scores) -> Tensor:
        """The scores are log probabilities: their softmax."""
        return scores.known.softmax(dim=1)


@final
@BALLOTS.add("calibrated")
@dataclass(frozen=True)
class Calibrated(ByOwners):
    """Each class is judged by the members that know it, in the log domain,
    each on its own scale of doubt.
    """

    doubt: Literal["common", "own"] = setting(
        "common", "forgive the median doubt of all members, or each its own"
    )
    public: Literal["none", "probe", "mix"] = setting(
        "none", "scale of doubt from public samples: no, alone, by half"
    )

    @property
    def wants_public(self) -> bool:
        """Whether the scale of doubt is found on public samples."""
        return self.public != "none"

    def tune(self, public: Votes) -> tuple[float, ...]:
        """The offset of each member at which it claims as many public
        samples as its counts let expect.
        """
        odds = log_odds(public.logits)
        return tuple(_solve(o, t) for o, t in zip(odds, _expected(counts_of(public)), strict=True))

    def count(self, votes: Votes) -> Scores:
        """The owners' mean log probability of every class."""
        offsets = self._offsets(votes).to(votes.logits)
        claims = limited(log_claims(votes.logits, offsets), votes.typicality, self.veto)
        known = owners_mean(claims, owner_weights(counts_of(votes), self.kappa))
        if not any_counts(votes.cards):
            known = log_sum(votes)
        return Scores(known, -known.max(dim=1).values, float("inf") if votes.closed else log(2))

    def say(self, votes: Votes) -> Tensor:
        """The owners', by how many samples they tell of."""
        if not any_counts(votes.cards):
            return super().say(votes)
        weights = owner_weights(counts_of(votes), self.kappa)
        return shared_say(weights).unsqueeze(1).expand(-1, votes.logits.shape[1], -1)

    def _offsets(self, votes: Votes) -> Tensor:
        own = self.share * torch.tensor(
            [float(card.calibration.get("doubt", 0.0)) for card in votes.cards]
        )
        if self.doubt == "common":
            own = own.quantile(0.5).expand(len(own))
        if not self.wants_public:
            return own
        if not votes.tuned:
            raise ConfigError(
                f"ballot.public is {self.public!r}, but there are no public samples; give --public"
            )
        found = torch.tensor(votes.tuned)
        return found if self.public == "probe" else 0.5 * found + 0.5 * own


def log_claims(logits: Tensor, offsets: Tensor) -> Tensor:
    """Log probability [M, B, K] that each member gives to each class,
    its doubt shifted by its offset [M].
    """
    doubt = F.logsigmoid(offsets.unsqueeze(1) - log_odds(logits)).clamp(min=LEAST)
    return logits[..., :-1].log_softmax(dim=2).clamp(min=LEAST) + doubt.unsqueeze(2)


def limited(claims: Tensor, usual: Tensor | None, veto: float) -> Tensor:
    """The claims, with typicality where it is used; what lies below -veto counts a hundredth."""
    if usual is not None:
        claims = claims + F.logsigmoid(usual).clamp(min=LEAST)
    return torch.where(claims < -veto, LEAK * (claims + veto) - veto, claims)


def owner_weights(counts: Tensor, kappa: float) -> Tensor:
    """Weight of every member for every class [M, K].

    A member with a single sample is no judge beside one with more than ten; where nobody has more,
    all of them together are better than any of them.
    """
    most = counts.max(dim=0).values
    enough = (counts >= 2) | (counts >= OWNER * most)
    return torch.where(enough, counts / (counts + kappa), torch.zeros_like(counts))


def owners_mean(claims: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean claim to every class [B, K]; NOBODY where no member has a weight."""
    total = weights.sum(dim=0)
    known = torch.einsum("mk,mbk->bk", weights, claims) / total.clamp(min=1e-12)
    return torch.where(total > 0, known, torch.full_like(known, NOBODY))


def counts_of(votes: Votes) -> Tensor:
    """Class counts of all members [M, K].

    Of a member that discloses none, a tenth of its samples is taken to be spread evenly over the
    classes that it knows: it has some weight in each, and far less than an owner.
    """
    return spread_counts(votes.cards, knowing(votes)[:, 0])


def spread_counts(cards: Sequence[Card], known: Tensor) -> Tensor:
    """The same, of members that know the classes where `known` [M, K] is 1."""
    sizes = torch.tensor([float(card.size) for card in cards]).to(known)
    counts = known * (UNSAID * sizes / known.sum(dim=1).clamp(min=1.0)).unsqueeze(1)
    for member, card in enumerate(cards):
        if card.counts is not None:
            counts[member] = torch.tensor(card.counts).to(known)
    return counts


def any_counts(cards: Sequence[Card]) -> bool:
    """Whether anything is known of who has samples of which class."""
    return any(any(card.counts or ()) for card in cards)


def uncounted(cards: Sequence[Card]) -> tuple[str, ...]:
    """What is said of members that disclose no class counts."""
    if not any_counts(cards):
        return ("no member discloses class counts, so votes are counted by the plain sum",)
    silent = [str(card) for card in cards if card.counts is None]
    words = f"{len(silent)} of {len(cards)} members disclose no class counts ({few(silent)})"
    even = "a tenth of their samples is taken to be spread evenly over the classes they know"
    return (f"{words}: {even}",) if silent else ()


def log_sum(votes: Votes) -> Tensor:
    """Log of the plain sum as one answer [B, K]: each class's share of the sum,
    times the least doubting member's.
    """
    shares = votes.logits.softmax(dim=2)
    known = shares[..., :-1].sum(dim=0)
    doubt = shares[..., -1].min(dim=0).values
    return (
        (known / known.sum(dim=1, keepdim=True) * (1.0 - doubt).unsqueeze(1)).clamp(min=1e-12).log()
    )


def _expected(counts: Tensor) -> list[float]:
    """The share of all samples that each member should claim,
    if classes are as frequent as the counts say.
    """
    shares = counts.sum(dim=0) / counts.sum()
    owned = (counts / counts.max(dim=0).values.clamp(min=1)).clamp(max=1)
    claimed: list[float] = (owned @ shares).clamp(0.02, 0.98).tolist()
    return claimed


def _solve(odds: Tensor, target: float) -> float:
    """The b with mean sigmoid(b - odds) = target, by bisection: the mean grows with b.

    A member that cannot answer unknown claims every sample with any b: 0.
    """
    if odds.isneginf().all():
        return 0.0
    low, high = float(odds.min()) - 50.0, float(odds.max()) + 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if float(torch.sigmoid(middle - odds).mean()) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2
