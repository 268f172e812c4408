"""Sums of products of spins: the sufficient statistics of expansions and log-linear models of binary columns.

A column of 0 and 1 becomes a spin (sign) z = 2x − 1. The functions φ_S(x) = Π_{j ∈ S} zⱼ of sets S of at most `order`
columns are kept in Ney's order: the empty set, single columns, pairs, … (Ney 2.6.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, Mask, parameter, refuse_infinite, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.binary.bernoulli import BINARY, is_binary
from likely.distributions.categorical.sparse_counts import SparseRows
from likely.distributions.statistics.counts import per_member

EXACT = 20  # columns up to which all cells are enumerated
CHUNK = 1 << 20  # numbers in a table of products

# --------------------------------------------------------------------------- sets


@cache
def sets_of(d: int, order: int) -> tuple[Index, ...]:
    """Sets of 1, 2, …, `order` of d columns: one array (m, size) for each size, in lexicographic order.

    >>> sets_of(3, 2)[1].tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    found = [np.arange(d, dtype=np.intp)[:, None]]
    for _ in range(order - 1):
        before = found[-1]
        more = d - 1 - before[:, -1]
        first = np.repeat(np.cumsum(more) - more, more)
        last = np.repeat(before[:, -1] + 1, more) + (np.arange(more.sum()) - first)
        found.append(np.column_stack([np.repeat(before, more, axis=0), last]))
    for each in found:
        each.setflags(write=False)
    return tuple(found)


def number_of_sets(d: int, order: int) -> int:
    """1 + d + d (d − 1)/2 + …: the number of sets of at most `order` columns."""
    return sum(comb(d, k) for k in range(order + 1))


def checked_order(d: int, order: int, whose: str, least: int = 1) -> int:
    """The order, at most d; an error beyond `EXACT` columns, where only orders up to `least` need no enumeration."""
    if not (isinstance(order, int | np.integer) and order >= 1):
        raise DomainError(sentence(whose, "order must be a positive integer", order))
    order = min(int(order), d)
    if d > EXACT and order > least:
        expected, remedy = f"all cells of at most {EXACT} columns are summed", "use ChowLiuTreeDensity"
        remedy += ", or order=1 for independent columns" if least else " or BernoulliDensity"
        raise DomainError(sentence(whose, expected, f"order {order} of {d} columns", remedy))
    return order


@cache
def places(d: int, order: int) -> Index:
    """Index of each set among all 2ᵈ, in the order of `numerics.walsh_hadamard` (M,)."""
    numbers = [np.array([0])] + [(1 << (d - 1 - s)).sum(axis=1) for s in sets_of(d, order)]
    return np.concatenate(numbers).astype(np.intp)


def numbers_of(sets: Index, d: int) -> Index:
    """Index of each set (m, k) among all sets, the empty one first.

    >>> numbers_of(np.array([[0, 1], [1, 2]]), 3).tolist()
    [4, 6]
    """
    k = sets.shape[1]
    if k == 0:
        return np.zeros(len(sets), dtype=np.intp)
    out = np.full(len(sets), number_of_sets(d, k) - 1, dtype=np.intp)
    for i in range(k):  # lexicographic order
        later = np.array([comb(d - 1 - j, k - i) for j in range(d)], dtype=np.intp)
        out -= later[sets[:, i]]
    return out


def split_sizes(each: Array, d: int, order: int) -> list[Array]:
    """Coefficients (..., M) of all sets as one array for each size 0, 1, …, `order`."""
    edges = np.cumsum([comb(d, k) for k in range(order)])
    return np.split(each, edges, axis=-1)


# -------------------------------------------------------------------------- signs


