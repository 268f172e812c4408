"""Every method of LinearGaussian against the joint Gaussian of all states and observations."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.stats import chi2

import likely as lk
from likely.core.errors import DataError, DomainError, FitWarning, NotConverged, ShapeError
from likely.io import model_files
from likely.statespace.linear import kalman_filter
from likely.statespace.linear.forecast import steady_state
from likely.statespace.linear.state_belief import StateBelief
from tests.statespace.dense import Dense

ONE = [[1.0]]


def covariance(rng, n, rank=None, T=()):
    b = rng.normal(size=(*T, n, rank or n))
    return b @ np.swapaxes(b, -1, -2)


def problem(seed):
    """A model, frames with gaps and inputs: constant or changing, singular or not, of any small size."""
    rng = np.random.default_rng(seed)
    d, p, T, k = (int(rng.integers(*ends)) for ends in ((1, 5), (1, 4), (1, 9), (0, 3)))
    each = (T,) if seed % 2 else ()
    start = covariance(rng, d, 1 if seed % 5 == 0 else d)
    made = lk.LinearGaussian(
        transition=0.7 * rng.normal(size=(*each, d, d)),
        process_covariance=covariance(rng, d, max(1, d - 1) if seed % 3 == 0 else d, each),
        observation=rng.normal(size=(*each, p, d)),
        observation_covariance=covariance(rng, p, None, each),
        initial_mean=rng.normal(size=d),
        initial_covariance=start,
        control=rng.normal(size=(*each, d, k)) if k else None,
        feedthrough=rng.normal(size=(p, k)) if k else None,
    )
    y = 2 * rng.normal(size=(T, p))
    y[rng.random((T, p)) < 0.3] = np.nan
    return made, y, rng.normal(size=(T, k)) if k else None


def diffuse_problem(seed):
    """The same, of whose first state the first q directions are unknown; T frames are enough to find them."""
    rng = np.random.default_rng(1000 + seed)
    d, p, k = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    T, q, each = int(rng.integers(d + 2, 12)), int(rng.integers(1, d + 1)), ()
    if seed % 2:
        each = (T,)
    start = np.zeros((d, d))
    start[q:, q:] = covariance(rng, d - q) if q < d else 0.0
    directions = np.eye(d)[:, :q] if seed % 3 else rng.normal(size=(d, q))
    made = lk.LinearGaussian(
        transition=0.7 * rng.normal(size=(*each, d, d)),
        process_covariance=covariance(rng, d, None, each),
        observation=rng.normal(size=(*each, p, d)),
        observation_covariance=covariance(rng, p, None, each),
        initial_mean=rng.normal(size=d),
        initial_covariance=start,
        control=rng.normal(size=(d, k)) if k else None,
        feedthrough=rng.normal(size=(p, k)) if k else None,
        diffuse=directions,
    )
    y = 2 * rng.normal(size=(T, p))
    y[rng.random((T, p)) < 0.2] = np.nan
    return made, y, rng.normal(size=(T, k)) if k else None


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def blocks(oracle, cov):
    return np.stack([oracle.block(cov, t) for t in range(oracle.T)])


# ------------------------------------------------------------------- the joint Gaussian


@pytest.mark.parametrize("seed", range(40))
def test_filter_and_smoother_are_dense_conditioning(seed):
    model, y, u = problem(seed)
    oracle = Dense(model, y, u)
    mean, cov, logp = oracle.given()
    smoothed, filtered = model.smooth(y, u), model.filter(y, u)
    close([smoothed.log_prob, filtered.log_prob, *model.log_prob(y, u)], logp)
    close(smoothed.mean, mean)
    close(smoothed.covariance, blocks(oracle, cov))
    assert not smoothed.lag_one[0].any()
    for t in range(1, oracle.T):
        close(smoothed.lag_one[t], oracle.block(cov, t, t - 1))
    for t in range(oracle.T):
        m, c, _ = oracle.given(t + 1)
        close(filtered.mean[t], m[t])
        close(filtered.covariance[t], oracle.block(c, t))


@pytest.mark.parametrize("seed", range(0, 40, 5))
@pytest.mark.parametrize("lag", [0, 1, 3])
def test_fixed_lag_is_conditioning_on_that_much(seed, lag):
    model, y, u = problem(seed)
    oracle, found = Dense(model, y, u), model.smooth(y, u, lag=lag)
    for t in range(oracle.T):
        m, c, _ = oracle.given(min(oracle.T, t + lag + 1))
        close(found.mean[t], m[t])
        close(found.covariance[t], oracle.block(c, t))


@pytest.mark.parametrize("seed", range(40))
def test_unknown_starts_are_the_limit_of_wide_ones(seed):
    model, y, u = diffuse_problem(seed)
    oracle = Dense(model, y, u)
    mean, cov, logp = oracle.flat(model)
    if np.abs(cov).max() > 1e4:
        pytest.skip("the frames hardly say where it began: the oracle itself is rough")
    smoothed, filtered = model.smooth(y, u), model.filter(y, u)
    close([smoothed.log_prob, *model.log_prob(y, u)], logp, 1e-9)
    close(smoothed.mean, mean, 1e-9)
    close(smoothed.covariance, blocks(oracle, cov), 1e-9)
    for t in range(1, oracle.T):
        close(smoothed.lag_one[t], oracle.block(cov, t, t - 1), 1e-9)
    close(filtered.mean[-1], mean[-1], 1e-9)
    close(filtered.covariance[-1], oracle.block(cov, oracle.T - 1), 1e-9)
    lagged = model.smooth(y, u, lag=oracle.T)
    close(lagged.mean, mean, 1e-9)
    close(lagged.covariance, blocks(oracle, cov), 1e-9)


def test_a_wide_start_comes_near_an_unknown_one_and_stays_exact():
    """Rows of unlike size are turned largest first: else a variance of 1e20 would leave 1e-6 of rounding."""
    A, y = [[1.0, 1.0], [0.0, 1.0]], [1.0, 2.0, 4.0, 3.0]
    unknown = lk.LinearGaussian(
        transition=A, process_covariance=np.zeros((2, 2)), observation=[[1.0, 0.0]], observation_covariance=ONE
    ).smooth(y)
    for kappa in (1e16, 1e20, 1e28, 1e34, 1e40):
        wide = lk.LinearGaussian(
            transition=A,
            process_covariance=np.zeros((2, 2)),
            observation=[[1.0, 0.0]],
            observation_covariance=ONE,
            initial_mean=[0.0, 0.0],
            initial_covariance=kappa * np.eye(2),
        ).smooth(y)
        close(wide.mean, unknown.mean, 1e-14)
        close(wide.covariance, unknown.covariance, 1e-14)
        assert wide.log_prob + np.log(kappa) == pytest.approx(unknown.log_prob, abs=1e-12)


@pytest.mark.parametrize("kappa", [1e28, 1e30, 1e32, 1e45, 1e60])
def test_noise_is_kept_beside_the_widest_start(kappa):
    y = np.array([[np.nan, np.nan], [1.0, 2.0], [3.0, 4.0]])
    sensors = {
        "transition": ONE, "process_covariance": ONE, "observation": [[1.0], [1.0]],
        "observation_covariance": np.diag([1.0, 2.0]),
    }  # fmt: skip
    wide = lk.LinearGaussian(**sensors, initial_mean=[0.0], initial_covariance=[[kappa]])
    unknown = lk.LinearGaussian(**sensors)
    for verb in ("filter", "smooth"):
        a, b = getattr(wide, verb)(y), getattr(unknown, verb)(y)
        close(a.mean[1:], b.mean[1:], 1e-13)
        close(a.covariance[1:], b.covariance[1:], 1e-13)
    close(a.covariance[0], b.covariance[0], 1e-13)
    assert a.log_prob + 0.5 * np.log(kappa) == pytest.approx(b.log_prob, abs=1e-11)
    one = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=ONE,
        observation_covariance=ONE,
        initial_mean=[0.0],
        initial_covariance=[[kappa]],
    )
    close(one.filter([1.0, 2.0, 3.0]).covariance.ravel(), [1.0, 2 / 3, 0.625], 1e-13)


def noiseless_problem(seed):
    """Sensors without noise that mix all states, of whose start several directions are unknown, the rest singular."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 6))
    p, q, T = int(rng.integers(1, d - 1)), int(rng.integers(2, d + 1)), int(rng.integers(d + 1, 9))
    start = covariance(rng, d, int(rng.integers(1, d)))
    made = lk.LinearGaussian(
        transition=rng.normal(size=(d, d)),
        process_covariance=covariance(rng, d),
        observation=rng.normal(size=(p, d)),
        observation_covariance=np.zeros((p, p)),
        initial_mean=rng.normal(size=d),
        initial_covariance=start,
        diffuse=rng.normal(size=(d, q)),
    )
    return made, rng.normal(size=(T, p)), None


