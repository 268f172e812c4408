"""Piecewise polynomials of single columns: B-splines and piecewise linear functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.basis.basis import Basis, Columns
from likely.basis.placement import evenly, quantiles, ranges
from likely.core import declared
from likely.core.arrays import Array, BadEntry, check_integer, parameter
from likely.core.errors import DomainError, ShapeError, sentence

KNOTS = declared.either(declared.positive, declared.items(declared.numbers("?")))
PLACEMENTS = ("quantile", "uniform")
BEYOND = ("linear", "constant", "error")


class _Knotted(Basis):
    """Functions of single columns with knots: a number of them, or one array per column (one for all columns)."""

    knots: Any
    placement: str
    constant: bool
    least = 1  # fewest knots of a column

    def __post_init__(self) -> None:
        me = type(self).__name__
        if self.placement not in PLACEMENTS:
            expected = f"placement must be one of {', '.join(PLACEMENTS)}"
            raise DomainError(sentence(me, expected, repr(self.placement)))
        if isinstance(self.knots, int | np.integer) and not isinstance(self.knots, bool):
            self._set(knots=check_integer(self.knots, me, "the number of knots", self.least))
            return
        given = self.knots if _is_nested(self.knots) else (self.knots,)
        self._set(knots=tuple(self._sorted(parameter(knots, me, "knots")) for knots in given))

    def _sorted(self, knots: Array) -> Array:
        if knots.ndim != 1 or len(knots) < self.least:
            expected = f"knots must be a list of at least {self.least} numbers, or one list per column"
            raise ShapeError(sentence(type(self).__name__, expected, knots.shape))
        if not (np.diff(knots) > 0).all():
            raise DomainError(sentence(type(self).__name__, "knots must increase", knots.tolist()))
        return knots

    @property
    def is_fitted(self) -> bool:
        """Whether the knots are known."""
        return isinstance(self.knots, tuple)

    def _knots(self, d: int) -> tuple[Array, ...]:
        """The knots of each of d columns."""
        if len(self.knots) not in (1, d):
            raise ShapeError(sentence(type(self).__name__, f"rows must have {len(self.knots)} columns", d))
        return tuple(self.knots) if len(self.knots) == d else tuple(self.knots) * d


def _is_nested(knots: Any) -> bool:
    return isinstance(knots, list | tuple) and any(np.ndim(one) for one in knots)


@dataclass(frozen=True, eq=False)
class BSpline(_Knotted):
    """B-splines of each column: piecewise polynomials of a degree, with continuous derivatives at the knots.

    The knots at both ends are repeated (a clamped knot vector), so the K + degree − 1 B-splines of a column sum to one
    between the ends. With a constant the first of them is therefore left out, which leaves the span as it is; without,
    all of them are there. A spline needs values between the ends: beyond, each function continues as its tangent there
    ("linear"), stays at its value ("constant"), or the row is an error.

    Parameters
    ----------
    knots : int, or array-like (K,), or one array-like per column
        The number of knots, both ends included, or the knots. By `fitted` the ends are the range of the rows; equal
        quantiles count once, so a column with few distinct values may have fewer.
    degree : int
        Degree of the pieces: 0 steps, 1 lines, 3 cubic.
    placement : {"quantile", "uniform"}
        Where `fitted` puts knots: at quantiles of the rows, or equally spaced.
    extrapolation : {"linear", "constant", "error"}
        What holds beyond the first and the last knot.
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, chapter 5.

    Examples
    --------
    >>> BSpline([0.0, 1.0, 2.0], degree=1).design([[0.5], [1.0], [3.0]])
    array([[ 1. ,  0.5,  0. ],
           [ 1. ,  1. ,  0. ],
           [ 1. , -1. ,  2. ]])
    """

    knots: Annotated[Any, KNOTS] = 5
    degree: Annotated[int, declared.count] = 3
    placement: Annotated[str, declared.text(*PLACEMENTS)] = "quantile"
    extrapolation: Annotated[str, declared.text(*BEYOND)] = "linear"
    constant: bool = True

    least = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.extrapolation not in BEYOND:
            expected = f"extrapolation must be one of {', '.join(BEYOND)}"
            raise DomainError(sentence("BSpline", expected, repr(self.extrapolation)))
        self._set(degree=check_integer(self.degree, "BSpline", "degree"))

    def _placed(self, x: Array, weight: Array | None) -> Self:
        if self.placement == "uniform":
            found = evenly(x, self.knots)
        else:
            found = quantiles(x, weight, np.linspace(0.0, 1.0, self.knots))
            found[0], found[-1] = ranges(x)
        return self.replace(knots=tuple(np.unique(knots) for knots in found.T))

    def _functions(self, x: Array, where: Columns) -> Array:
        own = zip(where, x.T, self._knots(x.shape[1]), strict=True)
        return np.hstack([self._of_column(j, column, knots)[:, self.constant :] for j, column, knots in own])

    def _of_column(self, j: int | str, x: Array, knots: Array) -> Array:
        """All B-splines of one column (n, K + degree − 1)."""
        low, high = knots[0], knots[-1]
        inside = np.clip(x, low, high)
        out = b_splines(inside, knots, self.degree)
        beyond = np.flatnonzero(x != inside)
        if len(beyond) and self.extrapolation == "error":
            i = int(beyond[0])
            expected, remedy = f"values must lie between {low:g} and {high:g}", 'or set extrapolation="linear"'
            raise BadEntry("BSpline", expected, x[i], i, j, remedy)
        if len(beyond) and self.extrapolation == "linear":
            slopes = _slopes(inside[beyond], knots, self.degree)
            out[beyond] += (x - inside)[beyond, None] * slopes
        return out

    def _count(self, d: int) -> int:
        return sum(len(knots) + self.degree - 1 - self.constant for knots in self._knots(d))

    def _labels(self, columns: list[str]) -> list[str]:
        first, own = int(self.constant), zip(columns, self._knots(len(columns)), strict=True)
        return [f"bspline{k}({name})" for name, knots in own for k in range(first, len(knots) + self.degree - 1)]


def b_splines(x: Array, knots: Array, degree: int) -> Array:
    """All B-splines at points between the first and the last knot, by the recurrence of Cox and de Boor.

    >>> b_splines(np.array([0.0, 0.25, 1.0]), np.array([0.0, 0.5, 1.0]), 1)
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    t = np.concatenate([np.full(degree, knots[0]), knots, np.full(degree, knots[-1])])
    m = len(t) - degree - 1
    span = np.clip(np.searchsorted(t, x, side="right") - 1, degree, m - 1)  # the last knot belongs to the last piece
    values = np.zeros((degree + 1, len(x)))  # those that are not 0 at x
    values[0] = 1.0
    for k in range(1, degree + 1):
        carried: Any = 0.0
        for r in range(k):
            left, right = t[span + r + 1 - k], t[span + r + 1]
            share = values[r] / (right - left)
            values[r] = carried + (right - x) * share
            carried = (x - left) * share
        values[k] = carried
    out = np.zeros((len(x), m))
    np.put_along_axis(out, span[:, None] - degree + np.arange(degree + 1), values.T, axis=1)
    return out


