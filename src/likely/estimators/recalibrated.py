"""Posteriors that keep their word: out-of-fold ones teach how far a model's own must be softened."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.decisions.calibrators import LogisticMap, calibrate
from likely.decisions.intervals import mean

FLOOR = -1000.0  # what stands for a log-posterior of −∞, or of a row that no class explains
FOLDS = 5  # of tested rows, where the splits themselves are too few or too many for it
FEWEST = 50  # rows from which a map can be learnt


class Recalibration(NamedTuple):
    """A map that was learnt from out-of-fold posteriors, and the posteriors that it gives where it was not learnt."""

    map: LogisticMap
    method: str
    log_posterior: Array  # (n, C), each row by a map of the other folds

    @property
    def words(self) -> str:
        """How it changes posteriors."""
        return f"calibrated (temperature {1 / self.map.slope[0, 0]:.3g})" if self.method == "temperature" else "calibrated"


def recalibrated(log_posterior: Array, owner: Index, fold: Index | None, weight: Array | None) -> Recalibration | None:
    """The map that makes posteriors (n, C) better by more than a standard error of their log-loss; None where none does.

    Two classes: a temperature, or a slope and an offset. More: a temperature. Each is tried on folds that it was not
    learnt from.
    """
    n, C = log_posterior.shape
    fold = _folds(fold, n)
    if n < FEWEST or C < 2 or any(len(np.unique(owner[fold != k])) < C for k in np.unique(fold)):
        return None
    scores = floored(log_posterior)
    methods = ("temperature", "logistic") if C == 2 else ("temperature",)
    tried = {method: _cross_fitted(scores, owner, fold, weight, method) for method in methods}
    loss = {method: mean(-_of_truth(found, owner), weight).value for method, found in tried.items()}
    method = min(methods, key=lambda name: loss[name])
    gain = mean(_of_truth(tried[method], owner) - _of_truth(scores, owner), weight)
    if not gain.value > gain.se:
        return None
    return Recalibration(_as_logistic(calibrate(scores, owner, weight, method=method)), method, tried[method])


def applied(map: LogisticMap | None, log_posterior: Array) -> Array:
    """Posteriors under a map; None leaves them as they are."""
    return log_posterior if map is None else map.log_posterior(floored(log_posterior))


def floored(log_posterior: Array) -> Array:
    """Log-posteriors (or log-joints) about the largest of a row, none below the floor."""
    top = log_posterior.max(axis=1, keepdims=True)
    return np.maximum(log_posterior - np.where(np.isfinite(top), top, 0.0), FLOOR)


class RecalibratedModel:
    """A mixture whose posteriors go through a map: what `Explanation` needs of one, on the map's scale.

    The map is linear, so evidence that adds up before it adds up behind it.
    """

    def __init__(self, model: Any, map: LogisticMap) -> None:
        self.model, self.map = model, map

    def log_joint(self, rows: Any) -> Array:
        """Scores (n, C) whose softmax is the posterior."""
        return np.asarray(floored(self.model.log_joint(rows)) @ self.map.slope.T + self.map.offset)

    def _shares(self, joint: Array) -> Array:
        p = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    @property
    def weights(self) -> Array:
        """What the class probabilities are on the map's scale."""
        with np.errstate(divide="ignore"):
            return self._shares(floored(np.log(self.model.weights)[None]) @ self.map.slope.T + self.map.offset)[0]


def _folds(fold: Index | None, n: int) -> Index:
    found = 0 if fold is None else len(np.unique(fold))
    if fold is not None and 2 <= found <= 20:
        return fold
    return np.random.default_rng(0).permutation(n) % FOLDS


def _cross_fitted(scores: Array, owner: Index, fold: Index, weight: Array | None, method: str) -> Array:
    out = np.empty_like(scores)
    for k in np.unique(fold):
        rest, here = fold != k, fold == k
        found = calibrate(scores[rest], owner[rest], None if weight is None else weight[rest], method=method)
        out[here] = found.log_posterior(scores[here])
    return out


def _of_truth(log_posterior: Array, owner: Index) -> Array:
    normal = log_posterior - np.logaddexp.reduce(log_posterior, axis=1, keepdims=True)
    return np.asarray(np.take_along_axis(normal, owner[:, None], axis=1)[:, 0])


def _as_logistic(map: Any) -> LogisticMap:
    if isinstance(map, LogisticMap):
        return map
    return LogisticMap(np.eye(map.classes) / map.temperature, np.zeros(map.classes))
