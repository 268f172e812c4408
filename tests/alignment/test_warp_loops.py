"""Compiled DTW: lanes, single pairs and early abandoning agree, compiled or not."""

from __future__ import annotations

import numpy as np
import pytest

from likely.alignment import _loops as warp


def single(a, b, kind, lo, hi, limit=np.inf):
    last, none = np.empty(len(b)), np.zeros(max(len(a), len(b)), dtype=bool)
    empty = np.empty((0, 0))
    codes = np.empty((0, 0), dtype=np.int8)
    done = warp.accumulate_three(a, b, empty, kind, False, 0.0, none, none, lo, hi, False, limit, codes, empty, last)
    return last[-1] if done else np.inf


def rows(n, m, radius):
    i = np.arange(n)
    return np.maximum(i - radius, 0), np.minimum(i + radius + 1, m)


@pytest.mark.parametrize("kind", [warp.ABSOLUTE, warp.SQUARED, warp.EUCLIDEAN])
@pytest.mark.parametrize("D", [1, 3])
def test_lanes_equal_single_pairs(kind, D, rng):
    n, N = 8, warp.LANES + 3
    x = rng.normal(size=(N * n, D))
    offsets = np.arange(0, N * n + 1, n)
    for radius in (0, 2, n):
        lo, hi = rows(n, n, radius)
        out = np.zeros((N, N))
        for columns in (np.arange(warp.LANES), np.arange(warp.LANES, N)):
            warp.pair_block(x, offsets, np.arange(N), x, offsets, columns, kind, warp.STRIP, float(radius), False, out)
        parts = x.reshape(N, n, D)
        assert (out == [[single(a, b, kind, lo, hi) for b in parts] for a in parts]).all()
        assert (out == out.T).all()


def test_a_limit_stops_what_is_hopeless_only(rng):
    for _ in range(50):
        a, b = rng.normal(size=(2, 20, 1))
        lo, hi = rows(20, 20, 20)
        total = single(a, b, warp.SQUARED, lo, hi)
        assert single(a, b, warp.SQUARED, lo, hi, limit=total) == total
        assert single(a, b, warp.SQUARED, lo, hi, limit=0.99 * total) in (total, np.inf)
    assert single(a, b + 100.0, warp.SQUARED, lo, hi, limit=1.0) == np.inf


def test_lanes_of_unequal_length_are_read_at_their_ends(rng):
    lengths = rng.integers(1, 15, warp.LANES)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    x, a = rng.normal(size=(offsets[-1], 2)), rng.normal(size=(9, 2))
    out, one, every = np.zeros((1, warp.LANES)), np.array([0]), np.arange(warp.LANES)
    warp.pair_block(a, np.array([0, 9]), one, x, offsets, every, warp.SQUARED, warp.NO_BAND, 0.0, False, out)
    for k in range(warp.LANES):
        b = x[offsets[k] : offsets[k + 1]]
        assert out[0, k] == single(a, b, warp.SQUARED, *rows(9, len(b), 99))


def test_envelope(rng):
    x, (lo, hi) = rng.normal(size=(2, 15, 2)), rows(15, 15, 3)
    low, high = np.empty((2, 2, 15, 2))
    flat = [y.reshape(30, 2) for y in (x, low, high)]
    warp.envelope(flat[0], np.array([0, 15, 30]), lo, hi, flat[1], flat[2])
    for s in range(2):
        for i in range(15):
            assert (low[s, i] == x[s, lo[i] : hi[i]].min(axis=0)).all()
            assert (high[s, i] == x[s, lo[i] : hi[i]].max(axis=0)).all()
