"""Where the line between known and unknown lies when there are samples
of known classes to place it on.
"""

from dataclasses import replace

import torch

from ostraka.core.predictor import UNKNOWN, Placed, Predictor, Promise, Solo, threshold_for
from ostraka.core.samples import Samples

CHUNK = 1000


def placed_on(
    predictor: Predictor, samples: Samples, rate: float, basis: str
) -> tuple[Predictor, Promise]:
    """The predictor with its threshold where at most the share `rate`
    of `samples` is called unknown.

    Samples of unknown classes have no part in it; without labels, all are taken for samples of
    known classes. Fewer than 1 / rate samples cannot place it: nothing is promised then.
    """
    if samples.y is not None:
        samples = samples.take((samples.labels != UNKNOWN).nonzero().squeeze(1))
    if len(samples) * rate < 1:
        needed = int(-(-1 // rate))
        return predictor, Promise(
            why=(
                f"there are {len(samples)} {basis} samples; "
                f"{needed} or more are needed for a rate of {rate:g}"
            )
        )
    if isinstance(predictor, Solo):
        alone = {
            party: placed_on(model, samples, rate, basis)[0]
            for party, model in predictor.alone.items()
        }
        return replace(predictor, alone=alone), Promise(rate, basis)
    with torch.no_grad():
        parts = [predictor.scores(part.stored()).unknown for part in samples.chunks(CHUNK)]
    threshold = threshold_for(rate, torch.cat(parts))
    return Placed(predictor, threshold), Promise(rate, basis, threshold)
