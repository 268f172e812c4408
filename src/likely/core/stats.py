"""The Stats protocol: additive sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from likely.core import declared
from likely.core.value import Value


@runtime_checkable
class Stats(Protocol):
    """Protocol of sufficient statistics, which add.

    They are a commutative monoid: `+` merges two data sets, `*` scales all weights (forgetting).

    See Also
    --------
    Learnable : Densities that collect them.

    Examples
    --------
    >>> import likely as lk
    >>> stats = lk.Poisson(1.0).collect([[1], [2], [6]])
    >>> isinstance(stats, lk.Stats), (stats + stats * 0.5).total_weight, stats.complete
    (True, 4.5, True)
    """

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


@dataclass(frozen=True, eq=False)
class AdditiveStats(Addable, Value):
    """Base of statistics whose fields are weighted sums over rows: they add field by field.

    A subclass declares its fields, with a * for the axis of a stack; one of them is `rows`, the weight of the rows.
    """

    complete = True  # no latent variables

    @property
    def total_weight(self) -> float:
        """The number of rows, in weight."""
        return float(np.sum(self.rows))  # type: ignore[attr-defined]

    def __add__(self, other: Self) -> Self:
        return self.trusted(**{name: part + getattr(other, name) for name, part in self.field_values().items()})

    def __mul__(self, factor: float) -> Self:
        return self.trusted(**{name: part * factor for name, part in self.field_values().items()})

    def pooled(self) -> Self:
        """The sums over all members of a stack."""
        return self.replace(**{name: part.sum(axis=0) for name, part in declared.stacked(self).items()})
