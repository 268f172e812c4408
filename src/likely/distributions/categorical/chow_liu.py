"""Chow–Liu tree: the maximum-likelihood tree of pairwise dependences between discrete columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, n_rows, parameter, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.warnings import warn
from likely.distributions.binary.sign_products import each_share
from likely.distributions.categorical.pair_counts import (
    WIDE,
    Leveled,
    PairCounts,
    checked_levels,
    codes_of,
    count_pairs,
    levels_of,
    offsets_of,
    pseudo_pair_counts,
    refuse_unknown_levels,
    same_levels,
)
from likely.distributions.categorical.sparse_counts import SparseRows, is_sparse, rows_with_weight, shares_of
from likely.distributions.categorical.tree_messages import (
    best_path,
    drawn,
    expected_pairs,
    log_of_complete,
    log_of_observed,
    marginals_given,
    visiting_order,
)
from likely.distributions.distribution import Distribution, in_units, lone
from likely.distributions.statistics.counts import per_member

STRENGTH = 1.0  # pseudo-rows of the weak prior
EFFORT = 1 << 20  # columns² levels³ up to which missing values are summed out by EM: about a millisecond per row


@dataclass(frozen=True, eq=False)
class ChowLiuTree(Leveled, Distribution):
    """Chow–Liu tree: tree-structured distribution of discrete columns.

    p(x) = Πⱼ p(xⱼ | x_parent(j)): columns of few levels on a tree.

    Levels are numbers: 0 and 1, −1, 0 and 1, or any other, each column with its own. The tree is the maximum spanning
    tree of the pairwise mutual information, which maximizes the likelihood. Missing entries (NaN) are summed out
    exactly, by message passing (belief propagation). A value that is not a level has probability 0. A leading axis
    makes a stack: each member has a tree of its own.

    Parameters
    ----------
    parent : array-like of int (d,) or (K, d)
        Parent of each column; −1 at a root.
    tables : array-like (d, L, L) or (K, d, L, L)
        Conditional probabilities: `tables[j, a, b]` is p(xⱼ is level b | its parent is level a); at a root all rows are
        equal.
    levels : tuple of arrays
        Levels of each column.

    See Also
    --------
    LogLinear : Interactions of binary columns.
    ChowLiuTreeDensity : The estimator.

    References
    ----------
    Chow and Liu (1968); Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> x = [[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]]
    >>> tree = ChowLiuTree.fit(x, prior="weak")
    >>> tree.parent.tolist(), np.exp(tree.log_prob([[1, 1, np.nan], [1, 0, np.nan]])).round(3)
    ([-1, 0, 0], array([0.45, 0.05]))
    """

    parent: Annotated[Index, declared.numbers("* d", dtype=np.int64)]  # (d,) or (K, d)
    tables: Annotated[Array, declared.numbers("* d L L", 0)]  # (d, L, L) or (K, d, L, L)
    # one array per column, the longest of length L
    levels: Annotated[tuple[Array, ...], declared.items(declared.numbers())]

    def __post_init__(self) -> None:
        levels = checked_levels(self.levels, "ChowLiuTree")
        tables, parent = parameter(self.tables, "ChowLiuTree", "tables"), np.array(self.parent)
        d, L = len(levels), max(map(len, levels))
        lead = tables.shape[:-3]
        if tables.ndim not in (3, 4) or tables.shape[-3:] != (d, L, L) or parent.shape != (*lead, d):
            got = (tables.shape, parent.shape)
            raise ShapeError(sentence("ChowLiuTree", f"tables must be (..., {d}, {L}, {L}) and parent (..., {d})", got))
        if parent.dtype.kind != "i" or any(len(visiting_order(one)) < d for one in np.atleast_2d(_inside(parent, d))):
            raise DomainError(
                sentence("ChowLiuTree", "parents must form trees: −1 at the root, no cycles", parent.tolist())
            )
        parent = parent.astype(np.int64)
        for one, table in zip(np.atleast_2d(parent), tables.reshape(-1, d, L, L), strict=True):
            _refuse_unlike(one, table, levels)
        self._set(parent=parent, tables=tables, levels=levels)

    @classmethod
    def over(cls, levels: tuple[Array, ...], members: int | None = None) -> ChowLiuTree:
        """Independent uniform columns with these levels (all roots).

        Parameters
        ----------
        levels : tuple of arrays
            Levels of each column.
        """
        levels = checked_levels(levels, "ChowLiuTree")
        if offsets_of(levels)[-1] > WIDE:
            remedy = "leave columns out, or join rare levels"
            expected = f"at most {WIDE:,} levels of all columns together"
            raise DataError(sentence("ChowLiuTree", expected, f"{offsets_of(levels)[-1]:,}", remedy))
        L = max(map(len, levels))
        tables = np.zeros((len(levels), L, L))
        for j, known in enumerate(levels):
            tables[j, :, : len(known)] = 1.0 / len(known)
        lead = () if members is None else (members,)
        parent = np.full((*lead, len(levels)), -1, dtype=np.int64)
        return cls.trusted(
            parent=parent, tables=np.array(np.broadcast_to(tables, (*lead, *tables.shape))), levels=levels
        )

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> ChowLiuTree:
        """Initial model with the levels found in the rows."""
        levels = levels_of(x, "ChowLiuTree")
        if not levels:
            raise ShapeError(sentence("ChowLiuTree", "at least one column is needed", n_rows(x)))
        return cls.over(levels, members)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self.levels)

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.parent) if self.parent.ndim == 2 else None

    def member(self, k: int) -> ChowLiuTree:
        """One member of a stack."""
        return self.replace(parent=self.parent[k].copy(), tables=self.tables[k].copy())

    def take(self, index: ArrayLike) -> ChowLiuTree:
        """Stack of the selected members."""
        at = np.asarray(index)
        return self.replace(parent=self.parent[at], tables=self.tables[at])

    def joined_stats(self, parts: list[PairCounts]) -> PairCounts:
        """Concatenated statistics of consecutive groups of members."""
        return parts[0].joined(parts)

    @cached_property
    def _trees(self) -> list[tuple[Index, Array, Array]]:
        """Parents, tables and log tables of each member."""
        tables = self.tables.reshape(-1, *self.tables.shape[-3:])
        with np.errstate(divide="ignore"):
            return [(p, t, np.log(t)) for p, t in zip(np.atleast_2d(self.parent), tables, strict=True)]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs (parent, column) of one tree, in the order of the columns."""
        if self.members is not None:
            raise DomainError(sentence("ChowLiuTree", "edges are those of one tree", "a stack", "take member(k)"))
        return [(int(p), j) for j, p in enumerate(self.parent) if p >= 0]

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows, dense or sparse. NaN is missing."""

        def evaluate(block: Any) -> Array:
            codes = codes_of(block, self.levels, "ChowLiuTree")
            out = np.stack([self._scored(codes, *tree) for tree in self._trees], axis=1)
            return out if self.members else out[:, 0]

        return map_rows(evaluate, self._rows_of(x), self.members)

    def _rows_of(self, x: Any) -> Any:
        if is_sparse(x):
            return SparseRows.of(x, self.dim, "ChowLiuTree")
        return x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)

    @staticmethod
    def _scored(codes: Index, parent: Index, tables: Array, logs: Array) -> Array:
        out = np.full(len(codes), -np.inf)
        known = (codes >= -1).all(axis=1)
        whole = (codes >= 0).all(axis=1)
        if whole.any():
            out[whole] = log_of_complete(codes[whole], parent, logs)
        incomplete = known & ~whole
        if incomplete.any():
            found = log_of_observed(codes[incomplete], parent, tables)
            found[(codes[incomplete] < 0).all(axis=1)] = 0.0
            out[incomplete] = found
        return out

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        each = [self._named(drawn(n, parent, tables, rng)) for parent, tables, _ in self._trees]
        return np.stack(each, axis=1) if self.members else each[0]

    def _named(self, codes: Index) -> Array:
        """Levels from their codes."""
        out = np.empty(codes.shape)
        for j, known in enumerate(self.levels):
            out[..., j] = known[np.minimum(codes[..., j], len(known) - 1)]
        return out

    def marginals(self, x: ArrayLike | None = None) -> Array:
        """Marginal probabilities of levels, given the observed entries of rows.

        p(xⱼ = level b | observed entries of a row), of one tree.

        Parameters
        ----------
        x : array-like (n, d), optional
            Rows; None gives the marginals without observations.

        Returns
        -------
        ndarray (n, d, L) or (d, L)
            Probabilities.
        """
        parent, tables, _ = self._lone()
        if x is None:
            return np.asarray(marginals_given(np.full((1, self.dim), -1, dtype=np.intp), parent, tables)[0])
        codes = codes_of(self._rows_of(x), self.levels, "ChowLiuTree")
        return marginals_given(np.maximum(codes, -1), parent, tables)

    @property
    def mode(self) -> Array:
        """The most probable row (d,), or (K, d) for a stack."""
        each = np.stack([self._named(best_path(parent, tables)) for parent, tables, _ in self._trees])
        return each if self.members else each[0]

    @property
    def mean(self) -> Array:
        """E[x] of each column (d,), or (K, d) for a stack."""
        return self._average(self._values)

    @property
    def variance(self) -> Array:
        """E[(x − E[x])²] of each column (d,), or (K, d) for a stack."""
        return self._average((self._values - self.mean[..., None]) ** 2)

    @property
    def _values(self) -> Array:
        """The value of each code of each column (d, L)."""
        L = self.tables.shape[-1]
        return np.stack([np.pad(known, (0, L - len(known))) for known in self.levels])

    def _average(self, values: Array) -> Array:
        """Σ p(xⱼ = b) · value of each column, for values (d, L), or (K, d, L) for a stack."""
        nothing = np.full((1, self.dim), -1, dtype=np.intp)
        shares = np.stack([marginals_given(nothing, parent, tables)[0] for parent, tables, _ in self._trees])
        each = (shares * values).sum(axis=-1)
        return np.asarray(each if self.members else each[0])

    def _lone(self) -> tuple[Index, Array, Array]:
        if self.members is not None:
            raise DomainError(sentence("ChowLiuTree", "this is defined for one tree", "a stack", "take member(k)"))
        return self._trees[0]

    def entropy(self, bits: bool = False) -> PerMember:
        """Σⱼ H[xⱼ | parent]; one per member for a stack."""
        each = [self._expected(*self._pairs_under(tree), tree[2]) for tree in self._trees]
        return in_units(lone(-np.array(each if self.members else each[0])), bits)

    def kl(self, other: ChowLiuTree, bits: bool = False) -> PerMember:
        """KL(self ‖ other) of trees over the same levels; member by member for stacks."""
        if not same_levels(self.levels, other.levels) or self.members != other.members:
            raise ShapeError(sentence("ChowLiuTree.kl", "both must have the same levels and members"))
        each = []
        for mine, yours in zip(self._trees, other._trees, strict=True):
            own = self._expected(*self._pairs_under(mine), mine[2])
            each.append(own - self._expected(*self._pairs_under(mine, yours[0]), yours[2]))
        return in_units(lone(np.array(each if self.members else each[0])), bits)

    @staticmethod
    def _pairs_under(tree: tuple[Index, Array, Array], along: Index | None = None) -> tuple[Index, Array]:
        """Joint probabilities (d, L, L) of each column and its parent in the tree `along`, under another tree."""
        parent, tables, _ = tree
        along = parent if along is None else along
        d, L = tables.shape[:2]
        one = marginals_given(np.full((1, d), -1, dtype=np.intp), parent, tables)[0]
        joint = np.zeros((d, L, L))
        for j in range(d):
            if along[j] < 0:
                joint[j, 0] = one[j]
                continue
            given = np.full((L, d), -1, dtype=np.intp)
            given[:, along[j]] = np.arange(L)
            joint[j] = one[along[j]][:, None] * np.nan_to_num(marginals_given(given, parent, tables)[:, j])
        return along, joint

    @staticmethod
    def _expected(parent: Index, joint: Array, logs: Array) -> float:
        """Σⱼ Σ p(parent, xⱼ) log table."""
        return float(np.where(joint > 0, joint * np.where(joint > 0, logs, 0.0), 0.0).sum())

    @property
    def n_parameters(self) -> int:
        """Free parameters: (levels − 1) × (levels of the parent) per column."""
        sizes, total = [len(known) for known in self.levels], 0
        for parent, _, _ in self._trees:
            total += sum((sizes[j] - 1) * (sizes[p] if p >= 0 else 1) for j, p in enumerate(parent))
        return total

    # --------------------------------------------------------------- learning

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> PairCounts:
        """Pair counts of rows (n, d), dense or sparse; E-step: missing values are summed out under the tree.

        Where that would take too long (many columns of many levels), available pairs are counted.
        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to (−1:
        none).
        """
        n = n_rows(x)
        w, x = weights(weight, n, "ChowLiuTree"), self._rows_of(x)
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        codes = codes_of(x, self.levels, "ChowLiuTree")
        refuse_unknown_levels(codes, x, self.levels, "ChowLiuTree")
        shares = shares_of(w, labels, n, self.members, "ChowLiuTree")
        whole = (codes >= 0).all(axis=1)
        incomplete: Index = np.flatnonzero(~whole & rows_with_weight(shares) & self._sums_gaps)
        if not len(incomplete):
            return count_pairs(codes, shares, self.levels, self.members)
        stats = count_pairs(codes[whole], shares[:, np.flatnonzero(whole)], self.levels, self.members)
        return stats + self._expected_pairs(codes[incomplete], shares[:, incomplete])

    @property
    def _sums_gaps(self) -> bool:
        """True where all pairs of an incomplete row can be summed in about a millisecond."""
        d, L = self.tables.shape[-3:-1]
        return bool(d**2 * L**3 <= EFFORT)

    def _expected_pairs(self, codes: Index, shares: Any) -> PairCounts:
        """Expected counts of incomplete rows, each under its member's tree, and the entropy of their missing values."""
        start, rows, pairs, entropy = offsets_of(self.levels), [], [], []
        for (parent, tables, _), w in zip(self._trees, _each_of(shares, self.members), strict=True):
            mine = np.flatnonzero(w)
            found, logs = expected_pairs(codes[mine], parent, tables, w[mine], start)
            possible = np.isfinite(logs)
            inside = _log_likelihood(found, parent, tables, self.levels)
            entropy.append(float(w[mine][possible] @ logs[possible]) - inside)
            rest = mine[~possible]
            if len(rest):  # a row of probability 0 under the tree has no expectation
                found = found + count_pairs(codes[rest], w[None, rest], self.levels, None).pairs
            rows.append(float(w.sum()))
            pairs.append(found)
        parts = {"rows": np.array(rows), "pairs": np.stack(pairs), "entropy": np.array(entropy)}
        parts = {name: per_member(part, self.members) for name, part in parts.items()}
        return PairCounts.trusted(**parts, levels=self.levels, complete=False)

    def refit(self, stats: PairCounts, prior: Any = None) -> ChowLiuTree:
        """Maximum-likelihood tree and tables; with missing values one EM step for both."""
        self._check(stats)
        if prior is not None:
            return self.refit(prior.update(stats).stats)
        if not stats.total_weight > 0:
            raise DataError(
                sentence("ChowLiuTree", "at least one row with weight is needed", "none", "or give a prior")
            )
        _warn_of_missing_values(stats)
        pairs = stats.pairs.reshape(-1, *stats.pairs.shape[-2:])
        found = [
            _learned(n, self.levels, old) if rows > 0 else old[:2]
            for n, rows, old in zip(pairs, np.atleast_1d(stats.rows), self._trees, strict=True)
        ]
        parent, tables = (np.stack(each) for each in zip(*found, strict=True))
        if not self.members:
            parent, tables = parent[0].copy(), tables[0].copy()
        return self.replace(parent=parent, tables=tables)

    def objective(self, stats: PairCounts, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics, plus the entropy of missing values and the log prior.

        Σⱼ Σ n(parent, xⱼ) log p(xⱼ | parent).
        """
        self._check(stats)
        pairs = stats.pairs.reshape(-1, *stats.pairs.shape[-2:])
        value = float(np.sum(stats.entropy)) + sum(
            _log_likelihood(n, tree[0], tree[1], self.levels) for n, tree in zip(pairs, self._trees, strict=True)
        )
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: PairCounts) -> Any:
        """One pseudo-row of independent columns with the pooled level frequencies: no level gets probability 0."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.trusted(distribution=self, stats=pseudo_pair_counts(stats, STRENGTH))

    def grown(self, levels: tuple[Array, ...]) -> Self:
        """A blank model with these levels and as many members.

        Parameters
        ----------
        levels : tuple of arrays
            Levels of each column.

        Returns
        -------
        ChowLiuTree
            The new model.
        """
        return self if same_levels(self.levels, levels) else type(self).over(levels, self.members)  # type: ignore[return-value]

    def _check(self, stats: PairCounts) -> None:
        if not same_levels(stats.levels, self.levels) or stats.rows.shape != self.parent.shape[:-1]:
            expected = f"statistics must be of {self.dim} columns with the same levels"
            raise ShapeError(sentence("ChowLiuTree", expected, stats.pairs.shape))


def _inside(parent: Index, d: int) -> Index:
    """Parents, with indices outside the columns replaced so that they fail the cycle check."""
    return np.where((parent >= -1) & (parent < d), parent, np.arange(d))


def _refuse_unlike(parent: Index, table: Array, levels: tuple[Array, ...]) -> None:
    """Raise unless rows of a table sum to 1 over the column's levels, and are equal at a root."""
    for j, known in enumerate(levels):
        above = len(levels[parent[j]]) if parent[j] >= 0 else table.shape[-1]
        part = table[j, :above]
        sound = (part >= 0).all() and np.abs(part.sum(axis=1) - 1).max() <= 1e-9 and not part[:, len(known) :].any()
        if not sound or (parent[j] < 0 and np.abs(part - part[0]).max() > 1e-12):
            raise DomainError(
                sentence("ChowLiuTree", f"table {j} must hold probabilities of {len(known)} levels in rows")
            )


def _each_of(shares: Any, members: int | None) -> list[Array]:
    """Weights (n,) of each member."""
    each = list(each_share(shares))
    return each * members if members and len(each) == 1 else each


def _warn_of_missing_values(stats: PairCounts) -> None:
    """Warn where pairs were counted from different rows (available-case analysis): unbiased if missing at random."""
    observed = np.add.reduceat(stats.singles, offsets_of(stats.levels)[:-1], axis=-1)
    if (observed < stats.rows[..., None] * (1 - 1e-9)).any():
        text = "missing values, and too many columns or levels for EM: available pairs are counted"
        warn(f"ChowLiuTree: {text}, unbiased if values are missing completely at random")


# ----------------------------------------------------------------------- structure


def pairwise_information(pairs: Array, levels: tuple[Array, ...]) -> Array:
    """Mutual information of each pair of columns (d, d) in nats, from pair counts (W, W).

    >>> n = np.array([[4.0, 0, 4, 0], [0, 4, 0, 4], [4, 0, 4, 0], [0, 4, 0, 4]])
    >>> pairwise_information(n, (np.arange(2.0), np.arange(2.0))).round(4)[0, 1]
    np.float64(0.6931)
    """
    start = offsets_of(levels)[:-1]
    total = _blocks(pairs, start)
    # over rows with both columns observed: n_ab log n_ab, minus the same of both margins
    inner = _blocks(xlogy(pairs, pairs), start)
    right = np.add.reduceat(pairs, start, axis=1)  # (W, d): level a with any level of column j
    margin = np.add.reduceat(xlogy(right, right), start, axis=0)
    safe = np.where(total > 0, total, 1.0)
    out = np.where(total > 0, (inner - margin - margin.T + xlogy(total, total)) / safe, 0.0)
    out[np.diag_indices(len(out))] = 0.0
    return np.maximum(0.5 * (out + out.T), 0.0)


def _blocks(a: Array, start: Index) -> Array:
    return np.asarray(np.add.reduceat(np.add.reduceat(a, start, axis=0), start, axis=1))


def spanning_tree(gain: Array) -> Index:
    """Parents (d,) of the maximum spanning tree of a symmetric matrix, column 0 the root (Prim's algorithm).

    >>> spanning_tree(np.array([[0, 1, 5], [1, 0, 4], [5, 4, 0.0]])).tolist()
    [-1, 2, 0]
    """
    d = len(gain)
    parent, best, out = np.zeros(d, dtype=np.int64), np.array(gain[0]), np.ones(d, dtype=bool)
    parent[0], out[0] = -1, False
    for _ in range(d - 1):
        j = int(np.where(out, best, -np.inf).argmax())
        out[j] = False
        closer = out & (gain[j] > best)
        parent[closer], best[closer] = j, gain[j][closer]
    return parent


def _learned(pairs: Array, levels: tuple[Array, ...], old: tuple[Index, Array, Array]) -> tuple[Index, Array]:
    parent = spanning_tree(pairwise_information(pairs, levels))
    start, tables = offsets_of(levels), np.zeros_like(old[1])
    for j, p in enumerate(parent):
        own = slice(start[j], start[j + 1])
        alone = _shares(np.diagonal(pairs)[own][None], np.full((1, len(levels[j])), 1.0 / len(levels[j])))
        tables[j, :, : len(levels[j])] = alone
        if p >= 0:
            above = slice(start[p], start[p + 1])
            tables[j, : len(levels[p]), : len(levels[j])] = _shares(pairs[above, own], alone)
    return parent, tables


def _shares(counts: Array, otherwise: Array) -> Array:
    """Rows of counts as probabilities; a row of zeros gets `otherwise`."""
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), otherwise)


def _log_likelihood(pairs: Array, parent: Index, tables: Array, levels: tuple[Array, ...]) -> float:
    start, value = offsets_of(levels), 0.0
    for j, p in enumerate(parent):
        own = slice(start[j], start[j + 1])
        above = slice(start[p], start[p + 1])
        n = np.diagonal(pairs)[own][None] if p < 0 else pairs[above, own]
        value += float(xlogy(n, tables[j, : len(n), : n.shape[1]]).sum())
    return value
