"""Distributions of matrices against SciPy, mpmath and the distributions of numbers that they are in one dimension."""

import mpmath
import numpy as np
import pytest
from scipy import stats

import likely as lk

V = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])
DISTRIBUTIONS = [lk.distributions.Wishart, lk.distributions.InverseWishart]


def exact(distribution, nu, scale, x):
    """log p in 50 digits."""
    with mpmath.workdps(50):
        d, v = len(scale), mpmath.mpf(nu)
        S, X = mpmath.matrix(scale.tolist()), mpmath.matrix(x.tolist())
        gamma = mpmath.mpf(d * (d - 1)) / 4 * mpmath.log(mpmath.pi)
        gamma += sum(mpmath.loggamma((v - i) / 2) for i in range(d))
        if distribution is lk.distributions.Wishart:
            M = S**-1 * X
            out = (v - d - 1) / 2 * mpmath.log(mpmath.det(X)) - v / 2 * mpmath.log(mpmath.det(S))
        else:
            M = S * X**-1
            out = -(v + d + 1) / 2 * mpmath.log(mpmath.det(X)) + v / 2 * mpmath.log(mpmath.det(S))
        trace = sum(M[i, i] for i in range(d))
        return float(out - v * d / 2 * mpmath.log(2) - gamma - trace / 2)


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("nu", [2.5, 7.0, 300.0, 1e6])
def test_digits(distribution, nu):
    rng = np.random.default_rng(0)
    value = distribution(nu, V)
    x = value.sample(20, rng)
    x = np.concatenate([x, x * 3.0, x * 1e-3, x * 1e3])
    want = np.array([exact(distribution, nu, value.scale, one) for one in x])
    lost = 1e-15 * (nu + 8 + np.abs(want)) * np.linalg.cond(x)  # a determinant is no better known than its matrix
    assert (np.abs(value.log_prob(x) - want) <= lost + 2e-13 * max(1.0, nu / 1e4) * np.abs(want)).all()


@pytest.mark.parametrize(
    ("distribution", "peer"),
    [(lk.distributions.Wishart, stats.wishart), (lk.distributions.InverseWishart, stats.invwishart)],
)
def test_agree_with_scipy(distribution, peer):
    value = distribution(8.0, V)
    x = value.sample(50, np.random.default_rng(1))
    assert np.allclose(value.log_prob(x), peer(8.0, V).logpdf(x.transpose(1, 2, 0)), rtol=1e-12)
    assert np.allclose(value.mean, peer(8.0, V).mean()) and np.allclose(value.mode, peer(8.0, V).mode())
    assert np.allclose(value.variance, peer(8.0, V).var())
    assert np.array_equal(value.log_prob(x.reshape(50, 9)), value.log_prob(x))


def test_one_dimension_is_gamma_and_inverse_gamma():
    x = np.array([0.1, 1.0, 7.0])
    assert np.allclose(lk.distributions.Wishart(5.0, 2.0).log_prob(x), lk.Gamma(2.5, 0.25).log_prob(x))
    assert np.allclose(lk.distributions.InverseWishart(5.0, 2.0).log_prob(x), stats.invgamma(2.5, scale=1.0).logpdf(x))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_information_by_draws(distribution):
    a, b = distribution(9.0, V), distribution(12.0, 0.8 * V + 0.1 * np.eye(3))
    x = a.sample(40_000, np.random.default_rng(2))
    own, other = a.log_prob(x), b.log_prob(x)
    assert abs(-own.mean() - a.entropy()) < 5 * own.std() / 200
    assert abs((own - other).mean() - a.kl(b)) < 5 * (own - other).std() / 200
    assert a.kl(a) == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.slogdet(x)[1].mean() == pytest.approx(a.mean_logdet, abs=0.05)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_draws_have_the_mean_and_variance(distribution):
    value = distribution(11.0, V)
    x = value.sample(100_000, np.random.default_rng(3))
    deviation = np.sqrt(value.variance)
    assert (np.abs(x.mean(axis=0) - value.mean) < 5 * deviation / np.sqrt(len(x))).all()
    assert np.allclose(x.var(axis=0), value.variance, rtol=0.1)
    block = value.marginal([0, 2])
    assert np.allclose(x[:, [0, 2]][:, :, [0, 2]].mean(axis=0), block.mean, rtol=0.02)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_learning_finds_the_summit(distribution):
    x = distribution(9.0, V).sample(300, np.random.default_rng(4))
    model = distribution.fit(x)
    best = model.log_prob(x).sum()
    assert model.dof == pytest.approx(9.0, rel=0.2)
    rng = np.random.default_rng(5)
    for size in (1e-4, 1e-2):
        a = np.eye(3) + size * rng.standard_normal((3, 3))
        assert distribution(model.dof * (1 + size), a @ model.scale @ a.T).log_prob(x).sum() <= best + 1e-9 * abs(best)
    several = distribution.fit(np.concatenate([x, x[:50]]))
    weighted = distribution.fit(x, np.r_[np.full(50, 2.0), np.ones(250)])
    assert np.allclose(several.scale, weighted.scale) and several.dof == pytest.approx(float(weighted.dof))


def test_what_is_no_matrix():
    value = lk.distributions.Wishart(4.0, np.eye(2))
    assert value.log_prob([[[1.0, 2.0], [2.0, 1.0]]]) == -np.inf
    assert value.log_prob([np.full((2, 2), np.nan)]) == 0.0
    with pytest.raises(lk.DataError, match="symmetric"):
        value.log_prob([[[1.0, 0.2], [0.1, 1.0]]])
    with pytest.raises(lk.DataError, match=r"positive definite.*row 1"):
        value.collect([np.eye(2), [[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(lk.DataError, match="row 0, column 3"):
        value.log_prob([[[1.0, 0.0], [0.0, np.inf]]])
    with pytest.raises(lk.ShapeError):
        value.log_prob(np.ones((3, 5)))
    for bad in (
        lambda: lk.distributions.Wishart(0.9, np.eye(2)),
        lambda: lk.distributions.InverseWishart(3.0, [[1.0, 1.0], [1.0, 1.0]]),
    ):
        with pytest.raises(lk.DomainError):
            bad()


def test_moments_are_those_of_the_matrices():
    x = lk.distributions.Wishart(7.0, V).sample(60, np.random.default_rng(3))
    w = np.random.default_rng(4).integers(0, 3, 60).astype(float)
    distribution, copies = lk.distributions.Wishart.moments_fit(x, w), np.repeat(x, w.astype(int), axis=0)
    assert np.allclose(distribution.mean, copies.mean(axis=0))
    assert distribution.variance.sum() == pytest.approx(copies.var(axis=0).sum())
    assert lk.estimate(lk.distributions.Wishart, x, "moments").dof == pytest.approx(7.0, rel=0.3)
    with pytest.raises(lk.DataError, match="a larger variance"):
        lk.distributions.Wishart.moments_fit(np.array([1e-6] * 9 + [1.0])[:, None, None] * V)


def test_a_ratio_of_one_among_others_keeps_its_digits():
    """λ = 0.989 and 2.31 of columns that go together: the trace and the determinants would lose five bits each."""
    off = -0.009523850025288643
    distribution = lk.distributions.Wishart(
        170.47391980306278, [[0.015295572858639864, off], [off, 0.006148008633675269]]
    )
    x = [[[5.962655167629993, -3.7641588419821015], [-3.7641588419821015, 2.41337014612229]]]
    assert distribution.log_prob(x)[0] == pytest.approx(-33.681310325241292518, rel=3e-15)  # 50 digits
