"""Short complete sequences: NumPy and the compiled loops agree, whatever stands beside a sequence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely import LinearGaussian
from likely.core.job_size import job
from likely.numerics.compile import CompiledFunction
from likely.statespace.linear import _loops as kalman
from likely.statespace.linear import kalman_filter, short_sequences
from likely.statespace.linear.kalman_filter import series_of


def example(seed, diffuse=False, inputs=False):
    rng = np.random.default_rng(seed)
    d, p = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    a, q, r = rng.normal(size=(d, d)), rng.normal(size=(d, d + 1)), rng.normal(size=(p, p + 1))
    start = {} if diffuse else {"initial_mean": rng.normal(size=d), "initial_covariance": np.eye(d) + 0.3}
    model = LinearGaussian(
        transition=0.95 * a / np.abs(np.linalg.eigvals(a)).max(), process_covariance=q @ q.T,
        observation=rng.normal(size=(p, d)), observation_covariance=r @ r.T, **start,
        control=rng.normal(size=(d, 1)) if inputs else None,
    )  # fmt: skip
    lengths = [30, 7, 1, 64, 7]
    y = [np.cumsum(rng.normal(size=(n, p)), axis=0) for n in lengths]
    return model, y, [rng.normal(size=(n, 1)) for n in lengths] if inputs else None


def every_answer(model, y, u):
    """All numbers of the filter and of the smoother."""
    filtered, smoothed = model.filter(y, u), model.smooth(y, u)
    means = [a.values for a in (filtered.mean, filtered.covariance, *smoothed[:2], smoothed.lag_one)]
    return [model.log_prob(y, u), filtered.log_prob, smoothed.log_prob, *means]


@pytest.mark.parametrize("diffuse", [False, True])
@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_both_ways_agree(monkeypatch, seed, diffuse, inputs):
    (model, y, u), used = example(seed, diffuse, inputs), kalman.filter_pass
    if diffuse:  # one frame need not determine the state: lengths that do
        y, u = [a for a in y if len(a) > 5], u and [a for a in u if len(a) > 5]
    with monkeypatch.context() as patched:
        patched.setattr(kalman_filter, "loop_for", lambda loop, *_: pytest.fail("used") if loop is used else loop.plain)
        short = every_answer(model, y, u)
    with job(math.inf):
        compiled = every_answer(model, y, u)
    for got, want in zip(short, compiled, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want[np.isfinite(want)]).max())


def test_a_sequence_has_the_same_bits_in_any_company():
    model, y, _ = example(1)
    gap = y[0].copy()
    gap[3] = np.nan
    together = every_answer(model, [*y, gap, np.zeros((3000, y[0].shape[1]))], None)
    alone = every_answer(model, y[1:2], None)
    assert together[0][1] == alone[0][0] and together[1][1] == alone[1][0] and together[2][1] == alone[2][0]
    for got, want in zip(together[3:], alone[3:], strict=True):
        assert got[30:37].tobytes() == want.tobytes()


@pytest.mark.parametrize("diffuse", [False, True])
def test_few_frames_with_missing_entries_are_not_compiled(monkeypatch, diffuse):
    model, y, _ = example(2, diffuse)
    y = [np.where(np.arange(len(a))[:, None] % 4 == 3, np.nan, a) for a in y if len(a) > 5]
    with monkeypatch.context() as patched:
        patched.setattr(CompiledFunction, "dispatcher", property(lambda self: pytest.fail(f"{self.name} is compiled")))
        plain = every_answer(model, y, None)
        with pytest.raises(pytest.fail.Exception, match="pass is compiled"):
            every_answer(model, y * 100, None)
    with job(math.inf):
        compiled = every_answer(model, y, None)
    for got, want in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_what_is_short():
    model, y, _ = example(0)
    gap = np.full_like(y[0], np.nan)
    series = series_of(model, [y[0], gap, np.zeros((10**5, model.dim)), np.zeros((0, model.dim))])
    assert short_sequences.are_short(model, series).tolist() == [True, False, False, False]
    with job(math.inf):
        assert not short_sequences.are_short(model, series).any()


@pytest.mark.parametrize("observation_variance", [0.0, 1.0])
def test_singular_covariances_are_left_to_the_loops(observation_variance):
    """An initial state without variance, noise-free sensors: the loops decide about ranks."""
    one, none = np.eye(1), np.zeros((2, 2))
    model = LinearGaussian(
        transition=np.eye(2), process_covariance=np.diag([1.0, 0.0]), observation=np.ones((1, 2)),
        observation_covariance=observation_variance * one, initial_mean=np.zeros(2), initial_covariance=none,
    )  # fmt: skip
    y = [np.array([[0.0], [1.0], [3.0]]), np.array([[0.0]])]
    short = every_answer(model, y, None)
    with job(math.inf):
        for got, want in zip(short, every_answer(model, y, None), strict=True):
            np.testing.assert_array_equal(got, want)


def test_frames_that_overflow_are_left_to_the_loops():
    model, y, _ = example(2)
    y[0][2] = 1e200
    with pytest.warns(UserWarning, match="impossible"):
        found = model.filter(y)
    assert np.isneginf(found.log_prob[0]) and np.isfinite(found.log_prob[1:]).all()
    assert found.log_prob[1] == model.log_prob(y[1:2])[0]
