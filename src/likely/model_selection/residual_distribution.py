"""Predictive densities from the residuals of held-out rows: y = μ(x) + σ(x) z, with a kernel density of z."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, stdtr

from likely.core import declared
from likely.core.arrays import Array, Index, numbers, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.confidence_intervals import as_counts
from likely.metrics.regression_evaluation import JOINED, RegressionEvaluation
from likely.model_selection.conformal import gives_deviation
from likely.numerics.special import LOG_2PI

KERNELS = 500  # kernels that are kept, at equal steps of probability: quantiles of more differ by less than 0.002
BLOCK = 2_000_000  # entries of a table of points × kernels that is made at a time: 16 MB
DOF = 3.0  # of the t distribution in the tails: its variance is finite
LOG_T = float(np.log(2 / (np.pi * np.sqrt(3))))  # log density of it at 0
EXTRA = 5.0  # variance of the kernels beyond that of n residuals, times n: 90 % intervals of n = 20 … 2,000 then hold
CHANCE = 2.0  # standard errors up to which a mean of residuals is taken as 0
PARTS = 5  # of held-out rows without folds
WIDTH = 0.9  # of the kernels, times the spread and n^(−1/5) (Silverman 1986, 3.31)


@dataclass(frozen=True, eq=False)
class ResidualDistribution(Value):
    """Distribution of standardized residuals z = (y − μ(x)) / σ(x) of rows that the model was not fitted to.

    n residuals have weight n/(n + 1), as Gaussian kernels that are moved toward their mean so that the variance is
    (1 + 5/n) times that of the residuals, or less. A mean within two standard errors of 0 is taken as 0. The remaining
    1/(n + 1) is what conformal prediction gives to a new row that is unlike all others: a t distribution with 3 degrees
    of freedom, center and scale those of the residuals. So central intervals have about the coverage of conformal ones,
    every number has a density above 0, and quantiles, mean and density belong to one distribution.

    Parameters
    ----------
    centers : array (m,)
        Centers of kernels of equal weight, in increasing order; see `of`.
    bandwidth : float
        Standard deviation of the kernels.
    spread : float
        Scale of the t distribution.
    rows : float
        Number n of residuals.

    References
    ----------
    Silverman 1986, Density Estimation for Statistics and Data Analysis, 3.4 and 6.4 (kernels with the variance of the
    rows). Vovk, Shen, Manokhin and Xie 2017, Nonparametric predictive distributions based on conformal prediction.

    Examples
    --------
    >>> z = ResidualDistribution.of(np.linspace(-1.0, 1.0, 201))
    >>> z.quantile([0.05, 0.5, 0.95]).round(2)
    array([-0.92,  0.  ,  0.92])
    """

    centers: Annotated[Array, declared.numbers("m")]
    bandwidth: Annotated[Array, declared.numbers("", 0)]
    spread: Annotated[Array, declared.numbers("", 0)]
    rows: Annotated[Array, declared.numbers("", 0)]

    dim = 1
    members = None

    def __post_init__(self) -> None:
        parts = {name: parameter(getattr(self, name), "ResidualDistribution", name) for name in _FIELDS}
        wrong = self.inconsistency(parts)
        if wrong:
            raise ShapeError(sentence("ResidualDistribution", wrong, remedy="use ResidualDistribution.of"))
        self._set(**parts)

    @staticmethod
    def inconsistency(fields: Any) -> str:
        """What is wrong with the fields, if anything."""
        centers = np.asarray(fields["centers"])
        if centers.ndim != 1 or not len(centers) or not (np.diff(centers) >= 0).all():
            return "centers must be numbers (m,) in increasing order, at least one"
        if not all(np.ndim(fields[name]) == 0 and fields[name] > 0 for name in _FIELDS[1:]):
            return "bandwidth, spread and rows must be positive numbers"
        return ""

    @classmethod
    def of(cls, residuals: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """The distribution of residuals; integer weights are copies.

        Parameters
        ----------
        residuals : array-like (n,)
            Standardized residuals of rows that the model was not fitted to.
        """
        z = numbers(residuals, "ResidualDistribution")
        if z.ndim != 1 or not z.size or not np.isfinite(z).all():
            raise DataError(sentence("ResidualDistribution", "finite residuals (n,) are needed, at least one", z.shape))
        w = as_counts(weight, len(z), "ResidualDistribution")
        z, w = z[w > 0], w[w > 0]
        order = np.argsort(z, kind="stable")
        z, w = z[order], w[order]
        n, mean = float(w.sum()), float(w @ z / w.sum())
        if n > 1 and mean**2 <= CHANCE**2 * float(w @ (z - mean) ** 2) / (n - 1) / n:
            z, mean = z - mean, 0.0
        sd = float(np.sqrt(w @ (z - mean) ** 2 / max(n - 1, 1.0)))
        spread = max(sd, 1e-6 * max(1.0, abs(mean))) if n > 1 else 1.0
        quarter, three = np.interp([0.25, 0.75], (np.cumsum(w) - 0.5 * w) / n, z)
        narrow = min(sd, (three - quarter) / 1.349) if three > quarter else sd
        h = max(WIDTH * narrow * n**-0.2, 1e-3 * spread)
        if len(z) > KERNELS or (w != w[0]).any():
            steps = (np.arange(KERNELS) + 0.5) / KERNELS
            z = np.interp(steps, (np.cumsum(w) - 0.5 * w) / n, z)
        shrink = np.sqrt(np.clip(1 + EXTRA / n - (h / spread) ** 2, 0.0, 1.0))
        return cls(mean + shrink * (z - z.mean()), np.asarray(h), np.asarray(spread), np.asarray(n))

    @property
    def _tail(self) -> float:
        return float(1 / (self.rows + 1))

    @property
    def mean(self) -> Array:
        """Mean (1,)."""
        return np.array([self.centers.mean()])

    @cached_property
    def variance(self) -> Array:
        """Variance (1,)."""
        kernels = float(self.centers.var() + self.bandwidth**2)
        t = float(self.spread**2 * DOF / (DOF - 2))
        return np.array([(1 - self._tail) * kernels + self._tail * t])

    def log_prob(self, x: ArrayLike) -> Array:
        """Log density of points (n,) or (n, 1)."""
        return self._in_blocks(numbers(x, "ResidualDistribution").ravel(), self._log_density)

    def cdf(self, x: ArrayLike) -> Array:
        """P(z ≤ x) of points (n,)."""
        return self._in_blocks(numbers(x, "ResidualDistribution").ravel(), self._below)

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles, in the shape of p, by bisection."""
        asked = np.asarray(p, dtype=np.float64)
        if not ((asked > 0) & (asked < 1)).all():
            raise DomainError(sentence("ResidualDistribution", "probabilities must lie between 0 and 1", p))
        flat = asked.ravel()
        reach = np.full(len(flat), 1.0)
        step = max(float(self.spread), float(np.ptp(self.centers)))
        middle = float(self.centers.mean())
        for _ in range(200):
            outside = (self._below(middle - step * reach) > flat) | (self._below(middle + step * reach) < flat)
            if not outside.any():
                break
            reach = np.where(outside, 2 * reach, reach)
        low, high = middle - step * reach, middle + step * reach
        for _ in range(80):
            half = 0.5 * (low + high)
            above = self._below(half) >= flat
            low, high = np.where(above, low, half), np.where(above, half, high)
        return (0.5 * (low + high)).reshape(asked.shape)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Random numbers (n, 1)."""
        kernel = rng.choice(self.centers, n) + self.bandwidth * rng.standard_normal(n)
        far = self.centers.mean() + self.spread * rng.standard_t(DOF, n)
        return np.where(rng.random(n) < self._tail, far, kernel)[:, None]

    def _in_blocks(self, z: Array, evaluate: Any) -> Array:
        step = max(1, BLOCK // len(self.centers))
        return np.concatenate([evaluate(z[i : i + step]) for i in range(0, len(z), step)] or [np.empty(0)])

    def _log_density(self, z: Array) -> Array:
        h, s = float(self.bandwidth), float(self.spread)
        u = (z[:, None] - self.centers) / h
        kernels = logsumexp(-0.5 * u**2, axis=1) - np.log(len(self.centers) * h) - 0.5 * LOG_2PI
        t = (z - self.centers.mean()) / s
        far = LOG_T - np.log(s) - 2 * np.log1p(t**2 / DOF)
        return np.asarray(np.logaddexp(np.log1p(-self._tail) + kernels, np.log(self._tail) + far))

    def _below(self, z: Array) -> Array:
        kernels = ndtr((z[:, None] - self.centers) / self.bandwidth).mean(axis=1)
        far = stdtr(DOF, (z - self.centers.mean()) / self.spread)
        return np.asarray((1 - self._tail) * kernels + self._tail * far)


_FIELDS = ("centers", "bandwidth", "spread", "rows")


@dataclass(frozen=True, eq=False)
class ResidualPredictive(Value):
    """Predictive densities μ_i + σ_i z of n rows, a stack of n univariate densities; z has one distribution.

    Parameters
    ----------
    center : array-like (n,)
        Predictions μ_i.
    scale : array-like (n,)
        Scales σ_i.
    residuals : ResidualDistribution
        The distribution of z.

    Examples
    --------
    >>> z = ResidualDistribution.of(np.linspace(-1.0, 1.0, 201))
    >>> ResidualPredictive([10.0, 20.0], [1.0, 2.0], z).quantile(0.95).round(1)
    array([10.9, 21.8])
    """

    center: Annotated[Array, declared.numbers("n")]  # (n,)
    scale: Annotated[Array, declared.numbers("n", 0)]  # (n,)
    residuals: Annotated[Any, declared.value("a ResidualDistribution", "quantile", "log_prob", "cdf")]

    dim = 1

    def __post_init__(self) -> None:
        center, scale = (parameter(getattr(self, n), "ResidualPredictive", n) for n in ("center", "scale"))
        if center.ndim != 1 or scale.shape != center.shape or not (scale > 0).all():
            expected = "center and scale must have one number per row, scales above 0"
            raise ShapeError(sentence("ResidualPredictive", expected, (center.shape, scale.shape)))
        self._set(center=center, scale=scale)

    @property
    def members(self) -> int:
        """Number of rows n."""
        return len(self.center)

    def member(self, k: int) -> ResidualPredictive:
        """The density of one row, as a stack of one."""
        return self.take([k])

    def take(self, index: Any) -> ResidualPredictive:
        """The densities of some rows."""
        return self.replace(center=self.center[index], scale=self.scale[index])

    @property
    def mean(self) -> Array:
        """Means (n, 1)."""
        return (self.center + self.scale * self.residuals.mean[0])[:, None]

    @property
    def variance(self) -> Array:
        """Variances (n, 1)."""
        return (self.scale**2 * self.residuals.variance[0])[:, None]

    def log_prob(self, x: ArrayLike) -> Array:
        """Log density of points (m,) under every row's density (m, n)."""
        z = numbers(x, "ResidualPredictive").ravel()
        return np.stack([self.log_prob_each(np.full(len(self.center), one)) for one in z])

    def log_prob_each(self, y: ArrayLike) -> Array:
        """Log-density of one number per row.

        Parameters
        ----------
        y : array-like (n,)
            One number per row.

        Returns
        -------
        ndarray (n,)
            Log-density per row.
        """
        found: Array = self.residuals.log_prob(self._standardized(y))
        return found - np.log(self.scale)

    def cdf_each(self, y: ArrayLike) -> Array:
        """Cumulative probability P(target ≤ y) of one number per row.

        Parameters
        ----------
        y : array-like (n,)
            One number per row.

        Returns
        -------
        ndarray (n,)
            Probability per row.
        """
        found: Array = self.residuals.cdf(self._standardized(y))
        return found

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles (n,), or (K, n) of K probabilities."""
        z = np.asarray(self.residuals.quantile(p))
        return np.asarray(self.center + self.scale * z[..., None])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Random targets (n, rows, 1)."""
        z = np.stack([self.residuals.sample(len(self.center), rng)[:, 0] for _ in range(n)])
        return (self.center + self.scale * z)[..., None]

    def _standardized(self, y: ArrayLike) -> Array:
        return np.asarray((np.asarray(y, dtype=np.float64).ravel() - self.center) / self.scale)


