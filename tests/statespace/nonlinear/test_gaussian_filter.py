"""Filters by Gaussian approximation: exact where the model is linear, consistent where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

import likely as lk
from likely.core.errors import DataError, DomainError, LikelyError, ShapeError
from likely.io.follow_stream import follow
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.gaussian_filter import turned
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.nonlinear.unscented_kalman_filter import CubatureKalmanFilter, UnscentedKalmanFilter

A = np.array([[0.9, 0.3, 0.0], [-0.2, 0.8, 0.1], [0.0, 0.1, 0.95]])
Q = np.array([[0.5, 0.1, 0.0], [0.1, 0.3, 0.05], [0.0, 0.05, 0.2]])
C = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -1.0]])
V = np.array([[0.4, 0.1], [0.1, 0.6]])
F, G = np.array([[0.5], [0.0], [1.0]]), np.array([[0.2], [-0.3]])
M0, P0 = np.array([1.0, -1.0, 0.5]), np.diag([2.0, 1.0, 0.5])

FILTERS = {
    "extended": lambda m, **o: ExtendedKalmanFilter(m, **o),
    "iterated": lambda m, **o: ExtendedKalmanFilter(m, iterations=5, **o),
    "unscented": lambda m, **o: UnscentedKalmanFilter(m, **o),
    "unscented, narrow": lambda m, **o: UnscentedKalmanFilter(m, alpha=1e-2, **o),
    "unscented, wide": lambda m, **o: UnscentedKalmanFilter(m, alpha=1.0, beta=0.0, kappa=1.0, **o),
    "cubature": lambda m, **o: CubatureKalmanFilter(m, **o),
    "cubature 5": lambda m, **o: CubatureKalmanFilter(m, 5, **o),
}
every = pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS.keys())


def linear(Q=Q, P0=P0, V=V):
    return StateSpace(
        lk.Gaussian(M0, P0),
        lambda x, t, u: lk.Gaussian(x @ A.T + F @ u, Q),
        lambda x, t, u: lk.Gaussian(x @ C.T + G @ u, V),
    )


def drawn(T, seed=0):
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((T, 2)), rng.standard_normal((T, 1))


def dense(y, u, Q=Q, P0=P0, V=V):
    """The joint Gaussian of all states, given what was seen in the first so many frames: mean, covariance, log p."""
    T, d, p = len(y), len(M0), C.shape[0]
    mean, cov = np.zeros((T, d)), np.zeros((T, d, T, d))
    mean[0], cov[0, :, 0] = M0, P0
    for t in range(1, T):
        mean[t] = A @ mean[t - 1] + F @ u[t]
        for s in range(t):
            cov[t, :, s] = A @ cov[t - 1, :, s]
            cov[s, :, t] = cov[t, :, s].T
        cov[t, :, t] = A @ cov[t - 1, :, t - 1] @ A.T + Q
    mean, cov = mean.ravel(), cov.reshape(T * d, T * d)
    H = np.kron(np.eye(T), C)
    z, S = H @ mean + (u @ G.T).ravel(), H @ cov @ H.T + np.kron(np.eye(T), V)

    def given(frames):
        o = np.flatnonzero(~np.isnan(y).ravel() & (np.arange(T * p) < frames * p))
        gain = np.linalg.solve(S[np.ix_(o, o)], H[o] @ cov).T
        m, c = mean + gain @ (y.ravel()[o] - z[o]), cov - gain @ H[o] @ cov
        blocks = np.array([c[d * t : d * t + d, d * t : d * t + d] for t in range(T)])
        if frames == T:
            given.lag_one = [c[d * t : d * t + d, d * t - d : d * t] for t in range(1, T)]
        return m.reshape(T, d), blocks, multivariate_normal(z[o], S[np.ix_(o, o)]).logpdf(y.ravel()[o])

    return given


@every
def test_linear_models_are_filtered_and_smoothed_exactly(make):
    y, u = drawn(8)
    y[2], y[4, 0], y[5, 1] = np.nan, np.nan, np.nan
    given, f = dense(y, u), make(linear())
    filtered, smoothed = f.filter(y, u), f.smooth(y, u)
    for t in range(8):
        mean, covariance, _ = given(t + 1)
        np.testing.assert_allclose(filtered.mean[t], mean[t], atol=1e-9)
        np.testing.assert_allclose(filtered.covariance[t], covariance[t], atol=1e-9)
    mean, covariance, logp = given(8)
    np.testing.assert_allclose(smoothed.mean, mean, atol=1e-9)
    np.testing.assert_allclose(smoothed.covariance, covariance, atol=1e-9)
    np.testing.assert_allclose(smoothed.lag_one[1:], given.lag_one, atol=1e-9)
    assert filtered.log_prob == pytest.approx(logp, abs=1e-9)
    assert smoothed.log_prob == filtered.log_prob
    assert f.log_prob(y, u) == pytest.approx([logp], abs=1e-9)


@every
def test_singular_noise_and_a_known_start(make):
    noise, start = np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0])
    noise[0, 0] = 0.5
    y, u = drawn(6)
    given, f = dense(y, u, Q=noise, P0=start), make(linear(Q=noise, P0=start))
    mean, covariance, logp = given(6)
    smoothed = f.smooth(y, u)
    np.testing.assert_allclose(smoothed.mean, mean, atol=1e-9)
    np.testing.assert_allclose(smoothed.covariance, covariance, atol=1e-9)
    assert smoothed.log_prob == pytest.approx(logp, abs=1e-9)


@every
def test_a_sensor_without_noise(make):
    model = StateSpace(
        lk.Gaussian([0.0, 0.0], 1.0), lambda x: lk.Gaussian(x, 0.0), lambda x: lk.Gaussian(x[:, :1] + x[:, 1:], 0.0)
    )
    f = make(model)
    track = f.filter(np.array([[1.0], [1.0]]))
    np.testing.assert_allclose(track.mean[1], [0.5, 0.5], atol=1e-7)
    assert track.log_prob == pytest.approx(-0.25 - 0.5 * np.log(4 * np.pi), abs=1e-6)  # the second says nothing new
    after, logp = f.update(f.predict(f.update(f.initial_belief(), [1.0])[0]), [1.5])
    assert logp == -np.inf
    np.testing.assert_allclose(after.mean, [0.5, 0.5], atol=1e-7)


@every
def test_followed_live_it_is_the_same(make):
    y, _ = drawn(30, 3)
    y[4] = np.nan
    y[9, 1] = np.nan
    model = StateSpace(lk.Gaussian(M0, P0), lambda x: lk.Gaussian(np.sin(x), Q), lambda x: lk.Gaussian(x @ C.T, V))
    f = make(model)
    track = f.filter(y)
    live = list(follow(f, y))
    np.testing.assert_array_equal([belief.mean for belief, _ in live], track.mean)
    np.testing.assert_array_equal([belief.covariance for belief, _ in live], track.covariance)
    assert sum(increment for _, increment in live) == track.log_prob == f.log_prob(y)[0]
    assert [belief.time for belief, _ in live] == list(range(30))
    assert dict(enumerate(live))[4][1] == 0.0


@every
def test_many_sequences_are_each_on_its_own(make):
    f = make(linear())
    (a, ua), (b, ub) = drawn(5, 1), drawn(9, 2)
    for both in ((f.filter([a, b], [ua, ub]), f.filter(b, ub)), (f.smooth([a, b], [ua, ub]), f.smooth(b, ub))):
        many, one = both
        assert isinstance(many.mean, lk.Ragged) and many.mean.lengths.tolist() == [5, 9]
        np.testing.assert_array_equal(many.mean[1], one.mean)
        np.testing.assert_array_equal(many.covariance[1], one.covariance)
        assert many.log_prob[1] == one.log_prob
    assert f.log_prob([a, b], [ua, ub]).shape == (2,)
    assert f.log_prob([a, b], [ua, ub])[1] == f.log_prob(b, ub)[0]


@every
def test_forecasts_are_those_of_the_joint_distribution(make):
    y, u = drawn(9)
    y[6:] = np.nan
    mean, covariance, _ = dense(y, u)(9)
    f = make(linear())
    ahead = f.forecast(y[:6], 3, u[:6], u[6:])
    np.testing.assert_allclose(ahead.states, mean[6:], atol=1e-9)
    np.testing.assert_allclose(ahead.state_covariance, covariance[6:], atol=1e-9)
    np.testing.assert_allclose(ahead.mean, mean[6:] @ C.T + u[6:] @ G.T, atol=1e-9)
    np.testing.assert_allclose(ahead.covariance, C @ covariance[6:] @ C.T + V, atol=1e-9)
    belief = f.initial_belief()
    for t in range(6):
        belief, _ = f.update(belief if t == 0 else f.predict(belief, u[t]), y[t], u[t])
    np.testing.assert_array_equal(f.forecast(steps=3, future=u[6:], belief=belief).states, ahead.states)


# ------------------------------------------------------------------ not linear

BEACONS = np.array([[0.0, 0.0], [30.0, 0.0]])
MOVE = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
SHAKE = 0.01 * np.block([[np.eye(2) / 3, np.eye(2) / 2], [np.eye(2) / 2, np.eye(2)]])
NOISE = np.array([0.25, 4e-4, 0.25, 4e-4])


def range_bearing(x):
    """Range and bearing from both beacons; the bearing from the second jumps from π to −π along the track."""
    away = x[:, None, :2] - BEACONS
    out = np.stack([np.hypot(away[..., 0], away[..., 1]), np.arctan2(away[..., 1], away[..., 0])], axis=-1)
    return lk.Gaussian(out.reshape(len(x), 4), NOISE)


START = lk.Gaussian([10.0, -4.0, 0.1, 0.4], [1.0, 1.0, 0.01, 0.01])
TRACKING = StateSpace(START, lambda x: lk.Gaussian(x @ MOVE.T, SHAKE), range_bearing)


def tracks(n, T, seed=5):
    rng = np.random.default_rng(seed)
    x = np.empty((n, T, 4))
    x[:, 0] = START.sample(n, rng)
    for t in range(1, T):
        x[:, t] = x[:, t - 1] @ MOVE.T + lk.Gaussian(np.zeros(4), SHAKE).sample(n, rng)
    clean = range_bearing(x.reshape(-1, 4)).mean.reshape(n, T, 4)
    y = clean + np.sqrt(NOISE) * rng.standard_normal(clean.shape)
    return x, turned(y, (1, 3))


def nees(x, track):
    e = x - track.mean
    return np.einsum("ti,ti->t", e, np.linalg.solve(track.covariance, e[..., None])[..., 0])


@pytest.mark.some_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["extended", "unscented", "cubature"])
def test_range_and_bearing_tracks_are_consistent(name):
    """The squared error in units of the claimed covariance is χ² with 4 degrees, filtered and smoothed, of 100 runs."""
    x, y = tracks(100, 12)
    assert (np.abs(np.diff(y[..., 3], axis=1)) > 5).any()  # there are jumps
    f = FILTERS[name](TRACKING, wrap=[1, 3])
    low, high = chi2.ppf([0.001, 0.999], 400) / 100
    for track in (f.filter, f.smooth):
        last = np.mean([nees(x[i], track(y[i]))[[5, 11]] for i in range(100)], axis=0)
        assert ((low < last) & (last < high)).all(), last


@every
def test_bearings_that_jump_are_those_that_do_not(make):
    """The second beacon's bearing goes through π: the same track by angles from 0 to 2π, which are smooth there."""
    smooth_there = StateSpace(START, TRACKING.transition, lambda x: lk.Gaussian(_forward(range_bearing(x).mean), NOISE))
    _, y = tracks(20, 25)
    jumps = [one for one in y if (np.abs(np.diff(one[:, 3])) > 5).any()]
    wrapped, whole = make(TRACKING, wrap=[1, 3]).smooth(jumps[0]), make(smooth_there).smooth(_forward(jumps[0]))
    np.testing.assert_allclose(wrapped.mean, whole.mean, atol=1e-6)
    np.testing.assert_allclose(wrapped.covariance, whole.covariance, atol=1e-6)
    assert wrapped.log_prob == pytest.approx(whole.log_prob, abs=1e-5)


