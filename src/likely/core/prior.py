"""The Prior protocol: conjugate priors, posteriors, posterior predictive and evidence."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from numpy.random import Generator

S = TypeVar("S", contravariant=True)
D = TypeVar("D")


@runtime_checkable
class Prior(Protocol[S, D]):
    """Conjugate prior of a family of distributions; a posterior is a prior again."""

    def update(self, stats: S, /) -> Self:
        """The posterior given sufficient statistics, of the same type: `update(a + b)` equals `update(a).update(b)`."""
        ...

    def point(self, rule: str = "mode", /) -> D:
        """Point estimate: the model at the "mode", "mean" or "median" of the parameters."""
        ...

    def draw(self, rng: Generator, /) -> D:
        """A model with parameters sampled from this distribution."""
        ...

    def predictive(self) -> Any:
        """The posterior predictive density of one new observation (parameters integrated out)."""
        ...

    def log_evidence(self, stats: S, /) -> Any:
        """Log marginal likelihood log p(data) of the statistics (parameters integrated out)."""
        ...

    def log_density(self, model: D, /) -> Any:
        """Log-density of the model's parameters under this distribution."""
        ...
