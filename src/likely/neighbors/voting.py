"""k-nearest-neighbor voting: class counts among the k nearest units of weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.value import Value
from likely.neighbors.nearest_neighbors import NeighborSearch

VoteWeights = Literal["uniform", "distance"]
BLOCK = 2**21  # neighbors in memory at once


@dataclass(frozen=True, eq=False)
class Voters(Value):
    """Searchable rows, each with a class and a weight: a weight of w is w copies of a row.

    The k nearest are k units of weight: the last row counts with the remainder. Rows at infinite distance (without
    an entry in common with a query) have no vote.
    """

    search: NeighborSearch
    labels: Index  # (n,)
    weight: Array  # (n,), positive
    classes: int

    def votes(self, x: Any, k: float, by_distance: bool = False, whose: str = "Voters") -> tuple[Array, Array]:
        """Votes (m, C) for rows x among their k nearest, and the distance to the k-th (m,)."""
        votes, radius = self.votes_for_each(x, [k], by_distance, whose)
        return votes[0], radius[0]

    def votes_for_each(
        self, x: Any, ks: Sequence[float], by_distance: bool = False, whose: str = "Voters"
    ) -> tuple[Array, Array]:
        """The same for several k by one search: votes (K, m, C) and distances (K, m)."""
        reach = self._enough(max(ks), 0)
        return self._told(len(x), reach, lambda part: self.search.nearest(x[part], reach, whose), ks, by_distance, None)

    def votes_left_out(self, k: float, by_distance: bool = False, of: Any = None) -> tuple[Array, Array]:
        """Leave-one-out votes for the training rows, or those numbered `of` (m,).

        Of an integer weight one unit is left out, otherwise the whole row.
        """
        votes, radius = self.left_out_for_each([k], by_distance, of)
        return votes[0], radius[0]

    def left_out_for_each(self, ks: Sequence[float], by_distance: bool = False, of: Any = None) -> tuple[Array, Array]:
        """The same for several k by one search: votes (K, m, C) and distances (K, m)."""
        at = np.arange(len(self.labels)) if of is None else np.asarray(of, dtype=np.intp)
        if len(self.labels) == 1:
            own = np.array([self._left(at)[0]])
            mine = np.arange(self.classes) == self.labels[0]
            votes = np.stack([np.where(mine, np.minimum(own, k), 0.0)[None] for k in ks])
            return votes, np.zeros((len(ks), 1))
        reach = self._enough(max(ks), 1)
        return self._told(
            len(at), reach, lambda part: self.search.nearest_others(reach, at[part]), ks, by_distance, at
        )  # fmt: skip

    # ------------------------------------------------------------------- inside

    def _enough(self, k: float, fewer: int) -> int:
        """The number of nearest rows that always hold k units of weight; at most all."""
        n = len(self.labels) - fewer
        if (self.weight >= 1).all():
            return min(int(np.ceil(k)), n)
        lightest = np.cumsum(np.sort(self.weight))
        return min(int(np.searchsorted(lightest, k * (1 - 1e-12))) + 1, n)

    def unit(self, at: Index) -> Array:
        """The weight removed by leaving a row out: one unit of an integer weight, else the whole row."""
        return self.weight[at] - self._left(at)

    def _left(self, at: Index) -> Array:
        """The weight of rows that remains when one unit is left out."""
        w = self.weight[at]
        return np.where(w == np.floor(w), w - 1.0, 0.0)

    def _told(
        self, m: int, reach: int, find: Any, ks: Sequence[float], by_distance: bool, at: Index | None
    ) -> tuple[Array, Array]:
        votes, radius = np.empty((len(ks), m, self.classes)), np.empty((len(ks), m))
        wide = [self._enough(k, 0) + 1 for k in ks]  # one more, since a row's own duplicates may come first
        step = max(BLOCK // reach, 64)
        for first in range(0, m, step):
            part = slice(first, min(first + step, m))
            away, rows = find(part)
            weight = self.weight[rows]
            if at is not None and (left := self._left(at[part])).any():
                away, rows, weight = _among(away, rows, weight, at[part], left)
            for i, k in enumerate(ks):
                near = slice(wide[i])
                votes[i, part], radius[i, part] = self._counted(
                    away[:, near], rows[:, near], weight[:, near], k, by_distance
                )
        return votes, radius

    def _counted(self, away: Array, rows: Index, weight: Array, k: float, by_distance: bool) -> tuple[Array, Array]:
        before = np.cumsum(weight, axis=1) - weight
        vote = np.clip(k - before, 0.0, weight)
        radius = np.where(vote > 0, away, 0.0).max(axis=1)
        vote[np.isinf(away)] = 0.0
        if by_distance:
            vote = _by_distance(vote, away)
        flat = self.labels[rows] + self.classes * np.arange(len(rows))[:, None]
        counted = np.bincount(flat.ravel(), vote.ravel(), len(rows) * self.classes)
        return counted.reshape(len(rows), self.classes).astype(np.float64), radius


def _among(away: Array, rows: Index, weight: Array, own: Index, left: Array) -> tuple[Array, Index, Array]:
    """Neighbors including the remaining weight of the rows themselves: at distance 0, ordered by row number."""
    place = ((away == 0) & (rows < own[:, None])).sum(axis=1)[:, None]
    at = np.arange(rows.shape[1] + 1)[None]
    source = np.minimum(at - (at > place), rows.shape[1] - 1)

    def put(values: Any, mine: Any) -> Any:
        return np.where(at == place, mine, np.take_along_axis(values, source, axis=1))

    return put(away, 0.0), put(rows, own[:, None]), put(weight, left[:, None])


def _by_distance(vote: Array, away: Array) -> Array:
    """Votes weighted by inverse distance, normalized to the same total; rows at distance 0 take all votes."""
    nearest = np.where(vote > 0, away, np.inf).min(axis=1, keepdims=True)
    nearest = np.where(np.isfinite(nearest), nearest, 1.0)
    share = np.where(nearest > 0, nearest / np.maximum(away, 1e-300), away == 0)  # relative to the nearest: no overflow
    share = vote * np.where(np.isinf(away), 0.0, share)
    total = share.sum(axis=1, keepdims=True)
    return share * (vote.sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0))
