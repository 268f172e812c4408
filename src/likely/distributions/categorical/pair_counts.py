"""Pair counts of discrete columns: the sufficient statistics of Chow–Liu trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, frozen, parameter, refuse_infinite, rows
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.binary.sign_products import each_share
from likely.distributions.categorical.categorical import MISSING, UNKNOWN
from likely.distributions.categorical.sparse_counts import SparseRows
from likely.distributions.statistics.counts import per_member

MOST = 512  # levels of a column: beyond, it is continuous and should be binned
WIDE = 8192  # levels of all columns: pair counts are a square table of so many
COMPARED = 8  # levels up to which entries are compared with each; beyond, they are searched for
ROUNDING = 1e-13  # relative rounding error of counts obtained by subtraction


# -------------------------------------------------------------------------- levels


def levels_of(x: Any, whose: str) -> tuple[Array, ...]:
    """The distinct values of each column, in order; an unobserved column has the single level 0.

    >>> levels_of([[1, 5], [0, np.nan], [1, 7]], "ChowLiuTree")
    (array([0., 1.]), array([5., 7.]))
    """
    if isinstance(x, SparseRows) or scipy.sparse.issparse(x):
        m = SparseRows.of(x, None, whose).matrix.tocsc()
        return tuple(_of_sparse(m, j, whose) for j in range(m.shape[1]))
    v = rows(x, None, whose)
    refuse_infinite(v, whose)
    return tuple(_of_column(v[:, j], j, whose) for j in range(v.shape[1]))


def _of_column(column: Array, j: int, whose: str) -> Array:
    found = np.unique(column[~np.isnan(column)]) + 0.0  # −0 and 0 are one level
    if len(found) > MOST:
        remedy = "bin it, or use a density of real numbers for it"
        raise DataError(sentence(whose, f"at most {MOST} distinct values in column {j}", len(found), remedy))
    return found if len(found) else np.zeros(1)


def _of_sparse(m: Any, j: int, whose: str) -> Array:
    data = m.data[m.indptr[j] : m.indptr[j + 1]]
    return _of_column(np.append(data, 0.0) if len(data) < m.shape[0] else data, j, whose)


def joined_levels(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    """Union of the levels, column by column."""
    return tuple(np.union1d(p, q) for p, q in zip(a, b, strict=True))


def codes_of(x: Any, levels: tuple[Array, ...], whose: str) -> Index:
    """Codes of the entries (n, d); −1 where missing, −2 where the value is not a level."""
    x = x.toarray() if isinstance(x, SparseRows) else x
    v = rows(x, len(levels), whose)
    refuse_infinite(v, whose)
    out = _compared(v, levels) if max(map(len, levels)) <= COMPARED else _searched(v, levels)
    out[np.isnan(v)] = MISSING
    return out


def _compared(v: Array, levels: tuple[Array, ...]) -> Index:
    """Codes by comparison with each level, for few levels."""
    out = np.full(v.shape, UNKNOWN, dtype=np.int8)
    for a in range(max(map(len, levels))):
        known = np.array([one[a] if a < len(one) else np.nan for one in levels])
        out += (a - UNKNOWN) * (v == known).view(np.int8)
    return out.astype(np.intp)


def _searched(v: Array, levels: tuple[Array, ...]) -> Index:
    out = np.empty(v.shape, dtype=np.intp)
    for j, known in enumerate(levels):
        at = np.minimum(np.searchsorted(known, v[:, j]), len(known) - 1)
        out[:, j] = np.where(known[at] == v[:, j], at, UNKNOWN)
    return out


def refuse_unknown_levels(codes: Index, x: Any, levels: tuple[Array, ...], whose: str) -> None:
    """Raise for values that are not levels, naming the first."""
    if codes.min(initial=0) == UNKNOWN:
        i, j = np.argwhere(codes == UNKNOWN)[0]
        value = (x.toarray() if isinstance(x, SparseRows) else np.asarray(x, dtype=np.float64).reshape(codes.shape))[
            i, j
        ]
        expected = f"values of column {j} must be one of its {len(levels[j])} levels"
        raise BadEntry(whose, expected, value, int(i), int(j), "correct it, or replace it by NaN")


def offsets_of(levels: tuple[Array, ...]) -> Index:
    """Index of the first level of each column among all levels (d + 1,)."""
    return np.concatenate([[0], np.cumsum([len(known) for known in levels])]).astype(np.intp)


# ----------------------------------------------------------------------- statistic


class Leveled(Value):
    """A value with a tuple of levels that stay read-only in copies."""

    def _set(self, **parts: Any) -> None:
        if "levels" in parts:
            parts["levels"] = tuple(frozen(known) for known in parts["levels"])
        super()._set(**parts)


@dataclass(frozen=True, eq=False)
class PairCounts(Addable, Leveled):
    """Weighted counts of pairs of levels (..., W, W), W levels of all columns side by side.

    The diagonal holds the counts of single levels. Where missing entries were summed out by a tree, counts
    are expected ones, `complete` is False and `entropy` is that of the missing entries.
    """

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    pairs: Annotated[Array, declared.numbers("* W W", 0)]  # (..., W, W), symmetric
    levels: Annotated[tuple[Array, ...], declared.items(declared.numbers())]  # one array per column
    entropy: Annotated[Any, declared.numbers("*")] = 0.0  # (...)
    complete: bool = True

    def __post_init__(self) -> None:
        count, pairs = parameter(self.rows, "PairCounts", "rows"), parameter(self.pairs, "PairCounts", "pairs")
        levels = checked_levels(self.levels, "PairCounts")
        W = int(offsets_of(levels)[-1])
        if pairs.ndim not in (2, 3) or pairs.shape[-2:] != (W, W) or count.shape != pairs.shape[:-2]:
            raise ShapeError(sentence("PairCounts", f"pairs must have shape (..., {W}, {W})", pairs.shape))
        if (count < 0).any() or (pairs < 0).any():
            raise DomainError(sentence("PairCounts", "counts must not be negative"))
        entropy = np.asarray(self.entropy, dtype=np.float64)
        entropy = np.zeros(count.shape) if entropy.ndim == 0 and not entropy.any() else entropy
        if entropy.shape != count.shape or not np.isfinite(entropy).all():
            raise ShapeError(sentence("PairCounts", f"entropy must be numbers of shape {count.shape}", entropy.shape))
        self._set(rows=count, pairs=pairs, levels=levels, entropy=np.array(entropy))

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    @property
    def singles(self) -> Array:
        """Counts of single levels (..., W)."""
        return np.array(np.diagonal(self.pairs, axis1=-2, axis2=-1))

    def _each(self, f: Callable[[str, Array], Any]) -> Self:
        return self.replace(**{name: np.asarray(f(name, getattr(self, name))) for name in ("rows", "pairs", "entropy")})

    def __add__(self, other: PairCounts) -> Self:
        if self.pairs.shape != other.pairs.shape or not same_levels(self.levels, other.levels):
            raise ShapeError(sentence("PairCounts", f"both must have shape {self.pairs.shape}", other.pairs.shape))
        out = self._each(lambda name, part: part + getattr(other, name))
        return out.replace(complete=self.complete and other.complete)

    def __mul__(self, factor: float) -> Self:
        out = self._each(lambda _, part: part * factor)
        return out if factor else out.replace(complete=True)  # nothing is missing in rows without weight

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled counts of all members."""
        return self if self.rows.ndim == 0 else self._each(lambda _, part: part.sum(axis=0))

    def member(self, k: Any) -> Self:
        """The counts of one member of a stack, or of several."""
        return self._each(lambda _, part: np.array(part[k]))

    def joined(self, parts: list[PairCounts]) -> Self:
        """Concatenated statistics of consecutive groups of members."""
        out = self._each(lambda name, _: np.concatenate([getattr(p, name) for p in parts]))
        return out.replace(complete=all(p.complete for p in parts))

    def grown(self, levels: tuple[Array, ...]) -> PairCounts:
        """The same counts extended by levels of count 0."""
        if same_levels(self.levels, levels):
            return self
        start = offsets_of(levels)
        at = np.concatenate([start[j] + np.searchsorted(levels[j], known) for j, known in enumerate(self.levels)])
        wide = np.zeros((*self.pairs.shape[:-2], start[-1], start[-1]))
        wide[..., at[:, None], at] = self.pairs
        return self.replace(pairs=wide, levels=levels)


