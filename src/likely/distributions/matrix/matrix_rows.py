"""Symmetric positive definite matrices as rows: validation, Cholesky factors and sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, numbers, refuse_infinite
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.numerics import spd


class Matrices(NamedTuple):
    """Matrices (n, d, d) with Cholesky factors; masks of those that are positive definite and that are observed."""

    x: Array  # (n, d, d): the identity where a row is not positive definite
    root: Array  # (n, d, d)
    inside: Mask  # (n,): positive definite
    seen: Mask  # (n,): observed


def matrices(x: Any, d: int, whose: str) -> Matrices:
    """Rows (n, d, d), or (n, d²) flattened, as matrices with Cholesky factors; a row of NaN is missing."""
    a = _shaped(numbers(x, whose), d, whose)
    refuse_infinite(a.reshape(len(a), d * d), whose)
    missing = np.isnan(a).any(axis=(1, 2))
    observed = np.asarray(~np.isnan(a).all(axis=(1, 2)))
    if (missing & observed).any():
        expected = "a matrix must be complete, or missing as a whole"
        row = int(np.flatnonzero(missing & observed)[0])
        raise DataError(sentence(whose, expected, f"NaN in some entries of row {row}"))
    a = np.where(observed[:, None, None], a, np.eye(d))
    asymmetric = np.flatnonzero(~_symmetric(a))
    if len(asymmetric):
        expected, remedy = "matrices must be symmetric", "pass (X + X.transpose(0, 2, 1)) / 2"
        raise DataError(sentence(whose, expected, f"row {int(asymmetric[0])}", remedy))
    root, inside = _factors(a)
    return Matrices(np.where(inside[:, None, None], a, np.eye(d)), root, inside, observed)


def _shaped(a: Array, d: int, whose: str) -> Array:
    if a.ndim == 1 and d == 1:
        a = a[:, None]
    if a.ndim == 2 and a.shape[1] == d * d:
        a = a.reshape(-1, d, d)
    if a.ndim != 3 or a.shape[1:] != (d, d):
        remedy = "pass one symmetric matrix per observation"
        raise ShapeError(sentence(whose, f"rows must have shape (n, {d}, {d}) or (n, {d * d})", a.shape, remedy))
    return a


def _symmetric(a: Array) -> Mask:
    s = np.sqrt(np.abs(np.diagonal(a, axis1=1, axis2=2)))
    return np.asarray(
        (np.abs(a - np.swapaxes(a, 1, 2)) <= 1e-8 * s[:, :, None] * s[:, None, :]).all(axis=(1, 2))
        | ~(np.diagonal(a, axis1=1, axis2=2) > 0).all(axis=1)  # not positive definite in any case
    )


def _factors(a: Array) -> tuple[Array, Mask]:
    """Cholesky factors, and a mask of the rows that have one; the others get the identity."""
    root = spd.cholesky(a) if (np.diagonal(a, axis1=1, axis2=2) > 0).all() else None
    if root is not None:
        return root, np.ones(len(a), bool)
    roots = [spd.cholesky(one) if (np.diagonal(one) > 0).all() else None for one in a]
    eye = np.eye(a.shape[-1])
    found = np.array([eye if r is None else r for r in roots]).reshape(a.shape)
    return found, np.array([r is not None for r in roots], dtype=bool)


@dataclass(frozen=True, eq=False)
class MatrixSums(Addable, Value):
    """Sufficient statistics of Wishart distributions: Σ w, Σ w X, Σ w X⁻¹ and Σ w log det X."""

    weight: Annotated[Array, declared.numbers("*", 0)]  # (...)
    total: Annotated[Array, declared.numbers("* d d")]  # (..., d, d)
    inverse: Annotated[Array, declared.numbers("* d d")]  # (..., d, d)
    logdet: Annotated[Array, declared.numbers("*")]  # (...)

    complete = True

    @property
    def rows(self) -> Array:
        """Weight of the rows (...)."""
        return self.weight

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.weight))

    def __add__(self, other: MatrixSums) -> Self:
        if self.total.shape != other.total.shape:
            raise ShapeError(sentence("MatrixSums", f"both must be of shape {self.total.shape}", other.total.shape))
        return self.trusted(
            **{name: np.asarray(part + getattr(other, name)) for name, part in self.field_values().items()}
        )

    def __mul__(self, factor: float) -> Self:
        return self.trusted(**{name: np.asarray(part * factor) for name, part in self.field_values().items()})

    __rmul__ = __mul__

    def member(self, k: Any) -> Self:
        """Statistics of one member of a stack, or of several."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self.field_values().items()})

    def pooled(self) -> Self:
        """Statistics of the rows of all members together."""
        if self.weight.ndim == 0:
            return self
        return self.trusted(**{name: np.asarray(part.sum(axis=0)) for name, part in self.field_values().items()})


def matrix_sums(x: Any, shares: Any, members: int | None, d: int, whose: str) -> MatrixSums:
    """Sufficient statistics of rows under weights (m, n)."""
    rows = matrices(x, d, whose)
    _refuse_outside(rows, shares, whose)
    used = rows.seen.astype(np.float64)
    inverse = spd.precision(rows.root) if len(rows.x) else rows.x
    parts = {
        "weight": shares @ used,
        "total": (shares @ (used[:, None] * rows.x.reshape(-1, d * d))).reshape(-1, d, d),
        "inverse": (shares @ (used[:, None] * inverse.reshape(-1, d * d))).reshape(-1, d, d),
        "logdet": shares @ (used * spd.logdet(rows.root)),
    }
    return MatrixSums.trusted(**{name: per_member(np.asarray(part), members) for name, part in parts.items()})


def per_member(part: Array, members: int | None) -> Array:
    """Sums of a single distribution, or one row per member."""
    if members is None:
        return np.array(part[0])
    return np.repeat(part, members, axis=0) if len(part) == 1 and members > 1 else part


def _refuse_outside(rows: Matrices, shares: Any, whose: str) -> None:
    has_weight = np.asarray(shares.sum(axis=0)).ravel() > 0
    bad: Index = np.flatnonzero(~rows.inside & has_weight)
    if len(bad):
        expected, remedy = "matrices must be positive definite", "leave it out, or add a small value to its diagonal"
        raise DataError(sentence(whose, expected, f"row {int(bad[0])}", remedy))
