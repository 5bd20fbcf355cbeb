"""Clusters of rows: reduction, scaling, k-means, spectral and hierarchical clustering.

The algorithms are scikit-learn's, which is imported when something is clustered. One thread,
so that sums do not depend on the number of cores. All of them see distances alone, so rows
with more columns than there are rows are first turned into as many columns as rows: the
distances stay, and a network's 60,000 weights cost no more than its last layer.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Reduction = Literal["none", "pca", "kernel-pca"]
Scaling = Literal["min-max", "standard", "none"]
Clustering = Literal["kmeans", "spectral", "hierarchical"]

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

STARTS = 4
"""First centres that k-means tries."""


def load_libraries() -> None:
    """Import what takes long, so that it does not count as time of a choice."""
    import sklearn.cluster
    import sklearn.decomposition
    import sklearn.metrics  # noqa: F401


def reduced(rows: NDArray[Any], how: Reduction, components: int, seed: int) -> Matrix:
    """The rows in at most so many dimensions."""
    rows = np.asarray(rows, dtype=np.float64)
    most = min(components, len(rows) - 1, rows.shape[1])
    if how == "none" or most < 1 or not np.ptp(rows, axis=0).any():  # all alike: no direction
        return rows
    from sklearn.decomposition import PCA, KernelPCA

    with _one_thread():
        # what all do to the directions of the rows is the same in fewer columns
        rows = narrow(rows)
        if how == "pca":
            found = PCA(most, svd_solver="full", random_state=seed).fit_transform(rows)
        else:
            gamma = 1.0 / _median_square(rows)
            found = KernelPCA(
                most, kernel="rbf", gamma=gamma, eigen_solver="dense", random_state=seed
            ).fit_transform(rows)
    return np.asarray(found, dtype=np.float64)


def scaled(rows: Matrix, how: Scaling) -> Matrix:
    """Every column from 0 to 1, or with mean 0 and deviation 1; a constant one becomes 0."""
    if how == "none":
        return rows
    if how == "min-max":
        low = rows.min(axis=0)
        width = rows.max(axis=0) - low
        return np.asarray((rows - low) / np.where(width > 0, width, 1.0))
    deviation = rows.std(axis=0)
    return np.asarray((rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def clusters(rows: Matrix, how: Clustering, size: int, seed: int) -> Labels:
    """The cluster of each row, numbered from 0 in the order in which they first occur."""
    if size >= len(rows):
        return np.arange(len(rows))
    if size == 1 or not _spread(rows):
        return np.zeros(len(rows), dtype=np.int64)
    from scipy.spatial.distance import cdist
    from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering

    model: Any
    rows = narrow(rows)
    with _one_thread():
        if how == "kmeans":
            model = KMeans(size, n_init=STARTS, random_state=seed)
        elif how == "hierarchical":
            model = AgglomerativeClustering(size)
        else:
            # scikit-learn's default, gamma=1, leaves no edge in a graph of rows of 1,000 columns
            gamma = 1.0 / _median_square(rows)
            rows = np.exp(-gamma * cdist(rows, rows, "sqeuclidean"))
            model = SpectralClustering(
                size, affinity="precomputed", n_init=STARTS, random_state=seed
            )
        found = model.fit_predict(rows)
    _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)


def silhouette(rows: Matrix, labels: Labels) -> float:
    """How far rows are nearer to their own cluster than to the next, -1 to 1;
    -1 where there is one cluster, or each row is one.
    """
    if not 1 < len(set(labels.tolist())) < len(rows):
        return -1.0
    from sklearn.metrics import silhouette_score

    with _one_thread():
        return float(silhouette_score(narrow(rows), labels))


def narrow(rows: Matrix) -> Matrix:
    """The same distances in no more columns than there are rows."""
    if rows.shape[1] <= len(rows):
        return rows
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))


def _median_square(rows: Matrix) -> float:
    """The median squared distance of two rows that differ; 1 where none do."""
    from scipy.spatial.distance import pdist

    squares = pdist(narrow(rows), "sqeuclidean")
    squares = squares[squares > 1e-12 * squares.max(initial=0.0)]
    return float(np.median(squares)) if len(squares) else 1.0


def _spread(rows: Matrix) -> bool:
    """Whether any two rows differ."""
    return bool((rows != rows[0]).any())


def _one_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
