"""The Stats protocol: additive sufficient statistics."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable


@runtime_checkable
class Stats(Protocol):
    """Sufficient statistics as a commutative monoid: `+` merges two data sets, `*` scales all weights (forgetting)."""

    @property
    def complete(self) -> bool:
        """True without latent variables: the statistics do not depend on the model, so one `refit` is final."""
        ...

    @property
    def total_weight(self) -> float:
        """The number of rows, in weight."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """The statistics of both data sets together: associative, commutative; `collect` of no rows is zero."""
        ...

    def __mul__(self, factor: float, /) -> Self:
        """The statistics of the same data with every weight multiplied."""
        ...


class Addable:
    """Mixin that lets `sum([a, b, c])` add statistics, starting from 0."""

    @property
    def filled(self) -> bool:
        """True if the model imputed missing values, so that correlations in these statistics depend on the model."""
        return False

    def __radd__(self, other: Any) -> Self:
        return self if type(other) is int and other == 0 else NotImplemented
