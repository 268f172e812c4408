"""Warnings said once: an iteration that meets the same hazard at every step tells of it one time.

Python's own `catch_warnings` changes the filters of the whole process, and two threads that do so leave them changed
for good. So what the library has to say goes to a listener of its own thread, and only the outermost one tells
the world.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from likely.errors import FitWarning

_listener: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("listener", default=None)


def tell(text: str, category: type[Warning] = FitWarning, stacklevel: int = 2) -> None:
    """Warn; inside `said_once` it is kept for the end."""
    heard = _listener.get()
    if heard is None:
        warnings.warn(text, category, stacklevel=stacklevel + 1)
    else:
        heard.append((text, category))


@contextmanager
def said_once(stacklevel: int = 2, reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Inside, what is told is collected; at the end each distinct note is passed on, reworded."""
    with _listening() as heard:
        yield
    for text, category in dict.fromkeys(heard):
        tell(reworded(text), category, stacklevel=stacklevel + 2)


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
