"""Differentially private training: what is asked for, and what one step of it must be.

`Private` is the promise that a party wants (epsilon, delta); `Noise` is what keeps it in training:
the length that every sample's gradient is cut to, and the noise that is added. How much noise a
promise takes is an accountant's to say (`voting.accountant`). The steps are DP-SGD's (Abadi et al.,
CCS 2016): a random batch that every sample joins by itself, with the same chance; the gradient of
each sample, with all that is made from it, cut to one length; their sum, with Gaussian noise.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from torch import nn

from ostraka.core.settings import Settings, setting
from ostraka.errors import ConfigError

if TYPE_CHECKING:
    from ostraka.core.fit import Budget


@final
@dataclass(frozen=True)
class Private(Settings):
    """How little a member may reveal of any one sample; epsilon 0: nothing is promised."""

    epsilon: float = setting(
        0.0,
        "differential privacy: the most that any one sample may count, 1 is strict, 8 is usual; "
        "0: no privacy",
        span="[0, inf)",
    )
    delta: float = setting(
        1e-5,
        "chance that the promise fails; well below one in the number of samples",
        span="(0, 1)",
    )
    clip: float = setting(
        1.0, "length that the gradient of a sample and its outliers is cut to", span="(0, inf)"
    )

    counts: float = setting(
        0.0,
        "epsilon that is spent, on top, on telling class counts with noise; 0: they are not told",
        span="[0, inf)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts and not self.epsilon:
            raise ConfigError(
                f"dp.counts is {self.counts:g}, but nothing is promised of the training: give "
                "dp.epsilon as well"
            )

    @property
    def wanted(self) -> bool:
        """Whether anything is promised."""
        return self.epsilon > 0

    def figures(self) -> dict[str, float]:
        """What a card claims of it."""
        whole = {"epsilon": self.epsilon + self.counts, "delta": self.delta}
        return whole if self.wanted else {}


@final
@dataclass(frozen=True)
class Noise:
    """What keeps a promise in training: gradients cut to `clip`, and Gaussian noise on their sum
    whose deviation is `multiplier` times that."""

    clip: float
    multiplier: float


def sampling(budget: "Budget", samples: int, classes: int) -> tuple[float, int]:
    """(chance of a sample to be in a step, steps) of a private training.

    Both come from public numbers alone: the settings, how many samples there are, how many classes
    the task has (and not how many the party holds).
    """
    return min(1.0, budget.width(samples) / samples), budget.steps_on(samples, classes)


def check_net(net: nn.Module) -> None:
    """Refuse a network that looks at several samples at once."""
    layers = nn.modules.batchnorm._BatchNorm
    if any(isinstance(module, layers) for module in net.modules()):
        raise ConfigError(
            "a network with batch norm cannot train with differential privacy: each sample's "
            "answer depends on the others of its batch, so no one's part can be bounded; use a "
            "net without it (simple-cnn, lenet5, mlp), or with group norm (lenet5 with "
            "net.norm=group)"
        )
