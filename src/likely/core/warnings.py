"""Warnings: collected per thread, deduplicated, and attributed to the caller's line.

Python's `catch_warnings` changes the filters of the whole process, and two threads that do so can leave them changed
permanently. So warnings go to a collector of the thread, and only the outermost one issues them. The warning points to
the line of user code that called the library.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from likely.core.errors import FitWarning, LikelyError

_collector: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("listener", default=None)

# Packages whose frames are not user code: this library, and packages that call it back.
INTERNAL = {__name__.partition(".")[0], "numpy", "scipy", "contextlib", "functools", "concurrent", "threading"}


def tell(text: str, category: type[Warning] = FitWarning) -> None:
    """Issue a warning at the line of user code that called the library; inside `said_once` it is deferred."""
    collected = _collector.get()
    if collected is None:
        warnings.warn(text, category, stacklevel=_frames_to_the_caller() + 1)
    else:
        collected.append((text, category))


def _frames_to_the_caller() -> int:
    """Number of frames from `tell` up to the first one of user code; 1 if there is none, as in a thread."""
    frame, away = sys._getframe(1).f_back, 1
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INTERNAL:
            return away
        frame, away = frame.f_back, away + 1
    return 1


@contextmanager
def said_once(reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Context manager that collects warnings and issues each distinct one once at the end, reworded; "" drops it."""
    with _collecting() as collected:
        yield
    for text, category in dict.fromkeys(collected):
        if other := reworded(text):
            tell(other, category)


@contextmanager
def speaking_as(whose: str, *inner: str) -> Iterator[None]:
    """Context manager: messages that begin with one of the names `inner` begin with `whose`, the called object."""
    names = re.compile(rf"({'|'.join(map(re.escape, inner))})\b")

    def renamed(text: str) -> str:
        found = names.match(text)
        return text if found is None else whose + text[found.end() :]

    try:
        with said_once(reworded=renamed):
            yield
    except LikelyError as error:
        error.args = tuple(renamed(text) if isinstance(text, str) else text for text in error.args)
        raise


@contextmanager
def unheard() -> Iterator[None]:
    """Context manager that discards warnings, for code whose warnings are issued elsewhere."""
    with _collecting():
        yield


@contextmanager
def _collecting() -> Iterator[list[tuple[str, type[Warning]]]]:
    collected: list[tuple[str, type[Warning]]] = []
    before = _collector.set(collected)
    try:
        yield collected
    finally:
        _collector.reset(before)
