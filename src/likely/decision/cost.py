"""Cost tables and minimum expected cost decisions (Bayes decision rule)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core import declared
from likely.core.arrays import Array, Index, Targets
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value

CostLike: TypeAlias = "Cost | ArrayLike | Mapping[Any, Any]"  # a table, a data frame, or {action: {class: cost}}


@dataclass(frozen=True, eq=False)
class Cost(Value):
    """Cost table (loss matrix) of a decision problem.

    R(a | x) = Σ_c L(a, c) p(c | x) is the expected cost of action a.

    The first C rows of the table are the classes themselves, in the order of the columns; further rows are other
    actions. A cost may be infinite: such an action is never taken where that class is possible (0 · ∞ = 0). A table
    with fewer rows than classes has no action that is a class: all its rows are further actions, and the rows of the
    classes are infinite.

    Parameters
    ----------
    table : array-like (A, C)
        Cost of each action (row) for each true class (column).
    actions : sequence of str, optional
        Names of the further actions: "ask", "measure again", …; by default "action 1", "action 2", ….
    classes : array-like (C,), optional
        Labels of the columns; None means the classes of a posterior, in its order.

    See Also
    --------
    decide : Decisions of least expected cost.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.2; Herbst and du Preez, lecture notes, 1.5.

    Examples
    --------
    >>> Cost([[0, 9], [9, 0], [2, 2]], actions=["ask"]).decide(np.log([[0.95, 0.05], [0.5, 0.5]]))
    array([0, 2])
    >>> Cost([[0, 1, 1], [1, 0, 0]], actions=["keep", "repair"]).names(["sound", "worn", "broken"])[3:].tolist()
    ['keep', 'repair']
    """

    table: Annotated[Array, declared.numbers("A C", high=np.inf)]  # (A, C): +inf where an action must never be taken
    actions: Annotated[tuple[str, ...], declared.texts] = ()  # names of the further actions
    classes: Annotated[NDArray[Any] | None, declared.labels] = None  # (C,)

    def __post_init__(self) -> None:
        table = _costs(self.table)
        if table.ndim != 2 or 0 in table.shape:
            expected = "the table must have a row for each action and a column for each true class"
            raise ShapeError(sentence("Cost", expected, f"shape {table.shape}"))
        if table.shape[0] < table.shape[1]:
            table = np.concatenate([np.full((table.shape[1],) * 2, np.inf), table])
        extra = table.shape[0] - table.shape[1]
        actions = tuple(map(str, self.actions)) or tuple(f"action {i + 1}" for i in range(extra))
        if len(actions) != extra or len(set(actions)) < extra:
            expected = f"actions must name the {extra} rows beyond the classes, each name once"
            raise ShapeError(sentence("Cost", expected, list(actions)))
        classes = None if self.classes is None else labels(self.classes)
        _refuse_two_meanings(actions, classes)
        if classes is not None and (classes.shape != table.shape[1:] or len(set(classes.tolist())) < len(classes)):
            expected = f"classes must name the {table.shape[1]} columns, each once"
            raise ShapeError(sentence("Cost", expected, classes.tolist()))
        self._set(table=table, actions=actions, classes=classes)

    @classmethod
    def zero_one(cls, classes: int) -> Cost:
        """0/1 loss: the smallest expected cost is then the largest posterior.

        Parameters
        ----------
        classes : int
            Number of classes C.
        """
        return cls.trusted(table=1.0 - np.eye(classes), actions=(), classes=None)

    @classmethod
    def named(cls, actions: Any, classes: Targets, table: Any) -> Cost:
        """From a table with row and column names, rows in any order.

        Each class has an action of its name, or none has: then all rows are further actions.

        Parameters
        ----------
        actions : sequence of str
            Names of the rows.
        classes : array-like (C,)
            Labels of the columns.
        table : array-like (A, C)
            Cost of each action (row) for each true class (column).
        """
        table, names = _costs(table), [str(a) for a in actions]
        columns = labels(classes)
        if table.shape != (len(names), len(columns)):
            raise ShapeError(sentence("Cost", f"the table must be {len(names)} × {len(columns)}", f"{table.shape}"))
        missing = [str(c) for c in columns.tolist() if str(c) not in names]
        if len(missing) == len(columns) and len(set(names)) == len(names):
            never = np.full((len(columns),) * 2, np.inf)
            return cls(np.concatenate([never, table]), tuple(names), columns)
        if missing or len(set(names)) < len(names):
            what = f"no action {missing[0]!r}" if missing else f"actions {names}"
            remedy = "add that row; its costs are inf if it must never be chosen"
            raise DomainError(sentence("Cost", "each class needs one action of its name", what, remedy))
        first = [names.index(str(c)) for c in columns.tolist()]
        rest = [i for i in range(len(names)) if i not in first]
        return cls(table[first + rest], tuple(names[i] for i in rest), columns)

    @classmethod
    def of(cls, given: Any, classes: Targets, named: bool = True) -> Cost:
        """A cost table for these classes from None (0/1), a Cost, a table, nested dicts or a data frame.

        Parameters
        ----------
        given : Cost, array-like, dict, data frame or None
            The costs; a dict is {action: {class: cost}}.
        classes : array-like (C,)
            Labels of the classes.
        named : bool, default True
            Match columns by label; if False, the classes have no names and columns are in the order of the table.
        """
        classes = labels(classes)
        if given is None:
            return cls.zero_one(len(classes))
        cost = cls.from_any(given)
        if cost.classes is not None and named:
            return cost._in_order_of(classes)
        if cost.table.shape[1] != len(classes):
            expected = f"a cost table needs a column for each of the {len(classes)} classes {classes.tolist()}"
            raise ShapeError(sentence("Cost", expected, f"a table {cost.table.shape[0]} × {cost.table.shape[1]}"))
        return cost

    @classmethod
    def from_any(cls, given: Any) -> Cost:
        """A cost table in its own order from a Cost, a table, nested dicts or a data frame.

        Parameters
        ----------
        given : Cost, array-like, dict or data frame
            The costs; a dict is {action: {class: cost}}.
        """
        return given if isinstance(given, Cost) else _parsed(given)

    def _in_order_of(self, classes: NDArray[Any]) -> Cost:
        mine = [str(c) for c in labels(self.classes).tolist()]
        wanted = [str(c) for c in classes.tolist()]
        if sorted(mine) != sorted(wanted):
            raise DomainError(sentence("Cost", f"the table must be for the classes {wanted}", mine))
        order = [mine.index(c) for c in wanted]
        rest = range(len(mine), len(self.table))
        return self.replace(table=self.table[[*order, *rest]][:, order], classes=classes)

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return int(self.table.shape[1])

    @property
    def decides_classes(self) -> bool:
        """Whether some action is a class; else all are further actions."""
        return bool(np.isfinite(self.table[: self.n_classes]).any())

    def names(self, classes: Sequence[object] | NDArray[Any]) -> NDArray[Any]:
        """Names of the rows: the labels of the classes, then the further actions.

        Parameters
        ----------
        classes : array-like (C,)
            Labels of the classes.

        Returns
        -------
        ndarray (A,)
            One name per row of the table.
        """
        classes = labels(classes)
        if not self.actions:
            return classes
        out = np.empty(len(self.table), dtype=object)
        out[:] = [*classes.tolist(), *self.actions]
        return out

    def with_reject(self, cost: float, name: str = "reject") -> Cost:
        """The table with one more action, rejection, at a constant cost.

        Parameters
        ----------
        cost : float
            Cost of rejecting, whatever the true class is.
        name : str, default "reject"
            Name of the action.

        Returns
        -------
        Cost
            The extended table.
        """
        while name in self.actions:
            name += " to decide"
        if not (np.isfinite(cost) and cost >= 0):
            raise DomainError(sentence("Cost", "the cost of rejection must be finite and not negative", cost))
        row = np.full((1, self.n_classes), float(cost))
        return self.replace(table=np.concatenate([self.table, row]), actions=(*self.actions, name))

    def expected(self, log_posterior: ArrayLike) -> Array:
        """Expected cost of each action under log-posteriors.

        Returns
        -------
        ndarray (n, A)
            Expected costs.
        """
        return self.expected_of(np.exp(self._checked(log_posterior)))

    def expected_of(self, posterior: Array) -> Array:
        """Expected cost of each action under posterior probabilities.

        Returns
        -------
        ndarray (n, A)
            Expected costs; infinite where an infinite cost has positive probability.
        """
        never = np.isinf(self.table)
        if not never.any():
            return posterior @ self.table.T
        R = posterior @ np.where(never, 0.0, self.table).T
        R[(posterior > 0).astype(np.float64) @ never.T.astype(np.float64) > 0] = np.inf
        lost = np.flatnonzero(np.isinf(R).all(axis=1))
        if len(lost):
            expected = "some action must have finite costs for all classes of positive probability"
            remedy = "add such an action, or reject_cost="
            raise DomainError(sentence("Cost", expected, f"none for row {lost[0]}", remedy))
        return R

    def predicted(self, posterior: Array) -> Index:
        """The class of smallest expected cost; if none may be chosen, the most probable one.

        Returns
        -------
        ndarray of int (n,)
            Columns of the table.
        """
        C = self.n_classes
        if len(self.table) == C:
            return self.expected_of(posterior).argmin(axis=1)
        R = self.expected_of(posterior)[:, :C]
        return np.where(np.isinf(R).all(axis=1), posterior.argmax(axis=1), R.argmin(axis=1))

    def decide(self, log_posterior: ArrayLike) -> Index:
        """The action of smallest expected cost; ties go to the first.

        Returns
        -------
        ndarray of int (n,)
            Rows of the table.
        """
        return self.expected(log_posterior).argmin(axis=1)

    def risk(self, decided: ArrayLike, truth: ArrayLike, weight: Any = None, reject_cost: float | None = None) -> float:
        """Mean cost of decisions.

        Parameters
        ----------
        decided : array-like of int (n,)
            Rows of the table; negative ones are rejections.
        truth : array-like of int (n,)
            Columns of the true classes.
        weight : array-like (n,), optional
            Weight per decision.
        reject_cost : float, optional
            Cost of a rejection; needed where there are any.

        Returns
        -------
        float
            The mean.
        """
        decided, truth = np.asarray(decided), np.asarray(truth)
        if decided.dtype.kind not in "iu":
            remedy = "use Cost.decide, or .index of lk.decide(…, full=True)"
            raise DomainError(sentence("Cost.risk", "decided must be rows of the table", "names", remedy))
        refused = decided < 0
        if refused.any() and reject_cost is None:
            expected = "rejections need a cost"
            raise DomainError(sentence("Cost.risk", expected, f"{refused.sum()} of them", "pass reject_cost"))
        paid = np.where(refused, reject_cost or 0.0, self.table[np.maximum(decided, 0), truth])
        return float(np.average(paid, weights=weight))

    def _checked(self, log_posterior: Any) -> Array:
        a = np.asarray(log_posterior, dtype=np.float64)
        if a.ndim != 2 or a.shape[1] != self.n_classes:
            raise ShapeError(sentence("Cost", f"log-posteriors must have shape (n, {self.n_classes})", a.shape))
        return a


def _costs(table: Any) -> Array:
    """Costs as numbers, possibly +inf."""
    try:
        a = np.array(table, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        expected = "the table must be numbers in a regular shape"
        raise ShapeError(sentence("Cost", expected, type(table).__name__)) from error
    odd = np.argwhere(~(a > -np.inf))
    if len(odd):
        at = tuple(int(i) for i in odd[0])
        raise DomainError(sentence("Cost", "costs must be numbers or +inf", f"{a[at]} at {at}"))
    return a


def labels(classes: Any) -> NDArray[Any]:
    """Labels as an array, strings as objects."""
    a = np.asarray(classes)
    return a if hasattr(classes, "dtype") or a.dtype.kind != "U" else np.array(list(classes), dtype=object)


def _parsed(given: Any) -> Cost:
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        return _of_frame(given)
    if isinstance(given, Mapping):
        rows = {str(a): row for a, row in given.items()}
        first: Any = next(iter(rows.values()), {})
        if not (
            isinstance(first, Mapping) and all(isinstance(r, Mapping) and set(r) == set(first) for r in rows.values())
        ):
            expected = "costs by name are {action: {true class: cost}}, every action with every class"
            raise DomainError(sentence("Cost", expected, repr(given)[:80]))
        return Cost.named(list(rows), list(first), [[row[c] for c in first] for row in rows.values()])
    return Cost(given)


def _of_frame(frame: Any) -> Cost:
    """From a data frame: columns are true classes; actions are the index, or the first column if it holds strings."""
    names, values = [str(c) for c in frame.columns], frame.to_numpy()
    if hasattr(frame, "index") and type(frame.index).__name__ != "RangeIndex":
        return Cost.named([str(i) for i in frame.index], names, values.astype(float))
    if not _are_numbers(values[:, 0]):
        return Cost.named(values[:, 0].tolist(), names[1:], values[:, 1:].astype(float))
    return Cost(values.astype(float), classes=np.array(names, dtype=object))


def _refuse_two_meanings(actions: tuple[str, ...], classes: NDArray[Any] | None) -> None:
    reserved = [a for a in actions if a in ("REJECT", "NOVEL")]
    if reserved:
        raise DomainError(
            sentence("Cost", "REJECT and NOVEL are reserved for rejection", f"an action {reserved[0]!r}", "rename it")
        )
    shared = [a for a in actions if classes is not None and a in {str(c) for c in classes.tolist()}]
    if shared:
        expected = "an action beyond the classes needs a name of its own"
        raise DomainError(sentence("Cost", expected, f"{shared[0]!r}, which is a class", "rename it"))


def _are_numbers(cells: Any) -> bool:
    return all(isinstance(c, int | float | np.number) for c in cells)
