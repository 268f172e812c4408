"""Warnings said once: an iteration that meets the same hazard at every step tells of it one time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def said_once(stacklevel: int = 2, reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Inside, warnings are collected; at the end each distinct one is passed on, reworded, to the caller's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text, category in dict.fromkeys((str(w.message), w.category) for w in caught):
        warnings.warn(reworded(text), category, stacklevel=stacklevel + 2)