def signs(x: Any, d: int, whose: str, strict: bool = False) -> tuple[Array, Mask, Mask]:
    """Rows as spins (n, d), 0 where missing; the observed mask; and which rows hold nothing but binary values.

    A 0 is the spin −1, a 1 is +1. `strict`: anything else is an error that names it.
    """
    x = x.toarray() if isinstance(x, SparseRows) else x
    v = rows(x, d, whose)
    refuse_infinite(v, whose)
    observed = ~np.isnan(v)
    invalid = observed & ~is_binary(v)
    if strict and invalid.any():
        i, j = np.argwhere(invalid)[0]
        raise BadEntry(whose, BINARY, v[i, j], int(i), int(j), "correct it, or replace it by NaN")
    z = np.where(v == 1, 1.0, -1.0)
    if not observed.all():
        z[~observed] = 0.0
    binary: Mask = ~np.asarray(invalid.any(axis=1))
    return z, observed, binary


def products(z: Array, sets: Index) -> Array:
    """Π_{j ∈ S} zⱼ of each row and set (n, m)."""
    out = z[:, sets[:, 0]]
    for k in range(1, sets.shape[1]):
        out = out * z[:, sets[:, k]]
    return out


def expanded(z: Array, each: Array, order: int) -> Array:
    """Σ_S c_S Π_{j ∈ S} zⱼ for rows (n, d) and coefficients (K, M): (n, K)."""
    d = z.shape[1]
    parts = split_sizes(each, d, order)
    out = z @ parts[1].T + parts[0].T
    if order >= 2:
        out += _pairs(z, parts[2])
    for sets, c in zip(sets_of(d, order)[2:], parts[3:], strict=True):
        for some in _pieces(len(sets), len(z)):
            out += products(z, sets[some]) @ c[:, some].T
    return out


def _pairs(z: Array, c: Array) -> Array:
    """Σ_{i<j} c_ij zᵢ zⱼ, as the quadratic form of one matrix per member."""
    return np.stack([np.einsum("ni,ni->n", z @ pair_matrix(one, z.shape[1]), z) for one in c], axis=1)


def pair_matrix(c: Array, d: int) -> Array:
    """Coefficients of pairs (m,) as an upper triangular matrix (d, d)."""
    out = np.zeros((d, d))
    out[np.triu_indices(d, 1)] = c
    return out


