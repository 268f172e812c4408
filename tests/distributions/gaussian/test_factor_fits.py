"""Eigenvectors stand upright, and Newton's method climbs with the right slope to where scikit-learn ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.decomposition import FactorAnalysis

from likely.distributions.gaussian import factor_fits
from likely.numerics.eigenvectors import with_canonical_signs


@pytest.mark.slow
@pytest.mark.parametrize(("d", "q"), [(3, 1), (10, 10), (100, 5), (100, 60), (5, 0)])
def test_leading_eigenvectors(rng, d, q):
    a = rng.normal(size=(d, d))
    a = a @ a.T
    values, vectors = factor_fits.leading(a, q)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:q], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-9 * np.abs(a).max() * d)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(q)] > 0).all()


def test_signs_do_not_hang_on_rounding():
    almost = np.array([[-0.5, 0.5], [0.5 + 1e-13, -0.5 - 1e-13]])
    np.testing.assert_array_equal(np.sign(with_canonical_signs(almost)), [[1, 1], [-1, -1]])


def test_slope_and_bend_are_derivatives(rng):
    x = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 7)) + rng.normal(size=(200, 7)) * rng.uniform(0.3, 1, 7)
    r = np.corrcoef(x.T)
    at = np.log(rng.uniform(0.2, 0.8, 7))
    derivatives = factor_fits._loss_and_derivatives
    _, gradient, hessian = derivatives(r, 2, at)
    np.testing.assert_allclose(approx_fprime(at, lambda t: derivatives(r, 2, t)[0], 1e-6), gradient, atol=1e-5)
    numeric = [approx_fprime(at, lambda t, i=i: derivatives(r, 2, t)[1][i], 1e-6) for i in range(7)]
    np.testing.assert_allclose(numeric, hessian, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("d", "q", "n"), [(5, 1, 50), (7, 2, 200), (20, 4, 300)])
def test_as_likely_as_what_scikit_learn_finds(rng, d, q, n):
    x = rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5, d)
    s = np.cov(x.T, bias=True)
    f = factor_fits.factor_analysis(s, q, 1e-9 * np.diag(s))
    peer = FactorAnalysis(q, tol=1e-10, max_iter=3000, svd_method="lapack").fit(x).score(x) * n
    assert log_likelihood(f, s, n) >= peer - 1e-6


def log_likelihood(f, s, n):
    c = f.loadings @ f.loadings.T + np.diag(f.noise)
    return -0.5 * n * (len(s) * np.log(2 * np.pi) + np.linalg.slogdet(c)[1] + np.trace(np.linalg.solve(c, s)))


def test_a_known_answer():
    """Covariance that has the form exactly: it comes back."""
    w, noise = np.array([[0.9], [0.8], [0.7], [-0.6]]), np.array([0.2, 0.3, 0.4, 0.5])
    f = factor_fits.factor_analysis(w @ w.T + np.diag(noise), 1, np.full(4, 1e-9))
    np.testing.assert_allclose(f.loadings, w, rtol=1e-9)
    np.testing.assert_allclose(f.noise, noise, rtol=1e-9)
    assert not f.at_floor.any()


def test_a_heywood_case_stops_at_the_floor():
    """A column that is the factor itself keeps the least noise, and the others are right."""
    w, noise = np.array([[1.0], [0.8], [0.7], [0.6]]), np.array([0.0, 0.3, 0.4, 0.5])
    f = factor_fits.factor_analysis(w @ w.T + np.diag(noise), 1, np.full(4, 1e-9))
    assert f.at_floor.tolist() == [True, False, False, False] and f.noise[0] == pytest.approx(1e-9)
    np.testing.assert_allclose(f.noise[1:], noise[1:], rtol=1e-6)


def test_from_a_start_it_ends_no_lower(rng):
    for _ in range(50):
        d, q = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        q = min(q, d)
        x = rng.normal(size=(30, d)) @ rng.normal(size=(d, d))
        s = np.cov(x.T, bias=True)
        start = np.diag(s) * rng.uniform(0.01, 1.0, d)
        f = factor_fits.factor_analysis(s, q, 1e-9 * np.diag(s), start)
        values, vectors = factor_fits.leading(s / np.sqrt(np.outer(start, start)), q)
        w = np.sqrt(start)[:, None] * vectors * np.sqrt(np.maximum(values - 1, 0))
        before = log_likelihood(factor_fits.Factors(w, start, np.zeros(d, bool)), s, 30)
        assert log_likelihood(f, s, 30) >= before - 1e-7


def test_one_noise_is_the_mean_of_what_is_left(rng):
    x = rng.normal(size=(100, 6)) * [5, 4, 1, 1, 1, 1]
    s = np.cov(x.T, bias=True)
    f = factor_fits.principal_factors(s, 2, 1e-9)
    values = np.linalg.eigvalsh(s)[::-1]
    assert f.noise == pytest.approx(values[2:].mean())
    np.testing.assert_allclose(np.sort((f.loadings**2).sum(axis=0))[::-1], values[:2] - float(f.noise))
    full = factor_fits.principal_factors(s, 6, 1e-9)
    np.testing.assert_allclose(full.loadings @ full.loadings.T + float(full.noise) * np.eye(6), s, atol=1e-10)


def test_a_step_of_em_keeps_its_bits_in_other_units(rng):
    x = rng.normal(size=(50, 4))
    cov, start = np.cov(x.T), rng.normal(size=(4, 2))
    loadings, noise = factor_fits.em_step(cov, start, 0.7)
    for power in (-440.0, -3.0, 440.0):
        unit = 2.0**power
        far, left = factor_fits.em_step(cov * unit * unit, start * unit, 0.7 * unit * unit)
        np.testing.assert_array_equal(far / unit, loadings)
        assert left / unit / unit == noise
