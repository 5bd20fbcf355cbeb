"""The guarded ballot: `calibrated` among honest, trained members,
and no worse than the plain sum otherwise.

Claims l_mc, weights w_mc and scores S_c are those of `voting.calibrated`; z_mc is the log odds of
l_mc, pi_c the share of class c of all told samples, ramp(v; a, b) goes from 0 at a to 1 at b.
`voting.guards` has each step as a function.

Without looking at any samples:

    cap         told counts are scaled so that no party tells more samples than the median party
    noise       w_mc is multiplied by 0.01 if m takes noise probes for known classes (above 0.5)
                and at least half of the members do not
    gate        G = max(ramp(median told doubt; -0.5, 0),
                        ramp(median known probability on junk; 0.3, 0.5)):
                members that doubt their own samples or claim junk have no doubt to be judged by
    lean        S <- (1 - h) S + h log(known), h = G,
                known = the plain sum's shares times its lack of doubt

After looking at B unlabelled samples (`assess`), with omega = B / (B + 10):

    copies      o_mn = omega * ramp(overlap of two members' known probabilities; 0.8, 0.95),
                o_mm = 1;
                w_mc <- w_mc / sum_n o_mn, and a member's copies are not asked about it
    agreement   r_mc = correlation of exp(l_mc) with what the others say of c, or, as far as
                their weight in c is below 1/2, with what they leave unclaimed;
                w_mc is multiplied by
                1 - omega + omega * clip(2 r_mc / max(0.3, best owner's r_c), 0.01, 1)
    budget      gamma_mc = omega * ramp(contradicted share of its claims; 0.2, 0.4)
                                 * ramp(mean claim / pi_c; 3, 5)
    claims      l_mc <- log sigmoid(a_mc z_mc + s_mc); a_mc = clip(3 / sd(z_mc), 1, 9)^(omega G);
                s_mc = max(omega G, gamma_mc) * (the shift with mean claim pi_c)
    flagged     where m is named as unusual for its own answers (`voting.trust.flagged`), w_mc is
                multiplied by at most 1 - omega + 0.01 omega: it does not lead where another owner
                is left
    lean        h = G * 100 / (B + 100): rescaled claims take the plain sum's place

Agreement, budget and claims need each other and are found in two passes. The result is an
`Assessment`: numbers for each member and class. Given one, a sample's answer depends on the votes
on that sample alone, and can be repeated. Nothing here can tell a lie that all owners of a class
tell, or a batch of one class from a panel that is biased to it.
"""

from dataclasses import dataclass
from math import log
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.registry import BALLOTS
from ostraka.voting import guards
from ostraka.voting.assessment import Assessment
from ostraka.voting.ballots import Votes, shared_say
from ostraka.voting.calibrated import (
    ByOwners,
    any_counts,
    counts_of,
    limited,
    log_claims,
    log_sum,
    owner_weights,
    owners_mean,
)
from ostraka.voting.trust import flagged

PASSES = 2
"""Rounds of agreement, budget and claims; more changed nothing."""
LEANING = 100.0
"""Samples looked at with which a gated panel leans on the plain sum by half."""
FEWEST = 2
"""Samples below which nothing can be compared."""