def _forward(z):
    z = z.copy()
    z[..., 3] %= 2 * np.pi
    return z


def test_angles_of_the_state_stay_at_home():
    """A compass that turns: with `wrap_state`, a distribution that wraps and one that does not give the same track."""
    free = StateSpace(lk.Gaussian([3.0], 0.1), lambda x: lk.Gaussian(x + 0.3, 0.01), lambda x: lk.Gaussian(x, 0.05))
    round_ = StateSpace(
        free.initial, lambda x: lk.Gaussian(turned(x + 0.3, [0]), 0.01), lambda x: lk.Gaussian(turned(x, [0]), 0.05)
    )
    y = 3.0 + 0.3 * np.arange(40)[:, None] + 0.2 * np.random.default_rng(0).standard_normal((40, 1))
    for make in FILTERS.values():
        straight = make(free).smooth(y)
        turning = make(round_, wrap=[0], wrap_state=[0]).smooth(turned(y, [0]))
        np.testing.assert_allclose(turning.mean, turned(straight.mean, [0]), atol=1e-8)
        np.testing.assert_allclose(turning.covariance, straight.covariance, atol=1e-8)
        assert turning.log_prob == pytest.approx(straight.log_prob, abs=1e-7)


@pytest.mark.some_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["extended", "unscented", "cubature"])
def test_covariances_stay_positive_definite_for_ten_thousand_steps(name):
    tiny = StateSpace(
        lk.Gaussian([1.0, 0.0, 0.0], [1e6, 1e6, 1e-6]),
        lambda x: lk.Gaussian(x @ np.array([[1.0, 0.1, 0.005], [0.0, 1.0, 0.1], [0.0, 0.0, 1.0]]).T, [0.0, 0.0, 1e-12]),
        lambda x: lk.Gaussian(np.hypot(x[:, :1], 1.0), 1e-10),
    )
    f, belief = FILTERS[name](tiny), None
    worst = np.inf
    for k in range(10_000):
        belief, _ = lk.step(f, belief, [np.hypot(1.0 + 1e-4 * k, 1.0)])
        worst = min(worst, belief.root.diagonal().min())
        assert np.isfinite(belief.mean).all()
    assert worst > 0


