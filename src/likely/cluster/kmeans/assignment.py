"""Assignment of rows to the nearest centers, in parts, with running sums of the clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.cluster.kmeans.centroids import Centroids, CentroidStats, Labels, row_weights
from likely.core.arrays import Array, BadEntry, refuse_infinite, rows
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, enumerated, sentence
from likely.distributions.gaussian.moments import ColumnMoments, overflow
from likely.numerics.standardization import AffineMap

ROWS = 32_768  # rows per task: sums are added in this order, independent of the threads
NONE = np.empty(0)
NONE.setflags(write=False)
CANCELED = 1e-6  # relative to Σ w |u|²: a smaller criterion has lost digits needed for the stopping rule
NO_BOUNDS = (np.empty(0, np.float32), np.empty(0, np.float32))


class Tables(NamedTuple):
    """Arrays derived from the centers for the compiled loops."""

    coef: NDArray[Any]  # (k, features)
    half: NDArray[Any]  # (k,)
    slope: Array  # (k,): cost = slope · |x − c|² + price · (observed entries)
    price: Array  # (k,)
    noise: float  # error of a score, for features and coefficients of size 1


@dataclass(frozen=True, eq=False)
class KMeansData:
    """Rows (n, d) with weights, units, and whether entries are missing."""

    x: NDArray[Any]
    weight: Array | None
    frame: AffineMap
    has_missing: bool
    workers: int

    @classmethod
    def of(cls, x: Any, weight: Any = None, columns: int | None = None, workers: int | None = None) -> KMeansData:
        """Validate rows once: infinities raise an error, missing values are detected, units are chosen."""
        x = read_only(_contiguous(x, columns))
        workers = workers or cores()
        low, high, has_missing = _observed_range(x, workers)
        w = row_weights(weight, len(x), "k-means")
        return cls(x, None if w is None else read_only(w), AffineMap.fitted_to(x, low, high), has_missing, workers)

    def take(self, at: Any) -> KMeansData:
        """A subset of the rows, by mask or index, in the same units."""
        weight = None if self.weight is None else read_only(self.weight[at])
        return replace(self, x=read_only(self.x[at]), weight=weight)

    def __len__(self) -> int:
        return len(self.x)

    def parts(self, *beside: NDArray[Any]) -> list[tuple[NDArray[Any], ...]]:
        """Rows, weights and further arrays, split in the same way; an empty array is in every part."""
        arrays = (self.x, NONE if self.weight is None else self.weight, *beside)
        edges = range(0, len(self.x), ROWS)
        return [tuple(a[i : i + ROWS] if len(a) else a for a in arrays) for i in edges]

    def labeled(self, model: Centroids) -> Labels:
        """The nearest center of each row (n,)."""
        labels = np.full(len(self), -1, dtype=np.int32)
        tables = self.tables(model, np.float32 if model.variance is None else np.float64)
        Sums(self, model.members).assign(model, tables, labels)
        return labels

    def tables(self, model: Centroids, dtype: Any) -> Tables:
        """Scores are coef · features − half, features as in `kmeans._loops.nearest_centers`; larger is nearer."""
        c = self.frame.forward(model.mean)
        k, d = c.shape
        own = model.variance is not None
        slope, price = np.full(k, 0.5), np.zeros(k)
        if model.variance is not None:
            variance = model.variance * self.frame.unit * self.frame.unit
            slope, price = 0.5 / variance, 0.5 * np.log(variance)
        with np.errstate(over="ignore"):  # overflow leads to an exact check
            size = slope[:, None] * c * c
            parts = [2.0 * slope[:, None] * c]
            parts += [-size - price[:, None]] if self.has_missing else []
            parts += [-slope[:, None]] if own else []
            half = np.zeros(k) if self.has_missing else size.sum(axis=1) + d * price
            coef = np.ascontiguousarray(np.concatenate(parts, axis=1))
            noise = 2.0 * (coef.shape[1] + 8) * float(np.finfo(dtype).eps)
            return Tables(coef.astype(dtype), half.astype(dtype), slope, price, noise)

    def stats(self, model: Centroids, labels: Labels) -> CentroidStats:
        """Weight, mean and scatter of each cluster, computed about its center for precision."""
        from likely.cluster.kmeans._loops.nearest_centers import moments_about

        k, d = model.mean.shape
        unit = self.frame.unit

        def of(part: tuple[Any, ...]) -> list[Array]:
            x, weight, own = part
            x = _double(x)
            sums = [np.zeros((k, d)), np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)]
            moments_about(x, weight, unit, model.mean, own, *sums)
            return sums

        total = [np.zeros((k, d)), np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)]
        for part in ordered_map(of, self.parts(labels), self.workers):
            total = [a + b for a, b in zip(total, part, strict=True)]
        return _as_stats(total, model, unit)

    def costs(self, model: Centroids, labels: Labels, squared: bool = False) -> Array:
        """The cost of each row at its own center (n,), in internal units; `squared` for the squared distance alone."""
        from likely.cluster.kmeans._loops.nearest_centers import costs

        tables = self.tables(model, np.float64)
        slope, price = (np.ones(model.members), np.zeros(model.members)) if squared else (tables.slope, tables.price)
        out = np.empty(len(self))

        def fill(part: tuple[Any, ...]) -> None:
            costs(_double(part[0]), self.frame.unit, model.mean, slope, price, part[2], part[3])

        for _ in ordered_map(fill, self.parts(labels, out), self.workers):
            pass
        return out


class Sums:
    """Weights and sums of each cluster's rows; rows that move are subtracted and added."""

    def __init__(self, table: KMeansData, k: int) -> None:
        d = table.x.shape[1]
        self.table = table
        self.sums, self.seen, self.counts = np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)
        self.size = 0.0  # Σ w |u|²
        self.moved = self.twice = self.scored = 0

    def assign(
        self, model: Centroids, tables: Tables, labels: Labels,
        bounds: tuple[Any, Any] = NO_BOUNDS, moves: tuple[Array, Array, Array] | None = None,
    ) -> None:  # fmt: skip
        """Assign each row to its nearest center; `bounds` and `moves` as in `_loops.nearest_centers.assign`."""
        from likely.cluster.kmeans._loops.nearest_centers import assign

        t, own = self.table, model.variance is not None
        drift, others, safe = moves or (np.zeros(model.members),) * 3

        def of(part: tuple[Any, ...]) -> tuple[Array, ...]:
            x, weight, mine, upper, lower = part
            x = x if tables.coef.dtype == np.float32 else _double(x)
            out = (np.zeros_like(self.sums), np.zeros_like(self.seen), np.zeros_like(self.counts), np.zeros(4))
            assign(
                x, weight, t.frame.unit, t.frame.origin, model.mean, tables.slope, tables.price, tables.coef,
                tables.half, t.has_missing, own, tables.noise, mine, upper, lower, drift, others, safe, *out,
            )  # fmt: skip
            return out

        facts = np.zeros(4)
        with one_blas_thread():
            for sums, seen, counts, new in ordered_map(of, t.parts(labels, *bounds), t.workers):
                self.sums, self.counts = self.sums + sums, self.counts + counts
                self.seen = self.seen + (seen if t.has_missing else counts[:, None])
                facts += new
        self.moved, self.twice, self.scored = (int(f) for f in facts[:3])
        self.size += float(facts[3])

    def criterion(self, model: Centroids, labels: Labels) -> float:
        """Σ w |u − c|² of rows in their clusters: Σ w |u|² − 2 c · Σ w u + Σ w |c|², in internal units.

        Where these cancel (a row far away from all others; clusters much smaller than their distances) it is computed
        from all rows, and the sums with it.
        """
        c = self.table.frame.forward(model.mean)
        quick = self.size + float((c * (self.seen * c - 2.0 * self.sums)).sum())
        if quick > CANCELED * self.size:
            return quick
        self.refresh(model, labels)
        far = self.table.costs(model, labels, squared=True)
        return float(far.sum() if self.table.weight is None else self.table.weight @ far)

    def means(self, model: Centroids) -> Array:
        """The mean of each cluster's rows; unchanged where nothing was observed."""
        there = self.seen > 0
        u = np.divide(self.sums, self.seen, out=np.zeros_like(self.sums), where=there)
        return np.where(there, self.table.frame.inverse(u), model.mean)

    def refresh(self, model: Centroids, labels: Labels) -> None:
        """Recompute the sums from all rows, without accumulated rounding errors."""
        stats = self.table.stats(model, labels)
        self.seen, self.counts = np.array(stats.moments.weight), np.array(stats.counts)
        self.sums = self.seen * self.table.frame.forward(stats.moments.mean)


