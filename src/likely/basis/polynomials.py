"""Polynomials: monomials of columns, and orthogonal polynomials by their three-term recurrence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import comb
from typing import Annotated, Any, Self

import numpy as np

from likely.basis.basis import Basis, Columns, refuse_width
from likely.basis.placement import mean_and_deviation, middle_and_half
from likely.core import declared
from likely.core.arrays import Array, check_integer, parameter
from likely.core.errors import DomainError, ShapeError, sentence

MOST = 1_000_000  # monomials, from which a design matrix is a mistake rather than a wish


@dataclass(frozen=True, eq=False)
class Identity(Basis):
    """The columns themselves, with a constant: φ(x) = (1, x_1, …, x_d).

    Parameters
    ----------
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, chapter 1.1.

    Examples
    --------
    >>> Identity().design([[2.0, 3.0]])
    array([[1., 2., 3.]])
    """

    constant: bool = True

    def _functions(self, x: Array, where: Columns) -> Array:
        return x

    def _count(self, d: int) -> int:
        return d

    def _labels(self, columns: list[str]) -> list[str]:
        return columns


@dataclass(frozen=True, eq=False)
class Polynomial(Basis):
    """Monomials up to a total degree: 1, x_1, …, x_d, x_1², x_1 x_2, …, in the order of scikit-learn.

    Powers of columns far from 0 are nearly collinear. `scaled=True` maps each column to [−1, 1] first,
    t = (x − center) / scale, with the middle and the half width of its range in the rows that `fitted` gets;
    the span of the functions stays the same.

    Parameters
    ----------
    degree : int
        Largest total degree, at least 1; 0 leaves the constant alone.
    interactions : bool
        False: powers of single columns only.
    scaled : bool
        Whether columns are centered and scaled first.
    constant : bool
        Whether the constant function is one of them.
    center, scale : array-like (d,), optional
        Center and scale of each column; None: placed by `fitted`, where `scaled` says so.

    Examples
    --------
    >>> Polynomial(2).design([[2.0, 3.0]])
    array([[1., 2., 3., 4., 6., 9.]])
    >>> Polynomial(3).names(["x"])
    ['1', 'x', 'x^2', 'x^3']
    """

    degree: Annotated[int, declared.count]
    interactions: bool = True
    scaled: bool = False
    constant: bool = True
    center: Annotated[Array | None, declared.maybe(declared.numbers("d"))] = None
    scale: Annotated[Array | None, declared.maybe(declared.numbers("d"))] = None

    def __post_init__(self) -> None:
        degree = check_integer(self.degree, "Polynomial", "degree")
        center, scale = _checked_scale("Polynomial", self.center, self.scale)
        scaled = bool(self.scaled) or center is not None
        self._set(degree=degree, interactions=bool(self.interactions), scaled=scaled, center=center, scale=scale)

    @property
    def is_fitted(self) -> bool:
        """Whether the scale of the columns is known, or not asked for."""
        return not self.scaled or self.center is not None

    def _placed(self, x: Array, weight: Array | None) -> Self:
        center, scale = middle_and_half(x)
        return self.replace(center=center, scale=scale)

    def _functions(self, x: Array, where: Columns) -> Array:
        t = _scaled("Polynomial", x, self.center, self.scale).T
        terms = _monomials(x.shape[1], self.degree, self.interactions)
        out = np.empty((len(terms), len(x)))
        for i, (lower, j) in enumerate(terms):
            np.multiply(out[lower] if lower >= 0 else 1.0, t[j], out=out[i])
        return np.ascontiguousarray(out.T)

    def _count(self, d: int) -> int:
        return comb(d + self.degree, d) - 1 if self.interactions else d * self.degree

    def _labels(self, columns: list[str]) -> list[str]:
        powers: list[dict[int, int]] = []
        for lower, j in _monomials(len(columns), self.degree, self.interactions):
            own = dict(powers[lower]) if lower >= 0 else {}
            powers.append({**own, j: own.get(j, 0) + 1})
        return [" ".join(columns[j] + (f"^{k}" if k > 1 else "") for j, k in own.items()) for own in powers]


@cache
def _monomials(d: int, degree: int, interactions: bool) -> list[tuple[int, int]]:
    """Each monomial as (place of the one of lower degree, −1 for 1; the column that multiplies it)."""
    if interactions and comb(d + degree, d) > MOST:
        expected = f"at most {MOST:,} monomials"
        remedy = "lower the degree, or set interactions=False"
        raise DomainError(sentence("Polynomial", expected, f"{comb(d + degree, d):,}", remedy))
    place: dict[tuple[int, ...], int] = {(): -1}
    out: list[tuple[int, int]] = []
    for k in range(1, degree + 1):
        of_degree = combinations_with_replacement(range(d), k) if interactions else (((j,) * k) for j in range(d))
        for which in of_degree:
            place[which] = len(out)
            out.append((place[which[:-1]], which[-1]))
    return out


def _checked_scale(whose: str, center: Any, scale: Any) -> tuple[Array | None, Array | None]:
    """Center and scale (d,) of columns, both or neither."""
    if center is None and scale is None:
        return None, None
    center = np.zeros(np.shape(scale)) if center is None else np.atleast_1d(parameter(center, whose, "center"))
    scale = np.ones(center.shape) if scale is None else np.atleast_1d(parameter(scale, whose, "scale"))
    if center.ndim != 1 or center.shape != np.shape(scale):
        got = (center.shape, scale.shape)
        raise ShapeError(sentence(whose, "center and scale must have one number per column", got))
    if not (scale > 0).all():
        raise DomainError(sentence(whose, "scale must be positive", scale.min()))
    return center, scale


def _scaled(whose: str, x: Array, center: Array | None, scale: Array | None) -> Array:
    if center is None or scale is None:
        return x
    refuse_width(whose, len(center), x.shape[1])
    return (x - center) / scale


# -------------------------------------------------------------------- orthogonal polynomials

# P_{k+1} of t, P_k and P_{k−1}
Step = Callable[[int, Array, Array, Array], Array]
RECURRENCES: dict[str, Step] = {
    "legendre": lambda k, t, p, before: ((2 * k + 1) * t * p - k * before) / (k + 1),
    "chebyshev": lambda k, t, p, before: (2 if k else 1) * t * p - (before if k else 0.0),
    "hermite": lambda k, t, p, before: t * p - k * before,
}


@dataclass(frozen=True, eq=False)
class OrthogonalPolynomial(Basis):
    """Orthogonal polynomials of each column, by their three-term recurrence: P_1(t_j), …, P_degree(t_j).

    They span the powers of single columns, and their design matrix is well conditioned also for high degrees.
    "legendre" and "chebyshev" take t = (x − center) / scale with the middle and the half width of the range, "hermite"
    (the probabilists') with the mean and the standard deviation of the rows that `fitted` gets. Values are those of
    `numpy.polynomial`.

    Parameters
    ----------
    degree : int
        Largest degree, at least 0.
    kind : {"legendre", "chebyshev", "hermite"}
        Orthogonal for a uniform density on [−1, 1], for 1/√(1 − t²) there, or for a standard normal density.
    constant : bool
        Whether the constant function is one of them.
    center, scale : array-like (d,), optional
        Center and scale of each column; None: placed by `fitted`.

    References
    ----------
    Abramowitz and Stegun, Handbook of Mathematical Functions, chapter 22.

    Examples
    --------
    >>> OrthogonalPolynomial(2, center=0.0, scale=1.0).design([[0.5], [1.0]])
    array([[ 1.   ,  0.5  , -0.125],
           [ 1.   ,  1.   ,  1.   ]])
    """

    degree: Annotated[int, declared.count]
    kind: Annotated[str, declared.text(*RECURRENCES)] = "legendre"
    constant: bool = True
    center: Annotated[Array | None, declared.maybe(declared.numbers("d"))] = None
    scale: Annotated[Array | None, declared.maybe(declared.numbers("d"))] = None

    def __post_init__(self) -> None:
        me = "OrthogonalPolynomial"
        if self.kind not in RECURRENCES:
            raise DomainError(sentence(me, f"kind must be one of {', '.join(RECURRENCES)}", repr(self.kind)))
        center, scale = _checked_scale(me, self.center, self.scale)
        self._set(degree=check_integer(self.degree, me, "degree"), center=center, scale=scale)

    @property
    def is_fitted(self) -> bool:
        """Whether the scale of the columns is known."""
        return self.center is not None

    def _placed(self, x: Array, weight: Array | None) -> Self:
        center, scale = mean_and_deviation(x, weight) if self.kind == "hermite" else middle_and_half(x)
        return self.replace(center=center, scale=scale)

    def _functions(self, x: Array, where: Columns) -> Array:
        t, step = _scaled("OrthogonalPolynomial", x, self.center, self.scale), RECURRENCES[self.kind]
        out = np.empty((len(x), x.shape[1], self.degree))
        before, p = np.zeros_like(t), np.ones_like(t)
        for k in range(self.degree):
            before, p = p, step(k, t, p, before)
            out[:, :, k] = p
        return out.reshape(len(x), -1)

    def _count(self, d: int) -> int:
        return d * self.degree

    def _labels(self, columns: list[str]) -> list[str]:
        return [f"{self.kind}{k}({name})" for name in columns for k in range(1, self.degree + 1)]
