"""The state of a one-shot method: the members that arrived, and what the server found of them."""

from dataclasses import dataclass

from ostraka.core.card import Card
from ostraka.core.net import Params
from ostraka.core.wire import wire
from ostraka.voting.choice import Choice


@wire("member/1")
@dataclass(frozen=True)
class Seat:
    """One place of a panel: a member's card and weights.

    What they are weights of, the task says.
    """

    card: Card
    params: Params


@wire("panel/1")
@dataclass(frozen=True)
class Panel:
    """What a one-shot method keeps: the members that arrived, in the order of their parties."""

    members: tuple[Seat, ...] = ()
    tuned: tuple[float, ...] = ()
    """What the ballot found on public samples, one number per member that votes."""
    seed: int = 0
    student: Params | None = None
    """One network distilled from the vote; it then answers in the members' place."""
    junk: tuple[float, ...] = ()
    """What the members make of junk probes, one number per member that votes,
    where the ballot asked for it.
    """
    choice: Choice | None = None
    """Who votes; None: everybody."""

    @property
    def voters(self) -> tuple[Seat, ...]:
        """The members that vote."""
        if self.choice is None:
            return self.members
        return tuple(self.members[i] for i in self.choice.chosen)
