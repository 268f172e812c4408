"""Delimited text (CSV, TSV): detected separator, required header, cells as strings."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from likely.core.errors import DataError, sentence, unread

Source = Path | bytes

SEPARATORS = (",", ";", "\t", "|")
UNSPLIT = "\x1f"  # the ASCII unit separator: not used in practice, so lines stay whole
SNIFFED_LINES = 100
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all control characters but tab and line ends
INDEX = "Unnamed: 0"  # pandas' name for a first column without a name: a saved index
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def read_delimited(source: Source, whose: str, separator: str | None = None) -> pl.DataFrame:
    """All cells as strings, null where empty; blank lines are skipped.

    Polars reads regular files. Files that it rejects, or may have misread, go through the standard library's reader
    line by line, which is slow and exact, and names the invalid line.

    >>> read_delimited(b"a;b\\n1;2\\n", "example").rows()
    [('1', '2')]
    """
    head = list(filter(str.strip, lines_of(source, whose, SNIFFED_LINES)))
    if not head:
        raise DataError(sentence(whose, "a table with a header is needed", "an empty file"))
    separator = separator or sniffed(head)
    names = header(head, separator, whose)
    rows = _regular(source, head, separator, len(names))
    if rows is None:
        rows = read_by_line(lines_of(source, whose), separator, len(names), whose)
    if not rows.height:
        raise DataError(sentence(whose, "rows are needed", "a header and nothing below it"))
    rows.columns = names
    return rows


def lines_of(source: Source, whose: str, n: int | None = None) -> list[str]:
    """The first n lines (or all), decompressed; bytes that are not UTF-8 are an error with the line number."""
    try:
        lines = whole_lines(source, n)
    except pl.exceptions.NoDataError:
        return []
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(unread(whose, error)) from error
    broken = lines.str.contains("\ufffd", literal=True)
    if broken.any():
        expected = f"text must be UTF-8, line {int(broken.arg_max() or 0) + 1} is not"
        raise DataError(sentence(whose, expected, remedy="save the file as UTF-8"))
    return lines.to_list()


def why_unread(error: BaseException) -> str:
    """The system's message for a file that cannot be read, or our own for unreadable content."""
    return getattr(error, "strerror", None) or "a damaged file, or one in another format"


