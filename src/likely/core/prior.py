"""The third role: a prior is data that came before."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from numpy.random import Generator

S = TypeVar("S", contravariant=True)
D = TypeVar("D")


@runtime_checkable
class Prior(Protocol[S, D]):
    """The conjugate partner of a family, named by its own distribution; a posterior is one more prior."""

    def update(self, stats: S, /) -> Self:
        """The posterior, of the same type: `update(a + b)` equals `update(a).update(b)`."""
        ...

    def point(self, rule: str = "mode", /) -> D:
        """One model for the whole distribution: the "mode", "mean" or "median" of its parameters."""
        ...

    def draw(self, rng: Generator, /) -> D:
        """A model with parameters drawn from this distribution."""
        ...

    def predictive(self) -> Any:
        """The density of one new observation, the parameters integrated out."""
        ...

    def log_evidence(self, stats: S, /) -> Any:
        """log p(data): the likelihood of the statistics with the parameters integrated out."""
        ...

    def log_density(self, model: D, /) -> Any:
        """log p(parameters of the model) under this distribution."""
        ...
