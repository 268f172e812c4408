"""Degrees of freedom learnt from squared distances."""

from __future__ import annotations

from typing import Any

from likely.estimators.columns import ColumnDensity
from likely.families.chi_square import ChiSquare


class ChiSquareDensity(ColumnDensity):
    """Learn independent chi-square columns, the degrees of freedom of each: `model_` is a `ChiSquare`.

    An entry of 0 is taken for the smallest number: its logarithm is −708, and it pulls the degrees of freedom down.

    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> lk.ChiSquareDensity(prior=None).fit([[1.0], [2.0], [6.0]]).dof_.round(4)
    array([3.2213])
    """

    _law = ChiSquare

    @property
    def dof_(self) -> Any:
        """The learnt degrees of freedom (d,)."""
        return self._learnt.dof
