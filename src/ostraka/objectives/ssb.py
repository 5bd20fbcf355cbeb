"""SSB: a good closed-set classifier is all you need? (Vaze et al., "Open-Set Recognition: A Good
Closed-Set Classifier is All You Need?", ICLR 2022; FedPD's tables call it SSB after its Semantic
Shift Benchmark.)

Cross-entropy with strong augmentation and label smoothing; the unknown score is minus the largest
*logit*, not probability, because softmax throws the length of the embedding away. RandAugment has
the authors' one operation an image at magnitude 6 of 30 (CIFAR-10; 8 for MNIST, 18 for SVHN), and
smoothing is 0, their choice for all three (0.9 for TinyImageNet).

The third part of the recipe is long training with a cosine schedule, which belongs to the budget:
`local.epochs=600 local.schedule=cosine local.lr=0.1`. Under averaging methods the schedule starts
anew with every round. Deviations: no warm-up and no restarts of the schedule; RandAugment as in
`data/augment/rand_augment.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.augmentation import augmentation, check_augment
from ostraka.core.kind import Kind
from ostraka.core.net import Net
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores
from ostraka.core.settings import setting
from ostraka.registry import OBJECTIVES

AUTO: Mapping[Kind, str] = {"image": "rand-augment", "table": "none", "sound": "rand-augment"}
"""The augmentation for each kind of sample."""


@final
@OBJECTIVES.add("ssb", "max-logit")
@dataclass(frozen=True)
class MaxLogit(Objective):
    """Cross-entropy of strongly augmented samples; unknown: minus the largest logit."""

    chunk: ClassVar[int] = 1024

    smoothing: float = setting(0.0, "label smoothing", span="[0, 1]")
    augment: str = setting(
        "auto", "augmentation on top of the data's own; auto: rand-augment for images, else none"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment != "auto":
            augmentation(self.augment)

    def check_samples(self, kind: Kind, shape: tuple[int, ...]) -> None:
        """The augmentation must suit the samples."""
        check_augment(self._chosen(kind), kind)

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Augmented samples."""
        return replace(batch, x=augmentation(self._chosen(batch.kind))(batch.x, rng))

    def _chosen(self, kind: Kind) -> str:
        return AUTO[kind] if self.augment == "auto" else self.augment

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Cross-entropy of one batch."""
        return F.cross_entropy(net(batch.x), batch.y, label_smoothing=self.smoothing)

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Logits; never answers unknown, but ranks."""
        logits = net(x)
        return Scores(logits, -logits.max(dim=1).values, float("inf"))
