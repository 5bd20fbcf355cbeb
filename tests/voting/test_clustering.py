"""Reduction, scaling and clusters: against blobs whose clusters are known."""

import warnings

import numpy as np
import pytest

from ostraka.voting.clustering import Clustering, clusters, narrow, reduced, scaled, silhouette
from tests.voting.pool import blobs


@pytest.mark.parametrize("how", ["kmeans", "spectral", "hierarchical"])
@pytest.mark.parametrize("columns", [3, 2000])
def test_blobs_are_found(how: Clustering, columns: int) -> None:
    """Also in thousands of columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clusters(scaled(blobs([0, 5, 9], 6, columns), "min-max"), how, 3, seed=1)
    assert found.tolist() == [0] * 6 + [1] * 6 + [2] * 6


def test_a_graph_of_far_rows_has_edges() -> None:
    """Squared distances are 4,000 within a blob and 12,000 between: exp(-4000) is 0."""
    noise = np.random.default_rng(0).standard_normal((12, 2000))
    rows = noise + np.repeat([[0.0], [2.0]], 6, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clusters(rows, "spectral", 2, seed=0).tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize("how", ["kmeans", "spectral", "hierarchical"])
def test_limits(how: Clustering) -> None:
    rows = blobs([0, 5], 3)
    assert clusters(rows, how, 6, 0).tolist() == [0, 1, 2, 3, 4, 5]
    assert clusters(rows, how, 99, 0).tolist() == [0, 1, 2, 3, 4, 5]
    assert clusters(rows, how, 1, 0).tolist() == [0] * 6
    assert clusters(np.ones((5, 4)), how, 3, 0).tolist() == [0] * 5


def test_scaling_by_hand() -> None:
    rows = np.array([[0.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    assert scaled(rows, "min-max").tolist() == [[0, 0], [0.5, 0], [1, 0]]
    standard = scaled(rows, "standard")
    assert standard[:, 0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert standard[:, 1].tolist() == [0, 0, 0]
    assert scaled(rows, "none") is rows


def test_narrow_keeps_distances() -> None:
    rows = np.random.default_rng(0).standard_normal((7, 50))
    few = narrow(rows)
    assert few.shape == (7, 7)
    for a, b in ((rows, few), (few, narrow(few))):
        apart = [np.linalg.norm(m[:, None] - m[None], axis=2) for m in (a, b)]
        np.testing.assert_allclose(*apart, atol=1e-9)


def test_reductions() -> None:
    """Points on a line in 40 dimensions: one principal component has all of their distances."""
    places = np.array([0.0, 1.0, 3.0, 7.0])
    rows = places[:, None] * np.full(40, 40**-0.5)
    line = reduced(rows, "pca", 1, seed=0)[:, 0]
    np.testing.assert_allclose(np.abs(line - line[0]), places, atol=1e-9)
    assert reduced(rows, "none", 1, 0).shape == (4, 40)
    assert reduced(rows, "pca", 99, 0).shape == (4, 3)
    curved = reduced(blobs([0, 5], 5, 800), "kernel-pca", 1, 0)[:, 0]
    assert (curved[:5] * curved[5:] < 0).all()
    assert np.abs(curved).min() > 0.1


def test_silhouette() -> None:
    rows = blobs([0, 5], 4)
    assert silhouette(rows, np.array([0] * 4 + [1] * 4)) > 0.95
    assert silhouette(rows, np.array([0, 1] * 4)) < 0
    assert silhouette(rows, np.zeros(8, dtype=np.int64)) == -1.0
    assert silhouette(rows, np.arange(8)) == -1.0


@pytest.mark.parametrize("apart", [0.01, 7.0, 1e4])
def test_kernel_pca_is_as_wide_as_the_rows_lie_apart(apart: float) -> None:
    """Two rows: their squared distance is the median, so the kernel between them is 1/e however far
    they are. Centred it has the eigenvalue 1 - 1/e, half of which is each one's square.
    """
    rows = np.array([[0.0, 3.0], [apart, 3.0]])
    found = reduced(rows, "kernel-pca", 1, 0)
    assert np.abs(found) == pytest.approx(np.full((2, 1), ((1 - np.exp(-1)) / 2) ** 0.5))
