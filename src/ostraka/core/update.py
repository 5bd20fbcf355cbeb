"""Optimiser steps, by torch's functional SGD and Adam.

Torch's optimiser classes do the same with checks and hooks around every step, which takes longer
than the step itself for a network of 60,000 weights.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Adam's usual constants."""


class Update:
    """The optimiser of some parameters, with its state."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        kind: Literal["sgd", "adam"],
        momentum: float,
        weight_decay: float,
    ) -> None:
        self.parameters, self.kind = list(parameters), kind
        self.momentum, self.weight_decay = momentum, weight_decay
        # One kernel for a whole tensor: a quarter of the time that several operations take.
        self.fused = all(p.device.type in ("cpu", "cuda") for p in self.parameters)
        self.buffers: list[dict[str, Tensor]] = [{} for _ in self.parameters]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Move every parameter that has a gradient."""
        for parameter, buffers in zip(self.parameters, self.buffers, strict=True):
            if parameter.grad is not None:
                (self._adam if self.kind == "adam" else self._sgd)(
                    parameter, parameter.grad, buffers, lr
                )

    def _adam(self, parameter: Tensor, grad: Tensor, buffers: dict[str, Tensor], lr: float) -> None:
        if not buffers:
            buffers.update(
                exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter)
            )
            buffers["step"] = torch.zeros((), device=parameter.device)
        adam(
            [parameter],
            [grad],
            [buffers["exp_avg"]],
            [buffers["exp_avg_sq"]],
            [],
            [buffers["step"]],
            foreach=False,
            fused=self.fused,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=lr,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            maximize=False,
        )

    def _sgd(self, parameter: Tensor, grad: Tensor, buffers: dict[str, Tensor], lr: float) -> None:
        velocity = [buffers.get("momentum_buffer")]
        sgd(
            [parameter],
            [grad],
            velocity,
            foreach=False,
            fused=self.fused,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        if velocity[0] is not None:
            buffers["momentum_buffer"] = velocity[0]

    def state(self) -> dict[str, dict[str, Tensor]]:
        """The optimiser's tensors, by number of the parameter."""
        return {str(i): dict(buffers) for i, buffers in enumerate(self.buffers)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state, on the parameters' device."""
        self.buffers = [
            {name: tensor.to(parameter.device) for name, tensor in state[str(i)].items()}
            for i, parameter in enumerate(self.parameters)
        ]
