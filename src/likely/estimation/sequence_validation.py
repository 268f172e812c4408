"""Input validation of sequence estimators: lengths, `y`, and column names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import BadEntry, in_memory, refuse_infinite
from likely.core.covariates import COVARIATES, FRAMES, has_covariates, with_covariates
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import BadFrame, Ragged
from likely.core.warnings import warn

FEW_CODES = 20  # maximum number of distinct integers in a column of codes
TIMES_EACH = 5  # minimum mean frequency of each: a short series of measurements repeats few values


def cut(X: Any, lengths: Any, whose: str = "", of_sequences: bool = True) -> Any:
    """Sequences split by `lengths` out of one array; without lengths, X unchanged."""
    if lengths is None:
        return X
    if not of_sequences:
        expected = "lengths split one array into sequences, and this is a density of rows"
        raise DomainError(sentence(whose, expected, "lengths", "omit them, or use HMMDensity"))
    return Ragged.of(X, lengths)


def refuse_other_y(y: Any, seqs: Ragged, whose: str) -> None:
    """Raise an error if the unused `y` does not have one entry per sequence, or per frame of a single one.

    Other libraries take the lengths of sequences in its place, as the second argument.

    >>> refuse_other_y([5, 3], Ragged.of(np.zeros((8, 1))), "HMMDensity")
    Traceback (most recent call last):
    ...
    likely.core.errors.ShapeError: HMMDensity: y is not used, and must have one entry per sequence (1) or per frame \
of a \
single one (8), got 2 entries: for lengths of sequences write lengths=.
    """
    if y is None:
        return
    entries = len(y) if hasattr(y, "__len__") and getattr(y, "shape", None) != () and not isinstance(y, str) else None
    alone = len(seqs) == 1
    if entries is not None and (entries == len(seqs) or (alone and entries == len(seqs.values))):
        return
    per_frame = f" or per frame of a single one ({len(seqs.values)})" if alone else ""
    expected = f"y is not used, and must have one entry per sequence ({len(seqs)}){per_frame}"
    got = repr(y) if entries is None else f"{entries} entries"
    raise ShapeError(sentence(whose, expected, got, "for lengths of sequences write lengths="))


def refuse_what_holds_none(X: Any, whose: str) -> None:
    """Raise an error for None, sparse matrices and complex numbers."""
    sparse = not isinstance(X, Ragged) and hasattr(X, "tocsr")
    complex_ = isinstance(X, np.ndarray) and X.dtype.kind == "c"
    if X is None or sparse or complex_:
        got = "None" if X is None else "a sparse matrix" if sparse else "complex numbers"
        remedy = "Complex data not supported" if complex_ else ""
        raise DataError(sentence(whose, "sequences of frames are needed", got, remedy))


def warn_of_empty(seqs: Ragged, whose: str) -> None:
    """Warn of empty sequences: their log p is 0, and nothing is learned from them."""
    empty = np.flatnonzero(seqs.lengths == 0)
    if len(empty):
        note = f"sequence {empty[0]} has no frames" if len(empty) == 1 else f"{len(empty)} sequences have no frames"
        warn(f"{whose}: {note}: empty sequences are ignored")


def table_of_frames(X: Any, seqs: Ragged, frames: Any, width: int | None, whose: str) -> Any:
    """All frames as rows of a table, of `width` columns if known; column names are used where X has some."""
    if not isinstance(frames, np.ndarray):
        return frames
    if frames.ndim == 1:
        if width not in (None, 1):
            expected = f"frames must have {width} columns"
            raise DataError(sentence(whose, expected, "single values", "Reshape your data"))
        frames = frames[:, None]
    if hasattr(X, "columns"):
        return X
    if seqs.names is None or len(seqs.names) != frames.shape[1]:
        return frames
    import polars as pl

    return pl.DataFrame(dict(zip(seqs.names, frames.T, strict=True)))


def refuse_infinite_frames(rows: Any, offsets: Any, whose: str) -> None:
    """Raise an error for infinite values, by sequence, frame and column."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
        try:
            refuse_infinite(rows, whose)
        except BadEntry as error:
            raise BadFrame.of(error, offsets) from None


def warn_of_codes(frames: Any, whose: str) -> None:
    """Warn if default Gaussian emissions meet integer columns that look like codes or counts.

    That is a column of integers from 0 on with at most 20 distinct values, each of which occurs five times or more on
    average. Integer measurements have more values, or are floats.
    """
    if not isinstance(frames, np.ndarray) or frames.dtype.kind not in "iub" or not frames.size:
        return
    table = frames[:, None] if frames.ndim == 1 else frames
    for j, column in enumerate(table.T):
        if column.dtype.kind == "i" and column.min() < 0:
            continue
        distinct = len(np.unique(column))
        if 1 < distinct <= min(FEW_CODES, len(column) / TIMES_EACH):
            what = f"column {j} holds {distinct} distinct integers, and emissions are Gaussian"
            remedy = "pass CategoricalDensity() as component for codes, PoissonDensity() for counts"
            warn(f"{whose}: {what}; {remedy}, or GaussianDensity() if they are measurements")
            return


def validated_frames(X: Any, reset: bool, estimator: Any, rows_of: Callable[[Any, bool], Any]) -> Ragged:
    """Sequences of real frames, with covariates if they came with some; `rows_of` checks the table of all frames."""
    me, X = type(estimator).__name__, in_memory(X)
    refuse_what_holds_none(X, me)
    seqs = Ragged.of(X)
    if not len(seqs) or not len(seqs.values):
        if reset:
            expected, came = "at least one frame is needed", "0 sample(s)"
            raise DataError(sentence(me, expected, came, "(shape=(0, 0))"))
        return seqs
    if reset:
        warn_of_empty(seqs, me)
    both = has_covariates(seqs)
    frames = seqs.values[FRAMES] if both else seqs.values
    rows = rows_of(table_of_frames(X, seqs, frames, None if reset else estimator.n_features_in_, me), reset)
    refuse_infinite_frames(rows, seqs.offsets, me)
    out = Ragged.trusted(values=rows, offsets=seqs.offsets)
    if not both:
        return out
    return with_covariates(out, Ragged.trusted(values=seqs.values[COVARIATES], offsets=seqs.offsets))