@pytest.mark.parametrize("seed", range(60))
def test_sensors_without_noise_and_an_unknown_start(seed):
    """The state is singular where the start becomes known: a smoother must not divide by what rounding left of it."""
    model, y, _ = noiseless_problem(seed)
    oracle = Dense(model, y, kappa=1.0)  # some variance where it is infinite changes nothing, and nothing is singular
    mean, cov, logp = oracle.flat(model)
    size = 1.0 + np.abs(cov).max()
    found = model.smooth(y)
    assert found.log_prob == pytest.approx(logp, rel=1e-9)
    np.testing.assert_allclose(found.mean, mean, rtol=0.0, atol=1e-10 * (1.0 + np.abs(mean).max()))
    np.testing.assert_allclose(found.covariance, blocks(oracle, cov), rtol=0.0, atol=1e-10 * size)
    for t in range(1, oracle.T):
        np.testing.assert_allclose(found.lag_one[t], oracle.block(cov, t, t - 1), rtol=0.0, atol=1e-10 * size)


@pytest.mark.parametrize("seed", [*range(20), 206, 209, 235])
def test_singular_transitions_with_singular_noise(seed):
    """x_{t+1} varies in a few directions only: rounding must not be taken for another (seeds 206, 209 and 235)."""
    rng = np.random.default_rng(seed)
    d, p, T = int(rng.integers(2, 9)), int(rng.integers(1, 3)), int(rng.integers(2, 7))
    inner = int(rng.integers(1, d))
    A = rng.normal(size=(d, inner)) @ rng.normal(size=(inner, d)) / d
    model = lk.LinearGaussian(
        transition=A,
        process_covariance=covariance(rng, d, int(rng.integers(1, d))),
        observation=rng.normal(size=(p, d)),
        observation_covariance=covariance(rng, p),
        initial_mean=rng.normal(size=d),
        initial_covariance=covariance(rng, d, int(rng.integers(1, d + 1))),
    )
    y = model.sample(1, rng, T)[0]
    oracle = Dense(model, y)
    mean, cov, _ = oracle.given()
    found = model.smooth(y)
    close(found.mean, mean, 1e-8)
    close(found.covariance, blocks(oracle, cov), 1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_states_seen_without_noise_are_found_exactly(seed):
    """No noise anywhere: the states are linear functions of their unknown start, which a few frames give away."""
    rng = np.random.default_rng(seed)
    d, p, T = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 8
    A, C, nothing = rng.normal(size=(d, d)), rng.normal(size=(p, d)), np.zeros((d, d))
    model = lk.LinearGaussian(
        transition=A,
        process_covariance=nothing,
        observation=C,
        observation_covariance=np.zeros((p, p)),
        initial_mean=np.zeros(d),
        initial_covariance=nothing,
        diffuse=np.eye(d),
    )
    x = [rng.normal(size=d)]
    for _ in range(T - 1):
        x.append(A @ x[-1])
    y = np.array(x) @ C.T
    if seed % 2:
        y[1:3] = np.nan
    seen = np.vstack([C @ np.linalg.matrix_power(A, t) for t in range(T) if not np.isnan(y[t, 0])])
    found = model.smooth(y)
    close(found.mean, np.array(x), 1e-13 * np.linalg.cond(seen) * 10)
    assert np.abs(found.covariance).max() < 1e-20 and np.isfinite(found.log_prob)
    y[-1] += 1.0
    assert model.log_prob(y)[0] == -np.inf


def test_what_counts_as_known_does_not_depend_on_units():
    for unit in (1e-12, 1.0, 1e12):
        model = lk.LinearGaussian(
            transition=np.eye(1), process_covariance=[[0.0]], observation=[[unit]], observation_covariance=[[0.0]]
        )
        found = model.smooth(np.array([3.0, 3.0]) * unit)
        close(found.mean.ravel(), [3.0, 3.0], 1e-14)
        assert np.isfinite(found.log_prob)
        slope = lk.LinearGaussian(
            transition=[[1.0, unit], [0.0, 1.0]],
            process_covariance=np.zeros((2, 2)),
            observation=[[1.0, 0.0]],
            observation_covariance=ONE,
        )
        close(slope.smooth([1.0, 2.0, 3.0]).mean[0] * [1, unit], [1.0, 1.0], 1e-12)


def test_partly_known_beliefs_say_what_is_open():
    trend = lk.LinearGaussian(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        process_covariance=np.zeros((2, 2)),
        observation=[[1.0, 0.0]],
        observation_covariance=ONE,
    )
    found = trend.filter([1.0, 2.0, 3.0])
    assert found.covariance[0].tolist() == [[1.0, 0.0], [0.0, np.inf]]
    assert found.mean[0, 0] == pytest.approx(1.0) and np.isfinite(found.covariance[1]).all()
    with pytest.raises(DataError, match="diffuse initial state must be determined"):
        trend.smooth([1.0])


@pytest.mark.parametrize("lag", [0, 1, 2])
@pytest.mark.parametrize("seed", range(24))
def test_a_lag_that_does_not_reach_what_makes_the_start_known(seed, lag):
    """Against the joint Gaussian of the frames so far; where they are too few, 1e12 stands for infinite variances."""
    model, y, u = noiseless_problem(seed) if seed % 3 == 0 else diffuse_problem(seed)
    unknown, wide = Dense(model, y, u, kappa=1.0), Dense(model, y, u, kappa=1e12)
    found, q = model.smooth(y, u, lag=lag), model.diffuse.shape[1]
    for t in range(unknown.T):
        upto = min(unknown.T, t + lag + 1)
        seen = (unknown.C @ reached(model, unknown.T))[unknown._seen(upto)].astype(float)
        known = len(seen) > 0 and np.linalg.matrix_rank(seen) == q
        mean, cov, _ = unknown.flat(model, upto) if known else wide.given(upto)
        if np.abs(cov).max() > 1e4 and known:
            continue  # the frames hardly say where it began: the oracle itself is rough
        closed = np.isfinite(np.diagonal(found.covariance[t]))
        assert (closed == (np.diagonal(unknown.block(cov, t)) < 1e7)).all()
        close(found.mean[t][closed], mean[t][closed], 1e-8 if known else 1e-5)
        some = np.ix_(closed, closed)
        close(found.covariance[t][some], unknown.block(cov, t)[some], 1e-8 if known else 1e-4)
    if not lag:
        filtered = model.filter(y, u)
        closed = np.isfinite(filtered.std)  # the mean of what is open says nothing
        close(found.mean[closed], filtered.mean[closed], 1e-9)
        np.testing.assert_allclose(found.covariance, filtered.covariance, rtol=1e-9, atol=1e-9)


def reached(model, T):
    """Where each unknown direction of the start leads, frame by frame (T d, q)."""
    found = [model.diffuse]
    for t in range(1, T):
        found.append((model.transition if model.transition.ndim == 2 else model.transition[t]) @ found[-1])
    return np.vstack(found)


@pytest.mark.slow
def test_a_lag_over_frames_that_say_nothing():
    season = lk.LinearGaussian.seasonal(12, 0.1, 1.0)
    y = np.sin(np.arange(40.0))
    found = season.smooth(y, lag=3)
    assert np.isinf(found.covariance[0, 0, 0]) == np.isinf(season.filter(y[:4]).covariance[0, 0, 0])
    assert np.isinf(found.covariance[6]).any() and np.isfinite(found.covariance[7:]).all()
    silent = season.smooth([y, np.full(5, np.nan)], lag=3)
    assert np.isinf(np.diagonal(silent.covariance[1], axis1=1, axis2=2)).all()
    assert silent.mean[0].tobytes() == found.mean.tobytes()


def test_one_state_seen_twice_at_one_time():
    """Two sensors read one after the other with nothing in between are one frame of two entries."""
    two = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=[[1.0], [1.0]],
        observation_covariance=np.diag([1.0, 2.0]),
        initial_mean=[0.0],
        initial_covariance=[[4.0]],
    )
    y = np.array([[1.0, 2.0], [0.5, np.nan], [3.0, 1.0]])
    A, Q = np.ones((6, 1, 1)), np.tile([[[1.0]], [[0.0]]], (3, 1, 1))
    R = np.tile([[[1.0]], [[2.0]]], (3, 1, 1))
    one = lk.LinearGaussian(
        transition=A,
        process_covariance=Q,
        observation=ONE,
        observation_covariance=R,
        initial_mean=[0.0],
        initial_covariance=[[4.0]],
    )
    a, b = two.smooth(y), one.smooth(y.reshape(-1))
    close(b.mean[::2], a.mean, 1e-13)
    close(b.mean[1::2], a.mean, 1e-13)
    close(b.covariance[1::2], a.covariance, 1e-13)
    assert a.log_prob == pytest.approx(b.log_prob, abs=1e-12)


