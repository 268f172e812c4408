"""Base of expansions in binary columns: a common sufficient statistic, stacks, mode and expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Mask, n_rows, parameter, rows, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, ShapeError, sentence
from likely.distributions.binary.sign_products import (
    SignSums,
    checked_order,
    number_of_sets,
    pseudo_spin_sums,
    signs,
    sums_of_signs,
)
from likely.distributions.categorical.sparse_counts import SparseRows, is_sparse, shares_of
from likely.distributions.distribution import Distribution, Estimate
from likely.distributions.statistics.counts import exact_expectation

STRENGTH = 1.0  # pseudo-rows of the weak prior


class SignDistribution(Distribution):
    """A distribution of d binary columns with one coefficient for each set of at most `order` of them (..., M).

    A subclass names its arrays in `_arrays`; all have the stack's axis first.
    """

    dim: int
    order: int
    mean: Any
    _arrays: tuple[str, ...] = ()

    def _sized(self, name: str, whose: str, least: int = 1) -> tuple[Array, int]:
        """Coefficients of all sets (M,) or (K, M) of a constructor, and the order, checked."""
        each = parameter(getattr(self, name), whose, name)
        if not (type(self.dim) is int and self.dim >= 1):
            raise ShapeError(sentence(whose, "dim must be a positive integer", self.dim))
        order = checked_order(self.dim, self.order, whose, least)
        M = number_of_sets(self.dim, order)
        if each.ndim not in (1, 2) or each.shape[-1] != M or 0 in each.shape:
            expected = f"{name} must have shape ({M},) or (K, {M}): one for each set of at most {order} columns"
            raise ShapeError(sentence(whose, expected, each.shape))
        return each, order

    # ------------------------------------------------------------------ shape

    @property
    def _lead(self) -> Array:
        return np.asarray(getattr(self, self._arrays[0]))

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self._lead) if self._lead.ndim == 2 else None

    def member(self, k: int) -> Self:
        """One member of a stack."""
        return self.replace(**{name: np.array(getattr(self, name)[k]) for name in self._arrays})

    def take(self, index: ArrayLike) -> Self:
        """Stack of the selected members."""
        return self.replace(**{name: getattr(self, name)[np.asarray(index)] for name in self._arrays})

    def _rows_of(self, x: Any) -> Any:
        if is_sparse(x):
            return SparseRows.of(x, self.dim, type(self).__name__)
        return x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)

    def _mapped(self, score: Callable[[Array, Mask, Mask], Array], x: Any) -> Array:
        """`score` (spins, observed, binary) → (n, K) over blocks of rows, (n,) for one value."""
        whose = type(self).__name__

        def evaluate(block: Any) -> Array:
            out = score(*signs(block, self.dim, whose))
            return out if self.members else out[:, 0]

        return map_rows(evaluate, self._rows_of(x), self.members)

    def expect(self, g: Callable[[Array], Array], n: int = 100_000, rng: Generator | None = None) -> Estimate:
        """E[g(x)], summed exactly over all cells (by Monte Carlo where these are too many)."""
        return exact_expectation(self, g, np.zeros(self.dim), np.ones(self.dim)) or super().expect(g, n, rng)

    @property
    def variance(self) -> Array:
        """Variance m (1 − m) of each column, m the probability of a 1."""
        return np.asarray(self.mean * (1.0 - self.mean))

    @property
    def mode(self) -> Array:
        """The most probable row (d,), or (K, d) for a stack: over all cells, or for order 1 column by column."""
        if self.order == 1:
            return np.asarray(self.mean > 0.5, dtype=np.float64)
        best = self._cell_sizes().argmax(axis=1)
        found = ((best[:, None] >> np.arange(self.dim)[::-1]) & 1).astype(np.float64)
        return found if self.members else found[0]

    def _cell_sizes(self) -> Array:
        """For each member a monotone function of p in all cells (K, 2ᵈ)."""
        raise NotImplementedError

    # --------------------------------------------------------------- learning

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> SignSums:
        """Sufficient statistics: sums of products of spins over rows (n, d), dense or sparse.

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1:
        none).
        """
        n, whose = n_rows(x), type(self).__name__
        w, x = weights(weight, n, whose), self._rows_of(x)
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        shares = shares_of(w, labels, n, self.members, whose)
        z, observed, _ = signs(x, self.dim, whose, strict=True)
        return self._summed(z, observed, shares)

    def _summed(self, z: Array, observed: Mask, shares: Any) -> SignSums:
        return sums_of_signs(z, observed, shares, self.order, self.members)

    def joined_stats(self, parts: list[SignSums]) -> SignSums:
        """Concatenated statistics of consecutive groups of members."""
        return parts[0].joined(parts)

    def weak_prior(self, stats: SignSums) -> Any:
        """One pseudo-row of independent columns about the pooled means."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.trusted(distribution=self, stats=pseudo_spin_sums(stats, STRENGTH))

    def _check(self, stats: SignSums) -> None:
        wanted = (*self._lead.shape[:-1], number_of_sets(self.dim, self.order))
        if stats.dim != self.dim or stats.total.shape != wanted:
            got = (stats.dim, stats.total.shape)
            raise ShapeError(sentence(type(self).__name__, f"statistics must be of shape {(self.dim, wanted)}", got))

    def _refuse_nothing(self, stats: SignSums) -> None:
        self._check(stats)
        if not stats.total_weight > 0:
            expected = "at least one row with weight is needed"
            raise DataError(sentence(type(self).__name__, expected, "none", "or give a prior"))

    def _kept(self, fresh: Array, stats: SignSums, name: str) -> Array:
        """New coefficients (..., M or d) where a member has data, the old ones elsewhere."""
        return np.where((stats.rows > 0)[..., None], fresh, getattr(self, name))


def width_of(x: Any, whose: str) -> int:
    """Number of columns of rows."""
    d = x.shape[1] if is_sparse(x) else rows(x, None, whose).shape[1]
    if d == 0:
        raise ShapeError(sentence(whose, "at least one column is needed", n_rows(x)))
    return int(d)
