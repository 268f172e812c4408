"""Directions learned from angles."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.von_mises import VonMises


class VonMisesDensity(ColumnDensity):
    """Learn independent von Mises angles in radians, a center and a concentration a column: `model_` is a `VonMises`.

    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`
      (`DirectionPrior` leaves the concentration as it says).

    >>> import likely as lk
    >>> lk.VonMisesDensity(prior=None).fit([[3.0], [-3.1], [3.2], [2.9]]).center_.round(4)
    array([3.0708])
    """

    _distribution = VonMises

    @property
    def center_(self) -> Any:
        """The learned directions (d,)."""
        return self._learned.center

    @property
    def concentration_(self) -> Any:
        """The learned concentrations (d,)."""
        return self._learned.concentration