def first_line(error: BaseException) -> str:
    """The first line of a foreign error message, without its advice on foreign options."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def sniffed(lines: list[str]) -> str:
    """The separator under which the header has the most fields and the lines agree with it.

    >>> sniffed(["name;size", '"a,b";1,5'])
    ';'
    """
    best = max(SEPARATORS, key=lambda separator: _agreement(lines, separator))
    return best if _agreement(lines, best)[1] > 1 else UNSPLIT


def header(lines: list[str], separator: str, whose: str) -> list[str]:
    """The column names in the first line: unique, not empty (except an index) and not numbers."""
    try:
        names = [name.strip() for name in next(_fields(lines, separator))]
    except csv.Error as error:  # a carriage return alone, as old Macintosh files have
        remedy = "save it with newlines at the ends of lines"
        raise DataError(sentence(whose, "the header must be a line", "a carriage return in it", remedy)) from error
    if looks_like_data(names):
        numbers = [name for name in names if NUMBER.fullmatch(name)]
        got = f"numbers in it ({', '.join(numbers[:3])}{' …' * (len(numbers) > 3)})"
        remedy = "give it a header" if 2 * len(numbers) > len(names) else "give every column a name"
        raise DataError(sentence(whose, "the first line must be a header", got, remedy))
    if len(names) > 1 and not names[0]:
        names[0] = INDEX
    refuse_names(names, whose)
    return names


def looks_like_data(names: list[str]) -> bool:
    """Whether a header is a row of data; 0, 1, 2, … and years are column names."""
    numbers = [name for name in names if NUMBER.fullmatch(name)]
    if any(not name.isdigit() for name in numbers) or len(set(numbers)) < len(numbers):
        return True
    counting = all(int(b) - int(a) == 1 for a, b in pairwise(numbers))
    return len(numbers) == len(names) and not (counting and len(names) > 1)


def refuse_names(names: list[str], whose: str) -> None:
    """Raise an error unless column names are unique non-empty text without control characters."""
    empty = [str(i + 1) for i, name in enumerate(names) if not name]
    if empty:
        expected, got = "every column needs a name", f"none for column {', '.join(empty)}"
        raise DataError(sentence(whose, expected, got, "name it"))
    odd = [ascii(name) for name in names if UNPRINTABLE.search(name)]
    if odd:
        raise DataError(
            sentence(whose, "a column name may not have control characters", ", ".join(odd[:3]), "rename it")
        )
    patterns = [f'"{name}"' for name in names if name.startswith("^") and name.endswith("$")]
    if patterns:
        raise DataError(sentence(whose, "a column name may not have the form ^…$", ", ".join(patterns), "rename it"))
    twice = [f'"{name}"' for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(sentence(whose, "column names must be unique", f"{', '.join(twice)} twice", "rename one"))


def read_by_line(lines: Iterable[str], separator: str, width: int, whose: str) -> pl.DataFrame:
    """The table read by the standard library; a line with more or fewer fields is an error."""
    rows = list(_records(lines, separator, width, whose))
    cells = zip(*rows, strict=True) if rows else [()] * width
    data = {str(i): pl.Series(values, dtype=pl.String) for i, values in enumerate(cells)}
    return pl.DataFrame(data)


def _records(lines: Iterable[str], separator: str, width: int, whose: str) -> Iterator[list[str]]:
    """The fields of each line below the header."""
    limit = csv.field_size_limit(2**31 - 1)  # free text may be longer than the standard library's 128 kB
    reader = _fields((line + "\n" for line in lines), separator)
    begun = 0  # lines before this record
    try:
        while _is_blank(next(reader)):
            pass
        begun = reader.line_num
        for fields in reader:
            if width == 1 or not _is_blank(fields):
                yield _of_width(fields or [""], width, begun + 1, separator, whose)
            begun = reader.line_num
    except csv.Error as error:
        remedy = "close every quote, and remove characters that are not text"
        raise DataError(sentence(whose, f"line {begun + 1} cannot be read", remedy=remedy)) from error
    finally:
        csv.field_size_limit(limit)


def _is_blank(fields: list[str]) -> bool:
    return not fields or (len(fields) == 1 and not fields[0].strip())


def _of_width(fields: list[str], width: int, line: int, separator: str, whose: str) -> list[str]:
    if len(fields) == width:
        return fields
    shown = {"\t": "tab", UNSPLIT: "comma"}.get(separator, separator)
    expected = f"line {line} must have {width} field{'s' * (width != 1)} as the header has"
    remedy = f'put quotes around a cell that holds the separator "{shown}", and close every quote'
    raise DataError(sentence(whose, expected, len(fields), remedy))


def whole_lines(source: Source, n: int | None) -> pl.Series:
    """The first n lines (or all), unchanged, decompressed."""
    frame = pl.read_csv(
        source, has_header=False, separator=UNSPLIT, quote_char=None, infer_schema=False, n_rows=n,
        encoding="utf8-lossy", truncate_ragged_lines=True, glob=False,
    )  # fmt: skip
    return frame.to_series().fill_null("")


def _fields(lines: Iterable[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t")


def _agreement(lines: list[str], separator: str) -> tuple[float, int]:
    """The share of lines with as many fields as the header, if it has several; and the number of fields."""
    try:
        counts = [len(fields) for fields in _fields(lines, separator) if fields]
    except csv.Error:
        return 0.0, 0
    if not counts or max(counts) == 1:
        return 0.0, 1
    if counts[0] == 1:  # a title above the table, or a column of decimal commas
        decimal = all(DECIMAL_COMMA.fullmatch(line.strip()) for line in lines[1:] if line)
        return (0.0, 1) if decimal or len(set(counts[1:])) > 1 else (0.0, max(counts))
    return sum(count == counts[0] for count in counts) / len(counts), counts[0]


def _regular(source: Source, head: list[str], separator: str, width: int) -> pl.DataFrame | None:
    """The table read by Polars if the file is regular; None otherwise."""
    if any(re.search(rf'(^|{re.escape(separator)})[ ]+"', line) for line in head):
        return None  # a blank before a quote: Polars would read the quote as part of the cell
    try:
        rows = pl.read_csv(source, separator=separator, infer_schema=False, glob=False)
    except (OSError, pl.exceptions.PolarsError):
        return None
    named = rows.columns[0].strip() or head[0].startswith((separator, f'""{separator}'))  # or a blank line is above
    if rows.width != width or not named or _holds_quotes(rows):
        return None
    if width == 1 or not rows.to_series(-1).null_count():
        return rows
    return _without_blank_lines(rows, whole_lines(source, None), separator)


def _holds_quotes(rows: pl.DataFrame) -> bool:
    """Whether a cell holds a quote: it was doubled, or stood inside a cell and may have misled Polars."""
    return any(rows.select(pl.all().str.contains('"', literal=True).any()).row(0))


def _without_blank_lines(rows: pl.DataFrame, lines: pl.Series, separator: str) -> pl.DataFrame | None:
    """The table without blank lines; None if a line may be short, since Polars fills short lines with nulls."""
    first = int((lines != "").arg_max() or 0)
    lines = lines.slice(first + 1)
    bare = lines.str.replace_all(r'"[^"]*"', "")
    blank = lines.str.strip_chars(" ") == ""
    short = (bare.str.count_matches(separator, literal=True) != rows.width - 1) & ~blank
    if len(lines) != rows.height or short.any() or bare.str.contains('"', literal=True).any():
        return None
    return rows.filter(~blank)
