"""Writes linear_em.json: ten passes of EM by pykalman, and standard errors of the Nile's level by statsmodels.

Run it where both are installed, with the data at hand: python tests/reference/make_linear_em.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "timeseries"
START = {
    "transition": [[0.9, 0.2], [-0.1, 0.8]], "process_covariance": [[0.5, 0.1], [0.1, 0.4]],
    "observation": [[1.0, 0.0], [0.5, 1.0]], "observation_covariance": [[1.0, 0.2], [0.2, 0.7]],
    "initial_mean": [0.3, -0.2], "initial_covariance": [[1.0, 0.3], [0.3, 2.0]],
}  # fmt: skip


def series() -> np.ndarray:
    """A fixed series that anybody can make: waves that do not repeat."""
    t = np.arange(80.0)
    return np.stack([2 * np.sin(0.37 * t) + np.sin(t**2), np.cos(0.61 * t) + 0.7 * np.sin(1.3 * t**2)], axis=1)


def ten_passes() -> dict:
    from pykalman import KalmanFilter

    given = {k: np.array(v) for k, v in START.items()}
    names = {
        "transition": "transition_matrices",
        "process_covariance": "transition_covariance",
        "observation": "observation_matrices",
        "observation_covariance": "observation_covariance",
        "initial_mean": "initial_state_mean",
        "initial_covariance": "initial_state_covariance",
    }
    kf = KalmanFilter(**{names[k]: v for k, v in given.items()}, em_vars=list(names.values()))
    kf = kf.em(series(), n_iter=10)
    return {k: np.asarray(getattr(kf, names[k])).tolist() for k in names} | {
        "log_prob": float(kf.loglikelihood(series()))
    }


def nile() -> dict:
    """The maximum by L-BFGS, and the curvature of the log-likelihood beside it, by fourth-order differences."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    y = np.array([float(line.split(",")[-1]) for line in (DATA / "Nile.csv").read_text().split()[1:]])
    model = UnobservedComponents(y, level="llevel", use_exact_diffuse=True)
    best = model.fit(disp=0, maxiter=1000, pgtol=1e-10, factr=10.0)
    at, h = np.array([15098.52, 1469.18]), 2e-3
    weights = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
    second = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            for a, u in weights.items():
                for b, v in weights.items():
                    step = np.zeros(2)
                    step[i] += a * h
                    step[j] += b * h
                    second[i, j] += u * v * model.loglike(at * (1 + step)) / h**2
    covariance = np.linalg.inv(-second) * at[:, None] * at[None, :]
    return {"params": best.params.tolist(), "log_prob": float(best.llf), "at": at.tolist(), "names": model.param_names,
            "initial_covariance": covariance.tolist(), "bse": best.bse.tolist()}  # fmt: skip


if __name__ == "__main__":
    import pykalman
    import statsmodels

    told = {"versions": [f"pykalman {pykalman.__version__}", f"statsmodels {statsmodels.__version__}"],
            "ten passes": ten_passes(), "nile": nile()}  # fmt: skip
    Path(__file__).with_name("linear_em.json").write_text(json.dumps(told, indent=1) + "\n")
