"""Estimator of negative binomial columns: overdispersed counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.warnings import tell
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.count_density import CountDensity, refuse_non_integers
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.estimation.sparse_validation import checked_sparse, refuse_negative


class NegativeBinomialDensity(CountDensity):
    """Independent negative binomial columns, size and probability each: `model_` is a `NegativeBinomial`.

    Rows are dense or sparse (SciPy's matrices stay sparse). A column that is not overdispersed relative to a Poisson
    distribution gets the largest size, with a warning.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`
      (`Beta(a, b, "negative binomial", known=size)` estimates p for a known size).

    >>> import likely as lk
    >>> lk.NegativeBinomialDensity(prior=None).fit([[0], [0], [3], [9], [1]]).size_.round(3)
    array([0.522])
    """

    _distribution = NegativeBinomial

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        if not is_sparse(X):
            return super().validate_rows(X, reset)
        X = checked_sparse(self, X, reset)
        if reset:
            refuse_negative(X, "NegativeBinomialDensity")
            refuse_non_integers(self, X)
        return X

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        like = np.atleast_1d(np.atleast_2d(model.poisson_like).any(axis=0))
        if like.any():
            which = self._are(np.flatnonzero(like))
            text = "not overdispersed: size is at its upper bound (Poisson limit)"
            tell(f"NegativeBinomialDensity: {which} {text}")
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def size_(self) -> Any:
        """The estimated sizes (d,)."""
        return self.learned_model_.size

    @property
    def prob_(self) -> Any:
        """The estimated probabilities (d,)."""
        return self.learned_model_.prob
