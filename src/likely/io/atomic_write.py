"""Atomic file writing: models, tables, reports and figures are written completely or not at all."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, BinaryIO, cast

from likely.core.errors import LikelyError, ModelFileError, sentence
from likely.io.container import Refusal

Path = str | os.PathLike[str]
REMEDIES = {
    errno.ENOSPC: "make room and save again",
    errno.EDQUOT: "make room and save again",
    errno.ENOENT: "check the path, and that the folder exists",
    errno.EACCES: "ask for permission, or choose another folder",
    errno.EPERM: "ask for permission, or choose another folder",
    errno.EROFS: "choose a folder that can be written",
}


def real(path: Path) -> str:
    """The path with symbolic links resolved, so that writing to a link replaces its target."""
    try:
        return os.path.realpath(os.fsdecode(path))
    except ValueError:
        raise Refusal("this must be the name of a file", "a null character in it") from None


def is_stream(path: Path) -> bool:
    """Whether the path is a device, a FIFO or a socket.

    >>> is_stream(os.devnull), is_stream(os.curdir), is_stream("no such file")
    (True, False, False)
    """
    there = _status(path)
    return there is not None and not stat.S_ISREG(there.st_mode) and not stat.S_ISDIR(there.st_mode)


def _status(path: Path) -> os.stat_result | None:
    """The file status of the path itself: the target of /dev/fd/63 may be a pipe that has no path."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


@contextmanager
def whole_file(path: Path, streams: bool = False) -> Iterator[BinaryIO]:
    """A binary stream that replaces the file at the end; on any error the old file is unchanged.

    A temporary file is written, synced to disk and renamed. A file that is replaced keeps its permissions.
    A device or a FIFO is never replaced: with `streams` the bytes are written into it, otherwise it is an error.
    """
    if streams and is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = real(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise Refusal("this must be a file, or the name of a new one", "a folder or a device")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    beside = os.path.join(os.path.dirname(target), f".likely-{os.urandom(8).hex()}.tmp")
    try:
        with open(beside, "xb") as stream:
            _keep_permissions(target, beside)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, target)
    except BaseException:  # an interrupt too: the old file stays, the temporary one is removed
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(os.path.dirname(target))


def _keep_permissions(target: str, beside: str) -> None:
    """Copy the mode and, where the system allows it, the label of the file to be replaced."""
    there, new = _status(target), _status(beside)
    if there is None or new is None:
        return
    if hasattr(os, "chown") and (there.st_uid, there.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.chown(beside, there.st_uid, there.st_gid)
    with suppress(OSError):
        os.chmod(beside, stat.S_IMODE(there.st_mode))


def _sync_folder(folder: str) -> None:
    """Sync the folder, so that the new name survives a power failure, where the system supports it."""
    if os.name == "nt":
        return
    with suppress(PermissionError):  # a folder may be writable but not readable
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise Refusal("the new file is in place, but a power cut could undo that", error.strerror) from error
        finally:
            os.close(handle)


def check_writable(path: str, kind: type[LikelyError] = LikelyError) -> None:
    """Raise an error unless a file can be written there, before a long computation."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if is_stream(path):
        if kind is ModelFileError:
            expected, remedy = "a model needs a file, or the name of a new one", "name a file"
            raise kind(sentence(path, expected, "a device or a pipe", remedy))
        if os.access(path, os.W_OK):
            return
        raise kind(sentence(path, "the file cannot be written", "no permission", "choose another"))
    if os.path.isdir(target):
        raise kind(sentence(path, "this must be a file, or the name of a new one", "a folder", "name a file in it"))
    if not os.path.isdir(folder):
        raise kind(sentence(path, "the file cannot be written", f"no folder {folder}", "make the folder first"))
    if not os.access(folder, os.W_OK) or (os.path.exists(target) and not os.access(target, os.W_OK)):
        raise kind(sentence(path, "the file cannot be written", "no permission", "choose another folder"))


def write_text(path: str, text: str) -> None:
    """Write a text atomically."""
    with written_whole(path) as stream:
        stream.write(text)


@contextmanager
def written_whole(path: str) -> Iterator[IO[str]]:
    """A text stream that replaces the file at the end; on any error no file is left."""
    with bytes_written_whole(path) as raw:
        yield cast(IO[str], codecs.getwriter("utf-8")(raw))  # with write and flush of a text stream


@contextmanager
def bytes_written_whole(path: str) -> Iterator[BinaryIO]:
    """The same with bytes. A device or FIFO is written directly, a file is replaced at the end."""
    check_writable(path)
    try:
        with whole_file(path, streams=True) as raw:
            yield raw
    except BrokenPipeError:  # the reader of the FIFO has closed it
        raise
    except OSError as error:
        raise cannot_be_written(path, error) from error
    except Refusal as refusal:
        raise LikelyError(sentence(path, *refusal.args)) from refusal


def cannot_be_written(path: str | None, error: OSError) -> LikelyError:
    """The system's error about a file, or standard output, as a message that names it."""
    whose, remedy = path or "standard output", REMEDIES.get(error.errno or 0, "")
    return LikelyError(sentence(whose, "the file cannot be written", error.strerror or "a system error", remedy))
