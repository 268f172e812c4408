"""Initialization by splitting (LBG): the clusters of largest scatter are split along their principal axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.cluster.kmeans.assignment import KMeansData
from likely.cluster.kmeans.centroids import Centroids
from likely.cluster.kmeans.lloyd import DEFAULT_STOP, Partition, lloyd
from likely.core.arrays import Array
from likely.core.em_loop import StoppingRule

TURNS = 20  # power iterations: the direction is not critical (Ney 6.2.3)


def split(x: Any, k: int, weight: Any = None, *, stop: StoppingRule = DEFAULT_STOP) -> Partition:
    """From one center to k by alternating splitting and k-means (Linde, Buzo and Gray 1980; Ney 6.2.3, top-down).

    Each round splits as many clusters as are still needed, those of largest scatter first, into two centers one
    standard deviation to either side along the cluster's principal axis. The algorithm is deterministic.
    Clusters of equal rows cannot be split, so there may be fewer than k at the end.

    >>> x = np.array([[0.0], [1.0], [9.0], [10.0], [20.0]])
    >>> sorted(split(x, 3).model.mean[:, 0].tolist())
    [0.5, 9.5, 20.0]
    """
    table = x if isinstance(x, KMeansData) else KMeansData.of(x, weight)
    found = lloyd(table, _one_center(table), stop=stop)
    while found.model.members < k:
        mean = _more(table, found, k - found.model.members)
        if len(mean) == found.model.members:
            break
        found = lloyd(table, mean, stop=stop)
    return found


def _one_center(table: KMeansData) -> Array:
    """The mean of all rows (1, d)."""
    start = Centroids.trusted(mean=table.frame.inverse(np.zeros((1, table.x.shape[1]))), variance=None, typical=None)
    return start.refit(table.stats(start, np.zeros(len(table), dtype=np.int32))).mean


def _more(table: KMeansData, found: Partition, wanted: int) -> Array:
    """The centers, the `wanted` ones of largest scatter split; clusters without scatter cannot be split."""
    scatter = found.report.stats.scatter
    worst = np.argsort(-scatter, kind="stable")[:wanted]
    mean, added = np.array(found.model.mean), []
    for q in worst[scatter[worst] > 0]:
        axis = _principal_axis(table, found, int(q))
        if (mean[q] + axis != mean[q] - axis).any():
            added.append(mean[q] + axis)
            mean[q] -= axis
    return np.concatenate([mean, np.array(added).reshape(-1, mean.shape[1])])


def _principal_axis(table: KMeansData, found: Partition, q: int) -> Array:
    """A cluster's first principal axis, one standard deviation long (d,); its largest entry is positive."""
    at = np.flatnonzero(found.labels == q)
    w = np.ones(len(at)) if table.weight is None else table.weight[at]
    unit = table.frame.unit
    z = np.asarray(table.x[at], dtype=np.float64) * unit - found.model.mean[q] * unit
    z[np.isnan(z)] = 0.0
    size = float(abs(z).max())
    z /= size
    axis = np.sqrt(w @ (z * z))
    for _ in range(TURNS):
        axis = (w * (z @ axis)) @ z
        axis /= max(float(np.linalg.norm(axis)), 1e-300)
    axis *= np.sqrt(w @ (z @ axis) ** 2 / w.sum()) * np.sign(axis[np.argmax(abs(axis))])
    return np.asarray(axis * size / unit)
