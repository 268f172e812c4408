"""One row for each member: draws and densities where a stack is as long as the rows.

`log_prob` of a stack compares every row with every member; a cloud of particles needs each member with its own row, or
all members with one. For Gaussian and t laws both are a few sweeps over the stack.
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

SOME = 64  # members of other laws at a time: 64 × 64 densities of which the diagonal is kept


def draw_each(law: Any, rng: Generator) -> Any:
    """One draw from each member: (K, d), or (K,) for a law of one unnumbered column.

    >>> draw_each(Gaussian([[0.0], [100.0]], 1.0), np.random.default_rng(0)).round(1).tolist()
    [[0.1], [99.9]]
    """
    if isinstance(law, Gaussian) and law.members:
        return coloured(law, rng.standard_normal(law.mean.shape))
    if isinstance(law, Categorical) and law.members:
        sums = np.cumsum(law.probs, axis=1)
        codes = (rng.random((len(sums), 1)) * sums[:, -1:] >= sums).sum(axis=1)
        return law.values[np.minimum(codes, sums.shape[1] - 1)]
    return law.sample(1, rng)[0]


def log_prob_each(law: Any, x: Any) -> Array:
    """log p_k(x_k) of rows x (K, d), one per member; or of one row (1, d) under every member: (K,).

    >>> log_prob_each(Gaussian([[0.0], [1.0]], 1.0), np.array([[0.0], [1.0]])).round(4).tolist()
    [-0.9189, -0.9189]
    """
    quick = _QUICK.get(type(law))
    if quick is not None and law.members:
        z = _complete(law, x)
        if z is not None:
            with np.errstate(all="ignore"):
                found = quick(law, z)
            if found is not None:
                return found
    return _slow_log_prob(law, x)


def _complete(law: Any, x: Any) -> Array | None:
    """Rows of numbers without gaps; else the law itself knows better."""
    z = rows(x, law.dim, type(law).__name__)
    if len(z) not in (1, law.members):
        _refuse_rows(law, len(z))
    total = z.sum()
    if np.isfinite(total):
        return z
    refuse_infinite(z, type(law).__name__)
    return None if np.isnan(total) else z


def _slow_log_prob(law: Any, x: Any) -> Array:
    """The same through `log_prob`: the law's own way, and the oracle of the others."""
    members = getattr(law, "members", None)
    if members is None or len(x) == 1:
        out = np.asarray(law.log_prob(x), dtype=np.float64)
        return out[0] if out.ndim == 2 and len(x) == 1 else out
    if len(x) != members:
        _refuse_rows(law, len(x))
    return np.concatenate([_diagonal(law, x, a) for a in range(0, len(x), SOME)])


def _refuse_rows(law: Any, n: int) -> None:
    raise ShapeError(sentence(type(law).__name__, f"one row per member ({law.members}) is needed", n))


def _diagonal(law: Any, x: Any, a: int) -> Array:
    index = np.arange(a, min(a + SOME, len(x)))
    if not hasattr(law, "member"):  # somebody else's law, which can only score
        return np.diagonal(law.log_prob(x))[index]
    if hasattr(law, "some"):
        return np.diagonal(law.some(index).log_prob(x[index])).copy()
    return np.array([law.member(int(k)).log_prob(x[k : k + 1])[0] for k in index])


# ------------------------------------------------------------- Gaussian and t


def _gaussian(law: Gaussian, x: Array) -> Array | None:
    if law.dim == len(x) == 1 and law.covariance.size == len(law.mean):
        return _one_column(law.mean.ravel(), law.covariance.ravel(), float(x[0, 0]))
    found = _distances(law, x)
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


def _student(law: StudentT, x: Array) -> Array | None:
    if law.kind == "independent":
        v = law.dof
        q, logdet, o = (x - law.centre) ** 2 / law.scale, np.log(law.scale), 1
    else:
        shape = Gaussian.trusted(mean=law.centre, covariance=law.scale, kind=law.kind)
        found = _distances(shape, x)
        if found is None:
            return None
        (q, logdet, o), v = found, law.dof
    t = q / v
    if np.isinf(t).any():  # so far out that only logarithms reach
        return None
    fall = np.where(t < 1e-200, (1 + o / v) * q, (v + o) * np.log1p(t))
    out = gamma_excess(0.5 * v, 0.5 * o) - 0.5 * (o * LOG_2PI + logdet + fall)
    return out.sum(axis=1) if law.kind == "independent" else out


