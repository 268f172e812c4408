"""Sequences with covariates: frames are modeled given known covariates per frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Rows, SequencesLike, numbers
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged import Ragged

FRAMES, COVARIATES = "frames", "covariates"
WHOSE = "covariates"


class Driven(NamedTuple):
    """Sequences of frames, with covariates for every frame (T, p)."""

    frames: Ragged
    covariates: Array


def with_covariates(x: Rows, covariates: SequencesLike) -> Ragged:
    """Sequences with covariates per frame, as Columns of "frames" and "covariates".

    Parameters
    ----------
    x : Ragged, list of arrays or array-like
        The sequences.
    covariates : Ragged, list of arrays or array-like
        Numbers, (T_i, p) or (T_i,) per sequence.

    Returns
    -------
    Ragged
        The sequences with their covariates.

    See Also
    --------
    HMM : Takes them where transitions depend on covariates.
    Ragged : Sequences.

    Examples
    --------
    >>> both = with_covariates([[1.0, 2.0], [3.0]], [[0.1, 0.2], [0.3]])
    >>> len(both), both[0]["covariates"].tolist()
    (2, [[0.1], [0.2]])
    """
    frames, u = Ragged.of(x), Ragged.of(covariates)
    if len(frames) != len(u):
        expected = f"as many sequences of covariates as of frames ({len(frames)}) are needed"
        raise ShapeError(sentence(WHOSE, expected, len(u)))
    unlike = np.flatnonzero(frames.lengths != u.lengths)
    if len(unlike):
        i = int(unlike[0])
        expected = f"sequence {i} must have one row for each of its {frames.lengths[i]} frames"
        raise ShapeError(sentence(WHOSE, expected, int(u.lengths[i])))
    parts = {FRAMES: frames.values, COVARIATES: table(u.values)}
    return Ragged.trusted(values=Columns(parts), offsets=frames.offsets, names=frames.names)


def table(values: Any) -> Array:
    """Covariates as a matrix (T, p); named columns are concatenated."""
    if isinstance(values, Columns):
        return np.column_stack([numbers(part, WHOSE) for part in values.parts.values()])
    a = numbers(values, WHOSE)
    return a[:, None] if a.ndim == 1 else a


def with_optional_covariates(x: Any, covariates: Any, lengths: Any = None) -> Any:
    """Sequences with their covariates, if any; `lengths` split what is one array."""
    if lengths is not None:
        x = Ragged.of(x, lengths)
        if not isinstance(covariates, Ragged | list | tuple | None):
            covariates = Ragged.of(covariates, lengths)
    return x if covariates is None else with_covariates(x, covariates)


def has_covariates(x: Any) -> bool:
    """True for sequences with covariates, as by `with_covariates`."""
    values = x.values if isinstance(x, Ragged) else x
    return isinstance(values, Columns) and {FRAMES, COVARIATES} <= set(values)


def frames_of(x: Ragged) -> Ragged:
    """Sequences without their covariates."""
    if not has_covariates(x):
        return x
    return Ragged.trusted(values=x.values[FRAMES], offsets=x.offsets, names=x.names)


def n_covariates(x: Ragged) -> int:
    """The number of covariates per frame; 0 without any."""
    return int(table(x.values[COVARIATES]).shape[1]) if has_covariates(x) else 0


def apart(x: Any, covariates: Any = None, lengths: Any = None) -> Driven:
    """Frames and covariates, given as two arguments or combined by `with_covariates`; `lengths` split one array."""
    if lengths is not None:
        x, covariates = Ragged.of(x, lengths), None if covariates is None else Ragged.of(covariates, lengths)
    both = Ragged.of(x) if covariates is None else with_covariates(x, covariates)
    if not (isinstance(both.values, Columns) and {FRAMES, COVARIATES} <= set(both.values)):
        remedy = "pass covariates=, or combine both with with_covariates(x, covariates)"
        raise DataError(sentence(WHOSE, "every frame needs its covariates", "frames alone", remedy))
    frames = Ragged.trusted(values=both.values[FRAMES], offsets=both.offsets, names=both.names)
    return Driven(frames, table(both.values[COVARIATES]))


def features(u: Array, units: Array | None, offsets: Index | None = None, before: int = 0, frame: int = 0) -> Array:
    """Design matrix (1, u) of the covariates in the model's units (T, p + 1).

    What is missing or infinite elsewhere is an error that names sequence, frame and column. Without `offsets`, every
    row matters; so it does in a piece that goes on with sequence `before` at a `frame` above 0.
    """
    z = np.array(u, dtype=np.float64)
    if offsets is not None and not frame:
        z[offsets[:-1][np.diff(offsets) > 0]] = 0.0 if units is None else units[0]
    if not np.isfinite(z).all():
        _refuse_missing(z, offsets, before, frame)
    if units is not None:
        z = (z - units[0]) / units[1]
    return np.concatenate([np.ones((len(z), 1)), z], axis=1)


def _refuse_missing(z: Array, offsets: Index | None, before: int, frame: int) -> None:
    t, column = np.argwhere(~np.isfinite(z))[0]
    sequence = -1 if offsets is None else int(np.searchsorted(offsets, t, side="right")) - 1
    place = f"row {t}" if offsets is None else f"sequence {before + sequence}, frame {frame + t - offsets[sequence]}"
    remedy = "impute it first: covariates must be observed"
    got = f"{z[t, column]} at {place}, column {column}"
    raise DataError(sentence(WHOSE, "covariates must be finite numbers", got, remedy))
