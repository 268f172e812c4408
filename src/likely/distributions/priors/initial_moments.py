"""Scale of the weak prior of mixture components, from the moments of an initial partition."""

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

SHARE = 0.1  # weight of the total covariance, scaled to K components, in the pooled covariance
DEVIATIONS = 1.0  # standard deviations by which the smallest sample eigenvalue may be too small
NO_SPREAD = 1e-8  # share of the pooled variance below which a variance counts as 0: ten times RIDGE, which is added
RIDGE = 1e-9  # of a column's variance, added to both covariances that are compared: null directions become equal


class ComponentMoments(Moments):
    """Moments of mixture components with latent labels: the weak prior has one covariance per component."""

    per_component = True


class ComponentColumnMoments(ColumnMoments):
    """Column moments of mixture components, for distributions with uncorrelated columns."""

    per_component = True


@singledispatch
def softened(stats: Any, groups: int, one_for_all: bool = False) -> Any:
    """Statistics of components with latent labels, with scatters replaced by those for their weak priors.

    The within-component scatter depends on the initialization: it is 0 if every component starts at one row, and a
    prior of that scale would let components collapse. If K components divide the space evenly, each has the covariance
    S K^(−2/d) of the total covariance S (Fraley and Raftery 2007); a tenth of that is mixed into the pooled
    within-component covariance. `groups` is the number of independent mixtures, each with its own components.

    That is still too large for a component with a small variance in a direction in which the others, or the means, vary
    much: the prior would inflate it, however well its rows determine it. So the variance in each direction is limited
    to an upper confidence limit from the rows of the component (`_upper_limit`), which is no limit for few rows.
    With `one_for_all` the components share one covariance, which the rows of all of them limit.
    """
    return stats


@softened.register
def _(stats: Moments, groups: int, one_for_all: bool = False) -> Any:
    n, d = stats.weight, stats.shift.shape[-1]
    pooled = _over(_mixed(stats, groups, n[:, None, None]).sum(axis=0), n.sum())
    found, shown = (stats.scatter, n) if not one_for_all else (stats.scatter.sum(axis=0)[None], n.sum()[None])
    covariance = np.repeat(pooled[None], len(shown), axis=0)
    pairs = np.square(_over(stats.observed.sum(), n.sum() * d))  # share of rows in which two columns are observed
    rows = shown * pairs - (len(n) if one_for_all else 1)
    limited = np.flatnonzero(rows > d)
    if len(limited):
        variance = np.diagonal(pooled)
        ridge = np.diag(RIDGE * np.where(variance > 0, variance, 1.0))
        root = np.linalg.cholesky(pooled + ridge)
        whiten = np.linalg.inv(root)
        own = found[limited] / shown[limited, None, None] + ridge
        values, axes = np.linalg.eigh(spd.symmetric(whiten @ own @ whiten.T))
        back = root @ axes
        reduction = 1.0 - _upper_limit(values, rows[limited, None], d)
        covariance[limited] = spd.symmetric(pooled - (back * reduction[:, None, :]) @ np.swapaxes(back, -1, -2))
    kind = Moments if one_for_all else ComponentMoments
    return kind.trusted(**stats.replace(scatter=n[:, None, None] * covariance).field_values())


@softened.register
def _(stats: ColumnMoments, groups: int, one_for_all: bool = False) -> Any:
    n = stats.weight
    pooled = _over(_mixed(stats, groups, n).sum(axis=0), n.sum(axis=0))
    found, shown = (stats.scatter, n) if not one_for_all else (stats.scatter.sum(axis=0), n.sum(axis=0))
    limit = _upper_limit(_over(found, shown * pooled, 1.0), shown - (len(n) if one_for_all else 1), 1)
    kind = ColumnMoments if one_for_all else ComponentColumnMoments
    return kind.trusted(**stats.replace(scatter=n * pooled * limit).field_values())


def _mixed(stats: Any, groups: int, weight: Array) -> Array:
    """Scatter per component, mixed with the scaled total covariance."""
    size, d = len(stats.weight) // groups, stats.shift.shape[-1]
    scatter: Array = np.array(stats.scatter)
    for g in range(groups):
        at = np.arange(g * size, (g + 1) * size)
        total = stats.member(at).pooled()
        covariance = _over(total.scatter, total.weight)
        scatter[at] = (1 - SHARE) * scatter[at] + SHARE * size ** (-2.0 / d) * weight[at] * covariance
    return scatter


def _upper_limit(own: Array, rows: Array, d: int) -> Array:
    """Upper confidence limit of a variance relative to the pooled one, given its sample value `own`.

    The smallest sample eigenvalue of n rows with d equal variances is at least (1 − (√d + t)/√n)² of them, except with
    probability exp(−t²/2) (Davidson and Szarek 2001), so the true variance may be larger by the inverse of that. For
    a sample variance of 0, such as a column that was always 0, the limit is 1/n: the next row may differ.
    """
    n = np.maximum(rows, 1.0)
    least = 1 - (np.sqrt(d) + DEVIATIONS) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(least > 0, own / least**2, 1.0)
    return np.asarray(np.clip(most, np.where(own <= NO_SPREAD, 1 / n, 0.0), 1.0))


def _over(a: Any, b: Any, otherwise: float = 0.0) -> Array:
    """a / b, or `otherwise` where b is 0."""
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
    """Unchanged: members of different kinds have no common covariance."""
    return stats
