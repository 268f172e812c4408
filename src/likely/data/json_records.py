"""JSON and JSON lines: one object per row, one key per column."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from likely.core.errors import DataError, sentence
from likely.core.warnings import warn
from likely.data.csv_reader import Source, lines_of, whole_lines
from likely.data.json_parsing import MOST_LEVELS, not_json, parsed

Record = dict[str, Any]
LITERAL = r"^(-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|[\[{].*)$"  # non-string JSON values


def read_json_lines(source: Source, whose: str) -> pl.DataFrame:
    """One JSON object per line; blank lines are skipped, absent keys are missing values.

    >>> read_json_lines(b'{"a": 1}\\n{"a": 2, "b": "x"}\\n', "example").rows()
    [(1, None), (2, 'x')]
    """
    frame = _regular(source)
    if frame is None:
        frame = _frame(list(_each_line(source, whose)))
    return _with_rows(frame, whose)


def read_json(source: Source, whose: str) -> pl.DataFrame:
    """An array of objects."""
    try:
        records = parsed(_unpacked(source))
    except (OSError, ValueError) as error:
        raise DataError(sentence(whose, "the file must hold JSON", not_json(error))) from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        expected = "JSON must be an array of records, [{...}, {...}]"
        raise DataError(sentence(whose, expected, remedy="or write one record per line in a .jsonl file"))
    return _with_rows(_frame(records), whose)


def _regular(source: Source) -> pl.DataFrame | None:
    """The table read by Polars; None for NaN, Infinity, mixed types in a column, or invalid lines.

    Deeply nested lines are not passed to Polars: at 1,000 levels it takes half a minute, or crashes the process.
    """
    try:
        openings = whole_lines(source, None).str.count_matches(r"[\[{]").max()
        if isinstance(openings, int) and openings > MOST_LEVELS:
            return None
        frame = pl.read_ndjson(source, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):
        return None
    nothing = frame.width and frame.select(pl.all_horizontal(pl.all().is_null()).any()).item()
    return None if nothing or any(map(_may_be_mixed, frame.select(pl.col(pl.String)))) else frame


def _may_be_mixed(words: pl.Series) -> bool:
    """Whether some strings, but not all, may have been numbers, booleans or nested values: Polars converts them."""
    alike = words.drop_nulls().str.contains(LITERAL)
    return bool(alike.any() and not alike.all())


def _each_line(source: Source, whose: str) -> Iterator[Record]:
    for number, line in enumerate(lines_of(source, whose), start=1):
        if line.strip():
            yield _record(line, number, whose)


def _record(line: str, number: int, whose: str) -> Record:
    try:
        record = parsed(line)
    except ValueError as error:
        raise DataError(sentence(whose, f"line {number} must be JSON", not_json(error))) from error
    if not isinstance(record, dict):
        raise DataError(sentence(whose, f"line {number} must be a record {{...}}", line[:40]))
    return record


def _frame(records: list[Record]) -> pl.DataFrame:
    names = list(dict.fromkeys(name for record in records for name in record))
    return pl.DataFrame({name: _column(name, [record.get(name) for record in records]) for name in names})


def _column(name: str, values: list[Any]) -> pl.Series:
    """A column of JSON values: mixed strings and numbers become strings, as in a CSV file; nested values JSON."""
    kinds = {type(value): _kind(value) for value in values if value is not None}
    if {"nested values", "strings"} & set(kinds.values()):
        both_kinds = sorted(set(kinds.values()))
        if len(both_kinds) > 1:
            both = f"{', '.join(both_kinds[:-1])} and {both_kinds[-1]}"
            warn(sentence(f'column "{name}"', f"it mixes {both}: all are read as strings"))
        return pl.Series([_word(value) for value in values], dtype=pl.String)
    if all(isinstance(value, bool | None) for value in values):
        return pl.Series(values)
    return pl.Series(values, dtype=None if _all_integers(values) else pl.Float64, strict=False)


def _kind(value: Any) -> str:
    """The JSON type as text."""
    if isinstance(value, list | dict):
        return "nested values"
    return "strings" if isinstance(value, str) else "truth values" if isinstance(value, bool) else "numbers"


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) or value is None else json.dumps(value)


def _all_integers(values: list[Any]) -> bool:
    return all(value is None or (isinstance(value, int) and abs(value) < 2**63) for value in values)


def _unpacked(source: Source) -> bytes:
    raw = source.read_bytes() if isinstance(source, Path) else source
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def _with_rows(frame: pl.DataFrame, whose: str) -> pl.DataFrame:
    if not frame.height or not frame.width:
        raise DataError(sentence(whose, "rows are needed", "no record"))
    return frame
