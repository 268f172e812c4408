"""Fits side by side: threads that see the caller's scikit-learn settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sklearn import config_context, get_config

from likely.core.engine import cores, ordered_map

A = TypeVar("A")
B = TypeVar("B")


def in_threads(f: Callable[[A], B], items: Iterable[A], n_jobs: int | None = None) -> list[B]:
    """f of each item, in order; None or −1: as many threads as there are cores, −2: one less, and so on."""
    settings: dict[str, Any] = get_config()

    def inside(item: A) -> B:
        with config_context(**settings):  # scikit-learn keeps its settings a thread
            return f(item)

    return list(ordered_map(inside, items, workers(n_jobs)))


def workers(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means.

    >>> workers(3)
    3
    """
    if n_jobs is None or n_jobs == 0:
        return cores()
    return n_jobs if n_jobs > 0 else max(cores() + 1 + n_jobs, 1)
