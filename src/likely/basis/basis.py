"""The base of all bases: validated columns, a constant function, and placement from data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from likely.basis.input_columns import checked_numbers, names_in
from likely.core import declared
from likely.core.arrays import Array, BadEntry, n_rows, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value

BLOCK = 4096  # rows that are evaluated at a time, so that what is made of them stays in cache
Columns = Sequence[int | str]  # what messages call the columns
BASIS = declared.value("a basis", "design", "n_functions", "fitted")  # the kind of a field that holds one


class Basis(Value):
    """A set of basis functions φ_1 … φ_M of a row x; a regression is linear in them, y ≈ wᵀφ(x).

    `design(X)` evaluates them on rows, `n_functions(d)` counts and `names(columns)` names them. Where centers, knots,
    scales or levels are not given, `fitted(X)` places them by data and returns a new basis; a fitted basis stays as
    it is. The constant function comes first; `constant=False` leaves it out. A subclass defines `_functions`,
    `_count`, `_labels` and, where something is placed, `is_fitted` and `_placed`.
    """

    constant: bool

    @property
    def is_fitted(self) -> bool:
        """Whether nothing is left to be placed by data."""
        return True

    def design(self, X: Any) -> Array:
        """The design matrix: row i is φ(x_i)."""
        return self._evaluated(X, None, int(self.constant))

    def n_functions(self, d: int) -> int:
        """The number M of functions of rows with d columns.

        Parameters
        ----------
        d : int
            Number of columns.

        Returns
        -------
        int
            M, with the constant where it is one of them.
        """
        self._refuse_unplaced()
        return self._count(d) + self.constant

    def names(self, columns: Sequence[str]) -> list[str]:
        """The names of the functions.

        Parameters
        ----------
        columns : sequence of str
            Names of the columns.

        Returns
        -------
        list of str
            One name per function, in the order of `design`.
        """
        self._refuse_unplaced()
        return ["1"] * self.constant + self._labels([str(name) for name in columns])

    def fitted(self, X: Any, weight: Any = None) -> Self:
        """The basis with everything placed by the rows; rows of weight 0 do not count.

        Returns
        -------
        Basis
            A new basis, or this one where nothing is left to be placed.
        """
        return self if self.is_fitted else self.placed_by(X, weight)

    def without_constant(self, X: Any, columns: Sequence[str] | None = None) -> Array:
        """The functions but the constant, (n, M) or (n, M − 1); `columns` are names for messages."""
        return self._evaluated(X, columns, 0)

    def placed_by(self, X: Any, weight: Any = None, columns: Sequence[str] | None = None) -> Self:
        """The basis with everything placed by the rows; `columns` are names for messages."""
        w = weights(weight, n_rows(X), type(self).__name__)
        if w is not None and w.ndim != 1:
            raise ShapeError(sentence(type(self).__name__, "weight must have one number per row", w.shape))
        x = self._checked(X, columns or names_in(X))
        if w is not None:
            x, w = self._some(x, w > 0), w[w > 0]  # a row without weight is not there
        if not x.shape[0]:
            raise DataError(sentence(type(self).__name__, "at least one row is needed to place the functions", "none"))
        return self._placed(x, w)

    def _evaluated(self, X: Any, columns: Sequence[str] | None, ones: int) -> Array:
        """The functions but the constant (n, M), after so many columns of ones."""
        self._refuse_unplaced()
        names = columns or names_in(X)
        x = self._checked(X, names)
        n, d = x.shape
        where = [repr(name) for name in names] if names else range(d)
        out = np.empty((n, ones + self._count(d)))
        out[:, :ones] = 1.0
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            try:
                out[rows, ones:] = self._functions(self._some(x, rows), where)
            except BadEntry as error:
                raise error.after(start) from None
        return out

    def _checked(self, X: Any, names: Sequence[str] | None) -> Any:
        """Rows as `_functions` takes them: finite numbers (n, d)."""
        return checked_numbers(X, type(self).__name__, names)

    def _some(self, x: Any, rows: Any) -> Any:
        return x[rows]

    def _refuse_unplaced(self) -> None:
        if not self.is_fitted:
            expected, remedy = "the functions must be placed first", "call fitted(X), or give them when it is made"
            raise DomainError(sentence(type(self).__name__, expected, repr(self), remedy))

    def _functions(self, x: Any, where: Columns) -> Array:
        raise NotImplementedError

    def _count(self, d: int) -> int:
        raise NotImplementedError

    def _labels(self, columns: list[str]) -> list[str]:
        raise NotImplementedError

    def _placed(self, x: Any, weight: Array | None) -> Self:
        raise NotImplementedError


def refuse_width(whose: str, expected: int, d: int) -> None:
    """Raise an error where a basis that was placed by `expected` columns gets d."""
    if expected != d:
        raise ShapeError(sentence(whose, f"rows must have {expected} columns, as those that placed it", d))
