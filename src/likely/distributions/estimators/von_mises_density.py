"""Estimator of von Mises columns: mean direction and concentration of angles."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.von_mises import VonMises


class VonMisesDensity(ColumnDensity):
    """Independent von Mises angles in radians, a center and a concentration per column: `model_` is a `VonMises`.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`
      (`DirectionPrior` fixes the concentration).

    >>> import likely as lk
    >>> lk.VonMisesDensity(prior=None).fit([[3.0], [-3.1], [3.2], [2.9]]).center_.round(4)
    array([3.0708])
    """

    _distribution = VonMises

    @property
    def center_(self) -> Any:
        """The estimated directions (d,)."""
        return self.learned_model_.center

    @property
    def concentration_(self) -> Any:
        """The estimated concentrations (d,)."""
        return self.learned_model_.concentration
