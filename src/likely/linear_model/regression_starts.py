"""Initial partitions for mixtures of regressions and Markov-switching regressions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from likely.cluster.kmeans.kmeans_plus_plus import standardized
from likely.core.arrays import Array, Index
from likely.core.sketch import Sketch
from likely.mixture.initialization import grouped

LINES = 6  # partitions by residuals that compete in one initialization
ROUNDS = 6  # of reassignment to the nearest regression: an initialization need not converge
RIDGE = 1e-6  # of the scale of each column: a few rows need not determine all coefficients
SHARE = 1e-6  # of all rows, in weight: pull of few rows toward the regression of all


def by_residuals(phi: Array, y: Array, weight: Array, k: int, rng: Generator) -> Index:
    """Group of each row (n,): the nearest of k regressions, fitted in turn to the rows nearest to them.

    The first ones go through a few random rows each, so that crossing lines are found, which no distance between rows
    separates   (Späth 1979, clusterwise linear regression).
    """
    n, M = phi.shape
    share = weight / weight.sum()
    each = min(M + 1, n)
    gram = np.stack([_gram(phi, y, share * _indicator(n, rng.choice(n, each, False, share))) for _ in range(k)])
    group = np.zeros(n, dtype=np.intp)
    for _ in range(ROUNDS):
        new = _squared_residuals(_coefficients(gram, M), phi, y).argmin(axis=0)
        if (new == group).all():
            break
        group = new
        gram = np.stack([_gram(phi, y, share * (group == g)) for g in range(k)])
    return group


def _indicator(n: int, at: Index) -> Array:
    out = np.zeros(n)
    out[at] = 1.0
    return out


def _gram(phi: Array, y: Array, weight: Array) -> Array:
    z = np.concatenate([phi, y], axis=1)
    return np.asarray((z * weight[:, None]).T @ z)


def _coefficients(gram: Array, M: int) -> Array:
    """Coefficients (k, M, m), each slightly shrunk toward the regression of all rows; empty groups have that one."""
    total = gram.sum(axis=0)
    ridge = np.diag(RIDGE * np.where(np.diag(total) > 0, np.diag(total), 1.0))[:M, :M]
    pooled = np.linalg.solve(total[:M, :M] + ridge, total[:M, M:])
    pull = ridge + SHARE * total[:M, :M]
    return np.asarray(np.linalg.solve(gram[:, :M, :M] + pull, gram[:, :M, M:] + pull @ pooled))


def _squared_residuals(coefficients: Array, phi: Array, y: Array) -> Array:
    return np.asarray(((y - phi @ coefficients) ** 2).sum(axis=2))


def partitions(
    phi: Array, y: Array, sketch: Sketch, k: int, rng: Generator, how: str = "auto", lines: int = LINES
) -> Iterator[Index]:
    """Groups of the rows of a sketch (n,): candidates for one initialization, as `how` says.

    "residuals": by residuals, several times; "k-means++": clusters of rows (φ, y); "random": at random; "auto": all.
    """
    y = standardized(y, sketch.weight)
    phi = _unit(phi, sketch.weight)
    if how in ("residuals", "auto"):
        for _ in range(lines):
            yield by_residuals(phi, y, sketch.weight, k, rng)
    if how in ("k-means++", "auto"):
        joint = sketch.replace(rows=np.concatenate([phi, y], axis=1))
        yield grouped(None, joint, k, rng)
    if how in ("random", "auto"):
        yield rng.integers(0, k, len(phi))


def _unit(phi: Array, weight: Array) -> Array:
    """Basis functions with mean square 1."""
    most = abs(phi).max(axis=0, initial=0.0)
    phi = phi / np.where(most > 0, most, 1.0)
    norms = np.sqrt(weight @ phi**2 / weight.sum())
    return phi / np.where(norms > 0, norms, 1.0)
