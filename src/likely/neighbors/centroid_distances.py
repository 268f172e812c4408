"""Class prototypes (means or medians): distances to centroids and the rate that turns them into probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.value import Value
from likely.neighbors.distances import Metric

STEPS = 60  # iterations of Newton's method, including step halving: about eight are needed


@dataclass(frozen=True, eq=False)
class Prototypes(Value):
    """Scores −rate · distance to each of C centroids: log p(x | c) up to a constant, where `metric` has a density.

    With metric "l1" that is the Laplace distribution of independent columns, p(x | c) = Π (rate/2) exp(−rate |x −
    center|); with the others scores are logarithms of a softmax, and the rate is the reciprocal of its temperature.

    >>> Prototypes(Metric("l1"), np.array([[0.0], [4.0]]), 0.5).scores(np.array([[1.0]]))
    array([[-0.5, -1.5]])
    """

    metric: Metric
    centers: Array  # (C, d)
    rate: float

    def distances(self, x: Array) -> Array:
        """Distances (n, C); over the observed columns of a row, scaled to all; 0 where it has none."""
        away = self.metric.between(self.centers, x).T
        return np.where(np.isnan(x).all(axis=1, keepdims=True), 0.0, away)

    def scores(self, x: Array) -> Array:
        """−rate · distance (n, C); of a row with missing values, over the observed columns only."""
        seen = 1.0 - np.isnan(x).mean(axis=1, keepdims=True) if self.metric.name == "l1" else 1.0
        return -self.rate * self.distances(x) * seen


def laplace_rate(away: Array, labels: Index, weight: Array, columns: Array, dim: int) -> float:
    """Maximum-likelihood rate of a Laplace distribution with one scale: columns over summed absolute deviations.

    away (n, C) are l1 distances scaled to all `dim` columns, columns (n,) how many each row has observed.
    """
    own = away[np.arange(len(labels)), labels] * columns / dim
    total = float(weight @ own)
    return float(weight @ columns) / total if total > 0 else 1.0 / _least(away)


def softmax_rate(away: Array, labels: Index, weight: Array, log_prior: Array) -> float:
    """The rate b that maximizes Σ log softmax(log_prior − b · distance) of the true classes, by Newton's method.

    It is concave in b. A share 1/(n + 1) of each row's label is distributed over all classes (label smoothing), so that
    separable classes have a finite rate; a rate that would be negative is almost 0.
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
    """A typical distance, used as a unit; 1 if all are 0."""
    typical = float(np.median(away)) if away.size else 0.0
    return typical if typical > 0 else float(away.max(initial=0.0)) or 1.0


def weighted_medians(x: Array, labels: Index, weight: Array, classes: int) -> Array:
    """Medians (C, d) of each class's columns, over observed values; NaN without any."""
    out = np.full((classes, x.shape[1]), np.nan)
    for c in range(classes):
        mine = np.flatnonzero(labels == c)
        for j in range(x.shape[1]):
            there = mine[~np.isnan(x[mine, j])]
            if len(there):
                out[c, j] = _median(x[there, j], weight[there])
    return out


def _median(x: Array, weight: Array) -> float:
    """The weighted median; between two values if half of the weight is below and half above."""
    order = np.argsort(x, kind="stable")
    x, total = x[order], np.cumsum(weight[order])
    half = total[-1] / 2
    low = int(np.searchsorted(total, half * (1 - 1e-12)))
    high = int(np.searchsorted(total, half * (1 + 1e-12), side="right"))
    return float(x[low] / 2 + x[min(high, len(x) - 1)] / 2)
