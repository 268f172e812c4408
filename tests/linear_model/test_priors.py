from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

import likely as lk
from likely import DomainError, ShapeError
from likely.basis import Identity, Polynomial
from likely.linear_model import GaussianRegression
from likely.linear_model.priors import penalized_posterior, weak_regression_prior
from likely.priors import CoefficientsGivenNoise, MatrixNormalInverseWishart, NormalGamma, NormalInverseGamma


def line(rng, n=12):
    x = rng.uniform(-1, 1, (n, 1))
    return x, -0.3 + 0.5 * x[:, 0] + 0.2 * rng.standard_normal(n)


def test_the_line_of_the_notes():
    """Herbst 3.2: one datum (0.5, −0.05), α = 2, β = 25."""
    prior = CoefficientsGivenNoise([0.0, 0.0], 2.0, 1 / 25)
    post = prior.update(prior.point().collect([-0.05], [[0.5]]))
    np.testing.assert_allclose(post.mean, [-0.0375940, -0.0187970], atol=5e-8)
    np.testing.assert_allclose(np.sqrt(np.diagonal(post.covariance)), [0.352222, 0.637193], atol=5e-7)


def test_evidence_is_dense_algebra(rng):
    x, y = line(rng)
    prior = CoefficientsGivenNoise([0.2, -0.1], [[2.0, 0.3], [0.3, 1.0]], 0.04)
    phi = Identity().design(x)
    covariance = 0.04 * np.eye(12) + phi @ prior.covariance @ phi.T
    stats = prior.point().collect(y, x)
    assert prior.log_evidence(stats) == pytest.approx(multivariate_normal(phi @ prior.mean, covariance).logpdf(y))
    wishart = MatrixNormalInverseWishart([0.2, -0.1], [[2.0, 0.3], [0.3, 1.0]], 1.3, 5.0)
    shape = 1.3 / 5.0 * (np.eye(12) + phi @ prior.covariance @ phi.T)
    wanted = multivariate_t(phi @ prior.mean, shape, 5.0).logpdf(y)
    assert wishart.log_evidence(stats) == pytest.approx(wanted)
    assert wishart.predictive().given(x, joint=True).log_prob(y[None])[0] == pytest.approx(wanted)
    assert prior.predictive().given(x, joint=True).log_prob(y[None])[0] == pytest.approx(prior.log_evidence(stats))


@pytest.mark.parametrize(
    "prior", [CoefficientsGivenNoise([0.2, -0.1], 2.0, 0.04), MatrixNormalInverseWishart([0.2, -0.1], 2.0, 0.1, 4.0)]
)
def test_sequential_is_batch_and_evidence_a_chain(rng, prior):
    x, y = line(rng)
    model, total, belief = prior.point(), 0.0, prior
    for i in range(12):
        total += float(belief.predictive().log_prob(y[i : i + 1], x[i : i + 1])[0])
        belief = belief.update(model.collect(y[i : i + 1], x[i : i + 1]))
    batch = prior.update(model.collect(y, x))
    np.testing.assert_allclose(belief.mean, batch.mean, rtol=1e-12)
    np.testing.assert_allclose(belief.precision, batch.precision, rtol=1e-12)
    assert prior.log_evidence(model.collect(y, x)) == pytest.approx(total, abs=1e-11)


def test_the_predictive_never_falls_below_the_noise_and_narrows(rng):
    """Herbst 3.2.2: N = 1, 2, 4, 24 data."""
    x, y = line(rng, 24)
    prior, at = CoefficientsGivenNoise(np.zeros(5), 2.0, 0.04, Polynomial(4)), np.linspace(-1, 1, 21)[:, None]
    last = np.inf
    for n in (1, 2, 4, 24):
        variance = prior.update(prior.point().collect(y[:n], x[:n])).predictive().given(at).variance
        assert (variance > 0.04).all() and variance.mean() < last
        last = variance.mean()


def test_normal_gamma_is_the_same_prior(rng):
    x, y = line(rng)
    model = GaussianRegression([0.0, 0.0], 1.0)
    stats = model.collect(y, x)
    a = MatrixNormalInverseWishart.of(NormalGamma([0.0, 0.1], [1.0, 2.0], 1.5, 0.7), Identity())
    b = MatrixNormalInverseWishart.of(NormalInverseGamma([0.0, 0.1], [1.0, 2.0], 1.4, 3.0, "spherical"), Identity())
    c = MatrixNormalInverseWishart([[0.0, 0.1]], np.diag([1.0, 2.0]), 1.4, 3.0)
    values = [p.log_evidence(stats) for p in (a, b, c)]
    assert values[0] == pytest.approx(values[2], abs=1e-12) and values[1] == pytest.approx(values[2], abs=1e-12)
    with pytest.raises(DomainError, match="one noise precision"):
        MatrixNormalInverseWishart.of(NormalGamma([0.0, 0.1], 1.0, [1.0, 2.0], 0.7), Identity())
    with pytest.raises(DomainError, match="spherical"):
        MatrixNormalInverseWishart.of(NormalInverseGamma([0.0, 0.1], 1.0, 1.0, 3.0), Identity())


