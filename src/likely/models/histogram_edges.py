"""How finely to cut: enough cells to see the shape, few enough that each has rows in it.

All rules look at the distinct values of a column, so that copies and weights change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from likely.core.arrays import Array, refuse_infinite
from likely.errors import DomainError, sentence

MOST = 200  # cells of a column that a search tries
LEAST_WIDTH = 1e-8  # of its size: half the width of the one cell of a column that does not vary
HALF = 0.5  # rows added to a cell when one is left out: Jeffreys' prior


def edges_for(x: Array, bins: Any, joint: bool = False) -> list[Array]:
    """Edges of each column of rows (n, d): by a rule's name, a number of cells, or edges that are given."""
    refuse_infinite(x, "Histogram")
    d = x.shape[1]
    if isinstance(bins, list | tuple) and len(bins) == d and all(np.ndim(b) == 1 for b in bins):
        return [np.asarray(b, dtype=np.float64) for b in bins]
    if np.ndim(bins) == 1:
        if d == 1 or np.size(bins) != d or np.asarray(bins).dtype.kind not in "iu":
            return [np.asarray(bins, dtype=np.float64)] * d
        return [_even(np.unique(_seen(c)), int(b)) for c, b in zip(x.T, bins, strict=True)]
    return [_even(values, _number(bins, values)) for values in (np.unique(_seen(c)) for c in x.T)]


def _seen(column: Array) -> Array:
    return column[~np.isnan(column)]


def _number(bins: Any, values: Array) -> int:
    if isinstance(bins, int | np.integer):
        if bins < 1:
            raise DomainError(sentence("Histogram", "at least one cell is needed", bins))
        return int(bins)
    if bins not in RULES:
        expected = f"bins must be a number, edges, or one of {', '.join(RULES)}"
        raise DomainError(sentence("Histogram", expected, repr(bins)))
    return max(1, RULES[bins](values)) if len(values) > 1 else 1


def _even(values: Array, cells: int) -> Array:
    """Edges of so many cells of one width from the least value to the largest."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, cells + 1) if np.isfinite(high - low) else np.array([low, high])
    if high > low and (np.diff(edges) > 0).all():
        return edges
    wide = LEAST_WIDTH * (max(abs(low), abs(high)) or 1.0)
    return np.array([low - wide, high + wide])


def _sturges(values: Array) -> int:
    return int(np.ceil(np.log2(len(values)))) + 1


def _doane(values: Array) -> int:
    """Sturges' rule with more cells for skewed values (Doane 1976)."""
    n = len(values)
    z = values / np.abs(values).max() - (values / np.abs(values).max()).mean()
    spread = np.sqrt((z**2).mean())
    if n < 3 or not spread > 0:
        return _sturges(values)
    skew = abs(((z / spread) ** 3).mean())
    unit = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return int(np.ceil(1 + np.log2(n) + np.log2(1 + skew / unit)))


def _searched(score: Callable[[Array, int], float]) -> Callable[[Array], int]:
    """The number of cells with the best score."""

    def best(values: Array) -> int:
        numbers = range(1, min(MOST, len(values)) + 1)
        edges = (_even(values, m) for m in numbers)
        scores = [score(np.histogram(values, e)[0].astype(np.float64), m) if len(e) == m + 1 else -np.inf
                  for e, m in zip(edges, numbers, strict=True)]  # fmt: skip
        return int(np.argmax(scores)) + 1

    return best


def _knuth(counts: Array, cells: int) -> float:
    """Log posterior of a number of cells (Knuth 2006)."""
    n = counts.sum()
    value = n * np.log(cells) + gammaln(0.5 * cells) - cells * gammaln(0.5) - gammaln(n + 0.5 * cells)
    return float(value + gammaln(counts + 0.5).sum())


def _left_out(counts: Array, cells: int) -> float:
    """Σ log p of each value under the others, half a row in each cell."""
    n, here = counts.sum(), counts[counts > 0]
    return float(here @ np.log((here - 1 + HALF) / (n - 1 + HALF * cells)) + n * np.log(cells))


RULES: dict[str, Callable[[Array], int]] = {
    "doane": _doane, "sturges": _sturges, "knuth": _searched(_knuth), "leave-one-out": _searched(_left_out),
}  # fmt: skip
