"""One row for each member: draws and densities where a stack is as long as the rows.

`log_prob` of a stack compares every row with every member; a cloud of particles needs each member with its own row, or
all members with one. For Gaussian and t distributions both are a few sweeps over the stack.
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

SOME = 64  # members of other distributions at a time: 64 × 64 densities of which the diagonal is kept


def draw_each(distribution: Any, rng: Generator) -> Any:
    """One draw from each member: (K, d), or (K,) for a distribution of one unnumbered column.

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
    quick = _QUICK.get(type(distribution))
    if quick is not None and distribution.members:
        z = _complete(distribution, x)
        if z is not None:
            with np.errstate(all="ignore"):
                found = quick(distribution, z)
            if found is not None:
                return found
    return _slow_log_prob(distribution, x)


def _complete(distribution: Any, x: Any) -> Array | None:
    """Rows of numbers without gaps; else the distribution itself knows better."""
    z = rows(x, distribution.dim, type(distribution).__name__)
    if len(z) not in (1, distribution.members):
        _refuse_rows(distribution, len(z))
    total = z.sum()
    if np.isfinite(total):
        return z
    refuse_infinite(z, type(distribution).__name__)
    return None if np.isnan(total) else z


def _slow_log_prob(distribution: Any, x: Any) -> Array:
    """The same through `log_prob`: the distribution's own way, and the oracle of the others."""
    members = getattr(distribution, "members", None)
    if members is None or len(x) == 1:
        out = np.asarray(distribution.log_prob(x), dtype=np.float64)
        return out[0] if out.ndim == 2 and len(x) == 1 else out
    if len(x) != members:
        _refuse_rows(distribution, len(x))
    return np.concatenate([_diagonal(distribution, x, a) for a in range(0, len(x), SOME)])


def _refuse_rows(distribution: Any, n: int) -> None:
    raise ShapeError(sentence(type(distribution).__name__, f"one row per member ({distribution.members}) is needed", n))


def _diagonal(distribution: Any, x: Any, a: int) -> Array:
    index = np.arange(a, min(a + SOME, len(x)))
    if not hasattr(distribution, "member"):  # somebody else's distribution, which can only score
        return np.diagonal(distribution.log_prob(x))[index]
    if hasattr(distribution, "some"):
        return np.diagonal(distribution.some(index).log_prob(x[index])).copy()
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
    if np.isinf(t).any():  # so far out that only logarithms reach
        return None
    fall = np.where(t < 1e-200, (1 + o / v) * q, (v + o) * np.log1p(t))
    out = gamma_excess(0.5 * v, 0.5 * o) - 0.5 * (o * LOG_2PI + logdet + fall)
    return out.sum(axis=1) if distribution.kind == "independent" else out


_QUICK: dict[type, Any] = {Gaussian: _gaussian, StudentT: _student}


def _distances(distribution: Gaussian, x: Array) -> tuple[Array, Any, int] | None:
    """Squared distance (K,), log det, rank; None where the spreads of single members are singular."""
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
        return _on_flat(z, distribution)
    v = small_matrices.solve(root[..., None], small_matrices.members_last(z))
    return np.einsum("dk,dk->k", v, v), spd.logdet(root), d


def _variances(distribution: Gaussian) -> Array:
    """([K,] d or 1) of a distribution whose columns are independent, as one column always is."""
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


def _on_flat(z: Array, distribution: Gaussian) -> tuple[Array, Any, int] | None:
    """One singular spread for all: distances on its flat, infinite off it."""
    flat = spd.degenerate(distribution.covariance)
    if (
        flat is None or not (flat.scale > 0).all()
    ):  # a column that does not vary: the distribution's own way knows its size
        return None
    v = z @ flat.inverse
    q = np.where(flat.off(z, np.zeros(distribution.dim)), np.inf, np.einsum("kr,kr->k", v, v))
    return q, flat.logdet, flat.factor.shape[1]


def colored(distribution: Gaussian, noise: Array) -> Array:
    """What white noise (K, d) becomes under each member: μ_k + L_k ε_k."""
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
        return (_flat(distribution.covariance) if found is None else found)[..., None]
    root = small_matrices.roots(small_matrices.members_last(distribution.covariance))
    return _flats(distribution.covariance) if root is None else root


def _flat(covariance: Array) -> Array:
    found = spd.degenerate(covariance)
    if found is None:
        raise DataError(sentence("Gaussian", "covariance must not have negative eigenvalues", "one that has"))
    return found.factor


def _flats(covariance: Array) -> Array:
    """Of members that are singular one by one: square roots by eigenvalues, those below rounding as 0."""
    values, vectors = np.linalg.eigh(covariance)
    return small_matrices.members_last(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
