"""Maximum entropy distribution with given expectations: Newton's method on the convex dual."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index

STEPS = 200
TOLERANCE = 1e-11  # tolerance of the expectations, in units of each feature's scale
NEGLIGIBLE = 30.0  # nats that the log-density at the ends of an unbounded domain must lie below its maximum


class Dual(NamedTuple):
    """Solution of the dual: multipliers, log ∫ exp(λ·f), residuals of the expectations, and whether it converged."""

    multipliers: Array  # (k,)
    log_normalizer: float
    missed: Array  # (k,): E f − c, in units of the feature
    converged: bool


def solve_dual(features: Array, log_base: Array, targets: Array, units: Array, start: Array, ends: Index) -> Dual:
    """λ (k,) with Σ p_i f_i = c for p ∝ base · exp(λ·f): minimizes log Σ base exp(λ·(f − c)) by Newton's method.

    `features` (m, k) at m points with log weights `log_base` (m,); `ends` are points at which the density must be
    negligible. The function is convex, so its minimum is the solution, or there is none.

    >>> dice = np.arange(1.0, 7.0)[:, None]
    >>> found = solve_dual(dice, np.zeros(6), np.array([4.5]), np.ones(1), np.zeros(1), np.empty(0, int))
    >>> found.multipliers.round(4)
    array([0.371])
    """
    deviations = (features - targets) / units
    lam = start * units
    value, p = _value(deviations, log_base, lam, ends)
    for _ in range(STEPS):
        gradient = _expected(p, deviations)
        if np.abs(gradient).max(initial=0.0) < TOLERANCE or not math.isfinite(value):
            break
        positive = p > 1e-200  # features in the tails may be so large that their squares overflow
        centered = deviations[positive] - gradient
        curvature = centered.T @ (centered * p[positive, None])
        step = -_newton_step(curvature, gradient)
        lam, value, p, improved = _line_search(deviations, log_base, ends, lam, value, p, step, float(gradient @ step))
        if not improved:
            break
    gradient = _expected(p, deviations)
    converged = math.isfinite(value) and bool(np.abs(gradient).max(initial=0.0) < 1e-7)
    return Dual(lam / units, value + float(lam / units @ targets), gradient, converged)


def dual_value(deviations: Array, log_base: Array, lam: Array, ends: Index) -> float:
    """The dual function log Σ base exp(λ·(f − c)), infinite where the distribution has no integral."""
    return _value(deviations, log_base, lam, ends)[0]


def _expected(p: Array, deviations: Array) -> Array:
    positive = p > 1e-200
    return np.asarray(p[positive] @ deviations[positive])


def _value(deviations: Array, log_base: Array, lam: Array, ends: Index) -> tuple[float, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        logs = np.nan_to_num(log_base + deviations @ lam, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    peak = float(logs.max())
    if not math.isfinite(peak) or (len(ends) and float(logs[ends].max()) >= peak - NEGLIGIBLE):
        return math.inf, np.full(len(logs), 1 / len(logs))
    p = np.exp(logs - peak)
    return peak + math.log(p.sum()), p / p.sum()


def _newton_step(curvature: Array, gradient: Array) -> Array:
    """The Newton step by least squares, so that redundant constraints share it."""
    size = np.sqrt(np.diagonal(curvature))
    size = np.where(size > 0, size, 1.0)
    return np.linalg.lstsq(curvature / np.outer(size, size), gradient / size, rcond=1e-13)[0] / size


def _line_search(
    deviations: Array, log_base: Array, ends: Index, lam: Array, value: float, p: Array, step: Array, slope: float
) -> tuple[Array, float, Array, bool]:
    for half in range(60):
        fraction = 0.5**half
        trial, q = _value(deviations, log_base, lam + fraction * step, ends)
        if trial <= value + 1e-4 * fraction * slope + 1e-15 * abs(value):
            return lam + fraction * step, trial, q, True
    return lam, value, p, False
