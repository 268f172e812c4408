"""Posteriors that keep their word: out-of-fold ones teach how far a model's own must be softened."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.decisions.calibrators import (
    Calibration,
    IsotonicMap,
    LogisticMap,
    Temperature,
    calibrate,
    choose_method,
)
from likely.decisions.intervals import mean
from likely.errors import DomainError, sentence

FLOOR = -1000.0  # what stands for a log-posterior of −∞, or of a row that no class explains
FOLDS = 5  # of tested rows, where the splits themselves are too few or too many for it
FEWEST = 50  # rows from which a map can be learnt


class Recalibration(NamedTuple):
    """A map that was learnt from out-of-fold posteriors, and the posteriors that it gives where it was not learnt."""

    map: Calibration
    method: str
    log_posterior: Array  # (n, C), each row by a map of the other folds

    @property
    def words(self) -> str:
        """How it changes posteriors."""
        how = f"temperature {float(self.map.temperature):.3g}" if isinstance(self.map, Temperature) else self.method
        return f"calibrated ({how})"


def recalibrated(log_posterior: Array, owner: Index, fold: Index | None, weight: Array | None) -> Recalibration | None:
    """The map that makes posteriors (n, C) better by more than a standard error of their log-loss, if there is one.

    Two classes: whichever of temperature, logistic and isotonic does best. More: a temperature. Each is tried on folds
    that it was not learnt from.
    """
    n, C = log_posterior.shape
    fold = _folds(fold, n)
    if n < FEWEST or C < 2 or any(len(np.unique(owner[fold != k])) < C for k in np.unique(fold)):
        return None
    scores = floored(log_posterior)
    method = choose_method(scores, owner, fold, weight)[0] if C == 2 else "temperature"
    found = _cross_fitted(scores, owner, fold, weight, method)
    gain = mean(_of_truth(found, owner) - _of_truth(scores, owner), weight)
    if not gain.value > gain.se:
        return None
    return Recalibration(calibrate(scores, owner, weight, method=method), method, found)


def applied(map: Calibration | None, log_posterior: Array) -> Array:
    """Posteriors under a map; None leaves them as they are."""
    return log_posterior if map is None else map.log_posterior(floored(log_posterior))


def as_parts(map: Calibration | None) -> dict[str, Any] | None:
    """A map as a model file keeps it: its name and its arrays."""
    if map is None:
        return None
    return {"map": type(map).__name__, **{f.name: getattr(map, f.name) for f in fields(map)}}  # type: ignore[arg-type]


def from_parts(parts: Any) -> Calibration | None:
    """The map again; what makes none is refused by the class that it names."""
    if parts is None:
        return None
    kind = {m.__name__: m for m in (Temperature, LogisticMap, IsotonicMap)}.get(parts["map"])
    if kind is None:
        raise DomainError(sentence("calibration", "the map must be a known one", parts["map"]))
    made: Calibration = kind(**{name: part for name, part in parts.items() if name != "map"})
    return made


def floored(log_posterior: Array) -> Array:
    """Log-posteriors (or log-joints) about the largest of a row, none below the floor."""
    top = log_posterior.max(axis=1, keepdims=True)
    return np.maximum(log_posterior - np.where(np.isfinite(top), top, 0.0), FLOOR)


class RecalibratedModel:
    """A mixture whose posteriors go through a map: what `Explanation` needs of one, on the map's scale."""

    def __init__(self, model: Any, map: Calibration) -> None:
        self.model, self.map = model, map

    def log_joint(self, rows: Any) -> Array:
        """Log-posteriors (n, C) behind the map."""
        return applied(self.map, self.model.log_joint(rows))

    def _shares(self, joint: Array) -> Array:
        return np.exp(joint)

    @property
    def weights(self) -> Array:
        """What the class probabilities are behind the map."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(applied(self.map, np.log(self.model.weights)[None]))[0])


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
