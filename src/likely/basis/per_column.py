"""Columns with a basis of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np

from likely.basis.basis import BASIS, Basis
from likely.basis.input_columns import names_in, taken
from likely.core import declared
from likely.core.arrays import Array, n_rows
from likely.core.errors import DomainError, sentence

Key = str | int | tuple[str | int, ...]


def _is_key(key: Any) -> bool:
    return type(key) in (str, int) or (
        isinstance(key, tuple) and len(key) > 0 and all(type(one) in (str, int) for one in key)
    )


def _are_parts(x: Any) -> bool:
    pairs = isinstance(x, tuple) and len(x) > 0 and all(isinstance(pair, tuple) and len(pair) == 2 for pair in x)
    return pairs and all(_is_key(key) and BASIS.fits(part, {}) for key, part in x)


PARTS = declared.Kind("a tuple of (columns, basis)", lambda x, sizes: _are_parts(x))
NAMES = declared.Kind("texts, or null", lambda x, sizes: x is None or declared.texts.fits(x, sizes))


@dataclass(frozen=True, eq=False)
class PerColumn(Basis):
    """A basis for each column, or for each group of columns: φ(x) = (1, φ_a(x_a), φ_b(x_b), …).

    Columns are names of a data frame, or numbers. Names hold for arrays too once `fitted` has seen them. The constants
    of the parts are one: a part contributes its functions without it.

    Parameters
    ----------
    parts : mapping of a column name or number, or of a tuple of them, to a basis
        The bases; columns that no part names are not used.
    constant : bool
        Whether the constant function is one of them.
    columns : sequence of str, optional
        The names of all columns, in order; None: those of the data frame that `fitted` gets.

    Examples
    --------
    >>> from likely.basis import OneHot, Polynomial
    >>> basis = PerColumn({0: Polynomial(2), 1: OneHot(["a", "b"])})
    >>> basis.design([[3.0, "b"], [2.0, "a"]])
    array([[1., 3., 9., 1.],
           [1., 2., 4., 0.]])
    >>> basis.names(["age", "city"])
    ['1', 'age', 'age^2', 'city=b']
    """

    parts: Annotated[Any, PARTS]
    constant: bool = True
    columns: Annotated[Any, NAMES] = None

    def __post_init__(self) -> None:
        parts = tuple(self.parts.items()) if isinstance(self.parts, Mapping) else self.parts
        if not _are_parts(parts):
            expected = "parts must map column names or numbers, or tuples of them, to bases"
            raise DomainError(sentence("PerColumn", expected, repr(self.parts)))
        columns = None if self.columns is None else tuple(map(str, self.columns))
        self._set(parts=parts, columns=columns)

    @property
    def is_fitted(self) -> bool:
        """Whether nothing of the parts is left to be placed, and names of columns are known."""
        named = any(isinstance(key, str) for key in chain(*map(_keys, self.parts)))
        return all(part.is_fitted for _, part in self.parts) and (self.columns is not None or not named)

    def placed_by(self, X: Any, weight: Any = None, columns: Sequence[str] | None = None) -> Self:
        """The basis with all parts placed by their columns."""
        known, parts = self._known(X, columns), []
        for key, part in self.parts:
            own, names = taken(X, _keys((key, part)), "PerColumn", known)
            parts.append((key, part if part.is_fitted else part.placed_by(own, weight, names)))
        return self.replace(parts=tuple(parts), columns=None if known is None else tuple(known))

    def _evaluated(self, X: Any, columns: Sequence[str] | None, ones: int) -> Array:
        self._refuse_unplaced()
        known, found = self._known(X, columns), [np.ones((n_rows(X), ones))]
        for key, part in self.parts:
            own, names = taken(X, _keys((key, part)), "PerColumn", known)
            found.append(part.without_constant(own, names))
        return np.hstack(found)

    def _known(self, X: Any, columns: Sequence[str] | None) -> list[str] | None:
        known = columns or names_in(X) or self.columns
        return None if known is None else list(known)

    def _count(self, d: int) -> int:
        return sum(part.n_functions(len(_keys((key, part)))) - part.constant for key, part in self.parts)

    def _labels(self, columns: list[str]) -> list[str]:
        names: list[str] = []
        for key, part in self.parts:
            own = [columns[one] if isinstance(one, int) else one for one in _keys((key, part))]
            names += part.names(own)[part.constant :]
        return names

    def _refuse_unplaced(self) -> None:
        for _, part in self.parts:
            part._refuse_unplaced()


def _keys(pair: tuple[Key, Any]) -> tuple[str | int, ...]:
    """The columns of a part."""
    key = pair[0]
    return key if isinstance(key, tuple) else (key,)
