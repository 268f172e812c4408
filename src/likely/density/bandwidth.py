"""Bandwidth selection for kernel density estimates: leave-one-out, Scott's and Silverman's rules.

h²_d = α σ²_d, with σ²_d the variance of column d within all members (or in the member's own rows, Ney 5.2), or
H = α times their covariance. What is chosen here is α, the squared relative bandwidth, one number per member. Distances
in units of σ do not depend on α: where all pairs are needed anyway, they are formed once (`pairwise_distances`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.engine import cores, ordered_map
from likely.core.errors import DataError, sentence
from likely.core.warnings import warn
from likely.density.kde_tree import Tree, tree_of
from likely.density.kernels import Kernel
from likely.density.pairwise_distances import BY_COLUMNS, KEPT, WORTH, NearestDistances, log_kernel, pairs_of
from likely.distributions.gaussian.variance_floors import HUGE, ROUNDING, TINY, constant_note
from likely.neighbors.nearest_neighbors import nearest_other

BandwidthRule = Literal["leave-one-out", "maximum", "scott", "silverman"]
KDERule = Literal[BandwidthRule, "fixed"]
FIXED: KDERule = "fixed"  # the bandwidth stays as it is
BandwidthUnit = Literal["pooled", "class", "common"]
WORK = 2e10  # rows left out × points × (columns + 16) for one α: beyond it, a sample of the rows is left out
FEW = 1000  # rows that are left out in a first, coarse search
FEWER = 256  # the same, in many columns: each carries more information
WIDE = 4.0  # largest α of the search: twice the standard deviation of all rows
FINE = 1e-3  # of log α
LOOKS = 9  # grid points of log α that are evaluated before a local search
ROUNDED = 1e-12  # α: bandwidths of a millionth of a standard deviation mean that rows are copies but for rounding
BRIEF = 1e-6  # relative error of sums in a search
CHUNK = 256  # rows per task of a thread
ONE_OF_THEM = 1e-9  # of the variance of all rows: below, a member counts as constant


# ------------------------------------------------------------------ variances


def column_variances(rows: Array, weight: Array, labels: Index, members: int, unit: str, whose: str = "KDE") -> Array:
    """σ²_d of each member (K, d); for the unit "class" that of its own rows, of all rows where its own are constant.

    Another `unit` keeps the member's size, the mean over its columns, and takes the ratio of columns from the variance
    within all members together ("pooled"), or makes all columns alike ("common"); a constant member is as large as the
    others.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        whole = _variance(rows, weight)
        whole, constant = _floored(rows, weight, whole, whose)
        own = np.stack([_variance(rows[labels == k], weight[labels == k]) for k in range(members)])
    floor = np.where(constant, np.inf, ONE_OF_THEM * whole)
    if unit == "class":
        return np.where(own > floor, own, whole)
    within = np.bincount(labels, weight, members) @ own / weight.sum()
    within = np.where(within > floor, within, whole)
    each = np.where(own > floor, own, within)
    profile = within if unit == "pooled" else np.ones_like(whole)
    return np.asarray((each / profile).mean(axis=1, keepdims=True) * profile)


def _variance(x: Array, w: Array) -> Array:
    if not len(x):
        return np.zeros(x.shape[1])
    mean = w @ x / w.sum()
    return np.asarray(w @ (x - mean) ** 2 / w.sum())


def _floored(x: Array, w: Array, variance: Array, whose: str) -> tuple[Array, Mask]:
    """The variance of all rows; of constant columns, (1e-8 of the mean)²."""
    size = np.abs(w @ x / w.sum())
    constant = variance <= np.where(size > 0, ROUNDING * size, 0.0) ** 2
    variance = np.where(constant, np.where(size > 0, 1e-8 * size, 1e-8) ** 2, variance)
    odd = np.flatnonzero(~((variance >= TINY) & (variance <= HUGE)))
    if len(odd):
        expected = f"the variance of column {odd[0]} must lie between {TINY:g} and {HUGE:g}"
        raise DataError(sentence(whose, expected, float(variance[odd[0]]), "rescale the column"))
    if constant.any() and len(x) > 1:
        warn(constant_note(np.flatnonzero(constant), whose))
    return variance, constant


def covariances_of(rows: Array, weight: Array, labels: Index, variance: Array, unit: str) -> Array:
    """Covariances (K, d, d) with these variances (K, d): of each member's own rows, or within all members together."""
    means = np.zeros_like(variance)
    for k in np.unique(labels):
        means[k] = np.average(rows[labels == k], axis=0, weights=weight[labels == k])
    z = rows - means[labels]
    if unit == "class":
        return np.stack([_shape(z[labels == k], weight[labels == k], v) for k, v in enumerate(variance)])
    size = (weight @ (z**2 / variance[0]) / weight.sum()).max() or 1.0  # that of the first is not that of all
    within = variance[0] * size
    return np.stack([_shape(z, weight, within) * (v[0] / within[0]) for v in variance])


