"""Audio input: WAV files, (rate, samples) pairs and arrays as mono signals at one sampling rate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from numbers import Real
from typing import Any

import numpy as np

from likely.core.arrays import Array, unmasked
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.data.wav import read_wav

MOST_CHANNELS = 8  # columns up to which a long table is taken as channels
FINEST = 2000  # largest numerator and denominator of a resampling ratio: 44,100 to 48,000 Hz is 160/147


def is_one_recording(x: Any) -> bool:
    """True for a file name, a (rate, samples) pair or a vector; False for a collection of these."""
    if isinstance(x, str | os.PathLike) or _is_pair(x):
        return True
    if isinstance(x, Ragged):
        return False
    if hasattr(x, "ndim"):
        return x.dtype != object and x.ndim < 2
    return isinstance(x, list | tuple) and len(x) > 0 and isinstance(x[0], Real)


def recordings_in(x: Any, whose: str = "recordings") -> Ragged | list[Any]:
    """Recordings: a Ragged of samples, a list, or a table with one recording per row; a single one is an error."""
    if is_one_recording(x):
        raise ShapeError(sentence(whose, "several recordings are needed", "one", "pass [recording]"))
    if isinstance(x, Ragged):
        return x
    if getattr(x, "ndim", 1) == 2 and x.shape[1] <= MOST_CHANNELS < x.shape[0]:
        remedy = "pass [(rate, samples)] for one recording of several channels"
        raise ShapeError(sentence(whose, "a table needs one recording per row", f"shape {x.shape}", remedy))
    if not hasattr(x, "__len__"):
        raise DataError(sentence(whose, "a list of recordings is needed", type(x).__name__, "convert it to a list"))
    return x if isinstance(x, list) else list(x)


def signals(recordings: Any, rate: int, high: float | None = None, whose: str = "recordings") -> Iterator[Array]:
    """The samples of several recordings at one rate; errors name the recording by its number."""
    for i, recording in enumerate(recordings_in(recordings, whose)):
        yield signal(recording, rate, high, f"{whose}: recording {i}")


def signal(recording: Any, rate: int, high: float | None = None, whose: str = "recording") -> Array:
    """The samples (n,) of one recording at `rate` Hz, full scale ±1 where that is known.

    A WAV file or a pair (rate, samples) of another rate is resampled; it must reach up to `high` Hz (None: rate/2).
    Integers of 8, 16 and 32 bits are divided by their full scale; anything else is unchanged. NaN is a
    missing sample.

    >>> signal(np.array([16384, -32768], dtype=np.int16), 8000)
    array([ 0.5, -1. ])
    >>> len(signal((16000, np.ones(1600)), 8000))
    800
    """
    own, samples = rate, recording
    if isinstance(recording, str | os.PathLike):
        whose = f"{whose} ({os.fsdecode(recording)})"
        own, samples = read_wav(recording)
    elif _is_pair(recording):
        own, samples = _integer_rate(recording[0], whose), recording[1]
    elif isinstance(recording, tuple) and len(recording) == 2 and _is_pair(recording[::-1]):
        remedy = f"pass ({recording[1]}, samples)"
        raise DataError(sentence(whose, "a pair must be (rate, samples)", "(samples, rate)", remedy))
    x = _mono(samples, whose)
    return x if own == rate else resampled(x, own, rate, high, whose)


def resampled(x: Array, old: int, new: int, high: float | None = None, whose: str = "recording") -> Array:
    """Resample a signal to another rate by polyphase filtering (`scipy.signal.resample_poly`).

    A recording whose rate is below 2·high raises an error: the missing frequencies cannot be restored.
    """
    from scipy.signal import resample_poly  # half a second to load

    high = new / 2 if high is None else high
    if old < 2 * high:
        remedy = f"learn and recognize with rate={old}, or with high={old / 2:g}"
        raise DataError(sentence(whose, f"frequencies up to {high:g} Hz need a rate of {2 * high:g} Hz", old, remedy))
    ratio = Fraction(new, old).limit_denominator(FINEST)
    if not np.isnan(x).any():
        return np.asarray(resample_poly(x, ratio.numerator, ratio.denominator), dtype=np.float64)
    lost = np.isnan(x)
    y = resample_poly(np.where(lost, 0.0, x), ratio.numerator, ratio.denominator)
    near = np.round(np.arange(len(y)) / float(ratio)).astype(np.intp).clip(max=len(x) - 1)
    reach = ceil(10 * max(1.0, 1 / float(ratio)))  # half the filter, in samples of the old rate
    spoilt = np.convolve(lost, np.ones(2 * reach + 1), "same") > 0.5
    return np.where(spoilt[near], np.nan, y)


def _mono(samples: Any, whose: str) -> Array:
    try:
        x = np.asarray(unmasked(samples))
    except ValueError as error:
        got, remedy = "parts of different types", "pass an array, a pair (rate, samples) or a WAV file's name"
        raise DataError(sentence(whose, "samples must be real numbers", got, remedy)) from error
    if x.dtype.kind not in "biuf":
        raise DataError(sentence(whose, "samples must be real numbers", x.dtype, "pass an array, or a WAV file's name"))
    if x.ndim not in (1, 2) or 0 in x.shape:
        got = "none" if 0 in x.shape else f"shape {x.shape}"
        raise ShapeError(sentence(whose, "a recording needs samples (n,) or (n, channels)", got, "leave it out"))
    if x.ndim == 2 and x.shape[0] < x.shape[1]:
        remedy = "transpose it: one column per channel"
        raise ShapeError(sentence(whose, "a recording must have shape (n, channels)", x.shape, remedy))
    y = _scaled(x)
    if np.isinf(y).any():
        at = int(np.flatnonzero(np.isinf(y))[0])
        raise DataError(sentence(whose, "samples must be finite, or NaN for missing samples", f"{y.flat[at]} at {at}"))
    return y if y.ndim == 1 else y.mean(axis=1)


def _scaled(x: Any) -> Array:
    if x.dtype == np.uint8:
        return (x - 128.0) / 128.0
    if x.dtype in (np.int8, np.int16, np.int32):
        return x / -float(np.iinfo(x.dtype).min)
    return x.astype(np.float64, copy=False)


def _is_pair(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], Real) and np.ndim(x[1]) in (1, 2)


def _integer_rate(rate: Any, whose: str) -> int:
    if not (rate > 0 and rate == int(rate)):
        raise DataError(sentence(whose, "a rate must be an integer of Hz", rate))
    return int(rate)
