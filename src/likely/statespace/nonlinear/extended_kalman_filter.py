"""Extended Kalman filter (EKF), and its iterated form: linearization at the mean of the belief."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, check_integer
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import spd
from likely.numerics.special import LOG_2PI
from likely.statespace.nonlinear.distribution_moments import DistributionMoments
from likely.statespace.nonlinear.function_arguments import DISTRIBUTION, wrapped
from likely.statespace.nonlinear.gaussian_filter import ConditionalMoments, GaussianFilter, turned
from likely.statespace.nonlinear.jacobians import displaced, given_slope, slope
from likely.statespace.nonlinear.joint_gaussian import Conditioned, Linear, Sizes, grain_of

CONVERGED = 1e-8  # length of a step, in standard deviations of the prior belief, below which iterations stop
ROUNDING = 1e-12  # relative decrease of a log-density that counts as rounding
HALVINGS = 20
SLOPES = {"transition": "_transition_jacobian", "observation": "_observation_jacobian"}  # with all arguments: `wrapped`


@complete
@dataclass(frozen=True, eq=False)
class ExtendedKalmanFilter(GaussianFilter):
    """Extended Kalman filter: z ≈ h(m) + H (x − m), H = ∂h/∂x at m, covariance H P Hᵀ + V(m) (Jazwinski 1970, 8.3).

    Here h is the mean of the distributions of the model, V their covariance. Jacobians are central differences unless
    they are given. Differences evaluate the distributions at 2d + 1 states per frame instead of one: with 7 states a
    filter took 1.5 times as long as with given Jacobians. `iterations` > 1 is the iterated filter: Gauss–Newton steps,
    shortened so that the posterior density never decreases; the mean is then the mode (Bell and Cathey 1993). log p(y)
    is that under the last linearization.

    Parameters
    ----------
    model : StateSpace
        The model; its distributions have a mean and a covariance.
    wrap : sequence of int, optional
        Columns of the observation that are angles, in radians.
    wrap_state : sequence of int, optional
        Columns of the state that are angles, in radians.
    iterations : int, default 1
        Number of Gauss–Newton steps per update.
    transition_jacobian : callable, optional
        Jacobian of the transition: a function of the same arguments as the distribution, which returns (1, d, d) for a
        stack of one state.
    observation_jacobian : callable, optional
        Jacobian of the observation, (1, p, d).

    See Also
    --------
    UnscentedKalmanFilter : Sigma points instead of derivatives.

    References
    ----------
    Jazwinski (1970), 8.3; Bell and Cathey (1993).

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.StateSpace(lk.Gaussian([1.0], 0.1), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Gaussian(x**2, 0.1))
    >>> ExtendedKalmanFilter(model).filter([1.2, 1.5, 1.4]).mean[:, 0].round(3)
    array([1.08 , 1.17 , 1.177])
    """

    _: KW_ONLY
    iterations: int = 1
    transition_jacobian: Callable[..., Any] | None = None
    observation_jacobian: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.iterations, "ExtendedKalmanFilter", "iterations", 1)
        for what, kept in SLOPES.items():
            name = f"{what}_jacobian"
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise DomainError(sentence("ExtendedKalmanFilter", f"{name} must be a function", repr(given)))
            found = None if given is None else wrapped(given, DISTRIBUTION, f"ExtendedKalmanFilter.{name}")
            object.__setattr__(self, kept, found)

    def linearize(self, mean: Array, root: Array, curve: ConditionalMoments, t: int, u: ArrayLike) -> Linear:
        """Linearization at the mean."""
        return self._tangent(mean, root, curve, t, u)[0]

    def _tangent(
        self, x: Array, root: Array, curve: ConditionalMoments, t: int, u: Any
    ) -> tuple[Linear, DistributionMoments]:
        given = self.__dict__[SLOPES[curve.what]]
        if given is None:
            H, found, apart = _differences(x, root, curve, t, u)
        else:
            found, apart = curve.at(x[None], t, u), 1.0
            H = given_slope(given(x[None], t, u), (found.mean.shape[1], len(x)), curve.whose, curve.what, t)
        sizes = partial(_sizes, found, root, H, apart)
        return Linear(found.mean[0], root.dot(H.T), found.noise(), sizes, found.noisy), found

    def _conditioned(self, mean: Array, root: Array, t: int, y: Array, at: Index | slice | None, u: Any) -> Conditioned:
        return (self._mode if self.iterations > 1 else super()._conditioned)(mean, root, t, y, at, u)

    def _mode(self, m: Array, root: Array, t: int, y: Array, there: Index | slice | None, u: Any) -> Conditioned:
        """Posterior mode by Gauss–Newton in whitened coordinates ξ, x = m + rootᵀ ξ.

        log p(x | y) = log p(y | x) − ½ |ξ|² + constant.
        """
        at = np.zeros(len(m))
        for _ in range(self.iterations):
            linearized, found = self._tangent(m + at @ root, root, self._observation, t, u)
            self._check_length(y, linearized.mean)
            best = self._condition_on(m, root, linearized, y, there, at @ linearized.slope)
            if np.isneginf(best.log_prob):
                return best
            step = best.white - at
            if np.abs(step).max() < CONVERGED:
                break
            height = self._log_likelihood_at(found, y) - 0.5 * float(at @ at)
            step = self._backtracked(m, root, t, u, y, at, step, height - ROUNDING * abs(height))
            if not step.any():
                break
            at = at + step
        return best._replace(mean=m + at @ root)

    def _backtracked(
        self, m: Array, root: Array, t: int, u: Any, y: Array, at: Array, step: Array, height: float
    ) -> Array:
        """Backtracking: the first of the steps 1, ½, ¼ … that does not lower the posterior density; 0 if all do."""
        for _ in range(HALVINGS):
            there = at + step
            found = self._observation.at((m + there @ root)[None], t, u)
            if self._log_likelihood_at(found, y) - 0.5 * float(there @ there) >= height:
                return step
            step = 0.5 * step
        return np.zeros_like(step)

    def _log_likelihood_at(self, found: DistributionMoments, y: Array) -> float:
        """log p(y | x) of the first state, from the distribution itself."""
        away = turned(y - found.mean[0], self.wrap)
        if isinstance(
            found.distribution, Gaussian
        ):  # a fifth of the time of the distribution's own log_prob, made for many members
            there = ~np.isnan(y)
            root = spd.cholesky(found.first[np.ix_(there, there)])
            if root is not None:
                with np.errstate(over="ignore", invalid="ignore"):
                    z = spd.inverse_factor(root) @ away[there]
                    return float(-0.5 * (z @ z + spd.logdet(root) + len(z) * LOG_2PI))
        return float(np.ravel(found.distribution.log_prob((found.mean[0] + away)[None]))[0])


def _differences(
    x: Array, root: Array, curve: ConditionalMoments, t: int, u: Any
) -> tuple[Array, DistributionMoments, float]:
    """Jacobian by central differences, the moments evaluated for it, and the largest ratio of deviation to step."""
    d, spread = len(x), np.sqrt((root * root).sum(axis=0))
    points = displaced(x, spread)
    found = curve.at(points, t, u)
    H = slope(points, turned(found.mean[1 : d + 1] - found.mean[d + 1 :], curve.angles))
    return H, found, max(1.0, float((spread / np.abs(points[1 : d + 1] - x).diagonal()).max()))


def _sizes(found: DistributionMoments, root: Array, H: Array, apart: float) -> Sizes:
    size, reach = np.abs(found.mean[0]), (np.abs(root) @ np.abs(H.T)).max(axis=0)
    # the rounding of a Jacobian is that of the mean divided by the step
    return Sizes(size + reach, grain_of(apart * size + reach, found.first))
