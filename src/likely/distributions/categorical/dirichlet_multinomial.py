"""Dirichlet-multinomial distribution: overdispersed (bursty) counts of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import polygamma

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, Rows, n_rows, parameter, refuse_infinite, rows, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.categorical.dirichlet_multinomial_counts import DirichletMultinomialStats, urn_counts
from likely.distributions.categorical.multinomial import (
    EXPECTED,
    Multinomial,
    count_rows,
    observed_counts,
    refuse_negative,
)
from likely.distributions.categorical.sparse_counts import SparseRows, row_products, row_sums, shares_of
from likely.distributions.column_distribution import warn_of_fractions
from likely.distributions.distribution import Distribution
from likely.numerics.gamma_draws import draw_probabilities
from likely.numerics.newton_ascent import Objective, newton_maximize
from likely.numerics.polya_urn import (
    category_deviance,
    category_factors,
    log_product,
    nearly_certain,
    peak_factors,
    summation_error,
)
from likely.numerics.special import (
    count_by_count,
    gamma_excess,
    log_gamma_ratio,
    log_minus_digamma,
    log_multinomial_coefficient,
)

SMALLEST, LARGEST = 1e-8, 1e8  # bounds of α
STARTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # initial concentrations, of which the best is used


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(Distribution):
    """Dirichlet-multinomial distribution of overdispersed counts with a given total.

    log p(x | N) = log N! Γ(α₀) / Γ(N + α₀) + Σⱼ log Γ(xⱼ + αⱼ) / (Γ(αⱼ) xⱼ!), α₀ = Σ αⱼ   (Pólya urn).

    The predictive distribution of a row of counts, given its total N, under a `Dirichlet` prior of the probabilities. A
    negative count has probability 0; with NaN entries the row is that of the observed columns given their total, which
    has the same distribution with their α.

    Parameters
    ----------
    alpha : array-like (d,) or (K, d)
        Concentrations α; (K, d) is a stack of K members.
    length : float, default 1.0
        Total of the rows that `sample` draws.

    See Also
    --------
    Multinomial : The same with known probabilities.
    Dirichlet : The distribution of the probabilities.
    DirichletMultinomialDensity : The estimator.

    Examples
    --------
    >>> DirichletMultinomial([1.0, 1.0]).log_prob([[0, 2], [1, 1], [2, 0]]).round(4)
    array([-1.0986, -1.0986, -1.0986])
    """

    alpha: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)
    length: Annotated[Array, declared.numbers("", 0)] = 1.0  # type: ignore[assignment]  # ()

    def __post_init__(self) -> None:
        me = "DirichletMultinomial"
        alpha, length = parameter(self.alpha, me, "alpha"), parameter(self.length, me, "length")
        if alpha.ndim not in (1, 2) or 0 in alpha.shape:
            raise ShapeError(sentence(me, "alpha must have shape (d,) or (K, d)", alpha.shape))
        if not (alpha > 0).all():
            raise DomainError(sentence(me, "alpha must be positive", float(alpha.min())))
        if length.shape != () or length < 0 or length != np.floor(length) or length > 2**53:
            raise DomainError(sentence(me, "length must be one nonnegative integer", self.length))
        self._set(alpha=alpha, length=length)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.alpha.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.alpha) if self.alpha.ndim == 2 else None

    def member(self, k: int) -> DirichletMultinomial:
        """One member of a stack."""
        return self.replace(alpha=self.alpha[k].copy())

    def take(self, index: ArrayLike) -> DirichletMultinomial:
        """Stack of the selected members."""
        return self.replace(alpha=self.alpha[np.asarray(index)])

    def log_prob(self, x: Rows) -> Array:
        """Log-density log p(x | N) of rows, dense or sparse; warns of fractions."""
        warn_of_fractions(x, "DirichletMultinomial", EXPECTED)
        return map_rows(self.log_prob_block, count_rows(x, self.dim, "DirichletMultinomial"), self.members)

    def log_prob_block(self, block: Any) -> Array:
        """The same for the rows of a block, without the warning of fractions."""
        block = count_rows(block, self.dim, "DirichletMultinomial")
        out = self._sparse(block) if isinstance(block, SparseRows) else self._dense(block)
        return out if self.members else out[:, 0]

    def _dense(self, block: Any) -> Array:
        counts, observed, possible = observed_counts(block, self.dim, "DirichletMultinomial")
        total = counts.sum(axis=1)
        each = [_log_urn(counts, observed, total, alpha) for alpha in np.atleast_2d(self.alpha)]
        return np.where(possible[:, None], np.stack(each, axis=1), -np.inf)

    def _sparse(self, x: SparseRows) -> Array:
        counts, at, ends = np.maximum(x.matrix.data, 0.0), x.matrix.indices, x.matrix.indptr
        impossible = row_sums((x.matrix.data < 0).astype(np.float64), ends) > 0
        total, of = np.where(impossible, 0.0, x.totals), np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        each, alone = [], np.flatnonzero(row_sums((counts > 0).astype(np.float64), ends) == 1)
        drawn = np.flatnonzero((counts > 0) & np.isin(of, alone))  # of each such row, its one entry
        for alpha in np.atleast_2d(self.alpha):
            whole = float(alpha.sum())
            roots, rests = category_factors(counts, alpha[at], total[of], whole)
            root, rest = peak_factors(total, np.asarray(whole))
            logs = log_product(roots, root, lambda z: row_products(z, ends), lambda z: row_sums(z, ends))
            unseen = (row_sums(alpha[at], ends) - whole) * np.log1p(total / whole)  # columns with count 0
            found = np.asarray(logs + row_sums(rests, ends) - rest + unseen)
            others = all_but_one(alpha)[at[drawn]]
            found[alone] = nearly_certain(
                found[alone], np.ones(len(alone), dtype=bool), others, alpha[at[drawn]], total[alone]
            )
            each.append(np.where(impossible, -np.inf, found))
        return np.stack(each, axis=1)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack: probabilities from the Dirichlet, then `length` counts."""
        probs = draw_probabilities(self.alpha, n, rng)
        return rng.multinomial(int(self.length), probs).astype(np.float64)

    @property
    def mean(self) -> Array:
        """N α / α₀: expected counts in a row of total N = `length`."""
        return self.length * self.alpha / self.alpha.sum(axis=-1, keepdims=True)

    @property
    def variance(self) -> Array:
        """N m (1 − m) (N + α₀) / (1 + α₀) with m = α / α₀: larger than of a multinomial distribution."""
        whole = self.alpha.sum(axis=-1, keepdims=True)
        m = self.alpha / whole
        return self.length * m * (1 - m) * (self.length + whole) / (1 + whole)

    @property
    def n_parameters(self) -> int:
        """Free parameters: α."""
        return int(self.alpha.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Rows, members: int | None = None) -> DirichletMultinomial:
        """Initial model: uniform, α = 1; the length is the mean total of the rows, at least 1."""
        like = Multinomial.blank(x, members)
        return cls.trusted(alpha=np.ones(like.probs.shape), length=like.length)

    @classmethod
    def fit(cls, x: Rows, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Maximum-likelihood fit to weighted rows (or posterior mode); warns of fractions."""
        warn_of_fractions(x, cls.__name__, EXPECTED)
        return super().fit(x, weight, **options)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> DirichletMultinomialStats:
        """Frequencies of each count in each column of rows (n, d), dense or sparse, and of each row total.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1: none).
        Rows with missing values cannot be used, and are refused.
        """
        n = n_rows(x)
        w = weights(weight, n, "DirichletMultinomial")
        x = count_rows(x, self.dim, "DirichletMultinomial")
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        shares = shares_of(w, labels, n, self.members, "DirichletMultinomial")
        if isinstance(x, SparseRows):
            if x.lowest < 0:
                x.refuse(x.matrix.data < 0, "DirichletMultinomial", "counts must not be negative")
            return urn_counts(x.matrix, x.totals, x.log_coefficients, shares, self.members)
        z = rows(x, self.dim, "DirichletMultinomial")
        _refuse(z)
        total = z.sum(axis=1)
        ways = log_multinomial_coefficient(z, total)
        return urn_counts(scipy.sparse.csr_array(z), total, ways, shares, self.members)

    def refit(self, stats: DirichletMultinomialStats, prior: AnyPrior | None = None) -> DirichletMultinomial:
        """Maximum-likelihood α, or with a prior the posterior mode; a member without data keeps its parameters."""
        self._learns_from(stats)
        if prior is not None:
            return self._mode(prior, stats)
        if not stats.total_weight > 0:
            expected = "at least one row with weight is needed"
            raise DataError(sentence("DirichletMultinomial", expected, "none", "or give a prior"))
        alpha, width = np.array(np.atleast_2d(self.alpha)), self.dim + 1
        member, column = np.divmod(stats.cell, width)
        for k in range(len(alpha)):
            mine = member == k
            if (column[mine] == self.dim).any():  # rows with total 0 carry no information
                alpha[k] = fitted_alpha(column[mine], stats.value[mine], stats.each[mine], width, alpha[k])
        return self.replace(alpha=alpha.reshape(self.alpha.shape))

    def objective(self, stats: DirichletMultinomialStats, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._learns_from(stats)
        alpha = np.atleast_2d(self.alpha)
        each = np.concatenate([alpha, -alpha.sum(axis=1, keepdims=True)], axis=1).ravel()[stats.cell]
        logs = np.sign(each) * log_gamma_ratio(np.abs(each), stats.value)
        value = float(stats.each @ logs + np.sum(stats.log_coefficients))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: DirichletMultinomialStats) -> Any:
        """Pooled pseudo-observations of total weight 0.1, and a row with one count in each column."""
        from likely.distributions.priors.pseudo_data import PseudoData

        one = self.replace(alpha=np.ones(self.dim))
        pooled = stats.pooled()
        return PseudoData.weak(self, pooled + one.collect(np.ones((1, self.dim))))

    def _learns_from(self, stats: DirichletMultinomialStats) -> None:
        if stats.weight.shape != (*self.alpha.shape[:-1], self.dim + 1):
            expected = f"statistics must be those of alpha {self.alpha.shape}"
            raise ShapeError(sentence("DirichletMultinomial", expected, stats.weight.shape))


def _log_urn(counts: Array, observed: Any, total: Array, alpha: Array) -> Array:
    """Log-density of rows of counts; unobserved columns are left out."""
    there = np.where(observed, alpha, 0.0)
    whole = np.where(observed.any(axis=1), there.sum(axis=1), 1.0)[:, None]
    low = summation_error(alpha, alpha.sum()) if observed.all() else 0.0
    roots, rests = (
        count_by_count(counts, lambda *distribution, i=i: peak_factors(*distribution)[i], alpha) for i in (0, 1)
    )
    rests -= category_deviance(counts, alpha, total[:, None], whole, low)
    root, rest = peak_factors(total, whole[:, 0])
    if not observed.all():
        roots, rests = np.where(observed, roots, 1.0), np.where(observed, rests, 0.0)
    logs = log_product(roots, root, lambda z: z.prod(axis=1), lambda z: z.sum(axis=1))
    return _one_color(np.asarray(logs + (rests.sum(axis=1) - rest)), counts, total, there)


def _one_color(logs: Array, counts: Array, total: Array, alpha: Array) -> Array:
    """The same, where all counts of a row are in one column."""
    alone = (total > 0) & (np.count_nonzero(counts, axis=1) == 1)
    if not alone.any():
        return logs
    drawn = np.where(alone[:, None], counts > 0, False)
    mine, others = (np.where(part, alpha, 0.0).sum(axis=1) for part in (drawn, ~drawn))
    return nearly_certain(logs, alone, others, mine, total)


def all_but_one(parts: Array) -> Array:
    """For each entry, the sum of all others, without the cancellation of total minus entry.

    >>> all_but_one(np.array([1e-4, 1e20, 2e-4])).tolist()
    [1e+20, 0.00030000000000000003, 1e+20]
    """
    before, after = np.cumsum(parts)[:-1], np.cumsum(parts[::-1])[::-1][1:]
    return np.append(0.0, before) + np.append(after, 0.0)


def _refuse(z: Array) -> None:
    refuse_infinite(z, "DirichletMultinomial")
    refuse_negative(np.nan_to_num(z), "DirichletMultinomial")
    missing = np.argwhere(np.isnan(z))
    if len(missing):
        i, j = (int(k) for k in missing[0])
        expected = "rows to fit must have no missing values"
        raise BadEntry("DirichletMultinomial", expected, np.nan, i, j, "leave the row out")


# ---------------------------------------------------------- maximum likelihood


def fitted_alpha(cell: Index, value: Array, each: Array, width: int, old: Array) -> Array:
    """α (d,) for counts `value` > 0 of columns `cell`, d = width − 1; the last column holds totals of rows.

    log p = Σ w [log Γ(αⱼ + x)/Γ(αⱼ)] − Σ w [log Γ(α₀ + N)/Γ(α₀)] + constant (Minka 2000). Starts
    from the previous α, or from the relative frequencies, whichever is better.
    """
    d = width - 1
    last = cell == d
    counts = (cell[~last], value[~last], each[~last])
    share = np.bincount(counts[0], counts[1] * counts[2], d) + 1e-300
    share = share / share.sum()

    def objective(logs: Array) -> Objective:
        return _objective(logs, *counts, value[last], each[last])

    starts = [np.log(np.clip(one, SMALLEST, LARGEST)) for one in (old, *(share * size for size in STARTS))]
    best = max(starts, key=lambda logs: _log_likelihood(np.exp(logs), *counts, value[last], each[last]))
    return np.asarray(np.exp(newton_maximize(objective, best, np.log(SMALLEST), np.log(LARGEST))))


def _objective(logs: Array, at: Index, x: Array, w: Array, totals: Array, rows: Array) -> Objective:
    alpha = np.exp(logs)
    whole, a = float(alpha.sum()), alpha[at]
    common = float(rows @ _digamma_difference(np.asarray(whole), totals))
    slope = np.asarray((np.bincount(at, w * _digamma_difference(a, x), len(alpha)) - common) * alpha, dtype=np.float64)
    own = np.bincount(at, w * (polygamma(1, a) - polygamma(1, a + x)), len(alpha))
    lift = float(rows @ (polygamma(1, whole) - polygamma(1, whole + totals)))
    return Objective(_log_likelihood(alpha, at, x, w, totals, rows), slope, own * alpha**2 - slope, lift, alpha)


def _log_likelihood(alpha: Array, at: Index, x: Array, w: Array, totals: Array, rows: Array) -> float:
    """The log-likelihood: Γ(a + x)/Γ(a) as a^x times a factor near 1 for large a, without cancellation."""
    whole, a = float(alpha.sum()), alpha[at]
    return float(w @ (x * np.log(a / whole) + gamma_excess(a, x)) - rows @ gamma_excess(whole, totals))


def _digamma_difference(a: Array, x: Array) -> Array:
    """ψ(a + x) − ψ(a)."""
    return np.asarray(np.log1p(x / a) + log_minus_digamma(a) - log_minus_digamma(a + x))
