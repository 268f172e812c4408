"""Kernel density estimate (KDE, Parzen windows) as a distribution: one kernel at each stored point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, check_option, like_input, parameter, refuse_infinite, rows
from likely.core.description import vector_words
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.value import fill_cache
from likely.core.warnings import warnings_discarded
from likely.density.bandwidth import (
    FIXED,
    BandwidthRule,
    BandwidthUnit,
    KDERule,
    LeaveOneOut,
    column_variances,
    covariances_of,
    log_sums_of,
    squared_relative_bandwidth,
)  # fmt: skip
from likely.density.kde_missing_values import completed
from likely.density.kde_tree import Tree, tree_of
from likely.density.kernels import MARGINAL_KERNELS, Kernel, KernelName, cdf_of, checked_kernel, kernel_of, reach_of
from likely.density.pairwise_distances import Cloud, far_log_sums, lengths
from likely.density.stored_points import StoredPoints, end_to_end, with_weight
from likely.distributions.gaussian.variance_floors import ROUNDING
from likely.distributions.statistics.counts import one_column
from likely.neighbors.distinct_rows import DistinctRows, same_rows

SMALL = 4096  # number of points up to which the sum is exact by default
BOUND = 1e-6  # relative error of p(x) allowed beyond: |Δ log p| of any row stays below it
ASKED = 2000  # rows that `objective` leaves out at most
MANY = 12  # columns beyond which a tree prunes nothing, and matrix products are faster
FAR = 1e100  # bandwidths beyond which squares might overflow


@dataclass(frozen=True, eq=False)
class KDE(StoredPoints):
    """Kernel density estimate p(x) = Σ_n w_n k((x − x_n)/h) / Πh, with Σ_n w_n = 1.

    NaN entries are integrated out, which is exact for gaussian, t and cube; other kernels refuse them.

    Parameters
    ----------
    points : array-like (n, d)
        The points x_n; for a stack a list of them (flat with `edges`).
    bandwidth : float or array-like, optional
        Widths h of the kernel in the columns' own units, as in scikit-learn: a number (the same for all
        columns), (d,), or (K, d) for a stack.
    kernel : str, default "gaussian"
        "gaussian", "t" (with `dof`), "cube" (of edge h), "exponential", or inside the ball of radius h
        "tophat", "epanechnikov", "linear", "cosine", "quartic" (biweight), "triweight", "tricube"; each is normalized
        in d dimensions.
    weight : array-like (n,), optional
        Weight per point; points of weight 0 are dropped.
    dof : float, default 3.0
        Degrees of freedom of the t kernel.
    edges : array-like of int (K + 1,), optional
        Where the points of each member of a stack begin.
    tolerance : float, optional
        Largest |Δ log p| of any row: points too far to matter are left out by a bound. None: 0 (exact) up
        to 4,096 points, 1e-6 beyond. A row far from every point has a finite log p nevertheless, for a Gaussian kernel
        as long as r²/2 is finite (1e154 bandwidths).
    rule : {"fixed", "leave-one-out", "maximum", "scott", "silverman"} or float, default "fixed"
        How `refit` chooses the bandwidth; a number is a relative bandwidth, in standard deviations; "fixed": the
        bandwidth stays as it is.
    unit : {"pooled", "class", "common"}, default "pooled"
        The standard deviations that a relative bandwidth multiplies: those within all members together, in
        the member's own size ("pooled"), those of the member's own columns ("class"), or the root of the mean of their
        squares, so that all columns have one bandwidth ("common").
    kernel_covariance : array-like (d, d) or (K, d, d), optional
        Instead of `bandwidth`, the covariance H of an elliptical Gaussian kernel
        (`scipy.stats.gaussian_kde.covariance`). Other kernels take k(H^(−1/2) (x − x_n)) / |H|^(1/2) likewise.
        It is not `covariance`, which is that of the whole distribution.

    See Also
    --------
    KernelDensity : The estimator.

    References
    ----------
    Silverman (1986); Bishop (2006), chapter 2; Ney, lecture notes, 5.2; Herbst and du Preez, lecture notes, 2.5.

    Examples
    --------
    >>> KDE([0.0, 1.0, 5.0], 0.5).log_prob([[0.5], [50.0]]).round(1)
    array([-1.1000e+00, -4.0513e+03])
    """

    points: Annotated[Array, declared.numbers("n d")]  # (n, d)
    # (d,) or (K, d); None if the kernel is elliptical
    bandwidth: Annotated[Array | None, declared.maybe(declared.numbers("?", 0))] = None
    kernel: KernelName = "gaussian"
    weight: Annotated[Array | None, declared.numbers("n", 0)] = None  # (n,) once it is checked
    dof: Annotated[float, declared.number(0)] = 3.0
    edges: Annotated[Index | None, declared.maybe(declared.numbers("e", 0, np.int64))] = None  # (K + 1,) for a stack
    tolerance: Annotated[float | None, declared.maybe(declared.number(0))] = None
    rule: Annotated[KDERule | float, declared.rule_or_number] = FIXED
    unit: BandwidthUnit = "pooled"
    kernel_covariance: Annotated[Array | None, declared.maybe(declared.numbers("?"))] = None  # (d, d) or (K, d, d)

    def __post_init__(self) -> None:
        checked_kernel(self.kernel, self.dof, "KDE")
        given, edges = _points(self.points, self.edges)
        points, weight, edges = with_weight(given, self.weight, edges, "KDE")
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise DomainError(sentence("KDE", "tolerance must lie in 0 … 1", self.tolerance, "0 is exact"))
        if not (isinstance(self.rule, int | float) and 0 < self.rule < np.inf):
            check_option(self.rule, KDERule, "KDE", "rule", "a positive number")
        check_option(self.unit, BandwidthUnit, "KDE", "unit")
        if (self.bandwidth is None) == (self.kernel_covariance is None):
            got = "neither" if self.bandwidth is None else "both"
            raise DomainError(sentence("KDE", "give either bandwidth or kernel_covariance", got))
        self._set(points=points, weight=weight, edges=edges, dof=float(self.dof))
        if self.bandwidth is not None:
            self._set(bandwidth=self._checked_bandwidth(parameter(self.bandwidth, "KDE", "bandwidth")))
        else:
            H = parameter(self.kernel_covariance, "KDE", "kernel_covariance")
            self._set(kernel_covariance=self._checked_covariance(H))

    @property
    def hyperparameters(self) -> dict[str, str]:
        """The kernel, how its bandwidth was chosen, and the unit of relative bandwidths."""
        kernel = f"t, {self.dof:g} degrees of freedom" if self.kernel == "t" else self.kernel
        rule = self.rule if isinstance(self.rule, str) else "fixed"
        return {"kernel": "elliptical " * self.elliptical + kernel, "bandwidth": rule, "unit": self.unit}

    def member_facts(self, k: int) -> dict[str, str]:
        """The relative bandwidth of a member."""
        return {"relative bandwidth": vector_words(np.atleast_1d(self.relative_bandwidth)[k])}

    def _checked_bandwidth(self, h: Array) -> Array:
        K, d = self.members, self.dim
        shape = (d,) if K is None else (K, d)
        if h.shape not in ((), (d,), shape):
            shapes = " or ".join(map(str, dict.fromkeys(((d,), shape))))
            elliptical = 'an elliptical kernel has kernel_covariance=, or kernel="elliptical" in KernelDensity'
            remedy = elliptical if h.ndim > 1 else ""
            raise ShapeError(sentence("KDE", f"bandwidth must be a number or have shape {shapes}", h.shape, remedy))
        if not (h > 0).all():
            raise DomainError(sentence("KDE", "bandwidths must be positive", float(h.min())))
        return np.array(np.broadcast_to(h, shape))

    def _checked_covariance(self, H: Array) -> Array:
        K, d = self.members, self.dim
        shape = (d, d) if K is None else (K, d, d)
        if H.shape != shape:
            raise ShapeError(sentence("KDE", f"kernel_covariance must have shape {shape}", H.shape))
        if self.kernel == "cube":
            expected = "a cube has one bandwidth per column, and no covariance"
            raise DomainError(sentence("KDE", expected, "kernel_covariance", 'take kernel="tophat" for an ellipsoid'))
        if self.unit == "common":
            expected = "an elliptical kernel has a covariance, and no bandwidth that all columns share"
            raise DomainError(sentence("KDE", expected, 'unit="common"', 'take kernel="gaussian", or another unit'))
        if not np.allclose(H, np.swapaxes(H, -1, -2), rtol=1e-9, atol=0):
            raise DomainError(sentence("KDE", "kernel_covariance must be symmetric"))
        _factor(H)
        return H

    # ------------------------------------------------------------------ shape

    @property
    def n_parameters(self) -> int:
        """Free parameters: one bandwidth per member; the points are the data themselves."""
        return self.members or 1

    @property
    def elliptical(self) -> bool:
        """True if the kernel is elliptical: it has a covariance, and not one bandwidth per column."""
        return self.kernel_covariance is not None

    @property
    def _widths(self) -> Array:
        """Bandwidth of each column (d,) or (K, d); of an elliptical kernel, the root of the covariance's diagonal."""
        if self.kernel_covariance is None:
            assert self.bandwidth is not None
            return self.bandwidth
        return np.sqrt(np.diagonal(self.kernel_covariance, axis1=-2, axis2=-1))

    @property
    def relative_bandwidth(self) -> Array:
        """Bandwidth h/σ of each member (K,), (1,) for one value, in standard deviations of its `unit`.

        It is taken in the column that varies most. For one value, which may have been a member, it is the harmonic mean
        over its columns, in squares: σ²/h² is averaged, whatever the unit was.
        """
        widths = self._widths
        if self.members is None and (own := self._own_variance).any():
            ratio = (np.sqrt(own) / widths)[own > 0]
            return np.array([1.0 / (ratio.max() * np.sqrt(np.mean((ratio / ratio.max()) ** 2)))])
        with warnings_discarded():  # warnings about columns were given when they were learned
            variances = column_variances(self.points, self._w, self._labels, self.members or 1, self.unit)
        at = np.argmax(variances, axis=1)[:, None]
        widest = np.take_along_axis(np.atleast_2d(widths), at, 1)
        return np.asarray(widest / np.sqrt(np.take_along_axis(variances, at, 1)))[:, 0]

    @property
    def _own_variance(self) -> Array:
        """σ² of each column among the points (d,); 0 where they do not differ beyond rounding."""
        own = self._w @ (self.points - self.mean) ** 2 / self._w.sum()
        return np.where(own > (ROUNDING * np.abs(self.mean)) ** 2, own, 0.0)

    @property
    def _size(self) -> dict[str, Array | None]:
        """The two fields that hold the size of the kernel."""
        return {"bandwidth": self.bandwidth, "kernel_covariance": self.kernel_covariance}

    def _own(self, k: int) -> dict[str, Any]:
        return {name: None if size is None else size[k].copy() for name, size in self._size.items()}

    def take(self, index: Any) -> KDE:
        """A stack of the chosen members."""
        return _stacked([self.member(int(k)) for k in np.arange(self.members or 1)[index]])

    @cached_property
    def _kernel(self) -> Kernel:
        return kernel_of(self.kernel, self.dim, self.dof)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of each row."""
        z = rows(x, self.dim, "KDE")
        refuse_infinite(z, "KDE")
        out = np.stack([one._scores(z) for one in self._each], axis=1)
        return np.asarray(like_input(out if self.members else out[:, 0], x))

    def _scores(self, x: Array) -> Array:
        incomplete = np.isnan(x).any(axis=1)
        if not incomplete.any():
            return self._complete(x)
        self._refuse_missing()
        out = np.zeros(len(x))
        out[~incomplete] = self._complete(x[~incomplete])
        at = np.flatnonzero(incomplete)
        for missing, which in _by_pattern(np.isnan(x[at])):
            if not missing.all():
                observed = np.flatnonzero(~missing)
                marginal = self._cached_marginal(tuple(observed.tolist()))
                out[at[which]] = marginal._complete(x[np.ix_(at[which], observed)])
        return out

    def _refuse_missing(self) -> None:
        """Raise an error if the kernel has no marginals of the same form."""
        if self.kernel not in MARGINAL_KERNELS:
            expected = f"the kernel {self.kernel!r} cannot integrate out missing values"
            raise DataError(sentence("KDE", expected, "NaN", f"use one of {', '.join(MARGINAL_KERNELS)}"))

    def _cached_marginal(self, at: tuple[int, ...]) -> KDE:
        """Marginal distribution of some columns, cached: missing values come in few patterns."""
        cache = self._marginals
        if at not in cache:
            if len(cache) > 256:
                cache.clear()
            cache[at] = self.marginal(at)
        return cache[at]

    @cached_property
    def _marginals(self) -> dict[tuple[int, ...], KDE]:
        return {}

    def _complete(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return self._sums(self._white(x)) + self._constant

    def _sums(self, y: Array, skip: Index | None = None) -> Array:
        """log Σ w k of whitened rows, for row i without point skip[i]; far rows are scaled lest squares overflow."""
        far = (np.abs(y) >= FAR).any(axis=1) | self._wide
        if not far.any():
            return self._near_sums(y, skip)
        out = np.empty(len(y))
        for these, by in ((~far, self._near_sums), (far, self._far_sums)):
            if these.any():
                out[these] = by(y[these], None if skip is None else skip[these])
        return out

    def _near_sums(self, y: Array, skip: Index | None) -> Array:
        """By matrix products in many columns, by a tree in few."""
        if self.dim <= MANY or self.kernel == "cube":
            return self._by_tree(y, skip)
        return self._cloud.log_sums(y, 1.0, self._kernel, skip)

    def _far_sums(self, y: Array, skip: Index | None) -> Array:
        return far_log_sums(y, self._white(self.points), self._w, self._kernel, skip)

    @cached_property
    def _wide(self) -> bool:
        """Whether the points themselves lie so far apart that squared distances might overflow."""
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
        """Whitening factor: 1/h (d,), or the inverse (d, d) of the Cholesky factor of the kernel's covariance."""
        if self.kernel_covariance is not None:
            return np.asarray(np.linalg.inv(_factor(self.kernel_covariance)))
        return np.asarray(1.0 / self._widths)

    @cached_property
    def _log_det(self) -> float:
        """log Π h, or half the log-determinant of the kernel's covariance."""
        if self.kernel_covariance is not None:
            return float(np.log(np.diagonal(_factor(self.kernel_covariance))).sum())
        return float(np.log(self._widths).sum())

    def _white(self, x: Array) -> Array:
        """Rows in bandwidths about the middle of the points; overflow is clipped to 1e300."""
        with np.errstate(all="ignore"):
            z = x - self._middle
            white = np.einsum("nj,ij->ni", z, self._root) if self.elliptical else z * self._root
        return np.nan_to_num(white, nan=1e300, posinf=1e300, neginf=-1e300)

    def sample(self, n: int, rng: Generator) -> Array:
        """Samples (n, d), or (n, K, d) for a stack: a random point plus noise of the kernel."""
        if self.members is not None:
            return np.stack([one.sample(n, rng) for one in self._each], axis=1)
        at = rng.choice(len(self.points), n, p=self._w / self._w.sum())
        step = self._kernel.draw(n, rng)
        H = self.kernel_covariance
        return np.asarray(self.points[at] + (step * self._widths if H is None else step @ _factor(H).T))

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Mean of the points (d,), or (K, d)."""
        if self.members is not None:
            return np.stack([one.mean for one in self._each])
        return np.asarray(self._middle + self._w @ (self.points - self._middle) / self._w.sum())

    @property
    def covariance(self) -> Array:
        """Covariance (d, d), or (K, d, d): that of the points plus that of the kernel."""
        if self.members is not None:
            return np.stack([one.covariance for one in self._each])
        if not np.isfinite(self._kernel.variance):
            raise DomainError(sentence("KDE", "the covariance exists for dof above 2", self.dof))
        z = self.points - self.mean
        with np.errstate(over="ignore"):  # the square of a bandwidth may be infinite
            H = np.diag(self._widths**2) if self.kernel_covariance is None else self.kernel_covariance
        return np.asarray((z * (self._w / self._w.sum())[:, None]).T @ z + self._kernel.variance * H)

    @property
    def variance(self) -> Array:
        """Variance of each column, (d,) or (K, d)."""
        return np.array(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def marginal(self, columns: Sequence[int]) -> KDE:
        """Marginal distribution of some columns: the same kernel in fewer columns.

        >>> KDE([[0.0, 1.0], [2.0, 5.0]], [1.0, 4.0]).marginal([1]).bandwidth
        array([4.])
        """
        self._refuse_missing()
        at = np.asarray(columns, dtype=np.intp)
        if at.ndim != 1 or not len(at) or len(set(at.tolist())) < len(at) or at.min() < 0 or at.max() >= self.dim:
            raise DomainError(sentence("KDE", f"columns must be some of 0 … {self.dim - 1}, each once", columns))
        points, h, H = np.ascontiguousarray(self.points[:, at]), self.bandwidth, self.kernel_covariance
        if H is not None:
            return self.replace(points=points, kernel_covariance=np.ascontiguousarray(H[..., at[:, None], at]))
        assert h is not None
        return self.replace(points=points, bandwidth=np.ascontiguousarray(h[..., at]))

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) in one dimension."""
        self._only_one_column()
        z = one_column(x, self.members)
        if self.members is not None:
            return np.stack([one.cdf(z[..., 0]) for one in self._each], axis=-1)
        flat, w = np.ravel(z), self._w / self._w.sum()
        width, out = self._widths[0], np.empty(np.size(z))
        step = max(1, 10**6 // len(w))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            u = (flat[part, None] - self.points[:, 0]) / width
            out[part] = cdf_of(self.kernel, u, self.dof) @ w
        return out.reshape(np.shape(z))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles x with P(X ≤ x) = p in one dimension, by bisection.

        Returns
        -------
        ndarray (n,)
            Quantiles; (n, K) for a stack of K members.
        """
        self._only_one_column()
        p = np.asarray(p, dtype=np.float64)
        if self.members is not None:
            return np.stack([one.quantile(p) for one in self._each], axis=-1)
        inside = (p > 0) & (p < 1)
        asked = np.where(inside, p, 0.5)
        reach = self._widths[0] * reach_of(self.kernel, asked, self.dof)
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
    objective_name = "leave-one-out log-likelihood"
    why_worse: ClassVar[str] = (  # of EM over missing labels: only a likelihood is sure to rise
        "a kernel density has a leave-one-out score, which EM over missing labels need not raise; the best is kept"
    )

    @classmethod
    def blank(
        cls, x: ArrayLike, members: int | None = None, *, kernel: KernelName = "gaussian",
        bandwidth: BandwidthRule | ArrayLike = "leave-one-out",
        relative_bandwidth: float | None = None, dof: float = 3.0, tolerance: float | None = None,
        elliptical: bool = False, unit: BandwidthUnit | None = None,
    ) -> KDE:  # fmt: skip
        """Initial value for rows like these: one point per member, the first row; `refit` replaces it.

        `bandwidth` is a rule or fixed widths in the columns' units; `relative_bandwidth` is in standard deviations of
        the `unit` and replaces it. `unit=None` is "pooled", and "class" for an elliptical kernel, whose shape is the
        member's covariance.
        """
        z = rows(x, None, "KDE")
        if not z.size:
            raise ShapeError(sentence("KDE", "at least one row and one column are needed", z.shape))
        rule, widths = _rule_and_widths(bandwidth, relative_bandwidth)
        if elliptical and rule == FIXED:
            expected = "an elliptical kernel needs relative_bandwidth, or bandwidth as the name of a rule"
            raise DomainError(sentence("KDE", expected, f"bandwidth = {bandwidth!r}"))
        stack, d = () if members is None else (members,), z.shape[1]
        eye = np.broadcast_to(np.eye(d), (*stack, d, d))
        size = {"kernel_covariance": eye} if elliptical else {"bandwidth": widths}
        first = np.repeat(np.nan_to_num(z[:1], posinf=0.0, neginf=0.0), members or 1, axis=0)
        return cls(
            first, kernel=kernel, dof=dof, edges=None if members is None else np.arange(members + 1),
            tolerance=tolerance, rule=rule, unit=unit or ("class" if elliptical else "pooled"), **size,
        )  # fmt: skip

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> DistinctRows:
        """Sufficient statistics: the distinct rows, each with the total weight of its copies.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) is the member that each row belongs to (−1: none).
        """
        if labels is not None and self.members is None:
            raise DomainError(sentence("KDE", "labels are for a stack", "one value"))
        z = rows(x, self.dim, "KDE")
        if np.isnan(z).any():
            self._refuse_missing()
        return DistinctRows.of(z, weight, labels, self.members, "KDE")

    def refit(self, stats: DistinctRows, prior: AnyPrior | None = None) -> KDE:
        """Kernels at the rows of the statistics, with the bandwidth of `rule`; members without rows stay as they were.

        A row with missing values takes them from the row that is nearest in the observed columns, of its own member
        first.
        """
        self._check(stats)
        stats = completed(stats, "KDE")
        points, labels = stats.rows, stats.labels
        K = self.members
        units = None if self.rule == FIXED else self._units(points, stats.weight, labels)
        new = []
        for k, old in enumerate(self._each):
            own = labels == k
            name = "" if K is None else f" (member {k})"
            unit = None if units is None else units[k]
            new.append(old._at(points[own], stats.weight[own], unit, name) if own.any() else old)
        return new[0] if K is None else _stacked(new)

    def _units(self, points: Array, weight: Array, labels: Index) -> Array:
        """Variances (K, d), or covariances (K, d, d), of all members at a relative bandwidth of 1."""
        variances = column_variances(points, weight, labels, self.members or 1, self.unit)
        return covariances_of(points, weight, labels, variances, self.unit) if self.elliptical else variances

    def _at(self, points: Array, weight: Array, unit: Array | None, which: str) -> KDE:
        """Kernels at these points, with a bandwidth by the rule in units of these variances."""
        if unit is None:
            return self.replace(points=points, weight=weight)
        in_units = self.replace(points=points, weight=weight, **self._sized(unit))
        rows = LeaveOneOut(in_units._white(points), weight, self._kernel)
        alpha = squared_relative_bandwidth(self.rule, rows, which)
        new = in_units.replace(**self._sized(alpha * unit))
        if self.rule == "leave-one-out" and len(points) > 1:  # `objective` will need it: the distances are at hand
            fill_cache(new, _left_out_logs=rows.logs(float(np.log(alpha))) + self._kernel.log_height - new._log_det)
        return new

    def _sized(self, squared: Array) -> dict[str, Array]:
        """The field that holds squared bandwidths (d,), or the kernel's covariance (d, d)."""
        return {"kernel_covariance": squared} if self.elliptical else {"bandwidth": np.sqrt(squared)}

    def objective(self, stats: DistinctRows, prior: AnyPrior | None = None) -> float:
        """Leave-one-out log-likelihood Σ w log p₋ₙ(x): each row is scored by the kernels at the other rows.

        Beyond 2,000 rows per member, the first 2,000 in the order of their hashes (a random sample) stand for all.
        """
        self._check(stats)
        total = 0.0
        for k, one in enumerate(self._each):
            own = stats if stats.members is None else stats.member(k)
            if len(own):
                w = own.weight[:ASKED]
                total += float(w @ one._left_out(own.values[:ASKED])) * float(own.weight.sum() / w.sum())
        return total

    @cached_property
    def _left_out_logs(self) -> Array | None:
        """log p of the first points under the kernels at all others, as the bandwidth selection found them."""
        return None

    def _left_out(self, x: Array) -> Array:
        """log p of rows under the kernels at all other points."""
        cached = self._left_out_logs
        first = np.array_equal(x, self.points[: len(x)])
        if first and cached is not None and len(cached) >= len(x):
            return cached[: len(x)]
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
        """No prior: a kernel density stores the data."""

    def _check(self, stats: DistinctRows) -> None:
        if stats.rows.shape[1] != self.dim or stats.members != self.members:
            got = (stats.rows.shape[1], stats.members)
            raise ShapeError(sentence("KDE", f"statistics must be of {(self.dim, self.members)} columns, members", got))


