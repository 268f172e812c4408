"""Score functions ∂ log p(x | θ)/∂θ in closed form, in unconstrained parameters, without building a distribution.

`FreeParameters.scores` computes the same by finite differences, for any distribution; this is for streams, where one
distribution per row would be too slow. Rows must be complete and in the support (`table`); others use differences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, i0e, i1e

from likely.core.arrays import Array, Index, Mask
from likely.distributions.unconstrained_parameters import FreeParameters, constraints_of
from likely.numerics import spd
from likely.numerics.special import LOG_2, LOG_2PI, LOG_PI

FARTHEST = 250.0  # norm of the log parameters in θ beyond which numbers may overflow: finite differences take over
LARGE_DOF = 1e5  # from here on ψ((ν + d)/2) − ψ(ν/2) − d/ν is a series: as a difference it loses all digits
CLOSED = 1e-12  # tolerance of the sum of a composition, which is 1


class Formula(NamedTuple):
    """Scores and log-density of rows (n, d) from parameters; a covariance is given by Cholesky factor or variances."""

    constraints: dict[str, str]  # transform of each parameter; "" for one that is not estimated
    slopes: Callable[..., tuple[Array, ...]]  # derivatives in the unconstrained coordinates per parameter (n, size)
    logs: Callable[..., Array]  # log-densities (n,)
    fine: Callable[..., Mask]  # (z, distribution): mask of entries for which the formulas hold


# ------------------------------------------------------------------ supports


def _any(z: Array, distribution: Any) -> Mask:
    return np.isfinite(z)


def _positive(z: Array, distribution: Any) -> Mask:
    return (z > 0) & (z < np.inf)


def _unsigned(z: Array, distribution: Any) -> Mask:
    return (z >= 0) & (z < np.inf)


def _inside(z: Array, distribution: Any) -> Mask:
    return (z > 0) & (z < 1)


def _counts(z: Array, distribution: Any) -> Mask:
    return (z >= 0) & (z < 1e15) & (z == np.floor(z))


def _bits(z: Array, distribution: Any) -> Mask:
    return (z == 0) | (z == 1)


def _trials(z: Array, distribution: Any) -> Mask:
    return _counts(z, distribution) & (z <= distribution.trials)


def _levels(z: Array, distribution: Any) -> Mask:
    return _counts(z, distribution) & (z < distribution.size)


def _closed(z: Array, distribution: Any) -> Mask:
    return _inside(z, distribution) & (np.abs(z.sum(axis=-1, keepdims=True) - 1) < CLOSED)


# ---------------------------------------------------------------------- Gaussian and t


def _white(x: Array, center: Array, root: Array) -> tuple[Array, Array]:
    """z = L⁻¹(x − μ) and v = L⁻ᵀ z, for a Cholesky factor L; for variances s: z = (x − μ)/√s, v = (x − μ)/s."""
    delta = x - center
    if root.ndim < 2:
        return delta / np.sqrt(root), delta / root
    if len(root) == 1:
        z = delta / root[0, 0]
        return z, z / root[0, 0]
    inverse = np.linalg.inv(root)
    z = delta @ inverse.T
    return z, z @ inverse


@cache
def _below(d: int) -> tuple[Index, Index]:
    """Row and column indices of the strictly lower triangle."""
    i, j = np.tril_indices(d, -1)
    return i, j


def _covariance_scores(z: Array, v: Array, root: Array, weight: Any) -> Array:
    """Derivatives of log p in the Cholesky factor (log diagonal, strictly lower triangle), or in log variances."""
    if root.ndim == 2:
        weighted = weight * v
        diagonal = weighted * z * root.diagonal() - 1
        if len(root) == 1:
            return diagonal
        i, j = _below(len(root))
        return np.concatenate([diagonal, weighted[:, i] * z[:, j]], axis=1)
    per_column = 0.5 * (weight * z * z - 1)
    return per_column if root.ndim or per_column.shape[1] == 1 else per_column.sum(axis=1, keepdims=True)


def _log_det(root: Array, d: int) -> float:
    if root.ndim == 2:
        return 2 * float(np.log(np.diagonal(root)).sum())
    return float(np.log(root).sum()) if root.ndim else d * float(np.log(root))


def _gaussian_scores(x: Array, mean: Array, root: Array) -> tuple[Array, ...]:
    z, v = _white(x, mean, root)
    return v, _covariance_scores(z, v, root, 1.0)


def _gaussian_logs(x: Array, mean: Array, root: Array) -> Array:
    z, _ = _white(x, mean, root)
    return np.asarray(-0.5 * ((z * z).sum(axis=1) + _log_det(root, x.shape[1]) + x.shape[1] * LOG_2PI))


def _t_scores(x: Array, center: Array, root: Array, dof: Array) -> tuple[Array, ...]:
    """Scores of a Student-t distribution: one dof for all columns, or one per column, which are then independent."""
    z, v = _white(x, center, root)
    d, q = (1, z * z) if dof.ndim else (x.shape[1], (z * z).sum(axis=1, keepdims=True))
    weight = (dof + d) / (dof + q)
    log_dof = 0.5 * dof * (_digamma_difference(dof, d) - np.log1p(q / dof) + weight * q / dof)
    return weight * v, _covariance_scores(z, v, root, weight), log_dof


def _digamma_difference(dof: Array, d: int) -> Array:
    """ψ((ν + d)/2) − ψ(ν/2) − d/ν."""
    if (dof < LARGE_DOF).all():
        return np.asarray(digamma(0.5 * (dof + d)) - digamma(0.5 * dof) - d / dof)
    e = d / dof
    far = e * e * (e / 3 - 0.5) + d / (dof * (dof + d)) + (1 / dof**2 - 1 / (dof + d) ** 2) / 3
    return np.where(dof < LARGE_DOF, digamma(0.5 * (dof + d)) - digamma(0.5 * dof) - d / dof, far)


def _log_gamma_difference(dof: Array, h: float) -> Array:
    """log Γ(ν/2 + h) − log Γ(ν/2) − h log ν."""
    near = gammaln(0.5 * dof + h) - gammaln(0.5 * dof) - h * np.log(dof)
    if (dof < LARGE_DOF).all():
        return np.asarray(near)
    return np.where(dof < LARGE_DOF, near, -h * LOG_2 + h * (h - 1) / dof * (1 - (2 * h - 1) / (3 * dof)))


def _t_logs(x: Array, center: Array, root: Array, dof: Array) -> Array:
    z, _ = _white(x, center, root)
    d, q = (1, z * z) if dof.ndim else (x.shape[1], (z * z).sum(axis=1, keepdims=True))
    each = _log_gamma_difference(dof, 0.5 * d) - 0.5 * d * LOG_PI - 0.5 * (dof + d) * np.log1p(q / dof)
    return np.asarray(each.sum(axis=1) - 0.5 * _log_det(root, x.shape[1]))


# ----------------------------------------------------------------- other distributions


def _summed(f: Callable[..., Array]) -> Callable[..., Array]:
    return lambda x, *parts: np.asarray(f(x, *parts).sum(axis=1))


def _log_beta(a: Array, b: Array) -> Array:
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))


def _categorical_scores(x: Array, probs: Array) -> tuple[Array, ...]:
    if len(x) == 1:
        out = -probs[None]
        out[0, int(x[0, 0])] += 1
        return (out,)
    out = np.repeat(-probs[None], len(x), axis=0)
    out[np.arange(len(x)), x[:, 0].astype(np.intp)] += 1
    return (out,)


def _negative_binomial_scores(x: Array, size: Array, prob: Array) -> tuple[Array, ...]:
    return size * (digamma(x + size) - digamma(size) + np.log(prob)), size * (1 - prob) - x * prob


def _gamma_scores(x: Array, shape: Array, rate: Array) -> tuple[Array, ...]:
    return shape * (np.log(x) + np.log(rate) - digamma(shape)), shape - rate * x


def _beta_scores(x: Array, a: Array, b: Array) -> tuple[Array, ...]:
    both = digamma(a + b)
    return a * (np.log(x) - digamma(a) + both), b * (np.log1p(-x) - digamma(b) + both)


def _cauchy_scores(x: Array, center: Array, scale: Array) -> tuple[Array, ...]:
    z = (x - center) / scale
    weight = 1 / (1 + z * z)
    return 2 * z * weight / scale, 1 - 2 * weight


def _von_mises_scores(x: Array, center: Array, k: Array) -> tuple[Array, ...]:
    delta = x - center
    return k * np.sin(delta), k * (np.cos(delta) - i1e(k) / i0e(k))


def _beta_binomial_scores(x: Array, n: Array, a: Array, b: Array) -> tuple[Array, ...]:
    both = digamma(a + b) - digamma(n + a + b)
    return a * (digamma(x + a) - digamma(a) + both), b * (digamma(n - x + b) - digamma(b) + both)


def _lomax_scores(x: Array, shape: Array, scale: Array) -> tuple[Array, ...]:
    z = x / scale
    return 1 - shape * np.log1p(z), (shape + 1) * z / (1 + z) - 1


def _log_binomial_coefficient(x: Array, n: Array) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1))


POSITIVE = "positive"
FORMULAS: dict[str, Formula] = {
    "Gaussian": Formula({"mean": "real", "covariance": "covariance"}, _gaussian_scores, _gaussian_logs, _any),
    "StudentT": Formula({"center": "real", "scale": "covariance", "dof": POSITIVE}, _t_scores, _t_logs, _any),
    "Poisson": Formula(
        {"rate": POSITIVE}, lambda x, rate: (x - rate,),
        _summed(lambda x, rate: x * np.log(rate) - rate - gammaln(x + 1)), _counts,
    ),
    "Bernoulli": Formula(
        {"probs": "probability"}, lambda x, p: (x - p,),
        _summed(lambda x, p: np.log(np.where(x > 0, p, 1 - p))), _bits,
    ),
    "Categorical": Formula(
        {"probs": "simplex"}, _categorical_scores, lambda x, p: np.log(p)[x[:, 0].astype(np.intp)], _levels,
    ),
    "NegativeBinomial": Formula(
        {"size": POSITIVE, "prob": "probability"}, _negative_binomial_scores,
        _summed(lambda x, r, p: gammaln(x + r) - gammaln(r) - gammaln(x + 1) + r * np.log(p) + x * np.log1p(-p)),
        _counts,
    ),
    "Gamma": Formula(
        {"shape": POSITIVE, "rate": POSITIVE}, _gamma_scores,
        _summed(lambda x, a, b: a * np.log(b) + (a - 1) * np.log(x) - b * x - gammaln(a)), _positive,
    ),
    "Beta": Formula(
        {"a": POSITIVE, "b": POSITIVE}, _beta_scores,
        _summed(lambda x, a, b: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - _log_beta(a, b)), _inside,
    ),
    "Dirichlet": Formula(
        {"alpha": POSITIVE}, lambda x, a: (a * (np.log(x) - digamma(a) + digamma(a.sum())),),
        lambda x, a: np.asarray(((a - 1) * np.log(x) - gammaln(a)).sum(axis=1) + gammaln(a.sum())), _closed,
    ),
    "Laplace": Formula(
        {"center": "real", "scale": POSITIVE}, lambda x, c, v: (np.sign(x - c) / v, np.abs(x - c) / v - 1),
        _summed(lambda x, c, v: -np.abs(x - c) / v - np.log(v) - LOG_2), _any,
    ),
    "Cauchy": Formula(
        {"center": "real", "scale": POSITIVE}, _cauchy_scores,
        _summed(lambda x, c, s: -LOG_PI - np.log(s) - np.log1p(((x - c) / s) ** 2)), _any,
    ),
    "Exponential": Formula(
        {"rate": POSITIVE}, lambda x, rate: (1 - rate * x,), _summed(lambda x, rate: np.log(rate) - rate * x),
        _unsigned,
    ),
    "ChiSquare": Formula(
        {"dof": POSITIVE}, lambda x, n: (0.5 * n * (np.log(x) - LOG_2 - digamma(0.5 * n)),),
        _summed(lambda x, n: (0.5 * n - 1) * np.log(x) - 0.5 * x - 0.5 * n * LOG_2 - gammaln(0.5 * n)), _positive,
    ),
    "Lomax": Formula(
        {"shape": POSITIVE, "scale": POSITIVE}, _lomax_scores,
        _summed(lambda x, a, s: np.log(a) - np.log(s) - (a + 1) * np.log1p(x / s)), _unsigned,
    ),
    "VonMises": Formula(
        {"center": "real", "concentration": POSITIVE}, _von_mises_scores,
        _summed(lambda x, c, k: -LOG_2PI - np.log(i0e(k)) - 2 * k * np.sin(0.5 * (x - c)) ** 2), _any,
    ),
    "Binomial": Formula(
        {"trials": "", "probs": "probability"}, lambda x, n, p: (x - n * p,),
        _summed(lambda x, n, p: _log_binomial_coefficient(x, n) + x * np.log(p) + (n - x) * np.log1p(-p)), _trials,
    ),
    "BetaBinomial": Formula(
        {"trials": "", "a": POSITIVE, "b": POSITIVE}, _beta_binomial_scores,
        _summed(lambda x, n, a, b: _log_binomial_coefficient(x, n) + _log_beta(x + a, n - x + b) - _log_beta(a, b)),
        _trials,
    ),
}  # fmt: skip


# --------------------------------------------------------------------- score evaluation


class FreeScores:
    """Scores in closed form of a built-in distribution, as `FreeParameters.scores` has them by differences.

    >>> import likely as lk
    >>> fast = formulas_of(FreeParameters(lk.Poisson([3.0])))
    >>> fast.scores(np.log([3.0]), np.array([[5.0]]))
    array([[2.]])
    """

    def __init__(self, free: FreeParameters, formula: Formula) -> None:
        self.formula, self.distribution, self.dim = formula, free.like, _width(free.like)
        ends = [0, *free.ends.tolist(), len(free.start)]
        where = {name: slice(a, b) for name, a, b in zip(free.names, ends[:-1], ends[1:], strict=True)}
        shapes = dict(zip(free.names, free.shapes, strict=True))
        self.bounded = np.flatnonzero(np.isfinite(free.bounds))
        learned = [constraint for constraint in formula.constraints.items() if constraint[1]]
        self.chosen = [i for i, (name, _) in enumerate(learned) if name in where]
        self.everything = len(self.chosen) == len(learned)
        self.back = [
            _inverse_transform(self.distribution, name, constraint, where, shapes)
            for name, constraint in formula.constraints.items()
        ]

    def table(self, x: Any) -> tuple[Array, Mask] | None:
        """Rows as a matrix (n, d), and a mask of those for which the formulas hold; None for other input."""
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "biuf" or x.ndim not in (1, 2):
            return None
        z: Array = np.asarray(x[:, None] if x.ndim == 1 else x, dtype=np.float64)
        if z.shape[1] != self.dim:
            return None
        return z, np.asarray(self.formula.fine(z, self.distribution).all(axis=1))

    def near(self, theta: Array) -> bool:
        """True if the formulas do not overflow at θ; unbounded parameters such as means may be anywhere."""
        logs = theta[self.bounded]
        return float(logs.dot(logs)) < FARTHEST**2 and float(theta.dot(theta)) < np.inf

    def scores(self, theta: Array, z: Array) -> Array:
        """Scores ∂ log p(z_i | θ) / ∂θ (n, P)."""
        found = self.formula.slopes(z, *[read(theta) for read in self.back])
        if self.everything:
            return found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        return np.concatenate([found[i] for i in self.chosen], axis=1)

    def logs(self, theta: Array, z: Array) -> Array:
        """Log-densities log p(z_i | θ) (n,)."""
        return self.formula.logs(z, *[read(theta) for read in self.back])


def formulas_of(free: FreeParameters) -> FreeScores | None:
    """Closed-form scores of a built-in distribution; None for others, and for other transforms of parameters."""
    distribution, me = free.like, type(free.like)
    formula = FORMULAS.get(me.__name__) if me.__module__.startswith("likely.") else None
    learned = {} if formula is None else {name: one for name, one in formula.constraints.items() if one}
    if formula is None or learned != constraints_of(distribution):
        return None
    return None if getattr(distribution, "levels", None) is not None else FreeScores(free, formula)


def _width(distribution: Any) -> int:
    return 1 if type(distribution).__name__ == "Categorical" else int(distribution.dim)


def _inverse_transform(
    distribution: Any, name: str, constraint: str, where: dict[str, slice], shapes: Any
) -> Callable[[Array], Array]:
    """The function θ ↦ one parameter, in the form that the formulas take."""
    if name not in where:
        kept = np.asarray(getattr(distribution, name), dtype=np.float64)
        root = spd.cholesky(np.ascontiguousarray(kept)) if constraint == "covariance" and kept.ndim == 2 else kept
        if root is None:
            root = np.full_like(kept, np.nan)
        return lambda theta: root
    at, shape = where[name], shapes[name]
    if constraint == "covariance" and len(shape) == 2:
        return _cholesky_from(at, shape[0])
    if shape == ():
        return lambda theta: _INVERSE[constraint](theta[at.start])
    return lambda theta: _INVERSE[constraint](theta[at])


def _cholesky_from(at: slice, d: int) -> Callable[[Array], Array]:
    i, j = _below(d)
    on = np.arange(d)

    def read(theta: Array) -> Array:
        v = theta[at]
        root = np.zeros((d, d))
        root[on, on] = np.exp(v[:d])
        root[i, j] = v[d:]
        return root

    return read


def _softmax(v: Array) -> Array:
    e = np.exp(v - v.max())
    e /= e.sum()
    return np.asarray(e)


_INVERSE: dict[str, Callable[[Any], Array]] = {
    "real": lambda v: v,
    "positive": np.exp,
    "covariance": np.exp,
    "probability": lambda v: 1 / (1 + np.exp(-v)),
    "simplex": _softmax,
}

__all__ = ["FreeScores", "formulas_of"]
