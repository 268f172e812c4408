"""Conversion of a table to sequences: frames by id and time, labels and weights per sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, sentence
from likely.core.long_tables import in_order
from likely.core.ragged import Ragged
from likely.core.ragged_input import side_by_side
from likely.core.warnings import warn
from likely.data.cells import at_row, shown, tokens
from likely.data.column_roles import refuse_missing_values, weights
from likely.data.csv_reader import INDEX
from likely.data.dates import are_dates, instants
from likely.data.read_table import require
from likely.data.target_labels import Labels, labels
from likely.data.type_inference import typed_column


@dataclass(frozen=True)
class FrameRoles:
    """Roles of the columns of a table of frames; None for roles without a column."""

    id: str | None = None
    time: str | None = None
    label: str | None = None
    weight: str | None = None
    states: str | None = None

    def named(self) -> dict[str, str]:
        """Role → column, for the roles that are given."""
        every = {one.name: getattr(self, one.name) for one in fields(self)}
        return {role: name for role, name in every.items() if name is not None}

    def measured(self, frame: pl.DataFrame, columns: str | Sequence[str] | None) -> list[str]:
        """The columns of a frame: the requested ones, or all without a role; unnamed columns give a warning."""
        taken: dict[str, str] = {}
        for role, name in self.named().items():
            require(name, frame.columns, role)
            if name in taken:
                raise DataError(sentence(role, f'column "{name}" is the {taken[name]} already'))
            taken[name] = role
        asked = [columns] if isinstance(columns, str) else columns
        for name in asked or ():
            require(name, frame.columns, "columns")
        chosen = list(asked) if asked is not None else [name for name in frame.columns if name not in taken]
        if asked is None and INDEX in chosen:
            why = "the first column has no name, as an index that was saved with the table"
            warn(f"read_sequences: {why}: it is left out")
            chosen.remove(INDEX)
        if not chosen:
            raise DataError(sentence("columns", "frames need at least one column", "none without a role"))
        return chosen


@dataclass(frozen=True, eq=False)
class Cut:
    """Sequences from a table, in order of first appearance, with labels, weights, states and times."""

    x: Ragged
    labels: Labels | None
    weight: Array | None
    states: Ragged | None
    time: Ragged | None  # as in the table


def cut(
    frame: pl.DataFrame, whose: Index, roles: FrameRoles, measured: Sequence[str], missing: str | Iterable[str] = ()
) -> Cut:
    """The rows of a data frame as sequences: `whose` (T,) is the index of each row's sequence."""
    n = int(whose.max()) + 1
    order = in_order(whose, None if roles.time is None else instants(frame[roles.time]))
    lengths = np.bincount(whose, minlength=n)
    arrays = {name: _ordered(measurement(frame[name], missing), order) for name in measured}
    states = None if roles.states is None else _ordered(names_or_gaps(frame[roles.states]), order)
    return Cut(
        x=Ragged.of(side_by_side(arrays), lengths),
        labels=None if roles.label is None else _labels(frame[roles.label], whose, n),
        weight=None if roles.weight is None else _weights(frame[roles.weight], whose, n),
        states=None if states is None else Ragged.of(states, lengths),
        time=None if roles.time is None else Ragged.of(_ordered(_as_written(frame[roles.time]), order), lengths),
    )


def _as_written(column: pl.Series) -> NDArray[Any]:
    """Numbers as numbers, everything else as strings."""
    if column.dtype.is_numeric():
        return column.to_numpy().copy()
    return np.array(column.cast(pl.String).to_list(), dtype=object)


def measurement(column: pl.Series, missing: str | Iterable[str] = ()) -> NDArray[Any]:
    """A column as float64 with NaN, or as strings with None.

    >>> measurement(pl.Series("x", ["1", None, "2.5"])).tolist()
    [1.0, nan, 2.5]
    """
    column = typed_column(column, None, tokens(missing))
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
    if column.dtype.is_temporal() or are_dates(column):
        got, remedy = f"dates such as {shown(column.drop_nulls()[0])}", "name it as time, or leave it out of columns"
        raise DataError(sentence(f'column "{column.name}"', "frames hold numbers or strings", got, remedy))
    return np.array(column.to_list(), dtype=object)


def names_or_gaps(column: pl.Series) -> Labels:
    """Labels as from `labels`; missing ones are NaN among numbers and None among strings.

    >>> names_or_gaps(pl.Series(["1", None])).tolist(), names_or_gaps(pl.Series(["a", None])).tolist()
    ([1.0, nan], ['a', None])
    """
    if not column.null_count():
        return labels(column)
    present = labels(column.drop_nulls())
    if present.dtype.kind in "iu":
        out: Labels = np.full(len(column), np.nan)
    else:
        out = np.full(len(column), None, dtype=object)
    out[column.is_not_null().to_numpy()] = present
    return out


def _ordered(a: NDArray[Any], order: Index | None) -> NDArray[Any]:
    return a if order is None else a[order]


def _labels(column: pl.Series, whose: Index, n: int) -> Labels:
    """One label per sequence, from its rows; None if all are missing."""
    remedy = "name it states if it belongs to frames"
    return names_or_gaps(column[_constant(column, whose, n, remedy)])


def _weights(column: pl.Series, whose: Index, n: int) -> Array:
    """One weight per sequence, constant over its rows."""
    weight = weights(column, np.ones(len(column), dtype=np.bool_))
    refuse_missing_values(column, "every row needs the weight of its sequence")
    _constant(pl.Series(column.name, weight), whose, n, "a weight belongs to a whole sequence")
    first = np.empty(n)
    first[whose[::-1]] = weight[::-1]
    return first


def _constant(column: pl.Series, whose: Index, n: int, remedy: str) -> list[int]:
    """For each sequence the row that holds its value (any row, if all are missing); two values are an error by row."""
    present = column.is_not_null().to_numpy()
    codes = column.rank("dense").fill_null(0).to_numpy().astype(np.intp)
    telling = np.zeros(n, dtype=np.intp)
    telling[whose[::-1]] = np.arange(len(whose))[::-1]
    at = np.flatnonzero(present)
    telling[whose[at][::-1]] = at[::-1]
    odd = present & (codes != codes[telling[whose]])
    if odd.any():
        row = int(odd.argmax())
        values = f'"{shown(column[row])}" and "{shown(column[int(telling[whose[row]])])}"'
        raise at_row(row + 1, column.name, f"must be the same in all rows of a sequence, got {values}: {remedy}")
    return telling.tolist()
