"""Column summaries: type and reason, missing values, levels or range."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import polars as pl

from likely.data.column_types import MEASUREMENTS

SHOWN_LEVELS = 4


@dataclass(frozen=True)
class Column:
    """One column of a table: `levels` of binary, category and constant, `range` (min, mean, max) of numbers."""

    name: str
    kind: str
    reason: str
    n_missing: int
    distinct: int
    levels: tuple[str, ...] = ()
    range: tuple[float, float, float] | None = None

    @property
    def is_used(self) -> bool:
        """Whether the column is used as a feature."""
        return self.kind in MEASUREMENTS

    def as_schema(self) -> dict[str, Any]:
        """The part that a model file stores."""
        with_levels = {"levels": list(self.levels)} if self.kind in ("binary", "category") else {}
        return {"kind": self.kind, **with_levels}

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        plain = asdict(self) | {"used": self.is_used, "levels": list(self.levels)}
        return plain | {"range": None if self.range is None else list(self.range)}


class ColumnSummary(NamedTuple):
    """Sorted levels, or the range of numbers."""

    distinct: int
    levels: tuple[str, ...]
    range: tuple[float, float, float] | None


def described(values: pl.Series, kind: str, reason: str) -> Column:
    """A column with the summary of its values."""
    about = summary(values) if kind in MEASUREMENTS else ColumnSummary(values.drop_nulls().n_unique(), (), None)
    return Column(values.name, kind, reason, values.null_count(), *about)


def summary(values: pl.Series) -> ColumnSummary:
    """The summary of numeric or string values."""
    present = values.drop_nulls()
    distinct = present.n_unique()
    if not values.dtype.is_numeric():
        return ColumnSummary(distinct, in_order(present.unique().cast(pl.String).to_list()), None)
    if not len(present):
        return ColumnSummary(0, (), None)
    numbers = present.cast(pl.Float64).to_numpy()
    low, high = float(numbers.min()), float(numbers.max())
    room = max(-low, high) < sys.float_info.max / len(numbers)  # for the sum
    mean = numbers.mean() if room else (numbers / len(numbers)).sum()
    return ColumnSummary(distinct, (), (low, float(mean), high))


def in_order(levels: Sequence[str]) -> tuple[str, ...]:
    """Sorted levels: numerically if all are numbers, else alphabetically.

    >>> in_order(["10", "9"]), in_order(["b", "a"])
    (('9', '10'), ('a', 'b'))
    """
    try:
        return tuple(sorted(levels, key=float))
    except ValueError:
        return tuple(sorted(levels))


def description_lines(
    n: int, columns: Sequence[Column], roles: Mapping[str, str], target: str, unlabeled: int
) -> Iterator[str]:
    """Text description of a table: size, roles and `target` in words, features, and excluded columns."""
    width = len(columns) + len(roles)
    yield f"{n:,} row{'s' * (n != 1)}, {width} column{'s' * (width != 1)}"
    for role, name in roles.items():
        yield f"{role}: {name}" + (f" ({target})" if role == "target" else "")
    if unlabeled:
        yield f"{unlabeled:,} rows without a label are excluded"
    used = [column for column in columns if column.is_used]
    width = max((len(column.name) for column in used), default=0)
    yield from (f"  {column.name:<{width}}  {column.kind:<8}  {_values(column)}" for column in used)
    aside = [column for column in columns if not column.is_used]
    if aside:
        yield "excluded:"
    yield from (f"  {column.name}  {column.kind}: {column.reason}" for column in aside)


def classes_in_words(classes: Mapping[Any, int]) -> str:
    """Number of rows of the first ten classes."""
    shown = [f"{label}: {count:,}" for label, count in list(classes.items())[:10]]
    return ", ".join(shown) + (f", … {len(classes)} classes" if len(classes) > 10 else "")


def _values(column: Column) -> str:
    if column.range is not None:
        low, mean, high = column.range
        summary_text = f"{low:.6g} … {high:.6g}, mean {mean:.6g}"
    else:
        more = f", … {len(column.levels)} levels" if len(column.levels) > SHOWN_LEVELS else ""
        summary_text = ", ".join(column.levels[:SHOWN_LEVELS]) + more
    return summary_text + (f"; {column.n_missing:,} missing" if column.n_missing else "")
