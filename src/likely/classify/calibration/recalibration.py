"""Recalibration of a model's posteriors from its out-of-fold posteriors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likely.classify.calibration.calibration_maps import (
    METHODS,
    Calibration,
    Temperature,
    calibrate,
)
from likely.core.arrays import Array, Index
from likely.metrics.confidence_intervals import mean

FLOOR = -1000.0  # replacement of a log-posterior of −∞, or of a row of density 0 under all classes
FOLDS = 5  # number of folds of tested rows, if the splits are too few or too many
MOST = 50_000  # maximum number of rows for a map with few parameters
FEWEST = 20  # minimum number of rows for a map
ENOUGH = 1000  # number of rows from which isotonic beats logistic (Niculescu-Mizil and Caruana, 2005)


class Recalibration(NamedTuple):
    """A calibration map fitted to out-of-fold posteriors, and the cross-fitted calibrated posteriors."""

    map: Calibration
    method: str
    log_posterior: Array  # (n, C), each row by a map of the other folds

    @property
    def words(self) -> str:
        """A short description of the map."""
        how = f"temperature {float(self.map.temperature):.3g}" if isinstance(self.map, Temperature) else self.method
        return f"calibrated ({how})"


def recalibrated(
    log_posterior: Array, labels: Index, fold: Index | None, weight: Array | None,
    allowed: Callable[[Array], bool] = lambda log_posterior: True, sequences: bool = False,
) -> Recalibration | None:  # fmt: skip
    """The map that lowers the log-loss of posteriors (n, C) by more than its standard error; else None.

    Temperature, logistic and isotonic are compared by cross-validation; of those that improve and
    whose posteriors are `allowed`, the simplest within one standard error of the best is taken. Frames of `sequences`
    are correlated, which makes posteriors far overconfident. There temperature scaling need not show a significant
    improvement: few sequences without an error are no evidence for posteriors of 0 and 1.
    """
    n, C = log_posterior.shape
    fold = _folds(fold, n)
    if n < FEWEST or C < 2 or any(len(np.unique(labels[fold != k])) < C for k in np.unique(fold)):
        return None
    scores = floored(log_posterior)
    tried = {method: _cross_fitted(scores, labels, fold, weight, method) for method in _methods(min(n, MOST), C)}
    known = {"temperature"} if sequences else set()
    helps = {name for name, lp in tried.items() if name in known or _gains(lp, scores, labels, weight)}
    helpful = {name: lp for name, lp in tried.items() if name in helps and allowed(lp)}
    if not helpful:
        return None
    best = max(helpful.values(), key=lambda lp: mean(_of_truth(lp, labels), weight).value)
    method = next(name for name, lp in helpful.items() if not _gains(best, lp, labels, weight))
    return Recalibration(_learned(scores, labels, weight, np.arange(n), method), method, helpful[method])


def _methods(n: int, C: int) -> list[str]:
    """Methods to compare, the simplest first; a matrix for many classes is too slow, and isotonic needs many rows."""
    fit = {"logistic": C <= 10 and n * C * C <= 4_000_000, "isotonic": n >= ENOUGH}  # 26 classes, 20,000 rows: 7 s
    return [name for name in METHODS if fit.get(name, True)]


def _gains(log_posterior: Array, other: Array, labels: Index, weight: Array | None) -> bool:
    """Whether the first log-loss is smaller by more than a standard error."""
    gain = mean(_of_truth(log_posterior, labels) - _of_truth(other, labels), weight)
    return bool(gain.value > gain.se)


def applied(map: Calibration | None, log_posterior: Array) -> Array:
    """Posteriors under a map; unchanged with None."""
    return log_posterior if map is None else map.log_posterior(floored(log_posterior))


def floored(log_posterior: Array) -> Array:
    """Log-posteriors (or log-joints) relative to the largest of a row, clipped at the floor."""
    top = log_posterior.max(axis=1, keepdims=True)
    return np.maximum(log_posterior - np.where(np.isfinite(top), top, 0.0), FLOOR)


def _folds(fold: Index | None, n: int) -> Index:
    found = 0 if fold is None else len(np.unique(fold))
    if fold is not None and 2 <= found <= 20:
        return fold
    return np.random.default_rng(0).permutation(n) % FOLDS


def _cross_fitted(scores: Array, labels: Index, fold: Index, weight: Array | None, method: str) -> Array:
    out = np.empty_like(scores)
    for k in np.unique(fold):
        here = fold == k
        out[here] = _learned(scores, labels, weight, np.flatnonzero(~here), method).log_posterior(scores[here])
    return out


def _learned(scores: Array, labels: Index, weight: Array | None, rows: Index, method: str) -> Calibration:
    """The map of these rows, or of a stratified subset of MOST rows."""
    if len(rows) > MOST:
        rows = rows[np.argsort(labels[rows], kind="stable")]
        first = np.unique(labels[rows], return_index=True)[1]  # every class is represented
        rows = rows[np.union1d(first, np.linspace(0, len(rows) - 1, MOST).round().astype(np.intp))]
    return calibrate(scores[rows], labels[rows], None if weight is None else weight[rows], method=method)


def _of_truth(log_posterior: Array, labels: Index) -> Array:
    normal = log_posterior - np.logaddexp.reduce(log_posterior, axis=1, keepdims=True)
    return np.asarray(np.take_along_axis(normal, labels[:, None], axis=1)[:, 0])
