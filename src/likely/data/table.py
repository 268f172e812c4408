"""Table: named columns with inferred types, features and roles; columns that cannot be features are excluded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.core.arrays import Array
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, by_caller, enumerated, sentence
from likely.data.cells import as_kind, as_numbers, shown, tokens
from likely.data.column_roles import Roles, times, weights
from likely.data.column_summary import Column, classes_in_words, described, description_lines
from likely.data.column_types import MEASUREMENTS, is_constant, judged, rounded_away
from likely.data.read_table import called, did_you_mean
from likely.data.table_fingerprint import fingerprint
from likely.data.target_labels import Labels, labels, real_targets, refuse_unlearnable, task_of
from likely.data.type_inference import as_frame, checked_wishes, in_storage_type, typed_column

Schema = dict[str, dict[str, Any]]  # column → {"kind": ..., "levels": [...]}


@dataclass(frozen=True, eq=False)
class Table:
    """Features with their types, and labels, weights, groups and times where given.

    Make it by `Table.of`.

    Parameters
    ----------
    columns : tuple of Column
        Every candidate feature, used or excluded, with the reason.
    frame : polars.DataFrame
        The columns in use, Float64 for real, Int64 for count, String for binary and category.
    roles : Roles
        Names of the columns with a role.
    y : ndarray (n,), optional
        Labels.
    weight : ndarray (n,), optional
        Weights.
    group : ndarray (n,), optional
        Groups.
    time : ndarray (n,), optional
        Times.
    row_numbers : ndarray of int (n,)
        Row numbers in the source, from 1; rows without a label are excluded.
    unlabeled : int, default 0
        Number of rows without a label.
    task : {"classification", "regression"}
        Whether `y` are labels or numbers.
    why_task : str
        The reason, where the task was inferred.

    Examples
    --------
    >>> columns = {"size": [1.5, 2.0, 4.5], "color": ["red", "blue", None], "class": ["a", "b", "a"]}
    >>> t = Table.of(columns, target="class")
    >>> [(c.name, c.kind) for c in t.used], t.y.tolist()
    ([('size', 'real'), ('color', 'binary')], ['a', 'b', 'a'])
    """

    columns: tuple[Column, ...]
    frame: pl.DataFrame
    roles: Roles = field(default_factory=Roles)
    y: Labels | None = None
    weight: Array | None = None
    group: Labels | None = None
    time: NDArray[Any] | None = None
    row_numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    unlabeled: int = 0
    task: str = "classification"  # or "regression": y are numbers
    why_task: str = ""  # the reason, where it was inferred

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        time: str | None = None,
        kinds: Mapping[str, str] | None = None,
        missing: str | Iterable[str] = (),
        ignore: Sequence[str] = (),
        sql: str | None = None,
        format: str | None = None,
        whose: str = "",
        task: str | None = "classification",
    ) -> Table:
        """The table in files, a data frame or a dict of columns, with inferred column types.

        Parameters
        ----------
        source : path, data frame or dict
            The data: files (as in `read_table`), a data frame or a dict of columns.
        target : str, optional
            Name of the column of labels.
        weight, group, time : str, optional
            Names of the columns with these roles.
        kinds : dict, optional
            Types of columns given by the user: "real", "count", "binary", "category", "ignore".
        missing : str or iterable of str, optional
            Further markers of missing values.
        ignore : sequence of str, optional
            Columns to leave out.
        sql : str, optional
            A query, as in `read_table`.
        format : str, optional
            File format, as in `read_table`.
        whose : str, optional
            Name with which messages begin; by default the files.
        task : {"classification", "regression"}, optional
            What the target is: labels, or numbers. None: more than 20 different numbers with fractions, or with fewer
            than five rows each, more than 200, or nearly all different are a regression target.
        """
        whose = whose or called(source)
        frame = as_frame(source, missing, sql, format, whose)
        roles = Roles(target, weight, group, time)
        roles.check(frame.columns)
        wishes = checked_wishes(kinds, frame.columns) | checked_wishes(
            dict.fromkeys(ignore, "ignore"), frame.columns, by_caller("--ignore", "ignore")
        )
        why, named = "", f'target "{target}"'
        if target is not None and task is None:
            task, why = task_of(frame[target], wishes.get(target))
        if target is not None and task == "regression":
            frame = frame.with_columns(real_targets(frame[target], named))
        elif target is not None:
            refuse_unlearnable(frame[target], named, many=wishes.get(target) == "category")
        kept = _labeled(frame, target)
        found = [_found(column, wishes.get(column.name), kept, missing) for column in roles.others(frame)]
        used = [values for column, values in found if column.is_used]
        columns = tuple(column for column, _ in found)
        if not used:
            excluded = "; ".join(f'"{column.name}" is excluded ({column.reason})' for column in columns)
            excluded = f"none: {excluded}" if excluded else "none"
            remedy = f"add one, or set its type with {as_kind('NAME', 'KIND')}"
            raise DataError(sentence(whose, "at least one column must be a measurement", excluded, remedy))
        return cls._with_roles(columns, pl.DataFrame(used), frame, roles, kept, task=task or "classification", why=why)

    @classmethod
    def like(
        cls,
        schema: Schema,
        source: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        time: str | None = None,
        missing: str | Iterable[str] = (),
        allow_missing: bool = False,
        classes: Sequence[Any] | None = None,
        sql: str | None = None,
        format: str | None = None,
        whose: str = "",
        task: str = "classification",
    ) -> Table:
        """New data for the schema of a fitted model: columns in any order, others ignored, types as in training.

        A level that did not occur in training is kept.

        Parameters
        ----------
        schema : Schema
            The schema of a model file.
        source : path, data frame or dict
            The data: files (as in `read_table`), a data frame or a dict of columns.
        target : str, optional
            Name of the column of labels; it may be absent.
        weight, group, time : str, optional
            Names of the columns with these roles.
        missing : str or iterable of str, optional
            Further markers of missing values.
        allow_missing : bool, default False
            A missing column is missing throughout; else it is an error.
        classes : sequence, optional
            Class labels, which determine the spelling of labels.
        sql : str, optional
            A query, as in `read_table`.
        format : str, optional
            File format, as in `read_table`.
        whose : str, optional
            Name with which messages begin.
        task : {"classification", "regression"}
            Whether the target has labels or numbers.

        Examples
        --------
        >>> schema = Table.of({"size": [1.5, 2.0, 4.5]}).schema()
        >>> Table.like(schema, {"color": ["red"], "size": ["7"]}).frame.rows()
        [(7.0,)]
        """
        _check_schema(schema)
        whose = whose or called(source)
        frame = as_frame(source, missing, sql, format, whose)
        frame = _with_columns_of(schema, frame, allow_missing, whose)
        roles = Roles(target if target in frame.columns else None, weight, group, time)
        roles.check(frame.columns)
        if roles.target is not None and task == "regression":
            frame = frame.with_columns(real_targets(frame[roles.target], f'target "{target}"', several=False))
        elif roles.target is not None and not frame[roles.target].count():
            raise DataError(sentence(f'target "{target}"', "labels are needed", "none: every cell is missing"))
        kept = _labeled(frame, roles.target)
        found = [_as_learned(frame[name], entry, kept, missing) for name, entry in schema.items()]
        columns, used = zip(*found, strict=True)
        return cls._with_roles(columns, pl.DataFrame(list(used)), frame, roles, kept, classes, task)

    @classmethod
    def _with_roles(
        cls,
        columns: tuple[Column, ...],
        used: pl.DataFrame,
        source: pl.DataFrame,
        roles: Roles,
        kept: pl.Series,
        classes: Sequence[Any] | None = None,
        task: str = "classification",
        why: str = "",
    ) -> Table:
        """The table of the labeled rows."""
        rows, y = kept.to_numpy(), None if roles.target is None else source[roles.target].filter(kept)
        return cls(
            columns=columns,
            frame=used,
            roles=roles,
            y=None if y is None else y.to_numpy().copy() if task == "regression" else labels(y, classes),
            weight=None if roles.weight is None else weights(source[roles.weight], rows),
            group=None if roles.group is None else labels(roles.complete(source, roles.group))[rows],
            time=None if roles.time is None else times(source[roles.time], rows),
            row_numbers=np.flatnonzero(rows) + 1,
            unlabeled=int((~rows).sum()),
            task=task,
            why_task=why,
        )

    # ---------------------------------------------------------------- contents

    def __len__(self) -> int:
        """Number of rows."""
        return self.frame.height

    @property
    def names(self) -> list[str]:
        """Names of all candidate features, in the order of the source."""
        return [column.name for column in self.columns]

    @property
    def used(self) -> tuple[Column, ...]:
        """Names of the columns used as features."""
        return tuple(column for column in self.columns if column.is_used)

    @property
    def excluded(self) -> dict[str, str]:
        """The excluded columns, and why."""
        return {column.name: f"{column.kind}: {column.reason}" for column in self.columns if not column.is_used}

    @property
    def class_counts(self) -> dict[Any, int]:
        """Number of rows per class, classes sorted; empty of real targets."""
        if self.y is None or self.task == "regression":
            return {}
        classes, counts = np.unique(self.y, return_counts=True)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of measurements and labels."""
        y = [] if self.y is None else [pl.Series("target", self.y)]
        return fingerprint(pl.DataFrame([*self.frame.iter_columns(), *(one.alias(f"\0{one.name}") for one in y)]))

    def rows(self) -> Columns:
        """The features as rows.

        Returns
        -------
        Columns
            Columns of float64 with NaN where missing, and object arrays of strings with None.
        """
        return Columns({column.name: _array(column) for column in self.frame})

    def schema(self) -> Schema:
        """What a model file stores of the columns: types, and the levels of binary and category.

        Returns
        -------
        Schema
            The schema.
        """
        return {column.name: column.as_schema() for column in self.used}

    # ------------------------------------------------------------------ description

    def describe(self) -> str:
        """Text description of the table.

        Returns
        -------
        str
            One line per column.
        """
        target = classes_in_words(self.class_counts)
        if self.task == "regression" and self.y is not None:
            why = f"; regression: {self.why_task}" if self.why_task else "; regression"
            target = f"{self.y.min():.6g} … {self.y.max():.6g}, mean {self.y.mean():.6g}{why}"
        return "\n".join(description_lines(len(self), self.columns, self.roles.named(), target, self.unlabeled))

    def as_dict(self) -> dict[str, Any]:
        """The description as plain values, for JSON.

        Returns
        -------
        dict
            Columns and roles.
        """
        return {
            "rows": len(self),
            "unlabeled": self.unlabeled,
            "roles": self.roles.named(),
            "classes": {str(label): count for label, count in self.class_counts.items()},
            "columns": [column.as_dict() for column in self.columns],
            "fingerprint": self.fingerprint,
        }


