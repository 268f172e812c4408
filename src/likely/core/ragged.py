"""Sequences of unequal length, held as one long array and where each one begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.core.value import Value
from likely.errors import ShapeError, sentence


@dataclass(frozen=True, eq=False)
class Ragged(Value):
    """A row is a sequence: `values` holds all frames end to end, `offsets` says where each begins.

    >>> r = Ragged.from_list([[1.0, 2.0, 3.0], [4.0]])
    >>> len(r), r[1].tolist(), r.lengths.tolist()
    (2, [4.0], [3, 1])
    """

    values: NDArray[Any]  # (T, …): the frames of all sequences
    offsets: NDArray[np.intp]  # (n + 1,): sequence i is values[offsets[i]:offsets[i + 1]]

    def __post_init__(self) -> None:
        values, offsets = np.asarray(self.values), np.asarray(self.offsets, dtype=np.intp)
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ShapeError(sentence("Ragged", "offsets must rise from 0", offsets[:5].tolist()))
        if values.ndim == 0 or offsets[-1] != len(values):
            raise ShapeError(
                sentence("Ragged", f"offsets must end at the number of frames {values.shape}", offsets[-1])
            )
        view = values.view()
        view.setflags(write=False)
        object.__setattr__(self, "values", view)
        self._set(offsets=offsets.copy())

    @classmethod
    def from_list(cls, sequences: Iterable[Any]) -> Self:
        """Join a list of arrays (T_i,) or (T_i, D); an empty list needs no shape."""
        parts = [np.asarray(s) for s in sequences]
        for i, part in enumerate(parts):
            if part.ndim == 0 or part.shape[1:] != parts[0].shape[1:]:
                expected = f"sequence {i} must have frames of shape {parts[0].shape[1:]}, as the first has"
                raise ShapeError(sentence("Ragged", expected, part.shape))
        values = np.concatenate(parts) if parts else np.empty(0)
        return cls(values, np.concatenate([[0], np.cumsum([len(p) for p in parts], dtype=np.intp)]).astype(np.intp))

    @property
    def lengths(self) -> NDArray[np.intp]:
        """Number of frames of each sequence (n,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.values[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def __getitem__(self, which: Any) -> Any:
        """An integer gives one sequence as an array; a slice, mask or index array gives a Ragged."""
        if isinstance(which, int | np.integer):
            i = range(len(self))[which]
            return self.values[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(which, slice) and which.step in (None, 1):
            start, stop, _ = which.indices(len(self))
            o = self.offsets[start : max(start, stop) + 1]
            return Ragged.trusted(values=self.values[o[0] : o[-1]], offsets=o - o[0])
        chosen = np.arange(len(self))[which]
        return Ragged.from_list([self[int(i)] for i in chosen]) if len(chosen) else self[0:0]
