"""Linkage criteria: distances between clusters, as a table.

With a *reducible* linkage a merged cluster is never nearer to others than its parts were. Then reciprocal nearest
neighbors may be merged in any order, all of them at once, and the tree is that of merging the closest pair first.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from likely.cluster.hierarchy._loops import ADD, LARGER, MEAN, SMALLER
from likely.core.arrays import check_option


class Link(NamedTuple):
    """A linkage criterion: its description, the update of distances by a merge, and its requirements."""

    words: str
    join: int | None = (
        None  # update of d(k, a ∪ b) from d(k, a) and d(k, b); None: clusters are represented by their rows
    )
    mean: bool = False  # whether the stored sum is divided by both weights


Linkage = Literal[
    "single", "complete", "average", "weighted", "sum", "centroid", "median", "coordinate-median", "ward", "likelihood"
]  # fmt: skip
LINKS: dict[Linkage, Link] = {
    "single": Link("the smallest distance of two rows (Ney: single link)", SMALLER),
    "complete": Link("the largest distance of two rows (Ney: complete link)", LARGER),
    "average": Link("the mean distance of two rows, UPGMA (Ney: group average link)", ADD, mean=True),
    "weighted": Link("the mean of the distances to both parts, WPGMA (McQuitty; elsewhere: weighted average)", MEAN),
    "sum": Link("the sum of all distances (Ney: weighted average link)", ADD),
    "centroid": Link("the distance of the means (Ney: centroid link)"),
    "median": Link("the distance of centers, each midway between its parts' centers, WPGMC (Gower)"),
    "coordinate-median": Link("the distance of the medians, column by column (Ney: median link)"),
    "ward": Link("√2 times the root of what the squared error grows by (Ney: sum of squares, Ward)"),
    "likelihood": Link("what the log-likelihood of one Gaussian per cluster loses (Ney: Gaussian model)"),
}


def link_named(name: Linkage, whose: str = "linkage") -> Link:
    """The linkage criterion of that name.

    >>> link_named("average").words
    'the mean distance of two rows, UPGMA (Ney: group average link)'
    """
    check_option(name, Linkage, whose, "linkage")
    return LINKS[name]
