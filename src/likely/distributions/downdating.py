"""Subtraction of sufficient statistics: leave-one-out without a new pass over the data."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.stats import AdditiveStats
from likely.distributions.binary.bernoulli import Trials
from likely.distributions.binary.sign_products import SignSums
from likely.distributions.categorical.categorical import LevelCounts
from likely.distributions.categorical.dirichlet_multinomial_counts import DirichletMultinomialStats
from likely.distributions.categorical.multinomial import MultinomialStats
from likely.distributions.categorical.pair_counts import PairCounts
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.product import ProductStats
from likely.distributions.stacks.stack import StackStats
from likely.distributions.statistics.counts import Counts
from likely.distributions.statistics.extremes import MinMaxStats
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.statistics.positive_sums import PositiveSums, log_lack
from likely.distributions.statistics.weighted_values import WeightedValues
from likely.distributions.univariate.binomial import Successes

NOTHING = 1e-12  # of the original weight: a remainder below it is rounding error
DIGITS = 1e-7  # of a column's scatter: where less remains, too many digits are lost to cancellation


class Canceled(ArithmeticError):
    """Subtraction lost too many digits to cancellation: collect statistics of the remaining rows instead."""


@singledispatch
def without(stats: Any, part: Any) -> Any:
    """Statistics of all rows except those of `part`, which must be among them: without(a + b, b) is a.

    Statistics of another package that are not sums are not subtracted: they are collected anew.
    """
    raise Canceled


@without.register
def _(stats: AdditiveStats, part: Any) -> Any:
    rest = {name: np.asarray(a - getattr(part, name)) for name, a in stats.field_values().items()}
    for name, a in stats.field_values().items():
        rest[name] = np.where(np.abs(rest[name]) > NOTHING * np.abs(a), rest[name], 0.0)
        _refuse_canceled(np.abs(a), np.abs(rest[name]), rest[name] != 0)
    return stats.trusted(**rest)


@without.register
def _(stats: ProductStats, part: Any) -> Any:
    return ProductStats(tuple((name, without(s, part[name])) for name, s in stats.components))


@without.register
def _(stats: StackStats, part: Any) -> Any:
    return StackStats(tuple(without(a, b) for a, b in zip(stats.components, part.components, strict=True)))


@without.register
def _(stats: LevelCounts, part: Any) -> Any:
    return stats.trusted(counts=less(stats.counts, part.counts), rows=np.asarray(less(stats.rows, part.rows)))


@without.register
def _(stats: Counts, part: Any) -> Any:
    names = ("rows", "weight", "total", "log_factorial")
    return stats.replace(**{name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in names})


@without.register
def _(stats: MultinomialStats, part: Any) -> Any:
    parts = {name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in ("counts", "rows")}
    return stats.replace(**parts, constant=np.asarray(stats.constant - part.constant))


@without.register
def _(stats: Trials, part: Any) -> Any:
    names = ("rows", "ones", "zeros")
    return stats.replace(**{name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in names})


@without.register
def _(stats: SignSums, part: Any) -> Any:
    weight = np.asarray(less(stats.weight, part.weight))
    total = np.clip(stats.total - part.total, -weight, weight)
    return stats.replace(weight=weight, total=total, entropy=np.asarray(stats.entropy - part.entropy))


@without.register
def _(stats: PairCounts, part: Any) -> Any:
    rows = np.asarray(less(stats.rows, part.rows))
    return stats.replace(rows=rows, pairs=np.asarray(less(stats.pairs, part.pairs)))


@without.register
def _(stats: FeatureSums, part: Any) -> Any:
    parts = {name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in ("rows", "weight")}
    left, sums = parts["weight"][..., None] > 0, stats.sums - part.sums
    _refuse_canceled(np.abs(stats.sums), np.abs(sums), left)
    return stats.replace(**parts, sums=np.where(left, sums, 0.0))


@without.register
def _(stats: PositiveSums, part: Any) -> Any:
    parts = {name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in ("rows", "weight")}
    left = parts["weight"] > 0
    n = np.where(left, parts["weight"], 1.0)
    mean = np.where(left, stats.mean + (part.weight / n) * (stats.mean - part.mean), 1.0)
    mean = np.where(mean > 0, mean, 1.0)
    lack = np.where(left, stats.lack - part.lack_about(stats.mean) - n * log_lack(mean, stats.mean), 0.0)
    _refuse_canceled(stats.lack, np.maximum(lack, 0.0), left & (n > 1))
    return stats.replace(**parts, mean=mean, lack=np.maximum(lack, 0.0))


@without.register
def _(stats: MinMaxStats, part: Any) -> Any:
    """Raises at an extreme value: it may be the only one there."""
    if (part.seen & ((part.low <= stats.low) | (part.high >= stats.high))).any():
        raise Canceled
    parts = {name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in ("rows", "weight")}
    return stats.replace(**parts)


@without.register
def _(stats: WeightedValues, part: Any) -> Any:
    taken = (stats + part).each - stats.each  # all values of the part are among those of `stats`
    each = less(stats.each, taken)
    kept = each > 0
    weight = np.bincount(stats.cell[kept], each[kept], stats.weight.size).reshape(stats.weight.shape)
    return stats.replace(
        rows=np.asarray(less(stats.rows, part.rows)), weight=weight, cell=stats.cell[kept], value=stats.value[kept],
        each=each[kept],
    )  # fmt: skip


@without.register
def _(stats: DirichletMultinomialStats, part: Any) -> Any:
    rest = without.dispatch(WeightedValues)(stats, part)
    return rest.replace(log_coefficients=np.asarray(stats.log_coefficients - part.log_coefficients))


@without.register
def _(stats: Successes, part: Any) -> Any:
    names = ("rows", "weight", "ones", "zeros", "log_coefficients")
    return stats.replace(**{name: np.asarray(less(getattr(stats, name), getattr(part, name))) for name in names})


@without.register
def _(stats: Moments, part: Any) -> Any:
    n, shift, delta, factor = _unmerged(stats.weight, stats.shift, part.weight, _shift_about(part, stats.origin))
    scatter = stats.scatter - part.scatter
    scatter = scatter - (factor[..., None, None] * delta[..., :, None]) * delta[..., None, :]
    i = np.arange(scatter.shape[-1])
    _refuse_canceled(stats.scatter[..., i, i], scatter[..., i, i], n[..., None] > 1)
    scatter[..., i, i] = np.maximum(scatter[..., i, i], 0.0)
    scatter[n == 0] = 0.0
    seen = None if stats.seen is None and part.seen is None else less(stats.observed, part.observed)
    return stats.replace(weight=n, shift=shift, scatter=scatter, entropy=stats.entropy - part.entropy, seen=seen)


@without.register
def _(stats: ColumnMoments, part: Any) -> Any:
    n, shift, delta, factor = _unmerged(stats.weight, stats.shift, part.weight, _shift_about(part, stats.origin))
    scatter = stats.scatter - part.scatter - factor * delta**2
    _refuse_canceled(stats.scatter, scatter, n > 1)
    scatter = np.maximum(scatter, 0.0)
    return stats.replace(
        rows=np.asarray(less(stats.rows, part.rows)), weight=n, shift=shift, scatter=np.where(n > 0, scatter, 0.0)
    )


def _refuse_canceled(before: Array, after: Array, several: Any) -> None:
    if (several & (after < DIGITS * before) & (before > 0)).any():
        raise Canceled


def _unmerged(n: Array, shift: Array, m: Array, shift_b: Array) -> tuple[Array, Array, Array, Array]:
    """Weight and mean of the remainder, its distance to the subtracted mean, and n′m/n: Chan's merge inverted."""
    rest = np.asarray(less(n, m))
    wide = (lambda a: a[..., None]) if np.ndim(n) < shift.ndim else np.asarray
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = shift - (shift_b - shift) * wide(m / rest)
        factor = np.where(n > 0, rest * m / n, 0.0)
    moved = np.where(wide(rest > 0), moved, 0.0)
    return rest, moved, np.where(wide(m > 0), moved - shift_b, 0.0), factor


def _shift_about(part: Any, origin: Array) -> Array:
    return part.shift + (part.origin - origin)


def less(a: Array, b: Array) -> Array:
    """a − b, and 0 where the difference is rounding error."""
    rest = a - b
    return np.where(rest > NOTHING * np.abs(a), rest, 0.0)
