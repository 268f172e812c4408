"""Laws that look the same on either side of a centre: it is their mean, mode and median."""

from __future__ import annotations

from likely.core.arrays import Array


class Centred:
    """Mixed into laws with a parameter `centre`."""

    centre: Array

    @property
    def mean(self) -> Array:
        """The centre μ."""
        return self.centre

    @property
    def mode(self) -> Array:
        """The centre μ."""
        return self.centre

    @property
    def median(self) -> Array:
        """The centre μ: half of the draws on either side."""
        return self.centre