def _shape(z: Array, w: Array, variance: Array) -> Array:
    """The covariance (d, d) of rows about their mean, its correlations shrunk by (d/n)⁴: never singular."""
    d, unit = len(variance), np.sqrt(variance)
    if not len(z):
        return np.diag(variance)
    white = z / unit
    R = (white * (w / w.sum())[:, None]).T @ white
    share = max(min(1.0, d / max(len(z) - 1, 1)) ** 4, 1e-9)
    R *= 1.0 - share
    R[np.diag_indices(d)] = 1.0
    return np.asarray(R * unit[:, None] * unit)


# ---------------------------------------------------------------------- rules


def squared_relative_bandwidth(rule: Any, rows: LeaveOneOut, which: str = "") -> float:
    """α = (h/σ)² for whitened rows, which have variance 1 in each column; `which` names the member in a warning.

    Scott's and Silverman's rules are made for the Gaussian kernel: other kernels get the same standard deviation.
    """
    if not isinstance(rule, str):
        return float(rule) ** 2
    (m, d), kernel, weight = rows.y.shape, rows.kernel, rows.weight
    even = kernel.variance if np.isfinite(kernel.variance) else 1.0
    n = float(weight.sum() ** 2 / (weight @ weight))  # effective sample size
    if rule == "scott" or m < 2:
        if m < 2 and rule not in ("scott", "silverman"):
            warn(f"KDE: one distinct row is not enough to choose a bandwidth: Scott's rule is used{which}")
        return max(n, 1.0) ** (-2.0 / (d + 4)) / even
    if rule == "silverman":
        return (n * (d + 2) / 4.0) ** (-2.0 / (d + 4)) / even
    if rule == "maximum":
        return maximum(rows.nearest, weight, kernel, d)
    return leave_one_out(rows, which)


def maximum(nearest: Array, weight: Array, kernel: Kernel, d: int) -> float:
    """α of the maximum approximation, in which only the nearest other row counts.

    For a Gaussian, α = 1/(N D) Σ_m min_{n≠m} Σ_d (x_md − x_nd)²/σ²_d (the exercise of Ney 5.2); other kernels maximize
    Σ_m log k(r²_m/α) − (D/2) log α over one number.
    """
    w = weight / weight.sum()
    if kernel.code == 0:
        return float(w @ nearest / d)
    if kernel.code == 2:
        return float((w @ np.sqrt(nearest) / d) ** 2)
    if kernel.code == 4 or (kernel.code == 3 and kernel.b == 0):
        return float(nearest.max()) * (1 + 1e-12)  # the smallest kernel that reaches every nearest neighbor

    def score(log_alpha: float) -> float:
        return float(w @ log_kernel(nearest / np.exp(log_alpha), kernel)) - 0.5 * d * log_alpha

    low = np.log(nearest.max()) + 1e-9 if kernel.code >= 3 else np.log(w @ nearest / d) - 6
    return float(np.exp(_best(score, low, low + 12, 1e-9)))


def leave_one_out(rows: LeaveOneOut, which: str = "") -> float:
    """α that maximizes Σ_m w_m log p_{−m}(x_m), each distinct row left out with all its copies.

    A coarse search over some rows, then a fine one over all of them, both on log α. Rows that are distinct but for
    rounding make the likelihood unbounded as α falls: an optimum at an end of the range gives a warning.
    """
    low, high = _range(rows.nearest, rows.weight, rows.kernel, rows.y.shape[1])
    few = FEWER if rows.kept else FEW
    if rows.n_left_out > 2 * few:
        rough = _best_of_all(lambda at: rows.score(at, few), low, high, 0.05)
        at = _best(rows.score, max(low, rough - 0.3), min(high, rough + 0.3), FINE)
        if min(abs(at - rough + 0.3), abs(at - rough - 0.3)) < 0.02:  # the coarse search was misled
            at = _best_of_all(rows.score, low, high, FINE)
    else:
        at = _best_of_all(rows.score, low, high, FINE)
    _warn_at_ends(at, low, high, rows.kernel, which)
    return float(np.exp(at))


def _warn_at_ends(at: float, low: float, high: float, kernel: Kernel, which: str) -> None:
    """Warn if the optimum lies at an end of the range, or so low that rows are copies but for rounding."""
    remedy, shown = "give a number, or bandwidth='scott'", f"{np.exp(0.5 * at):.3g}"
    if at > high - 0.01 or (at < low + 0.01 and kernel.code < 3):
        end = "largest" if at > high - 0.01 else "smallest"
        text = f"leave-one-out is best at the {end} relative bandwidth tried, {shown}{which}: no optimum inside"
        warn(f"KDE: {text}; {remedy}")
    elif np.exp(at) < ROUNDED:
        text = f"the relative bandwidth shrinks to {shown}{which}: rows differ from each other by rounding only"
        warn(f"KDE: {text}; round them, or {remedy}")


