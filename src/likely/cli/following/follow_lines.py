"""Lines of text as observations: cells by name, from CSV or JSON, checked against the columns of the model."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from likely.core.errors import DataError, sentence
from likely.data.json_parsing import not_json, parsed

SEPARATORS = (",", ";", "\t", "|")
MISSING = frozenset((  # those of data.cells, whose import would double the time until the first line
    "", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "?", "-", "NULL", "#N/A", "<NA>", "NaT",
))  # fmt: skip
INDEX = "Unnamed: 0"  # that of data.csv_reader: the name of a first column that has none


class BadLine(DataError):
    """A line that the model cannot use."""


class Positions(dict[str, Any]):
    """The cells of a JSON array: their names are their places."""


@dataclass(frozen=True)
class Layout:
    """How a line is split into named cells: by the separator of the header, or as JSON if there are no names."""

    names: tuple[str, ...] | None  # None: JSON, whose lines name their cells
    separator: str = ","

    def cells(self, text: str) -> dict[str, Any]:
        """The cells of one line."""
        return _of_json(text) if self.names is None else _of_fields(self.names, fields(text, self.separator))

    def is_blank(self, text: str) -> bool:
        """Whether a line holds nothing; in a table of one column that is a missing cell."""
        return not text.strip() and (self.names is None or len(self.names) > 1)


def layout_of(first: str, nameless: bool) -> tuple[Layout, bool]:
    """Layout from the first line, and whether it is a header rather than data.

    A table without a header is understood where the model has no names for its columns either.

    >>> layout_of("a;b", False)
    (Layout(names=('a', 'b'), separator=';'), True)
    >>> layout_of("1.5,2", True)
    (Layout(names=('0', '1'), separator=','), False)
    """
    if first.lstrip()[:1] in ("{", "["):
        return Layout(None), False
    separator = max(SEPARATORS, key=lambda mark: len(fields(first, mark)))
    names = [name.strip() for name in fields(first, separator)]
    if nameless and all(is_number(name) or not name for name in names):
        return Layout(tuple(map(str, range(len(names)))), separator), False
    if len(names) > 1 and not names[0]:
        names[0] = INDEX
    odd = next((name for name in names if any(ord(letter) < 32 or ord(letter) == 127 for letter in name)), None)
    if odd is not None:
        raise DataError(sentence("header", "a column name may not have control characters", ascii(odd), "rename it"))
    twice = [name for name in names if names.count(name) > 1]
    if twice or "" in names:
        got = f'"{twice[0]}" twice' if twice else "one without a name"
        raise DataError(sentence("header", "each column needs a name of its own", got, "rename it"))
    return Layout(tuple(names), separator), True


def fields(text: str, separator: str) -> list[str]:
    """The fields of a line; a quote must be closed in it."""
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=separator != "\t", strict=True), [""])
    except csv.Error as error:
        raise BadLine(sentence("fields", "quotes must be closed in the same line")) from error


def _of_fields(names: tuple[str, ...], cells: list[str]) -> dict[str, Any]:
    cells = cells or [""]
    if len(cells) != len(names):
        expected = f"there must be {len(names)} field{'s' * (len(names) != 1)} as the header has"
        raise BadLine(sentence("fields", expected, len(cells)))
    return dict(zip(names, cells, strict=True))


def _of_json(text: str) -> dict[str, Any]:
    try:
        found = parsed(text)
    except ValueError as error:
        raise BadLine(sentence("JSON", "each line must be one object", not_json(error))) from error
    if isinstance(found, list):
        return Positions({str(j): cell for j, cell in enumerate(found)})
    if not isinstance(found, dict):
        raise BadLine(sentence("JSON", "each line must be one object", f"{found!r:.40}"))
    return found


# ------------------------------------------------------------------------- columns


def refuse_absent(wanted: Iterable[str], layout: Layout, whose: str) -> None:
    """The columns of a header must be there; JSON may leave any out, which is then missing."""
    if layout.names is None:
        return
    absent = [name for name in wanted if name not in layout.names]
    if absent:
        from likely.data.read_table import did_you_mean

        known = did_you_mean(absent[0], list(layout.names))
        remedy = known if known.endswith("?") else f"{known}; --columns says which stand for the model's"
        raise DataError(sentence(whose, f'there must be a column "{absent[0]}"', remedy=remedy))


def refuse_strangers(cells: Mapping[str, Any], columns: list[str], roles: Iterable[str], chosen: bool) -> None:
    """A JSON object may leave keys out, and have others; of one that has nothing but others, nothing is understood.

    An array must have a cell for each column, and, where nobody chose columns, no more. `roles` are further columns.
    """
    strangers = [name for name in cells if name not in (*columns, *roles)]
    expected_columns = ", ".join(f'"{name}"' for name in columns[:8])
    remedy = "--columns says which stand for the model's"
    if isinstance(cells, Positions):
        if (strangers and not chosen) or any(name not in cells for name in columns):
            raise BadLine(
                sentence("JSON", f"an array must hold the columns {expected_columns}", f"{len(cells)} cells", remedy)
            )
    elif strangers and not any(name in cells for name in columns):
        got = ", ".join(f'"{name}"' for name in strangers[:8])
        raise BadLine(sentence("JSON", f"an object must have some of the columns {expected_columns}", got, remedy))


# --------------------------------------------------------------------------- cells


def is_number(text: str) -> bool:
    """Whether a cell is a number in usual notation."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def number(cell: Any, column: str, missing: frozenset[str]) -> float:
    """A cell as a number; NaN where it is missing."""
    if isinstance(cell, str):
        cell = cell.strip()
        if cell in missing:
            return math.nan
        if is_number(cell):
            return float(cell)
    elif cell is None or isinstance(cell, int | float):
        value = math.nan if cell is None else float(cell)
        if not math.isinf(value):
            return value
    shown, remedy = str(cell), "leave what is missing empty"
    shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
    raise BadLine(sentence(f'column "{column}"', "a finite number is needed", f'"{shown}"', remedy))


