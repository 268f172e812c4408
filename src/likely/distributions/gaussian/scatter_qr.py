"""Square root of the scatter matrix by QR decomposition: R with RᵀR = S, accumulated block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class ScatterRoot(Addable, Value):
    """Sufficient statistics weight, mean and root R (r, d) of the scatter: RᵀR = Σ w (x − mean)(x − mean)ᵀ.

    Singular values of R are accurate to 1e-16 of the largest; eigenvalues of the scatter only to 1e-16 of the largest
    *squared*, so that standard deviations below 1e-8 of the largest are lost there. The sum of two is the R factor of
    the QR decomposition of both roots and the weighted difference of the means, stacked.

    >>> a, b = (root_of_rows(np.array(x), None, np.zeros(1)) for x in ([[0.0], [2.0]], [[4.0]]))
    >>> (a + b).mean, (a + b).root**2
    (array([2.]), array([[8.]]))
    """

    weight: Annotated[Array, declared.numbers("", 0)]  # ()
    origin: Annotated[Array, declared.numbers("d")]  # (d,): the mean is kept relative to it
    shift: Annotated[Array, declared.numbers("d")]  # (d,): mean − origin
    root: Annotated[Array, declared.numbers("r d")]  # (r, d), r ≤ d once two of them were added

    complete = True

    @property
    def mean(self) -> Array:
        """Weighted mean (d,)."""
        return self.origin + self.shift

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.weight)

    def __add__(self, other: ScatterRoot) -> ScatterRoot:
        if self.origin.shape != other.origin.shape:
            expected = f"both must have {len(self.origin)} columns"
            raise ShapeError(sentence("ScatterRoot", expected, len(other.origin)))
        weight = self.weight + other.weight
        if not (self.weight > 0 and other.weight > 0):
            return self if self.weight > 0 else other
        delta = other.shift + (other.origin - self.origin) - self.shift
        share = other.weight / weight
        between = np.sqrt(self.weight * share) * delta
        root = _upper(np.concatenate([self.root, other.root, between[None]]))
        return ScatterRoot.trusted(weight=weight, origin=self.origin, shift=self.shift + share * delta, root=root)

    def __mul__(self, factor: float) -> ScatterRoot:
        return self.replace(weight=self.weight * factor, root=self.root * np.sqrt(factor))

    __rmul__ = __mul__


def root_of_rows(x: Array, weight: Array | None, origin: Array) -> ScatterRoot | None:
    """Statistics of complete rows (n, d); None if an entry is NaN or infinite, or sums overflow."""
    centered = centered_rows(x, weight, origin)
    if centered is None or len(centered.root) <= x.shape[1]:
        return centered
    return centered.replace(root=_upper(np.array(centered.root)))


def centered_rows(x: Array, weight: Array | None, origin: Array) -> ScatterRoot | None:
    """`root_of_rows` with the centered rows themselves as root (n, d), without QR: shortest if n ≤ d."""
    total = float(len(x)) if weight is None else float(weight.sum())
    if not total > 0:
        zero = np.zeros(len(origin))
        return ScatterRoot.trusted(weight=np.zeros(()), origin=origin, shift=zero, root=np.empty((0, len(origin))))
    with np.errstate(over="ignore", invalid="ignore"):
        first = x[0] if weight is None else x[int(weight.argmax())]
        z = x - first
        rest = (z.sum(axis=0) if weight is None else weight @ z) / total
        z -= rest
        correction = (z.sum(axis=0) if weight is None else weight @ z) / total  # the first row may be an outlier
        z -= correction
        if weight is not None:
            z *= np.sqrt(weight)[:, None]
        if not np.isfinite(np.einsum("nd,nd->", z, z)):
            return None
    shift = (first - origin) + (rest + correction)
    return ScatterRoot.trusted(weight=np.asarray(total), origin=origin, shift=shift, root=z)


def _upper(a: Array) -> Array:
    """Upper triangular factor of the QR decomposition."""
    return np.asarray(np.linalg.qr(a, mode="r"))
