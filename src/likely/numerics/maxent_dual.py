"""The flattest distribution with given expectations: exp(λ·f), with λ at the bottom of a convex bowl."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index

STEPS = 200
SETTLED = 1e-11  # of what expectations may be off, in units of each feature's size
NEGLIGIBLE = 30.0  # nats that the ends of an endless line must lie below its peak


class Dual(NamedTuple):
    """Where the climb ended: multipliers, log ∫ exp(λ·f), expectations still missed, and whether it settled."""

    multipliers: Array  # (k,)
    log_normalizer: float
    missed: Array  # (k,): E f − c, in units of the feature
    settled: bool


def solve_dual(features: Array, log_base: Array, targets: Array, units: Array, start: Array, ends: Index) -> Dual:
    """λ (k,) with Σ p_i f_i = c for p ∝ base · exp(λ·f): minimizes log Σ base exp(λ·(f − c)) by Newton's steps.

    `features` (m, k) at m points with log weights `log_base` (m,); `ends` are points at which the density must be
    negligible. The function is convex, so its lowest point is the answer, or there is none.

    >>> dice = np.arange(1.0, 7.0)[:, None]
    >>> found = solve_dual(dice, np.zeros(6), np.array([4.5]), np.ones(1), np.zeros(1), np.empty(0, int))
    >>> found.multipliers.round(4)
    array([0.371])
    """
    away = (features - targets) / units
    lam = start * units
    value, p = _value(away, log_base, lam, ends)
    for _ in range(STEPS):
        gradient = _expected(p, away)
        if np.abs(gradient).max(initial=0.0) < SETTLED or not math.isfinite(value):
            break
        some = p > 1e-200  # features far out may be so large that their squares are not numbers
        apart = away[some] - gradient
        curvature = apart.T @ (apart * p[some, None])
        step = -_solved(curvature, gradient)
        lam, value, p, moved = _further(away, log_base, ends, lam, value, p, step, float(gradient @ step))
        if not moved:
            break
    gradient = _expected(p, away)
    settled = math.isfinite(value) and bool(np.abs(gradient).max(initial=0.0) < 1e-7)
    return Dual(lam / units, value + float(lam / units @ targets), gradient, settled)


def dual_value(away: Array, log_base: Array, lam: Array, ends: Index) -> float:
    """log Σ base exp(λ·(f − c)), infinite where the distribution would have no integral."""
    return _value(away, log_base, lam, ends)[0]


def _expected(p: Array, away: Array) -> Array:
    some = p > 1e-200
    return np.asarray(p[some] @ away[some])


def _value(away: Array, log_base: Array, lam: Array, ends: Index) -> tuple[float, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        logs = np.nan_to_num(log_base + away @ lam, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    peak = float(logs.max())
    if not math.isfinite(peak) or (len(ends) and float(logs[ends].max()) >= peak - NEGLIGIBLE):
        return math.inf, np.full(len(logs), 1 / len(logs))
    p = np.exp(logs - peak)
    return peak + math.log(p.sum()), p / p.sum()


def _solved(curvature: Array, gradient: Array) -> Array:
    """The Newton step; constraints that say the same thing twice share it."""
    size = np.sqrt(np.diagonal(curvature))
    size = np.where(size > 0, size, 1.0)
    return np.linalg.lstsq(curvature / np.outer(size, size), gradient / size, rcond=1e-13)[0] / size


def _further(
    away: Array, log_base: Array, ends: Index, lam: Array, value: float, p: Array, step: Array, slope: float
) -> tuple[Array, float, Array, bool]:
    for half in range(60):
        share = 0.5**half
        ahead, q = _value(away, log_base, lam + share * step, ends)
        if ahead <= value + 1e-4 * share * slope + 1e-15 * abs(value):
            return lam + share * step, ahead, q, True
    return lam, value, p, False
