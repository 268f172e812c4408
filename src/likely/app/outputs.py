"""Files appear whole or not at all, never over what is read, and whether they can is asked before the work is done."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from likely.errors import DataError, LikelyError, ModelFileError, sentence
from likely.io.container import Refusal
from likely.io.whole_files import REMEDIES, is_stream, whole_file

STREAM = "-"  # standard input or output: no file


def check_outputs(
    outputs: Mapping[str, str | None], inputs: Iterable[str | None], models: tuple[str, ...] = ()
) -> None:
    """Every output (flag → file) can be written, is no input, and no other output; `models` are flags of model files.

    Asked before anything is read. Inputs may be patterns; links count as what they lead to.
    """
    asked = {flag: path for flag, path in outputs.items() if path is not None and path != STREAM}
    taken = {key: path for path in _files(inputs) for key in _keys(path)}
    kept = {flag: path for flag, path in asked.items() if not is_stream(path)}  # nothing is lost in a device or a FIFO
    for flag, path in kept.items():
        read = next((taken[key] for key in _keys(path) if key in taken), None)
        if read is not None:
            whose, known = f"{flag} {path}", "that file" if read == path else f"that file, as {read},"
            remedy = f"name another file with {flag}"
            raise DataError(sentence(whose, f"{known} is read and would be overwritten", remedy=remedy))
    _refuse_twins(kept)
    for flag, path in asked.items():
        check_writable(path, ModelFileError if flag in models else LikelyError)


def _refuse_twins(outputs: Mapping[str, str]) -> None:
    """No two outputs go to one file: the last would replace the others."""
    seen: dict[object, str] = {}
    for flag, path in outputs.items():
        for key in _keys(path):
            if seen.setdefault(key, flag) != flag:
                expected = "each needs a file of its own"
                raise DataError(sentence(f"{seen[key]} and {flag}", expected, f"{path} for both", "rename one"))


def _files(inputs: Iterable[str | None]) -> Iterator[str]:
    """The files that inputs name, patterns written out."""
    for name in inputs:
        if name is not None and name != STREAM:
            yield from [name] if os.path.exists(name) else glob.glob(name, recursive=True) or [name]


def _keys(path: str) -> Iterator[object]:
    """By what a file is known: where it lies, and, where it exists, what lies there under whatever name."""
    yield os.path.realpath(path)
    with suppress(OSError):
        there = os.stat(path)
        yield there.st_dev, there.st_ino


def check_writable(path: str, kind: type[LikelyError] = LikelyError) -> None:
    """A file must be writable there; said before hours of work rather than after."""
    target = Path(os.path.realpath(path))
    folder = target.parent
    if is_stream(path):
        if kind is ModelFileError:
            expected, remedy = "a model needs a file, or the name of a new one", "name a file"
            raise kind(sentence(path, expected, "a device or a pipe", remedy))
        if os.access(path, os.W_OK):
            return
        raise kind(sentence(path, "the file cannot be written", "no permission", "choose another"))
    if target.is_dir():
        raise kind(sentence(path, "this must be a file, or the name of a new one", "a folder", "name a file in it"))
    if not folder.is_dir():
        raise kind(sentence(path, "the file cannot be written", f"no folder {folder}", "make the folder first"))
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise kind(sentence(path, "the file cannot be written", "no permission", "choose another folder"))


def write_text(path: str, text: str) -> None:
    """Write a text, whole or not at all."""
    with written_whole(path) as stream:
        stream.write(text)


@contextmanager
def written_whole(path: str) -> Iterator[IO[str]]:
    """A stream whose text becomes the file at the end; on any error, no file and nothing beside it."""
    with bytes_written_whole(path) as raw:
        yield cast(IO[str], codecs.getwriter("utf-8")(raw))  # it has what of a text stream is used: write, flush


@contextmanager
def bytes_written_whole(path: str) -> Iterator[BinaryIO]:
    """The same with bytes. They go into a device or a FIFO as they come, and a file is replaced at the end."""
    check_writable(path)
    try:
        with whole_file(path, streams=True) as raw:
            yield raw
    except BrokenPipeError:  # whoever read the FIFO has enough
        raise
    except OSError as error:
        raise cannot_be_written(path, error) from error
    except Refusal as refusal:
        raise LikelyError(sentence(path, *refusal.args)) from refusal


def cannot_be_written(path: str | None, error: OSError) -> LikelyError:
    """The system's complaint about a file, or about standard output, as a sentence that names it."""
    whose, remedy = path or "standard output", REMEDIES.get(error.errno or 0, "")
    return LikelyError(sentence(whose, "the file cannot be written", error.strerror or error, remedy))
