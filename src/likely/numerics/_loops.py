"""Ziggurat algorithm of Marsaglia and Tsang: 64 random bits give a normal variate, mostly without rejection."""

from __future__ import annotations

import math

import numpy as np

from likely.numerics.compile import compiled

LAYERS = np.uint64(256)
MASK, SIDE, REST = np.uint64(255), np.uint64(8), np.uint64(12)  # bits 0–7: layer; bit 8: side; bits 12–63: where in it
ONE, THREE, ELEVEN, LEFT, RIGHT = np.uint64(1), np.uint64(3), np.uint64(11), np.uint64(24), np.uint64(40)
UNIT = 2.0**-52


@compiled
def ziggurat(state, edges, out, pending):  # type: ignore[no-untyped-def]
    """Fill out (n,) with independent N(0, 1) variates from the four state words of SFC64, which are updated.

    ±u x_i with layer i, sign and u from the same bits is accepted if u x_i < x_{i+1}. Indices of the others are listed
    first (pending has n + 1 entries): no branch depends on the bits, which branch prediction would miss. SFC64 is
    that of Doty-Humphrey (2010). 98.6 of 100 variates are accepted at once.
    """
    a, b, c, counter = state[0], state[1], state[2], state[3]
    count = 0
    for k in range(len(out)):
        bits = a + b + counter
        counter = counter + ONE
        a = b ^ (b >> ELEVEN)
        b = c + (c << THREE)
        c = ((c << LEFT) | (c >> RIGHT)) + bits
        i = bits & MASK
        z = np.float64(bits >> REST) * UNIT * edges[i]
        out[k] = z * (1.0 - 2.0 * np.float64((bits >> SIDE) & ONE))
        pending[count] = np.uint64(k) * LAYERS + i
        count += 1 if z >= edges[i + ONE] else 0
    state[0], state[1], state[2], state[3] = a, b, c, counter
    for j in range(count):
        k = pending[j] // LAYERS
        out[k] = _accepted(out[k], pending[j] & MASK, state, edges)
    return count


@compiled
def _accepted(z, i, state, edges):  # type: ignore[no-untyped-def]
    """Rejection step for a point outside the inner rectangle: under the density, in the tail, or a new point."""
    while True:
        if i == 0:
            return math.copysign(_tail(state, edges[1]), z)
        below, above = _density(edges[i]), _density(edges[i + ONE])
        if below + _uniform(state) * (above - below) < _density(z):
            return z
        bits = _bits(state)
        i = bits & MASK
        z = np.float64(bits >> REST) * UNIT * edges[i] * (1.0 - 2.0 * np.float64((bits >> SIDE) & ONE))
        if abs(z) < edges[i + ONE]:
            return z


@compiled
def _tail(state, start):  # type: ignore[no-untyped-def]
    """|z| beyond the start of the tail, by rejection from an exponential distribution (Marsaglia 1964)."""
    while True:
        x = -math.log(1.0 - _uniform(state)) / start
        if -2.0 * math.log(1.0 - _uniform(state)) > x * x:
            return start + x


@compiled
def _density(x):  # type: ignore[no-untyped-def]
    return math.exp(-0.5 * x * x)


@compiled
def _uniform(state):  # type: ignore[no-untyped-def]
    """Uniform variate in [0, 1), of 52 bits."""
    return np.float64(_bits(state) >> REST) * UNIT


@compiled
def _bits(state):  # type: ignore[no-untyped-def]
    a, b, c, counter = state[0], state[1], state[2], state[3]
    bits = a + b + counter
    state[0] = b ^ (b >> ELEVEN)
    state[1] = c + (c << THREE)
    state[2] = ((c << LEFT) | (c >> RIGHT)) + bits
    state[3] = counter + ONE
    return bits
