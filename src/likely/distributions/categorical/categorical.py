"""Categorical distribution over named levels, and its sufficient statistics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, n_rows, parameter, unmasked, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.description import clipped
from likely.core.em_loop import StoppingRule, fit
from likely.core.engine import Engine, Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Distribution, Estimate, in_units, lone, no_option
from likely.distributions.statistics.counts import checked_labels, member_weights, one_column, per_member, weighted_sum

MISSING, UNKNOWN = -1, -2  # codes of missing values and of values that are not levels
SUM_TO_ONE = 1e-9


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """Categorical distribution of one column of levels.

    log p(x = level i) = log πᵢ: one column with L levels.

    NaN, None and pandas' NA are missing, as is −1 where `levels` is None; any other value has probability 0.

    Parameters
    ----------
    probs : array-like (L,) or (K, L)
        Probabilities of the levels; (K, L) is a stack of K members.
    levels : array-like (L,), optional
        Strings, numbers or booleans in any order; None means the integers 0 … L − 1.

    See Also
    --------
    Dirichlet : The conjugate prior.
    Multinomial : Counts of several observations.
    CategoricalDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 1.2; Ney, lecture notes, 1.3.

    Examples
    --------
    >>> Categorical([0.25, 0.75], levels=["red", "blue"]).log_prob(["blue", None, "pink"]).round(4)
    array([-0.2877,  0.    ,    -inf])
    """

    one_distribution = True  # a prior belongs to the whole distribution

    probs: Annotated[Array, declared.numbers("* L", 0)]  # (L,) or (K, L)
    levels: Annotated[NDArray[Any] | None, declared.labels] = None  # (L,)

    _mean_is_all: ClassVar[bool] = True

    def __post_init__(self) -> None:
        probs = parameter(self.probs, "Categorical", "probs")
        if probs.ndim not in (1, 2) or 0 in probs.shape:
            raise ShapeError(sentence("Categorical", "probs must have shape (L,) or (K, L)", probs.shape))
        if (probs < 0).any():
            raise DomainError(sentence("Categorical", "probabilities must not be negative", float(probs.min())))
        sums = probs.sum(axis=-1)
        if (np.abs(sums - 1) > SUM_TO_ONE).any():
            worst = float(sums.ravel()[np.abs(sums - 1).argmax()])
            raise DomainError(sentence("Categorical", "probabilities must sum to 1", worst, "divide them by their sum"))
        self._set(probs=probs, levels=known_levels(self.levels, probs.shape[-1], "Categorical"))

    def in_words(self) -> str:
        """The kind of distribution, with its number of levels."""
        return f"a categorical distribution over {self.probs.shape[-1]} levels"

    def location_words(self, names: list[str] | None = None) -> str:
        """The three most probable levels."""
        best = np.argsort(-self.probs, kind="stable")[:3]
        found = ", ".join(f"{clipped(str(self.values[j]), 12)} {self.probs[j]:.2f}" for j in best)
        return found + (" …" if len(self.probs) > len(best) else "")

    @classmethod
    def over(cls, levels: Any, members: int | None = None) -> Categorical:
        """Uniform distribution over levels.

        Parameters
        ----------
        levels : int or array-like (L,)
            Levels, or their number L for the integers 0 … L − 1.
        """
        size = int(levels) if isinstance(levels, int | np.integer) else len(levels)
        if size < 1:
            raise DataError(sentence("Categorical", "at least one level is needed", "none: all values are missing"))
        shape = (size,) if members is None else (members, size)
        return cls(np.full(shape, 1.0 / size), None if isinstance(levels, int | np.integer) else levels)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns: one."""
        return 1

    @property
    def size(self) -> int:
        """Number of levels L."""
        return int(self.probs.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.probs) if self.probs.ndim == 2 else None

    def member(self, k: int) -> Categorical:
        """One member of a stack."""
        return self.replace(probs=self.probs[k].copy())

    def take(self, index: Any) -> Categorical:
        """Stack of the selected members."""
        return self.replace(probs=self.probs[index])

    # ----------------------------------------------------------------- levels

    def encode(self, x: ArrayLike) -> Index:
        """Codes of values among the levels: −1 where missing, −2 where not a level.

        Parameters
        ----------
        x : array-like (n,)
            Values.

        Returns
        -------
        ndarray of int (n,)
            Codes.

        Examples
        --------
        >>> Categorical.over(["red", "blue"]).encode(["blue", "red", None, "pink"])
        array([ 1,  0, -1, -2])
        """
        cells = one_column_of(x)
        if cells.dtype.kind not in "biufU" or (self.levels is not None and self.levels.dtype == object):
            return _codes_of_objects(cells.astype(object).tolist(), self._places)
        if self.levels is None:
            return _codes_of_integers(cells, self.size)
        ordered, order = self._ordered
        if (cells.dtype.kind == "U") != (ordered.dtype.kind == "U"):
            return np.where(_is_nan(cells), MISSING, UNKNOWN)
        at = np.minimum(np.searchsorted(ordered, cells), self.size - 1)
        return np.where(ordered[at] == cells, order[at], np.where(_is_nan(cells), MISSING, UNKNOWN))

    @cached_property
    def _ordered(self) -> tuple[NDArray[Any], Index]:
        """Sorted levels, and the code of each."""
        levels = self.values
        order = np.argsort(levels, kind="stable")
        return levels[order], order

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The code of each level and of missing values, for objects."""
        places = {level: i for i, level in enumerate(self.values.tolist())}
        return {None: MISSING, **({-1: MISSING} if self.levels is None else {}), **places}

    @property
    def values(self) -> NDArray[Any]:
        """The levels (L,) as an array."""
        return np.arange(self.size) if self.levels is None else self.levels

    def _numbers(self, what: str) -> Array:
        """The levels as numbers (L,); an error where they are not."""
        if self.values.dtype.kind not in "biuf":
            got, remedy = f"{self.values[0]!s}, …", "code them as numbers in their order"
            raise DomainError(sentence(f"Categorical.{what}", "levels must be numbers", got, remedy))
        return self.values.astype(np.float64)

    # ---------------------------------------------------------------- density

    _support = "level"

    @staticmethod
    def _parameter_score(x: Array, probs: Array) -> tuple[Array, ...]:
        """∂ log p by the logits, whose softmax is π: one-hot codes minus π."""
        out = np.repeat(-probs[None], len(x), axis=0)
        out[np.arange(len(x)), x[:, 0].astype(np.intp)] += 1
        return (out,)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-probability log π of each value (n,) or (n, 1): (n,), or (n, K) for a stack; 0 where it is missing."""
        return map_rows(lambda block: self._table[self.encode(block)], one_column_of(x), self.members)

    @cached_property
    def _table(self) -> Array:
        """log π by code (L + 2, ...): the last two rows are UNKNOWN and MISSING."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs.T)
        rest = np.broadcast_to(np.array([-np.inf, 0.0]).reshape(2, *(1,) * (logs.ndim - 1)), (2, *logs.shape[1:]))
        return np.ascontiguousarray(np.concatenate([logs, rest]))

    def sample(self, n: int, rng: Generator) -> NDArray[Any]:
        """Draws of levels (n,), or (n, K) for a stack."""
        sums = np.cumsum(np.atleast_2d(self.probs), axis=1)
        u = rng.random((n, len(sums)))
        codes = np.stack([np.searchsorted(s / s[-1], u[:, k], side="right") for k, s in enumerate(sums)], axis=1)
        return self.values[codes if self.members else codes[:, 0]]

    # ---------------------------------------------------------------- moments

    @property
    def mode(self) -> Any:
        """The most likely level, the first of equally likely ones; (K,) for a stack."""
        return self.values[self.probs.argmax(axis=-1)]

    @property
    def mean(self) -> PerMember:
        """Σ πᵢ levelᵢ for numeric levels; (K,) for a stack."""
        return lone(self.probs @ self._numbers("mean"))

    @property
    def variance(self) -> PerMember:
        """Σ πᵢ (levelᵢ − mean)² for numeric levels; (K,) for a stack."""
        away = self._numbers("variance") - np.asarray(self.mean)[..., None]
        return lone((self.probs * away**2).sum(axis=-1))

    @property
    def median(self) -> PerMember:
        """The smallest level x with P(X ≤ x) ≥ ½, for numeric levels; (K,) for a stack.

        Strings have no order and no median: an error says so.
        """
        self._numbers("median")
        return lone(self.quantile(0.5))

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σ πᵢ log πᵢ with 0 log 0 = 0 (Herbst 1.6), in nats or bits; one per member for a stack."""
        return in_units(lone(-xlogy(self.probs, self.probs).sum(axis=-1)), bits)

    def kl(self, other: Categorical, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σ πᵢ log(πᵢ / ρᵢ); infinite where ρᵢ = 0 < πᵢ; member by member for stacks."""
        if self.values.tolist() != other.values.tolist():
            raise DomainError(sentence("Categorical.kl", "both must have the same levels in the same order"))
        return in_units(lone(rel_entr(self.probs, other.probs).sum(axis=-1)), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x) for numeric levels; (n, K) for a stack."""
        self._numbers("cdf")
        levels, order = self._ordered
        sums = np.concatenate([np.zeros((*self.probs.shape[:-1], 1)), self._sums(order)], axis=-1)
        at = np.searchsorted(levels, one_column(x, None), side="right")
        return np.asarray(np.moveaxis(sums[:, at], 0, -1) if self.members else sums[at])

    def quantile(self, p: ArrayLike) -> NDArray[Any]:
        """The smallest level x with P(X ≤ x) ≥ p, for numeric levels; (n, K) for a stack."""
        self._numbers("quantile")
        levels, order = self._ordered
        p = np.asarray(p, dtype=np.float64)
        if not ((p >= 0) & (p <= 1)).all():
            raise DomainError(sentence("Categorical.quantile", "p must lie in 0 … 1"))
        at = [np.searchsorted(sums, p) for sums in np.atleast_2d(self._sums(order))]
        return np.asarray(levels[np.stack(at, axis=-1) if self.members else at[0]])

    def _sums(self, order: Index) -> Array:
        """Cumulative probabilities; exactly 1 from the last possible level on."""
        probs = self.probs[..., order]
        last = probs.shape[-1] - 1 - (probs[..., ::-1] > 0).argmax(axis=-1)
        sums = np.minimum(np.cumsum(probs, axis=-1), 1.0)
        return np.where(np.arange(self.size) >= last[..., None], 1.0, sums)

    def expect(self, g: Callable[[Array], Array], n: int = 0, rng: Generator | None = None) -> Estimate:
        """E[g(x)] = Σ πᵢ g(levelᵢ), exactly; `n` and `rng` are not used.

        >>> Categorical([0.5, 0.25, 0.25]).expect(lambda x: x**2).value
        np.float64(1.25)
        """
        values = self.values if self.members is None else np.repeat(self.values[:, None], self.members, axis=1)
        return weighted_sum(g(values), self.probs.T)

    @property
    def n_parameters(self) -> int:
        """Free parameters: L − 1 per member."""
        return (self.size - 1) * (self.members or 1)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, levels: ArrayLike | None = None, members: int | None = None) -> Categorical:
        """Uniform initial model over the given levels, 0 … L − 1 for a number L, or else the levels found in x, sorted.

        Nonnegative integers keep their values (`levels` None, L one more than the largest). A −1 in the
        data is an ordinary level here: if it means missing, give the number of levels.
        """
        return cls.over(found_levels([x]) if levels is None else levels, members)

    @classmethod
    def fit(
        cls, x: Any, weight: Any = None, *, prior: Any = None, engine: Engine | None = None,
        stop: StoppingRule | None = None, levels: ArrayLike | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Relative frequencies (or posterior mode, with a prior); levels are those of all the data.

        Parameters
        ----------
        levels : array-like (L,), optional
            The levels; None finds them in the data.
        """
        for name in options.keys() - {"members"}:
            raise no_option("Categorical", name)
        blocks = Blocks.of(x if isinstance(x, Blocks) else one_column_of(x), weight)
        levels = found_levels(block.x for block in blocks) if levels is None else levels
        report = fit(cls.over(levels, **options), blocks, prior=prior, engine=engine, stop=stop)
        if (prior is None or isinstance(prior, str)) and not report.stats.counts.any():
            expected, remedy = "at least one entry must have been observed", "give rows that are not all NaN"
            raise DataError(sentence("Categorical", expected, "none", remedy))
        return report.model

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None, labels: Index | None = None) -> LevelCounts:
        """Counts of each level among values (n,) or (n, 1).

        `weight` is (n,) or, for a stack, (n, K); `labels` (n,) names the member that each row belongs to
        (−1: none). Missing values add to `rows` only.
        """
        n = n_rows(x)
        w = weights(weight, n, "Categorical")
        cells = one_column_of(x)
        if n > ROWS * BLOCKS:
            return self._collect_blocks(cells, w, labels)
        codes = self.encode(cells)
        _refuse_unknown(codes, cells)
        if labels is not None:
            return self._by_label(codes, w, checked_labels(labels, n, self.members, "Categorical"))
        shares = member_weights(w, None, n, self.members, "Categorical")
        return self._counted(_level_sums(codes, shares, self.size), shares.sum(axis=1))

    def _collect_blocks(self, cells: NDArray[Any], w: Array | None, labels: Index | None) -> LevelCounts:
        try:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(cells, w, labels=labels))
        except DataError:
            _refuse_unknown(self.encode(cells), cells)  # the same error, with the row's own number
            raise

    def _by_label(self, codes: Index, w: Array | None, labels: Index) -> LevelCounts:
        K, L = self.probs.shape
        observed, mine = (codes >= 0) & (labels >= 0), labels >= 0
        counts = np.bincount((labels * L + codes)[observed], None if w is None else w[observed], K * L)
        return self._counted(counts.reshape(K, L), np.bincount(labels[mine], None if w is None else w[mine], K))

    def _counted(self, counts: NDArray[Any], rows: NDArray[Any]) -> LevelCounts:
        parts = {"counts": counts.astype(np.float64), "rows": rows.astype(np.float64)}
        return LevelCounts.trusted(**{name: per_member(part, self.members) for name, part in parts.items()})

    def refit(self, stats: LevelCounts, prior: AnyPrior | None = None) -> Categorical:
        """Relative frequencies, the maximum-likelihood estimate, or with a prior the posterior mode.

        >>> c = Categorical.over(2)
        >>> c.refit(c.collect([1, 1, 1])).probs
        array([0., 1.])
        """
        self._check(stats)
        if prior is not None:
            return self._with_prior(stats, prior)
        if not stats.total_weight > 0:
            expected = "at least one row with weight is needed"
            raise DataError(sentence("Categorical", expected, "none", "or give a prior"))
        total = stats.counts.sum(axis=-1, keepdims=True)
        probs = np.where(total > 0, stats.counts / np.where(total > 0, total, 1.0), self.probs)
        return self.replace(probs=probs)

    def _with_prior(self, stats: LevelCounts, prior: Any) -> Categorical:
        levels = getattr(prior, "levels", None)
        if levels is not None and levels.tolist() != self.values.tolist():
            expected = "the prior must have the same levels in the same order"
            raise DomainError(sentence("Categorical", expected, levels.tolist()[:8]))
        return self.replace(probs=prior.update(stats).point("mode").probs)

    def objective(self, stats: LevelCounts, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics, Σ nᵢ log πᵢ (+ log prior)."""
        self._check(stats)
        value = float(xlogy(stats.counts, self.probs).sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: LevelCounts) -> Any:
        """Weak symmetric `Dirichlet` prior: one pseudo-count, spread over the levels."""
        from likely.distributions.categorical.dirichlet import Dirichlet

        return Dirichlet.weak(stats, self.levels)

    def _check(self, stats: LevelCounts) -> None:
        if stats.counts.shape != self.probs.shape:
            raise ShapeError(sentence("Categorical", f"counts must be of shape {self.probs.shape}", stats.counts.shape))


@dataclass(frozen=True, eq=False)
class LevelCounts(Addable, Value):
    """Sufficient statistics of a categorical distribution: counts of levels, and the weight of the rows."""

    counts: Annotated[Array, declared.numbers("* L", 0)]  # (..., L): weight of each level
    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows, missing ones too

    complete = True

    def __post_init__(self) -> None:
        counts, rows = parameter(self.counts, "LevelCounts", "counts"), parameter(self.rows, "LevelCounts", "rows")
        if counts.ndim not in (1, 2) or rows.shape != counts.shape[:-1]:
            got = (counts.shape, rows.shape)
            raise ShapeError(sentence("LevelCounts", "counts must have shape (..., L) and rows (...)", got))
        if (counts < 0).any() or (rows < 0).any():
            raise DomainError(sentence("LevelCounts", "counts must not be negative"))
        self._set(counts=counts, rows=rows)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, over all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: LevelCounts) -> Self:
        if self.counts.shape != other.counts.shape:
            raise ShapeError(sentence("LevelCounts", f"both must have shape {self.counts.shape}", other.counts.shape))
        return self.trusted(counts=self.counts + other.counts, rows=np.asarray(self.rows + other.rows))

    def __mul__(self, factor: float) -> Self:
        return self.trusted(counts=self.counts * factor, rows=np.asarray(self.rows * factor))

    __rmul__ = __mul__

    def pooled(self) -> LevelCounts:
        """Pooled counts of all members."""
        if self.counts.ndim == 1:
            return self
        return self.trusted(counts=self.counts.sum(axis=0), rows=np.asarray(self.rows.sum()))

    def member(self, k: int) -> LevelCounts:
        """The counts of one member of a stack."""
        return self.trusted(counts=self.counts[k].copy(), rows=np.array(self.rows[k]))


