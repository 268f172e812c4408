"""What drives the decisions: how much dearer they become when one column is shuffled."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.app.report.study import Driver
from likely.core.arrays import Array, Index
from likely.decisions.intervals import mean

ROWS = 4000  # that are shuffled, at most: enough for three digits
SPLITS = 200  # that are refitted, at most


def importance(
    field: Any, estimator: Any, calibration: Any = None, *, seed: int = 0, jobs: int | None = None
) -> tuple[Driver, ...]:
    """For each column, the rise of the mean cost on out-of-fold rows when it is shuffled among them, largest first.

    Models are those of the splits, so each row is judged by one that had not seen it. A shuffled column keeps its
    own law and loses every tie with the class and the other columns.
    """
    from likely.estimators.contest import silence
    from likely.estimators.parallel import in_threads

    rng = np.random.default_rng(seed)
    splits = [field.splits[i] for i in sorted(rng.permutation(len(field.splits))[:SPLITS])]
    tested = np.concatenate([split.test for split in splits])
    taken = np.sort(rng.permutation(tested)[:ROWS])
    repeats = int(np.clip(ROWS // (2 * len(taken)), 1, 5))
    other = np.stack([rng.permutation(taken) for _ in range(repeats)])  # (repeats, m): whose cell each row gets
    with silence():
        found = in_threads(lambda split: _rises(field, estimator, split, taken, other, calibration), splits, jobs)
    rises, rows = np.concatenate([rise for rise, _ in found], axis=1), np.concatenate([row for _, row in found])
    weight = None if field.judging is None else field.judging[rows]
    drivers = [_driver(name, rise, weight) for name, rise in zip(field.X.columns, rises, strict=True)]
    return tuple(sorted(drivers, key=lambda driver: -driver.increase))


def _driver(name: str, rise: Array, weight: Array | None) -> Driver:
    told = mean(rise, weight)
    return Driver(name, told.value, told.se if np.isfinite(told.se) else None)


def _rises(field: Any, estimator: Any, split: Any, taken: Index, other: Index, calibration: Any) -> tuple[Array, Index]:
    """By how much each tested row (columns, m) becomes dearer, and which rows these are (m,)."""
    from likely.estimators.contest import learnt
    from likely.estimators.recalibrated import applied

    at = np.flatnonzero(np.isin(taken, split.test))
    rows = taken[at]
    if not len(rows):
        return np.empty((field.X.width, 0)), rows
    model, X = learnt(estimator, field, split), field.X[rows]
    paid = _paid(field, applied(calibration, field.posteriors(model, X, split)), rows)
    rise = np.zeros((X.width, len(rows)))
    for j, name in enumerate(X.columns):
        for lent in other[:, at]:
            shuffled = X.with_columns(field.X[name][lent])
            found = applied(calibration, field.posteriors(model, shuffled, split))
            rise[j] += (_paid(field, found, rows) - paid) / len(other)
    return rise, rows


def _paid(field: Any, log_posterior: Array, rows: Index) -> Array:
    costs = field.costs
    return np.asarray(costs.table[costs.decide(log_posterior), field.owner[rows]])
