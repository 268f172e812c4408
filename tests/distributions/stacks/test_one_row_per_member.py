"""One row per member: the quick ways against `log_prob` and `sample`."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, ShapeError
from likely.distributions.stacks.one_row_per_member import (
    _slow_log_prob,
    colored,
    draw_each,
    log_prob_each,
    spread_factor,
)

K = 300
FLAT = np.outer([1.0, 2.0], [1.0, 2.0])


def spreads(d: int):
    rng = np.random.default_rng(d)
    A = rng.normal(size=(K, d, d + 2))
    full = A @ np.swapaxes(A, 1, 2)
    return {
        "full": (full, None), "shared full": (full[0], None), "diagonal": (full[:, 0] ** 2, "diagonal"),
        "shared diagonal": (np.diagonal(full[0]).copy(), None), "spherical": (full[:, 0, 0], "spherical"),
        "shared spherical": (0.3, None),
    }  # fmt: skip


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", spreads(1))
@pytest.mark.parametrize("make", [lk.Gaussian, lambda m, c, k: lk.StudentT(m, c, np.linspace(0.5, 9, K), k)])
def test_densities(make, kind, d):
    rng = np.random.default_rng(0)
    spread, name = spreads(d)[kind]
    mean, x = rng.normal(size=(K, d)), 3 * rng.normal(size=(K, d))
    distribution = make(mean, spread, name)
    for rows in (x, x[:1]):
        np.testing.assert_allclose(log_prob_each(distribution, rows), _slow_log_prob(distribution, rows), atol=1e-9)
    gap = x[:1].copy()
    gap[0, 0] = np.nan
    np.testing.assert_allclose(log_prob_each(distribution, gap), distribution.log_prob(gap)[0], atol=1e-9)


def test_independent_columns_and_other_distributions():
    rng = np.random.default_rng(1)
    distribution = lk.StudentT(
        rng.normal(size=(K, 2)), rng.random((K, 2)) + 0.1, rng.random((K, 2)) * 9 + 1, "independent"
    )
    x = rng.normal(size=(K, 2))
    np.testing.assert_allclose(log_prob_each(distribution, x), _slow_log_prob(distribution, x), atol=1e-10)
    far = np.full((1, 2), 1e200)
    np.testing.assert_allclose(log_prob_each(distribution, far), distribution.log_prob(far)[0])
    counts = lk.Poisson(rng.random((K, 2)) * 5)
    y = rng.integers(0, 7, (K, 2)).astype(float)
    want = [counts.member(k).log_prob(y[k : k + 1])[0] for k in range(K)]
    np.testing.assert_allclose(log_prob_each(counts, y), want)
    levels = lk.Categorical(rng.dirichlet(np.ones(3), K))
    codes = rng.integers(0, 3, K)
    np.testing.assert_allclose(log_prob_each(levels, codes), np.log(levels.probs[np.arange(K), codes]))


def test_singular_spreads():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=(50, 2))
    distribution = lk.Gaussian(mean, FLAT)
    on = draw_each(distribution, rng)
    np.testing.assert_allclose(log_prob_each(distribution, on), _slow_log_prob(distribution, on))
    off = on + [0.1, 0.0]
    assert np.isneginf(log_prob_each(distribution, off)).all()
    each = lk.Gaussian(mean, np.repeat(FLAT[None], 50, axis=0))
    x = draw_each(each, rng)
    np.testing.assert_allclose(log_prob_each(each, x), _slow_log_prob(each, x))
    fixed = lk.Gaussian(mean, [1.0, 0.0])
    x = draw_each(fixed, rng)
    np.testing.assert_array_equal(x[:, 1], mean[:, 1])
    np.testing.assert_allclose(log_prob_each(fixed, x), _slow_log_prob(fixed, x))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", spreads(1))
def test_draws(kind, d):
    spread, name = spreads(d)[kind]
    mean = np.random.default_rng(3).normal(size=(K, d))
    distribution = lk.Gaussian(mean, spread, name)
    factor = spread_factor(distribution)
    want = distribution.covariance_matrix
    np.testing.assert_allclose(np.broadcast_to(np.einsum("irk,jrk->kij", factor, factor), want.shape), want)
    noise = np.random.default_rng(4).standard_normal((K, d))
    np.testing.assert_array_equal(
        draw_each(distribution, np.random.default_rng(4)), colored(distribution, noise.copy())
    )
    moved = colored(distribution, noise.copy()) - mean
    np.testing.assert_allclose(moved, np.einsum("irk,kr->ki", np.broadcast_to(factor, (d, d, K)), noise))


def test_draws_of_levels():
    probs = np.repeat([[0.2, 0.0, 0.8], [1.0, 0.0, 0.0]], 20_000, axis=0)
    drawn = draw_each(lk.Categorical(probs, levels=[3, 5, 7]), np.random.default_rng(0))
    assert set(drawn[20_000:]) == {3} and set(drawn[:20_000]) == {3, 7}
    assert abs((drawn[:20_000] == 7).mean() - 0.8) < 0.015
    assert draw_each(lk.Poisson([[2.0], [0.0]]), np.random.default_rng(0)).shape == (2, 1)


def test_bad_rows():
    distribution = lk.Gaussian(np.zeros((4, 1)), 1.0)
    with pytest.raises(DataError, match="finite"):
        log_prob_each(distribution, np.array([[np.inf]]))
    with pytest.raises(ShapeError):
        log_prob_each(distribution, np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="one row per member"):
        log_prob_each(lk.Poisson(np.ones((4, 1))), np.zeros((3, 1)))
    with pytest.raises(ShapeError, match="one row per member"):
        log_prob_each(distribution, np.zeros((3, 1)))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_big_stacks_are_checked_as_small_ones_are(d):
    """The short look at a big stack accepts and refuses what the long look does."""
    rng = np.random.default_rng(d)
    A = rng.normal(size=(400, d, d + 1))
    full = A @ np.swapaxes(A, 1, 2)
    lk.Gaussian(np.zeros((400, d)), full)
    bad = full.copy()
    bad[7] *= -1
    with pytest.raises(lk.DomainError, match="negative"):
        lk.Gaussian(np.zeros((400, d)), bad)
    flat = full.copy()
    flat[3] = 0.0
    assert lk.Gaussian(np.zeros((400, d)), flat).covariance[3, 0, 0] == 0.0
    if d > 1:
        bad = full.copy()
        bad[5, 0, 1] += 0.1
        with pytest.raises(lk.DomainError, match="symmetric"):
            lk.Gaussian(np.zeros((400, d)), bad)
