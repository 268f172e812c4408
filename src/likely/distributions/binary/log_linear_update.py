"""A distribution of signs moved a little: what a few rows fewer would have taught, for the price of a step.

Whoever leaves out a tenth of the rows, ten times, need not climb ten times: the distribution of all rows is next to
each of the others. Up to `EXACT` columns Newton's method goes on from there with exact sums. Beyond, chains of the
distribution show its curvature C, and as the climb had ended where E[φ] + pull is the average of the rows, the weights
move by (C + pull)⁻¹ × the change of the averages; chains that follow tell by how much log Z changed.
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
from likely.distributions.binary.persistent_chains import Crowd, solved

FEWEST = 200  # chains
ENOUGH = 1e-5  # nats a row: what more steps over all cells would still gain


class Averages(NamedTuple):
    """Averages of all products of signs (M,), and how many rows they are of."""

    mean: Array
    rows: float


def crowd_of(weights: Array, d: int) -> Crowd:
    """Chains of the distribution with weights (M,)."""
    n = max(min(int(MORE / d), LIMIT), FEWEST)
    rng = np.random.default_rng(SEED)
    return Crowd(weights[1:], annealed_draws(weights, d, n, rng), rng)


def moved_pairs(crowd: Crowd, log_z: float, precision: float, before: Averages, now: Averages) -> Array:
    """Weights (M,) after the averages went from `before`, which taught the crowd's distribution, to `now`.

    `precision` is that of the couplings' prior.
    """
    refuse_constant(now.mean[1 : crowd.dim + 1])
    with one_blas_thread():
        change = _change(crowd, precision, before, now)
        moved = Crowd(crowd.weights, crowd.states, np.random.default_rng(SEED))
        log_z += _followed(moved, change)
    return np.concatenate([[-log_z], moved.weights])


def _change(crowd: Crowd, precision: float, before: Averages, now: Averages) -> Array:
    d, w = crowd.dim, crowd.weights
    right = now.mean[1:] - before.mean[1:]
    for sign, each in ((1.0, before), (-1.0, now)):
        away = w.copy()
        away[:d] -= field_of(each.mean, d)
        right += sign * pull_of(w, d, each.rows, precision) * away
    pull, times = pull_of(w, d, now.rows, precision), crowd.curvature(crowd.states)
    scale = np.maximum(1.0 - crowd.moments(crowd.states) ** 2, 10 * RIDGE) + pull
    return solved(lambda v: times(v) + (pull + RIDGE) * v, right, scale, ROUNDS, NEAR)


def _followed(crowd: Crowd, change: Array) -> float:
    """Let the crowd follow a change, in as many parts as it needs: how much log Z grew."""
    left, grown = 1.0, 0.0
    while left > 0.0:
        part, strength = crowd.follow(left * change)
        grown += strength
        left = 0.0 if part == 1.0 else left * (1.0 - part)
    return grown