def _range(nearest: Array, weight: Array, kernel: Kernel, d: int) -> tuple[float, float]:
    """Logs of the smallest and largest α of the search."""
    if kernel.code >= 3:  # below, some row would have no other inside its kernel
        low = float(np.log(nearest.max())) + 1e-12
    else:
        low = float(np.log(weight @ nearest / weight.sum() / d)) - 4.0
    even = kernel.variance if np.isfinite(kernel.variance) else 1.0
    return low, max(float(np.log(WIDE / even)), low + 2.0)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out scores of whitened rows (m, d); of very many rows, of the first of them (in hash order).

    In many columns, or with few rows, distances are formed once for all bandwidths; else a tree prunes what is far.
    """

    y: Array
    weight: Array
    kernel: Kernel

    @cached_property
    def kept(self) -> bool:
        """Whether distances are stored from one bandwidth to the next; a cube needs others."""
        m, d = self.y.shape
        return self.kernel.code != 4 and (d > BY_COLUMNS or m <= KEPT + 1)

    @cached_property
    def n_left_out(self) -> int:
        """Number of rows that are left out in turn."""
        m, d = self.y.shape
        return min(m, max(FEW, int(WORK / (m * (d + 16)))))

    @cached_property
    def pairs(self) -> NearestDistances:
        """Pairwise distances."""
        return pairs_of(self.y, self.weight, self.n_left_out)

    @cached_property
    def tree(self) -> Tree:
        """Bounding boxes of the rows."""
        return tree_of(self.y, self.weight)

    @cached_property
    def nearest(self) -> Array:
        """Squared distance of every row to the nearest other (m,)."""
        if self.kept and self.n_left_out == len(self.y):
            return self.pairs.nearest
        return nearest_others(self.y, self.kernel.code == 4)

    def logs(self, log_alpha: float, n: int | None = None) -> Array:
        """log Σ_{n≠m} w_n k(r²_mn/α) − log Σ_{n≠m} w_n of the rows that are left out, or of the first of them."""
        n, inv = n or self.n_left_out, float(np.exp(-log_alpha))
        if self.kept:
            sums = self.pairs.first(n).log_sums(inv, self.kernel, BRIEF)
        else:
            sums = log_sums_of(self.tree, self.y[:n], inv, self.kernel, BRIEF, self.tree.place[:n])
        return np.asarray(sums - np.log(self.weight.sum() - self.weight[:n]))

    def score(self, log_alpha: float, n: int | None = None) -> float:
        """Mean leave-one-out log p, up to a constant that does not depend on α."""
        w = self.weight[: n or self.n_left_out]
        return float(w @ self.logs(log_alpha, n) / w.sum()) - 0.5 * self.y.shape[1] * log_alpha


def log_sums_of(tree: Tree, y: Array, inv: float, kernel: Kernel, tolerance: float, skip: Index | None = None) -> Array:
    """log Σ_n w_n k(|y − y_n|² · inv) of whitened rows (n, d), on all cores; to `tolerance`, 0 is exact."""
    from likely.density._loops import log_sums

    out = np.empty(len(y))
    places = np.full(len(y), -1) if skip is None else np.ascontiguousarray(skip)
    y = np.ascontiguousarray(y)
    y = y.copy() if not y.flags.writeable else y  # one signature for all: arrays that may be written

    def fill(start: int) -> None:
        part = slice(start, start + CHUNK)
        log_sums(
            y[part], *tree[:-1], float(inv), kernel.code, kernel.a, kernel.b, float(tolerance), places[part], out[part]
        )

    work = float(y.size + 16 * len(y)) * len(tree.total) * tree.weight.shape[1] / 2
    for _ in ordered_map(fill, range(0, len(y), CHUNK), cores() if work > WORTH else 1):
        pass
    return out


def _best_of_all(score: Callable[[float], float], low: float, high: float, fine: float) -> float:
    """Global maximum of a score with several local maxima: a grid, then a local search about its best point."""
    grid = np.linspace(low, high, LOOKS)
    scores = [score(at) for at in grid]
    top = int(np.argmax(scores))
    at = _best(score, float(grid[max(top - 1, 0)]), float(grid[min(top + 1, LOOKS - 1)]), fine)
    return at if score(at) >= scores[top] else float(grid[top])  # cube and tophat jump, often best at an end


def _best(score: Callable[[float], float], low: float, high: float, fine: float) -> float:
    """Maximizer of a score between two bounds (Brent)."""
    from scipy.optimize import minimize_scalar

    def cost(at: float) -> float:
        value = score(at)
        return -value if np.isfinite(value) else 1e300

    return float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": fine}).x)


# ----------------------------------------------------------------- neighbors


def nearest_others(y: Array, cube: bool = False) -> Array:
    """Squared distance (m,) of each row to the nearest other; for the cube, twice the largest difference, squared."""
    far, _ = nearest_other(y, p=np.inf if cube else 2.0)
    return np.asarray((2.0 * far if cube else far) ** 2)
