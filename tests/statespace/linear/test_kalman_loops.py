"""Compiled Kalman loops against plain NumPy, step by step; each is compiled for one signature."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from likely import LinearGaussian, LinearSDE, Ragged, follow
from likely.core.job_size import job
from likely.io import model_files
from likely.statespace.linear import _loops as kalman
from likely.statespace.linear.kalman_filter import read_only

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
LOOPS = [
    kalman.filter_pass, kalman.smooth_pass, kalman.lag_pass, kalman.predict_one, kalman.update_one,
    kalman.simulate_states,
]  # fmt: skip


def use_every_way():
    """As the library meets them: read-only and not, float32, strided, one and many, with inputs, changing, diffuse."""
    rng = np.random.default_rng(0)
    for changing in (False, True):
        for start in (np.eye(2), None):
            for inputs in (False, True):
                model, y, u = example(rng, changing, start, inputs)
                fixed = y.copy()
                fixed.setflags(write=False)
                for rows in (y, fixed, y.astype(np.float32), np.asfortranarray(y), np.repeat(y, 2, axis=0)[::2]):
                    for some, known in ((rows, u), ([rows, rows], None if u is None else [u, u])):
                        model.log_prob(some, known), model.filter(some, known)
                        model.smooth(some, known), model.smooth(some, known, lag=4)
                known = None if u is None else u[-1]
                belief = model.belief_after(y[:4], None if u is None else u[:4])
                for b in (belief, model_files.loads(model_files.dumps(belief)), model.initial_belief()):
                    model.update(model.predict(b, known), y[0], known)
                    model.update(model.predict(b, known), fixed[0], known)
                model.forecast(y[:4], 1, None if u is None else u[:4], None if u is None else u[:1])
                model.draw_states(y, 2, rng, u)
                model.sample(2, rng, 5, None if u is None else [u[:3], u[:2]])
                if not changing:
                    model.steady_state()
                    model.smooth(np.full((3, 2), np.nan), None if u is None else u[:3], lag=1)
                if u is None:
                    list(follow(model, list(y[:3])))
                    model.collect(Ragged(np.vstack([y, y]), [0, 5, 10, 12]))

    moving = LinearSDE.integrated(2)
    for times in ([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]):
        (
            moving.smooth([0.0, 1.0, 3.0], times),
            moving.log_prob([0.0, 1.0, 3.0], times),
            moving.at(times).sample(2, rng, 3),
        )
        list(follow(moving, [0.0, 1.0, 3.0], inputs=times))


def example(rng, changing, start, inputs):
    each = (6,) if changing else ()
    A, C = np.broadcast_to([[0.9, 0.1], [0.0, 0.8]], (*each, 2, 2)), rng.normal(size=(*each, 2, 2))
    F, G = (rng.normal(size=(*each, 2, 1)), rng.normal(size=(2, 1))) if inputs else (None, None)
    model = LinearGaussian(
        transition=A,
        process_covariance=np.eye(2),
        observation=C,
        observation_covariance=np.eye(2),
        initial_mean=np.zeros(2),
        initial_covariance=start,
        control=F,
        feedthrough=G,
    )
    return model, rng.normal(size=(6, 2)), rng.normal(size=(6, 1)) if inputs else None


@pytest.mark.slow
def test_every_way_works():
    use_every_way()


@jit
def test_each_loop_compiles_once():
    with job(math.inf):
        use_every_way()
    assert {f.__name__: len(f.dispatcher.signatures) for f in LOOPS} == {f.__name__: 1 for f in LOOPS}


@jit
def test_options_of_the_one_decorator():
    for f in LOOPS:
        assert f.dispatcher.targetoptions.get("nogil") and f.dispatcher.targetoptions.get("error_model") == "numpy"
        assert not f.dispatcher.targetoptions.get("fastmath") and not f.dispatcher.targetoptions.get("parallel")


# ------------------------------------------------------------------------ turning


def turned(w, least=kalman.ROUNDING):
    made, pivots = w.copy(), np.zeros(w.shape[1], np.int64)
    rank = kalman._triangularize(made, *w.shape, pivots, np.zeros(w.shape[1]), least)
    return made, pivots, rank


@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (3, 5), (6, 6)])
def test_turning_keeps_squares(shape):
    w = np.random.default_rng(1).normal(size=shape)
    made, pivots, rank = turned(w)
    np.testing.assert_allclose(made.T @ made, w.T @ w, atol=1e-13)
    assert rank == min(shape) and not np.tril(made, -1).any()
    assert (made[pivots[pivots >= 0], np.flatnonzero(pivots >= 0)] > 0).all()


def test_columns_that_depend_on_others_get_no_pivot():
    rng = np.random.default_rng(2)
    w = rng.normal(size=(5, 4))
    w[:, 2] = w[:, 0] - 2 * w[:, 1]
    made, pivots, rank = turned(w)
    assert rank == 3 and pivots.tolist() == [0, 1, -2, 2]  # what rounding left was left out
    np.testing.assert_allclose(made.T @ made, w.T @ w, atol=1e-13)


def test_a_second_turn_tells_small_rows_from_rounding():
    rng = np.random.default_rng(2)
    dependent = rng.normal(size=(5, 4))
    dependent[:, 2] = dependent[:, 0] - 2 * dependent[:, 1]
    thin = np.array([[1.0, 0.0, 1.0], [1e20, 1e20, 0.0], [0.0, 0.0, 0.0]])  # the second pivot is 1, beside 1e20
    for w, want in ((dependent, [0, 1, -1, 2]), (thin, [0, 1, -1])):
        made, pivots = w.copy(), np.zeros(w.shape[1], np.int64)
        rank = kalman._triangularize_rank_revealing(made, *w.shape, pivots, kalman.ROUNDING)
        assert rank == max(want) + 1 and pivots.tolist() == want
        np.testing.assert_allclose(made.T @ made, w.T @ w, rtol=1e-13, atol=1e-13)
    assert made[1, 1] == pytest.approx(1.0) and turned(thin)[1][1] == -2


@pytest.mark.parametrize("size", [1e8, 1e14])
def test_a_large_row_does_not_drown_small_ones(size):
    """What is left of (1, 0) below (size, size) has all its digits: size/√(1 + size²)."""
    made, _, _ = turned(np.array([[1.0, 0.0], [size, size]]))
    assert made[1, 1] == pytest.approx(size / np.hypot(1.0, size), rel=1e-15)


# --------------------------------------------------------------------- one step, plainly


def random_step(seed):
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    A, C, m, intercept = (
        rng.normal(size=(1, d, d)),
        rng.normal(size=(1, p, d)),
        rng.normal(size=d),
        rng.normal(size=(1, d)),
    )
    U, N, R = (np.triu(rng.normal(size=(n, n))) for n in (d, d, p))
    y = rng.normal(size=(1, p))
    y[0, rng.random(p) < 0.3] = np.nan
    return [read_only(a) for a in (A, C, m, intercept, U, N[None], R[None], y)]


@pytest.mark.parametrize("seed", range(30))
def test_one_step_is_the_textbooks(seed):
    A, C, m, intercept, U, N, R, y = random_step(seed)
    to_m, to_U = np.empty_like(m), np.empty_like(U)
    kalman.predict_one(A, N, intercept, 5, m, U, to_m, to_U)
    mean, P = A[0] @ m + intercept[0], A[0] @ U.T @ U @ A[0].T + N[0].T @ N[0]
    np.testing.assert_allclose(to_m, mean, atol=1e-12)
    np.testing.assert_allclose(to_U.T @ to_U, P, atol=1e-12)
    after, root = np.empty_like(m), np.empty_like(U)
    found = kalman.update_one(y, C, R, 5, read_only(to_m), read_only(to_U), after, root)
    seen = ~np.isnan(y[0])
    C, R, e = C[0][seen], (R[0].T @ R[0])[np.ix_(seen, seen)], y[0, seen] - C[0][seen] @ mean
    S = C @ P @ C.T + R
    K = np.linalg.solve(S, C @ P).T
    np.testing.assert_allclose(after, mean + K @ e, atol=1e-9)
    np.testing.assert_allclose(root.T @ root, P - K @ C @ P, atol=1e-9)
    want = -0.5 * (seen.sum() * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + e @ np.linalg.solve(S, e))
    assert found == pytest.approx(want, abs=1e-9)


def test_many_beliefs_step_as_each_by_itself():
    rng = np.random.default_rng(4)
    K, n, d, p = 3, 7, 2, 2
    A, C, intercept, y = (rng.normal(size=s) for s in ((K, d, d), (K, p, d), (K, d), (K, p)))
    y[1, 0] = np.nan
    N, R = np.triu(rng.normal(size=(K, d, d))), np.triu(rng.normal(size=(K, p, p)))
    m, U, which = rng.normal(size=(n, d)), np.triu(rng.normal(size=(n, d, d))), rng.integers(0, K, n)
    for moves in (True, False):
        got_m, got_U, out = m.copy(), U.copy(), np.empty(n)
        kalman.step_many(A, N, C, R, intercept, y, which, moves, got_m, got_U, out)
        for i, k in enumerate(which):
            at_m, at_U = m[i].copy(), U[i].copy()
            one = [read_only(np.ascontiguousarray(a[k : k + 1])) for a in (A, N, C, R, intercept, y)]
            if moves:
                kalman.predict_one(one[0], one[1], one[4], 1, read_only(m[i]), read_only(U[i]), at_m, at_U)
            to_m, to_U = np.empty(d), np.empty((d, d))
            news = kalman.update_one(one[5], one[2], one[3], 1, read_only(at_m), read_only(at_U), to_m, to_U)
            assert out[i] == news and got_m[i].tobytes() == to_m.tobytes() and got_U[i].tobytes() == to_U.tobytes()


def test_simulated_states_follow_the_recursion():
    rng = np.random.default_rng(5)
    A, intercept = rng.normal(size=(1, 2, 2)), rng.normal(size=(5, 2))
    noise, starts, out = rng.normal(size=(5, 2)), rng.normal(size=(2, 2)), np.empty((5, 2))
    kalman.simulate_states(read_only(A), read_only(intercept), noise, read_only(np.array([0, 3, 5])), starts, out)
    for f in range(5):
        want = starts[f // 3] if f in (0, 3) else A[0] @ out[f - 1] + intercept[f] + noise[f]
        np.testing.assert_allclose(out[f], want, rtol=1e-14)