def test_entries_that_are_copies_of_each_other():
    """A singular observation: the second entry is twice the first, so that it says nothing, or cannot be."""
    both = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=[[1.0], [2.0]],
        observation_covariance=[[1.0, 2.0], [2.0, 4.0]],
        initial_mean=[0.0],
        initial_covariance=ONE,
    )
    alone = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=ONE,
        observation_covariance=ONE,
        initial_mean=[0.0],
        initial_covariance=ONE,
    )
    y = np.array([1.0, -1.0, 2.0])
    a, b = both.smooth(np.column_stack([y, 2 * y])), alone.smooth(y)
    close(a.mean, b.mean, 1e-12)
    close(a.covariance, b.covariance, 1e-12)
    assert a.log_prob == pytest.approx(b.log_prob, abs=1e-12)
    assert both.log_prob(np.column_stack([y, y]))[0] == -np.inf


# --------------------------------------------------------------------- settling down


def steady_model(rng):
    made = lk.LinearGaussian.constant_velocity(dim=2, dt=0.1, spectral_density=0.3, observation_variance=1.0)
    return lk.LinearGaussian(
        transition=made.transition,
        process_covariance=made.process_covariance,
        observation=made.observation,
        observation_covariance=made.observation_covariance,
        initial_mean=np.zeros(4),
        initial_covariance=np.eye(4),
    )


