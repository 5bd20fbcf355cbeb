"""Seeds that depend on what is done, never on who does it first.

Every random draw comes from a seed derived by name, such as `derive(run_seed, "round", 3, "party", 7)`, so the numbers
are the same whatever the engine, the number of workers or the order in which parties finish.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import numpy as np
import torch


def derive(seed: int, *path: str | int) -> int:
    """A 63-bit seed for the thing that `path` names, independent of every other path."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def torch_rng(seed: int, *path: str | int) -> torch.Generator:
    """A CPU generator of torch for `path`."""
    return torch.Generator().manual_seed(derive(seed, *path))


def numpy_rng(seed: int, *path: str | int) -> np.random.Generator:
    """A generator of numpy for `path`."""
    return np.random.default_rng(derive(seed, *path))


@contextmanager
def seeded(seed: int, *path: str | int) -> Iterator[None]:
    """Run torch's global generator from `path` (initialisation, dropout), then put it back as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, *path))
        yield
