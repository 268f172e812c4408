"""Observation times: validation and distinct steps."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError, ShapeError
from likely.core.ragged import Ragged
from likely.statespace.continuous.observation_times import clock, clocks, steps_between


def test_steps_that_differ_by_rounding_are_one():
    t = 1e4 + np.arange(100_000) * 0.1
    assert len(np.unique(np.diff(t))) > 1
    steps, which = steps_between(Ragged.of(t))
    assert which[0] == -1
    assert (which[1:] == 0).all()
    assert steps[0] * 99_999 == pytest.approx(t[-1] - t[0], rel=1e-13)  # their mean, so that nothing drifts


def test_steps_that_really_differ_stay_apart():
    t = np.cumsum(np.random.default_rng(0).random(2000))
    steps, which = steps_between(Ragged.of(t))
    assert len(steps) == 1999
    np.testing.assert_allclose(steps[which[1:]], np.diff(t), rtol=1e-9)


def test_no_step_is_a_step_of_its_own():
    steps, which = steps_between(Ragged.of(np.array([0.0, 0.0, 1e-17, 1.0, 1.0])))
    assert steps.tolist() == [0.0, 1e-17, 1.0]
    assert which.tolist() == [-1, 0, 1, 2, 0]


def test_first_frames_and_empty_sequences():
    told = Ragged.from_list([np.array([5.0]), np.empty(0), np.array([1.0, 2.0])])
    steps, which = steps_between(told)
    assert steps.tolist() == [1.0]
    assert which.tolist() == [-1, -1, 0]


def test_one_clock_for_all():
    series = Ragged.of([np.zeros(3), np.ones(3)])
    assert clocks([0.0, 1.0, 2.0], series, "x").lengths.tolist() == [3, 3]
    with pytest.raises(ShapeError, match="one time for each frame"):
        clocks([[0.0], [1.0]], series, "x")


@pytest.mark.parametrize("times, words", [
    ([2.0, 1.0], "1 after 2"), ([0.0, np.inf], "row 1"), (np.array(["2020-01-01"], "datetime64[s]"), "timedelta64"),
])  # fmt: skip
def test_bad_clocks(times, words):
    with pytest.raises(DataError, match=words):
        clock(times, "x")
