"""Writes filters.json: filterpy's extended and unscented Kalman filters on a turning object seen by range and bearing.

Run it where filterpy is installed: python tests/reference/make_filters.py
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

T = 20
STATE = {"mean": [1.0, 2.0, 0.5, 0.3], "variance": [0.5, 0.5, 0.1, 0.05]}  # x, y, heading, speed
MOVED = [0.01, 0.01, 0.02, 0.005]
SEEN = [0.04, 0.01]
RULES = {"ordinary": (0.5, 2.0, 1.0), "narrow": (0.1, 2.0, 0.0), "wide": (1.0, 0.0, 1.0)}


def move(x: np.ndarray) -> np.ndarray:
    return np.array([x[0] + x[3] * np.cos(x[2]), x[1] + x[3] * np.sin(x[2]), x[2] + 0.1, 0.95 * x[3] + 0.05])


def move_slope(x: np.ndarray) -> np.ndarray:
    c, s = np.cos(x[2]), np.sin(x[2])
    return np.array([[1, 0, -x[3] * s, c], [0, 1, x[3] * c, s], [0, 0, 1, 0], [0, 0, 0, 0.95]])


def see(x: np.ndarray) -> np.ndarray:
    """Range and bearing from (−8, −6), far from where the bearing jumps."""
    a, b = x[0] + 8.0, x[1] + 6.0
    return np.array([np.hypot(a, b), np.arctan2(b, a)])


def see_slope(x: np.ndarray) -> np.ndarray:
    a, b = x[0] + 8.0, x[1] + 6.0
    r = np.hypot(a, b)
    return np.array([[a / r, b / r, 0, 0], [-b / r**2, a / r**2, 0, 0]])


def observations() -> np.ndarray:
    rng = np.random.default_rng(7)
    x, out = np.array(STATE["mean"]), []
    for t in range(T):
        x = move(x) + np.sqrt(MOVED) * rng.standard_normal(4) if t else x
        out.append(see(x) + np.sqrt(SEEN) * rng.standard_normal(2))
    return np.round(out, 4)


def extended(y: np.ndarray) -> dict:
    from filterpy.kalman import ExtendedKalmanFilter

    f = ExtendedKalmanFilter(4, 2)
    f.x, f.P, f.Q, f.R = np.array(STATE["mean"]), np.diag(STATE["variance"]), np.diag(MOVED), np.diag(SEEN)
    means, covariances, total = [], [], 0.0
    for t, z in enumerate(y):
        if t:  # filterpy's own predict moves by F x
            F = move_slope(f.x)
            f.x, f.P = move(f.x), F @ f.P @ F.T + f.Q
        f.update(z, see_slope, see)
        means.append(f.x.tolist())
        covariances.append(f.P.tolist())
        total += float(f.log_likelihood)
    return {"mean": means, "covariance": covariances, "log_prob": total}


def unscented(y: np.ndarray, alpha: float, beta: float, kappa: float) -> dict:
    from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

    points = MerweScaledSigmaPoints(4, alpha, beta, kappa)
    f = UnscentedKalmanFilter(4, 2, 1.0, hx=see, fx=lambda x, dt: move(x), points=points)
    f.x, f.P, f.Q, f.R = np.array(STATE["mean"]), np.diag(STATE["variance"]), np.diag(MOVED), np.diag(SEEN)
    means, covariances = [], []
    for t, z in enumerate(y):
        if t:
            f.predict()
        # after `predict` filterpy reuses the moved points, which lack the noise: draw them anew from the prediction
        f.sigmas_f = points.sigma_points(f.x, f.P)
        f.update(z)
        means.append(f.x.tolist())
        covariances.append(f.P.tolist())
    xs, Ps, _ = f.rts_smoother(np.array(means), np.array(covariances))
    return {
        "rule": [alpha, beta, kappa], "mean": means, "covariance": covariances,
        "smoothed": xs.tolist(), "smoothed_covariance": Ps.tolist(),
    }  # fmt: skip


if __name__ == "__main__":
    y = observations()
    made = {
        "version": f"filterpy {version('filterpy')}", "start": STATE, "moved": MOVED, "seen": SEEN, "y": y.tolist(),
        "extended": extended(y), "unscented": {name: unscented(y, *rule) for name, rule in RULES.items()},
    }  # fmt: skip
    Path(__file__).with_name("filters.json").write_text(json.dumps(made) + "\n")
