"""Initialization of EM: rows of a sketch are clustered, and each component is fitted to one cluster."""

from __future__ import annotations

from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from likely.cluster.kmeans.kmeans_plus_plus import at_random, kmeans_plus_plus, squared_distances
from likely.core.arrays import Array, Index, n_rows
from likely.core.blocks import Blocks
from likely.core.em_loop import iterate, resolve_prior
from likely.core.sketch import Sketch
from likely.core.warnings import warnings_discarded
from likely.mixture.embedding import embedded
from likely.mixture.mixture import Mixture, MixtureStats

Initialization = Literal["k-means++", "random", "split"]
EM_STEPS = 5  # rounds of EM after each split
LLOYD = 12  # k-means iterations on the sketch: an initialization need not converge


def grouped(distribution: Any, sketch: Sketch, k: int, rng: Generator, how: str = "k-means++") -> Index:
    """Cluster index 0 … k − 1 of each row of a sketch (m,); fewer clusters where fewer rows are distinct.

    `how`: "k-means++" (k-means++ seeding, then some k-means iterations), "random" (seeds drawn by weight), or "split"
    (the cluster of largest scatter is split in two, repeatedly: the LBG algorithm).
    """
    points = embedded(distribution, sketch.rows, sketch.weight)
    if how == "split":
        return _by_splitting(points, sketch.weight, k)
    seeds = (kmeans_plus_plus if how == "k-means++" else _random_seeds)(points, sketch.weight, k, rng)
    return _nearest(points, sketch.weight, points[seeds], LLOYD if how == "k-means++" else 0)


def _random_seeds(points: Array, weight: Array, k: int, rng: Generator) -> Index:
    return at_random(weight, k, rng)


def _nearest(points: Array, weight: Array, centers: Array, rounds: int) -> Index:
    """The nearest center of each point after some k-means iterations; an empty cluster keeps its center."""
    assignment = squared_distances(points, centers).argmin(axis=0)
    for _ in range(rounds):
        total = np.bincount(assignment, weight, len(centers))
        sums = np.zeros_like(centers)
        np.add.at(sums, assignment, points * weight[:, None])
        centers = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], centers)
        new = squared_distances(points, centers).argmin(axis=0)
        if (new == assignment).all():
            break
        assignment = new
    return assignment


def _by_splitting(points: Array, weight: Array, k: int) -> Index:
    assignment = np.zeros(len(points), dtype=np.intp)
    for new in range(1, k):
        scatters = [_scatter(points[assignment == g], weight[assignment == g]) for g in range(new)]
        g = int(np.argmax(scatters))
        if not scatters[g] > 0:
            break  # no two distinct points are left in any group
        members = np.flatnonzero(assignment == g)
        assignment[members[halves(points[members], weight[members]) == 1]] = new
        centers = np.stack(
            [weight[assignment == j] @ points[assignment == j] / weight[assignment == j].sum() for j in range(new + 1)]
        )
        assignment = _nearest(points, weight, centers, LLOYD)
    return assignment


def halves(points: Array, weight: Array) -> Index:
    """Split points in two (0 or 1) across their first principal direction, then refine by 2-means."""
    mean = weight @ points / weight.sum()
    z = (points - mean) * np.sqrt(weight)[:, None]
    direction = np.linalg.svd(z, full_matrices=False)[2][0]
    side = ((points - mean) @ direction > 0).astype(np.intp)
    if side.min() == side.max():
        side[int(np.argmax(((points - mean) ** 2).sum(axis=1)))] ^= 1
    centers = np.stack([weight[side == j] @ points[side == j] / weight[side == j].sum() for j in (0, 1)])
    return _nearest(points, weight, centers, LLOYD)


def _scatter(points: Array, weight: Array) -> float:
    if not len(points):
        return 0.0
    mean = weight @ points / weight.sum()
    return float(weight @ ((points - mean) ** 2).sum(axis=1))


# ------------------------------------------------------------------ from groups


def from_responsibilities(blank: Mixture, x: Any, weight: Any, resp: Array, prior: Any) -> Mixture:
    """A mixture fitted to responsibilities (n, K), one M-step; warnings about this initial model are suppressed."""
    w = np.ones(n_rows(x)) if weight is None else np.asarray(weight, dtype=np.float64)
    each = resp * w[:, None]
    with warnings_discarded():
        components = blank.components.collect(x, each)
        stats = MixtureStats.trusted(counts=each.sum(axis=0), components=components, entropy=np.zeros(()), seen=False)
        return blank.refit(stats, resolve_prior(blank, stats, prior))


def grown(blank: Mixture, sketch: Sketch, prior: Any) -> Mixture:
    """Incremental splitting: the component of largest scatter is split, followed by some EM iterations, up to K."""
    points, rows, weight = embedded(blank.components, sketch.rows, sketch.weight), sketch.rows, sketch.weight
    resp = np.ones((len(weight), 1))
    for k in range(1, blank.size + 1):
        selected = blank.components.take(np.arange(k))
        model = from_responsibilities(
            Mixture.trusted(weights=np.full(k, 1.0 / k), components=selected), rows, weight, resp, prior
        )
        with warnings_discarded():
            for step in islice(iterate(model, Blocks.of(rows, weight), prior=prior), EM_STEPS + 1):
                model = step.model
        if k < blank.size:
            resp = split_responsibilities(model.posterior(rows), points, weight)
    return model


def split_responsibilities(resp: Array, points: Array, weight: Array) -> Array:
    """Responsibilities (m, K + 1) after splitting the component of largest scatter; the new one may be empty."""
    assignment = resp.argmax(axis=1)
    scatters = [_scatter(points[assignment == g], weight[assignment == g]) for g in range(resp.shape[1])]
    g = int(np.argmax(scatters))
    new = np.zeros((len(resp), 1))
    out = np.concatenate([resp, new], axis=1)
    members = np.flatnonzero(assignment == g)
    if scatters[g] > 0:
        moved = members[halves(points[members], weight[members]) == 1]
        out[moved, -1], out[moved, g] = out[moved, g], 0.0
    return out


def weights_from_counts(blank: Mixture, counts: Array) -> Array:
    """Mixture weights proportional to counts, in the mixture's shape; uniform for a mixture without any count."""
    counts = counts.reshape(blank.weights.shape)
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / blank.size)
