"""A class is its center: how near a row is to each, and how much a distance means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.value import Value
from likely.neighbors.distances import Metric

STEPS = 60  # of Newton's method, halving included: it needs about eight


@dataclass(frozen=True, eq=False)
class Prototypes(Value):
    """Scores −rate · distance to each of C centers: log p(x | c) but for a constant, where `metric` has a density.

    With metric "l1" that is the Laplace distribution of independent columns, p(x | c) = Π (rate/2) exp(−rate |x −
    center|); with the others scores are logarithms of a softmax, and the rate is the reciprocal of its temperature.

    >>> Prototypes(Metric("l1"), np.array([[0.0], [4.0]]), 0.5).scores(np.array([[1.0]]))
    array([[-0.5, -1.5]])
    """

    metric: Metric
    centers: Array  # (C, d)
    rate: float

    def distances(self, x: Array) -> Array:
        """Distances (n, C); over the columns that a row has, scaled to all; 0 where it has none."""
        away = self.metric.between(self.centers, x).T
        return np.where(np.isnan(x).all(axis=1, keepdims=True), 0.0, away)

    def scores(self, x: Array) -> Array:
        """−rate · distance (n, C); of a row with gaps only what it has seen counts."""
        seen = 1.0 - np.isnan(x).mean(axis=1, keepdims=True) if self.metric.name == "l1" else 1.0
        return -self.rate * self.distances(x) * seen


def laplace_rate(away: Array, labels: Index, weight: Array, columns: Array, dim: int) -> float:
    """Maximum likelihood rate of a Laplace distribution with one width: columns over summed absolute deviations.

    away (n, C) are l1 distances scaled to all `dim` columns, columns (n,) how many each row has seen.
    """
    own = away[np.arange(len(labels)), labels] * columns / dim
    total = float(weight @ own)
    return float(weight @ columns) / total if total > 0 else 1.0 / _least(away)


def softmax_rate(away: Array, labels: Index, weight: Array, log_prior: Array) -> float:
    """The rate b that makes Σ log softmax(log_prior − b · distance) of the true classes largest, by Newton's method.

    It is concave in b. One part in n + 1 of each row is shared by all classes, so that separable classes have a finite
    rate; a rate that would be negative is almost 0.
    """
    C = away.shape[1]
    unit = _least(away)
    z = away / unit
    share = 1.0 / (1.0 + float(weight.sum()))
    target = (1 - share) * (np.arange(C) == labels[:, None]) + share / C
    aim = float(weight @ (target * z).sum(axis=1))
    b = 1.0
    for _ in range(STEPS):
        p = _softmax(log_prior - b * z)
        mean = (p * z).sum(axis=1)
        slope = float(weight @ mean) - aim
        bend = float(weight @ ((p * z**2).sum(axis=1) - mean**2))
        step = slope / bend if bend > 1e-300 else np.sign(slope) * b
        step = float(np.clip(step, -0.9 * b, 4.0 * b + 1.0))
        b = max(b + step, 1e-6)
        if abs(step) <= 1e-10 * b:
            break
    return b / unit


def _softmax(logs: Array) -> Array:
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _least(away: Array) -> float:
    """A typical distance, to count in; 1 where all are 0."""
    typical = float(np.median(away)) if away.size else 0.0
    return typical if typical > 0 else float(away.max(initial=0.0)) or 1.0


def weighted_medians(x: Array, labels: Index, weight: Array, classes: int) -> Array:
    """Medians (C, d) of each class's columns, over what was seen; NaN where nothing was."""
    out = np.full((classes, x.shape[1]), np.nan)
    for c in range(classes):
        mine = np.flatnonzero(labels == c)
        for j in range(x.shape[1]):
            there = mine[~np.isnan(x[mine, j])]
            if len(there):
                out[c, j] = _median(x[there, j], weight[there])
    return out


def _median(x: Array, weight: Array) -> float:
    """The middle of the weight; between two values if it falls between them."""
    order = np.argsort(x, kind="stable")
    x, total = x[order], np.cumsum(weight[order])
    half = total[-1] / 2
    low = int(np.searchsorted(total, half * (1 - 1e-12)))
    high = int(np.searchsorted(total, half * (1 + 1e-12), side="right"))
    return float(x[low] / 2 + x[min(high, len(x) - 1)] / 2)
