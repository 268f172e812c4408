"""Estimator of independent Bernoulli columns, sparse or dense."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils._param_validation import Interval

from likely.core.errors import DataError, sentence
from likely.distributions.binary.bernoulli import Bernoulli, is_binary
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.column_density import OTHER_DISTRIBUTIONS
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.sparse_validation import checked_sparse, odd_columns, tell_of_columns


class BernoulliDensity(DensityEstimator):
    """Independent Bernoulli columns, one probability each: `model_` is a `Bernoulli`.

    Rows are dense or sparse (SciPy's matrices stay sparse). A classifier with this density is Bernoulli naive
    Bayes: `BayesClassifier(BernoulliDensity(prior=1.0))` has the posteriors of scikit-learn's `BernoulliNB(alpha=1.0)`.

    - **prior**: "weak" (`Beta.weak`: one pseudo-count at the column's own mean), None for maximum likelihood, a number
      α (α pseudo-counts of 1 and of 0 in each column), or a `Prior`.
    - **threshold**: numbers above it are 1, the others 0, with a warning if there were any but 0 and 1;
      None: anything but 0 and 1 is an error in `fit`, and has probability 0 afterwards.
    - **predictive**: True integrates out the probabilities: the mean of their posterior, not its mode.

    >>> from likely.distributions.estimators.bernoulli_density import BernoulliDensity
    >>> BernoulliDensity(prior=1.0).fit([[1, 0], [1, 1], [1, 0]]).probs_
    array([0.8, 0.4])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")],
        "threshold": [Interval(Real, None, None, closed="neither"), None], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: Any = "weak", threshold: float | None = 0.0, predictive: bool = False, max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.prior = prior
        self.threshold = threshold
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Bernoulli,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Bernoulli:
        return Bernoulli.blank(X[:4096], members)

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return predictive(model, stats, prior, "BernoulliDensity") if self.predictive else model

    def prior_rule(self) -> Any:
        from likely.distributions.univariate.beta import Beta

        if isinstance(self.prior, Real):
            return lambda model, stats: Beta.symmetric(model.dim, float(self.prior))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset and self.threshold is None and not scipy.sparse.issparse(X):
            invalid = ~is_binary(X) & np.isfinite(X)
            if invalid.any():
                remedy = f"give a threshold above which a number is 1, or {OTHER_DISTRIBUTIONS}"
                raise self._unsuited(X, invalid, "values must be 0 or 1", remedy)
        return X if self.threshold is None else self._binary(X, float(self.threshold), reset)

    def _binary(self, X: Any, threshold: float, reset: bool) -> Any:
        """Rows of 0 and 1; binary rows are not copied."""
        invalid = odd_columns(X, lambda part: ~is_binary(part) & np.isfinite(part))
        if invalid.any():
            what = f"is not all 0 and 1: numbers above {threshold:g} count as 1, the others as 0"
            tell_of_columns(invalid, self.column_names(), "BernoulliDensity", what)
        return X if not invalid.any() and 0 <= threshold < 1 else self._cut(X, threshold)

    def _cut(self, X: Any, threshold: float) -> Any:
        """1 above the threshold, 0 below; missing and infinite values are kept."""
        if not scipy.sparse.issparse(X):
            return np.where(np.isfinite(X), X > threshold, X).astype(X.dtype)
        if threshold < 0:
            expected, remedy = "zeros of sparse rows must count as 0", "pass dense rows, or a nonnegative threshold"
            raise DataError(sentence("BernoulliDensity", expected, f"threshold {threshold:g}", remedy))
        X = X.copy()
        X.data = np.where(np.isfinite(X.data), X.data > threshold, X.data).astype(X.dtype)
        return X

    @property
    def probs_(self) -> Any:
        """The estimated probabilities of a 1 (d,)."""
        return self.learned_model_.probs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
