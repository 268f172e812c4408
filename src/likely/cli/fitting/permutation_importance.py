"""Importance of columns: increase of the mean cost when one is shuffled among rows, or hidden in sequences."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from likely.classify.explanation import with_column_missing
from likely.core.arrays import Array, Index
from likely.metrics.confidence_intervals import mean
from likely.report.study import Driver

ROWS = 4000  # that are shuffled, at most: enough for three digits
SPLITS = 200  # that are refitted, at most
SECONDS = 15.0  # that shuffles may take: wide tables get fewer splits, then only columns that tell classes apart
QUICK = 0.01  # seconds of one shuffle


def importance(
    field: Any, names: list[str], estimator: Any, calibration: Any = None, *, seed: int = 0, jobs: int | None = None
) -> tuple[Driver, ...]:
    """For each column, the rise of the mean cost on out-of-fold rows when it is shuffled among them, largest first.

    Models are those of the splits, so each row is judged by one that had not seen it. A shuffled column keeps its
    own distribution and loses every tie with the class and the other columns. Sequences have unlike lengths: there a
    column is hidden in all frames, that is, marginalized out.
    """
    from likely.automl.model_comparison import silence
    from likely.estimation.parallel import in_threads

    rng = np.random.default_rng(seed)
    splits = [field.splits[i] for i in sorted(rng.permutation(len(field.splits))[:SPLITS])]
    with silence():
        shuffles = _affordable(field, estimator, splits[0])
    splits = splits[: max(1, shuffles // len(names))] if len(splits) <= 20 else splits
    taken = np.sort(rng.permutation(np.concatenate([split.test for split in splits]))[:ROWS])
    most = max(1, min(5, shuffles // (len(names) * len(splits)))) if field.unit == "row" else 1
    places = {name: j for j, name in enumerate(names)}
    names = _most_separating_columns(field, names, max(10, shuffles))
    repeats = int(np.clip(ROWS // (2 * len(taken)), 1, most))
    other = np.stack([rng.permutation(taken) for _ in range(repeats)])  # (repeats, m): whose cell each row gets

    def changed(X: Any, name: str, lent: Index) -> Any:
        return X.with_columns(field.X[name][lent]) if field.unit == "row" else with_column_missing(X, places[name])

    def rises_of(split: Any) -> tuple[Array, Index]:
        return _rises(field, estimator, split, taken, other, calibration, names, changed)

    with silence():
        found = in_threads(rises_of, splits, jobs)
    rises, rows = np.concatenate([rise for rise, _ in found], axis=1), np.concatenate([row for _, row in found])
    weight = None if field.judging is None else field.judging[rows]
    drivers = [_driver(name, rise, weight) for name, rise in zip(names, rises, strict=True)]
    return tuple(sorted(drivers, key=lambda driver: -driver.increase))


def _affordable(field: Any, estimator: Any, split: Any) -> int:
    """How many shuffles there is time for, by a trial with one split's rows."""
    from likely.automl.model_comparison import learned

    rows = split.test[: ROWS // len(field.splits) + 1]
    model, X = learned(estimator, field, split), field.X[rows]
    start = perf_counter()
    field.answers(model, X, split)
    seconds = max(perf_counter() - start, QUICK)  # below that every table has time, so the clock changes nothing
    return int(SECONDS / seconds)


def _most_separating_columns(field: Any, names: list[str], most: int) -> list[str]:
    """All columns, or of very many those that separate the classes best individually; of frames, the first."""
    if len(names) <= most or field.unit != "row":
        return names[:most]
    apart = [_apart(field.X[name], field.labels, len(field.classes)) for name in names]
    kept = set(np.argsort(-np.array(apart), kind="stable")[:most].tolist())
    return [name for j, name in enumerate(names) if j in kept]


def _apart(column: Any, labels: Index, n_classes: int) -> float:
    """The share of a column's variance that lies between classes; of words, their χ² a row."""
    labels = labels[column.is_not_null().to_numpy()] if column.null_count() else labels
    if not len(labels):
        return 0.0
    if not column.dtype.is_numeric():
        codes = column.drop_nulls().rank("dense").to_numpy().astype(np.intp) - 1
        table = np.zeros((n_classes, int(codes.max()) + 1))
        np.add.at(table, (labels, codes), 1.0 / len(labels))
        expected = np.outer(table.sum(axis=1), table.sum(axis=0))
        return float((table**2 / np.maximum(expected, 1e-300)).sum() - 1)
    x = column.drop_nulls().to_numpy()
    means = np.bincount(labels, x, n_classes) / np.maximum(np.bincount(labels, minlength=n_classes), 1)
    return float(np.var(means[labels]) / max(float(np.var(x)), 1e-300))


def _driver(name: str, rise: Array, weight: Array | None) -> Driver:
    increase = mean(rise, weight)
    return Driver(name, increase.value, increase.se if np.isfinite(increase.se) else None)


def _rises(
    field: Any, estimator: Any, split: Any, taken: Index, other: Index, calibration: Any, names: list[str],
    changed: Callable[[Any, str, Index], Any],
) -> tuple[Array, Index]:  # fmt: skip
    """Increase of the cost per tested row (columns, m), and the indices of these rows (m,)."""
    from likely.automl.model_comparison import learned

    at = np.flatnonzero(np.isin(taken, split.test))
    rows = taken[at]
    if not len(rows):
        return np.empty((len(names), 0)), rows
    model, X = learned(estimator, field, split), field.X[rows]
    paid = field.losses_of(field.answers(model, X, split), rows, calibration)
    rise = np.zeros((len(names), len(rows)))
    for j, name in enumerate(names):
        for lent in other[:, at]:
            found = field.answers(model, changed(X, name, lent), split)
            rise[j] += (field.losses_of(found, rows, calibration) - paid) / len(other)
    return rise, rows
