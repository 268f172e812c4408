"""Laplace approximation: exact for Gaussians, close for other unimodal densities, errors without a mode."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.special import betaln, expit, gammaln, log_expit

import likely as lk


def gaussian(d, seed=0):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 3, d)
    B = rng.normal(size=(d, d))
    return lk.Gaussian(3 * size * rng.normal(size=d), (B @ B.T + 0.1 * np.eye(d)) * np.outer(size, size))


@pytest.mark.parametrize("d", [1, 2, 5, 20, 50])
def test_gaussians_are_found_exactly(d):
    distribution = gaussian(d)
    found = lk.inference.laplace_approximation(distribution.log_prob, np.zeros(d))
    deviation = np.sqrt(distribution.variance)
    assert found.converged
    assert np.abs((found.mode - distribution.mean) / deviation).max() < 1e-6
    assert found.log_evidence == pytest.approx(0.0, abs=1e-6)
    assert float(lk.kl_divergence(distribution, found.distribution).value) < 1e-6
    assert np.allclose(found.precision @ found.distribution.covariance_matrix, np.eye(d), atol=1e-5)


def test_functions_of_rows_and_of_one_point_agree():
    distribution = gaussian(3)
    P = np.linalg.inv(distribution.covariance_matrix)
    for f in (
        lambda z: -0.5 * float((z - distribution.mean) @ P @ (z - distribution.mean)),
        lambda z: -0.5 * np.einsum("...i,ij,...j", z - distribution.mean, P, z - distribution.mean),
        lambda z: np.array([-0.5 * (z - distribution.mean) @ P @ (z - distribution.mean)]) if z.ndim == 1 else 1 / 0,
    ):
        assert np.allclose(lk.inference.laplace_approximation(f, np.zeros(3)).mode, distribution.mean, rtol=1e-6)
    pair = lk.inference.laplace_approximation(
        lambda z: -(z[0] ** 2) - (z[1] - 1) ** 2, [3.0, 3.0]
    )  # would take two rows for one point
    assert pair.mode == pytest.approx([0.0, 1.0], abs=1e-6)


def test_given_gradient_and_hessian_give_the_same():
    def f(z):
        return -np.log(np.cosh(z[..., 0] - 1.0)) - 0.5 * z[..., 1] ** 2 - 0.1 * z[..., 0] ** 2 * z[..., 1] ** 2

    plain = lk.inference.laplace_approximation(f, [0.0, 0.5])

    def gradient(z):
        return np.array([-np.tanh(z[0] - 1) - 0.2 * z[0] * z[1] ** 2, -z[1] - 0.2 * z[0] ** 2 * z[1]])

    def hessian(z):
        cross = -0.4 * z[0] * z[1]
        return np.array([[-(1 / np.cosh(z[0] - 1) ** 2) - 0.2 * z[1] ** 2, cross], [cross, -1 - 0.2 * z[0] ** 2]])

    for given in (
        lk.inference.laplace_approximation(f, [0.0, 0.5], gradient=gradient),
        lk.inference.laplace_approximation(f, [0.0, 0.5], gradient=gradient, hessian=hessian),
    ):
        assert given.mode == pytest.approx(plain.mode, abs=1e-6)
        assert given.precision == pytest.approx(plain.precision, abs=1e-5)
        assert given.log_evidence == pytest.approx(plain.log_evidence, abs=1e-5)


def test_the_sign_of_the_errata():
    """A = −∇∇ log f (Herbst 4.4 prints it without the sign)."""
    found = lk.inference.laplace_approximation(lambda z: -2.0 * z[..., 0] ** 2, [1.0])
    assert found.precision[0, 0] == pytest.approx(4.0)


def test_gamma_and_beta_against_their_exact_integrals():
    """Stirling's formula is Laplace's approximation of Γ(a + 1), whose next term is 1/(12a)."""
    for a in (3.0, 30.0, 300.0):
        found = lk.inference.laplace_approximation(lambda z, a=a: a * np.log(z[..., 0]) - z[..., 0], [1.0])
        assert found.mode == pytest.approx([a], rel=1e-6)
        assert gammaln(a + 1) - found.log_evidence == pytest.approx(1 / (12 * a), rel=0.05)

    def f(z):
        return 30 * np.log(z[..., 0]) + 50 * np.log1p(-z[..., 0])

    found = lk.inference.laplace_approximation(f, [0.9])
    assert found.mode == pytest.approx([30 / 80], abs=1e-6)
    assert found.log_evidence == pytest.approx(betaln(31, 51), abs=0.01)
    assert found.deviation == pytest.approx([math.sqrt(0.375 * 0.625 / 80)], rel=1e-5)


def test_a_prior_and_data():
    x = np.random.default_rng(0).poisson(4.0, (50, 1))
    prior = lk.Gamma(2.0, 0.5)
    stats = lk.Poisson(1.0).collect(x)

    def posterior(z):  # in log-rates, which are nearer to a Gaussian
        rate = np.exp(z[..., 0])
        return np.array([lk.Poisson(r).log_prob(x).sum() for r in np.atleast_1d(rate)]) + prior.log_prob(
            np.atleast_1d(rate)[:, None]
        ) + np.atleast_1d(z[..., 0])  # fmt: skip

    found = lk.inference.laplace_approximation(posterior, [0.0])
    assert found.log_evidence == pytest.approx(float(prior.log_evidence(stats)), abs=2e-3)


@pytest.mark.slow
def test_logistic_regression_against_a_grid():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(60), rng.normal(size=60)])
    t = rng.random(60) < expit(X @ [0.5, 1.5])

    def f(w):
        a = np.atleast_2d(w) @ X.T
        return (
            (log_expit(np.where(t, a, -a))).sum(axis=1)
            - 0.5 * (np.atleast_2d(w) ** 2).sum(axis=1)
            - math.log(2 * math.pi)
        )

    found = lk.inference.laplace_approximation(f, [0.0, 0.0])
    w = np.linspace(-4, 6, 401)
    grid = np.stack(np.meshgrid(w, w, indexing="ij"), axis=-1).reshape(-1, 2)
    exact = np.log(np.exp(f(grid)).sum() * (w[1] - w[0]) ** 2)
    assert found.log_evidence == pytest.approx(exact, abs=0.05)
    assert np.abs(found.gradient).max() < 1e-4
    p = np.exp(f(grid) - f(grid).max())
    assert found.deviation == pytest.approx(np.sqrt((p @ grid**2) / p.sum() - ((p @ grid) / p.sum()) ** 2), rel=0.1)


@pytest.mark.parametrize(
    ("f", "start", "match"),
    [
        (lambda z: 3 * np.log(z[..., 0]) - z[..., 0], [-1.0], "finite at x0"),
        (lambda z: -np.inf * np.ones(z.shape[:-1]), [0.0], "impossible"),
        (lambda z: -np.exp(-z[..., 0]), [0.0], "must have a maximum"),
        (lambda z: z[..., 0], [0.0], "must have a maximum"),
        (lambda z: -(z[..., 0] ** 2), [0.5, 0.5], "positive definite"),
        (lambda z: -((z[..., 0] ** 2 - 1) ** 2), [0.0], "positive definite"),
        (lambda z: -z[0] if z[0] >= 0 else -np.inf, [1.0], "gradient|about its mode"),
        (lambda z: np.full(4, z[0]), [0.0], "one number"),
        (lambda z: z[..., 0], [[0.0]], "one point"),
        (lambda z: z[..., 0], [np.nan], "finite"),
    ],
)
def test_what_is_no_peak_is_refused(f, start, match):
    with pytest.raises(lk.LikelyError, match=match):
        lk.inference.laplace_approximation(f, start)


@pytest.mark.parametrize("f", [lambda z: -np.abs(z[..., 0]), lambda z: -(z[..., 0] ** 4)])
def test_peaks_that_are_no_parabola_say_so(f):
    with pytest.warns(lk.FitWarning, match="should converge"):
        found = lk.inference.laplace_approximation(f, [1.0])
    assert not found.converged and "NOT converged" in repr(found)


def test_hard_climbs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        banana = lk.inference.laplace_approximation(
            lambda z: -100 * (z[1] - z[0] ** 2) ** 2 - (1 - z[0]) ** 2, [-1.2, 1.0]
        )
        far = lk.inference.laplace_approximation(lk.StudentT([5.0], [[1.0]], 1.0).log_prob, [1000.0])
        tiny = lk.inference.laplace_approximation(lk.Gaussian([1e8], [[1e-4]]).log_prob, [1e8 + 1])
    assert banana.mode == pytest.approx([1.0, 1.0], abs=1e-5)
    assert np.allclose(np.linalg.inv(banana.precision), np.linalg.inv([[802.0, -400.0], [-400.0, 200.0]]), rtol=1e-3)
    assert far.mode == pytest.approx([5.0], abs=1e-5)
    assert tiny.mode == pytest.approx([1e8], abs=1e-6)


def test_rounding_is_no_valley_and_a_text_no_function():
    for offset in (1e10, 1e12, -1e14):
        with pytest.raises(lk.DomainError, match="subtract a constant"):
            lk.inference.laplace_approximation(lambda z, c=offset: c - 0.5 * ((z - 1.0) ** 2).sum(axis=-1), [0.0])
    with pytest.raises(lk.DomainError, match="function"):
        lk.inference.laplace_approximation("a", [0.0])


def test_a_function_of_rows_may_give_a_bare_number_for_one():
    stats = pytest.importorskip("scipy.stats")
    found = lk.inference.laplace_approximation(stats.multivariate_normal([1, 2], np.diag([4, 9])).logpdf, [0.0, 0.0])
    assert found.mode == pytest.approx([1.0, 2.0], abs=1e-5) and found.deviation == pytest.approx([2.0, 3.0], rel=1e-5)
    assert found.log_evidence == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(lk.ShapeError, match="however many"):
        lk.inference.laplace_approximation(lambda z: -(z**2).sum(axis=1) if len(z) == 3 else np.zeros(7), [1.0])


# ------------------------------------------------------------- evidence of models


def test_the_evidence_of_a_linear_regression_is_exact(rng):
    X, noise = rng.standard_normal((30, 3)), 0.25
    y = X @ [1.0, -2.0, 0.0] + 0.5 * rng.standard_normal(30)
    found = lk.inference.laplace_approximation(
        lambda w: -0.5 * (((y - w @ X.T) ** 2).sum(axis=-1) / noise + 30 * np.log(2 * np.pi * noise)), np.zeros(3),
        log_prior=lambda w: -0.5 * ((w**2).sum(axis=-1) / 4.0 + 3 * np.log(2 * np.pi * 4.0)),
    )  # fmt: skip
    basis = lk.basis.Identity(constant=False)
    exact = lk.BayesianLinearRegression(basis, lk.Gaussian(np.zeros(3), 4.0), noise_variance=noise).fit(X, y)
    assert found.log_evidence == pytest.approx(exact.log_evidence_, abs=1e-6)
    wide = -0.5 * np.linalg.slogdet(np.eye(3) + 4.0 * X.T @ X / noise)[1] - 0.5 * (found.mode @ found.mode) / 4.0
    assert found.log_occam_factor == pytest.approx(wide, abs=1e-6)


@pytest.mark.parametrize(("n", "error"), [(20, 0.02), (2000, 2e-4)])
def test_the_evidence_nears_that_of_a_conjugate_prior(rng, n, error):
    """Poisson counts under a gamma prior, in the logarithm of the rate; BIC differs by a constant."""
    x, prior = rng.poisson(4.0, (n, 1)).astype(float), lk.Gamma(2.0, 0.5)
    exact = float(np.sum(prior.log_evidence(lk.Poisson([4.0]).collect(x))))
    found = lk.inference.laplace_approximation(
        lambda z: float(lk.Poisson(np.exp(z)).log_prob(x).sum()), [1.0],
        log_prior=lambda z: float(prior.log_prob(np.exp(z)[None])[0] + z[0]),
    )  # fmt: skip
    assert found.log_evidence == pytest.approx(exact, abs=error)
    assert found.log_occam_factor < 0 and abs(found.bic_log_evidence(n) - exact) < 3.0


def test_the_evidence_of_a_t_distribution_is_that_of_quadrature(rng):
    x = lk.StudentT([1.0], [[4.0]], 5.0).sample(60, rng)

    def likelihood(z):
        return float(lk.StudentT([z[0]], [[np.exp(2 * z[1])]], 5.0).log_prob(x).sum())

    def prior(z):
        return float(-0.5 * (z[0] ** 2 / 100 + z[1] ** 2 / 4) - np.log(2 * np.pi * 20.0))

    found = lk.inference.laplace_approximation(likelihood, [0.0, 0.0], log_prior=prior)
    offsets = np.linspace(-7, 7, 57)
    sd = np.sqrt(np.diagonal(found.distribution.covariance_matrix))
    grid = np.array(
        [[likelihood(found.mode + sd * [a, b]) + prior(found.mode + sd * [a, b]) for a in offsets] for b in offsets]
    )
    step = offsets[1] - offsets[0]
    exact = np.log(np.exp(grid - grid.max()).sum()) + grid.max() + np.log(step**2 * sd.prod())
    assert found.log_evidence == pytest.approx(exact, abs=0.02)


def test_an_occam_factor_needs_a_prior():
    found = lk.inference.laplace_approximation(lambda z: -0.5 * (z**2).sum(axis=-1), [1.0])
    with pytest.raises(lk.DomainError, match="likelihood and prior must be told apart, got one log_density"):
        _ = found.log_occam_factor
    with pytest.raises(lk.DomainError, match="log_prior must be a function of a point"):
        lk.inference.laplace_approximation(lambda z: -0.5 * (z**2).sum(axis=-1), [1.0], log_prior=1.0)
