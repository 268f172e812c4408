"""Engines: sums of statistics over blocks, serial or in threads, with bitwise equal results."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from operator import add
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import BadEntry, n_rows
from likely.core.blocks import BLOCKS, ROWS, Block, Blocks
from likely.core.errors import DataError, DomainError, sentence

S = TypeVar("S")
A = TypeVar("A")
B = TypeVar("B")


class Engine(Protocol):
    """Protocol of engines, which collect statistics of blocks and sum them in the order of the blocks.

    See Also
    --------
    Serial : One thread.
    Threads : Several threads.

    Examples
    --------
    >>> import likely as lk
    >>> hasattr(lk.core.Threads(), "total")
    True
    """

    def total(self, collect: Callable[[Block], S], blocks: Blocks, /) -> S:
        """Sum Σ collect(block): within each part in order, then over parts in order.

        Parameters
        ----------
        collect : callable
            Function of a block that returns its statistics.
        blocks : Blocks
            The data.

        Returns
        -------
        statistics
            Their sum.
        """
        ...


@dataclass(frozen=True)
class Serial:
    """Single-threaded engine: the reference that every other engine equals bit for bit.

    See Also
    --------
    Threads : Several threads.

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.Poisson(1.0)
    >>> lk.core.Serial().total(lambda block: model.collect(block.x), lk.core.Blocks.of([[1], [2], [6]])).total_weight
    3.0
    """

    def total(self, collect: Callable[[Block], S], blocks: Blocks) -> S:
        """Sum Σ collect(block), in order.

        Parameters
        ----------
        collect : callable
            Function of a block that returns its statistics.
        blocks : Blocks
            The data.

        Returns
        -------
        statistics
            Their sum.
        """
        with one_blas_thread():
            return _join(part_total(collect, part) for part in blocks.parts)


@dataclass(frozen=True)
class Threads:
    """Multithreaded engine; NumPy, BLAS and compiled loops release the lock.

    Parameters
    ----------
    workers : int, optional
        Number of threads; None is the number of cores.

    See Also
    --------
    Serial : One thread.

    Examples
    --------
    >>> from likely.core.engine import Serial, Threads
    >>> Threads(2).workers
    2
    """

    workers: int | None = None  # None: number of cores

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise DomainError(sentence("Threads", "at least one worker is needed", self.workers))

    def total(self, collect: Callable[[Block], S], blocks: Blocks) -> S:
        """Sum Σ collect(block), in an order that does not depend on which thread finishes first.

        Parameters
        ----------
        collect : callable
            Function of a block that returns its statistics.
        blocks : Blocks
            The data.

        Returns
        -------
        statistics
            Their sum.
        """
        with one_blas_thread():
            return _join(ordered_map(lambda part: part_total(collect, part), blocks.parts, self.workers or cores()))


def part_total(collect: Callable[[Block], S], part: Iterable[Block]) -> S | None:
    """The sum over the blocks of one part, in order; None if it has no blocks."""
    return _sum(_counted(collect, block, block.start) for block in part)


def _counted(f: Callable[[A], B], block: A, start: int) -> B:
    """f(block), where an error names its row by the number in the whole data set."""
    try:
        return f(block)
    except BadEntry as error:
        beyond = error.row >= n_rows(block)  # f validated all rows: the number is that in the whole data set already
        raise error if beyond else error.after(start) from None


def ordered_map(f: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[B]:
    """Map f over items in threads, results in order, at most 2·workers of them in flight."""
    items = list(items)
    if workers == 1 or len(items) < 2:
        yield from map(f, items)
        return
    with ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="likely") as pool:
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(copy_context().run, f, item))
                if len(waiting) >= 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


FEW = 256  # rows up to which the 15 µs of setting BLAS to one thread would show


def map_rows(f: Callable[[Any], NDArray[Any]], x: Any, columns: int | None, dtype: Any = None) -> NDArray[Any]:
    """Apply f to blocks of rows and write the results into one (n,) or (n, columns) array; large inputs use all cores.

    Intermediate arrays exist for one block at a time only; float32 rows give float32 results, unless `dtype` is given.
    Overflow gives no warning (what single precision cannot hold becomes infinite): f checks its results.
    """
    n = n_rows(x)
    dtype = _float_like(x) if dtype is None else dtype
    if n <= FEW:
        with np.errstate(all="ignore"):
            return np.array(f(x), dtype, order="C")
    out = np.empty((n,) if columns is None else (n, columns), dtype)

    def fill(start: int) -> None:
        with np.errstate(all="ignore"):
            for a in range(start, min(start + BLOCKS * ROWS, n), ROWS):
                out[a : a + ROWS] = _counted(f, x[a : a + ROWS] if n > ROWS else x, a)

    with one_blas_thread():
        for _ in ordered_map(fill, range(0, n, BLOCKS * ROWS), cores()):
            pass
    return out


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context manager that limits BLAS to one thread: the engine uses the cores, and results stay bitwise equal.

    The number of threads is global: the first to enter changes it, the last to leave restores it. (Each
    with a limit of its own, the second of two user threads would restore the first one's limit of 1.)
    """
    _blas().enter()
    try:
        yield
    finally:
        _blas().leave()


class _Blas:
    """The BLAS libraries of this process, and the number of threads inside `one_blas_thread`."""

    def __init__(self) -> None:
        import scipy.linalg.blas  # its BLAS must be loaded before the controller lists the libraries
        import threadpoolctl

        del scipy
        self.libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
        # from 3.8 on a library obeys only the first Python thread that set a limit, until that is reset
        forget = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        self.forget: Callable[[], None] = forget or (lambda: None)
        self.lock, self.inside, self.before = Lock(), 0, [1] * len(self.libraries)

    def enter(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.before = [library.num_threads for library in self.libraries]
                self._set([1] * len(self.libraries))

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self._set(self.before)

    def _set(self, threads: list[int]) -> None:
        self.forget()
        for library, number in zip(self.libraries, threads, strict=True):
            library.set_num_threads(number)
        self.forget()


@cache
def cores() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> _Blas:
    return _Blas()


def _float_like(x: Any) -> Any:
    return np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64


def _sum(terms: Iterable[S | None]) -> S | None:
    total: S | None = None
    for term in terms:
        total = term if total is None else total if term is None else add(total, term)
    return total


def _join(parts: Iterable[S | None]) -> S:
    total = _sum(parts)
    if total is None:
        raise DataError(sentence("fit", "at least one block of rows is needed", "none"))
    return total
