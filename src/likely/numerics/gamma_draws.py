"""Random gamma variates in logs, and random probabilities from them, for shape parameters of any size."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array

SMALLEST = 1e-300  # log u / α is finite from here on


def log_gamma_variates(alpha: Array, shape: tuple[int, ...], rng: Generator) -> Array:
    """Logs of gamma variates of shape parameter α: log G(α + 1) + log u / α, since G(α) underflows for small α."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(rng.standard_gamma(alpha + 1, shape)) + np.log(rng.random(shape)) / alpha)


def raised(alpha: Array, axis: int = -1) -> Array:
    """Dirichlet parameters, scaled up where all are tiny: then one probability is 1, and only their ratios matter."""
    return alpha * np.maximum(SMALLEST / alpha.max(axis=axis, keepdims=True), 1.0)


def draw_probabilities(alpha: Array, n: int, rng: Generator) -> Array:
    """Draws (n, ..., L) from Dirichlet distributions of parameters α (..., L): normalized gamma variates."""
    logs = log_gamma_variates(raised(alpha), (n, *alpha.shape), rng)
    draws = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(draws / draws.sum(axis=-1, keepdims=True))
