"""Writing a file whole or not at all: the one way in which models, tables, reports and figures reach the disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

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
    """The path with links followed, so that writing to a link replaces what it points to."""
    try:
        return os.path.realpath(os.fsdecode(path))
    except ValueError as error:
        raise Refusal("this must be the name of a file", error) from None


def is_stream(path: Path) -> bool:
    """Whether something other than a file or a folder lies there: a device, a FIFO, a socket.

    >>> is_stream(os.devnull), is_stream(os.curdir), is_stream("no such file")
    (True, False, False)
    """
    there = _status(path)
    return there is not None and not stat.S_ISREG(there.st_mode) and not stat.S_ISDIR(there.st_mode)


def _status(path: Path) -> os.stat_result | None:
    """What lies there, asked by its own name: the target of /dev/fd/63 may be a pipe that has no path."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


@contextmanager
def whole_file(path: Path, streams: bool = False) -> Iterator[BinaryIO]:
    """A binary stream whose bytes become the file at the end; on any error the old file stays as it was.

    Another file is written beside it, forced to the disk and renamed. A file that is replaced keeps its permissions.
    A device or a FIFO is never replaced: with `streams` the bytes are written into it, otherwise it is refused.
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
    except BaseException:  # an interrupt too: the old file stays, the half one goes
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(os.path.dirname(target))


def _keep_permissions(target: str, beside: str) -> None:
    """The new file gets the mode and, where the system allows it, the owner of the one that it will replace."""
    there, new = _status(target), _status(beside)
    if there is None or new is None:
        return
    if hasattr(os, "chown") and (there.st_uid, there.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.chown(beside, there.st_uid, there.st_gid)
    with suppress(OSError):
        os.chmod(beside, stat.S_IMODE(there.st_mode))


def _sync_folder(folder: str) -> None:
    """Make the new name survive a power cut; not every system lets one ask for that."""
    if os.name == "nt":
        return
    with suppress(PermissionError):  # a folder may be writable and yet not readable
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise Refusal("the new file is in place, but a power cut could undo that", error.strerror) from error
        finally:
            os.close(handle)
