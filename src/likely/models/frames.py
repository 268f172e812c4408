"""A frame: an origin near the rows and a unit near their spread, so that squares neither cancel nor overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array

SAMPLE = 1024  # rows whose mean is near enough to the centre of all


@dataclass(frozen=True, eq=False)
class Frame:
    """u = x · unit − origin; the unit is a power of two, so that scaling changes no digit."""

    unit: float
    origin: Array  # (d,), in units

    @classmethod
    def around(cls, x: Array, low: Array | None = None, high: Array | None = None) -> Frame:
        """The frame of rows (n, d), of which the lowest and highest entries may be known already."""
        if low is None or high is None:
            low, high = np.fmin.reduce(x, axis=0, initial=np.inf), np.fmax.reduce(x, axis=0, initial=-np.inf)
        low, high = np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)  # a column never seen
        coarse = _inverse(max(abs(low).max(initial=0.0), abs(high).max(initial=0.0)))
        some = np.asarray(x[:: max(1, len(x) // SAMPLE)], dtype=np.float64) * coarse
        seen = ~np.isnan(some)
        origin = np.where(seen, some, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        origin = np.where(low == high, low * coarse, origin)  # a constant column has no spread, not even by rounding
        fine = _inverse(max((high * coarse - origin).max(initial=0.0), (origin - low * coarse).max(initial=0.0)))
        return cls(coarse * fine, origin * fine)

    def inside(self, x: Array) -> Array:
        """Rows as the frame sees them."""
        return x * self.unit - self.origin

    def outside(self, u: Array) -> Array:
        """And back."""
        return (u + self.origin) / self.unit


def _inverse(size: float) -> float:
    """One over a power of two near a size, 1 for 0."""
    return float(np.ldexp(1.0, int(np.clip(-np.frexp(size)[1], -500, 500)))) if size > 0 else 1.0
