"""Distinct rows with the total weight of their duplicates: the statistic of nonparametric densities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, checked_labels, n_rows, parameter, refuse_infinite, rows, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.row_hashes import Hashes, row_hashes
from likely.core.stats import Addable
from likely.core.value import Value, fill_cache
from likely.distributions.downdating import NOTHING, without


@dataclass(frozen=True, eq=False)
class DistinctRows(Addable, Value):
    """Distinct rows with the total weight of their duplicates, ordered by hash: independent of order and blocks.

    A stack concatenates the rows of K members; `edges` holds their start and end. NaN entries are missing, and rows
    with the same missing entries are duplicates where the others agree.

    >>> s = DistinctRows.of(np.array([[1.0], [2.0], [1.0]]))
    >>> sorted(zip(s.rows[:, 0].tolist(), s.weight.tolist()))
    [(1.0, 2.0), (2.0, 1.0)]
    """

    rows: Annotated[Array, declared.numbers("n d")]  # (m, d), 0 where missing
    weight: Annotated[Array, declared.numbers("n", 0)]  # (m,), positive
    edges: Annotated[Index | None, declared.maybe(declared.numbers("e", 0, np.int64))] = None  # (K + 1,) for a stack
    # (m, d): True where missing; None if everything is observed
    missing: Annotated[Mask | None, declared.maybe(declared.numbers("n d", dtype=np.bool_))] = None

    complete = True

    def __post_init__(self) -> None:
        z, weight = (parameter(getattr(self, name), "DistinctRows", name) for name in ("rows", "weight"))
        if z.ndim != 2 or weight.shape != (len(z),):
            expected = "rows (m, d) must have one weight each"
            raise ShapeError(sentence("DistinctRows", expected, (z.shape, weight.shape), "use DistinctRows.of"))
        missing = None if self.missing is None else np.array(self.missing)
        if missing is not None and (missing.shape != z.shape or missing.dtype != np.bool_):
            expected = "missing must be a boolean mask of the shape of the rows"
            raise ShapeError(sentence("DistinctRows", expected, (missing.dtype, missing.shape)))
        if not (weight > 0).all():
            raise DomainError(sentence("DistinctRows", "weights must be positive", float(weight.min(initial=0.0))))
        self._set(rows=z, weight=weight, edges=checked_edges(self.edges, len(z), "DistinctRows"), missing=missing)

    @classmethod
    def of(
        cls, x: Any, weight: Any = None, labels: Any = None, members: int | None = None, whose: str = "rows"
    ) -> Self:
        """The distinct rows of (n, d) numbers: of one set, or of each member by `labels` or weights (n, K)."""
        z, n = rows(x, None, whose), n_rows(x)
        refuse_infinite(z, whose)
        w = weights(weight, n, whose)
        if members is None:
            if labels is not None or (w is not None and w.ndim != 1):
                raise ShapeError(sentence(whose, f"weight must have one entry per row ({n})", np.shape(weight)))
            return cls.merged(z, np.ones(n) if w is None else w, np.zeros(n, np.intp), None)
        if labels is not None:
            return cls.merged(z, np.ones(n) if w is None else w, checked_labels(labels, n, members, whose), members)
        shares = np.ones((n, members)) if w is None else w if w.ndim == 2 else np.repeat(w[:, None], members, axis=1)
        if shares.shape != (n, members):
            raise ShapeError(sentence(whose, f"weight must have a column per member ({members})", shares.shape))
        every = np.tile(np.arange(n), members)
        return cls.merged(z[every], shares.T.ravel(), np.repeat(np.arange(members), n), members)

    @classmethod
    def merged(cls, z: Array, weight: Array, labels: Index, members: int | None, hashes: Hashes | None = None) -> Self:
        """Merge duplicates and add their weights; rows without weight or label are dropped.

        Indices are sorted by hash; rows are compared only where hashes are equal, and moved once.
        """
        at = np.flatnonzero((weight > 0) & (labels >= 0))
        hashes = row_hashes(z[at]) if hashes is None else hashes[at]
        order = np.lexsort((hashes, labels[at]))
        at, hashes = at[order], hashes[order]
        first = np.flatnonzero(_begins(z, at, labels, hashes))
        total = np.add.reduceat(weight[at], first) if len(first) else np.empty(0)
        at = at[first]
        edges = None if members is None else np.searchsorted(labels[at], np.arange(members + 1))
        return cls.trusted(**_values_and_mask(z[at]), weight=total, edges=edges)._hashed(hashes[first])

    def _hashed(self, hashes: Hashes) -> Self:
        """The same rows with known hashes."""
        return fill_cache(self, hashes=hashes)

    @cached_property
    def hashes(self) -> Hashes:
        """A hash per row (m,), computed once and used for merging."""
        return row_hashes(self.values)

    @property
    def values(self) -> Array:
        """The rows (m, d), NaN where missing."""
        return self.rows if self.missing is None else np.where(self.missing, np.nan, self.rows)

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one set of rows."""
        return None if self.edges is None else len(self.edges) - 1

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(self.weight.sum())

    @property
    def labels(self) -> Index:
        """The member of each row (m,)."""
        if self.edges is None:
            return np.zeros(len(self.rows), np.intp)
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: Self) -> Self:
        if self.rows.shape[1] != other.rows.shape[1] or self.members != other.members:
            mine, others = ((s.rows.shape[1], s.members) for s in (self, other))
            raise ShapeError(sentence("DistinctRows", f"both must have {mine} columns and members", others))
        if not len(other):
            return self
        if not len(self):
            return other
        rows, weight, labels, hashes = (
            np.concatenate([getattr(s, name) for s in (self, other)])
            for name in ("values", "weight", "labels", "hashes")
        )
        return self.merged(rows, weight, labels, self.members, hashes)

    def __mul__(self, factor: float) -> Self:
        if factor > 0:
            return self.replace(weight=self.weight * factor)._hashed(self.hashes)
        edges = None if self.edges is None else np.zeros_like(self.edges)
        return self.replace(rows=self.rows[:0].copy(), weight=self.weight[:0].copy(), edges=edges, missing=None)

    __rmul__ = __mul__

    def member(self, k: Any) -> Self:
        """The rows of one member, or of several as a stack."""
        assert self.edges is not None
        if np.ndim(k) == 0:
            mine = slice(self.edges[k], self.edges[k + 1])
            one = self.trusted(**_values_and_mask(self.values[mine]), weight=self.weight[mine].copy(), edges=None)
            return one._hashed(self.hashes[mine])
        return self.side_by_side([self.member(int(i)) for i in np.asarray(k)])

    @classmethod
    def side_by_side(cls, parts: list[Self]) -> Self:
        """Several sets of rows as one stack; a stack among them counts as its members."""
        sizes = np.concatenate([[len(p)] if p.edges is None else np.diff(p.edges) for p in parts])
        edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        rows, weight, hashes = (
            np.concatenate([getattr(p, name) for p in parts]) for name in ("values", "weight", "hashes")
        )
        return cls.trusted(**_values_and_mask(rows), weight=weight, edges=edges)._hashed(hashes)

    def pooled(self) -> Self:
        """The rows of all members as one set."""
        return self.merged(self.values, self.weight, np.zeros(len(self.rows), np.intp), None, self.hashes)


