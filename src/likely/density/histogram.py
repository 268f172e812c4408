"""Histogram density: constant inside each bin, of independent columns or of a joint grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, check_option, n_rows, parameter, refuse_infinite, rows, weights
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.core.warnings import warn
from likely.density.histogram_edges import BinRule, edges_for
from likely.distributions.distribution import Distribution, in_units, lone
from likely.distributions.downdating import NOTHING, without
from likely.distributions.statistics.counts import member_weights, one_column

SUM_TO_ONE = 1e-9
MOST = 10**7  # bins of a grid

HistogramKind = Literal["grid", "columns"]


@dataclass(frozen=True, eq=False)
class Histogram(Distribution):
    """Histogram density p(x) = probability of the bin of x / volume of the bin; 0 outside the edges.

    A bin includes its left edge, and the last one its right edge, too. Missing values (NaN) are summed out.

    Parameters
    ----------
    edges : sequence of array-like
        The increasing bin edges of each column; flat, with `bins`, in files.
    masses : array-like
        Probabilities of the bins: of a joint grid ("grid": one bin per combination, (b₁, …, b_d) or flat), or of each
        column ("columns": the columns are independent, one after the other (Σ b,)); a leading axis makes a stack.
    kind : {"grid", "columns"}, default "grid"
        A joint grid, or independent columns.
    bins : array-like of int (d,), optional
        Number of bins of each column, where edges are flat.
    pseudo_count : float, default 0.0
        Pseudo-counts that `refit` adds per bin of mean width, uniformly over the range, so that no bin has probability
        0.

    See Also
    --------
    HistogramDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.5.

    Examples
    --------
    >>> h = Histogram([[0.0, 1.0, 3.0]], [0.5, 0.5])
    >>> np.exp(h.log_prob([0.5, 2.0, 3.0, 4.0]))
    array([0.5 , 0.25, 0.25, 0.  ])
    """

    edges: Annotated[Array, declared.numbers("e")]  # (E,): the bin edges of all columns, one after the other
    masses: Annotated[Array, declared.numbers("* C", 0)]  # (C,) or (K, C)
    kind: HistogramKind = "grid"
    bins: Annotated[Index | None, declared.numbers("d", 1, np.int64)] = None  # (d,): number of bins of each column
    pseudo_count: Annotated[float, declared.number(0)] = 0.0

    def __post_init__(self) -> None:
        edges, bins = _flat_edges(self.edges, self.bins)
        check_option(self.kind, HistogramKind, "Histogram", "kind")
        cells = _number_of_cells(bins, self.kind)
        masses = parameter(self.masses, "Histogram", "masses")
        if self.kind == "grid" and masses.ndim >= len(bins) and masses.shape[-len(bins) :] == tuple(bins):
            masses = masses.reshape(*masses.shape[: masses.ndim - len(bins)], cells)
        if masses.ndim not in (1, 2) or masses.shape[-1] != cells or 0 in masses.shape:
            raise ShapeError(sentence("Histogram", f"masses must have {cells} bins", masses.shape))
        if not self.pseudo_count >= 0:
            raise DomainError(sentence("Histogram", "pseudo_count must not be negative", self.pseudo_count))
        self._set(edges=edges, bins=bins, masses=masses, pseudo_count=float(self.pseudo_count))
        for total in self._totals:
            if (masses < 0).any() or (np.abs(total - 1) > SUM_TO_ONE).any():
                raise DomainError(sentence("Histogram", "masses must not be negative and sum to 1", total.tolist()))

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self._bins)

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.masses) if self.masses.ndim == 2 else None

    def member(self, k: int) -> Histogram:
        """One member of a stack."""
        return self.replace(masses=self.masses[k].copy())

    def take(self, index: Any) -> Histogram:
        """A stack of the chosen members."""
        return self.replace(masses=self.masses[index])

    @property
    def n_parameters(self) -> int:
        """Number of free probabilities."""
        each = self.masses.shape[-1] - (1 if self.kind == "grid" else self.dim)
        return each * (self.members or 1)

    @property
    def _bins(self) -> Index:
        assert self.bins is not None  # the constructor has filled it in
        return self.bins

    @cached_property
    def column_edges(self) -> list[Array]:
        """The bin edges of each column."""
        return np.split(self.edges, np.cumsum(self._bins + 1)[:-1])

    @cached_property
    def _starts(self) -> Index:
        """Start of the bins of each column, for independent columns."""
        return np.concatenate([[0], np.cumsum(self._bins)])

    @property
    def _totals(self) -> list[Array]:
        if self.kind == "grid":
            return [np.asarray(self.masses.sum(axis=-1))]
        return [np.asarray(self.masses[..., a:b].sum(axis=-1)) for a, b in pairwise(self._starts)]

    @cached_property
    def _volumes(self) -> Array:
        """Volume of each bin (C,)."""
        widths = [np.diff(e) for e in self.column_edges]
        if self.kind == "columns":
            return np.concatenate(widths)
        out = np.ones(1)
        for width in widths:
            out = (out[:, None] * width).ravel()
        return out

    @cached_property
    def _log_heights(self) -> Array:
        """log p inside each bin (K, C)."""
        with np.errstate(divide="ignore"):
            logs = np.zeros(1)
            for e in self.column_edges if self.kind == "grid" else []:
                logs = (logs[:, None] + np.log(np.diff(e))).ravel()
            volume = logs if self.kind == "grid" else np.log(self._volumes)
            return np.asarray(np.log(np.atleast_2d(self.masses)) - volume)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of each row; −inf outside the edges."""
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Histogram")
            refuse_infinite(z, "Histogram")
            out = self._by_columns(z) if self.kind == "columns" else self._on_grid(z)
            return out if self.members else out[:, 0]

        return map_rows(evaluate, x, self.members)

    def _by_columns(self, x: Array) -> Array:
        out = np.zeros((len(x), len(self._log_heights)))
        for j, start in enumerate(self._starts[:-1]):
            cell = _cells(x[:, j], self.column_edges[j])
            logs = np.where(cell >= 0, self._log_heights[:, start + np.maximum(cell, 0)], -np.inf).T
            out += np.where(np.isnan(x[:, j])[:, None], 0.0, logs)
        return out

    def _on_grid(self, x: Array) -> Array:
        out = np.zeros((len(x), len(self._log_heights)))
        patterns, which = np.unique(np.isnan(x), axis=0, return_inverse=True)
        for i, missing in enumerate(patterns):
            at = np.flatnonzero(np.ravel(which) == i)
            if missing.any() and not missing.all():
                observed = np.flatnonzero(~missing)
                out[at] = self.marginal(observed.tolist())._on_grid(x[np.ix_(at, observed)])
            elif not missing.any():
                cell = self._flat_cells(x[at])
                out[at] = np.where(cell >= 0, self._log_heights[:, np.maximum(cell, 0)], -np.inf).T
        return out

    def _flat_cells(self, x: Array) -> Index:
        """Flat index of the bin of each complete row (n,) of a grid, −1 outside."""
        flat, inside = np.zeros(len(x), np.intp), np.ones(len(x), dtype=bool)
        for j, edges in enumerate(self.column_edges):
            cell = _cells(x[:, j], edges)
            inside &= cell >= 0
            flat = flat * self._bins[j] + np.maximum(cell, 0)
        return np.where(inside, flat, -1)

    def sample(self, n: int, rng: Generator) -> Array:
        """Samples (n, d), or (n, K, d) for a stack: a random bin, and a uniform point in it."""
        if self.members is not None:
            return np.stack([self.member(k).sample(n, rng) for k in range(self.members)], axis=1)
        if self.kind == "grid":
            at = np.unravel_index(rng.choice(self.masses.size, n, p=self.masses / self.masses.sum()), self._bins)
        else:
            parts = [self.masses[a:b] for a, b in pairwise(self._starts)]
            at = tuple(rng.choice(len(p), n, p=p / p.sum()) for p in parts)
        u = rng.random((n, self.dim))
        return np.stack([e[c] + u[:, j] * (e[c + 1] - e[c]) for j, (e, c) in enumerate(self._pairs(at))], axis=1)

    def _pairs(self, at: Sequence[Any]) -> list[tuple[Array, Any]]:
        return list(zip(self.column_edges, at, strict=True))

    def marginal(self, columns: Sequence[int]) -> Histogram:
        """Marginal distribution of some columns."""
        at = np.asarray(columns, dtype=np.intp)
        if at.ndim != 1 or not len(at) or len(set(at.tolist())) < len(at) or at.min() < 0 or at.max() >= self.dim:
            raise DomainError(sentence("Histogram", f"columns must be some of 0 … {self.dim - 1}, each once", columns))
        if self.kind == "columns":
            masses = np.concatenate([self.masses[..., self._starts[j] : self._starts[j + 1]] for j in at], axis=-1)
        else:
            lead = self.masses.shape[:-1]
            table = self.masses.reshape(*lead, *self._bins)
            others = tuple(len(lead) + j for j in range(self.dim) if j not in set(at.tolist()))
            kept = sorted(at.tolist())
            table = np.moveaxis(
                table.sum(axis=others), [len(lead) + kept.index(j) for j in at], [len(lead) + i for i in range(len(at))]
            )
            masses = table.reshape(*lead, -1)
        edges = np.concatenate([self.column_edges[j] for j in at])
        return self.replace(edges=edges, bins=np.array(self._bins[at]), masses=np.ascontiguousarray(masses))

    # ---------------------------------------------------------------- moments

    @property
    def mean(self) -> Array:
        """Mean of each column, (d,) or (K, d)."""
        return np.stack([m for m, _ in self._column_moments], axis=-1)

    @property
    def variance(self) -> Array:
        """Variance of each column, (d,) or (K, d): between bins, and within them."""
        return np.stack([v for _, v in self._column_moments], axis=-1)

    @cached_property
    def _column_moments(self) -> list[tuple[Array, Array]]:
        out = []
        for j, edges in enumerate(self.column_edges):
            p = self.marginal([j]).masses
            center, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
            mean = p @ center
            out.append((mean, (p * (center - np.asarray(mean)[..., None]) ** 2).sum(axis=-1) + p @ (width**2) / 12))
        return out

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σ m log(m / volume); one per member for a stack."""
        logs = np.where(np.atleast_2d(self.masses) > 0, self._log_heights, 0.0)
        h = -(np.atleast_2d(self.masses) * logs).sum(axis=1)
        return in_units(lone(h if self.members else h[0]), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) in one dimension."""
        edges, steps = self._only_one_column()
        z = one_column(x, self.members)
        if self.members is None:
            return np.asarray(np.interp(z, edges, steps[0]))
        return np.stack([np.interp(z[..., 0], edges, s) for s in steps], axis=-1)

    def quantile(self, p: ArrayLike) -> Array:
        """The smallest x with P(X ≤ x) ≥ p in one dimension; for a stack, (n, K)."""
        edges, steps = self._only_one_column()
        p = np.asarray(p, dtype=np.float64)
        each = []
        for s in steps:
            at = np.clip(np.searchsorted(s, p, side="left"), 1, len(s) - 1)
            rise = s[at] - s[at - 1]
            share = np.where(rise > 0, (p - s[at - 1]) / np.where(rise > 0, rise, 1.0), 1.0)
            x = edges[at - 1] + np.clip(share, 0.0, 1.0) * (edges[at] - edges[at - 1])
            each.append(np.where((p >= 0) & (p <= 1), x, np.nan))
        return np.asarray(np.stack(each, axis=-1) if self.members else each[0])

    def _only_one_column(self) -> tuple[Array, Array]:
        if self.dim != 1:
            expected = "cdf and quantile exist in one dimension"
            raise DomainError(sentence("Histogram", expected, f"{self.dim} columns", "take marginal([j]) first"))
        steps = np.cumsum(np.atleast_2d(self.masses), axis=1)
        steps = np.concatenate([np.zeros((len(steps), 1)), np.minimum(steps, 1.0)], axis=1)
        steps[:, -1] = 1.0
        return self.column_edges[0], steps

    # --------------------------------------------------------------- learning

    @classmethod
    def fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Relative frequencies of weighted rows; options as those of `blank`, with edges that include all rows."""
        if options.get("edges") is None and isinstance(x, np.ndarray | list | tuple):
            z = rows(x, None, "Histogram")
            bins, joint = options.pop("bins", "doane"), options.get("joint", True)
            options["edges"] = edges_for(z, bins, joint, weight)
        return super().fit(x, weight, **options)

    @classmethod
    def blank(
        cls, x: ArrayLike, members: int | None = None, *, edges: ArrayLike | None = None, joint: bool = True,
        pseudo_count: float = 0.0, bins: BinRule | ArrayLike = "doane", weight: ArrayLike | None = None,
    ) -> Histogram:  # fmt: skip
        """Uniform initial density; edges by a rule (`density.histogram_edges`) unless they are given."""
        each = edges_for(rows(x, None, "Histogram"), bins, joint, weight) if edges is None else edges
        flat, sizes = _flat_edges(each, None)
        kind: HistogramKind = "grid" if joint else "columns"
        _number_of_cells(sizes, kind)
        widths = [np.diff(e) for e in np.split(flat, np.cumsum(sizes + 1)[:-1])]
        shares = [w / w.sum() for w in widths]
        masses = np.concatenate(shares) if not joint else _outer(shares)
        masses = masses if members is None else np.repeat(masses[None], members, axis=0)
        return cls(flat, masses, kind, sizes, pseudo_count)

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> BinCounts:
        """Sufficient statistics: weight of the rows in each bin, and outside; rows of a grid must be complete."""
        n = n_rows(x)
        z = rows(x, self.dim, "Histogram")
        refuse_infinite(z, "Histogram")
        shares = member_weights(weights(weight, n, "Histogram"), labels, n, self.members, "Histogram")
        if self.kind == "grid":
            self._refuse_missing(z)
            cells = [self._flat_cells(z)]
            starts, sizes = [0], [self.masses.shape[-1]]
        else:
            cells = [np.where(np.isnan(c), -2, _cells(c, e)) for c, e in zip(z.T, self.column_edges, strict=True)]
            starts, sizes = self._starts[:-1].tolist(), self._bins.tolist()
        return self._counted(shares, cells, starts, sizes)

    def _refuse_missing(self, x: Array) -> None:
        bad = np.argwhere(np.isnan(x))
        if len(bad):
            i, j = bad[0]
            remedy = "leave the row out, or take independent columns (kind='columns', joint=False)"
            raise DataError(
                sentence("Histogram", "a grid learns from complete rows", f"NaN at row {i}, column {j}", remedy)
            )

    def _counted(self, shares: Any, cells: list[Index], starts: list[int], sizes: list[int]) -> BinCounts:
        counts, m = np.zeros((shares.shape[0], sum(sizes))), shares.shape[0]
        outside = np.zeros(m)
        for k in range(m):
            w = np.asarray(shares[[k]].toarray())[0] if hasattr(shares, "toarray") else shares[k]
            out = np.zeros(len(w), dtype=bool)
            for cell, start, size in zip(cells, starts, sizes, strict=True):
                inside = cell >= 0
                counts[k, start : start + size] = np.bincount(cell[inside], w[inside], size)
                out |= cell == -1
            outside[k] = w[out].sum()
        total = np.asarray(shares.sum(axis=1)).ravel()
        K = self.members
        parts = {"counts": counts, "rows": total, "outside": outside}
        wide = {k: np.array(v[0] if K is None else np.broadcast_to(v, (K, *v.shape[1:]))) for k, v in parts.items()}
        return BinCounts.trusted(**wide)

    def refit(self, stats: BinCounts, prior: AnyPrior | None = None) -> Histogram:
        """Relative frequencies of the bins, with pseudo-counts; members without rows stay as they were."""
        self._check(stats)
        if not stats.total_weight > 0:
            raise DataError(sentence("Histogram", "at least one row with weight is needed", "none"))
        lost = float(np.sum(stats.outside))
        if lost > 0:
            text = f"{lost:g} of {stats.total_weight:g} rows lie outside the edges, where p is 0; give wider edges"
            warn(f"Histogram: {text}")
        masses = np.array(np.atleast_2d(self.masses))
        counts = np.atleast_2d(stats.counts)
        for a, b in [(0, counts.shape[1])] if self.kind == "grid" else list(pairwise(self._starts)):
            new = counts[:, a:b] + self._added(a, b)
            total = new.sum(axis=1, keepdims=True)
            observed = (counts[:, a:b].sum(axis=1, keepdims=True) > 0) & (total > 0)
            masses[:, a:b] = np.where(observed, new / np.where(observed, total, 1.0), masses[:, a:b])
        return self.replace(masses=masses if self.members else masses[0])

    def objective(self, stats: BinCounts, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the counts; −inf where rows lie outside."""
        self._check(stats)
        if np.sum(stats.outside) > 0:
            return -np.inf
        logs = np.where(np.atleast_2d(self.masses) > 0, self._log_heights, 0.0)
        impossible = (np.atleast_2d(stats.counts) > 0) & ~(np.atleast_2d(self.masses) > 0)
        return -np.inf if impossible.any() else float((np.atleast_2d(stats.counts) * logs).sum())

    @property
    def log_smoothing(self) -> float:
        """Log-prior Σ a log mass with pseudo-counts a; `refit` maximizes its sum with the objective."""
        spans = [(0, self.masses.shape[-1])] if self.kind == "grid" else list(pairwise(self._starts))
        return float(sum(xlogy(self._added(a, b), np.atleast_2d(self.masses)[:, a:b]).sum() for a, b in spans))

    def _added(self, a: int, b: int) -> Array:
        """Pseudo-counts of each of the bins a … b of a column or grid."""
        return np.asarray(self.pseudo_count * (b - a) * self._volumes[a:b] / self._volumes[a:b].sum())

    def weak_prior(self, stats: BinCounts) -> None:
        """No prior but the pseudo-counts."""

    def _check(self, stats: BinCounts) -> None:
        if stats.counts.shape != self.masses.shape:
            raise ShapeError(
                sentence("Histogram", f"statistics must have shape {self.masses.shape}", stats.counts.shape)
            )


