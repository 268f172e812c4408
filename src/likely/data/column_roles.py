"""Column roles: target, sample weight, group and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl
from numpy.typing import NDArray

from likely.core.arrays import Array, Mask
from likely.core.errors import DataError, by_caller, sentence
from likely.data.cells import at_row, shown
from likely.data.dates import instants
from likely.data.read_table import require


@dataclass(frozen=True)
class Roles:
    """Assignment of columns to roles; None for roles without a column."""

    target: str | None = None
    weight: str | None = None
    group: str | None = None
    time: str | None = None

    def named(self) -> dict[str, str]:
        """Role → column, for the roles that are given."""
        every = {one.name: getattr(self, one.name) for one in fields(self)}
        return {role: name for role, name in every.items() if name is not None}

    def check(self, names: Sequence[str]) -> None:
        """Raise an error unless every named column exists and has one role only."""
        taken: dict[str, str] = {}
        for role, name in self.named().items():
            require(name, names, by_caller(f"--{role}", role))
            if name in taken:
                raise DataError(sentence(by_caller(f"--{role}", role), f'column "{name}" is the {taken[name]} already'))
            taken[name] = role

    def others(self, frame: pl.DataFrame) -> list[pl.Series]:
        """The columns without a role."""
        return [column for column in frame if column.name not in self.named().values()]

    def complete(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """The column of a role, without missing values."""
        column = frame[name]
        refuse_missing_values(column, "every row needs a group")
        return column


def refuse_missing_values(column: pl.Series, needed: str) -> None:
    """Raise an error if a cell is missing."""
    if column.null_count():
        raise at_row(int(column.is_null().arg_max() or 0) + 1, column.name, f"{needed}, this one has none")


def weights(column: pl.Series, rows: Mask) -> Array:
    """Sample weights (n,) of the rows in use: finite, non-negative, not all zero.

    >>> import numpy as np
    >>> weights(pl.Series("w", ["1", "2.5", "0"]), np.array([True, True, False]))
    array([1. , 2.5])
    """
    values = column.cast(pl.Float64, strict=False)
    _refuse_text(column, values)
    refuse_missing_values(column, "every row needs a weight (0 leaves it out)")
    wrong = ~(values.is_finite() & (values >= 0)).fill_null(False)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        raise at_row(at + 1, column.name, f'a weight must be a finite number, not negative, got "{shown(column[at])}"')
    weight = values.to_numpy()[rows]
    if not weight.any():
        raise DataError(sentence(f'weight "{column.name}"', "some weight must be above zero", "zero for every row"))
    return weight


def _refuse_text(column: pl.Series, values: pl.Series) -> None:
    """Raise an error for a weight column without a single number."""
    cells = column.drop_nulls()
    if len(cells) and values.null_count() == len(column):
        got, remedy = f'text such as "{shown(cells[0])}"', "name a column of numbers"
        raise DataError(sentence(f'weight "{column.name}"', "weights are numbers", got, remedy))


def times(column: pl.Series, rows: Mask) -> NDArray[Any]:
    """Times of the rows in use (n,): dates as datetime64, else numbers."""
    return instants(column)[rows]