def _labeled(frame: pl.DataFrame, target: str | None) -> pl.Series:
    """The rows to keep: those with a label, if there is a target."""
    return frame[target].is_not_null() if target is not None else pl.repeat(True, frame.height, eager=True)


def _found(
    column: pl.Series, wish: str | None, kept: pl.Series, missing: str | Iterable[str]
) -> tuple[Column, pl.Series]:
    """The type of a column (from all rows, so that errors name rows of the source), and its values in the kept rows."""
    if wish == "ignore":
        return described(column.filter(kept), "ignore", "left out on request"), column
    values = typed_column(column, wish, tokens(missing))
    kind, reason = (wish, "as requested") if wish else judged(values, column)
    values = values.filter(kept)
    if not values.count():
        kind, reason = "empty", "no cell has a value"
    elif kind in MEASUREMENTS and not wish and is_constant(values):
        kind, reason = "constant", f"every value is {shown(values.drop_nulls()[0])}"
    if kind == "constant" and rounded_away(column, values):
        kind, reason = "identifier", "values differ only in digits beyond float precision"
    if kind in MEASUREMENTS:
        values = in_storage_type(values, kind, _levels(values, kind))
    return described(values, kind, reason), values


def _levels(values: pl.Series, kind: str) -> list[str]:
    return values.drop_nulls().unique().cast(pl.String).to_list() if kind == "binary" else []


