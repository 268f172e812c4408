"""Binomial distribution with known numbers of trials, and its sufficient statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betaincc, xlog1py, xlogy

from likely.core import declared
from likely.core.arrays import Array, BadEntry, PerMember, parameter, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.column_distribution import ColumnDistribution, column_moments
from likely.distributions.distribution import Estimate, in_units, lone
from likely.distributions.statistics.counts import exact_expectation, member_weights, per_member, smallest
from likely.distributions.univariate.binomial_trials import KnownTrials, given_trials, largest_counts
from likely.numerics.special import LOG_2PI, deviance, log_factorial, log_poisson_peak_terms

ROUNDING = 1e-13  # relative rounding error of failures as trials minus successes
FEW = 1 << 17  # counts that are summed exactly; for more, the entropy is a series
TAIL = 1e-25  # tail probability that is neglected


@dataclass(frozen=True, eq=False)
class Binomial(KnownTrials, ColumnDistribution):
    """Binomial distribution of numbers of successes.

    log p(x | N, p) = Σⱼ log N!/(x!(N − x)!) + x log p + (N − x) log(1 − p).

    Independent columns of successes among `trials` N, which are known. Anything but a count from 0 to N has probability
    0; NaN is missing. The conjugate prior of p is `Beta`, with predictive distribution `BetaBinomial`.

    Parameters
    ----------
    trials : array-like (d,) or (K, d)
        Numbers of trials N.
    probs : array-like (d,) or (K, d)
        Success probabilities p.

    See Also
    --------
    Bernoulli : One trial.
    BetaBinomial : Overdispersed numbers of successes.
    BinomialDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.5; Herbst and du Preez, lecture notes, 2.1.

    Examples
    --------
    >>> Binomial(3, 0.5).log_prob([0, 1, 4]).round(4)
    array([-2.0794, -0.9808,    -inf])
    """

    trials: Annotated[Array, declared.numbers("* d", 1)]  # N: (d,) or (K, d)
    probs: Annotated[Array, declared.numbers("* d", 0)]  # p

    _domains: ClassVar[dict[str, str]] = {"trials": "count", "probs": "probability"}
    _support = "count"
    _counts_to = "trials"
    _harmless = 0.0

    @staticmethod
    def _parameter_score(x: Array, trials: Array, probs: Array) -> tuple[Array, ...]:
        """∂ log p by the log-odds of p."""
        return (x - trials * probs,)

    def _log_pdf(self, x: Array, trials: Array, probs: Array) -> Array:
        return log_pmf(x, trials, probs)

    def _cdf(self, x: Array, trials: Array, probs: Array) -> Array:
        count = np.floor(x)
        at = np.clip(count, 0.0, np.maximum(trials - 1, 0.0))
        inside = betaincc(at + 1, trials - at, probs)
        return np.where(count < 0, 0.0, np.where(count >= trials, 1.0, inside))

    def _quantile(self, p: Array, trials: Array, probs: Array) -> Array:
        p, trials, probs = np.broadcast_arrays(p, trials, probs)
        found = np.minimum(smallest(lambda x: self._cdf(x, trials, probs) >= p, trials * probs), trials)
        return np.where((p >= 1) & (probs > 0), trials, found)

    def _draw(self, shape: tuple[int, ...], rng: Generator, trials: Array, probs: Array) -> Array:
        return rng.binomial(trials.astype(np.int64), probs, shape).astype(np.float64)

    def _entropy(self, trials: Array, probs: Array) -> Array:
        each = [_entropy(float(n), float(p)) for n, p in zip(trials.ravel(), probs.ravel(), strict=True)]
        return np.array(each).reshape(trials.shape)

    def _agree(self, **parts: Array) -> None:
        if (parts["trials"] > 2.0**53).any():
            raise DomainError(sentence("Binomial", "trials must be at most 2**53", float(parts["trials"].max())))

    @property
    def mean(self) -> Array:
        """N p."""
        return self.trials * self.probs

    @property
    def variance(self) -> Array:
        """N p (1 − p)."""
        return self.trials * self.probs * (1.0 - self.probs)

    @property
    def mode(self) -> Array:
        """⌊(N + 1) p⌋, at most N."""
        return np.minimum(np.floor((self.trials + 1) * self.probs), self.trials)

    def kl(self, other: Binomial, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ N (p log(p/p') + q log(q/q')); member by member for stacks.

        Summed over counts where other has more trials; infinite where it has fewer.
        """
        self._same_shape(other)
        n, p, other_n, q = np.broadcast_arrays(self.trials, self.probs, other.trials, other.probs)
        each = n * (deviance(p, q) + deviance(1 - p, 1 - q, q - p))
        if not np.array_equal(n, other_n):
            summed = [_summed_kl(*map(float, four)) for four in zip(*map(np.ravel, (n, p, other_n, q)), strict=True)]
            each = np.where(n == other_n, each, np.reshape(summed, n.shape))
        return in_units(lone(each.sum(axis=-1)), bits)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all counts (by Monte Carlo where these are too many).

        >>> Binomial(4, 0.5).expect(lambda x: x[..., 0] ** 2).value.round(10)
        np.float64(5.0)
        """
        high = np.atleast_2d(self.trials).max(axis=0)
        return exact_expectation(self, g, np.zeros(self.dim), high) or super().expect(g, n, rng)

    @property
    def n_parameters(self) -> int:
        """Free parameters: the probabilities."""
        return int(self.probs.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, trials: ArrayLike | None = None) -> Binomial:  # type: ignore[override]
        """Initial model: the given trials, or the largest count of each column; every p is ½."""
        z = rows(x, None, "Binomial")
        if z.shape[1] == 0:
            raise ShapeError(sentence("Binomial", "at least one column is needed", z.shape))
        most = largest_counts(z) if trials is None else given_trials(trials, z.shape[1], "Binomial")
        shape = most.shape if members is None else (members, *most.shape)
        return cls(np.broadcast_to(most, shape), np.full(shape, 0.5))

    @classmethod
    def _plain(cls, d: int, trials: Any = 1.0) -> Binomial:
        return cls(np.broadcast_to(np.asarray(trials, float), (d,)), np.full(d, 0.5))

    def _collected(self, z: Array, shares: Any) -> Successes:
        refuse_more(z, shares, self.trials, "Binomial")
        return successes(z, shares, self.trials, self.members)

    def _collect_blocks(self, x: Any, w: Array | None, labels: Any) -> Any:
        try:
            return super()._collect_blocks(x, w, labels)
        except DataError:
            z = rows(x, self.dim, "Binomial")  # the same error, with the row's own number
            refuse_more(z, member_weights(w, labels, len(z), self.members, "Binomial"), self.trials, "Binomial")
            raise

    def refit(self, stats: Successes, prior: AnyPrior | None = None) -> Binomial:
        """The relative frequencies n/N (Ney 3.4), or with a prior the posterior mode.

        >>> b = Binomial(4, 0.5)
        >>> b.refit(b.collect([1, 2, 3, 3])).probs
        array([0.5625])
        """
        self._fits(stats)
        if prior is not None:
            return prior.update(stats).point("mode")
        self._check(stats)
        return self.replace(probs=np.where(stats.weight > 0, stats.mean, self.probs))

    def _fits(self, stats: Any) -> None:
        super()._fits(stats)
        if not np.array_equal(stats.trials, self.trials):
            raise ShapeError(sentence("Binomial", "statistics with the same trials are needed", "other trials"))

    def objective(self, stats: Successes, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._fits(stats)
        value = float(
            (xlogy(stats.ones, self.probs) + xlog1py(stats.zeros, -self.probs)).sum() + np.sum(stats.log_coefficients)
        )
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: Successes) -> Any:
        """Weak `Beta` prior: one pseudo-count about the pooled mean."""
        from likely.distributions.univariate.beta import Beta

        return Beta.weak(stats)

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, trials: ArrayLike | None = None) -> Binomial:  # type: ignore[override]
        """Method of moments: p = x̄ / N; without trials p = 1 − s²/x̄, N = x̄ / p, rounded (an error if s² ≥ x̄).

        >>> Binomial.moments_fit([3, 4, 5, 4], trials=8).probs
        array([0.5])
        """
        mean, spread = column_moments(x, weight, "Binomial")
        if trials is None:
            if not (spread < mean).all():
                expected = "without trials, the variance must be below the mean"
                raise DomainError(sentence("Binomial.moments_fit", expected, (mean, spread), "give trials"))
            most = largest_counts(rows(x, None, "Binomial"))
            trials = np.maximum(np.rint(mean / (1 - spread / mean)), most)
        trials = given_trials(trials, len(mean), "Binomial")
        return cls(trials, mean / trials)

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, trials: ArrayLike | None = None) -> Binomial:  # type: ignore[override]
        """Unbiased estimate p = x̄ / N; trials must be given."""
        if trials is None:
            raise DomainError(
                sentence("Binomial", "no unbiased estimator of unknown trials exists", remedy="give them")
            )
        return cls.moments_fit(x, weight, trials)


def refuse_more(z: Array, shares: Any, trials: Array, whose: str) -> None:
    """Raise where a count exceeds the trials of a member with weight; the first is named by row and column."""
    distributions = np.atleast_2d(trials)
    for k in [0] if (distributions == distributions[0]).all() else range(len(distributions)):
        with np.errstate(invalid="ignore"):
            more = z > distributions[k]
        if more.any() and len(distributions) > 1 and not (distributions == distributions[0]).all():
            w = shares[[min(k, shares.shape[0] - 1)]]
            more &= (np.ravel(w.toarray() if hasattr(w, "toarray") else w) > 0)[:, None]
        if more.any():
            i, j = (int(at) for at in np.argwhere(more)[0])
            expected, remedy = (
                f"counts must not exceed the {distributions[k, j]:g} trials",
                "give more trials, or correct it",
            )
            raise BadEntry(whose, expected, z[i, j], i, j, remedy)


def log_pmf(x: Array, n: Any, p: Any) -> Array:
    """Log-density of counts, as peaks less deviances; −inf for anything but a count from 0 to n."""
    n, p = np.asarray(n, dtype=np.float64), np.asarray(p, dtype=np.float64)
    possible = (x >= 0) & (x <= n) & (x == np.floor(x))
    at = np.where(possible, x, 0.0)
    rest, q = n - at, 1.0 - p
    deviation = at - n * p
    (u_n, s_n), (u_x, s_x), (u_y, s_y) = (log_poisson_peak_terms(part) for part in (n, at, rest))
    fall = deviance(at, n * p, deviation) + deviance(rest, n * q, -deviation)
    middle = 0.5 * np.log(u_n / u_x / u_y) + (s_n - s_x - s_y) - fall
    with np.errstate(divide="ignore"):
        ends = np.where(at == 0, xlog1py(n, -p), xlogy(n, p))
    return np.where(possible, np.where((at == 0) | (rest == 0), ends, middle), -np.inf)


def _count_range(n: float, p: float) -> tuple[float, float]:
    """Range of counts outside of which the probability is negligible."""
    reach = 12 * np.sqrt(n * p * (1 - p)) + 60
    return max(float(np.floor(n * p - reach)), 0.0), min(float(np.ceil(n * p + reach)), n)


def _summed_kl(n: float, p: float, m: float, q: float) -> float:
    """KL divergence between different numbers of trials n and m, summed over counts."""
    if n > m and p > 0:
        return float("inf")
    low, high = _count_range(n, p)
    if high - low >= FEW:
        got, remedy = f"{n:g} and {m:g} trials", "estimate it by Monte Carlo: E[log p − log p']"
        raise DomainError(sentence("Binomial.kl", "distributions this wide must have the same trials", got, remedy))
    x = np.arange(low, high + 1)
    log_p, other = log_pmf(x, n, p), log_pmf(x, m, q)
    possible = np.isfinite(log_p)
    return max(float(np.exp(log_p[possible]) @ (log_p[possible] - other[possible])), 0.0)


def _entropy(n: float, p: float) -> float:
    if p in (0.0, 1.0):
        return 0.0
    spread = n * p * (1 - p)
    low, high = _count_range(n, p)
    if high - low < FEW:
        logs = log_pmf(np.arange(low, high + 1), n, p)
        return -float(np.exp(logs) @ np.where(np.isfinite(logs), logs, 0.0))
    return 0.5 * (LOG_2PI + 1 + float(np.log(spread))) - (1 - 4 * p * (1 - p)) / (12 * spread)


# ---------------------------------------------------------------- the statistic


@dataclass(frozen=True, eq=False)
class Successes(Addable, Value):
    """Sufficient statistics of a binomial distribution: successes and failures per column, for fixed trials."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    ones: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w x
    zeros: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w (N − x)
    log_coefficients: Annotated[Array, declared.numbers("*")]  # (...): Σ w log N!/(x!(N − x)!)
    trials: Annotated[Array, declared.numbers("* d", 1)]  # (..., d): N

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "Successes", name) for name, part in self.field_values().items()}
        lead, shape = parts["rows"].shape, parts["ones"].shape
        got = tuple(part.shape for part in parts.values())
        if len(lead) > 1 or shape[:-1] != lead or got != (lead, shape, shape, shape, lead, shape):
            raise ShapeError(sentence("Successes", "shapes must be (...) and (..., d)", got))
        if any((parts[name] < 0).any() for name in ("rows", "weight", "ones", "zeros")) or (parts["trials"] < 1).any():
            raise DomainError(sentence("Successes", "weights and counts must not be negative, and trials 1 or more"))
        self._set(**parts)

    @property
    def mean(self) -> Array:
        """Proportion of successes (..., d); 0 without observations."""
        tried = self.ones + self.zeros
        return np.divide(self.ones, tried, out=np.zeros_like(self.ones), where=tried > 0)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def _each(self, f: Callable[[str, Array], Any]) -> Self:
        sums = {name: np.asarray(f(name, part)) for name, part in self.field_values().items() if name != "trials"}
        return self.replace(**sums)

    def __add__(self, other: Successes) -> Self:
        if not np.array_equal(self.trials, other.trials):
            raise ShapeError(sentence("Successes", "both must have the same trials", (self.trials, other.trials)))
        return self._each(lambda name, part: part + getattr(other, name))

    def __mul__(self, factor: float) -> Self:
        return self._each(lambda _, part: part * factor)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled statistics of all members, with the largest of their trials."""
        if self.rows.ndim == 0:
            return self
        return self._each(lambda _, part: part.sum(axis=0)).replace(trials=self.trials.max(axis=0))

    def member(self, k: Any) -> Self:
        """The statistics of one member of a stack, or of several."""
        return self._each(lambda _, part: np.array(part[k])).replace(trials=np.array(self.trials[k]))


def successes(z: Array, shares: Any, trials: Array, members: int | None) -> Successes:
    """Sufficient statistics of rows (n, d), NaN for missing values, under weights (m, n)."""
    observed = ~np.isnan(z)
    counts = np.where(observed, z, 0.0)
    total, weight, ones = shares @ np.ones(len(z)), shares @ observed.astype(np.float64), shares @ counts
    parts = {name: per_member(part, members) for name, part in (("rows", total), ("weight", weight), ("ones", ones))}
    possible = parts["weight"] * trials
    zeros = possible - parts["ones"]
    zeros = np.where(zeros > ROUNDING * possible, zeros, 0.0)
    ways = np.broadcast_to(_ways(counts, observed, shares, np.atleast_2d(trials)), (members or 1,))
    log_coefficients = np.array(ways[0] if members is None else ways)
    return Successes.trusted(**parts, zeros=zeros, log_coefficients=log_coefficients, trials=np.array(trials))


def _ways(counts: Array, observed: Array, shares: Any, distributions: Array) -> Array:
    """Σ w log N!/(x!(N − x)!), (1,) where all members have the same trials and weights, else (K,)."""
    if (distributions == distributions[0]).all():
        return np.asarray(shares @ np.where(observed, _log_coefficients(counts, distributions[0]), 0.0).sum(axis=1))
    each = np.stack(
        [np.where(observed, _log_coefficients(counts, n), 0.0).sum(axis=1) for n in distributions], axis=1
    )  # (n, K)
    table = np.asarray(shares @ each)
    return np.asarray(np.diagonal(table) if len(table) > 1 else table[0])


def _log_coefficients(x: Array, n: Array) -> Array:
    """log n!/(x!(n − x)!)."""
    return np.asarray(log_factorial(np.broadcast_to(n, x.shape)) - log_factorial(x) - log_factorial(n - x))
