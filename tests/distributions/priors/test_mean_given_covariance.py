"""A mean with known covariance: the worksheet, Ney's figure, and its errata."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely import DomainError, Gaussian, ShapeError
from likely.priors import MeanGivenCovariance

KNOWN = np.array([[1.0, 0.3], [0.3, 2.0]])


@pytest.mark.parametrize(
    ("n", "mean", "variance"), [(1, -1.6, 0.8), (4, -1.0, 0.5), (12, -0.5, 0.25), (100, -8 / 104, 4 / 104)]
)
def test_neys_figure(n, mean, variance):
    """Ney 3.8: μ₀ = −2, σ₀ = 1, σ = 2, sample mean 0: μ_N = −8/(4 + N), σ²_N = 4/(4 + N)."""
    prior = MeanGivenCovariance(Gaussian([-2.0], 1.0), 4.0)
    post = prior.update(Gaussian([0.0], 1.0).collect(np.zeros((n, 1))))
    assert post.belief.mean[0] == pytest.approx(mean, rel=1e-13)
    assert post.belief.covariance[0, 0] == pytest.approx(variance, rel=1e-13)


def test_the_worksheet(rng):
    """Worksheet 6: S = (Σ₀⁻¹ + N I)⁻¹, m = S Σ x; the predictive is N(m, I + S), not N(m, S)."""
    a = rng.standard_normal((3, 4))
    S0, x = a @ a.T, rng.standard_normal((7, 3)) + 1.0
    post = MeanGivenCovariance(Gaussian(np.zeros(3), S0), 1.0).update(Gaussian(np.zeros(3), 1.0).collect(x))
    S = np.linalg.inv(np.linalg.inv(S0) + 7 * np.eye(3))
    np.testing.assert_allclose(post.belief.covariance, S, rtol=1e-10)
    np.testing.assert_allclose(post.belief.mean, S @ x.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(post.predictive().covariance, np.eye(3) + S, rtol=1e-12)


def test_sequential_is_batch(rng):
    x, g = rng.standard_normal((9, 2)), Gaussian([0.0, 0.0], KNOWN)
    prior = belief = MeanGivenCovariance(Gaussian([1.0, 1.0], [[2.0, 0.0], [0.0, 0.5]]), KNOWN)
    for row in x:
        belief = belief.update(g.collect(row[None]))
    batch = prior.update(g.collect(x))
    np.testing.assert_allclose(belief.belief.mean, batch.belief.mean, rtol=1e-12)
    np.testing.assert_allclose(belief.belief.covariance, batch.belief.covariance, rtol=1e-12)


def test_the_evidence_is_one_large_gaussian(rng):
    """Rows with a common uncertain mean are jointly Gaussian: covariance Σ on the diagonal blocks, S everywhere."""
    x, g = rng.standard_normal((4, 2)), Gaussian([0.0, 0.0], KNOWN)
    S = np.array([[2.0, 0.4], [0.4, 0.5]])
    prior = MeanGivenCovariance(Gaussian([1.0, -1.0], S), KNOWN)
    joint = np.kron(np.eye(4), KNOWN) + np.kron(np.ones((4, 4)), S)
    want = scipy.stats.multivariate_normal(np.tile([1.0, -1.0], 4), joint).logpdf(x.ravel())
    assert prior.log_evidence(g.collect(x)) == pytest.approx(want, rel=1e-12)


def test_a_certain_direction_stays_certain():
    """The belief may be singular: what was known for sure does not move."""
    prior = MeanGivenCovariance(Gaussian([1.0, 2.0], [[1.0, 0.0], [0.0, 0.0]]), 1.0)
    post = prior.update(Gaussian([0.0, 0.0], 1.0).collect([[5.0, 5.0]]))
    assert post.belief.mean == pytest.approx([3.0, 2.0], rel=1e-15)
    assert post.belief.covariance == pytest.approx(np.array([[0.5, 0.0], [0.0, 0.0]]), rel=1e-15)
    want = scipy.stats.norm(1.0, np.sqrt(2)).logpdf(5.0) + scipy.stats.norm(2.0, 1.0).logpdf(5.0)
    assert prior.log_evidence(Gaussian([0.0, 0.0], 1.0).collect([[5.0, 5.0]])) == pytest.approx(want, rel=1e-12)


def test_missing_values_of_a_diagonal_distribution_count(rng):
    x = rng.standard_normal((12, 2))
    x[::3, 1] = np.nan
    prior = MeanGivenCovariance(Gaussian([0.0, 0.0], [1.0, 4.0]), [2.0, 3.0])
    stats = Gaussian([0.0, 0.0], [1.0, 1.0]).collect(x)
    post, total = prior.update(stats), 0.0
    for j, (s, v) in enumerate(((1.0, 2.0), (4.0, 3.0))):
        seen = x[~np.isnan(x[:, j]), j]
        one = MeanGivenCovariance(Gaussian([0.0], s), v)
        mine = Gaussian([0.0], 1.0).collect(seen)
        assert post.belief.mean[j] == pytest.approx(one.update(mine).belief.mean[0], rel=1e-12)
        total += one.log_evidence(mine)
    assert prior.log_evidence(stats) == pytest.approx(total, rel=1e-12)
    with pytest.raises(DomainError, match="missing values need a diagonal known covariance"):
        MeanGivenCovariance(Gaussian([0.0, 0.0], 1.0), KNOWN).update(stats)


def test_a_stack_of_beliefs(rng):
    x, labels = rng.standard_normal((30, 2)), np.arange(30) % 3
    beliefs = Gaussian(rng.standard_normal((3, 2)), np.stack([np.eye(2) * (k + 1) for k in range(3)]))
    stats = Gaussian(np.zeros((3, 2)), KNOWN).collect(x, labels=labels)
    prior = MeanGivenCovariance(beliefs, KNOWN)
    post = prior.update(stats)
    assert post.predictive().members == 3 and post.point().members == 3 and post.point().tied
    for k in range(3):
        one = MeanGivenCovariance(beliefs.member(k), KNOWN)
        mine = Gaussian([0.0, 0.0], KNOWN).collect(x[labels == k])
        np.testing.assert_allclose(post.belief.mean[k], one.update(mine).belief.mean, rtol=1e-12, atol=1e-14)
        assert prior.log_evidence(stats)[k] == pytest.approx(one.log_evidence(mine), rel=1e-11)


@pytest.mark.parametrize(("covariance", "kind"), [(2.0, "spherical"), ([1.0, 2.0], "diagonal"), (KNOWN, "full")])
def test_points_have_the_known_covariance(covariance, kind, rng):
    prior = MeanGivenCovariance(Gaussian([1.0, 2.0], 1.0), covariance)
    for g in (prior.point("mode"), prior.point("mean"), prior.point("median"), prior.draw(rng)):
        assert g.kind == kind and np.array_equal(g.covariance, covariance)


@pytest.mark.parametrize(
    ("belief", "covariance", "error"),
    [
        ("wide", 1.0, ShapeError),
        (Gaussian([0.0, 0.0], 1.0), np.eye(3), ShapeError),
        (Gaussian([0.0, 0.0], 1.0), -1.0, DomainError),
        (Gaussian([0.0, 0.0], 1.0), [[1.0, 2.0], [2.0, 1.0]], DomainError),
    ],
)
def test_what_is_no_such_distribution_is_refused(belief, covariance, error):
    with pytest.raises(error):
        MeanGivenCovariance(belief, covariance)


def test_other_statistics_are_refused():
    prior = MeanGivenCovariance(Gaussian([0.0, 0.0], 1.0), 1.0)
    with pytest.raises(ShapeError, match="statistics of 2 columns"):
        prior.update(Gaussian([0.0], 1.0).collect([[1.0]]))
    with pytest.raises(DomainError, match="complete rows"):
        prior.log_evidence(Gaussian([0.0, 0.0], KNOWN).collect([[1.0, np.nan], [1.0, 2.0]]))
