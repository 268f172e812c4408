"""Validation of series for DTW: (T, D) float64 with NaN for missing values, and no infinities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, Index, Mask, numbers
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.warnings import warnings_discarded


@dataclass(frozen=True, eq=False)
class Series:
    """Series of frames, concatenated, and their missing values."""

    values: Array  # (all frames, D)
    offsets: Index  # (n + 1,)
    has_missing: bool  # True if some entry is NaN
    missing: Mask  # (all frames,): frames without any observed entry
    names: tuple[str, ...] | None = None  # of the entries of a frame, for data frames

    @property
    def lengths(self) -> Index:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def one(self, i: int) -> Array:
        """Sequence i (T, D)."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def missing_of(self, i: int) -> Mask:
        """Missing frames of series i (T,)."""
        return self.missing[self.offsets[i] : self.offsets[i + 1]]


def one_series(x: Any, whose: str) -> Series:
    """Validate one series (T,) or (T, D).

    >>> one_series([1, 2, 3], "dtw").values.shape
    (3, 1)
    """
    return _checked([_frames(x, whose)], whose, lambda i: "")


def all_series(seqs: Any, whose: str) -> Series:
    """Validate many series: a list of arrays (T,) or (T, D), a `Ragged`, equal lengths (n, T), or an array (n, T, D).

    >>> all_series([[1, 2, 3], [4, 5]], "dtw_matrix").lengths
    array([3, 2])
    """
    seqs = _listed(seqs, whose)
    if not len(seqs):
        raise DataError(sentence(whose, "at least one sequence is needed", "none"))
    if isinstance(seqs, Ragged) and (seqs.lengths > 0).all():
        return replace(_series(_frames(seqs.values, whose), seqs.offsets, whose, _which), names=seqs.names)
    if isinstance(seqs, np.ndarray) and seqs.dtype != object and seqs.size:
        n, T = seqs.shape[:2]
        return _series(_frames(seqs.reshape(n * T, -1), whose), np.arange(0, n * T + 1, T), whose, _which)
    return _checked([_frames(x, f"{whose} (sequence {i})") for i, x in enumerate(seqs)], whose, _which)


def _which(i: int) -> str:
    return f" of sequence {i}"


def same_width(one: Series, other: Series, whose: str) -> None:
    """Require the same number of entries per frame."""
    D, E = one.values.shape[1], other.values.shape[1]
    if D != E:
        raise ShapeError(sentence(whose, "frames of both sides must have the same number of entries", f"{D} and {E}"))


def flag(value: Any, name: str, whose: str) -> bool:
    """Validate a setting that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise DomainError(sentence(whose, f"{name} must be True or False", repr(value)))
    return bool(value)


def _listed(seqs: Any, whose: str) -> Any:
    if isinstance(seqs, Ragged):
        return seqs
    if isinstance(seqs, list | tuple) and seqs and all(hasattr(s, "columns") for s in seqs):
        with warnings_discarded():  # DTW ignores time columns
            return Ragged.from_list(seqs)
    seqs = seqs.to_numpy() if hasattr(seqs, "to_numpy") else seqs
    if isinstance(seqs, np.ndarray) and seqs.dtype != object and seqs.ndim not in (2, 3):
        remedy = "pass rows of equal length (n, T), an array (n, T, D), or a list of arrays"
        raise ShapeError(sentence(whose, "several sequences are needed", f"an array {seqs.shape}", remedy))
    if isinstance(seqs, str) or not hasattr(seqs, "__len__"):
        raise DataError(sentence(whose, "several sequences are needed", type(seqs).__name__, "pass a list of arrays"))
    return seqs


def _frames(x: Any, whose: str) -> Array:
    """One sequence as (T, D); a vector is one entry per frame."""
    if getattr(_as_given(x, whose), "dtype", np.dtype(float)).kind in "USmM":
        raise DataError(sentence(whose, "frames must be numbers, NaN where missing", "text or dates"))
    a = numbers(x, whose)
    if a.ndim == 1:
        a = a[:, None]
    if a.ndim != 2 or not a.shape[1]:
        raise ShapeError(sentence(whose, "a sequence must have shape (T,) or (T, D)", a.shape, "one row per frame"))
    if not len(a):
        raise DataError(sentence(whose, "a sequence must have at least one frame", "an empty one"))
    return a


def _as_given(x: Any, whose: str) -> NDArray[Any]:
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ShapeError(sentence(whose, "all frames must have the same number of entries", "others")) from error


def _checked(parts: list[Array], whose: str, which: Callable[[int], str]) -> Series:
    for i, part in enumerate(parts):
        if part.shape[1] != parts[0].shape[1]:
            expected = f"sequence {i} must have {parts[0].shape[1]} entries per frame, as the first has"
            raise ShapeError(sentence(whose, expected, part.shape[1]))
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in parts])])
    return _series(np.concatenate(parts) if len(parts) > 1 else parts[0], offsets, whose, which)


def _series(values: Array, offsets: Any, whose: str, which: Callable[[int], str]) -> Series:
    """Series of values with missing entries allowed, but no infinities, and at least one observed frame each."""
    values = values if values.flags.writeable else values.copy()  # a read-only array is another type to the compiler
    offsets = np.array(offsets, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        has_missing = bool(np.isnan(values.sum())) or not np.isfinite(values).all()
    missing: Mask = np.zeros(len(values), dtype=np.bool_)
    if has_missing:
        _refuse_infinite(values, offsets, whose, which)
        missing = np.asarray(np.isnan(values).all(axis=1))
        _refuse_unobserved(missing, offsets, whose, which)
    return Series(values, offsets, bool(has_missing and np.isnan(values).any()), missing)


def _refuse_infinite(values: Array, offsets: Index, whose: str, which: Callable[[int], str]) -> None:
    bad = np.argwhere(np.isinf(values))
    if len(bad):
        at, column = bad[0].tolist()
        i = int(np.searchsorted(offsets, at, side="right")) - 1
        where = f"{values[at, column]} at row {at - int(offsets[i])}, column {column}{which(i)}"
        expected = "values must be finite, or NaN where missing"
        raise DataError(sentence(whose, expected, where, "correct it, or replace it by NaN"))


def _refuse_unobserved(missing: Mask, offsets: Index, whose: str, which: Callable[[int], str]) -> None:
    n_observed = np.add.reduceat((~missing).astype(np.int64), offsets[:-1])
    if (n_observed == 0).any():
        i = int(np.argmin(n_observed))
        raise DataError(sentence(whose, "at least one frame must be observed", f"NaN only{which(i)}", "leave it out"))
