"""When data are few: covariances between a class's own and a steadier one, the weight by leaving one out.

Each class's covariance S is moved towards a target T (the pooled one, or its own diagonal) by a weight λ
(Ney 3.5): (1 − λ) S + λ T. The weight is the one under which rows would best be explained by the others. That needs
no row: leaving x out takes a rank-one term from both, and its distance q to the mean enters by the average over
the class, tr(A⁻¹ S)/n, which the statistics hold (Hoffbeck and Landgrebe, 1996). So batch, stream and cluster agree.
"""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.families.moments import Moments
from likely.maths import spd

GRID = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 81)])  # weights that are tried


def pooled_covariance(covariances: Array, weight: Array, pooling: str) -> Array:
    """One covariance (d, d) of K (K, d, d): by observation (weighted by rows), or by class (each alike)."""
    shares = weight if pooling == "observation" else (weight > 0).astype(np.float64)
    return np.asarray(np.tensordot(shares / shares.sum(), covariances, axes=1))


def blended(covariances: Array, target: Array, share: Array) -> Array:
    """(1 − λ_k) S_k + λ_k T_k for each class."""
    s = share[:, None, None]
    return spd.symmetric((1 - s) * covariances + s * target)


def shares_by_leaving_one_out(stats: Moments, target: Array, kept: Array) -> Array:
    """The weight λ (K,) of a target (K, d, d) for which left-out rows are most likely, class by class.

    `kept` (K,): how much of a row's own rank-one term the target holds, relative to S/n: 0 for a target that does
    not know the row, n/N for the pooled covariance, 1/C for a mean over classes.
    """
    out = np.ones(len(stats.weight))
    for k, n in enumerate(stats.weight):
        if n > 1:
            out[k] = GRID[int(np.argmax(_left_out(stats.scatter[k], float(n), target[k], float(kept[k]))))]
    return out


def _left_out(scatter: Array, n: float, target: Array, kept: float) -> Array:
    """Mean log-likelihood of a left-out row, up to a constant, for each weight of the grid.

    With A = (1 − λ) S/(n − 1) + λ T the covariance without x is A − b δδᵀ, b = ((1 − λ) + λ kept) n/(n − 1)², so by
    Sherman and Morrison log det and distance follow from q = δᵀ A⁻¹ δ alone.
    """
    root = spd.cholesky(np.ascontiguousarray(target[None]))
    if root is None:
        return np.where(GRID == 0, 0.0, -np.inf)
    w = spd.inverse_factor(root)[0]
    spectrum = np.maximum(np.linalg.eigvalsh(spd.symmetric(w @ scatter @ w.T)), 0.0)  # of S in units of T
    mixed = (1 - GRID[:, None]) * spectrum / (n - 1) + GRID[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        q = (spectrum / mixed).sum(axis=1) / n
        rest = 1 - ((1 - GRID) + GRID * kept) * n / (n - 1) ** 2 * q
        value = -0.5 * (np.log(mixed).sum(axis=1) + np.log(rest) + (n / (n - 1)) ** 2 * q / rest)
    return np.where((rest > 0) & np.isfinite(value), value, -np.inf)
