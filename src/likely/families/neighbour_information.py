"""Mutual information without a model: who is near in x and y together, and who in one of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma

from likely.core.arrays import Array, Mask, refuse_infinite, rows
from likely.errors import DataError, DomainError, ShapeError, sentence
from likely.families.law import Estimate

ME = "mutual_information"


def neighbour_information(x: Any, y: Any, neighbours: int = 4) -> Estimate:
    """I[x; y] of paired rows (n, d) and (n, e) by k nearest neighbours, in nats, with an error bar.

    Kraskov, Stögbauer and Grassberger (2004): with ε_i the largest-coordinate distance to the k-th neighbour and nx, ny
    the rows strictly nearer in x and in y alone, I = ψ(k) + ψ(n) − mean[ψ(nx + 1) + ψ(ny + 1)]. Columns are first
    brought to one scale. Where rows repeat (labels, counts) the form of Gao, Kannan, Oh and Viswanath (2017) counts the
    repeated rows. The error is the standard error of the mean term, times what overlapping neighbourhoods cost.
    Rows with a gap are left out. The value may be a little below 0.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    >>> value, error = neighbour_information(z[:, 0], z[:, 1])
    >>> bool(abs(value + 0.5 * np.log(1 - 0.64)) < 3 * error)
    True
    """
    a, b = _complete(x, y)
    if neighbours < 1 or neighbours != int(neighbours) or neighbours >= len(a):
        expected = f"neighbours must be a whole number from 1 to {len(a) - 1}, one less than the rows"
        raise DomainError(sentence(ME, expected, neighbours))
    terms = _terms(a, b, int(neighbours))
    # each row takes part in about k neighbourhoods, whose terms lean on one another
    return Estimate(float(terms.mean()), float(terms.std(ddof=1)) * _overlap(int(neighbours)) / math.sqrt(len(terms)))


def _overlap(k: int) -> float:
    return math.sqrt(1.0 + 1.0 / math.sqrt(k))  # measured on Gaussians, k = 1 … 10


def _complete(x: Any, y: Any) -> tuple[Array, Array]:
    """Rows that both sides have, each column to unit spread; labels become numbers."""
    a, b = _numbers(x), _numbers(y)
    if len(a) != len(b):
        raise ShapeError(sentence(ME, "X and Y must have equally many rows, pair by pair", (len(a), len(b))))
    seen = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    if seen.sum() < 3:
        raise DataError(sentence(ME, "at least three complete pairs are needed", int(seen.sum())))
    return _scaled(a[seen]), _scaled(b[seen])


def _numbers(x: Any) -> Array:
    cells = np.asarray(x)
    if cells.dtype.kind in "OUSb" and cells.ndim == 1:
        try:
            found, code = np.unique(cells, return_inverse=True)
        except TypeError as error:
            raise DataError(sentence(ME, "labels must be of one kind", "texts and others")) from error
        return code.astype(np.float64)[:, None] * len(found)
    a = rows(x, None, ME)
    refuse_infinite(a, ME)
    return a


def _scaled(a: Array) -> Array:
    spread = a.std(axis=0)
    return np.asarray((a - a.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _terms(a: Array, b: Array, k: int) -> Array:
    from scipy.spatial import cKDTree

    n, both = len(a), np.hstack([a, b])
    tree = cKDTree(both)
    reach = tree.query(both, k=[k + 1], p=np.inf)[0][:, 0]
    tied = reach == 0
    strictly = np.maximum(reach - 1e-14 * np.abs(both).max(), 0.0)  # sums of coordinates round
    in_a, in_b = _near(a, strictly), _near(b, strictly)
    alike = tree.query_ball_point(both[tied], 0.0, p=np.inf, return_length=True) if tied.any() else np.empty(0)
    terms = digamma(k) + digamma(n) - digamma(in_a) - digamma(in_b)  # counts with the row itself are nx + 1
    if tied.any():
        terms = _with_repeats(terms, tied, alike, _near(a, reach), _near(b, reach), n, k)
    return np.asarray(terms)


def _with_repeats(terms: Array, tied: Mask, alike: Array, in_a: Array, in_b: Array, n: int, k: int) -> Array:
    """Gao's form for all rows: ψ(k′) + log n − log(nx + 1) − log(ny + 1), k′ the rows at distance 0 if many."""
    known = np.full(len(terms), digamma(k))
    known[tied] = digamma(alike - 1)
    return np.asarray(known + math.log(n) - np.log(in_a) - np.log(in_b))


def _near(a: Array, reach: Array) -> Array:
    """How many rows lie within reach of each, itself among them."""
    if a.shape[1] == 1:
        line = np.sort(a[:, 0])
        upto, before = (np.searchsorted(line, a[:, 0] + reach, "right"), np.searchsorted(line, a[:, 0] - reach, "left"))
        return (upto - before).astype(np.float64)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(a).query_ball_point(a, reach, p=np.inf, return_length=True))
