"""Output of `likely follow`: one line per observation, flushed; a file can be truncated to the checkpoint."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from likely.core.errors import DataError, sentence
from likely.io.atomic_write import cannot_be_written

if TYPE_CHECKING:
    from likely.core.progress import FollowedLines


class Output:
    """Lines to a file or to standard output, each flushed as it is written; the bytes of a file are counted."""

    def __init__(self, stream: IO[bytes], path: str | None = None) -> None:
        self.stream, self.path, self.written, self.sum = stream, path, 0, blake2b(digest_size=8)

    @classmethod
    def to(cls, path: str | None, kept: FollowedLines | None = None) -> Output:
        """Open a file, truncated to the checkpoint; None is standard output."""
        if kept is not None:
            _refuse_other_way(path, kept)
        if path is None:
            return cls(sys.stdout.buffer)
        output = cls(_opened(path, kept), path)
        if kept is not None:
            output._go_on(kept)
        return output

    def _go_on(self, kept: FollowedLines) -> None:
        """Find what was written before; nothing is cut from a file that does not begin with it."""
        while rest := self.stream.read(min(kept.written - self.written, 1 << 20)):
            self._count(rest)
        if self.written < kept.written:
            raise _output_missing_error(self.path, kept, self.written)
        if self.digest != kept.output:
            expected = f"the first {kept.written} bytes must be those that were written before"
            remedy = "name the file that it began with, or begin anew with another file for --checkpoint"
            raise DataError(sentence(self.path or "", expected, "others", remedy))
        self.stream.truncate(kept.written)
        self.stream.seek(kept.written)

    @property
    def digest(self) -> str:
        """Digest of the bytes written to a file; None for standard output."""
        return "" if self.path is None else self.sum.hexdigest()

    def _count(self, raw: bytes) -> None:
        self.written += len(raw)
        self.sum.update(raw)

    def write(self, text: str) -> None:
        """Write a line, whole, now."""
        raw = text.encode("utf-8", "surrogateescape")
        with _naming(self.path):
            self.stream.write(raw)
            self.stream.flush()
        if self.path is not None:
            self._count(raw)

    def sync(self) -> None:
        """Flush to disk before the checkpoint is written."""
        if self.path is not None:
            with _naming(self.path):
                os.fsync(self.stream.fileno())

    def close(self) -> None:
        """Close the file."""
        if self.path is not None:
            with _naming(self.path):
                self.stream.close()


@contextmanager
def _naming(path: str | None) -> Iterator[None]:
    """System errors become messages that name the file; a closed pipe is raised as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_be_written(path, error) from error


def _opened(path: str, kept: FollowedLines | None) -> IO[bytes]:
    try:
        return open(path, "wb" if kept is None else "r+b")
    except OSError as error:
        if kept is not None and isinstance(error, FileNotFoundError):
            raise _output_missing_error(path, kept, "no file") from error
        raise cannot_be_written(path, error) from error


def _output_missing_error(path: str | None, kept: FollowedLines, there: object) -> DataError:
    expected = f"the {kept.written} bytes that were written before must be there"
    remedy = "bring the file back, or begin anew with another file for --checkpoint"
    return DataError(sentence(path or "", expected, there, remedy))


def _refuse_other_way(path: str | None, kept: FollowedLines) -> None:
    """Raise if a resumed output goes elsewhere than before."""
    if path is None and kept.output:
        expected, remedy = "the progress that was kept goes with a file", "name the file that it began with"
        raise DataError(sentence("-o", expected, "none", remedy))
    if path is not None and not kept.output:
        expected = "the progress that was kept goes with standard output"
        remedy = "leave -o out (>> FILE adds to a file), or begin anew with another file for --checkpoint"
        raise DataError(sentence("-o", expected, path, remedy))


def csv_line(cells: list[Any]) -> str:
    """Cells as a line of CSV: numbers with all their digits, nothing where there is none.

    >>> csv_line(["a,b", 0.1, None])
    '"a,b",0.1,\\n'
    """
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return line.getvalue()


def json_line(named: dict[str, Any]) -> str:
    """The same as an object; JSON has no infinity, so that is a text.

    >>> json_line({"surprisal": math.inf, "alarm": True})
    '{"surprisal": "inf", "alarm": true}\\n'
    """
    cells = {name: str(c) if isinstance(c, float) and not math.isfinite(c) else c for name, c in named.items()}
    return json.dumps(cells, ensure_ascii=False) + "\n"