@final
@BALLOTS.add("guarded")
@dataclass(frozen=True)
class Guarded(ByOwners):
    """As calibrated; weak, unsuitable, lying and copied members are found out,
    without labels, and count less.
    """

    cap: bool = setting(True, "a party's told samples count as those of the median party at most")
    doubt: bool = setting(True, "lean on the plain sum if the members doubt their own samples")
    junk: bool = setting(True, "lean on the plain sum if the members take junk for known classes")
    copies: bool = setting(True, "after a look: members that answer alike share one weight")
    agreement: bool = setting(
        True,
        "after a look: members that agree little with the others on a class count less in it, and "
        "next to nothing where they are flagged as unusual",
    )
    budget: bool = setting(
        True, "after a look: a member that claims far more of a class than it can have is shifted"
    )
    rescale: bool = setting(
        True, "after a look: where the panel leans on the sum, scale and shift all claims instead"
    )

    @property
    def wants_junk(self) -> bool:
        """Whether what the members make of junk is used."""
        return self.junk

    @property
    def looks(self) -> bool:
        """Yes: unlabelled samples tell which members agree."""
        return True

    def gate(self, votes: Votes) -> float:
        """G: 0 for members whose doubt can be used, 1 for those that have none or too much, or
        where nobody discloses class counts.
        """
        if not any_counts(votes.cards):
            return 1.0
        doubt = guards.doubting(votes.cards) if self.doubt else 0.0
        return max(doubt, guards.claims_junk(votes.junk) if self.junk else 0.0)

    def count(self, votes: Votes) -> Scores:
        """The owners' mean log probability of every class, as far as they are trusted."""
        seen = votes.assessment
        claims = self._claims(votes)
        if seen is not None:
            claims = _rescaled(claims, seen.scale.to(claims), seen.shift.to(claims))
        claims = limited(claims, votes.typicality, self.veto)
        known = owners_mean(claims, self._weights(votes))
        lean = self._lean(votes)
        if lean > 0.0:
            known = (1.0 - lean) * known + lean * log_sum(votes)
        return Scores(known, -known.max(dim=1).values, float("inf") if votes.closed else log(2))

    def say(self, votes: Votes) -> Tensor:
        """The owners', as far as they are trusted; of all, where the panel leans on the sum."""
        weights = self._weights(votes)
        owners = shared_say(weights).unsqueeze(1).expand(-1, votes.logits.shape[1], -1)
        lean = self._lean(votes)
        return owners if lean <= 0.0 else (1.0 - lean) * owners + lean * super().say(votes)

    def assess(self, votes: Votes) -> Assessment | None:
        """Who agrees with whom, who claims too much, who is a copy:
        found from votes on unlabelled samples.
        """
        samples = votes.logits.shape[1]
        if samples < FEWEST or not any_counts(votes.cards):
            return None
        sure = samples / (samples + guards.HALF_SURE)
        copies = self._copies(votes, sure)
        return self._look(votes, sure, copies)

    def _look(self, votes: Votes, sure: float, copies: Tensor) -> Assessment:
        told = self._told(votes)
        base = self._owners(votes) / copies.sum(dim=1, keepdim=True)
        shares = told.sum(dim=0) / told.sum().clamp(min=1.0)
        first = self._claims(votes)
        odds = guards.log_odds_of(first)
        claimed = guards.overclaimed(first, shares)
        gated = torch.full_like(base, sure * self.gate(votes) if self.rescale else 0.0)
        scale = guards.spread_up(odds) ** gated
        weight, strength, shift = torch.ones_like(base), gated, torch.zeros_like(base)
        for _ in range(PASSES):
            shift = _shift(odds, scale, strength, shares)
            claims = limited(_rescaled(first, scale, shift), votes.typicality, self.veto)
            others, voice = guards.said_by_others(claims, base * weight, copies)
            agreement = guards.agreement(claims, others, voice)
            if self.agreement:
                weight = 1.0 - sure + sure * guards.trusted(agreement, base > 0)
            if self.budget:
                contradicted = guards.ramp(guards.contradicted(first, others), guards.CONTRADICTED)
                strength = torch.maximum(
                    gated, sure * contradicted * guards.ramp(claimed, guards.OVERCLAIMED)
                )
        shift = _shift(odds, scale, strength, shares)
        weight = weight / copies.sum(dim=1, keepdim=True)
        found = Assessment(votes.logits.shape[1], weight, scale, shift, agreement, claimed, copies)
        if self.agreement:
            odd = flagged(votes.cards, found, votes.junk)
            weight[odd] = weight[odd].clamp(max=1.0 - sure + sure * guards.LEAST_TRUST)
        return found

    def _copies(self, votes: Votes, sure: float) -> Tensor:
        own = torch.eye(len(votes.cards), device=votes.logits.device)
        if not self.copies:
            return own
        return torch.maximum(own, sure * guards.alike(votes.logits.softmax(dim=2)[..., :-1]))

    def _told(self, votes: Votes) -> Tensor:
        counts = counts_of(votes)
        return guards.capped(counts) if self.cap else counts

    def _owners(self, votes: Votes) -> Tensor:
        """The weights of the owners [M, K] by what is known without looking at samples."""
        weights = owner_weights(self._told(votes), self.kappa)
        if self.junk:
            weights[guards.taking_junk(votes.junk)] *= guards.LEAST_TRUST
        return weights

    def _weights(self, votes: Votes) -> Tensor:
        """The same, as far as they are trusted after a look."""
        weights, seen = self._owners(votes), votes.assessment
        return weights if seen is None else weights * seen.weight.to(weights)

    def _claims(self, votes: Votes) -> Tensor:
        told = torch.tensor([float(card.calibration.get("doubt", 0.0)) for card in votes.cards])
        offset = (self.share * told.quantile(0.5)).to(votes.logits)
        return log_claims(votes.logits, offset.expand(len(votes.cards)))

    def _lean(self, votes: Votes) -> float:
        seen = votes.assessment.size if votes.assessment is not None and self.rescale else 0
        return self.gate(votes) * LEANING / (seen + LEANING)


def _shift(odds: Tensor, scale: Tensor, strength: Tensor, shares: Tensor) -> Tensor:
    """By how much the log odds move: `strength` of the way to a mean claim of the class's share."""
    shift, (members, classes) = torch.zeros_like(scale), strength.nonzero(as_tuple=True)
    if len(members):
        part = odds[members, :, classes] * scale[members, classes].unsqueeze(1)
        shift[members, classes] = strength[members, classes] * guards.budget_shift(
            part, shares[classes]
        )
    return shift


def _rescaled(claims: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """The claims after scale and shift; pairs that have neither stay as they are, to the last bit,
    and are not computed.
    """
    members, classes = ((scale != 1.0) | (shift != 0.0)).nonzero(as_tuple=True)
    if not len(members):
        return claims
    moved = guards.log_odds_of(claims[members, :, classes])
    moved = scale[members, classes].unsqueeze(1) * moved + shift[members, classes].unsqueeze(1)
    claims = claims.clone()
    claims[members, :, classes] = F.logsigmoid(moved)
    return claims
