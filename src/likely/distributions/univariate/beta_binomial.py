"""Beta-binomial distribution: successes among known trials with a random success probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import digamma, polygamma

from likely.core import declared
from likely.core.arrays import Array, PerMember, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import Note, warn
from likely.distributions.column_distribution import ValueDistribution, column_moments
from likely.distributions.distribution import Estimate, in_units, lone
from likely.distributions.statistics.counts import exact_expectation
from likely.distributions.univariate.binomial import refuse_more
from likely.distributions.univariate.binomial_trials import KnownTrials, given_trials, largest_counts
from likely.numerics.gamma_draws import log_gamma_variates, raised
from likely.numerics.newton_ascent import Objective, newton_maximize
from likely.numerics.polya_urn import log_two_colors, nearly_certain
from likely.numerics.special import gamma_excess, log_minus_digamma

LONGEST = 1 << 24  # trials of a distribution whose probabilities are summed exactly
SMALLEST, LARGEST = 1e-6, 1e8  # bounds of the estimates of a and b: below, only 0 or N; above, a binomial distribution


@dataclass(frozen=True, eq=False)
class BetaBinomial(KnownTrials, ValueDistribution):
    """Beta-binomial distribution of overdispersed numbers of successes.

    log p(x | N, a, b) = Σⱼ log N!/(x!(N − x)!) + log B(x + a, N − x + b) / B(a, b)   (Pólya's urn).

    The predictive distribution of N trials under a `Beta` prior of the success probability: mean N a / (a + b), and
    overdispersed relative to a `Binomial`.

    Parameters
    ----------
    trials : array-like (d,) or (K, d)
        Numbers of trials N.
    a : array-like (d,) or (K, d)
        First parameter of the beta distribution.
    b : array-like (d,) or (K, d)
        Second parameter of the beta distribution.

    See Also
    --------
    Binomial : The same without overdispersion.
    Beta : The distribution of the success probability.
    BetaBinomialDensity : The estimator.

    Examples
    --------
    >>> BetaBinomial(2, 1.0, 1.0).log_prob([0, 1, 2]).round(4)
    array([-1.0986, -1.0986, -1.0986])
    """

    trials: Annotated[Array, declared.numbers("* d", 1)]  # N: (d,) or (K, d)
    a: Annotated[Array, declared.numbers("* d", 0)]
    b: Annotated[Array, declared.numbers("* d", 0)]

    _domains: ClassVar[dict[str, str]] = {"trials": "count", "a": "positive", "b": "positive"}
    _support = "count"
    _counts_to = "trials"
    _harmless = 0.0

    @staticmethod
    def _parameter_score(x: Array, trials: Array, a: Array, b: Array) -> tuple[Array, ...]:
        """∂ log p by log a and log b."""
        both = digamma(a + b) - digamma(trials + a + b)
        return a * (digamma(x + a) - digamma(a) + both), b * (digamma(trials - x + b) - digamma(b) + both)

    def _log_pdf(self, x: Array, trials: Array, a: Array, b: Array) -> Array:
        return log_pmf(x, trials, a, b)

    def _cdf(self, x: Array, trials: Array, a: Array, b: Array) -> Array:
        x, trials, a, b = np.broadcast_arrays(np.floor(x), trials, a, b)
        return _by_distribution(x, _shares_at, trials, a, b)

    def _quantile(self, p: Array, trials: Array, a: Array, b: Array) -> Array:
        p, trials, a, b = np.broadcast_arrays(p, trials, a, b)
        found = _by_distribution(
            p, lambda p, table: np.minimum(np.searchsorted(table, p), len(table) - 1), trials, a, b
        )
        return np.where(p >= 1, trials, found)

    def _draw(self, shape: tuple[int, ...], rng: Generator, trials: Array, a: Array, b: Array) -> Array:
        one, other = (log_gamma_variates(c, shape, rng) for c in raised(np.stack([a, b]), axis=0))
        probs = 1.0 / (1.0 + np.exp(np.clip(other - one, -745.0, 709.0)))
        return rng.binomial(trials.astype(np.int64), probs, shape).astype(np.float64)

    def _entropy(self, trials: Array, a: Array, b: Array) -> Array:
        each = [
            _mean_log(distribution, distribution)
            for distribution in zip(trials.ravel(), a.ravel(), b.ravel(), strict=True)
        ]
        return -np.array(each).reshape(trials.shape)

    def _agree(self, **parts: Array) -> None:
        if (parts["trials"] > LONGEST).any():
            raise DomainError(sentence("BetaBinomial", "trials must be at most 2**24", float(parts["trials"].max())))

    @property
    def mean(self) -> Array:
        """N a / (a + b)."""
        return self.trials * (self.a / (self.a + self.b))

    @property
    def variance(self) -> Array:
        """N m (1 − m) (N + a + b) / (1 + a + b) with m = a / (a + b)."""
        whole = self.a + self.b
        return self.mean * (self.b / whole) * ((self.trials + whole) / (1 + whole))

    @property
    def mode(self) -> Array:
        """The most likely count; 0 or N for a + b ≤ 2."""
        rise = self.trials * (self.a - 1) - (self.b - 1)  # sign of p(1) − p(0); it falls by a + b − 2 per step
        fall = self.a + self.b - 2
        inner = np.clip(np.floor(rise / np.where(fall > 0, fall, 1.0)) + 1, 0.0, self.trials)
        return np.where(fall > 0, inner, np.where(self.b >= self.a, 0.0, self.trials))

    def kl(self, other: BetaBinomial, bits: bool = False) -> PerMember:
        """KL(self ‖ other), summed count by count, infinite if other has fewer trials; member by member for stacks."""
        self._same_shape(other)
        theirs = {name: np.broadcast_to(part, self._shape) for name, part in other.parameters.items()}
        mine = zip(*(part.ravel() for part in self.parameters.values()), strict=True)
        others = zip(*(part.ravel() for part in theirs.values()), strict=True)
        each = [_mean_log(p, p) - _mean_log(p, q) for p, q in zip(mine, others, strict=True)]
        return in_units(lone(np.maximum(each, 0.0).reshape(self._shape).sum(axis=-1)), bits)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all counts (by Monte Carlo where these are too many)."""
        high = np.atleast_2d(self.trials).max(axis=0)
        return exact_expectation(self, g, np.zeros(self.dim), high) or super().expect(g, n, rng)

    @property
    def n_parameters(self) -> int:
        """Free parameters: a and b of each column."""
        return 2 * int(self.a.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, trials: ArrayLike | None = None) -> BetaBinomial:  # type: ignore[override]
        """Initial model: the given trials, or the largest count of each column; a and b are 1."""
        z = rows(x, None, "BetaBinomial")
        if z.shape[1] == 0:
            raise ShapeError(sentence("BetaBinomial", "at least one column is needed", z.shape))
        most = largest_counts(z) if trials is None else given_trials(trials, z.shape[1], "BetaBinomial")
        shape = most.shape if members is None else (members, *most.shape)
        return cls(np.broadcast_to(most, shape), np.ones(shape), np.ones(shape))

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> BetaBinomial:
        """Maximum-likelihood fit to weighted rows; `trials` are the largest counts of all rows, if not given."""
        found = super().fit(x, weight, **options)
        if found.binomial_like.any():
            text = "{columns} not overdispersed: a + b is at its upper bound (binomial limit)"
            warn(Note("BetaBinomial", text, columns=tuple(np.flatnonzero(found.binomial_like).tolist())))
        return found

    @property
    def binomial_like(self) -> Any:
        """Mask of columns that are not overdispersed, whose a + b is at its upper bound (..., d)."""
        return np.asarray(np.maximum(self.a, self.b) >= LARGEST * (1 - 1e-6))

    @classmethod
    def _plain(cls, d: int, trials: Any = 1.0) -> BetaBinomial:
        return cls(np.broadcast_to(np.asarray(trials, float), (d,)), np.ones(d), np.ones(d))

    def _collected(self, z: Array, shares: Any) -> Any:
        refuse_more(z, shares, self.trials, "BetaBinomial")
        return super()._collected(z, shares)

    def _log_learned(self, x: Array, **parts: Array) -> Array:
        return between_counts(x, **{{"trials": "n"}.get(name, name): part for name, part in parts.items()})

    def _from_values(self, values: Array, weight: Array, trials: float, a: float, b: float) -> dict[str, float]:
        return fitted(values, weight, trials, (a, b))

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike, trials: ArrayLike) -> BetaBinomial:  # type: ignore[override]
        """The distribution of N trials with this mean and variance, which must exceed a binomial distribution's.

        >>> BetaBinomial.from_moments(4.0, 6.0, trials=10).a.round(4)
        array([2.])
        """
        mean, variance, n = (np.asarray(part, dtype=np.float64) for part in (mean, variance, trials))
        m = mean / n
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = variance / (n * m * (1 - m))
        if not (((ratio > 1) & (ratio < n)).all() and ((m > 0) & (m < 1)).all()):
            expected = "the variance must lie between N m (1 − m) and N² m (1 − m), with m = mean / N in (0, 1)"
            raise DomainError(sentence("BetaBinomial.from_moments", expected, (mean, variance)))
        whole = (n - ratio) / (ratio - 1)
        return cls(n, m * whole, (1 - m) * whole)

    @classmethod
    def moments_fit(cls, x: Any, weight: ArrayLike | None = None, trials: Any = None) -> BetaBinomial:  # type: ignore[override]
        """Method of moments: mean and variance of the rows."""
        mean, spread = column_moments(x, weight, "BetaBinomial")
        most = (
            cls.parameters_seen_in(x)["trials"] if trials is None else given_trials(trials, len(mean), "BetaBinomial")
        )
        return cls.from_moments(mean, spread, most)


