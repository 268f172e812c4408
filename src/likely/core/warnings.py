"""Warnings said once: an iteration that meets the same hazard at every step tells of it one time.

Python's own `catch_warnings` changes the filters of the whole process, and two threads that do so leave them changed
for good. So what the library has to say goes to a listener of its own thread, and only the outermost one tells
the world. Whom it concerns is whoever called the library, however deep inside the hazard was met: the warning points
to that line.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from likely.core.errors import FitWarning, LikelyError

_listener: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("listener", default=None)

# Packages of which a caller is not the one to be told: we ourselves, and what calls us back.
INSIDE = {__name__.partition(".")[0], "numpy", "scipy", "contextlib", "functools", "concurrent", "threading"}


def tell(text: str, category: type[Warning] = FitWarning) -> None:
    """Warn at the line that called the library, wherever it stands; inside `said_once` it is kept for the end."""
    heard = _listener.get()
    if heard is None:
        warnings.warn(text, category, stacklevel=_frames_to_the_caller() + 1)
    else:
        heard.append((text, category))


def _frames_to_the_caller() -> int:
    """How many frames above `tell` the first one stands that is not ours; 1 where all are, as in a thread."""
    frame, away = sys._getframe(1).f_back, 1
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INSIDE:
            return away
        frame, away = frame.f_back, away + 1
    return 1


@contextmanager
def said_once(reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Inside, what is told is collected; at the end each distinct note is passed on, reworded; not where that is ""."""
    with _listening() as heard:
        yield
    for text, category in dict.fromkeys(heard):
        if other := reworded(text):
            tell(other, category)


@contextmanager
def speaking_as(whose: str, *inner: str) -> Iterator[None]:
    """Inside, notes and errors that begin with one of the names `inner` begin with `whose`: the one that was called."""
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
    """Inside, what is told is forgotten: it has been, or will be, said of the whole."""
    with _listening():
        yield


@contextmanager
def _listening() -> Iterator[list[tuple[str, type[Warning]]]]:
    heard: list[tuple[str, type[Warning]]] = []
    before = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(before)
