"""Negative binomial distribution: overdispersed counts, a gamma mixture of Poisson distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betainc, digamma

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, parameter, refuse_infinite, rows, weights
from likely.core.engine import map_rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import Note, warn
from likely.distributions.categorical.sparse_counts import (
    SparseRows,
    integer_counts,
    is_sparse,
    row_sums,
    shares_of,
    unstored,
)
from likely.distributions.column_distribution import LOOK, ValueDistribution
from likely.distributions.distribution import Estimate, in_units, lone
from likely.distributions.statistics.counts import draw_counts, exact_expectation, one_column, smallest
from likely.distributions.statistics.weighted_values import WeightedValues, sparse_values, weighted_values
from likely.numerics.root_finding import crossings
from likely.numerics.special import (
    count_by_count,
    deviance,
    log_minus_digamma,
    log_poisson_peak,
    log_poisson_peak_terms,
)

FEW = 1 << 17  # counts that are summed exactly; wider distributions are integrated beyond the first 4096
TAIL = 1e-25  # tail probability that is neglected
LIMIT = 1e8  # times the mean: a size from which the distribution is a Poisson distribution to eight digits
TINY = 1e-8  # lower bound of the size


@dataclass(frozen=True, eq=False)
class NegativeBinomial(ValueDistribution):
    """Negative binomial distribution of overdispersed counts.

    log p(x | r, p) = Σⱼ log Γ(xⱼ + r) / (Γ(r) xⱼ!) + r log p + xⱼ log(1 − p): independent counts in d columns.

    Counts with more variance than a Poisson distribution: its predictive distribution under a `Gamma` prior of the
    rate, with r the shape and p = b / (b + 1) for the rate b. The conjugate prior of p with r known is `Beta`. SciPy
    sparse matrices stay sparse; they cannot hold missing values.

    Parameters
    ----------
    size : array-like (d,) or (K, d)
        Sizes r.
    prob : array-like (d,) or (K, d)
        Probabilities p.
    rest : array-like (d,) or (K, d), optional
        1 − p, where that is known more precisely than p: p = 1 − 10⁻¹² keeps only four digits of it.

    See Also
    --------
    Poisson : Counts without overdispersion.
    BetaNegativeBinomial : The predictive distribution.
    NegativeBinomialDensity : The estimator.

    Examples
    --------
    >>> NegativeBinomial(2.0, 0.5).log_prob([0, 3]).round(4)
    array([-1.3863, -2.0794])
    """

    size: Annotated[Array, declared.numbers("* d", 0)]  # r: (d,) or (K, d)
    prob: Annotated[Array, declared.numbers("* d", 0)]  # p
    rest: Annotated[Array, declared.numbers("* d", 0)] = None  # type: ignore[assignment]  # 1 − p

    _domains: ClassVar[dict[str, str]] = {"size": "positive", "prob": "probability", "rest": "probability"}
    _support = "count"
    _harmless = 0.0

    def __post_init__(self) -> None:
        me = "NegativeBinomial"
        size, prob = parameter(self.size, me, "size"), parameter(self.prob, me, "prob")
        rest = 1.0 - prob if self.rest is None else parameter(self.rest, me, "rest")
        try:
            parts = [np.array(np.atleast_1d(a)) for a in np.broadcast_arrays(size, prob, rest)]
        except ValueError as error:
            raise ShapeError(sentence(me, "size and prob must broadcast", (size.shape, prob.shape))) from error
        size, prob, rest = parts
        if size.ndim > 2 or 0 in size.shape:
            raise ShapeError(sentence(me, "size and prob must be numbers, (d,) or (K, d)", size.shape))
        if not ((size > 0).all() and (prob > 0).all() and (prob <= 1).all()):
            raise DomainError(sentence(me, "size must be positive and prob lie in (0, 1]"))
        if not ((rest >= 0).all() and (np.abs(prob + rest - 1) <= 1e-15).all()):
            raise DomainError(sentence(me, "rest must be 1 - prob", remedy="leave it out"))
        self._set(size=size, prob=prob, rest=rest)

    # ---------------------------------------------------------------- density

    @staticmethod
    def _parameter_score(x: Array, size: Array, prob: Array) -> tuple[Array, ...]:
        """∂ log p by log size and by the log-odds of p."""
        return size * (digamma(x + size) - digamma(size) + np.log(prob)), size * (1 - prob) - x * prob

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows, dense or sparse. NaN is missing."""
        if is_sparse(x):
            x = SparseRows.of(x, self.dim, "NegativeBinomial")
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)
        distributions = [np.atleast_2d(part) for part in (self.size, self.prob, self.rest)]

        def evaluate(block: Any) -> Array:
            if isinstance(block, SparseRows):
                found = self._sparse(block, distributions)
                return found if self.members else found[:, 0]
            z = rows(block, self.dim, "NegativeBinomial")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "NegativeBinomial"), "NegativeBinomial")
            observed = ~np.isnan(z)
            possible = ~observed | ((z >= 0) & (z == np.floor(z)))
            counts = np.where(observed & possible, z, 0.0)
            each = [count_by_count(counts, log_pmf, *distribution) for distribution in zip(*distributions, strict=True)]
            sums = [np.where(possible, np.where(observed, logs, 0.0), -np.inf).sum(axis=1) for logs in each]
            return np.stack(sums, axis=1) if self.members else sums[0]

        return map_rows(evaluate, x, self.members)

    def _sparse(self, block: SparseRows, distributions: list[Array]) -> Array:
        """Log-density of sparse rows under each member (n, K): all entries that are not stored are 0."""
        block, possible = integer_counts(block)
        x, each = block.matrix, []
        for distribution in zip(*distributions, strict=True):
            stored = log_pmf(x.data, *(part[x.indices] for part in distribution))
            each.append(row_sums(stored, x.indptr) + unstored(log_pmf(np.zeros(self.dim), *distribution), block))
        out = np.stack(each, axis=1)
        if not np.all(possible):
            out[~possible] = -np.inf
        return out

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack: a rate from the gamma distribution, then a count."""
        with np.errstate(over="ignore"):
            odds = np.minimum(self.rest / self.prob, 1e300)  # else 0 · ∞, where the gamma variate underflows
        rate = rng.standard_gamma(self.size, (n, *self.size.shape)) * odds
        return draw_counts(rate, rng)

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Mean r (1 − p) / p."""
        return self.size * self.rest / self.prob

    @property
    def variance(self) -> Array:
        """Variance r (1 − p) / p², larger than the mean."""
        return self.mean / self.prob

    @property
    def mode(self) -> Array:
        """The most likely count: ⌊(r − 1)(1 − p) / p⌋, 0 for r ≤ 1."""
        return np.floor(np.maximum(self.size - 1, 0.0) * self.rest / self.prob)

    @property
    def median(self) -> Array:
        """The median of each column: the smallest count with P(X ≤ x) ≥ ½."""
        return smallest(lambda x: betainc(self.size, x + 1, self.prob) >= 0.5, self.mean)

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σ p log p, summed exactly; the smooth far tail by quadrature."""
        distributions = zip(self.size.ravel(), self.prob.ravel(), self.rest.ravel(), strict=True)
        each = np.array([_entropy(*distribution) for distribution in distributions]).reshape(self.size.shape)
        return in_units(lone(each.sum(axis=-1)), bits)

    def kl(self, other: NegativeBinomial, bits: bool = False) -> PerMember:
        """KL(self ‖ other): (r/p) Σ p log p/p′ where sizes are equal, else summed; the neglected tail is below 10⁻²⁰.

        Infinite where other has all its probability at 0 and self does not.

        >>> NegativeBinomial(2.0, 0.5).kl(NegativeBinomial(2.0, 0.25)).__round__(6)
        0.575364
        """
        self._same_shape(other)
        distributions = np.broadcast_arrays(
            *(
                part
                for distribution in (self, other)
                for part in (distribution.size, distribution.prob, distribution.rest)
            )
        )
        each = np.array(
            [_divergence(*one) for one in zip(*(part.ravel().tolist() for part in distributions), strict=True)]
        )
        return in_units(lone(each.reshape(distributions[0].shape).sum(axis=-1)), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for one column: the regularized incomplete beta function I_p(r, x + 1)."""
        r, p, _ = self._one_distribution()
        count = np.floor(one_column(x, self.members))
        return np.where(count < 0, 0.0, betainc(r, np.maximum(count, 0.0) + 1, p))

    def quantile(self, p: ArrayLike) -> Array:
        """The smallest count x with P(X ≤ x) ≥ p, for one column; (n, K) for a stack."""
        size, prob, rest = self._one_distribution()
        p = np.asarray(p, dtype=np.float64)
        p, size, prob, rest = np.broadcast_arrays(p[..., None] if self.members else p, size, prob, rest)
        inside = (p >= 0) & (p < 1)
        target = np.where(inside, p, 0.0)
        found = smallest(lambda x: betainc(size, x + 1, prob) >= target, size * rest / prob)
        return np.where(inside, found, np.where(p == 1, np.where(rest > 0, np.inf, 0.0), np.nan))

    def _one_distribution(self) -> tuple[Any, Any, Any]:
        if self.dim != 1:
            expected = "cdf and quantile are for one column"
            raise DomainError(sentence("NegativeBinomial", expected, f"{self.dim} columns"))
        return self.size[..., 0], self.prob[..., 0], self.rest[..., 0]

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all counts that matter (by Monte Carlo where these are too many)."""
        low, high = (np.atleast_2d(edge) for edge in support(self.size, self.prob, self.rest))
        return exact_expectation(self, g, low.min(axis=0), high.max(axis=0)) or super().expect(g, n, rng)

    @property
    def n_parameters(self) -> int:
        """Free parameters: a size and a probability per column."""
        return 2 * int(self.size.size)

    # --------------------------------------------------------------- learning

    @classmethod
    def _plain(cls, d: int) -> NegativeBinomial:
        return cls.trusted(size=np.ones(d), prob=np.full(d, 0.5), rest=np.full(d, 0.5))

    def _log_pdf(self, x: Array, size: Array, prob: Array, rest: Array) -> Array:
        """log p, extended to fractional (expected) counts."""
        return log_pmf(x, size, prob, rest)

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, **fixed: Any) -> NegativeBinomial:
        """Initial model: fitted to a block of rows, dense or sparse."""
        if not is_sparse(x):
            return super().blank(x, members, **fixed)
        some = SparseRows.of(x, None, "NegativeBinomial")[:LOOK]
        if some.shape[1] == 0:
            raise ShapeError(sentence("NegativeBinomial", "at least one column is needed", some.shape))
        plain = cls._plain(some.shape[1])
        found = plain.refit(plain.collect(some)) if len(some) else plain
        stack = {name: np.repeat(part[None], members or 1, axis=0) for name, part in found.parameters.items()}
        return found if members is None else found.replace(**stack)

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> WeightedValues:
        """Distinct counts of weighted rows (n, d), dense or sparse, with their weights; missing values are skipped."""
        if not is_sparse(x):
            return super().collect(x, weight, labels)
        x = SparseRows.of(x, self.dim, "NegativeBinomial")
        if x.lowest < 0:
            x.refuse(x.matrix.data < 0, "NegativeBinomial", "counts must not be negative")
        w = weights(weight, len(x), "NegativeBinomial")
        shares = shares_of(w, labels, len(x), self.members, "NegativeBinomial")
        return sparse_values(x.matrix, shares, self.members)

    def _from_cells(self, stats: WeightedValues, flat: dict[str, Array]) -> None:
        size, mean = fitted_sizes(stats.cell, stats.value, stats.each, stats.weight.size)
        observed, counted = stats.weight.ravel() > 0, mean > 0
        # all counts 0: probability 1 at 0, whatever the size
        flat["size"][observed & counted] = size[observed & counted]
        flat["prob"][observed] = np.where(counted, size / (size + mean), 1.0)[observed]
        flat["rest"][observed] = np.where(counted, mean / (size + mean), 0.0)[observed]

    @property
    def poisson_like(self) -> Array:
        """Mask of columns that are not overdispersed, whose size is at its upper bound (..., d)."""
        return np.asarray(self.size >= limit_of(self.mean) * (1 - 1e-6))

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> NegativeBinomial:
        """Maximum-likelihood fit to weighted rows; warns of columns that are not overdispersed."""
        found = super().fit(x, weight, **options)
        if found.poisson_like.any():
            at = np.flatnonzero(np.atleast_2d(found.poisson_like).any(axis=0)).tolist()
            text = "{columns} not overdispersed: size is at its upper bound (Poisson limit)"
            warn(Note("NegativeBinomial", text, columns=tuple(at)))
        return found

    def weak_prior(self, stats: WeightedValues) -> Any:
        """Pooled pseudo-observations of total weight 0.1; where all counts are 0, half an event in all rows."""
        from likely.distributions.priors.pseudo_data import PseudoData

        pooled = stats.pooled()
        if not pooled.total_weight > 0:
            return PseudoData.weak(self, stats)
        total = np.bincount(pooled.cell, pooled.each * pooled.value, pooled.weight.size)
        events = np.where((total > 0) | (pooled.weight <= 0), np.nan, 1.0)[None]
        rare = weighted_values(events, np.full((1, 1), 0.5), None).replace(rows=np.asarray(0.0))
        return PseudoData.weak(self, pooled + rare)

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> NegativeBinomial:
        """The distribution with this mean and variance, which must be the larger: p = m / v, r = m² / (v − m).

        >>> NegativeBinomial.from_moments(3.0, 12.0).size
        array([1.])
        """
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        if not ((mean > 0) & (variance > mean)).all():
            expected = "the variance must exceed the mean, which must be positive"
            raise DomainError(
                sentence("NegativeBinomial.from_moments", expected, (mean, variance), "take a Poisson distribution")
            )
        return cls(mean**2 / (variance - mean), mean / variance, (variance - mean) / variance)


def log_pmf(x: Array, r: Any, p: Any, q: Any) -> Array:
    """log-probability of counts, in a form without cancellation: binomial probability of r among n = r + x.

    log r/n + peak(r) + peak(x) − peak(n) − deviance(r, np) − deviance(x, nq), peak being `log_poisson_peak`; r log p
    where x is 0.
    """
    x = np.asarray(x, dtype=np.float64)
    n = r + x
    with np.errstate(divide="ignore"):
        log_p = np.where(q < 0.5, np.log1p(-np.minimum(q, 0.5)), np.log(p))
        (u_n, s_n), (u_r, s_r), (u_x, s_x) = (log_poisson_peak_terms(part) for part in (n, r, x))
        height = np.log(r / n * np.sqrt(u_n / (u_r * u_x))) + (s_n - s_r - s_x)
    many = height - deviance(r, n * p) - deviance(x, n * q)
    return np.asarray(np.where(x == 0, r * log_p, many))


def support(r: Any, p: Any, q: Any) -> tuple[Array, Array]:
    """First and last count outside of which the probability is negligible."""
    start = r * q / p
    low = smallest(lambda x: betainc(r, x + 1, p) > TAIL, start)
    return low, smallest(lambda x: betainc(x + 1, r, q) < TAIL, start)


def _entropy(r: float, p: float, q: float) -> float:
    def term(x: Array) -> Array:
        logs = log_pmf(x, r, p, q)
        return -np.exp(logs) * np.where(np.isfinite(logs), logs, 0.0)

    low, high = (float(edge) for edge in support(np.asarray(r), np.asarray(p), np.asarray(q)))
    if high - low < FEW:
        return float(term(np.arange(low, high + 1)).sum())
    first = max(low, 4096.0)
    near = term(np.arange(low, first)).sum() if low < first else 0.0
    return float(near + _smooth_sum(lambda x: _smooth_term(x, r, p, q), first, high, r * q / p, np.sqrt(r * q) / p))


def _divergence(r: float, p: float, q: float, s: float, u: float, v: float) -> float:
    """KL of the distribution (r, p, q) from the distribution (s, u, v)."""
    from likely.distributions.statistics.expected_counts import expected

    if v == 0:
        return 0.0 if q == 0 else np.inf
    if r == s:
        return float(r / p * (deviance(p, u) + deviance(q, v)))
    last = float(support(np.asarray(r), np.asarray(p), np.asarray(q))[1])
    gap = expected(
        lambda x: log_pmf(x, r, p, q), lambda x: log_pmf(x, r, p, q) - log_pmf(x, s, u, v), (r - 1) * q / p, last
    )
    return max(gap, 0.0)


def _smooth_term(x: Array, r: float, p: float, q: float) -> Array:
    """−p log p, extended to real x."""
    n = r + x
    peaks = log_poisson_peak(r) + log_poisson_peak(x) - log_poisson_peak(n)
    logs = np.log(r / n) + peaks - deviance(r, n * p) - deviance(x, n * q)
    return -np.exp(logs) * logs


def _smooth_sum(f: Callable[[Array], Array], first: float, last: float, mean: float, deviation: float) -> float:
    """Σ f over the integers first … last, for smooth f.

    Euler–Maclaurin formula: ∫ from first − ½ on, + [f(first) − f(first − 1)] / 24; the rest is below 10⁻¹⁴ of it.
    """
    nodes, shares = np.polynomial.legendre.leggauss(32)
    grid = [mean + deviation * np.arange(-16.0, 64.0, 0.5), np.geomspace(first - 0.5, last, 200)]
    edges = np.unique(np.clip(np.concatenate(grid), first - 0.5, last))
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    integral = (f(middle[:, None] + half[:, None] * nodes) @ shares) @ half
    return float(integral + (f(np.asarray(first)) - f(np.asarray(first - 1))) / 24)


# ---------------------------------------------- maximum likelihood of the size


def limit_of(mean: Any) -> Array:
    """Upper bound of the size, where the distribution is Poisson to eight digits."""
    return np.asarray(LIMIT * np.maximum(mean, 1.0))


def fitted_sizes(cell: Index, x: Array, w: Array, cells: int) -> tuple[Array, Array]:
    """Maximum-likelihood sizes r and means m (cells,) for weighted counts x of each cell, in order.

    The ML mean is the mean of the counts whatever r is. The derivative of the profile likelihood in r changes sign once
    if the variance exceeds the mean, and stays positive otherwise: the optimum is then a Poisson distribution, and r is
    `limit_of(m)`. Where all counts are 0, r is 1.
    """
    total = np.bincount(cell, w, cells)
    known = np.where(total > 0, total, 1.0)
    mean = np.bincount(cell, w * x, cells) / known
    spread = np.bincount(cell, w * (x - mean[cell]) ** 2, cells) / known
    most = limit_of(mean)
    size = np.where(mean > 0, most, 1.0)
    open_ = np.flatnonzero((mean > 0) & (spread > mean))
    slope = _slopes(cell, x, w, mean, open_)
    inside = slope(most[open_], np.arange(len(open_))) < 0
    open_ = open_[inside]
    slope = _slopes(cell, x, w, mean, open_)
    least = slope(np.full(len(open_), TINY), np.arange(len(open_))) <= 0
    size[open_[least]] = TINY
    open_ = open_[~least]
    slope = _slopes(cell, x, w, mean, open_)
    low, high = np.full(len(open_), np.log(TINY)), np.log(most[open_])
    size[open_] = np.exp(crossings(lambda t, which: slope(np.exp(t), which), low, high))
    return size, mean


def _slopes(cell: Index, x: Array, w: Array, mean: Array, cells: Index) -> Any:
    """r² d/dr of the profile log-likelihood of some cells at p = r / (r + m), as a function of sizes and cells.

    Σ w [ψ(x + r) − ψ(r) − log(1 + m/r)], without cancellation: log(1 + x/r) − log(1 + m/r) is (x − m)/(r + m), which
    sums to 0, less a deviance of 1 from (r + x)/(r + m).
    """
    start, end = np.searchsorted(cell, cells), np.searchsorted(cell, cells, side="right")

    def slope(r: Array, which: Index) -> Array:
        if not len(which):
            return np.empty(0)
        many = (end - start)[which]
        first = np.concatenate([[0], np.cumsum(many)[:-1]])
        at = np.arange(many.sum()) - np.repeat(first - start[which], many)
        m, size = np.repeat(mean[cells[which]], many), np.repeat(r, many)
        t = (x[at] - m) / (size + m)
        each = np.repeat(log_minus_digamma(r), many) - log_minus_digamma(size + x[at]) - deviance(1.0, 1.0 + t, -t)
        return np.asarray(r * r * np.add.reduceat(w[at] * each, first))

    return slope
