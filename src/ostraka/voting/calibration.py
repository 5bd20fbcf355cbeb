"""Numbers that a party measures on its own samples after training,
and that let a ballot weigh its votes.

`doubt` is one number: the mean log odds of *unknown* on the party's own samples. `held` and the
quantiles `claims` and `refusals` say how the member answers samples that it was not trained on.
`typicality` is more: where the party's classes lie in the network's embedding (class means, pooled
covariance); told only if the party agrees, and then with the quantiles `standing`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ostraka.core.net import Net
from ostraka.core.objective import Objective
from ostraka.core.samples import Samples
from ostraka.core.told import HELD, quantiles

MOST = 2000
"""Samples that are looked at; more do not change a mean."""
FEWEST = 5
"""Samples of a class below which its place in the embedding is not told."""


def log_odds(votes: Tensor) -> Tensor:
    """Log odds of unknown [...] of votes [..., K + 1]:
    the unknown logit minus the log-sum of the known ones.
    """
    return votes[..., -1] - votes[..., :-1].logsumexp(dim=-1)


@torch.no_grad()
def measure(net: Net, objective: Objective, samples: Samples, typicality: bool) -> dict[str, Any]:
    """The numbers of one trained member, for its card."""
    net.eval()
    index = torch.linspace(0, len(samples) - 1, min(len(samples), MOST)).round().long()
    x = samples.inputs(index)
    numbers: dict[str, Any] = {}
    if net.unknown:
        numbers["doubt"] = float(log_odds(objective.scores(net, x).logits()).mean())
    if typicality:
        numbers["typicality"] = _places(net.embed(x), samples.labels[index], net.classes)
    return numbers


@torch.no_grad()
def tell_of(
    net: Net, objective: Objective, held: Samples, places: Mapping[str, Tensor] | None
) -> dict[str, Any]:
    """How a member answers held-out samples of its own classes: their number,
    and quantiles at `told.LEVELS` of

    - `claims`: the log odds of the sample's true class against all else, unknown included;
    - `refusals`: minus the member's unknown score, so that low means near to being called unknown;
    - `standing`: its typicality for the true class, where embedding statistics (`places`) are told.
    """
    if not len(held):
        return {}
    net.eval()
    index = torch.linspace(0, len(held) - 1, min(len(held), MOST)).round().long()
    x, labels = held.inputs(index), held.labels[index]
    scores = objective.scores(net, x)
    told: dict[str, Any] = {HELD: len(held), "refusals": quantiles(-scores.unknown)}
    told["claims"] = quantiles(claims(scores.logits(), labels))
    if places is not None:
        standing = typicality(net.embed(x), places).gather(1, labels.unsqueeze(1))
        told["standing"] = quantiles(standing.squeeze(1))
    return told


@torch.no_grad()
def held_scores(net: Net, objective: Objective, held: Samples) -> dict[str, float]:
    """How well a member does on held-out samples, by its closed answers, each 0 to 1: the share
    of right ones (`validation`) and its mean probability of them (`confidence`).
    """
    if not len(held):
        return {}
    net.eval()
    index = torch.linspace(0, len(held) - 1, min(len(held), MOST)).round().long()
    known = objective.scores(net, held.inputs(index)).known
    sure, answers = known.softmax(dim=1).max(dim=1)
    right = (answers == held.labels[index]).float()
    return {"validation": float(right.mean()), "confidence": float(sure.mean())}


def claims(votes: Tensor, labels: Tensor) -> Tensor:
    """Log odds [B] of each sample's class against every other output, of votes [B, K + 1]."""
    own = votes.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = votes.scatter(1, labels.unsqueeze(1), float("-inf"))
    return own - others.logsumexp(dim=1)


def _places(embedding: Tensor, labels: Tensor, classes: int) -> dict[str, Tensor]:
    """Class means, the inverse of the shrunk pooled covariance,
    and how far own samples usually lie from their mean.
    """
    counts = torch.bincount(labels, minlength=classes)
    means = torch.zeros(classes, embedding.shape[1], device=embedding.device).index_add_(
        0, labels, embedding
    )
    means = means / counts.clamp(min=1).unsqueeze(1)
    rest = (embedding - means[labels]).double()
    covariance = rest.T @ rest / len(rest)
    size = covariance.trace() / len(covariance)
    shrunk = 0.9 * covariance + 0.1 * size.clamp(min=1e-12) * torch.eye(
        len(covariance), device=embedding.device
    )
    precision = torch.linalg.inv(shrunk)
    distance = (rest @ precision * rest).sum(dim=1).sqrt().float()
    usual = torch.zeros(classes, 2, device=embedding.device)
    for label in range(classes):
        mine = distance[labels == label]
        usual[label, 0] = mine.mean() if len(mine) else 0.0
        usual[label, 1] = mine.std() if len(mine) > 1 else 0.0
    places = {
        "means": means,
        "precision": precision.float(),
        "usual": usual,
        "placed": counts >= FEWEST,
    }
    return {name: tensor.cpu() for name, tensor in places.items()}


def typicality(embedding: Tensor, places: Mapping[str, Tensor]) -> Tensor:
    """How usual samples are for each of a member's classes [B, K]: 0 is average,
    lower is farther; 0 where not told.
    """
    means, precision = places["means"].to(embedding), places["precision"].to(embedding)
    usual, placed = places["usual"].to(embedding), places["placed"].to(embedding.device)
    rest = embedding.unsqueeze(1) - means
    distance = torch.einsum("bkd,de,bke->bk", rest, precision, rest).clamp(min=0).sqrt()
    standing = -(distance - usual[:, 0]) / (usual[:, 1] + 0.2)
    return torch.where(placed, standing, torch.zeros_like(standing))