def coulomb_potential(points: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, epsilon: float = 1e-3) -> Array:
    """Coulomb potential Σ_n w_n / (ε + ‖x − x_n‖) of charged points.

    It is a score and no density: it has no finite integral, so it cannot be normalized.

    Parameters
    ----------
    points : array-like (n, d)
        The points x_n.
    x : array-like (m, d)
        Rows.
    weight : array-like (n,), optional
        Weight (charge) per point.
    epsilon : float, default 1e-3
        The term ε that keeps the potential finite.

    Returns
    -------
    ndarray (m,)
        The potential at each row.

    See Also
    --------
    KDE : Kernels that integrate to one.

    References
    ----------
    Ney, lecture notes, 5.2.

    Examples
    --------
    >>> coulomb_potential([[0.0], [2.0]], [[1.0]], epsilon=1.0)
    array([1.])
    """
    whose = "coulomb_potential"
    y = parameter(points, whose, "points")
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or 0 in y.shape:
        raise ShapeError(sentence(whose, "points must have shape (n, d), at least one of them", y.shape))
    z = rows(x, y.shape[1], whose)
    _refuse_nan(z, whose)
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


def _refuse_nan(x: Array, whose: str) -> None:
    refuse_infinite(x, whose)
    bad = np.argwhere(np.isnan(x))
    if len(bad):
        i, j = map(int, bad[0])
        raise BadEntry(whose, "a distance needs every column", "NaN", i, j, "leave the row out, or fill it in first")


