"""How different the members of a team are, by who is right on which labelled samples.

The measures of Kuncheva & Whitaker, "Measures of Diversity in Classifier Ensembles", Machine
Learning 2003. For pairs (means over all pairs of members), with N11 .. N00 the samples on which
both are right .. neither is:

    disagreement    (N01 + N10) / N                                      higher: more diverse
    q_statistic     (N11 N00 - N01 N10) / (N11 N00 + N01 N10)            lower: more diverse
    correlation     (N11 N00 - N01 N10) / sqrt of the four margins       lower
    double_fault    N00 / N                                              lower

For the team of L, with l the members that are right on a sample (means over samples):

    entropy         min(l, L - l) / (L - ceil(L / 2))                    higher
    kohavi_wolpert  l (L - l) / L^2                                      higher
"""

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor

MEASURES = (
    "disagreement", "q_statistic", "correlation", "double_fault", "entropy", "kohavi_wolpert",
)  # fmt: skip


def diversity(right: Tensor, team: Sequence[int] | None = None) -> dict[str, float]:
    """All MEASURES of a team of two or more, from who is right [M, N]; empty for one alone.

    A pair whose table makes 0 / 0 (both are always right) counts as independent: 0.
    """
    rows = (right if team is None else right[list(team)]).double()
    members, samples = rows.shape
    if members < 2:
        return {}
    first, second = torch.triu_indices(members, members, offset=1)
    wrong = 1.0 - rows
    n11, n00 = (rows @ rows.T)[first, second], (wrong @ wrong.T)[first, second]
    n10, n01 = (rows @ wrong.T)[first, second], (wrong @ rows.T)[first, second]
    product, crossed = n11 * n00, n01 * n10
    margins = ((n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)).sqrt()
    right_ones = rows.sum(dim=0)
    wrong_ones = members - right_ones
    values = (
        (n01 + n10) / samples,
        _ratio(product - crossed, product + crossed),
        _ratio(product - crossed, margins),
        n00 / samples,
        torch.minimum(right_ones, wrong_ones) / (members - ceil(members / 2)),
        right_ones * wrong_ones / members**2,
    )
    return {name: float(value.mean()) for name, value in zip(MEASURES, values, strict=True)}


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    return torch.where(below > 0, above / below.clamp(min=1e-300), torch.zeros_like(above))
