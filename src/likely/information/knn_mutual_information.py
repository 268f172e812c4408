"""Mutual information by k nearest neighbors (Kraskov, Stögbauer and Grassberger)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import digamma, entr

from likely.core.arrays import Array, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.distribution import Estimate
from likely.information.contingency_information import table_information

ME = "mutual_information"
SINGLE = 0.9  # proportion of unique values from which a column counts as continuous
OFTEN = 5  # rows per cell from which two columns are treated as a contingency table
GROWS = 0.5  # share of log 2 by which halving the rows may lower the value; a function of x loses all of it


def neighbor_information(x: Any, y: Any, neighbors: int = 4) -> Estimate:
    """I[x; y] of paired rows (n, d) and (n, e) by k nearest neighbors, in nats, with a standard error.

    Kraskov, Stögbauer and Grassberger (2004): with ε_i the maximum-norm distance to the k-th neighbor and nx, ny
    the rows strictly nearer in x and in y alone, I = ψ(k) + ψ(n) − mean[ψ(nx + 1) + ψ(ny + 1)]. Columns are first
    scaled to unit variance. Tied values (labels, counts, rounded numbers) are spread uniformly over their range of
    ranks, each column with draws of its own and a fixed seed: that changes no information, since the value can be
    recovered. Two columns whose pairs mostly occur five times or more are treated as a contingency table.

    The error combines, in quadrature, the standard error of the mean term, inflated for overlapping neighborhoods, and
    the changes with twice as many neighbors and with half as many rows, which show a bias. Where half of the rows give
    much less than all of them, one side looks like a function of the other, and a warning says so. Of rows with
    themselves it is infinite, unless values are tied. With tied values the result never exceeds the entropy. Rows with
    missing values are left out. The result may be slightly negative.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    >>> value, error = neighbor_information(z[:, 0], z[:, 1])
    >>> bool(abs(value + 0.5 * np.log(1 - 0.64)) < 3 * error)
    True
    """
    a, b = _complete(x, y)
    if neighbors < 1 or neighbors != int(neighbors) or neighbors >= len(a):
        expected = f"neighbors must be an integer from 1 to {len(a) - 1}, one less than the rows"
        raise DomainError(sentence(ME, expected, neighbors))
    return _with_error(a, b, int(neighbors))


def _with_error(a: Array, b: Array, k: int) -> Estimate:
    if not _repeats(a) and _same(a, b):
        return Estimate(math.inf, 0.0)
    table = _as_table(a, b)
    if table is not None:
        return table_information(table / len(a), float(len(a)))
    most = min(_entropy(a), _entropy(b))
    a, b = _spread_out(a, 0), _spread_out(b, 1)
    terms = _terms(a, b, k)
    value, n = float(terms.mean()), len(terms)
    fewer = _of_halves(a, b, k)
    wider = float(_terms(a, b, min(2 * k, n - 1)).mean())
    if value - fewer > GROWS * math.log(2.0) and value > 1:
        got = f"{value:.3g} nats of {n} rows, {fewer:.3g} of half as many"
        warn(sentence(ME, "the value should not grow with the rows", got, "one side may be a function of the other"))
    # each row takes part in about k neighborhoods, whose terms are correlated
    chance = float(terms.std(ddof=1)) * _overlap(k) / math.sqrt(n)
    return Estimate(min(value, most), max(math.hypot(chance, value - fewer, value - wider), 1 / n))


def _entropy(a: Array) -> float:
    """Entropy of the empirical distribution; infinite unless every column has ties."""
    if not all(_repeats(column[:, None]) for column in a.T):
        return math.inf
    return float(entr(np.unique(a, axis=0, return_counts=True)[1] / len(a)).sum())


def _repeats(a: Array) -> bool:
    """Whether some column has tied values."""
    return any(len(np.unique(column)) < SINGLE * len(column) for column in a.T)


def _as_table(a: Array, b: Array) -> Array | None:
    """ContingencyTable table (A, B) of two columns of few values; None where pairs are too rare."""
    if a.shape[1] > 1 or b.shape[1] > 1:
        return None
    (x, i), (y, j) = (np.unique(column[:, 0], return_inverse=True) for column in (a, b))
    if len(x) * len(y) * OFTEN > len(a):
        return None
    counts = np.bincount(i * len(y) + j, minlength=len(x) * len(y)).reshape(len(x), len(y))
    return np.asarray(counts, dtype=np.float64)


def _spread_out(a: Array, seed: int) -> Array:
    """Columns with ties as ranks, uniformly random within the rank interval of each value."""
    rng = np.random.default_rng(seed)
    return _scaled(np.column_stack([_ranked(column, rng) if _repeats(column[:, None]) else column for column in a.T]))


def _ranked(column: Array, rng: Generator) -> Array:
    _, which, times = np.unique(column, return_inverse=True, return_counts=True)
    below = np.cumsum(times) - times
    return np.asarray((below[which] + rng.random(len(column)) * times[which]) / len(column))


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and all(
        min(np.abs(x - y).max(), np.abs(x + y).max()) < 1e-9 for x, y in zip(a.T, b.T, strict=True)
    )


def _of_halves(a: Array, b: Array, k: int) -> float:
    """Mean of the estimates from the two halves of the rows."""
    order = np.random.default_rng(0).permutation(len(a))
    halves = [order[::2], order[1::2]]
    if len(halves[1]) <= k:
        return 0.0
    return float(np.mean([_terms(a[half], b[half], k).mean() for half in halves]))


def _overlap(k: int) -> float:
    return math.sqrt(1.0 + 1.0 / math.sqrt(k))  # measured on Gaussians, k = 1 … 10


def _complete(x: Any, y: Any) -> tuple[Array, Array]:
    """Rows complete on both sides, each column with unit variance; labels become numbers."""
    a, b = _numbers(x), _numbers(y)
    if len(a) != len(b):
        raise ShapeError(sentence(ME, "X and Y must have equally many rows, pair by pair", (len(a), len(b))))
    complete = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    if complete.sum() < 3:
        raise DataError(sentence(ME, "at least three complete pairs are needed", int(complete.sum())))
    return _scaled(a[complete]), _scaled(b[complete])


def _numbers(x: Any) -> Array:
    cells = np.asarray(x)
    if cells.dtype.kind in "OUSb" and cells.ndim == 1:
        try:
            found, code = np.unique(cells, return_inverse=True)
        except TypeError as error:
            raise DataError(sentence(ME, "labels must be of one kind", "strings and others")) from error
        return code.astype(np.float64)[:, None] * len(found)
    a = rows(x, None, ME)
    refuse_infinite(a, ME)
    return a


def _scaled(a: Array) -> Array:
    spread = a.std(axis=0)
    return np.asarray((a - a.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _terms(a: Array, b: Array, k: int) -> Array:
    """Terms of the estimate per row; by SciPy's tree, since rows within a radius are counted, which ours cannot do."""
    from scipy.spatial import cKDTree

    both = np.hstack([a, b])
    reach = cKDTree(both).query(both, k=[k + 1], p=np.inf)[0][:, 0]
    strictly = np.maximum(reach - 1e-14 * np.abs(both).max(), 0.0)  # sums of coordinates round
    in_a, in_b = _count_within(a, strictly), _count_within(b, strictly)
    return np.asarray(digamma(k) + digamma(len(a)) - digamma(in_a) - digamma(in_b))  # with the row itself: nx + 1


def _count_within(a: Array, reach: Array) -> Array:
    """Number of rows within reach of each row, itself included."""
    if a.shape[1] == 1:
        line = np.sort(a[:, 0])
        upto, before = (np.searchsorted(line, a[:, 0] + reach, "right"), np.searchsorted(line, a[:, 0] - reach, "left"))
        return (upto - before).astype(np.float64)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(a).query_ball_point(a, reach, p=np.inf, return_length=True))
