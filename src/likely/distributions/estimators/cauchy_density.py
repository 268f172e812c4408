"""Centres and scales where the tails are so heavy that means mean nothing."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.cauchy import Cauchy


class CauchyDensity(ColumnDensity):
    """Learn independent Cauchy columns: `model_` is a `Cauchy`.

    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> est = lk.CauchyDensity(prior=None).fit([[-1.0], [0.0], [1.0], [1000.0], [-1000.0]])
    >>> abs(est.centre_.round(4)), est.scale_.round(2)
    (array([0.]), array([1.73]))
    """

    _law = Cauchy

    @property
    def centre_(self) -> Any:
        """The learnt centres (d,)."""
        return self._learnt.centre

    @property
    def scale_(self) -> Any:
        """The learnt scales (d,)."""
        return self._learnt.scale
