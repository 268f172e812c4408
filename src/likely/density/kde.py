"""Parzen windows: every row that was seen is remembered, and spread a little over its surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, BadEntry, Index, like_input, parameter, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.warnings import unheard
from likely.density.bandwidth import RULES, UNITS, LeftOut, chosen, log_sums_of, shapes_of, spreads
from likely.density.kde_missing_values import completed
from likely.density.kde_tree import Tree, tree_of
from likely.density.kernels import WITH_GAPS, Kernel, cdf_of, checked_kernel, kernel_of, reach_of
from likely.density.pairwise_distances import Cloud, far_log_sums, lengths
from likely.density.stored_points import KeptPoints, end_to_end, with_weight
from likely.distributions.gaussian.variance_floors import ROUNDING
from likely.distributions.statistics.counts import one_column
from likely.neighbors.distinct_rows import DistinctRows, same_rows

SMALL = 4096  # points up to which every one of them is added
BOUND = 1e-6  # of p(x), beyond: |Δ log p| of any row stays below it
ASKED = 2000  # rows that `objective` leaves out at most
MANY = 12  # columns beyond which a tree leaves nothing out, and products are quicker
FAR = 1e100  # widths beyond which squares might leave the range of numbers


@dataclass(frozen=True, eq=False)
class KDE(KeptPoints):
    """p(x) = Σ_n w_n k((x − x_n)/v) / Πv   (Ney 5.2, Herbst 2.5): a density without a model.

    - **points**: (n, d), or for a stack a list of them (flat with `edges`).
    - **scale**: squared widths v²: (d,), or (K, d) for a stack; a matrix (d, d) or (K, d, d) makes windows elliptical.
      A number α means α times the variance of each column, in the `unit`, member by member.
    - **kernel**: "gaussian", "t" (with `dof`), "cube" (of edge v), "exponential", or in the ball of radius v "ball",
      "epanechnikov", "triangle", "quartic", "triweight", "tricube"; each is normalized in d dimensions.
    - **weight**: (n,), of the points; one without weight is not there.
    - **tolerance**: what |Δ log p| may be for any row: points too far to matter are left out by a bound. None: 0, every
      point is added, up to 4,096 points; 1e-6 beyond. A row too far for every point has a finite log p nevertheless,
      a Gaussian one as far as r²/2 is a number, 1e154 widths.
    - **rule**: how `refit` chooses α ("leave-one-out", "maximum", "scott", "silverman", a number); "given" keeps scale.
    - **unit**: what α multiplies: variances within all members together, in the member's own size ("pooled"), those of
      the member's own columns ("class"), or their mean, so that all columns have one width ("common").

    NaN entries are integrated out, which is exact for gaussian, t and cube; other kernels refuse them.

    >>> KDE([0.0, 1.0, 5.0], [0.25]).log_prob([[0.5], [50.0]]).round(1)
    array([-1.1000e+00, -4.0513e+03])
    """

    points: Array  # (n, d)
    scale: Array  # (d,) or (K, d); (d, d) or (K, d, d) where windows are elliptical
    kernel: str = "gaussian"
    weight: Array | None = None  # (n,) once it is checked
    dof: float = 3.0
    edges: Index | None = None  # (K + 1,) for a stack
    tolerance: float | None = None
    rule: Any = "given"
    unit: str = "pooled"

    def __post_init__(self) -> None:
        checked_kernel(self.kernel, self.dof, "KDE")
        given, edges = _points(self.points, self.edges)
        points, weight, edges = with_weight(given, self.weight, edges, "KDE")
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise DomainError(sentence("KDE", "tolerance must lie in 0 … 1", self.tolerance, "0 is exact"))
        named = isinstance(self.rule, str) and self.rule in RULES
        if not (named or (isinstance(self.rule, int | float) and 0 < self.rule < np.inf)):
            expected = f"rule must be a positive number or one of {', '.join(RULES)}"
            raise DomainError(sentence("KDE", expected, repr(self.rule)))
        if self.unit not in UNITS:
            raise DomainError(sentence("KDE", f"unit must be one of {', '.join(UNITS)}", repr(self.unit)))
        self._set(points=points, weight=weight, edges=edges, dof=float(self.dof))
        self._set(scale=self._checked_scale(parameter(self.scale, "KDE", "scale")))

    def _checked_scale(self, scale: Array) -> Array:
        K, d = self.members, self.dim
        if scale.ndim == 0:
            if not scale > 0:
                raise DomainError(sentence("KDE", "scale must be positive", float(scale)))
            each = scale * spreads(self.points, self._w, self._labels, K or 1, self.unit)
            return np.asarray(each if K else each[0])
        shapes = [(d,), (d, d)] if K is None else [(K, d), (K, d, d), (d,)]
        if scale.shape not in shapes:
            raise ShapeError(sentence("KDE", f"scale must have shape {' or '.join(map(str, shapes))}", scale.shape))
        if K is not None and scale.ndim == 1:
            scale = np.repeat(scale[None], K, axis=0)
        if scale.ndim - (K is not None) == 2:
            self._refuse_cube()
            self._refuse_common()
            roots = scale if K is not None else scale[None]
            if not np.allclose(roots, np.swapaxes(roots, 1, 2), rtol=1e-9, atol=0):
                raise DomainError(sentence("KDE", "a matrix of squared widths must be symmetric"))
            for root in roots:
                _factor(root)
        elif not (scale > 0).all():
            raise DomainError(sentence("KDE", "squared widths must be positive", float(scale.min())))
        return scale

    def _refuse_cube(self) -> None:
        if self.kernel == "cube":
            expected = "a cube has a width per column, and no matrix"
            raise DomainError(sentence("KDE", expected, "a matrix", 'take kernel="ball" for an ellipsoid'))

    def _refuse_common(self) -> None:
        if self.unit == "common":
            expected = "elliptical windows have a shape, and no width that all columns share"
            raise DomainError(sentence("KDE", expected, 'unit="common"', 'take kernel="gaussian", or another unit'))

    # ------------------------------------------------------------------ shape

    @property
    def n_parameters(self) -> int:
        """Free parameters: one width per member; the points are the data themselves."""
        return self.members or 1

    @property
    def elliptical(self) -> bool:
        """True if windows are elliptical: scale is a matrix."""
        return self.scale.ndim - (self.members is not None) == 2

    @property
    def relative_scale(self) -> Array:
        """α of each member (K,), one for one value: v² over its unit, in the column that varies most.

        Of one value, which may have been a member: 1/α is the mean of σ²/v² over its columns, whatever the unit was.
        """
        if self.members is None and (own := self._own_variance).any():
            squared = np.diagonal(self.scale) if self.elliptical else self.scale
            return np.array([1.0 / np.mean((own / squared)[own > 0])])
        with unheard():  # what is odd about columns was said when they were learned
            each = spreads(self.points, self._w, self._labels, self.members or 1, self.unit)
        squared = np.diagonal(self.scale, axis1=-2, axis2=-1) if self.elliptical else self.scale
        at = np.argmax(each, axis=1)[:, None]
        return np.asarray(np.take_along_axis(np.atleast_2d(squared), at, 1) / np.take_along_axis(each, at, 1))[:, 0]

    @property
    def _own_variance(self) -> Array:
        """σ² of each column among the points (d,); 0 where they do not spread beyond rounding."""
        own = self._w @ (self.points - self.mean) ** 2 / self._w.sum()
        return np.where(own > (ROUNDING * np.abs(self.mean)) ** 2, own, 0.0)

    def _own(self, k: int) -> dict[str, Any]:
        return {"scale": self.scale[k].copy()}

    def some(self, index: Any) -> KDE:
        """Some members, as a stack."""
        return _stacked([self.member(int(k)) for k in np.arange(self.members or 1)[index]])

    @cached_property
    def _kernel(self) -> Kernel:
        return kernel_of(self.kernel, self.dim, self.dof)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: Any) -> Array:
        """log p(x) for rows (n, d): (n,), or (n, K) for a stack. NaN is 'not observed'."""
        z = rows(x, self.dim, "KDE")
        refuse_infinite(z, "KDE")
        out = np.stack([one._scores(z) for one in self._each], axis=1)
        return np.asarray(like_input(out if self.members else out[:, 0], x))

    def _scores(self, x: Array) -> Array:
        gaps = np.isnan(x).any(axis=1)
        if not gaps.any():
            return self._complete(x)
        self._allow_gaps()
        out = np.zeros(len(x))
        out[~gaps] = self._complete(x[~gaps])
        at = np.flatnonzero(gaps)
        for mask, which in _by_pattern(np.isnan(x[at])):
            if not mask.all():
                seen = np.flatnonzero(~mask)
                out[at[which]] = self._seen(tuple(seen.tolist()))._complete(x[np.ix_(at[which], seen)])
        return out

    def _allow_gaps(self) -> None:
        if self.kernel not in WITH_GAPS:
            expected = f"the kernel {self.kernel!r} cannot integrate out what is missing"
            raise DataError(sentence("KDE", expected, "NaN", f"use one of {', '.join(WITH_GAPS)}"))

    def _seen(self, at: tuple[int, ...]) -> KDE:
        """The distribution of some columns, remembered: gaps come in few patterns."""
        known: dict[tuple[int, ...], KDE] = self.__dict__.setdefault("_marginals", {})
        if at not in known:
            if len(known) > 256:
                known.clear()
            known[at] = self.marginal(at)
        return known[at]

    def _complete(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return self._sums(self._white(x)) + self._constant

    def _sums(self, y: Array, skip: Index | None = None) -> Array:
        """log Σ w k of white rows, of row i without point skip[i]; far rows are scaled first, so that squares exist."""
        far = (np.abs(y) >= FAR).any(axis=1) | self._wide
        if not far.any():
            return self._near_sums(y, skip)
        out = np.empty(len(y))
        for these, by in ((~far, self._near_sums), (far, self._far_sums)):
            if these.any():
                out[these] = by(y[these], None if skip is None else skip[these])
        return out

    def _near_sums(self, y: Array, skip: Index | None) -> Array:
        """By products in many columns, by a tree in few."""
        if self.dim <= MANY or self.kernel == "cube":
            return self._by_tree(y, skip)
        return self._cloud.log_sums(y, 1.0, self._kernel, skip)

    def _far_sums(self, y: Array, skip: Index | None) -> Array:
        return far_log_sums(y, self._white(self.points), self._w, self._kernel, skip)

    @cached_property
    def _wide(self) -> bool:
        """Whether the points themselves lie so far apart that squares might leave the range of numbers."""
        return bool((np.abs(self._white(self.points)) >= FAR).any())

    def _by_tree(self, y: Array, skip: Index | None) -> Array:
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = 0.0 if len(self.points) <= SMALL else BOUND
        place = None if skip is None else self._tree.place[skip]
        return log_sums_of(self._tree, y, 1.0, self._kernel, tolerance, place)

    @cached_property
    def _cloud(self) -> Cloud:
        return Cloud(self._white(self.points), self._w)

    @cached_property
    def _constant(self) -> float:
        return float(self._kernel.log_height - self._log_det - np.log(self._w.sum()))

    @cached_property
    def _tree(self) -> Tree:
        return tree_of(self._white(self.points), self._w)

    @cached_property
    def _middle(self) -> Array:
        return np.asarray(0.5 * self.points.min(axis=0) + 0.5 * self.points.max(axis=0))

    @cached_property
    def _root(self) -> Array:
        """What turns columns white: 1/v (d,), or the inverse (d, d) of the factor of an elliptical scale."""
        return np.asarray(np.linalg.inv(_factor(self.scale)) if self.elliptical else 1.0 / np.sqrt(self.scale))

    @cached_property
    def _log_det(self) -> float:
        """log Π v."""
        if self.elliptical:
            return float(np.log(np.diagonal(_factor(self.scale))).sum())
        return 0.5 * float(np.log(self.scale).sum())

    def _white(self, x: Array) -> Array:
        """Rows in windows' widths, about the middle of the points; far beyond all numbers is far."""
        with np.errstate(all="ignore"):
            z = x - self._middle
            white = np.einsum("nj,ij->ni", z, self._root) if self.elliptical else z * self._root
        return np.nan_to_num(white, nan=1e300, posinf=1e300, neginf=-1e300)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack: a point, and a step away from it."""
        if self.members is not None:
            return np.stack([one.sample(n, rng) for one in self._each], axis=1)
        at = rng.choice(len(self.points), n, p=self._w / self._w.sum())
        step = self._kernel.draw(n, rng)
        step = step @ _factor(self.scale).T if self.elliptical else step * np.sqrt(self.scale)
        return np.asarray(self.points[at] + step)

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Mean of the points (d,), or (K, d)."""
        if self.members is not None:
            return np.stack([one.mean for one in self._each])
        return np.asarray(self._middle + self._w @ (self.points - self._middle) / self._w.sum())

    @property
    def covariance(self) -> Array:
        """Covariance of the points plus that of a window (d, d), or (K, d, d)."""
        if self.members is not None:
            return np.stack([one.covariance for one in self._each])
        if not np.isfinite(self._kernel.spread):
            raise DomainError(sentence("KDE", "the covariance exists for dof above 2", self.dof))
        z = self.points - self.mean
        window = self.scale if self.elliptical else np.diag(self.scale)
        return np.asarray((z * (self._w / self._w.sum())[:, None]).T @ z + self._kernel.spread * window)

    @property
    def variance(self) -> Array:
        """Variance of each column, (d,) or (K, d)."""
        return np.array(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def marginal(self, columns: Sequence[int]) -> KDE:
        """The distribution of some columns, the others integrated out: the same windows about fewer columns.

        >>> KDE([[0.0, 1.0], [2.0, 5.0]], [1.0, 4.0]).marginal([1]).scale
        array([4.])
        """
        self._allow_gaps()
        at = np.asarray(columns, dtype=np.intp)
        if at.ndim != 1 or not len(at) or len(set(at.tolist())) < len(at) or at.min() < 0 or at.max() >= self.dim:
            raise DomainError(sentence("KDE", f"columns must be some of 0 … {self.dim - 1}, each once", columns))
        scale = self.scale[..., at[:, None], at] if self.elliptical else self.scale[..., at]
        return self.replace(points=np.ascontiguousarray(self.points[:, at]), scale=np.ascontiguousarray(scale))

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) in one dimension."""
        self._only_one_column()
        z = one_column(x, self.members)
        if self.members is not None:
            return np.stack([one.cdf(z[..., 0]) for one in self._each], axis=-1)
        flat, w = np.ravel(z), self._w / self._w.sum()
        width, out = np.sqrt(np.ravel(self.scale)[0]), np.empty(np.size(z))
        step = max(1, 10**6 // len(w))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            u = (flat[part, None] - self.points[:, 0]) / width
            out[part] = cdf_of(self.kernel, u, self.dof) @ w
        return out.reshape(np.shape(z))

    def quantile(self, p: Any) -> Array:
        """x with P(X ≤ x) = p in one dimension, by bisection; for a stack, (n, K)."""
        self._only_one_column()
        p = np.asarray(p, dtype=np.float64)
        if self.members is not None:
            return np.stack([one.quantile(p) for one in self._each], axis=-1)
        inside = (p > 0) & (p < 1)
        asked = np.where(inside, p, 0.5)
        reach = np.sqrt(np.ravel(self.scale)[0]) * reach_of(self.kernel, asked, self.dof)
        low, high = self.points.min() - reach, self.points.max() + reach
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not ((middle > low) & (middle < high)).any():
                break
            below = self.cdf(middle) < asked
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(inside, high, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))

    def _only_one_column(self) -> None:
        if self.dim != 1:
            expected = "cdf and quantile exist in one dimension"
            raise DomainError(sentence("KDE", expected, f"{self.dim} columns", "take marginal([j]) first"))

    # --------------------------------------------------------------- learning

    takes_parts = True  # distinct rows are sorted: the fewer times, the better
    why_worse: ClassVar[str] = (  # of a pass over hidden labels: left-out rows are no likelihood, which would only rise
        "windows are judged by rows left out, which moving hidden labels need not help; the best found are kept"
    )

    @classmethod
    def blank(
        cls, x: Any, members: int | None = None, *, kernel: str = "gaussian", scale: Any = "leave-one-out",
        dof: float = 3.0, tolerance: float | None = None, elliptical: bool = False, unit: str | None = None,
    ) -> KDE:  # fmt: skip
        """A first look at rows: one window, at the first of them, for each member; `refit` replaces it.

        `unit=None` is "pooled", and "class" of elliptical windows, whose shape is the member's covariance.
        """
        z = rows(x, None, "KDE")
        if not z.size:
            raise ShapeError(sentence("KDE", "at least one row and one column are needed", z.shape))
        unit = ("class" if elliptical else "pooled") if unit is None else unit
        first = np.nan_to_num(z[:1], posinf=0.0, neginf=0.0)
        d = z.shape[1]
        one = cls(first, np.eye(d) if elliptical else np.ones(d), kernel, None, dof, None, tolerance, scale, unit)
        return one if members is None else _stacked([one] * members)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> DistinctRows:
        """Each row once, with the weight of its copies.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1: nobody).
        """
        if labels is not None and self.members is None:
            raise DomainError(sentence("KDE", "label is for a stack", "one value"))
        z = rows(x, self.dim, "KDE")
        if np.isnan(z).any():
            self._allow_gaps()
        return DistinctRows.of(z, weight, labels, self.members, "KDE")

    def refit(self, stats: DistinctRows, prior: Any = None) -> KDE:
        """Windows on the rows of the statistics, as wide as `rule` says; members that saw nothing stay as they were.

        A row with gaps takes what it lacks from the row that is nearest in what was seen, of its own member first.
        """
        self._check(stats)
        stats = completed(stats, "KDE")
        points, labels = stats.rows, stats.labels
        K = self.members
        shapes = None if self.rule == "given" else self._shapes(points, stats.weight, labels)
        new = []
        for k, old in enumerate(self._each):
            mine = labels == k
            name = "" if K is None else f" (member {k})"
            shape = None if shapes is None else shapes[k]
            new.append(old._on(points[mine], stats.weight[mine], shape, name) if mine.any() else old)
        return new[0] if K is None else _stacked(new)

    def _shapes(self, points: Array, weight: Array, labels: Index) -> Array:
        """Squared widths at α = 1 of all members (K, d), or (K, d, d)."""
        each = spreads(points, weight, labels, self.members or 1, self.unit)
        return shapes_of(points, weight, labels, each, self.unit) if self.elliptical else each

    def _on(self, points: Array, weight: Array, shape: Array | None, which: str) -> KDE:
        """Windows on these points, with a width by the rule."""
        if shape is None:
            return self.replace(points=points, weight=weight)
        unit = self.replace(points=points, weight=weight, scale=shape)
        rows = LeftOut(unit._white(points), weight, self._kernel)
        alpha = chosen(self.rule, rows, which)
        new = unit.replace(scale=alpha * shape)
        if self.rule == "leave-one-out" and len(points) > 1:  # `objective` will ask: the distances are at hand
            new.__dict__["_known"] = rows.logs(float(np.log(alpha))) + self._kernel.log_height - new._log_det
        return new

    def objective(self, stats: DistinctRows, prior: Any = None) -> float:
        """Σ w log p(x), each row judged by windows on the others: what its own window gives it says nothing.

        Beyond 2,000 rows per member, 2,000 of them are asked (the order of hashes is a fair one) and stand for all.
        """
        self._check(stats)
        total = 0.0
        for k, one in enumerate(self._each):
            mine = stats if stats.members is None else stats.member(k)
            if len(mine):
                w = mine.weight[:ASKED]
                total += float(w @ one._left_out(mine.values[:ASKED])) * float(mine.weight.sum() / w.sum())
        return total

    def _left_out(self, x: Array) -> Array:
        """log p of rows under windows on all other points."""
        known: Array | None = self.__dict__.get("_known")
        first = np.array_equal(x, self.points[: len(x)])
        if first and known is not None and len(known) >= len(x):
            return known[: len(x)]
        at = np.arange(len(x)) if first else same_rows(x, self.points)
        own = at >= 0 if len(self.points) > 1 else np.zeros(len(x), bool)
        out = np.empty(len(x))
        out[~own] = self._scores(x[~own])
        with np.errstate(all="ignore"):
            rest = np.log(self._w.sum() - self._w[at[own]])
            out[own] = self._sums(self._white(x[own]), at[own]) + self._kernel.log_height - self._log_det - rest
        return out

    def joined_stats(self, parts: list[DistinctRows]) -> DistinctRows:
        """Statistics of runs of members as those of all."""
        return DistinctRows.side_by_side(parts)

    def weak_prior(self, stats: DistinctRows) -> None:
        """Nothing is believed: windows remember what was seen."""

    def _check(self, stats: DistinctRows) -> None:
        if stats.rows.shape[1] != self.dim or stats.members != self.members:
            got = (stats.rows.shape[1], stats.members)
            raise ShapeError(sentence("KDE", f"statistics must be of {(self.dim, self.members)} columns, members", got))


def coulomb_potential(points: Any, x: Any, weight: Any = None, epsilon: float = 1e-3) -> Array:
    """Σ_n w_n / (ε + ‖x − x_n‖) of rows x (n,): the Coulomb potential of charged points   (Ney 5.2).

    It is a score and no density: it has no finite integral, so it cannot be normalized.

    >>> coulomb_potential([[0.0], [2.0]], [[1.0]], epsilon=1.0)
    array([1.])
    """
    whose = "coulomb_potential"
    y = parameter(points, whose, "points")
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or 0 in y.shape:
        raise ShapeError(sentence(whose, "points must have shape (n, d), at least one of them", y.shape))
    z = rows(x, y.shape[1], whose)
    _refuse_gaps(z, whose)
    w = np.ones(len(y)) if weight is None else parameter(weight, whose, "weight")
    if w.shape != (len(y),):
        raise ShapeError(sentence(whose, f"weight must have one entry per point ({len(y)})", w.shape))
    if not (isinstance(epsilon, Real) and 0 < epsilon < np.inf):
        raise DomainError(sentence(whose, "epsilon must be a positive number", repr(epsilon)))
    out = np.zeros(len(z))
    step = max(1, 10**6 // y.size)
    for start in range(0, len(z), step):
        away = lengths(z[start : start + step], y)
        out[start : start + step] = (1.0 / (epsilon + away)) @ w
    return out


# -------------------------------------------------------------------- helpers


def _refuse_gaps(x: Array, whose: str) -> None:
    refuse_infinite(x, whose)
    bad = np.argwhere(np.isnan(x))
    if len(bad):
        i, j = map(int, bad[0])
        raise BadEntry(whose, "a distance needs every column", "NaN", i, j, "leave the row out, or fill it in first")


def _points(points: Any, edges: Any) -> tuple[Array, Any]:
    """Points (n, d), and where members begin and end; a list of matrices is a stack."""
    if edges is None and isinstance(points, list | tuple) and len(points) and np.ndim(points[0]) == 2:
        each = [parameter(p, "KDE", "points") for p in points]
        if len({p.shape[1] for p in each}) > 1:
            raise ShapeError(sentence("KDE", "all members must have one number of columns", [p.shape for p in each]))
        points, edges = np.concatenate(each), np.cumsum([0, *map(len, each)])
    z = parameter(points, "KDE", "points")
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or 0 in z.shape:
        raise ShapeError(sentence("KDE", "points must have shape (n, d), at least one of them", z.shape))
    return z, edges


def _stacked(parts: list[KDE]) -> KDE:
    stack = parts[0].replace(**end_to_end(parts), scale=np.stack([p.scale for p in parts]))
    stack.__dict__["_each"] = parts  # they know more than what they are made of: trees, distances
    return stack


def _factor(scale: Array) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(scale), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        remedy = "shrink it toward its diagonal"
        raise DomainError(sentence("KDE", "a matrix of squared widths must be positive definite", remedy=remedy)
                          ) from error  # fmt: skip


def _by_pattern(gaps: Any) -> list[tuple[Any, Index]]:
    """Rows with the same gaps together: the gaps, and which rows."""
    kinds, which = np.unique(gaps, axis=0, return_inverse=True)
    return [(kind, np.flatnonzero(np.ravel(which) == i)) for i, kind in enumerate(kinds)]
