"""Adversarial outlier enhancement: outliers moved towards what the network
takes for known (FedOV, section 3.5).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ostraka.core.net import Net
from ostraka.nets.layered import Layered
from ostraka.nets.native import Climb


def enhance(
    net: Net,
    outliers: Tensor,
    steps: int = 5,
    size: float = 0.002,
    clamp: tuple[float, float] | None = None,
    gradient: Tensor | None = None,
) -> Tensor:
    """Enhanced copies of `outliers`: `steps` times x <- x + size * sign(d/dx CE(f(x), unknown)).

    This climbs the loss of the label unknown, so the outliers look more and more known. `gradient`
    is the one at the start, if the caller has it already (only its signs count); it saves the first
    pass. `clamp` keeps the values in a range; the authors' code does not. The network answers in
    eval mode and is left as it was.
    """
    x = outliers.detach()
    call = net.native_call(x) if gradient is None and isinstance(net, Layered) else None
    if call is not None:
        return call.climbed(x, Climb(steps, size, clamp))
    if steps > 0 and gradient is not None:
        x = _step(x, gradient, size, clamp)
        steps -= 1
    if steps > 0:
        with bystander(net):
            for _ in range(steps):
                x = _step(x, net.input_gradient(x, _error), size, clamp)
    return x


def _error(logits: Tensor) -> Tensor:
    """The gradient of CE(f(x), unknown) in the logits,
    for each sample by itself: softmax - one-hot.

    Writing it down spares the loss and its backward pass,
    which cost as much as a layer in small networks.
    """
    error = logits.softmax(dim=1)
    error[:, -1] -= 1
    return error


def _step(x: Tensor, gradient: Tensor, size: float, clamp: tuple[float, float] | None) -> Tensor:
    # Written over the signs, not into a copy of x: the result has the memory order in which the
    # network gave its gradient and so likes its inputs.
    moved = gradient.sign()
    torch.add(x, moved, alpha=size, out=moved)
    return moved if clamp is None else moved.clamp_(*clamp)


@contextmanager
def bystander(net: Net) -> Iterator[None]:
    """The network in eval mode and without parameter gradients, then exactly as before.

    Asking autograd for the gradient of x alone already spares torch's own layers the parameter
    gradients, but not a layer with a hand-written backward: its `needs_input_grad` follows
    `requires_grad` only.
    """
    trained = [p for p in net.parameters() if p.requires_grad]
    training = [m for m in net.modules() if m.training]
    try:
        net.eval()
        for parameter in trained:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
        for module in training:
            module.training = True
