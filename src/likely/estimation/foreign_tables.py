"""Tables of any library: number of rows, selection of rows and columns, identification of equal rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from likely.core.arrays import Index, in_memory
from likely.core.columns import Columns
from likely.core.ragged import Ragged
from likely.core.row_hashes import row_hashes


def as_table(X: Any) -> Any:
    """The same rows in a sliceable form: sparse matrices as CSR, other objects as arrays."""
    X = in_memory(X)
    X = Columns.of(X) if isinstance(X, Mapping) and not issparse(X) else X
    return X.tocsr() if issparse(X) else X if hasattr(X, "__getitem__") else np.asarray(X)


def take_rows(X: Any, index: Index) -> Any:
    """The given rows of an array, sparse matrix, data frame, list, Ragged or Columns, of the same type."""
    if isinstance(X, Columns | Ragged):
        return X[index]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, index)


def column_keys(X: Any) -> list[Any]:
    """Column names, or column numbers."""
    if isinstance(X, Columns):
        return list(X)
    if hasattr(X, "columns"):
        return list(X.columns)
    return list(range(X.shape[1] if hasattr(X, "shape") else len(X[0])))


def take_columns(X: Any, keys: list[Any]) -> Any:
    """The given columns, in that order, of the same type."""
    if isinstance(X, Columns):
        return Columns({name: X[name] for name in keys})
    if hasattr(X, "columns"):
        return X[list(keys)]
    return X.tocsc()[:, keys].tocsr() if issparse(X) else np.asarray(X)[:, keys]


def equal_rows(X: Any) -> Index:
    """A number (n,) shared by equal rows, determined by their content and not their position.

    So the numbering depends neither on the order of the rows nor on repetitions.

    >>> number = equal_rows([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> bool(number[0] == number[2] != number[1])
    True
    """
    parts = _coded(X)
    if len(parts) == 1:
        return _ranked(parts[0])
    return _ranked(np.stack([_ranked(part) for part in parts], axis=1))


def _coded(X: Any) -> list[NDArray[Any]]:
    """The contents as one or more arrays with n rows."""
    if isinstance(X, Columns):
        return [code for part in X.parts.values() for code in _coded(part)]
    if isinstance(X, Ragged):
        return [row_hashes(X)]
    if issparse(X):
        return [_sparse_rows(X.tocsr(copy=True))]
    if hasattr(X, "columns"):
        parts = [_column(X[name]) for name in X.columns]
        numeric = bool(parts) and all(part.dtype.kind in "biuf" for part in parts)
        return [np.stack(parts, axis=1)] if numeric else parts  # a numeric frame is numbered like its array
    return [_array(X)]


def _column(cells: Any) -> NDArray[Any]:
    a = np.asarray(cells)
    return _array(a) if a.dtype.kind in "biufcmM" else _texts([repr(cell) for cell in a.tolist()])


def _array(X: Any) -> NDArray[Any]:
    """Numbers unchanged; anything else by its string representation."""
    try:
        a = np.asarray(X)
    except ValueError:  # rows of different lengths
        a = np.empty(len(X), dtype=object)
        a[:] = list(X)
    if a.dtype.kind in "biufcmM":
        return a
    return _texts([repr(row) for row in a.tolist()])


def _texts(texts: list[str]) -> NDArray[Any]:
    return np.array(texts, dtype=object)


def _sparse_rows(X: Any) -> NDArray[Any]:
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return _texts([repr((X.indices[a:b].tobytes(), X.data[a:b].tobytes())) for a, b in ends])


def _ranked(a: NDArray[Any]) -> Index:
    """The rank of each row's content among the distinct ones; NaN equals NaN."""
    keys = a if a.dtype.kind == "O" else row_hashes(a)
    return np.unique(keys, return_inverse=True)[1].astype(np.intp)
