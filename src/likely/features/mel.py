"""Mel scale and triangular mel filter banks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence


def to_mel(hertz: Any) -> Any:
    """Hertz to mel: 2595 log₁₀(1 + f/700).

    >>> round(float(to_mel(1000.0)))
    1000
    """
    return 2595.0 * np.log10(1.0 + np.asarray(hertz, dtype=np.float64) / 700.0)


def to_hertz(mel: Any) -> Any:
    """Mel to hertz: 700 (10^(m/2595) − 1), the inverse of `to_mel`."""
    return 700.0 * (10.0 ** (np.asarray(mel, dtype=np.float64) / 2595.0) - 1.0)


def mel_corners(filters: int, low: float, high: float) -> Array:
    """Corner frequencies of triangular filters evenly spaced on the mel scale, in Hz (filters + 2,)."""
    return to_hertz(np.linspace(to_mel(low), to_mel(high), filters + 2))


@cache
def mel_filters(filters: int, size: int, rate: float, low: float = 0.0, high: float | None = None) -> Array:
    """Triangular filters over the bins of a spectrum of `size` points (filters, size//2 + 1), with peak 1.

    Between the outer peaks they sum to 1 at every frequency.

    >>> mel_filters(3, 16, 8000).shape
    (3, 9)
    """
    high = rate / 2 if high is None else high
    if filters < 1 or not 0 <= low < high <= rate / 2:
        expected = f"filters must be 1 or more, and 0 <= low < high <= {rate / 2:g} Hz"
        raise DomainError(sentence("mel_filters", expected, f"{filters} filters from {low:g} to {high:g} Hz"))
    corners = mel_corners(filters, low, high)
    f = np.arange(size // 2 + 1) * (rate / size)
    rising = (f - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - f) / np.diff(corners)[1:, None]
    bank = np.maximum(0.0, np.minimum(rising, falling))
    bank.setflags(write=False)
    return bank


@cache
def spectrum_size(samples: int, filters: int, rate: float, low: float, high: float) -> int:
    """The smallest power of two that holds a window and gives every filter at least one bin."""
    least = 1 << max(samples - 1, 1).bit_length()
    for size in (least << i for i in range(7)):
        if (mel_filters(filters, size, rate, low, high).max(axis=1) > 0).all():
            return size
    expected = "filters must be wide enough to contain a frequency bin"
    raise DomainError(sentence("mel_filters", expected, f"{filters} from {low:g} to {high:g} Hz", "use fewer"))
