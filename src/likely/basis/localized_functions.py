"""Functions with a center and a width: Gaussians and sigmoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import expit

from likely.basis.basis import Basis, Columns, refuse_width
from likely.basis.placement import evenly, ranges
from likely.core import declared
from likely.core.arrays import Array, check_integer, parameter
from likely.core.errors import DomainError, ShapeError, sentence

CENTERS = declared.either(declared.positive, declared.numbers("M d"))
WIDTH = declared.maybe(declared.numbers("d", 0))


class _Localized(Basis):
    """Functions of (x − c) / s; centers are a number of them, or (M, d) once they are known."""

    centers: Any
    width: Any
    constant: bool

    def __post_init__(self) -> None:
        me = type(self).__name__
        if np.ndim(self.centers):
            centers: Any = parameter(self.centers, me, "centers")
            centers = centers[:, None] if centers.ndim == 1 else centers
            if centers.ndim != 2 or 0 in centers.shape:
                raise ShapeError(sentence(me, "centers must have shape (M,) or (M, d)", centers.shape))
        else:
            centers = check_integer(self.centers, me, "centers, or the number of them,", 1)
        width = None if self.width is None else np.atleast_1d(parameter(self.width, me, "width"))
        if width is not None and (width.ndim > 1 or not (width > 0).all()):
            raise DomainError(sentence(me, "width must be positive, one number or one per column", self.width))
        if isinstance(centers, np.ndarray) and width is not None:
            width = _one_per_column(me, width, centers.shape[1])
        self._set(centers=centers, width=width)

    @property
    def is_fitted(self) -> bool:
        """Whether centers and widths are known."""
        return isinstance(self.centers, np.ndarray) and self.width is not None

    def _placed(self, x: Array, weight: Array | None) -> Self:
        centers = evenly(x, self.centers) if isinstance(self.centers, int) else self.centers
        refuse_width(type(self).__name__, centers.shape[1], x.shape[1])
        if self.width is not None:
            width = _one_per_column(type(self).__name__, self.width, x.shape[1])
        else:
            width = self._spacing(centers, x)
        return self.replace(centers=centers, width=width)

    def _spacing(self, centers: Array, x: Array) -> Array:
        """The mean distance (d,) of neighboring centers of each column; of a single one half the range of the rows."""
        apart = np.ptp(centers, axis=0) / max(len(centers) - 1, 1)
        low, high = ranges(x)
        return np.where(apart > 0, apart, 0.5 * (high - low))

    def _distances(self, x: Array) -> Array:
        """(x − c) / s of each column and center, (n, d, M)."""
        refuse_width(type(self).__name__, self.centers.shape[1], x.shape[1])
        return (x[:, :, None] - self.centers.T) / self.width[:, None]

    def _count(self, d: int) -> int:
        refuse_width(type(self).__name__, self.centers.shape[1], d)
        return int(self.centers.size)


def _one_per_column(me: str, width: Array, d: int) -> Array:
    if len(width) not in (1, d):
        raise ShapeError(sentence(me, f"width must be one number, or one for each of {d} columns", width.shape))
    return np.array(np.broadcast_to(width, (d,)))


@dataclass(frozen=True, eq=False)
class GaussianBasis(_Localized):
    """Gaussian basis functions exp(−(x − c)² / 2s²) with centers c and width s.

    Of several columns each has its own functions; `joint=True` makes radial functions exp(−½ Σ_j (x_j − c_j)² / s_j²)
    of whole rows, about given centers (such as those of `lk.KMeans`).

    Parameters
    ----------
    centers : int, or array-like (M,) or (M, d)
        A number per column, which `fitted` spaces equally over the range of the rows, or the centers.
    width : float or array-like (d,), optional
        The width s. None: the distance between neighboring centers of a column, of joint ones the mean distance of a
        center to its nearest, in units of the columns' ranges.
    joint : bool
        Whether functions are of all columns together.
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, chapter 3.1.

    Examples
    --------
    >>> GaussianBasis([0.0, 1.0], 1.0).design([[0.0]]).round(4)
    array([[1.    , 1.    , 0.6065]])
    """

    centers: Annotated[Any, CENTERS] = 10
    width: Annotated[Any, WIDTH] = None
    joint: bool = False
    constant: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint and not isinstance(self.centers, np.ndarray):
            remedy = "pass rows of centers, such as cluster_centers_ of lk.KMeans"
            raise DomainError(sentence("GaussianBasis", "joint=True needs centers (M, d)", repr(self.centers), remedy))

    def _spacing(self, centers: Array, x: Array) -> Array:
        if not self.joint or len(centers) < 2:
            return super()._spacing(centers, x)
        low, high = ranges(x)
        unit = high - low
        apart = np.sqrt((((centers[:, None] - centers) / unit) ** 2).sum(axis=2))
        np.fill_diagonal(apart, np.inf)
        return unit * max(float(apart.min(axis=1).mean()), np.finfo(float).tiny)

    def _functions(self, x: Array, where: Columns) -> Array:
        if not self.joint:
            return np.exp(-0.5 * self._distances(x) ** 2).reshape(len(x), -1)
        refuse_width("GaussianBasis", self.centers.shape[1], x.shape[1])
        squares = np.zeros((len(x), len(self.centers)))
        for column, center, width in zip(x.T, self.centers.T, self.width, strict=True):
            squares += ((column[:, None] - center) / width) ** 2
        return np.asarray(np.exp(-0.5 * squares))

    def _count(self, d: int) -> int:
        return len(self.centers) if self.joint else super()._count(d)

    def _labels(self, columns: list[str]) -> list[str]:
        if self.joint:
            return [f"gaussian({', '.join(f'{c:.4g}' for c in center)})" for center in self.centers.tolist()]
        return [f"gaussian({name}, {c:.4g})" for name, own in zip(columns, self.centers.T, strict=True) for c in own]


@dataclass(frozen=True, eq=False)
class SigmoidBasis(_Localized):
    """Logistic sigmoid basis functions σ((x − c) / s) with σ(a) = 1 / (1 + e^−a), of each column.

    Parameters
    ----------
    centers : int, or array-like (M,) or (M, d)
        A number per column, which `fitted` spaces equally over the range of the rows, or the centers.
    width : float or array-like (d,), optional
        The width s. None: the distance between neighboring centers of a column.
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, chapter 3.1.

    Examples
    --------
    >>> SigmoidBasis([0.0], 1.0).design([[0.0], [-800.0]])
    array([[1. , 0.5],
           [1. , 0. ]])
    """

    centers: Annotated[Any, CENTERS] = 10
    width: Annotated[Any, WIDTH] = None
    constant: bool = True

    def _functions(self, x: Array, where: Columns) -> Array:
        return np.asarray(expit(self._distances(x))).reshape(len(x), -1)

    def _labels(self, columns: list[str]) -> list[str]:
        return [f"sigmoid({name}, {c:.4g})" for name, own in zip(columns, self.centers.T, strict=True) for c in own]
