"""Basis functions that the user writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likely.basis.basis import Basis, Columns
from likely.core.arrays import Array, check_integer
from likely.core.errors import DataError, DomainError, ShapeError, sentence


@dataclass(frozen=True, eq=False)
class FunctionBasis(Basis):
    """Basis functions from any callables: each takes rows (n, d) and returns (n,) or (n, m).

    A function must treat each row by itself, so that blocks of rows give what all rows give. A model file holds no
    code: a model with such a basis cannot be saved.

    Parameters
    ----------
    functions : callable, or sequence of callables
        Functions of rows (n, d), such as `np.sqrt` (which gives one function per column).
    constant : bool
        Whether the constant function is one of them.
    outputs : sequence of int, optional
        The number of columns that each function returns; None: found by `fitted`.

    Examples
    --------
    >>> FunctionBasis([np.sqrt, lambda x: x[:, 0] * x[:, 1]]).fitted([[4.0, 9.0]]).design([[4.0, 9.0]])
    array([[ 1.,  2.,  3., 36.]])
    """

    functions: Any
    constant: bool = True
    outputs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        functions = (self.functions,) if callable(self.functions) else tuple(self.functions)
        if not functions or not all(map(callable, functions)):
            raise DomainError(sentence("FunctionBasis", "functions must be callables of rows", repr(self.functions)))
        outputs = self.outputs
        if outputs is not None:
            outputs = tuple(check_integer(m, "FunctionBasis", "outputs", 1) for m in outputs)
            if len(outputs) != len(functions):
                expected = f"outputs must have one number for each of {len(functions)} functions"
                raise ShapeError(sentence("FunctionBasis", expected, len(outputs)))
        self._set(functions=functions, outputs=outputs)

    @property
    def is_fitted(self) -> bool:
        """Whether the number of functions is known."""
        return self.outputs is not None

    def _placed(self, x: Array, weight: Array | None) -> Self:
        return self.replace(outputs=tuple(self._of_one(i, x).shape[1] for i in range(len(self.functions))))

    def _functions(self, x: Array, where: Columns) -> Array:
        found = [self._of_one(i, x) for i in range(len(self.functions))]
        for i, (block, m) in enumerate(zip(found, self.outputs or (), strict=True)):
            if block.shape[1] != m:
                raise ShapeError(sentence(self._called(i), f"{m} columns must be returned, as before", block.shape[1]))
        return np.hstack(found)

    def _of_one(self, i: int, x: Array) -> Array:
        """What one function returns, as (n, m)."""
        found = np.asarray(self.functions[i](x), dtype=np.float64)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != len(x):
            expected = f"an array ({len(x)},) or ({len(x)}, m) must be returned"
            raise ShapeError(sentence(self._called(i), expected, found.shape, "return one value per row"))
        if not np.isfinite(found).all():
            row = int(np.argwhere(~np.isfinite(found))[0, 0])
            raise DataError(sentence(self._called(i), "finite numbers must be returned", f"others at row {row}"))
        return found

    def _called(self, i: int) -> str:
        name = getattr(self.functions[i], "__name__", "")
        return f"FunctionBasis (function {i}{'' if name in ('', '<lambda>') else f', {name}'})"

    def _count(self, d: int) -> int:
        return sum(self.outputs or ())

    def _labels(self, columns: list[str]) -> list[str]:
        called = [getattr(one, "__name__", "") for one in self.functions]
        called = [f"f{i}" if name in ("", "<lambda>") else name for i, name in enumerate(called)]
        counts = zip(called, self.outputs or (), strict=True)
        return [name if m == 1 else f"{name}[{k}]" for name, m in counts for k in range(m)]
