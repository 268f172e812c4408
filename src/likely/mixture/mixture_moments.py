"""Moments, distribution functions and quantiles of mixtures, from those of the components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from likely.core.arrays import Array
from likely.core.errors import LikelyError, sentence
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.distribution import NotKnown
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.stack import Stack
from likely.distributions.support import is_discrete
from likely.distributions.univariate.poisson import Poisson
from likely.distributions.univariate.von_mises import VonMises
from likely.distributions.univariate.von_mises_sum import VonMisesSum

HALVINGS = 1100  # at most, from the largest numbers to the smallest; adjacent ones are reached after 60 or so


def mixed_mean(weights: Array, components: Any) -> Array:
    """Σ w_k E_k[x]: (d,), or (C, d) for weights (C, M)."""
    return _weighted_sum(weights, _component_values(components, "mean"))


def mixed_variance(weights: Array, components: Any) -> Array:
    """Σ w_k (Var_k[x] + (E_k[x] − E[x])²) per column; infinite where a component's variance or mean is."""
    means, variances = _component_values(components, "mean"), _component_values(components, "variance")
    with np.errstate(invalid="ignore"):
        deviation = means - _repeated(_weighted_sum(weights, means), weights)
        found = _weighted_sum(weights, variances + deviation**2)
    return np.where(np.isnan(found), np.inf, found)


def mixed_covariance(weights: Array, components: Any) -> Array:
    """Σ w_k (Cov_k[x] + (E_k[x] − E[x]) (E_k[x] − E[x])ᵀ): (d, d), or (C, d, d)."""
    means, within = _component_values(components, "mean").reshape(components.members, -1), _covariances(components)
    deviation = means - _repeated(_weighted_sum(weights, means), weights)
    return _weighted_sum(weights, within + deviation[:, :, None] * deviation[:, None, :])


def mixed_cdf(weights: Array, components: Any, x: Array) -> Array:
    """Σ w_k P_k(X ≤ x) of numbers (…): (…), or (…, C)."""
    flat = np.ravel(x)
    each = np.stack([np.ravel(component.cdf(flat)) for component in _members(components)])  # (K, n)
    return np.moveaxis(_weighted_sum(weights, each), -1, 0).reshape((*np.shape(x), *weights.shape[:-1]))


def mixed_quantile(weights: Array, components: Any, p: Array) -> Array:
    """The smallest x with P(X ≤ x) ≥ p (…) of one mixture (K,): bisection between the components' quantiles."""
    flat = np.ravel(p)
    alive = [component for component, w in zip(_members(components), weights, strict=True) if w > 0]
    inside = (flat >= 0) & (flat <= 1)
    p_inside = np.where(inside, flat, 0.5)
    ends = np.stack([np.ravel(component.quantile(p_inside)) for component in alive])
    found = _bisection(lambda x: mixed_cdf(weights, components, x), p_inside, ends.min(axis=0), ends.max(axis=0))
    if all(
        is_discrete(component) for component in alive
    ):  # whose distribution functions may have a tolerance at a value
        whole = np.rint(found)
        found = np.where(np.isclose(found, whole, rtol=0.0, atol=1e-6), whole, found)
    return np.where(inside, found, np.nan).reshape(np.shape(p))


def gaussian_quantiles(weights: Array, components: Gaussian, p: Array) -> Array:
    """Quantiles p (…) of each of C mixtures of univariate Gaussians (…, C), all in one bisection."""
    mean, deviation = (np.reshape(a, weights.shape) for a in (components.mean, np.sqrt(components.variance)))
    flat = np.ravel(p)[:, None, None]
    inside = (flat >= 0) & (flat <= 1)
    at = np.where(inside, flat, 0.5)
    ends = np.where(weights > 0, mean + deviation * ndtri(at), np.nan)  # (P, C, K)
    shape = ends.shape[:2]

    def cdf(x: Array) -> Array:
        return np.asarray((weights * ndtr((x.reshape(shape)[..., None] - mean) / deviation)).sum(axis=-1).ravel())

    low, high = (f(ends, axis=-1).ravel() for f in (np.nanmin, np.nanmax))
    found = _bisection(cdf, np.broadcast_to(at[..., 0], shape).ravel(), low, high).reshape(shape)
    return np.where(inside[..., 0], found, np.nan).reshape((*np.shape(p), len(weights)))


