"""OpenMax (Bendale & Boult, "Towards Open Set Deep Networks", CVPR 2016).

Training is plain cross-entropy. Afterwards (Algorithm 1) every class gets its mean activation
vector mu over correctly classified samples, the logits being the activations, and a Weibull
distribution of the `tail` largest distances to mu. To answer (Algorithm 2), the `alpha` largest
logits v are reduced by how far the sample lies out in their class's tail, and what they lose
becomes the logit of unknown; i is the rank, 1 for the largest:

    w_k = 1 - exp(-((||v - mu_k|| - tau_k) / lambda_k)^kappa_k)      0 below tau_k
    v_k <- v_k - c_k,   c_k = (alpha + 1 - i)/alpha w_k max(v_k, 0),   v_unknown = sum_k c_k

Readings and deviations: distances are Euclidean; as in the authors' library, tau is 1 below the
smallest value of the tail; as in their code, the largest logit is reduced in full (the paper has
(alpha - i)/alpha, so that with alpha = 1 nothing would be); a negative logit is left alone, because
multiplying it, as the paper writes, would raise it; `alpha` is cut to the number of classes.

Label skew: a tail has at most a fifth of a class's correct samples, so that of a class
with few samples not all are extreme (with 25 of them and a tail of 20, nearly every test
sample was far out). A class of which a party has fewer than three correct samples is not
measured there. A class that nobody measured counts as far away (w = 1), so that no member
vouches for a class it does not know.

Averaging: what is stored is each statistic *times the class's share* of correct samples among the
party's samples, and that share. The plain mean of these tensors, weighted by the parties' sizes,
then holds sums over all correct samples, and their quotient is the mean over them: for mu, exactly
the mean activation vector of all parties' samples; for the tail, the mean of tau, of log lambda and
of 1/kappa, which is the mean of the logarithmic quantiles. These are statistics of the parties' own
models; of the averaged one they are as good an image as the parties agree.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ostraka.core.learner import CHUNK
from ostraka.core.net import Net, Params
from ostraka.core.objective import Batch, Objective
from ostraka.core.predictor import Scores, open_scores
from ostraka.core.samples import Samples
from ostraka.core.settings import setting
from ostraka.registry import OBJECTIVES

FEWEST = 3
"""Correct samples of a class below which it is not measured."""
PER_TAIL = 5
"""A tail holds at most one of so many correct samples."""
SHAPES = (1e-2, 1e3)
"""Range of kappa; a tail of equal distances would have none."""


class Tails(nn.Module):
    """Of each class: its share of correct samples,
    and its mean activations and tail, both times that share.
    """

    share: Tensor
    means: Tensor
    tails: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("share", torch.zeros(classes))
        self.register_buffer("means", torch.zeros(classes, classes))
        self.register_buffer("tails", torch.zeros(classes, 3))

    def distrust(self, logits: Tensor) -> Tensor:
        """w of every sample and class [B, K]: how far out in the class's tail the
        sample lies; 1: not of this class.
        """
        share = self.share.clamp(min=torch.finfo(self.share.dtype).tiny).unsqueeze(1)
        shift, scale, slack = (self.tails / share).unbind(dim=1)
        distance = (logits.unsqueeze(1) - self.means / share).norm(dim=2)
        shape = 1 / slack.clamp(min=1 / SHAPES[1])
        beyond = ((distance - shift).clamp(min=0) / scale.exp()) ** shape
        return torch.where(self.share > 0, -torch.expm1(-beyond), torch.ones_like(beyond))


@final
@OBJECTIVES.add("openmax")
@dataclass(frozen=True)
class OpenMax(Objective):
    """Cross-entropy; afterwards a Weibull tail for each class,
    by which the largest logits are reduced.
    """

    tail: int = setting(
        20,
        "largest distances of a class, at most a fifth of all, that make its Weibull tail",
        span=f"[{FEWEST}, inf)",
    )
    alpha: int = setting(
        10, "largest logits that are reduced; at most the number of classes", span="[1, inf)"
    )

    @property
    def refuses(self) -> bool:
        """Yes, though its network has no unknown output: what the largest logits lose is one."""
        return True

    def attach(self, net: Net) -> None:
        """Room for the statistics; all zero: nothing measured."""
        net.objective = Tails(net.classes).to(next(net.parameters()).device)

    def loss(self, net: Net, batch: Batch, rng: torch.Generator) -> Tensor:
        """Cross-entropy of one batch."""
        return F.cross_entropy(net(batch.x), batch.y)

    def statistics(self, net: Net, samples: Samples) -> Params:
        """Mean activations and tails of the classes (Algorithm 1)."""
        parts = [net(part.inputs()) for part in samples.chunks(CHUNK)]
        measured = measure(torch.cat(parts), samples.labels, self.tail)
        return {f"objective.{name}": tensor for name, tensor in measured.items()}

    def scores(self, net: Net, x: Tensor) -> Scores:
        """Reduced logits, and unknown (Algorithm 2)."""
        logits = net(x)
        own = net.objective
        assert isinstance(own, Tails)
        alpha = min(self.alpha, net.classes)
        by_rank = torch.arange(alpha, 0, -1, device=logits.device).to(logits) / alpha
        order = logits.topk(alpha, dim=1).indices
        factor = torch.zeros_like(logits).scatter(1, order, by_rank.expand(len(logits), -1))
        lost = factor * own.distrust(logits) * logits.relu()
        return open_scores(torch.cat([logits - lost, lost.sum(dim=1, keepdim=True)], dim=1))


def measure(logits: Tensor, y: Tensor, tail: int) -> Params:
    """The tensors of `Tails` from the logits of labelled samples."""
    classes = logits.shape[1]
    right = logits.argmax(dim=1) == y
    share, means = torch.zeros(classes), torch.zeros(classes, classes)
    tails = torch.zeros(classes, 3)
    for label in range(classes):
        own = logits[right & (y == label)].double()
        if len(own) < FEWEST:
            continue
        mean = own.mean(dim=0)
        size = max(FEWEST, min(tail, len(own) // PER_TAIL))
        largest = (own - mean).norm(dim=1).topk(size).values
        shift = largest[-1] - 1
        shape, scale = fit_weibull(largest - shift)
        share[label] = len(own) / len(logits)
        means[label] = (share[label] * mean).float()
        tails[label] = share[label] * torch.stack([shift, scale.log(), 1 / shape]).float()
    return {"share": share, "means": means, "tails": tails}


def fit_weibull(values: Tensor) -> tuple[Tensor, Tensor]:
    """Shape and scale of the Weibull distribution that makes positive `values` [N] most likely.

    The shape k solves sum x^k log x / sum x^k - 1/k = mean log x, whose left side grows with k;
    then scale^k is the mean of x^k. Found by bisection of log k within SHAPES; values that are all
    equal give the largest shape.
    """
    logs = values.double().log()
    # powers of numbers up to 1 cannot overflow; the scale takes it back
    logs, top = logs - logs.max(), logs.max()
    low, high = (torch.tensor(s, dtype=torch.double, device=logs.device).log() for s in SHAPES)
    for _ in range(60):
        middle = (low + high) / 2
        weights = (logs * middle.exp()).softmax(dim=0)
        above = (weights * logs).sum() - 1 / middle.exp() > logs.mean()
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    shape = ((low + high) / 2).exp()
    return shape, (top + ((logs * shape).exp().mean().log() / shape)).exp()
