"""Data in two levels: parts that engines distribute to workers, and cache-sized blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, n_rows, unmasked, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged import Ragged

ROWS = 4096  # rows per block: half the time of 256 for 32 columns, and statistics of a block stay in cache
BLOCKS = 16  # blocks per part, the unit of work of one worker: 65,536 rows cost a tenth less than 32,768


@dataclass(frozen=True, eq=False)
class Block:
    """Block of rows with weights and optional label information.

    Parameters
    ----------
    x : array-like, Columns or Ragged
        Rows, or sequences.
    weight : ndarray (n,), optional
        Weight per row.
    log_mask : ndarray (n, K) or Ragged, optional
        What is added to the log joint density: 0 for allowed labels, −inf for excluded ones.
    labels : ndarray of int (n,), optional
        The labels, where all are known.
    start : int, default 0
        Number of rows before this block, so that an error can name its row.

    See Also
    --------
    Blocks : Several of them.

    Examples
    --------
    >>> len(Block(np.zeros((3, 2))))
    3
    """

    x: Any
    weight: Array | None = None  # (n,)
    log_mask: Any = (
        None  # (n, K): log-mask added to the joint, 0 for allowed labels, −inf for excluded ones; or a Ragged of them
    )
    labels: Index | None = None  # (n,): the labels, where all are known
    start: int = 0  # number of rows before this block, so that an error can name its row

    def __len__(self) -> int:
        return n_rows(self.x)


@dataclass(frozen=True, eq=False)
class Rows:
    """A part that slices consecutive blocks out of data in memory, lazily."""

    data: Block
    edges: tuple[int, ...]  # block i is rows edges[i]:edges[i + 1]

    def __iter__(self) -> Iterator[Block]:
        return (_cut(self.data, a, b) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True))


@dataclass(frozen=True, eq=False)
class Loaded:
    """A part that a function loads lazily: a file, a row group, a query."""

    read: Callable[[], Iterable[Block]]

    def __iter__(self) -> Iterator[Block]:
        return iter(self.read())


class Blocks:
    """Re-iterable data in blocks of rows: a sequence of parts, each an iterable of blocks.

    Sums run in order within a part, then over parts in order, so the same blocks give the same
    bits whatever the engine, the number of workers or the order of arrival.

    Parameters
    ----------
    parts : sequence of iterables of Block
        The parts; no block crosses them.

    See Also
    --------
    Block : One block.
    Threads : What sums statistics of blocks.

    Examples
    --------
    >>> b = Blocks.of(np.zeros((10_000, 2)))
    >>> [len(block) for block in b]
    [4096, 4096, 1808]
    """

    def __init__(self, parts: Sequence[Iterable[Block]]) -> None:
        if isinstance(parts, Iterator):
            expected = "data must be re-iterable: learning passes over them more than once"
            raise DataError(sentence("Blocks", expected, "an iterator", "use lk.online_em for a stream"))
        self.parts = tuple(parts)

    @classmethod
    def of(
        cls, x: Any, weight: Any = None, *, log_mask: Any = None, labels: Any = None, sequences: bool | None = None,
        rows: int = ROWS, blocks: int = BLOCKS,
    ) -> Blocks:  # fmt: skip
        """Split data in memory into blocks.

        Parameters
        ----------
        x : array-like, Ragged, Columns or Blocks
            Rows, or sequences.
        weight : array-like (n,), optional
            Weight per row.
        log_mask : array-like (n, K), optional
            Logarithm of a factor per row and member: −inf excludes a member.
        labels : array-like of int (n,), optional
            Known labels.
        sequences : bool, optional
            Whether a row is a sequence (see `for_model`); by default a list of matrices, or of vectors of unequal
            length, holds sequences.
        rows : int
            Number of rows per block, about; of a Ragged, frames.
        blocks : int
            Number of blocks per part.

        Returns
        -------
        Blocks
            The data in blocks.
        """
        if isinstance(x, Blocks):
            if not (weight is log_mask is labels is None):
                raise DataError(
                    sentence("Blocks", "blocks carry their own weight, log_mask and labels", "blocks and more")
                )
            return x
        if isinstance(x, Iterator):
            return cls(x)  # type: ignore[arg-type]  # refused there, with the sentence
        if sequences:
            x = Ragged.of(x)
        elif isinstance(x, Mapping):
            x = Columns.of(x)
        elif sequences is None and _is_sequences(x):
            x = Ragged.from_list(x)
        elif not hasattr(x, "__getitem__") or isinstance(x, list | tuple):
            x = _as_array(x)
        x = unmasked(x)
        n = n_rows(x)
        block = Block(x, weights(weight, n, "Blocks"), _aligned(log_mask, n, "log_mask"), _aligned(labels, n, "labels"))
        edges = _edges(x, n, rows)
        firsts = range(0, max(len(edges) - 1, 1), blocks)
        return cls([Rows(block, tuple(edges[i : i + blocks + 1])) for i in firsts])

    @classmethod
    def for_model(cls, model: Any, x: Any) -> Blocks:
        """Data in blocks for a model; sequence models take a row as a sequence of frames.

        Parameters
        ----------
        model : value
            The model.
        x : array-like, Ragged, Columns or Blocks
            Rows, or sequences.

        Returns
        -------
        Blocks
            The data in blocks.
        """
        return cls.of(x, sequences=getattr(model, "of_sequences", None))

    @classmethod
    def read(cls, readers: Iterable[Callable[[], Iterable[Block]]]) -> Blocks:
        """Parts that are loaded lazily.

        Parameters
        ----------
        readers : iterable of callables
            One function per file or row group, which returns its blocks at each call.

        Returns
        -------
        Blocks
            The data in blocks.
        """
        return cls([Loaded(r) for r in readers])

    def __iter__(self) -> Iterator[Block]:
        return (block for part in self.parts for block in part)

    def whole(self) -> Blocks:
        """The same parts, each one in memory as a single block: for models that split rows themselves.

        Returns
        -------
        Blocks
            One block per part.
        """
        return Blocks([Rows(p.data, p.edges[:1] + p.edges[1:][-1:]) if isinstance(p, Rows) else p for p in self.parts])

    @property
    def first(self) -> Block:
        """The first block with rows; an error if there is none."""
        for block in self:
            if len(block):
                return block
        raise DataError(sentence("Blocks", "at least one row is needed", "0 rows"))


def size(blocks: Blocks) -> float:
    """Number of rows, of sequences that of frames; infinite where parts are loaded one after another."""
    if not all(isinstance(part, Rows) for part in blocks.parts):
        return math.inf
    ends = [(part.data.x, part.edges[0], part.edges[-1]) for part in blocks.parts if isinstance(part, Rows)]
    return float(sum(x.offsets[b] - x.offsets[a] if isinstance(x, Ragged) else b - a for x, a, b in ends))


def _is_sequences(x: Any) -> bool:
    """Whether a list holds sequences: matrices, or vectors of unequal length."""
    if not isinstance(x, list) or not x or not all(hasattr(s, "__len__") and not isinstance(s, str) for s in x):
        return False
    return getattr(x[0], "ndim", 1) > 1 or len({len(s) for s in x}) > 1


def _as_array(x: Any) -> Any:
    try:
        return np.asarray(unmasked(x))
    except ValueError as error:
        raise DataError(sentence("Blocks", "rows must have the same length", "rows of different lengths")) from error


def _edges(x: Any, n: int, rows: int) -> list[int]:
    if not isinstance(x, Ragged):
        return [*range(0, n, rows), n]
    # a block of sequences holds about `rows` frames, and at least one sequence
    whose = np.searchsorted(x.offsets[1:], np.arange(rows, max(int(x.offsets[-1]), 1) + rows, rows), side="left") + 1
    return sorted({0, *np.minimum(whose, n).tolist(), n})


def runs(x: Any, rows: int = ROWS) -> list[tuple[int, int]]:
    """Start and end of blocks of about the given number of rows (for Ragged: frames).

    >>> runs(np.zeros((5, 1)), 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return list(pairwise(_edges(x, n_rows(x), rows)))


def _cut(data: Block, a: int, b: int) -> Block:
    weight, given, labels = (None if p is None else p[a:b] for p in (data.weight, data.log_mask, data.labels))
    return Block(data.x[a:b], weight, given, labels, data.start + a)  # type: ignore[arg-type]  # each keeps its own kind


def _aligned(a: Any, n: int, name: str) -> Any:
    if a is None:
        return None
    a = a if isinstance(a, Ragged) else np.asarray(unmasked(a))
    if len(a) != n:
        raise ShapeError(sentence("Blocks", f"{name} must have one entry per row ({n})", len(a)))
    return a
