"""Missing entries of a linear-Gaussian sequence against the joint Gaussian of all entries."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.statespace.linear import linear_e_step
from tests.statespace.dense import Dense


def made(changes, T=30):
    rng = np.random.default_rng(3)
    b = rng.normal(size=(T, 3, 3)) if changes else rng.normal(size=(3, 3))
    model = lk.LinearGaussian(
        transition=0.5 * np.eye(2),
        process_covariance=np.eye(2),
        observation=rng.normal(size=(3, 2)),
        observation_covariance=b @ np.swapaxes(b, -1, -2),
        initial_mean=np.zeros(2),
        initial_covariance=np.eye(2),
    )
    y = rng.normal(size=(T, 3))
    y[rng.random(y.shape) < 0.4] = np.nan
    y[5] = np.nan
    return model, y


def by_dense(model, y):
    """E[y | what was seen] from the covariance of all entries."""
    joint, flat = Dense(model, y), y.reshape(-1)
    seen = np.flatnonzero(~np.isnan(flat))
    cov, mean = joint.y_cov.astype(float), joint.y_mean.astype(float)
    found = mean + cov[:, seen] @ np.linalg.solve(cov[np.ix_(seen, seen)], flat[seen] - mean[seen])
    return np.where(np.isnan(flat), found, flat).reshape(y.shape)


@pytest.mark.parametrize("changes", [False, True])
def test_missing_values_are_filled_by_their_expectation(changes):
    model, y = made(changes)
    np.testing.assert_allclose(model.impute(y), by_dense(model, y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.impute([y, y])[1], model.impute(y), rtol=1e-13)


def test_nothing_missing_is_left_as_it_was():
    model, y = made(False)
    full = np.nan_to_num(y)
    assert model.impute(full).tolist() == full.tolist()


def test_frames_with_the_same_missing_values_are_filled_together(monkeypatch):
    model, y = made(False, 2000)
    asked, lift = [], linear_e_step.missing_regression
    monkeypatch.setattr(linear_e_step, "missing_regression", lambda R, seen: asked.append(tuple(seen)) or lift(R, seen))
    model.impute(y)
    assert 0 < len(asked) == len(set(asked)) <= 6
