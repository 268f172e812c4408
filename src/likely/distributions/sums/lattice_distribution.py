"""Discrete distribution on a lattice of equally spaced values, as of sums of counts."""

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

NEAR = 1e-7  # of a step: tolerance of a value at a lattice point


@dataclass(frozen=True, eq=False)
class LatticeDistribution(Distribution):
    """Lattice distribution P(x = first + j · step) = p_j, j = 0 … m − 1.

    Parameters
    ----------
    first : float
        The first value.
    step : float
        Distance of the values.
    probs : array-like (m,)
        Probabilities p.
    error : float, default 0.0
        Bound of the omitted probability.

    See Also
    --------
    GridDistribution : Continuous values.
    sum_of : Sums of independent variables.

    Examples
    --------
    >>> dice = LatticeDistribution(1.0, 1.0, np.full(6, 1 / 6))
    >>> dice.mean, dice.cdf([3.0]).round(3).tolist(), dice.log_prob([7.0, 1.5]).tolist()
    (3.5, [0.5], [-inf, -inf])
    """

    first: float
    step: Annotated[float, declared.number(0)]
    probs: Annotated[Array, declared.numbers("m", 0)]  # (m,)
    error: Annotated[float, declared.number(0)] = 0.0

    def __post_init__(self) -> None:
        me = "LatticeDistribution"
        p = parameter(self.probs, me, "probs")
        first, step, error = (float(parameter(part, me, "first, step and error")) for part in
                              (self.first, self.step, self.error))  # fmt: skip
        if p.ndim != 1 or not p.size:
            raise ShapeError(sentence(me, "probs must have shape (m,)", p.shape))
        if not step > 0 or error < 0:
            raise DomainError(sentence(me, "step must be positive and error not negative", (step, error)))
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise DomainError(sentence(me, "probs must not be negative and sum to 1", float(p.sum())))
        self._set(first=first, step=step, probs=p, error=error)

    dim = 1
    members = None

    @property
    def values(self) -> Array:
        """Support (m,)."""
        return np.asarray(self.first + self.step * np.arange(len(self.probs)), dtype=np.float64)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of rows (n,) or (n, 1); −inf between lattice points, 0 for missing values."""
        z = rows(sliceable(x, 1), 1, "LatticeDistribution")
        refuse_infinite(z, "LatticeDistribution")
        at = (z[:, 0] - self.first) / self.step
        missing = np.isnan(at)
        place = np.rint(np.where(missing, 0.0, at))
        inside = (place >= 0) & (place < len(self.probs)) & (np.abs(at - place) < NEAR)
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs[np.where(inside, place, 0.0).astype(np.intp)])
        return like_input(np.where(missing, 0.0, np.where(inside, logs, -np.inf)), x)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, 1)."""
        return self.quantile(rng.random(n))[:, None]

    @cached_property
    def _sums(self) -> Array:
        sums = np.cumsum(self.probs)
        return np.asarray(sums / sums[-1])

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x)."""
        at = np.floor((one_column(x, None) - self.first) / self.step + NEAR)
        held = np.clip(at, 0, len(self.probs) - 1)
        return np.where(np.isnan(at), np.nan, np.where(at < 0, 0.0, self._sums[np.nan_to_num(held).astype(np.intp)]))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function: the smallest value x with P(X ≤ x) ≥ p; NaN outside 0 … 1."""
        p = np.asarray(p, dtype=np.float64)
        at = np.minimum(np.searchsorted(self._sums, p), len(self.probs) - 1)
        return np.where((p >= 0) & (p <= 1), self.first + self.step * at, np.nan)

    @property
    def mean(self) -> float:
        """Mean Σ p x."""
        return float(self.first + self.step * (self.probs @ np.arange(len(self.probs))))

    @property
    def variance(self) -> float:
        """Variance Σ p (x − mean)²."""
        return float(self.probs @ (self.values - self.mean) ** 2)

    @property
    def median(self) -> float:
        """Median: the smallest value x with P(X ≤ x) ≥ ½."""
        return float(self.quantile(0.5))

    @property
    def mode(self) -> float:
        """Mode: the value of largest probability, the first of several."""
        return float(self.values[self.probs.argmax()])

    def entropy(self, bits: bool = False) -> float:
        """Entropy −Σ p log p."""
        p = self.probs[self.probs > 0]
        return float(in_units(-(p @ np.log(p)), bits))
