"""Delta features (regression slopes over time) and cepstral mean and variance normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from likely.core.arrays import Array, check_option

Normalization = Literal["mean", "mean and variance", "level"]
LEVEL_QUANTILE = 0.9  # quantile of the frame energies that defines the level of a recording
FLAT = 1e-9  # standard deviation of a column, in the unit of the features, below which it is constant


def deltas(track: Array, width: int = 2) -> Array:
    """Delta features: slope of each column at each frame, by regression over ±width frames, edges repeated (T, D).

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
    """The features with their deltas, delta-deltas, … as further columns (T, D · (orders + 1))."""
    parts = [track]
    for _ in range(orders):
        parts.append(deltas(parts[-1], width))
    return np.concatenate(parts, axis=1)


def normalized(track: Array, how: Normalization | None = "mean", loudness: Sequence[int] = (0,)) -> Array:
    """Mean normalization: each column minus its mean, which removes constant channel effects from log spectra.

    "mean and variance" also divides each column by its standard deviation, unless it is constant. "level" removes
    only the volume: the columns of `loudness` are relative to their 90 % quantile. A short word has too few frames
    to separate the speaker's mean from the word's. Missing frames
    (NaN) are ignored and stay missing. A single frame becomes 0: it is its own mean.

    >>> normalized(np.array([[1.0, 5.0], [3.0, 5.0]]), "mean and variance").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    if how is not None:
        check_option(how, Normalization, "normalized", "how", "None")
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
    out[:, columns] -= np.quantile(seen[:, columns], LEVEL_QUANTILE, axis=0)
    return out
