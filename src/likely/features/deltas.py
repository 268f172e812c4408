"""Features over time: how fast they change says more than where they are, and their mean is the microphone's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence

NORMALIZATIONS = ("mean", "mean and variance", "level", None)
LOUD = 0.9  # share of frames that are quieter than what counts as a sound's level
FLAT = 1e-9  # spread of a column, in the unit of the features, below which it says nothing


def deltas(track: Array, width: int = 2) -> Array:
    """Slope of each column at each frame, by regression over ±width frames, edges repeated (T, D).

    d_t = Σ_{k=1}^{width} k (x_{t+k} − x_{t−k}) / (2 Σ k²)

    >>> deltas(np.arange(6.0)[:, None])[2:4, 0].tolist()
    [1.0, 1.0]
    """
    T = len(track)
    padded = np.concatenate([np.repeat(track[:1], width, axis=0), track, np.repeat(track[-1:], width, axis=0)])
    slope = np.zeros_like(track)
    for k in range(1, width + 1):
        slope += k * (padded[width + k : width + k + T] - padded[width - k : width - k + T])
    return slope / (2 * sum(k * k for k in range(1, width + 1)))


def with_deltas(track: Array, orders: int = 2, width: int = 2) -> Array:
    """The track, its slopes, the slopes of these …, side by side (T, D · (orders + 1))."""
    parts = [track]
    for _ in range(orders):
        parts.append(deltas(parts[-1], width))
    return np.concatenate(parts, axis=1)


def normalized(track: Array, how: str | None = "mean", loudness: Sequence[int] = (0,)) -> Array:
    """The track minus its own mean: what a microphone or a room adds to all log-spectra alike is gone.

    "mean and variance" also divides each column by its standard deviation, unless it does not move. "level" takes
    only the volume away: the columns of `loudness` are counted from the level that nine frames in ten stay below. A
    short word is too few frames to tell the speaker's mean from the word's. Frames that were not
    observed (NaN) have no say, and stay. A single frame becomes 0: it is its own mean.

    >>> normalized(np.array([[1.0, 5.0], [3.0, 5.0]]), "mean and variance").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    if how not in NORMALIZATIONS:
        raise DomainError(sentence("normalize", f"it must be one of {NORMALIZATIONS}", repr(how)))
    there = ~np.isnan(track).any(axis=1)
    if how is None or not there.any():
        return track
    seen = track if there.all() else track[there]
    if how == "level":
        return _leveled(track, seen, list(loudness))
    centered = track - seen.mean(axis=0)
    if how == "mean":
        return centered
    spread = seen.std(axis=0)
    return centered / np.where(spread > FLAT, spread, 1.0)


def _leveled(track: Array, seen: Array, columns: list[int]) -> Array:
    out = track.copy()
    out[:, columns] -= np.quantile(seen[:, columns], LOUD, axis=0)
    return out
