"""Counts that spread more than a Poisson distribution's, learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.warnings import tell
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.count_density import CountDensity, only_whole
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.estimation.sparse_validation import checked_sparse, refuse_negative


class NegativeBinomialDensity(CountDensity):
    """Learn independent negative binomial counts, size and probability per column: `model_` is a `NegativeBinomial`.

    Rows are dense or sparse (SciPy's matrices stay sparse). A column that spreads no more than a Poisson distribution's
    gets a size that stands for infinity, and a note says so.

    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`
      (`Beta(a, b, "negative binomial", known=size)` learns p for a known size).

    >>> import likely as lk
    >>> lk.NegativeBinomialDensity(prior=None).fit([[0], [0], [3], [9], [1]]).size_.round(3)
    array([0.522])
    """

    _distribution = NegativeBinomial

    def _rows(self, X: Any, reset: bool) -> Any:
        if not is_sparse(X):
            return super()._rows(X, reset)
        X = checked_sparse(self, X, reset)
        if reset:
            refuse_negative(X, "NegativeBinomialDensity")
            only_whole(self, X)
        return X

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
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
        """The learned sizes (d,)."""
        return self._learned.size

    @property
    def prob_(self) -> Any:
        """The learned probabilities (d,)."""
        return self._learned.prob
