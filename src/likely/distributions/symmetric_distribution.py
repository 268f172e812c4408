"""Mixin for symmetric distributions, whose center is mean, mode and median."""

from __future__ import annotations

from likely.core.arrays import Array


class Centered:
    """Mean, mode and median of a symmetric distribution with parameter `center`."""

    center: Array

    @property
    def mean(self) -> Array:
        """Mean: the center μ."""
        return self.center

    @property
    def mode(self) -> Array:
        """Mode: the center μ."""
        return self.center

    @property
    def median(self) -> Array:
        """Median: the center μ."""
        return self.center