@dataclass(frozen=True, eq=False)
class BinCounts(Addable, Value):
    """Sufficient statistics of a histogram: weight of each bin, of all rows, and of rows outside the edges."""

    counts: Annotated[Array, declared.numbers("* C", 0)]  # (C,) or (K, C)
    rows: Annotated[Array, declared.numbers("*", 0)]  # () or (K,)
    outside: Annotated[Array, declared.numbers("*", 0)]  # () or (K,)

    complete = True

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: BinCounts) -> BinCounts:
        if self.counts.shape != other.counts.shape:
            raise ShapeError(sentence("BinCounts", f"both must have shape {self.counts.shape}", other.counts.shape))
        return self._each(lambda name: getattr(self, name) + getattr(other, name))

    def __mul__(self, factor: float) -> BinCounts:
        return self._each(lambda name: getattr(self, name) * factor)

    __rmul__ = __mul__

    def member(self, k: Any) -> BinCounts:
        """The counts of one member of a stack, or of some."""
        return self._each(lambda name: getattr(self, name)[k])

    def _each(self, made: Any) -> BinCounts:
        return self.trusted(**{name: np.array(made(name)) for name in ("counts", "rows", "outside")})


@without.register
def _(stats: BinCounts, part: Any) -> Any:
    def rest(name: str) -> Array:
        all_of, taken = getattr(stats, name), getattr(part, name)
        return np.where(all_of - taken > NOTHING * np.abs(all_of), all_of - taken, 0.0)

    return stats._each(rest)


