"""What `likely follow` writes: a line for each observation, at once; a file can be cut back to where it was."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from io import StringIO
from typing import IO, Any

from likely.errors import DataError, LikelyError, sentence


class Output:
    """Lines to a file or to standard output, each flushed as it is written; `written` counts the bytes of a file."""

    def __init__(self, stream: IO[bytes], path: str | None = None, written: int = 0) -> None:
        self.stream, self.path, self.written = stream, path, written

    @classmethod
    def to(cls, path: str | None, written: int = 0) -> Output:
        """Open a file and cut it back to its first `written` bytes; None is standard output."""
        if path is None:
            return cls(sys.stdout.buffer)
        try:
            stream = open(path, "r+b" if written else "wb")
        except OSError as error:
            raise LikelyError(sentence(path, "the file cannot be written", error.strerror or error)) from error
        there = os.fstat(stream.fileno()).st_size
        if there < written:
            expected = f"the {written} bytes that were written before must be there"
            remedy = "bring the file back, or delete the one that --keep names and begin anew"
            raise DataError(sentence(path, expected, there, remedy))
        stream.truncate(written)
        stream.seek(written)
        return cls(stream, path, written)

    def write(self, text: str) -> None:
        """Write a line, whole, now."""
        raw = text.encode("utf-8", "surrogateescape")
        self.stream.write(raw)
        self.stream.flush()
        self.written += len(raw) if self.path is not None else 0

    def sync(self) -> None:
        """Force what was written to the disk, before progress says that it is there."""
        if self.path is not None:
            os.fsync(self.stream.fileno())

    def close(self) -> None:
        """Let go of a file."""
        if self.path is not None:
            self.stream.close()


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

    >>> json_line({"surprise": math.inf, "alarm": True})
    '{"surprise": "inf", "alarm": true}\\n'
    """
    told = {name: str(c) if isinstance(c, float) and not math.isfinite(c) else c for name, c in named.items()}
    return json.dumps(told, ensure_ascii=False) + "\n"
