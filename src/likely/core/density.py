"""The first role: a model scores what it sees and imagines what it might see."""

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
    """A distribution of x: its log-density, and draws from it."""

    def log_prob(self, x: X, /) -> Array:
        """log p(x) for each row: (n,), or (n, K) for a stack of K members."""
        ...

    def sample(self, n: int, rng: Generator, /) -> X:
        """n independent draws; a stack gives (n, K, …)."""
        ...


@runtime_checkable
class Learnable(Density[X], Protocol[X, S]):
    """A density that learns by adding: `collect` what the data say, `+`, `refit`."""

    def collect(self, x: X, weight: Array | None = None) -> S:
        """The statistics of weighted rows; where something is hidden, its expectation under this model."""
        ...

    def refit(self, stats: S, prior: Prior[S, Any] | None = None) -> Self:
        """A new model that is best for the statistics: maximum likelihood, or the posterior mode."""
        ...

    def objective(self, stats: S, prior: Prior[S, Any] | None = None) -> float:
        """What `refit` maximizes, at this model: expected log-likelihood + entropy of the hidden + log prior.

        For statistics that this very model collected it is the log-likelihood of the data (plus the
        log prior), whatever was hidden (Neal and Hinton's free energy is tight there).
        """
        ...

    def weak_prior(self, stats: S) -> Prior[S, Any]:
        """The prior that `prior="weak"` stands for, scaled by the statistics it is given."""
        ...
