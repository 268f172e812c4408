"""What estimators of counts in columns share: fractions are told of, and trials may be given or seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.notes import tell
from likely.errors import DataError, sentence
from likely.estimators.columns import OTHER_LAWS, ColumnDensity
from likely.estimators.sparse_border import odd_columns, tell_of_columns
from likely.families.known_trials import largest_counts


class CountDensity(ColumnDensity):
    """Learn laws of counts; numbers that are not whole have probability 0.

    A warning says so; where the law was chosen for certain columns they are refused.
    """

    def _rows(self, X: Any, reset: bool) -> Any:
        X = super()._rows(X, reset)
        if reset:
            look_for_fractions(self, X)
        return X


class TrialsDensity(CountDensity):
    """Learn laws of successes among known trials."""

    trials: Any
    _looks_once = False  # the trials are the largest count of all rows, unless they are given

    def _blank(self, X: Any, members: int | None = None) -> Any:
        given = self.trials is not None
        if not given:
            tell(f"{type(self).__name__}: trials were not given: the largest count of each column is taken for them")
        law: Any = self._law
        return law.blank(X[:4096], members, trials=self._given(X) if given else largest_counts(np.asarray(X, float)))

    def _given(self, X: Any) -> Any:
        trials = np.asarray(self.trials, dtype=np.float64)
        if trials.ndim > 1 or trials.shape not in ((), (1,), (X.shape[1],)):
            expected = f"trials must be one number, or one for each of the {X.shape[1]} columns"
            raise DataError(sentence(type(self).__name__, expected, trials.shape))
        return trials


def look_for_fractions(estimator: Any, X: Any) -> None:
    """Counts are whole: say which columns are not, or refuse them where the law was chosen for certain columns."""

    def broken(part: Any) -> Any:
        return (part != np.floor(part)) & np.isfinite(part)

    odd = odd_columns(X, broken)
    if estimator._chosen and odd.any():  # certain columns are never sparse
        raise estimator._unsuited(X, broken(X), "counts must be whole numbers", f"round it, or {OTHER_LAWS}")
    what = "is not all whole numbers: the others have probability 0"
    tell_of_columns(odd, estimator._column_names() if odd.any() else [], type(estimator).__name__, what)
