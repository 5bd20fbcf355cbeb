"""Reports that arrive some rounds after they were sent, summed by the round in which they do.

Their weights depend on nothing that happens on the way, so they need not be kept one by one: what
waits has the size of a few rounds' networks, however many parties are late.
"""

from dataclasses import dataclass, field

from ostraka.contract import Params, wire
from ostraka.core.params import Mean

Networks = dict[str, Params]
"""Binary networks by the name of their class."""


@wire("fedova.late/2")
@dataclass(frozen=True)
class Late:
    """Reports on their way that arrive in the same round, whoever sent them and when: of each class
    the weighted mean of their networks, the sum of the weights and how many there are.
    """

    due: int
    nets: Networks
    weights: dict[str, float]
    counts: dict[str, int]
    held: dict[str, list[str]] = field(default_factory=dict)
    """Classes that these reports are of, by their party's number."""


@dataclass
class Pile:
    """Reports that arrive in the same round: sums of their networks, however many there are."""

    means: dict[str, Mean] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[str]] = field(default_factory=dict)

    def take(self, late: Late) -> None:
        """Those that came on it in earlier rounds."""
        for name, net in late.nets.items():
            self._add(name, net, late.weights[name], late.counts[name])
        self.held.update(late.held)

    def add(self, nets: Networks, weight: float) -> None:
        """One more report."""
        for name, net in nets.items():
            self._add(name, net, weight, 1)

    def late(self, due: int) -> Late:
        """The pile as it waits for its round."""
        nets = {name: mean.value() for name, mean in self.means.items()}
        weights = {name: mean.total for name, mean in self.means.items()}
        return Late(due, nets, weights, self.counts, self.held)

    def _add(self, name: str, net: Params, weight: float, count: int) -> None:
        self.means.setdefault(name, Mean()).add(net, weight)
        self.counts[name] = self.counts.get(name, 0) + count
