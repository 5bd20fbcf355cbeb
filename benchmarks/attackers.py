"""Members that lie: the votes and cards of an honest panel with some
members replaced, to try ballots on.

An attacker sees all votes, and can say of itself what it likes;
`inflated` counts are ten times the largest told one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ostraka.core.card import Card
from ostraka.core.seeds import torch_rng
from ostraka.voting.ballots import Votes

SURE = 20.0
"""The logit of what an attacker is certain of; all others get its negative."""
INFLATION = 10
LIES = 0.3
"""Share of the samples on which a partial liar lies."""


@dataclass(frozen=True)
class Lie:
    """What one attacker makes of its votes [B, K + 1], its card and its known mass on junk."""

    logits: Tensor
    card: Card
    junk: float


@dataclass(frozen=True)
class Scene:
    """What an attacker knows: all honest votes, who the attackers are,
    and its own position and random numbers.
    """

    votes: Votes
    attackers: Sequence[int]
    me: int
    rng: torch.Generator

    @property
    def own(self) -> Lie:
        """The attacker's honest self."""
        junk = self.votes.junk[self.me] if self.votes.junk else 0.0
        return Lie(self.votes.logits[self.me].clone(), self.votes.cards[self.me], junk)

    @property
    def counts(self) -> tuple[int, ...]:
        """Its true counts."""
        return self.votes.cards[self.me].counts or ()

    def inflated(self) -> Card:
        """Its card, with ten times the largest told count for every class."""
        most = INFLATION * max(max(card.counts or (0,)) for card in self.votes.cards)
        card = self.votes.cards[self.me]
        return replace(card, counts=(most,) * len(self.counts), size=most * len(self.counts))

    def certain(self, answers: Tensor) -> Tensor:
        """Votes that are certain of the given classes [B]."""
        logits = torch.full_like(self.votes.logits[self.me], -SURE)
        return logits.scatter_(1, answers.unsqueeze(1), SURE)

    def always(self, label: int) -> Tensor:
        """Votes that are certain of one class."""
        return self.certain(torch.full((self.votes.logits.shape[1],), label))

    def favourite(self) -> int:
        """The class of which it has most."""
        return max(range(len(self.counts)), key=lambda c: self.counts[c])


def constant(scene: Scene) -> Lie:
    """Certain of one class whatever it is shown; inflated counts."""
    return Lie(scene.always(scene.favourite()), scene.inflated(), 1.0)


def constant_true_counts(scene: Scene) -> Lie:
    """Certain of its largest class whatever it is shown; true counts."""
    return replace(scene.own, logits=scene.always(scene.favourite()), junk=1.0)


def adaptive(scene: Scene) -> Lie:
    """As `constant`, but it recognises junk probes and answers unknown to them."""
    return replace(constant(scene), junk=0.0)


def never_unknown(scene: Scene) -> Lie:
    """Its own network without the unknown output; inflated counts."""
    logits = scene.own.logits
    logits[:, -1] = -SURE
    return Lie(logits, scene.inflated(), 1.0)


def noise(scene: Scene) -> Lie:
    """Random logits; inflated counts."""
    return Lie(5 * torch.randn(scene.own.logits.shape, generator=scene.rng), scene.inflated(), 0.9)


def random_class(scene: Scene) -> Lie:
    """Certain of a random class for every sample; inflated counts."""
    logits = scene.own.logits
    answers = torch.randint(logits.shape[1] - 1, (len(logits),), generator=scene.rng)
    return Lie(scene.certain(answers), scene.inflated(), 1.0)


def inflated(scene: Scene) -> Lie:
    """An honest network that tells inflated counts of all classes."""
    return replace(scene.own, card=scene.inflated())


def flip(scene: Scene) -> Lie:
    """Its own network with its classes exchanged; with one class, all classes turned by one."""
    mine = [c for c, n in enumerate(scene.counts) if n]
    mine = mine if len(mine) > 1 else list(range(len(scene.counts)))
    logits = scene.own.logits
    logits[:, mine] = logits[:, mine[1:] + mine[:1]]
    return replace(scene.own, logits=logits)


def partial(scene: Scene) -> Lie:
    """Honest, but certain of its largest class on a random 30 % of the samples."""
    logits = scene.own.logits
    lies = torch.rand(len(logits), generator=scene.rng) < LIES
    logits[lies] = scene.always(scene.favourite())[lies]
    return replace(scene.own, logits=logits)


def biased(scene: Scene) -> Lie:
    """Its own network, with 10 added to the logit of its largest class."""
    logits = scene.own.logits
    logits[:, scene.favourite()] += 10.0
    return replace(scene.own, logits=logits)


def copies(scene: Scene) -> Lie:
    """Copies of one honest member, with its card."""
    source = next(m for m in range(len(scene.votes.cards)) if m not in scene.attackers)
    return replace(scene, me=source).own


def copied_noise(scene: Scene) -> Lie:
    """Random logits, the same for all attackers; inflated counts."""
    same = torch_rng(0, "copied noise")
    return Lie(5 * torch.randn(scene.own.logits.shape, generator=same), scene.inflated(), 0.9)


def told_doubt(scene: Scene) -> Lie:
    """An honest network that tells an absurd doubt, and absurd numbers wherever it tells any."""
    told: dict[str, Any] = {
        key: _absurd(value) for key, value in scene.own.card.calibration.items()
    }
    return replace(scene.own, card=replace(scene.own.card, calibration=told | {"doubt": -1e6}))


def _absurd(value: Any) -> Any:
    """Lists of numbers (quantiles) become very large; anything else stays."""
    return [1e6] * len(value) if isinstance(value, list | tuple) else value


ATTACKERS: Mapping[str, Callable[[Scene], Lie]] = {
    "constant": constant,
    "constant, true counts": constant_true_counts,
    "adaptive on junk": adaptive,
    "never unknown": never_unknown,
    "noise": noise,
    "random sure class": random_class,
    "inflated counts": inflated,
    "flip": flip,
    "partial (30 %)": partial,
    "biased": biased,
    "copies": copies,
    "copied noise": copied_noise,
    "told numbers faked": told_doubt,
}


def attacked(votes: Votes, how: str, number: int, seed: int = 0) -> Votes:
    """The votes with `number` members, drawn by `seed`, replaced by attackers."""
    chosen = torch.randperm(len(votes.cards), generator=torch_rng(seed, "attackers"))[
        :number
    ].tolist()
    logits, cards = votes.logits.clone(), list(votes.cards)
    junk = list(votes.junk)
    for me in chosen:
        lie = ATTACKERS[how](Scene(votes, chosen, me, torch_rng(seed, "attacker", me)))
        logits[me], cards[me] = lie.logits, lie.card
        if junk:
            junk[me] = lie.junk
    return replace(votes, logits=logits, cards=cards, junk=junk)


def without(votes: Votes, number: int, seed: int = 0) -> Votes:
    """The votes without the members that `attacked` replaces."""
    chosen = (
        torch.randperm(len(votes.cards), generator=torch_rng(seed, "attackers"))[number:]
        .sort()
        .values.tolist()
    )
    junk = [votes.junk[m] for m in chosen] if votes.junk else ()
    return replace(
        votes, logits=votes.logits[chosen], cards=[votes.cards[m] for m in chosen], junk=junk
    )