def _as_learned(
    column: pl.Series, entry: Mapping[str, Any], kept: pl.Series, missing: str | Iterable[str]
) -> tuple[Column, pl.Series]:
    """A column of new data with the type of the training column."""
    kind = entry["kind"]
    if kind in ("real", "count"):  # 2.5 in a count column is checked by the model
        numbers = as_numbers(column, missing=tokens(missing), strict=True, learned=True)
        assert numbers is not None  # strict either gives numbers or raises
        column = numbers
    values = column.filter(kept)
    values = in_storage_type(values, kind, entry.get("levels", ()))
    return described(values, kind, "as learned"), values


def _check_schema(schema: Schema) -> None:
    if not schema or any(entry.get("kind") not in MEASUREMENTS for entry in schema.values()):
        raise DomainError(sentence("Table.like", f"a schema gives each column a kind of {MEASUREMENTS}", schema))


def _with_columns_of(schema: Schema, frame: pl.DataFrame, allow_missing: bool, whose: str) -> pl.DataFrame:
    """A frame with every column of a schema."""
    there = set(frame.columns)
    absent = [name for name in schema if name not in there]
    if absent and not allow_missing:
        needed = enumerated("column", [f'"{name}"' for name in absent])
        it = "it" if len(absent) == 1 else "them"
        taken = f"--allow-missing takes {it} as missing throughout"
        more = by_caller(taken, f"add {it}, with None where a value is not known")
        remedy = f"{did_you_mean(absent[0], frame.columns)}; {more}"
        raise DataError(sentence(whose, f"the model needs {needed}", remedy=remedy))
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in absent)


def _array(column: pl.Series) -> NDArray[Any]:
    if column.dtype == pl.String:
        return np.array(column.to_list(), dtype=object)
    return column.cast(pl.Float64).to_numpy().copy()  # missing values are NaN
