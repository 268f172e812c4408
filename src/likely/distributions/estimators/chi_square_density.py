"""Estimator of the degrees of freedom of chi-square columns."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.estimators.gamma_density import with_missing
from likely.distributions.univariate.chi_square import ChiSquare
from likely.estimation.density_estimator import DensityEstimator


class ChiSquareDensity(ColumnDensity):
    """Independent chi-square columns, the degrees of freedom of each: `model_` is a `ChiSquare`.

    An entry of 0, outside the support, counts as missing, in fitting and in scoring, with a
    warning.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> lk.ChiSquareDensity(prior=None).fit([[1.0], [2.0], [6.0]]).dof_.round(4)
    array([3.2213])
    """

    _distribution = ChiSquare

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = DensityEstimator.validate_rows(self, X, reset)
        if reset:
            self._refuse_outside(X, "unsigned")
        X = with_missing(self, X, X == 0, "0", reset)
        if reset:
            self._warn_of_unseen(X)
        return X

    @property
    def dof_(self) -> Any:
        """The estimated degrees of freedom (d,)."""
        return self.learned_model_.dof
