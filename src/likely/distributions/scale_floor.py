"""Minimum scale for constant columns: 1e-8 of the absolute value."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array

GRAIN = 1e-8  # of the value: as for the standard deviation of a Gaussian's constant column


def grain(value: Any) -> Array:
    """Minimum scale: 1e-8 of the absolute value; 1e-8 for 0."""
    size = np.abs(np.asarray(value, dtype=np.float64))
    return np.where(size > 0, np.maximum(GRAIN * size, 1e-290), GRAIN)