def word(cell: Any, missing: frozenset[str]) -> str | None:
    """A cell as a level; None where it is missing.

    >>> word(3.0, frozenset()), word(" yes ", frozenset()), word("?", frozenset("?"))
    ('3', 'yes', None)
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    return None if text in missing else text


# --------------------------------------------------------------------------- lines


class Lines:
    """The lines of a stream, with their number and a digest of all so far."""

    def __init__(self, read: Callable[[], bytes], whose: str) -> None:
        self.read, self.whose, self.taken, self.digest = read, whose, 0, ""

    def __iter__(self) -> Iterator[str | None]:
        """Each line; None for one that is not UTF-8."""
        while raw := self.read():  # returns as soon as there is a line
            text = self._noted(raw)
            try:
                yield text.decode("utf-8")
            except UnicodeDecodeError:
                yield None

    def pass_over(self, lines: int, digest: str) -> None:
        """Skip the lines that were processed before; they must be the same."""
        for _ in range(lines):
            raw = self.read()
            if not raw:
                expected = f"the input must begin again with the first line: {lines} were taken already"
                raise DataError(
                    sentence(self.whose, expected, self.taken, "use --continue for a stream that continues")
                )
            self._noted(raw)
        if self.digest != digest:
            expected = "the input must begin with the lines that were taken already"
            raise DataError(sentence(self.whose, expected, "others", "use --continue for a stream that continues"))

    def _noted(self, raw: bytes) -> bytes:
        raw = raw.removeprefix(b"\xef\xbb\xbf") if not self.taken else raw
        text = raw.rstrip(b"\r\n")
        self.taken += 1
        self.digest = blake2b(self.digest.encode() + text, digest_size=8).hexdigest()
        return text

    def went_on(self, lines: int, digest: str) -> None:
        """Continue the line count of the checkpoint."""
        self.taken, self.digest = lines, digest
