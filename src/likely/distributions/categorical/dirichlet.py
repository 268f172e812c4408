"""Dirichlet distribution: density of compositions, and conjugate prior of categorical probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, digamma

from likely.core import declared
from likely.core.arrays import (
    Array,
    BadEntry,
    Index,
    PerMember,
    check_option,
    n_rows,
    parameter,
    refuse_infinite,
    rows,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior, PointRule
from likely.distributions.categorical.categorical import Categorical, LevelCounts, known_levels
from likely.distributions.distribution import Distribution, in_units, lone
from likely.distributions.statistics.counts import member_weights
from likely.distributions.statistics.feature_sums import FeatureSums, feature_sums
from likely.numerics.gamma_dirichlet_shapes import dirichlet_expected_log_prob, dirichlet_shapes
from likely.numerics.gamma_draws import draw_probabilities
from likely.numerics.special import (
    gamma_divergence,
    gamma_entropy,
    less_cancellation,
    log_gamma_density,
    log_gamma_ratio,
    log_minus_digamma,
)

ON_SIMPLEX = 1e-6  # tolerance of the row sums: single precision is within 1e-7


@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """Dirichlet distribution of proportions; also the conjugate prior of probabilities.

    log p(θ | α) = log Γ(α₀) − Σ log Γ(αᵢ) + Σ (αᵢ − 1) log θᵢ on the simplex, α₀ = Σ αᵢ.

    The conjugate prior of `Categorical`, with αᵢ − 1 pseudo-counts of level i. One prior can be used for a whole
    stack's statistics. With L = 2 it is the beta distribution: three of three ones predict 4/5 after a
    uniform prior.

    As a density of compositions it can be fitted: `Dirichlet.fit` solves ψ(αᵢ) − ψ(α₀) = mean of log θᵢ by Minka's
    Newton method for log α. A missing proportion is 1 minus the others; a row that lacks two or more is refused, and
    so is a proportion of 0, which has no logarithm.

    Parameters
    ----------
    alpha : array-like (L,) or (K, L)
        Concentrations α; (K, L) is a stack of K members.
    levels : array-like (L,), optional
        Names of the entries; None means 0 … L − 1.

    See Also
    --------
    Categorical : Its likelihood.
    Beta : Two levels.
    DirichletDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Minka (2000); Herbst and du Preez, lecture notes, 2.1 and 2.2.

    Examples
    --------
    >>> ones = Categorical([0.5, 0.5]).collect([1, 1, 1])
    >>> Dirichlet([1.0, 1.0]).update(ones).predictive().probs
    array([0.2, 0.8])
    """

    serves = ("Categorical",)  # distributions that it is the conjugate prior of

    alpha: Annotated[Array, declared.numbers("* L", 0)]  # (L,) or (K, L)
    levels: Annotated[NDArray[Any] | None, declared.labels] = None  # (L,): names of the entries; None means 0 … L − 1

    _rest_tells: ClassVar[bool] = True

    def __post_init__(self) -> None:
        alpha = parameter(self.alpha, "Dirichlet", "alpha")
        if alpha.ndim not in (1, 2) or 0 in alpha.shape:
            raise ShapeError(sentence("Dirichlet", "alpha must have shape (L,) or (K, L)", alpha.shape))
        if not (alpha > 0).all():
            raise DomainError(sentence("Dirichlet", "alpha must be positive", float(alpha.min())))
        self._set(alpha=alpha, levels=known_levels(self.levels, alpha.shape[-1], "Dirichlet"))

    @classmethod
    def symmetric(cls, size: int, concentration: float = 1.0, levels: Any = None) -> Dirichlet:
        """The same α for each level: 1 is uniform, below 1 sparse, above 1 near equality.

        Parameters
        ----------
        size : int
            Number of levels.
        concentration : float, default 1.0
            The concentration α of each level.
        levels : array-like (L,), optional
            Names of the levels.
        """
        return cls(np.full(size, concentration), levels)

    @classmethod
    def weak(cls, stats: LevelCounts, levels: ArrayLike | None = None) -> Dirichlet:
        """Weak prior with one pseudo-count in all, α = 1 + 1/L: the mode is (n + 1/L) / (N + 1).

        Parameters
        ----------
        levels : array-like (L,), optional
            Names of the levels.
        """
        size = stats.counts.shape[-1]
        return cls.symmetric(size, 1.0 + 1.0 / size, levels)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of levels L."""
        return int(self.alpha.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.alpha) if self.alpha.ndim == 2 else None

    def member(self, k: int) -> Dirichlet:
        """One member of a stack."""
        return self.replace(alpha=self.alpha[k].copy())

    def take(self, index: Any) -> Dirichlet:
        """Stack of the selected members."""
        return self.replace(alpha=self.alpha[index])

    @property
    def concentration(self) -> Array:
        """Total concentration α₀ = Σ αᵢ (...)."""
        return np.asarray(self.alpha.sum(axis=-1))

    # ---------------------------------------------------------------- the distribution

    _support = "simplex"

    @staticmethod
    def _parameter_score(x: Array, alpha: Array) -> tuple[Array, ...]:
        """∂ log p by log α."""
        return (alpha * (np.log(x) - digamma(alpha) + digamma(alpha.sum())),)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of rows of probabilities (n, L): (n,), or (n, K) for a stack; −inf off the simplex.

        A row with NaN entries gets the marginal density of the observed ones, the others summed into one.
        """
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Dirichlet")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "Dirichlet"), "Dirichlet")
            each = [_log_density(alpha, z) for alpha in np.atleast_2d(self.alpha)]
            return np.stack(each, axis=1) if self.members else each[0]

        return map_rows(evaluate, x, self.members)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, L), or (n, K, L) for a stack: normalized gamma variates, in logs for tiny α."""
        return draw_probabilities(self.alpha, n, rng)

    @property
    def mean(self) -> Array:
        """Mean αᵢ / α₀."""
        return self.alpha / self.concentration[..., None]

    @property
    def variance(self) -> Array:
        """Variance mᵢ (1 − mᵢ) / (α₀ + 1)."""
        rest = (self.concentration[..., None] - self.alpha) / self.concentration[..., None]
        return self.mean * rest / (self.concentration[..., None] + 1)

    @property
    def covariance(self) -> Array:
        """(diag(m) − m mᵀ) / (α₀ + 1): (L, L), or (K, L, L) for a stack."""
        m = self.mean
        spread = m[..., None] * np.eye(self.dim) - m[..., :, None] * m[..., None, :]
        return spread / (self.concentration[..., None, None] + 1)

    @property
    def mode(self) -> Array:
        """(αᵢ − 1) / (α₀ − L) where all αᵢ ≥ 1.

        With some αᵢ below 1 the density is highest on the boundary: these entries are 0 and the others share
        the rest. With no αᵢ above 1 there is no unique mode, and this is the mean.
        """
        more = np.maximum(self.alpha - 1, 0.0)
        total = more.sum(axis=-1, keepdims=True)
        return np.where(total > 0, more / np.where(total > 0, total, 1.0), self.mean)

    @property
    def median(self) -> Array:
        """Medians of the beta marginals, normalized to sum 1: a simplex has no median of its own."""
        if self.dim == 1:
            return np.ones_like(self.alpha)
        others = np.stack([np.delete(self.alpha, i, axis=-1).sum(axis=-1) for i in range(self.dim)], axis=-1)
        each = betaincinv(self.alpha, others, 0.5)
        total = each.sum(axis=-1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), self.mean)

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy log B(α) + (α₀ − L) ψ(α₀) − Σ (αᵢ − 1) ψ(αᵢ); one per member for a stack."""
        total = self.concentration
        h = gamma_entropy(self.alpha).sum(axis=-1) - gamma_entropy(total) - (self.dim - 1) * digamma(total)
        return in_units(lone(h), bits)

    def kl(self, other: Dirichlet, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = log B(β)/B(α) + Σ (αᵢ − βᵢ)(ψ(αᵢ) − ψ(α₀)); member by member for stacks.

        Computed from divergences of gamma distributions, Σ D(βᵢ, αᵢ) − D(β₀, α₀), accurate for similar distributions,
        or from the entropy and other's log-density at this mean, accurate for dissimilar ones.
        """
        like = (
            gamma_divergence(other.alpha, self.alpha).sum(axis=-1),
            -gamma_divergence(other.concentration, self.concentration),
        )
        digamma_gaps = log_minus_digamma(self.alpha) - log_minus_digamma(self.concentration)[..., None]
        unlike = (
            -np.asarray(self.entropy()),
            -_log_density(other.alpha, self.mean),
            ((other.alpha - 1) * digamma_gaps).sum(axis=-1),
        )
        return in_units(lone(less_cancellation(like, unlike)), bits)

    @property
    def n_parameters(self) -> int:
        """Free parameters: α."""
        return int(self.alpha.size)

    # -------------------------------------------------------------- the prior

    def update(self, stats: LevelCounts) -> Dirichlet:
        """The posterior: counts add to α."""
        self._check(stats)
        return self.replace(alpha=self.alpha + stats.counts)

    def point(self, rule: PointRule = "mode") -> Categorical:
        """Categorical distribution at the "mode", "mean" or "median" of the probabilities."""
        check_option(rule, PointRule, "Dirichlet", "rule")
        return Categorical.trusted(probs=np.array(getattr(self, rule)), levels=self.levels)

    def draw(self, rng: Generator) -> Categorical:
        """A Categorical with probabilities from this distribution."""
        return Categorical.trusted(probs=self.sample(1, rng)[0].copy(), levels=self.levels)

    def predictive(self) -> Categorical:
        """Posterior predictive: level i with probability αᵢ / α₀ (Herbst 2.1)."""
        return self.point("mean")

    def log_evidence(self, stats: LevelCounts) -> PerMember:
        """Log marginal likelihood of the observations in sequence, probabilities integrated out; one per member.

        Σ log Γ(αᵢ + nᵢ)/Γ(αᵢ) − log Γ(α₀ + N)/Γ(α₀). Weights count repetitions.
        """
        self._check(stats)
        each = log_gamma_ratio(self.alpha, stats.counts).sum(axis=-1)
        return lone(each - log_gamma_ratio(self.concentration, stats.counts.sum(axis=-1)))

    def log_density(self, model: Categorical) -> PerMember:
        """Log prior density of the probabilities of a Categorical; one per member for a stack."""
        if model.probs.shape[-1] != self.dim:
            raise ShapeError(sentence("Dirichlet", f"a model with {self.dim} levels is needed", model.probs.shape))
        return lone(_log_density(self.alpha, model.probs))

    def _check(self, stats: LevelCounts) -> None:
        shape = stats.counts.shape
        if shape[-1] != self.dim or (self.members and shape != self.alpha.shape):
            raise ShapeError(sentence("Dirichlet", f"statistics must fit alpha of shape {self.alpha.shape}", shape))

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Self:
        """Initial model: uniform, with as many proportions as the rows have columns."""
        width = rows(x, None, "Dirichlet").shape[1]
        if width == 0:
            raise ShapeError(sentence("Dirichlet", "at least one column is needed", n_rows(x)))
        return cls.trusted(alpha=np.ones((width,) if members is None else (members, width)), levels=None)

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Method of moments: the mean m of the rows and the sum of the variances Σ mᵢ(1 − mᵢ)/(α₀ + 1).

        >>> import likely as lk
        >>> lk.Dirichlet.moments_fit([[0.2, 0.8], [0.6, 0.4]]).alpha.round(3)
        array([2., 3.])
        """
        z = complete_proportions(rows(x, None, "Dirichlet"))
        given = weights(weight, len(z), "Dirichlet")
        counts = np.ones(len(z)) if given is None else given
        w = np.where(np.isnan(z).any(axis=1), 0.0, counts)
        if not w.sum() > 0:
            raise DataError(sentence("Dirichlet", "at least one row with weight is needed", "none"))
        mean = np.average(np.nan_to_num(z), axis=0, weights=w)
        spread = float(np.average((np.nan_to_num(z) - mean) ** 2, axis=0, weights=w).sum())
        if not spread > 0:
            raise DataError(sentence("Dirichlet", "rows must differ for the method of moments", "rows all alike"))
        return cls(alpha=mean * (float((mean * (1 - mean)).sum()) / spread - 1))

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> FeatureSums:
        """Sums of log proportions of weighted rows (n, L).

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1: none).
        """
        n = n_rows(x)
        w = weights(weight, n, "Dirichlet")
        if n > ROWS * BLOCKS:
            return self._collect_blocks(x, w, labels)
        z = complete_proportions(rows(x, self.alpha.shape[-1], "Dirichlet"))
        shares = member_weights(w, labels, n, self.members, "Dirichlet")
        return feature_sums(z, shares, self.members, lambda a: [np.log(a)], 1, 0.5)

    def _collect_blocks(self, x: Any, w: Array | None, labels: Index | None) -> FeatureSums:
        try:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        except DataError:
            complete_proportions(
                rows(x, self.alpha.shape[-1], "Dirichlet")
            )  # the same error, with the row's own number
            raise

    def refit(self, stats: FeatureSums, prior: AnyPrior | None = None) -> Self:
        """Maximum-likelihood α, or with a prior the posterior mode; a member without data keeps its parameters."""
        self._learns_from(stats)
        if prior is not None:
            return prior.update(stats).point("mode")
        if not stats.total_weight > 0:
            raise DataError(sentence("Dirichlet", "at least one row with weight is needed", "none", "or give a prior"))
        observed, logs = np.atleast_1d(stats.rows) > 0, np.atleast_2d(_mean_logs(stats))
        old = np.atleast_2d(self.alpha)
        found = [dirichlet_shapes(mean) if there else a for there, mean, a in zip(observed, logs, old, strict=True)]
        return self.replace(alpha=np.array(found).reshape(self.alpha.shape))

    def objective(self, stats: FeatureSums, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self._learns_from(stats)
        each = np.where(stats.rows > 0, stats.rows * dirichlet_expected_log_prob(self.alpha, _mean_logs(stats)), 0.0)
        value = float(each.sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: FeatureSums) -> AnyPrior:
        """Pooled pseudo-observations of total weight 0.1."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.weak(self, stats)

    def _learns_from(self, stats: FeatureSums) -> None:
        if stats.weight.shape != self.alpha.shape or stats.sums.shape != (*self.alpha.shape, 1):
            expected = f"statistics must be of shape {self.alpha.shape}"
            raise ShapeError(sentence("Dirichlet", expected, stats.weight.shape))


