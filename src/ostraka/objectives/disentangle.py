"""Which weights matter for the known classes and which for telling
unknown samples: FedPD's two masks.

Yang et al., "FedPD: Federated Open Set Recognition with Parameter Disentanglement", ICCV 2023,
equations 4 to 7. The importance of a weight for a loss is |weight x gradient|; L_close is the
cross-entropy over all outputs, L_open the two other terms of PROSER. Deviations: the paper
computes both while training and keeps those of the last batch; here they belong to the trained
network in evaluation mode and are averaged over all batches of the party's data
(`mask_from="last-batch"`: one random batch).
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Batch
from ostraka.core.samples import Samples
from ostraka.objectives.proser import Proser, mix, open_terms

Importance = Literal["gradient-weight", "gradient"]
MaskFrom = Literal["all", "last-batch"]
Per = Literal["layer", "network"]

Values = dict[str, Tensor]
"""Name of a weight tensor to one number for each of its weights."""


def importances(
    net: Net,
    names: Sequence[str],
    samples: Samples,
    objective: Proser,
    batch: int,
    rng: torch.Generator,
    kind: Importance = "gradient-weight",
    mask_from: MaskFrom = "all",
) -> tuple[Values, Values]:
    """Importance of each weight of the tensors `names` for L_close
    and for L_open: means over batches.

    Batches are drawn at random and weigh by their size;
    the network is in evaluation mode and is left unchanged.
    """
    net.eval().to(samples.x.device)
    weights = [net.get_parameter(name) for name in names]
    close, open_ = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    order = torch.randperm(len(samples), generator=rng)
    parts = order.split(batch) if mask_from == "all" else (order[:batch],)
    seen = sum(map(len, parts))
    for rows in parts:
        view = samples.view
        part = Batch(samples.inputs(rows), samples.labels[rows], kind=view.kind, view=view)
        for loss, total in zip(_losses(net, part, objective, rng), (close, open_), strict=False):
            gradients = torch.autograd.grad(loss, weights, retain_graph=True)
            for mean, gradient in zip(total, gradients, strict=True):
                mean.add_(gradient.abs_(), alpha=len(rows) / seen)
    if kind == "gradient-weight":  # the weights stand still, so one product at the end does
        for mean, weight in zip([*close, *open_], [*weights, *weights], strict=True):
            mean.mul_(weight.detach().abs())
    return dict(zip(names, close, strict=True)), dict(zip(names, open_, strict=True))


def _losses(net: Net, part: Batch, objective: Proser, rng: torch.Generator) -> list[Tensor]:
    """L_close and, if any of its terms has a weight, L_open of one batch.

    Known rows pass the late layers alone for L_close, whose gradients then do not pass the mixed
    rows, and with these for L_open: a pass more for the one, and as much as two less. With passes
    of their own, mixed rows would cost more than they save: a second gradient of every late weight.
    """
    hidden = net.early(part.x)
    mixed = mix(hidden, part.y, rng) if objective.w_mix else None
    known = net.late(hidden)
    both = known if mixed is None else net.late(torch.cat([hidden, mixed]))
    logits, outliers = both[: len(part)], both[len(part) :]
    terms = open_terms(logits, part.y, outliers, objective.w_second, objective.w_mix)
    close = F.cross_entropy(known, part.y)
    return [close, torch.stack(terms).sum()] if terms else [close]


def top_mask(values: Mapping[str, Tensor], ratio: float, per: Per = "layer") -> Values:
    """True for the share `ratio` of the largest values, of each tensor or of all together
    (equations 6 and 7).

    Equation 6 asks for values *above* a threshold: equal values at the threshold are left out, and
    with them weights of no importance at all.
    """
    if per == "network":
        threshold = _threshold(torch.cat([v.flatten() for v in values.values()]), ratio)
        return {name: v > threshold for name, v in values.items()}
    return {name: v > _threshold(v.flatten(), ratio) for name, v in values.items()}


def _threshold(values: Tensor, ratio: float) -> float:
    """The largest value that is not among the share `ratio` of the largest; 0 if all are."""
    out = len(values) - round(ratio * len(values))
    return float(values.kthvalue(out).values) if out else 0.0
