"""Readers of symbol sequences: text lines, FASTA records, and .npy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.core.errors import DataError, sentence
from likely.data.cells import clean_numbers, tidy, tokens
from likely.data.csv_reader import lines_of, why_unread


class SymbolSequences(NamedTuple):
    """The sequences of one file: their names, their concatenated frames, and their lengths."""

    names: list[str]
    frames: NDArray[Any]
    lengths: list[int]


def read_array(path: Path) -> SymbolSequences:
    """An .npy file with one sequence (T,) or (T, D)."""
    try:
        a = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(sentence(str(path), "the file must be a plain .npy array", why_unread(error))) from error
    if not isinstance(a, np.ndarray) or a.ndim not in (1, 2) or a.dtype.kind not in "biufUS":
        got = f"{a.dtype} {a.shape}" if isinstance(a, np.ndarray) else "an archive of several"
        raise DataError(sentence(str(path), "a file must hold one sequence, numbers or words (T,) or (T, D)", got))
    return SymbolSequences([""], a, [len(a)])


def read_fasta(path: Path) -> SymbolSequences:
    """A FASTA file: one sequence of letters per record; its name is the first word after ">"."""
    names: list[str] = []
    letters: list[list[str]] = []
    for number, line in enumerate(lines_of(path, str(path)), start=1):
        text = line.strip()
        if text.startswith(">"):
            names.append((text[1:].split() or [str(len(names) + 1)])[0])
            letters.append([])
        elif text and not text.startswith(";"):
            if not names:
                raise DataError(sentence(str(path), f'line {number} must begin a record with ">"', repr(text[:20])))
            letters[-1].append("".join(text.split()))
    whole = ["".join(parts) for parts in letters]
    _refuse_empty(path, names, whole)
    return SymbolSequences(names, np.array(list("".join(whole))), [len(one) for one in whole])


def _refuse_empty(path: Path, names: list[str], whole: list[str]) -> None:
    if not names:
        raise DataError(sentence(str(path), 'records that begin with ">" are needed', "none"))
    empty = [name for name, text in zip(names, whole, strict=True) if not text]
    if empty:
        raise DataError(sentence(str(path), "every record needs letters", f'none in "{empty[0]}"', "leave it out"))


def read_symbols(path: Path) -> SymbolSequences:
    """A text file: one sequence per line, symbols separated by blanks; blank lines are skipped."""
    lines = [(number, line.split()) for number, line in _numbered(path)]
    if not lines:
        raise DataError(sentence(str(path), "lines of symbols are needed", "none"))
    symbols = np.array([symbol for _, line in lines for symbol in line], dtype=object)
    return SymbolSequences([str(number) for number, _ in lines], symbols, [len(line) for _, line in lines])


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    lines = lines_of(path, str(path))
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def as_cells(symbols: NDArray[Any], missing: str | Iterable[str] = ()) -> NDArray[Any]:
    """Symbols as numbers if all are numbers or missing (NA, ?, …), else strings, missing where `missing` says so.

    >>> as_cells(np.array(["1", "?", "2"], dtype=object)).tolist()
    [1.0, nan, 2.0]
    >>> as_cells(np.array(["who", "?", "-"], dtype=object), "-").tolist()
    ['who', '?', None]
    """
    frame = pl.DataFrame({"symbol": symbols.tolist()})
    column = clean_numbers(tidy(frame, missing)["symbol"])
    if not column.dtype.is_numeric():
        own = set(tokens(missing))
        words = [None if word in own else word for word in symbols.tolist()]
        return np.array(words, dtype=object if None in words else str)
    if column.null_count():
        return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
    return column.to_numpy().copy()