# ----------------------------------------------------------------------- levels


def known_levels(levels: Any, size: int, whose: str) -> NDArray[Any] | None:
    """Levels as an array (L,): strings, numbers or booleans, all distinct; None stays None."""
    if levels is None:
        return None
    a = _array_of_levels(levels, whose)
    if a.shape != (size,):
        raise ShapeError(sentence(whose, f"levels must have shape ({size},), one per probability", a.shape))
    if a.dtype.kind not in "biufUO" or (a.dtype.kind == "f" and not np.isfinite(a).all()):
        raise DomainError(sentence(whose, "levels must be strings, finite numbers or booleans", a.dtype.name))
    if len(set(a.tolist())) < size:
        raise DomainError(sentence(whose, "levels must be distinct", a.tolist()[:8]))
    return a


def _array_of_levels(levels: Any, whose: str) -> NDArray[Any]:
    if isinstance(levels, np.ndarray) and levels.dtype.kind not in "OT":
        return np.array(levels)
    cells = [c.item() if isinstance(c, np.generic) else c for c in levels]
    if not all(isinstance(c, str | Real) and c == c for c in cells):
        raise DomainError(sentence(whose, "levels must be strings, finite numbers or booleans", cells[:8]))
    return of_one_type(cells)


def of_one_type(cells: list[Any]) -> NDArray[Any]:
    """Strings, booleans or numbers as an array of their type; mixed types as objects, so that 1 and "1" differ."""
    kinds = {bool: "b", str: "U", int: "n", float: "n"}
    found = {kinds.get(type(c), "O") for c in cells}
    if len(found) == 1 and "O" not in found:
        return np.array(cells, dtype=np.str_ if found == {"U"} else None)
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def found_levels(columns: Iterable[Any]) -> NDArray[Any] | int:
    """The distinct values of some columns, sorted; for nonnegative integers their number L instead."""
    parts = [_distinct(one_column_of(x)) for x in columns]
    if all(isinstance(part, np.ndarray) for part in parts) and len({part.dtype.kind == "U" for part in parts}) < 2:
        levels = np.unique(np.concatenate(parts))
    else:
        levels = _sorted_cells({c for part in parts for c in (part.tolist() if isinstance(part, np.ndarray) else part)})
    return len(levels) and _count_if_codes(levels)


