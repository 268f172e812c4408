"""Bases of estimators of counts: integer validation, and known or observed numbers of trials."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.errors import DataError, sentence
from likely.core.warnings import tell
from likely.distributions.column_distribution import refuse_fractions
from likely.distributions.estimators.column_density import OTHER_DISTRIBUTIONS, ColumnDensity
from likely.distributions.univariate.binomial_trials import largest_counts
from likely.estimation.component import Traits


class CountDensity(ColumnDensity):
    """Base of estimators of counts: numbers that are not integers have probability 0, and are refused."""

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = super().validate_rows(X, reset)
        if reset:
            refuse_non_integers(self, X)
        return X

    def __sklearn_tags__(self) -> Any:
        return counts_tags(super().__sklearn_tags__())


class TrialsDensity(CountDensity):
    """Base of estimators of successes among known trials."""

    trials: Any
    traits = Traits(sketchable=False)  # unless given, trials are the largest count of all rows

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Any:
        given = self.trials is not None
        if not given:
            tell(f"{type(self).__name__}: trials were not given: the largest count of each column is used")
        distribution: Any = self._distribution
        return distribution.blank(
            X[:4096], members, trials=self._given(X) if given else largest_counts(np.asarray(X, float))
        )

    def _given(self, X: Any) -> Any:
        trials = np.asarray(self.trials, dtype=np.float64)
        if trials.ndim > 1 or trials.shape not in ((), (1,), (X.shape[1],)):
            expected = f"trials must be one number, or one for each of the {X.shape[1]} columns"
            raise DataError(sentence(type(self).__name__, expected, trials.shape))
        return trials


def refuse_non_integers(estimator: Any, X: Any) -> None:
    """Raise for rows, dense or sparse, with a number that is not an integer, naming its column."""
    named = estimator.column_titles is not None or hasattr(estimator, "feature_names_in_")
    names = estimator.column_names() if named else None
    refuse_fractions(X, type(estimator).__name__, f"round it, or {OTHER_DISTRIBUTIONS}", names)


def counts_tags(tags: Any) -> Any:
    """Tags of an estimator that takes nonnegative integers: scikit-learn's tag for that is "categorical"."""
    tags.input_tags.positive_only = tags.input_tags.categorical = True
    return tags
