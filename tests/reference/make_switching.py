"""Writes switching.json: Markov-switching regressions by statsmodels, on series of a fixed seed.

Run it where statsmodels is installed: python tests/reference/make_switching.py
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np


def series(seed: int, n: int, mean: tuple[float, float], ar: float, noise: tuple[float, float]) -> np.ndarray:
    """A mean-adjusted switching autoregression; numbers over a power of two, so that the file holds them exactly."""
    rng = np.random.default_rng(seed)
    state, y = np.zeros(n, dtype=int), np.zeros(n)
    for t in range(1, n):
        state[t] = state[t - 1] if rng.random() < (0.95, 0.9)[state[t - 1]] else 1 - state[t - 1]
        before = y[t - 1] - mean[state[t - 1]]
        y[t] = mean[state[t]] + ar * before + noise[state[t]] * rng.standard_normal()
    return np.round(y * 1024) / 1024


def told(model, kind: dict, y: np.ndarray, X: np.ndarray | None = None, start: list | None = None) -> dict:
    found = model.fit(start, disp=False, maxiter=500)
    return {
        "y": y.tolist(), "X": None if X is None else X.tolist(), **kind,
        "llf": float(found.llf), "names": list(model.param_names), "params": found.params.tolist(),
        "bse": found.bse.tolist(), "durations": found.expected_durations.tolist(),
        "filtered": found.filtered_marginal_probabilities[:8].tolist(),
        "smoothed": found.smoothed_marginal_probabilities[:8].tolist(),
        "predicted": np.asarray(found.predict(probabilities="predicted"))[:8].tolist(),
    }  # fmt: skip


def made() -> dict:
    from statsmodels.tsa.regime_switching.markov_autoregression import MarkovAutoregression
    from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

    warnings.simplefilter("ignore")
    y = series(1, 200, (0.0, 4.0), 0.0, (1.0, 1.5))
    z = series(2, 240, (-1.0, 2.0), 0.5, (0.7, 0.7))
    x = np.round(np.random.default_rng(3).standard_normal(200) * 256) / 256
    plain = {"n_states": 2}
    adjusted = {**plain, "mean_adjusted": True, "shared": ["lags"], "tied_noise": True}
    return {
        "constant": told(MarkovRegression(y, 2), {**plain, "tied_noise": True}, y),
        "constant and variance": told(MarkovRegression(y, 2, switching_variance=True), plain, y),
        "regressor": told(MarkovRegression(y + x, 2, exog=x, switching_exog=False),
                          {**plain, "tied_noise": True, "shared": ["regressors"]}, y + x, x),
        "lag": told(MarkovRegression(z[1:], 2, exog=z[:-1], switching_variance=True), {**plain, "lags": 1}, z),
        "mean-adjusted": told(MarkovAutoregression(z, 2, order=1, switching_ar=False),
                              {**adjusted, "lags": 1}, z,
                              start=[0.95, 0.1, -1.0, 2.0, 0.5, 0.5]),
        "mean-adjusted, order 2": told(MarkovAutoregression(z, 2, order=2, switching_ar=False),
                                       {**adjusted, "lags": 2}, z,
                                       start=[0.95, 0.1, -1.0, 2.0, 0.5, 0.5, 0.0]),
    }  # fmt: skip


if __name__ == "__main__":
    Path(__file__).with_name("switching.json").write_text(json.dumps(made(), indent=1) + "\n")
