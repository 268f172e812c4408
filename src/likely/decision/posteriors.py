"""Validation of posterior probabilities and class priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, unmasked
from likely.core.errors import DataError, DomainError, ShapeError, sentence

ROWS_SUM_TO_ONE = 1e-6  # tolerance for single precision of other libraries
PRIORS_SUM_TO_ONE = 1e-9
ClassPrior: TypeAlias = "ArrayLike | Mapping[Any, float]"  # numbers in the order of the classes, or by label


def posteriors(P: Any, whose: str) -> Array:
    """Validated posteriors (n, C), each row probabilities that sum to 1; else an error that names the row.

    >>> posteriors([[0.25, 0.75]], "decide")
    array([[0.25, 0.75]])
    """
    try:
        a = np.asarray(unmasked(P), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(sentence(whose, "posteriors must be numbers (n, C)", type(P).__name__)) from error
    if a.ndim != 2 or not a.shape[1]:
        raise ShapeError(sentence(whose, "posteriors must have shape (n, C)", a.shape))
    with np.errstate(invalid="ignore"):
        sound = (a >= 0).all(axis=1) & (np.abs(a.sum(axis=1) - 1) <= ROWS_SUM_TO_ONE)
    if not sound.all():
        i = int(np.flatnonzero(~sound)[0])
        expected, remedy = (
            "each row of posteriors must be probabilities that add to 1",
            "pass probabilities, not scores",
        )
        raise DataError(
            sentence(whose, expected, f"{a[i]} at row {i}", f"{remedy}; lk.CalibratedClassifier converts them")
        )
    return a


def class_shares(given: Any, classes: int, whose: str, name: str = "class_prior") -> Array:
    """Validated probabilities of C classes (C,) that sum to 1.

    >>> class_shares([0.25, 0.75], 2, "combine_posteriors")
    array([0.25, 0.75])
    """
    try:
        prior = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(sentence(whose, f"{name} must be numbers", type(given).__name__)) from error
    if prior.shape != (classes,):
        raise ShapeError(sentence(whose, f"{name} needs one probability per class ({classes})", prior.shape))
    if not (np.isfinite(prior).all() and (prior >= 0).all() and abs(prior.sum() - 1) <= PRIORS_SUM_TO_ONE):
        expected = f"{name} must be probabilities that add to 1"
        scalable = np.isfinite(prior).all() and (prior >= 0).all() and prior.sum() > 0
        remedy = "divide them by their sum" if scalable else "none may be negative, infinite or missing"
        raise DomainError(sentence(whose, expected, prior.tolist(), remedy))
    return prior
