"""How much noise a promise of differential privacy takes, and class counts told with noise.

The accountant is Opacus' (Renyi differential privacy of the Poisson-subsampled Gaussian mechanism:
Mironov, Talwar & Zhang, 2019), an extra: `pip install ostraka[dp]`. Two collections of samples are
neighbours where one sample of the first is missing in the second, its place left empty; so their
number is no secret, and everything else of a sample is.
"""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from math import exp

import numpy as np

from ostraka.core.fit import Budget
from ostraka.core.private import Noise, Private, sampling
from ostraka.core.seeds import numpy_rng
from ostraka.errors import ConfigError, NeedError

ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 384, 512, 1024)
"""Orders of the Renyi divergence that are tried. Whole ones have a short formula: with Opacus' own
list a strict promise takes a minute, and saves 1 % of the noise elsewhere. Any list is sound.
"""


def noise_for(promise: Private, budget: Budget, samples: int, classes: int) -> Noise:
    """What keeps the promise in a training of so many samples of a task of so many classes."""
    if promise.delta * samples >= 1:
        raise ConfigError(
            f"delta is {promise.delta:g} with {samples:,} samples: to give one of them away whole "
            f"would keep such a promise; give a delta far below {1 / samples:.1g}"
        )
    rate, steps = sampling(budget, samples, classes)
    return Noise(promise.clip, multiplier(promise.epsilon, promise.delta, rate, steps))


@lru_cache(maxsize=256)
def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The noise, in lengths of a gradient, with which `steps` steps that each sample joins with
    the chance `rate` are (epsilon, delta)-private."""
    with warnings.catch_warnings():
        # it warns while it searches, of orders that its answer does not rest on
        warnings.simplefilter("ignore")
        try:
            from opacus.accountants.utils import get_noise_multiplier
        except ImportError as error:
            raise NeedError(
                "differential privacy needs Opacus, whose accountant says how much noise a promise "
                "takes; install it: pip install 'ostraka[dp]'"
            ) from error
        try:
            found = get_noise_multiplier(
                target_epsilon=epsilon,
                target_delta=delta,
                sample_rate=rate,
                steps=steps,
                accountant="rdp",
                alphas=ORDERS,
                epsilon_tolerance=min(0.01, epsilon / 100),
            )
        except ValueError as error:
            raise ConfigError(
                f"no noise is enough for epsilon {epsilon:g} and delta {delta:g} in {steps:,} "
                "steps; give a larger epsilon, or fewer steps"
            ) from error
    return float(found)


def noisy_counts(counts: Sequence[int], epsilon: float, seed: int) -> tuple[int, ...]:
    """Class counts with noise that is epsilon-private: two-sided geometric (Ghosh, Roughgarden &
    Sundararajan, 2009), as one sample changes one count by one.

    They are then brought to no less than 0 and to the known sum, which looks at nothing but them.
    """
    rng = numpy_rng(seed, "counts")
    up, down = (rng.geometric(1 - exp(-epsilon), len(counts)) for _ in range(2))
    told = np.maximum(np.asarray(counts) + up - down, 0)
    total = sum(counts)
    if not told.sum():
        told = np.ones(len(counts), dtype=np.int64)
    shares = told * (total / told.sum())
    whole = np.floor(shares).astype(int)
    largest = np.argsort(whole - shares, kind="stable")[: total - whole.sum()]
    whole[largest] += 1
    return tuple(whole.tolist())
