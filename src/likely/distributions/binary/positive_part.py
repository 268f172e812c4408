"""Positive part of a truncated expansion, normalized over all cells.

All 2ᵈ cells are enumerated, so a truncated expansion is a proper distribution: log p is that of the positive part,
missing values are summed out, and draws come from the cells. `value` shows the raw expansion.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, Mask
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.numerics.walsh_hadamard import all_cells, cell_numbers

COMPLETIONS = 1 << 22  # completions of missing entries that are evaluated at once
ROUNDING = 1e-12  # of the largest cell: negative values closer to 0 are rounding


def completions(z: Array, observed: Mask, d: int) -> Iterator[tuple[Index, Index]]:
    """Groups of rows with the same missing entries, and the cells that complete them (n, 2^missing)."""
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        missing = np.flatnonzero(~pattern)
        completed = np.zeros((1 << len(missing), d))
        completed[:, missing] = all_cells(len(missing))
        more, mine = cell_numbers(completed), np.flatnonzero(which.ravel() == i)
        base = cell_numbers(np.where(pattern, z[mine] > 0, False).astype(np.float64))
        step = max(COMPLETIONS >> len(missing), 1)
        for a in range(0, len(mine), step):
            yield mine[a : a + step], base[a : a + step, None] + more


class TruncatedExpansion(SignDistribution):
    """An expansion that may be negative; a subclass defines `_raw_cells` and `_surely_positive`."""

    def _raw_cells(self) -> Array:
        """The expansion in all cells (K, 2ᵈ)."""
        raise NotImplementedError

    def _surely_positive(self) -> bool:
        """True where no cell can be negative, by a bound without enumeration."""
        raise NotImplementedError

    @cached_property
    def _positive(self) -> Array | None:
        """Probabilities of all cells (K, 2ᵈ) where some are negative; None where none is."""
        if self._surely_positive():
            return None
        cells = self._raw_cells()
        if not (cells < -ROUNDING * cells.max(axis=1, keepdims=True)).any():
            return None
        cells = np.maximum(cells, 0.0)
        return np.asarray(cells / cells.sum(axis=1, keepdims=True))

    def _from_cells(self, z: Array, observed: Mask, binary: Mask) -> Array:
        """Probability of the observed entries (n, K), under the positive part."""
        assert self._positive is not None
        out = np.zeros((len(z), len(self._positive)))
        for some, cells in completions(z, observed, self.dim):
            for k, p in enumerate(self._positive):
                out[some, k] = p[cells].sum(axis=1)
        out[~observed.any(axis=1)] = 1.0
        return np.where(binary[:, None], out, 0.0)

    def _cell_sizes(self) -> Array:
        return self._raw_cells() if self._positive is None else self._positive

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack, from the positive part."""
        each = [rows_from_table(np.maximum(p, 0.0), self.dim, n, rng) for p in self._cell_sizes()]
        return np.stack(each, axis=1) if self.members else each[0]

    def _mean_of_cells(self) -> Array | None:
        """Probability of a 1 in each column of the positive part (..., d); None where nothing is negative."""
        if self._positive is None:
            return None
        found = np.asarray(self._positive @ all_cells(self.dim))
        return found if self.members else found[0]


def rows_from_table(p: Array, d: int, n: int, rng: Generator) -> Array:
    """Rows of zeros and ones (n, d) drawn by the probabilities of all cells (2ᵈ,)."""
    edges = np.cumsum(p)
    at = np.searchsorted(edges, rng.random(n) * edges[-1], side="right")
    at = np.minimum(at, int(np.flatnonzero(p)[-1]))
    return np.asarray((at[:, None] >> np.arange(d)[::-1]) & 1, dtype=np.float64)
