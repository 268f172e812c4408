"""Distinct rows with summed weights as a statistic, for distributions without a fixed-size sufficient statistic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class WeightedRows(Addable, Value):
    """Distinct rows, sorted, and the weight of each; (K, m) weights for a stack of K members."""

    values: Annotated[Array, declared.numbers("m d")]  # (m, d): sorted and distinct
    each: Annotated[Array, declared.numbers("* m", 0)]  # (..., m)

    complete = True

    @property
    def rows(self) -> Array:
        """Weight of all rows (...)."""
        return np.asarray(self.each.sum(axis=-1))

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(self.each.sum())

    def __add__(self, other: WeightedRows) -> Self:
        if self.values.shape[1] != other.values.shape[1] or self.each.shape[:-1] != other.each.shape[:-1]:
            raise ShapeError(
                sentence("WeightedRows", "both must have the same columns and members", other.values.shape)
            )
        values = np.concatenate([self.values, other.values])
        return self._of(values, np.concatenate([self.each, other.each], axis=-1))

    @classmethod
    def _of(cls, values: Array, each: Array) -> Self:
        flat = np.atleast_2d(each)
        keep = np.asarray(flat.any(axis=0))
        values, flat = values[keep], flat[:, keep]
        distinct, where = np.unique(values, axis=0, return_inverse=True) if len(values) else (values, keep[:0])
        total = np.stack([np.bincount(where.ravel(), own, len(distinct)) for own in flat]).astype(np.float64)
        return cls.trusted(values=distinct, each=total if each.ndim == 2 else total[0])

    def __mul__(self, factor: float) -> Self:
        return self._of(self.values, self.each * factor) if factor == 0 else self.replace(each=self.each * factor)

    __rmul__ = __mul__

    def member(self, k: Any) -> Self:
        """The rows of one member of a stack, or of several."""
        return self._of(self.values, np.array(self.each[k]))

    def pooled(self) -> Self:
        """The rows of all members together."""
        return self if self.each.ndim == 1 else self._of(self.values, np.asarray(self.each.sum(axis=0)))


def weighted_rows(z: Array, shares: Any, members: int | None) -> WeightedRows:
    """Statistics of complete rows (n, d) under weights (m, n)."""
    each = np.asarray(shares.toarray() if hasattr(shares, "toarray") else shares)
    each = each[0] if members is None else np.repeat(each, members, axis=0) if len(each) < members else each
    return WeightedRows._of(z, each)


def side_by_side(parts: list[WeightedRows]) -> WeightedRows:
    """Several stacks as one."""
    widths = [len(p.each) for p in parts]
    total = None
    for i, part in enumerate(parts):
        each = np.zeros((sum(widths), part.each.shape[1]))
        each[sum(widths[:i]) : sum(widths[: i + 1])] = part.each
        one = WeightedRows.trusted(values=part.values, each=each)
        total = one if total is None else total + one
    assert total is not None
    return total
