"""Internal cluster validity: silhouette, Davies–Bouldin and Calinski–Harabasz indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, numbers, refuse_infinite, rows
from likely.core.engine import cores, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.metrics.clusterings import codes
from likely.metrics.confidence_intervals import as_counts

ENTRIES = 1_000_000  # distances in memory per thread


def silhouette_samples(
    X: ArrayLike, labels: ArrayLike, *, weight: ArrayLike | None = None, metric: str = "euclidean",
    at: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Silhouette (b − a) / max(a, b) of each row: mean distances to its own and the nearest other cluster.

    A cluster of a single row has silhouette 0. Distances are computed in strips: memory grows with n, not n².

    Parameters
    ----------
    X : array-like (n, d)
        Rows; distances (n, n) for metric "precomputed".
    labels : array-like (n,)
        Cluster of each row.
    weight : array-like (n,), optional
        A row of weight w is w copies; fractions are scaled to an effective number of rows (`as_counts`).
    metric : str, default "euclidean"
        One of SciPy's distances, or "precomputed".
    at : array-like of int, optional
        The requested rows; all if None.

    Returns
    -------
    ndarray (n,)
        Silhouettes, from −1 to 1, of the requested rows.

    See Also
    --------
    silhouette_score : Their mean.

    References
    ----------
    Rousseeuw (1987).

    Examples
    --------
    >>> silhouette_samples([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1]).round(3)
    array([0.905, 0.895, 0.895, 0.905])
    """
    x, label, w = _labeled(X, labels, weight, "silhouette_samples", metric)
    wanted = np.arange(len(x)) if at is None else np.asarray(at, dtype=np.intp)
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(label.max() + 1))
    mass = _masses(label, w)

    def strip(i: Index) -> Array:
        apart = _pairwise_distances(x, i, order, metric)
        apart *= w[order]
        return _silhouettes(np.add.reduceat(apart, starts, axis=1), label[i], mass)

    step = max(1, ENTRIES // len(x))
    strips = [wanted[s : s + step] for s in range(0, len(wanted), step)]
    return np.concatenate(list(ordered_map(strip, strips, cores()))) if strips else np.empty(0)


def _pairwise_distances(x: Array, i: Index, order: Index, metric: str) -> Array:
    from scipy.spatial.distance import cdist

    return x[np.ix_(i, order)] if metric == "precomputed" else cdist(x[i], x[order], metric)


def _silhouettes(sums: Array, label: Index, mass: Array) -> Array:
    """Silhouettes from sums of distances to each cluster (m, k)."""
    here = np.arange(len(label))
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = sums[here, label] / (mass[label] - 1)
        sums = sums / mass
        sums[here, label] = np.inf
        outside = sums.min(axis=1)
        value = (outside - inside) / np.maximum(inside, outside)
    return np.where((mass[label] > 1) & (np.maximum(inside, outside) > 0), value, 0.0)


def silhouette_score(
    X: ArrayLike, labels: ArrayLike, *, weight: ArrayLike | None = None, metric: str = "euclidean",
    sample: int | None = None, rng: Generator | int | None = None,
) -> float:  # fmt: skip
    """Mean silhouette of all rows, or of a sample of them, each compared with all rows.

    Parameters
    ----------
    X : array-like (n, d)
        Rows; distances (n, n) for metric "precomputed".
    labels : array-like (n,)
        Cluster of each row.
    weight : array-like (n,), optional
        Weight per row.
    metric : str, default "euclidean"
        One of SciPy's distances, or "precomputed".
    sample : int, optional
        Number of rows whose silhouettes are computed; all if None.
    rng : numpy.random.Generator or int, optional
        Random number generator, or its seed, that draws the sample.

    Returns
    -------
    float
        From −1 to 1; larger is better.

    See Also
    --------
    silhouette_samples : The silhouette of each row.

    References
    ----------
    Rousseeuw (1987).

    Examples
    --------
    >>> round(silhouette_score([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1]), 3)
    0.9
    """
    n, at = len(codes(labels, "silhouette_score")[1]), None
    if sample is not None:
        if not isinstance(sample, int | np.integer) or sample < 1:
            raise DomainError(sentence("silhouette_score", "sample must be an integer from 1 on", sample))
        at = np.random.default_rng(rng).choice(n, min(sample, n), replace=False)
    values = silhouette_samples(X, labels, weight=weight, metric=metric, at=at)
    w = as_counts(weight, n, "silhouette_score")
    w = w if at is None else w[at]
    if not w.any():
        raise DataError(
            sentence("silhouette_score", "the sample must have positive weight", "rows of weight 0", "draw more")
        )
    return float(np.average(values, weights=w))


def davies_bouldin(X: ArrayLike, labels: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Davies–Bouldin index: mean over clusters of the largest (s_i + s_j) / ‖μ_i − μ_j‖; smaller is better.

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    labels : array-like (n,)
        Cluster of each row.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        The index.

    References
    ----------
    Davies and Bouldin (1979).

    Examples
    --------
    >>> davies_bouldin([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1])
    0.1
    """
    x, label, w = _labeled(X, labels, weight, "davies_bouldin")
    mass, mean = _means(x, label, w)
    spread = np.bincount(label, w * np.linalg.norm(x - mean[label], axis=1)) / mass
    apart = np.linalg.norm(mean[:, None] - mean[None], axis=2)
    both = spread[:, None] + spread
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(both > 0, both / apart, 0.0)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())


def calinski_harabasz(X: ArrayLike, labels: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Calinski–Harabasz index (B / (k − 1)) / (W / (n − k)): larger is better.

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    labels : array-like (n,)
        Cluster of each row.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    float
        The index; infinite for clusters without variance.

    References
    ----------
    Caliński and Harabasz (1974).

    Examples
    --------
    >>> calinski_harabasz([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1])
    200.0
    """
    x, label, w = _labeled(X, labels, weight, "calinski_harabasz")
    mass, mean = _means(x, label, w)
    center = w @ x / w.sum()
    between = float(mass @ ((mean - center) ** 2).sum(axis=1))
    within = float(w @ ((x - mean[label]) ** 2).sum(axis=1))
    k = len(mass)
    return float(between * (w.sum() - k) / (within * (k - 1))) if within > 0 else np.inf


def _means(x: Array, label: Index, w: Array) -> tuple[Array, Array]:
    mass = _masses(label, w)
    return mass, np.stack([np.bincount(label, w * column) / mass for column in x.T], axis=1)


def _masses(label: Index, w: Array) -> Array:
    return np.asarray(np.bincount(label, w), dtype=np.float64)


def _labeled(X: Any, labels: Any, weight: Any, whose: str, metric: str = "") -> tuple[Array, Index, Array]:
    """Centered rows, cluster codes and counts; at least two clusters, and fewer than rows."""
    x = rows(X, None, whose) if metric != "precomputed" else _square(X, whose)
    refuse_infinite(x, whose)
    if np.isnan(x).any():
        raise DataError(sentence(whose, "rows must be complete", "NaN", "impute, or drop such rows"))
    found, label = codes(labels, whose)
    if len(label) != len(x):
        raise ShapeError(sentence(whose, f"one label per row is needed ({len(x)})", len(label)))
    w = as_counts(weight, len(x), whose)
    mass = np.bincount(label, w, len(found))
    there = mass > 0
    if not 2 <= there.sum() < w.sum():
        expected = "at least two clusters are needed, and more rows than clusters"
        raise DataError(sentence(whose, expected, f"{there.sum()} clusters of {w.sum():g} rows"))
    if not there.all():  # rows of clusters of weight 0: they are compared with the others, but do not count
        raise DataError(
            sentence(whose, "every cluster needs positive weight", f"none for {found[int(np.argmin(there))]!r}")
        )
    return x if metric else x - np.mean(x, axis=0), label, w


def _square(X: Any, whose: str) -> Array:
    d = numbers(X, whose)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise ShapeError(sentence(whose, "precomputed distances must be a square matrix", d.shape))
    return d