def checked_levels(levels: Any, whose: str) -> tuple[Array, ...]:
    """Levels as arrays of increasing numbers, one per column."""
    out = tuple(parameter(known, whose, "levels") for known in levels)
    if not out or any(known.ndim != 1 or not len(known) or (np.diff(known) <= 0).any() for known in out):
        raise DomainError(sentence(whose, "levels must be increasing numbers, at least one per column"))
    return out


def same_levels(a: tuple[Array, ...], b: tuple[Array, ...]) -> bool:
    """True if two tuples of levels are the same."""
    return len(a) == len(b) and all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


def count_pairs(codes: Index, shares: Any, levels: tuple[Array, ...], members: int | None) -> PairCounts:
    """Pair counts of codes (n, d) under weights (m, n)."""
    each = [_counted(codes, w, levels) for w in each_share(shares)]
    weight = np.array([float(w.sum()) for w in each_share(shares)])
    pairs = np.stack(each)
    return PairCounts.trusted(
        rows=per_member(weight, members), pairs=per_member(pairs, members), levels=levels,
        entropy=per_member(np.zeros(len(weight)), members), complete=True,
    )  # fmt: skip


def _counted(codes: Index, w: Array, levels: tuple[Array, ...]) -> Array:
    """Pair counts (W, W) of one member.

    For complete rows the counts of each column's first level follow from the others, which halves a binary table (and
    needs only the ones of sparse rows).
    """
    mine = np.flatnonzero(w)
    codes, w = codes[mine], w[mine]
    if (codes >= 0).all():
        return _with_first(_products(codes, w, levels, 1), w, levels)
    return _products(codes, w, levels, 0)


