"""Checkpoints of `likely follow`: a file with all streams, and a journal of the changes since.

A line costs as much as its own stream, whatever the number of streams: the stream is appended to the journal. Once the
journal is several times as long as the file, the file is rewritten atomically and the journal starts again; so it does
at the end, which leaves one file. The journal starts with the counts of its file, and each entry has a digest: an old
journal, and an incomplete last entry, are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any

from likely.core.errors import DataError, ModelFileError, sentence

if TYPE_CHECKING:
    from likely.core.stream_checkpoint import FollowedLines, Following

JOURNAL = ".journal"
TOGETHER = 50  # streams in one description: a model file may have some 30,000 parts
ROOM = 1 << 20, 4  # the journal may take so many bytes, or so many times its file


def journal_of(path: str) -> str:
    """The journal lies beside the file itself, not beside a link to it."""
    return os.path.realpath(path) + JOURNAL


class CheckpointStore:
    """Progress of a feed in a file and its journal."""

    def __init__(self, path: str, asked: str) -> None:
        self.path, self.beside, self.asked = path, journal_of(path), asked
        self.journal: IO[bytes] | None = None
        self.room, self.behind = 0, False  # behind: the journal knows more than the file

    def load(self) -> FollowedLines | None:
        """What was kept of this feed, with all its streams; None where there is no file."""
        if not os.path.exists(self.path):  # a journal alone belongs to a file that somebody deleted
            return None
        kept = self._file()
        streams = dict(_streams(kept, self.path))
        for counts, changed in self._entries(kept):
            kept = counts
            streams.update(changed)
        return kept.replace(names=tuple(streams), streams=tuple(streams.values()), more=_numbers(b""))

    def note(self, now: FollowedLines, streams: Mapping[str, Following], changed: Iterable[str]) -> None:
        """Keep the counts of now, and the streams that changed; it is on the disk when this returns."""
        if self.journal is None or self.journal.tell() > self.room:
            self._anew(now, streams)
            return
        self._write(_entry(_packed(now, [(name, streams[name]) for name in changed])))
        self.behind = True

    def close(self, now: FollowedLines, streams: Mapping[str, Following], changed: bool) -> None:
        """The end: one file, and no journal."""
        if changed or self.behind:
            self._anew(now, streams)
        if self.journal is not None:
            self.journal.close()
            os.unlink(self.beside)

    # ----------------------------------------------------------------- the file

    def _file(self) -> FollowedLines:
        from likely.core.stream_checkpoint import FollowedLines
        from likely.io.model_files import load

        kept = load(self.path)
        if not isinstance(kept, FollowedLines):
            expected, remedy = "this must be the progress of a feed", "choose another file name"
            raise ModelFileError(sentence(self.path, expected, type(kept).__name__, remedy))
        if kept.asked != self.asked:
            expected = "the progress that was kept must be that of this model with these options"
            remedy = "use those that it began with, or name another file with --checkpoint"
            raise DataError(sentence(self.path, expected, "that of another", remedy))
        return kept

    def _anew(self, now: FollowedLines, streams: Mapping[str, Following]) -> None:
        from likely.io.model_files import save

        if self.journal is None:  # it is there before the file is: saving that makes both names last
            self.journal = self._opened()
        first, *rest = list(_some(now, list(streams.items()))) or [now]
        save(first.replace(more=_numbers(_joined(map(_bytes, rest)))), self.path)
        self.room, self.behind = max(ROOM[0], ROOM[1] * os.path.getsize(self.path)), False
        self.journal.seek(0)
        self.journal.truncate()
        self._write(_entry([_bytes(now)]))

    # -------------------------------------------------------------- the journal

    def _opened(self) -> IO[bytes]:
        try:
            return open(os.open(self.beside, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        except OSError as error:
            raise self._trouble(error) from error

    def _write(self, entry: bytes) -> None:
        assert self.journal is not None
        try:
            self.journal.write(entry)
            self.journal.flush()
            os.fsync(self.journal.fileno())
        except OSError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: OSError) -> ModelFileError:
        return ModelFileError(sentence(self.beside, "the file cannot be written", error.strerror or "a system error"))

    def _entries(self, kept: FollowedLines) -> Iterator[tuple[FollowedLines, dict[str, Following]]]:
        """What the journal has to add to its file."""
        if not os.path.exists(self.beside):
            return
        with open(self.beside, "rb") as stream:
            bodies = list(_bodies(stream.read()))
        if not bodies or not _same_counts(_read(bodies[0], self.beside)[0], kept):
            return
        for body in bodies[1:]:
            self.behind = True
            parts = _read(body, self.beside)
            yield parts[0], {name: stream for part in parts for name, stream in _pairs(part)}


def _same_counts(a: FollowedLines, b: FollowedLines) -> bool:
    return all(getattr(a, name) == getattr(b, name) for name in ("asked", "lines", "digest", "written", "output"))


# -------------------------------------------------------------------------- streams


def _streams(kept: FollowedLines, path: str) -> Iterator[tuple[str, Following]]:
    yield from _pairs(kept)
    for part in _read(kept.more.astype("<i8").tobytes(), path):
        yield from _pairs(part)


def _pairs(part: FollowedLines) -> Iterator[tuple[str, Following]]:
    return zip(part.names, part.streams, strict=True)


def _some(now: FollowedLines, streams: list[tuple[str, Following]]) -> Iterator[FollowedLines]:
    """The counts of now, with a few streams at a time."""
    for start in range(0, len(streams), TOGETHER):
        names, each = zip(*streams[start : start + TOGETHER], strict=True)
        yield now.replace(names=names, streams=each)


def _packed(now: FollowedLines, streams: list[tuple[str, Following]]) -> list[bytes]:
    return [_bytes(part) for part in _some(now, streams)] or [_bytes(now)]


def _bytes(part: FollowedLines) -> bytes:
    from likely.io.model_files import dumps

    return dumps(part)


# ---------------------------------------------------------------------------- bytes


def _joined(parts: Iterable[bytes]) -> bytes:
    """Parts end to end, each after its length; zeros fill the last eight bytes."""
    whole = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return whole + bytes(-len(whole) % 8)


def _apart(whole: bytes) -> Iterator[bytes]:
    """The parts again; a length of more than there is gives the rest.

    >>> list(_apart(_joined([b"one", b"other"])))
    [b'one', b'other']
    """
    at = 0
    while size := int.from_bytes(whole[at : at + 8], "little"):
        yield whole[at + 8 : at + 8 + size]
        at += 8 + size


def _read(whole: bytes, path: str) -> list[FollowedLines]:
    """Parse the parts as progress, with validation of untrusted files."""
    from likely.core.stream_checkpoint import FollowedLines
    from likely.io.model_files import loads

    parts = [loads(part) for part in _apart(whole)]
    wrong = next((part for part in parts if not isinstance(part, FollowedLines)), None)
    if wrong is not None:
        raise ModelFileError(sentence(path, "streams must be those of a feed", type(wrong).__name__))
    return parts


def _numbers(whole: bytes) -> Any:
    """Bytes as an array that a model file can hold."""
    import numpy as np

    return np.frombuffer(whole, dtype="<i8").astype(np.int64)


def _entry(parts: list[bytes]) -> bytes:
    body = _joined(parts)
    return len(body).to_bytes(8, "little") + blake2b(body, digest_size=8).digest() + body


def _bodies(journal: bytes) -> Iterator[bytes]:
    """The entries of a journal up to the first that is not whole."""
    at = 0
    while size := int.from_bytes(journal[at : at + 8], "little"):
        body = journal[at + 16 : at + 16 + size]
        if len(body) < size or blake2b(body, digest_size=8).digest() != journal[at + 8 : at + 16]:
            return
        yield body
        at += 16 + size
