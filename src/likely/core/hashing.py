"""Equal rows have equal hashes: so a row and its copies share a fold, whatever stands between them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.columns import Columns

MIX = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio


def row_hashes(x: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of each row of an array or of Columns (n,): the same in every process.

    >>> h = row_hashes(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    if isinstance(x, Columns):
        return _folded([row_hashes(part) for part in x.parts.values()], len(x))
    a = np.asarray(x)
    a = a[:, None] if a.ndim == 1 else a.reshape(len(a), -1)
    return _folded([_bits(a[:, j]) for j in range(a.shape[1])], len(a))


def _bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    if column.dtype.kind in "biuf":
        return np.ascontiguousarray(column.astype(np.float64) + 0.0).view(np.uint64)  # −0 and 0 are one number
    levels, at = np.unique(column.astype(str), return_inverse=True)
    return np.array([zlib.crc32(level.encode()) for level in levels], dtype=np.uint64)[at]


def _folded(columns: list[NDArray[np.uint64]], n: int) -> NDArray[np.uint64]:
    out = np.zeros(n, dtype=np.uint64)
    for bits in columns:
        out = (out ^ bits) * MIX
        out ^= out >> np.uint64(29)
    return out