def test_a_penalized_posterior_far_from_the_origin(rng):
    """The root of the precision keeps digits that the precision itself has lost."""
    x = rng.standard_normal((50, 1))
    y = 2 * x[:, 0] + 0.1 * rng.standard_normal(50)
    model, far = GaussianRegression([0.0, 0.0], 1.0), 2.0**27
    near = penalized_posterior(model.collect(y, x), np.array([0.0, 1.0]), 100.0, Identity())
    moved = penalized_posterior(model.collect(y, x + far), np.array([0.0, 1.0]), 100.0, Identity())
    assert moved.mean[1] == pytest.approx(near.mean[1], rel=1e-7)
    at = np.array([[0.3], [1.2]])
    a, b = near.predictive().given(at), moved.predictive().given(at + far)
    np.testing.assert_allclose(a.variance, b.variance, rtol=1e-6)


def test_a_coefficient_without_relevance_is_zero(rng):
    x, y = line(rng)
    post = penalized_posterior(
        GaussianRegression([0.0, 0.0], 1.0).collect(y, x), np.array([0.0, np.inf]), 25.0, Identity()
    )
    assert post.mean[1] == 0 and post.mean[0] == pytest.approx(y.mean(), rel=1e-12)
    assert post.covariance[1, 1] < 1e-15


def test_weak_priors_leave_a_well_determined_fit(rng):
    x, y = line(rng, 500)
    blank = GaussianRegression.blank(y, x)
    stats = blank.collect(y, x)
    plain, weak = blank.refit(stats), blank.refit(stats, blank.weak_prior(stats))
    np.testing.assert_allclose(weak.coefficients, plain.coefficients, rtol=1e-4)
    np.testing.assert_allclose(weak.covariance, plain.covariance, rtol=0.03)
    assert blank.refit(stats, blank.weak_prior(stats)).objective(stats, blank.weak_prior(stats)) >= plain.objective(
        stats, blank.weak_prior(stats)
    )
    one = blank.collect(y[:1], x[:1])
    assert np.isfinite(blank.refit(one, weak_regression_prior(blank, one)).log_prob(y, x)).all()


def test_a_tied_stack_has_one_noise(rng):
    x, labels = rng.standard_normal((300, 1)), np.repeat([0, 1], 150)
    y = np.where(labels, 3 * x[:, 0], -x[:, 0]) + 0.5 * rng.standard_normal(300)
    tied = GaussianRegression([[[0.0, 1.0]], [[0.0, -1.0]]], 1.0)
    stats = tied.collect(y, x, labels=labels)
    prior = tied.weak_prior(stats)
    fitted = tied.refit(stats, prior)
    assert fitted.covariance.shape == (1, 1) and fitted.covariance[0, 0] == pytest.approx(0.25, rel=0.2)
    best = fitted.objective(stats, prior)
    for size in (0.01, 0.1):
        for _ in range(10):
            moved = fitted.replace(
                coefficients=fitted.coefficients + size * rng.standard_normal((2, 1, 2)),
                covariance=fitted.covariance * np.exp(size * rng.standard_normal()),
            )
            assert moved.objective(stats, prior) < best


def test_bad_input_is_refused(rng):
    prior = CoefficientsGivenNoise([0.0, 0.0], 2.0, 0.04)
    with pytest.raises(ShapeError, match="RegressionStats"):
        prior.update(lk.Gaussian([0.0], 1.0).collect([[1.0]]))
    with pytest.raises(ShapeError, match="2 basis functions"):
        prior.update(GaussianRegression([0.0, 0.0, 0.0], 1.0).collect([1.0], [[1.0, 2.0]]))
    with pytest.raises(DomainError, match="noise_variance must be positive"):
        CoefficientsGivenNoise([0.0], 1.0, 0.0)
    with pytest.raises(DomainError, match="positive definite"):
        CoefficientsGivenNoise([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], 1.0)
    with pytest.raises(ShapeError, match="diagonal"):
        CoefficientsGivenNoise([0.0, 0.0], np.eye(3), 1.0)
    with pytest.raises(DomainError, match="dof must be above"):
        MatrixNormalInverseWishart(np.zeros((2, 2)), 1.0, 1.0, 0.5)
    with pytest.raises(DomainError, match="dof above"):
        MatrixNormalInverseWishart([0.0], 1.0, 1.0, 1.5).point("mean")
    two = GaussianRegression(np.zeros((2, 2)), np.eye(2))
    y = np.array([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(DomainError, match="complete rows"):
        MatrixNormalInverseWishart(np.zeros((2, 2)), 1.0, 1.0, 3.0).update(two.collect(y, [[1.0], [2.0]]))
    with pytest.raises(DomainError, match="joint predictive"):
        MatrixNormalInverseWishart(np.zeros((2, 2)), 1.0, 1.0, 3.0).predictive().given([[1.0]], joint=True)
