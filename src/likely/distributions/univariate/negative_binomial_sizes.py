"""Maximum-likelihood size (dispersion) parameters of negative binomial distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.numerics.root_finding import crossings
from likely.numerics.special import deviance, log_minus_digamma

LIMIT = 1e8  # times the mean: a size from which the distribution is a Poisson distribution to eight digits
TINY = 1e-8  # lower bound of the size


def limit_of(mean: Any) -> Array:
    """Upper bound of the size, where the distribution is Poisson to eight digits."""
    return np.asarray(LIMIT * np.maximum(mean, 1.0))


def fitted_sizes(cell: Index, x: Array, w: Array, cells: int) -> tuple[Array, Array]:
    """Maximum-likelihood sizes r and means m (cells,) for weighted counts x of each cell, in order.

    The ML mean is the mean of the counts whatever r is. The derivative of the profile likelihood in r changes sign once
    if the variance exceeds the mean, and stays positive otherwise: the optimum is then a Poisson distribution, and r is
    `limit_of(m)`. Where all counts are 0, r is 1.
    """
    total = np.bincount(cell, w, cells)
    known = np.where(total > 0, total, 1.0)
    mean = np.bincount(cell, w * x, cells) / known
    spread = np.bincount(cell, w * (x - mean[cell]) ** 2, cells) / known
    most = limit_of(mean)
    size = np.where(mean > 0, most, 1.0)
    open_ = np.flatnonzero((mean > 0) & (spread > mean))
    slope = _slopes(cell, x, w, mean, open_)
    inside = slope(most[open_], np.arange(len(open_))) < 0
    open_ = open_[inside]
    slope = _slopes(cell, x, w, mean, open_)
    least = slope(np.full(len(open_), TINY), np.arange(len(open_))) <= 0
    size[open_[least]] = TINY
    open_ = open_[~least]
    slope = _slopes(cell, x, w, mean, open_)
    low, high = np.full(len(open_), np.log(TINY)), np.log(most[open_])
    size[open_] = np.exp(crossings(lambda t, which: slope(np.exp(t), which), low, high))
    return size, mean


def _slopes(cell: Index, x: Array, w: Array, mean: Array, cells: Index) -> Any:
    """r² d/dr of the profile log-likelihood of some cells at p = r / (r + m), as a function of sizes and cells.

    Σ w [ψ(x + r) − ψ(r) − log(1 + m/r)], without cancellation: log(1 + x/r) − log(1 + m/r) is (x − m)/(r + m), which
    sums to 0, less a deviance of 1 from (r + x)/(r + m).
    """
    start, end = np.searchsorted(cell, cells), np.searchsorted(cell, cells, side="right")

    def slope(r: Array, which: Index) -> Array:
        if not len(which):
            return np.empty(0)
        many = (end - start)[which]
        first = np.concatenate([[0], np.cumsum(many)[:-1]])
        at = np.arange(many.sum()) - np.repeat(first - start[which], many)
        m, size = np.repeat(mean[cells[which]], many), np.repeat(r, many)
        t = (x[at] - m) / (size + m)
        each = np.repeat(log_minus_digamma(r), many) - log_minus_digamma(size + x[at]) - deviance(1.0, 1.0 + t, -t)
        return np.asarray(r * r * np.add.reduceat(w[at] * each, first))

    return slope