def _distinct(cells: NDArray[Any]) -> Any:
    """The distinct values of one column: an array, or a set of objects."""
    if cells.dtype.kind in "biufU":
        return np.unique(cells[~_is_nan(cells)])
    distinct = set(cells.astype(object).tolist())
    return {c.item() if isinstance(c, np.generic) else c for c in distinct if not is_missing(c)}


def _sorted_cells(cells: set[Any]) -> NDArray[Any]:
    levels = of_one_type(list(cells))
    if levels.dtype != object:
        return np.sort(levels)
    return of_one_type(sorted(cells, key=lambda c: (type(c).__name__, str(c))))


def _count_if_codes(levels: NDArray[Any]) -> NDArray[Any] | int:
    """L where the levels are integers from 0 with few of 0 … L − 1 left out."""
    if levels.dtype.kind not in "iuf" or levels[0] != 0 or (levels != np.floor(levels)).any():
        return levels
    size = int(levels[-1]) + 1
    return size if size <= max(4096, 4 * len(levels)) else levels


def one_column_of(x: Any) -> NDArray[Any]:
    """Values (n,) of any type; a list keeps strings, numbers and missing values distinct."""
    x = unmasked(x)
    a = np.asarray(x)
    if a.dtype.kind in "US" and not hasattr(x, "dtype"):
        a = np.asarray(x, dtype=object)  # ["a", nan] would become strings
    if a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]
    if a.ndim != 1:
        raise ShapeError(sentence("Categorical", "values must have shape (n,) or (n, 1)", a.shape))
    return a


