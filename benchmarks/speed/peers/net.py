"""The network that all frameworks train."""

import torch.nn.functional as F
from torch import Tensor

from benchmarks.speed.plain import SimpleCNN
from benchmarks.speed.rounds import SHAPE

SGD = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-5}


class BytesCNN(SimpleCNN):
    """The simple CNN of images that are stored as bytes."""

    def __init__(self) -> None:
        super().__init__(SHAPE)

    def forward(self, x: Tensor) -> Tensor:
        """Bytes to logits."""
        return super().forward(x.float() / 255)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Cross-entropy of a batch."""
        return F.cross_entropy(self(x), y)
