"""k-d tree with bounding boxes over weighted points, laid out for the compiled kernel sums.

Not the tree of `neighbors.nearest_neighbors`: a kernel sum needs the weight below every node, and leaves of 128 points
where a neighbor search wants 64 (with leaves of 64 kernel sums take a third longer).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index

LANES = 128  # points per leaf: fewer make more boxes, more make larger ones; half as many take a third longer
FAR = 1e150  # coordinates of unused lanes, which have weight 0


class Tree(NamedTuple):
    """Bounding boxes of nodes and the points of leaves, column by column; the first node is the root."""

    coords: Array  # (leaves, d, LANES)
    weight: Array  # (leaves, LANES), 0 where there is no point
    low: Array  # (nodes, d)
    high: Array  # (nodes, d)
    total: Array  # (nodes,): total weight of the points below
    child: Index  # (nodes, 2): its two child nodes, or (−1 − leaf, ·)
    place: Index  # (n,): position of each point, leaf · LANES + lane


def tree_of(points: Array, weight: Array) -> Tree:
    """Build the tree: split at the median of the widest column until at most LANES points are left."""
    order, low, high, total, child, leaves = np.arange(len(points)), [], [], [], [], []  # type: ignore[var-annotated]
    columns = np.ascontiguousarray(points.T)  # minimum and maximum column by column take a third of the time
    stack = [(0, len(points), -1, 0, False)]
    while stack:
        start, stop, parent, side, alike = stack.pop()
        if alike:  # all points of the node above are equal: so are these
            low.append(low[parent])
            high.append(low[parent])
        else:
            here = columns[:, order[start:stop]]
            low.append(here.min(axis=1))
            high.append(here.max(axis=1))
            alike = bool((low[-1] == high[-1]).all())
        total.append(weight[order[start:stop]].sum())
        child.append([0, 0])
        if parent >= 0:
            child[parent][side] = len(child) - 1
        if stop - start <= LANES:
            child[-1][0] = -1 - len(leaves)
            leaves.append((start, stop))
            continue
        half = start + LANES * max((stop - start) // (2 * LANES), 1)
        if not alike:
            widest = here[np.argmax(high[-1] - low[-1])]
            order[start:stop] = order[start:stop][np.argpartition(widest, half - start)]
        node = len(child) - 1
        stack += [(start, half, node, 0, alike), (half, stop, node, 1, alike)]
    coords, weights, place = _packed(points[order], weight[order], order, leaves)
    nodes = (np.array(low), np.array(high), np.array(total), np.array(child, dtype=np.int64))
    return Tree(coords, weights, *nodes, place)


def _packed(points: Array, weight: Array, order: Index, leaves: list[tuple[int, int]]) -> tuple[Array, Array, Index]:
    coords = np.full((len(leaves), points.shape[1], LANES), FAR)
    weights = np.zeros((len(leaves), LANES))
    place = np.empty(len(order), dtype=np.int64)
    for leaf, (start, stop) in enumerate(leaves):
        size = stop - start
        coords[leaf, :, :size] = points[start:stop].T
        weights[leaf, :size] = weight[start:stop]
        place[order[start:stop]] = leaf * LANES + np.arange(size)
    return coords, weights, place
