"""Lloyd's algorithm with distance bounds (Hamerly), and k-means with one variance per cluster."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from likely.cluster.kmeans.assignment import NO_BOUNDS, KMeansData, Sums
from likely.cluster.kmeans.centroids import Centroids, Labels, as_centers
from likely.cluster.kmeans.kmeans_plus_plus import squared_distances
from likely.core.arrays import Array
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DataError, sentence
from likely.core.fit_report import FitReport
from likely.core.warnings import warn, warnings_once

DEFAULT_STOP = StoppingRule(300, 1e-6)
FAR_ROWS = 10_000  # number of farthest rows that are candidate seeds for empty clusters
RESIDUE = 1e-6  # share of the total weight below which a cluster's sums are recomputed
FAR = 1e100  # in units of the rows' range: farther centers are never nearest, and their squares overflow
VANISHED = 1e-280  # an overflowing criterion: progress is measured by moved rows only
OFTEN = 0.05  # share of rows checked twice above which scores are computed in double precision


class Partition(NamedTuple):
    """A partition of rows into clusters: the fit report and the cluster of each row."""

    report: FitReport
    labels: Labels  # (n,)
    before: int = 0  # refits with another criterion, which the report does not count

    @property
    def refits(self) -> int:
        """Total number of refits."""
        return self.before + self.report.iterations

    @property
    def model(self) -> Centroids:
        """The centers."""
        return self.report.model

    @property
    def inertia(self) -> float:
        """Inertia: Σ w |x − own center|² over observed entries."""
        equal = Centroids.trusted(mean=self.model.mean, variance=None, typical=None)
        return max(-equal.objective(self.report.stats), 0.0)


def lloyd(
    x: Any, start: Any, weight: Any = None, *, stop: StoppingRule = DEFAULT_STOP, bounds: bool = True,
    workers: int | None = None,
) -> Partition:  # fmt: skip
    """Lloyd iterations from centers (k, d) on rows (n, d) until no row moves, or the relative decrease is below `tol`.

    Batch k-means (Ney 6.2.2). Distance bounds (Hamerly 2010) exclude rows that cannot change; labels and centers
    are bitwise those of the plain algorithm. A cluster that
    lost all rows is reseeded at the row farthest from its center. Missing entries are ignored in distances and means.

    >>> found = lloyd(np.array([[0.0], [1.0], [9.0], [10.0]]), [[0.0], [1.0]])
    >>> found.model.mean.tolist(), found.labels.tolist(), found.inertia
    ([[0.5], [9.5]], [0, 0, 1, 1], 1.0)
    """
    table = x if isinstance(x, KMeansData) else KMeansData.of(x, weight, workers=workers)
    if not len(table):
        raise DataError(sentence("k-means", "at least one row is needed", "none"))
    if table.weight is not None and not table.weight.any():
        raise DataError(sentence("k-means", "at least one row must have positive weight", "weights of 0"))
    return _LloydRun(table, _within_reach(as_centers(start, table.x.shape[1], "k-means"), table), bounds).until(stop)


def _within_reach(model: Centroids, table: KMeansData) -> Centroids:
    u = table.frame.forward(model.mean)
    if (abs(u) <= FAR).all():
        return model
    return model.replace(mean=table.frame.inverse(np.clip(u, -FAR, FAR)))


def with_own_variances(x: Any, start: Partition, weight: Any = None, *, stop: StoppingRule = DEFAULT_STOP) -> Partition:
    """From a partition with equal variances to one with one variance per cluster (Ney 6.2.2, variant).

    The criterion is that of `Centroids`: spherical Gaussians fitted by hard EM in the common fit loop.
    """
    from likely.core.blocks import Blocks

    if not start.report.stats.scatter.sum() > 0:
        warn("k-means: every row equals its center: variances per cluster are not defined")
        return start
    with warnings_once():
        report = fit(start.model.with_variances(start.report.stats), Blocks.of(x, weight), stop=stop)
    return Partition(report, report.model.assign(x), start.refits)


class _LloydRun:
    """One run: centers, labels and bounds, which change with every pass."""

    def __init__(self, table: KMeansData, model: Centroids, bounds: bool) -> None:
        self.table, self.model = table, model
        n = len(table)
        self.labels = np.full(n, -1, dtype=np.int32)
        self.bounds = (np.full(n, np.inf, np.float32), np.zeros(n, np.float32)) if bounds else NO_BOUNDS
        self.moves: tuple[Array, Array, Array] | None = None
        self.sums = Sums(table, model.members)
        self.dtype: Any = np.float32
        self.trace: list[float] = []
        self.reseeded = 0

    def until(self, stop: StoppingRule) -> Partition:
        """Passes until one of three stopping criteria is met."""
        try:
            for t in count():
                self._assign()
                reason = self._stopping_reason(stop)
                if reason or t == stop.max_iter:
                    break
                self._refit(fresh=t + 1 == stop.max_iter)
            if reason and t < stop.max_iter:  # one more, from recomputed sums without accumulated rounding errors
                self._refit(fresh=True)
                self._assign()
        except KeyboardInterrupt:
            if len(self.trace) == 0:
                raise
            return self._partition(False, "interrupted")
        return self._partition(bool(reason), reason or f"{stop.max_iter} refits made, rows still moving")

    def _assign(self) -> None:
        self.sums.assign(self.model, self.table.tables(self.model, self.dtype), self.labels, self.bounds, self.moves)
        if self.sums.twice > OFTEN * max(self.sums.scored, 1):
            self.dtype = np.float64
        self.trace.append(-self.sums.criterion(self.model, self.labels))

    def _stopping_reason(self, stop: StoppingRule) -> str:
        """The reason to stop; empty if another pass is needed."""
        if len(self.trace) < 2 or self._empty().any():
            return "" if len(self.trace) < 2 or self.sums.moved else "no row changes its cluster"
        if self.sums.moved == 0:
            return "no row changes its cluster"
        before, now = self.trace[-2:]
        little = stop.tol > 0 and -now > VANISHED and now - before <= stop.tol * -now
        return f"the criterion falls by less than {stop.tol:g} of itself" if little else ""

    def _refit(self, fresh: bool) -> None:
        if fresh or (self.sums.counts < RESIDUE * self.sums.counts.sum()).any():
            self.sums.refresh(self.model, self.labels)
        old, new = self.model, self.model.replace(mean=self.sums.means(self.model))
        empty = np.flatnonzero(self._empty())
        if len(empty):
            new = new.replace(mean=self._with_seeds(np.array(new.mean), empty))
        self.model, self.moves = new, _moves(old, new, self.table)

    def _empty(self) -> Any:
        few = self.sums.counts < RESIDUE * self.sums.counts.sum()
        if not few.any():
            return few
        return np.bincount(self.labels, self.table.weight, self.model.members) == 0

    def _with_seeds(self, mean: Array, empty: Any) -> Array:
        """Centers of empty clusters reseeded at far rows, each far from the last; rows on centers give none."""
        far = self.table.costs(self.model, self.labels, squared=True)
        if self.table.weight is not None:
            far[self.table.weight == 0] = 0.0
        at = np.argsort(-far, kind="stable")[: FAR_ROWS + len(empty)]
        some, left = self.table.x[at].astype(np.float64), far[at]
        some = np.where(np.isnan(some), mean[self.labels[at]], some)
        u = self.table.frame.forward(some)
        for q in empty:
            i = int(np.argmax(left))
            if not left[i] > 0:
                break
            mean[q] = some[i]
            left = np.minimum(left, ((u - u[i]) ** 2).sum(axis=1))
            self.reseeded += 1
        return mean

    def _refuse_vanished(self) -> None:
        """Raise an error if squared distances underflow relative to that of the farthest row."""
        if -self.trace[-1] > VANISHED:
            return
        away = abs(self.table.x - self.model.mean[self.labels])
        if (away > 1e-12 * abs(self.table.x)).any():
            column = int(np.nanargmax(abs(self.table.x)) % self.table.x.shape[1])
            expected = "distances within clusters must not be negligible compared with the largest value"
            got = f"values in column {column} that are more than 1e140 times as large as these distances"
            remedy = "leave out the rows with the largest values, or rescale the columns"
            raise DataError(sentence("k-means", expected, got, remedy))

    def _partition(self, converged: bool, reason: str) -> Partition:
        self._refuse_vanished()
        stats = self.table.stats(self.model, self.labels)
        unit = self.table.frame.unit
        with np.errstate(over="ignore"):
            trace = [float(np.float64(j) / unit / unit) for j in self.trace]
        trace[-1] = self.model.objective(stats)
        report = FitReport(self.model, stats, None, converged, reason, trace, reseeded=self.reseeded)
        return Partition(report, self.labels)


def _moves(old: Centroids, new: Centroids, table: KMeansData) -> tuple[Array, Array, Array]:
    """The distance that each center moved, the largest of any other, and half the distance to the nearest other."""
    a, c = table.frame.forward(old.mean), table.frame.forward(new.mean)
    drift = np.sqrt(((c - a) ** 2).sum(axis=1)) * (1.0 + 1e-9)
    order = np.argsort(drift)
    others = np.full(len(c), drift[order[-1]])
    others[order[-1]] = drift[order[-2]] if len(c) > 1 else 0.0
    return drift, others, _half_way(c, table.has_missing)


def _half_way(c: Array, has_missing: bool) -> Array:
    """Half the distance to the nearest other center; not valid with missing entries."""
    if has_missing or len(c) == 1:
        return np.zeros(len(c))
    apart = squared_distances(c, c)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(0.5 * np.sqrt(apart.min(axis=1)) * (1.0 - 1e-6))
