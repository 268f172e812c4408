"""Histogram equalization of gray values, and mapping to any distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, ShapeError, sentence

ME = "equalize_histogram"


def equalize_histogram(
    image: ArrayLike, levels: int | None = 256, to: Any = None, weight: ArrayLike | None = None
) -> Array:
    """Histogram equalization: ranks in (0, 1], x_k = Σ_{r ≤ k} n_r / n for gray level k.

    The cumulative distribution function of a variable, applied to it, is uniform; a quantile function maps uniform to
    any distribution. For bytes take np.rint(255 * equalize_histogram(image)).

    Parameters
    ----------
    image : array-like
        Image of any shape, with integer gray levels 0 … levels − 1; other numbers are ranked. NaN stays NaN.
    levels : int or None, default 256
        Number of gray levels; None ranks the values.
    to : distribution or array-like, optional
        Distribution with `quantile` (or another image) to map to, evaluated at mid-ranks; uniform by default.
    weight : array-like, optional
        Weight per pixel; pixels of weight 0 are not counted.

    Returns
    -------
    ndarray
        The equalized image, of the same shape.

    References
    ----------
    Herbst and du Preez, lecture notes, 1.2.2 (example 3).

    Examples
    --------
    >>> equalize_histogram([0, 0, 0, 0, 1, 1, 2, 3], levels=4).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0.875, 1.0]
    >>> import likely as lk
    >>> equalize_histogram([[5, 5], [7, 9]], to=lk.Gaussian([0.0], 1.0)).round(3).tolist()
    [[-0.674, -0.674], [0.319, 1.15]]
    """
    grays = _grays(image)
    seen = ~np.isnan(grays)
    if not seen.any():
        raise DataError(sentence(ME, "at least one pixel is needed", f"shape {grays.shape}"))
    codes, size = _codes(grays[seen], levels)
    w = np.ones(len(codes)) if weight is None else _weights(weight, grays.shape)[seen]
    counts = np.bincount(codes, w, size).astype(np.float64)
    if not counts.sum() > 0:
        raise DataError(sentence(ME, "some pixel must have positive weight", "none"))
    out = np.full(grays.shape, np.nan)
    out[seen] = _curve(counts, to)[codes]
    return out


def _grays(image: Any) -> Array:
    try:
        grays = np.asarray(image, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(sentence(ME, "an image must be numbers in a regular shape", type(image).__name__)) from error
    if np.isinf(grays).any():
        where = tuple(int(i) for i in np.argwhere(np.isinf(grays))[0])
        raise DataError(sentence(ME, "gray values must be finite, or NaN", f"infinity at {where}"))
    return grays


def _codes(grays: Array, levels: int | None) -> tuple[NDArray[np.intp], int]:
    """The index of each pixel's gray level, and the number of levels."""
    if levels is None or (grays != np.floor(grays)).any():
        found, at = np.unique(grays, return_inverse=True)
        return at.ravel().astype(np.intp), len(found)
    if levels < 1 or levels != int(levels):
        raise DomainError(sentence(ME, "levels must be an integer above 0, or None", levels))
    low, high = grays.min(), grays.max()
    if low < 0 or high >= levels:
        bad = low if low < 0 else high
        remedy = "pass levels=65536 for 16 bits, levels=None for any numbers"
        raise DataError(sentence(ME, f"gray levels must lie in 0 … {levels - 1}", bad, remedy))
    return grays.astype(np.intp), int(levels)


def _weights(weight: Any, shape: tuple[int, ...]) -> Array:
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != shape:
        raise ShapeError(sentence(ME, f"weight must have the shape of the image {shape}", w.shape))
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise DataError(sentence(ME, "weights must be finite and not negative"))
    return w


def _curve(counts: Array, to: Any) -> Array:
    """The new value of each gray level (levels,)."""
    sums = np.cumsum(counts) / counts.sum()
    if to is None:
        return np.asarray(sums)
    middle = np.clip(sums - 0.5 * counts / counts.sum(), 1e-12, 1 - 1e-12)
    if hasattr(to, "quantile"):
        return np.asarray(to.quantile(middle), dtype=np.float64).reshape(len(counts))
    other = np.sort(_grays(to).ravel())
    other = other[~np.isnan(other)]
    if not len(other):
        raise DataError(sentence(ME, "the other image must have pixels", "none"))
    return other[np.minimum((middle * len(other)).astype(np.intp), len(other) - 1)]