def log_pmf(x: Array, n: Any, a: Any, b: Any) -> Array:
    """Log-density of counts; −inf for anything but a count from 0 to n."""
    possible = (x >= 0) & (x <= n) & (x == np.floor(x))
    return np.where(possible, between_counts(np.where(possible, x, 0.0), n, a, b), -np.inf)


def between_counts(x: Array, n: Any, a: Any, b: Any) -> Array:
    """Log-density of counts, extended to fractional (expected) counts."""
    x, n, a, b = (np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (x, n, a, b))
    logs, none = log_two_colors(x, n - x, n, a, b), x == 0
    ends = np.broadcast_to(none | (x == n), logs.shape)
    return nearly_certain(logs, ends, np.where(none, a, b), np.where(none, b, a), n)


def _by_distribution(x: Array, f: Callable[[Array, Array], Any], n: Array, a: Array, b: Array) -> Array:
    """f(x, cumulative probabilities), with each distribution's table computed once."""
    distributions, which = np.unique(np.stack([n.ravel(), a.ravel(), b.ravel()], axis=1), axis=0, return_inverse=True)
    out, flat, which = np.empty(x.size), x.ravel(), np.ravel(which)
    for k, (trials, one, other) in enumerate(distributions):
        mine = which == k
        table = np.cumsum(np.exp(log_pmf(np.arange(trials + 1), trials, one, other)))
        table[-1] = 1.0
        out[mine] = f(flat[mine], np.minimum(table, 1.0))
    return out.reshape(x.shape)