_QUICK: dict[type, Any] = {Gaussian: _gaussian, StudentT: _student}


def _distances(law: Gaussian, x: Array) -> tuple[Array, Any, int] | None:
    """Squared distance (K,), log det, rank; None where the spreads of single members are singular."""
    z, d = x - law.mean, law.dim
    if law.kind != "full" or d == 1:
        return _by_columns(z, _variances(law), d)
    if not law.tied:
        root = small_matrices.roots(small_matrices.members_last(law.covariance))
        if root is None:
            return None
        v = small_matrices.solve(root, small_matrices.members_last(z))
        return np.einsum("dk,dk->k", v, v), small_matrices.logdet(root), d
    root = spd.cholesky(law.covariance)
    if root is None:
        return _on_flat(z, law)
    v = small_matrices.solve(root[..., None], small_matrices.members_last(z))
    return np.einsum("dk,dk->k", v, v), spd.logdet(root), d


def _variances(law: Gaussian) -> Array:
    """([K,] d or 1) of a law whose columns are independent, as one column always is."""
    if law.kind == "diagonal":
        return law.covariance
    return law.covariance[..., None] if law.kind == "spherical" else law.covariance[..., 0]


def _by_columns(z: Array, variance: Array, d: int) -> tuple[Array, Any, int] | None:
    if not variance.min() > 0:
        return None
    z *= z
    z /= variance
    log = np.log(variance)
    return _row_sums(z), _row_sums(log) if variance.shape[-1] == d else d * log[..., 0], d


def _row_sums(a: Array) -> Any:
    return a[..., 0] if a.shape[-1] == 1 else a.sum(axis=-1)


def _on_flat(z: Array, law: Gaussian) -> tuple[Array, Any, int] | None:
    """One singular spread for all: distances on its flat, infinite off it."""
    flat = spd.degenerate(law.covariance)
    if flat is None or not (flat.scale > 0).all():  # a column that does not vary: the law's own way knows its size
        return None
    v = z @ flat.inverse
    q = np.where(flat.off(z, np.zeros(law.dim)), np.inf, np.einsum("kr,kr->k", v, v))
    return q, flat.logdet, flat.factor.shape[1]


def coloured(law: Gaussian, noise: Array) -> Array:
    """What white noise (K, d) becomes under each member: μ_k + L_k ε_k."""
    if law.kind == "full" and law.dim > 1:
        root = spread_factor(law)
        noise = np.ascontiguousarray(small_matrices.apply(root, small_matrices.members_last(noise)[: root.shape[1]]).T)
    elif law.covariance.ndim == 0:
        noise = noise * float(law.covariance) ** 0.5
    else:
        noise = noise * np.sqrt(_variances(law))
    noise += law.mean
    return noise


def spread_factor(law: Gaussian) -> Array:
    """L (d, r, K or 1) with Σ = L Lᵀ for the members of a stack, also singular ones; r < d for a shared singular Σ."""
    if law.kind != "full":
        c = law.covariance if law.kind == "diagonal" else law.covariance[..., None]
        deviation = np.sqrt(np.broadcast_to(c, (*c.shape[:-1], law.dim)))
        wide = np.atleast_2d(deviation)[:, :, None] * np.eye(law.dim)
        return small_matrices.members_last(wide)
    if law.covariance.ndim == 2:
        found = spd.cholesky(law.covariance)
        return (_flat(law.covariance) if found is None else found)[..., None]
    root = small_matrices.roots(small_matrices.members_last(law.covariance))
    return _flats(law.covariance) if root is None else root


def _flat(covariance: Array) -> Array:
    found = spd.degenerate(covariance)
    if found is None:
        raise DataError(sentence("Gaussian", "covariance must not have negative eigenvalues", "one that has"))
    return found.factor


def _flats(covariance: Array) -> Array:
    """Of members that are singular one by one: square roots by eigenvalues, those below rounding as 0."""
    values, vectors = np.linalg.eigh(covariance)
    return small_matrices.members_last(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
