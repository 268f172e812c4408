"""Paired evaluation of a stack: one sample from each member, and the log-density of row k under member k.

`log_prob` of a stack evaluates every row under every member; particle filters need each member with its own row, or
all members with one row. For Gaussian and t distributions both are a few vectorized passes over the stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, refuse_infinite, rows
from likely.core.errors import DataError, ShapeError, sentence
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.student_t.student_t import StudentT
from likely.numerics import small_matrices, spd
from likely.numerics.special import LOG_2PI, gamma_excess

BATCH = 64  # members of other distributions at a time: 64 × 64 densities of which the diagonal is kept


def draw_each(distribution: Any, rng: Generator) -> Any:
    """One random sample from each member: (K, d), or (K,) for a distribution of scalars.

    >>> draw_each(Gaussian([[0.0], [100.0]], 1.0), np.random.default_rng(0)).round(1).tolist()
    [[0.1], [99.9]]
    """
    if isinstance(distribution, Gaussian) and distribution.members:
        return colored(distribution, rng.standard_normal(distribution.mean.shape))
    if isinstance(distribution, Categorical) and distribution.members:
        sums = np.cumsum(distribution.probs, axis=1)
        codes = (rng.random((len(sums), 1)) * sums[:, -1:] >= sums).sum(axis=1)
        return distribution.values[np.minimum(codes, sums.shape[1] - 1)]
    return distribution.sample(1, rng)[0]


def log_prob_each(distribution: Any, x: Any) -> Array:
    """log p_k(x_k) of rows x (K, d), one per member; or of one row (1, d) under every member: (K,).

    >>> log_prob_each(Gaussian([[0.0], [1.0]], 1.0), np.array([[0.0], [1.0]])).round(4).tolist()
    [-0.9189, -0.9189]
    """
    if hasattr(distribution, "log_prob_each"):
        return np.asarray(distribution.log_prob_each(x), dtype=np.float64)
    quick = _VECTORIZED.get(type(distribution))
    if quick is not None and distribution.members:
        z = _complete(distribution, x)
        if z is not None:
            with np.errstate(all="ignore"):
                found = quick(distribution, z)
            if found is not None:
                return found
    return _slow_log_prob(distribution, x)


def cdf_each(distribution: Any, y: Any) -> Array:
    """P_k(target ≤ y_k) of numbers y (K,), one per member of a stack of univariate densities: (K,).

    >>> cdf_each(Gaussian([[0.0], [1.0]], 1.0), np.array([0.0, 1.0]))
    array([0.5, 0.5])
    """
    y = np.asarray(y, dtype=np.float64).ravel()
    if hasattr(distribution, "cdf_each"):
        return np.asarray(distribution.cdf_each(y), dtype=np.float64)
    if hasattr(distribution, "take"):
        parts = (np.arange(a, min(a + BATCH, len(y))) for a in range(0, len(y), BATCH))
        each = [np.diagonal(np.asarray(distribution.take(index).cdf(y[index]))) for index in parts]
        return np.concatenate(each) if each else np.empty(0)
    return np.array([np.ravel(distribution.member(k).cdf(y[k : k + 1]))[0] for k in range(len(y))])


def _complete(distribution: Any, x: Any) -> Array | None:
    """Complete rows of numbers; None for rows with missing values, which `log_prob` handles."""
    z = rows(x, distribution.dim, type(distribution).__name__)
    if len(z) not in (1, distribution.members):
        _refuse_rows(distribution, len(z))
    total = z.sum()
    if np.isfinite(total):
        return z
    refuse_infinite(z, type(distribution).__name__)
    return None if np.isnan(total) else z


def _slow_log_prob(distribution: Any, x: Any) -> Array:
    """`log_prob_each` by `log_prob`: the general case, and the reference implementation."""
    members = getattr(distribution, "members", None)
    if members is None or len(x) == 1:
        out = np.asarray(distribution.log_prob(x), dtype=np.float64)
        return out[0] if out.ndim == 2 and len(x) == 1 else out
    if len(x) != members:
        _refuse_rows(distribution, len(x))
    return np.concatenate([_diagonal(distribution, x, a) for a in range(0, len(x), BATCH)])


def _refuse_rows(distribution: Any, n: int) -> None:
    raise ShapeError(sentence(type(distribution).__name__, f"one row per member ({distribution.members}) is needed", n))


def _diagonal(distribution: Any, x: Any, a: int) -> Array:
    index = np.arange(a, min(a + BATCH, len(x)))
    if not hasattr(distribution, "member"):  # a third-party distribution that has log_prob only
        return np.diagonal(distribution.log_prob(x))[index]
    if hasattr(distribution, "take"):
        return np.diagonal(distribution.take(index).log_prob(x[index])).copy()
    return np.array([distribution.member(int(k)).log_prob(x[k : k + 1])[0] for k in index])


# ------------------------------------------------------------- Gaussian and t


def _gaussian(distribution: Gaussian, x: Array) -> Array | None:
    if distribution.dim == len(x) == 1 and distribution.covariance.size == len(distribution.mean):
        return _one_column(distribution.mean.ravel(), distribution.covariance.ravel(), float(x[0, 0]))
    found = _distances(distribution, x)
    if found is None:
        return None
    q, logdet, rank = found
    q += logdet
    q += rank * LOG_2PI
    q *= -0.5
    return q


def _one_column(mean: Array, variance: Array, x: float) -> Array | None:
    from likely.distributions.gaussian._loops.one_column import one_column

    if not variance.min() > 0:
        return None
    out = np.empty(len(mean))
    one_column(x, mean, variance, np.log(variance), LOG_2PI, out)
    return out


def _student(distribution: StudentT, x: Array) -> Array | None:
    if distribution.kind == "independent":
        v = distribution.dof
        q, logdet, o = (x - distribution.center) ** 2 / distribution.scale, np.log(distribution.scale), 1
    else:
        shape = Gaussian.trusted(mean=distribution.center, covariance=distribution.scale, kind=distribution.kind)
        found = _distances(shape, x)
        if found is None:
            return None
        (q, logdet, o), v = found, distribution.dof
    t = q / v
    if np.isinf(t).any():  # overflow: `log_prob` uses logarithms
        return None
    log_kernel = np.where(t < 1e-200, (1 + o / v) * q, (v + o) * np.log1p(t))
    out = gamma_excess(0.5 * v, 0.5 * o) - 0.5 * (o * LOG_2PI + logdet + log_kernel)
    return out.sum(axis=1) if distribution.kind == "independent" else out


_VECTORIZED: dict[type, Any] = {Gaussian: _gaussian, StudentT: _student}


def _distances(distribution: Gaussian, x: Array) -> tuple[Array, Any, int] | None:
    """Squared Mahalanobis distance (K,), log det, rank; None where covariances of single members are singular."""
    z, d = x - distribution.mean, distribution.dim
    if distribution.kind != "full" or d == 1:
        return _by_columns(z, _variances(distribution), d)
    if not distribution.tied:
        root = small_matrices.roots(small_matrices.members_last(distribution.covariance))
        if root is None:
            return None
        v = small_matrices.solve(root, small_matrices.members_last(z))
        return np.einsum("dk,dk->k", v, v), small_matrices.logdet(root), d
    root = spd.cholesky(distribution.covariance)
    if root is None:
        return _on_support(z, distribution)
    v = small_matrices.solve(root[..., None], small_matrices.members_last(z))
    return np.einsum("dk,dk->k", v, v), spd.logdet(root), d


def _variances(distribution: Gaussian) -> Array:
    """Variances ([K,] d or 1) of a distribution with independent columns, or with one column."""
    if distribution.kind == "diagonal":
        return distribution.covariance
    return distribution.covariance[..., None] if distribution.kind == "spherical" else distribution.covariance[..., 0]


def _by_columns(z: Array, variance: Array, d: int) -> tuple[Array, Any, int] | None:
    if not variance.min() > 0:
        return None
    z *= z
    z /= variance
    log = np.log(variance)
    return _row_sums(z), _row_sums(log) if variance.shape[-1] == d else d * log[..., 0], d


def _row_sums(a: Array) -> Any:
    return a[..., 0] if a.shape[-1] == 1 else a.sum(axis=-1)


def _on_support(z: Array, distribution: Gaussian) -> tuple[Array, Any, int] | None:
    """One singular covariance for all members: distances on its support, inf outside."""
    support = spd.rank_deficient_factor(distribution.covariance)
    if support is None or not (support.scale > 0).all():  # a constant column: `log_prob` knows its absolute value
        return None
    v = z @ support.inverse
    q = np.where(support.outside_range(z, np.zeros(distribution.dim)), np.inf, np.einsum("kr,kr->k", v, v))
    return q, support.logdet, support.factor.shape[1]


def colored(distribution: Gaussian, noise: Array) -> Array:
    """Samples μ_k + L_k ε_k of each member from standard normal noise (K, d)."""
    if distribution.kind == "full" and distribution.dim > 1:
        root = spread_factor(distribution)
        noise = np.ascontiguousarray(small_matrices.apply(root, small_matrices.members_last(noise)[: root.shape[1]]).T)
    elif distribution.covariance.ndim == 0:
        noise = noise * float(distribution.covariance) ** 0.5
    else:
        noise = noise * np.sqrt(_variances(distribution))
    noise += distribution.mean
    return noise


def spread_factor(distribution: Gaussian) -> Array:
    """L (d, r, K or 1) with Σ = L Lᵀ for the members of a stack, also singular ones; r < d for a shared singular Σ."""
    if distribution.kind != "full":
        c = distribution.covariance if distribution.kind == "diagonal" else distribution.covariance[..., None]
        deviation = np.sqrt(np.broadcast_to(c, (*c.shape[:-1], distribution.dim)))
        wide = np.atleast_2d(deviation)[:, :, None] * np.eye(distribution.dim)
        return small_matrices.members_last(wide)
    if distribution.covariance.ndim == 2:
        found = spd.cholesky(distribution.covariance)
        return (_singular_factor(distribution.covariance) if found is None else found)[..., None]
    root = small_matrices.roots(small_matrices.members_last(distribution.covariance))
    return _singular_factors(distribution.covariance) if root is None else root


def _singular_factor(covariance: Array) -> Array:
    """L (d, r) with Σ = L Lᵀ of a singular covariance of rank r."""
    found = spd.rank_deficient_factor(covariance)
    if found is None:
        raise DataError(sentence("Gaussian", "covariance must not have negative eigenvalues", "one that has"))
    return found.factor


def _singular_factors(covariance: Array) -> Array:
    """Square roots by eigendecomposition of covariances (K, d, d) of which some are singular."""
    values, vectors = np.linalg.eigh(covariance)
    return small_matrices.members_last(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