def _shares_at(x: Array, table: Array) -> Array:
    return np.where(x < 0, 0.0, table[np.clip(x, 0, len(table) - 1).astype(np.intp)])


def _mean_log(distribution: tuple[Any, ...], other: tuple[Any, ...]) -> float:
    """Σ p log p' over all counts."""
    x = np.arange(float(distribution[0]) + 1)
    p, logs = np.exp(log_pmf(x, *distribution)), log_pmf(x, *other)
    return float(p @ np.where(p > 0, logs, 0.0))


def fitted(x: Array, w: Array, n: float, old: tuple[float, float] = (1.0, 1.0)) -> dict[str, float]:
    """Maximum-likelihood a and b for weighted counts, by Newton's method for their logarithms.

    Starts from the previous parameters or from the moment estimates, whichever is better.
    """
    total = float(w.sum())
    mean = float(w @ x) / total / n
    if mean <= 0 or mean >= 1 or n == 1:  # only 0 and N, or one trial, where a + b is not identified: one pseudo-count
        mean = min(max(mean, 0.5 / (total * n + 1)), 1 - 0.5 / (total * n + 1))
        return {"a": mean, "b": 1 - mean}
    spread = float(w @ (x / n - mean) ** 2) / total / (mean * (1 - mean))
    if spread <= 1 / n:  # not overdispersed: the likelihood increases with a + b without bound
        whole = LARGEST / max(mean, 1 - mean)
        return {"a": mean * whole, "b": (1 - mean) * whole}
    whole = min(max((1 - spread) / max(spread - 1 / n, 1e-6), 1e-3), 1e4)
    starts = [np.log(np.clip(one, SMALLEST, LARGEST)) for one in (old, (mean * whole, (1 - mean) * whole))]

    def objective(logs: Array) -> Objective:
        return _objective(logs, x, w, n)

    best = max(starts, key=lambda logs: objective(logs).value)
    a, b = np.exp(newton_maximize(objective, best, np.log(SMALLEST), np.log(LARGEST)))
    return {"a": float(a), "b": float(b)}


def _objective(logs: Array, x: Array, w: Array, n: float) -> Objective:
    """Log-likelihood of log a and log b up to a constant, its gradient and Hessian."""
    size = np.exp(logs)
    whole, total = float(size.sum()), float(w.sum())
    distribution = np.concatenate([np.repeat(size, len(x)), [whole]])
    drawn = np.concatenate([x, n - x, [n]])

    def summed(each: Array) -> tuple[Array, float]:
        """Σ w over the counts of successes or failures, and over both."""
        return each[:-1].reshape(2, -1) @ w, total * float(each[-1])

    excess, all_excess = summed(gamma_excess(distribution, drawn))
    rise, common = summed(
        np.log1p(drawn / distribution) + log_minus_digamma(distribution) - log_minus_digamma(distribution + drawn)
    )
    own, lift = summed(polygamma(1, distribution) - polygamma(1, distribution + drawn))
    counted = np.array([w @ x, w @ (n - x)])
    value = float(counted @ np.log(size / whole) + excess.sum() - all_excess)
    slope = (rise - common) * size
    return Objective(value, slope, own * size**2 - slope, lift, size)
