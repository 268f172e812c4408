"""Unscented and cubature Kalman filters: linearization by sigma points (statistical linear regression)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.statespace.nonlinear.distribution_moments import DistributionMoments
from likely.statespace.nonlinear.gaussian_filter import ConditionalMoments, GaussianFilter, turned
from likely.statespace.nonlinear.jacobians import CLOSEST, GRAIN
from likely.statespace.nonlinear.joint_gaussian import GRAIN as ROUNDING
from likely.statespace.nonlinear.joint_gaussian import Linear, Sizes, grain_of, root_of

TINY = 1e-300  # instead of 0 as a divisor


class Rule(NamedTuple):
    """Quadrature rule: Σ w f(point) ≈ E f(ξ) for a standard normal ξ; the first point is the center."""

    points: Array  # (N, d)
    weights: Array  # (N,)


@complete
@dataclass(frozen=True, eq=False)
class UnscentedKalmanFilter(GaussianFilter):
    """Unscented Kalman filter (UKF): 2d + 1 sigma points, m and m ± γ times the rows of the root, γ² = α² (d + κ).

    Weights for the mean: 1/(2γ²) at the outer points, the remainder of 1 at m; for the covariance 1 − α² + β more at m
    (Julier and Uhlmann 1997; Wan and van der Merwe 2000). The default α = 1, β = 2, κ = 0 has no negative weight and is
    exact for the variance of x². Covariances that depend on the state are averaged.

    Parameters
    ----------
    model : StateSpace
        The model; its distributions have a mean and a covariance.
    wrap : sequence of int, optional
        Columns of the observation that are angles, in radians.
    wrap_state : sequence of int, optional
        Columns of the state that are angles, in radians.
    alpha : float, default 1.0
        Spread α of the sigma points.
    beta : float, default 2.0
        Additional weight β of the central point for the covariance.
    kappa : float, default 0.0
        Second spread parameter κ.

    See Also
    --------
    CubatureKalmanFilter : Points with equal weights.

    References
    ----------
    Julier and Uhlmann (1997); Wan and van der Merwe (2000).

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.StateSpace(lk.Gaussian([1.0], 0.1), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Gaussian(x**2, 0.1))
    >>> UnscentedKalmanFilter(model).filter([1.2, 1.5, 1.4]).mean[:, 0].round(3)
    array([1.038, 1.147, 1.162])
    """

    _: KW_ONLY
    alpha: float = 1.0
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite([self.alpha, self.beta, self.kappa]).all() and self.alpha > 0):
            expected = "alpha must be positive, beta and kappa finite"
            raise DomainError(sentence("UnscentedKalmanFilter", expected, (self.alpha, self.beta, self.kappa)))

    def linearize(self, mean: Array, root: Array, curve: ConditionalMoments, t: int, u: ArrayLike) -> Linear:
        """Linearization by the sigma points."""
        rule = unscented(len(mean), self.alpha, self.beta, self.kappa)
        wider = widened(mean, rule.points[1, 0] * root)
        found = curve.at(mean + rule.points @ (wider * root), t, u)
        away = turned(found.mean - found.mean[0], curve.angles)
        shift, slope, rest = unscented_line(rule, away, self.alpha, self.beta)
        return _with_noise(found, rule, shift, slope / wider, rest)


@complete
@dataclass(frozen=True, eq=False)
class CubatureKalmanFilter(GaussianFilter):
    """Cubature Kalman filter (CKF): exact means of polynomials up to degree 3 (2d points) or 5 (2d² + 1 points).

    Degree 3: m ± √d times the rows of the root, equal weights (Arasaratnam and Haykin 2009). Degree 5: McNamee and
    Stenger (1967); above four dimensions some of its weights are negative. Covariances that depend on the
    state are averaged.

    Parameters
    ----------
    model : StateSpace
        The model; its distributions have a mean and a covariance.
    degree : {3, 5}, default 3
        Degree of the polynomials whose means are exact.
    wrap : sequence of int, optional
        Columns of the observation that are angles, in radians.
    wrap_state : sequence of int, optional
        Columns of the state that are angles, in radians.

    See Also
    --------
    UnscentedKalmanFilter : Sigma points with parameters.

    References
    ----------
    Arasaratnam and Haykin (2009); McNamee and Stenger (1967).

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.StateSpace(lk.Gaussian([1.0], 0.1), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Gaussian(x**2, 0.1))
    >>> CubatureKalmanFilter(model).filter([1.2, 1.5, 1.4]).mean[:, 0].round(3)
    array([1.04 , 1.145, 1.161])
    """

    degree: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree not in (3, 5):
            raise DomainError(sentence("CubatureKalmanFilter", "degree must be 3 or 5", repr(self.degree)))

    def linearize(self, mean: Array, root: Array, curve: ConditionalMoments, t: int, u: ArrayLike) -> Linear:
        """Linearization by the cubature points."""
        rule = cubature(len(mean), self.degree)
        wider = widened(mean, root)
        found = curve.at(mean + rule.points @ (wider * root), t, u)
        shift, slope, rest = regression(rule, turned(found.mean - found.mean[0], curve.angles))
        return _with_noise(found, rule, shift, slope / wider, rest)


def widened(mean: Array, root: Array) -> Array:
    """Factors (d, 1), at least 1, by which points are spread beyond the rows of a root to exceed rounding.

    A row suffices if some entry of the state changes by 256 times its resolution. On a smaller scale functions are
    linear: the slope is found on the longer row, and divided by the factor.

    >>> widened(np.array([1e9]), np.array([[1e-9]])).round().tolist(), widened(np.zeros(1), np.eye(1)).tolist()
    ([[56843.0]], [[1.0]])
    """
    if np.abs(root).max(axis=1).min() >= CLOSEST * GRAIN * np.abs(mean).max():  # as nearly always
        return np.ones((len(root), 1))
    grains = np.abs(root) / np.maximum(GRAIN * np.abs(mean), TINY)
    most = grains.max(axis=1, keepdims=True)
    return np.where(most > 0, np.maximum(1.0, CLOSEST / np.maximum(most, TINY)), 1.0)


def _with_noise(found: DistributionMoments, rule: Rule, shift: Array, slope: Array, rest: Array) -> Linear:
    """Law of total covariance: covariance of the means plus mean of the covariances."""
    V = found.covariance
    V = V if V.ndim == 2 else np.einsum("n,npq->pq", rule.weights, V)
    size = np.abs(found.mean).max(axis=0)
    rounded = size / min(1.0, float(rule.points.max()))  # differences are divided by the distance of the points
    rest = np.where(np.abs(rest) > ROUNDING * rounded, rest, 0.0)
    rows, grain = np.concatenate([rest, root_of(V)]), grain_of(rounded, V)
    return Linear(found.mean[0] + shift, slope, rows, lambda: Sizes(size, grain), lambda: bool((grain < 0).all()))


# ------------------------------------------------------------------------ rules


@lru_cache(maxsize=64)
def unscented(d: int, alpha: float, beta: float, kappa: float) -> Rule:
    """The unscented rule with its weights for means: exact up to degree 3.

    >>> unscented(2, 1.0, 2.0, 1.0).weights.round(4).tolist()
    [0.3333, 0.1667, 0.1667, 0.1667, 0.1667]
    """
    wide = alpha**2 * (d + kappa)
    if not wide > 0:
        expected = f"kappa must exceed −{d}, the negative dimension of the state"
        raise DomainError(sentence("UnscentedKalmanFilter", expected, kappa))
    if (alpha**2 - beta) * d / wide > 1 + 1e-12:
        expected = "alpha, beta and kappa must leave no negative variance: (alpha² − beta) d ≤ alpha² (d + kappa)"
        remedy = "raise beta, say to 2, or use CubatureKalmanFilter"
        raise DomainError(sentence("UnscentedKalmanFilter", expected, (alpha, beta, kappa), remedy))
    axes = np.sqrt(wide) * np.eye(d)
    weights = np.full(2 * d + 1, 0.5 / wide)
    weights[0] = 1.0 - d / wide
    return Rule(np.concatenate([np.zeros((1, d)), axes, -axes]), weights)


@lru_cache(maxsize=64)
def cubature(d: int, degree: int) -> Rule:
    """The spherical–radial rule of degree 3, or that of McNamee and Stenger of degree 5.

    >>> [len(cubature(3, degree).weights) for degree in (3, 5)]
    [6, 19]
    """
    if degree == 3:
        axes = np.sqrt(d) * np.eye(d)
        return Rule(np.concatenate([axes, -axes]), np.full(2 * d, 0.5 / d))
    axes, pairs = np.sqrt(d + 2.0) * np.eye(d), np.sqrt(0.5 * d + 1.0) * _pairs(d)
    points = np.concatenate([np.zeros((1, d)), axes, -axes, pairs])
    of_axes, of_pairs = (4.0 - d) / (2 * (d + 2.0) ** 2), 1.0 / (d + 2.0) ** 2
    weights = np.concatenate([[2.0 / (d + 2.0)], np.full(2 * d, of_axes), np.full(len(pairs), of_pairs)])
    return Rule(points, weights)


def _pairs(d: int) -> Array:
    """± e_i ± e_j for all pairs (2d (d − 1), d)."""
    out = np.zeros((2 * d * (d - 1), d))
    for k, (i, j) in enumerate(combinations(range(d), 2)):
        out[4 * k : 4 * k + 4, i] = [1, 1, -1, -1]
        out[4 * k : 4 * k + 4, j] = [1, -1, 1, -1]
    return out


# ------------------------------------------------------------------------ linearizations


def regression(rule: Rule, z: Array) -> tuple[Array, Array, Array]:
    """Statistical linear regression of z (N, p) under a rule: mean (p,), slope (d, p), root of the residuals."""
    points, w = rule
    mean = w @ z
    slope = points.T @ (w[:, None] * (z - mean))
    rest = z - mean - points @ slope
    if (w >= 0).all():
        return mean, slope, np.sqrt(w)[:, None] * rest
    return mean, slope, root_of(rest.T @ (w[:, None] * rest))


def unscented_line(rule: Rule, z: Array, alpha: float, beta: float) -> tuple[Array, Array, Array]:
    """The same for the unscented rule, with z (2d + 1, p) relative to its value at the center.

    With c_i = ½ (z_i⁺ + z_i⁻) and b = Σ c_i / γ², the covariance is that of the linear part plus Σ c_i c_iᵀ / γ² +
    (β − α²) b bᵀ: it needs no center weight, which could be negative, and only c_i cancels if α is small.
    """
    d = rule.points.shape[1]
    wide = rule.points[1, 0] ** 2
    forth, back = z[1 : d + 1], z[d + 1 :]
    slope, c = (forth - back) / (2 * np.sqrt(wide)), 0.5 * (forth + back) / np.sqrt(wide)
    mean = c.sum(axis=0) / np.sqrt(wide)
    more = beta - alpha**2
    if more >= 0:
        return mean, slope, np.concatenate([c, np.sqrt(more) * mean[None]])
    # Σ c cᵀ − |more| b bᵀ = cᵀ (I − |more| w wᵀ) c with w = 1/γ: its root is I − μ w wᵀ
    size = d / wide
    mu = (1.0 - np.sqrt(max(0.0, 1.0 + more * size))) / size
    return mean, slope, c - mu * mean / np.sqrt(wide)
