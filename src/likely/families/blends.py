"""When data are few: covariances between a class's own and a steadier one, the weight by leaving one out.

Each class's covariance S is moved towards a target T (the pooled one, or its own diagonal) by a weight λ
(Ney 3.5): (1 − λ) S + λ T. The weight is the one under which rows would best be explained by the others. That needs
no row: leaving x out takes a rank-one term from both, and its distance q to the mean enters by the average over
the class, tr(A⁻¹ S)/n, which the statistics hold (Hoffbeck and Landgrebe, 1996), and by how leverages of Gaussian rows
spread about it. So batch, stream and cluster agree.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from likely.core.arrays import Array
from likely.families.moments import Moments
from likely.maths import spd

GRID = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 45)])  # weights that are tried


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

    `kept` (K,): how much of a row's own rank-one term the target holds, relative to S/n: n/N for the pooled
    covariance, 1/C for a mean over classes; −1 says that the target is the class's own diagonal.
    """
    out = np.ones(len(stats.weight))
    for k, n in enumerate(stats.weight):
        if n > 1:
            out[k] = GRID[int(np.argmax(_left_out(stats.scatter[k], float(n), target[k], float(kept[k]))))]
    return out


def _left_out(scatter: Array, n: float, target: Array, kept: float) -> Array:
    """Mean log-likelihood of a left-out row, up to a constant, for each weight of the grid.

    With A = (1 − λ) S/(n − 1) + λ T the covariance without x is A − b δδᵀ, b = ((1 − λ) + λ kept) n/(n − 1)², so by
    Sherman and Morrison log det and distance follow from q = δᵀ A⁻¹ δ alone. A diagonal loses a term in each of
    its d columns, each about q/d of the distance.
    """
    root = spd.cholesky(np.ascontiguousarray(target[None]))
    if root is None:
        return np.where(GRID == 0, 0.0, -np.inf)
    w = spd.inverse_factor(root)[0]
    spectrum = np.maximum(np.linalg.eigvalsh(spd.symmetric(w @ scatter @ w.T)), 0.0)  # of S in units of T
    mixed = (1 - GRID[:, None]) * spectrum / (n - 1) + GRID[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = spectrum / mixed / n
        q, freedom = parts.sum(axis=1), parts.sum(axis=1) ** 2 / (parts**2).sum(axis=1)
        grown, unit, d = (n / (n - 1)) ** 2, n / (n - 1) ** 2, len(spectrum)
        if kept >= 0:
            share = (1 - GRID) + GRID * kept
            logs = _log_rest(share * unit * q, freedom, n)
        else:
            share = (1 - GRID) + GRID / d
            logs = _log_rest((1 - GRID) * unit * q, freedom, n)
            logs = logs + d * _log_rest(GRID * unit * q / d, np.ones_like(q), n)
        value = -0.5 * (np.log(mixed).sum(axis=1) + logs + grown * _over_rest(q, share * unit, freedom, n))
    return np.where(np.isfinite(value), value, -np.inf)


def _spread(u: Array, freedom: Array, n: float) -> Array:
    """Leverages (grid, m) of rows whose mean is u: for Gaussian rows they are beta variates, taken at even quantiles.

    As many quantiles as there are rows, up to twelve: the largest of few rows is not far out.
    """
    a = np.maximum(0.5 * freedom, 1e-6)
    inside = np.clip(u, 1e-300, 1 - 1e-12)
    m = int(min(max(n, 2.0), 12.0))
    at = betaincinv(a[:, None], (a * (1 - inside) / inside)[:, None], (np.arange(m) + 0.5) / m)
    return np.minimum(at * (u / np.maximum(at.mean(axis=1), 1e-300))[:, None], 1.0)  # with the mean that is known


def _log_rest(u: Array, freedom: Array, n: float) -> Array:
    """Mean of log(1 − u) over the rows."""
    return np.where(u < 1, np.log1p(-_spread(u, freedom, n)).mean(axis=1), -np.inf)


def _over_rest(q: Array, b: Array, freedom: Array, n: float) -> Array:
    """Mean of q / (1 − b q) over the rows."""
    u = _spread(b * q, freedom, n)
    return np.where(b * q < 1, np.where(b > 0, (u / (1 - u)).mean(axis=1) / np.where(b > 0, b, 1.0), q), np.inf)
