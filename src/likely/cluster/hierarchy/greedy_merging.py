"""Greedy agglomerative clustering for non-reducible linkages (centroid, median, likelihood).

Each cluster stores its nearest neighbor. When that one merges, the distance stays as a lower bound, and the search
is repeated only if the bound becomes the smallest of all (Müllner 2011).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from likely.cluster.hierarchy import _loops as loops
from likely.cluster.hierarchy.reciprocal_neighbors import Growing, NearestClusters, empty_matrix, look_at_points, share
from likely.core.arrays import Array, Index, Mask


class Clusters(Protocol):
    """Clusters in slots 0 … m − 1, with their pairwise heights and the merge operation."""

    def heights(self, i: int, near: Array) -> Array:
        """(m,) heights from i to all others; infinite for i itself and for absorbed clusters.

        Where a height is above near[j] and above the smallest of all, any number above both is sufficient.
        """
        ...

    def merge(self, a: int, b: int) -> None:
        """Merge cluster b into a."""
        ...


def greedy(clusters: Clusters, alive: Mask, growing: Growing) -> tuple[Index, Array]:
    """Merge clusters until one is left; alive (m,) is the mask of occupied slots."""
    near, nearest, stale = np.where(alive, -np.inf, np.inf), np.zeros(len(alive), dtype=np.int64), alive.copy()
    for _ in range(int(alive.sum()) - 1):
        i = _closest(clusters, near, nearest, stale)
        a, b = sorted((i, int(nearest[i])))
        growing.merge(np.array([a]), np.array([b]), near[[i]])
        clusters.merge(a, b)
        near[[a, b]], stale[b] = np.inf, False
        row = clusters.heights(a, near)
        stale |= ((nearest == a) | (nearest == b)) & (near < np.inf)
        nearer = row <= near
        nearer[[a, b]] = False
        near[nearer], nearest[nearer], stale[nearer] = row[nearer], a, False
        nearest[a], stale[a] = np.argmin(row), False
        near[a] = row[nearest[a]]
    return growing.tree()


def _closest(clusters: Clusters, near: Array, nearest: Index, stale: Mask) -> int:
    """The cluster with the smallest distance to its nearest neighbor; stale candidates are searched again."""
    i, none = int(np.argmin(near)), np.full(len(near), -np.inf)
    while stale[i]:
        row = clusters.heights(i, none)
        nearest[i], stale[i] = np.argmin(row), False
        near[i] = row[nearest[i]]
        i = int(np.argmin(near))
    return i


# -------------------------------------------------------------- clusters with a center


def by_centers(x: Array, weight: Array, midway: bool) -> tuple[Index, Array]:
    """Merges by distances of centers: means, or midpoints of the two centers; the same search, compiled."""
    points, n = np.array(x.T, order="C"), len(x)
    near = NearestClusters(n)
    look_at_points(points, weight, False, near)
    merges, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    loops.merge_centers(points, weight.copy(), midway, near.nearest, near.height, merges, heights)
    return merges, heights


class Medians:
    """Clusters represented by the columnwise medians of their rows."""

    def __init__(self, x: Array, weight: Array) -> None:
        self.points, self.x, self.weight = np.array(x.T, order="C"), x, weight
        self.members, self.out = [[i] for i in range(len(x))], np.empty(len(x))

    def heights(self, i: int, near: Array) -> Array:
        """The distance of i's medians from all others."""
        loops.point_squares(self.points, i, self.out)
        self.out[i] = np.inf
        return np.sqrt(self.out)

    def merge(self, a: int, b: int) -> None:
        """The medians of all rows of both."""
        self.members[a] += self.members[b]
        self.points[:, a] = column_medians(self.x[self.members[a]], self.weight[self.members[a]])
        self.points[:, b] = np.inf


def column_medians(x: Array, weight: Array) -> Array:
    """Weighted medians of the columns of x (n, d): the midpoint of the two middle values where there are two.

    >>> column_medians(np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 1.0, 2.0]))
    array([3.])
    """
    order = np.argsort(x, axis=0)
    mass, ordered = np.cumsum(weight[order], axis=0), np.take_along_axis(x, order, axis=0)
    half = mass[-1] / 2
    low = np.take_along_axis(ordered, (mass >= half).argmax(axis=0)[None], axis=0)[0]
    high = np.take_along_axis(ordered, np.minimum((mass <= half).sum(axis=0), len(x) - 1)[None], axis=0)[0]
    return 0.5 * (low + high)


# ------------------------------------------------------------- clusters as Gaussians


class _GaussianClusters:
    """Weights, means and scatters of clusters, in units of the floor that is added to every covariance.

    So a single row has a finite likelihood. By the concavity of log det no merge ever gains, and equal rows merge at
    height 0.
    """

    def __init__(self, x: Array, weight: Array, scatter: Array) -> None:
        self.w, self.mean, self.scatter, self.cost = weight.copy(), x.copy(), scatter, np.zeros(len(x))
        self.alive, self.out = np.ones(len(x), dtype=bool), np.empty(len(x))
        self.top = np.zeros(len(x))  # the largest eigenvalue of each scatter, if needed

    def add(self, a: int, b: int) -> Array:
        """Merge b into a by adding moments; returns the covariance of both."""
        n = self.w[a] + self.w[b]
        away = self.mean[b] - self.mean[a]
        between = np.outer(away, away) if self.scatter.ndim == 3 else away**2
        self.scatter[a] += self.scatter[b] + self.w[a] * self.w[b] / n * between
        self.mean[a] += self.w[b] / n * away
        self.w[a], self.alive[b] = n, False
        return np.asarray(self.scatter[a] / n)

    def forget_swallowed(self) -> Index:
        """Remove empty slots; returns the remaining ones."""
        kept = np.flatnonzero(self.alive)
        self.w, self.mean, self.scatter, self.cost = (a[kept] for a in (self.w, self.mean, self.scatter, self.cost))
        self.top, self.out, self.alive = self.top[kept], np.empty(len(kept)), np.ones(len(kept), dtype=bool)
        return kept


class Diagonals(_GaussianClusters):
    """Clusters as Gaussians with diagonal covariance: the loss of a merge is the increase of n/2 Σ_c log(S_c/n + 1)."""

    def __init__(self, x: Array, weight: Array) -> None:
        super().__init__(x, weight, np.zeros(x.shape))

    def heights(self, i: int, near: Array) -> Array:
        """The losses of merging i with each other cluster."""
        loops.diagonal_losses(self.w, self.mean, self.scatter, self.cost, self.alive, i, self.out)
        return np.maximum(self.out, 0.0)  # rounding

    def merge(self, a: int, b: int) -> None:
        """Add the moments; the cost is that of the sum."""
        s = self.add(a, b)
        self.cost[a] = 0.5 * self.w[a] * np.log1p(s).sum()


class Gaussians(_GaussianClusters):
    """Clusters as Gaussians: the loss of a merge is the increase of n/2 log det(S/n + 1)   (Ney 6.2.3).

    A matrix holds the loss of merging two clusters, or a lower bound without a determinant; a bound is made exact when
    it becomes the smallest. Two single rows need none: det(1 + e eᵀ) = 1 + |e|².
    """

    def __init__(self, x: Array, weight: Array) -> None:
        n, d = x.shape
        super().__init__(x, weight, np.zeros((n, d, d)))
        self.losses: Array | None = None
        self.exact = np.zeros((0, 0), dtype=bool)

    def heights(self, i: int, near: Array) -> Array:
        """Losses, or lower bounds, of merging i with each other cluster."""
        losses = self._begin() if self.losses is None else self.losses
        known = self.w, self.mean, self.scatter, self.cost, self.top
        loops.refine_losses(*known, i, near, losses, self.exact)
        return losses[i].copy()

    def merge(self, a: int, b: int) -> None:
        """Add the moments; the cost is that of the sum."""
        s = self.add(a, b)
        values = np.maximum(np.linalg.eigvalsh(s), 0.0)
        self.cost[a], self.top[a] = 0.5 * self.w[a] * np.log1p(values).sum(), self.w[a] * values[-1] * (1.0 + 1e-9)
        if self.losses is not None:
            loops.bound_losses(self.w, self.mean, self.top, self.alive, a, a + 1, self.losses, self.exact)
            loops.spread_losses(a, b, self.losses, self.exact)

    def _begin(self) -> Array:
        """The matrix, after the first merges (by another rule, if there are many rows)."""
        n = len(self.w)
        losses, exact = empty_matrix(n), np.empty((n, n), dtype=bool)
        fill = loops.bound_losses
        known = self.w, self.mean, self.top, self.alive
        share(lambda part: fill(*known, *part, losses, exact), n, n * self.mean.size)
        self.losses, self.exact = losses, exact
        return losses
