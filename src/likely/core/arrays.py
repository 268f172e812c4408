"""The border: foreign input becomes float64 rows, a block at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import DataError, DomainError, ShapeError, sentence

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def frozen(a: NDArray[Any]) -> NDArray[Any]:
    """The same array, read-only; a writable view of somebody's memory is copied first."""
    if a.flags.writeable and a.base is not None:
        a = a.copy()
    a.setflags(write=False)
    return a


def parameter(value: Any, whose: str, name: str) -> Array:
    """A model parameter as a fresh float64 array of finite numbers."""
    try:
        a = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ShapeError(sentence(whose, f"{name} must be numbers in a regular shape", type(value).__name__)) from error
    if not np.isfinite(a).all():
        raise DomainError(sentence(whose, f"{name} must be finite", "NaN or infinity in it"))
    return a


def n_rows(x: Any) -> int:
    """Number of rows of anything that has rows: arrays, sparse matrices, Ragged, Columns, lists."""
    shape = getattr(x, "shape", None)
    return int(shape[0]) if shape else len(x)


def rows(x: Any, columns: int | None, whose: str) -> Array:
    """Rows of numbers as (n, d) float64, C-contiguous; a vector is one column.

    >>> rows([1, 2, 3], 1, "Poisson").shape
    (3, 1)
    """
    try:
        a = np.asarray(x, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(sentence(whose, "rows must be numbers, NaN where nothing was observed", error)) from error
    if a.ndim == 1 and columns in (1, None):
        a = a[:, None]
    if a.ndim != 2 or (columns is not None and a.shape[1] != columns):
        wanted = f"(n, {columns})" if columns else "(n, d)"
        raise ShapeError(sentence(whose, f"rows must have shape {wanted}", a.shape, "one row an observation"))
    return a


def weights(weight: Any, n: int, whose: str) -> Array | None:
    """Weights of n rows as (n,) or (n, K): finite and not negative; None means ones."""
    if weight is None:
        return None
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim not in (1, 2) or len(w) != n:
        raise ShapeError(sentence(whose, f"weight must have one entry a row ({n})", w.shape))
    # one sum finds NaN and infinity; min finds negatives: two passes, no temporary
    if w.size and not (np.isfinite(w.sum()) and w.min() >= 0):
        raise DataError(sentence(whose, "weights must be finite and not negative", _first_bad(w)))
    return w


def _first_bad(w: Array) -> str:
    bad = np.argwhere(~(np.isfinite(w) & (w >= 0)))
    return f"{w[tuple(bad[0])]} at row {bad[0][0]}" if len(bad) else "a sum beyond the largest number"


def refuse_infinite(x: Array, whose: str, first_row: int = 0) -> None:
    """NaN is 'not observed'; infinity is a mistake, named by row and column."""
    bad = np.argwhere(np.isinf(x))
    if len(bad):
        i, j = bad[0]
        raise DataError(
            sentence(
                whose, "values must be finite, or NaN where nothing was observed",
                f"{x[i, j]} at row {first_row + i}, column {j}", "correct it, or replace it by NaN",
            )
        )  # fmt: skip


def like_input(out: NDArray[Any], x: Any) -> NDArray[Any]:
    """float32 comes back as float32."""
    return out.astype(np.float32) if getattr(x, "dtype", None) == np.float32 else out
