"""Missing-value patterns: rows grouped by their observed columns, so that each pattern is factorized once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, Index


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct patterns of observed columns, and the rows of each pattern."""

    order: Index  # (n,): rows sorted by pattern
    seen: NDArray[np.bool_]  # (P, d): True where a column is observed
    starts: NDArray[np.int64]  # (P + 1,)

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> Patterns:
        """Group the rows of a mask (n, d) of observed entries."""
        packed = np.ascontiguousarray(np.packbits(mask, axis=1))
        keys = (
            packed.view(np.dtype((np.void, packed.shape[1]))).ravel() if packed.shape[1] > 8 else _as_integers(packed)
        )
        order = np.argsort(keys, kind="stable")
        new = np.flatnonzero(np.concatenate([[True], keys[order][1:] != keys[order][:-1]]))
        return cls(order, np.ascontiguousarray(mask[order[new]]), np.append(new, len(mask)).astype(np.int64))

    def counts(self) -> NDArray[np.intp]:
        """Number of observed columns per row, in sorted order (n,)."""
        return np.repeat(self.seen.sum(axis=1), np.diff(self.starts))

    def split(self, few: NDArray[np.bool_]) -> tuple[Patterns, Patterns]:
        """The patterns where `few` (P,) is True, and the others; `order` refers to the original rows in both."""
        return self._subset(few), self._subset(~few)

    def _subset(self, keep: NDArray[np.bool_]) -> Patterns:
        sizes = np.diff(self.starts)
        rows = self.order[np.repeat(keep, sizes)]
        return Patterns(rows, self.seen[keep], np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64))


def _as_integers(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    out = np.zeros(len(packed), np.uint64)
    for column in packed.T:
        out = (out << np.uint64(8)) | column
    return out


def observed(x: Array) -> NDArray[np.bool_]:
    """Mask that is True where an entry is observed (not NaN)."""
    return ~np.isnan(x)
