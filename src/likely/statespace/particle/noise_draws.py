"""Standard normal draws of the process noise, for several frames at once: one call per frame would be slower.

They are keyed by seed, block of frames and shape alone: a frame gets the same bits in a run and step by step.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import colored, draw_each
from likely.numerics.normal_draws import fill_normal
from likely.statespace.particle.particle_belief import AHEAD, keyed

FRAMES, NUMBERS = 8, 2**18  # drawn at once at most: such an array stays in a core's cache

Shape = tuple[int, ...]


class FrameNoise:
    """Draws (N, d) for the frames of one run, in one buffer: those of a frame are valid until a later one is drawn."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.seed, self.shape, self.frames = seed, shape, frames_of(shape)
        self.memory = np.empty((self.frames, *shape))
        self.place = -1

    def of(self, t: int) -> Array:
        """The draws of frame t."""
        place, k = divmod(t, self.frames)
        if place != self.place:
            _drawn(self.seed, place, self.shape, self.memory)
            self.place = place
        return self.memory[k]


def noise_of(seed: int, t: int, shape: Shape) -> Array:
    """The same draws for step-by-step use."""
    frames = frames_of(shape)
    drawn = _remembered if frames > 1 else _drawn
    return drawn(seed, t // frames, shape)[t % frames]


def frames_of(shape: Shape) -> int:
    """Number of frames whose draws (N, d) are made at once."""
    return min(FRAMES, max(1, NUMBERS // max(1, shape[0] * shape[1])))


def _drawn(seed: int, place: int, shape: Shape, out: Array | None = None) -> Array:
    """The draws (frames, N, d) of all frames t with t // frames = place."""
    out = np.empty((frames_of(shape), *shape)) if out is None else out
    return fill_normal(keyed(seed, place, AHEAD), out)


_remembered = lru_cache(maxsize=2)(_drawn)


def draw_at(distribution: Any, seed: int, t: int, noise: FrameNoise | None = None) -> Any:
    """One draw from each member of a stack, for frame t."""
    if not isinstance(distribution, Gaussian) or not distribution.members:
        return draw_each(distribution, keyed(seed, t))
    shape = distribution.mean.shape
    known = noise is not None and shape == noise.shape
    return colored(distribution, noise.of(t) if known else noise_of(seed, t, shape))  # type: ignore[union-attr]
