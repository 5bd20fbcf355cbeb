"""FedVC (Hsu, Qi & Brown, "Federated Visual Classification with
Real-World Data Distribution", ECCV 2020).

FedAvg over virtual clients of equal size N_VC (256): in every round parties are drawn in
proportion to their size, each trains on `samples` of its samples, drawn anew (without repeats
where it has that many, else with repeats), and all count the same. Deviations: a party takes part
at most once in a round (drawn without repeats); with `fraction=1` all of them do, and only the
equal sizes are left of the method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from ostraka.contract import (
    METHODS,
    Memory,
    Params,
    Party,
    PartyRef,
    Report,
    Round,
    RoundBudget,
    setting,
    torch_rng,
)
from ostraka.methods.averaging import EACH_ROUND, PlainAveraging, card_of


@final
@METHODS.add("fedvc")
@dataclass(frozen=True)
class FedVC(PlainAveraging):
    """FedAvg over parties made equal in size and drawn in proportion to it."""

    local: RoundBudget = setting(
        replace(EACH_ROUND, epochs=5),
        "the parties' training; an epoch is a pass over `samples` samples",
    )
    samples: int = setting(256, "samples that each party trains on in a round", span="[1, inf)")

    def steps(self, counts: Tensor) -> int:
        """As of every method, on `samples` samples."""
        return self.local.steps_on(self.samples, int((counts > 0).sum()))

    def draw(self, roster: Sequence[PartyRef], index: int, seed: int) -> Sequence[PartyRef]:
        """As many parties as usual, each with a chance in proportion to its size, no repeats."""
        count = len(super().draw(roster, index, seed))
        if count == len(roster):
            return tuple(roster)
        sizes = torch.tensor([float(party.size) for party in roster])
        drawn = torch.multinomial(sizes, count, generator=torch_rng(seed, "draw by size", index))
        return tuple(roster[i] for i in sorted(drawn.tolist()))

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on a fixed number of the party's samples."""
        rows = virtual(len(party.samples), self.samples, torch_rng(rnd.seed, "virtual"))
        fitted = self.train(rnd, party, rnd.message, samples=party.samples.take(rows))
        return Report(fitted.params, 1.0, card_of(party, fitted))


def virtual(size: int, count: int, rng: torch.Generator) -> Tensor:
    """`count` of `size` positions: no two the same where there are enough,
    else each drawn among all.
    """
    if size >= count:
        return torch.randperm(size, generator=rng)[:count]
    return torch.randint(size, (count,), generator=rng)