def is_missing(cell: Any) -> bool:
    """True for None, NaN and pandas' NA."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, Real) and cell != cell)


def _is_nan(cells: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(cells.shape, bool)


def _codes_of_integers(cells: NDArray[Any], size: int) -> Index:
    """Codes of integers 0 … L − 1, which are their own codes."""
    kind = cells.dtype.kind
    if kind == "U":
        return np.full(cells.shape, UNKNOWN)
    if kind in "iu" and cells.size and cells.min() >= 0 and cells.max() < size:
        return cells.astype(np.intp)
    inside = (cells >= 0) & (cells < size)
    if kind == "f":
        inside &= cells == np.floor(np.where(inside, cells, 0.0))
    codes = np.where(inside, cells, 0).astype(np.intp)
    return np.where(inside, codes, np.where(_is_nan(cells) | (cells == -1), MISSING, UNKNOWN))


def _codes_of_objects(cells: list[Any], places: Mapping[Any, int]) -> Index:
    """Codes of objects, one by one."""
    try:
        codes = np.array([places.get(cell, UNKNOWN) for cell in cells], dtype=np.intp)
    except TypeError:  # a cell that is not hashable
        codes = np.array([places.get(cell, UNKNOWN) if isinstance(cell, Hashable) else UNKNOWN for cell in cells])
    for i in np.flatnonzero(codes == UNKNOWN):
        codes[i] = MISSING if is_missing(cells[i]) else UNKNOWN
    return codes


def _refuse_unknown(codes: Index, cells: NDArray[Any]) -> None:
    bad = np.flatnonzero(codes == UNKNOWN)
    if len(bad):
        value = cells[bad[0]]
        got = f"{value.item() if isinstance(value, np.generic) else value!r} at row {bad[0]}"
        remedy = "correct it, replace it by None, or give the model this level"
        raise DataError(sentence("Categorical", "values must be among the levels", got, remedy))


def _level_sums(codes: Index, shares: Array, size: int) -> NDArray[Any]:
    """Weighted counts of each level (m, L) under weights (m, n)."""
    observed = np.flatnonzero(codes >= 0)
    if len(shares) == 1:
        return np.bincount(codes[observed], shares[0, observed], size)[None]
    places = scipy.sparse.csr_array((np.ones(len(observed)), (codes[observed], observed)), shape=(size, len(codes)))
    return np.asarray((places @ shares.T).T)