def _log_density(alpha: Array, x: Array) -> Array:
    """Log-density of points (..., L); NaN entries are summed into one more entry, 1 minus the others.

    Gamma distributions of rate α₀ over the gamma distribution of their sum, Π Gamma(xᵢ | αᵢ, α₀) / Gamma(1 | α₀, α₀),
    which is accurate for large α; the last term corrects for a sum of x that rounding has moved from 1.
    """
    observed = ~np.isnan(x)
    known, whole = np.where(observed, x, 0.0), observed.all(axis=-1)
    rest = 1.0 - known.sum(axis=-1)
    off = (known < 0).any(axis=-1) | np.where(whole, np.abs(rest) > ON_SIMPLEX, rest < -ON_SIMPLEX)
    alpha, _ = np.broadcast_arrays(alpha, x)
    a = np.concatenate(
        [np.where(observed, alpha, 0.0), np.where(observed, 0.0, alpha).sum(axis=-1)[..., None]], axis=-1
    )
    at = np.concatenate([np.maximum(known, 0.0), np.maximum(rest, 0.0)[..., None]], axis=-1)
    total = alpha.sum(axis=-1)
    each = np.where(a > 0, log_gamma_density(at, np.where(a > 0, a, 1.0), total[..., None]), 0.0)
    with np.errstate(invalid="ignore"):
        value = each.sum(axis=-1) - log_gamma_density(1.0, total, total) - np.where(whole, total * rest, 0.0)
    return np.where(off | np.isnan(value), -np.inf, value)


