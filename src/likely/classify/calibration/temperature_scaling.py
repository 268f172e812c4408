"""Linear softmax calibration: common slope (temperature), Platt scaling, shrunken matrix scaling.

Targets are never 0 or 1: N rows of a class without one mistake are evidence for an error below about 1 / (N + 2), not
for none (Platt, 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_softmax

from likely.classify.calibration.newton_minimizer import minimize
from likely.core.arrays import Array, Index

OFF = 0.5  # prior standard deviation of a class's own slope, relative to the common one; off the diagonal over √C
SHIFT = 3.0  # prior standard deviation of an offset, in units of log-odds


def common_size(z: Array, w: Array) -> float:
    """The root mean square of centered scores, used as unit; 1 if all scores are equal."""
    size = np.sqrt(np.average((z**2).mean(axis=1), weights=w))
    return float(size) if size > 0 else 1.0


def smoothed_targets(labels: Index, w: Array, C: int, shared: bool) -> Array:
    """Platt's targets: N rows of a class leave 1 / (N + 2) to the other classes.

    `shared`: N counts the rows of all classes, for maps with a common slope.
    """
    count = np.bincount(labels, w, C)
    left = 1 / (np.full(C, count.sum()) + 2) if shared else 1 / (count + 2)
    targets = np.repeat((left / max(C - 1, 1))[labels][:, None], C, axis=1)
    targets[np.arange(len(labels)), labels] = 1 - left[labels] if C > 1 else 1.0
    return targets


def common_slope(z: Array, targets: Array, weight: Array) -> float:
    """The maximum-likelihood common slope: 1 / temperature."""
    return float(np.exp(minimize(CommonSlope(z, targets, weight), np.zeros(1), "Temperature")[0]))


LEAST = 0.125  # nats of log-likelihood that correspond to half a standard error
LAPSES = 0.5  # pseudo-counts of lapses and of non-lapses
SLOPES = np.linspace(-9.0, 9.0, 37)  # grid of log-slopes, in units of a typical largest score


def slope_and_lapse(z: Array, labels: Index, weight: Array) -> tuple[float, float]:
    """The slope b and the lapse rate l of p = (1 − l) softmax(b z) + l / C.

    Maximum likelihood with half a pseudo-count of lapses and of non-lapses (Krichevsky and Trofimov, 1981); then the
    smallest slope within half a standard error, at its best lapse rate. If no row is misclassified, every large slope
    is equally likely: the smallest is the least confident. If the slope is well determined, that
    costs 1 / (8 n) nats per row; a whole standard error would cost 1 / (2 n). For a given slope the likelihood is
    concave in l, and for given l it may have several maxima in b: slopes are searched on a grid.
    """
    from scipy.optimize import brentq, minimize_scalar  # a tenth of a second to import

    if z.shape[1] == 1:
        return 1.0, 0.0
    largest = np.abs(z).max(axis=1)
    unit = float(np.median(largest[largest > 0])) if (largest > 0).any() else 1.0
    known: dict[float, tuple[float, float]] = {}

    def loss(log_slope: float) -> float:
        if log_slope not in known:
            known[log_slope] = _best_lapse(np.exp(log_slope) / unit * z, labels, weight)
        return known[log_slope][0]

    tried = [loss(float(b)) for b in SLOPES]
    k = int(np.argmin(tried))
    around = float(SLOPES[max(k - 1, 0)]), float(SLOPES[min(k + 1, len(SLOPES) - 1)])
    best = float(minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8}).x)
    best = min((best, float(SLOPES[k])), key=loss)
    limit = loss(best) + LEAST
    high = best
    for low in (float(b) for b in SLOPES[::-1] if b < best):  # down to half a standard error
        if loss(low) > limit:
            high = float(brentq(lambda b: loss(b) - limit, low, high, xtol=1e-10))
            break
        high = low
    loss(high)
    return float(np.exp(high) / unit), known[high][1]


def _best_lapse(z: Array, labels: Index, w: Array) -> tuple[float, float]:
    """The smallest −log-likelihood of scores z and its lapse rate, by Newton steps in its logit."""
    C, n = z.shape[1], float(w.sum())
    own = np.exp(log_softmax(z, axis=1)[np.arange(len(z)), labels])
    ratio = own * C - 1.0  # p C = 1 + (1 − l) ratio
    low, high = 0.0, 1.0
    lapse = LAPSES / (n + 2.0 * LAPSES)
    for _ in range(100):  # Newton for a concave function, safeguarded by bisection
        p = 1.0 + (1.0 - lapse) * ratio
        slope = float(w @ (-ratio / p)) + LAPSES / lapse - LAPSES / (1.0 - lapse)
        curve = float(w @ (ratio / p) ** 2) + LAPSES / lapse**2 + LAPSES / (1.0 - lapse) ** 2
        low, high = (lapse, high) if slope > 0 else (low, lapse)
        new = lapse + slope / curve
        new = new if low < new < high else 0.5 * (low + high)
        if abs(new - lapse) <= 1e-14 * lapse:
            break
        lapse = new
    p = (1.0 + (1.0 - lapse) * ratio) / C
    return -float(w @ np.log(p)) - LAPSES * float(np.log(lapse) + np.log1p(-lapse)), lapse


class CommonSlope:
    """Cross-entropy as a function of log(1 / temperature): one number, so a Newton step is a division."""

    def __init__(self, z: Array, targets: Array, weight: Array) -> None:
        self.z, self.targets, self.weight = z, targets, weight

    def __call__(self, theta: Array) -> tuple[float, Array, Callable[[Array], Array]]:
        slope = np.exp(theta[0])
        log_p = log_softmax(slope * self.z, axis=1)
        p, w = np.exp(log_p), self.weight
        mean = (p * self.z).sum(axis=1)
        loss = -float(w @ (self.targets * log_p).sum(axis=1))
        gradient = slope * float(w @ (mean - (self.targets * self.z).sum(axis=1)))
        # the positive part of the second derivative: the loss is convex in the slope, not in its logarithm
        curve = slope**2 * float(w @ ((p * self.z**2).sum(axis=1) - mean**2)) + max(gradient, 0.0)
        return loss, np.array([gradient]), lambda v: curve * v


def platt(z: Array, targets: Array, weight: Array) -> tuple[Array, Array]:
    """Platt scaling σ(a s + b) of the difference s of two scores; a ≥ 0, so that few rows cannot reverse the order."""
    s = z[:, 1] - z[:, 0]
    design = np.stack([s, np.ones_like(s)], axis=1)
    a, b = minimize(LinearSoftmax(design, targets, weight, np.zeros((1, 2))), np.zeros(2), "LogisticMap")
    if a < 0:
        share = weight @ targets
        a, b = 0.0, float(np.log(share[1] / share[0]))
    return np.array([[0.0, 0.0], [-a, a]]), np.array([0.0, b])


def shrunken_matrix(z: Array, targets: Array, weight: Array) -> tuple[Array, Array]:
    """The common slope first; then matrix and offsets, with a normal prior around it."""
    C = z.shape[1]
    common = common_slope(z, targets, weight)
    deviation = np.full((C, C), OFF * common / np.sqrt(C))
    np.fill_diagonal(deviation, OFF * common)
    precision = np.concatenate([deviation**-2.0, np.full((C, 1), SHIFT**-2.0)], axis=1)
    design = np.concatenate([z, np.ones((len(z), 1))], axis=1)
    loss = LinearSoftmax(
        design, targets, weight, precision, np.concatenate([common * np.eye(C), np.zeros((C, 1))], axis=1)
    )
    theta = minimize(loss, loss.center.ravel(), "LogisticMap").reshape(C, C + 1)
    return theta[:, :C].copy(), theta[:, C].copy()


class LinearSoftmax:
    """Cross-entropy of a linear softmax with a normal prior, its gradient and its curvature.

    Parameters are (R, F): one row per class, or a single row for two classes (the first then has logit 0).
    """

    def __init__(self, design: Array, targets: Array, weight: Array, precision: Array, center: Any = 0.0) -> None:
        self.design, self.targets, self.weight = design, targets, weight  # (n, F), (n, C), (n,)
        self.precision, self.center = precision, np.broadcast_to(center, precision.shape)

    def __call__(self, theta: Array) -> tuple[float, Array, Callable[[Array], Array]]:
        away = theta.reshape(self.precision.shape) - self.center
        log_p = log_softmax(self._logits(theta), axis=1)
        p = np.exp(log_p)
        loss = -float(self.weight @ (self.targets * log_p).sum(axis=1)) + 0.5 * float((self.precision * away**2).sum())
        gradient = self._back(p - self.targets) + (self.precision * away).ravel()

        def curvature(v: Array) -> Array:
            move = self._logits(v)
            return self._back(p * (move - (p * move).sum(axis=1, keepdims=True))) + self.precision.ravel() * v

        return loss, gradient, curvature

    def _logits(self, theta: Array) -> Array:
        logits = self.design @ theta.reshape(self.precision.shape).T
        return logits if logits.shape[1] > 1 else np.concatenate([np.zeros_like(logits), logits], axis=1)

    def _back(self, residual: Array) -> Array:
        """The gradient of the parameters, from that of the logits."""
        residual = residual if len(self.precision) > 1 else residual[:, 1:]
        return ((self.weight[:, None] * residual).T @ self.design).ravel()
