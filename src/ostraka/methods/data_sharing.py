"""Data sharing (Zhao et al., "Federated Learning with Non-IID Data", 2018),
as FedOVA compares with it.

FedAvg whose parties also train on samples drawn from a labelled set that all may see: beta * |D_k|
of them for a party of |D_k| samples, drawn once and kept. Deviations: Zhao et al. give every party
the same share of the shared set and start from a model trained on it; FedOVA's text does neither,
and nor do we. The shared set is a part of the training data that is held back before the rest is
divided (`--shared`). Shared samples do not count in a party's weight.
"""

from dataclasses import dataclass
from typing import final

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
from ostraka.methods.averaging import PlainAveraging, report_of
from ostraka.registry import PRESETS, Preset


@final
@METHODS.add("data-sharing")
@dataclass(frozen=True)
class DataSharing(PlainAveraging):
    """FedAvg in which every party also trains on some labelled samples that all may see."""

    beta: float = setting(0.05, "shared samples of a party, as a share of its own", span="[0, inf)")

    @property
    def needs(self) -> Needs:
        """Labelled samples for all, unless none of them are used."""
        return Needs(shared=self.beta > 0)

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Params]:
        """Train the server's model on the party's and the shared samples; remember which ones."""
        shared, count = rnd.task.commons.shared, round(self.beta * len(party.samples))
        if shared is None or count == 0:
            return report_of(party, self.train(rnd, party, rnd.message))
        if count > len(shared):
            raise DataError(
                f"{party.ref} should get {count} shared samples ({self.beta:g} of its "
                f"{len(party.samples)}), but the shared set has {len(shared)}; hold back more "
                "(--shared) or set a smaller beta"
            )
        drawn = memory.get("shared")
        if drawn is None:
            drawn = torch.randperm(len(shared), generator=torch_rng(rnd.seed, "shared"))[:count]
        samples = joined(party.samples, shared.take(drawn))
        return report_of(
            party, self.train(rnd, party, rnd.message, samples=samples), {"shared": drawn}
        )


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
    PRESETS.add(f"data-sharing-{percent}")(
        Preset(
            "data-sharing",
            {"beta": percent / 100},
            f"FedAvg with {percent} % of shared samples at every party",
        )
    )