def test_what_has_settled_gives_the_numbers_of_what_has_not():
    rng = np.random.default_rng(0)
    model = steady_model(rng)
    y = model.sample(1, rng, 3000)[0].copy()
    y[1500] = np.nan
    y[2200, 0] = np.nan
    names = ("transition", "process_covariance", "observation", "observation_covariance")
    every = {name: np.tile(getattr(model, name), (3000, 1, 1)) for name in names}
    plain = lk.LinearGaussian(**every, initial_mean=model.initial_mean, initial_covariance=model.initial_covariance)
    for verb in ("filter", "smooth"):
        fast, slow = getattr(model, verb)(y), getattr(plain, verb)(y)
        for a, b in zip(fast, slow, strict=True):
            close(a, b, 1e-11)
    fast, slow = model.smooth(y, lag=4), plain.smooth(y, lag=4)
    close(fast.mean, slow.mean, 1e-11)
    close(fast.covariance, slow.covariance, 1e-11)


def test_the_settled_gain_solves_riccatis_equation():
    rng = np.random.default_rng(1)
    for model in (steady_model(rng), lk.LinearGaussian.local_level(1469.0, 15099.0)):
        A, C, Q, R = model.transition, model.observation, model.process_covariance, model.observation_covariance
        P = solve_discrete_are(A.T, C.T, Q, R)
        K = P @ C.T @ np.linalg.inv(C @ P @ C.T + R)
        found = model.steady_state()
        close(found.predicted, P, 1e-9)
        close(found.gain, K, 1e-9)
        close(found.covariance, P - K @ C @ P, 1e-9)


def test_a_state_that_nobody_sees_does_not_settle():
    blind = lk.LinearGaussian(
        transition=np.eye(2),
        process_covariance=np.eye(2),
        observation=[[1.0, 0.0]],
        observation_covariance=ONE,
        initial_mean=np.zeros(2),
        initial_covariance=np.eye(2),
    )
    with pytest.raises(NotConverged, match="unobserved direction with eigenvalue modulus 1"):
        blind.steady_state()
    with pytest.raises(NotConverged, match="still changes by a share of"):
        steady_state(lk.LinearGaussian.local_level(1e-8, 1.0), most=500)
    with pytest.raises(DomainError, match="matrices for 3 frames"):
        lk.LinearGaussian(
            transition=np.ones((3, 1, 1)), process_covariance=ONE, observation=ONE, observation_covariance=ONE
        ).steady_state()
    fading = lk.LinearGaussian(
        transition=np.diag([1.0, 0.5]),
        process_covariance=np.eye(2),
        observation=[[1.0, 0.0]],
        observation_covariance=ONE,
    )
    assert fading.steady_state().covariance[1, 1] == pytest.approx(4 / 3)


