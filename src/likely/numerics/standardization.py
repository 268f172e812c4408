"""Origin and scale of rows: a shift and a power-of-two scale, so that squares neither cancel nor overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array

SAMPLE = 1024  # rows whose median is near enough to the center of all


@dataclass(frozen=True, eq=False)
class AffineMap:
    """Affine map u = x · unit − origin; the unit is a power of two, so that scaling is exact."""

    unit: float
    origin: Array  # (d,), in units

    @classmethod
    def fitted_to(cls, x: Array, low: Array | None = None, high: Array | None = None) -> AffineMap:
        """The map for rows (n, d), with the lowest and highest entries if known already."""
        if low is None or high is None:
            low, high = np.fmin.reduce(x, axis=0, initial=np.inf), np.fmax.reduce(x, axis=0, initial=-np.inf)
        low, high = (
            np.where(low <= high, low, 0.0),
            np.where(low <= high, high, 0.0),
        )  # a column without observed entries
        coarse = _inverse(max(abs(low).max(initial=0.0), abs(high).max(initial=0.0)))
        sample = np.asarray(x[:: max(1, len(x) // SAMPLE)], dtype=np.float64) * coarse
        origin = medians(sample)  # not the mean: one row of 1e20 would shift it so far that all others coincide
        origin = np.where(
            low == high, low * coarse, origin
        )  # a constant column has variance 0, without rounding errors
        fine = _inverse(max((high * coarse - origin).max(initial=0.0), (origin - low * coarse).max(initial=0.0)))
        return cls(coarse * fine, origin * fine)

    def forward(self, x: Array) -> Array:
        """Rows in the new coordinates."""
        return x * self.unit - self.origin

    def inverse(self, u: Array) -> Array:
        """Rows in the original coordinates."""
        return (u + self.origin) / self.unit


def medians(x: Array) -> Array:
    """Lower median of the observed entries of each column (d,), 0 where none is observed."""
    n_observed = (~np.isnan(x)).sum(axis=0)
    ordered = np.sort(x, axis=0)  # NaN comes last
    middle = ordered[np.maximum(n_observed - 1, 0) // 2, np.arange(x.shape[1])] if len(x) else np.zeros(x.shape[1])
    return np.where(n_observed > 0, middle, 0.0)


def _inverse(size: float) -> float:
    """The inverse of a power of two near a size, 1 for 0."""
    return float(np.ldexp(1.0, int(np.clip(-np.frexp(size)[1], -500, 500)))) if size > 0 else 1.0
