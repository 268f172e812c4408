"""Writes kalman.json: exact diffuse log-likelihoods, smoothed states and covariances by statsmodels, with gaps.

Run it where statsmodels is installed, with the data at hand: python tests/reference/make_kalman.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "timeseries"
STEP = 9  # every ninth frame is kept


def nile(gaps: bool) -> np.ndarray:
    y = np.array([float(line.split(",")[-1]) for line in (DATA / "Nile.csv").read_text().split()[1:]])
    if gaps:
        y[20:40], y[60:80:3] = np.nan, np.nan
    return y


def two_sensors() -> np.ndarray:
    """Frames of two entries of which one, the other or both are missing."""
    rng = np.random.default_rng(8)
    y = np.cumsum(rng.normal(size=(40, 2)), axis=0).round(3)
    y[rng.random(y.shape) < 0.3] = np.nan
    return y


def made(y, A, Q, C, R, known=0) -> dict:
    """All states unknown at first, or, of `known`, the last few N(0, 1)."""
    from statsmodels.tsa.statespace.initialization import Initialization
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    A, Q, C, R = (np.asarray(a, float) for a in (A, Q, C, R))
    d, p = len(A), len(C)
    model = KalmanSmoother(k_endog=p, k_states=d, k_posdef=d)
    model["transition"], model["selection"], model["state_cov"] = A, np.eye(d), Q
    model["design"], model["obs_cov"] = C, R
    start = Initialization(d)
    start.set((0, d - known), "diffuse")
    if known:
        start.set((d - known, d), "known", constant=np.zeros(known), stationary_cov=np.eye(known))
    model.initialize(start)
    model.bind(np.ascontiguousarray(np.reshape(y, (-1, p))))
    found = model.smooth()
    unseen = [None if np.isnan(v) else float(v) for v in np.ravel(y)]
    return {
        "y": unseen, "A": A.tolist(), "Q": Q.tolist(), "C": C.tolist(), "R": R.tolist(), "known": known,
        "log_prob": float(found.llf), "mean": found.smoothed_state.T[::STEP].tolist(),
        "covariance": found.smoothed_state_cov.transpose(2, 0, 1)[::STEP].tolist(),
    }  # fmt: skip


def cases() -> dict:
    trend, seasons = np.array([[1.0, 1.0], [0.0, 1.0]]), np.zeros((4, 4))
    seasons[0, 0], seasons[1, 1:], seasons[2, 1], seasons[3, 2] = 1.0, -1.0, 1.0, 1.0
    turn = [[0.9, 0.2, 0.1], [-0.1, 0.8, 0.3], [0.0, 0.0, 0.7]]
    return {
        "level": made(nile(False), [[1.0]], [[1469.0]], [[1.0]], [[15099.0]]),
        "level with gaps": made(nile(True), [[1.0]], [[1469.0]], [[1.0]], [[15099.0]]),
        "trend with gaps": made(nile(True), trend, np.diag([1469.0, 10.0]), [[1.0, 0.0]], [[15099.0]]),
        "seasons with gaps": made(
            nile(True), seasons, np.diag([1469.0, 100.0, 0.0, 0.0]), [[1.0, 1.0, 0.0, 0.0]], [[15099.0]]
        ),
        "two sensors": made(
            two_sensors(), turn, np.diag([1.0, 0.5, 0.2]), [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]], [[1.0, 0.3], [0.3, 0.5]]
        ),
        "two sensors, one state known": made(
            two_sensors(), turn, np.diag([1.0, 0.5, 0.2]), [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]], np.diag([1.0, 0.5]), 1
        ),
    }


if __name__ == "__main__":
    import statsmodels

    told = {"version": f"statsmodels {statsmodels.__version__}", "step": STEP, "cases": cases()}
    Path(__file__).with_name("kalman.json").write_text(json.dumps(told) + "\n")
