"""Cluster profiles: means per cluster against the whole table, in standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.report.number_format import number

LEVELS = 12  # of a column of words, the most frequent
CLEAR = 0.3  # spreads from the mean of all from which on a difference is worth a word
TOLD = 4  # traits of a cluster that are put in words


@dataclass(frozen=True)
class Trait:
    """A numeric column, or a level of a categorical column, in all rows and per cluster.

    `apart` is (value in the cluster − value in all) / spread in all; a level counts as a number that is 1 or 0, so
    its value is a share.
    """

    column: str
    level: str | None  # None: a number
    overall: float
    values: Array  # (K,); NaN where a cluster has none observed
    apart: Array  # (K,)

    @property
    def name(self) -> str:
        """The column, or the column and its level."""
        return self.column if self.level is None else f"{self.column} = {self.level}"

    @property
    def most(self) -> float:
        """Largest standardized difference of a cluster."""
        return float(np.abs(self.apart).max(initial=0.0))

    def words(self, k: int) -> str:
        """Cluster k in this trait.

        >>> Trait("color", "red", 0.5, np.array([0.9]), np.array([0.8])).words(0)
        'color = red 90% (all: 50%)'
        """
        if self.level is not None:
            return f"{self.name} {self.values[k]:.0%} (all: {self.overall:.0%})"
        return f"{self.name} {number(float(self.values[k]))} ({self.apart[k]:+.1f} sd)".replace("(-", "(−")


def profile(
    columns: Mapping[str, Any], kinds: Mapping[str, str], labels: Index, n_clusters: int, weight: Array | None = None
) -> list[Trait]:
    """The traits of clusters, by columns of numbers (NaN: missing) and of words (None), the most telling first.

    >>> found = profile({"x": np.array([0.0, 0.0, 2.0, 2.0])}, {"x": "real"}, np.array([0, 0, 1, 1]), 2)
    >>> found[0].values.tolist(), found[0].apart.tolist()
    ([0.0, 2.0], [-1.0, 1.0])
    """
    w = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    traits: list[Trait] = []
    for name, cells in columns.items():
        if kinds[name] in ("real", "count"):
            traits.append(_trait(name, None, np.asarray(cells, dtype=np.float64), labels, n_clusters, w))
        else:
            traits += _levels(name, cells, labels, n_clusters, w)
    return sorted(traits, key=lambda trait: -trait.most)


def _levels(name: str, cells: Any, labels: Index, n_clusters: int, w: Array) -> list[Trait]:
    texts = np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
    seen = np.array([cell is not None for cell in cells], dtype=bool)
    levels, which = np.unique(texts[seen], return_inverse=True)
    often = np.argsort(-np.bincount(which, w[seen], len(levels)), kind="stable")[:LEVELS]
    return [
        _trait(
            name, str(levels[i]), np.where(seen, texts == levels[i], np.nan).astype(np.float64), labels, n_clusters, w
        )
        for i in often
    ]


def _trait(name: str, level: str | None, x: Array, labels: Index, n_clusters: int, w: Array) -> Trait:
    seen = ~np.isnan(x) & (w > 0)
    x, labels, w = x[seen], labels[seen], w[seen]
    total = max(float(w.sum()), 1e-300)
    overall = float(w @ x) / total
    spread = float(np.sqrt(w @ (x - overall) ** 2 / total))
    share = np.bincount(labels, w, n_clusters)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = overall + np.bincount(labels, w * (x - overall), n_clusters) / share
        values = np.where(np.abs(values) <= 1e-9 * spread, 0.0, values)  # not a rounding error's worth of anything
        apart = np.nan_to_num((values - overall) / spread) if spread > 0 else np.zeros(n_clusters)
    return Trait(name, level, overall, values, apart)


def trait_words(traits: list[Trait], k: int) -> list[str]:
    """A cluster in a few words: the traits in which it differs most, one of each column."""
    words: dict[str, str] = {}
    # of two levels that are as far apart, the one that the cluster has rather than the one that it lacks
    for trait in sorted(traits, key=lambda t: (-abs(round(float(t.apart[k]), 6)), t.apart[k] < 0)):
        if abs(trait.apart[k]) >= CLEAR and trait.column not in words and len(words) < TOLD:
            words[trait.column] = trait.words(k)
    return list(words.values())