def _points(points: Any, edges: Any) -> tuple[Array, Any]:
    """Points (n, d), and the edges of members; a list of matrices is a stack."""
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
    sizes = {name: None if size is None else np.stack([p._size[name] for p in parts])  # type: ignore[misc]
             for name, size in parts[0]._size.items()}  # fmt: skip
    stack = parts[0].replace(**end_to_end(parts), **sizes)
    return fill_cache(stack, _each=parts)  # with their cached trees and distances


def _rule_and_widths(bandwidth: Any, relative_bandwidth: Any) -> tuple[Any, Any]:
    """The `rule` of a KDE, and the widths to begin with: those that are fixed, or 1."""
    if relative_bandwidth is not None:
        if not (isinstance(bandwidth, str) and bandwidth == "leave-one-out"):
            got = f"bandwidth = {bandwidth!r} and relative_bandwidth = {relative_bandwidth!r}"
            raise DomainError(sentence("KDE", "give either bandwidth or relative_bandwidth", got))
        if not (isinstance(relative_bandwidth, Real) and 0 < float(relative_bandwidth) < np.inf):
            raise DomainError(sentence("KDE", "relative_bandwidth must be a positive number", repr(relative_bandwidth)))
        return float(relative_bandwidth), 1.0
    if not isinstance(bandwidth, str):
        return FIXED, bandwidth
    check_option(bandwidth, BandwidthRule, "KDE", "bandwidth", "positive numbers")
    return bandwidth, 1.0


def _factor(H: Array) -> Array:
    """Cholesky factor of a covariance (..., d, d)."""
    try:
        return np.asarray(np.linalg.cholesky(H), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        remedy = "shrink it toward its diagonal"
        raise DomainError(sentence("KDE", "kernel_covariance must be positive definite", remedy=remedy)) from error


def _by_pattern(missing: Any) -> list[tuple[Any, Index]]:
    """Patterns of missing values, and the rows of each."""
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    return [(pattern, np.flatnonzero(np.ravel(which) == i)) for i, pattern in enumerate(patterns)]
