"""Distributions that look the same on either side of a center: it is their mean, mode and median."""

from __future__ import annotations

from likely.core.arrays import Array


class Centered:
    """Mixed into distributions with a parameter `center`."""

    center: Array

    @property
    def mean(self) -> Array:
        """The center μ."""
        return self.center

    @property
    def mode(self) -> Array:
        """The center μ."""
        return self.center

    @property
    def median(self) -> Array:
        """The center μ: half of the draws on either side."""
        return self.center
