"""Files appear whole or not at all, and whether they can is asked before the work is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from likely.errors import LikelyError, ModelFileError, sentence


def check_writable(path: str, kind: type[LikelyError] = LikelyError) -> None:
    """A file must be writable there; said before hours of work rather than after."""
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        raise kind(sentence(path, "this must be a file, or the name of a new one", "a folder", "name a file in it"))
    if not folder.is_dir():
        raise kind(sentence(path, "the file cannot be written", f"no folder {folder}", "make the folder first"))
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise kind(sentence(path, "the file cannot be written", "no permission", "choose another folder"))


def check_model_path(path: str) -> None:
    """The same for a model file."""
    check_writable(path, ModelFileError)


def whole_file(path: str, text: str) -> None:
    """Write a text, whole or not at all."""
    with written_whole(path) as stream:
        stream.write(text)


@contextmanager
def written_whole(path: str) -> Iterator[IO[str]]:
    """A stream whose text becomes the file at the end; on any error, no file and nothing beside it."""
    check_writable(path)
    target = os.path.realpath(path)
    beside = os.path.join(os.path.dirname(target), f".likely-{os.urandom(8).hex()}.tmp")
    try:
        with open(beside, "x", encoding="utf-8", newline="") as stream:
            yield stream
        os.replace(beside, target)
    except OSError as error:
        raise LikelyError(sentence(path, "the file cannot be written", error.strerror or error)) from error
    finally:
        with suppress(OSError):
            os.unlink(beside)
