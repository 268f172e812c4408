"""Normal numbers by the ton: a third of the time of NumPy's own, for clouds that need millions of them.

The half-bell exp(−x²/2) is covered by 256 layers of equal area (Marsaglia and Tsang 2000): a rectangle [0, x_i] each,
the lowest with the tail beyond R. A point of a rectangle that lies within the next narrower one is under the bell for
certain; of the others, 1.4 of 100, each is looked at.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.numerics._loops import LAYERS, ziggurat

R = 3.6541528853610088  # where the layers close at the top


def fill_normal(rng: Generator, out: Array) -> Array:
    """Independent N(0, 1) numbers in place of all entries of out, which is contiguous; rng is one of SFC64.

    >>> from numpy.random import SFC64
    >>> fill_normal(Generator(SFC64(0)), np.empty(10_000)).std().round(1)
    np.float64(1.0)
    """
    flat, source = out.reshape(-1), rng.bit_generator
    state = source.state
    ziggurat(state["state"]["state"], _edges(), flat, np.empty(flat.size + 1, dtype=np.uint64))
    source.state = state
    return out


@cache
def _edges() -> Array:
    """x_0 (the lowest layer as a rectangle, tail and all), x_1 = R, …, x_256 = 0, each layer of the same area."""
    area = R * math.exp(-0.5 * R * R) + math.sqrt(math.pi / 2) * math.erfc(R / math.sqrt(2))
    edges = [area / math.exp(-0.5 * R * R), R]
    while len(edges) < LAYERS:
        x = edges[-1]
        edges.append(math.sqrt(-2 * math.log(area / x + math.exp(-0.5 * x * x))))
    return np.array([*edges, 0.0])
