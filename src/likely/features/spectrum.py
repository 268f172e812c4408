"""Short-time spectral analysis: pre-emphasis, framing, windows, power spectra, energy-based trimming."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from likely.core.arrays import Array, check_option

Taper = Literal["hamming", "hann", "rectangular"]


def pre_emphasized(signal: Array, share: float = 0.97) -> Array:
    """Pre-emphasis: y_t = x_t − share · x_{t−1}, y_0 = x_0 · (1 − share); voices fall off by 6 dB per octave.

    >>> pre_emphasized(np.array([1.0, 1.0, 2.0]), 0.5)
    array([0.5, 0.5, 1.5])
    """
    before = np.concatenate([signal[:1], signal[:-1]])
    return signal - share * before


def framed(signal: Array, size: int, step: int) -> Array:
    """Frames of `size` samples, one every `step` (T, size), T = 1 + ⌊(n − size)/step⌋; the remainder is dropped.

    A signal shorter than one window is zero-padded and gives one frame.

    >>> framed(np.arange(5.0), 3, 2).tolist()
    [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]
    """
    if len(signal) < size:
        signal = np.concatenate([signal, np.zeros(size - len(signal))])
    return sliding_window_view(signal, size)[::step]


@cache
def window(kind: Taper, size: int) -> Array:
    """A tapered window (size,) in periodic form, or a "rectangular" one.

    Hamming: 0.54 − 0.46 cos(2πt/size); Hann: 0.5 − 0.5 cos(2πt/size).
    """
    check_option(kind, Taper, "window", "taper")
    mean = {"hamming": 0.54, "hann": 0.5, "rectangular": 1.0}[kind]
    w = mean - (1 - mean) * np.cos(2 * np.pi * np.arange(size) / size)
    w.setflags(write=False)
    return w


def power_spectrum(frames: Array, size: int | None = None) -> Array:
    """Power spectrum |X_f|² of each frame (T, size//2 + 1), frames zero-padded to `size`.

    Parseval: Σ_t x_t² = (P_0 + 2 Σ P_f + P_{size/2}) / size for an even size.

    >>> power_spectrum(np.ones((1, 4))).tolist()
    [[16.0, 0.0, 0.0]]
    """
    z = np.fft.rfft(frames, size, axis=-1)
    return z.real**2 + z.imag**2


def frame_energies(signal: Array, size: int, step: int) -> Array:
    """Mean square of each frame (T,)."""
    frames = framed(signal, size, step)
    return np.einsum("ts,ts->t", frames, frames) / size


def loud_part(signal: Array, rate: int, below: float = 40.0, margin: float = 0.05) -> slice:
    """The part of a signal from the first to the last loud moment, with `margin` seconds on both sides.

    A window of 20 ms is loud if its energy is at most `below` dB under that of the loudest. Silence is kept completely.
    """
    size, step = max(1, round(0.02 * rate)), max(1, round(0.01 * rate))
    energy = np.nan_to_num(frame_energies(signal, size, step))
    if not energy.max() > 0:
        return slice(0, len(signal))
    loud = np.flatnonzero(energy >= energy.max() * 10 ** (-below / 10))
    edge = round(margin * rate)
    return slice(max(0, int(loud[0]) * step - edge), min(len(signal), int(loud[-1]) * step + size + edge))


def trimmed(signal: Array, rate: int, below: float = 40.0, margin: float = 0.05) -> Array:
    """The signal without silence at its ends: its `loud_part`.

    >>> x = np.concatenate([np.zeros(4000), np.sin(np.arange(800.0)), np.zeros(4000)])
    >>> len(trimmed(x, 8000, margin=0.0))
    960
    """
    return signal[loud_part(signal, rate, below, margin)]


def is_silent(signal: Array) -> bool:
    """True if all observed samples are equal.

    >>> is_silent(np.array([0.1, np.nan, 0.1]))
    True
    """
    return not np.fmax.reduce(signal) > np.fmin.reduce(signal)


def loudest(signal: Array, rate: int) -> float:
    """The level of the loudest 20 ms of a signal, in decibels of its own unit; −inf for silence.

    >>> round(loudest(np.full(800, 0.1), 8000))
    -20
    """
    size, step = max(1, round(0.02 * rate)), max(1, round(0.01 * rate))
    peak = np.nan_to_num(np.fmax.reduce(np.abs(signal)))
    if not peak > 0:
        return -np.inf
    energy = np.fmax.reduce(frame_energies(signal / peak, size, step))
    energy = (
        energy if energy > 0 else np.nanmean((signal / peak) ** 2)
    )  # missing samples in every window, or a click at the end
    return float(10 * np.log10(energy) + 20 * np.log10(peak))
