"""Elliptical distributions against the distributions that they contain, quadrature, draws and a general optimizer."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import likely as lk

S2 = np.array([[2.0, 0.6], [0.6, 1.0]])
NAMED = [("gaussian", None), ("t", 5.0), ("laplace", None), ("power", 0.7), ("power", 2.5), ("logistic", None)]


def test_named_profiles_are_known_distributions():
    x = np.random.default_rng(0).normal(size=(50, 2)) * 3
    plain = lk.Gaussian([1.0, 0.0], S2).log_prob(x)
    assert np.allclose(lk.distributions.Elliptical("gaussian", [1.0, 0.0], S2).log_prob(x), plain)
    assert np.allclose(lk.distributions.Elliptical("power", [1.0, 0.0], S2, 1.0).log_prob(x), plain)
    heavy = lk.StudentT([1.0, 0.0], S2, 3.0).log_prob(x)
    assert np.allclose(lk.distributions.Elliptical("t", [1.0, 0.0], S2, 3.0).log_prob(x), heavy)
    z = x[:, :1]
    assert np.allclose(
        lk.distributions.Elliptical("laplace", [1.0], 4.0).log_prob(z)[:, None], stats.laplace(1.0, 2.0).logpdf(z)
    )
    assert np.allclose(
        lk.distributions.Elliptical("logistic", [1.0], 4.0).log_prob(z)[:, None], stats.logistic(1.0, 2.0).logpdf(z)
    )
    ball = lk.distributions.Elliptical("uniform", [0.0, 0.0, 0.0], 4.0)
    assert ball.log_prob([[0.0, 0.0, 1.9], [0.0, 0.0, 2.1]]).tolist() == [-np.log(4 / 3 * np.pi * 8), -np.inf]


@pytest.mark.parametrize(("profile", "shape"), NAMED)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_quadrature_finds_the_same_normalizer(profile, shape, d):
    named = lk.distributions.Elliptical(profile, np.zeros(d), 1.0, shape)
    own = lk.distributions.Elliptical(lambda q: named._radial.log_f(q, float(named.shape), d), np.zeros(d), 1.0)
    assert own.log_prob(np.ones((1, d))) == pytest.approx(named.log_prob(np.ones((1, d))), abs=1e-9)


@pytest.mark.parametrize(("profile", "shape"), [*NAMED, ("uniform", None), (lambda q: -(q**2), None)])
def test_draws_have_the_covariance_and_the_radii(profile, shape):
    distribution = lk.distributions.Elliptical(profile, [1.0, -1.0], S2, shape)
    x = distribution.sample(100_000, np.random.default_rng(1))
    assert np.allclose(np.cov(x.T), distribution.covariance, rtol=0.1)
    r = np.sqrt(lk.Gaussian([1.0, -1.0], S2).squared_distance(x))
    q = np.quantile(r, 0.7)
    grid = np.linspace(0, q, 4001)
    line = np.array([1.0, -1.0]) + grid[:, None] * np.linalg.cholesky(S2)[:, 0]
    inside = np.trapezoid(2 * np.pi * grid * np.exp(distribution.log_prob(line)), grid) * np.sqrt(np.linalg.det(S2))
    assert inside == pytest.approx(0.7, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "shape"), [("t", 5.0), ("power", 0.7), ("power", 3.0), ("logistic", None)])
def test_learning_finds_the_summit(profile, shape):
    x = lk.distributions.Elliptical(profile, [1.0, -1.0], S2, shape).sample(300, np.random.default_rng(2))
    model = lk.distributions.Elliptical.fit(x, profile=profile, shape=shape)

    def loss(p):
        root = np.array([[np.exp(p[2]), 0.0], [p[3], np.exp(p[4])]])
        return -float(lk.distributions.Elliptical(profile, p[:2], root @ root.T, shape).log_prob(x).sum())

    options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}
    best = optimize.minimize(loss, [1.0, -1.0, 0.3, 0.4, 0.0], method="Nelder-Mead", options=options)
    assert model.log_prob(x).sum() >= -best.fun - 1e-7
    assert model.objective(model.collect(x)) == pytest.approx(model.log_prob(x).sum(), rel=1e-12)


def test_a_function_cannot_be_saved_and_says_so(tmp_path):
    with pytest.raises(lk.LikelyError):
        lk.save(lk.distributions.Elliptical(lambda q: -q, [0.0], 1.0), tmp_path / "distribution.likely")


def test_errors():
    with pytest.raises(lk.DomainError, match="profile"):
        lk.distributions.Elliptical("round", [0.0])
    with pytest.raises(lk.DomainError, match="finite integral"):
        lk.distributions.Elliptical(lambda q: 0.0 * q, [0.0, 0.0]).log_prob([[0.0, 0.0]])
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.distributions.Elliptical("laplace", [0.0]).log_prob([[0.0], [np.nan]])
    with pytest.raises(lk.DomainError, match="cannot be fitted"):
        lk.distributions.Elliptical.fit(np.eye(3), profile="uniform")
    with pytest.raises(lk.DomainError, match="marginals"):
        lk.distributions.Elliptical("laplace", [0.0, 0.0]).marginal([0])
    with pytest.raises(lk.DomainError, match="positive definite"):
        lk.distributions.Elliptical("laplace", [0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_make_no_difference(scale):
    x = lk.distributions.Elliptical("logistic", [1.0, -1.0], S2).sample(60, np.random.default_rng(3))
    plain, moved = (lk.distributions.EllipticalDensity("logistic").fit(z) for z in (x, x * scale))
    assert np.allclose(moved.scale_ / scale**2, plain.scale_, rtol=1e-6)
    unlike = lk.distributions.EllipticalDensity("power").fit(x * [scale, 1.0])
    assert np.isfinite(unlike.score(x * [scale, 1.0]))


@pytest.mark.parametrize(("profile", "shape"), [*NAMED, ("uniform", None)])
@pytest.mark.parametrize("d", [1, 4])
def test_entropy_is_an_integral_and_no_draw(profile, shape, d):
    distribution = lk.distributions.Elliptical(profile, np.zeros(d), 2.0, shape)
    own = lk.distributions.Elliptical(
        lambda q: distribution._radial.log_f(q, float(distribution.shape), d), np.zeros(d), 2.0
    )
    if profile != "uniform":  # whose edge no adaptive rule likes
        assert own.entropy() == pytest.approx(distribution.entropy(), abs=1e-8)
    draws = -distribution.log_prob(distribution.sample(40_000, np.random.default_rng(4)))
    assert abs(distribution.entropy() - draws.mean()) <= 5 * draws.std() / 200 + 1e-12


def test_entropy_of_known_distributions():
    assert lk.distributions.Elliptical("t", [0.0, 0.0], S2, 5.0).entropy() == pytest.approx(
        lk.StudentT([0.0, 0.0], S2, 5.0).entropy()
    )
    assert lk.distributions.Elliptical("gaussian", [0.0, 0.0], S2).entropy() == pytest.approx(
        lk.Gaussian([0, 0], S2).entropy()
    )
    assert lk.distributions.Elliptical("logistic", [0.0], 1.0).entropy() == pytest.approx(
        stats.logistic.entropy(), abs=1e-9
    )


@pytest.mark.parametrize(
    ("log_f", "words"),
    [
        (lambda q: q, "finite integral"),
        (lambda q: 0.0 * q, "finite integral"),
        (lambda q: q * np.nan, "NaN at q"),
        (lambda q: np.full(np.shape(q), "a"), "one number for each"),
        (lambda q: "a", "one number for each"),
        (lambda q: None, "one number for each"),
        (lambda q: -q[:2], "one number for each"),
    ],
)
def test_what_is_no_profile_is_refused_when_the_distribution_is_built(log_f, words):
    with pytest.raises(lk.DomainError, match=words):
        lk.distributions.Elliptical(log_f, [0.0], 1.0)


def test_a_t_profile_without_a_mean_has_none():
    with pytest.raises(lk.DomainError, match="shape above 1"):
        _ = lk.distributions.Elliptical("t", [0.0], 1.0, 1.0).mean
    assert lk.distributions.Elliptical("t", [0.0], 1.0, 1.5).mean.tolist() == [0.0]


@pytest.mark.parametrize("shape", [0.3, 0.8])
def test_a_cusped_density_integrates_to_one(shape):
    distribution = lk.distributions.Elliptical("power", [1.0], 2.0, shape)
    found = 2 * integrate.quad(lambda t: np.exp(distribution.log_prob([[1 + np.exp(t)]])[0] + t), -60, 12, limit=400)[0]
    assert found == pytest.approx(1.0, abs=1e-7)


def test_an_infinite_entry_is_named_as_ours():
    with pytest.raises(lk.DataError, match=r"^Elliptical: .* row 0, column 1"):
        lk.distributions.Elliptical.fit([[0.0, np.inf], [1.0, 2.0], [2.0, 0.0]])


@pytest.mark.parametrize(("profile", "shape"), [("power", 0.5), ("power", 2.0), ("t", 4.0)])
def test_a_fit_takes_few_looks(profile, shape, monkeypatch):
    x = np.random.default_rng(0).standard_t(4, (1000, 3))
    looks, plain = [], lk.distributions.Elliptical._step
    monkeypatch.setattr(lk.distributions.Elliptical, "_step", lambda self, *a: looks.append(1) or plain(self, *a))
    model = lk.distributions.Elliptical.fit(x, profile=profile, shape=shape)
    assert len(looks) < 30
    after = plain(model, x, np.ones(len(x)), None, model.collect(x))
    assert np.allclose(after.scale, model.scale, rtol=1e-7)
