"""Feature embeddings of rows of any distribution, for initialization by k-means: similar rows are near each other.

They only initialize EM: nothing here enters a likelihood.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from likely.cluster.kmeans.kmeans_plus_plus import standardized
from likely.core.arrays import Array
from likely.core.covariates import frames_of
from likely.core.ragged import Ragged
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.product import Product
from likely.distributions.stacks.stack import Stack
from likely.distributions.stacks.tied import Tied
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson
from likely.distributions.univariate.von_mises import VonMises
from likely.mixture.mixture import Mixture

WORDS = 4.0  # number of columns that a block of word counts is weighted as, next to other components
THIRDS = 3  # segments of a sequence that are averaged separately
WIDEST = 64  # dimensions of very wide counts: random projection approximately keeps distances


@singledispatch
def embedded(distribution: Any, x: Any, weight: Array) -> Array:
    """Points (n, e) for rows of a distribution: its columns with variance 1, missing values at the column mean.

    A sequence is embedded by its frames and their squares, averaged.
    """
    if isinstance(x, Ragged):
        x = frames_of(x)
        frames = standardized(x.values if x.values.ndim == 2 else x.values[:, None], x.weights(weight))
        return by_thirds(np.concatenate([frames, frames**2], axis=1), x, weight)
    return standardized(x, weight)


@embedded.register
def _(distribution: Poisson, x: Any, weight: Array) -> Array:
    """Square roots of counts: the variance-stabilizing transform of Poisson counts."""
    if issparse(x) and x.shape[1] > WIDEST:
        return _projected_roots(csr_array(x), weight)
    return standardized(np.sqrt(np.maximum(dense(x), 0.0)), weight)


@embedded.register
def _(distribution: NegativeBinomial, x: Any, weight: Array) -> Array:
    """As Poisson counts where rows are sparse: square roots, which shorten a long tail."""
    if not issparse(x):
        return standardized(x, weight)
    return _projected_roots(csr_array(x), weight) if x.shape[1] > WIDEST else standardized(np.sqrt(dense(x)), weight)


def _projected_roots(counts: Any, weight: Array) -> Array:
    """Square roots of sparse counts, each column with variance 1, by a random projection: nothing wide is dense."""
    roots = counts.astype(np.float64)
    roots.data = np.sqrt(np.maximum(roots.data, 0.0))
    share = weight / weight.sum()
    mean, square = share @ roots, share @ roots.multiply(roots)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    directions = np.random.default_rng(0).standard_normal((roots.shape[1], WIDEST)) / np.sqrt(WIDEST)
    directions *= np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)[:, None]
    return np.asarray(roots @ directions)


@embedded.register
def _(distribution: VonMises, x: Any, weight: Array) -> Array:
    """Points on the unit circle: angles 2π apart coincide; a missing value lies at the center."""
    angle = dense(x)
    sides = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    return np.where(np.isnan(sides), 0.0, sides)


@embedded.register
def _(distribution: Multinomial, x: Any, weight: Array) -> Array:
    """Square roots of proportions: their Euclidean distance is the Hellinger distance."""
    counts = csr_array(x) if issparse(x) else csr_array(np.nan_to_num(np.asarray(x, dtype=np.float64)))
    total = np.asarray(counts.sum(axis=1)).ravel()
    roots = counts.astype(np.float64)
    roots.data = np.sqrt(
        np.maximum(roots.data, 0.0) / np.repeat(np.where(total > 0, total, 1.0), np.diff(roots.indptr))
    )
    if roots.shape[1] <= WIDEST:
        return np.asarray(roots.toarray())
    directions = np.random.default_rng(0).standard_normal((roots.shape[1], WIDEST)) / np.sqrt(WIDEST)
    return np.asarray(roots @ directions)


@embedded.register
def _(distribution: Bernoulli, x: Any, weight: Array) -> Array:
    return standardized(dense(x), weight)


def by_thirds(frames: Array, x: Any, weight: Array) -> Array:
    """Sequences by the means of their frames (T, e) at the beginning, in the middle and at the end, and by length."""
    whose = np.repeat(np.arange(len(x)), x.lengths)
    place = np.arange(len(frames)) - np.repeat(x.offsets[:-1], x.lengths)
    cell = whose * THIRDS + np.minimum(place * THIRDS // np.maximum(x.lengths[whose], 1), THIRDS - 1)
    sums = np.zeros((len(x) * THIRDS, frames.shape[1]))
    np.add.at(sums, cell, frames)
    means = sums / np.maximum(np.bincount(cell, minlength=len(sums)), 1)[:, None]
    return standardized(np.column_stack([means.reshape(len(x), -1), np.log1p(x.lengths)]), weight)


@embedded.register
def _(distribution: Categorical, x: Any, weight: Array) -> Array:
    """One-hot coding: two different levels are at distance 1; unknown levels and missing values lie at the center."""
    codes = distribution.encode(x)
    points = np.full((len(codes), distribution.size), 1.0 / distribution.size)
    known = codes >= 0
    points[known] = np.eye(distribution.size)[codes[known]]
    return points / np.sqrt(2.0)


@embedded.register
def _(distribution: Product, x: Any, weight: Array) -> Array:
    """Concatenated components: numeric columns have variance 1, levels are at distance 1, word counts count as WORDS.

    A component is not scaled by its own variance: where nearly all rows have one level, the others would lie far out.
    """
    rows = distribution.as_columns(x)
    return np.concatenate(
        [
            _scaled_word_counts(part, embedded(part, rows[name], weight), weight)
            for name, part in distribution.components
        ],
        axis=1,
    )


def _scaled_word_counts(distribution: Any, points: Array, weight: Array) -> Array:
    if not isinstance(distribution, Multinomial):
        return points
    return points * np.sqrt(WORDS / max(_spread(points, weight), 1e-300))


@embedded.register
def _(distribution: Tied, x: Any, weight: Array) -> Array:
    return embedded(distribution.components, x, weight)


@embedded.register
def _(distribution: Stack, x: Any, weight: Array) -> Array:
    return embedded(distribution.components[0], x, weight)


@embedded.register
def _(distribution: Mixture, x: Any, weight: Array) -> Array:
    return embedded(distribution.components, x, weight)


def dense(x: Any) -> Array:
    """Rows as a dense array of numbers."""
    return np.asarray(x.toarray() if issparse(x) else x, dtype=np.float64)


def _spread(points: Array, weight: Array) -> float:
    mean = weight @ points / weight.sum()
    return float(weight @ ((points - mean) ** 2).sum(axis=1) / weight.sum())
