"""Sparse rows of counts (CSR), validated once, with cached row sums."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from likely.core.arrays import Array, BadEntry, Index, Mask
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.value import fill_cache
from likely.distributions.statistics.counts import member_weights
from likely.numerics.special import log_multinomial_coefficient


def is_sparse(x: Any) -> bool:
    """True for SciPy's sparse matrices and arrays, and for `SparseRows`."""
    return isinstance(x, SparseRows) or scipy.sparse.issparse(x)


class SparseRows:
    """Rows (n, d) of a CSR matrix, validated once: slices are views, and row sums are computed once.

    A distribution takes SciPy matrices directly; for many passes over the same rows, `tallied(x)`
    computes checks, slices and factorials once: EM then takes about half the time.

    >>> import scipy.sparse
    >>> rows = SparseRows.of(scipy.sparse.csr_array([[2, 0, 1], [0, 0, 0]]))
    >>> rows.totals, rows[:1].shape, rows.log_coefficients.round(4)
    (array([3., 0.]), (1, 3), array([1.0986, 0.    ]))
    """

    ndim = 2

    def __init__(self, matrix: Any, dtype: Any = np.float64, **known: Any) -> None:
        self.matrix, self.dtype, self.shape = matrix, np.dtype(dtype), matrix.shape
        fill_cache(self, **known)

    @classmethod
    def of(cls, x: Any, columns: int | None = None, whose: str = "SparseRows") -> SparseRows:
        """Any sparse matrix as rows; a missing value, an infinity or another width is an error."""
        out = x if isinstance(x, SparseRows) else cls(_canonical(x, whose), getattr(x, "dtype", np.float64))
        if columns is not None and out.shape[1] != columns:
            expected = f"rows must have shape (n, {columns})"
            raise ShapeError(sentence(whose, expected, out.shape, "one row per observation"))
        return out

    def tallied(self) -> SparseRows:
        """The same rows with all row sums computed: slices keep them."""
        _ = self.totals, self.log_coefficients, self.lowest
        return self

    # ------------------------------------------------------------------- slices

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, which: Any) -> SparseRows:
        """Selected rows: consecutive ones without a copy."""
        if isinstance(which, slice) and which.step in (None, 1):
            a, b, _ = which.indices(len(self))
            matrix, which = _consecutive(self.matrix, a, max(a, b)), slice(a, max(a, b))
        else:
            matrix = self.matrix[which]
        known: dict[str, Any] = {
            name: self.__dict__[name][which] for name in ("totals", "log_coefficients") if name in self.__dict__
        }
        if "lowest" in self.__dict__:
            known["lowest"] = self.lowest  # of all rows: a lower bound for these
        return SparseRows(matrix, self.dtype, **known)

    def __array__(self, *how: Any, **more: Any) -> Any:
        """Raises: NumPy would read the rows as a sequence of objects."""
        raise DataError(sentence("SparseRows", "sparse rows stay sparse", "a request for an array", "call toarray()"))

    def tocsr(self) -> Any:
        """As a SciPy matrix."""
        return self.matrix

    def toarray(self) -> Array:
        """As a dense array (n, d)."""
        return np.asarray(self.matrix.toarray())

    # --------------------------------------------------------------------- sums

    @cached_property
    def totals(self) -> Array:
        """Sum of each row (n,)."""
        return row_sums(self.matrix.data, self.matrix.indptr)

    @cached_property
    def log_coefficients(self) -> Array:
        """log multinomial coefficient log N! / Π x! of each row (n,)."""
        counts, totals, ends = self.matrix.data, self.totals, self.matrix.indptr
        if self.lowest < 0:
            counts, totals = np.maximum(counts, 0.0), np.maximum(totals, 0.0)
        return log_multinomial_coefficient(counts, totals, lambda z: row_sums(z, ends))

    @cached_property
    def lowest(self) -> float:
        """The smallest stored number, or a lower bound."""
        return float(self.matrix.data.min(initial=0.0))

    @cached_property
    def checked_labels(self) -> Index:
        """The row of each stored number."""
        return np.repeat(np.arange(len(self)), np.diff(self.matrix.indptr))

    def refuse(self, bad: NDArray[np.bool_], whose: str, expected: str) -> None:
        """Raise naming the first invalid stored number."""
        at = np.flatnonzero(bad)
        if len(at):
            row, column = self.checked_labels[at[0]], self.matrix.indices[at[0]]
            raise BadEntry(whose, expected, self.matrix.data[at[0]], int(row), int(column), "correct it")


def tallied(x: Any) -> Any:
    """Rows for many passes: sparse ones, also inside Columns, with row sums computed; others unchanged.

    >>> import scipy.sparse
    >>> type(tallied(scipy.sparse.csr_array([[1, 0]]))).__name__, tallied([1, 2])
    ('SparseRows', [1, 2])
    """
    if isinstance(x, Columns):
        return Columns({name: tallied(part) for name, part in x.parts.items()})
    return SparseRows.of(x).tallied() if is_sparse(x) else x


