"""Beta negative binomial distribution: failures before the r-th success, with an uncertain success probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.statistics.counts import draw_counts
from likely.distributions.statistics.weighted_values import WeightedValues
from likely.numerics.polya_urn import log_two_colors, nearly_certain
from likely.numerics.special import count_by_count, log_factorial, log_gamma_ratio

LONGEST = 1 << 22  # counts that are summed exactly
LARGEST = 1e300  # odds and rates of draws


@dataclass(frozen=True, eq=False)
class BetaNegativeBinomial(ColumnDistribution):
    """Beta negative binomial distribution of overdispersed counts.

    log p(x | r, a, b) = Σⱼ log Γ(r + x) / (Γ(r) x!) + log B(a + r, b + x) / B(a, b).

    The predictive distribution of a `NegativeBinomial` count of known size r under a `Beta` prior of p. Its tail falls
    as x^(−a − 1): the mean is infinite for a ≤ 1 and the variance for a ≤ 2. It has `log_prob` and `sample`, but no
    estimator of its own.

    Parameters
    ----------
    size : array-like (d,) or (K, d)
        Sizes r.
    a : array-like (d,) or (K, d)
        First parameter of the beta distribution.
    b : array-like (d,) or (K, d)
        Second parameter of the beta distribution.

    See Also
    --------
    NegativeBinomial : The same with a known probability.

    Examples
    --------
    >>> BetaNegativeBinomial(1.0, 2.0, 1.0).log_prob([0, 1]).round(4)
    array([-0.4055, -1.7918])
    """

    size: Annotated[Array, declared.numbers("* d", 0)]  # r: (d,) or (K, d)
    a: Annotated[Array, declared.numbers("* d", 0)]
    b: Annotated[Array, declared.numbers("* d", 0)]

    _domains: ClassVar[dict[str, str]] = {"size": "positive", "a": "positive", "b": "positive"}
    _support = "count"
    _harmless = 0.0

    def _log_pdf(self, x: Array, size: Array, a: Array, b: Array) -> Array:
        possible = (x >= 0) & (x == np.floor(x))
        counts = np.where(possible, x, 0.0)
        table = counts.ndim == 2 and np.ndim(size) == 1  # rows of columns
        logs = count_by_count(counts, log_pmf, size, a, b) if table else log_pmf(counts, size, a, b)
        return np.where(possible, logs, -np.inf)

    def _cdf(self, x: Array, size: Array, a: Array, b: Array) -> Array:
        x, size, a, b = np.broadcast_arrays(np.floor(x), size, a, b)
        last = float(x.max(initial=0.0))
        if last >= LONGEST:
            raise DomainError(sentence("BetaNegativeBinomial", "cdf sums at most 2**22 counts", last))
        return self._tabled(x, last, size, a, b)

    def _tabled(self, x: Array, last: float, *distribution: Array) -> Array:
        distributions, which = np.unique(
            np.stack([part.ravel() for part in distribution], axis=1), axis=0, return_inverse=True
        )
        out, flat, which = np.zeros(x.size), x.ravel(), np.ravel(which)
        for k, one in enumerate(distributions):
            mine = (which == k) & (flat >= 0)
            table = np.minimum(np.cumsum(np.exp(log_pmf(np.arange(max(last, 0.0) + 1), *one))), 1.0)
            out[mine] = table[flat[mine].astype(np.intp)]
        return out.reshape(x.shape)

    def _quantile(self, p: Array, size: Array, a: Array, b: Array) -> Array:
        p, size, a, b = np.broadcast_arrays(p, size, a, b)
        out = np.full(p.shape, np.inf)
        for at in np.ndindex(p.shape):
            out[at] = _first_reached(float(p[at]), float(size[at]), float(a[at]), float(b[at]))
        return out

    def _draw(self, shape: tuple[int, ...], rng: Generator, size: Array, a: Array, b: Array) -> Array:
        """Odds of p ~ beta from two gamma variates, then a rate from the gamma distribution, then a count."""
        with np.errstate(over="ignore"):
            odds = rng.standard_gamma(b, shape) / np.maximum(rng.standard_gamma(a, shape), 1e-290)
            odds = np.minimum(odds, LARGEST)  # else 0 · ∞, where the gamma variate underflows
            rate = np.minimum(rng.standard_gamma(size, shape) * odds, LARGEST)
        return draw_counts(rate, rng)

    @property
    def mean(self) -> Array:
        """Mean r b / (a − 1); infinite for a ≤ 1."""
        return np.where(self.a > 1, self.size * self.b / np.where(self.a > 1, self.a - 1, 1.0), np.inf)

    @property
    def variance(self) -> Array:
        """Variance r b (r + a − 1)(b + a − 1) / ((a − 2)(a − 1)²); infinite for a ≤ 2."""
        fine = self.a > 2
        a = np.where(fine, self.a, 3.0)
        value = self.size * self.b * (self.size + a - 1) * (self.b + a - 1) / ((a - 2) * (a - 1) ** 2)
        return np.where(fine, value, np.inf)

    @property
    def mode(self) -> Array:
        """The most likely count: where p(x + 1)/p(x) = (r + x)(b + x) / ((x + 1)(a + b + r + x)) passes 1."""
        top = ((self.size - 1) * (self.b - 1)) / (self.a + 1)
        falls = (self.size <= 1) | (self.b <= 1)
        return np.where(falls, 0.0, np.maximum(np.floor(top), 0.0))

    def _entropy(self, size: Array, a: Array, b: Array) -> Array:
        raise DomainError(
            sentence("BetaNegativeBinomial", "the entropy has no closed form", remedy="take expect of -log_prob")
        )

    def entropy(self, bits: bool = False) -> PerMember:
        """Raises: there is no closed form; the message says how to estimate it."""
        return super().entropy(bits)


def log_pmf(x: Any, r: Any, a: Any, b: Any) -> Array:
    """Log-density of counts: r / (r + x) times a beta-binomial probability of r successes in r + x trials."""
    x = np.asarray(x, dtype=np.float64)
    n = r + x
    logs = log_two_colors(r, x, n, a, b, r / n)
    return nearly_certain(logs, np.broadcast_to(x == 0, logs.shape), b, a, r)


def _first_reached(p: float, r: float, a: float, b: float) -> float:
    if p >= 1.0:
        return float("inf")
    total, start, step = 0.0, 0.0, 1024.0
    while start < LONGEST:
        table = total + np.cumsum(np.exp(log_pmf(start + np.arange(step), r, a, b)))
        if table[-1] >= p:
            return float(start + np.searchsorted(table, p))
        total, start, step = float(table[-1]), start + step, 2 * step
    raise DomainError(sentence("BetaNegativeBinomial", "quantiles beyond 2**22 counts are not summed", p))


def log_coefficients(stats: WeightedValues, size: Array) -> Array:
    """Σ w log Γ(r + x) / (Γ(r) x!), log coefficients of the collected counts, one per member for a stack."""
    r = size.ravel()[stats.cell]
    each = stats.each * (log_gamma_ratio(r, stats.value) - log_factorial(stats.value))
    cells = np.bincount(stats.cell, each, size.size).reshape(size.shape)
    return np.asarray(cells.sum(axis=-1))
