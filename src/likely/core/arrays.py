"""Input validation: conversion to float64 arrays, parameters, weights, labels, missing values (NaN)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.errors import DataError, DomainError, ShapeError, sentence

if TYPE_CHECKING:
    from likely.core.columns import Columns
    from likely.core.ragged import Ragged

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
PerMember = float | Array  # one number, or (K,) for a stack of K members
Seed = int | np.random.Generator | np.random.RandomState | None
SequencesLike: TypeAlias = "Ragged | ArrayLike"  # one sequence, or several: a list of arrays of any lengths
# One row per case. Data frames are array-like, a mapping has named columns, a sequence rows of any cells.
Rows: TypeAlias = "ArrayLike | SparseMatrix | Columns | Ragged | Mapping[str, object] | Sequence[object]"
Targets: TypeAlias = "ArrayLike | Sequence[object]"  # one label or number per case, None where missing
Label: TypeAlias = "str | float"  # of a class: text, a number or a boolean
FEW = 16  # numbers up to which Python's own sum takes half the time of a call of NumPy


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    shape: tuple[int, ...]

    def tocsr(self) -> Any:
        """The same in rows."""
        ...


def frozen(a: NDArray[Any]) -> NDArray[Any]:
    """The same array, read-only; a writable view of another array is copied first."""
    if a.flags.writeable:
        if a.base is not None:
            a = a.copy()
        a.setflags(write=False)
    return a


def unmasked(x: Any) -> Any:
    """A masked array with its masked entries as missing values: NaN among numbers, None among anything else.

    A list of rows may hold masked arrays, too.

    >>> unmasked(np.ma.masked_array([1, 2], [False, True]))
    array([ 1., nan])
    """
    if isinstance(x, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in x):
        return [unmasked(row) for row in x]
    if not isinstance(x, np.ma.MaskedArray):
        return x
    hidden, cells = np.ma.getmaskarray(x), np.ma.getdata(x)
    if not hidden.any() or cells.dtype.kind in "cV":
        return cells
    if cells.dtype.kind in "mM":
        return np.where(hidden, np.array("NaT", cells.dtype), cells)
    if cells.dtype.kind in "fiu":
        return np.where(hidden, np.nan, cells).astype(cells.dtype if cells.dtype.kind == "f" else np.float64)
    out: NDArray[Any] = cells.astype(object)
    out[hidden] = None
    return out


def in_memory(x: Any) -> Any:
    """Rows in memory: a lazy frame of Polars is collected, and masked entries are missing."""
    if type(x).__module__.startswith("polars") and hasattr(x, "collect"):
        x = x.collect()
    return unmasked(x)


def is_gap(cell: Any) -> bool:
    """Whether a cell is a missing value: None, NaN, NaT or pandas' NA."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, Real) and cell != cell)


