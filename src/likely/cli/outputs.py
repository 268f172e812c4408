"""Checks that outputs of a command overwrite neither inputs nor each other."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from likely.core.errors import DataError, LikelyError, ModelFileError, sentence
from likely.io.atomic_write import check_writable, is_stream

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
    """Identity of a file: its path, and its inode if it exists."""
    yield os.path.realpath(path)
    with suppress(OSError):
        there = os.stat(path)
        yield there.st_dev, there.st_ino
