"""Goodness of fit of a Gaussian: squared Mahalanobis distances against the χ² distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtr, chdtrc, chdtri, kolmogorov

from likely.core.arrays import Array, PerMember
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.confidence_intervals import Interval, as_counts, proportion_interval, shown_p
from likely.metrics.reliability import Statistic

TINY = 1e-300
OUTER = 0.99  # probability of the ellipsoid
PAIRS = 200  # points of the quantile-quantile plot


@dataclass(frozen=True, eq=False)
class DistanceCheck(Value):
    """Tests of squared Mahalanobis distances against the χ² distribution that they follow for Gaussian rows.

    Parameters
    ----------
    dim : int
        Number of columns; with missing values, the largest number observed in a row.
    rows : float
        Effective number of rows.
    kolmogorov : Statistic
        Kolmogorov–Smirnov: the largest difference of the distribution functions.
    anderson : Statistic
        Anderson–Darling A², more sensitive in the tails.
    beyond : Interval
        Share of rows beyond the 0.99 quantile; 0.01 is expected.
    expected : ndarray (m,)
        Quantiles of χ².
    observed : ndarray (m,)
        Quantiles of the rows.
    """

    dim: int  # number of columns; the largest number observed in a row, with missing values
    rows: float  # effective number of rows
    kolmogorov: Statistic  # Kolmogorov–Smirnov: the largest difference of the distribution functions
    anderson: Statistic  # Anderson–Darling A², more sensitive in the tails
    beyond: Interval  # share of rows beyond the 0.99 quantile; 0.01 is expected
    expected: Array  # (m,) quantiles of χ²
    observed: Array  # (m,) quantiles of the rows

    @property
    def verdict(self) -> str:
        """The result of the tests as a sentence."""
        p = min(self.kolmogorov.p_value, self.anderson.p_value)
        share = f"{self.beyond.value:.1%} of rows lie beyond the 99 % ellipsoid"
        if p >= 0.025:  # two tests at 5 % together
            return f"The distances agree with χ² of {self.dim} degrees ({shown_p(p)}); {share}."
        if self.beyond.low > 1 - OUTER:
            advice = "Look for outliers, several modes, or use a t distribution."
            return f"The tails are heavier than Gaussian: {share}. {advice}"
        if self.observed[len(self.observed) // 2] < self.expected[len(self.expected) // 2]:
            why = "a few outliers inflate the covariance"
            return f"Most rows lie nearer than expected of a Gaussian distribution ({share}): {why}."
        return f"The distances do not follow χ² of {self.dim} degrees ({shown_p(p)}); {share}. Columns may be bounded."


def mahalanobis_goodness_of_fit(d2: ArrayLike, dim: ArrayLike, weight: ArrayLike | None = None) -> DistanceCheck:
    """Goodness of fit of a Gaussian: squared Mahalanobis distances against χ² with D degrees of freedom.

    The distribution should come from other rows, or from many more rows than it has parameters: distances from a fit to
    the same rows are slightly too small.

    Parameters
    ----------
    d2 : array-like (n,)
        Squared Mahalanobis distances.
    dim : int or array-like of int (n,)
        Number of columns, or of those that each row has observed.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    DistanceCheck
        Kolmogorov–Smirnov and Anderson–Darling tests, and quantiles for a plot.

    References
    ----------
    Ney, lecture notes, 3.2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mahalanobis_goodness_of_fit((rng.standard_normal((2000, 3)) ** 2).sum(axis=1), 3).kolmogorov.p_value > 0.05
    True
    """
    d2, dims, w = _distances(d2, dim, weight)
    below, above = chdtr(dims, d2), chdtrc(dims, d2)
    order = np.argsort(below - above, kind="stable")
    below, above, w = below[order], above[order], w[order]
    n, most = float(w.sum()), int(dims.max())
    far = float(w @ (above < 1 - OUTER))
    steps = np.cumsum(w) / n
    same = np.where(dims == most, d2, chdtri(most, np.maximum(chdtrc(dims, d2), TINY)))[order]
    expected, observed = _quantile_pairs(same, w, most)
    return DistanceCheck.trusted(
        dim=most, rows=n, kolmogorov=_kolmogorov(below, steps, n), anderson=_anderson(below, above, steps, n),
        beyond=proportion_interval(far, n), expected=expected, observed=observed,
    )  # fmt: skip


def _distances(d2: Any, dim: Any, weight: Any) -> tuple[Array, Array, Array]:
    d2 = np.asarray(d2, dtype=np.float64)
    if d2.ndim != 1:
        raise ShapeError(sentence("mahalanobis_goodness_of_fit", "d2 must have shape (n,)", d2.shape))
    if not (d2 >= 0).all() or np.isinf(d2).any():
        row = int(np.flatnonzero(~((d2 >= 0) & np.isfinite(d2)))[0])
        expected = "squared distances must be finite and not negative"
        raise DataError(sentence("mahalanobis_goodness_of_fit", expected, f"{d2[row]} at row {row}"))
    dims = np.asarray(dim, dtype=np.float64)
    if dims.shape not in ((), d2.shape) or not ((dims >= 0) & (dims == np.floor(dims))).all():
        expected = "dim must be an integer, or one for each row"
        raise ShapeError(sentence("mahalanobis_goodness_of_fit", expected, dim if dims.ndim == 0 else dims.shape))
    dims = np.broadcast_to(dims, d2.shape)
    w = as_counts(weight, len(d2), "mahalanobis_goodness_of_fit")
    here = (dims > 0) & (w > 0)  # rows without any observed entry are dropped
    if not here.any():
        raise DataError(sentence("mahalanobis_goodness_of_fit", "at least one row with an entry is needed", "none"))
    return d2[here], dims[here], w[here]


def _kolmogorov(u: Array, steps: Array, n: float) -> Statistic:
    """sup |F_n − F|, with Stephens's correction for small n."""
    gap = float(max((steps - u).max(), (u - np.append(0.0, steps[:-1])).max()))
    root = np.sqrt(n)
    return Statistic(gap, float(kolmogorov((root + 0.12 + 0.11 / root) * gap)))