def _as_stats(total: list[Array], model: Centroids, unit: float) -> CentroidStats:
    sums, squares, seen, counts = total
    rest = np.divide(sums, seen, out=np.zeros_like(sums), where=seen > 0)
    with np.errstate(over="ignore"):
        scatter = np.maximum(squares - rest * sums, 0.0) / unit / unit
    if not np.isfinite(scatter).all():
        raise overflow("k-means")
    origin = model.mean[0]
    shift = np.where(seen > 0, (model.mean - origin) + rest / unit, 0.0)
    moments = ColumnMoments.trusted(rows=counts, weight=seen, origin=origin, shift=shift, scatter=scatter)
    return CentroidStats.trusted(moments=moments)


def refuse_empty_rows(x: NDArray[Any], whose: str, at: Any = slice(None)) -> None:
    """Raise an error for rows (n, d) without a single observed entry."""
    empty = np.zeros(len(x), dtype=bool)
    empty[at] = np.isnan(x[at]).all(axis=1)
    if empty.any():
        got = f"nothing but NaN in {enumerated('row', np.flatnonzero(empty).tolist())}"
        raise DataError(sentence(whose, "each row needs an observed entry", got, "drop these rows"))


def _contiguous(x: Any, columns: int | None) -> NDArray[Any]:
    """float32 rows unchanged, all others as float64."""
    if isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim == 2 and columns in (None, x.shape[1]):
        return np.ascontiguousarray(x)
    return rows(x, columns, "k-means")


def read_only(a: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: loops are compiled for these alone, whatever the caller's arrays are."""
    view = np.ascontiguousarray(a).view()
    view.setflags(write=False)
    return view


def _double(x: NDArray[Any]) -> NDArray[Any]:
    """Rows of a task as float64, read-only: else each loop would be compiled for float32 rows, too."""
    return x if x.dtype == np.float64 else read_only(x.astype(np.float64))


def _observed_range(x: NDArray[Any], workers: int) -> tuple[Array, Array, bool]:
    """Minimum and maximum of each column, and whether any entry is missing; infinity raises an error."""
    from likely.cluster.kmeans._loops.nearest_centers import look

    def of(start: int) -> tuple[Array, Array, int]:
        low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
        part = x[start : start + ROWS]
        missing, bad = look(_double(part), low, high)
        if bad >= 0:
            _refuse(part, start)
        return low, high, missing

    found = list(ordered_map(of, range(0, len(x), ROWS), workers))
    if not found:
        return np.zeros(x.shape[1]), np.zeros(x.shape[1]), False
    low, high, missing = zip(*found, strict=True)
    return np.min(low, axis=0), np.max(high, axis=0), any(missing)


def _refuse(part: NDArray[Any], start: int) -> None:
    try:
        refuse_infinite(part.astype(np.float64), "k-means")
    except BadEntry as error:
        raise error.after(start) from None
