"""Gaussians with common mean and scaled covariances: the contamination model for outliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.value import fill_cache
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments
from likely.distributions.stacks.stack_statistics import joined


@dataclass(frozen=True, eq=False)
class ScaledCopies(Distribution):
    """Stack N(μ, f Σ) with one member for each factor f: mean and covariance are shared, the scale differs.

    `Mixture([1 − ε, ε], ScaledCopies(g, [1, α]))` is Tukey's contamination model. With a base stack of C
    members, the stack has C · F: all factors of the first, then of the second.

    Parameters
    ----------
    base : Gaussian
        N(μ, Σ): one distribution, or a stack of C.
    factors : array-like (F,)
        Factors f.

    See Also
    --------
    ContaminatedDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 6.1.

    Examples
    --------
    >>> import likely as lk
    >>> tukey = lk.Mixture([0.95, 0.05], ScaledCopies(lk.Gaussian([0.0], 1.0), [1.0, 100.0]))
    >>> tukey.posterior([[0.5], [6.0]]).round(3)
    array([[0.994, 0.006],
           [0.   , 1.   ]])
    """

    base: Annotated[Gaussian, declared.distribution]  # one value, or a stack of C
    factors: Annotated[Array, declared.numbers("F", 0)]  # (F,)

    def __post_init__(self) -> None:
        factors = parameter(self.factors, "ScaledCopies", "factors")
        if factors.ndim != 1 or not factors.size:
            raise ShapeError(sentence("ScaledCopies", "factors must have shape (F,)", factors.shape))
        if not (factors > 0).all():
            raise DomainError(sentence("ScaledCopies", "factors must be positive", float(factors.min())))
        if not isinstance(self.base, Gaussian) or self.base.tied:
            expected = "base must be a Gaussian, each member with its own covariance"
            raise DomainError(sentence("ScaledCopies", expected, type(self.base).__name__))
        self._set(factors=factors)

    @property
    def members(self) -> int:
        """Number of members C · F."""
        return len(self.factors) * (self.base.members or 1)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.base.dim

    @property
    def n_parameters(self) -> int:
        """Free parameters: those of the base; factors are fixed."""
        return self.base.n_parameters

    @property
    def smallest_eigenvalue(self) -> float:
        """The smallest eigenvalue of any covariance."""
        return self.base.smallest_eigenvalue * float(self.factors.min())

    @cached_property
    def gaussian(self) -> Gaussian:
        """The same stack as independent Gaussians."""
        mean, spread, F = np.atleast_2d(self.base.mean), self.base.covariance, len(self.factors)
        spread = spread[None] if self.base.members is None else spread
        sizes = np.tile(self.factors, len(mean)).reshape(-1, *[1] * (spread.ndim - 1))
        return Gaussian.trusted(
            mean=np.repeat(mean, F, axis=0), covariance=np.repeat(spread, F, axis=0) * sizes, kind=self.base.kind
        )

    def member(self, k: int) -> Gaussian:
        """One member."""
        return self.gaussian.member(k)

    def take(self, index: Any) -> Any:
        """Whole bases stay tied; other selections are independent Gaussians."""
        F, at = len(self.factors), np.asarray(index)
        whole = len(at) % F == 0 and bool((at.reshape(-1, F) == at[::F, None] + np.arange(F)).all())
        if not (whole and (at[::F] % F == 0).all()):
            return self.gaussian.take(index)
        base = self.base if self.base.members is None else self.base.take(at[::F] // F)
        part = ScaledCopies.trusted(base=base, factors=self.factors)
        fill_cache(part.gaussian, origin=self.gaussian.origin)
        return part

    def log_prob(self, x: Any) -> Array:
        """Each member's log-density (n, C · F)."""
        return self.gaussian.log_prob(x)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws of each member."""
        return self.gaussian.sample(n, rng)

    def collect(self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None) -> Any:
        """Each member's own moments."""
        return self.gaussian.collect(x, weight, labels=labels)

    def refit(self, stats: Any, prior: Any = None) -> ScaledCopies:
        """Mean and covariance pooled over the members: a row of factor f has weight 1/f; Σ is divided by all rows."""
        stats = self.gaussian.statistics_in_kind(stats)
        F, C = len(self.factors), self.base.members
        fitted = [self._one(c, stats.member(np.arange(c * F, (c + 1) * F)), prior) for c in range(C or 1)]
        if C is None:
            return self.replace(base=fitted[0])
        mean, spread = np.stack([g.mean for g in fitted]), np.stack([g.covariance for g in fitted])
        return self.replace(base=Gaussian.trusted(mean=mean, covariance=spread, kind=self.base.kind))

    def _one(self, c: int, stats: Any, prior: Any) -> Gaussian:
        base = self.base if self.base.members is None else self.base.member(c)
        each = [stats.member(f) * float(1.0 / self.factors[f]) for f in range(len(self.factors))]
        pooled, rows = sum(each[1:], each[0]), np.asarray(stats.weight.sum(axis=0))
        if not pooled.total_weight > 0 and prior is None:
            return base
        if prior is not None:
            return self._with_prior(base, pooled, rows, prior)
        one = base.refit(pooled)
        ratio = np.divide(pooled.weight, rows, out=np.ones_like(rows), where=rows > 0)
        ratio = ratio if base.kind != "spherical" else np.asarray(pooled.weight.sum() / max(rows.sum(), 1e-300))
        return one.replace(covariance=np.asarray(one.covariance * ratio))

    def _with_prior(self, base: Gaussian, pooled: Any, rows: Array, prior: Any) -> Gaussian:
        """The posterior mode: Σ n/f pseudo-rows determine the means, Σ n rows the covariances."""
        posterior = base.prior_in_kind(prior).update(pooled)
        more = rows - pooled.weight
        if base.kind == "spherical":
            more = np.asarray(np.sum(more * np.ones(self.dim) if isinstance(pooled, Moments) else more))
        return base.in_kind(posterior.replace(dof=np.asarray(posterior.dof + more)).point("mode"))

    def objective(self, stats: Any, prior: AnyPrior | None = None) -> float:
        """What `refit` maximizes: expected log-likelihood, plus the log prior once per base."""
        value = self.gaussian.objective(stats)
        if prior is not None:
            value += float(np.sum(self.base.prior_in_kind(prior).log_density(self.base)))
        return value

    def weak_prior(self, stats: Any) -> Any:
        """Weak prior of a Gaussian, scaled by the rows with their weights 1/f."""
        stats, F = self.gaussian.statistics_in_kind(stats), len(self.factors)
        each = [self._pooled(stats.member(np.arange(c * F, (c + 1) * F))) for c in range(self.base.members or 1)]
        return self.base.weak_prior(
            each[0] if self.base.members is None else joined(self.base, list(map(_as_stack, each)))
        )

    def _pooled(self, stats: Any) -> Any:
        """Pooled moments in the scale of the base: scatter and mean weighted by 1/f, total weight kept."""
        parts = [stats.member(f) * float(1.0 / self.factors[f]) for f in range(len(self.factors))]
        total = sum(parts[1:], parts[0])
        rows = {"weight": np.asarray(stats.weight.sum(axis=0))}
        if not isinstance(total, Moments):
            rows["rows"] = np.asarray(stats.rows.sum())
        return total.replace(**rows)


def _as_stack(stats: Any) -> Any:
    parts = stats.field_values()
    lead = {n: v[None] for n, v in parts.items() if isinstance(v, np.ndarray) and n != "origin"}
    return stats.replace(**lead)
