"""Hyperplanes: signed distance, projection and side of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, parameter, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Hyperplane(Value):
    """Hyperplane {x: nᵀx + b = 0}.

    Distances are positive on the side of the normal: for a decision boundary that of the first class.

    Parameters
    ----------
    normal : array-like (d,)
        Normal n.
    offset : float, default 0.0
        Offset b.

    References
    ----------
    Bishop (2006), chapter 4; Ney, lecture notes, 2.3; Herbst and du Preez, lecture notes, 4.1.

    Examples
    --------
    >>> Hyperplane([3.0, 4.0], -5.0).distance([[3.0, 4.0], [0.0, 0.0]])
    array([ 4., -1.])
    """

    normal: Annotated[Array, declared.numbers("d")]  # (d,)
    offset: float = 0.0

    def __post_init__(self) -> None:
        normal = np.atleast_1d(parameter(self.normal, "Hyperplane", "normal"))
        offset = parameter(self.offset, "Hyperplane", "offset")
        if normal.ndim != 1 or not normal.size or offset.ndim:
            expected = "normal must have shape (d,) and offset be a number"
            raise ShapeError(sentence("Hyperplane", expected, f"{normal.shape} and {offset.shape}"))
        if not normal.any():
            raise DomainError(sentence("Hyperplane", "the normal must not be 0", normal.tolist()))
        self._set(normal=normal, offset=float(offset))

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self.normal)

    @property
    def direction(self) -> Array:
        """The unit normal."""
        return self._unit[0]

    @property
    def _unit(self) -> tuple[Array, float]:
        """Normal and offset divided by the norm of the normal."""
        size = float(np.abs(self.normal).max())
        n = self.normal / size
        length = float(np.linalg.norm(n))
        return n / length, self.offset / size / length

    def distance(self, x: ArrayLike) -> Array:
        """Signed distance (nᵀx + b)/‖n‖ of each row.

        Returns
        -------
        ndarray (n,)
            Positive on the side of the normal.
        """
        z = rows(x, self.dim, "Hyperplane")
        self._refuse_missing(z)
        n, b = self._unit
        return np.asarray(z @ n + b)

    def project(self, x: ArrayLike) -> Array:
        """Orthogonal projection of each row on the hyperplane.

        Returns
        -------
        ndarray (n, d)
            Points on the hyperplane.
        """
        z = rows(x, self.dim, "Hyperplane")
        return np.asarray(z - self.distance(z)[:, None] * self._unit[0])

    def side(self, x: ArrayLike) -> Array:
        """Side of the hyperplane on which each row lies.

        Returns
        -------
        ndarray (n,)
            1 on the side of the normal, −1 on the other, 0 on the hyperplane itself.
        """
        return np.sign(self.distance(x))

    def _refuse_missing(self, z: Array) -> None:
        refuse_infinite(z, "Hyperplane")
        bad = np.argwhere(np.isnan(z))
        if len(bad):
            expected, remedy = "a distance needs every entry", "impute it first, see lk.impute"
            raise DataError(sentence("Hyperplane", expected, f"NaN at row {bad[0][0]}, column {bad[0][1]}", remedy))
