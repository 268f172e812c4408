"""Multinomial distribution of counts given their total, dense or sparse, and its sufficient statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
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
    Rows,
    n_rows,
    parameter,
    refuse_infinite,
    rows,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.categorical.sparse_counts import SparseRows, column_sums, is_sparse, row_sums, shares_of
from likely.distributions.column_distribution import warn_of_fractions
from likely.distributions.distribution import Distribution, Estimate, in_units, lone
from likely.distributions.statistics.counts import LARGEST_SUM, per_member, weighted_sum
from likely.numerics.special import deviance, log_factorial, log_multinomial_coefficient, log_poisson_peak_of_counts

SUM_TO_ONE = 1e-9
EXPECTED = "the others are scored as expected counts"  # treatment of fractions
NEVER, IMPOSSIBLE = -1e200, -1e100  # finite stand-in for log 0 in a product (0 · log 0 stays 0), and its threshold
ALLOWED = 1e-9  # absolute error that a product may make; rows beyond it are computed entry by entry
EPS = float(np.finfo(np.float64).eps)
SMALLEST = 1e-290  # probability of the observed columns below which the missing ones have no expectation


@dataclass(frozen=True, eq=False)
class Multinomial(Distribution):
    """Multinomial distribution of counts with a given total.

    log p(x | N) = log Γ(N + 1) − Σⱼ log Γ(xⱼ + 1) + Σⱼ xⱼ log pⱼ: counts in d columns, N of them in all.

    The distribution is that of a row *given its total* N = Σ xⱼ: it does not model the total, so probabilities sum to
    one over the rows of each total.

    Fractions (expected counts, tf-idf weights) are scored by the same formula, which is then not a probability: `fit`
    warns of them; `log_prob` does not, as EM evaluates expected counts. A negative count has probability 0. Where
    entries are NaN, the row is that of the observed columns given *their* total, with probabilities p / Σ p of
    those columns. SciPy sparse matrices stay sparse; they cannot hold missing values.

    Parameters
    ----------
    probs : array-like (d,) or (K, d)
        Probabilities of the columns; (K, d) is a stack of K members.
    length : float, default 1.0
        Total of the rows that `sample` draws, and that `mean` and `entropy` refer to.

    See Also
    --------
    Categorical : A single observation.
    DirichletMultinomial : Overdispersed counts.
    MultinomialDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.5 and 3.4.

    Examples
    --------
    >>> Multinomial([0.2, 0.3, 0.5]).log_prob([[1, 0, 2], [0, np.nan, 0], [1, np.nan, 1]]).round(4)
    array([-1.8971,  0.    , -0.8961])
    """

    probs: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)
    length: Annotated[Array, declared.numbers("", 0)] = 1.0  # type: ignore[assignment]  # (): total of the rows that are drawn

    _mean_is_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        me = "Multinomial"
        probs, length = parameter(self.probs, me, "probs"), parameter(self.length, me, "length")
        if probs.ndim not in (1, 2) or 0 in probs.shape:
            raise ShapeError(sentence(me, "probs must have shape (d,) or (K, d)", probs.shape))
        if (probs < 0).any():
            raise DomainError(sentence(me, "probabilities must not be negative", float(probs.min())))
        sums = probs.sum(axis=-1)
        if (np.abs(sums - 1) > SUM_TO_ONE).any():
            worst = float(sums.ravel()[np.abs(sums - 1).argmax()])
            raise DomainError(sentence(me, "probabilities must sum to 1", worst, "divide them by their sum"))
        if length.shape != () or length < 0 or length != np.floor(length) or length > 2**53:
            raise DomainError(sentence(me, "length must be one nonnegative integer", self.length))
        self._set(probs=probs, length=length)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.probs.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.probs) if self.probs.ndim == 2 else None

    def member(self, k: int) -> Multinomial:
        """One member of a stack."""
        return self.replace(probs=self.probs[k].copy())

    def take(self, index: ArrayLike) -> Multinomial:
        """Stack of the selected members."""
        return self.replace(probs=self.probs[np.asarray(index)])

    @property
    def _each(self) -> Array:
        return np.atleast_2d(self.probs)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: Rows) -> Array:
        """Log-density log p(x | N) of rows, dense or sparse; warns of fractions."""
        warn_of_fractions(x, "Multinomial", EXPECTED)
        return map_rows(self.log_prob_block, count_rows(x, self.dim, "Multinomial"), self.members)

    def log_prob_block(self, block: Any) -> Array:
        """The same for the rows of a block, without the warning of fractions: EM calls it repeatedly."""
        scores = self._score(count_rows(block, self.dim, "Multinomial"))
        return scores if self.members else scores[:, 0]

    def _score(self, block: Any) -> Array:
        """Log-density log p(x | N) of a block under each member (n, K)."""
        if isinstance(block, SparseRows):
            possible = block.lowest >= 0 or row_sums((block.matrix.data < 0).astype(float), block.matrix.indptr) == 0
            out = self._by_product(block.matrix, block.log_coefficients)
            return self._with_impossible(out, block.totals, possible, lambda at: self._sparse_entries(block[at]))
        counts, observed, possible = observed_counts(block, self.dim, "Multinomial")
        total = counts.sum(axis=1)
        out = self._by_product(counts, log_multinomial_coefficient(counts, total))
        incomplete = np.flatnonzero(~observed.all(axis=1))
        if len(incomplete):
            out[incomplete] -= xlogy(total[incomplete, None], self._observed_probability(observed[incomplete]))
        return self._with_impossible(out, total, possible, lambda at: self._dense_entries(counts[at], observed[at]))

    def _by_product(self, counts: Any, log_multinomial_coefficient: Array) -> Array:
        """One matrix product for all members."""
        out = np.asarray(counts @ self._logs)
        out += log_multinomial_coefficient[:, None]
        return out

    @cached_property
    def _logs(self) -> Array:
        """log p (d, K), finite."""
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.maximum(np.log(self._each.T), NEVER))

    @cached_property
    def _largest(self) -> float:
        """The largest finite |log p|."""
        return -float(self._logs.min(where=self._logs > IMPOSSIBLE, initial=0.0))

    def _with_impossible(self, out: Array, total: Array, possible: Any, exactly: Callable[[Index], Array]) -> Array:
        """Set impossible rows to −inf, and recompute rows where the product may have lost digits."""
        at = np.flatnonzero((self._rounding_bound(total, self._largest) > ALLOWED) & possible)
        if len(at):
            largest = np.where(out[at] > IMPOSSIBLE, -out[at], 0.0).max(axis=1) / total[at]
            at = at[self._rounding_bound(total[at], largest) > ALLOWED]
        if len(at):
            out[at] = exactly(at)
        out[out < IMPOSSIBLE] = -np.inf
        if not np.all(possible):
            out[~possible] = -np.inf
        return out

    def _rounding_bound(self, total: Array, largest: Any) -> Array:
        """Bound of the rounding error of the product, where |log p| is at most `largest`."""
        return 8 * EPS * total * (largest + 2 * np.log(np.minimum(np.maximum(total, 1.0), self.dim)))

    def _observed_probability(self, observed: Mask) -> Array:
        """Σ p over the observed columns of each row (n, K), 1 where it is not needed."""
        share = observed.astype(np.float64) @ self._each.T
        return np.where(share > 0, share, 1.0)

    def _dense_entries(self, counts: Array, observed: Mask) -> Array:
        """Entry by entry, as Poisson counts given their sum: without cancellation.

        log p(x | N) = Σⱼ log Poisson(xⱼ | N pⱼ) − log Poisson(N | N), each as peak minus deviance.
        """
        total, share = counts.sum(axis=1), self._observed_probability(observed)
        peaks = log_poisson_peak_of_counts(counts).sum(axis=1) - log_poisson_peak_of_counts(total)
        expected = [np.where(observed, p / share[:, [k]], 0.0) * total[:, None] for k, p in enumerate(self._each)]
        return np.stack([peaks - deviance(counts, m).sum(axis=1) for m in expected], axis=1)

    def _sparse_entries(self, x: SparseRows) -> Array:
        """The same over the stored entries; entries that are not stored are 0."""
        counts, at, ends = x.matrix.data, x.matrix.indices, x.matrix.indptr
        total = x.totals
        peaks, of_row = (
            row_sums(log_poisson_peak_of_counts(counts), ends) - log_poisson_peak_of_counts(total),
            total[x.checked_labels],
        )
        each = []
        for p in self._each:
            p = p / p.sum()
            rest = np.maximum(1.0 - row_sums(p[at], ends), 0.0)
            each.append(peaks - row_sums(deviance(counts, of_row * p[at]), ends) - total * rest)
        return np.stack(each, axis=1)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack, each of `length` counts."""
        probs = self.probs / self.probs.sum(axis=-1, keepdims=True)
        return rng.multinomial(int(self.length), probs, (n, *self.probs.shape[:-1])).astype(np.float64)

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """N p: expected counts in a row of total N = `length`."""
        return self.length * self.probs

    @property
    def variance(self) -> Array:
        """N p (1 − p)."""
        return self.length * self.probs * (1 - self.probs)

    @property
    def covariance(self) -> Array:
        """N (diag(p) − p pᵀ): (d, d), or (K, d, d) for a stack."""
        p = self.probs
        return self.length * (p[..., None] * np.eye(self.dim) - p[..., :, None] * p[..., None, :])

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy of a row of total N = `length`: −log N! − N Σ p log p + Σⱼ E[log xⱼ!], exactly; one per member.

        With length 1 that of one categorical draw, −Σ p log p.
        """
        n = float(self.length)
        each = [-n * xlogy(p, p).sum() + _expected_log_factorial(n, p) for p in self._each]
        return in_units(lone(np.reshape(each, self.probs.shape[:-1]) - log_factorial(np.array(n))), bits)

    def kl(self, other: Multinomial, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = N Σ p log(p / q) for rows of this distribution's length; member by member for stacks."""
        return in_units(lone(self.length * rel_entr(self.probs, other.probs).sum(axis=-1)), bits)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)] over rows of total `length`, summed exactly (by Monte Carlo where these are too many).

        >>> Multinomial([0.5, 0.5], length=2).expect(lambda x: x[..., 0] ** 2).value.round(10)
        np.float64(1.5)
        """
        total = int(self.length)
        if comb(total + self.dim - 1, self.dim - 1) * self.dim > LARGEST_SUM:
            return super().expect(g, n, rng)
        grid = all_rows(total, self.dim)
        x = grid if self.members is None else np.repeat(grid[:, None], self.members, axis=1)
        return weighted_sum(g(x), np.exp(self.log_prob(grid)))

    @property
    def n_parameters(self) -> int:
        """Free parameters: d − 1 per member."""
        return (self.dim - 1) * (self.members or 1)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Any, members: int | None = None) -> Multinomial:
        """Initial model: uniform; the length is the mean total of the rows, at least 1."""
        width = x.shape[1] if is_sparse(x) else rows(x, None, "Multinomial").shape[1]
        if width == 0:
            raise ShapeError(sentence("Multinomial", "at least one column is needed", n_rows(x)))
        n = max(n_rows(x), 1)
        total = SparseRows.of(x).totals.sum() if is_sparse(x) else np.nansum(rows(x, None, "Multinomial"))
        length = np.clip(np.rint(total / n), 1.0, 2.0**53) if np.isfinite(total) else 1.0
        shape = (width,) if members is None else (members, width)
        return cls.trusted(probs=np.full(shape, 1.0 / width), length=np.asarray(length))

    @classmethod
    def fit(cls, x: Rows, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Maximum-likelihood fit to weighted rows (or posterior mode); warns of fractions."""
        warn_of_fractions(x, cls.__name__, EXPECTED)
        return super().fit(x, weight, **options)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> MultinomialStats:
        """Sums of counts per column of rows (n, d), dense or sparse, and the weight of the rows.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to
        (−1: none). Missing counts are replaced by their expectations N_observed p / Σ p of the observed columns: the
        E-step of EM, in which unobserved columns may have counted while the others did.
        """
        n = n_rows(x)
        w = weights(weight, n, "Multinomial")
        x = count_rows(x, self.dim, "Multinomial")
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        shares = shares_of(w, labels, n, self.members, "Multinomial")
        if isinstance(x, SparseRows):
            if x.lowest < 0:
                x.refuse(x.matrix.data < 0, "Multinomial", "counts must not be negative")
            return self._counted(column_sums(x.matrix, shares), shares @ np.ones(n), shares @ x.log_coefficients)
        return self._collect_dense(rows(x, self.dim, "Multinomial"), shares)

    def _collect_dense(self, x: Array, shares: Any) -> MultinomialStats:
        refuse_infinite(x, "Multinomial")
        observed = ~np.isnan(x)
        counts = np.where(observed, x, 0.0)
        refuse_negative(counts, "Multinomial")
        ways = log_multinomial_coefficient(counts, counts.sum(axis=1))
        sums = shares @ counts, shares @ np.ones(len(x)), shares @ ways
        incomplete = np.flatnonzero(~observed.all(axis=1))
        if not len(incomplete):
            return self._counted(*sums)
        more, constant = self._filled(counts[incomplete].sum(axis=1), observed[incomplete], shares[:, incomplete])
        return self._counted(sums[0] + more, sums[1], sums[2] + constant, whole=False)

    def _filled(self, total: Array, observed: Mask, shares: Any) -> tuple[Array, Array]:
        """Expected counts of missing entries (K, d), and the entropy term of the free energy (K,)."""
        shares = shares.toarray() if hasattr(shares, "toarray") else shares
        share = observed.astype(np.float64) @ self._each.T
        known = share > SMALLEST
        times = shares * (total[:, None] * np.where(known, 1 / np.where(known, share, 1.0), 0.0)).T
        more = (times @ (~observed).astype(np.float64)) * self._each
        spent = (shares * xlogy(total[:, None], np.where(known, share, 1.0)).T).sum(axis=1)
        return more, -spent - xlogy(more, self._each).sum(axis=1)

    def _counted(self, counts: Any, rows: Any, constant: Any, whole: bool = True) -> MultinomialStats:
        parts = {"counts": np.asarray(counts), "rows": np.asarray(rows), "constant": np.asarray(constant)}
        return MultinomialStats.trusted(
            **{name: per_member(part, self.members) for name, part in parts.items()}, complete=whole
        )

    def refit(self, stats: MultinomialStats, prior: AnyPrior | None = None) -> Multinomial:
        """Relative frequencies, the maximum-likelihood estimate, or with a prior the posterior mode.

        >>> m = Multinomial([0.5, 0.5])
        >>> m.refit(m.collect([[3, 0], [2, 5]])).probs
        array([0.5, 0.5])
        """
        self._check(stats)
        if prior is not None:
            return self.replace(probs=prior.update(stats).point("mode").probs)
        if not stats.total_weight > 0:
            raise DataError(
                sentence("Multinomial", "at least one row with weight is needed", "none", "or give a prior")
            )
        total = stats.counts.sum(axis=-1, keepdims=True)
        return self.replace(probs=np.where(total > 0, stats.counts / np.where(total > 0, total, 1.0), self.probs))

    def objective(self, stats: MultinomialStats, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics, Σ nⱼ log pⱼ + constant (+ log prior)."""
        self._check(stats)
        value = float(xlogy(stats.counts, self.probs).sum() + np.sum(stats.constant))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: MultinomialStats) -> Any:
        """Weak symmetric `Dirichlet` prior: one pseudo-count, spread over the columns."""
        from likely.distributions.priors.multinomial_prior import MultinomialPrior

        return MultinomialPrior.weak(stats, self.length)

    def _check(self, stats: MultinomialStats) -> None:
        if stats.counts.shape != self.probs.shape:
            raise ShapeError(sentence("Multinomial", f"counts must be of shape {self.probs.shape}", stats.counts.shape))


@dataclass(frozen=True, eq=False)
class MultinomialStats(Addable, Value):
    """Sufficient statistics of a multinomial distribution: the sum of counts per column."""

    counts: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w x
    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    constant: Annotated[Array, declared.numbers("*")]  # (...): Σ w log N! / Π x!, and the entropy of missing entries
    complete: bool = True  # no missing values

    def __post_init__(self) -> None:
        names = ("counts", "rows", "constant")
        counts, rows, constant = (parameter(getattr(self, name), "MultinomialStats", name) for name in names)
        lead = counts.shape[:-1]
        if counts.ndim not in (1, 2) or rows.shape != lead or constant.shape != lead:
            got = (counts.shape, rows.shape, constant.shape)
            raise ShapeError(sentence("MultinomialStats", "shapes must be (..., d), (...) and (...)", got))
        if (counts < 0).any() or (rows < 0).any():
            raise DomainError(sentence("MultinomialStats", "counts must not be negative"))
        self._set(counts=counts, rows=rows, constant=constant)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def _each(self, f: Callable[[Array], Any]) -> Self:
        return self.replace(**{name: np.asarray(f(getattr(self, name))) for name in ("counts", "rows", "constant")})

    def __add__(self, other: MultinomialStats) -> Self:
        if self.counts.shape != other.counts.shape:
            raise ShapeError(
                sentence("MultinomialStats", f"both must have shape {self.counts.shape}", other.counts.shape)
            )
        return self.trusted(
            counts=self.counts + other.counts, rows=np.asarray(self.rows + other.rows),
            constant=np.asarray(self.constant + other.constant), complete=self.complete and other.complete,
        )  # fmt: skip

    def __mul__(self, factor: float) -> Self:
        return self._each(lambda part: part * factor)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled counts of all members."""
        return self if self.counts.ndim == 1 else self._each(lambda part: part.sum(axis=0))

    def member(self, k: Any) -> Self:
        """The counts of one member of a stack, or of several."""
        return self._each(lambda part: np.array(part[k]))


# ------------------------------------------------------------------------ rows


def count_rows(x: Any, columns: int, whose: str) -> Any:
    """Sliceable rows: sparse ones validated once, others unchanged."""
    if is_sparse(x):
        return SparseRows.of(x, columns, whose)
    return x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)


