"""Ragged arrays: sequences of unequal length, stored as concatenated frames with offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.arrays import Array, BadEntry, Index, Rows, n_rows, unmasked, weights
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.long_tables import cut_by_id
from likely.core.ragged_input import Frames, frames_of, from_iterable, is_list_of_sequences, joined
from likely.core.value import Value


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(Value):
    """Sequences of unequal length, stored one after the other.

    Parameters
    ----------
    values : ndarray (T, …) or Columns
        The frames of all sequences: numbers or strings, or Columns of T rows.
    offsets : ndarray of int (n + 1,)
        Sequence i is `values[offsets[i]:offsets[i + 1]]`.
    names : tuple of str, optional
        Column names of frames given as data frames.

    See Also
    --------
    Columns : Named arrays.
    with_covariates : Sequences with covariates.

    Examples
    --------
    >>> r = Ragged.from_list([[1.0, 2.0, 3.0], [4.0]])
    >>> len(r), r[1].tolist(), r.lengths.tolist()
    (2, [4.0], [3, 1])
    """

    values: Frames  # (T, …): the frames of all sequences, numbers or strings, or Columns of T rows
    offsets: NDArray[np.intp]  # (n + 1,): sequence i is values[offsets[i]:offsets[i + 1]]
    names: tuple[str, ...] | None = None  # column names of frames given as data frames

    def __post_init__(self) -> None:
        offsets = np.asarray(self.offsets, dtype=np.intp)
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ShapeError(sentence("Ragged", "offsets must increase from 0", offsets[:5].tolist()))
        values = self.values if isinstance(self.values, Columns) else np.asarray(unmasked(self.values))
        if values.shape == () or offsets[-1] != len(values):
            raise ShapeError(
                sentence("Ragged", f"offsets must end at the number of frames {values.shape}", offsets[-1])
            )
        self._set(values=_locked(values), offsets=offsets.copy())

    # ------------------------------------------------------------------ coming in

    @classmethod
    def of(cls, x: Rows, lengths: ArrayLike | None = None) -> Ragged:
        """Convert sequences in any accepted form to a Ragged; a Ragged passes through.

        - a **list** of arrays (T_i,) or (T_i, D), of lists, of data frames: each is a sequence, whatever their lengths;
        - an array **(n, T, D)**: n sequences of T frames; with `lengths`, of their first so many, the rest is padding;
        - an array **(T, D)** or (T,), a data frame, Columns: one sequence, or several cut by `lengths`.

        Columns of data frames keep their `names`, and those of one list must have the same. Frames count as equally
        spaced: a time index with uneven steps gives a warning.

        >>> Ragged.of(np.zeros((5, 2)), lengths=[3, 2])
        Ragged(2 sequences of 2 to 3 frames, each 2 × float64)
        """
        if isinstance(x, Ragged):
            if lengths is not None:
                expected = "lengths split one long array, and these are sequences already"
                raise ShapeError(sentence("Ragged", expected, repr(x), "leave lengths out"))
            return x
        return cls._cut(*frames_of(x, lengths))

    @classmethod
    def from_list(cls, sequences: Iterable[Any]) -> Self:
        """Concatenate a list of sequences; an empty list is allowed.

        Parameters
        ----------
        sequences : iterable of arrays (T_i,) or (T_i, D)
            The sequences.
        """
        return cls._cut(*from_iterable(sequences))

    @classmethod
    def from_table(
        cls, table: Any, id: Any, time: ArrayLike | None = None, columns: Any = None
    ) -> tuple[Ragged, NDArray[Any]]:
        """Sequences of a long-format table, which has one row per frame.

        Parameters
        ----------
        table : data frame, dict, Columns or array-like
            The table: columns go by name, those of a matrix by number.
        id : str or int
            The column that identifies the sequence of a row, in any order.
        time : str or int, optional
            The column that orders the rows of each sequence (a stable sort).
        columns : str, int or sequence, optional
            One column (frames are single values) or several; None takes all others. Numbers become float64 with NaN
            where missing; with string columns, frames are Columns.

        Returns
        -------
        sequences : Ragged
            The sequences.
        ids : ndarray (n,)
            Their identifiers, in order of first appearance.

        Examples
        --------
        >>> r, ids = Ragged.from_table({"who": ["b", "a", "b"], "t": [2, 1, 1], "x": [5, 6, 7]}, "who", "t")
        >>> ids.tolist(), r[0].tolist()
        (['b', 'a'], [7.0, 5.0])
        """
        cut, ids = cut_by_id(table, id, time, columns)
        return cls._cut(*cut), ids

    @classmethod
    def joined(cls, several: Sequence[Ragged]) -> Ragged:
        """Concatenate the sequences of several Ragged.

        Parameters
        ----------
        several : sequence of Ragged
            What is concatenated.
        """
        frames, _ = joined([one.values for one in several])
        names = {one.names for one in several if len(one.values)}
        lengths = np.concatenate([np.empty(0, np.intp), *(one.lengths for one in several)])
        return cls._cut(frames, lengths, names.pop() if len(names) == 1 else None)

    @classmethod
    def _cut(cls, values: Frames, lengths: Index, names: tuple[str, ...] | None = None) -> Self:
        return cls.trusted(values=_locked(values), offsets=_offsets(lengths), names=names)

    # ------------------------------------------------------------------- contents

    @property
    def lengths(self) -> NDArray[np.intp]:
        """Number of frames of each sequence (n,)."""
        return np.diff(self.offsets)

    @property
    def dtype(self) -> Any:
        """The dtype of the frames. There is no `shape`, since sequences differ in length."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self.values[a:b] for a, b in pairwise(self.offsets.tolist()))

    def __getitem__(self, which: Any) -> Any:
        """One sequence as an array, by integer; or a Ragged, by slice, mask or index array."""
        if isinstance(which, int | np.integer):
            i = range(len(self))[which]
            return self.values[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(which, slice) and which.step in (None, 1):
            start, stop, _ = which.indices(len(self))
            o = self.offsets[start : max(start, stop) + 1]
            return Ragged.trusted(values=self.values[o[0] : o[-1]], offsets=o - o[0], names=self.names)
        return self._picked(np.arange(len(self))[which if isinstance(which, slice) else _index(which)])

    def _picked(self, chosen: Index) -> Ragged:
        """Sequences by index (m,), in one gather: frame t of the result lies at t plus its sequence's shift."""
        lengths = self.lengths[chosen]
        offsets = _offsets(lengths)
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        values = self.values[at] if isinstance(self.values, Columns) else np.take(self.values, at, axis=0)
        return Ragged.trusted(values=_locked(values), offsets=offsets, names=self.names)

    # ------------------------------------------------------------------ going on

    def map(self, f: Callable[[Any], Any]) -> Ragged:
        """The same sequences with a function applied to all frames at once.

        Parameters
        ----------
        f : callable
            Function of the frames (T, …); it must keep their number and order.

        Returns
        -------
        Ragged
            The new sequences.

        Examples
        --------
        >>> Ragged.from_list([[1.0, 2.0], [3.0]]).map(np.sqrt)[1].round(3).tolist()
        [1.732]
        """
        values = f(self.values)
        values = values if isinstance(values, Columns) else np.asarray(values)
        if values.shape == () or n_rows(values) != len(self.values):
            expected = f"a function of {len(self.values)} frames must return as many"
            raise ShapeError(sentence("Ragged.map", expected, values.shape))
        return Ragged.trusted(values=_locked(values), offsets=self.offsets)

    def weights(self, weight: ArrayLike) -> Array | None:
        """Weights per sequence repeated for each frame.

        Parameters
        ----------
        weight : array-like (n,) or None
            Weight per sequence.

        Returns
        -------
        ndarray (T,) or None
            Weight per frame; None stays None.
        """
        per_sequence = weights(weight, len(self), "Ragged")
        return None if per_sequence is None else np.repeat(per_sequence, self.lengths, axis=0)

    def __repr__(self) -> str:
        n, lengths = len(self), self.lengths
        span = " to ".join(str(m) for m in sorted({int(lengths.min()), int(lengths.max())})) if n else "no"
        return f"Ragged({n} sequence{'s' * (n != 1)} of {span} frames, each {_frame(self.values)})"


def is_single_sequence(x: Any) -> bool:
    """True if x is one sequence, so that the result is one too."""
    return not (isinstance(x, Ragged) or getattr(x, "ndim", 1) == 3 or is_list_of_sequences(x))


def single_sequence(seqs: Ragged, whose: str) -> Ragged:
    """Require a single sequence with at least one frame."""
    if len(seqs) != 1 or not len(seqs.values):
        raise DataError(sentence(whose, "one sequence with at least one frame is needed", repr(seqs)))
    return seqs


def _offsets(lengths: Index) -> Index:
    offsets = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _locked(values: Frames) -> Frames:
    """A read-only view of frames; the caller's own array stays writable."""
    if isinstance(values, Columns):
        return Columns({name: _locked(part) for name, part in values.parts.items()})
    if isinstance(values, np.ndarray):
        values = values.view()
        values.setflags(write=False)
    return values


def _index(which: Any) -> Any:
    """A mask or index array from any kind of list."""
    index = np.asarray(which)
    if index.ndim != 1:
        raise ShapeError(sentence("Ragged", "an index must be a number, a slice, a mask or a list of numbers", which))
    return index if index.size else index.astype(np.intp)


def _frame(values: Frames) -> str:
    if isinstance(values, Columns):
        return f"of {', '.join(values)}"
    kind = "text" if values.dtype.kind in "US" else str(values.dtype)
    return " × ".join([*map(str, values.shape[1:]), kind])


class BadFrame(BadEntry):
    """An entry that no model can use, named by sequence, frame and column."""

    def __init__(self, details: tuple[Any, ...], sequence: int, frame: int) -> None:
        whose, expected, value, _, column, remedy = details
        place = f"{value} at sequence {sequence}, frame {frame}, column {column}"
        DataError.__init__(self, sentence(whose, expected, place, remedy))
        self.details, self.row, self.frame = details, sequence, frame

    @classmethod
    def of(cls, error: BadEntry, offsets: Index) -> BadFrame:
        """The error for a row among the frames of all sequences."""
        sequence = int(np.searchsorted(offsets, error.row, side="right")) - 1
        return cls(error.details, sequence, error.row - int(offsets[sequence]))

    def __reduce__(self) -> tuple[Any, ...]:
        return BadFrame, (self.details, self.row, self.frame)

    def after(self, rows: int) -> BadFrame:
        """The same error, `rows` sequences later."""
        return BadFrame(self.details, rows + self.row, self.frame)

    def inside(self, part: str) -> BadFrame:
        """The same error, in a component of that name."""
        return BadFrame((f"{self.details[0]} ({part})", *self.details[1:]), self.row, self.frame)