def test_a_filter_that_settles_slowly_is_run_in_one_loop():
    steady_state(lk.LinearGaussian.local_level(1.0, 1.0))  # compiled
    began = process_time()
    found = lk.LinearGaussian.local_level(1e-8, 1.0).steady_state()
    assert process_time() - began < 1.0  # 0.1 s; frame by frame from Python 2.6 s
    assert found.predicted[0, 0] == pytest.approx(0.5e-8 + np.sqrt(0.25e-16 + 1e-8), rel=1e-9) and found.frames > 1e5


# --------------------------------------------------------------------------- many series


def test_many_series_are_each_by_itself(monkeypatch):
    rng = np.random.default_rng(2)
    for make in (problem, diffuse_problem):
        model, y, u = make(7)
        T = len(y)
        lengths = [T, 3, T, max(T - 1, 3), 1]
        seqs = [rng.normal(size=(n, model.dim)) for n in lengths]
        us = None if u is None else [u[:n] for n in lengths]
        if make is diffuse_problem:
            seqs, us = seqs[:1] + seqs[2:3], None if us is None else us[:1] + us[2:3]
        for part in (1, 4, 65_536):
            monkeypatch.setattr(kalman_filter.split_sequences, "__defaults__", (part,))
            together = model.smooth(seqs, us)
            for i, one in enumerate(seqs):
                alone = model.smooth(one, None if us is None else us[i])
                assert together.mean[i].tobytes() == alone.mean.tobytes()
                assert together.covariance[i].tobytes() == alone.covariance.tobytes()
                assert together.lag_one[i].tobytes() == alone.lag_one.tobytes()
                assert together.log_prob[i] == alone.log_prob


def test_nothing_and_next_to_nothing():
    model = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=ONE,
        observation_covariance=ONE,
        initial_mean=[0.0],
        initial_covariance=ONE,
    )
    none = lk.Ragged(np.empty((0, 1)), [0])
    assert len(model.log_prob(none)) == 0 and len(model.filter(none).mean) == 0 and len(model.smooth(none).mean) == 0
    found = model.smooth([np.empty((0, 1)), [[1.0]], np.empty((0, 1))])
    assert found.log_prob[[0, 2]].tolist() == [0.0, 0.0] and found.mean.lengths.tolist() == [0, 1, 0]
    unseen = model.smooth(np.full(3, np.nan))
    assert unseen.log_prob == 0.0
    close(unseen.covariance.ravel(), [1.0, 2.0, 3.0], 1e-15)
    assert model.log_prob(np.zeros(3, np.float32)).dtype == np.float32


# ------------------------------------------------------------------------------- drawing


def test_simulated_sequences_have_the_moments_of_the_joint_gaussian():
    """Mahalanobis distances of n draws sum to a χ² of n (T p) degrees; false alarms 1e-6."""
    model, y, u = problem(11)
    n, T = 4000, len(y)
    seqs = model.sample(n, np.random.default_rng(0), T) if u is None else model.sample(
        n, np.random.default_rng(0), inputs=[u] * n
    )  # fmt: skip
    oracle = Dense(model, np.zeros_like(y), u)
    r = seqs.values.reshape(n, -1) - oracle.y_mean.astype(float)
    precision = np.linalg.inv(oracle.y_cov.astype(float))
    distance = (r @ precision * r).sum()
    assert chi2.ppf(5e-7, r.size) < distance < chi2.ppf(1 - 5e-7, r.size)
    assert n * (r.mean(axis=0) @ precision @ r.mean(axis=0)) < chi2.ppf(1 - 1e-6, r.shape[1])


@pytest.mark.parametrize("make", [problem, diffuse_problem])
def test_drawn_states_have_the_moments_of_the_smoother(make):
    model, y, u = make(4)
    n = 4000
    draws = model.draw_states(y, n, np.random.default_rng(1), u)
    oracle = Dense(model, y, u)
    mean, cov, _ = oracle.given() if model.diffuse is None else oracle.flat(model)
    r = (draws - mean).reshape(n, -1)
    values, vectors = np.linalg.eigh(cov)
    live = values > 1e-9 * values.max()
    z = r @ vectors[:, live] / np.sqrt(values[live])
    assert np.abs(r @ vectors[:, ~live]).max(initial=0.0) < 1e-3 * np.sqrt(values.max())
    assert n * (z.mean(axis=0) ** 2).sum() < chi2.ppf(1 - 1e-6, z.shape[1])
    assert chi2.ppf(5e-7, z.size) < (z**2).sum() < chi2.ppf(1 - 5e-7, z.size)


def test_draws_of_states_depend_on_the_frames_linearly():
    """The same random numbers: two draws differ by what the smoothed means differ."""
    model, y, u = problem(4)
    other = np.where(np.isnan(y), np.nan, y + 1.0)
    a, b = (model.draw_states(v, 3, np.random.default_rng(5), u) for v in (y, other))
    close(b - a, np.broadcast_to(model.smooth(other, u).mean - model.smooth(y, u).mean, a.shape), 1e-12)


# ------------------------------------------------------------------------------------ live


