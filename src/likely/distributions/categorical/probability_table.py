"""Joint probability tables of named discrete variables: marginals, conditionals, Bayes' theorem, independence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, rel_entr, xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, check_option, numbers, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.categorical.categorical import Categorical, found_levels
from likely.distributions.categorical.conditional_table import (
    SUM_TO_ONE,
    conditional,
    did_you_mean,
    distribution_of,
    levels_of,
)
from likely.distributions.distribution import in_units

MOST_CELLS = 1 << 27  # 1 GB
SHOWN = 20  # cells that a printed table shows

TestKind = Literal["chi2", "g"]
Names = str | tuple[str, ...] | list[str]


class Independence(NamedTuple):
    """Test of independence of two variables: the statistic, its degrees of freedom, and the p-value."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, eq=False, init=False)
class ProbabilityTable(Value):
    """Joint probability table of discrete variables.

    p(a, b, …): the joint distribution of named variables with finitely many levels.

    Several variables of the constructor are independent. `times` multiplies by a conditional distribution, `condition`
    applies Bayes' theorem, `marginal` sums out the other variables.

    Parameters
    ----------
    **variables : dict
        Per variable, by name: the probability of each level.

    See Also
    --------
    Categorical : One variable.

    References
    ----------
    Bishop (2006), chapter 1; Herbst and du Preez, lecture notes, 1.2; Ney, lecture notes, 1.3.

    Examples
    --------
    >>> rates = {"forged": {"reject": 0.96, "accept": 0.04}, "genuine": {"reject": 0.04, "accept": 0.96}}
    >>> p = ProbabilityTable(S={"forged": 0.0004, "genuine": 0.9996}).times("M1", given="S", rows=rates)
    >>> round(p.condition(M1="reject").marginal("S")["forged"], 4)
    0.0095
    """

    probs: Annotated[Array, declared.numbers("?", 0)]  # (L1, L2, …): one axis per variable
    names: Annotated[tuple[str, ...], declared.items(declared.text())]
    levels: Annotated[tuple[NDArray[Any], ...], declared.items(declared.levels)]  # (L1,), (L2,), …
    total: Annotated[float | None, declared.maybe(declared.number(0))]  # total count, where the table came from counts

    def __init__(self, /, **variables: Mapping[Any, float]) -> None:
        if not variables:
            raise DataError(sentence("ProbabilityTable", "at least one variable is needed", "none", 'S={"a": 1.0}'))
        distributions = [distribution_of(name, distribution) for name, distribution in variables.items()]
        probs = distributions[0][0]
        for distribution, _ in distributions[1:]:
            _refuse_large(probs.size * distribution.size)
            probs = np.multiply.outer(probs, distribution)
        self._set(probs=probs, names=tuple(variables), levels=tuple(levels for _, levels in distributions), total=None)

    @classmethod
    def joint(cls, probs: ArrayLike, variables: Mapping[str, Any]) -> ProbabilityTable:
        """Joint distribution from an array with one axis per variable.

        Parameters
        ----------
        probs : array-like (L1, L2, …)
            Probabilities.
        variables : dict
            Levels of each variable by name, in the order of the axes.
        """
        return cls._of(numbers(probs, "ProbabilityTable").copy(), variables, None)

    @classmethod
    def from_counts(cls, counts: ArrayLike, variables: Mapping[str, Any]) -> ProbabilityTable:
        """Relative frequencies of an array of counts; the total is kept for `independence_test`.

        Parameters
        ----------
        counts : array-like (L1, L2, …)
            Counts, one axis per variable.
        variables : dict
            Levels of each variable by name, in the order of the axes.

        Examples
        --------
        >>> t = ProbabilityTable.from_counts([[30, 10], [10, 30]], {"A": ["x", "y"], "B": [0, 1]})
        >>> t.independence_test("A", "B").statistic
        20.0
        """
        a = numbers(counts, "ProbabilityTable")
        if not np.isfinite(a).all() or (a < 0).any() or not a.sum() > 0:
            raise DataError(sentence("ProbabilityTable", "counts must be finite, not negative and not all 0"))
        return cls._of(a / a.sum(), variables, float(a.sum()))

    @classmethod
    def from_rows(cls, rows: Any, weight: ArrayLike | None = None) -> ProbabilityTable:
        """Relative frequencies of the columns of a table, over complete rows.

        Parameters
        ----------
        rows : dict, Columns or data frame
            The table.
        """
        columns = Columns(rows)
        levels = {name: _distinct(columns[name], name) for name in columns}
        sizes = tuple(len(found) for found in levels.values())
        _refuse_large(math.prod(sizes))
        codes = [_encode(columns[name], found) for name, found in levels.items()]
        w = weights(weight, len(columns), "ProbabilityTable")
        w = np.ones(len(columns)) if w is None else w
        whole = np.all([code >= 0 for code in codes], axis=0)
        at = np.ravel_multi_index([code[whole] for code in codes], sizes)
        return cls.from_counts(np.bincount(at, w[whole], math.prod(sizes)).reshape(sizes), levels)

    @classmethod
    def _of(cls, probs: Array, variables: Mapping[str, Any], total: float | None) -> ProbabilityTable:
        names = tuple(map(str, variables))
        if probs.ndim != len(names) or not names:
            expected = f"the array must have one axis for each of the variables {list(names)}"
            raise ShapeError(sentence("ProbabilityTable", expected, f"shape {probs.shape}"))
        levels = tuple(levels_of(found, probs.shape[i], names[i]) for i, found in enumerate(variables.values()))
        parts = {"probs": probs, "names": names, "levels": levels, "total": total}
        if wrong := cls.inconsistency(parts):
            raise DomainError(sentence("ProbabilityTable", wrong))
        return cls.trusted(**parts)

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Description of the first invalid field of a table; empty where all are valid."""
        probs, names, levels, total = (fields[name] for name in ("probs", "names", "levels", "total"))
        if len(set(names)) < len(names) or len(names) != probs.ndim or len(levels) != probs.ndim or not names:
            return f"the {probs.ndim} axes need one name and one list of levels each, every name once"
        for name, found, size in zip(names, levels, probs.shape, strict=True):
            if found.ndim != 1 or len(found) != size or len(set(found.tolist())) < size or not size:
                return f"{name} needs {size} different levels"
        if not np.isfinite(probs).all() or (probs < 0).any():
            return "probabilities must be finite and not negative"
        if abs(float(probs.sum()) - 1) > SUM_TO_ONE:
            return f"probabilities must sum to 1, they sum to {float(probs.sum()):.12g}: divide them by their sum"
        return "" if total is None or 0 < total < np.inf else "the total of counts must be positive and finite"

    # -------------------------------------------------------------------- building

    def times(
        self, name: str, *, given: Names | None = None, rows: Any, levels: ArrayLike | None = None
    ) -> ProbabilityTable:
        """Joint distribution with one more variable: p(…, name) = p(…) p(name | given).

        Parameters
        ----------
        name : str
            The new variable.
        given : str or sequence of str, optional
            The variables that it depends on.
        rows : dict or array-like
            {level of given: {level of name: probability}}, keyed by tuples where several are given; with none given
            {level: probability}. Or an array with an axis for each given variable and a last one for the new.
        levels : array-like, optional
            Levels of the new variable, where `rows` is an array.

        Returns
        -------
        ProbabilityTable
            The joint distribution.
        """
        if name in self.names:
            raise DomainError(sentence("ProbabilityTable.times", "a new variable needs a new name", repr(name)))
        axes = self._axes(() if given is None else given)
        table, found = conditional(rows, levels, name, [self.levels[i] for i in axes], [self.names[i] for i in axes])
        _refuse_large(self.probs.size * len(found))
        joint: Any = self.probs
        every = list(range(joint.ndim))
        probs = np.einsum(joint, every, table, [*axes, len(every)], [*every, len(every)])
        return self.trusted(probs=probs, names=(*self.names, name), levels=(*self.levels, found), total=None)

    # ----------------------------------------------------------------------- asking

    def __getitem__(self, event: Any) -> float:
        """The probability of a cell: a level, a tuple of levels in the order of `names`, or a dict by name."""
        if isinstance(event, Mapping):
            return self.probability(**event)
        event = event if isinstance(event, tuple) else (event,)
        if len(event) != len(self.names):
            expected = f"one level is needed for each of {list(self.names)}"
            raise ShapeError(sentence("ProbabilityTable", expected, event, "use marginal first, or a dict"))
        return float(self.probs[tuple(self._place(i, level) for i, level in enumerate(event))])

    def probability(self, **event: Any) -> float:
        """Probability of an event.

        Parameters
        ----------
        **event : level or collection of levels
            Per variable: its level, or several of them.

        Returns
        -------
        float
            The probability.

        Examples
        --------
        >>> ProbabilityTable(die=dict.fromkeys(range(1, 7), 1 / 6)).probability(die=[2, 4, 6])
        0.5
        """
        return float(self._restricted(event).sum())

    def condition(self, **event: Any) -> ProbabilityTable:
        """Conditional distribution p(rest | event) by Bayes' theorem.

        A variable with one given level is dropped; one with several stays. None means missing: such a variable is
        summed out.

        Parameters
        ----------
        **event : level, collection of levels or None
            Per variable: its level, several of them, or None.

        Returns
        -------
        ProbabilityTable
            The conditional distribution.
        """
        part = self._restricted(event)
        p = float(part.sum())
        if not p > 0:
            what = ", ".join(f"{name} = {level!r}" for name, level in event.items())
            expected = "an event to condition on must have a positive probability"
            raise DomainError(sentence("ProbabilityTable.condition", expected, f"p({what}) = 0"))
        gone = [i for i, name in enumerate(self.names) if name in event and not _is_collection(event[name])]
        kept = [i for i in range(len(self.names)) if i not in gone]
        if not kept:
            remedy = "table[...] gives the probability of a cell"
            raise DomainError(sentence("ProbabilityTable.condition", "some variable must be left", "none", remedy))
        levels = tuple(self.levels[i][self._places(i, event.get(self.names[i]))] for i in kept)
        names = tuple(self.names[i] for i in kept)
        return self.trusted(probs=part.sum(axis=tuple(gone)) / p, names=names, levels=levels, total=None)

    def marginal(self, *names: str) -> ProbabilityTable:
        """Marginal distribution of some variables, in the given order; the others are summed out.

        Parameters
        ----------
        *names : str
            The variables that remain.

        Returns
        -------
        ProbabilityTable
            The marginal distribution.
        """
        axes = self._axes(names)
        if not axes:
            raise DomainError(sentence("ProbabilityTable.marginal", "at least one variable is needed", "none"))
        parts = {"names": tuple(names), "levels": tuple(self.levels[i] for i in axes), "total": self.total}
        return self.trusted(probs=self._summed(axes), **parts)

    def given(self, *names: str) -> ConditionalTable:
        """Conditional distribution p(rest | names): one distribution for each combination of levels.

        Parameters
        ----------
        *names : str
            The variables that are given.

        Returns
        -------
        ConditionalTable
            The distributions, indexed by levels.

        Examples
        --------
        >>> p = ProbabilityTable.joint([[0.1, 0.3], [0.3, 0.3]], {"A": ["x", "y"], "B": ["u", "v"]})
        >>> p.given("A")["x"]["u"]
        0.25
        """
        axes = self._axes(names)
        rest = [i for i in range(len(self.names)) if i not in axes]
        if not axes or not rest:
            expected = "some variables must be given and some be left"
            raise DomainError(sentence("ProbabilityTable.given", expected, f"{list(names)} of {list(self.names)}"))
        order = [*axes, *rest]
        ordered = self.trusted(
            probs=np.transpose(self.probs, order), total=self.total,
            names=tuple(self.names[i] for i in order), levels=tuple(self.levels[i] for i in order),
        )  # fmt: skip
        return ConditionalTable.trusted(table=ordered, n_given=len(axes))

    @property
    def mode(self) -> Any:
        """The most likely cell, the first of equal ones: a level, or a dict by name for several variables."""
        at = np.unravel_index(int(self.probs.argmax()), self.probs.shape)
        cell = {name: _item(self.levels[i][at[i]]) for i, name in enumerate(self.names)}
        return cell if len(cell) > 1 else next(iter(cell.values()))

    # ---------------------------------------------------------------- as a density

    def log_prob(self, rows: Any) -> Array:
        """Log-probability of each row.

        Missing values (None, NaN, or a missing column) are summed out; values that are not levels have −∞.

        Parameters
        ----------
        rows : dict, Columns, data frame or array-like (n, k)
            Columns by name, or rows of levels in order.

        Returns
        -------
        ndarray (n,)
            Log-probabilities.
        """
        columns = self._columns(rows)
        codes = np.stack([_encode(columns[name], levels) for name, levels in zip(self.names, self.levels, strict=True)])
        out = np.full(codes.shape[1], -np.inf)
        known = (codes != -2).all(axis=0)
        patterns, which = np.unique(codes >= 0, axis=1, return_inverse=True)
        for j, pattern in enumerate(patterns.T):
            here = known & (which.ravel() == j)
            observed = np.flatnonzero(pattern).tolist()
            with np.errstate(divide="ignore"):
                out[here] = np.log(self._summed(observed))[tuple(codes[observed][:, here])] if observed else 0.0
        return out

    def sample(self, n: int, rng: Generator) -> Columns:
        """Random samples, as columns by name.

        Returns
        -------
        Columns
            Samples, by name of the variable.
        """
        sums = np.cumsum(self.probs.ravel())
        cells = np.searchsorted(sums, rng.random(n) * sums[-1], side="right")
        at = np.unravel_index(cells, self.probs.shape)
        return Columns({name: self.levels[i][at[i]] for i, name in enumerate(self.names)})

    # ------------------------------------------------------------------ information

    def entropy(self, bits: bool = False) -> float:
        """−Σ p log p over all cells, in nats or bits (Herbst 1.6)."""
        return float(in_units(-xlogy(self.probs, self.probs).sum(), bits))

    def mutual_information(self, a: Names, b: Names, given: Names | None = None, bits: bool = False) -> float:
        """Mutual information I(a; b | given), 0 where they are independent.

        I(a; b | given) = Σ p log p(a, b | given) / (p(a | given) p(b | given)).

        Parameters
        ----------
        a : str or sequence of str
            Variables.
        b : str or sequence of str
            Other variables.
        given : str or sequence of str, optional
            Variables that are given.

        Returns
        -------
        float
            In nats, or bits.
        """
        joint, product = self._against(a, b, given)
        return float(in_units(max(0.0, rel_entr(joint, product).sum()), bits))

    def independent(self, a: Names, b: Names, given: Names | None = None, tolerance: float = 1e-9) -> bool:
        """Whether p(a, b | given) = p(a | given) p(b | given) in every cell.

        Parameters
        ----------
        a : str or sequence of str
            Variables.
        b : str or sequence of str
            Other variables.
        given : str or sequence of str, optional
            Variables that are given.
        tolerance : float, default 1e-9
            Largest relative difference.

        Returns
        -------
        bool
            Whether they are independent.

        Examples
        --------
        >>> ProbabilityTable(A={0: 0.3, 1: 0.7}, B={0: 0.5, 1: 0.5}).independent("A", "B")
        True
        """
        joint, product = self._against(a, b, given)
        return bool((np.abs(joint - product) <= tolerance * np.maximum(joint, product)).all())

    def independence_test(
        self, a: Names, b: Names, given: Names | None = None, kind: TestKind = "chi2"
    ) -> Independence:
        """Pearson's χ² (or "g", the likelihood ratio) of counts against independence, summed over `given`.

        Degrees of freedom are (rows − 1)(columns − 1) per level of `given`, without empty rows and columns.

        Parameters
        ----------
        a : str or sequence of str
            Variables.
        b : str or sequence of str
            Other variables.
        given : str or sequence of str, optional
            Variables that are given.
        kind : {"chi2", "g"}, default "chi2"
            Pearson's χ², or the likelihood ratio G.

        Returns
        -------
        Independence
            Statistic, degrees of freedom and p-value.
        """
        if self.total is None:
            expected = "a test needs the total count"
            raise DomainError(sentence("independence_test", expected, remedy="use ProbabilityTable.from_counts"))
        check_option(kind, TestKind, "independence_test", "kind")
        joint, product = self._against(a, b, given)
        terms = 2 * rel_entr(joint, product) if kind == "g" else _pearson(joint, product)
        degrees = int(np.maximum(_live(joint, 1) - 1, 0) @ np.maximum(_live(joint, 0) - 1, 0))
        statistic = max(0.0, float(self.total * terms.sum()))
        return Independence(statistic, degrees, float(chdtrc(degrees, statistic)) if degrees else 1.0)

    def _against(self, a: Names, b: Names, given: Names | None) -> tuple[Array, Array]:
        """p(a, b, c), and p(a | c) p(b | c) p(c), both with axes a, b, c, each for one or more variables."""
        groups = [self._axes(names) for names in (a, b, () if given is None else given)]
        flat = [i for group in groups for i in group]
        if len(set(flat)) < len(flat) or not groups[0] or not groups[1]:
            expected = "a, b and given must name different variables"
            raise DomainError(sentence("ProbabilityTable", expected, [a, b, given]))
        sizes = [math.prod(self.probs.shape[i] for i in group) for group in groups]
        joint = self._summed(flat).reshape(sizes)
        weight = joint.sum(axis=(0, 1))
        inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
        return joint, joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None] * inverse

    # ------------------------------------------------------------------------ inside

    def _summed(self, axes: list[int]) -> Array:
        """The marginal over some axes, in their order."""
        joint: Any = self.probs
        return np.asarray(np.einsum(joint, list(range(joint.ndim)), axes))

    def _axes(self, names: Names) -> list[int]:
        names = (names,) if isinstance(names, str) else tuple(names)
        unknown = [name for name in names if name not in self.names]
        if unknown or len(set(names)) < len(names):
            what = repr(unknown[0]) if unknown else f"{list(names)}, one of them twice"
            expected = f"variables must be among {list(self.names)}"
            raise DomainError(sentence("ProbabilityTable", expected, what, did_you_mean(unknown, self.names)))
        return [self.names.index(name) for name in names]

    def _place(self, axis: int, level: Any) -> int:
        found = [i for i, known in enumerate(self.levels[axis].tolist()) if _same_level(known, level)]
        if not found:
            known = self.levels[axis].tolist()
            expected = f"levels of {self.names[axis]} are {known[:12]}"
            raise DomainError(sentence("ProbabilityTable", expected, repr(level), did_you_mean([level], known)))
        return found[0]

    def _places(self, axis: int, wanted: Any) -> Index:
        """Codes of the levels of a variable that an event allows; all without a condition."""
        if wanted is None:
            return np.arange(len(self.levels[axis]))
        each = list(wanted) if _is_collection(wanted) else [wanted]
        return np.unique(np.array([self._place(axis, level) for level in each], dtype=np.intp))

    def _restricted(self, event: Mapping[str, Any]) -> Array:
        """Probabilities of the cells of an event, all axes kept."""
        part = self.probs
        for axis in self._axes(tuple(event)):
            part = np.take(part, self._places(axis, event[self.names[axis]]), axis=axis)
        return part

    def _columns(self, rows: Any) -> Mapping[str, Any]:
        """Columns by name from any kind of rows; a variable without a column is missing."""
        if not (isinstance(rows, Mapping) or hasattr(rows, "columns")):
            return self._by_place(rows)
        columns = Columns(rows)
        missing = np.full(len(columns), None, dtype=object)
        return {name: columns[name] if name in columns.parts else missing for name in self.names}

    def _by_place(self, rows: Any) -> Mapping[str, Any]:
        a = np.array(rows, dtype=object)
        a = a[:, None] if a.ndim == 1 and len(self.names) == 1 else a
        if a.ndim != 2 or a.shape[1] != len(self.names):
            expected = f"rows must have one level for each of {list(self.names)}"
            raise ShapeError(sentence("ProbabilityTable", expected, f"shape {a.shape}"))
        return {name: a[:, i] for i, name in enumerate(self.names)}

    def __repr__(self) -> str:
        return _text(self.probs.ravel(), self.probs.shape, self.names, self.levels, f"p({', '.join(self.names)})")


@dataclass(frozen=True, eq=False)
class ConditionalTable(Value):
    """Conditional distribution p(rest | given), for each combination of the given levels."""

    table: ProbabilityTable  # the joint distribution, given variables first
    n_given: int

    @property
    def names(self) -> tuple[str, ...]:
        """The given variables."""
        return self.table.names[: self.n_given]

    @property
    def probs(self) -> Array:
        """p(rest | given) with the given axes first; 0 where the given levels have probability 0."""
        rest = tuple(range(self.n_given, self.table.probs.ndim))
        weight = self.table.probs.sum(axis=rest, keepdims=True)
        return np.divide(self.table.probs, weight, out=np.zeros(self.table.probs.shape), where=weight > 0)

    def __getitem__(self, levels: Any) -> ProbabilityTable:
        """The distribution of the rest at some levels: one, a tuple of them, or a dict by name."""
        if not isinstance(levels, Mapping):
            each = levels if isinstance(levels, tuple) else (levels,)
            if len(each) != self.n_given:
                raise ShapeError(sentence("ConditionalTable", f"one level for each of {list(self.names)}", each))
            levels = dict(zip(self.names, each, strict=True))
        return self.table.condition(**levels)

    def __repr__(self) -> str:
        t, left = self.table, ", ".join(self.table.names[self.n_given :])
        return _text(self.probs.ravel(), t.probs.shape, t.names, t.levels, f"p({left} | {', '.join(self.names)})")


def _distinct(column: Any, name: str) -> NDArray[Any]:
    levels = found_levels([column])
    if not isinstance(levels, np.ndarray):
        if not levels:
            raise DataError(sentence("ProbabilityTable", f"column {name} must have some value", "none"))
        return np.arange(levels)
    return levels


def _encode(column: Any, levels: NDArray[Any]) -> Index:
    """Codes of values among the levels: −1 where missing, −2 where not a level."""
    return Categorical.trusted(probs=np.empty(len(levels)), levels=levels).encode(column)


def _refuse_large(cells: int) -> None:
    if cells > MOST_CELLS:
        expected = f"a table may have {MOST_CELLS:,} cells"
        raise DomainError(sentence("ProbabilityTable", expected, f"{cells:,}", "sum some variables out first"))


# ------------------------------------------------------------------------- helpers


def _is_collection(wanted: Any) -> bool:
    return isinstance(wanted, Collection) and not isinstance(wanted, str)


def _same_level(known: Any, level: Any) -> bool:
    """Equality of levels of the same type: True is not 1."""
    return isinstance(known, bool) == isinstance(level, bool | np.bool_) and bool(known == level)


def _item(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level


def _pearson(joint: Array, product: Array) -> Array:
    """(p − q)² / q of each cell; a cell with q = 0 adds 0."""
    return np.divide((joint - product) ** 2, product, out=np.zeros_like(joint), where=product > 0)


def _live(joint: Array, axis: int) -> Index:
    """Number of rows (or columns) with positive weight, at each level of the given variables (c,)."""
    return (joint.sum(axis=axis) > 0).sum(axis=0)


def _text(probs: Array, shape: Any, names: Any, levels: Any, title: str) -> str:
    """One line per cell, the last variable varying fastest."""
    at = np.unravel_index(np.arange(min(len(probs), SHOWN)), shape)
    rows = [[str(_item(levels[i][j])) for j in places] for i, places in enumerate(at)]
    columns = [[name, *cells] for name, cells in zip(names, rows, strict=True)]
    columns.append([title, *(f"{p:.6g}" for p in probs[:SHOWN])])
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in zip(*columns, strict=True)
    ]
    more = [f"… {len(probs) - SHOWN:,} more cells"] if len(probs) > SHOWN else []
    return "\n".join([line.rstrip() for line in lines] + more)
