"""Identity and polynomial basis functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, rows, whole_number
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Identity(Value):
    """The columns themselves, after a constant: φ(x) = (1, x₁, …, x_d).

    >>> Identity().design([[2.0, 3.0]])
    array([[1., 2., 3.]])
    """

    constant: bool = True

    def design(self, X: Any) -> Array:
        """Values of the basis functions (n, M)."""
        x = rows(X, None, "Identity")
        return np.concatenate([np.ones((len(x), 1)), x], axis=1) if self.constant else x

    def n_functions(self, d: int) -> int:
        """Number of basis functions M of d columns."""
        return d + self.constant

    def names(self, columns: list[str]) -> list[str]:
        """Names of the basis functions."""
        return ["1"] * self.constant + list(columns)

    def fitted(self, X: Any, weight: Any = None) -> Self:
        """The basis itself: nothing depends on the rows."""
        return self


@dataclass(frozen=True, eq=False)
class Polynomial(Value):
    """Powers of each column: φ(x) = (1, x, x², …, x^degree).

    >>> Polynomial(3).design([[2.0]])
    array([[1., 2., 4., 8.]])
    """

    degree: Annotated[int, declared.count]
    constant: bool = True

    def __post_init__(self) -> None:
        self._set(degree=whole_number(self.degree, "Polynomial", "degree"))

    def design(self, X: Any) -> Array:
        """Values of the basis functions (n, M)."""
        x = rows(X, None, "Polynomial")
        ones = np.ones((len(x), 1))
        powers = [x[:, [j]] ** k for j in range(x.shape[1]) for k in range(1, self.degree + 1)]
        return np.concatenate([*([ones] if self.constant else []), np.empty((len(x), 0)), *powers], axis=1)

    def n_functions(self, d: int) -> int:
        """Number of basis functions M of d columns."""
        return d * self.degree + self.constant

    def names(self, columns: list[str]) -> list[str]:
        """Names of the basis functions."""
        powers = [c if k == 1 else f"{c}^{k}" for c in columns for k in range(1, self.degree + 1)]
        return ["1"] * self.constant + powers

    def fitted(self, X: Any, weight: Any = None) -> Self:
        """The basis itself: nothing depends on the rows."""
        return self