def parameter(value: Any, whose: str, name: str) -> Array:
    """A model parameter as a fresh float64 array of finite numbers."""
    try:
        a = np.array(value if type(value) is np.ndarray else unmasked(value), dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ShapeError(sentence(whose, f"{name} must be numbers in a regular shape", type(value).__name__)) from error
    if not all_finite(a):
        raise DomainError(sentence(whose, f"{name} must be finite", "NaN or infinity in it"))
    return a


def check_integer(x: Any, whose: str, what: str, least: int = 0) -> int:
    """An integer of at least `least`."""
    if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < least:
        raise DomainError(sentence(whose, f"{what} must be an integer of at least {least}", repr(x)))
    return int(x)


def check_option(given: object, options: Any, whose: str, name: str, other: str = "") -> None:
    """Raise an error unless `given` is one of the strings of a Literal type; `other` says what else is taken.

    >>> from typing import Literal
    >>> check_option("cube", Literal["grid", "columns"], "Histogram", "kind")
    Traceback (most recent call last):
    likely.core.errors.DomainError: Histogram: kind must be one of 'grid', 'columns', got 'cube'.
    """
    if not isinstance(given, str) or given not in get_args(options):
        known = ", ".join(map(repr, get_args(options)))
        raise DomainError(sentence(whose, f"{name} must be one of {known}{other and f', or {other}'}", repr(given)))


def all_finite(a: Array) -> bool:
    """True if no entry is NaN or infinite; a sum that overflows leads to a second, entrywise check."""
    whole = sum(a.ravel().tolist()) if a.size <= FEW else np.vdot(a, a)
    return math.isfinite(whole) or bool(np.isfinite(a).all())


def aligned(*shape: int) -> Array:
    """An uninitialized array aligned to a cache line: otherwise NumPy's vector loops take a third longer."""
    size = math.prod(shape)
    raw = np.empty(size + 8)
    start = -raw.ctypes.data % 64 // 8
    return raw[start : start + size].reshape(shape)


def n_rows(x: Any) -> int:
    """Number of rows (samples) of an array, sparse matrix, Ragged, Columns or list."""
    shape = getattr(x, "shape", None)
    if shape == () or not (shape or hasattr(x, "__len__")):
        got = "one number" if isinstance(x, int | float | np.number | np.ndarray) else type(x).__name__
        raise ShapeError(sentence("rows", "data with rows are needed", got, "pass [x] for one row"))
    return int(shape[0]) if shape else len(x)


def sliceable(x: Any, columns: int | None) -> Any:
    """Rows to be scored, as something that can be sliced: lists become arrays; with one column a number is one row.

    >>> sliceable(3.0, 1), sliceable([3.0, 4.0], 1)
    (array([3.]), array([3., 4.]))
    """
    x = unmasked(x) if hasattr(x, "shape") else numbers(x, "rows")
    return np.reshape(x, 1) if columns == 1 and x.shape == () else x


def numbers(x: Any, whose: str) -> Array:
    """Numeric input as a C-contiguous float64 array, without a copy where possible; masked entries become NaN."""
    x = unmasked(x)
    if getattr(getattr(x, "dtype", None), "kind", "") == "c":
        raise DataError(sentence(whose, "rows must be real numbers", "complex numbers"))
    try:
        return np.asarray(x, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        return _cell_by_cell(x, whose, error)


def _cell_by_cell(x: Any, whose: str, error: Exception) -> Array:
    """Objects converted one by one, NaN where a cell is missing; an error names the first that is not a number."""
    cells = np.asarray(x, dtype=object)
    out = np.empty(cells.shape)
    for at, cell in np.ndenumerate(cells):
        try:
            out[at] = np.nan if is_gap(cell) else float(cell)
        except (TypeError, ValueError):
            unlike = hasattr(cell, "__len__") and not isinstance(cell, str | bytes)
            where = f"row {at[0]}, column {at[1]}" if len(at) > 1 else f"row {at[0]}" if at else "the only entry"
            got = "rows of different lengths" if unlike else f"{cell!r} at {where}"
            expected = "rows must be numbers, with NaN for missing values"
            raise DataError(sentence(whose, expected, got)) from error
    return out


def rows(x: Any, columns: int | None, whose: str) -> Array:
    """Rows of numbers as (n, d) float64, C-contiguous; a vector is one column.

    >>> rows([1, 2, 3], 1, "Poisson").shape
    (3, 1)
    """
    a = numbers(x, whose)
    if a.ndim == 1 and columns in (1, None):
        a = a[:, None]
    if a.ndim != 2 or (columns is not None and a.shape[1] != columns):
        wanted = f"(n, {columns})" if columns else "(n, d)"
        raise ShapeError(sentence(whose, f"rows must have shape {wanted}", a.shape, "one row per observation"))
    return a


def weights(weight: Any, n: int, whose: str) -> Array | None:
    """Weights of n rows as (n,) or (n, K): finite and non-negative; None means ones."""
    if weight is None:
        return None
    try:
        w = np.asarray(unmasked(weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(sentence(whose, "weights must be numbers", _kind_of(weight))) from error
    if w.ndim not in (1, 2) or len(w) != n:
        raise ShapeError(sentence(whose, f"weight must have one entry per row ({n})", w.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        # one sum finds NaN and infinity; min finds negatives: two passes, no temporary
        valid = not w.size or (np.isfinite(w.sum()) and w.min() >= 0)
    if not valid:
        raise DataError(sentence(whose, "weights must be finite and not negative", _first_bad(w)))
    return w


def checked_labels(labels: Any, n: int, members: int, whose: str) -> Index:
    """Validated labels of n rows (n,): the component 0 … members − 1, or −1 for an unlabeled row."""
    o = np.asarray(unmasked(labels))
    if o.shape != (n,) or not (np.issubdtype(o.dtype, np.integer) or not n):
        raise ShapeError(sentence(whose, f"labels must be integers, one per row ({n})", f"{o.dtype} {o.shape}"))
    if n and (o.min() < -1 or o.max() >= members):
        bad = o[(o < -1) | (o >= members)][0]
        raise DataError(sentence(whose, f"labels must lie in 0 … {members - 1}, or be −1 for unlabeled rows", bad))
    return o.astype(np.intp, copy=False)


def _kind_of(given: Any) -> str:
    """The type of input that is not numeric, for an error message."""
    dtype = getattr(given, "dtype", None)
    return type(given).__name__ if dtype is None else f"an array of {dtype}"


def _first_bad(w: Array) -> str:
    bad = np.argwhere(~(np.isfinite(w) & (w >= 0)))
    return f"{w[tuple(bad[0])]} at row {bad[0][0]}" if len(bad) else "a sum that overflows"


class BadEntry(DataError):
    """An invalid entry, named by row and column; callers that split data into blocks add the block's row offset."""

    def __init__(self, whose: str, expected: str, value: Any, row: int, column: int | str, remedy: str = "") -> None:
        super().__init__(sentence(whose, expected, f"{value} at row {row}, column {column}", remedy))
        self.details, self.row = (whose, expected, value, row, column, remedy), row

    def __reduce__(self) -> tuple[Any, ...]:
        return BadEntry, self.details

    def after(self, rows: int) -> BadEntry:
        """The same error with the row number increased by `rows`."""
        whose, expected, value, row, column, remedy = self.details
        return BadEntry(whose, expected, value, rows + row, column, remedy)

    def inside(self, part: str) -> BadEntry:
        """The same error, attributed to a named part of the model."""
        return BadEntry(f"{self.details[0]} ({part})", *self.details[1:])


def refuse_infinite(x: Array, whose: str, at: Index | None = None) -> None:
    """Raise an error that names row and column of an infinite entry; NaN is a missing value. `at` (n,): row numbers."""
    bad = np.argwhere(np.isinf(x))
    if len(bad):
        i, j = bad[0]
        row = int(i if at is None else at[i])
        expected = "values must be finite, or NaN for missing values"
        raise BadEntry(whose, expected, x[i, j], row, int(j), "correct it, or replace it by NaN")


def like_input(out: NDArray[Any], x: Any) -> NDArray[Any]:
    """The result as float32 if the input was float32."""
    return out.astype(np.float32) if getattr(x, "dtype", None) == np.float32 else out