@without.register
def _(stats: DistinctRows, part: Any) -> Any:
    """The rows whose weight is not all taken away."""
    both = [stats.values, part.values], [stats.weight, -part.weight], [stats.labels, part.labels]
    z, weight, labels = (np.concatenate(pair) for pair in both)
    hashes = np.concatenate([stats.hashes, part.hashes])
    at = np.lexsort((hashes, labels))
    first = np.flatnonzero(_begins(z, at, labels, hashes[at]))
    rest = np.add.reduceat(weight[at], first)
    rest[rest <= NOTHING * np.add.reduceat(np.abs(weight[at]), first)] = 0.0
    at = at[first]
    return stats.merged(z[at], rest, labels[at], stats.members, hashes[at])


def _values_and_mask(z: Array) -> dict[str, Any]:
    """Observed values and mask of missing ones: a file holds finite numbers only; −0 becomes 0."""
    missing = np.isnan(z)
    return (
        {"rows": np.where(missing, 0.0, z + 0.0), "missing": missing}
        if missing.any()
        else {"rows": z + 0.0, "missing": None}
    )


def _begins(z: Array, at: Index, labels: Index, hashes: Hashes) -> Mask:
    """True where row at[i] is not a duplicate of row at[i − 1]; rows with different hashes are not compared."""
    out = np.ones(len(at), dtype=bool)
    same = 1 + np.flatnonzero((hashes[1:] == hashes[:-1]) & (labels[at[1:]] == labels[at[:-1]]))
    a, b = z[at[same]], z[at[same - 1]]
    out[same] = ~((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return out


def checked_edges(edges: Any, n: int, whose: str) -> Index | None:
    """Validated edges of the members of a stack: increasing integers from 0 to n."""
    if edges is None:
        return None
    e = np.array(edges)
    if e.ndim != 1 or len(e) < 2 or not np.issubdtype(e.dtype, np.integer) or e[0] != 0 or e[-1] != n:
        raise ShapeError(sentence(whose, f"edges must be integers from 0 to {n}", np.shape(edges)))
    if (np.diff(e) < 0).any():
        raise DataError(sentence(whose, "edges must be increasing", e[:8].tolist()))
    return e.astype(np.intp)


def same_rows(a: Array, b: Array) -> Index:
    """For each row of a, the first row of b that equals it, or −1.

    >>> same_rows(np.array([[1.0], [3.0]]), np.array([[2.0], [1.0]]))
    array([ 1, -1])
    """
    if not len(a) or not len(b):
        return np.full(len(a), -1, np.intp)
    mine, others = row_hashes(a), row_hashes(b)
    order = np.argsort(others, kind="stable")
    at = order[np.minimum(np.searchsorted(others[order], mine), len(b) - 1)]
    return np.where(others[at] == mine, at, -1)
