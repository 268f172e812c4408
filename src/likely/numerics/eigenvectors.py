"""Reproducible eigenvectors: a unique basis of each eigenspace, and unique signs."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from likely.core.arrays import Array

TIED = 1e-8  # relative gap up to which two eigenvalues count as equal: their vectors would have half of the digits
MOST = 64  # dimensions of a null space up to which a unique basis is computed
ALIKE = 1.0 - 1e-6  # entries above this share of the largest count as equally large: the first decides the sign


def canonical_basis(values: Array, vectors: Array, noise: float = 1e-13, frame: Array | None = None) -> Array:
    """Canonical eigenvectors as columns (d, q) for sorted eigenvalues (q,): a unique basis per repeated eigenvalue.

    Eigenvalues count as equal up to a relative 1e-8, or up to `noise` of the largest. The basis depends on the
    eigenspace alone: its first vector is the projection of the coordinate axis nearest to the space (the first of those
    that are equally near; less than 0.1% of the length may count as equal), the next is that of the orthogonal
    complement, by QR with column pivoting. With a `frame` (p, d) the coordinates are the p entries of frame @ vector.
    The entry of largest absolute value of each vector is positive.

    >>> turned = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, -1.0]])
    >>> canonical_basis(np.array([2.0, 2.0, 1.0]), turned).round(6) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    size = np.abs(values)
    gap = np.abs(np.diff(values))
    breaks = np.flatnonzero(gap > np.maximum(TIED * np.minimum(size[1:], size[:-1]), noise * size.max(initial=0.0)))
    if len(breaks) + 1 < len(values):
        least = noise * size.max()
        groups = zip(np.split(size, breaks + 1), np.split(vectors, breaks + 1, axis=1), strict=True)
        vectors = np.concatenate(
            [v if len(s) > MOST and s[0] <= least else _basis(v, frame) for s, v in groups], axis=1
        )
    return with_canonical_signs(vectors)


def with_canonical_signs(vectors: Array) -> Array:
    """Columns with the sign that makes their entry of largest absolute value positive."""
    size = np.abs(vectors)
    first = (size >= size.max(axis=0, initial=0.0) * ALIKE).argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.ascontiguousarray(vectors * np.where(signs == 0, 1.0, signs))


def _basis(space: Array, frame: Array | None) -> Array:
    """A canonical basis of the column space of (d, m): QR with column pivoting of the projected coordinate axes.

    Of projections equally long up to rounding, the first must be the pivot. So each axis counts as a little shorter
    than the one before, by more than the error of the norms that LAPACK updates (1e-8).
    """
    if space.shape[1] < 2:
        return space
    axes = space if frame is None else frame @ space
    shrinkage = 1.0 - min(1.0 - ALIKE, 1e-3 / len(axes)) * np.arange(len(axes))
    return np.asarray(space @ qr(axes.T * shrinkage, mode="economic", pivoting=True, check_finite=False)[0])