def test_counts_are_matched_by_their_moments():
    """A Poisson distribution counts as the Gaussian of its mean and variance, here written out by hand."""
    rate = lambda x: np.exp(x)  # noqa: E731
    as_poisson = StateSpace(lk.Gaussian([1.0], 0.2), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Poisson(rate(x)))
    by_hand = StateSpace(
        as_poisson.initial, as_poisson.transition, lambda x: lk.Gaussian(rate(x), rate(x), kind="diagonal")
    )
    y = np.array([3, 2, 5, 4, 6, 5.0])
    for make in (FILTERS["extended"], FILTERS["unscented"], FILTERS["cubature"]):
        np.testing.assert_allclose(make(as_poisson).filter(y).mean, make(by_hand).filter(y).mean, atol=1e-12)


# --------------------------------------------------------------------- mistakes

NORMAL = lk.Gaussian([0.0, 0.0], 1.0)


def still(x):
    return lk.Gaussian(x, 1.0)


@every
@pytest.mark.parametrize(
    "transition, observation, kind, words",
    [
        (lambda x: lk.Gaussian([0.0, 0.0], 1.0), still, ShapeError, "stack of"),
        (lambda x: lk.Gaussian(x[:, :1], 1.0), still, ShapeError, "states of 2 columns"),
        (lambda x: lk.Gaussian(x * np.nan, 1.0), still, LikelyError, "transition at frame 1"),
        (still, lambda x: lk.Categorical(np.full((len(x), 3), 1 / 3), levels=["a", "b", "c"]), LikelyError, "mean"),
        (still, lambda x: lk.StudentT(x, 1.0, 1.5), DomainError, "dof above 2"),
        (still, lambda x: object(), DomainError, "stack of distributions"),
        (still, lambda x: lk.Gaussian(x[:, :1], 1.0), ShapeError, "1 entries"),
    ],
)
def test_distributions_that_cannot_be_used(make, transition, observation, kind, words):
    f = make(StateSpace(NORMAL, transition, observation))
    with pytest.raises(kind, match=words):
        f.filter(np.zeros((3, 2)))


