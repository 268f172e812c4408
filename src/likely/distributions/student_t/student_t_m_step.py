"""Student-t M-step: exact maximum of the bound over one parameter at a time, scale or degrees of freedom."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments
from likely.distributions.student_t.scale_statistics import ScaleSums
from likely.numerics.special import LOG_2PI, digamma_gap, gamma_excess

LEAST_DOF, LARGEST_DOF = 0.1, 1e6
CUTS, ROUNDS = 63, 9  # of the bracket of log ν, again and again: 64⁹ leaves it no inside


def best_scales(distribution: Any, stats: ScaleSums, n: Array, U: Array) -> Array:
    """Scatter over Σ w r: the best scale at the best γ; what was not seen keeps its own."""
    T, entries, old = stats.moments.scatter, stats.entries, distribution.scale
    if distribution.kind in ("full", "independent"):
        by = U[..., None, None] if distribution.kind == "full" else U
        return np.where(by > 0, T / np.where(by > 0, by, 1.0), old)
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma = np.where(n > 0, U / n, 1.0)
        if distribution.kind == "spherical":
            return np.where(n > 0, T.sum(axis=-1) / (entries.sum(axis=-1) * gamma), old)
        return np.where(entries > 0, T / (entries * gamma[..., None]), old)


def best_dof(by_seen: Array, need: Array, old: Array, prior: Any = None) -> Array:
    """The ν where Σₒ nₒ [g(ν/2) − g((ν + o)/2)] = `need`, with g(a) = log a − ψ(a): the left side only falls.

    A prior adds twice the slope of its log density. Where there are no rows, ν stays as it is.
    """
    seen = np.arange(1, by_seen.shape[-1] + 1)
    low, high = (np.full(need.shape, np.log(end)) for end in (LEAST_DOF, LARGEST_DOF))
    slope = (lambda v: 0.0) if prior is None or not hasattr(prior, "log_dof") else prior.dof_slope

    def rises(v: Array) -> Array:
        """At v (..., m), many at a time: what calls cost counts more than what they compute."""
        wide = v[..., None]
        each = digamma_gap(0.5 * wide) - digamma_gap(0.5 * (wide + seen))
        return np.asarray((by_seen[..., None, :] * each).sum(axis=-1) - need[..., None] + 2 * slope(v) > 0)

    at_most = rises(np.exp(high)[..., None])[..., 0]
    for _ in range(ROUNDS):
        step = (high - low) / (CUTS + 1)
        up = rises(np.exp(low[..., None] + step[..., None] * np.arange(1, CUTS + 1))).sum(axis=-1)
        low, high = low + up * step, low + (up + 1) * step
    found = np.where(at_most, LARGEST_DOF, np.clip(np.exp(low), LEAST_DOF, LARGEST_DOF))
    return np.where(by_seen.sum(axis=-1) > 0, found, old)


def bound(distribution: Any, stats: ScaleSums, log_gamma: Array, n: Array) -> float:
    """The bound of the log-likelihood at the best γ, summed over members."""
    v = distribution.dof[..., None]
    by_seen = distribution._by_seen(stats)
    o = np.arange(1, by_seen.shape[-1] + 1)
    head = gamma_excess(0.5 * v, 0.5 * o) - 0.5 * o * LOG_2PI - 0.5 * (v + o) * np.log1p(o / v)
    value = (by_seen * head).sum(axis=-1) + 0.5 * distribution.dof * (stats.surplus - stats.excess) + stats.level
    value = value - 0.5 * (n * distribution.dof + distribution._entries(stats)) * log_gamma
    return float(np.sum(value)) - 0.5 * float(np.sum(_determinants(distribution, stats)))


def _determinants(distribution: Any, stats: ScaleSums) -> Array:
    """n log det S, or column by column with the rows in which each was seen."""
    if distribution.kind == "full":
        logdet = distribution._shape.form.logdet
        return np.asarray(stats.rows * (logdet if distribution.members else logdet[0]))
    return np.asarray(stats.entries * np.log(distribution._shape.variance))


def prior_mode(prior: Any, stats: ScaleSums, gamma: Array, kind: str) -> Gaussian:
    """Center and scale of highest density, given γ: a Gaussian's, whose mean counts U/γ rows and its scatter n."""
    found = stats.moments
    if isinstance(found, Moments):
        eased: Any = found.replace(weight=found.weight / gamma, scatter=found.scatter / gamma[..., None, None])
        more = np.asarray(stats.rows - eased.weight)
    else:
        by = gamma if kind == "independent" else gamma[..., None]
        eased = found.replace(weight=found.weight / by, scatter=found.scatter / by)
        more = stats.entries - eased.weight
        more = more.sum(axis=-1) if kind == "spherical" else more
    after = prior.update(eased)
    point = after.point("mode")
    return point.replace(covariance=_over_rows(after.scale, point, more))


def _over_rows(scale: Array, point: Gaussian, more: Array) -> Array:
    """Ψ over what the prior divides it by, and so many rows more."""
    if point.kind != "full":
        by = scale / point.covariance
        return np.asarray(scale / (by + more))
    i = np.arange(scale.shape[-1])
    diagonal = np.broadcast_to(scale, point.covariance.shape)[..., i, i]
    divided = np.where(diagonal > 0, diagonal / point.covariance[..., i, i], 0.0).max(axis=-1)
    return np.asarray(scale / (divided + more)[..., None, None])