@pytest.mark.parametrize("make", [problem, diffuse_problem])
@pytest.mark.parametrize("seed", range(6))
def test_following_is_filtering_and_a_restart_changes_no_bit(make, seed):
    model, y, u = make(seed)
    filtered = model.filter(y, u)
    belief, again, total = None, None, 0.0
    for t, frame in enumerate(y):
        known = None if u is None else u[t]
        ahead = model.initial_belief() if belief is None else model.predict(belief, known)
        belief, news = model.update(ahead, frame, known)
        other = model.initial_belief() if again is None else model.predict(again, known)
        other, told = model.update(model_files.loads(model_files.dumps(other)), frame, known)
        again = model_files.loads(model_files.dumps(other))
        assert belief.mean.tobytes() == again.mean.tobytes() and belief.root.tobytes() == again.root.tobytes()
        assert news == told and belief.time == t
        close(belief.mean, filtered.mean[t], 1e-11)
        assert (np.isinf(belief.covariance) == np.isinf(filtered.covariance[t])).all()
        close(np.where(np.isinf(belief.covariance), 0.0, belief.covariance),
              np.where(np.isinf(filtered.covariance[t]), 0.0, filtered.covariance[t]), 1e-11)  # fmt: skip
        total += news
    assert total == pytest.approx(filtered.log_prob, rel=1e-11, abs=1e-11)
    after = model.belief_after(y, u)
    close(after.mean, belief.mean, 1e-11)
    assert after.time == belief.time


def test_follow_takes_single_numbers():
    model = lk.LinearGaussian.local_level(1469.0, 15099.0)
    y = [1120.0, 1160.0, np.nan, 963.0]
    beliefs, news = zip(*lk.follow(model, y), strict=True)
    assert sum(news) == pytest.approx(model.log_prob(y)[0], rel=1e-12)
    assert [b.mean[0] for b in beliefs] == pytest.approx(model.filter(y).mean.ravel().tolist(), rel=1e-12)
    assert isinstance(beliefs[0], StateBelief)


# ----------------------------------------------------------------------- what cannot be


def test_frames_that_cannot_be_are_minus_infinity_and_teach_nothing():
    exact = lk.LinearGaussian(
        transition=ONE,
        process_covariance=[[0.0]],
        observation=ONE,
        observation_covariance=[[0.0]],
        initial_mean=[1.0],
        initial_covariance=[[0.0]],
    )
    assert exact.log_prob([1.0, 1.0])[0] == 0.0 and exact.log_prob([1.0, 2.0])[0] == -np.inf
    for first in ([[0.0]], None):
        model = lk.LinearGaussian(
            transition=ONE,
            process_covariance=[[0.0]],
            observation=ONE,
            observation_covariance=[[0.0]],
            initial_mean=[1.0],
            initial_covariance=first,
        )
        with pytest.warns(FitWarning, match="filter: frame 1 of sequence 0 is impossible"):
            found = model.filter([1.0, 2.0, 1.0])
        assert found.log_prob == -np.inf and found.mean.ravel().tolist() == [1.0, 1.0, 1.0]
        news = [logp for _, logp in lk.follow(model, [1.0, 2.0, 1.0])]
        assert news[1] == -np.inf and np.isfinite([news[0], news[2]]).all()


@pytest.mark.parametrize("verb", [{}, {"lag": 1}, None])
@pytest.mark.parametrize("first", [[[0.0]], None])
def test_one_note_names_the_first_frame_that_cannot_be(verb, first):
    """Noise-free frames that contradict each other were ignored by `filter` and `smooth` without a word."""
    model = lk.LinearGaussian(
        transition=ONE,
        process_covariance=[[0.0]],
        observation=ONE,
        observation_covariance=[[0.0]],
        initial_mean=[1.0],
        initial_covariance=first,
    )
    y = [np.ones(3), np.array([1.0, np.nan, 5.0, 1.0, 7.0]), np.array([1.0, 2.0])]
    with pytest.warns(FitWarning) as told:
        found = model.filter(y) if verb is None else model.smooth(y, **verb)
    (note,) = told
    assert "frame 2 of sequence 1 is impossible" in str(note.message)
    assert "(3 frames in 2 sequences): log_prob is -inf" in str(note.message)
    assert np.isneginf(found.log_prob).tolist() == [False, True, True] and (found.mean.values == 1.0).all()
    with pytest.warns(FitWarning, match="frame 2 of sequence 0 is impossible"):
        ahead = model.forecast(y[1], 1)
    assert ahead.mean.tolist() == [[1.0]]


def test_no_note_where_every_frame_can_be(recwarn):
    model = lk.LinearGaussian(
        transition=ONE,
        process_covariance=[[0.0]],
        observation=ONE,
        observation_covariance=[[0.0]],
        initial_mean=[1.0],
        initial_covariance=[[0.0]],
    )
    model.filter([1.0, 1.0]), model.smooth([1.0, np.nan]), model.smooth([[1.0], [1.0]], lag=0), model.forecast([1.0], 2)
    assert not recwarn.list


@pytest.mark.parametrize("size", [1e154, 1e200, 1e300, -1e304])
@pytest.mark.parametrize("at", [0, 2, 900])
def test_outliers_never_make_nan(size, at):
    y = np.zeros(1000)
    y[at] = size
    for model in (
        lk.LinearGaussian(
            transition=ONE,
            process_covariance=ONE,
            observation=ONE,
            observation_covariance=ONE,
            initial_mean=[0.0],
            initial_covariance=ONE,
        ),
        lk.LinearGaussian(
            transition=ONE, process_covariance=[[1e-4]], observation=ONE, observation_covariance=[[1e-4]]
        ),
        lk.LinearGaussian(
            transition=[[1.0, 1.0], [0.0, 1.0]],
            process_covariance=np.eye(2),
            observation=[[1.0, 0.0]],
            observation_covariance=ONE,
        ),
    ):
        found = model.smooth(y)
        assert not np.isnan(found.log_prob) and np.isfinite(found.mean).all() and np.isfinite(found.covariance).all()
        told = [logp for _, logp in lk.follow(model, y[:5])]
        assert not np.isnan(told).any()


