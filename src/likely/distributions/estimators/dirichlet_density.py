"""Estimator of the Dirichlet distribution of compositional data."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likely.core.arrays import refuse_infinite
from likely.core.errors import DataError
from likely.core.warnings import tell
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.column_distribution import refuse_outside
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator


class DirichletDensity(DensityEstimator):
    """Dirichlet distribution of compositional data, rows of proportions that sum to 1: `model_` is a `Dirichlet`.

    Rows that do not sum to 1 are divided by their sums, with a warning: in compositional data only ratios count.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    - **floor**: the smallest proportion: smaller ones (0 has no logarithm) are replaced by it, with a warning.

    >>> import likely as lk
    >>> lk.DirichletDensity(prior=None).fit([[0.2, 0.8], [0.5, 0.5], [0.6, 0.4]]).alpha_.round(3)
    array([3.354, 4.468])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": PRIOR, "floor": [Interval(Real, 0, 0.1, closed="neither")], **EM,
    }  # fmt: skip

    def __init__(self, *, prior: Any = "weak", floor: float = 1e-6, max_iter: int = 100, tol: float = 1e-6) -> None:
        self.prior = prior
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Dirichlet,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Dirichlet:
        return Dirichlet.blank(X[:4096], members)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = super().validate_rows(X, reset)
        z = np.asarray(X, dtype=np.float64)
        refuse_infinite(z, "DirichletDensity")
        if np.isnan(z).any():
            i, j = (int(k) for k in np.argwhere(np.isnan(z))[0])
            remedy = "fill it in, or leave the row out"
            raise DataError(
                f"DirichletDensity: Input contains NaN: rows must be complete; row {i}, column {j}: {remedy}"
            )
        try:
            refuse_outside(z, "unsigned", "DirichletDensity")
        except DataError as error:  # the words that scikit-learn's checks look for
            raise DataError(f"{error} (Negative values in data)") from error
        return self._closed(z, reset).astype(X.dtype)

    def _closed(self, z: Any, reset: bool) -> Any:
        """Rows of proportions above the floor that sum to 1; a row of zeros becomes uniform."""
        largest = z.max(axis=1, keepdims=True, initial=0.0)
        z = np.where(largest > 0, z / np.where(largest > 0, largest, 1.0), 1.0)
        total = z.sum(axis=1, keepdims=True)
        not_normalized = np.abs(total * largest - 1.0)[:, 0] > 1e-6
        proportions = z / total
        low = proportions < self.floor
        if reset and not_normalized.any():
            tell(f"DirichletDensity: {not_normalized.sum()} rows do not sum to 1: they are divided by their sums")
        if reset and low.any():
            tell(f"DirichletDensity: {low.sum()} proportions below {self.floor:g} are set to it")
        proportions = np.maximum(proportions, self.floor) if low.any() else proportions
        return (
            proportions / proportions.sum(axis=1, keepdims=True) if low.any() or not_normalized.any() else z * largest
        )

    @property
    def alpha_(self) -> Any:
        """The estimated α (d,)."""
        return self.learned_model_.alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = False
        return tags
