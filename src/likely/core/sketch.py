"""Bottom-k sketch of a data set: the distinct rows with the smallest hashes represent all rows.

The selection depends on the content of the rows only, not on their order, blocks or duplicates. So an initialization
from a sketch is the same for a table, a stream, a file or repeated rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Rows, n_rows, refuse_infinite, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.row_hashes import Hashes, row_hashes
from likely.core.stats import Addable
from likely.core.value import Value

SIZE = 10_000  # number of rows: enough for hundreds of seeds, and distances take milliseconds


@dataclass(frozen=True, eq=False)
class Sketch(Addable, Value):
    """Sketch of rows: the distinct rows of smallest hash, each with the total weight of its duplicates.

    `+` keeps the smallest of both, `*` scales weights: a commutative monoid, like every statistic. A row in the sketch
    was never dropped before, so its weight is complete.

    Parameters
    ----------
    rows : array-like, Columns or Ragged
        The m rows, of the type of the input, ordered by hash.
    weight : array-like (m,)
        Their weights, positive.
    hashes : ndarray (m,)
        Their hashes, increasing.
    size : int
        Largest m.

    Examples
    --------
    >>> s = Sketch.of(np.array([[1.0], [2.0], [1.0]]), size=2)
    >>> sorted(zip(s.rows[:, 0].tolist(), s.weight.tolist()))
    [(1.0, 2.0), (2.0, 1.0)]
    """

    rows: Any  # m rows, of the type of the input
    weight: Array  # (m,), positive
    hashes: Hashes  # (m,), increasing
    size: int = SIZE  # maximum of m

    def __post_init__(self) -> None:
        hashes, m = np.array(self.hashes, dtype=np.uint64), n_rows(self.rows)
        weight = np.array(weights(self.weight, m, "Sketch"), dtype=np.float64)
        if hashes.shape != (m,) or weight.shape != (m,):
            got = f"{m}, {weight.shape} and {hashes.shape}"
            raise ShapeError(sentence("Sketch", "rows, weight and hashes must have one length", got))
        if not _is_size(self.size) or m > self.size:
            raise DomainError(sentence("Sketch", "size must be an integer, and at least the number of rows", self.size))
        if (hashes[1:] <= hashes[:-1]).any():
            raise DataError(sentence("Sketch", "hashes must be increasing", "others", "build it with Sketch.of"))
        self._set(rows=self.rows, weight=weight, hashes=hashes, size=int(self.size))

    @classmethod
    def of(cls, x: Rows, weight: ArrayLike | None = None, size: int = SIZE, whose: str = "fit") -> Self:
        """The sketch of rows.

        Infinite values raise an error here, in the name of `whose`, since row numbers are lost in the sketch.

        Parameters
        ----------
        x : array-like, Columns, Ragged or sparse matrix
            Rows of numbers (NaN too) or categories.
        size : int
            Largest number of rows that are kept.
        """
        if not _is_size(size):
            raise DomainError(sentence("Sketch", "size must be a positive integer", size))
        x = _sliceable(x)
        if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind == "f":
            refuse_infinite(x, whose)
        w = weights(weight, n_rows(x), "Sketch")
        if w is not None and w.ndim != 1:
            raise ShapeError(sentence("Sketch", "weight must have one number per row", w.shape))
        return cls._smallest(x, row_hashes(x), w, int(size))

    @property
    def complete(self) -> bool:
        """True: there are no latent variables."""
        return True

    @property
    def total_weight(self) -> float:
        """The total weight of the rows in the sketch."""
        return float(self.weight.sum())

    def __len__(self) -> int:
        return len(self.hashes)

    def __add__(self, other: Self) -> Self:
        size = min(self.size, other.size)
        hashes = np.concatenate([self.hashes, other.hashes])
        weight = np.concatenate([self.weight, other.weight])
        if not len(self) or not len(other):
            kept = self if len(self) else other
            return self._smallest(kept.rows, kept.hashes, kept.weight, size)
        return self._smallest(_joined(self.rows, other.rows), hashes, weight, size)

    def __mul__(self, factor: float) -> Self:
        if not factor > 0:
            return self.replace(rows=self.rows[:0], weight=self.weight[:0], hashes=self.hashes[:0])
        return self.replace(weight=self.weight * factor)

    __rmul__ = __mul__

    @classmethod
    def _smallest(cls, rows: Any, hashes: Hashes, weight: Array | None, size: int) -> Self:
        """The distinct rows of smallest hash; rows of weight 0 are dropped."""
        at = _candidates(hashes, weight, size)
        distinct, first, which = np.unique(hashes[at], return_index=True, return_inverse=True)
        total = np.bincount(which, None if weight is None else weight[at], minlength=len(distinct))
        m = min(size, len(distinct))
        chosen = _tidy(rows[at[first[:m]]])
        return cls.trusted(rows=chosen, weight=total[:m].astype(np.float64), hashes=distinct[:m], size=size)


def _candidates(hashes: Hashes, weight: Array | None, size: int) -> Index:
    """Indices of candidate rows: all below a bound under which `size` distinct hashes lie.

    The size-th smallest hash is such a bound unless there are duplicates below it; then a larger one is searched.
    """
    at = np.arange(len(hashes)) if weight is None else np.flatnonzero(weight > 0)
    present = hashes if weight is None else hashes[at]
    reach = size
    while reach < len(present):
        below = present <= np.partition(present, reach - 1)[reach - 1]
        if len(np.unique(present[below])) >= size:
            return at[below]
        reach *= 8
    return at


def _sliceable(x: Any) -> Any:
    """Rows that can be selected by an index array."""
    if hasattr(x, "tocsr"):
        return x.tocsr()
    return x if isinstance(x, Columns | Ragged | np.ndarray) else np.asarray(x)


def _tidy(rows: Any) -> Any:
    """Equal rows with equal bits: −0 becomes 0."""
    return rows + 0.0 if isinstance(rows, np.ndarray) and rows.dtype.kind == "f" else rows


def joined_rows(sketches: list[Sketch]) -> tuple[Any, Array]:
    """Concatenated rows and weights of several sketches, with duplicates."""
    rows = sketches[0].rows
    for sketch in sketches[1:]:
        rows = _joined(rows, sketch.rows)
    return rows, np.concatenate([s.weight for s in sketches])


def _joined(a: Any, b: Any) -> Any:
    """Concatenated rows of both."""
    if isinstance(a, Columns):
        return Columns({name: _joined(part, b.parts[name]) for name, part in a.parts.items()})
    if isinstance(a, Ragged):
        return Ragged.joined([a, b])
    if hasattr(a, "tocsr"):
        from scipy import sparse

        return sparse.vstack([a, b], format="csr")
    return np.concatenate([a, b])


def _is_size(size: Any) -> bool:
    return isinstance(size, int | np.integer) and bool(size > 0)
