"""Estimator of Poisson rates from counts."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.column_density import OTHER_DISTRIBUTIONS
from likely.distributions.estimators.count_density import counts_tags, refuse_non_integers
from likely.distributions.univariate.poisson import Poisson
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.sparse_validation import checked_sparse, refuse_negative


class PoissonDensity(DensityEstimator):
    """Independent Poisson columns, one rate each: `model_` is a `Poisson`.

    Rows are dense or sparse (SciPy's matrices stay sparse).

    - **prior**: "weak" (`Gamma.weak`: 0.1 pseudo-rows at the column's own mean), None for maximum likelihood,
      a number α (α pseudo-rows at the mean of each column), or a `Prior`.
    - **predictive**: True integrates out the rates: `model_` is then a `NegativeBinomial`.

    >>> import likely as lk
    >>> lk.PoissonDensity(prior=None).fit([[1], [2], [6]]).rate_
    array([3.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: Any = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Poisson,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Poisson:
        return Poisson.blank(X[:4096], members)

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return predictive(model, stats, prior, "PoissonDensity") if self.predictive else model

    def prior_rule(self) -> Any:
        from likely.distributions.univariate.gamma import Gamma

        if isinstance(self.prior, Real):
            return lambda model, stats: Gamma.weak(stats, strength=float(self.prior))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset and is_sparse(X):
            refuse_negative(X, "PoissonDensity")
        elif reset:
            with np.errstate(invalid="ignore"):
                low = X < 0
            if low.any():
                raise self._unsuited(X, low, "counts are needed (Negative values in data)", OTHER_DISTRIBUTIONS)
        if reset:
            refuse_non_integers(self, X)
        return X

    @property
    def rate_(self) -> Any:
        """The estimated rates (d,)."""
        return self.learned_model_.rate

    def __sklearn_tags__(self) -> Any:
        tags = counts_tags(super().__sklearn_tags__())
        tags.input_tags.sparse = True
        return tags
