"""Base of distributions of success counts: trials are given, or the largest observed count is used."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, parameter, rows
from likely.core.errors import ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.column_distribution import ColumnDistribution


class KnownTrials(ColumnDistribution):
    """Base of distributions of successes among known trials: `trials` are given, not estimated."""

    trials: Array

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Maximum-likelihood fit to weighted rows; `trials` are the largest counts of all rows, if not given."""
        if options.get("trials") is None:
            options.update(cls.parameters_seen_in(x))
        return super().fit(x, weight, **options)

    @classmethod
    def parameters_seen_in(cls, x: ArrayLike) -> dict[str, Any]:
        warn(f"{cls.__name__}: trials were not given: the largest count of each column is used")
        return {"trials": largest_counts(rows(x, None, cls.__name__))} if hasattr(x, "__len__") else {}

    def fixed_parameters(self) -> dict[str, Any]:
        return {"trials": self.trials}


def largest_counts(z: Array) -> Array:
    """The largest count of each column, at least 1."""
    finite = np.where(np.isfinite(z), z, 0.0)
    return np.maximum(np.ceil(finite.max(axis=0, initial=0.0)), 1.0)


def given_trials(trials: Any, d: int, whose: str) -> Array:
    """The given trials, one per column."""
    given = parameter(trials, whose, "trials")
    if given.shape not in ((), (1,), (d,)):
        expected = f"trials must be one number, or one for each of {d} columns"
        raise ShapeError(sentence(whose, expected, given.shape))
    return np.array(np.broadcast_to(given, (d,)))
