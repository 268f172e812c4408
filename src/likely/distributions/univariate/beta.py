"""Beta distribution: density, maximum-likelihood fit, and conjugate prior of success probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, digamma, gammaln

from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    PerMember,
    check_option,
    n_rows,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
)
from likely.core.engine import map_rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyDensity, PointRule
from likely.distributions.binary.bernoulli import Bernoulli, Trials
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.column_distribution import FeatureDistribution, same_columns
from likely.distributions.distribution import added, in_units, lone
from likely.distributions.statistics.counts import one_column
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.statistics.weighted_values import WeightedValues
from likely.distributions.univariate.beta_binomial import BetaBinomial
from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial, log_coefficients
from likely.distributions.univariate.binomial import Binomial, Successes
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.numerics.gamma_dirichlet_shapes import LARGEST, dirichlet_expected_log_prob, dirichlet_shapes
from likely.numerics.special import gamma_excess, log_gamma_density, log_gamma_ratio

STRENGTH = 1.0  # pseudo-counts of the weak prior
BetaLikelihood = Literal["bernoulli", "binomial", "negative binomial"]


@dataclass(frozen=True, eq=False)
class Beta(FeatureDistribution):
    """Beta distribution; also the conjugate prior of a probability.

    log p(x | a, b) = Σⱼ (a − 1) log xⱼ + (b − 1) log(1 − xⱼ) − log B(a, b) in d independent columns.

    The conjugate prior of `Bernoulli`, with a − 1 and b − 1 pseudo-counts of ones and zeros. One prior can be used for
    all members of a stack of Bernoulli distributions, and one of a single column for all their columns. It is also the
    conjugate prior of a `Binomial` with known trials, and of the p of a `NegativeBinomial` with known size. Statistics
    of Bernoulli and binomial distributions set which.

    As a density of proportions it can be fitted: `Beta.fit` finds a and b, from 10⁻⁸ to 10¹², by Newton's method for
    their logarithms. 0 and 1 have no finite logarithms: fitting refuses them, by row and column. A column so narrow
    that the parameters would exceed 10¹² gets a warning: sums of logarithms do not determine them there.

    Parameters
    ----------
    a : array-like (d,) or (K, d)
        First shape parameter: 1 plus the pseudo-count of ones.
    b : array-like (d,) or (K, d)
        Second shape parameter: 1 plus the pseudo-count of zeros.
    likelihood : {"bernoulli", "binomial", "negative binomial"}, default "bernoulli"
        Whose probability it is the prior of.
    known : array-like, optional
        The known trials of a binomial, or the known size of a negative binomial distribution.

    See Also
    --------
    Bernoulli : Its likelihood.
    Dirichlet : The prior of more than two probabilities.
    BetaDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.1.

    Examples
    --------
    >>> Beta(1.0, 1.0).update(Bernoulli(0.5).collect([1, 1, 1])).mean
    array([0.8])
    >>> Beta(1.0, 1.0).update(Binomial(3, 0.5).collect([3])).predictive()
    BetaBinomial(trials=[3.], a=[4.], b=[1.])
    """

    serves = ("Bernoulli", "Binomial", "NegativeBinomial")  # distributions that it is the conjugate prior of

    a: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)
    b: Annotated[Array, declared.numbers("* d", 0)]
    # "binomial" or "negative binomial": the likelihood of the prior
    likelihood: BetaLikelihood = "bernoulli"
    # the trials, or the size: a number, (d,) or (K, d)
    known: Annotated[Array | None, declared.maybe(declared.numbers("* d | d | ", 0))] = None

    _domains: ClassVar[dict[str, str]] = {"a": "positive", "b": "positive"}
    _spreads: ClassVar[bool] = True
    _support = "unit"
    _n_features = 2
    _limits: ClassVar[dict[str, tuple[float, str]]] = {
        name: (LARGEST * (1 - 1e-9), f"too narrow for {name} to be estimated") for name in ("a", "b")
    }

    def __post_init__(self) -> None:
        a, b = parameter(self.a, "Beta", "a"), parameter(self.b, "Beta", "b")
        try:
            a, b = (np.array(np.atleast_1d(part)) for part in np.broadcast_arrays(a, b))
        except ValueError as error:
            raise ShapeError(sentence("Beta", "a and b must broadcast", (a.shape, b.shape))) from error
        if a.ndim > 2 or 0 in a.shape:
            raise ShapeError(sentence("Beta", "a and b must be numbers, (d,) or (K, d)", a.shape))
        if not ((a > 0).all() and (b > 0).all()):
            raise DomainError(sentence("Beta", "a and b must be positive", float(min(a.min(), b.min()))))
        self._set(a=a, b=b, known=self._checked_known(a.shape))

    def _checked_known(self, shape: tuple[int, ...]) -> Array | None:
        check_option(self.likelihood, BetaLikelihood, "Beta", "likelihood")
        if (self.known is None) != (self.likelihood == "bernoulli"):
            expected = "known trials (binomial) or a known size (negative binomial) are needed, and none for Bernoulli"
            raise DomainError(sentence("Beta", expected, (self.likelihood, self.known)))
        if self.known is None:
            return None
        known = parameter(self.known, "Beta", "known")
        if (
            known.ndim > 2
            or not (known > 0).all()
            or (self.likelihood == "binomial" and (known != np.floor(known)).any())
        ):
            raise DomainError(sentence("Beta", "known must be positive, and trials integers", known))
        try:
            np.broadcast_shapes(known.shape, shape)
        except ValueError as error:
            raise ShapeError(sentence("Beta", "known must broadcast to a and b", (known.shape, shape))) from error
        return known

    @classmethod
    def weak(cls, stats: Trials | Successes, strength: float = STRENGTH) -> Beta:
        """Weak prior with one pseudo-count, whose mode is the pooled mean: a single column keeps its ML estimate.

        Where all rows agree the mode is half a count from the boundary: no probability becomes 0 or 1.
        """
        pooled = stats.pooled()
        edge = 0.5 / (pooled.ones + pooled.zeros + 1.0)
        observed = pooled.ones + pooled.zeros > 0
        mean = np.where(observed, np.clip(pooled.mean, edge, 1.0 - edge), 0.5)
        likelihood = {"likelihood": "binomial", "known": pooled.trials} if isinstance(pooled, Successes) else {}
        return cls.trusted(a=1.0 + strength * mean, b=1.0 + strength * (1.0 - mean), **likelihood)

    @classmethod
    def symmetric(cls, columns: int, rows: float) -> Beta:
        """Symmetric prior with r pseudo-counts of ones and of zeros: the mode is (n₁ + r) / (n + 2r).

        Parameters
        ----------
        columns : int
            Number of columns.
        rows : float
            Pseudo-counts r.
        """
        return cls(np.full(columns, 1.0 + rows), np.full(columns, 1.0 + rows))

    def member(self, k: int) -> Beta:
        """One member of a stack."""
        known = self.known if self.known is None or self.known.ndim < 2 else self.known[k].copy()
        return self.replace(a=self.a[k].copy(), b=self.b[k].copy(), known=known)

    def _pairs(self) -> Dirichlet:
        """Each column's beta distribution as a Dirichlet distribution of (x, 1 − x), all in one stack."""
        return Dirichlet.trusted(alpha=np.stack([self.a.ravel(), self.b.ravel()], axis=1), levels=None)

    def _first(self, each: Any) -> Array:
        """The first entry of each pair, in the shape of the parameters."""
        return np.reshape(each[..., 0], (*each.shape[:-2], *self.a.shape)).copy()

    # ---------------------------------------------------------------- the distribution

    @staticmethod
    def _parameter_score(x: Array, a: Array, b: Array) -> tuple[Array, ...]:
        """∂ log p by log a and log b."""
        both = digamma(a + b)
        return a * (np.log(x) - digamma(a) + both), b * (np.log1p(-x) - digamma(b) + both)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows; −inf outside 0 … 1. NaN is missing."""
        x = sliceable(x, self.dim)
        distributions = list(zip(np.atleast_2d(self.a), np.atleast_2d(self.b), strict=True))

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Beta")
            refuse_infinite(z, "Beta")
            each = [added(_log_density(z, *distribution)) for distribution in distributions]
            return np.stack(each, axis=1) if self.members else each[0]

        return map_rows(evaluate, x, self.members)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack; never exactly 0 or 1, where the density may be infinite."""
        info = np.finfo(np.float64)
        return np.clip(self._first(self._pairs().sample(n, rng)), info.tiny, 1.0 - info.epsneg)

    @property
    def mean(self) -> Array:
        """Mean a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Array:
        """Variance m (1 − m) / (a + b + 1)."""
        whole = self.a + self.b
        return self.mean * (self.b / whole) / (whole + 1)

    @property
    def mode(self) -> Array:
        """(a − 1) / (a + b − 2); 0 for a ≤ 1 < b, 1 for b ≤ 1 < a, and the mean where there is no unique mode."""
        return self._first(self._pairs().mode)

    @property
    def median(self) -> Array:
        """The median of each column."""
        return beta_quantile(self.a, self.b, 0.5)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for one column."""
        a, b = self._one_distribution()
        return np.asarray(betainc(a, b, np.clip(one_column(x, self.members), 0.0, 1.0)))

    def quantile(self, p: ArrayLike) -> Array:
        """The x with P(X ≤ x) = p, for one column; (n, K) for a stack."""
        a, b = self._one_distribution()
        p = np.asarray(p, dtype=np.float64)
        return beta_quantile(a, b, p[..., None] if self.members else p)

    def _one_distribution(self) -> tuple[Any, Any]:
        if self.dim != 1:
            raise DomainError(sentence("Beta", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.a[..., 0], self.b[..., 0]

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy log B(a, b) − (a − 1) ψ(a) − (b − 1) ψ(b) + (a + b − 2) ψ(a + b), summed over columns."""
        return in_units(lone(np.reshape(self._pairs().entropy(), self.a.shape).sum(axis=-1)), bits)

    def kl(self, other: Beta, bits: bool = False) -> PerMember:
        """KL(self ‖ other), column by column as that of `Dirichlet`, summed; member by member for stacks."""
        same_columns(self, other)
        return in_units(lone(np.reshape(self._pairs().kl(other._pairs()), self.a.shape).sum(axis=-1)), bits)

    @property
    def n_parameters(self) -> int:
        """Free parameters: two per column."""
        return 2 * int(self.a.size)

    # -------------------------------------------------------------- the prior

    def update(self, stats: Trials | Successes | WeightedValues) -> Beta:
        """The posterior: ones add to a, zeros to b; for negative binomial counts, r per row to a and counts to b."""
        ones, zeros, likelihood = self._successes_and_failures(stats)
        return self.replace(a=self.a + ones, b=self.b + zeros, **likelihood)

    def _successes_and_failures(self, stats: Any) -> tuple[Array, Array, dict[str, Any]]:
        """Successes, failures, and the likelihood that the statistics belong to."""
        if isinstance(stats, WeightedValues):
            return self._negative_binomial_counts(stats)
        if not isinstance(stats, Trials | Successes):
            got, remedy = type(stats).__name__, "collect them with a Bernoulli or Binomial distribution"
            raise DomainError(sentence("Beta", "statistics of successes and failures are needed", got, remedy))
        self._serves(stats.ones.shape, "statistics")
        coins = {"likelihood": "bernoulli", "known": None}
        likelihood = {"likelihood": "binomial", "known": stats.trials} if isinstance(stats, Successes) else coins
        return stats.ones, stats.zeros, likelihood

    def _negative_binomial_counts(self, stats: WeightedValues) -> tuple[Array, Array, dict[str, Any]]:
        """A negative binomial count is the number of failures before the r-th success."""
        if self.likelihood != "negative binomial":
            remedy = 'Beta(a, b, "negative binomial", known=size)'
            raise DomainError(
                sentence("Beta", "the size of negative binomial counts must be known", self.likelihood, remedy)
            )
        self._serves(stats.weight.shape, "statistics")
        failures: Array = np.bincount(stats.cell, stats.each * stats.value, stats.weight.size).astype(np.float64)
        size = self._known(stats.weight.shape)
        return stats.weight * size, failures.reshape(size.shape), {"known": size}

    def _known(self, shape: tuple[int, ...]) -> Array:
        return np.array(np.broadcast_to(np.asarray(self.known), shape))

    def point(self, rule: PointRule = "mode") -> AnyDensity:
        """Bernoulli, binomial or negative binomial distribution at the "mode", "mean" or "median" probabilities."""
        check_option(rule, PointRule, "Beta", "rule")
        return self._distribution(np.array(getattr(self, rule)), rule)

    def _distribution(self, probs: Array, rule: str = "draw") -> Any:
        if self.likelihood == "bernoulli":
            return Bernoulli.trusted(probs=probs)
        if self.likelihood == "binomial":
            return Binomial.trusted(trials=self._known(probs.shape), probs=probs)
        if not (probs > 0).all():
            remedy = 'take the "mean", or a prior with a above 1'
            raise DomainError(sentence("Beta", f"the {rule} of a negative binomial p must not be 0", remedy=remedy))
        return NegativeBinomial.trusted(size=self._known(probs.shape), prob=probs, rest=1.0 - probs)

    def draw(self, rng: Generator) -> AnyDensity:
        """A Bernoulli, binomial or negative binomial distribution with probabilities from this distribution."""
        return self._distribution(self.sample(1, rng)[0].copy())

    def predictive(self) -> AnyDensity:
        """Posterior predictive: Bernoulli with probability a / (a + b) (Herbst 2.1); for binomial, `BetaBinomial`.

        For negative binomial counts it is a `BetaNegativeBinomial` distribution.
        """
        if self.likelihood == "bernoulli":
            return self.point("mean")
        a, b, known = np.array(self.a), np.array(self.b), self._known(self.a.shape)
        if self.likelihood == "binomial":
            return BetaBinomial.trusted(trials=known, a=a, b=b)
        return BetaNegativeBinomial.trusted(size=known, a=a, b=b)

    def log_evidence(self, stats: Trials | Successes | WeightedValues) -> PerMember:
        """Log marginal likelihood of the rows in sequence, probabilities integrated out; one per member for a stack.

        Σⱼ log B(a + n₁, b + n₀) / B(a, b), plus the logs of the binomial coefficients.
        """
        ones, zeros, _ = self._successes_and_failures(stats)
        terms = log_gamma_ratio(self.a, ones) + log_gamma_ratio(self.b, zeros)
        value = (terms - log_gamma_ratio(self.a + self.b, ones + zeros)).sum(axis=-1)
        if isinstance(stats, Successes):
            value = value + stats.log_coefficients
        elif isinstance(stats, WeightedValues):
            value = value + log_coefficients(stats, self._known(stats.weight.shape))
        return lone(value)

    def log_density(self, model: Any) -> PerMember:
        """Log prior density of the probabilities of a Bernoulli, binomial or negative binomial; one per member."""
        probs = model.prob if isinstance(model, NegativeBinomial) else model.probs
        self._serves(probs.shape, "a model")
        return lone(added(_log_density(probs, self.a, self.b)))

    def _serves(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("Beta", f"{what} of a shape that fits {self.a.shape} is needed", shape))

    # --------------------------------------------------------------- learning

    @classmethod
    def _plain(cls, d: int) -> Self:
        return cls.trusted(a=np.ones(d), b=np.ones(d))

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Self:  # type: ignore[override]
        """Initial model: as many columns as the rows have, each uniform."""
        width = rows(x, None, "Beta").shape[1]
        if width == 0:
            raise ShapeError(sentence("Beta", "at least one column is needed", n_rows(x)))
        shape = (width,) if members is None else (members, width)
        return cls.trusted(a=np.ones(shape), b=np.ones(shape))

    def _features(self, x: Array) -> list[Array]:
        return [np.log(x), np.log1p(-x)]

    def _collected(self, z: Array, shares: Any) -> FeatureSums:
        bad = np.argwhere((z == 0) | (z == 1))
        if len(bad):
            i, j = (int(k) for k in bad[0])
            remedy = "replace it by NaN, or by its value before rounding"
            raise BadEntry("Beta", "values to fit must lie between 0 and 1", z[i, j], i, j, remedy)
        return super()._collected(z, shares)

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        cells = np.stack([means[0].ravel(), means[1].ravel()], axis=1)
        found = np.array([dirichlet_shapes(cell) for cell in cells]).reshape(*means[0].shape, 2)
        return {"a": found[..., 0].copy(), "b": found[..., 1].copy()}

    def _expected_log(self, means: list[Array], a: Array, b: Array) -> Array:
        return dirichlet_expected_log_prob(np.stack([a, b], axis=-1), np.stack(means, axis=-1))

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """The distribution with this mean m and variance v < m (1 − m): a + b = m (1 − m) / v − 1."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        whole = mean * (1 - mean) / np.where(variance > 0, variance, np.nan) - 1
        if not ((mean > 0) & (mean < 1) & (whole > 0)).all():
            expected = "the mean must lie in (0, 1) and the variance between 0 and m (1 − m)"
            raise DomainError(sentence("Beta.from_moments", expected, (mean, variance)))
        a, b = np.atleast_1d(mean * whole), np.atleast_1d((1 - mean) * whole)
        return cls.trusted(a=np.array(a), b=np.array(b))


def beta_quantile(a: Any, b: Any, p: Any) -> Array:
    """Quantile x with P(X ≤ x) = p: SciPy's `betaincinv`; next to 0, where that fails, from p = xᵃ / (a B(a, b))."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        # a B(a, b) = Γ(1 + a) Γ(b) / Γ(a + b), where 1/a would multiply what log Γ(b) − log Γ(a + b) loses
        log = (np.log(p) + gammaln(1 + np.asarray(a)) - gamma_excess(b, a)) / a - np.log(b)
        near = (log < -45.0) & (np.asarray(p) > 0)  # x < 10⁻¹⁹: the next term is below rounding
        return np.asarray(np.where(near, np.exp(np.where(near, log, 0.0)), betaincinv(a, b, np.where(near, 0.5, p))))


def _log_density(x: Array, a: Array, b: Array) -> Array:
    """Log-density of each entry; 0 where it is NaN, −inf outside 0 … 1.

    Gamma distributions of x and 1 − x, at rate a + b, over that of their sum: accurate for large a and b.
    """
    inside, whole = (x >= 0) & (x <= 1), a + b
    at = x if inside.all() else np.where(inside, x, 0.5)
    with np.errstate(invalid="ignore"):
        value = log_gamma_density(at, a, whole) + log_gamma_density(1.0 - at, b, whole)
    value = value - log_gamma_density(1.0, whole, whole)
    return np.where(inside, np.where(np.isnan(value), -np.inf, value), np.where(np.isnan(x), 0.0, -np.inf))
