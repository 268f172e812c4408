"""Choosing the number of clusters: inertia, held-out likelihood, BIC, Calinski–Harabasz and silhouette over k."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from likely.cluster.kmeans.assignment import KMeansData
from likely.cluster.kmeans.kmeans import Initialization, Method, kmeans, present
from likely.cluster.kmeans.kmeans_plus_plus import filled, power_of_two
from likely.cluster.kmeans.lloyd import DEFAULT_STOP, Partition
from likely.core.arrays import Array, Index
from likely.core.em_loop import StoppingRule
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.row_hashes import row_hashes
from likely.core.sketch import Sketch
from likely.core.warnings import warnings_discarded
from likely.metrics.confidence_intervals import errors_to_best, simplest_within_error
from likely.metrics.silhouette import silhouette_score

FOLDS = 5  # folds, each held out in turn
MANY = 50_000  # number of rows from which one fold is enough
SAMPLE = 2_000  # number of distinct rows in the mean silhouette
SMALLEST = 1e-12  # variance floor relative to the variance of all rows
LARGER_IS_BETTER = {"inertia": False, "held_out": True, "bic": False, "calinski_harabasz": True, "silhouette": True}
TITLES = {"held_out": "held out", "bic": "BIC", "calinski_harabasz": "C.–Harabasz"}


@dataclass(frozen=True, eq=False)
class ChoiceOfK:
    """Curves over the number of clusters; NaN where one is not defined (k = 1, or as many clusters as distinct rows).

    The likelihoods are those of spherical Gaussians with one variance, of which k-means is the limit.

    Parameters
    ----------
    k : ndarray of int (m,)
        Numbers of clusters.
    inertia : ndarray (m,)
        Sum of w ‖x − own center‖²; always decreases.
    held_out : ndarray (m,)
        Mean held-out log-likelihood, in nats per row; larger is better.
    bic : ndarray (m,)
        BIC = −2 log-likelihood + parameters · log n (X-means, Pelleg and Moore 2000); smaller is better.
    calinski_harabasz : ndarray (m,)
        Variance between clusters over variance within; larger is better.
    silhouette : ndarray (m,)
        Mean silhouette over at most 2,000 rows; larger is better.
    held_out_error : ndarray (m,), optional
        Standard error of the difference to the best; None of a single fold.
    """

    k: Index  # (m,)
    inertia: Array  # (m,): Σ w |x − own center|²; always decreases
    held_out: Array  # (m,): mean held-out log-likelihood, in nats per row; larger is better
    bic: Array  # (m,): −2 log-likelihood + parameters · log n (X-means, Pelleg and Moore 2000); smaller is better
    calinski_harabasz: Array  # (m,): variance between clusters over variance within; larger is better
    silhouette: Array  # (m,): mean over at most 2,000 rows; larger is better
    held_out_error: Array | None = None  # (m,): standard error of the difference to the best; None of a single fold

    @property
    def best(self) -> dict[str, int]:
        """The k that each curve selects; inertia selects none.

        By held-out likelihood it is the smallest k within one standard error of the largest value.
        """
        return {name: self._best(name) for name in LARGER_IS_BETTER if name != "inertia" and self._best(name)}

    @property
    def chosen(self) -> int:
        """The k of the smallest BIC."""
        if not self._best("bic"):
            expected, remedy = "for some k, rows must differ from their centers", "try smaller k"
            raise DomainError(sentence("choose_k", expected, self.k.tolist(), remedy))
        return self._best("bic")

    def _best(self, name: str) -> int:
        """The selected k; 0 if no k has a value."""
        curve = getattr(self, name) * (1 if LARGER_IS_BETTER[name] else -1)
        if np.isnan(curve).all():
            return 0
        error = self.held_out_error if name == "held_out" else None
        return int(self.k[simplest_within_error(curve, error)])

    def __str__(self) -> str:
        best = self.best
        head = f"{'k':>5}" + "".join(f"{TITLES.get(name, name):>14}" for name in LARGER_IS_BETTER)
        lines = [self._line(i, best) for i in range(len(self.k))]
        choice = f"BIC chooses k = {best['bic']}" if "bic" in best else "BIC cannot choose: every row equals its center"
        return "\n".join([head, *lines, f"* best of its curve; {choice}"])

    def _line(self, i: int, best: dict[str, int]) -> str:
        cells = []
        for name in LARGER_IS_BETTER:
            value = getattr(self, name)[i]
            mark = "*" if best.get(name) == self.k[i] else " "
            cells.append(f"{'–' if np.isnan(value) else f'{value:.6g}':>13}{mark}")
        return f"{self.k[i]:>5}" + "".join(cells)


def choose_k(
    x: ArrayLike, ks: Iterable[int] = range(1, 11), weight: ArrayLike | None = None, *, n_init: int = 5,
    init: Initialization | ArrayLike = "k-means++", method: Method = "batch", stop: StoppingRule = DEFAULT_STOP,
    random_state: int | None = 0, sample_weight: ArrayLike | None = None,
) -> ChoiceOfK:  # fmt: skip
    """Fit k-means for each k, on all rows and with cross-validation (of many rows: one hold-out fold), and compare.

    Folds are assigned by the hash of a row, so that equal rows stay together and the order of rows does not matter. If
    each distinct row is a center, likelihoods are unbounded, and the value is NaN.

    Parameters
    ----------
    x : array-like (n, d)
        Rows; NaN is a missing value.
    ks : iterable of int, default range(1, 11)
        Numbers of clusters.
    weight : array-like (n,), optional
        Weight per row.
    n_init : int, default 5
        Number of initializations per k; the best fit is kept.
    init : {"k-means++", "random", "split"} or array-like (k, d), default "k-means++"
        Initialization, as in `KMeans`.
    method : {"batch", "exchange"}, default "batch"
        Algorithm, as in `KMeans`.
    stop : StoppingRule
        When iterations end.
    random_state : int, default 0
        Seed of the initializations.
    sample_weight : array-like (n,), optional
        Another name for `weight`.

    Returns
    -------
    ChoiceOfK
        Inertia, held-out likelihood, BIC, Calinski–Harabasz index and silhouette per k; `best` says what each selects.

    See Also
    --------
    KMeans : The estimator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (0.0, 8.0, 16.0)])
    >>> choose_k(x, range(1, 6)).best
    {'held_out': 3, 'bic': 3, 'calinski_harabasz': 3, 'silhouette': 3}
    """
    numbers = _checked(ks)
    table, unit = _in_unit(present(KMeansData.of(x, _one_of(weight, sample_weight))))
    init = init if isinstance(init, str) else np.asarray(getattr(init, "mean", init), dtype=np.float64) / unit
    options: dict[str, Any] = {"n_init": n_init, "init": init, "method": method, "stop": stop}
    which = np.unique(row_hashes(table.x), return_inverse=True)[1]
    folds, sample = _folds(which), Sketch.of(table.x, table.weight, SAMPLE)
    found, apart = [], []
    for k in numbers:
        whole = _fitted(table, slice(None), k, options, random_state)
        regular = k <= which.max() and not _at_floor(whole)
        parts = [_held_out(_fitted(table, rest, k, options, random_state), table, aside) for rest, aside in folds]
        apart.append(np.array(parts) if regular else np.full((len(folds), 2), np.nan))
        found.append((whole.inertia, _bic(whole) if regular else np.nan, _ratio(whole), _mean(whole, sample)))
    curves = _in_units_of_rows(np.array(found, dtype=np.float64).T, np.array(apart), table, unit)
    return ChoiceOfK(k=np.array(numbers, dtype=np.intp), **curves)


def _in_unit(table: KMeansData) -> tuple[KMeansData, float]:
    """The rows scaled to size 1 by a power of two: a change of unit changes nothing that is drawn or hashed."""
    low, high = np.fmin.reduce(table.x, axis=None, initial=0.0), np.fmax.reduce(table.x, axis=None, initial=0.0)
    unit = float(power_of_two(max(-float(low), float(high))))
    return (table if unit == 1.0 else KMeansData.of(table.x / table.x.dtype.type(unit), table.weight)), unit


def _in_units_of_rows(found: Array, apart: Array, table: KMeansData, unit: float) -> dict[str, Array]:
    """Curves in the original units: densities change by the unit once for each observed entry."""
    weight = np.ones(len(table)) if table.weight is None else table.weight
    entries = float(weight @ (~np.isnan(table.x)).sum(axis=1))
    inertia, bic, ratio, silhouettes = found
    held_out = apart[:, :, 0].sum(axis=1) / apart[:, :, 1].sum(axis=1) - entries / weight.sum() * np.log(unit)
    with np.errstate(over="ignore", under="ignore"):
        curves = {"inertia": inertia * unit * unit, "held_out": held_out, "bic": bic + 2.0 * entries * np.log(unit)}
    error = errors_to_best(apart[:, :, 0] / apart[:, :, 1])
    return {**curves, "calinski_harabasz": ratio, "silhouette": silhouettes, "held_out_error": error}


def _one_of(weight: Any, sample_weight: Any) -> Any:
    if weight is not None and sample_weight is not None:
        raise DomainError(sentence("choose_k", "weight and sample_weight are the same", "both", "pass one of them"))
    return sample_weight if weight is None else weight


def _checked(ks: Iterable[int]) -> list[int]:
    given = list(ks) if isinstance(ks, Iterable) else [ks]
    whole = all(isinstance(k, Integral) and not isinstance(k, bool) and k >= 1 for k in given)
    if not given or not whole:
        raise DomainError(sentence("choose_k", "ks must be integers from 1 on", given))
    return sorted({int(k) for k in given})


def _folds(which: Index) -> list[tuple[Index, Index]]:
    """Training and held-out rows; `which` is the distinct row of each, in the order of their hashes."""
    if which.max() + 1 < FOLDS:
        raise DataError(sentence("choose_k", f"at least {FOLDS} distinct rows are needed", int(which.max()) + 1))
    fold = which % FOLDS
    turns = range(FOLDS if len(which) <= MANY else 1)
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in turns]


def _fitted(table: KMeansData, at: Any, k: int, options: dict[str, Any], seed: int | None) -> Partition:
    weight = None if table.weight is None else table.weight[at]
    with warnings_discarded():  # fewer clusters than requested: the curve is constant there
        return kmeans(table.x[at], k, weight, rng=np.random.default_rng(seed), **options)


def _at_floor(found: Partition) -> bool:
    """True if every row equals its center, up to rounding."""
    return found.inertia <= SMALLEST * float(found.report.stats.moments.pooled().scatter.sum())


def _variance(found: Partition) -> float:
    """The maximum-likelihood common variance, positive even if every row is a center."""
    moments = found.report.stats.moments
    entries = float(moments.weight.sum())
    everything = float(moments.pooled().scatter.sum())
    return max(found.inertia, SMALLEST * everything, np.finfo(float).tiny) / entries


def _held_out(found: Partition, table: KMeansData, aside: Index) -> tuple[float, float]:
    """Σ w log p(x) of held-out rows, and Σ w, under the mixture of spherical Gaussians of the clusters."""
    variance, counts = _variance(found), found.report.stats.counts
    with np.errstate(divide="ignore"):
        log_share = np.log(counts / counts.sum())

    def log_prob(x: Any) -> Array:
        seen = (~np.isnan(x)).sum(axis=1)
        near = found.model.distances(x.astype(np.float64)) / np.sqrt(variance)
        return np.asarray(logsumexp(log_share - 0.5 * near**2, axis=1) - 0.5 * seen * np.log(2 * np.pi * variance))

    values = map_rows(log_prob, table.x[aside], None, np.float64)
    weight = np.ones(len(aside)) if table.weight is None else table.weight[aside]
    return float(weight @ values), float(weight.sum())


def _bic(found: Partition) -> float:
    """BIC of the classification likelihood: Σ n_k log(n_k / n) − E/2 log 2πσ² − W/2σ², E observed entries."""
    stats, variance = found.report.stats, _variance(found)
    counts = stats.counts[stats.counts > 0]
    n, entries = counts.sum(), stats.entries.sum()
    shares, spread = counts @ np.log(counts / n), entries * np.log(2 * np.pi * variance) + found.inertia / variance
    parameters = found.model.mean.size + found.model.members
    return float(spread - 2.0 * shares + parameters * np.log(n))


def _ratio(found: Partition) -> float:
    """Calinski–Harabasz index: (B / (k − 1)) / (W / (n − k))."""
    stats = found.report.stats
    k, n, within = found.model.members, stats.total_weight, found.inertia
    if k < 2 or n <= k or not within > 0:
        return np.nan
    between = max(float(stats.moments.pooled().scatter.sum()) - within, 0.0)
    return between / (k - 1) / (within / (n - k))


def _mean(found: Partition, sample: Sketch) -> float:
    labels = found.model.assign(sample.rows)
    if not 1 < len(np.unique(labels)) < len(labels):
        return np.nan
    return silhouette_score(filled(sample.rows, sample.weight), labels, weight=sample.weight)
