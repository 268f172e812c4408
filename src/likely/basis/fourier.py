"""Fourier series: sines and cosines of each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.basis.basis import Basis, Columns, refuse_width
from likely.basis.placement import ranges
from likely.core import declared
from likely.core.arrays import Array, check_integer, parameter
from likely.core.errors import DomainError, sentence


@dataclass(frozen=True, eq=False)
class Fourier(Basis):
    """Sines and cosines sin(2πk x/T), cos(2πk x/T) for k = 1 … order, of each column.

    Whole periods are removed from x/T before the sine is taken, so that values far from 0 keep their digits.

    Parameters
    ----------
    order : int
        Number of harmonics, at least 1.
    period : float or array-like (d,), optional
        T of each column; None: the range of the rows that `fitted` gets, so that both ends have the same value.
    constant : bool
        Whether the constant function is one of them.

    Examples
    --------
    >>> Fourier(1, period=4.0).design([[0.0], [1.0]]).round(4)
    array([[1., 0., 1.],
           [1., 1., 0.]])
    """

    order: Annotated[int, declared.positive]
    period: Annotated[Any, declared.maybe(declared.numbers("d", 0))] = None
    constant: bool = True

    def __post_init__(self) -> None:
        period = None if self.period is None else np.atleast_1d(parameter(self.period, "Fourier", "period"))
        if period is not None and (period.ndim > 1 or not (period > 0).all()):
            expected = "period must be positive, one number or one per column"
            raise DomainError(sentence("Fourier", expected, self.period))
        self._set(order=check_integer(self.order, "Fourier", "order", 1), period=period)

    @property
    def is_fitted(self) -> bool:
        """Whether the periods are known."""
        return self.period is not None

    def _placed(self, x: Array, weight: Array | None) -> Self:
        low, high = ranges(x)
        return self.replace(period=high - low)

    def _functions(self, x: Array, where: Columns) -> Array:
        if len(self.period) > 1:
            refuse_width("Fourier", len(self.period), x.shape[1])
        cycles = np.multiply.outer(np.remainder(x / self.period, 1.0), np.arange(1, self.order + 1))  # (n, d, order)
        angle = 2 * np.pi * (cycles - np.rint(cycles))
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(len(x), -1)

    def _count(self, d: int) -> int:
        return 2 * d * self.order

    def _labels(self, columns: list[str]) -> list[str]:
        periods = np.broadcast_to(self.period, (len(columns),)).tolist()
        return [
            f"{wave}(2π {k} {name}/{T:.4g})"
            for name, T in zip(columns, periods, strict=True)
            for k in range(1, self.order + 1)
            for wave in ("sin", "cos")
        ]
