"""Reading of tables in batches, for files larger than memory."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from likely.core.errors import DataError, unread

if TYPE_CHECKING:
    import polars as pl

ROWS = 100_000  # of a batch, at most
PIECE = 8 << 20  # bytes that are read at once
RECORD = 1 << 20  # bytes of a row, at most
STDIN = "standard input"


def batches(files: tuple[str, ...], format: str | None = None, rows: int = ROWS) -> Iterator[tuple[int, pl.DataFrame]]:
    """The tables of files (or "-") in order, at most so many rows at a time, each with the rows before it in its file.

    CSV, TSV and JSON lines are cut between records, Parquet by rows; what cannot be cut is read whole. Each batch is
    as `read` gives it: cells of text formats are strings.
    """
    from likely.data.read_table import matching

    for file in files:
        for path in ["-"] if file == "-" else matching(file):
            before = 0
            for frame in _frames(path, format):
                for part in frame.iter_slices(rows):
                    yield before, part
                    before += part.height


@contextmanager
def counted_from(before: int) -> Iterator[None]:
    """Errors that name a row or line of a batch name that of the file."""
    try:
        yield
    except DataError as error:
        if not before:
            raise
        text = re.sub(r"\b(row|line) (\d+)", lambda m: f"{m[1]} {int(m[2]) + before}", str(error))
        raise type(error)(text) from error


def _frames(path: Path | str, format: str | None) -> Iterator[pl.DataFrame]:
    from likely.data.read_table import _format_by_ending, read_table

    if path == "-":
        yield from _of_stream(sys.stdin.buffer, format, STDIN)
        return
    kind, packed = format or _format_by_ending(Path(path)), Path(path).suffix[1:].lower()
    if kind == "parquet":
        yield from _of_parquet(Path(path))
    elif kind == "json" or packed == "zst":
        yield read_table(path, format=format)
    else:
        with _opened(Path(path), packed == "gz") as stream:
            yield from _of_stream(stream, kind, str(path))


@contextmanager
def _opened(path: Path, packed: bool) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(path) if packed else open(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    except (OSError, EOFError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DataError(unread(str(path), error)) from error


def _of_parquet(path: Path) -> Iterator[pl.DataFrame]:
    import polars as pl

    from likely.data.read_table import read_table

    try:
        scan, height = pl.scan_parquet(path, glob=False), pl.scan_parquet(path, glob=False).select(pl.len()).collect()
    except (OSError, pl.exceptions.PolarsError):
        yield read_table(path, format="parquet")  # which says what is wrong
        return
    if not height.item():
        yield read_table(path, format="parquet")
    for start in range(0, height.item(), ROWS):
        yield scan.slice(start, ROWS).collect()


def _of_stream(stream: IO[bytes], format: str | None, whose: str) -> Iterator[pl.DataFrame]:
    """Frames of a stream of text records; the header of the first piece is prepended to the others."""
    from likely.data.read_table import READERS, _format_of

    pieces = _pieces(stream)
    first = next(pieces, b"")
    format = format or _format_of(first)
    if format in ("json", "parquet"):
        yield READERS[format](first + b"".join(pieces), whose)
    elif format == "jsonl":
        yield READERS[format](first, whose)
        yield from _others(pieces, lambda piece: READERS["jsonl"](piece, whose))
    else:
        yield from _delimited(first, pieces, format, whose)


def _delimited(first: bytes, pieces: Iterator[bytes], format: str, whose: str) -> Iterator[pl.DataFrame]:
    from likely.data.csv_reader import lines_of, read_delimited, sniffed

    first = first.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    head = lines_of(first, whose, 100) if first else []
    separator = "\t" if format == "tsv" else sniffed(head) if any(head) else None
    yield read_delimited(first, whose, separator)
    header = first[: _end_of_record(first)]
    yield from _others(pieces, lambda piece: read_delimited(header + piece, whose, separator))


def _others(pieces: Iterator[bytes], reader: Any) -> Iterator[pl.DataFrame]:
    """Frames of the later pieces; one of blank lines alone has no rows, and is left out."""
    for piece in pieces:
        if piece.strip():
            yield reader(piece)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Pieces that end where a record does: at a line's end outside of quotes."""
    left = b""
    while more := stream.read(PIECE):
        left += more
        cut = _last_end(left)
        if cut:
            yield left[:cut]
            left = left[cut:]
    if left:
        yield left


def _last_end(text: bytes) -> int:
    """Where the last whole record ends, at a line's end behind an even number of quotes; 0 where none does.

    A record is not longer than RECORD: where that says otherwise, a stray quote has been counted, and the last line's
    end is taken.

    >>> _last_end(b'a,"b\\nc"\\nd,"e\\n')
    8
    """
    import numpy as np

    cells = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(cells == ord("\n"))
    outside = ends[np.cumsum(cells == ord('"'), dtype=np.int32)[ends] % 2 == 0]
    last = int(outside[-1]) + 1 if len(outside) else 0
    return int(ends[-1]) + 1 if len(ends) and len(text) - last > RECORD else last


def _end_of_record(text: bytes) -> int:
    """Where the first record ends."""
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)
