"""The Density and Learnable protocols: log-density, sampling, sufficient statistics, refitting."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.prior import Prior
from likely.core.stats import Stats

X = TypeVar("X")
S = TypeVar("S", bound=Stats)


@runtime_checkable
class Density(Protocol[X]):
    """A probability distribution of x: log-density and sampling."""

    def log_prob(self, x: X, /) -> Array:
        """Log-density log p(x) of each row: (n,), or (n, K) for a stack of K distributions."""
        ...

    def sample(self, n: int, rng: Generator, /) -> X:
        """Draw n independent samples; a stack gives (n, K, …)."""
        ...


@runtime_checkable
class Learnable(Density[X], Protocol[X, S]):
    """A density with additive sufficient statistics: `collect` (E-step), `+`, `refit` (M-step)."""

    def collect(self, x: X, weight: Array | None = None) -> S:
        """Sufficient statistics of weighted rows; latent variables contribute their expectation under this model."""
        ...

    def refit(self, stats: S, prior: Prior[S, Any] | None = None) -> Self:
        """The model that maximizes the likelihood (or the posterior, with a prior) given the statistics."""
        ...

    def objective(self, stats: S, prior: Prior[S, Any] | None = None) -> float:
        """What `refit` maximizes, at this model: expected log-likelihood + entropy of latent variables + log prior.

        For statistics collected by this model it is the log-likelihood of the data (plus the
        log prior), with latent variables too (Neal and Hinton's free-energy bound is tight there).
        """
        ...

    def weak_prior(self, stats: S) -> Prior[S, Any]:
        """The prior that `prior="weak"` selects, scaled by the given statistics."""
        ...