def _number_of_cells(bins: Index, kind: str) -> int:
    cells = prod(bins.tolist()) if kind == "grid" else int(bins.sum())
    if cells > MOST:
        remedy = "take fewer bins, or independent columns (kind='columns', joint=False)"
        raise DomainError(sentence("Histogram", f"a grid has at most {MOST:,} bins", f"{cells:.3g}", remedy))
    return cells


def _outer(shares: list[Array]) -> Array:
    out = np.ones(1)
    for share in shares:
        out = (out[:, None] * share).ravel()
    return out


def _cells(x: Array, edges: Array) -> Index:
    """Index of the bin of each value, −1 outside and for NaN; the last bin includes its right edge."""
    cell = np.searchsorted(edges, x, side="right") - 1
    cell = np.where(x == edges[-1], len(edges) - 2, cell)
    return np.where((cell >= 0) & (cell < len(edges) - 1), cell, -1)


def _flat_edges(edges: Any, bins: Any) -> tuple[Array, Index]:
    """Edges of all columns one after the other, and the number of bins of each column."""
    if bins is None:
        try:
            edges = list(edges)
        except TypeError as error:
            expected, remedy = "edges must be increasing numbers, one list per column", "as [[0.0, 1.0, 3.0]]"
            raise ShapeError(sentence("Histogram", expected, repr(edges), remedy)) from error
        if not edges:
            raise ShapeError(sentence("Histogram", "edges of at least one column are needed", "none"))
        if np.ndim(edges[0]) == 0:
            edges = [edges]  # one column
        each = [_one_column(e) for e in edges]
        return np.concatenate(each), np.array([len(e) - 1 for e in each], dtype=np.intp)
    flat, sizes = parameter(edges, "Histogram", "edges"), np.array(bins)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or (sizes < 1).any() or flat.ndim != 1:
        raise ShapeError(sentence("Histogram", "bins must be integers above 0, one per column", sizes.tolist()))
    if len(flat) != int((sizes + 1).sum()):
        raise ShapeError(sentence("Histogram", "each column has one edge more than bins", (len(flat), sizes.tolist())))
    for e in np.split(flat, np.cumsum(sizes + 1)[:-1]):
        _one_column(e)
    return flat, sizes.astype(np.intp)


def _one_column(edges: Any) -> Array:
    e = parameter(edges, "Histogram", "edges")
    if e.ndim != 1 or len(e) < 2 or not (np.diff(e) > 0).all():
        raise DomainError(sentence("Histogram", "edges of a column must be finite and increase, at least two", e.shape))
    return e


__all__ = ["BinCounts", "Histogram"]
