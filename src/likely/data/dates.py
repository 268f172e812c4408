"""Parsing of dates and times; a column of dates is time, not a feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.data.cells import are_integers, as_numbers, at_row, shown

_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(\s?[AaPp][Mm])?"
_ZONE = r"(\s?(Z|UTC|[-+]\d{2}:?\d{2}))?"
_DAY, _MON = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
_CALENDAR = "|".join(
    (
        rf"\d{{4}}-{_MON}(-{_DAY})?",
        rf"\d{{4}}[/.]{_MON}[/.]{_DAY}",
        rf"{_DAY}[/.-]{_MON}[/.-](\d{{4}}|\d{{2}})",
        rf"{_MON}[/.-]{_DAY}[/.-](\d{{4}}|\d{{2}})",
        rf"{_DAY}[ -]{_MONTH},?[ -](\d{{4}}|\d{{2}})",
        rf"{_MONTH} {_DAY},? \d{{4}}",
    )
)
DATE = rf"^(({_CALENDAR})([T ]\s?{_CLOCK}{_ZONE})?|{_CLOCK})$"
PACKED_DATE = r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"  # 20241231

# Day before month: 31/12/2024 is the most common order, and cells that fail to parse are tried the other way.
_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%m/%d/%y", "%m.%d.%y", "%m-%d-%y"),
    *("%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y"),
)
_CLOCKS = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")


def are_dates(words: pl.Series) -> bool:
    """Whether nearly all present strings are dates or times of day: 2024-12-31, 31/12/2024, 12:30:00.

    >>> are_dates(pl.Series(["2024-12-31", "2025-01-01T12:30:00Z"])), are_dates(pl.Series(["1.5.2", "a"]))
    (True, False)
    """
    present = words.drop_nulls()
    return len(present) > 0 and int(present.str.contains(DATE).sum()) >= 0.95 * len(present)


def are_packed_dates(numbers: pl.Series) -> bool:
    """Whether integers are all dates such as 20241231."""
    present = numbers.drop_nulls()
    if len(present) < 3 or not present.is_between(1900_01_01, 2099_12_31).all():
        return False
    return bool(present.cast(pl.Int64).cast(pl.String).str.contains(PACKED_DATE).all())


def instants(column: pl.Series) -> NDArray[Any]:
    """Times of the rows (n,): datetime64 for dates, seconds for times of day, else the numbers themselves.

    >>> instants(pl.Series("day", ["31/12/2024", "01/02/2024"])).astype("datetime64[D]").tolist()[1].isoformat()
    '2024-02-01'
    """
    if column.null_count():
        raise at_row(int(column.is_null().arg_max() or 0) + 1, column.name, "every row needs a time, this one has none")
    if column.dtype == pl.String and are_dates(column):
        return _parsed(column)
    if column.dtype in (pl.Date, pl.Datetime):
        return _utc(column.cast(pl.Datetime("us") if column.dtype == pl.Date else column.dtype))
    if column.dtype in (pl.Time, pl.Duration):
        return column.to_physical().to_numpy().astype(np.float64)
    values = as_numbers(column, strict=True)
    assert values is not None  # strict either gives numbers or raises
    if are_integers(values) and are_packed_dates(values):
        return _parsed(values.cast(pl.Int64).cast(pl.String))
    return values.to_numpy().astype(np.float64)


def _parsed(words: pl.Series) -> NDArray[Any]:
    """Every cell parsed by the first format that fits the remaining ones; a cell that no format fits is an error."""
    if words.str.contains(rf"^{_CLOCK}$").all():
        return _seconds(words)
    plain = words.str.replace(r"^(\S+)T", "$1 ")
    zoned = plain.str.contains(rf" {_CLOCK}\s?(Z|UTC|[-+]\d{{2}}:?\d{{2}})$")
    if zoned.any():
        return _utc(_first_fit(plain.str.replace(r"\s?(Z|UTC)$", "+00:00"), _zoned_formats()))
    return _utc(_first_fit(plain, _formats()))


def _formats() -> list[str]:
    return ["%Y-%m", *_DAYS, *(f"{day} {clock}" for day in _DAYS for clock in _CLOCKS)]


def _zoned_formats() -> list[str]:
    return [f"{spelling}%#z" for spelling in _formats() if "%H" in spelling]


def _first_fit(words: pl.Series, spellings: list[str]) -> pl.Series:
    """One format for the whole column if there is one, else the formats in turn for the remaining cells."""
    best: pl.Series | None = None
    for spelling in spellings:
        if (tried := _try(words, spelling)) is None:
            continue
        if not tried.null_count():
            return tried
        best = tried if best is None else best.zip_with(best.is_not_null(), tried)
    left = best.is_null() if best is not None else words.is_not_null()
    if best is None or left.any():
        at = int(left.arg_max() or 0)
        raise at_row(
            at + 1, words.name, f'"{shown(words[at])}" is not a date that can be read. Write dates as 2024-12-31'
        )
    return best


def _try(words: pl.Series, spelling: str) -> pl.Series | None:
    if spelling == "%Y-%m":
        words, spelling = words.str.replace(r"^(\d{4}-\d{1,2})$", "$1-01"), "%Y-%m-%d"
    try:
        tried = words.str.to_datetime(spelling, strict=False, time_unit="us")
    except pl.exceptions.PolarsError:
        return None
    tried = tried.zip_with(
        tried.dt.year() >= 1000, tried.clear(len(tried))
    )  # %Y would parse the 31 of 31.12.24 as a year
    return None if tried.null_count() == len(tried) else tried


def _utc(moments: pl.Series) -> NDArray[Any]:
    if getattr(moments.dtype, "time_zone", None):
        moments = moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return moments.cast(pl.Datetime("us")).to_numpy().astype("datetime64[us]")


def _seconds(words: pl.Series) -> NDArray[Any]:
    spelled = ("1970-01-01 " + words).str.to_uppercase().str.replace(r"\s?([AP]M)$", " $1")
    moments = _first_fit(spelled.alias(words.name), [f"%Y-%m-%d {clock}" for clock in _CLOCKS])
    return moments.to_physical().to_numpy().astype(np.float64) / 1e6
