"""Exact nearest-neighbor search: a bounding-box tree in few dimensions, matrix products in many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, refuse_infinite, rows, weights
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, sentence
from likely.core.job_size import job
from likely.core.value import Value
from likely.distributions.gaussian.missing_values_em import any_missing
from likely.neighbors.distances import Metric, MetricName, sums

TRIED = 48  # pilot queries that measure how much of the tree is visited
STRIP = 128  # queries per block of matrix products
PIECE = 512  # queries per task of a thread
SPAN = 1e140  # magnitude up to which sums of squares do not overflow
SMALL = 1e-140
FLAT, FEW = 4, 1000  # columns and rows up to which SciPy's tree finds one neighbor as fast, without compilation


@dataclass(frozen=True, eq=False)
class NeighborSearch(Value):
    """Exact nearest-neighbor search, with the same results by any method; ties go to the smallest row number.

    Make it by `NeighborSearch.of`. A row x with missing entries (NaN), or a query with some, is compared over the
    columns that both have, and the sum is scaled to all columns, d / (columns in common); with none in common it is
    infinitely far. That is a brute-force search. Squared Mahalanobis distances are the expected ones (see `Metric`).

    Parameters
    ----------
    metric : Metric
        The distance.
    points : ndarray (n, d)
        Prepared rows, scaled to a moderate size.
    unit : float
        A power of 2 that they were divided by.
    tree : tree or None
        Tree of the rows; None if rows have missing entries.

    Examples
    --------
    >>> found = NeighborSearch.of([[0.0], [1.0], [5.0]]).nearest([[1.2]], 2)
    >>> found[0].round(1), found[1]
    (array([[0.2, 1.2]]), array([[1, 0]]))
    """

    metric: Metric
    points: Array  # (n, d) prepared rows, scaled to a moderate size
    unit: float  # a power of 2 that they were divided by
    tree: Any  # None if rows have missing entries

    @classmethod
    def of(
        cls, x: ArrayLike, metric: MetricName | Metric = "l2", *, p: float = 2.0, scale: ArrayLike | None = None,
        weight: ArrayLike | None = None, labels: Index | None = None, whose: str = "NeighborSearch",
    ) -> Self:  # fmt: skip
        """A search among rows by a metric, with scales estimated from them.

        Parameters
        ----------
        x : array-like (n, d)
            Rows; NaN is a missing value.
        metric : str or Metric, default "l2"
            The distance: "l1", "l2", "linf", "lp", "scaled", "mahalanobis" or "correlation", SciPy's names of the first
            four, or a `Metric`.
        p : float, default 2.0
            Exponent of "lp".
        scale : array-like (d,) or (d, d), optional
            Standard deviations of "scaled", or covariance of "mahalanobis", instead of estimates.
        labels : array-like of int (n,), optional
            Classes within which scales are estimated.
        """
        z = rows(x, None, whose)
        refuse_infinite(z, whose)
        if not z.size:
            raise DataError(sentence(whose, "at least one row and one column are needed", z.shape))
        w = weights(weight, len(z), whose)
        meant = metric if isinstance(metric, Metric) else Metric.learned(metric, z, w, labels, p=p, scale=scale)
        if meant.distribution is not None and any_missing(z):
            meant = meant.replace(unsure=True)
        points = meant.prepare(z, whose)
        unit = _unit(points, meant.p)
        points = np.ascontiguousarray(points / unit)
        gaps = bool(np.isnan(points).any())
        return cls.trusted(metric=meant, points=points, unit=unit, tree=None if gaps else _Tree(points))

    def __len__(self) -> int:
        return len(self.points)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.metric, self.points, self.unit)

    def nearest(self, x: ArrayLike, k: int, whose: str = "NeighborSearch") -> tuple[Array, Index]:
        """The k nearest rows of each query, nearest first.

        Parameters
        ----------
        x : array-like (m, d)
            Queries; NaN is a missing value.
        k : int
            Number of neighbors.

        Returns
        -------
        distances : ndarray (m, k)
            Distances.
        indices : ndarray of int (m, k)
            Row numbers.
        """
        k = self._sound(k, len(self), whose)
        z = self._asked(x, whose) / self.unit
        distribution = self.metric.distribution
        more = None if distribution is None else self.metric.uncertainty(rows(x, None, whose)) / self.unit / self.unit
        return self._found(np.ascontiguousarray(z), np.full(len(z), -1), k, more)

    def nearest_others(self, k: int, of: Any = None, whose: str = "NeighborSearch") -> tuple[Array, Index]:
        """The k nearest rows of each training row among all others (leave-one-out).

        Parameters
        ----------
        k : int
            Number of neighbors.
        of : array-like of int (m,), optional
            Numbers of the training rows; all by default.

        Returns
        -------
        distances : ndarray (m, k)
            Distances.
        indices : ndarray of int (m, k)
            Row numbers.
        """
        k = self._sound(k, len(self) - 1, whose)
        at = np.arange(len(self)) if of is None else np.asarray(of, dtype=np.intp)
        more = self.points[at, -1] ** 2 if self.metric.unsure else None
        return self._found(self._as_queries(at), at, k, more)

    # ------------------------------------------------------------------- inside

    def _asked(self, x: Any, whose: str) -> Array:
        """Queries in the coordinates of the points, with the same number of columns."""
        extra = 2 if self.metric.name == "correlation" else int(self.metric.unsure)
        return self.metric.prepare(rows(x, self.points.shape[1] - extra, whose), whose, asked=True)

    def _as_queries(self, at: Index) -> Array:
        z = np.ascontiguousarray(self.points[at])
        if self.metric.name == "correlation":  # constant rows have no correlation, not even with each other
            z[:, [-2, -1]] = z[:, [-1, -2]]
        if self.metric.unsure:
            z[:, -1] = 0.0
        return z

    def _sound(self, k: Any, most: int, whose: str) -> int:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= most:
            raise DomainError(sentence(whose, f"k must be an integer from 1 to {most}", k))
        return int(k)

    def _found(self, z: Array, own: Index, k: int, more: Array | None = None) -> tuple[Array, Index]:
        """Distances and rows of the nearest; `more` (m,) is added to the squared distances of each query."""
        away, rows = np.empty((len(z), k)), np.empty((len(z), k), dtype=np.int64)
        own = own.astype(np.int64)
        far = ~(np.abs(np.where(np.isnan(z), 0.0, z)).max(axis=1, initial=0.0) <= self._reach)
        gaps = np.isnan(z).any(axis=1) if self.tree is not None else np.ones(len(z), dtype=bool)
        _in_threads(lambda part: self._with_gaps(z, own, part, away, rows), np.flatnonzero(gaps & ~far))
        if self.tree is not None:
            self._without_gaps(z, own, np.flatnonzero(~gaps & ~far), away, rows)
        with np.errstate(over="ignore"):
            factor = 1.0 if self.metric.name == "correlation" else self.unit
            away[far] = 0.0
            away = away if more is None else away + more[:, None]
            away = self.metric.distances(away) * factor
            for at in np.flatnonzero(far):
                away[at], rows[at] = self._plainly(z[at], own[at], k)
            return away, rows.astype(np.intp, copy=False)

    @property
    def _reach(self) -> float:
        """The largest entry of a query for which sums of powers do not overflow."""
        return float(SPAN if self.metric.p in (1.0, 2.0, np.inf) else 10 ** (280 / self.metric.p))

    def _plainly(self, q: Array, own: int, k: int) -> tuple[Array, Index]:
        """Distances of one very distant query, in extended precision."""
        wide: Any = np.longdouble
        p = self.metric.p
        z = np.abs(self.points.astype(wide) - q.astype(wide))
        there = ~np.isnan(z)
        z = np.where(there, z, 0)
        total = z.max(axis=1) if p == np.inf else (z**p).sum(axis=1)
        seen = there.sum(axis=1)
        total = np.where(seen > 0, total if p == np.inf else total * z.shape[1] / np.maximum(seen, 1), np.inf)
        if own >= 0:
            total[own] = np.nan
        order = np.argsort(total, kind="stable")[:k]
        roots = total[order] if p in (1.0, np.inf) else total[order] ** (wide(1) / wide(p))
        return (roots * self.unit).astype(np.float64), order

    def _with_gaps(self, z: Array, own: Index, part: Index, away: Array, rows: Index) -> None:
        from likely.neighbors._loops.kd_tree import search_with_gaps

        near, who = np.empty((len(part), away.shape[1])), np.empty((len(part), away.shape[1]), dtype=np.int64)
        search_with_gaps(z[part], own[part], np.array(self.points), _kind(self.metric.p), self.metric.p, near, who)
        away[part], rows[part] = near, who

    def _without_gaps(self, z: Array, own: Index, part: Index, away: Array, rows: Index) -> None:
        """Tree or products, chosen by pilot queries."""
        kind, p = _kind(self.metric.p), self.metric.p
        if len(part) > 2 * TRIED and p == 2.0:
            tried = part[:: len(part) // TRIED]
            share = self.tree.search(z, tried, own, kind, p, away, rows) / (len(tried) * self.tree.leaves)
            if share > 0.15 + 1.5 / z.shape[1]:  # a product takes a seventh of the time, selection the rest
                _in_threads(lambda some: self._by_products(z, own, some, away, rows), part, STRIP)
                return
        order = part[self.tree.order_of(z[part])] if len(part) > PIECE else part
        _in_threads(lambda some: self.tree.search(z, some, own, kind, p, away, rows), order)

    def _by_products(self, z: Array, own: Index, part: Index, away: Array, rows: Index) -> None:
        from likely.neighbors._loops.kd_tree import settle

        middle, centered, norms = self.tree.centered
        q = z[part] - middle
        products = (-2.0 * q) @ centered.T
        length = np.sqrt((q**2).sum(axis=1)) + np.sqrt(norms.max(initial=0.0))
        slack = 4.0 * (z.shape[1] + 8) * np.finfo(np.float64).eps * length**2
        near, who = np.empty((len(part), away.shape[1])), np.empty((len(part), away.shape[1]), dtype=np.int64)
        settle(products, norms, slack, z[part], own[part], self.tree.points, near, who)
        away[part], rows[part] = near, who


def nearest_other(x: Array, of: Index | None = None, p: float = 2.0) -> tuple[Array, Index]:
    """Distance and number (m,) of the nearest other row, for rows x (n, d) or those numbered `of`; p is 2 or infinite.

    Up to 4 columns or 1,000 rows by SciPy's tree, which is as fast there (30,000 rows of 4 columns: 0.20 s by ours,
    0.22 s by SciPy's) and needs no compilation; else by `NeighborSearch` (10,000 rows of 6 columns 0.09 s, of 12
    columns 1.1 s; SciPy's 0.23 s and 2.9 s; 30,000 of 16 columns 8 s and 51 s).
    """
    at = np.arange(len(x)) if of is None else of
    if x.shape[1] > FLAT and len(x) > FEW:
        away, rows = NeighborSearch.of(x, "l2" if p == 2.0 else "linf").nearest_others(1, at)
        return away[:, 0], rows[:, 0]
    from scipy.spatial import cKDTree

    away, rows = cKDTree(x).query(x[at], k=2, p=p, workers=cores() if x.size > 10**5 else 1)
    second = (rows[:, 0] == at).astype(np.intp)  # of equal rows the row itself may come second
    return away[np.arange(len(at)), second], rows[np.arange(len(at)), second]


class _Tree:
    """The arrays of the compiled tree search."""

    def __init__(self, points: Array) -> None:
        from likely.neighbors._loops.kd_tree import FAN, LANES, fill

        n, d = points.shape
        self.points = np.array(points)  # writable, as the loops were compiled for
        self.leaves = -(-n // LANES)
        counts = [-(-self.leaves // FAN)]
        while counts[0] > 1:
            counts.insert(0, -(-counts[0] // FAN))
        self.firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.blocks, self.numbers = np.empty((self.leaves, d, LANES)), np.empty((self.leaves, LANES), dtype=np.int64)
        self.boxes = np.full((self.firsts[-1], 2, d, FAN), np.inf)
        with job(10.0 * points.size * np.log2(n + 1), visits=n):
            fill(self.points, self.order_of(self.points), self.blocks, self.numbers, self.boxes, self.firsts)
        self._centered: Any = None

    @staticmethod
    def order_of(points: Array) -> Index:
        """Rows in an order in which neighbors are adjacent, for cache locality."""
        from likely.neighbors._loops.kd_tree import grow

        order = np.arange(len(points), dtype=np.int64)
        grow(points, order)
        return order

    def search(self, z: Array, order: Index, own: Index, kind: int, p: float, away: Array, rows: Index) -> int:
        """Search for queries z[order]; returns the number of visited leaves."""
        from likely.neighbors._loops.kd_tree import search

        order = np.ascontiguousarray(order, dtype=np.int64)
        tree = (self.blocks, self.numbers, self.boxes, self.firsts)
        return int(search(z, order, own, *tree, kind, p, away, rows))

    @property
    def centered(self) -> tuple[Array, Array, Array]:
        """The center of all rows, centered rows, and their squared norms: products then lose few digits."""
        if self._centered is None:
            middle = self.points.mean(axis=0)
            about = self.points - middle
            self._centered = middle, about, (about**2).sum(axis=1)
        found: tuple[Array, Array, Array] = self._centered
        return found


def _again(metric: Metric, points: Array, unit: float) -> NeighborSearch:
    tree = None if np.isnan(points).any() else _Tree(points)
    return NeighborSearch.trusted(metric=metric, points=points, unit=unit, tree=tree)


def _in_threads(work: Any, order: Index, piece: int = PIECE) -> None:
    """The work in pieces, on all cores."""
    pieces = [order[i : i + piece] for i in range(0, len(order), piece)]
    with one_blas_thread():
        for _ in ordered_map(work, pieces, cores()):
            pass


def _kind(p: float) -> int:
    from likely.neighbors._loops.kd_tree import ABSOLUTE, LARGEST, POWER, SQUARED

    return {1.0: ABSOLUTE, 2.0: SQUARED, np.inf: LARGEST}.get(p, POWER)


def _unit(points: Array, p: float) -> float:
    """1, or a power of 2 that scales numbers of extreme size to about 1, before powers are taken."""
    top = float(np.abs(np.where(np.isnan(points), 0.0, points)).max(initial=0.0))
    moderate = p in (1.0, 2.0, np.inf) and SMALL < top < SPAN / 1e10
    return 1.0 if moderate or top == 0 else float(2.0 ** (np.frexp(top)[1] - 1))


__all__ = ["NeighborSearch", "nearest_other", "sums"]
