"""Loops of k-means against NumPy; `./run test` runs this file once more with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import numpy as np
import pytest

from likely.cluster.kmeans._loops import nearest_centers as loops

NONE, NO_BOUNDS = np.empty(0), np.empty(0, np.float32)


def fixed(a):
    """Read-only, as the library hands rows over: the compiled signatures are then the same."""
    view = a.view()
    view.setflags(write=False)
    return view


def tables(c, dtype, has_missing, variance):
    slope = np.full(len(c), 0.5) if variance is None else 0.5 / variance
    price = np.zeros(len(c)) if variance is None else 0.5 * np.log(variance)
    size = slope[:, None] * c * c
    parts = [2 * slope[:, None] * c]
    parts += [-size - price[:, None]] if has_missing else []
    parts += [] if variance is None else [-slope[:, None]]
    half = np.zeros(len(c)) if has_missing else size.sum(axis=1) + c.shape[1] * price
    coef = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return slope, price, coef.astype(dtype), half.astype(dtype), 2 * (coef.shape[1] + 8) * np.finfo(dtype).eps


def assigned(x, c, labels, *, w=NONE, has_missing=False, variance=None, dtype=np.float32, bounds=None, moves=None):
    k, d = c.shape
    slope, price, coef, half, noise = tables(c, dtype, has_missing, variance)
    upper, lower = bounds or (NO_BOUNDS, NO_BOUNDS)
    out = np.zeros((k, d)), np.zeros((k, d)), np.zeros(k), np.zeros(4)
    loops.assign(
        fixed(x), fixed(w), 1.0, np.zeros(d), fixed(c), slope, price, coef, half, has_missing,
        variance is not None, noise,
        labels, upper, lower, *(moves or (np.zeros(k),) * 3), *out,
    )  # fmt: skip
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_assignment_is_the_plain_formula(rng, dtype, has_missing, own):
    x, c = rng.normal(size=(40, 3)), rng.normal(size=(4, 3))
    x[3] = x[4] = (c[0] + c[1]) / 2
    x = np.where(rng.random(x.shape) < 0.3, np.nan, x) if has_missing else x
    w, variance = rng.random(40), rng.random(4) + 0.5 if own else None
    labels = np.full(40, -1, np.int32)
    sums, seen, counts, facts = assigned(x, c, labels, w=w, has_missing=has_missing, variance=variance, dtype=dtype)
    cost = np.nansum((x[:, None] - c) ** 2, axis=2)
    if own:
        cost = cost / (2 * variance) + 0.5 * np.log(variance) * (~np.isnan(x)).sum(axis=1)[:, None]
    np.testing.assert_array_equal(labels, cost.argmin(axis=1))
    for q in range(4):
        mine = labels == q
        np.testing.assert_allclose(sums[q], np.nansum(w[mine, None] * x[mine], axis=0), atol=1e-12)
        np.testing.assert_allclose(counts[q], w[mine].sum(), atol=1e-12)
        if has_missing:
            np.testing.assert_allclose(seen[q], w[mine] @ ~np.isnan(x[mine]), atol=1e-12)
    assert facts[0] == facts[2] == 40
    assert facts[3] == pytest.approx(np.nansum(w[:, None] * x**2))


def test_bounds_hold_and_rows_that_cannot_change_are_skipped(rng):
    x = np.concatenate([rng.normal(0, 0.1, (20, 2)), rng.normal(9, 0.1, (20, 2))])
    c = np.array([[0.0, 0.0], [9.0, 9.0]])
    labels, bounds = np.full(40, -1, np.int32), (np.full(40, np.inf, np.float32), np.zeros(40, np.float32))
    assigned(x, c, labels, bounds=bounds)
    apart = np.sqrt(((x[:, None] - c) ** 2).sum(axis=2))
    assert (bounds[0] >= apart.min(axis=1)).all() and (bounds[1] <= apart.max(axis=1)).all()
    step = np.full(2, 0.5)
    moved = c + 0.3
    *_, facts = assigned(x, moved, labels, bounds=bounds, moves=(step, step, np.zeros(2)))
    assert facts[2] == 0
    apart = np.sqrt(((x[:, None] - moved) ** 2).sum(axis=2))
    assert (bounds[0] >= apart.min(axis=1)).all() and (bounds[1] <= apart.max(axis=1)).all()


def test_moments_and_costs_about_centers(rng):
    x, c, w = rng.normal(size=(30, 2)), rng.normal(size=(3, 2)), rng.random(30)
    x[4, 1] = np.nan
    labels = rng.integers(0, 3, 30).astype(np.int32)
    sums, squares, seen, counts = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3)
    loops.moments_about(fixed(x), fixed(w), 2.0, fixed(c), labels, sums, squares, seen, counts)
    z, out = 2 * (x - c[labels]), np.empty(30)
    for q in range(3):
        mine = labels == q
        np.testing.assert_allclose(sums[q], np.nansum(w[mine, None] * z[mine], axis=0))
        np.testing.assert_allclose(squares[q], np.nansum(w[mine, None] * z[mine] ** 2, axis=0))
        np.testing.assert_allclose(seen[q], w[mine] @ ~np.isnan(z[mine]))
    loops.costs(fixed(x), 2.0, fixed(c), np.ones(3), np.full(3, 0.5), labels, out)
    np.testing.assert_allclose(out, np.nansum(z**2, axis=1) + 0.5 * (~np.isnan(z)).sum(axis=1))


def test_a_look_finds_range_missing_values_and_infinities():
    x = np.array([[1.0, np.nan], [3.0, -2.0], [np.inf, 5.0]])
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    assert loops.look(fixed(x), low, high) == (1, 2)
    assert (low.tolist(), high.tolist()) == ([1.0, -2.0], [3.0, 5.0])
