"""Reprs of models and results are one line, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.recognizers.faults.fault_watch import Watched
from likely.statespace.linear.standard_errors import standard_errors
from likely.statespace.switching.fault_alarms import fault_alarms

LEVEL = lk.LinearGaussian.local_level(level_variance=1469.0, observation_variance=15099.0)
TRACK = lk.LinearGaussian.constant_velocity(dim=2, dt=0.1, spectral_density=0.3, observation_variance=1.0)


def walk(n: int, p: int = 1) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, p)).cumsum(axis=0)


def test_states_in_a_line():
    y = walk(100)
    found, filtered = LEVEL.smooth(y), LEVEL.filter(y)
    log_prob = f"{float(np.sum(found.log_prob)):.2f}"
    assert repr(found) == str(found) == f"Smoothed(100 frames of 1 state, log_prob={log_prob})"
    assert repr(filtered) == f"States(100 frames of 1 state, log_prob={log_prob})"
    mean, covariance, *_ = found  # still a tuple
    assert mean.shape == (100, 1) and covariance.shape == (100, 1, 1)


def test_states_of_several_sequences_in_a_line():
    found = TRACK.smooth([walk(5, 2), walk(7, 2)])
    log_prob = float(np.sum(found.log_prob))
    assert repr(found) == f"Smoothed(2 sequences, 12 frames of 4 states, log_prob={log_prob:.2f})"


def test_models_in_a_line():
    assert repr(LEVEL) == ("LinearGaussian(1 state, 1 column, diffuse initial state, transition=[[1]], "
                           "process_covariance=[[1469]], observation=[[1]], "
                           "observation_covariance=[[15099]])")  # fmt: skip
    assert repr(TRACK) == "LinearGaussian(4 states, 2 columns, diffuse initial state)"
    known = lk.LinearGaussian(
        transition=np.eye(3),
        process_covariance=np.eye(3),
        observation=np.ones((5, 1, 3)),
        observation_covariance=[[1.0]],
        initial_mean=np.zeros(3),
        initial_covariance=np.eye(3),
        control=np.ones((3, 2)),
    )
    assert (
        repr(known) == "LinearGaussian(3 states, 1 column, 2 inputs, time-varying over 5 frames, proper initial state)"
    )
    half = lk.LinearGaussian(
        transition=np.eye(2),
        process_covariance=np.eye(2),
        observation=[[1.0, 0.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
        diffuse=[[1.0], [0.0]],
    )
    assert "initial state diffuse in 1 of 2 directions" in repr(half)
    timed = lk.LinearSDE.matern(0.5, length_scale=2.0, variance=1.0, observation_variance=0.01)
    assert repr(timed) == ("LinearSDE(1 state, 1 column, proper initial state, drift=[[-0.5]], diffusion=[[1]], "
                           "observation=[[1]], observation_covariance=[[0.01]])")  # fmt: skip


def test_forecasts_and_errors_in_a_line():
    y = walk(50)
    ahead = LEVEL.forecast(y, 30)
    assert repr(ahead).startswith("StateForecast(30 steps of 1 column, mean [") and len(repr(ahead)) < 100
    wide = lk.LinearGaussian(
        transition=np.eye(6),
        process_covariance=np.eye(6),
        observation=np.eye(6),
        observation_covariance=np.eye(6),
        initial_mean=np.zeros(6),
        initial_covariance=np.eye(6),
    )
    assert repr(wide.forecast(walk(5, 6), 2)) == "StateForecast(2 steps of 6 columns)"
    errors = standard_errors(
        lk.LinearGaussian(
            transition=[[0.5]],
            process_covariance=[[1.0]],
            observation=[[1.0]],
            observation_covariance=[[1.0]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        ),
        y,
        ["process_covariance"],
    )
    assert (
        repr(errors)
        == f"StandardErrors(1 free entry, process_covariance=[[{float(errors['process_covariance'][0, 0]):.6g}]])"
    )


@pytest.mark.parametrize(("fault", "words"), [(False, "0 in alarm)"), (True, "2 in alarm, the first is 3)")])
def test_watched_streams_in_a_line(fault, words):
    alarm = np.array([False, False, False, fault, fault])
    seen = Watched(np.zeros(5), alarm, np.zeros(5), np.zeros((5, 2)), np.zeros((5, 8)), np.zeros(5))
    assert repr(seen) == f"Watched(5 frames of 8 sensors, {words}"


def test_alarms_in_a_line():
    assert repr(fault_alarms([[0.9, 0.1], [0.2, 0.8]])) == "Alarms(2 frames, 1 with an action, first=1)"
    assert repr(fault_alarms([[0.9, 0.1]])) == "Alarms(1 frame, 0 with an action, first=None)"
