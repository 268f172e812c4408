"""Where a textbook formula cancels, ours does not; and sizes that once were slow stay right."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk


@pytest.mark.parametrize("ratio", [1e-15, 1e-6, 1.0, 1e6, 1e15])
def test_product_commutes_at_any_ratio_of_spreads(ratio):
    a, b = lk.Gaussian([0.0, 1.0], ratio), lk.Gaussian([3.0, -1.0], [[2.0, 0.5], [0.5, 1.0]])
    for p, q in ((a.product(b), b.product(a)),):
        np.testing.assert_allclose(p.covariance, q.covariance, rtol=1e-9, atol=1e-12 * p.covariance.max())
        exact = np.linalg.inv(np.eye(2) / ratio + np.linalg.inv(b.covariance))
        np.testing.assert_allclose(p.covariance, exact, rtol=1e-9, atol=1e-12 * exact.max())


@pytest.mark.parametrize("vague", [1e-12, 1.0, 1e12, 1e18])
def test_the_posterior_of_a_mean_keeps_its_sign(vague):
    stats = lk.Gaussian([0.0], 1.0).collect(np.full((10, 1), 3.0))
    prior = lk.priors.MeanGivenCovariance(lk.Gaussian([0.0], vague), 1e-6)
    post = prior.update(stats)
    assert post.belief.covariance[0, 0] == pytest.approx(1 / (1 / vague + 10 / 1e-6), rel=1e-9)
    assert np.isfinite(prior.log_evidence(stats))


def test_conditioning_on_a_singular_block_does_not_depend_on_units():
    z = np.array([[1e8, 0], [1e8, 0], [0, 1e-8], [1e8, 1e-8], [0, 1.0]])
    given = lk.Gaussian(np.zeros(5), z @ z.T).condition({0: 0.0, 1: 0.0, 2: 1e-8})
    np.testing.assert_allclose(given.mean, [1e-8, 1.0], rtol=1e-6)


def test_weak_prior_of_unlike_members_is_pooled(rng):
    several = lk.distributions.Stack([lk.Gaussian([0.0, 0.0], np.eye(2))] * 3)
    labels = np.r_[0, np.ones(49, int)]  # one row, many rows, none
    stats = several.collect(rng.normal(size=(50, 2)), labels=labels)
    fitted = several.refit(stats, several.weak_prior(stats))
    assert all(np.linalg.eigvalsh(part.covariance)[0] > 0.1 for part in fitted.components)


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_weak_prior_of_a_tied_stack_leaves_its_covariance(kind, rng):
    X, labels = rng.normal(size=(500, 2)), np.arange(500) % 100
    stack = lk.Gaussian.blank(X, kind=kind, members=100, tied=True)
    stats = stack.collect(X, labels=labels)
    plain, weak = stack.refit(stats), stack.refit(stats, stack.weak_prior(stats))
    np.testing.assert_allclose(np.trace(weak.covariance_matrix[0]), np.trace(plain.covariance_matrix[0]), rtol=5e-3)


def test_a_known_covariance_keeps_the_models_kind(rng):
    X = rng.normal(size=(40, 2))
    for members in (None, 3):
        g = lk.Gaussian.blank(X, members=members)
        fitted = g.refit(g.collect(X), lk.priors.MeanGivenCovariance(lk.Gaussian([0.0, 0.0], 1.0), 2.0))
        assert fitted.kind == "full" and fitted.covariance.shape == g.covariance.shape


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_many_labels_equal_member_by_member(kind, rng):
    X, labels, w = rng.normal(size=(3000, 3)) + 1e6, rng.integers(-1, 40, 3000), rng.random(3000)
    stack = lk.Gaussian.blank(X, kind=kind, members=40)
    stats = stack.collect(X, w, labels=labels)
    for k in (0, 17, 39):
        one = lk.Gaussian.fit(X[labels == k], w[labels == k], kind=kind)
        np.testing.assert_allclose(stack.refit(stats).member(k).covariance, one.covariance, rtol=1e-9)


def test_many_members_with_one_spread_near_and_far(rng):
    spread = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.5]])
    x = rng.normal(size=(4, 3))
    x[2, 1], x[3] = np.nan, [np.nan, 0.5, np.nan]
    for far in (1.0, 1e5):
        stack = lk.Gaussian(far * rng.normal(size=(50, 3)), spread)
        each = np.stack([stack.member(k).log_prob(x) for k in range(50)], axis=1)
        np.testing.assert_allclose(stack.log_prob(x), each, rtol=1e-10, atol=1e-8)


def test_wide_stacks_go_by_factors(rng):
    d = 80
    a = rng.normal(size=(5, d, d))
    stack = lk.Gaussian(rng.normal(size=(5, d)), a @ np.swapaxes(a, 1, 2) / d + np.eye(d))
    x = rng.normal(size=(30, d))
    w = rng.random((30, 5))
    np.testing.assert_allclose(stack.log_prob(x)[:, 3], stack.member(3).log_prob(x), rtol=1e-12)
    np.testing.assert_allclose(
        stack.collect(x, w).member(2).scatter, stack.member(2).collect(x, w[:, 2]).scatter, atol=1e-9
    )


def test_statistics_can_be_summed(rng):
    g = lk.Gaussian([0.0], 1.0)
    parts = [g.collect(rng.normal(size=(5, 1))) for _ in range(3)]
    assert sum(parts).total_weight == 15
    with pytest.raises(TypeError):
        3 + parts[0]
