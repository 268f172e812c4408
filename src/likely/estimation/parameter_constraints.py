"""Constraints of parameters: what an estimator accepts, and the same as scikit-learn's objects, made on demand.

The names and meanings are those of scikit-learn's constraints. Model files are validated by them when they are loaded,
so they must not import scikit-learn, which takes as long as all else that scoring a row needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from numbers import Integral
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Interval:
    """Numbers of a type (`Integral` or `Real`) between two ends; None is no end.

    >>> Interval(Integral, 1, None, closed="left").is_satisfied_by(0)
    False
    """

    type: Any
    left: float | None
    right: float | None
    closed: Literal["left", "right", "both", "neither"]

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a value satisfies the constraint."""
        if not isinstance(value, self.type) or (not isinstance(value, Integral) and isnan(value)):
            return False
        low, high = -inf if self.left is None else self.left, inf if self.right is None else self.right
        above = value >= low if self.closed in ("left", "both") else value > low
        below = value <= high if self.closed in ("right", "both") else value < high
        return bool(above and below)

    def for_scikit_learn(self) -> Any:
        """The same constraint of scikit-learn."""
        from sklearn.utils import _param_validation

        return _param_validation.Interval(self.type, self.left, self.right, closed=self.closed)


class StrOptions:
    """One of several strings."""

    def __init__(self, options: Iterable[str]) -> None:
        self.options = set(options)

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a value satisfies the constraint."""
        return isinstance(value, str) and value in self.options

    def for_scikit_learn(self) -> Any:
        """The same constraint of scikit-learn."""
        from sklearn.utils import _param_validation

        return _param_validation.StrOptions(self.options)


class HasMethods:
    """An object with these methods; `words` describe an instance that has them, which a class is not."""

    def __init__(self, methods: Sequence[str], words: str = "") -> None:
        self.methods, self.words = list(methods), words

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a value satisfies the constraint."""
        if self.words and isinstance(value, type):
            return False
        return all(callable(getattr(value, name, None)) for name in self.methods)

    def for_scikit_learn(self) -> Any:
        """The same constraint of scikit-learn."""
        from sklearn.utils import _param_validation

        if not self.words:
            return _param_validation.HasMethods(self.methods)
        ours = self

        class Described(_param_validation.HasMethods):  # type: ignore[misc, unused-ignore]
            def is_satisfied_by(self, val: Any) -> bool:
                return ours.is_satisfied_by(val)

            def __str__(self) -> str:
                return ours.words

        return Described(self.methods)


def _is_array_like(value: Any) -> bool:
    sized = hasattr(value, "__len__") or hasattr(value, "shape") or hasattr(value, "__array__")
    return sized and not np.isscalar(value) and not hasattr(value, "tocsr")  # sparse matrices are no arrays


def _is_seed(value: Any) -> bool:
    return isinstance(value, np.random.RandomState | None) or SEEDS.is_satisfied_by(value)


def _is_splitter(value: Any) -> bool:
    splits = HasMethods(["split", "get_n_splits"]).is_satisfied_by(value)
    return value is None or splits or FOLDS.is_satisfied_by(value) or _is_listing(value)


def _is_listing(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


SEEDS = Interval(Integral, 0, 2**32 - 1, closed="both")
FOLDS = Interval(Integral, 2, None, closed="left")
NAMED: Mapping[str, Callable[[Any], bool]] = {
    "array-like": _is_array_like,
    "boolean": lambda value: isinstance(value, bool | np.bool_),
    "random_state": _is_seed,
    "cv_object": _is_splitter,
}


def is_allowed(value: Any, allowed: Any) -> bool:
    """Whether a value satisfies one of the constraints: objects of this module, names, types, `callable`, None.

    >>> is_allowed("weak", [StrOptions({"weak"}), None]), is_allowed(3, ["boolean"])
    (True, False)
    """
    return isinstance(allowed, str) or any(_satisfies(value, one) for one in allowed)  # a string: "no_validation"


def _satisfies(value: Any, constraint: Any) -> bool:
    if constraint is None:
        return value is None
    if constraint is callable:
        return callable(value)
    if isinstance(constraint, str):
        return NAMED[constraint](value)
    if isinstance(constraint, type):
        return isinstance(value, constraint)
    return bool(constraint.is_satisfied_by(value))


def for_scikit_learn(constraints: Mapping[str, Any]) -> dict[str, Any]:
    """The constraints of all parameters as scikit-learn's objects."""
    return {
        name: allowed if isinstance(allowed, str) else [_translated(one) for one in allowed]
        for name, allowed in constraints.items()
    }


def _translated(constraint: Any) -> Any:
    return constraint.for_scikit_learn() if isinstance(constraint, Interval | StrOptions | HasMethods) else constraint
