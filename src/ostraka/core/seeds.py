"""Seeds that depend on what is done, never on who does it first.

Every random draw comes from a seed derived by name, such as
`derive(run_seed, "round", 3, "party", 7)`, so the numbers are the same whatever the engine, the
number of workers or the order in which parties finish.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

CPU = torch.device("cpu")


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
def seeded(seed: int, *path: str | int, device: torch.device = CPU) -> Iterator[None]:
    """Run torch's global generators from `path` (initialisation, dropout), then put them back.

    These are the CPU's and, where the work is done on another `device`, that one's.
    """
    before = random_states(device)
    set_seed(derive(seed, *path), device)
    try:
        yield
    finally:
        set_random_states(before, device)


def set_seed(seed: int, device: torch.device) -> None:
    """Begin the global generators anew that work on `device` draws from."""
    if device_module(device) is None:
        # torch.manual_seed writes down the Python stack for every kind of device that it does not
        # find, which takes a hundred times as long as to seed
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Where the global generators stand that work on `device` draws from."""
    own = device_module(device)
    states = {"cpu": torch.get_rng_state()}
    return states if own is None else {**states, device.type: own.get_rng_state()}


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Put the global generators where `random_states` found them; another device's are left out."""
    torch.set_rng_state(states["cpu"])
    own = device_module(device)
    if own is not None and device.type in states:
        own.set_rng_state(states[device.type])


def device_module(device: torch.device) -> Any:
    """What holds a device's own generator (torch.cuda, torch.mps); None:
    there is only the CPU's.
    """
    return None if device.type in ("cpu", "meta") else torch.get_device_module(device)
