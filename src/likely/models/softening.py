"""What a weak prior may learn from a start: parts of one row each have no spread, but the rows together have."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.families.moments import ColumnMoments, Moments
from likely.families.product import ProductStats
from likely.families.scale_sums import ScaleSums
from likely.families.several import SeveralStats

SHARE = 0.1  # of the spread of all rows, shrunk to what K parts would share of it


class OfAStart(Moments):
    """Moments of parts that a start has told apart: a prior scaled by them must be worth few rows."""

    of_a_start = True


@singledispatch
def softened(stats: Any, groups: int) -> Any:
    """Statistics of parts that a start has told apart, with some of the spread of all rows mixed into each.

    Where labels are hidden, the scatter within parts is what the start made it: nothing at all, if every part was
    set on one row, and a prior of that scale would let parts collapse. Of the covariance S of all rows, K parts that
    divide the space between them have S K^(−2/d) each (Fraley and Raftery 2007); a tenth of that is mixed in.
    `groups` mixtures stand side by side, each with rows of its own.
    """
    return stats


@softened.register(Moments)
@softened.register(ColumnMoments)
def _(stats: Any, groups: int) -> Any:
    size, d = len(stats.weight) // groups, stats.shift.shape[-1]
    scatter: Array = np.array(stats.scatter)
    for g in range(groups):
        at = np.arange(g * size, (g + 1) * size)
        total = stats.member(at).pooled()
        weight = total.weight if isinstance(stats, ColumnMoments) else np.asarray(total.weight)
        spread = np.divide(total.scatter, weight, out=np.zeros_like(total.scatter), where=weight > 0)
        own = stats.weight[at] if isinstance(stats, ColumnMoments) else stats.weight[at, None, None]
        scatter[at] = (1 - SHARE) * scatter[at] + SHARE * size ** (-2.0 / d) * own * spread
    out = stats.replace(scatter=scatter)
    return OfAStart.trusted(**out._parts()) if isinstance(out, Moments) else out


@softened.register
def _(stats: ScaleSums, groups: int) -> Any:
    return stats.replace(moments=softened(stats.moments, groups))


@softened.register
def _(stats: ProductStats, groups: int) -> Any:
    return ProductStats(tuple((name, softened(s, groups)) for name, s in stats.parts))


@softened.register
def _(stats: SeveralStats, groups: int) -> Any:
    """Members of unlike kinds have no spread in common."""
    return stats
