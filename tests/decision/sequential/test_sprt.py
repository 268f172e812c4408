"""Wald's test keeps its promises: errors below the bounds, sizes as theory has them."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.decision.sequential.sprt import SPRT, log_ratios


def simulated(test: SPRT, shift: float, truth: float, runs: int = 10_000, length: int = 400):
    x = np.random.default_rng(5).normal(truth * shift, 1.0, (runs, length))
    done = test.run(log_ratios(x, shift))
    assert (done.verdict >= 0).all()
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.01, 0.1)])
def test_errors_stay_below_walds_bounds(alpha, beta):
    test = SPRT(alpha, beta)
    wrong0 = (simulated(test, 0.5, 0.0).verdict == 1).mean()
    wrong1 = (simulated(test, 0.5, 1.0).verdict == 0).mean()
    slack = 3 * np.sqrt(0.1 * 0.9 / 10_000)
    assert 0.4 * alpha < wrong0 <= alpha / (1 - beta) and 0.4 * beta < wrong1 <= beta / (1 - alpha)
    assert wrong0 + wrong1 <= alpha + beta + slack


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("shift", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 0.5, 1.0])
def test_sizes_and_power_are_those_of_theory(shift, truth):
    test = SPRT(0.05, 0.05)
    done, expected = simulated(test, shift, truth, length=1000), test.operating(shift, truth)
    assert done.n_observations.mean() == pytest.approx(expected.size, rel=0.02)
    assert (done.verdict == 1).mean() == pytest.approx(expected.power, abs=0.015)


def test_it_takes_half_of_what_a_fixed_sample_does():
    fixed = (2 * 1.6449 / 0.5) ** 2  # both errors 5 % at a shift of half a standard deviation
    assert SPRT(0.05, 0.05).operating(0.5, 0.0).size < 0.6 * fixed


def test_thresholds_are_the_textbooks():
    assert SPRT(0.05, 0.1).thresholds == pytest.approx((np.log(0.1 / 0.95), np.log(18)))
    assert SPRT().thresholds == pytest.approx((-4.595, 4.595), abs=1e-3)


def test_steps_are_pure_and_agree_with_runs():
    z = log_ratios(np.random.default_rng(1).normal(0.5, 1.0, 300), 1.0)
    test = SPRT(0.01, 0.01)
    now = test
    for increment in z:
        now = now.step(increment)
    done = test.run(z)
    assert (now.verdict, now.n_observations) == (done.verdict[0], done.n_observations[0])
    assert test.total == 0 and now.step(-100.0) is now  # what is decided stays so
    half = test.run(z[:3])
    assert half.verdict.tolist() == [-1] and half.n_observations.tolist() == [3]


@pytest.mark.parametrize("total", [0.0, 10.0, -10.0, np.inf])
@pytest.mark.parametrize("z", [[], [0.0], [-20.0], [20.0, -50.0], [np.inf, -np.inf], [1e308, 1e308], [0.1] * 50])
def test_runs_begin_where_the_test_stands(total, z):
    begun = SPRT(0.05, 0.05, total=total, n_observations=3)
    now = begun
    for increment in z:
        now = now.step(increment)
    with np.errstate(all="raise"):
        done = begun.run(z)
    assert (done.verdict.tolist(), done.n_observations.tolist()) == (
        [-1 if now.verdict is None else now.verdict],
        [now.n_observations],
    )


def test_runs_add_up_as_steps_do():
    z = np.random.default_rng(9).normal(0.01, 0.3, (200, 60))
    test = SPRT(0.1, 0.1, total=0.1)
    for row, verdict, taken in zip(z, *test.run(z), strict=True):
        now = test
        for increment in row:
            now = now.step(increment)
        assert (-1 if now.verdict is None else now.verdict, now.n_observations) == (verdict, taken)
    assert test.run(np.zeros((4, 0))).n_observations.tolist() == [0] * 4
    for wrong in (1.0, np.zeros((2, 2, 2)), ["a"], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ShapeError, match="increments must"):
            test.run(wrong)


def test_certainty_decides_and_nonsense_is_refused():
    assert SPRT().step(np.inf).verdict == 1 and SPRT().step(-np.inf).verdict == 0
    with pytest.raises(DataError, match="pass 0"):
        SPRT().step(np.nan)
    with pytest.raises(DataError, match="NaN"):
        SPRT().run([0.1, np.nan])
    with pytest.raises(DomainError, match="alpha and beta"):
        SPRT(0.6, 0.5)
    with pytest.raises(DomainError, match="shift"):
        SPRT().operating(-1.0)


def test_running_evidence_of_two_models_is_its_increment():
    calm, wild = (lk.HMM([1.0], [[1.0]], lk.Gaussian([[m]], 1.0)) for m in (0.0, 1.0))
    x = np.random.default_rng(2).normal(1.0, 1.0, 60)
    test = SPRT()
    for (_, p0), (_, p1) in zip(lk.follow(calm, x), lk.follow(wild, x), strict=True):
        test = test.step(p1 - p0)
    expected = SPRT().run(log_ratios(x, 1.0))
    assert (test.verdict, test.n_observations) == (1, expected.n_observations[0])
