"""Estimator of gamma distributions of positive numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from likely.core.warnings import tell
from likely.distributions.estimators.column_density import ColumnDensity
from likely.distributions.univariate.gamma import Gamma
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator


class GammaDensity(ColumnDensity):
    """Independent gamma columns of positive numbers, a shape and a rate each: `model_` is a `Gamma`.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    - **zeros**: "missing": a 0, outside the support, counts as missing, in fitting and in scoring, with a
      warning; "error": it is refused in `fit`, and has the distribution's own density afterwards.

    >>> import likely as lk
    >>> lk.GammaDensity(prior=None).fit([[1.0], [2.0], [6.0]]).shape_.round(3)
    array([2.])
    """

    _distribution = Gamma
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": PRIOR, "zeros": [StrOptions({"missing", "error"})], **EM,
    }  # fmt: skip

    def __init__(self, *, prior: Any = "weak", zeros: str = "missing", max_iter: int = 100, tol: float = 1e-6) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.zeros = zeros

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = DensityEstimator.validate_rows(self, X, reset)
        if reset:
            support = "unsigned" if self.zeros == "missing" else "positive"
            self._refuse_outside(X, support)
        X = with_missing(self, X, X == 0, "0", reset) if self.zeros == "missing" else X
        if reset:
            self._warn_of_constants(X)
            self._warn_of_unseen(X)
        return X

    @property
    def shape_(self) -> Any:
        """The estimated shapes (d,)."""
        return self.learned_model_.shape

    @property
    def rate_(self) -> Any:
        """The estimated rates (d,)."""
        return self.learned_model_.rate


def with_missing(estimator: Any, X: Any, edge: Any, what: str, reset: bool) -> Any:
    """Rows with the masked entries set to missing, with a warning in `fit`."""
    if not edge.any():
        return X
    if reset:
        which = ", ".join(estimator.column_names()[j] for j in np.flatnonzero(edge.any(axis=0)))
        share = f"{edge.sum()} of {edge.size} entries"
        tell(f"{type(estimator).__name__}: {which}: {what} counts as missing ({share})")
    return np.where(edge, np.nan, X).astype(X.dtype)
