"""Agglomerative clustering by reciprocal nearest neighbors, merged in rounds.

For reducible linkages this is the tree of merging the closest pair first (as in the nearest-neighbor chain algorithm),
but a round is one multithreaded sweep through memory, and removes about a third of the clusters. A cluster
keeps its nearest neighbor until that one merges: no new cluster can be nearer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from likely.cluster.hierarchy import _loops as loops
from likely.cluster.hierarchy.linkage_criteria import Link
from likely.core.arrays import Array, Index, Mask
from likely.core.engine import cores, ordered_map
from likely.core.memory import refuse_beyond

LONG = 4_000_000  # loop iterations from which threads pay off


class Growing:
    """The merges so far: the present clusters with their numbers, and all merges with heights."""

    def __init__(self, n: int) -> None:
        self.names: Index = np.arange(n, dtype=np.int64)
        self.made = n
        self.pairs: list[Any] = []
        self.heights: list[Any] = []

    def merge(self, a: Index, b: Index, height: Array) -> None:
        """Merge the clusters in slots b into those in slots a (p,)."""
        self.pairs.append(np.column_stack([self.names[a], self.names[b]]))
        self.heights.append(height)
        self.names[a] = self.made + np.arange(len(a))
        self.made += len(a)

    def keep(self, kept: Index) -> None:
        """Keep the given slots only."""
        self.names = self.names[kept]

    def tree(self) -> tuple[Index, Array]:
        """Merges (n − 1, 2) and heights (n − 1,), in the order in which they were made."""
        if not self.pairs:
            return np.empty((0, 2), dtype=np.int64), np.empty(0)
        return np.concatenate(self.pairs), np.concatenate(self.heights)


class NearestClusters:
    """The nearest neighbor of each cluster and its distance; renumbered as clusters merge."""

    def __init__(self, n: int) -> None:
        self.nearest, self.height = np.zeros(n, dtype=np.int64), np.zeros(n)
        self.todo: Index = np.arange(n)

    def search(self, look: Callable[[Index], None], work: int) -> None:
        """Let `look` find the nearest neighbors of the clusters in `todo`, in threads if `work` is large."""
        share(lambda part: look(self.todo[part[0] : part[1]]), len(self.todo), len(self.todo) * work)

    def pairs(self) -> tuple[Index, Index]:
        """Reciprocal nearest neighbors: slots a < b."""
        here = np.arange(len(self.nearest))
        a = np.flatnonzero((self.nearest[self.nearest] == here) & (here < self.nearest))
        if not len(a):  # rounding made a matrix asymmetric in the last digit: the closest pair of all is still right
            i = int(np.argmin(self.height))
            a = np.array([min(i, self.nearest[i])])
            self.nearest[a] = max(i, self.nearest[i])
        return a, self.nearest[a]

    def retire(self, a: Index, b: Index) -> None:
        """Slots b are empty now; merged clusters, and those whose nearest neighbor merged, must search again."""
        touched = np.zeros(len(self.nearest), dtype=bool)
        touched[a] = touched[b] = True
        again = touched | touched[self.nearest]
        again[b] = False
        self.todo = np.flatnonzero(again)
        self.nearest[b], self.height[b] = b, np.inf

    def keep(self, kept: Mask) -> None:
        """Renumber the kept slots (m,)."""
        place = np.cumsum(kept) - 1
        self.todo = place[self.todo]
        self.nearest, self.height = place[self.nearest[kept]], self.height[kept]

    def merged(self, a: Index, b: Index) -> Index:
        """Apply merges to both; returns the remaining slots."""
        kept = np.ones(len(self.nearest), dtype=bool)
        kept[b] = False
        self.retire(a, b)
        self.keep(kept)
        return np.flatnonzero(kept)


def share(work: Callable[[tuple[int, int]], Any], n: int, steps: int) -> None:
    """Run work((start, stop)) over 0 … n, split for threads if it is long."""
    parts = 4 * cores() if steps > LONG and n > 1 else 1
    edges = np.linspace(0, n, min(parts, n) + 1).astype(int).tolist()
    for _ in ordered_map(work, list(pairwise(edges)), cores()):
        pass


# ---------------------------------------------------------------------------- Ward


def ward(x: Array, weight: Array) -> tuple[Index, Array]:
    """Merges and heights √(2 w_a w_b / (w_a + w_b)) |μ_a − μ_b| of rows x (n, d), without a matrix of distances."""
    points, w = np.array(x.T, order="C"), weight.copy()  # one column: its transpose would be the caller's own array
    near, growing = NearestClusters(len(w)), Growing(len(w))
    while len(w) > 1:
        look_at_points(points, w, True, near)
        a, b = near.pairs()
        growing.merge(a, b, np.sqrt(2 * near.height[a]))
        total = w[a] + w[b]
        points[:, a] += (w[b] / total) * (points[:, b] - points[:, a])
        w[a] = total
        kept = near.merged(a, b)
        points, w = np.ascontiguousarray(points[:, kept]), w[kept]
        growing.keep(kept)
    return growing.tree()


def look_at_points(points: Array, w: Array, ward: bool, near: NearestClusters) -> None:
    """Find the nearest neighbors of the clusters that must search again, among points (d, m)."""
    thin = 1 / w
    near.search(lambda todo: loops.nearest_points(points, thin, ward, todo, near.nearest, near.height), points.size)


# --------------------------------------------------- links of distances between rows


def by_points(x: Array, weight: Array, link: Link) -> tuple[Index, Array]:
    """Merges and heights by Euclidean distances of rows x (n, d).

    The first round needs no matrix. The matrix is then that of the clusters it leaves (four fifths of the rows, for ten
    thousand of them in eight columns), filled with what the first merges make of the distances.
    """
    points = np.ascontiguousarray(x.T)
    near, growing = NearestClusters(len(x)), Growing(len(x))
    if link.mean or link.join != loops.ADD or (weight == weight[0]).all():
        look_at_points(points, weight, False, near)
        a, b = near.pairs()
    else:
        a = b = np.empty(0, dtype=np.int64)  # the nearest neighbor depends on weights, which the point search ignores
    factor = weight if link.join == loops.ADD else np.ones(len(weight))
    unit = np.ones(len(a)) if link.mean or link.join != loops.ADD else weight[a] * weight[b]
    growing.merge(a, b, unit * np.sqrt(near.height[a]))
    partner = np.full(len(x), -1)
    partner[a] = b
    kept = near.merged(a, b)
    growing.keep(kept)
    total = weight + np.where(partner >= 0, weight[partner], 0.0)
    matrix = _filled(points, factor, link, kept, partner[kept])
    return rounds(matrix, total[kept], link, growing)


def _filled(points: Array, factor: Array, link: Link, first: Index, second: Index) -> Array:
    """The matrix of distances between clusters of one point or two."""
    matrix, merged, m = empty_matrix(len(first)), np.flatnonzero(second >= 0), len(first)
    fill = loops.fill
    share(lambda part: fill(points, factor, link.join, first, merged, second, *part, matrix), m, m * points.size)
    return matrix


def empty_matrix(n: int) -> Array:
    """Memory for n² distances, or an error that explains why not."""
    remedy = 'use "ward", "single" or "centroid", which need no matrix, or merge a sample or k-means centers'
    refuse_beyond(8.0 * n * n, "linkage", f"a matrix of {n:,} × {n:,} distances", remedy)
    return np.empty((n, n))


def rounds(matrix: Array, weight: Array, link: Link, growing: Growing) -> tuple[Index, Array]:
    """Merge until one cluster is left; the matrix (m, m) has infinity on its diagonal, and is overwritten.

    A round that merges few pairs updates their rows and columns; the matrix is compacted when an eighth of it is empty.
    So data that merge one pair at a time take O(n²) operations, too.
    """
    near, w, alive = NearestClusters(len(weight)), weight.copy(), np.ones(len(weight), dtype=bool)
    while len(w) > 1:
        _look_at_matrix(matrix, 1 / w if link.mean else np.ones(len(w)), near)
        a, b = near.pairs()
        growing.merge(a, b, near.height[a])
        w[a] += w[b]
        alive[b] = False
        near.retire(a, b)
        if 8 * (len(w) - alive.sum()) < len(w):
            loops.join_few(matrix, len(w), link.join, a, b)
            continue
        partner = np.full(len(w), -1)
        partner[a] = b
        kept = np.flatnonzero(alive)
        _fold(matrix, len(w), link.join, kept, partner[kept])
        near.keep(alive)
        growing.keep(kept)
        w, alive = w[kept], np.ones(len(kept), dtype=bool)
    return growing.tree()


def _look_at_matrix(matrix: Array, shares: Array, near: NearestClusters) -> None:
    look = loops.nearest_entries
    near.search(lambda todo: look(matrix, shares, todo, near.nearest, near.height), len(shares))


def _fold(matrix: Array, m: int, join: int | None, kept: Index, partner: Index) -> None:
    """Compact the matrix after merges, in the same memory: columns are joined first, then rows."""
    merged, columns, rows = np.flatnonzero(partner >= 0), loops.fold_columns, loops.fold_rows
    share(lambda part: columns(matrix, m, join, kept, merged, partner, *part), m, m * m)
    share(lambda part: rows(matrix, join, kept, partner, *part), len(kept), m * m)


def ward_of_squares(squares: Array, w: Array) -> tuple[Index, Array]:
    """Ward's merges of rows with weights w (n,) from their squared distances (n, n), which are overwritten.

    Distances are updated by the Lance–Williams formula (1967); pairs are found by a nearest-neighbor chain.

    >>> merges, heights = ward_of_squares(np.array([[0.0, 1.0, 25.0], [1.0, 0.0, 16.0], [25.0, 16.0, 0.0]]), np.ones(3))
    >>> merges.tolist(), heights.round(4).tolist()
    ([[0, 1], [3, 2]], [1.0, 5.1962])
    """
    size, growing, chain = w.copy(), Growing(len(w)), [0]
    for i in range(len(w)):
        squares[i] *= 2.0 * w[i] * w / (w[i] + w)
        squares[i, i] = np.inf
    while growing.made < 2 * len(w) - 1:
        row = squares[chain[-1]]
        near = int(np.argmin(row))
        if len(chain) < 2 or row[near] < row[chain[-2]]:
            chain.append(near)
            continue
        a, b = sorted((chain.pop(), chain.pop()))
        height = squares[a, b]
        joined = (size + size[a]) * squares[a] + (size + size[b]) * squares[b] - size * height
        squares[a] = squares[:, a] = joined / (size + size[a] + size[b])
        squares[b] = squares[:, b] = squares[a, a] = np.inf
        size[a] += size[b]
        growing.merge(np.array([a]), np.array([b]), np.sqrt([height]))
        chain = chain or [a]
    return growing.tree()