def _products(codes: Index, w: Array, levels: tuple[Array, ...], first: int) -> Array:
    """Σ w [level a][level b] over levels from `first` on: one product of indicators per block of rows.

    Where all weights are 1, products use single precision: counts of a block are integers below 2²⁴.
    """
    start = offsets_of(levels) - first * np.arange(len(levels) + 1)
    W, plain = int(start[-1]), bool((w == 1).all())
    out = np.zeros((W, W))
    with one_blas_thread():  # for many small products, thread synchronization costs more than it gains
        for a, b in _strips(len(codes), W):
            part = codes[a:b]
            if np.count_nonzero(part >= first) < 0.1 * len(part) * W:
                out += _sparse_product(part, w[a:b], start, first)
            else:
                dense = _indicators(part, start, first, np.float32 if plain else np.float64)
                out += (dense if plain else dense * w[a:b, None]).T @ dense
    return out


def _indicators(codes: Index, start: Index, first: int, dtype: Any) -> Array:
    """Indicator matrix of the levels from `first` on (n, W)."""
    if first == 1 and start[-1] == len(start) - 1 == codes.shape[1] and (np.diff(start) == 1).all():
        return codes.astype(dtype)  # two levels each: the code is the indicator
    sizes = np.diff(start)
    level = np.concatenate([np.arange(m) for m in sizes]) + first
    return (codes[:, np.repeat(np.arange(len(sizes)), sizes)] == level).astype(dtype)


def _sparse_product(codes: Index, w: Array, start: Index, first: int) -> Array:
    at = np.flatnonzero(codes >= first)
    columns, which = (codes + start[:-1] - first).ravel()[at], at // codes.shape[1]
    ones = scipy.sparse.csr_array((np.ones(len(at)), (which, columns)), shape=(len(codes), int(start[-1])))
    return np.asarray((ones.multiply(w[:, None]).tocsr().T @ ones).toarray())


def _strips(n: int, W: int) -> Iterator[tuple[int, int]]:
    step = max((1 << 22) // max(W, 1), 64)
    return ((a, min(a + step, n)) for a in range(0, n, step))


def _with_first(rest: Array, w: Array, levels: tuple[Array, ...]) -> Array:
    """Counts of all levels from those without each column's first level."""
    start, d, n = offsets_of(levels), len(levels), float(w.sum())
    others = np.setdiff1d(np.arange(start[-1]), start[:-1])
    out = np.zeros((start[-1], start[-1]))
    out[np.ix_(others, others)] = rest
    sums = np.zeros((d, len(others)))  # Σ over the other levels of a column
    labels = np.searchsorted(start, others, side="right") - 1
    np.add.at(sums, labels, rest)
    single = np.diagonal(rest)
    cross = single[None, :] - sums  # first level of i with another level of j
    cross[labels, np.arange(len(others))] = 0.0
    both = np.zeros((d, d))
    np.add.at(both.T, labels, sums.T)
    ones = np.zeros(d)
    np.add.at(ones, labels, single)
    corner = n - ones[:, None] - ones[None, :] + both
    corner[np.diag_indices(d)] = n - ones
    out[np.ix_(start[:-1], others)] = cross
    out[np.ix_(others, start[:-1])] = cross.T
    out[np.ix_(start[:-1], start[:-1])] = corner
    return np.where(out > ROUNDING * n, out, 0.0)


def pseudo_pair_counts(stats: PairCounts, strength: float) -> PairCounts:
    """Pseudo-rows of independent columns with the pooled level frequencies, as statistics of the same shape.

    A level with count 0 gets half a pseudo-count.
    """
    pooled, start = stats.pooled(), offsets_of(stats.levels)
    share = np.empty(start[-1])
    for a, b in pairwise(start.tolist()):
        n = pooled.singles[a:b] + 0.5 / (b - a)
        share[a:b] = n / n.sum()
    pairs = np.outer(share, share)
    for a, b in pairwise(start.tolist()):
        pairs[a:b, a:b] = np.diag(share[a:b])
    shape = stats.pairs.shape
    rows_before = np.full(stats.rows.shape, float(strength))
    return stats.replace(
        rows=rows_before, pairs=np.array(np.broadcast_to(strength * pairs, shape)),
        entropy=np.zeros(stats.rows.shape), complete=True,
    )  # fmt: skip
