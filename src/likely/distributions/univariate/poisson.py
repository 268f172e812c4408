"""Poisson distribution of counts, dense or sparse."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import gammaincc, xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, n_rows, parameter, refuse_infinite, rows, sliceable, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.categorical.sparse_counts import (
    SparseRows,
    column_sums,
    integer_counts,
    is_sparse,
    row_sums,
    shares_of,
    unstored,
)
from likely.distributions.column_distribution import refuse_empty, refuse_fractions, same_columns
from likely.distributions.distribution import Distribution, Estimate, in_units, lone
from likely.distributions.statistics.counts import (
    Counts,
    count_rows,
    draw_counts,
    exact_expectation,
    member_weights,
    one_column,
    per_member,
    refuse_negative,
    smallest,
)
from likely.distributions.unobserved_columns import warn_of_missing_values
from likely.numerics.special import LOG_2PI, count_by_count, deviance, log_factorial, log_poisson_peak_of_counts

MANY = 4  # members from which one matrix product is faster than one pass per member
ALLOWED = 1e-9  # absolute error that the product may make; rows beyond it are computed entry by entry
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Poisson(Distribution):
    """Poisson distribution of counts.

    log p(x | λ) = Σⱼ xⱼ log λⱼ − λⱼ − log xⱼ!: independent counts in d columns.

    A rate of 0 allows only the count 0. Anything but a count (negative, not an integer) has probability 0; NaN is
    missing. SciPy sparse matrices stay sparse; they cannot hold missing values.

    Parameters
    ----------
    rate : array-like (d,) or (K, d)
        Rates λ; (K, d) is a stack of K members.

    See Also
    --------
    Gamma : The conjugate prior of the rate.
    NegativeBinomial : Overdispersed counts.
    PoissonDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.5 and 3.4.

    Examples
    --------
    >>> Poisson([3.0, 0.5]).log_prob([[2, 0], [4, np.nan], [2.5, 0]]).round(4)
    array([-1.9959, -1.7836,    -inf])
    """

    one_distribution = True  # a prior belongs to the whole distribution

    rate: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)

    _mean_is_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        rate = np.atleast_1d(parameter(self.rate, "Poisson", "rate"))
        if rate.ndim > 2 or 0 in rate.shape:
            raise ShapeError(sentence("Poisson", "rate must be a number, (d,) or (K, d)", rate.shape))
        if (rate < 0).any():
            raise DomainError(sentence("Poisson", "rates must not be negative", float(rate.min())))
        self._set(rate=rate)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.rate.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.rate) if self.rate.ndim == 2 else None

    def member(self, k: int) -> Poisson:
        """One member of a stack."""
        return Poisson.trusted(rate=self.rate[k].copy())

    def take(self, index: Any) -> Poisson:
        """Stack of the selected members."""
        return Poisson.trusted(rate=self.rate[index])

    # ---------------------------------------------------------------- density

    _support = "count"

    @staticmethod
    def _parameter_score(x: Array, rate: Array) -> tuple[Array, ...]:
        """∂ log p/∂ log λ."""
        return (x - rate,)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x | λ) of rows, dense or sparse. NaN is missing."""
        x = SparseRows.of(x, self.dim, "Poisson") if is_sparse(x) else sliceable(x, self.dim)

        def evaluate(block: Any) -> Array:
            if isinstance(block, SparseRows):
                found = self._sparse(block)
                return found if self.members else found[:, 0]
            z = rows(block, self.dim, "Poisson")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "Poisson"), "Poisson")
            out = self._log_prob(z)
            return out if self.members else out[:, 0]

        return map_rows(evaluate, x, self.members)

    def _log_prob(self, x: Array) -> Array:
        observed = ~np.isnan(x)
        counts = np.where(observed, x, 0.0)
        possible = ((counts >= 0) & (counts == np.floor(counts))).all(axis=1)
        counts = np.where(possible[:, None], counts, 0.0)
        if len(self._rates) < MANY:
            out = self._by_entries(counts, observed)
        else:
            out, size = self._by_product(counts, observed)
            unsafe = np.flatnonzero(8 * EPS * size > ALLOWED)
            if len(unsafe):
                out[unsafe] = self._by_entries(counts[unsafe], observed[unsafe])
        out[~possible] = -np.inf
        return out

    def _sparse(self, block: SparseRows) -> Array:
        """Log-density of sparse rows under each member (n, K)."""
        block, possible = integer_counts(block)
        if len(self._rates) < MANY:
            out = self._by_stored(block)
        else:
            x, (logs, largest) = block.matrix, self._log_rates
            height, spent = row_sums(log_factorial(x.data), x.indptr), self._rates.sum(axis=1)
            out = np.asarray(x @ logs.T) - spent - height[:, None]
            if (self.rate == 0).any():
                out[x.astype(bool).astype(np.float64) @ (self._rates == 0).T.astype(np.float64) > 0] = -np.inf
            unsafe = np.flatnonzero(8 * EPS * (x @ largest + spent.max() + height) > ALLOWED)
            if len(unsafe):
                out[unsafe] = self._by_stored(block[unsafe])
        if not np.all(possible):
            out[~possible] = -np.inf
        return out

    def _by_stored(self, block: SparseRows) -> Array:
        """Entry by entry over the stored entries; all others are 0, with log-probability −λ."""
        x = block.matrix
        each = [row_sums(log_pmf(x.data, rate[x.indices]), x.indptr) - unstored(rate, block) for rate in self._rates]
        return np.stack(each, axis=1)

    @property
    def _rates(self) -> Array:
        return np.atleast_2d(self.rate)

    def _by_entries(self, counts: Array, observed: Array) -> Array:
        """Entry by entry, as peak minus deviance: without cancellation."""
        each = [count_by_count(counts, log_pmf, rate) for rate in self._rates]
        return np.stack([np.where(observed, logs, 0.0).sum(axis=1) for logs in each], axis=1)

    def _by_product(self, counts: Array, observed: Array) -> tuple[Array, Array]:
        """One matrix product for all members, and the magnitude (n,) of the terms that cancel in it."""
        logs, largest = self._log_rates
        height = log_factorial(counts).sum(axis=1)
        spent = observed.astype(np.float64) @ self._rates.T
        out = counts @ logs.T - spent - height[:, None]
        if (self.rate == 0).any():
            out[(counts > 0).astype(np.float64) @ (self._rates == 0).T > 0] = -np.inf
        return out, counts @ largest + spent.max(axis=1) + height

    @cached_property
    def _log_rates(self) -> tuple[Array, Array]:
        """log λ (K, d), 0 where the rate is 0, and the largest absolute value among members (d,)."""
        logs = np.log(np.where(self._rates > 0, self._rates, 1.0))
        return logs, np.abs(logs).max(axis=0)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        return draw_counts(np.broadcast_to(self.rate, (n, *self.rate.shape)), rng)

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Expected count of each column: the rate."""
        return self.rate

    @property
    def median(self) -> Array:
        """The median of each column: the smallest count with P(X ≤ x) ≥ ½."""
        return np.asarray(smallest(lambda x: gammaincc(x + 1, self.rate) >= 0.5, self.rate))

    @property
    def variance(self) -> Array:
        """Variance of each column: the rate."""
        return self.rate

    @property
    def mode(self) -> Array:
        """The most likely count: ⌊λ⌋ (λ − 1 is as likely where λ is an integer)."""
        return np.floor(self.rate)

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σ p log p, summed exactly; ½ log 2πeλ − 1/12λ − … for rates above 10⁴. One per member for a stack."""
        each = np.array([_entropy(float(rate)) for rate in self.rate.ravel()]).reshape(self.rate.shape)
        return in_units(lone(each.sum(axis=-1)), bits)

    def kl(self, other: Poisson, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ λⱼ log(λⱼ/μⱼ) − λⱼ + μⱼ; member by member for stacks."""
        same_columns(self, other)
        return in_units(lone(deviance(self.rate, other.rate).sum(axis=-1)), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for one column."""
        count = np.floor(one_column(x, self.members))
        rate = self._one_rate()
        return np.where(count < 0, 0.0, gammaincc(np.maximum(count, 0.0) + 1, rate))

    def quantile(self, p: ArrayLike) -> Array:
        """The smallest count x with P(X ≤ x) ≥ p, for one column; (n, K) for a stack."""
        rate = self._one_rate()
        p = np.asarray(p, dtype=np.float64)
        p, rate = np.broadcast_arrays(p[..., None] if self.members else p, rate)
        inside = (p >= 0) & (p < 1)
        target = np.where(inside, p, 0.0)
        found = smallest(lambda x: gammaincc(x + 1, rate) >= target, rate)
        return np.where(inside, found, np.where(p == 1, np.where(rate > 0, np.inf, 0.0), np.nan))

    def _one_rate(self) -> Any:
        if self.dim != 1:
            raise DomainError(sentence("Poisson", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.rate[..., 0]

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all counts that matter (by Monte Carlo where these are too many).

        >>> Poisson(3.0).expect(lambda x: x[..., 0] ** 2).value.round(10)
        np.float64(12.0)
        """
        low, high = support(self._rates)
        return exact_expectation(self, g, low.min(axis=0), high.max(axis=0)) or super().expect(g, n, rng)

    @property
    def n_parameters(self) -> int:
        """Free parameters: the rates."""
        return int(self.rate.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Poisson:
        """Maximum-likelihood fit to weighted rows (or posterior mode, with a prior)."""
        refuse_empty(x, "Poisson")
        refuse_fractions(x, "Poisson")
        return super().fit(x, weight, **options)

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Poisson:
        """Initial model: the mean of each column of a block, 1 where it is 0."""
        z = SparseRows.of(x, None, "Poisson") if is_sparse(x) else rows(x, None, "Poisson")
        if z.shape[1] == 0:
            raise ShapeError(sentence("Poisson", "at least one column is needed", z.shape))
        mean = Poisson.trusted(rate=np.ones(z.shape[1])).collect(z).mean
        rate = np.where(mean > 0, mean, 1.0)
        return cls.trusted(rate=rate if members is None else np.repeat(rate[None], members, axis=0))

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> Counts:
        """Sufficient statistics of rows (n, d), dense or sparse: sums of counts, and weights.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to
        (−1: none). Missing entries are skipped; fractional (expected) counts are allowed.
        """
        n = n_rows(x)
        w = weights(weight, n, "Poisson")
        if is_sparse(x):
            return self._collect_sparse(SparseRows.of(x, self.dim, "Poisson"), w, labels)
        if n > ROWS * BLOCKS:
            return self._collect_blocks(x, w, labels)
        z = rows(x, self.dim, "Poisson")
        _refuse(z)
        return count_rows(z, member_weights(w, labels, n, self.members, "Poisson"), self.members)

    def _collect_sparse(self, x: SparseRows, w: Array | None, labels: Index | None) -> Counts:
        if x.lowest < 0:
            x.refuse(x.matrix.data < 0, "Poisson", "counts must not be negative")
        shares = shares_of(w, labels, len(x), self.members, "Poisson")
        total = column_sums(x.matrix, shares)
        observed = np.asarray(shares @ np.ones(len(x)))
        logs = np.asarray(shares @ row_sums(log_factorial(x.matrix.data), x.matrix.indptr))
        parts = {"rows": observed, "weight": np.broadcast_to(observed[:, None], total.shape), "total": total}
        every = {**parts, "log_factorial": logs}
        return Counts.trusted(**{name: per_member(part, self.members) for name, part in every.items()})

    def _collect_blocks(self, x: Any, w: Array | None, labels: Index | None) -> Counts:
        try:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        except DataError:
            _refuse(rows(x, self.dim, "Poisson"))  # the same error, with the row's own number
            raise

    def refit(self, stats: Counts, prior: AnyPrior | None = None) -> Poisson:
        """Maximum-likelihood rates, which are the means (Ney 3.4), or with a prior the posterior mode.

        >>> Poisson(1.0).refit(Poisson(1.0).collect([2, 3, 7]))
        Poisson(rate=[4.])
        """
        self._check(stats)
        warn_of_missing_values("Poisson", stats.weight, stats.rows, prior)
        if prior is not None:
            return prior.update(stats).point("mode")
        if not stats.total_weight > 0:
            raise DataError(sentence("Poisson", "at least one row with weight is needed", "none", "or give a prior"))
        return Poisson.trusted(rate=np.where(stats.weight > 0, stats.mean, self.rate))

    def objective(self, stats: Counts, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._check(stats)
        value = float(np.sum(xlogy(stats.total, self.rate) - stats.weight * self.rate) - np.sum(stats.log_factorial))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: Counts) -> Any:
        """Weak `Gamma` prior: a tenth of a pseudo-row about the pooled mean."""
        from likely.distributions.univariate.gamma import Gamma

        return Gamma.weak(stats)

    def _check(self, stats: Counts) -> None:
        if stats.total.shape != self.rate.shape:
            raise ShapeError(sentence("Poisson", f"statistics must be of shape {self.rate.shape}", stats.total.shape))


def log_pmf(x: Array, rate: Any) -> Array:
    """x log λ − λ − log x! of integers, as the peak at λ = x minus the deviance: without cancellation."""
    return log_poisson_peak_of_counts(x) - deviance(x, rate)


def _refuse(x: Array) -> None:
    refuse_infinite(x, "Poisson")
    refuse_negative(x, "Poisson")


def support(rate: Array) -> tuple[Array, Array]:
    """First and last count outside of which less than 10⁻²⁵ of the probability lies (Chernoff bounds)."""
    low = np.floor(np.maximum(rate - np.sqrt(120 * rate), 0.0))
    return low, np.ceil(rate + 20 + np.sqrt(400 + 120 * rate))


def _entropy(rate: float) -> float:
    if rate > 1e4:
        return 0.5 * (LOG_2PI + 1 + math.log(rate)) - (1 / 12 + (1 / 24 + 19 / 360 / rate) / rate) / rate
    low, high = (float(edge) for edge in support(np.asarray(rate)))
    counts = np.arange(low, high + 1)
    logs = log_pmf(counts, rate)
    return -float(np.exp(logs) @ np.where(np.isfinite(logs), logs, 0.0))


__all__ = ["Counts", "Poisson"]
