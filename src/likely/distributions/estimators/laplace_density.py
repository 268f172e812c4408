"""Estimator of Laplace columns: median and mean absolute deviation."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.laplace import Laplace


class LaplaceDensity(ColumnDensity):
    """Independent Laplace columns, a median and a mean absolute deviation each: `model_` is a `Laplace`.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> est = lk.LaplaceDensity(prior=None).fit([[1.0], [2.0], [4.0], [8.0], [16.0]])
    >>> est.center_, est.scale_
    (array([4.]), array([4.2]))
    """

    _distribution = Laplace

    @property
    def center_(self) -> Any:
        """The estimated medians (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Any:
        """The estimated mean absolute deviations (d,)."""
        return self.learned_model_.scale
