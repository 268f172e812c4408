"""Eigenvectors that do not depend on rounding: a fixed basis of each eigenspace, and fixed signs."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from likely.core.arrays import Array

TIED = 1e-8  # relative gap up to which two eigenvalues count as one: their vectors would hold half of the digits
MOST = 64  # dimensions of a null space up to which a basis of it is looked for
ALIKE = 1.0 - 1e-6  # share of the largest: of sizes that agree so far the first decides


def settled(values: Array, vectors: Array, noise: float = 1e-13, frame: Array | None = None) -> Array:
    """Vectors as columns (d, q) for values (q,) in order: those of one value turned to a basis that is always the same.

    Values are one where they agree up to a relative 1e-8, or up to `noise` of the largest. The basis depends on the
    space alone: its first vector is the projection of the coordinate axis that is nearest to the space (the first of
    those that are equally near; less than 0.1% of the length may count as equal), the next is that of the rest. With a
    `frame` (p, d) these are the p coordinates frame @ vector. Each vector gets the sign at which its entry of largest
    size is positive.

    >>> turned = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, -1.0]])
    >>> settled(np.array([2.0, 2.0, 1.0]), turned).round(6) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    size = np.abs(values)
    gap = np.abs(np.diff(values))
    apart = np.flatnonzero(gap > np.maximum(TIED * np.minimum(size[1:], size[:-1]), noise * size.max(initial=0.0)))
    if len(apart) + 1 < len(values):
        least = noise * size.max()
        parts = zip(np.split(size, apart + 1), np.split(vectors, apart + 1, axis=1), strict=True)
        vectors = np.concatenate([v if len(s) > MOST and s[0] <= least else _basis(v, frame) for s, v in parts], axis=1)
    return upright(vectors)


def upright(vectors: Array) -> Array:
    """Columns with the sign at which their entry of largest size is positive, the first of those that agree."""
    size = np.abs(vectors)
    first = (size >= size.max(axis=0, initial=0.0) * ALIKE).argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.ascontiguousarray(vectors * np.where(signs == 0, 1.0, signs))


def _basis(space: Array, frame: Array | None) -> Array:
    """The columns (d, m) of a space, turned: QR of the projected coordinate axes, the longest first.

    Of axes that are equally long up to rounding, the first must be taken. So each axis counts as a little shorter than
    the one before, by more than the error of the lengths that LAPACK updates (1e-8).
    """
    if space.shape[1] < 2:
        return space
    axes = space if frame is None else frame @ space
    shorter = 1.0 - min(1.0 - ALIKE, 1e-3 / len(axes)) * np.arange(len(axes))
    return np.asarray(space @ qr(axes.T * shorter, mode="economic", pivoting=True, check_finite=False)[0])
