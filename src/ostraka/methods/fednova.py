"""FedNova (Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated
Optimization", NeurIPS 2020).

Algorithm 1, for SGD with momentum rho. A party that makes tau steps changes its
model by about a times its gradient,

    a_i = (tau_i - rho (1 - rho^tau_i) / (1 - rho)) / (1 - rho),    d_i = (w - w_i) / a_i,
    w <- w - (sum_i p_i a_i) * sum_i p_i d_i,

so parties with more steps no longer pull harder than their size p_i says. Deviations: a party sends
its model and its number of steps, from which the server makes d_i (the same bytes); what gradients
do not move (batch norm's running means and counters) is averaged as in FedAvg; Adam and a changing
learning rate are refused, since a_i does not hold for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch

from ostraka.contract import (
    METHODS,
    ConfigError,
    Memory,
    OstrakaError,
    Params,
    Party,
    Report,
    ReportRefused,
    Round,
    Task,
    check_kind,
    setting,
    wire,
)
from ostraka.core.params import average
from ostraka.methods.averaging import PlainModel, Weights, card_of, weight_of


@wire("fednova.stepped/1")
@dataclass(frozen=True)
class Stepped:
    """A trained model and the optimiser steps that led to it."""

    params: Params
    steps: int


@final
@METHODS.add("fednova")
@dataclass(frozen=True)
class FedNova(PlainModel[Stepped]):
    """FedAvg with every party's change divided by how much its steps amount to."""

    weights: Weights = setting("size", "weigh parties by size, or all the same", server=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.local.optimiser != "sgd" or self.local.schedule != "constant":
            raise ConfigError(
                f"fednova's weights hold for sgd with a constant learning rate; local.optimiser is "
                f"{self.local.optimiser} and local.schedule is {self.local.schedule}"
            )

    def sent(self, payload: Stepped) -> Params:
        """The party's model."""
        check_kind(payload, Stepped)
        return payload.params

    def inspect(self, task: Task, report: Report[Stepped]) -> None:
        """As every report, and its steps must be a number: below 0 they would turn its change."""
        super().inspect(task, report)
        steps = report.payload.steps
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise ReportRefused(f"it says that it made {steps!r} steps; it must be a number from 0")

    def local_update(self, rnd: Round[Params], party: Party, memory: Memory) -> Report[Stepped]:
        """Train the server's model and count the steps."""
        fitted = self.train(rnd, party, rnd.message)
        sent = Stepped(fitted.params, fitted.steps)
        return Report(sent, float(len(party.samples)), card_of(party, fitted))

    def aggregate(self, task: Task, state: Params, reports: Sequence[Report[Stepped]]) -> Params:
        """The server's model moved by the mean of the normalised changes."""
        total = sum(weight_of(r, self.weights) for r in reports)
        if total <= 0:
            raise OstrakaError("nothing to average: no report arrived, or all weights are zero")
        moved = self.trained_names(task)
        change = {name: torch.zeros(state[name].shape, dtype=torch.float64) for name in moved}
        amount, others = 0.0, []
        for report in reports:
            sent, share = report.payload, weight_of(report, self.weights) / total
            steps = effective_steps(sent.steps, self.local.momentum)
            amount += share * steps
            for name in moved if steps else ():
                change[name] += share / steps * (state[name].double() - sent.params[name].double())
            others.append(({n: t for n, t in sent.params.items() if n not in change}, share))
        mean = average(others)
        return {
            n: (t.double() - amount * change[n]).to(t.dtype) if n in change else mean[n]
            for n, t in state.items()
        }


def effective_steps(steps: int, momentum: float) -> float:
    """a: the gradients that `steps` steps with this momentum add up, counted with their weights."""
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