def row_sums(entries: Any, indptr: NDArray[Any]) -> Any:
    """Sums over the rows of a CSR matrix's entries (n,); an empty row's is 0."""
    out = np.zeros(len(indptr) - 1, entries.dtype)
    full = np.flatnonzero(indptr[1:] > indptr[:-1])
    if len(full):
        out[full] = np.add.reduceat(entries, indptr[:-1][full])
    return out


def row_products(entries: Array, indptr: NDArray[Any]) -> Array:
    """Products over the rows of a CSR matrix's entries (n,); an empty row's is 1."""
    out = np.ones(len(indptr) - 1)
    full = np.flatnonzero(indptr[1:] > indptr[:-1])
    if len(full):
        out[full] = np.multiply.reduceat(entries, indptr[:-1][full])
    return out


def unstored(values: Array, x: SparseRows) -> Array:
    """Σ of values (d,) over the columns that each row (n,) does not store.

    It is the total minus the stored ones, which cancels. So values are split in two: sums of the coarse parts
    are exact, and the fine parts are small.
    """
    at, ends, whole = x.matrix.indices, x.matrix.indptr, float(np.abs(values).sum())
    grain = 2.0 ** (np.ceil(np.log2(whole)) - 44) if whole > 0 else 1.0
    coarse = np.rint(values / grain) * grain
    parts = [part.sum() - row_sums(part[at], ends) for part in (coarse, values - coarse)]
    return np.asarray(parts[0] + parts[1])


def integer_counts(x: SparseRows) -> tuple[SparseRows, Any]:
    """The rows with 0 for entries that are not counts, and which rows (n,) have none; True where all are valid."""
    data = x.matrix.data
    odd = (data < 0) | (data != np.floor(data))
    if not odd.any():
        return x, np.True_
    matrix = x.matrix.copy()
    matrix.data = np.where(odd, 0.0, data)
    return SparseRows(matrix, x.dtype), row_sums(odd.astype(np.float64), x.matrix.indptr) == 0


def column_sums(matrix: Any, shares: Any) -> Array:
    """Σ shares · rows (m, d) of a CSR matrix (n, d), for shares (m, n), dense or sparse."""
    if scipy.sparse.issparse(shares):
        return np.asarray((shares @ matrix).toarray())
    return np.ascontiguousarray((_turned(matrix) @ shares.T).T)


def shares_of(w: Array | None, labels: Any, n: int, members: int | None, whose: str) -> Any:
    """`member_weights`, but a matrix of weights (n, K) is transposed without a copy."""
    if labels is None and w is not None and w.ndim == 2 and w.shape[1] == members:
        return w.T
    return member_weights(w, labels, n, members, whose)


def rows_with_weight(shares: Any) -> Mask:
    """Rows (n,) that count for any member, of weights (m, n), dense or sparse."""
    return np.asarray(shares.sum(axis=0)).reshape(-1) > 0


def _consecutive(matrix: Any, a: int, b: int) -> Any:
    """Rows a … b − 1 of a CSR matrix, as views."""
    low, high = matrix.indptr[a], matrix.indptr[b]
    parts = matrix.data[low:high], matrix.indices[low:high], matrix.indptr[a : b + 1] - low
    return _assembled(scipy.sparse.csr_array, (b - a, matrix.shape[1]), *parts)


def _turned(matrix: Any) -> Any:
    """The transpose of a CSR matrix, as a view."""
    shape = matrix.shape[1], matrix.shape[0]
    return _assembled(scipy.sparse.csc_array, shape, matrix.data, matrix.indices, matrix.indptr)


def _assembled(kind: Any, shape: tuple[int, int], data: Any, indices: Any, indptr: Any) -> Any:
    """A sparse matrix of these arrays without copies: the constructor would copy views of a much larger array."""
    out = kind(shape, dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def _canonical(x: Any, whose: str) -> Any:
    """A canonical CSR array of float64, duplicates summed; the input is not changed."""
    if x.ndim != 2:
        raise ShapeError(sentence(whose, "sparse rows must have shape (n, d)", x.shape))
    if x.dtype.kind not in "biuf":
        raise DataError(sentence(whose, "rows must be real numbers", x.dtype.name))
    out = scipy.sparse.csr_array(x, dtype=np.float64)
    if not out.has_canonical_format:
        out = out.copy()
        out.sum_duplicates()
    with np.errstate(over="ignore", invalid="ignore"):
        sound = np.isfinite(out.data.sum())
    if not sound:
        _refuse_missing_values(out, whose)
    return out


def _refuse_missing_values(matrix: Any, whose: str) -> None:
    rows = SparseRows(matrix)
    rows.refuse(np.isinf(matrix.data), whose, "values must be finite")
    at = np.flatnonzero(np.isnan(matrix.data))
    if len(at):
        expected, remedy = "sparse rows must have no missing values", "pass dense rows"
        raise BadEntry(whose, expected, "NaN", int(rows.checked_labels[at[0]]), int(matrix.indices[at[0]]), remedy)