def observed_counts(block: Any, columns: int, whose: str) -> tuple[Array, Any, Any]:
    """Counts (n, d) with 0 for missing values, the observed mask (n, d), and which rows (n,) have no negative count."""
    z = rows(block, columns, whose)
    refuse_infinite(z, whose)
    observed = ~np.isnan(z)
    counts = np.where(observed, z, 0.0)
    possible: Mask = np.all(counts >= 0, axis=1)
    return np.where(possible[:, None], counts, 0.0), observed, possible


def refuse_negative(counts: Array, whose: str) -> None:
    """Raise for negative counts, naming row and column."""
    if counts.size and counts.min() < 0:
        i, j = np.argwhere(counts < 0)[0]
        remedy = "correct it, or replace it by NaN"
        raise BadEntry(whose, "counts must not be negative", counts[i, j], int(i), int(j), remedy)


def all_rows(total: int, columns: int) -> Array:
    """All rows of this many columns whose counts sum to `total`, in order.

    >>> all_rows(2, 2).tolist()
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """
    return np.array(list(_ways_to_share(total, columns)), dtype=np.float64)


def _ways_to_share(total: int, columns: int) -> Iterator[tuple[int, ...]]:
    if columns == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in _ways_to_share(total - first, columns - 1))


def _expected_log_factorial(n: float, probs: Array) -> float:
    """Σⱼ E[log xⱼ!] for binomial counts x of n draws, in blocks of columns."""
    if n < 2:
        return 0.0
    x = np.arange(n + 1.0)
    peaks, logs = (
        log_poisson_peak_of_counts(x) + log_poisson_peak_of_counts(n - x) - log_poisson_peak_of_counts(np.array(n)),
        log_factorial(x),
    )
    total, strip = 0.0, max(1, int(1e6 // len(x)))
    for a in range(0, len(probs), strip):
        p = np.clip(probs[a : a + strip, None], 0.0, 1.0)
        total += float((np.exp(peaks - deviance(x, n * p) - deviance(n - x, n * (1 - p))) @ logs).sum())
    return total
