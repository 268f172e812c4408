"""Warping bands: Sakoe–Chiba band, Itakura parallelogram, and masks."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from likely.core.arrays import Index, Mask
from likely.core.errors import DomainError, ShapeError, sentence

BandLike = float | Mask | Literal["itakura"] | tuple[Literal["itakura"], float]
MEANINGS = 'None, a share such as 0.1, a radius in frames such as 5, "itakura", ("itakura", slope) or a mask (n, m)'


class Band(NamedTuple):
    """A warping band: at most one of these is not None."""

    radius: int | None = None  # in frames of the longer series
    share: float | None = None  # the same as a share of its length
    slope: float | None = None  # of Itakura's parallelogram
    mask: Mask | None = None

    @property
    def closed(self) -> bool:
        """True if it excludes points."""
        return any(part is not None for part in self)

    @property
    def plain(self) -> tuple[int, float]:
        """Kind and size for the compiled functions; not for masks."""
        parts = ((1, self.radius), (2, self.share), (3, self.slope))  # as in loops.warp, which would load the compiler
        return next(((kind, float(size)) for kind, size in parts if size is not None), (0, 0.0))

    def frames(self, longest: int) -> int:
        """The radius in frames, for series of which the longer has `longest` frames."""
        if self.share is not None:
            return int(np.floor(self.share * longest + 1e-9))  # 0.29 · 100 is 28.999…
        return longest if self.radius is None else self.radius


def band_of(band: BandLike | None, whose: str, other: str = "") -> Band:
    """Validate a `band` setting; `other` says what else its owner takes.

    >>> band_of(0.1, "dtw").frames(50), band_of(3, "dtw").frames(50)
    (5, 3)
    """
    if band is None:
        return Band()
    if isinstance(band, str) or (isinstance(band, tuple | list) and len(band) == 2 and isinstance(band[0], str)):
        name, slope = (band, 2.0) if isinstance(band, str) else (band[0], band[1])
        if name == "itakura" and isinstance(slope, int | float | np.number) and 1 <= slope < np.inf:
            return Band(slope=float(slope))
    elif isinstance(band, int | np.integer) and not isinstance(band, bool) and band >= 0:
        return Band(radius=int(band))
    elif isinstance(band, float | np.floating) and 0 <= band <= 1:
        return Band(share=float(band))
    elif isinstance(band, np.ndarray) and band.ndim == 2 and band.dtype == bool:
        return Band(mask=np.array(band))
    got = f"an array {band.shape} of {band.dtype}" if isinstance(band, np.ndarray) else repr(band)
    remedy = "a share lies in 0 … 1, the slope of a parallelogram from 1 on" if isinstance(band, float | tuple) else ""
    raise DomainError(sentence(whose, f"band must be {other}{MEANINGS}", got, remedy))


def band_rows(band: Band, n: int, m: int, whose: str) -> tuple[Index, Index]:
    """Columns lo[i] ≤ j < hi[i] of each row i: (n,) each; raises without a path from corner to corner.

    Sakoe and Chiba's band follows the straight line from corner to corner, and its radius is measured along the longer
    series, so that exchanging the two changes nothing.

    >>> band_rows(Band(radius=1), 3, 3, "dtw")
    (array([0, 0, 1]), array([2, 3, 3]))
    """
    if band.mask is not None:
        if band.mask.shape != (n, m):
            raise ShapeError(sentence(whose, f"the mask must have shape ({n}, {m})", band.mask.shape))
        return _all(n, m)
    if band.slope is not None:
        return _parallelogram(band.slope, n, m, whose)
    if not band.closed:
        return _all(n, m)
    radius = band.frames(max(n, m))
    lo, hi = _strip(radius, n, m)
    if not connected(lo, hi, m):
        enough = least_radius(n, m)
        remedy = f"use a radius of at least {enough}, or a share of {enough / max(n, m):.3f}"
        expected = f"the band must leave a path through {n} × {m} points"
        raise DomainError(sentence(whose, expected, f"a radius of {radius}", remedy))
    return lo, hi


def refuse_disconnected(band: Band, lengths: Index, others: Index, whose: str) -> None:
    """Raise if the band leaves no path between some two of these lengths."""
    from likely.alignment import _loops as warp

    found = np.zeros(2, dtype=np.int64)
    if band.closed and warp.not_connected(*band.plain, np.unique(lengths), np.unique(others), found):
        n, m = found.tolist()
        i, j = int(np.argmax(lengths == n)), int(np.argmax(others == m))
        band_rows(band, n, m, f"{whose} (sequences {i} and {j})")


def least_radius(n: int, m: int) -> int:
    """The smallest radius that leaves a path."""
    low, high = 0, max(n, m)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if connected(*_strip(middle, n, m), m) else (middle + 1, high)
    return low


def connected(lo: Index, hi: Index, m: int) -> bool:
    """True if steps of one frame lead from the first corner to the last."""
    ends = lo[0] == 0 and hi[-1] == m
    return bool(ends and (lo < hi).all() and (lo[1:] <= hi[:-1]).all())


def _all(n: int, m: int) -> tuple[Index, Index]:
    return np.zeros(n, dtype=np.int64), np.full(n, m, dtype=np.int64)


def _strip(radius: int, n: int, m: int) -> tuple[Index, Index]:
    """|j (n − 1) − i (m − 1)| ≤ radius (min(n, m) − 1), in integers."""
    if min(n, m) == 1:
        return _all(n, m)
    along, reach = np.arange(n, dtype=np.int64) * (m - 1), radius * (min(n, m) - 1)
    lo = np.maximum(-((reach - along) // (n - 1)), 0)
    hi = np.minimum((along + reach) // (n - 1) + 1, m)
    return lo, hi


def _parallelogram(slope: float, n: int, m: int, whose: str) -> tuple[Index, Index]:
    """Itakura parallelogram (1975): between the lines of that slope and its inverse through both corners, scaled."""
    if min(n, m) == 1:
        return _all(n, m)
    u = np.arange(n) / (n - 1)
    low = np.maximum(u / slope, 1 - slope * (1 - u)) * (m - 1)
    high = np.minimum(slope * u, 1 - (1 - u) / slope) * (m - 1)
    lo = np.maximum(np.ceil(low - 1e-9), 0).astype(np.int64)
    hi = np.minimum(np.floor(high + 1e-9) + 1, m).astype(np.int64)
    if not connected(lo, hi, m):
        expected = f"the parallelogram must leave a path through {n} × {m} points"
        raise DomainError(sentence(whose, expected, f"slope {slope:g}", "raise the slope, or use a radius"))
    return lo, hi
