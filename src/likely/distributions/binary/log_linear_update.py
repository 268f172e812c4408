"""Refit of a log-linear model after a small change of the data, by one warm-started step (for cross-validation).

Cross-validation leaves out a tenth of the rows, ten times: the model of all rows is close to each of the others, so
no full fit is needed. Up to `EXACT` columns Newton's method continues with exact sums. Beyond, chains of the model
estimate its covariance C, and as the fit ended where E[φ] + penalty equals the mean of the rows, the weights
move by (C + penalty)⁻¹ × the change of the means; the reweighted chains give the change of log Z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.engine import one_blas_thread
from likely.distributions.binary.annealed_importance_sampling import SEED, annealed_draws
from likely.distributions.binary.log_linear_pairs import (
    LIMIT,
    MORE,
    NEAR,
    RIDGE,
    ROUNDS,
    field_of,
    pull_of,
    refuse_constant,
)
from likely.distributions.binary.persistent_chains import PersistentChains, solved

FEWEST = 200  # minimum number of chains
ENOUGH = 1e-5  # nats per row: tolerance of Newton's method


class Averages(NamedTuple):
    """Means of all products of spins (M,), and the number of rows."""

    mean: Array
    rows: float


def chains_of(weights: Array, d: int) -> PersistentChains:
    """Chains of the model with weights (M,)."""
    n = max(min(int(MORE / d), LIMIT), FEWEST)
    rng = np.random.default_rng(SEED)
    return PersistentChains(weights[1:], annealed_draws(weights, d, n, rng), rng)


def moved_pairs(chains: PersistentChains, log_z: float, precision: float, before: Averages, now: Averages) -> Array:
    """Weights (M,) after the means changed from `before`, at which the chains' model was fitted, to `now`.

    `precision` is that of the couplings' prior.
    """
    refuse_constant(now.mean[1 : chains.dim + 1])
    with one_blas_thread():
        change = _newton_change(chains, precision, before, now)
        moved = PersistentChains(chains.weights, chains.states, np.random.default_rng(SEED))
        log_z += reweighted(moved, change)
    return np.concatenate([[-log_z], moved.weights])


def _newton_change(chains: PersistentChains, precision: float, before: Averages, now: Averages) -> Array:
    d, w = chains.dim, chains.weights
    right = now.mean[1:] - before.mean[1:]
    for sign, each in ((1.0, before), (-1.0, now)):
        deviation = w.copy()
        deviation[:d] -= field_of(each.mean, d)
        right += sign * pull_of(w, d, each.rows, precision) * deviation
    pull, times = pull_of(w, d, now.rows, precision), chains.curvature(chains.states)
    scale = np.maximum(1.0 - chains.moments(chains.states) ** 2, 10 * RIDGE) + pull
    return solved(lambda v: times(v) + (pull + RIDGE) * v, right, scale, ROUNDS, NEAR)


def reweighted(chains: PersistentChains, change: Array) -> float:
    """Move the chains by a change of the weights, in as many parts as needed; returns the change of log Z."""
    left, grown = 1.0, 0.0
    while left > 0.0:
        part, strength = chains.follow(left * change)
        grown += strength
        left = 0.0 if part == 1.0 else left * (1.0 - part)
    return grown
