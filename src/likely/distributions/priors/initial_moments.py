"""What a weak prior may learn from a start: parts of one row each have no spread, but the rows together have."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.product import ProductStats
from likely.distributions.stacks.stack import StackStats
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.numerics import spd

SHARE = 0.1  # of the spread of all rows, shrunk to what K parts would share of it
DEVIATIONS = 1.0  # by which the least variance that rows show may fall short
NO_SPREAD = 1e-8  # share of the pooled variance below which rows show none: ten times FLAT, which is added to it
FLAT = 1e-9  # of a column's variance, added to both sides of a comparison: directions without spread are alike


class ComponentMoments(Moments):
    """Moments of mixture components whose labels are hidden: the weak prior has one covariance per component."""

    per_component = True


class ComponentColumnMoments(ColumnMoments):
    """The same for distributions without correlations."""

    per_component = True


@singledispatch
def softened(stats: Any, groups: int, one_for_all: bool = False) -> Any:
    """Statistics of parts whose labels are hidden, in which the scatter of each part is that of its weak prior.

    The scatter within parts is what the start made it: nothing at all, if every part was set on one row, and a prior
    of that scale would let parts collapse. Of the covariance S of all rows, K parts that divide the space between them
    have S K^(−2/d) each (Fraley and Raftery 2007); a tenth of that is mixed into the pooled covariance within parts.
    `groups` mixtures stand side by side, each with rows of its own.

    That is still too wide for a part that is thin where the others, or the distances of the means, are not: the prior
    would widen the part, however well its rows determine it. So the variance in each direction is limited to what
    the rows of the part leave open (`_open`). A part of few rows leaves everything open.
    With `one_for_all` the parts share one covariance, which the rows of all of them limit.
    """
    return stats


@softened.register
def _(stats: Moments, groups: int, one_for_all: bool = False) -> Any:
    n, d = stats.weight, stats.shift.shape[-1]
    pooled = _over(_mixed(stats, groups, n[:, None, None]).sum(axis=0), n.sum())
    found, shown = (stats.scatter, n) if not one_for_all else (stats.scatter.sum(axis=0)[None], n.sum()[None])
    covariance = np.repeat(pooled[None], len(shown), axis=0)
    pairs = np.square(_over(stats.observed.sum(), n.sum() * d))  # the share of rows in which two columns are seen
    rows = shown * pairs - (len(n) if one_for_all else 1)
    sure = np.flatnonzero(rows > d)
    if len(sure):
        variance = np.diagonal(pooled)
        ridge = np.diag(FLAT * np.where(variance > 0, variance, 1.0))
        root = np.linalg.cholesky(pooled + ridge)
        to = np.linalg.inv(root)
        own, axes = np.linalg.eigh(spd.symmetric(to @ (found[sure] / shown[sure, None, None] + ridge) @ to.T))
        back = root @ axes
        less = (back * (1.0 - _open(own, rows[sure, None], d))[:, None, :]) @ np.swapaxes(back, -1, -2)
        covariance[sure] = spd.symmetric(pooled - less)
    kind = Moments if one_for_all else ComponentMoments
    return kind.trusted(**stats.replace(scatter=n[:, None, None] * covariance)._field_values())


@softened.register
def _(stats: ColumnMoments, groups: int, one_for_all: bool = False) -> Any:
    n = stats.weight
    pooled = _over(_mixed(stats, groups, n).sum(axis=0), n.sum(axis=0))
    found, shown = (stats.scatter, n) if not one_for_all else (stats.scatter.sum(axis=0), n.sum(axis=0))
    limit = _open(_over(found, shown * pooled, 1.0), shown - (len(n) if one_for_all else 1), 1)
    kind = ColumnMoments if one_for_all else ComponentColumnMoments
    return kind.trusted(**stats.replace(scatter=n * pooled * limit)._field_values())


def _mixed(stats: Any, groups: int, weight: Array) -> Array:
    """The scatter of each part, with its share of the spread of all rows mixed in."""
    size, d = len(stats.weight) // groups, stats.shift.shape[-1]
    scatter: Array = np.array(stats.scatter)
    for g in range(groups):
        at = np.arange(g * size, (g + 1) * size)
        total = stats.member(at).pooled()
        spread = _over(total.scatter, total.weight)
        scatter[at] = (1 - SHARE) * scatter[at] + SHARE * size ** (-2.0 / d) * weight[at] * spread
    return scatter


def _open(own: Array, rows: Array, d: int) -> Array:
    """The largest variance that rows leave open, as a share of the pooled one, of which they show the share `own`.

    The least eigenvalue that n rows show of d equal variances is at least (1 − (√d + t)/√n)² of them, but for a
    probability of exp(−t²/2) (Davidson and Szarek 2001), so a variance may be so much larger than it looks. Of rows
    without any spread, such as a column that was always 0, it is 1/n: the next row may be another one.
    """
    n = np.maximum(rows, 1.0)
    least = 1 - (np.sqrt(d) + DEVIATIONS) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(least > 0, own / least**2, 1.0)
    return np.asarray(np.clip(most, np.where(own <= NO_SPREAD, 1 / n, 0.0), 1.0))


def _over(a: Any, b: Any, otherwise: float = 0.0) -> Array:
    """a / b, or another number where b is 0."""
    a, b = np.asarray(a), np.asarray(b)
    return np.divide(a, b, out=np.full(np.broadcast_shapes(a.shape, b.shape), otherwise), where=b > 0)


@softened.register
def _(stats: ScaleSums, groups: int, one_for_all: bool = False) -> Any:
    return stats.replace(moments=softened(stats.moments, groups, one_for_all))


@softened.register
def _(stats: ProductStats, groups: int, one_for_all: bool = False) -> Any:
    return ProductStats(tuple((name, softened(s, groups, one_for_all)) for name, s in stats.components))


@softened.register
def _(stats: StackStats, groups: int, one_for_all: bool = False) -> Any:
    """Members of unlike kinds have no spread in common."""
    return stats
