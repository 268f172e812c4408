"""Recognition of fitted models of other libraries by the names of their classes: no other library is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, sentence
from likely.distributions.gaussian.covariance_types import CovarianceKind

# covariance types of scikit-learn and hmmlearn
KINDS: dict[str, CovarianceKind] = {"full": "full", "tied": "full", "diag": "diagonal", "spherical": "spherical"}


def converter_of(
    model: Any, library: str, known: Mapping[str, Callable[..., Any]], whose: str, reasons: Mapping[str, str]
) -> Callable[..., Any]:
    """The function that converts models of this class; an error that lists the supported ones if there is none.

    The class is that of `library` from which the object's own class derives, so that users' subclasses are recognized.
    `reasons` say why some models cannot be converted, or what to convert instead.
    """
    lineage = (cls for cls in type(model).__mro__ if cls.__module__.split(".")[0] == library)
    name = next((cls.__name__ for cls in lineage), "")
    if name in known:
        return known[name]
    got = name or f"{type(model).__module__}.{type(model).__qualname__}"
    raise DomainError(sentence(whose, f"one of {', '.join(known)} is needed", got, reasons.get(name, "")))


def fitted_attributes(model: Any, names: str, whose: str) -> list[Any]:
    """The attributes of a fitted model; an error if it has not been fitted."""
    missing = [name for name in names.split() if not hasattr(model, name)]
    if missing:
        got = f"{type(model).__name__} without {missing[0]}"
        raise DataError(sentence(whose, "the model must be fitted", got, "fit it first"))
    return [getattr(model, name) for name in names.split()]


def normalized(probabilities: Any) -> Array:
    """Probabilities in double precision whose last axis sums to one."""
    p = np.asarray(probabilities, dtype=np.float64)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