def test_settings_and_data_that_cannot_be_used():
    model = StateSpace(NORMAL, still, still)
    with pytest.raises(DomainError, match="StateSpace"):
        ExtendedKalmanFilter(lk.Gaussian([0.0], 1.0))
    with pytest.raises(DomainError, match="iterations"):
        ExtendedKalmanFilter(model, iterations=0)
    with pytest.raises(DomainError, match="alpha"):
        UnscentedKalmanFilter(model, alpha=-1.0)
    with pytest.raises(DomainError, match="kappa"):
        UnscentedKalmanFilter(model, kappa=-2.0).filter(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="negative variance"):
        UnscentedKalmanFilter(model, beta=0.0, kappa=-1.0).filter(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="degree"):
        CubatureKalmanFilter(model, 4)
    with pytest.raises(ShapeError, match="wrap"):
        ExtendedKalmanFilter(model, wrap=[2]).filter(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="angles"):
        ExtendedKalmanFilter(model, wrap=[0.5])
    with pytest.raises(DataError, match="row 1, column 0"):
        ExtendedKalmanFilter(model).filter(np.array([[0.0, 1.0], [np.inf, 1.0]]))
    with pytest.raises(DataError, match="finite"):
        ExtendedKalmanFilter(model).update(ExtendedKalmanFilter(model).initial_belief(), [np.inf, 0.0])
    with pytest.raises(DataError, match="numbers"):
        ExtendedKalmanFilter(model).filter([["a", "b"]])
    with pytest.raises(ShapeError, match="2 entries"):
        ExtendedKalmanFilter(model).filter(np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="inputs"):
        ExtendedKalmanFilter(model).filter(np.zeros((3, 2)), np.zeros((2, 1)))
    with pytest.raises(ShapeError, match="inputs"):
        ExtendedKalmanFilter(model).forecast(np.zeros((3, 2)), 2, np.zeros((3, 1)), np.zeros((3, 1)))
    with pytest.raises(DomainError, match="steps"):
        ExtendedKalmanFilter(model).forecast(np.zeros((3, 2)), 0)
    with pytest.raises(DomainError, match="one density"):
        ExtendedKalmanFilter(StateSpace(lk.Gaussian([[0.0], [1.0]], 1.0), still, still)).initial_belief()


