"""Elliptical laws against the laws that they contain, quadrature, draws and a general optimiser."""

import numpy as np
import pytest
from scipy import optimize, stats

import likely as lk

S2 = np.array([[2.0, 0.6], [0.6, 1.0]])
NAMED = [("gaussian", None), ("t", 5.0), ("laplace", None), ("power", 0.7), ("power", 2.5), ("logistic", None)]


def test_named_profiles_are_known_laws():
    x = np.random.default_rng(0).normal(size=(50, 2)) * 3
    plain = lk.Gaussian([1.0, 0.0], S2).log_prob(x)
    assert np.allclose(lk.Elliptical("gaussian", [1.0, 0.0], S2).log_prob(x), plain)
    assert np.allclose(lk.Elliptical("power", [1.0, 0.0], S2, 1.0).log_prob(x), plain)
    heavy = lk.StudentT([1.0, 0.0], S2, 3.0).log_prob(x)
    assert np.allclose(lk.Elliptical("t", [1.0, 0.0], S2, 3.0).log_prob(x), heavy)
    z = x[:, :1]
    assert np.allclose(lk.Elliptical("laplace", [1.0], 4.0).log_prob(z)[:, None], stats.laplace(1.0, 2.0).logpdf(z))
    assert np.allclose(lk.Elliptical("logistic", [1.0], 4.0).log_prob(z)[:, None], stats.logistic(1.0, 2.0).logpdf(z))
    ball = lk.Elliptical("uniform", [0.0, 0.0, 0.0], 4.0)
    assert ball.log_prob([[0.0, 0.0, 1.9], [0.0, 0.0, 2.1]]).tolist() == [-np.log(4 / 3 * np.pi * 8), -np.inf]


@pytest.mark.parametrize(("profile", "shape"), NAMED)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_quadrature_finds_the_same_normaliser(profile, shape, d):
    named = lk.Elliptical(profile, np.zeros(d), 1.0, shape)
    own = lk.Elliptical(lambda q: named._radial.log_f(q, float(named.shape), d), np.zeros(d), 1.0)
    assert own.log_prob(np.ones((1, d))) == pytest.approx(named.log_prob(np.ones((1, d))), abs=1e-9)


@pytest.mark.parametrize(("profile", "shape"), [*NAMED, ("uniform", None), (lambda q: -(q**2), None)])
def test_draws_have_the_covariance_and_the_radii(profile, shape):
    law = lk.Elliptical(profile, [1.0, -1.0], S2, shape)
    x = law.sample(100_000, np.random.default_rng(1))
    assert np.allclose(np.cov(x.T), law.covariance, rtol=0.1)
    r = np.sqrt(lk.Gaussian([1.0, -1.0], S2).squared_distance(x))
    q = np.quantile(r, 0.7)
    grid = np.linspace(0, q, 4001)
    line = np.array([1.0, -1.0]) + grid[:, None] * np.linalg.cholesky(S2)[:, 0]
    inside = np.trapezoid(2 * np.pi * grid * np.exp(law.log_prob(line)), grid) * np.sqrt(np.linalg.det(S2))
    assert inside == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(("profile", "shape"), [("t", 5.0), ("power", 0.7), ("power", 3.0), ("logistic", None)])
def test_learning_finds_the_summit(profile, shape):
    x = lk.Elliptical(profile, [1.0, -1.0], S2, shape).sample(300, np.random.default_rng(2))
    model = lk.Elliptical.fit(x, profile=profile, shape=shape)

    def loss(p):
        root = np.array([[np.exp(p[2]), 0.0], [p[3], np.exp(p[4])]])
        return -float(lk.Elliptical(profile, p[:2], root @ root.T, shape).log_prob(x).sum())

    options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}
    best = optimize.minimize(loss, [1.0, -1.0, 0.3, 0.4, 0.0], method="Nelder-Mead", options=options)
    assert model.log_prob(x).sum() >= -best.fun - 1e-7
    assert model.objective(model.collect(x)) == pytest.approx(model.log_prob(x).sum(), rel=1e-12)


def test_a_function_cannot_be_saved_and_says_so(tmp_path):
    with pytest.raises(lk.LikelyError):
        lk.save(lk.Elliptical(lambda q: -q, [0.0], 1.0), tmp_path / "law.likely")


def test_errors():
    with pytest.raises(lk.DomainError, match="profile"):
        lk.Elliptical("round", [0.0])
    with pytest.raises(lk.DomainError, match="finite integral"):
        lk.Elliptical(lambda q: 0.0 * q, [0.0, 0.0]).log_prob([[0.0, 0.0]])
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.Elliptical("laplace", [0.0]).log_prob([[0.0], [np.nan]])
    with pytest.raises(lk.DomainError, match="not learnt"):
        lk.Elliptical.fit(np.eye(3), profile="uniform")
    with pytest.raises(lk.DomainError, match="marginals"):
        lk.Elliptical("laplace", [0.0, 0.0]).marginal([0])
    with pytest.raises(lk.DomainError, match="positive definite"):
        lk.Elliptical("laplace", [0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_make_no_difference(scale):
    x = lk.Elliptical("logistic", [1.0, -1.0], S2).sample(60, np.random.default_rng(3))
    plain, moved = (lk.EllipticalDensity("logistic").fit(z) for z in (x, x * scale))
    assert np.allclose(moved.scale_ / scale**2, plain.scale_, rtol=1e-6)
    unlike = lk.EllipticalDensity("power").fit(x * [scale, 1.0])
    assert np.isfinite(unlike.score(x * [scale, 1.0]))
