"""Univariate distribution on a grid: probabilities of equal cells, piecewise linear density and CDF."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, like_input, parameter, refuse_infinite, rows, sliceable
from likely.core.errors import DomainError, ShapeError, sentence
from likely.distributions.distribution import Distribution, in_units
from likely.distributions.statistics.counts import one_column

FFT_ROUNDING = 1e-16  # of the peak: rounding level of a Fourier transform


@dataclass(frozen=True, eq=False)
class GridDistribution(Distribution):
    """Distribution on a grid of cells with given masses.

    P(first + j·step ≤ x ≤ first + (j + 1)·step) = masses[j]. The density is interpolated linearly between midpoints of
    cells, the CDF between edges, where it is exact. Within the range the density is at least 10⁻¹⁶ of the peak, since
    smaller values are rounding error; outside it is 0.

    Parameters
    ----------
    first : float
        Lower edge of the first cell.
    step : float
        Width of a cell.
    masses : array-like (m,)
        Probabilities of the cells.
    error : float, default 0.0
        Bound of the error of the CDF.

    See Also
    --------
    LatticeDistribution : Discrete values.
    sum_of : Sums of independent variables.

    Examples
    --------
    >>> distribution = GridDistribution(0.0, 0.5, [0.25, 0.25, 0.25, 0.25])
    >>> distribution.mean, distribution.cdf([0.3]).round(3).tolist(), distribution.quantile(0.75).tolist()
    (1.0, [0.15], 1.5)
    """

    first: float
    step: Annotated[float, declared.number(0)]
    masses: Annotated[Array, declared.numbers("m", 0)]  # (m,)
    error: Annotated[float, declared.number(0)] = 0.0

    def __post_init__(self) -> None:
        me = "GridDistribution"
        m = parameter(self.masses, me, "masses")
        first, step, error = (float(parameter(part, me, "first, step and error")) for part in
                              (self.first, self.step, self.error))  # fmt: skip
        if m.ndim != 1 or not m.size:
            raise ShapeError(sentence(me, "masses must have shape (m,)", m.shape))
        if not step > 0 or error < 0:
            raise DomainError(sentence(me, "step must be positive and error not negative", (step, error)))
        if (m < 0).any() or abs(m.sum() - 1) > 1e-9:
            raise DomainError(sentence(me, "masses must not be negative and sum to 1", float(m.sum())))
        self._set(first=first, step=step, masses=m, error=error)

    dim = 1
    members = None

    @property
    def edges(self) -> Array:
        """Edges of the cells (m + 1,)."""
        return np.asarray(self.first + self.step * np.arange(len(self.masses) + 1), dtype=np.float64)

    @cached_property
    def _middles(self) -> Array:
        return np.asarray(self.first + self.step * (np.arange(len(self.masses)) + 0.5), dtype=np.float64)

    @cached_property
    def _density(self) -> Array:
        return np.maximum(self.masses, FFT_ROUNDING * self.masses.max()) / self.step

    @cached_property
    def _sums(self) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self.masses)])
        return np.asarray(sums / sums[-1])

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of rows (n,) or (n, 1); 0 for missing values."""
        z = rows(sliceable(x, 1), 1, "GridDistribution")
        refuse_infinite(z, "GridDistribution")
        at, missing = z[:, 0], np.isnan(z[:, 0])
        inside = (at >= self.first) & (at <= self.edges[-1])
        density = np.interp(np.where(missing, self.first, at), self._middles, self._density)
        return like_input(np.where(missing, 0.0, np.where(inside, np.log(density), -np.inf)), x)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, 1)."""
        return self.quantile(rng.random(n))[:, None]

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x)."""
        z = one_column(x, None)
        return np.where(np.isnan(z), np.nan, np.interp(np.nan_to_num(z), self.edges, self._sums, 0.0, 1.0))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF); NaN outside 0 … 1."""
        p = np.asarray(p, dtype=np.float64)
        inside = (p >= 0) & (p <= 1)
        p = np.where(inside, p, 0.5)
        at = np.clip(np.searchsorted(self._sums, p, "right") - 1, 0, len(self.masses) - 1)
        at = np.where(p == 0, np.argmax(self.masses > 0), at)
        at = np.where(p == 1, len(self.masses) - 1 - np.argmax(self.masses[::-1] > 0), at)
        share = self._sums[at + 1] - self._sums[at]
        part = np.divide(p - self._sums[at], share, out=np.zeros_like(p), where=share > 0)
        return np.where(inside, self.first + self.step * (at + np.clip(part, 0.0, 1.0)), np.nan)

    @property
    def mean(self) -> float:
        """Mean."""
        return float(self.masses @ self._middles)

    @property
    def variance(self) -> float:
        """Variance."""
        return float(self.masses @ (self._middles - self.mean) ** 2 + self.step**2 / 12)

    @property
    def median(self) -> float:
        """Median."""
        return float(self.quantile(0.5))

    @property
    def mode(self) -> float:
        """Mode: the midpoint of the cell with the largest mass."""
        return float(self._middles[self.masses.argmax()])

    def entropy(self, bits: bool = False) -> float:
        """Entropy −∫ p log p of the piecewise constant density."""
        p = self.masses[self.masses > 0]
        return float(in_units(-(p @ np.log(p / self.step)), bits))
