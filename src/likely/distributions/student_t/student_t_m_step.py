"""M-step of the Student-t EM algorithm: exact maximum of the bound in the scale, and in the degrees of freedom."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.numerics.special import LOG_2PI, gamma_excess, log_minus_digamma

LEAST_DOF, LARGEST_DOF = 0.1, 1e6
CUTS, ROUNDS = 63, 9  # sections of the bracket of log ν per round: 64⁹ reaches rounding


def best_scales(distribution: Any, stats: ScaleSums, n: Array, U: Array) -> Array:
    """Maximizing scale at the best γ: scatter over Σ w r; unobserved columns keep their scale."""
    T, entries, old = stats.moments.scatter, stats.entries, distribution.scale
    if distribution.kind in ("full", "independent"):
        by = U[..., None, None] if distribution.kind == "full" else U
        return np.where(by > 0, T / np.where(by > 0, by, 1.0), old)
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma = np.where(n > 0, U / n, 1.0)
        if distribution.kind == "spherical":
            return np.where(n > 0, T.sum(axis=-1) / (entries.sum(axis=-1) * gamma), old)
        return np.where(entries > 0, T / (entries * gamma[..., None]), old)


def best_dof(by_observed: Array, need: Array, old: Array, prior: Any = None) -> Array:
    """Maximizing ν: root of Σₒ nₒ [g(ν/2) − g((ν + o)/2)] = `need`, g(a) = log a − ψ(a); the left side is decreasing.

    A prior adds twice the derivative of its log density. Where there are no rows, ν is unchanged.
    """
    o = np.arange(1, by_observed.shape[-1] + 1)
    low, high = (np.full(need.shape, np.log(end)) for end in (LEAST_DOF, LARGEST_DOF))
    derivative = (lambda v: 0.0) if prior is None or not hasattr(prior, "log_dof") else prior.dof_slope

    def increases(v: Array) -> Array:
        """True where the objective increases at v (..., m); vectorized, since calls cost more than arithmetic."""
        wide = v[..., None]
        terms = log_minus_digamma(0.5 * wide) - log_minus_digamma(0.5 * (wide + o))
        return np.asarray((by_observed[..., None, :] * terms).sum(axis=-1) - need[..., None] + 2 * derivative(v) > 0)

    at_most = increases(np.exp(high)[..., None])[..., 0]
    for _ in range(ROUNDS):
        step = (high - low) / (CUTS + 1)
        up = increases(np.exp(low[..., None] + step[..., None] * np.arange(1, CUTS + 1))).sum(axis=-1)
        low, high = low + up * step, low + (up + 1) * step
    found = np.where(at_most, LARGEST_DOF, np.clip(np.exp(low), LEAST_DOF, LARGEST_DOF))
    return np.where(by_observed.sum(axis=-1) > 0, found, old)


def bound(distribution: Any, stats: ScaleSums, log_gamma: Array, n: Array) -> float:
    """Lower bound of the log-likelihood at the best γ, summed over members."""
    v = distribution.dof[..., None]
    by_observed = distribution._by_observed(stats)
    o = np.arange(1, by_observed.shape[-1] + 1)
    constant = gamma_excess(0.5 * v, 0.5 * o) - 0.5 * o * LOG_2PI - 0.5 * (v + o) * np.log1p(o / v)
    value = (
        (by_observed * constant).sum(axis=-1) + 0.5 * distribution.dof * (stats.surplus - stats.excess) + stats.level
    )
    value = value - 0.5 * (n * distribution.dof + distribution._entries(stats)) * log_gamma
    return float(np.sum(value)) - 0.5 * float(np.sum(_determinants(distribution, stats)))


def _determinants(distribution: Any, stats: ScaleSums) -> Array:
    """n log det S; for uncorrelated columns, per column with the number of its observed entries."""
    if distribution.kind == "full":
        logdet = distribution._shape.form.logdet
        return np.asarray(stats.rows * (logdet if distribution.members else logdet[0]))
    return np.asarray(stats.entries * np.log(distribution._shape.variance))


def prior_mode(prior: Any, stats: ScaleSums, gamma: Array, kind: str) -> Gaussian:
    """Posterior mode of center and scale given γ: a Gaussian's, with U/γ rows for the mean and n for the scatter."""
    found = stats.moments
    if isinstance(found, Moments):
        rescaled: Any = found.replace(weight=found.weight / gamma, scatter=found.scatter / gamma[..., None, None])
        more = np.asarray(stats.rows - rescaled.weight)
    else:
        by = gamma if kind == "independent" else gamma[..., None]
        rescaled = found.replace(weight=found.weight / by, scatter=found.scatter / by)
        more = stats.entries - rescaled.weight
        more = more.sum(axis=-1) if kind == "spherical" else more
    posterior = prior.update(rescaled)
    point = posterior.point("mode")
    return point.replace(covariance=_over_rows(posterior.scale, point, more))


def _over_rows(scale: Array, point: Gaussian, more: Array) -> Array:
    """Scale matrix Ψ over the divisor of the posterior mode plus `more` rows."""
    if point.kind != "full":
        by = scale / point.covariance
        return np.asarray(scale / (by + more))
    i = np.arange(scale.shape[-1])
    diagonal = np.broadcast_to(scale, point.covariance.shape)[..., i, i]
    divided = np.where(diagonal > 0, diagonal / point.covariance[..., i, i], 0.0).max(axis=-1)
    return np.asarray(scale / (divided + more)[..., None, None])
