"""What two frames cost when they are matched: a name, and for two of the names a change of frames beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from likely.core.arrays import Array, parameter
from likely.errors import DataError, DomainError, ShapeError, sentence
from likely.maths.spd import is_symmetric
from likely.models.warp_frames import Series

ABSOLUTE, SQUARED, EUCLIDEAN = 0, 1, 2  # as in loops.warp, which would load the compiler
NAMES = ("absolute", "squared", "euclidean", "cosine")


class LocalCost(NamedTuple):
    """A compiled cost of frames that were prepared for it; with `rooted`, a distance is the root of the total."""

    kind: int
    rooted: bool
    prepare: Callable[[Series, str], Series]

    def of_width(self, D: int) -> int:
        """The kind for frames of D entries: of one, √z² is |z|, which neither overflows nor vanishes."""
        return ABSOLUTE if self.kind == EUCLIDEAN and D == 1 else self.kind


def local_cost(cost: Any, whose: str, name: str = "cost") -> LocalCost:
    """The cost that is meant by "absolute" Σ|z|, "squared" Σz², "euclidean" √Σz², "cosine" 1 − cos, or
    ("mahalanobis", covariance) √(zᵀ S⁻¹ z), where z is the difference of two frames.

    >>> local_cost("squared", "dtw").rooted
    True
    """
    if isinstance(cost, tuple | list) and len(cost) == 2 and isinstance(cost[0], str) and cost[0] == "mahalanobis":
        return _mahalanobis(cost[1], whose)
    if not isinstance(cost, str) or cost not in NAMES:
        got = "a function" if callable(cost) else repr(cost)
        remedy = "for a cost of your own pass its matrix: dtw(costs=matrix)" if callable(cost) else ""
        words = ", ".join(f'"{name}"' for name in NAMES)
        raise DomainError(sentence(whose, f'{name} must be {words} or ("mahalanobis", covariance)', got, remedy))
    kind = {"absolute": ABSOLUTE, "euclidean": EUCLIDEAN}.get(cost, SQUARED)
    return LocalCost(kind, cost == "squared", _directions if cost == "cosine" else _unchanged)


def _unchanged(series: Series, whose: str) -> Series:
    return series


def _directions(series: Series, whose: str) -> Series:
    """Frames of length √½: their squared distance is 1 − cos, also where the angle is small."""
    _refuse_partial(series, whose, "cosine")
    size = np.abs(series.values).max(axis=1, keepdims=True)
    flat = np.flatnonzero(size == 0)
    if len(flat):
        remedy = 'leave such frames out, make them NaN, or use another cost, such as "euclidean"'
        raise DataError(sentence(whose, "cosine needs frames with a direction", f"zeros in row {flat[0]}", remedy))
    unit = series.values / size
    return replace(series, values=unit / (np.sqrt(2.0) * np.linalg.norm(unit, axis=1, keepdims=True)))


def _mahalanobis(covariance: Any, whose: str) -> LocalCost:
    S = parameter(covariance, whose, "covariance")
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ShapeError(sentence(whose, "covariance must have shape (D, D)", S.shape))
    if not is_symmetric(S):
        i, j = np.unravel_index(np.argmax(np.abs(S - S.T)), S.shape)
        got = f"{S[i, j]:g} at ({i}, {j}) and {S[j, i]:g} at ({j}, {i})"
        raise DomainError(sentence(whose, "covariance must be symmetric", got, "pass (S + S.T) / 2 if that is meant"))
    try:
        root = scipy.linalg.cholesky(S, lower=True)
    except scipy.linalg.LinAlgError as error:
        remedy = "add a little to its diagonal"
        raise DomainError(sentence(whose, "covariance must be positive definite", "one that is not", remedy)) from error
    return LocalCost(EUCLIDEAN, False, lambda series, name: _whitened(series, root, name))


def _whitened(series: Series, root: Array, whose: str) -> Series:
    D = series.values.shape[1]
    if D != len(root):
        raise ShapeError(sentence(whose, f"covariance must have shape ({D}, {D}), as frames have", root.shape))
    _refuse_partial(series, whose, "mahalanobis")
    white = np.full_like(series.values, np.nan)
    seen = ~series.bare
    white[seen] = scipy.linalg.solve_triangular(root, series.values[seen].T, lower=True).T
    return replace(series, values=white)


def _refuse_partial(series: Series, whose: str, cost: str) -> None:
    """Where entries depend on each other, a frame is whole or not there at all."""
    if series.gaps:
        partial = np.flatnonzero(np.isnan(series.values).any(axis=1) & ~series.bare)
        if len(partial):
            remedy = 'fill it, or use "absolute", "squared" or "euclidean"'
            expected = f"{cost} needs frames that are whole, or missing as a whole"
            raise DataError(sentence(whose, expected, f"a gap in row {partial[0]}", remedy))