def test_learning_names_the_frame_whose_square_is_no_number():
    model = lk.LinearGaussian.local_level(1.0, 1.0)
    with pytest.raises(DataError, match=r"1e[+]300 at sequence 1, frame 2, column 0"):
        model.collect([[1.0, 2.0, 3.0], [1.0, 2.0, 1e300, 3.0]])
    with pytest.raises(DataError, match=r"1e[+]300 at sequence 1, frame 2, column 0"):
        lk.LinearGaussianDensity(model).fit([np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1e300, 3.0])])


def test_states_that_explode_are_refused():
    with pytest.raises(DomainError, match=r"states must not overflow.*eigenvalues"):
        lk.LinearGaussian(
            transition=[[1e3]],
            process_covariance=ONE,
            observation=ONE,
            observation_covariance=ONE,
            initial_mean=[0.0],
            initial_covariance=ONE,
        ).filter(np.full(300, np.nan))


# ---------------------------------------------------------------- long, thin and of any unit


def thin_model():
    """Noise of rank one and tiny, sharp observations: 1e-12 against 1."""
    noise = 1e-12 * np.outer([0.5, 1.0], [0.5, 1.0])
    return lk.LinearGaussian(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        process_covariance=noise,
        observation=[[1.0, 0.0]],
        observation_covariance=[[1e-12]],
        initial_mean=np.zeros(2),
        initial_covariance=1e12 * np.eye(2),
    )


def plain_covariances(model, steps):
    """P → A P Aᵀ + Q → (I − K C) P, as textbooks have it."""
    A, Q, C, R, P = (
        model.transition,
        model.process_covariance,
        model.observation,
        model.observation_covariance,
        model.initial_covariance,
    )
    for _ in range(steps):
        K = P @ C.T / (C @ P @ C.T + R)
        P = P - K @ C @ P
        yield P
        P = A @ P @ A.T + Q


def test_roots_stay_positive_where_plain_covariances_do_not():
    model = thin_model()
    assert any(np.linalg.eigvalsh(P).min() <= 0 for P in plain_covariances(model, 50))
    y = np.zeros(20_000)
    y[::7] = np.nan  # so that it never settles
    kept = kalman_filter.filter_part(model, kalman_filter.series_of(model, y))
    assert (np.diagonal(kept.roots, axis1=1, axis2=2) > 0).all()
    assert (np.linalg.eigvalsh(model.filter(y).covariance[10:]) > 0).all()


@pytest.mark.slow
def test_roots_stay_positive_for_a_million_steps():
    model, T = thin_model(), 1_000_000
    y = np.zeros(T)
    y[::7] = np.nan
    series = kalman_filter.series_of(model, y)
    kept = kalman_filter.filter_part(model, series)
    assert (np.diagonal(kept.roots, axis1=1, axis2=2) > 0).all() and np.isfinite(kept.total[0])


@pytest.mark.slow
def test_ten_million_frames():
    model = lk.LinearGaussian(transition=[[0.9]], process_covariance=ONE, observation=ONE, observation_covariance=ONE)
    y = np.random.default_rng(0).normal(size=10_000_000)
    whole = model.log_prob(y)[0]
    belief, total = None, 0.0
    for piece in np.array_split(y, 10):
        if belief is None:
            total, belief = model.log_prob(piece)[0], model.belief_after(piece)
            continue
        ahead = model.predict(belief)
        on = lk.LinearGaussian(
            transition=[[0.9]],
            process_covariance=ONE,
            observation=ONE,
            observation_covariance=ONE,
            initial_mean=ahead.mean,
            initial_covariance=ahead.covariance,
        )
        total, belief = total + on.log_prob(piece)[0], on.belief_after(piece)
    assert np.isfinite(whole) and total == pytest.approx(whole, rel=1e-11)


