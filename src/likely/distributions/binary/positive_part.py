"""What is left of a cut expansion where it is negative: the positive part, made to add up to one.

Up to `EXACT` columns all 2ᵈ cells are looked at, so a cut expansion is a distribution in full: its log p is that of the
positive part, gaps are summed out of it, and draws come from the same cells. `value` shows the expansion as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DomainError, sentence
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.distributions.binary.log_linear_fit import EXACT
from likely.distributions.distribution import Estimate
from likely.numerics.walsh_hadamard import all_cells, cell_numbers

COMPLETIONS = 1 << 22  # ways to fill gaps that are looked at side by side
ROUNDING = 1e-12  # of the largest cell: less below 0 is rounding


def completions(z: Array, seen: Mask, d: int) -> Iterator[tuple[Index, Index]]:
    """Rows with the same gaps, a few at a time, and the cells that they may lie in (n, 2^gaps)."""
    patterns, which = np.unique(seen, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        gaps = np.flatnonzero(~pattern)
        ways = np.zeros((1 << len(gaps), d))
        ways[:, gaps] = all_cells(len(gaps))
        more, mine = cell_numbers(ways), np.flatnonzero(which.ravel() == i)
        base = cell_numbers(np.where(pattern, z[mine] > 0, False).astype(np.float64))
        step = max(COMPLETIONS >> len(gaps), 1)
        for a in range(0, len(mine), step):
            yield mine[a : a + step], base[a : a + step, None] + more


class CutDistribution(SignDistribution):
    """An expansion that may be negative somewhere; a subclass says `_raw_cells`, `_surely_positive` and `_drawn`."""

    def _raw_cells(self) -> Array:
        """The expansion in all cells (K, 2ᵈ)."""
        raise NotImplementedError

    def _surely_positive(self) -> bool:
        """True where no cell can be negative, by a bound that needs no list of cells."""
        raise NotImplementedError

    def _drawn(self, n: int, rng: Generator) -> list[Array]:
        """Draws of each member, a column at a time."""
        raise NotImplementedError

    @cached_property
    def _positive(self) -> Array | None:
        """Probabilities of all cells (K, 2ᵈ) where some are negative; None where none is, or too many to look at."""
        if self.dim > EXACT or self._surely_positive():
            return None
        cells = self._raw_cells()
        if not (cells < -ROUNDING * cells.max(axis=1, keepdims=True)).any():
            return None
        cells = np.maximum(cells, 0.0)
        return np.asarray(cells / cells.sum(axis=1, keepdims=True))

    @property
    def _is_positive(self) -> bool:
        """True where no cell is negative, by a bound or because all were looked at."""
        return self.dim <= EXACT or self._surely_positive()

    def _from_cells(self, z: Array, seen: Mask, binary: Mask) -> Array:
        """Probability of what was seen (n, K), by the positive part."""
        assert self._positive is not None
        out = np.zeros((len(z), len(self._positive)))
        for some, cells in completions(z, seen, self.dim):
            for k, p in enumerate(self._positive):
                out[some, k] = p[cells].sum(axis=1)
        out[~seen.any(axis=1)] = 1.0
        return np.where(binary[:, None], out, 0.0)

    def _cell_sizes(self) -> Array:
        return self._raw_cells() if self._positive is None else self._positive

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack: of the positive part.

        Up to 20 columns from its cells, and beyond a column at a time where nothing can be negative: both exact. Else
        rows drawn a column at a time are chosen by their importance and moved by Gibbs' sampler (`cut_draws`).
        """
        if self._positive is None:
            each = self._drawn(n, rng)
        else:
            each = [_from_table(p, self.dim, n, rng) for p in self._positive]
        return np.stack(each, axis=1) if self.members else each[0]

    def _mean_of_cells(self) -> Array | None:
        """Probability of a 1 in each column of the positive part (..., d); None where nothing was cut off."""
        if self._positive is None:
            return None
        found = np.asarray(self._positive @ all_cells(self.dim))
        return found if self.members else found[0]

    def expect(self, g: Callable[[Any], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all cells; refused where it is not known whether these add up to one."""
        if self.dim > EXACT and not self._surely_positive():
            whose, remedy = type(self).__name__, "use WalshDensity(log=True), ChowTreeDensity or fewer columns"
            expected = f"beyond {EXACT} columns a cut expansion that may be negative has no expectations"
            raise DomainError(sentence(whose, expected, f"order {self.order} of {self.dim} columns", remedy))
        return super().expect(g, n, rng)


def _from_table(p: Array, d: int, n: int, rng: Generator) -> Array:
    """Rows of zeros and ones (n, d) with the probabilities of all cells (2ᵈ,)."""
    edges = np.cumsum(p)
    at = np.searchsorted(edges, rng.random(n) * edges[-1], side="right")
    at = np.minimum(at, int(np.flatnonzero(p)[-1]))
    return np.asarray((at[:, None] >> np.arange(d)[::-1]) & 1, dtype=np.float64)
