"""k-nearest-neighbor density: k over the volume of the smallest ball that contains k points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma, log
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, check_option, like_input, parameter, refuse_infinite, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.density.bandwidth import column_variances
from likely.density.kde_missing_values import completed
from likely.density.stored_points import StoredPoints, end_to_end, with_weight
from likely.neighbors.distances import plain_name
from likely.neighbors.distinct_rows import DistinctRows
from likely.neighbors.nearest_neighbors import NeighborSearch

BallMetric = Literal["l1", "l2", "linf"]
BallMetricName = Literal[BallMetric, "euclidean", "manhattan", "cityblock", "chebyshev"]
METRICS: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
LEAST = 1e-8  # smallest radius, in units: that of a ball of k copies of one row
FAR = 1e150
ASKED = 2000  # rows that `objective` scores at most


@dataclass(frozen=True, eq=False)
class KNNBalls(StoredPoints):
    """Nearest-neighbor density p(x) = k / (N V_k(x)) by the smallest ball about x with k rows.

    V_k is the volume of the ball. The density does *not* integrate to one (its tails fall as 1/r^d): it can compare
    rows and classes, but has no expectations.

    Missing values (NaN) are left out: the density of the observed columns is estimated by balls in these.

    Parameters
    ----------
    points : array-like (n, d)
        The points; for a stack a list of them (flat with `edges`).
    n_neighbors : float, default 1.0
        The number k; it counts weights, so a weight of 3 is three rows.
    weight : array-like (n,), optional
        Weight per point; points of weight 0 are dropped.
    unit : array-like (d,), optional
        Units of the columns; `refit` takes their standard deviations if `scaled`.
    metric : {"l1", "l2", "linf"}, default "l2"
        The norm of the ball.
    shared : bool, default False
        The members of a stack share one ball with k rows of all of them: p(x | c) = k_c / (N_c V), and
        the posterior of a classifier is the share k_c / k of the votes, the k-nearest-neighbor rule. Else each member
        has its own ball, and with k = 1 the class of the nearest row wins.
    unbiased : bool, default False
        Put k − 1 for k, which is unbiased for a Poisson process.
    scaled : bool, default False
        Measure columns in their standard deviations.
    edges : array-like of int (K + 1,), optional
        Where the points of each member of a stack begin.

    See Also
    --------
    KNNDensity : The estimator.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 4; Bishop (2006), chapter 2; Ney, lecture notes, 5.3; Herbst and du Preez,
    lecture notes, 2.5.

    Examples
    --------
    >>> KNNBalls([[0.0], [1.0], [4.0]], 1).log_prob([[2.0]]).round(4)  # 1 / (3 · 2)
    array([-1.7918])
    """

    points: Annotated[Array, declared.numbers("n d")]  # (n, d)
    n_neighbors: Annotated[float, declared.number(0)] = 1.0
    weight: Annotated[Array | None, declared.numbers("n", 0)] = None  # (n,) once it is checked
    unit: Annotated[Array | None, declared.numbers("d", 0)] = None  # (d,) once it is checked
    metric: Annotated[BallMetricName, declared.option(BallMetric)] = "l2"
    shared: bool = False
    unbiased: bool = False
    scaled: bool = False
    edges: Annotated[Index | None, declared.maybe(declared.numbers("e", 0, np.int64))] = None  # (K + 1,) for a stack

    @property
    def hyperparameters(self) -> dict[str, str]:
        """The number of neighbors, and the metric."""
        units = "standardized columns" if self.scaled else "original columns"
        return {"k": f"{self.n_neighbors:g}", "metric": f"{self.metric}, {units}"}

    def __post_init__(self) -> None:
        points = parameter(self.points, "KNNBalls", "points")
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or 0 in points.shape:
            raise ShapeError(sentence("KNNBalls", "points must have shape (n, d)", points.shape))
        d = points.shape[1]
        unit = np.ones(d) if self.unit is None else parameter(self.unit, "KNNBalls", "unit")
        if unit.shape != (d,):
            raise ShapeError(sentence("KNNBalls", f"unit must have one entry per column ({d})", unit.shape))
        if not (unit > 0).all():
            raise DomainError(sentence("KNNBalls", "units must be positive", float(unit.min())))
        check_option(self.metric, BallMetricName, "KNNBalls", "metric")
        metric = plain_name(self.metric)
        if not 0 < self.n_neighbors < np.inf or (self.unbiased and not self.n_neighbors > 1):
            expected = "n_neighbors must be positive, and above 1 if unbiased"
            raise DomainError(sentence("KNNBalls", expected, self.n_neighbors))
        points, weight, edges = with_weight(points, self.weight, self.edges, "KNNBalls")
        self._set(
            points=points, n_neighbors=float(self.n_neighbors), weight=weight, unit=unit, metric=metric, edges=edges
        )

    # ------------------------------------------------------------------ shape

    @property
    def n_parameters(self) -> int:
        """One: k."""
        return 1

    @property
    def _unit(self) -> Array:
        assert self.unit is not None
        return self.unit

    def take(self, index: Any) -> KNNBalls:
        """A stack of the chosen members."""
        return self._stacked([self.member(int(k)) for k in np.arange(self.members or 1)[index]])

    def _stacked(self, parts: list[KNNBalls]) -> KNNBalls:
        return parts[0].replace(**end_to_end(parts))

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of each row."""
        z = rows(x, self.dim, "KNNBalls")
        refuse_infinite(z, "KNNBalls")
        out = np.zeros((len(z), self.members or 1))
        patterns, which = np.unique(np.isnan(z), axis=0, return_inverse=True)
        for i, missing in enumerate(patterns):
            at, observed = np.flatnonzero(np.ravel(which) == i), np.flatnonzero(~missing)
            if len(observed):
                balls = self if len(observed) == self.dim else self.marginal(observed.tolist())
                out[at] = balls._complete(z[np.ix_(at, observed)])
        return np.asarray(like_input(out if self.members else out[:, 0], x))

    def _complete(self, x: Array) -> Array:
        if self.shared and self.members is not None:
            return self._votes(x)
        return np.stack([one._own_ball(x) for one in self._each], axis=1)

    def _own_ball(self, x: Array) -> Array:
        far, at = self._neighbors(x)
        held = np.cumsum(self._w[at], axis=1)
        enough = (held >= min(self.n_neighbors, self._w.sum()) * (1 - 1e-12)) & (far > 0)
        last = np.where(enough.any(axis=1), enough.argmax(axis=1), far.shape[1] - 1)
        radius = np.take_along_axis(far, last[:, None], axis=1)[:, 0]
        inside = np.where(far < radius[:, None], self._w[at], 0.0).sum(axis=1)
        count = np.maximum(min(self.n_neighbors, self._w.sum()), inside)
        count = np.where(count > 1, count - 1, count) if self.unbiased else count
        return np.log(count) - log(self._w.sum()) - self._log_volume(radius)

    def _votes(self, x: Array) -> Array:
        far, at = self._neighbors(x)
        held = np.cumsum(self._w[at], axis=1)
        last = (held >= min(self.n_neighbors, self._w.sum()) * (1 - 1e-12)).argmax(axis=1)
        inside = np.arange(far.shape[1]) <= last[:, None]
        votes = np.zeros((len(x), self.members or 1))
        row = np.broadcast_to(np.arange(len(x))[:, None], at.shape)
        np.add.at(votes, (row[inside], self._labels[at[inside]]), self._w[at[inside]])
        radius = np.take_along_axis(far, last[:, None], axis=1)[:, 0]
        total = np.array([one._w.sum() for one in self._each])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(votes) - np.log(total) - self._log_volume(radius)[:, None])

    def _log_volume(self, radius: Array) -> Array:
        """log volume of balls: (2 Γ(1 + 1/p) r)^d / Γ(1 + d/p), in the columns' own units."""
        p, d = METRICS[self.metric], self.dim
        unit = d * log(2.0) + (0.0 if np.isinf(p) else d * lgamma(1 + 1 / p) - lgamma(1 + d / p))
        return np.asarray(unit + d * np.log(np.maximum(radius, LEAST)) + np.log(self._unit).sum())

    def _neighbors(self, x: Array) -> tuple[Array, Index]:
        """Distances and indices (n, m) of the nearest points, with m such that they weigh k and are not all copies."""
        y = self._white(x)
        most = len(self.points)
        m = min(most, int(np.ceil(self.n_neighbors)) + 1)
        while True:
            far, at = self._nearest(y, m)
            weigh = self._w[at].sum(axis=1) >= self.n_neighbors
            if m == most or (weigh & (far[:, -1] > 0)).all():
                return far, at
            m = min(most, 2 * m)

    def _nearest(self, y: Array, m: int) -> tuple[Array, Index]:
        return self._search.nearest(y, m, "KNNBalls")

    @cached_property
    def _search(self) -> NeighborSearch:
        return NeighborSearch.of(self._white(self.points), self.metric, whose="KNNBalls")

    @cached_property
    def _middle(self) -> Array:
        """Median of each column: centering about it keeps the digits of rows where there are outliers."""
        half = len(self.points) // 2
        return np.array(np.partition(self.points, half, axis=0)[half])

    def _white(self, x: Array) -> Array:
        """Rows in units about the median; overflow is clipped to 1e150, whose square is finite."""
        with np.errstate(all="ignore"):
            white = (x - self._middle) / self._unit
        return np.clip(np.nan_to_num(white, nan=FAR), -FAR, FAR)

    def marginal(self, columns: Sequence[int]) -> KNNBalls:
        """The k-nearest-neighbor density of some columns."""
        at = np.atleast_1d(np.asarray(columns))
        if at.ndim != 1 or not at.size or at.dtype.kind not in "iu" or at.min() < -self.dim or at.max() >= self.dim:
            expected = f"columns must be integers from 0 to {self.dim - 1}"
            raise DomainError(sentence("KNNBalls", expected, columns))
        return self.replace(points=np.ascontiguousarray(self.points[:, at]), unit=np.array(self._unit[at]))

    def sample(self, n: int, rng: Generator) -> Array:
        """Samples (n, d), or (n, K, d) for a stack: uniform in the ball of k neighbors of a random point."""
        if self.members is not None:
            return np.stack([one.sample(n, rng) for one in self._each], axis=1)
        at = rng.choice(len(self.points), n, p=self._w / self._w.sum())
        far, near = self._neighbors(self.points[at]) if n else (np.zeros((0, 1)), np.zeros((0, 1), np.intp))
        held = np.cumsum(self._w[near], axis=1) >= min(self.n_neighbors, self._w.sum())
        radius = np.take_along_axis(far, held.argmax(axis=1)[:, None], axis=1)
        return np.asarray(self.points[at] + radius * _in_ball(n, self.dim, self.metric, rng) * self._unit)

    # --------------------------------------------------------------- learning

    takes_parts = True

    @classmethod
    def blank(
        cls, x: ArrayLike, members: int | None = None, *, n_neighbors: float = 5, metric: BallMetricName = "l2",
        scaled: bool = True, shared: bool = False, unbiased: bool = False,
    ) -> KNNBalls:  # fmt: skip
        """Initial value for rows like these: one point per member, the first row; `refit` replaces it."""
        z = rows(x, None, "KNNBalls")
        if not z.size:
            raise ShapeError(sentence("KNNBalls", "at least one row and one column are needed", z.shape))
        first = np.nan_to_num(z[:1], posinf=0.0, neginf=0.0)
        one = cls(first, n_neighbors, None, None, metric, shared, unbiased, scaled)
        return one if members is None else one._stacked([one] * members)

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> DistinctRows:
        """Sufficient statistics: the distinct rows and their weights; `weight` and `labels` as those of `KDE`."""
        if labels is not None and self.members is None:
            raise DomainError(sentence("KNNBalls", "labels are for a stack", "one value"))
        return DistinctRows.of(rows(x, self.dim, "KNNBalls"), weight, labels, self.members, "KNNBalls")

    def refit(self, stats: DistinctRows, prior: AnyPrior | None = None) -> KNNBalls:
        """Store the rows of the statistics; if `scaled`, with the columns' standard deviations as units."""
        self._check(stats)
        stats = completed(stats, "KNNBalls")
        points, labels = stats.rows, stats.labels
        unit = self._unit
        if self.scaled:
            one_member = np.zeros(len(points), np.intp)
            unit = np.sqrt(column_variances(points, stats.weight, one_member, 1, "class", "KNNBalls")[0])
        new = []
        for k, old in enumerate(self._each):
            own = labels == k
            stored = {"points": points[own], "weight": stats.weight[own]} if own.any() else {}
            new.append(old.replace(**stored, unit=unit))
        return new[0] if self.members is None else self._stacked(new)

    objective_name = "sum of log scores (no density)"
    integrates: ClassVar[bool] = False  # to one: integrals of a score mean little
    why_worse: ClassVar[str] = (  # of EM over missing labels
        "a k-nearest-neighbor density does not integrate to one, and EM need not raise its score; the best is kept"
    )

    def objective(self, stats: DistinctRows, prior: AnyPrior | None = None) -> float:
        """Score Σ w log p(x) of the rows, of 2,000 rows per member at most; p does not integrate to one."""
        self._check(stats)
        total = 0.0
        for k, one in enumerate(self._each):
            own = stats if stats.members is None else stats.member(k)
            if len(own):
                w = own.weight[:ASKED]
                total += float(w @ one.log_prob(own.values[:ASKED])) * float(own.weight.sum() / w.sum())
        return total

    def joined_stats(self, parts: list[DistinctRows]) -> DistinctRows:
        """Statistics of runs of members as those of all."""
        return DistinctRows.side_by_side(parts)

    def weak_prior(self, stats: DistinctRows) -> None:
        """No prior: a k-nearest-neighbor density stores the data."""

    def _check(self, stats: DistinctRows) -> None:
        if stats.rows.shape[1] != self.dim or stats.members != self.members:
            got = (stats.rows.shape[1], stats.members)
            expected = f"statistics must be of {(self.dim, self.members)} columns, members"
            raise ShapeError(sentence("KNNBalls", expected, got))


def _in_ball(n: int, d: int, metric: str, rng: Generator) -> Array:
    """Uniform samples (n, d) in the unit ball of a metric."""
    if metric == "linf":
        return rng.uniform(-1.0, 1.0, (n, d))
    z = rng.standard_normal((n, d)) if metric == "l2" else rng.laplace(size=(n, d))
    size = np.linalg.norm(z, axis=1, ord=int(METRICS[metric]))
    return np.asarray(z * (rng.random(n) ** (1 / d) / np.maximum(size, 1e-300))[:, None])
