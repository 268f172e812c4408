"""Local costs of DTW: named costs, Mahalanobis and cosine by a transform of the frames, or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from likely.alignment.series import Series
from likely.core.arrays import Array, Mask, check_option, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.numerics.spd import is_symmetric

ABSOLUTE, SQUARED, EUCLIDEAN = 0, 1, 2  # as in _loops, which would load the compiler
MetricName = Literal["cityblock", "sqeuclidean", "euclidean", "cosine"]
MetricLike = MetricName | tuple[Literal["mahalanobis"], ArrayLike] | Callable[[Array, Array], ArrayLike]


class LocalCost(NamedTuple):
    """A local cost with the transform of the frames for it; `takes_root`: the distance is the root of the total."""

    kind: int
    takes_root: bool
    prepare: Callable[[Series, str], Series]
    function: Callable[[Array, Array], Any] | None = None  # user function: the matrix of costs of all pairs of frames

    def of_width(self, D: int) -> int:
        """The kind for frames of D entries: for one entry √z² is |z|, which neither overflows nor underflows."""
        return ABSOLUTE if self.kind == EUCLIDEAN and D == 1 else self.kind

    def matrix(self, a: Array, b: Array, missing_a: Mask, missing_b: Mask, whose: str) -> Array:
        """Costs (n, m) by a user function; empty for named costs."""
        if self.function is None:
            return np.empty((0, 0))
        out, observed = np.zeros((len(a), len(b))), (~missing_a, ~missing_b)  # a missing frame costs nothing
        x, y = a[observed[0]].copy(), b[observed[1]].copy()
        costs = np.asarray(self.function(x, y))
        wanted = (len(x), len(y))
        if costs.shape != wanted or costs.dtype.kind not in "biuf":
            expected = f"a metric must return numbers {wanted} for frames {x.shape} and {y.shape}"
            remedy = 'one per pair of frames, as scipy\'s cdist(a, b, "cityblock") does'
            raise ShapeError(sentence(whose, expected, f"{costs.dtype} {costs.shape}", remedy))
        bad = np.argwhere(~(costs > -np.inf))
        if len(bad):
            i, j = bad[0].tolist()
            got = f"{costs[i, j]} for frames {i} and {j}"
            raise DataError(sentence(whose, "costs must be numbers", got, "infinity forbids a match"))
        out[np.ix_(*observed)] = costs
        return out


def local_cost(metric: MetricLike, whose: str, name: str = "metric") -> LocalCost:
    """Validate a `metric`, the local cost of two frames.

    "cityblock" Σ|z|, "sqeuclidean" Σz², "euclidean" √Σz², "cosine" 1 − cos, ("mahalanobis", covariance) √(zᵀ S⁻¹ z),
    where z is the difference of two frames, or a function of frames a (n, D) and b (m, D) that returns a matrix (n, m).

    >>> local_cost("sqeuclidean", "dtw").takes_root
    True
    """
    if isinstance(metric, tuple | list) and len(metric) == 2 and str(metric[0]) == "mahalanobis":
        return _mahalanobis(metric[1], whose)
    if callable(metric):
        return LocalCost(ABSOLUTE, False, _complete, metric)
    check_option(metric, MetricName, whose, name, '("mahalanobis", covariance), or a function of frames')
    kind = {"cityblock": ABSOLUTE, "euclidean": EUCLIDEAN}.get(str(metric), SQUARED)
    return LocalCost(kind, metric == "sqeuclidean", _directions if metric == "cosine" else _unchanged)


def _unchanged(series: Series, whose: str) -> Series:
    return series


def _complete(series: Series, whose: str) -> Series:
    """A user function needs complete frames."""
    _refuse_partial(series, whose, "a metric that is a function")
    return series


def _directions(series: Series, whose: str) -> Series:
    """Frames normalized to length √½: their squared distance is 1 − cos, also for small angles."""
    _refuse_partial(series, whose, "cosine")
    size = np.abs(series.values).max(axis=1, keepdims=True)
    zero = np.flatnonzero(size == 0)
    if len(zero):
        remedy = 'leave such frames out, set them to NaN, or use another metric, such as "euclidean"'
        raise DataError(sentence(whose, "cosine needs nonzero frames", f"zeros in row {zero[0]}", remedy))
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
        remedy = "add a small number to its diagonal"
        raise DomainError(sentence(whose, "covariance must be positive definite", "one that is not", remedy)) from error
    return LocalCost(EUCLIDEAN, False, lambda series, name: _whitened(series, root, name))


def _whitened(series: Series, root: Array, whose: str) -> Series:
    D = series.values.shape[1]
    if D != len(root):
        raise ShapeError(sentence(whose, f"covariance must have shape ({D}, {D}), as frames have", root.shape))
    _refuse_partial(series, whose, "mahalanobis")
    whitened = np.full_like(series.values, np.nan)
    observed = ~series.missing
    whitened[observed] = scipy.linalg.solve_triangular(root, series.values[observed].T, lower=True).T
    return replace(series, values=whitened)


def _refuse_partial(series: Series, whose: str, metric: str) -> None:
    """Require that frames are complete, or missing as a whole."""
    if series.has_missing:
        partial = np.flatnonzero(np.isnan(series.values).any(axis=1) & ~series.missing)
        if len(partial):
            remedy = 'fill it, or use "cityblock", "sqeuclidean" or "euclidean"'
            expected = f"{metric} needs frames that are complete, or missing as a whole"
            raise DataError(sentence(whose, expected, f"a missing value in row {partial[0]}", remedy))
