"""A t distribution learns: the summit is the likelihood's own, outliers do not move it, and hazards do not break it."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import digamma

import likely as lk
from likely.distributions.student_t.student_t_m_step import LARGEST_DOF

S2 = np.array([[2.0, 0.6], [0.6, 1.0]])


def rows(n=400, dof=3.0, seed=0):
    return lk.StudentT([1.0, -2.0], S2, dof).sample(n, np.random.default_rng(seed))


def summit(x, dof=None, weight=None):
    """The best log-likelihood that SciPy's optimizer finds for SciPy's density."""
    w = np.ones(len(x)) if weight is None else weight

    def loss(p):
        root = np.array([[np.exp(p[2]), 0.0], [p[3], np.exp(p[4])]])
        v = dof if dof else np.exp(p[5])
        return -float(w @ stats.multivariate_t(p[:2], root @ root.T, df=v).logpdf(x))

    start = np.r_[np.median(x, axis=0), 0.0, 0.0, 0.0, 1.0]
    best = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    return -best.fun


@pytest.mark.parametrize("dof", [None, 4.0])
def test_the_summit_is_that_of_a_general_optimizer(dof):
    x = rows()
    model = lk.StudentT.fit(x, dof=dof, stop=lk.StoppingRule(2000, 1e-13))
    assert model.log_prob(x).sum() == pytest.approx(summit(x, dof), abs=1e-7)
    assert dof is None or (model.dof == dof and model.fixed_dof)


def test_weights_are_repetitions():
    x, times = rows(200, seed=1), np.random.default_rng(2).integers(0, 4, 200)
    a = lk.StudentT.fit(x, times, stop=lk.StoppingRule(2000, 1e-13))
    b = lk.StudentT.fit(np.repeat(x, times, axis=0), stop=lk.StoppingRule(2000, 1e-13))
    assert np.allclose(a.scale, b.scale, rtol=1e-5) and a.dof == pytest.approx(b.dof, rel=1e-4)


def test_one_column_agrees_with_scipy():
    x = stats.t(3.5, 2.0, 0.7).rvs(500, random_state=3)
    v, center, deviation = stats.t.fit(x)
    model = lk.StudentT.fit(x[:, None], stop=lk.StoppingRule(3000, 1e-14))
    assert model.log_prob(x[:, None]).sum() >= stats.t(v, center, deviation).logpdf(x).sum() - 1e-8
    assert model.dof == pytest.approx(v, rel=1e-2) and model.center[0] == pytest.approx(center, abs=1e-3)


def test_a_fifth_of_outliers_moves_the_gaussian_and_not_the_t_distribution():
    rng = np.random.default_rng(4)
    x = rng.multivariate_normal([1.0, -2.0], S2, 500)
    x[:100] = rng.normal(60.0, 5.0, (100, 2))
    robust, plain = lk.StudentT.fit(x), lk.Gaussian.fit(x)
    assert np.abs(robust.center - [1.0, -2.0]).max() < 0.2 < 10 < np.abs(plain.mean - [1.0, -2.0]).min()
    assert np.trace(robust.scale) < 2 * np.trace(S2) < 100 < np.trace(plain.covariance)


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical", "independent"])
def test_missing_values_are_integrated_out(kind):
    x = rows(300, seed=5)
    x[np.random.default_rng(6).random(x.shape) < 0.25] = np.nan
    model = lk.StudentT.fit(x, kind=kind, stop=lk.StoppingRule(3000, 1e-12))
    best = model.log_prob(x).sum()
    rng = np.random.default_rng(7)
    for _ in range(40):
        near = lk.StudentT(
            model.center + 1e-3 * rng.standard_normal(2), model.scale * np.exp(1e-3 * rng.standard_normal()),
            model.dof * np.exp(1e-3 * rng.standard_normal(model.dof.shape)), kind,
        )  # fmt: skip
        assert near.log_prob(x).sum() <= best + 1e-7


@pytest.mark.some_cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_scales_and_offsets_make_no_difference(scale, offset):
    x = rows(100, seed=8)
    plain, moved = lk.StudentT.fit(x, prior="weak"), lk.StudentT.fit((x + offset) * scale, prior="weak")
    assert moved.dof == pytest.approx(plain.dof, rel=1e-4)
    assert np.allclose(moved.scale / scale**2, plain.scale, rtol=1e-4)


@pytest.mark.parametrize("prior", [None, "weak"])
def test_few_and_constant_rows_give_a_finite_distribution(prior):
    for x in ([[1.0, 2.0]], [[1.0, 2.0]] * 5, [[1.0, 0.0], [2.0, 0.0], [5.0, 0.0]], [[0.0, 0.0]] * 3):
        with np.testing.suppress_warnings() as quiet:
            quiet.filter(lk.FitWarning)
            model = lk.StudentT.fit(np.array(x), prior=prior)
        assert np.isfinite(model.log_prob(np.array(x))).all()


def test_tails_of_a_gaussian_go_to_the_cap():
    model = lk.StudentT.fit(np.random.default_rng(9).uniform(size=(300, 2)))
    assert model.dof == 1e6
    g = lk.Gaussian.fit(np.random.default_rng(9).uniform(size=(300, 2)))
    assert np.allclose(model.scale, g.covariance, rtol=1e-4)


def test_moments_give_dof_by_kurtosis():
    x = lk.StudentT([0.0, 0.0], S2, 12.0).sample(200_000, np.random.default_rng(10))
    assert lk.StudentT.moments_fit(x).dof == pytest.approx(12.0, rel=0.2)
    with pytest.raises(lk.DataError, match="complete"):
        lk.StudentT.moments_fit([[np.nan, 1.0], [1.0, 2.0]])


def test_a_tied_stack_is_refused():
    tied = lk.StudentT([[0.0, 0.0], [1.0, 1.0]], S2, [3.0, 4.0])
    with pytest.raises(lk.DomainError, match="one scale per member"):
        tied.refit(tied.collect(rows(10)))


@pytest.mark.parametrize("seed", range(3))
def test_degrees_of_freedom_are_the_best_to_six_digits(seed):
    x = lk.StudentT([0.0, 1.0], np.eye(2), 30.0).sample(400, np.random.default_rng(seed))
    model = lk.StudentT.fit(x)

    def profile(log_dof):
        fixed = lk.StudentT.fit(x, dof=float(np.exp(log_dof)))
        return float(fixed.log_prob(x).sum())

    if model.dof == LARGEST_DOF:
        assert model.log_prob(x).sum() >= max(profile(np.log(v)) for v in (10.0, 30.0, 100.0, 1e4))
        return
    assert float(lk.estimate(lk.StudentT, x).dof) == pytest.approx(float(model.dof), rel=1e-6)
    # the score of the profile changes its sign between a millionth below and a millionth above
    slopes = [_dof_score(lk.StudentT.fit(x, dof=float(model.dof) * f), x) for f in (1 - 1e-6, 1 + 1e-6)]
    assert slopes[0] > 0 > slopes[1]


def _dof_score(distribution, x):
    """Derivative of the log-likelihood in ν: at the best center and scale, that of the profile."""
    v, d = float(distribution.dof), distribution.dim
    q = distribution._shape.squared_distance(x)
    each = digamma((v + d) / 2) - digamma(v / 2) - np.log1p(q / v) - d / v + (v + d) * q / (v * (v + q))
    return float(0.5 * each.sum())


def test_tails_of_a_gaussian_are_reached_in_a_few_passes(monkeypatch):
    x = np.random.default_rng(2).normal(size=(200, 3))
    passes, plain = [], lk.StudentT.collect
    monkeypatch.setattr(lk.StudentT, "collect", lambda self, *a, **k: passes.append(1) or plain(self, *a, **k))
    assert lk.StudentT.fit(x).dof == LARGEST_DOF
    assert len(passes) < 60


@pytest.mark.parametrize("kind", ["full", "diagonal", "independent"])
def test_a_row_without_weight_is_not_there(kind):
    rng = np.random.default_rng(1)
    x, w = rng.standard_t(6, (300, 2)), (rng.random(300) < 0.5) * 1.0
    x[w == 0] *= 50
    one, other = lk.StudentT.fit(x, w, kind=kind), lk.StudentT.fit(x[w > 0], kind=kind)
    assert np.allclose(one.dof, other.dof, rtol=1e-7)
    assert np.allclose(one.scale, other.scale, rtol=1e-7)
    assert np.allclose(lk.estimate(lk.StudentT, x, weight=w).dof, lk.estimate(lk.StudentT, x[w > 0]).dof, rtol=1e-7)


@pytest.mark.parametrize(
    "learn",
    [
        lambda x, y: lk.StudentT.fit(x),
        lambda x, y: lk.StudentTDensity().fit(x),
        lambda x, y: lk.MixtureDensity(lk.StudentTDensity(), 2).fit(x),
        lambda x, y: lk.BayesClassifier(lk.StudentTDensity()).fit(x, y),
    ],
)
def test_infinity_is_named_by_its_own_row(learn):
    x = np.random.default_rng(0).normal(size=(40, 2))
    x[0, 1] = np.inf
    with pytest.raises(lk.DataError, match=r"^StudentT.*inf at row 0, column 1"):
        learn(x, np.arange(40) % 2)


@pytest.mark.slow
def test_many_rows_begin_with_some_of_them():
    x = lk.StudentT([1.0], [[4.0]], 5.0).sample(300_000, np.random.default_rng(2))
    model = lk.StudentT.fit(x)
    assert abs(_dof_score(model, x)) < 1e-4 * len(x) ** 0.5
    assert model.dof == pytest.approx(5.0, rel=0.05)
