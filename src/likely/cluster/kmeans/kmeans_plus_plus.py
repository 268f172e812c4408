"""k-means++ initialization: seeds drawn with probability proportional to the squared distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, refuse_infinite, rows, weights
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, sentence
from likely.numerics.standardization import medians

NEAR = 1e-6  # squared distances below this share of |x|² + |c|² are recomputed from differences


def kmeans_plus_plus(x: Any, weight: Any, k: int, rng: np.random.Generator) -> Index:
    """Greedy k-means++: indices of k rows (k,) (Arthur and Vassilvitskii 2007); fewer if fewer rows are distinct.

    The first seed is drawn by weight. For each further one 2 + log k candidates are drawn with probability
    w · min_c |x − c|², and the one with the smallest remaining sum is taken. Rows x (n, d) are complete numbers;
    on the rows of a `Sketch`, weights and duplicates give bitwise equal seeds.

    >>> x = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> sorted((kmeans_plus_plus(x, None, 2, np.random.default_rng(0)) // 2).tolist())
    [0, 1]
    """
    u, w = _complete(x, k), weights(weight, len(x), "k-means++")
    u, w = _comparable(u), np.ones(len(u)) if w is None else w
    if not w.sum() > 0:
        raise DataError(sentence("k-means++", "at least one row with weight is needed", f"{len(u)} rows"))
    with one_blas_thread():
        return np.array(_seeds(u, w, k, rng), dtype=np.intp)


def _seeds(u: Array, w: Array, k: int, rng: np.random.Generator) -> list[int]:
    trials = 2 + int(np.log(k))
    chosen = [int(_drawn(w, rng.random(1))[0])]
    nearest = squared_distances(u, u[chosen])[0]
    while len(chosen) < k:
        mass = w * nearest
        if not mass.any():  # every row is a seed, or a duplicate of one
            break
        best, nearest = _best(u, w, nearest, _drawn(mass, rng.random(trials)))
        chosen.append(best)
    return chosen


def at_random(weight: Any, k: int, rng: np.random.Generator) -> Index:
    """Indices of k different rows, drawn sequentially with probabilities proportional to their weights (n,).

    >>> sorted(at_random(np.array([1.0, 0.0, 5.0]), 2, np.random.default_rng(0)).tolist())
    [0, 2]
    """
    w = np.asarray(weight, dtype=np.float64)
    with np.errstate(divide="ignore"):
        arrival = rng.exponential(size=len(w)) / w  # exponential clocks: draws without replacement
    order = np.argsort(arrival, kind="stable")[:k]
    return order[w[order] > 0]


def standardized(x: Any, weight: Any = None) -> Array:
    """Columns with mean 0 and variance 1 over observed entries; missing values and constant columns become 0 (n, d).

    >>> standardized(np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    x = rows(x, None, "standardized")
    refuse_infinite(x, "standardized")
    w = weights(weight, len(x), "standardized")
    w = np.ones(len(x)) if w is None else w
    seen = ~np.isnan(x)
    if not len(x):
        return np.array(x)
    u = np.where(seen, x, 0.0) / power_of_two(np.where(seen, abs(x), 0.0).max(axis=0))
    u = _centered(_centered(u, seen, w), seen, w)  # twice: the second mean removes the rounding error of the first
    low, high = _range(x, seen & (w > 0)[:, None])
    u[:, ~(low < high)] = 0.0
    u /= power_of_two(abs(u).max(axis=0))  # squares of what is left of a large offset stay in range
    count = np.maximum(w @ seen, np.finfo(float).tiny)
    spread = np.sqrt(w @ (u * u) / count)
    return np.asarray(u / np.where(spread > 0, spread, 1.0))


def filled(x: Any, weight: Any = None) -> Array:
    """Rows with missing values replaced by column means (n, d); a column without observed values becomes 0.

    >>> filled(np.array([[1.0], [np.nan], [3.0]])).tolist()
    [[1.0], [2.0], [3.0]]
    """
    x = rows(x, None, "filled")
    refuse_infinite(x, "filled")
    seen = ~np.isnan(x)
    if seen.all():
        return x
    w = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=np.float64)
    unit = power_of_two(np.where(seen, abs(x), 0.0).max(axis=0))
    mean = w @ np.where(seen, x / unit, 0.0) / np.maximum(w @ seen, np.finfo(float).tiny)
    return np.where(seen, x, mean * unit)


def _complete(x: Any, k: int) -> Array:
    if k < 1:
        raise DomainError(sentence("k-means++", "k must be at least 1", k))
    u = rows(x, None, "k-means++")
    if not np.isfinite(u).all():
        expected = "rows must be complete and finite"
        raise DataError(
            sentence("k-means++", expected, "NaN or infinity", "impute missing values first: standardized(x)")
        )
    return u


def _comparable(x: Array) -> Array:
    """The rows shifted and scaled as a whole, so that squares are in range and distances keep their digits."""
    if not x.size:
        return x
    x = x / power_of_two(abs(x).max())
    x = x - medians(x)
    return np.asarray(x / power_of_two(abs(x).max()))


def power_of_two(largest: Any) -> Any:
    """A power of two near each size, 1 for 0: division by it is exact."""
    exponent = np.frexp(largest)[1]
    return np.where(np.asarray(largest) > 0, np.ldexp(1.0, np.clip(exponent, -1000, 1000)), 1.0)


def _centered(u: Array, seen: Any, w: Array) -> Array:
    mean = (w @ u) / np.maximum(w @ seen, np.finfo(float).tiny)
    return np.where(seen, u - mean, 0.0)


def _range(x: Array, seen: Any) -> tuple[Array, Array]:
    return np.where(seen, x, np.inf).min(axis=0), np.where(seen, x, -np.inf).max(axis=0)


def _drawn(mass: Array, u: Array) -> Index:
    """Rows drawn with probabilities proportional to `mass` by numbers u in [0, 1)."""
    heap = np.cumsum(mass / mass.max())
    at = np.searchsorted(heap, u * heap[-1], side="right")
    return np.minimum(at, np.flatnonzero(mass)[-1])


def _best(u: Array, w: Array, nearest: Array, candidates: Index) -> tuple[int, Array]:
    """The candidate with the smallest remaining sum of distances, and those distances."""
    left = np.minimum(squared_distances(u, u[candidates]), nearest)
    best = int(np.argmin(left @ w))
    return int(candidates[best]), left[best]


def squared_distances(u: Array, centers: Array) -> Array:
    """|u − c|² (k, n) by one product; near pairs, where it cancels, from differences: duplicates have distance 0."""
    size = np.einsum("nd,nd->n", u, u) + np.einsum("kd,kd->k", centers, centers)[:, None]
    out = size - 2.0 * (centers @ u.T)
    which, at = np.nonzero(out <= NEAR * size)
    difference = u[at] - centers[which]
    out[which, at] = np.einsum("nd,nd->n", difference, difference)
    return np.asarray(out)