def _slopes(x: Array, knots: Array, degree: int) -> Array:
    """Derivatives of all B-splines (n, m): p (B_{i,p−1} / (t_{i+p} − t_i) − B_{i+1,p−1} / (t_{i+p+1} − t_{i+1}))."""
    if not degree:
        return np.zeros((len(x), len(knots) - 1))
    t = np.concatenate([np.full(degree, knots[0]), knots, np.full(degree, knots[-1])])
    lower = degree * b_splines(x, knots, degree - 1) / (t[degree + 1 : -1] - t[1 : -degree - 1])
    none = np.zeros((len(x), 1))
    return np.hstack([none, lower]) - np.hstack([lower, none])


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(_Knotted):
    """Continuous piecewise linear functions of each column: x and max(x − κ, 0) for each knot κ.

    A coefficient of max(x − κ, 0) is the change of slope at κ. The first and the last line continue beyond the data.

    Parameters
    ----------
    knots : int, or array-like (K,), or one array-like per column
        The number of knots, or the knots, where the slope changes. By `fitted` they are K quantiles k/(K + 1) of the
        rows, or K equally spaced points within their range; equal ones count once.
    placement : {"quantile", "uniform"}
        Where `fitted` puts knots.
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, chapter 5.

    Examples
    --------
    >>> PiecewiseLinear([1.0]).design([[0.5], [3.0]])
    array([[1. , 0.5, 0. ],
           [1. , 3. , 2. ]])
    """

    knots: Annotated[Any, KNOTS] = 5
    placement: Annotated[str, declared.text(*PLACEMENTS)] = "quantile"
    constant: bool = True

    def _placed(self, x: Array, weight: Array | None) -> Self:
        inner = np.arange(1, self.knots + 1) / (self.knots + 1)
        found = evenly(x, self.knots + 2)[1:-1] if self.placement == "uniform" else quantiles(x, weight, inner)
        return self.replace(knots=tuple(np.unique(knots) for knots in found.T))

    def _functions(self, x: Array, where: Columns) -> Array:
        own = zip(x.T, self._knots(x.shape[1]), strict=True)
        parts = [(column[:, None], np.maximum(column[:, None] - knots, 0.0)) for column, knots in own]
        return np.hstack([part for pair in parts for part in pair])

    def _count(self, d: int) -> int:
        return sum(1 + len(knots) for knots in self._knots(d))

    def _labels(self, columns: list[str]) -> list[str]:
        own = zip(columns, self._knots(len(columns)), strict=True)
        return [name for column, knots in own for name in (column, *(f"max({column} - {k:.4g}, 0)" for k in knots))]