# ----------------------------------------------------------------------- held-out rows


def center_and_scale(model: Any, rows: Any) -> tuple[Array, Array]:
    """Predictions (n,) and standard deviations (n,) above 0; ones of a regressor that gives none."""
    if gives_deviation(model):
        center, scale = (np.asarray(part, dtype=np.float64).ravel() for part in model.predict(rows, return_std=True))
    else:
        center = np.asarray(model.predict(rows), dtype=np.float64).ravel()
        scale = np.ones(len(center))
    if not (np.isfinite(center).all() and np.isfinite(scale).all()):
        raise DataError(sentence(type(model).__name__, "predictions must be finite numbers", "some that are not"))
    least = 1e-15 * np.abs(center) + np.finfo(float).tiny ** 0.5
    return center, np.maximum(scale, least)


def residuals_about(center: Array, scale: Array, y: Array, weight: Array | None = None) -> ResidualDistribution:
    """The distribution of (y − center) / scale."""
    return ResidualDistribution.of((y - center) / scale, weight)


def with_residuals_of_others(
    center: Array, scale: Array, y: Array, fold: Index | None = None, weight: Array | None = None, **more: Any
) -> RegressionEvaluation:
    """The evaluation of held-out predictions, each row with the density of the residuals of the other folds.

    Without folds the rows are divided into five parts at random. `more` are fields of the evaluation.
    """
    m = len(y)
    part = fold if fold is not None else np.random.default_rng(0).permutation(m) % min(PARTS, m)
    how = {name: more.pop(name) for name in ("loss", "over", "under", "level") if name in more}
    joined: dict[str, Any] = {name: np.empty(m) for name in JOINED}
    for k in np.unique(part):
        own = part == k
        known = own if own.all() else ~own
        z = residuals_about(center[known], scale[known], y[known], None if weight is None else weight[known])
        e = RegressionEvaluation.of(ResidualPredictive(center[own], scale[own], z), y[own], **how)
        for name in JOINED:
            joined[name][own] = getattr(e, name)
    return RegressionEvaluation(**joined, **how, fold=fold, weight=weight, **more)
