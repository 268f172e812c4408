"""Sufficient statistics of a uniform distribution: minimum and maximum per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.core import declared
from likely.core.arrays import Array, Mask, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.statistics.counts import per_member


@dataclass(frozen=True, eq=False)
class MinMaxStats(Addable, Value):
    """Weight, minimum and maximum per column, merged by min and max; both are 0 where the weight is 0.

    Parameters
    ----------
    rows : array-like
        Weight of the rows; (K,) for a stack.
    weight : array-like (d,) or (K, d)
        Weight of the observed entries per column.
    low : array-like (d,) or (K, d)
        Minimum per column.
    high : array-like (d,) or (K, d)
        Maximum per column.

    See Also
    --------
    Uniform : The distribution that collects them.

    Examples
    --------
    >>> import likely as lk
    >>> distribution = lk.Uniform(0.0, 1.0)
    >>> both = distribution.collect([0.2, 0.4]) + distribution.collect([0.3, 0.9])
    >>> both.low, both.high
    (array([0.2]), array([0.9]))
    """

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    low: Annotated[Array, declared.numbers("* d")]  # (..., d)
    high: Annotated[Array, declared.numbers("* d")]  # (..., d)

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "MinMaxStats", name) for name, part in self.field_values().items()}
        lead, *shapes = (parts[name].shape for name in ("rows", "weight", "low", "high"))
        if len(lead) > 1 or any(len(s) != len(lead) + 1 or s[:-1] != lead or s != shapes[0] for s in shapes):
            raise ShapeError(sentence("MinMaxStats", "shapes must be (...) and three times (..., d)", (lead, *shapes)))
        if (parts["rows"] < 0).any() or (parts["weight"] < 0).any():
            raise DomainError(sentence("MinMaxStats", "weights must not be negative"))
        seen = parts["weight"] > 0
        if (parts["low"] > parts["high"]).any() or (parts["low"] != 0)[~seen].any() or parts["high"][~seen].any():
            raise DomainError(
                sentence("MinMaxStats", "low must not exceed high, and both must be 0 where the weight is 0")
            )
        self._set(**parts)

    @property
    def seen(self) -> Mask:
        """Mask of the columns with observed entries (..., d)."""
        return np.asarray(self.weight > 0)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: MinMaxStats) -> Self:
        if self.weight.shape != other.weight.shape:
            raise ShapeError(sentence("MinMaxStats", f"both must have shape {self.weight.shape}", other.weight.shape))
        low = np.minimum(*(np.where(s.seen, s.low, np.inf) for s in (self, other)))
        high = np.maximum(*(np.where(s.seen, s.high, -np.inf) for s in (self, other)))
        return _made(type(self), np.asarray(self.rows + other.rows), self.weight + other.weight, low, high)

    def __mul__(self, factor: float) -> Self:
        return _made(type(self), np.asarray(self.rows * factor), self.weight * factor, self.low, self.high)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """MinMaxStats of the rows of all members together.

        Returns
        -------
        MinMaxStats
            The statistics without the axis of the stack.
        """
        if self.rows.ndim == 0:
            return self
        low = np.where(self.seen, self.low, np.inf).min(axis=0)
        high = np.where(self.seen, self.high, -np.inf).max(axis=0)
        return _made(type(self), np.asarray(self.rows.sum()), self.weight.sum(axis=0), low, high)

    def member(self, k: Any) -> Self:
        """MinMaxStats of one member of a stack, or of several."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self.field_values().items()})


def _made(cls: Any, rows: Array, weight: Array, low: Array, high: Array) -> Any:
    seen = weight > 0
    return cls.trusted(
        rows=rows, weight=np.asarray(weight), low=np.where(seen, low, 0.0) + 0.0, high=np.where(seen, high, 0.0) + 0.0
    )


def extremes(z: Array, shares: Any, members: int | None) -> MinMaxStats:
    """MinMaxStats of rows (n, d), NaN for missing entries, under weights (m, n)."""
    total = np.asarray(shares @ np.ones(len(z)))
    observed = ~np.isnan(z)
    weight = np.asarray(shares @ observed.astype(np.float64))
    table = scipy.sparse.csr_array(shares)
    low, high = np.full(weight.shape, np.inf), np.full(weight.shape, -np.inf)
    for k in range(table.shape[0]):
        at = slice(table.indptr[k], table.indptr[k + 1])
        own = z[table.indices[at][table.data[at] > 0]]
        low[k] = np.where(np.isnan(own), np.inf, own).min(axis=0, initial=np.inf)
        high[k] = np.where(np.isnan(own), -np.inf, own).max(axis=0, initial=-np.inf)
    parts = [np.asarray(per_member(part, members)) for part in (total, weight, low, high)]
    found: MinMaxStats = _made(MinMaxStats, *parts)
    return found