def test_sequences_without_frames():
    f = ExtendedKalmanFilter(linear())
    y, u = drawn(4)
    some = f.smooth([np.empty((0, 2)), y], [np.empty((0, 1)), u])
    assert some.mean.lengths.tolist() == [0, 4] and some.log_prob[0] == 0.0
    assert f.log_prob([np.empty((0, 2)), y], [np.empty((0, 1)), u])[0] == 0.0
    assert f.filter(np.empty((0, 2))).mean.shape == (0, 3)
    with pytest.raises(DataError, match="at least one sequence"):
        f.filter([])
    with pytest.raises(ShapeError, match="at least one frame"):
        f.forecast(np.empty((0, 2)), 1)


# ------------------------------------------------------------- far from zero


def level(offset, sd):
    """A level about an offset, as distributions and as a linear model, and four observations."""
    v = sd**2
    distributions = StateSpace(lk.Gaussian([offset], v), lambda x: lk.Gaussian(x, v), lambda x: lk.Gaussian(x, v))
    grain = np.spacing(offset)
    y = offset + np.round(np.array([0.0, 1.0, 2.0, 1.0]) * sd / grain) * grain
    return (
        distributions,
        lk.LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[v]],
            observation=[[1.0]],
            observation_covariance=[[v]],
            initial_mean=[offset],
            initial_covariance=[[v]],
        ),
        y,
    )


@every
@pytest.mark.parametrize("offset, sd", [(1e9, 1e-5), (1.6e9, 1e-4), (1e6, 1e-8), (1e12, 1e-2), (1e9, 1.0)])
def test_offsets_are_filtered_as_by_the_kalman_filter(make, offset, sd):
    distributions, exact, y = level(offset, sd)
    found, expected = make(distributions).filter(y), exact.filter(y)
    assert found.log_prob == pytest.approx(expected.log_prob, abs=0.02)
    np.testing.assert_allclose((found.mean - offset) / sd, (expected.mean - offset) / sd, atol=0.03)


@every
@pytest.mark.parametrize("far", [1e7, 1e12, 1e14, 1e16, 1e150])
def test_an_outlier_is_recovered_from(make, far):
    distributions, exact, _ = level(1.0, 0.7)
    y = np.r_[0.0, far, np.zeros(20)]
    found, expected = make(distributions).filter(y), exact.filter(y)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0.05, atol=1e-6)
    assert found.log_prob == pytest.approx(expected.log_prob, rel=0.01)


@every
@pytest.mark.parametrize("far", [1e200, 1e300, -1e308])
def test_what_is_too_far_leaves_the_belief_as_it_was(make, far, recwarn):
    distributions, exact, _ = level(1.0, 0.7)
    y = np.array([0.0, far, 0.2, 0.1])
    found, gap = make(distributions).filter(y), exact.filter(np.where(np.abs(y) > 1e100, np.nan, y))
    assert found.log_prob == -np.inf and not recwarn.list
    np.testing.assert_allclose(found.mean, gap.mean, atol=1e-9)
    assert np.isfinite(make(distributions).smooth(y).mean).all() and not recwarn.list


def test_ranges_near_a_beacon_far_from_the_origin():
    """Where the origin is, is no news: log p and means of a track 1.1 m from a beacon."""

    def found(offset):
        def ranges(x):
            return lk.Gaussian(np.hypot(x[:, :1] - offset, x[:, 1:] + 0.3), 1e-3)

        distributions = StateSpace(lk.Gaussian([offset + 1.1, 0.0], 0.01), lambda x: lk.Gaussian(x, 1e-3), ranges)
        return ExtendedKalmanFilter(distributions).log_prob([np.array([1.14, 1.25, 1.33, 1.13])])[0]

    assert found(1e7) == pytest.approx(found(0.0), abs=1e-5)
    assert found(1e9) == pytest.approx(found(0.0), abs=1e-3)
