"""Statistics of the Dirichlet-multinomial distribution: how often each count per column and each row total occurred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import ShapeError, sentence
from likely.distributions.statistics.counts import per_member
from likely.distributions.statistics.weighted_values import WeightedValues, joined


@dataclass(frozen=True, eq=False)
class DirichletMultinomialStats(WeightedValues):
    """Counts above 0 of d columns with their weights, as `WeightedValues`; column d + 1 holds the rows' totals."""

    log_coefficients: Annotated[Array, declared.numbers("*")]  # (...): Σ w log N!/Π x!

    def __post_init__(self) -> None:
        super().__post_init__()
        ways = parameter(self.log_coefficients, "DirichletMultinomialStats", "log_coefficients")
        if ways.shape != self.rows.shape:
            raise ShapeError(
                sentence("DirichletMultinomialStats", f"log_coefficients must have shape {self.rows.shape}", ways.shape)
            )
        self._set(log_coefficients=ways)

    def _and_ways(self, plain: WeightedValues, ways: Any) -> Self:
        return self.trusted(**{**plain.field_values(), "log_coefficients": np.asarray(ways)})

    def __add__(self, other: DirichletMultinomialStats) -> Self:  # type: ignore[override]
        return self._and_ways(_plain(self) + _plain(other), self.log_coefficients + other.log_coefficients)

    def __mul__(self, factor: float) -> Self:
        return self._and_ways(_plain(self) * factor, self.log_coefficients * factor)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled counts of all members."""
        return self if self.rows.ndim == 0 else self._and_ways(_plain(self).pooled(), self.log_coefficients.sum())

    def member(self, k: int) -> Self:
        """The counts of one member of a stack."""
        return self._and_ways(_plain(self).member(k), np.array(self.log_coefficients[k]))


def _plain(stats: DirichletMultinomialStats) -> WeightedValues:
    parts = {name: part for name, part in stats.field_values().items() if name != "log_coefficients"}
    return WeightedValues.trusted(**parts)


def urn_counts(x: Any, totals: Array, ways: Array, shares: Any, members: int | None) -> DirichletMultinomialStats:
    """The statistic of sparse rows (n, d) with their totals and log N!/Π x! (n,), under weights (m, n)."""
    table = scipy.sparse.csr_array(scipy.sparse.hstack([x, scipy.sparse.csr_array(totals[:, None])], format="csr"))
    n, width = table.shape
    row = np.repeat(np.arange(n), np.diff(table.indptr))
    w = scipy.sparse.csr_array(shares)
    cells, values, each = [], [], []
    for k in range(w.shape[0]):
        mine = np.asarray(w[[k]].toarray()).ravel()[row]
        counts = (mine > 0) & (table.data > 0)
        cells.append(k * width + table.indices[counts])
        values.append(table.data[counts])
        each.append(mine[counts])
    shape = (width,) if w.shape[0] == 1 else (w.shape[0], width)
    total, log_coefficients = np.asarray(w @ np.ones(n)), np.asarray(w @ ways)
    alone = w.shape[0] == 1
    parts = [np.concatenate(part) if part else np.empty(0) for part in (cells, values, each)]
    plain = joined(WeightedValues, total[0] if alone else total, shape, parts[0].astype(np.intp), *parts[1:])
    found = DirichletMultinomialStats.trusted(
        **plain.field_values(), log_coefficients=np.asarray(log_coefficients[0] if alone else log_coefficients)
    )
    if alone and members is not None:
        return _repeated(found, members)
    return found


def _repeated(stats: DirichletMultinomialStats, members: int) -> DirichletMultinomialStats:
    """The same for each member."""
    m, width = len(stats.cell), stats.weight.shape[-1]
    lead = {
        name: per_member(np.asarray(getattr(stats, name))[None], members)
        for name in ("rows", "weight", "log_coefficients")
    }
    cell = np.tile(stats.cell, members) + np.repeat(np.arange(members) * width, m)
    return stats.replace(**lead, cell=cell, value=np.tile(stats.value, members), each=np.tile(stats.each, members))
