"""Mixin of classifiers of numeric rows: posteriors, other class priors, explanations."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from likely.classify.numeric_rows import plain_rows
from likely.core.arrays import Array, Rows
from likely.core.docstrings import complete
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.decision_mixin import ClassPriorLike, Deciding


@complete
class NumericClassifierMixin(Deciding):
    """Mixin for classifiers of numeric rows (n, d); a subclass implements `_log_joint`, up to a constant per row."""

    class_prior: Any
    n_features_in_: int

    def _log_joint(self, rows: Array) -> Array:
        """log p(c | x) (n, C) of validated rows, up to a constant per row."""
        raise NotImplementedError

    def log_posterior(self, X: Rows) -> Array:
        """Logarithms of the posterior probabilities, log p(c | x), of each row."""
        check_is_fitted(self)
        return self._log_joint(plain_rows(self, X, reset=False))

    def with_class_prior(self, class_prior: ClassPriorLike) -> Self:
        """A copy with other class probabilities."""
        check_is_fitted(self)
        self._prior_for(class_prior)
        other = copy(self)
        other.class_prior = class_prior
        return other

    def explain(self, X: Rows) -> Any:
        """Explanation of each decision: log-odds by column, and the value of each column (`Explanation`)."""
        from likely.classify.explanation import Explanation

        check_is_fitted(self)
        return Explanation.of(self, X)

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return plain_rows(self, X, reset=False)

    def _decoded(self, rows: Array) -> Array:
        return rows

    def _check_priors(self) -> None:
        self._cost_of(None)
        if self.class_prior is not None:
            self._prior_for(self.class_prior)
