"""Tensors that are made again and again from the same things, kept while there is room."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import final

from torch import Tensor


@final
class Kept:
    """Tensors by key, at most `most_bytes` of them together; those unused for longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._held: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """The tensor under `key`, made if it is not there; whoever gets it must not change it."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        made = make()
        self._held[key] = made
        while len(self._held) > 1 and self.bytes > self.most_bytes:
            self._held.popitem(last=False)
        if made.nbytes > self.most_bytes:
            del self._held[key]
        return made

    @property
    def bytes(self) -> int:
        """The size of what is held."""
        return sum(tensor.nbytes for tensor in self._held.values())
