"""How far apart two clusters are: the links, as data.

A link that is *reducible* never brings a merged cluster nearer to others than its parts were. Then pairs that are each
other's nearest may be merged in any order, all of them at once, and the tree is that of merging the closest pair first.
"""

from __future__ import annotations

from typing import NamedTuple

from likely.cluster.hierarchy._loops import ADD, LARGER, MEAN, SMALLER
from likely.core.errors import DomainError, sentence


class Link(NamedTuple):
    """A link: what it is, how its distances join when clusters merge, and what it needs."""

    words: str
    join: int | None = None  # how d(k, a) and d(k, b) give d(k, a ∪ b); None: clusters are described by their rows
    mean: bool = False  # whether the sum that is kept is divided by both weights


LINKS = {
    "single": Link("the least distance of two rows (Ney: single link)", SMALLER),
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


def link_named(name: str, whose: str = "linkage") -> Link:
    """The link of that name.

    >>> link_named("average").words
    'the mean distance of two rows, UPGMA (Ney: group average link)'
    """
    if name not in LINKS:
        raise DomainError(sentence(whose, f"linkage must be one of {', '.join(LINKS)}", repr(name)))
    return LINKS[name]
