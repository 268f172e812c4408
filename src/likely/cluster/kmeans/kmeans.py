"""k-means: initialization from a sketch, Lloyd or exchange iterations, the best of several runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from likely.cluster.kmeans.assignment import KMeansData, refuse_empty_rows
from likely.cluster.kmeans.exchange import exchange
from likely.cluster.kmeans.kmeans_plus_plus import at_random, filled, kmeans_plus_plus
from likely.cluster.kmeans.lloyd import DEFAULT_STOP, Partition, lloyd, with_own_variances
from likely.cluster.kmeans.splitting import split
from likely.core.arrays import Array, check_option
from likely.core.em_loop import StoppingRule
from likely.core.errors import DataError, sentence
from likely.core.fit_report import Run
from likely.core.job_size import job
from likely.core.sketch import SIZE, Sketch
from likely.core.warnings import Note, warn
from likely.metrics.clusterings import adjusted_rand_index

Seeds = Callable[[Array, Array, int, np.random.Generator], Any]
Initialization = Literal["k-means++", "random", "split"]
Method = Literal["batch", "exchange"]
Variances = Literal["equal", "own"]
SEEDS: dict[str, Seeds] = {
    "k-means++": kmeans_plus_plus,
    "random": lambda x, weight, k, rng: at_random(weight, k, rng),
}
COMPARED = 10_000  # rows on which the partitions of several runs are compared
PER_SEED = 16  # sketch rows per seed, for thousands of seeds


def kmeans(
    x: Any, k: int, weight: Any = None, *, init: Any = "k-means++", n_init: int = 1, method: Method = "batch",
    variances: Variances = "equal", stop: StoppingRule = DEFAULT_STOP, rng: np.random.Generator | None = None,
) -> Partition:  # fmt: skip
    """Cluster rows (n, d) into k clusters: the best of `n_init` runs.

    `init` is "k-means++", "random", "split" or centers (k, d); the last two are deterministic, so one run is made.
    `method` is "batch" (`lloyd`) or "exchange", which then moves single rows; `variances` "equal"
    or "own". Rows of weight 0 are dropped. With too few distinct rows there are fewer clusters, with a warning.

    >>> x = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> kmeans(x, 2, rng=np.random.default_rng(0)).inertia
    1.0
    """
    _refuse_unknown(init, method, variances)
    rng = rng or np.random.default_rng()
    drawn = isinstance(init, str) and init in SEEDS
    n_runs = n_init if drawn else 1
    visits = float(np.size(x)) * stop.max_iter * n_runs
    with job(visits * k, visits):
        table = present(KMeansData.of(x, weight))
        begin = _starter(table, k, init, rng, stop)
        runs = [_improved(table, begin(), method, variances, stop) for _ in range(n_runs)]
    best = max(runs, key=lambda run: run.report.objective)
    if best.model.members < k:
        m = best.model.members
        warn(f"k-means: too few distinct rows for {k} clusters: there are {m}, one per distinct row")
    return _of_all(best, runs, x, table)


def _improved(table: KMeansData, found: Partition, method: str, variances: str, stop: StoppingRule) -> Partition:
    if variances == "own":
        found = with_own_variances(table.x, found, table.weight, stop=stop)
    return exchange(table.x, found, table.weight, stop=stop) if method == "exchange" else found


def _starter(
    table: KMeansData, k: int, start: Any, rng: np.random.Generator, stop: StoppingRule
) -> Callable[[], Partition]:
    if not isinstance(start, str):
        return lambda: lloyd(table, _given(start, k), stop=stop)
    if start == "split":
        return lambda: split(table, k, stop=stop)
    sketch = Sketch.of(table.x, table.weight, max(SIZE, PER_SEED * k))
    rows = filled(sketch.rows, sketch.weight)
    return lambda: lloyd(table, rows[_distinct(rows, SEEDS[start](rows, sketch.weight, k, rng))], stop=stop)


def _distinct(rows: Array, at: Any) -> Any:
    """Distinct seeds: rows may differ only in missing values, and imputed rows be equal."""
    return at[np.sort(np.unique(rows[at], axis=0, return_index=True)[1])]


def _given(start: Any, k: int) -> Any:
    mean = getattr(start, "mean", start) if not isinstance(start, np.ndarray) else start
    if np.ndim(mean) != 2 or len(mean) != k:
        expected = f"init must hold {k} centers, one per row"
        raise DataError(sentence("k-means", expected, np.shape(mean), "or change the number of clusters"))
    return mean


def present(table: KMeansData) -> KMeansData:
    """Rows of positive weight."""
    if not len(table):
        raise DataError(sentence("k-means", "at least one row is needed", "none"))
    at = np.ones(len(table), dtype=bool) if table.weight is None else table.weight > 0
    if not at.any():
        raise DataError(sentence("k-means", "at least one row must have weight", "weights of 0"))
    if table.has_missing:
        _check_missing(table.x, at)
    return table if at.all() else table.take(at)


def _check_missing(x: Any, at: Any) -> None:
    """Raise an error for rows `at` without observed entries; warn of columns without any."""
    refuse_empty_rows(x, "k-means", at)
    never = np.flatnonzero([np.isnan(column[at]).all() for column in x.T])
    if len(never):
        rest = f"the centers are arbitrary there; drop {'it' if len(never) == 1 else 'them'}"
        warn(Note("k-means", f"{{columns}} never observed: {rest}", columns=tuple(never.tolist())))


def _refuse_unknown(start: Any, method: str, variances: str) -> None:
    if isinstance(start, str):
        check_option(start, Initialization, "k-means", "init", "an array of centers")
    check_option(method, Method, "k-means", "method")
    check_option(variances, Variances, "k-means", "variances")


def _of_all(best: Partition, runs: list[Partition], x: Any, table: KMeansData) -> Partition:
    """The best run, with labels for every row, and a summary of all runs."""
    summaries = tuple(Run(r.report.objective, r.report.iterations, r.report.converged, r.report.reason) for r in runs)
    labels = best.labels if len(best.labels) == len(x) else best.model.assign(x)
    if len(runs) == 1:
        return best._replace(labels=labels)
    return best._replace(
        report=replace(best.report, runs=summaries, agreement=_agreement(best, runs, table)), labels=labels
    )


def _agreement(best: Partition, runs: list[Partition], table: KMeansData) -> float:
    """The mean adjusted Rand index of the best partition with the others, over a sample of the rows."""
    some = slice(None, None, max(1, len(table) // COMPARED))
    weight = None if table.weight is None else table.weight[some]
    others = [run for run in runs if run is not best]
    return float(np.mean([adjusted_rand_index(best.labels[some], run.labels[some], weight) for run in others]))
