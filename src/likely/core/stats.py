"""The second role: what learning takes from data is a sum."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable


@runtime_checkable
class Stats(Protocol):
    """A commutative monoid of evidence: `+` joins two data sets, `*` forgets a part of one."""

    @property
    def complete(self) -> bool:
        """True if nothing was hidden: the sum does not depend on the model that took it, so one `refit` is final."""
        ...

    @property
    def total_weight(self) -> float:
        """How many rows were seen, in weight."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """The statistics of both data sets together: associative, commutative; `collect` of no rows is zero."""
        ...

    def __mul__(self, factor: float, /) -> Self:
        """The statistics of the same data with every weight multiplied."""
        ...


class Addable:
    """Lets `sum([a, b, c])` add statistics: the 0 that it begins with is nothing."""

    @property
    def filled(self) -> bool:
        """True if the model that looked filled gaps in, so that correlations in these statistics are partly its own."""
        return False

    def __radd__(self, other: Any) -> Self:
        return self if type(other) is int and other == 0 else NotImplemented
