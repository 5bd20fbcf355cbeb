"""FedOV's local loss in plain torch: image by image, every term with a forward pass of its own."""

import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.speed import image_by_image
from benchmarks.speed.plain import SimpleCNN


def loss(net: SimpleCNN, x: Tensor, y: Tensor, steps: int, size: float) -> Tensor:
    """The loss of one batch: its images are destroyed and enhanced first."""
    form = torch.contiguous_format if x.is_contiguous() else torch.channels_last
    destroyed = image_by_image.destroy(x).contiguous(memory_format=form)
    return terms(net, x, y, destroyed, enhance(net, destroyed, steps, size))


def enhance(net: nn.Module, destroyed: Tensor, steps: int, size: float) -> Tensor:
    """Adversarial steps up the loss of the label unknown, gradients of all weights with them."""
    x = destroyed.clone()
    for _ in range(steps):
        x = x.detach().requires_grad_()
        logits = net(x)
        unknown = torch.full((len(x),), logits.shape[1] - 1)
        F.cross_entropy(logits, unknown).backward()
        assert x.grad is not None
        x = x + size * x.grad.sign()
    return x.detach()


def terms(net: SimpleCNN, x: Tensor, y: Tensor, destroyed: Tensor, enhanced: Tensor) -> Tensor:
    """Equation 1 of the paper and the two terms of outliers."""
    hidden = net.early(x)
    logits = net.late(hidden)
    outputs = logits.shape[1]
    unknown = torch.full_like(y, outputs - 1)
    total = F.cross_entropy(logits, y)
    total = total + F.cross_entropy(logits - 1e4 * F.one_hot(y, outputs), unknown)
    order, share = torch.randperm(len(y)), random.random()
    differs = y != y[order]
    if differs.any():
        mixed = share * hidden + (1 - share) * hidden[order]
        total = total + 0.01 * F.cross_entropy(net.late(mixed)[differs], unknown[differs])
    for outliers in (destroyed, enhanced):
        total = total + F.cross_entropy(net(outliers), unknown)
    return total
