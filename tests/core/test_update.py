"""The functional optimiser steps against torch's optimiser classes."""

from typing import Any

import pytest
import torch
from torch import nn

from ostraka.core.update import Update

CASES: dict[str, tuple[Any, dict[str, float]]] = {
    "sgd": (torch.optim.SGD, {"momentum": 0.0, "weight_decay": 0.01}),
    "sgd, momentum": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"weight_decay": 0.01}),
}


def parameters() -> list[nn.Parameter]:
    rng = torch.Generator().manual_seed(0)
    return [
        nn.Parameter(torch.randn(5, 3, generator=rng)),
        nn.Parameter(torch.randn(7, generator=rng)),
    ]


@pytest.mark.parametrize("case", CASES)
def test_equals_torch_over_many_steps_with_a_changing_rate(case: str) -> None:
    """The second parameter has no gradient at every third step:
    neither it nor its state may then move.
    """
    kind, options = CASES[case]
    ours, theirs = parameters(), parameters()
    update = Update(
        ours,
        "adam" if case == "adam" else "sgd",
        options.get("momentum", 0.0),
        options["weight_decay"],
    )
    optimiser = kind(theirs, lr=0.1, **options)
    rng = torch.Generator().manual_seed(1)
    for step in range(12):
        rate = 0.1 / (1 + step)
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=rng)
            other.grad = mine.grad.clone()
        if step % 3 == 0:
            ours[1].grad = theirs[1].grad = None
        update.step(rate)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
        if step == 5:  # as after an interruption
            again = Update(ours, update.kind, update.momentum, update.weight_decay)
            again.load(update.state())
            update = again
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