def _mean_logs(stats: FeatureSums) -> Array:
    return stats.means([np.log(np.full(1, 0.5))])[0]


def complete_proportions(z: Array) -> Array:
    """Rows of proportions that sum to 1, a missing one filled in; raises for rows that cannot be used."""
    refuse_infinite(z, "Dirichlet")
    missing = np.isnan(z)
    many = np.flatnonzero(missing.sum(axis=1) > 1)
    if len(many):
        i, j = int(many[0]), int(np.flatnonzero(missing[many[0]])[1])
        raise BadEntry("Dirichlet", "a row may have at most one missing proportion", np.nan, i, j, "leave the row out")
    total = np.where(missing, 0.0, z).sum(axis=1)
    z = np.where(missing, np.maximum(1.0 - total, 0.0)[:, None], z)
    bad = np.argwhere(z <= 0)
    if len(bad):
        i, j = (int(k) for k in bad[0])
        remedy = "replace it by the detection limit"
        raise BadEntry("Dirichlet", "proportions to fit must be positive", z[i, j], i, j, remedy)
    off = np.flatnonzero(np.abs(z.sum(axis=1) - 1.0) > ON_SIMPLEX)
    if len(off):
        got, remedy = f"{z[off[0]].sum():g} in row {int(off[0])}", "divide each row by its sum"
        raise DataError(sentence("Dirichlet", "proportions of a row must sum to 1", got, remedy))
    return z
