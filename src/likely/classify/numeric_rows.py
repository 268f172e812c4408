"""Input validation of estimators of numeric rows, with NaN for missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, refuse_infinite
from likely.core.errors import DataError, sentence
from likely.estimation import input_validation
from likely.estimation.input_validation import numeric_rows
from likely.neighbors.distances import METRICS, plain_name


def plain_rows(estimator: Any, X: Any, reset: bool) -> Array:
    """Rows as contiguous float64 (n, d); an infinite entry is an error by row and column."""
    x = np.ascontiguousarray(numeric_rows(estimator, X, reset), dtype=np.float64)
    refuse_infinite(x, type(estimator).__name__)
    return x


def sound_rules(estimator: Any) -> bool:
    """Whether parameters from a file are valid (scikit-learn's own check is not used for files)."""
    rules = [getattr(estimator, name) for name in ("reject_cost", "reject_below", "novelty")]
    prior = estimator.class_prior
    sound = all(rule is None or (type(rule) in (int, float) and rule >= 0) for rule in rules)
    sound = sound and type(estimator.p) in (int, float) and plain_name(estimator.metric) in METRICS
    return sound and (
        prior is None or prior == "uniform" if isinstance(prior, str | None) else isinstance(prior, dict | list)
    )


def row_weights(estimator: Any, sample_weight: Any, X: Array) -> Array:
    """Weights (n,) of rows, ones by default; some must be positive."""
    if sample_weight is None:
        return np.ones(len(X))
    w = input_validation.row_weights(sample_weight, X)
    if not (w > 0).any():
        expected = "some row must have a weight above 0"
        raise DataError(sentence(type(estimator).__name__, expected, "sample_weight all zero"))
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            expected, got = "the sum of sample_weight must be finite", "a sum that overflows"
            raise DataError(sentence(type(estimator).__name__, expected, got, "divide the weights by their maximum"))
    return w
