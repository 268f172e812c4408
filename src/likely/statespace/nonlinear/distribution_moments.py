"""Means and covariances of stacks of distributions, for filters by Gaussian approximation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, all_finite
from likely.core.errors import DomainError, LikelyError, ShapeError, sentence
from likely.distributions.gaussian.gaussian import Gaussian
from likely.mixture.mixture import Mixture
from likely.statespace.nonlinear.function_arguments import named
from likely.statespace.nonlinear.joint_gaussian import root_of

AXES = {"full": 2, "diagonal": 1, "spherical": 0}  # of one covariance


class DistributionMoments(NamedTuple):
    """Means and covariances of N distributions, and the stack of distributions."""

    mean: Array  # (N, p)
    spread: Array  # covariances in the shape of their kind, with a leading N unless all have one
    kind: str  # full, diagonal, spherical
    distribution: Any

    @property
    def covariance(self) -> Array:
        """Covariances as full matrices: (N, p, p), or (p, p) if all share one."""
        return _matrix(self.spread, self.kind, self.mean.shape[1])

    @property
    def first(self) -> Array:
        """The covariance of the first distribution (p, p)."""
        c = self.covariance
        return c if c.ndim == 2 else c[0]

    def noise(self) -> Array:
        """Root (or standard deviations) of the noise of the first distribution, as `Linear` takes it."""
        v = self._spread
        if self.kind == "full":
            return root_of(v)
        return np.sqrt(v) if v.ndim else np.full(self.mean.shape[1], math.sqrt(v))

    def noisy(self) -> bool:
        """True if every entry of the first distribution has positive variance."""
        v = self._spread
        return min((v.diagonal() if self.kind == "full" else v.ravel()).tolist()) > 0

    @property
    def _spread(self) -> Array:
        return self.spread if self.spread.ndim == AXES[self.kind] else self.spread[0]


def distribution_moments(distribution: Any, members: int, whose: str, what: str, t: int) -> DistributionMoments:
    """Mean and covariance of each of N distributions of any family: Gaussian, StudentT, Poisson, Mixture …

    The other arguments are for error messages: the filter's name, which of its distributions these are, the frame.

    >>> import likely as lk
    >>> distribution_moments(lk.Poisson([[2.0, 3.0]]), 1, "test", "transition", 1).covariance.tolist()
    [[[2.0, 0.0], [0.0, 3.0]]]
    """
    if isinstance(distribution, Gaussian):
        mean, spread, kind, finite = (
            distribution.mean,
            distribution.covariance,
            distribution.kind,
            distribution.has_finite_moments,
        )
    else:
        (mean, spread), kind = _written_out(distribution, named(whose, what, t)), "full"
        finite = all_finite(mean) and all_finite(spread)
    mean = mean[None] if members == 1 and mean.ndim == 1 else mean
    if mean.ndim != 2 or len(mean) != members:
        expected = (
            f"the distribution of {members} states must be a stack of {members} members, means ({members}, columns)"
        )
        remedy = "write the function for a stack of states (N, d), not for one state"
        raise ShapeError(sentence(named(whose, what, t), expected, f"means {mean.shape}", remedy))
    if not finite:
        expected, remedy = "means and covariances must be finite", "check the function at these states"
        raise DomainError(sentence(named(whose, what, t), expected, "NaN or infinity", remedy))
    return DistributionMoments(mean, spread, kind, distribution)


def _written_out(distribution: Any, whose: str) -> tuple[Array, Array]:
    try:
        return (
            (distribution.mean, distribution.covariance) if isinstance(distribution, Mixture) else _found(distribution)
        )
    except LikelyError as error:
        raise DomainError(
            sentence(whose, "its distributions must have a mean and a covariance", f'"{error}"')
        ) from error


def _found(distribution: Any) -> tuple[Array, Array]:
    mean = getattr(distribution, "mean", None)
    if mean is None or isinstance(mean, dict | list) or callable(mean):
        raise DomainError(
            sentence(type(distribution).__name__, "it has no numeric mean", remedy="return a distribution that has one")
        )
    return np.asarray(mean, dtype=np.float64), _covariance(distribution)


def _covariance(distribution: Any) -> Array:
    written_out = getattr(distribution, "covariance_matrix", None)
    if written_out is None and getattr(distribution, "kind", "full") == "full":
        written_out = getattr(distribution, "covariance", None)
    if written_out is not None:
        return np.asarray(written_out, dtype=np.float64)
    variance = getattr(distribution, "variance", None)
    if variance is None or isinstance(variance, dict | list) or callable(variance):
        expected = "it has neither covariance nor variance"
        raise DomainError(sentence(type(distribution).__name__, expected, remedy="return a distribution that has one"))
    v = np.asarray(variance, dtype=np.float64)
    return v[..., None] * np.eye(v.shape[-1])


def _matrix(covariance: Array, kind: str, d: int) -> Array:
    """A covariance as a full matrix."""
    if kind == "full":
        return covariance
    return (covariance if kind == "diagonal" else covariance[..., None])[..., None] * np.eye(d)
