"""Initialization of switching models: regimes of frames from local level, slope and roughness."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.ragged import Ragged
from likely.core.warnings import warnings_discarded
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.hmm.estimators.hmm_density import HMMDensity

WIDTH = 7  # frames per window: long enough for a variance, shorter than a typical regime


def guessed_regimes(X: Ragged, weight: Any, K: int, random_state: Any) -> Ragged:
    """Initial regimes (T,) per sequence, by a hidden Markov model of level, slope and roughness in a window."""
    features = Ragged.trusted(values=windows(X), offsets=X.offsets)
    chain = HMMDensity(GaussianDensity("diagonal"), K, init="clusters", n_init=3, max_iter=30, tol=1e-3,
                       random_state=random_state)  # fmt: skip
    with warnings_discarded():
        found = chain.fit(features, sample_weight=weight).predict(features)
    return Ragged.trusted(values=np.asarray(found.values, dtype=np.intp), offsets=X.offsets)


def windows(X: Ragged) -> Array:
    """Level, slope and log-roughness in a window about each frame (T, 3 p), NaN where a window is empty.

    >>> windows(Ragged.from_list([np.arange(7.0)[:, None]]))[3, :2].tolist()
    [3.0, 1.0]
    """
    y = np.asarray(X.values, dtype=np.float64).reshape(len(X.values), -1)
    step = np.full_like(y, np.nan)
    step[1:] = y[1:] - y[:-1]
    step[X.offsets[:-1][X.lengths > 0]] = np.nan
    parts = [_smoothed(a, X) for a in (y, step, step**2)]
    rough = np.maximum(parts[2] - parts[1] ** 2, 0.0)
    seen = np.isfinite(step)
    least = np.square(np.where(seen, step, 0.0)).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.hstack([parts[0], parts[1], np.log(rough + 1e-6 * np.where(least > 0, least, 1.0))])


def _smoothed(a: Array, X: Ragged) -> Array:
    """Mean of the observed entries in a window about each frame, within its sequence."""
    seen = np.isfinite(a)
    sums = np.vstack([np.zeros((1, a.shape[1])), np.cumsum(np.where(seen, a, 0.0), axis=0)])
    counts = np.vstack([np.zeros((1, a.shape[1])), np.cumsum(seen, axis=0)])
    t, half = np.arange(len(a)), WIDTH // 2
    low = np.maximum(t - half, np.repeat(X.offsets[:-1], X.lengths))
    high = np.minimum(t + half + 1, np.repeat(X.offsets[1:], X.lengths))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums[high] - sums[low]) / (counts[high] - counts[low]))
