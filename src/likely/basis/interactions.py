"""Interactions: products of the functions of different columns, or of different bases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Annotated, Any, Self

import numpy as np

from likely.basis.basis import BASIS, Basis
from likely.basis.input_columns import checked_numbers, names_in
from likely.core import declared
from likely.core.arrays import Array, check_integer
from likely.core.errors import DomainError, sentence


@dataclass(frozen=True, eq=False)
class Interactions(Basis):
    """Products of functions of different columns, or of different bases: x_i x_j, or φ_a(x) ψ_b(x).

    The functions themselves (main effects) come first, then products of two, up to products of `order`. Constants of
    the parts are left out: with a reference level in each, products of two `OneHot` are those of a two-way table.

    Parameters
    ----------
    parts : sequence of bases, optional
        Bases of the same rows, usually a `PerColumn` each; None: the columns themselves.
    order : int
        Largest number of factors, at least 2.
    main_effects : bool
        Whether the functions themselves are there too.
    constant : bool
        Whether the constant function is one of them.

    Examples
    --------
    >>> from likely.basis import OneHot, PerColumn, Polynomial
    >>> Interactions().design([[2.0, 3.0]])
    array([[1., 2., 3., 6.]])
    >>> Interactions([PerColumn({0: Polynomial(2)}), PerColumn({1: OneHot(["a", "b"])})]).names(["x", "g"])
    ['1', 'x', 'x^2', 'g=b', 'x g=b', 'x^2 g=b']
    """

    parts: Annotated[Any, declared.maybe(declared.items(BASIS))] = None
    order: Annotated[int, declared.positive] = 2
    main_effects: bool = True
    constant: bool = True

    def __post_init__(self) -> None:
        listed = self.parts is None or isinstance(self.parts, list | tuple)
        parts = None if self.parts is None else tuple(self.parts) if listed else ()
        if parts is not None and (len(parts) < 2 or not all(BASIS.fits(part, {}) for part in parts)):
            raise DomainError(sentence("Interactions", "parts must be two or more bases", repr(self.parts)))
        self._set(parts=parts, order=check_integer(self.order, "Interactions", "order", 2))

    @property
    def is_fitted(self) -> bool:
        """Whether nothing of the parts is left to be placed."""
        return self.parts is None or all(part.is_fitted for part in self.parts)

    def placed_by(self, X: Any, weight: Any = None, columns: Sequence[str] | None = None) -> Self:
        """The basis with all parts placed by the rows."""
        return self.replace(
            parts=tuple(part if part.is_fitted else part.placed_by(X, weight, columns) for part in self.parts)
        )

    def _evaluated(self, X: Any, columns: Sequence[str] | None, ones: int) -> Array:
        self._refuse_unplaced()
        if self.parts is None:
            blocks = np.hsplit(x := checked_numbers(X, "Interactions", columns or names_in(X)), x.shape[1])
        else:
            blocks = [part.without_constant(X, columns) for part in self.parts]
        found = [_product([blocks[i] for i in which]) for which in self._factors(len(blocks))]
        return np.hstack([np.ones((len(blocks[0]), ones)), *found])

    def _factors(self, parts: int) -> Iterator[tuple[int, ...]]:
        """The parts whose functions are multiplied: each alone, each two, …"""
        for k in range(1 if self.main_effects else 2, min(self.order, parts) + 1):
            yield from combinations(range(parts), k)

    def _count(self, d: int) -> int:
        sizes = [1] * d if self.parts is None else [part.n_functions(d) - part.constant for part in self.parts]
        return sum(prod(sizes[i] for i in which) for which in self._factors(len(sizes)))

    def _labels(self, columns: list[str]) -> list[str]:
        if self.parts is None:
            own = [[name] for name in columns]
        else:
            own = [part.names(columns)[part.constant :] for part in self.parts]
        return [" ".join(names) for which in self._factors(len(own)) for names in product(*(own[i] for i in which))]


def _product(blocks: list[Array]) -> Array:
    """All products of one function of each block, the last block fastest."""
    out = blocks[0]
    for block in blocks[1:]:
        out = (out[:, :, None] * block[:, None, :]).reshape(len(out), -1)
    return out
