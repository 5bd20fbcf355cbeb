"""Seeds never change silently: published numbers depend on them."""

import numpy as np
import torch

from ostraka.core.seeds import derive, numpy_rng, seeded, torch_rng


def test_pinned_values() -> None:
    """blake2b (8 bytes, big-endian, without its lowest bit)
    of the path joined by slashes, noted once.
    """
    assert derive(0) == PINNED_0
    assert derive(0, "round", 1, "party", 0) == PINNED_PARTY
    assert torch.randint(1000, (3,), generator=torch_rng(0, "draw", 1)).tolist() == PINNED_TORCH
    assert numpy_rng(0, "partition").integers(1000, size=3).tolist() == PINNED_NUMPY


PINNED_0 = 4761921975702974394
PINNED_PARTY = 8834849428529527116
PINNED_TORCH = [712, 505, 902]
PINNED_NUMPY = [492, 960, 438]


def test_range() -> None:
    """63 bits, never negative: what torch and numpy both take."""
    values = [derive(i, "x") for i in range(200)]
    assert all(0 <= v < 2**63 for v in values)
    assert max(values) > 2**62
    assert len(set(values)) == 200


def test_paths_are_told_apart() -> None:
    paths = [(1, "a"), (1, "b"), (1, "a", 1), (1, 1, "a"), (11, "a"), (2, "a")]
    assert len({derive(*path) for path in paths}) == len(paths)


def test_order_does_not_matter() -> None:
    """A draw for one party is the same whoever drew before."""
    first = torch.rand(2, generator=torch_rng(0, "party", 7))
    torch_rng(0, "party", 3).seed()
    torch.rand(100)
    np.random.default_rng(0).random(5)
    assert torch.equal(first, torch.rand(2, generator=torch_rng(0, "party", 7)))


def test_seeded_puts_the_global_generator_back() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with seeded(1, "x"):
        a = torch.rand(2)
    assert torch.equal(before, torch.get_rng_state())
    with seeded(1, "x"):
        assert torch.equal(a, torch.rand(2))
    with seeded(1, "y"):
        assert not torch.equal(a, torch.rand(2))