@pytest.mark.parametrize("unit", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("seed", [2, 6, 12])
def test_other_units_and_axes_of_the_state_change_nothing_that_is_seen(seed, unit):
    model, y, u = problem(seed)
    S = unit * (np.eye(model.states) + np.triu(np.random.default_rng(seed).normal(size=(model.states,) * 2), 1))
    inv = np.linalg.inv(S)
    turned = lk.LinearGaussian(
        transition=S @ model.transition @ inv,
        process_covariance=_symmetric(S @ model.process_covariance @ S.T),
        observation=model.observation @ inv,
        observation_covariance=model.observation_covariance,
        initial_mean=S @ model.initial_mean,
        initial_covariance=_symmetric(S @ model.initial_covariance @ S.T),
        control=None if u is None else S @ model.control,
        feedthrough=model.feedthrough,
    )
    a, b = model.smooth(y, u), turned.smooth(y, u)
    assert a.log_prob == pytest.approx(b.log_prob, rel=1e-9, abs=1e-9)
    close(b.mean @ inv.T, a.mean, 1e-9)
    close(inv @ b.covariance @ inv.T, a.covariance, 1e-9)


@pytest.mark.parametrize("unit", [1e-100, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("seed", [2, 6, 12, 14])
def test_other_units_of_observations_cost_their_logarithm(seed, unit):
    model, y, u = problem(seed)
    scaled = lk.LinearGaussian(
        transition=model.transition,
        process_covariance=model.process_covariance,
        observation=unit * model.observation,
        observation_covariance=unit**2 * model.observation_covariance,
        initial_mean=model.initial_mean,
        initial_covariance=model.initial_covariance,
        control=model.control,
        feedthrough=None if u is None else unit * model.feedthrough,
    )
    a, b = model.smooth(y, u), scaled.smooth(unit * y, u)
    close(b.mean, a.mean, 1e-9)
    close(b.covariance, a.covariance, 1e-9)
    assert b.log_prob + (~np.isnan(y)).sum() * np.log(unit) == pytest.approx(a.log_prob, rel=1e-9, abs=1e-9)


def _symmetric(a):
    return (a + a.T) / 2


# ----------------------------------------------------------------------- hazards, in words


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"transition": [[1.0, 0.0]]}, ShapeError, "transition must have shape"),
        ({"process_covariance": [[1.0]]}, ShapeError, "process_covariance must have shape"),
        (
            {"process_covariance": [[1.0, 2.0], [2.0, 1.0]]},
            DomainError,
            "process_covariance must be symmetric and positive semidefinite",
        ),
        ({"observation_covariance": [[-1.0]]}, DomainError, "observation_covariance must be symmetric"),
        ({"observation_covariance": [[np.nan]]}, DomainError, "observation_covariance must be finite"),
        ({"initial_mean": [0.0]}, ShapeError, "initial_mean must have shape"),
        ({"initial_covariance": [[1.0, 0.5], [0.0, 1.0]]}, DomainError, "initial_covariance must be symmetric"),
        (
            {"observation": np.ones((3, 1, 2)), "process_covariance": np.ones((2, 2, 2))},
            ShapeError,
            "the same number of frames",
        ),
        ({"control": np.ones((3, 1))}, ShapeError, "control must have shape"),
        ({"diffuse": [[1.0, 2.0], [1.0, 2.0]]}, DomainError, "must be linearly independent"),
        ({"transition": "text"}, ShapeError, "must be numbers"),
    ],
)
def test_models_that_cannot_be(change, error, words):
    parts = {
        "transition": np.eye(2),
        "process_covariance": np.eye(2),
        "observation": [[1.0, 0.0]],
        "observation_covariance": ONE,
    }
    with pytest.raises(error, match=words):
        lk.LinearGaussian(**{**parts, **change})


def test_frames_that_do_not_fit():
    model = lk.LinearGaussian(
        transition=np.eye(2), process_covariance=np.eye(2), observation=np.eye(2), observation_covariance=np.eye(2)
    )
    with pytest.raises(ShapeError, match="rows must have shape"):
        model.log_prob(np.zeros((3, 3)))
    with pytest.raises(DataError, match="sequence 1"):
        model.log_prob([np.zeros((2, 2)), np.array([[0.0, 1.0], [np.inf, 0.0]])])
    with pytest.raises(ShapeError, match="one frame of 2 columns"):
        model.update(model.initial_belief(), [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="must be finite"):
        model.update(model.initial_belief(), [1.0, np.inf])
    driven = lk.LinearGaussian(
        transition=ONE, process_covariance=ONE, observation=ONE, observation_covariance=ONE, control=[[1.0, 2.0]]
    )
    with pytest.raises(DataError, match="2 inputs"):
        driven.log_prob([1.0, 2.0])
    with pytest.raises(DataError, match="inputs must be finite"):
        driven.log_prob([1.0, 2.0], np.array([[1.0, 2.0], [np.nan, 0.0]]))
    short = lk.LinearGaussian(
        transition=np.ones((3, 1, 1)), process_covariance=ONE, observation=ONE, observation_covariance=ONE
    )
    with pytest.raises(ShapeError, match="a model of 3 frames"):
        short.log_prob(np.zeros(4))
    with pytest.raises(DataError, match="matrices for 3 frames"):
        list(lk.follow(short, np.zeros(4)))


@pytest.mark.parametrize("kind", ["int8", "uint16", "bool", ">f8", "float32"])
def test_any_kind_of_number_and_memory_is_taken(kind):
    model = lk.LinearGaussian(
        transition=np.eye(2), process_covariance=np.eye(2), observation=np.eye(2), observation_covariance=np.eye(2)
    )
    y = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    want = model.log_prob(y.astype(float))
    for rows in (y.astype(kind), np.asfortranarray(y.astype(kind)), y.astype(kind)[::-1][::-1]):
        close(model.log_prob(rows), want, 1e-6 if kind == "float32" else 1e-15)


def test_the_form_of_the_notes():
    rng = np.random.default_rng(0)
    A, B, C, D = (rng.normal(size=s) for s in ((2, 2), (2, 1), (3, 2), (3, 3)))
    model = lk.LinearGaussian.from_letters(A, B, C, D, initial_mean=np.zeros(2), initial_covariance=np.eye(2))
    close(model.process_covariance, B @ B.T)
    close(model.observation_covariance, D @ D.T)
    assert (model.states, model.dim, model.n_inputs, model.length) == (2, 3, 0, None)


def test_a_diffuse_state_that_overflows_is_an_error():
    model = lk.LinearGaussian(
        transition=[[1e200, 1e200], [0.0, 1e200]], process_covariance=[[1.0, 2.0], [2.0, 4.0]],
        observation=[[1.0, 0.0]], observation_covariance=[[1.0]],
    )  # fmt: skip
    with np.errstate(all="ignore"), pytest.raises(lk.DomainError, match="states must not overflow"):
        model.filter(np.zeros((3, 1)))
