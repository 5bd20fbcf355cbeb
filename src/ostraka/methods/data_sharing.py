"""Data sharing (Zhao et al., "Federated Learning with Non-IID Data", 2018),
as FedOVA compares with it.

FedAvg whose parties also train on labelled samples that all may see. FedOVA's section V-C: the
server draws one set D_s at random from the data as a whole, of size beta |D_k|, and sends that set
to every client. The draw is the run's, made once by its seed; |D_k|, which the paper writes as if
all parties held the same number, is their mean size. `sets="each"` has every party draw its own
beta |D_k| samples from all that was held back, and keep them. Deviations: Zhao et al. give every
party a random share of the shared set and start from a model trained on it; FedOVA's text does
neither, and nor do we. The shared set is a part of the training data that is held back before the
rest is divided (`--shared`). Shared samples do not count in a party's weight.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch

from ostraka.contract import (
    METHODS,
    DataError,
    Memory,
    Needs,
    Params,
    Party,
    Report,
    Round,
    Samples,
    setting,
    torch_rng,
)
from ostraka.core.equip import share_of
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.methods.training import preset


@final
@METHODS.add("data-sharing")
@dataclass(frozen=True)
class DataSharing(PlainAveraging):
    """FedAvg in which every party also trains on some labelled samples that all may see."""

    beta: float = setting(
        0.05, "size of the shared set, as a share of a party's samples", span="[0, inf)"
    )
    sets: Literal["one", "each"] = setting(
        "one", "one: the same shared samples for all parties; each: every party draws its own"
    )

    @property
    def needs(self) -> Needs:
        """Labelled samples for all, unless none of them are used."""
        return Needs(shared=self.beta > 0, share=self.beta if self.sets == "one" else 0.0)

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on the party's and the shared samples."""
        shared, kept = rnd.task.commons.shared, dict[str, torch.Tensor]()
        if shared is None or not self.beta:
            return report_of(party, self.train(rnd, party, rnd.message))
        if self.sets == "each":
            size, rng = len(party.samples), torch_rng(rnd.seed, "shared")
            drawn = share_of(shared, self.beta, size, f"{party.ref} has {size} samples", rng)
            kept = {"shared": memory.get("shared", drawn)}
            shared = shared.take(kept["shared"])
        fitted = self.train(rnd, party, rnd.message, samples=joined(party.samples, shared))
        return report_of(party, fitted, kept)


def joined(own: Samples, more: Samples) -> Samples:
    """Both as one, in storage of its own."""
    if own.view != more.view:
        raise DataError(
            f"the shared samples are read as {more.view}, "
            f"the party's own as {own.view}; use one view"
        )
    more = more.to(own.x.device)
    x = torch.cat([own.stored(), more.stored()])
    return Samples(x, torch.cat([own.labels, more.labels]), view=own.view)


for percent in (5, 10):
    preset(
        "data-sharing",
        f"data-sharing-{percent}",
        f"FedAvg with {percent} % of shared samples at every party",
        beta=percent / 100,
    )
