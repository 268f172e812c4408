"""Method of moments for the triangular distribution: corners about the mean are the roots of x³ − 6σ²x − 10μ₃."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, rows, weights
from likely.core.errors import DataError, about_columns, sentence
from likely.core.warnings import tell
from likely.distributions.column_distribution import column_moments

STEEPEST = 0.4 * np.sqrt(2.0)  # the skewness of a triangle with its mode at an end


def corners(mean: Array, variance: Array, skewness: Array) -> tuple[Array, Array, Array]:
    """Lower end, mode and upper end from mean, variance and skewness, which must lie within ±0.5657.

    The three sum to 0 about the mean; their products in pairs sum to −6σ², and their product is 10μ₃ (Viète).

    >>> [round(float(part), 3) for part in corners(np.array(2.0), np.array(2 / 3), np.array(0.0))]
    [0.0, 2.0, 4.0]
    """
    angle = np.arccos(np.clip(skewness / STEEPEST, -1.0, 1.0))
    size = 2 * np.sqrt(2 * variance)
    low, mode, high = (mean + size * np.cos((angle + 2 * np.pi * k) / 3) for k in (1, 2, 0))
    return low, np.clip(mode, low, high), high


def corners_beyond(low: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mode and upper end from mean and variance, for a known lower end: a quadratic equation.

    Moments that no triangle has are replaced by the nearest possible ones: a mode at one of the ends.
    """
    whole = 3 * (mean - low)  # (c − a) + (b − a)
    width = np.clip(0.5 * (whole + np.sqrt(np.maximum(24 * variance - whole**2 / 3, 0.0))), 0.5 * whole, whole)
    return low + (whole - width), low + width


def standard_moments(x: Any, weight: Any, whose: str) -> tuple[Array, Array, Array]:
    """Weighted mean, variance and skewness (over n) of each column; missing entries are skipped."""
    mean, variance = column_moments(x, weight, whose)
    if not (variance > 0).all():
        got = f"{about_columns(np.flatnonzero(variance <= 0).tolist())} constant"
        raise DataError(sentence(whose, "the method of moments needs a variance above 0 per column", got, "use fit"))
    z = rows(x, None, whose)
    w = weights(weight, len(z), whose)
    w_observed = np.where(np.isnan(z), 0.0, 1.0 if w is None else w[:, None])
    cubes = np.where(w_observed > 0, (np.where(w_observed > 0, z, mean) - mean) / np.sqrt(variance), 0.0) ** 3
    return mean, variance, (w_observed * cubes).sum(axis=0) / w_observed.sum(axis=0)


def tell_steep(skewness: Array, whose: str) -> None:
    """Warn of columns that are more skewed than any triangular distribution."""
    steep = np.flatnonzero(np.abs(skewness) > STEEPEST)
    if len(steep):
        how = f"{about_columns(steep.tolist())} more skewed than any triangular distribution ({STEEPEST:.4f})"
        tell(f"{whose}: {how}: the mode is put at an end")