def _pieces(m: int, n: int) -> Iterator[slice]:
    step = max(CHUNK // max(n, 1), 1)
    return (slice(a, a + step) for a in range(0, m, step))


def product_sums(z: Array, shares: Any, order: int) -> Array:
    """Σₙ w Π_{j ∈ S} zⱼ for weights (m, n), dense or sparse, and every set: (m, M)."""
    return np.stack([_sums_of_one(z, w, order) for w in each_share(shares)])


def each_share(shares: Any) -> Iterator[Array]:
    for k in range(shares.shape[0]):
        row = shares[[k]]
        yield np.asarray(row.toarray())[0] if hasattr(row, "toarray") else row[0]


def _sums_of_one(z: Array, w: Array, order: int) -> Array:
    mine = np.flatnonzero(w)
    z, w = (z, w) if len(mine) == len(w) else (z[mine], w[mine])
    found = [np.array([w.sum()]), w @ z]
    if order >= 2:
        found.append(((z * w[:, None]).T @ z)[np.triu_indices(z.shape[1], 1)])
    for sets in sets_of(z.shape[1], order)[2:]:
        pieces = [w @ products(z, sets[some]) for some in _pieces(len(sets), len(z))]
        found.append(np.concatenate(pieces) if pieces else np.zeros(0))
    return np.concatenate(found)


# ---------------------------------------------------------------------- statistic


@dataclass(frozen=True, eq=False)
class SignSums(Addable, Value):
    """Σ w φ_S(x) of every set S of at most `order` columns, and the weight of the rows with S observed.

    Where missing entries were integrated out by a model, `complete` is False and `entropy` is that of the missing
    entries.
    """

    # (..., M): of the rows with all of S observed; the empty set is all rows
    weight: Annotated[Array, declared.numbers("* M", 0)]
    total: Annotated[Array, declared.numbers("* M")]  # (..., M)
    entropy: Annotated[Array, declared.numbers("*")]  # (...)
    dim: Annotated[int, declared.count]
    order: Annotated[int, declared.count]
    complete: bool = True

    def __post_init__(self) -> None:
        parts = {name: parameter(getattr(self, name), "SignSums", name) for name in ("weight", "total", "entropy")}
        shape = parts["total"].shape
        order = checked_order(self.dim, self.order, "SignSums")
        wanted = (*shape[:-1], number_of_sets(self.dim, order))
        if len(shape) not in (1, 2) or not shape == wanted == parts["weight"].shape or order != self.order:
            raise ShapeError(sentence("SignSums", f"weight and total must have shape (..., {wanted[-1]})", shape))
        if parts["entropy"].shape != shape[:-1]:
            raise ShapeError(sentence("SignSums", f"entropy must have shape {shape[:-1]}", parts["entropy"].shape))
        if (parts["weight"] < 0).any() or (np.abs(parts["total"]) > parts["weight"] * (1 + 1e-9) + 1e-12).any():
            raise DomainError(sentence("SignSums", "weights must not be negative, nor sums exceed them"))
        self._set(**parts)

    @property
    def rows(self) -> Array:
        """Weight of the rows (...)."""
        return self.weight[..., 0]

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    @property
    def mean(self) -> Array:
        """The mean of each product (..., M); 0 where no row has all of a set observed."""
        return np.divide(self.total, self.weight, out=np.zeros_like(self.total), where=self.weight > 0)

    def _each(self, f: Callable[[str, Array], Any]) -> Self:
        parts = {name: np.asarray(f(name, getattr(self, name))) for name in ("weight", "total", "entropy")}
        return self.replace(**parts)

    def __add__(self, other: SignSums) -> Self:
        if self.total.shape != other.total.shape or self.dim != other.dim:
            raise ShapeError(sentence("SignSums", f"both must have shape {self.total.shape}", other.total.shape))
        out = self._each(lambda name, part: part + getattr(other, name))
        return out.replace(complete=self.complete and other.complete)

    def __mul__(self, factor: float) -> Self:
        out = self._each(lambda _, part: part * factor)
        return out if factor else out.replace(complete=True)  # nothing is missing in rows without weight

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Pooled sums of all members."""
        return self if self.total.ndim == 1 else self._each(lambda _, part: part.sum(axis=0))

    def joined(self, parts: list[SignSums]) -> Self:
        """Concatenated statistics of consecutive groups of members."""
        out = self._each(lambda name, _: np.concatenate([getattr(p, name) for p in parts]))
        return out.replace(complete=all(p.complete for p in parts))

    def member(self, k: Any) -> Self:
        """The sums of one member of a stack, or of several."""
        return self._each(lambda _, part: np.array(part[k]))


def sums_of_signs(z: Array, observed: Mask, shares: Any, order: int, members: int | None) -> SignSums:
    """Sufficient statistics of spins (n, d) under weights (m, n): each set from the rows with all of it observed."""
    total = product_sums(z, shares, order)
    if observed.all():
        weight = np.repeat(total[:, :1], total.shape[1], axis=1)
    else:
        weight = product_sums(observed.astype(np.float64), shares, order)
    total = np.clip(total, -weight, weight)  # rounding, where all rows agree
    return SignSums.trusted(
        weight=per_member(weight, members), total=per_member(total, members),
        entropy=per_member(np.zeros(len(total)), members), dim=z.shape[1], order=order, complete=True,
    )  # fmt: skip


def pseudo_spin_sums(stats: SignSums, strength: float) -> SignSums:
    """Pseudo-rows of independent columns about the pooled means, as statistics of the same shape.

    Where all rows agree, a mean stays half a pseudo-row from the boundary, as with `Beta.weak`.
    """
    pooled, d = stats.pooled(), stats.dim
    n = pooled.weight[1 : d + 1]
    edge = 1.0 - 1.0 / (n + 1.0)
    mean = np.clip(pooled.mean[1 : d + 1], -edge, edge)
    each = np.concatenate([[1.0]] + [np.prod(mean[s], axis=1) for s in sets_of(d, stats.order)])
    shape = stats.total.shape
    return SignSums.trusted(
        weight=np.full(shape, float(strength)), total=np.array(np.broadcast_to(strength * each, shape)),
        entropy=np.zeros(shape[:-1]), dim=d, order=stats.order, complete=True,
    )  # fmt: skip
