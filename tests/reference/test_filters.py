"""Extended and unscented filters against filterpy's; make_filters.py made the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import likely as lk
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.nonlinear.unscented_kalman_filter import UnscentedKalmanFilter

REFERENCE = json.loads(Path(__file__).with_name("filters.json").read_text())
Y = np.array(REFERENCE["y"])


def move(x):
    a, b, heading, speed = x.T
    out = [a + speed * np.cos(heading), b + speed * np.sin(heading), heading + 0.1, 0.95 * speed + 0.05]
    return lk.Gaussian(np.stack(out, axis=1), REFERENCE["moved"])


def see(x):
    a, b = x[:, 0] + 8.0, x[:, 1] + 6.0
    return lk.Gaussian(np.stack([np.hypot(a, b), np.arctan2(b, a)], axis=1), REFERENCE["seen"])


MODEL = StateSpace(lk.Gaussian(REFERENCE["start"]["mean"], REFERENCE["start"]["variance"]), move, see)


def test_extended():
    want, found = REFERENCE["extended"], ExtendedKalmanFilter(MODEL).filter(Y)
    np.testing.assert_allclose(found.mean, want["mean"], atol=1e-7)
    np.testing.assert_allclose(found.covariance, want["covariance"], atol=1e-7)
    assert found.log_prob == pytest.approx(want["log_prob"], abs=1e-6)


@pytest.mark.parametrize("name", ["ordinary", "narrow", "wide"])
def test_unscented(name):
    want = REFERENCE["unscented"][name]
    alpha, beta, kappa = want["rule"]
    f = UnscentedKalmanFilter(MODEL, alpha=alpha, beta=beta, kappa=kappa)
    filtered, smoothed = f.filter(Y), f.smooth(Y)
    np.testing.assert_allclose(filtered.mean, want["mean"], atol=1e-8)
    np.testing.assert_allclose(filtered.covariance, want["covariance"], atol=1e-8)
    np.testing.assert_allclose(smoothed.mean, want["smoothed"], atol=1e-7)
    np.testing.assert_allclose(smoothed.covariance, want["smoothed_covariance"], atol=1e-7)
