"""Gamma distribution: density, maximum-likelihood fit, and conjugate prior of Poisson and exponential rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaincinv

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter, refuse_infinite, rows, sliceable
from likely.core.engine import map_rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyDensity, PointRule
from likely.distributions.column_distribution import FeatureDistribution, same_columns
from likely.distributions.distribution import added, in_units, lone
from likely.distributions.statistics.counts import Counts, one_column
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.statistics.positive_sums import PositiveSums, positive_sums
from likely.distributions.univariate.exponential import Exponential
from likely.distributions.univariate.lomax import Lomax
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson
from likely.numerics.gamma_cdf import gamma_cdf, gamma_quantile
from likely.numerics.gamma_dirichlet_shapes import gamma_shape
from likely.numerics.special import (
    deviance,
    gamma_divergence,
    gamma_entropy,
    less_cancellation,
    log_gamma_density,
    log_gamma_ratio,
    log_minus_digamma,
    log_poisson_peak,
    log_ratio,
)

STRENGTH = 0.1  # pseudo-observations of the weak prior
SHORTEST = 1e-290  # a waiting time of 0 counts as this, so that rates stay finite

GRAIN = 1e-15  # log mean − mean log of a constant column, from rounding
ONE_VALUE = 1e-33  # a difference that is rounding alone
GammaLikelihood = Literal["poisson", "exponential"]


@dataclass(frozen=True, eq=False)
class Gamma(FeatureDistribution):
    """Gamma distribution; also the conjugate prior of a rate.

    log p(x | a, b) = Σⱼ a log b − log Γ(a) + (a − 1) log xⱼ − b xⱼ: positive numbers in d independent columns.

    The conjugate prior of `Poisson` (Ney 3.8's scheme for counts), with a − 1 pseudo-events in b pseudo-rows; and of
    `Exponential`, with a − 1 pseudo-waiting times of sum b. One prior can be used for all members of a stack, and one
    of a single column for all their columns.

    As a density of positive numbers it can be fitted: `Gamma.fit` solves log a − ψ(a) = log x̄ − mean log x, b = a / x̄
    by Minka's Newton steps. A 0 has no logarithm: fitting refuses it, by row and column. A constant column gets a
    deviation of 4e-8 times its value.

    Parameters
    ----------
    shape : array-like (d,) or (K, d)
        Shapes a.
    rate : array-like (d,) or (K, d)
        Rates b.
    likelihood : {"poisson", "exponential"}, default "poisson"
        Whose rate it is the prior of; the statistics that it is updated with set which.

    See Also
    --------
    Poisson : A likelihood of the rate, for counts.
    Exponential : A likelihood of the rate, for waiting times.
    GammaDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Minka (2002).

    Examples
    --------
    >>> post = Gamma(2.0, 1.0).update(Poisson(1.0).collect([3, 5]))
    >>> post.mean.round(4), post.point("mode").rate
    (array([3.3333]), array([3.]))
    >>> Gamma(2.0, 1.0).update(Exponential(1.0).collect([3.0, 5.0])).point("mean").rate.round(4)
    array([0.4444])
    """

    serves = ("Poisson", "Exponential")  # distributions that it is the conjugate prior of

    shape: Annotated[Array, declared.numbers("* d", 0)]  # a: (d,) or (K, d)
    rate: Annotated[Array, declared.numbers("* d", 0)]  # b
    # or "exponential": the likelihood of the prior
    likelihood: GammaLikelihood = "poisson"

    _domains: ClassVar[dict[str, str]] = {"shape": "positive", "rate": "positive"}
    _spreads: ClassVar[bool] = True
    _support = "positive"
    _n_features = 2
    _harmless = 1.0

    def __post_init__(self) -> None:
        shape, rate = parameter(self.shape, "Gamma", "shape"), parameter(self.rate, "Gamma", "rate")
        try:
            shape, rate = (np.array(np.atleast_1d(a)) for a in np.broadcast_arrays(shape, rate))
        except ValueError as error:
            got = (shape.shape, rate.shape)
            raise ShapeError(sentence("Gamma", "shape and rate must broadcast", got)) from error
        if shape.ndim > 2 or 0 in shape.shape:
            raise ShapeError(sentence("Gamma", "shape and rate must be numbers, (d,) or (K, d)", shape.shape))
        if not ((shape > 0).all() and (rate > 0).all()):
            raise DomainError(sentence("Gamma", "shape and rate must be positive"))
        check_option(self.likelihood, GammaLikelihood, "Gamma", "likelihood")
        self._set(shape=shape, rate=rate)

    @classmethod
    def weak(cls, stats: Counts | FeatureSums, strength: float = STRENGTH) -> Gamma:
        """Weak prior with 0.1 pseudo-rows, whose mode is the pooled mean: a single column keeps its ML estimate.

        Where all counts are 0 the mode is half an event in all rows: no rate becomes 0. For waiting times,
        its mode is one over the pooled mean.
        """
        pooled = stats.pooled()
        if isinstance(pooled, FeatureSums):
            [wait] = pooled.means([np.ones(1)])
            b = np.maximum(strength * wait, SHORTEST)
            return cls.trusted(shape=np.full(b.shape, 1.0 + strength), rate=b, likelihood="exponential")
        mean = np.where(pooled.total > 0, pooled.mean, 0.5 / np.maximum(pooled.weight, 1.0))
        return cls.trusted(shape=1.0 + strength * mean, rate=np.full(mean.shape, strength), likelihood="poisson")

    # ---------------------------------------------------------------- the distribution

    @staticmethod
    def _parameter_score(x: Array, shape: Array, rate: Array) -> tuple[Array, ...]:
        """∂ log p by log shape and log rate."""
        return shape * (np.log(x) + np.log(rate) - digamma(shape)), shape - rate * x

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows; −inf for negative numbers. NaN is missing."""
        x = sliceable(x, self.dim)
        distributions = list(zip(np.atleast_2d(self.shape), np.atleast_2d(self.rate), strict=True))

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Gamma")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "Gamma"), "Gamma")
            each = [added(_log_density(z, *distribution)) for distribution in distributions]
            return np.stack(each, axis=1) if self.members else each[0]

        return map_rows(evaluate, x, self.members)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack; at least the smallest normal number, since the support excludes 0."""
        draws = rng.standard_gamma(self.shape, (n, *self.shape.shape)) / self.rate
        return np.maximum(draws, np.finfo(np.float64).tiny)

    @property
    def mean(self) -> Array:
        """Mean a / b."""
        return self.shape / self.rate

    @property
    def variance(self) -> Array:
        """Variance a / b²."""
        return self.shape / self.rate / self.rate

    @property
    def mode(self) -> Array:
        """(a − 1) / b, 0 for a ≤ 1."""
        return np.maximum(self.shape - 1, 0.0) / self.rate

    @property
    def median(self) -> Array:
        """The median of each column."""
        return np.asarray(gammaincinv(self.shape, 0.5) / self.rate)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for one column."""
        shape, rate = self._one_distribution()
        return gamma_cdf(shape, rate * np.maximum(one_column(x, self.members), 0.0))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles x with P(X ≤ x) = p for one column; (n, K) for a stack."""
        shape, rate = self._one_distribution()
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(gamma_quantile(shape, p[..., None] if self.members else p) / rate)

    def _one_distribution(self) -> tuple[Any, Any]:
        if self.dim != 1:
            raise DomainError(sentence("Gamma", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.shape[..., 0], self.rate[..., 0]

    def entropy(self, bits: bool = False) -> PerMember:
        """Σⱼ a − log b + log Γ(a) + (1 − a) ψ(a); one per member for a stack."""
        return in_units(lone((gamma_entropy(self.shape) - np.log(self.rate)).sum(axis=-1)), bits)

    def kl(self, other: Gamma, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log Γ(a')/Γ(a) + (a − a') ψ(a) + a' log(b/b') + a (b'/b − 1).

        Computed from divergences of shapes and of rates, accurate for similar distributions, or from the entropy and
        other's log-density at this mean, accurate for dissimilar ones.
        """
        same_columns(self, other)
        (a, b), (c, d) = (self.shape, self.rate), (other.shape, other.rate)
        like = gamma_divergence(c, a), a * deviance(b, d) / b, (a - c) * log_ratio(d, b)
        unlike = -gamma_entropy(a), np.log(b), -log_gamma_density(a / b, c, d), (c - 1) * log_minus_digamma(a)
        return in_units(lone(less_cancellation(like, unlike).sum(axis=-1)), bits)

    @property
    def n_parameters(self) -> int:
        """Free parameters: a shape and a rate per column."""
        return 2 * int(self.shape.size)

    # -------------------------------------------------------------- the prior

    def update(self, stats: Counts | FeatureSums) -> Gamma:
        """The posterior: the number of events adds to the shape, the observation time to the rate."""
        of, events, time = self._events_and_exposure(stats)
        return self.replace(shape=self.shape + events, rate=self.rate + time, likelihood=of)

    def _events_and_exposure(self, stats: Counts | FeatureSums) -> tuple[str, Array, Array]:
        """Likelihood of the statistics, number of events, and exposure: rows, or the sum of the waiting times."""
        if isinstance(stats, FeatureSums) and stats.sums.shape[-1] == 1:
            self._serves(stats.weight.shape, "statistics")
            return "exponential", stats.weight, stats.sums[..., 0]
        if not isinstance(stats, Counts):
            got, remedy = type(stats).__name__, "collect them with a Poisson or an Exponential distribution"
            raise DomainError(sentence("Gamma", "statistics of counts or of waiting times are needed", got, remedy))
        self._serves(stats.total.shape, "statistics")
        return "poisson", stats.total, stats.weight

    @property
    def _whose(self) -> type[Poisson] | type[Exponential]:
        return Poisson if self.likelihood == "poisson" else Exponential

    def point(self, rule: PointRule = "mode") -> AnyDensity:
        """A distribution with the "mode" (a − 1)/b (0 for a ≤ 1), "mean" a/b or "median" of the rates."""
        check_option(rule, PointRule, "Gamma", "rule")
        rate = np.array(getattr(self, rule))
        if self.likelihood == "exponential" and not (rate > 0).all():
            remedy = 'take the "mean", or a prior of shape above 1'
            raise DomainError(sentence("Gamma", "the mode of an exponential rate must not be 0", remedy=remedy))
        return self._whose.trusted(rate=rate)

    def draw(self, rng: Generator) -> AnyDensity:
        """A Poisson or exponential distribution with rates from this distribution."""
        return self._whose.trusted(rate=self.sample(1, rng)[0].copy())

    def predictive(self) -> AnyDensity:
        """Posterior predictive: negative binomial with size a, p = b / (b + 1); for waiting times, Lomax with a, b."""
        if self.likelihood == "exponential":
            return Lomax.trusted(shape=np.array(self.shape), scale=np.array(self.rate))
        return NegativeBinomial.trusted(
            size=np.array(self.shape), prob=self.rate / (self.rate + 1), rest=1 / (self.rate + 1)
        )

    def log_evidence(self, stats: Counts | FeatureSums) -> PerMember:
        """Log marginal likelihood of the rows in sequence, rates integrated out; one per member for a stack.

        Σⱼ log Γ(a + n)/Γ(a) + a log b − (a + n) log(b + t), with n events in exposure t; minus Σ log x! for counts.
        """
        _, n, t = self._events_and_exposure(stats)
        a, b = self.shape, self.rate
        terms = log_gamma_ratio(a, n) - a * np.log1p(t / b) - n * np.log(b + t)
        return lone(terms.sum(axis=-1) - (stats.log_factorial if isinstance(stats, Counts) else 0.0))

    def log_density(self, model: Any) -> PerMember:
        """Log prior density of the rates of a Poisson or exponential distribution; one per member for a stack."""
        self._serves(model.rate.shape, "a model")
        return lone(added(_log_density(model.rate, self.shape, self.rate)))

    def _serves(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("Gamma", f"{what} of a shape that fits {self.shape.shape} is needed", shape))

    # --------------------------------------------------------------- learning

    @classmethod
    def _plain(cls, d: int) -> Self:
        return cls.trusted(shape=np.ones(d), rate=np.ones(d))

    def _features(self, x: Array) -> list[Array]:
        return [x, np.log(x)]

    def _collected(self, z: Array, shares: Any) -> PositiveSums:  # type: ignore[override]
        return positive_sums(z, shares, self.members)

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        mean, gap = means
        shape = gamma_shape(np.where(gap > ONE_VALUE, gap, GRAIN * (1 + np.abs(np.log(mean)))))
        with np.errstate(over="ignore"):
            return {"shape": shape, "rate": shape / mean}

    def _expected_log(self, means: list[Array], shape: Array, rate: Array) -> Array:
        mean, gap = means
        with np.errstate(over="ignore"):
            height = log_poisson_peak(shape) + log_ratio(shape, mean) + gap
            return np.asarray(height - deviance(shape, rate * mean) - shape * gap)

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """The distribution with this mean and variance: a = m² / v, b = m / v."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        if not ((mean > 0) & (variance > 0)).all():
            raise DomainError(sentence("Gamma.from_moments", "mean and variance must be positive", (mean, variance)))
        shape, rate = np.broadcast_arrays(mean * (mean / variance), mean / variance)
        return cls.trusted(shape=np.array(np.atleast_1d(shape)), rate=np.array(np.atleast_1d(rate)))


def _log_density(x: Array, shape: Array, rate: Array) -> Array:
    """Log-density of each entry; 0 where it is NaN, −inf where it is negative."""
    inside = x >= 0
    value = log_gamma_density(np.where(inside, x, 1.0), shape, rate)
    return np.where(inside, value, np.where(np.isnan(x), 0.0, -np.inf))
