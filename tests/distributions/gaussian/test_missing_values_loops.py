"""Compiled loops against NumPy twins; `./run test` runs this file once more with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import numpy as np
import pytest

from likely.distributions.gaussian._loops import missing_values
from likely.distributions.gaussian.missing_patterns import Patterns, observed


def problem(seed):
    """Rows sorted by pattern, and K Gaussians."""
    rng = np.random.default_rng(seed)
    n, d, K = int(rng.integers(1, 25)), int(rng.integers(1, 6)), int(rng.integers(1, 5))
    a = rng.standard_normal((K, d, d + 2))
    x = rng.standard_normal((n, d)) * 2
    x[rng.random(x.shape) < 0.4] = np.nan
    p = Patterns.of(observed(x))
    return x[p.order], p, rng.standard_normal((K, d)), a @ np.swapaxes(a, 1, 2), rng


def marginal(row, mean, covariance):
    """Distance and log-determinant of what a row shows."""
    o = np.flatnonzero(~np.isnan(row))
    z, S = row[o] - mean[o], covariance[np.ix_(o, o)]
    return (float(z @ np.linalg.solve(S, z)), float(np.linalg.slogdet(S)[1])) if len(o) else (0.0, 0.0)


def last(a):
    return np.ascontiguousarray(np.moveaxis(a, 0, -1))


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_by_covariance(seed):
    x, p, mean, S, _ = problem(seed)
    u = np.where(np.isnan(x), 0.0, x)
    q, logdet = np.empty((len(x), len(mean))), np.empty((len(x), len(mean)))
    missing_values.by_covariance(u, p.seen, p.starts, last(mean), last(S), q, logdet)
    want = np.array([[marginal(row, m, s) for m, s in zip(mean, S, strict=True)] for row in x])
    np.testing.assert_allclose(q, want[..., 0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(logdet, want[..., 1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_by_precision(seed):
    x, p, mean, S, _ = problem(seed)
    u = np.where(np.isnan(x), 0.0, x)
    precision = np.linalg.inv(S)
    z = u[:, None] - mean
    q = np.einsum("nki,kij,nkj->nk", z, precision, z)  # of the rows with 0 in their gaps, as the loop expects
    logdet = np.empty_like(q)
    pulled, base = last(np.einsum("kij,kj->ki", precision, mean)), np.linalg.slogdet(S)[1]
    missing_values.by_precision(u, p.seen, p.starts, last(precision), pulled, base, q, logdet)
    want = np.array([[marginal(row, m, s) for m, s in zip(mean, S, strict=True)] for row in x])
    np.testing.assert_allclose(q, want[..., 0], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(logdet, want[..., 1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_fill(seed):
    x, p, mean, S, rng = problem(seed)
    mean, S, w = mean[0], S[0], rng.random(len(x))
    filled = x.copy()
    spread, determinant, entries = missing_values.fill(filled, w, p.seen, p.starts, mean, np.linalg.inv(S))
    total, logs, count = np.zeros_like(S), 0.0, 0.0
    for row, got, weight in zip(x, filled, w, strict=True):
        m, o = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
        gain = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]) if len(o) else np.zeros((len(m), 0))
        np.testing.assert_allclose(got[m], mean[m] + gain @ (row[o] - mean[o]), rtol=1e-9, atol=1e-9)
        assert np.array_equal(got[o], row[o])
        rest = S[np.ix_(m, m)] - gain @ S[np.ix_(o, m)]
        total[np.ix_(m, m)] += weight * rest
        logs -= weight * np.linalg.slogdet(rest)[1] if len(m) else 0.0
        count += weight * len(m)
    np.testing.assert_allclose(spread, total, rtol=1e-9, atol=1e-9)
    assert determinant == pytest.approx(logs, rel=1e-9, abs=1e-9) and entries == pytest.approx(count, rel=1e-13)


@pytest.mark.parametrize("K", [1, 3])
def test_factor(K, rng):
    a = rng.standard_normal((K, 4, 6))
    S = a @ np.swapaxes(a, 1, 2)
    work = last(np.tril(S)).copy()
    inverse = np.empty((4, K))
    missing_values._factor(work, inverse, 4, K)
    np.testing.assert_allclose(inverse, 1 / work[np.arange(4), np.arange(4)], rtol=1e-15)
    np.testing.assert_allclose(np.tril(np.moveaxis(work, -1, 0)), np.linalg.cholesky(S), rtol=1e-12, atol=1e-12)


def test_a_leading_block_leaves_the_rest_alone(rng):
    a = rng.standard_normal((5, 5, 1))
    a[:3, :3, 0] = a[:3, :3, 0] @ a[:3, :3, 0].T + np.eye(3)
    before = a.copy()
    missing_values._factor(a, np.empty((len(a), 1)), 3, 1)
    assert np.array_equal(a[3:], before[3:]) and np.array_equal(a[:, 3:], before[:, 3:])