def _bisection(cdf: Callable[[Array], Array], p: Array, low: Array, high: Array) -> Array:
    """Bisection for the least x in low … high with cdf(x) ≥ p, to the last bit; infinite ends belong to p = 0 and 1."""
    low, high = np.where(p == 1, high, low), np.where(p == 0, low, high)
    high = np.where(cdf(low) >= p, low, high)
    for _ in range(HALVINGS):
        with np.errstate(invalid="ignore", over="ignore"):
            middle = np.where(low == high, high, 0.5 * low + 0.5 * high)
        open_ = (low < middle) & (middle < high)
        if not open_.any():
            break
        reached = cdf(middle) >= p
        low, high = np.where(open_ & ~reached, middle, low), np.where(open_ & reached, middle, high)
    return high


# ------------------------------------------------------------------ parts, one by one


def _members(components: Any) -> list[Any]:
    return [components.member(k) for k in range(components.members)]


def _component_values(components: Any, name: str) -> Array:
    """A property of each component (K, …), where all have numeric ones."""
    if is_circular(components):
        raise _unknown(components, name)
    try:
        several = isinstance(components, Stack)
        found = (
            [getattr(component, name) for component in components.components] if several else getattr(components, name)
        )
        out = np.asarray(found, dtype=np.float64)
    except (LikelyError, AttributeError, TypeError, ValueError) as error:
        raise _unknown(components, name) from error
    if out.ndim < 1 or len(out) != components.members:
        raise _unknown(components, name)
    return out


def is_circular(components: Any) -> bool:
    """True for angles: their circular means do not mix by weight."""
    return isinstance(components.member(0), VonMises | VonMisesSum)


def _unknown(components: Any, name: str) -> NotKnown:
    expected = f"no {name} is available for a mixture of {type(components).__name__}"
    return NotKnown(sentence("Mixture", expected, remedy="average draws, see expect"))


def _covariances(components: Any) -> Array:
    """Covariances (K, d, d), diagonal where columns are independent."""
    if isinstance(components, Stack):
        return np.stack([_one_covariance(component) for component in _members(components)])
    return np.broadcast_to(_one_covariance(components), (components.members, components.dim, components.dim))


def _one_covariance(distribution: Any) -> Array:
    """(d, d), or (K, d, d) of a stack."""
    if isinstance(distribution, Gaussian) or hasattr(distribution, "covariance_matrix"):
        return np.asarray(distribution.covariance_matrix)
    independent = (
        isinstance(distribution, ColumnDistribution | Poisson | Bernoulli)
        or getattr(distribution, "kind", "full") != "full"
    )
    if independent or (distribution.dim == 1 and not hasattr(distribution, "covariance")):
        lead = () if distribution.members is None else (distribution.members,)
        v = np.asarray(distribution.variance, dtype=np.float64).reshape((*lead, distribution.dim))
        return np.asarray(v[..., None] * np.eye(distribution.dim))
    return np.asarray(distribution.covariance, dtype=np.float64)


def _weighted_sum(weights: Array, each: Array) -> Array:
    """Σ w_k a_k of (K, …), or (C, …) for weights (C, M); components of weight 0 are left out, even infinite ones."""
    w = weights.reshape(*weights.shape, *(1,) * (each.ndim - 1))
    terms = np.where(w > 0, each.reshape(*weights.shape, *each.shape[1:]), 0.0)
    return np.asarray((w * terms).sum(axis=weights.ndim - 1))


def _repeated(mixed: Array, weights: Array) -> Array:
    """One row per component (K, …) again."""
    return np.repeat(mixed, weights.shape[-1], axis=0) if weights.ndim == 2 else mixed[None]
