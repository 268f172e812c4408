"""Directions learnt from angles."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.von_mises import VonMises


class VonMisesDensity(ColumnDensity):
    """Learn independent von Mises angles in radians, a centre and a concentration a column: `model_` is a `VonMises`.

    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`
      (`DirectionPrior` leaves the concentration as it says).

    >>> import likely as lk
    >>> lk.VonMisesDensity(prior=None).fit([[3.0], [-3.1], [3.2], [2.9]]).centre_.round(4)
    array([3.0708])
    """

    _law = VonMises

    @property
    def centre_(self) -> Any:
        """The learnt directions (d,)."""
        return self._learnt.centre

    @property
    def concentration_(self) -> Any:
        """The learnt concentrations (d,)."""
        return self._learnt.concentration
