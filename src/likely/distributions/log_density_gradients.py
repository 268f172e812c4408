"""Score functions ∂ log p(x | θ)/∂θ in unconstrained parameters, by closed forms (`_parameter_score` of distributions).

`FreeParameters.scores` computes the same by finite differences, for any distribution; this is for streams, where one
distribution per row would be too slow. Rows must be complete and in the support (`table`); others use differences.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from likely.core.arrays import Array, Mask
from likely.distributions.gaussian.covariance_types import strictly_lower
from likely.distributions.unconstrained_parameters import BUILT_IN, TABLE, FreeParameters, constraints_of
from likely.numerics import spd

FARTHEST = 250.0  # norm of the log parameters in θ beyond which numbers may overflow: finite differences take over
CLOSED = 1e-12  # tolerance of the sum of a composition, which is 1


def _counts(z: Array, distribution: Any) -> Mask:
    return (z >= 0) & (z < 1e15) & (z == np.floor(z)) & (z <= getattr(distribution, "trials", np.inf))


def _closed(z: Array, distribution: Any) -> Mask:
    return (z > 0) & (z < 1) & (np.abs(z.sum(axis=-1, keepdims=True) - 1) < CLOSED)


# mask of entries for which the formulas hold, by the distribution's support
SUPPORTS: dict[str, Callable[[Array, Any], Mask]] = {
    "real": lambda z, distribution: np.isfinite(z),
    "positive": lambda z, distribution: (z > 0) & (z < np.inf),
    "unsigned": lambda z, distribution: (z >= 0) & (z < np.inf),
    "unit": lambda z, distribution: (z > 0) & (z < 1),
    "binary": lambda z, distribution: (z == 0) | (z == 1),
    "level": lambda z, distribution: _counts(z, distribution) & (z < distribution.size),
    "count": _counts,
    "simplex": _closed,
}


class FreeScores:
    """Scores of a distribution with `_parameter_score`, as `FreeParameters.scores` has them by differences.

    >>> import likely as lk
    >>> fast = formulas_of(FreeParameters(lk.Poisson([3.0])))
    >>> fast.scores(np.log([3.0]), np.array([[5.0]]))
    array([[2.]])
    """

    def __init__(self, free: FreeParameters) -> None:
        self.distribution, self.dim = free.like, _width(free.like)
        self.score = type(free.like)._parameter_score
        ways = {name: constraints_of(free.like).get(name, "") for name in list(signature(self.score).parameters)[1:]}
        ends = [0, *free.ends.tolist(), len(free.start)]
        where = {name: slice(a, b) for name, a, b in zip(free.names, ends[:-1], ends[1:], strict=True)}
        shapes = dict(zip(free.names, free.shapes, strict=True))
        self.bounded = np.flatnonzero(np.isfinite(free.bounds))
        learned = [way for way in ways.items() if way[1]]
        self.chosen = [i for i, (name, _) in enumerate(learned) if name in where]
        self.everything = len(self.chosen) == len(learned)
        self.back = [_inverse_transform(self.distribution, name, way, where, shapes) for name, way in ways.items()]

    def table(self, x: Any) -> tuple[Array, Mask] | None:
        """Rows as a matrix (n, d), and a mask of those for which the formulas hold; None for other input."""
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "biuf" or x.ndim not in (1, 2):
            return None
        z: Array = np.asarray(x[:, None] if x.ndim == 1 else x, dtype=np.float64)
        if z.shape[1] != self.dim:
            return None
        support = SUPPORTS[getattr(self.distribution, "_support", "real")]
        return z, np.asarray(support(z, self.distribution).all(axis=1))

    def near(self, theta: Array) -> bool:
        """True if the formulas do not overflow at θ; unbounded parameters such as means may be anywhere."""
        logs = theta[self.bounded]
        return float(logs.dot(logs)) < FARTHEST**2 and float(theta.dot(theta)) < np.inf

    def scores(self, theta: Array, z: Array) -> Array:
        """Scores ∂ log p(z_i | θ) / ∂θ (n, P)."""
        found = self.score(z, *[read(theta) for read in self.back])
        if self.everything:
            return found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        return np.concatenate([found[i] for i in self.chosen], axis=1)


def formulas_of(free: FreeParameters) -> FreeScores | None:
    """Closed-form scores, where the class has them; None for others, and for parameters declared otherwise."""
    distribution, me = free.like, type(free.like)
    declared = TABLE.get(me.__name__) is not BUILT_IN.get(me.__name__)
    if "_parameter_score" not in vars(me) or declared or getattr(distribution, "levels", None) is not None:
        return None
    return FreeScores(free)


def _width(distribution: Any) -> int:
    return 1 if type(distribution).__name__ == "Categorical" else int(distribution.dim)


def _inverse_transform(
    distribution: Any, name: str, constraint: str, where: dict[str, slice], shapes: Any
) -> Callable[[Array], Array]:
    """The function θ ↦ one parameter, in the form that the formulas take."""
    if name not in where:
        kept = np.asarray(getattr(distribution, name), dtype=np.float64)
        root = spd.cholesky(np.ascontiguousarray(kept)) if constraint == "covariance" and kept.ndim == 2 else kept
        if root is None:
            root = np.full_like(kept, np.nan)
        return lambda theta: root
    at, shape = where[name], shapes[name]
    if constraint == "covariance" and len(shape) == 2:
        return _cholesky_from(at, shape[0])
    if shape == ():
        return lambda theta: _INVERSE[constraint](theta[at.start])
    return lambda theta: _INVERSE[constraint](theta[at])


def _cholesky_from(at: slice, d: int) -> Callable[[Array], Array]:
    i, j = strictly_lower(d)
    on = np.arange(d)

    def read(theta: Array) -> Array:
        v = theta[at]
        root = np.zeros((d, d))
        root[on, on] = np.exp(v[:d])
        root[i, j] = v[d:]
        return root

    return read


def _softmax(v: Array) -> Array:
    e = np.exp(v - v.max())
    e /= e.sum()
    return np.asarray(e)


_INVERSE: dict[str, Callable[[Any], Array]] = {
    "real": lambda v: v,
    "positive": np.exp,
    "covariance": np.exp,
    "probability": lambda v: 1 / (1 + np.exp(-v)),
    "simplex": _softmax,
}

__all__ = ["FreeScores", "formulas_of"]
