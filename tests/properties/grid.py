"""Integrals and sums of a density over some of its columns, the others held or left out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tests.properties.members import Member, Pieces, is_continuous

FAR = 18.0  # sinh(18) = 3e7 spreads: what a Cauchy distribution has beyond is below 1e-7
NEAR = 8.5  # for squares: sinh(8.5) = 2,500 spreads


def nodes(kind: Any, draws: np.ndarray, square: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Points of one column and their weights: a sum for counts and levels, else the trapezoid rule.

    Real columns are mapped by sinh: the rule then converges faster than any power of the step, for thin
    tails and thick ones.
    """
    if isinstance(kind, Pieces):
        each = [_between(a, b, np.subtract(*np.quantile(draws, [0.9, 0.1])), square) for a, b in pairwise(kind)]
        return np.concatenate([x for x, _ in each]), np.concatenate([w for _, w in each])
    if kind == "real":
        low, center, high = np.quantile(draws, [0.1, 0.5, 0.9])
        scale, step = (high - low) / 2.56, 0.07 if square else 0.03
        t = np.arange(-(NEAR if square else FAR), NEAR if square else FAR, step)
        return center + scale * np.sinh(t), scale * np.cosh(t) * step
    if kind == "unit":  # entries of a simplex: the last of them is left out, and the density ends where they sum to 1
        t = np.arange(-2.9, 2.9, 0.02)
        x = 1 / (1 + np.exp(-np.pi * np.sinh(t)))
        return x, np.pi * np.cosh(t) * x * (1 - x) * 0.02
    if kind == "positive":
        t = np.arange(-30.0, 5.0, 0.1 if square else 0.02)
        x = np.median(draws) * np.exp(t)
        return x, x * (t[1] - t[0])
    levels = int(10 * draws.max() + 100) if kind == "count" else int(kind)
    return np.arange(levels, dtype=float), np.ones(levels)


def _between(a: float, b: float, scale: float, square: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of one piece: doubly exponential toward its ends, so that nothing is lost at corners."""
    if np.isinf(a) or np.isinf(b):
        t = np.arange(-32.0, 24.0, 0.1 if square else 0.02)
        away = scale * np.exp(t)
        x, w = (b - away[::-1], away[::-1]) if np.isinf(a) else (a + away, away)
        return x, w * (t[1] - t[0])
    t = np.arange(-2.9, 2.9, 0.06 if square else 0.004)
    share = 1 / (1 + np.exp(-np.pi * np.sinh(t)))
    return a + (b - a) * share, (b - a) * np.pi * np.cosh(t) * share * (1 - share) * (t[1] - t[0])


def log_total(member: Member, density: Any, row: np.ndarray, over: list[int], draws: np.ndarray) -> float:
    """log Σ or ∫ p(row) over the columns `over` of one row."""
    axes = [nodes(member.columns[j], draws[:, j], square=len(over) > 1) for j in over]
    points = np.meshgrid(*(a for a, _ in axes), indexing="ij")
    weight = np.prod(np.meshgrid(*(w for _, w in axes), indexing="ij"), axis=0)
    x = np.repeat(row[None], weight.size, axis=0)
    for j, p in zip(over, points, strict=True):
        x[:, j] = p.ravel()
    return float(logsumexp(np.log(weight.ravel()) + density.log_prob(x)))


def cumulative(member: Member, density: Any, j: int, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of column j and the probability up to each, the other columns left out."""
    points, weight = nodes(member.columns[j], draws[:, j])
    x = np.full((len(points), member.dim), np.nan)
    x[:, j] = points
    mass = weight * np.exp(density.log_prob(x))
    total = np.cumsum(mass)
    # the trapezoid rule counts half of the last point
    return points, total - 0.5 * mass if is_continuous(member.columns[j]) else total
