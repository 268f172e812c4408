"""Estimator of the Dirichlet-multinomial distribution of overdispersed (bursty) counts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from likely.core.arrays import refuse_infinite
from likely.core.errors import DataError
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.sparse_validation import checked_sparse, odd_columns, refuse_negative, tell_of_columns


class DirichletMultinomialDensity(DensityEstimator):
    """Dirichlet-multinomial distribution of d counts given their total: `model_` is a `DirichletMultinomial`.

    Rows are counts, dense or sparse (SciPy's matrices stay sparse), scored given their totals.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1, plus a row with each count 1), None for
      maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> lk.DirichletMultinomialDensity(prior=None).fit([[9, 0, 1], [1, 8, 0], [0, 1, 7]]).alpha_.round(2)
    array([0.29, 0.29, 0.28])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"prior": PRIOR, **EM}

    def __init__(self, *, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (DirichletMultinomial,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> DirichletMultinomial:
        return DirichletMultinomial.blank(X[:4096], members)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if not is_sparse(X):
            refuse_infinite(np.asarray(X, dtype=np.float64), "DirichletMultinomialDensity")
            if reset and np.isnan(X).any():
                i, j = (int(k) for k in np.argwhere(np.isnan(X))[0])
                place = f"row {i}, column {j}: leave the row out"
                raise DataError(f"DirichletMultinomialDensity: Input contains NaN: rows must be complete; {place}")
        if reset:
            refuse_negative(X, "DirichletMultinomialDensity")
            odd = odd_columns(X, lambda part: (part != np.floor(part)) & np.isfinite(part))
            what = "is not all whole numbers: the others are scored as expected counts"
            tell_of_columns(odd, self.column_names(), "DirichletMultinomialDensity", what)
        return X

    @property
    def alpha_(self) -> Any:
        """The estimated α (d,)."""
        return self.learned_model_.alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags
