"""Estimator of Cauchy columns: location and scale of heavy-tailed data."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.cauchy import Cauchy


class CauchyDensity(ColumnDensity):
    """Independent Cauchy columns: `model_` is a `Cauchy`.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> est = lk.CauchyDensity(prior=None).fit([[-1.0], [0.0], [1.0], [1000.0], [-1000.0]])
    >>> abs(est.center_.round(4)), est.scale_.round(2)
    (array([0.]), array([1.73]))
    """

    _distribution = Cauchy

    @property
    def center_(self) -> Any:
        """The estimated centers (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Any:
        """The estimated scales (d,)."""
        return self.learned_model_.scale
