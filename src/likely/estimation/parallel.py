"""Parallel fits in threads that inherit the caller's scikit-learn configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from functools import cache
from typing import Any, TypeVar

from likely.core.engine import cores, one_blas_thread, ordered_map

A = TypeVar("A")
B = TypeVar("B")


def in_threads(f: Callable[[A], B], items: Iterable[A], n_jobs: int | None = None) -> list[B]:
    """f of each item, in order; n_jobs None or −1: one thread per core, −2: one less, and so on."""
    from sklearn import config_context, get_config

    settings: dict[str, Any] = get_config()
    items, many = list(items), workers(n_jobs)
    if min(many, len(items)) < 2:
        return [f(item) for item in items]

    def inside(task: tuple[Context, A]) -> B:
        context, item = task
        # scikit-learn's configuration and OpenMP's limits are per thread: two thread teams would wait for each other
        with config_context(**settings), _pools().limit(limits=1, user_api="openmp"):
            return context.run(f, item)  # so that the caller's warning collector receives warnings of the threads

    with one_blas_thread():
        return list(ordered_map(inside, [(copy_context(), item) for item in items], many))


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def workers(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` means.

    >>> workers(3)
    3
    """
    if n_jobs is None or n_jobs == 0:
        return cores()
    return n_jobs if n_jobs > 0 else max(cores() + 1 + n_jobs, 1)
