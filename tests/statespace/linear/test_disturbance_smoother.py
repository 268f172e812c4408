"""Smoothing where observations have no noise, against conditional expectations in 120 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import likely as lk
from likely.statespace.linear import kalman_smoother

DIFFUSE = 10**30  # a variance that stands for infinity: its inverse is below the digits compared


def arima(first_variance: float = 4.0, diffuse: bool = False) -> tuple[lk.LinearGaussian, np.ndarray]:
    """ARIMA(1, 1, 1): level, ARMA part and moving-average term; the sum of the first two is observed exactly."""
    noise = np.array([0.0, 1.0, 0.3])
    P = np.diag([0.0 if diffuse else first_variance, 1.5, 0.3])
    model = lk.LinearGaussian(
        transition=np.array([[1.0, 1.0, 0.0], [0.0, 0.6, 1.0], [0.0, 0.0, 0.0]]),
        process_covariance=np.outer(noise, noise),
        observation=np.array([[1.0, 1.0, 0.0]]),
        observation_covariance=np.zeros((1, 1)),
        initial_mean=np.zeros(3),
        initial_covariance=P,
        diffuse=np.array([[1.0], [0.0], [0.0]]) if diffuse else None,
    )
    return model, P + (np.diag([1.0, 0.0, 0.0]) * DIFFUSE if diffuse else 0.0)


def exact_sensor() -> tuple[lk.LinearGaussian, np.ndarray]:
    """A trend seen by two sensors, one of them without noise."""
    model = lk.LinearGaussian(
        transition=np.array([[1.0, 1.0], [0.0, 1.0]]),
        process_covariance=np.diag([0.0, 0.1]),
        observation=np.array([[1.0, 0.0], [1.0, 0.0]]),
        observation_covariance=np.diag([0.0, 1.0]),
        initial_mean=np.zeros(2),
        initial_covariance=np.eye(2),
    )
    return model, np.eye(2)


CASES = {"ARIMA": arima, "diffuse ARIMA": lambda: arima(diffuse=True), "exact sensor": exact_sensor}


def conditional(model: lk.LinearGaussian, P0: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, d) and covariance (n, d, n, d) of all states given the observed entries."""
    with mp.workdps(120):
        A, Q = mp.matrix(model.transition.tolist()), mp.matrix(model.process_covariance.tolist())
        C, R = mp.matrix(model.observation.tolist()), model.observation_covariance
        n, d = len(y), model.states
        joint, P = mp.zeros(n * d, n * d), mp.matrix(P0.tolist())
        for t in range(n):
            block = P
            for u in range(t, n):
                for i in range(d):
                    for j in range(d):
                        joint[u * d + i, t * d + j] = joint[t * d + j, u * d + i] = block[i, j]
                block = A * block
            P = A * P * A.T + Q
        seen = [(t, i) for t in range(n) for i in range(y.shape[1]) if np.isfinite(y[t, i])]
        H = mp.zeros(len(seen), n * d)
        for row, (t, i) in enumerate(seen):
            for j in range(d):
                H[row, t * d + j] = C[i, j]
        S = H * joint * H.T
        for row, (_, i) in enumerate(seen):
            S[row, row] += mp.mpf(float(R[i, i]))
        gain = joint * H.T * S**-1
        mean = gain * mp.matrix([float(y[t, i]) for t, i in seen])
        cov = joint - gain * H * joint
        return (
            np.array([float(v) for v in mean]).reshape(n, d),
            np.array([float(v) for v in cov]).reshape(n, d, n, d),
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smoothed_moments_are_the_conditional_ones(name, rng):
    model, P0 = CASES[name]()
    drawn = arima()[0] if "ARIMA" in name else model
    y = drawn.sample(1, rng, length=14)[0].copy()
    y[4], y[8:10, 0] = np.nan, np.nan
    mean, cov = conditional(model, P0, y)
    found = model.smooth(y)
    at = np.arange(len(y))
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.covariance, cov[at, :, at], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.lag_one[1:], cov[at[1:], :, at[:-1]], rtol=0, atol=1e-11)


def test_short_sequences_are_smoothed_by_the_first_recursion(rng, monkeypatch):
    """It is the more accurate one where the smoother reduces variances a lot."""
    model = exact_sensor()[0]
    y = model.sample(1, rng, length=6)[0]
    monkeypatch.setattr(kalman_smoother, "smooth_noiseless", None)  # would be an error
    model.smooth(y)


def test_errors_do_not_grow_with_the_length(rng):
    model = arima()[0]
    y = model.sample(1, rng, length=400)[0]
    found = model.smooth(y)
    np.testing.assert_allclose(found.mean[:, :2].sum(axis=1), y[:, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.mean[1:, 0], found.mean[:-1, :2].sum(axis=1), rtol=0, atol=1e-9)


def test_the_same_states_as_with_very_little_noise(rng):
    model = arima()[0]
    y = model.sample(1, rng, length=30)[0]
    little = model.replace(observation_covariance=np.full((1, 1), 1e-8))
    little = lk.LinearGaussian(**{**little.field_values()})
    np.testing.assert_allclose(model.smooth(y).mean, little.smooth(y).mean, rtol=0, atol=1e-3)
