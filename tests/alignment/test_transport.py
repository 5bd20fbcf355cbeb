"""Transport between rows: exactness against the library POT and by hand,
ties, empty rows, mixtures.
"""

import warnings
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ostraka.alignment.transport import Entropic, Exact, distances, matrix, moved
from ostraka.errors import ConfigError

CASES = settings(max_examples=40, deadline=None, derandomize=True)


def rows(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def cost_of(way: torch.Tensor, moving: torch.Tensor, target: torch.Tensor) -> float:
    return float((matrix(way).float() @ moving - target).square().sum())


def test_distances_by_hand() -> None:
    """Rows are the target's: (0, 0) is 25 from (3, 4) and 4 from (2, 0);
    (3, 0) is 16 and 1 from them.
    """
    found = distances(
        torch.tensor([[3.0, 4.0], [2.0, 0.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    )
    assert found.tolist() == [[25.0, 4.0], [16.0, 1.0]]


@CASES
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 10**6))
def test_exact_is_the_best_of_all_permutations(n: int, d: int, seed: int) -> None:
    moving, target = rows(n, d, seed), rows(n, d, seed + 1)
    found = Exact().solve(moving, target)
    best = min(cost_of(torch.tensor(order), moving, target) for order in permutations(range(n)))
    assert sorted(found.tolist()) == list(range(n))
    assert cost_of(found, moving, target) == pytest.approx(best, rel=1e-5, abs=1e-6)


def test_exact_equals_the_optimal_transport_of_pot() -> None:
    ot = pytest.importorskip("ot")
    moving, target = rows(30, 5, 1), rows(30, 5, 2)
    mass = torch.full((30,), 1 / 30).double().numpy()
    plan = torch.from_numpy(ot.emd(mass, mass, distances(moving, target).numpy())) * 30
    torch.testing.assert_close(plan, matrix(Exact().solve(moving, target)))


def test_the_target_gets_the_units_that_fit() -> None:
    """A map names, for each unit of the target,
    the unit that takes its place: moved, the rows agree.
    """
    target, order = rows(5, 3, 0), torch.tensor([3, 0, 4, 1, 2])
    found = Exact().solve(target[order], target)
    assert torch.equal(target[order][found], target)
    assert not torch.equal(found, order)  # it is the inverse


def test_all_ties_follow_the_preferred_map_and_then_the_identity() -> None:
    empty, prefer = torch.zeros(4, 2), torch.tensor([2, 0, 3, 1])
    assert Exact().solve(empty, empty, prefer).tolist() == prefer.tolist()
    assert Exact().solve(empty, empty).tolist() == [0, 1, 2, 3]
    assert Exact().solve(rows(4, 2, 0), empty, prefer).tolist() == prefer.tolist()
    assert Exact().solve(empty, rows(4, 2, 0), prefer).tolist() == prefer.tolist()


def test_empty_rows_follow_the_preferred_map_where_it_is_free_and_then_the_identity() -> None:
    """Units 0 and 1 are full and crossed.

    Unit 2 of the target is empty, as are 2, 3 and 4 of the moving network. The preferred map wants
    2 <- 4, which is free, and 4 <- 0, which is not: 0 fits 1 better than nothing. What is left to 3
    and 4 are the empty rows 2 and 3: the identity takes 3 <- 3, and 4 <- 2 remains.
    """
    moving = torch.tensor([[0.0, 5.0], [5.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    target = torch.tensor([[5.0, 0.0], [0.0, 5.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert Exact().solve(moving, target, torch.tensor([1, 2, 4, 3, 0])).tolist() == [1, 0, 4, 3, 2]
    assert Exact().solve(moving, target).tolist() == [1, 0, 2, 3, 4]


def test_units_that_are_alike_stay_where_they_are() -> None:
    """Two units of 2 for one place that wants a 2, and four zeros:
    a plain assignment moves four of the six.
    """
    moving, target = (
        torch.tensor([[0.0, 0, 2, 0, 2, 0]]).t(),
        torch.tensor([[0.0, 0, 0, 0, 2, 0]]).t(),
    )
    assert Exact().solve(moving, target).tolist() == [0, 1, 2, 3, 4, 5]


def test_one_line_of_the_preferred_map_outweighs_many_of_the_identity() -> None:
    """Two ties 0 and 1: preferring them crossed costs two lines of the identity."""
    prefer = torch.tensor([1, 0, 2, 3, 4, 5])
    assert Exact().solve(torch.zeros(6, 1), torch.zeros(6, 1), prefer).tolist() == prefer.tolist()


@CASES
@given(st.integers(2, 8), st.integers(0, 10**6))
def test_a_preference_never_costs_anything(n: int, seed: int) -> None:
    moving, target = rows(n, 3, seed), rows(n, 3, seed + 1)
    prefer = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(Exact().solve(moving, target, prefer), Exact().solve(moving, target))


def test_moving_runs_of_columns() -> None:
    """Two channels of two places each, exchanged: the places stay inside their channel."""
    assert moved(torch.tensor([[1, 2, 3, 4]]), torch.tensor([1, 0]), 1).tolist() == [[3, 4, 1, 2]]
    half = torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    assert moved(torch.tensor([[1.0, 2, 3, 4]]), half, 1).tolist() == [[2.0, 3.0, 3.0, 4.0]]
    assert moved(torch.tensor([[1.0], [3.0]]), half, 0).tolist() == [[2.0], [3.0]]
    with pytest.raises(ConfigError, match="equal runs"):
        moved(torch.zeros(3), torch.tensor([1, 0]), 0)


def test_sinkhorn_gives_shares_and_with_little_blur_the_assignment() -> None:
    pytest.importorskip("ot")
    target = 4 * rows(6, 3, 3)
    order = torch.tensor([3, 0, 4, 1, 2, 5])
    found = Entropic(0.005).solve(target[order], target)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(
        found, matrix(Exact().solve(target[order], target)), atol=1e-3, rtol=0
    )
    blurred = Entropic(5.0).solve(target[order], target)
    assert float(blurred.max()) < 0.4 < 0.9 < float(found.max())


def test_sinkhorn_leaves_empty_rows_to_the_preferred_map() -> None:
    """The target's empty row takes its line of the preferred map.

    The moving network's dilute nobody else.
    """
    pytest.importorskip("ot")
    moving, target = 3 * torch.eye(3), 3 * torch.eye(3)
    moving[2], target[1] = 0.0, 0.0
    found = Entropic(0.05).solve(moving, target, torch.tensor([0, 2, 1]))
    assert found[1].tolist() == [0.0, 0.0, 1.0]
    assert found[:, 2].tolist() == [0.0, 1.0, 0.0]
    assert Entropic(0.05).solve(torch.zeros(2, 2), torch.ones(2, 2)).tolist() == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]


def test_sinkhorn_says_when_it_has_not_converged() -> None:
    """Points on a line that all have to move a little further:
    with little blur this takes many steps.
    """
    pytest.importorskip("ot")
    line = torch.arange(8.0)[:, None]
    short, line = 1 + 0.9 * (8 * line).sqrt(), 1 + line
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Entropic(0.05).solve(short, line)
    with pytest.warns(UserWarning, match=r"blur 0.002 has not converged: 2.0% of .* give a larger"):
        Entropic(0.002).solve(short, line)


def test_without_pot_sinkhorn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ot", None)
    with pytest.raises(ConfigError, match=r"install ostraka\[ot\]"):
        Entropic(0.1).solve(rows(3, 2, 0), rows(3, 2, 1))
    with pytest.raises(ConfigError, match="above 0"):
        Entropic(0.0)
