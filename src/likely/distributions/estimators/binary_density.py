"""Base of estimators for binary columns: validation and thresholding."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils._param_validation import Interval

from likely.core.errors import DataError, sentence
from likely.distributions.binary.bernoulli import is_binary
from likely.distributions.binary.sign_products import pseudo_spin_sums
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.sparse_validation import checked_sparse, odd_columns, tell_of_columns

BINARY_SETTINGS: dict[str, Any] = {
    "order": [Interval(Integral, 1, None, closed="left")],
    "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")],
    "threshold": [Interval(Real, None, None, closed="neither"), None], **EM,
}  # fmt: skip


class BinaryDensity(DensityEstimator):
    """Base of estimators for binary columns: rows of 0 and 1 (or −1 and 1), dense or sparse; pseudo-row priors."""

    threshold: float | None
    prior: Any
    _parameter_constraints: ClassVar[dict[str, Any]] = BINARY_SETTINGS

    _for_text = "write 1 for one word and 0 for the other, or use ChowLiuTreeDensity(words=…), which takes strings"

    def prior_rule(self) -> Any:
        from likely.distributions.priors.pseudo_data import EarlierData

        if isinstance(self.prior, Real):
            strength = float(self.prior)
            return lambda model, stats: EarlierData.trusted(distribution=model, stats=pseudo_spin_sums(stats, strength))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        return X if self.threshold is None else self._binary(X, float(self.threshold), reset)

    def _binary(self, X: Any, threshold: float, reset: bool) -> Any:
        """Rows of 0 and 1; binary rows are not copied, and −1 with 1 gives no warning."""
        invalid = odd_columns(X, lambda part: ~is_binary(part) & np.isfinite(part))
        if invalid.any():
            what = f"is not all 0 and 1: numbers above {threshold:g} count as 1, the others as 0"
            tell_of_columns(invalid & ~_plus_minus(X), self.column_names(), type(self).__name__, what)
        return X if not invalid.any() and 0 <= threshold < 1 else self._cut(X, threshold)

    def _cut(self, X: Any, threshold: float) -> Any:
        """1 above the threshold, 0 below; missing and infinite values are kept."""
        if not scipy.sparse.issparse(X):
            return np.where(np.isfinite(X), X > threshold, X).astype(X.dtype)
        if threshold < 0:
            expected, remedy = "zeros of sparse rows must count as 0", "pass dense rows, or a nonnegative threshold"
            raise DataError(sentence(type(self).__name__, expected, f"threshold {threshold:g}", remedy))
        X = X.copy()
        X.data = np.where(np.isfinite(X.data), X.data > threshold, X.data).astype(X.dtype)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _plus_minus(X: Any) -> Any:
    """Mask of columns (d,) with nothing but −1 and 1 (and missing values)."""
    if scipy.sparse.issparse(X):
        return np.zeros(X.shape[1], dtype=bool)
    return ((np.abs(X) == 1) | np.isnan(X)).all(axis=0)
