"""Cover: a few members that know every class, and each class about equally well.

Where parties hold two classes in ten, a team fails by the class that nobody in it knows, or that a
single weak member speaks for; clusters of similar weights do not see that. Here what a member knows
of each class is measured, and members are added one by one, always the one that adds most to

    sum over classes of sqrt(sum over the team of what a member knows of the class).

The root makes a second member for a class worth less than a first one for another: what is gained
by one more member only falls as the team grows, and adding the best one each time then reaches at
least 63 % of what the best team could (Nemhauser, Wolsey & Fisher 1978).

What a member knows of a class: with public samples, how far those that it gives the class and those
that the vote of all gives it are the same (Dice: 1 the same, 0 no overlap), so that whoever claims
everything knows little; else its share of all samples of the class, where parties tell counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.settings import setting
from ostraka.errors import ConfigError
from ostraka.registry import SELECTORS
from ostraka.voting.ballots import Votes
from ostraka.voting.calibrated import any_counts, spread_counts, uncounted
from ostraka.voting.choice import Choice
from ostraka.voting.inspection import team_answers
from ostraka.voting.selectors import Pool, Selector, Size
from ostraka.voting.sizing import asked, covering, size_by_votes, sizes_to_try


@final
@SELECTORS.add("cover")
@dataclass(frozen=True)
class Cover(Selector):
    """Members that together know all classes vote, added one by one (ours)."""

    size: Size = setting(
        "auto",
        "members that vote; auto: the fewest that answer public samples as all do, or half",
        span="[1, inf)",
    )
    by: Literal["auto", "answers", "counts"] = setting(
        "auto",
        "what shows which classes a member knows: its answers to public samples, or the class "
        "counts that its party tells; auto: answers where there are public samples",
    )

    def choose(self, pool: Pool) -> Choice:
        """The first `size` members in the order in which they add most."""
        public = pool.public is not None and len(pool.public) > 0
        if self.by == "answers" and not public:
            raise ConfigError(
                "the selector cover looks at answers to public samples (select.by=answers), and "
                "there are none; give some (--public), or use select.by=counts where parties tell "
                "class counts (tell=counts)"
            )
        by_answers = public and self.by != "counts"
        votes = asked(pool) if by_answers or (public and self.size == "auto") else None
        known = known_by_answers(votes, pool) if votes and by_answers else known_by_counts(pool)
        order, gains = added_in_turn(known, pool.lots())
        count, notes = len(pool.members), [f"by {'answers' if by_answers else 'class counts'}"]
        if not by_answers:
            silent = ("no member discloses class counts, so the largest come first",)
            notes.extend(uncounted(pool.cards) if any_counts(pool.cards) else silent)
        if self.size == "auto":
            teams = covering(pool, {tried: order[:tried] for tried in sizes_to_try(count)})
            size, words = min((n for n in teams if 2 * n >= count), default=count), "half or more"
            if votes:
                size, words = size_by_votes(votes, pool.ballot, teams)
            notes.append(f"size {size}: {words}")
        else:
            size = min(self.size, count)
            if self.size > count:
                notes.append(f"{self.size} were asked for, {count} are there: all of them vote")
        why = [""] * count
        for place, (member, gain) in enumerate(zip(order, gains, strict=True), 1):
            best = pool.classes[int(known[member].argmax())]
            why[member] = f"place {place} of {count}, adds {gain:.3g}; knows {best} best"
        return Choice(tuple(sorted(order[:size])), tuple(why), notes=tuple(notes))


@torch.no_grad()
def known_by_answers(votes: Votes, pool: Pool) -> Tensor:
    """[M, K]: overlap of the public samples that a member and the vote of all give a class."""
    outputs, everybody = votes.logits.shape[2], range(len(pool.members))
    whole = F.one_hot(team_answers(votes, pool.ballot, everybody, votes), outputs).float()
    each = F.one_hot(votes.logits.argmax(dim=2), outputs).float()
    both, sizes = torch.einsum("mbk,bk->mk", each, whole), each.sum(dim=1) + whole.sum(dim=0)
    classes = len(pool.classes)  # behind them: unknown
    return (2 * both / sizes.clamp(min=1))[:, :classes].double().cpu()


def known_by_counts(pool: Pool) -> Tensor:
    """[M, K]: a party's share of all samples of a class; who discloses no counts is taken to have
    its samples spread evenly over the classes that it knows.
    """
    cards = pool.cards
    knows = torch.tensor([[name in m.model.classes for name in pool.classes] for m in pool.members])
    counts = spread_counts(cards, knows.double())
    return counts / counts.sum(dim=0).clamp(min=1)


def added_in_turn(known: Tensor, lots: Sequence[int]) -> tuple[list[int], list[float]]:
    """All members in the order in which each adds most to those before it, and what it adds.

    Equal ones go by lot.
    """
    have = torch.zeros(known.shape[1], dtype=known.dtype)
    left, order, gains = list(range(len(known))), list[int](), list[float]()
    while left:
        worth = ((have + known[left]).sqrt() - have.sqrt()).sum(dim=1).tolist()
        gain, _, member = max(
            (round(own, 12), -lots[i], i) for own, i in zip(worth, left, strict=True)
        )
        left.remove(member)
        order.append(member)
        gains.append(gain)
        have += known[member]
    return order, gains
