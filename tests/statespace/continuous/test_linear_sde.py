"""Linear SDE: the Kalman filter against Gaussian-process regression at arbitrary times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from likely import LinearGaussian, LinearSDE, follow, step
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.statespace.continuous.timed_belief import TimedBelief
from likely.statespace.linear.sums_of_models import structural_components
from tests.statespace.dense import smoothed

RNG = np.random.default_rng(7)
TIMES = np.sort(RNG.random(40) * 10.0)
Y = np.sin(TIMES) + 0.3 * RNG.standard_normal(40)
AT = np.array([12.5, 0.35, 5.0, -1.5, TIMES[3], 7.77])


def matern(order, scale, variance, r):
    """The kernel, written out."""
    x = np.sqrt(2 * order) * np.abs(r) / scale
    return (
        variance
        * np.exp(-x)
        * {0.5: 1.0, 1.5: 1 + x, 2.5: 1 + x + x**2 / 3, 3.5: 1 + x + 2 * x**2 / 5 + x**3 / 15}[order]
    )


def gp(kernel, noise, times, y, at):
    """Means and variances of f at `at`, and log p(y), by the dense kernel matrix."""
    seen = ~np.isnan(y)
    t, y = times[seen], y[seen]
    V = kernel(t[:, None] - t) + noise * np.eye(len(t))
    K = kernel(at[:, None] - t)
    mean = K @ np.linalg.solve(V, y)
    variance = kernel(np.zeros(len(at))) - np.einsum("ij,ji->i", K, np.linalg.solve(V, K.T))
    return mean, variance, multivariate_normal(np.zeros(len(t)), V).logpdf(y)


# --------------------------------------------------------------- Gaussian processes


@pytest.mark.parametrize("order", [0.5, 1.5, 2.5, 3.5])
@pytest.mark.parametrize("scale", [0.02, 1.7, 300.0])
def test_a_matern_process_is_a_kalman_model(order, scale):
    model = LinearSDE.matern(order, scale, 2.0, observation_variance=0.09)
    mean, variance, log_prob = gp(lambda r: matern(order, scale, 2.0, r), 0.09, TIMES, Y, AT)
    found = model.smooth(Y, TIMES, at=AT)
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.covariance[:, 0, 0], variance, rtol=1e-9, atol=1e-9)
    assert found.log_prob == pytest.approx(log_prob, rel=1e-9, abs=1e-9)
    assert model.log_prob(Y, TIMES)[0] == pytest.approx(log_prob, rel=1e-9, abs=1e-9)


def test_matern_with_missing_values_and_repeated_times():
    times, y = TIMES.copy(), Y.copy()
    times[10:13] = times[10]
    y[20:25] = np.nan
    model = LinearSDE.matern(2.5, 1.0, 2.0, observation_variance=0.09)
    mean, variance, log_prob = gp(lambda r: matern(2.5, 1.0, 2.0, r), 0.09, times, y, times)
    found = model.smooth(y, times)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance[:, 0, 0], variance, atol=1e-9)
    assert found.log_prob == pytest.approx(log_prob, rel=1e-9)


def test_a_sum_of_processes_has_the_sum_of_kernels():
    slow, wave = LinearSDE.matern(2.5, 5.0, 2.0, 0.05), LinearSDE.cycle(1.3, 0.2, 0.4, observation_variance=0.04)

    def kernel(r):
        return matern(2.5, 5.0, 2.0, r) + np.exp(-0.2 * np.abs(r)) * np.cos(2 * np.pi * r / 1.3)

    mean, variance, log_prob = gp(kernel, 0.09, TIMES, Y, AT)
    found = (slow + wave).smooth(Y, TIMES, at=AT)
    parts = structural_components(found, slow, wave)
    np.testing.assert_allclose(parts[0].mean + parts[1].mean, mean[:, None], atol=1e-9)
    C = (slow + wave).observation
    np.testing.assert_allclose((C @ found.covariance @ C.T)[:, 0, 0], variance, atol=1e-9)
    assert found.log_prob == pytest.approx(log_prob, rel=1e-9)
    assert len(sum([slow, wave, slow]).drift) == 8


def test_a_matern_start_has_settled():
    rate, s = np.sqrt(5.0) / 0.7, 2.0
    k = rate**2 * s / 3
    want = [[s, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, rate**4 * s]]
    P = LinearSDE.matern(2.5, 0.7, s).initial_covariance
    np.testing.assert_allclose(P, want, rtol=1e-12, atol=1e-12 * rate**2)


def test_smoothing_spline():
    """Twice integrated noise with a diffuse start is the cubic smoothing spline (Wahba 1978)."""
    from scipy.interpolate import make_smoothing_spline

    model = LinearSDE.integrated(2, spectral_density=1.0 / 0.3, observation_variance=1.0)
    want = make_smoothing_spline(TIMES, Y, lam=0.3)
    inside = np.linspace(TIMES[0], TIMES[-1], 30)
    np.testing.assert_allclose(model.smooth(Y, TIMES, at=inside).mean[:, 0], want(inside), atol=1e-8)
    last, slope = want(TIMES[-1]), want.derivative()(TIMES[-1])
    beyond = model.smooth(Y, TIMES, at=[15.0]).mean[0, 0]
    assert beyond == pytest.approx(last + (15.0 - TIMES[-1]) * slope, abs=1e-8)


# ---------------------------------------------------------------- discrete time


def test_at_times():
    model = LinearSDE.constant_velocity(dim=2, spectral_density=0.3)
    discrete = model.at(TIMES)
    twin = LinearGaussian.constant_velocity(dim=2, dt=np.diff(TIMES), spectral_density=0.3)
    np.testing.assert_allclose(discrete.transition[1:], twin.transition[1:], rtol=1e-15)
    np.testing.assert_allclose(discrete.process_covariance[1:], twin.process_covariance[1:], rtol=1e-14)
    assert LinearSDE.constant_acceleration().at([0.0, 2.0]).transition[0].tolist() == [1.0, 2.0, 2.0]


def test_equal_steps_make_a_constant_model():
    model = LinearSDE.matern(1.5, 2.0)
    assert model.at(np.arange(1000) * 0.1).transition.ndim == 2
    assert model.at([0.0, 1.0, 3.0]).transition.shape == (3, 2, 2)
    assert model.at([3.0]).transition.shape == (2, 2)


def test_against_one_big_gaussian():
    F = np.array([[-0.3, 1.0, 0.0], [-1.0, -0.1, 0.2], [0.0, 0.0, 0.0]])
    C, R = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), np.array([[0.3, 0.1], [0.1, 0.2]])
    model = LinearSDE(drift=F, diffusion=np.diag([0.1, 0.2, 0.3]), observation=C, observation_covariance=R)
    y = np.cumsum(RNG.standard_normal((12, 2)), axis=0)
    y[3], y[6, 0] = np.nan, np.nan
    found, (mean, cov, log_prob) = model.smooth(y, TIMES[:12]), smoothed(model.at(TIMES[:12]), y)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance, cov, atol=1e-8)
    assert found.log_prob == pytest.approx(log_prob, rel=1e-9)


def test_many_series():
    model = LinearSDE.ornstein_uhlenbeck(0.5, 1.0, 0.2)
    ys, ts = [Y[:15], Y[15:40], Y[:1]], [TIMES[:15], TIMES[15:40], TIMES[:1]]
    many = model.smooth(ys, ts)
    assert isinstance(many.mean, Ragged)
    np.testing.assert_array_equal(many.log_prob, model.log_prob(ys, ts))
    for i in range(3):
        alone = model.smooth(ys[i], ts[i])
        np.testing.assert_allclose(many.mean[i], alone.mean, atol=1e-13)
        assert many.log_prob[i] == pytest.approx(alone.log_prob)
    between = model.smooth(ys, ts, at=[[0.5], [5.0, 6.0], []])
    assert between.mean.lengths.tolist() == [1, 2, 0]
    np.testing.assert_allclose(between.mean[1], model.smooth(ys[1], ts[1], at=[5.0, 6.0]).mean)
    np.testing.assert_array_equal(model.smooth(ys[1], ts[1], at=5.0).mean, between.mean[1][:1])
    shared = model.log_prob([Y, 2 * Y], TIMES)
    np.testing.assert_allclose(shared, [model.log_prob(Y, TIMES)[0], model.log_prob(2 * Y, TIMES)[0]])


def test_even_steps_and_many_series():
    model, t = LinearSDE.matern(1.5, 2.0, observation_variance=0.1), np.arange(20) * 0.1
    many = model.filter([Y[:20], Y[20:40]], [t, t + 3.0])
    np.testing.assert_allclose(many.mean[1], model.filter(Y[20:40], t).mean, atol=1e-10)


def test_forecast():
    model = LinearSDE.matern(1.5, 2.0, 1.5, observation_variance=0.1)
    at = np.array([10.5, 30.0])
    mean, variance, _ = gp(lambda r: matern(1.5, 2.0, 1.5, r), 0.1, TIMES, Y, at)
    found = model.forecast(Y, TIMES, at)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance[:, 0, 0], variance + 0.1, atol=1e-9)
    many = model.forecast([Y, Y[:20]], [TIMES, TIMES[:20]], at)
    np.testing.assert_allclose(many[0].mean, found.mean)
    np.testing.assert_allclose(many[1].states, model.forecast(Y[:20], TIMES[:20], at).states)
    with pytest.raises(DataError, match="before the last time"):
        model.forecast(Y, TIMES, [5.0])


def test_a_forecast_of_what_is_not_known():
    found = LinearSDE.constant_velocity(observation_variance=0.1).forecast([1.0], [0.0], [2.0])
    assert np.isinf(found.covariance[0, 0, 0])
    assert not np.isnan(found.state_covariance).any()


def test_before_the_first_time():
    """A start that is a distribution for all times can be asked about earlier ones; one that is not cannot."""
    both = LinearSDE.integrated(2, observation_variance=0.1) + LinearSDE.matern(0.5, 2.0, observation_variance=0.0)
    assert both.initial_is_time_invariant
    assert not LinearSDE.wiener(initial=(0.0, 1.0)).initial_is_time_invariant
    assert not (both + LinearSDE.wiener(initial=(0.0, 1.0))).initial_is_time_invariant
    assert LinearSDE.wiener(spectral_density=0.0, initial=(3.0, 1.0)).initial_is_time_invariant
    found = both.smooth(Y, TIMES, at=[TIMES[0] - 1.0, TIMES[0]])
    assert found.log_prob == pytest.approx(both.log_prob(Y, TIMES)[0], rel=1e-9)
    with pytest.raises(DomainError, match="times must not lie before the first one"):
        LinearSDE.wiener(initial=(0.0, 1.0)).smooth(Y, TIMES, at=[-3.0])


def test_sample_has_the_right_kernel():
    model = LinearSDE.matern(1.5, 2.0, 1.5, observation_variance=0.1)
    t = np.array([0.0, 0.3, 1.0, 4.0])
    draws = model.sample(40_000, np.random.default_rng(0), t)
    x = np.stack(list(draws[:]))[:, :, 0]
    want = matern(1.5, 2.0, 1.5, t[:, None] - t) + 0.1 * np.eye(4)
    np.testing.assert_allclose(np.cov(x.T), want, atol=0.04)


# -------------------------------------------------------------------------- live


@pytest.mark.parametrize(
    "model",
    [
        LinearSDE.matern(2.5, 1.0, observation_variance=0.1),
        LinearSDE.constant_velocity(spectral_density=0.5, observation_variance=0.1),
    ],
)
def test_followed_live(model):
    batch, news = model.filter(Y, TIMES), []
    for i, (belief, logp) in enumerate(follow(model, Y, inputs=TIMES)):
        news.append(logp)
        assert belief.time == TIMES[i]
        if i > 2:
            np.testing.assert_allclose(belief.mean, batch.mean[i], atol=1e-9)
            np.testing.assert_allclose(belief.covariance, batch.covariance[i], atol=1e-9)
    assert sum(news) == pytest.approx(batch.log_prob, rel=1e-9)


def test_a_belief_waits_for_a_time():
    model = LinearSDE.ornstein_uhlenbeck(1.0, 2.0, 0.1)
    assert model.initial_belief().time is None
    belief, _ = step(model, None, [1.0], 3.0)
    assert model.predict(belief) is belief
    later = model.predict(belief, 4.0)
    np.testing.assert_allclose(later.mean, belief.mean * np.exp(-1.0))
    assert later.sample(5, np.random.default_rng(0)).shape == (5, 1)
    assert later.log_prob([[0.0]]).shape == (1,)
    with pytest.raises(DataError, match="must not decrease"):
        step(model, later, [1.0], 3.5)
    with pytest.raises(DataError, match="an observation needs its time"):
        step(model, later, 3.5)
    again, logp = step(model, later, np.nan, 4.0)
    assert logp == 0.0
    np.testing.assert_allclose(again.mean, later.mean)


# --------------------------------------------------------------------- bad input

M = LinearSDE.matern(1.5)
BAD = [
    (lambda: M.filter([1.0, 2.0], [1.0, 0.5]), DataError, "0.5 after 1"),
    (lambda: M.filter([1.0, 2.0], [1.0, np.nan]), DataError, "row 1"),
    (lambda: M.filter([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, r"\[3\] for \[2\]"),
    (lambda: M.filter(np.array([[1.0, 2.0]]), [1.0]), ShapeError, "rows"),
    (lambda: M.filter([1.0, 2.0], np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")), DataError, "timedelta64"),
    (lambda: M.filter([1.0, 2.0], None), ShapeError, "NoneType"),
    (lambda: M.filter(np.zeros((0, 3, 1)), []), DataError, "at least one series"),
    (lambda: M.filter([1.0, 2.0], ["a", "b"]), DataError, "numbers"),
    (lambda: M.smooth([1.0, np.inf], [0.0, 1.0]), DataError, "finite"),
    (lambda: M.smooth([[1.0], [2.0]], [[0.0], [1.0]], at=[[1.0]]), ShapeError, "at must be"),
    (
        lambda: LinearSDE(drift=[[1.0, 2.0]], diffusion=[[1.0]], observation=[[1.0]], observation_covariance=[[1.0]]),
        ShapeError,
        "drift",
    ),
    (
        lambda: LinearSDE(drift=[[1.0]], diffusion=[[-1.0]], observation=[[1.0]], observation_covariance=[[1.0]]),
        DomainError,
        "diffusion",
    ),
    (
        lambda: LinearSDE(drift=[[5.0]], diffusion=[[1.0]], observation=[[1.0]], observation_covariance=[[1.0]]).at(
            [0.0, 1e3, 1e4]
        ),
        DomainError,
        "unstable",
    ),
    (lambda: TimedBelief(M.initial_belief().state, np.nan), DomainError, "finite"),
    (lambda: LinearSDE.matern(1.0), DomainError, "1/2, 3/2"),
    (lambda: LinearSDE.matern(1.5, length_scale=0.0), DomainError, "positive"),
    (lambda: LinearSDE.ornstein_uhlenbeck(-1.0), DomainError, "rate"),
    (lambda: LinearSDE.cycle(0.0), DomainError, "positive"),
    (lambda: M + LinearGaussian.local_level(), DomainError, "adds to another"),
    (lambda: M + LinearSDE.wiener(dim=2), ShapeError, "1 and 2"),
]


@pytest.mark.parametrize("ask, error, words", BAD)
def test_bad_input(ask, error, words):
    with pytest.raises(error, match=words):
        ask()
