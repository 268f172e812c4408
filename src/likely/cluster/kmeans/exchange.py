"""Exchange k-means (Hartigan): single rows move to the cluster that decreases the criterion most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from likely.cluster.kmeans.assignment import KMeansData, read_only
from likely.cluster.kmeans.centroids import Centroids, CentroidStats, Labels
from likely.cluster.kmeans.lloyd import DEFAULT_STOP, Partition
from likely.core.arrays import Array, Index
from likely.core.em_loop import StoppingRule
from likely.core.fit_report import FitReport
from likely.core.row_hashes import row_hashes


class _Distinct(NamedTuple):
    """Distinct rows in the order of their hashes, and the distinct row of each row."""

    table: KMeansData
    which: Index  # (n,)


def exchange(x: Any, start: Partition, weight: Any = None, *, stop: StoppingRule = DEFAULT_STOP) -> Partition:
    """Improve a partition by moving single rows until no move decreases the criterion (Ney 6.2.2, sequential).

    A row of weight w leaves a cluster of weight n for another if w n'/(n' + w) |x − m'|² < w n/(n − w) |x − m|²: the
    difference is the exact change of the criterion, including the means. So the result is never worse than the initial
    partition, and every row is nearest to its own center. The last row of a cluster stays. Equal rows count as one row
    of their total weight, and rows are visited in the order of their hashes: neither duplicates nor the order of a
    table matter.

    >>> from likely.cluster.kmeans.lloyd import lloyd
    >>> x = np.array([[0.0], [2.0], [3.1]])
    >>> exchange(x, lloyd(x, [[1.0], [3.1]])).labels.tolist()
    [0, 1, 1]
    """
    whole = KMeansData.of(x, weight, start.model.dim)
    rows = _distinct(whole)
    labels = np.empty(len(rows.table), dtype=np.int32)
    labels[rows.which] = start.labels
    report, labels = _passes(rows.table, start, labels, stop)
    return Partition(report, labels[rows.which], start.before)


def _distinct(table: KMeansData) -> _Distinct:
    weight = np.ones(len(table)) if table.weight is None else table.weight
    _, first, which = np.unique(row_hashes(table.x), return_index=True, return_inverse=True)
    total = np.bincount(which, weight, len(first)).astype(np.float64)
    return _Distinct(replace(table.take(first), weight=read_only(total)), which.astype(np.intp))


def _passes(table: KMeansData, start: Partition, labels: Labels, stop: StoppingRule) -> tuple[FitReport, Labels]:
    """Repeated passes; each begins from recomputed sums, so that rounding errors do not accumulate.

    At the end every row is assigned to its nearest center: labels, statistics and centers are consistent, also
    if rows would still move.
    """
    model = start.model
    stats = table.stats(model, labels)
    model = model.refit(stats)
    trace = list(start.report.trace)
    converged, reason = False, f"{stop.max_iter} passes made, rows still moving"
    for _ in range(stop.max_iter):
        moved = _one_pass(table, model, stats, labels)
        stats = table.stats(model, labels)
        model = model.refit(stats)
        trace.append(model.objective(stats))
        if not moved:
            converged, reason = True, "no move of a row decreases the criterion"
            break
    labels = table.labeled(model)
    stats = table.stats(model, labels)
    trace[-1] = model.objective(stats)
    return FitReport(model, stats, None, converged, reason, trace, reseeded=start.report.reseeded), labels


def _one_pass(table: KMeansData, model: Centroids, stats: CentroidStats, labels: Labels) -> int:
    """Visit every row of positive weight once; returns the number that moved."""
    from likely.cluster.kmeans._loops.exchange_pass import exchange_pass

    unit = table.frame.unit
    counts = np.flatnonzero(_weight(table) > 0)
    own = labels[counts]
    u = table.frame.forward(table.x[counts].astype(np.float64))
    moved, _ = exchange_pass(
        u, _weight(table)[counts], table.has_missing, _lean(model, unit), own,
        table.frame.forward(model.mean), np.array(stats.moments.weight), np.bincount(own, minlength=model.members),
        np.array(stats.entries), stats.scatter * unit * unit,
    )  # fmt: skip
    labels[counts] = own
    return int(moved)


def _lean(model: Centroids, unit: float) -> float:
    return 0.0 if model.typical is None else model.dim * float(model.typical) * unit * unit


def _weight(table: KMeansData) -> Array:
    return np.ones(len(table)) if table.weight is None else table.weight
