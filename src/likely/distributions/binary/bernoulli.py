"""Bernoulli distribution of independent binary columns, dense or sparse, and its sufficient statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import rel_entr, xlogy

from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    Mask,
    PerMember,
    n_rows,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.categorical.sparse_counts import SparseRows, column_sums, is_sparse, row_sums, shares_of
from likely.distributions.column_distribution import same_columns
from likely.distributions.distribution import Distribution, Estimate, in_units, lone
from likely.distributions.statistics.counts import exact_expectation, one_column, per_member
from likely.distributions.unobserved_columns import warn_of_missing_values

NEVER, IMPOSSIBLE = -1e200, -1e100  # finite stand-in for log 0 in a product, and the threshold that detects it
ROUNDING = 1e-13  # relative rounding error of counts obtained by subtraction
BINARY = "values must be 0 or 1, or NaN for a missing value"


@dataclass(frozen=True, eq=False)
class Bernoulli(Distribution):
    """Bernoulli distribution of binary columns.

    log p(x) = Σⱼ xⱼ log pⱼ + (1 − xⱼ) log(1 − pⱼ): independent columns of 0 and 1.

    With p = 0 or 1 the other value has probability 0; so has anything but 0 and 1. NaN is missing. SciPy sparse
    matrices stay sparse; they cannot hold missing values.

    Parameters
    ----------
    probs : array-like (d,) or (K, d)
        Probabilities of a 1; (K, d) is a stack of K members.

    See Also
    --------
    Beta : The conjugate prior.
    Binomial : Numbers of successes.
    BernoulliDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 2.6.1.

    Examples
    --------
    >>> Bernoulli([0.25, 1.0]).log_prob([[1, 1], [0, np.nan], [0, 0], [2, 1]]).round(4)
    array([-1.3863, -0.2877,    -inf,    -inf])
    """

    one_distribution = True  # a prior belongs to the whole distribution

    probs: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)

    _mean_is_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        probs = np.atleast_1d(parameter(self.probs, "Bernoulli", "probs"))
        if probs.ndim > 2 or 0 in probs.shape:
            raise ShapeError(sentence("Bernoulli", "probs must be a number, (d,) or (K, d)", probs.shape))
        outside = probs[(probs < 0) | (probs > 1)]
        if outside.size:
            raise DomainError(sentence("Bernoulli", "probabilities must lie in 0 … 1", float(outside[0])))
        self._set(probs=probs)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.probs.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.probs) if self.probs.ndim == 2 else None

    def member(self, k: int) -> Bernoulli:
        """One member of a stack."""
        return self.replace(probs=self.probs[k].copy())

    def take(self, index: ArrayLike) -> Bernoulli:
        """Stack of the selected members."""
        return self.replace(probs=self.probs[np.asarray(index)])

    @property
    def _each(self) -> Array:
        return np.atleast_2d(self.probs)

    # ---------------------------------------------------------------- density

    _support = "binary"

    @staticmethod
    def _parameter_score(x: Array, probs: Array) -> tuple[Array, ...]:
        """∂ log p by the log-odds of p."""
        return (x - probs,)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows, dense or sparse. NaN is missing."""
        if is_sparse(x):
            x, score = SparseRows.of(x, self.dim, "Bernoulli"), self._sparse
        else:
            x, score = sliceable(x, self.dim), self._dense
        return map_rows(lambda block: score(block) if self.members else score(block)[:, 0], x, self.members)

    def _dense(self, block: Any) -> Array:
        z = rows(block, self.dim, "Bernoulli")
        refuse_infinite(z, "Bernoulli")
        observed = ~np.isnan(z)
        ones = np.where(observed, z, 0.0)
        possible: Mask = np.all(is_binary(ones), axis=1)
        ones = np.where(possible[:, None], ones, 0.0)
        odds, rests, certain = self._logs
        out = ones @ odds + rests.sum(axis=0)
        incomplete = np.flatnonzero(~observed.all(axis=1))
        if len(incomplete):
            out[incomplete] -= (~observed[incomplete]).astype(np.float64) @ rests
        failed = (observed - ones) @ certain if certain.any() else None
        return _with_impossible(out, failed, possible)

    def _sparse(self, block: SparseRows) -> Array:
        odds, rests, certain = self._logs
        out = np.asarray(block.matrix @ odds) + rests.sum(axis=0)
        failed = certain.sum(axis=0) - block.matrix @ certain if certain.any() else None
        other = ~is_binary(block.matrix.data)
        possible = row_sums(other.astype(np.float64), block.matrix.indptr) == 0 if other.any() else np.True_
        return _with_impossible(out, failed, possible)

    @cached_property
    def _logs(self) -> tuple[Array, Array, Array]:
        """log p/(1 − p), log(1 − p) and p = 1, each (d, K) and finite: probabilities 0 and 1 are treated separately."""
        p = self._each.T
        certain = p == 1
        with np.errstate(divide="ignore"):
            rests = np.log1p(-np.where(certain, 0.0, p))
            odds = np.where(certain, 0.0, np.maximum(np.log(p), NEVER) - rests)
        return np.ascontiguousarray(odds), np.ascontiguousarray(rests), certain.astype(np.float64)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        return (rng.random((n, *self.probs.shape)) < self.probs).astype(np.float64)

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Probability of a 1 in each column."""
        return self.probs

    @property
    def median(self) -> Array:
        """The median of each column: the smallest value with P(X ≤ x) ≥ ½."""
        return np.where(self.probs > 0.5, 1.0, 0.0)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for one column; (n, K) for a stack."""
        z = one_column(x, self.members)
        below = np.where(z >= 1, 1.0, np.where(z >= 0, 1.0 - self._one_probability(), 0.0))
        return np.where(np.isnan(z), np.nan, below)

    def quantile(self, p: ArrayLike) -> Array:
        """The smallest x with P(X ≤ x) ≥ p, for one column; (n, K) for a stack. NaN outside 0 … 1."""
        p = np.asarray(p, dtype=np.float64)
        p = p[..., None] if self.members else p
        found = np.where(p > 1.0 - self._one_probability(), 1.0, 0.0)
        return np.where((p >= 0) & (p <= 1), found, np.nan)

    def _one_probability(self) -> Any:
        if self.dim != 1:
            raise DomainError(sentence("Bernoulli", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.probs[..., 0]

    @property
    def variance(self) -> Array:
        """Variance p (1 − p)."""
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Array:
        """The more likely value of each column (0 for p = ½)."""
        return (self.probs > 0.5).astype(np.float64)

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σⱼ p log p + (1 − p) log(1 − p) with 0 log 0 = 0 (Herbst 1.6); one per member for a stack."""
        p, q = self.probs, 1 - self.probs
        return in_units(
            lone(-(xlogy(p, p) + np.where(q > 0, q * np.log1p(-np.where(q > 0, p, 0.0)), 0.0)).sum(-1)), bits
        )

    def kl(self, other: Bernoulli, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ p log(p/q) + (1 − p) log((1 − p)/(1 − q)); member by member for stacks."""
        same_columns(self, other)
        p, q = self.probs, other.probs
        return in_units(lone((rel_entr(p, q) + rel_entr(1 - p, 1 - q)).sum(axis=-1)), bits)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all rows (by Monte Carlo where these are too many).

        >>> Bernoulli([0.5, 0.25]).expect(lambda x: x[..., 0] * x[..., 1]).value
        np.float64(0.125)
        """
        low, high = np.zeros(self.dim), np.ones(self.dim)
        return exact_expectation(self, g, low, high) or super().expect(g, n, rng)

    @property
    def n_parameters(self) -> int:
        """Free parameters: the probabilities."""
        return int(self.probs.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Any, members: int | None = None) -> Bernoulli:
        """Initial model: as many columns as the rows have, p = ½."""
        width = x.shape[1] if is_sparse(x) else rows(x, None, "Bernoulli").shape[1]
        if width == 0:
            raise ShapeError(sentence("Bernoulli", "at least one column is needed", n_rows(x)))
        return cls.trusted(probs=np.full((width,) if members is None else (members, width), 0.5))

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> Trials:
        """Counts of ones and zeros per column of rows (n, d), dense or sparse.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to
        (−1: none). Missing entries are skipped.
        """
        n = n_rows(x)
        w = weights(weight, n, "Bernoulli")
        x = SparseRows.of(x, self.dim, "Bernoulli") if is_sparse(x) else x
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        shares = shares_of(w, labels, n, self.members, "Bernoulli")
        if isinstance(x, SparseRows):
            x.refuse(~is_binary(x.matrix.data), "Bernoulli", BINARY)
            return self._counted(column_sums(x.matrix, shares), shares @ np.ones(n))
        return self._collect_dense(rows(x, self.dim, "Bernoulli"), shares)

    def _collect_dense(self, x: Array, shares: Any) -> Trials:
        refuse_infinite(x, "Bernoulli")
        observed = ~np.isnan(x)
        clean = bool(observed.all())
        ones = x if clean else np.where(observed, x, 0.0)
        bad = ~is_binary(ones)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise BadEntry("Bernoulli", BINARY, x[i, j], int(i), int(j), "correct it, or replace it by NaN")
        return self._counted(
            shares @ ones, shares @ np.ones(len(x)), None if clean else shares @ observed.astype(np.float64)
        )

    def _counted(self, ones: Any, rows: Any, weight: Any = None) -> Trials:
        weight = np.asarray(rows)[:, None] if weight is None else weight
        zeros = weight - ones
        zeros = np.where(zeros > ROUNDING * weight, zeros, 0.0)
        parts = {"rows": np.asarray(rows), "ones": np.asarray(ones), "zeros": zeros}
        return Trials.trusted(**{name: per_member(part, self.members) for name, part in parts.items()})

    def refit(self, stats: Trials, prior: AnyPrior | None = None) -> Bernoulli:
        """Relative frequencies, the maximum-likelihood estimate, or with a prior the posterior mode.

        >>> b = Bernoulli(0.5)
        >>> b.refit(b.collect([0, 1, 1, 1]))
        Bernoulli(probs=[0.75])
        """
        self._check(stats)
        warn_of_missing_values("Bernoulli", stats.ones + stats.zeros, stats.rows, prior)
        if prior is not None:
            return prior.update(stats).point("mode")
        if not stats.total_weight > 0:
            raise DataError(sentence("Bernoulli", "at least one row with weight is needed", "none", "or give a prior"))
        return self.replace(probs=np.where(stats.ones + stats.zeros > 0, stats.mean, self.probs))

    def objective(self, stats: Trials, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics, Σ n₁ log p + n₀ log(1 − p) (+ log prior)."""
        self._check(stats)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(stats.zeros > 0, stats.zeros * np.log1p(-self.probs), 0.0)
        value = float((xlogy(stats.ones, self.probs) + rest).sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: Trials) -> Any:
        """Weak `Beta` prior: one pseudo-count about the pooled mean."""
        from likely.distributions.univariate.beta import Beta

        return Beta.weak(stats)

    def _check(self, stats: Trials) -> None:
        if stats.ones.shape != self.probs.shape:
            raise ShapeError(sentence("Bernoulli", f"statistics must be of shape {self.probs.shape}", stats.ones.shape))


@dataclass(frozen=True, eq=False)
class Trials(Addable, Value):
    """Sufficient statistics of a Bernoulli distribution: counts of ones and zeros per column."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    ones: Annotated[Array, declared.numbers("* d", 0)]  # (..., d)
    zeros: Annotated[Array, declared.numbers("* d", 0)]  # (..., d)

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "Trials", name) for name, part in self.field_values().items()}
        shape, got = parts["ones"].shape, tuple(part.shape for part in parts.values())
        if len(shape) not in (1, 2) or got != (shape[:-1], shape, shape):
            raise ShapeError(sentence("Trials", "shapes must be (...), (..., d) and (..., d)", got))
        if any((part < 0).any() for part in parts.values()):
            raise DomainError(sentence("Trials", "counts must not be negative"))
        self._set(**parts)

    @property
    def mean(self) -> Array:
        """Proportion of ones among the observed entries (..., d); 0 without observations."""
        observed = self.ones + self.zeros
        return np.divide(self.ones, observed, out=np.zeros_like(self.ones), where=observed > 0)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def _each(self, f: Callable[[str, Array], Any]) -> Self:
        return self.trusted(**{name: np.asarray(f(name, part)) for name, part in self.field_values().items()})

    def __add__(self, other: Trials) -> Self:
        if self.ones.shape != other.ones.shape:
            raise ShapeError(sentence("Trials", f"both must have shape {self.ones.shape}", other.ones.shape))
        return self._each(lambda name, part: part + getattr(other, name))

    def __mul__(self, factor: float) -> Self:
        return self._each(lambda _, part: part * factor)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled counts of all members."""
        return self if self.rows.ndim == 0 else self._each(lambda _, part: part.sum(axis=0))

    def member(self, k: Any) -> Self:
        """The counts of one member of a stack, or of several."""
        return self._each(lambda _, part: np.array(part[k]))


def is_binary(x: Array) -> Mask:
    """Mask of entries that are 0 or 1."""
    return (x == 0) | (x == 1)


def _with_impossible(out: Array, failed: Any, possible: Any) -> Array:
    """Set impossible rows to −inf: a 1 where p = 0, a 0 where p = 1, a value that is neither."""
    out[out < IMPOSSIBLE] = -np.inf
    if failed is not None:
        out[failed > 0.5] = -np.inf
    if not np.all(possible):
        out[~possible] = -np.inf
    return out
