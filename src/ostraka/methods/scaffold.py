"""SCAFFOLD (Karimireddy et al., ICML 2020): "Stochastic Controlled Averaging for Federated
Learning".

Algorithm 1 with option II and a server step of 1. Party i keeps a control variate c_i, the server
their mean c; local gradients are corrected by c - c_i, and after K steps with learning rate lr

    c_i <- c_i - c + (w_server - w_i) / (K lr)
    w   <- mean of the w_i
    c   <- c + sum_i (change of c_i) / N

All controls begin at 0, so the first round is FedAvg with equal weights. The formula of c_i
needs plain SGD: momentum and Adam are refused. Weight decay is allowed: it is part of the local
loss and so of the controls. The default learning rate is the largest tried that does not diverge
under label skew (docs/results/baselines.md); equal class shares bear ten times as much.
Deviations: with a changing learning rate, K lr is the sum of the rates; parties are numbered
from 0, and the number N of all of them is taken from the largest number that ever reported,
which with partial participation may fall short in the first rounds; what gradients do not move
(batch norm's running means) is averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import final

import torch
from torch import Tensor

from ostraka.contract import (
    METHODS,
    ConfigError,
    Memory,
    Net,
    Params,
    Party,
    PartyRef,
    Report,
    Round,
    RoundBudget,
    Task,
    check_kind,
    check_tensors,
    setting,
    wire,
)
from ostraka.core.learning import Penalty
from ostraka.core.params import average
from ostraka.methods.averaging import EACH_ROUND, ModelMethod, card_of


@wire("scaffold.controlled/1")
@dataclass(frozen=True)
class Controlled:
    """A model and controls: the server's model and c,
    or a party's model and the change of its c_i; {} stands for 0.
    """

    params: Params
    control: Params = field(default_factory=dict)


@wire("scaffold.controls/1")
@dataclass(frozen=True)
class Controls:
    """What the server keeps: what it sends, the sum of all parties' controls,
    and how many parties there are.
    """

    sent: Controlled
    total: Params = field(default_factory=dict)
    parties: int = 0


@final
@METHODS.add("scaffold")
@dataclass(frozen=True)
class Scaffold(ModelMethod[Controls, Controlled, Controlled]):
    """FedAvg with gradients corrected for how far each party's differ from the others'."""

    local: RoundBudget = setting(
        replace(EACH_ROUND, momentum=0.0),
        "the parties' training: plain sgd, without momentum",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.local.optimiser != "sgd" or self.local.momentum != 0:
            raise ConfigError(
                "scaffold's controls hold for plain sgd; local.optimiser is "
                f"{self.local.optimiser} and local.momentum is {self.local.momentum}: set sgd and 0"
            )

    def init(self, task: Task, seed: int) -> Controls:
        """A random model, or the commons' "start"; no controls."""
        return Controls(Controlled(self.first_model(task, seed)))

    def model(self, state: Controls) -> Params:
        """The server's model."""
        return state.sent.params

    def sent(self, payload: Controlled) -> Params:
        """The party's model."""
        check_kind(payload, Controlled)
        return payload.params

    def inspect(self, task: Task, report: Report[Controlled]) -> None:
        """As every report, and a change of controls must be one for what is trained."""
        super().inspect(task, report)
        params, control = report.payload.params, report.payload.control
        if control != {}:  # stands for 0
            trained = {name: params[name] for name in self.trained_names(task)}
            check_tensors(control, trained, "the controls")

    def message(self, state: Controls, party: PartyRef) -> Controlled:
        """The server's model and c."""
        return state.sent

    def local_update(
        self, rnd: Round[Controlled], party: Party, memory: Memory
    ) -> Report[Controlled]:
        """Train with corrected gradients; keep the new c_i, send its change."""
        local, start, old = self.local_in(rnd), rnd.message.params, memory.get("control", {})
        correction = minus(rnd.message.control, old)
        penalty = corrected(correction) if correction else None
        fitted = self.train(rnd, party, start, penalty=penalty)
        rates = fsum(local.rate(step / fitted.steps) for step in range(fitted.steps))
        if not rates:
            return Report(Controlled(fitted.params), 1.0, card_of(party, fitted), memory)
        names = self.trained_names(rnd.task)
        gradient = {n: (start[n].double() - fitted.params[n].double()) / rates for n in names}
        new = {n: t.to(start[n].dtype) for n, t in minus(gradient, correction).items()}
        sent = Controlled(fitted.params, minus(new, old))
        return Report(sent, 1.0, card_of(party, fitted), {"control": new})

    def aggregate(
        self, task: Task, state: Controls, reports: Sequence[Report[Controlled]]
    ) -> Controls:
        """The mean model, and c as the mean of all parties' controls."""
        params = average((r.payload.params, 1.0) for r in reports)
        total, parties = state.total, state.parties
        for report in reports:
            total = plus(total, report.payload.control)
            parties = max(parties, report.card.party + 1)
        control = {n: (tensor / parties).to(params[n].dtype) for n, tensor in total.items()}
        return Controls(Controlled(params, control), total, parties)


def corrected(correction: Params) -> Penalty:
    """<correction, w>, whose gradient is the correction itself; tensors it lacks are left alone."""

    def term(net: Net) -> Tensor:
        own = dict(net.named_parameters())
        parts = [(own[n] * value.to(own[n].device)).sum() for n, value in correction.items()]
        return torch.stack(parts).sum()

    return term


def minus(a: Params, b: Params) -> Params:
    """a - b; a tensor that one side lacks is 0 there."""
    return plus(a, {name: -tensor for name, tensor in b.items()})


def plus(a: Params, b: Params) -> Params:
    """a + b; a tensor that one side lacks is 0 there."""
    return {
        n: a[n] + b[n] if n in a and n in b else a[n] if n in a else b[n] for n in sorted({*a, *b})
    }