def _anderson(below: Array, above: Array, steps: Array, n: float) -> Statistic:
    """A² = n ∫ (F_n − u)² / (u (1 − u)) du: between two rows F_n is a constant f, and the integral is
    f² log u − (1 − f)² log(1 − u) − u."""
    log_u, log_v = np.log(np.maximum(below, TINY)), np.log(np.maximum(above, TINY))
    f, g = steps[:-1], 1 - steps[:-1]
    inner = f**2 @ np.diff(log_u) - g**2 @ np.diff(log_v) - (below[-1] - below[0])
    ends = -log_v[0] - below[0] - log_u[-1] - above[-1]
    statistic = float(n * (inner + ends))
    return Statistic(statistic, _anderson_tail(statistic))


def _anderson_tail(a: float) -> float:
    """P(A² > a) for large n, to about 2e-4 (Marsaglia and Marsaglia 2004)."""
    if a <= 0:
        return 1.0
    if a < 2:
        series = np.polyval([0.00168691, -0.011672, 0.0347962, -0.0649821, 0.247105, 2.00012], a)
        return float(1 - np.exp(-1.2337141 / a) / np.sqrt(a) * series)
    return float(-np.expm1(-np.exp(np.polyval([-0.0003146, 0.008056, -0.082433, 0.43424, -2.30695, 1.0776], a))))


def _quantile_pairs(ordered: Array, w: Array, dim: int) -> tuple[Array, Array]:
    """Quantiles of χ² and of the rows: all of them, or 200 evenly spaced ones including the extremes."""
    middle = (np.cumsum(w) - w / 2) / w.sum()
    at = np.unique(np.linspace(0, len(w) - 1, min(PAIRS, len(w))).round().astype(np.intp))
    return chdtri(dim, 1 - middle[at]), ordered[at]


def shell_volume_fraction(dim: ArrayLike, eps: ArrayLike) -> PerMember:
    """Share of a ball's volume in its outermost shell of relative width ε: 1 − (1 − ε)^D.

    Parameters
    ----------
    dim : int or array-like
        Number of dimensions D.
    eps : float or array-like
        Relative width ε.

    Returns
    -------
    float or ndarray
        The share.

    References
    ----------
    Bishop (2006), chapter 1; Herbst and du Preez, lecture notes, 1.4.

    Examples
    --------
    >>> round(float(shell_volume_fraction(10, 0.1)), 5), round(float(shell_volume_fraction(100, 0.01)), 5)
    (0.65132, 0.63397)
    """
    e = np.asarray(eps, dtype=np.float64)
    if not ((e >= 0) & (e <= 1)).all() or not (np.asarray(dim) >= 0).all():
        got = f"{np.asarray(eps)} and {np.asarray(dim)}"
        raise DomainError(sentence("shell_volume_fraction", "eps must lie in 0 … 1 and dim not be negative", got))
    with np.errstate(divide="ignore"):
        return -np.expm1(np.asarray(dim, dtype=np.float64) * np.log1p(-e))
