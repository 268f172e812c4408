"""What classifiers of plain rows of numbers share: posteriors, other class probabilities, explanations."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from likely.classify.plain_rows import plain_rows
from likely.core.arrays import Array
from likely.estimation.decision_mixin import Deciding


class PlainDeciding(Deciding):
    """Decide about rows (n, d) of numbers; a subclass scores them by `_log_joint`, up to a constant of each row."""

    class_prior: Any
    n_features_in_: int

    def _log_joint(self, rows: Array) -> Array:
        """log p(c | x) (n, C) of rows that were checked."""
        raise NotImplementedError

    def log_posterior(self, X: Any) -> Array:
        """log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        check_is_fitted(self)
        return self._log_joint(plain_rows(self, X, reset=False))

    def with_class_prior(self, class_prior: Any) -> Self:
        """A copy that expects classes with other probabilities."""
        check_is_fitted(self)
        self._prior_for(class_prior)
        other = copy(self)
        other.class_prior = class_prior
        return other

    def explain(self, X: Any) -> Any:
        """Why each row is decided as it is: log-odds by column, and what each column saves (`Explanation`)."""
        from likely.classify.explanation import Explanation

        check_is_fitted(self)
        return Explanation.of(self, X)

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return plain_rows(self, X, reset=False)

    def _told(self, rows: Array) -> Array:
        return rows

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _check_priors(self) -> None:
        self._cost_of(None)
        if self.class_prior is not None:
            self._prior_for(self.class_prior)
