"""Categories: one indicator function per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.basis.basis import Basis, Columns
from likely.basis.input_columns import Labels, checked_labels
from likely.core import declared
from likely.core.arrays import Array, BadEntry
from likely.core.errors import DomainError, ShapeError, sentence

UNKNOWN = ("error", "zeros")
LEVELS = declared.maybe(declared.items(declared.distinct))


@dataclass(frozen=True, eq=False)
class OneHot(Basis):
    """Indicator functions of the levels of categories: φ(x) = 1 where x is that level, else 0.

    With a constant the first level is the reference and has no function (the indicators of all levels sum to one): a
    coefficient is the difference to the reference. Without, every level has one.

    Parameters
    ----------
    levels : sequence of labels, or one sequence per column, optional
        Texts or numbers, the reference first; None: the sorted levels of the rows that `fitted` gets.
    unknown : {"error", "zeros"}
        A level that is not among them is an error, or has 0 in all functions. With a constant that would mean the
        reference level, so "zeros" needs `constant=False`.
    constant : bool
        Whether the constant function is one of them.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, chapter 3.2.

    Examples
    --------
    >>> OneHot(["a", "b", "c"]).design(["b", "a"])
    array([[1., 1., 0.],
           [1., 0., 0.]])
    >>> OneHot(constant=False).fitted(["b", "a"]).names(["city"])
    ['city=a', 'city=b']
    """

    levels: Annotated[Any, LEVELS] = None
    unknown: Annotated[str, declared.text(*UNKNOWN)] = "error"
    constant: bool = True

    def __post_init__(self) -> None:
        if self.unknown not in UNKNOWN:
            raise DomainError(sentence("OneHot", f"unknown must be one of {', '.join(UNKNOWN)}", repr(self.unknown)))
        if self.unknown == "zeros" and self.constant:
            remedy = "with a constant, zeros are the reference level"
            raise DomainError(sentence("OneHot", 'unknown="zeros" needs constant=False', "constant=True", remedy))
        if self.levels is not None:
            given = self.levels if _is_nested(self.levels) else (self.levels,)
            self._set(levels=tuple(_checked_levels(one) for one in given))

    @property
    def is_fitted(self) -> bool:
        """Whether the levels are known."""
        return self.levels is not None

    def _checked(self, X: Any, names: Sequence[str] | None) -> Labels:
        return checked_labels(X, "OneHot", names)

    def _some(self, x: Labels, rows: Any) -> Labels:
        return x.take(rows)

    def _placed(self, x: Labels, weight: Array | None) -> Self:
        return self.replace(levels=tuple(np.unique(column) for column in x.columns))

    def _functions(self, x: Labels, where: Columns) -> Array:
        own = zip(where, x.columns, self._levels(len(x.columns)), strict=True)
        return np.hstack([self._of_column(j, column, levels)[:, self.constant :] for j, column, levels in own])

    def _of_column(self, j: int | str, column: NDArray[Any], levels: NDArray[Any]) -> Array:
        """The indicators of all levels of one column (n, L)."""
        order = np.argsort(levels)
        if (column.dtype.kind == "U") == (levels.dtype.kind == "U"):
            found = order[np.minimum(np.searchsorted(levels, column, sorter=order), len(levels) - 1)]
            known = levels[found] == column
        else:  # texts among numbers, or numbers among texts
            found, known = np.zeros(len(column), dtype=np.intp), np.zeros(len(column), dtype=bool)
        if self.unknown == "error" and not known.all():
            i = int(np.flatnonzero(~known)[0])
            shown = f"{', '.join(map(repr, levels[:12].tolist()))}{' …' * (len(levels) > 12)}"
            remedy = 'unknown="zeros" with constant=False takes other levels'
            raise BadEntry("OneHot", f"levels must be among {shown}", repr(column[i].item()), i, j, remedy)
        out = np.zeros((len(column), len(levels)))
        out[np.flatnonzero(known), found[known]] = 1.0
        return out

    def _levels(self, d: int) -> tuple[NDArray[Any], ...]:
        """The levels of each of d columns."""
        if len(self.levels) not in (1, d):
            raise ShapeError(sentence("OneHot", f"rows must have {len(self.levels)} columns", d))
        return tuple(self.levels) if len(self.levels) == d else tuple(self.levels) * d

    def _count(self, d: int) -> int:
        return sum(len(levels) - self.constant for levels in self._levels(d))

    def _labels(self, columns: list[str]) -> list[str]:
        own = zip(columns, self._levels(len(columns)), strict=True)
        return [f"{name}={level}" for name, levels in own for level in levels[self.constant :].tolist()]


def _is_nested(levels: Any) -> bool:
    return isinstance(levels, list | tuple) and any(np.ndim(one) for one in levels)


def _checked_levels(levels: Any) -> NDArray[Any]:
    if not len(levels):
        raise DomainError(sentence("OneHot", "each column needs at least one level", "none"))
    found = np.array(checked_labels(np.asarray(levels, dtype=object), "OneHot").columns[0])
    if found.ndim != 1 or len(np.unique(found)) < len(found):
        raise DomainError(sentence("OneHot", "levels must differ", found.tolist()))
    return found
