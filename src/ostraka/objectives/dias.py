"""DIAS: unknowns of graded difficulty (Moon et al., "Difficulty-Aware Simulator for Open Set
Recognition", ECCV 2022).

Three kinds of fakes train the classifier F, which learns to be undecided about them.
With CE_s(o, y) the cross-entropy whose target is 1 - s for the true class plus s spread
over all classes (s = 1: undecided):

* moderate: samples G(z) of a generator that fools a discriminator and looks *known* to the
  classifier: G minimises -log D(G(z)) - beta CE_1(F(G(z))). F minimises beta CE_1(F(G(z))).
* hard: hidden values of the copycat C, a second network of the same kind that learns the same
  classes while its hidden values early(x) are pulled towards the classifier's: C minimises CE(C(x),
  y) + w_pull |early_C(x) - early_F(x)|, the mean over all values. F goes on from there and
  minimises CE_hard(late_F(early_C(x)), y).
* easy: embeddings of the copycat, which nothing pulls, so that they mean little to the classifier's
  last layer: F minimises CE_1(head_F(embed_C(x))).

    F:  min  CE(F(x), y) + beta CE_1(F(G(z))) + w_copycat/2 (CE_1(easy) + CE_hard(hard, y))

The unknown score is minus the largest probability. Written after the abstract and the authors'
code; deviations: the code pulls and continues from two depths, our networks have one cut; in the
code the generator's and the copycat's terms take turns (an epoch each), here one step has both; the
copycat has an Adam of its own (`copycat_lr`), where the code uses the classifier's kind of
optimiser; generated samples have batch norm statistics, but no scale and shift, of their own, and
so do the copycat's hidden values; generator and discriminator as in `gan.py`.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.net import Net
from ostraka.core.objective import Batch, Helper, Objective
from ostraka.core.settings import setting
from ostraka.objectives.adversarial import bystander
from ostraka.objectives.gan import FAKES, Gan, Trainee, auxiliary_norm, gan_parts
from ostraka.registry import OBJECTIVES

HARD, EASY = "hard", "easy"
"""The copycat's hidden values and embeddings in a batch that passed the helper."""


@final
@OBJECTIVES.add("dias")
@dataclass(frozen=True)
class DIAS(Objective):
    """CE and being undecided about generated samples, a copycat's hidden values and its embeddings.

    A batch that no helper has seen (a loss asked for outside training) has no fakes,
    and its loss is cross-entropy.
    """

    beta: float = setting(
        0.1, "weight of generated samples (moderate), for classifier and generator", span="[0, inf)"
    )
    w_copycat: float = setting(
        0.1, "weight of the copycat's hidden values (hard) and embeddings (easy)", span="[0, inf)"
    )
    w_pull: float = setting(
        1.0, "copycat: weight of its hidden values being the classifier's", span="[0, inf)"
    )
    smoothing: float = setting(
        0.5, "share of the hard fakes' labels that is spread over all classes", span="[0, 1]"
    )
    gan_lr: float = setting(
        0.0002, "learning rate of generator and discriminator (Adam)", span="(0, inf)"
    )
    copycat_lr: float = setting(0.001, "learning rate of the copycat (Adam)", span="(0, inf)")
    width: int = setting(8, "channels of generator and discriminator", span="[1, inf)")
    share: bool = setting(
        False,
        "generator, discriminator and copycat travel and average with the network; "
        "false: each training has own",
    )

    def attach(self, net: Net) -> None:
        """Generator, discriminator and copycat, if they travel."""
        if self.share:
            net.objective = self._parts(net)

    def _parts(self, net: Net) -> nn.ModuleDict:
        parts = gan_parts(net, self.width)
        parts["copycat"] = copycat_of(net)
        return parts

    def helper(self, net: Net) -> Helper:
        """The simulator in training."""
        parts = net.get_submodule("objective") if self.share else self._parts(net)
        gan = Gan(parts, self.gan_lr, lambda net, fakes: -self.beta * undecided(net(fakes)))
        return Simulator(gan, parts.get_submodule("copycat"), self.copycat_lr, self.w_pull)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """The classifier's loss of one batch."""
        loss = F.cross_entropy(net(batch.x), batch.y)
        with auxiliary_norm(net):
            if FAKES in batch.extra and self.beta:
                loss = loss + self.beta * undecided(net(batch.extra[FAKES]))
            if HARD in batch.extra and self.w_copycat:
                hard = F.cross_entropy(
                    net.late(batch.extra[HARD]), batch.y, label_smoothing=self.smoothing
                )
                loss = loss + self.w_copycat / 2 * (undecided(net.head(batch.extra[EASY])) + hard)
        return loss


@final
class Simulator(Helper):
    """Generator, discriminator and copycat."""

    def __init__(self, gan: Gan, copycat: nn.Module, lr: float, pull: float) -> None:
        assert isinstance(copycat, Net)
        self.gan, self.twin, self.pull = gan, copycat, pull
        self.copycat = Trainee(copycat, lr)

    def step(self, net: Net, batch: Batch, rng: torch.Generator) -> Batch:
        """One step of each; the batch with the three kinds of fakes."""
        batch = self.gan.step(net, batch, rng)
        with bystander(net), torch.no_grad():
            model = net.early(batch.x)
        self.twin.train()
        with self.copycat.awake():
            hidden = self.twin.early(batch.x)
            loss = F.cross_entropy(self.twin.late(hidden), batch.y)
            self.copycat.descend(loss + self.pull * F.l1_loss(hidden, model))
        with torch.no_grad():
            hard = self.twin.eval().early(batch.x)
            easy = self.twin.embed_late(hard)
        return batch.adding(**{HARD: hard, EASY: easy})

    def state(self) -> dict[str, Any]:
        """All three networks and their optimisers."""
        return {"gan": self.gan.state(), "copycat": self.copycat.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.gan.load(state["gan"])
        self.copycat.load(state["copycat"])


def copycat_of(net: Net) -> Net:
    """A network of the same kind with other first weights, without gradients."""
    twin = deepcopy(net)
    for module in twin.modules():
        fresh = getattr(module, "reset_parameters", None)
        if fresh is not None:
            fresh()
    return twin.requires_grad_(False)


def undecided(logits: Tensor) -> Tensor:
    """CE_1: the mean cross-entropy of the target that gives every class the same share;
    least where all are alike.
    """
    return -logits.log_softmax(dim=1).mean()
