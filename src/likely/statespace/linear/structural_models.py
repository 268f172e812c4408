"""Structural time-series models: local level, trend, seasonal, cycle, autoregression, kinematic models, and sums."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, check_option, parameter
from likely.core.docstrings import complete
from likely.core.errors import DomainError, ShapeError, sentence
from likely.numerics.lyapunov import solve_discrete_lyapunov
from likely.numerics.sde_discretization import discretize
from likely.numerics.spd import is_symmetric
from likely.statespace.linear.sums_of_models import added, blocks, kron

SeasonalForm = Literal["dummy", "trigonometric"]


@complete
class StructuralModels:
    """Constructors of structural models as a `LinearGaussian`, and their sum `+`.

    Everywhere `initial=(mean, covariance)` is the distribution of the initial state: (d,) and (d, d), or a number or
    variances. Without it, nonstationary states (positions, levels, seasons) are exactly diffuse, and stationary ones
    have their stationary distribution. Covariances are a number (the same for all columns), one number per column, or a
    matrix.
    """

    @classmethod
    def constant_velocity(
        cls,
        dim: int = 1,
        dt: ArrayLike = 1.0,
        spectral_density: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        initial: Any = None,
    ) -> Self:
        """Constant-velocity model: white-noise acceleration; the position is observed.

        `spectral_density` is that of the acceleration, q: per step dt the velocity gains variance q dt, the position
        q dt³/3 (exact). States: `dim` positions, then `dim` velocities. `dt` may be the T − 1 steps between T frames.

        Parameters
        ----------
        dt : float or array-like (T − 1,), default 1.0
            Time between frames: one number, or each step.

        Examples
        --------
        >>> import likely as lk
        >>> m = lk.LinearGaussian.constant_velocity(dim=1, dt=2.0, spectral_density=3.0, observation_variance=0.25)
        >>> m.transition.tolist(), m.process_covariance.tolist()
        ([[1.0, 2.0], [0.0, 1.0]], [[8.0, 6.0], [6.0, 6.0]])
        """
        return _made(cls, _moving(cls.__name__, 2, dim, dt, spectral_density, observation_variance), initial)

    @classmethod
    def constant_acceleration(
        cls,
        dim: int = 1,
        dt: ArrayLike = 1.0,
        spectral_density: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        initial: Any = None,
    ) -> Self:
        """Constant-acceleration model: white-noise jerk of the given spectral density; the position is observed.

        States: `dim` positions, then velocities, then accelerations. `dt` as in `constant_velocity`.

        Parameters
        ----------
        dt : float or array-like (T − 1,), default 1.0
            Time between frames: one number, or each step.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.constant_acceleration(dt=2.0).transition[0].tolist()
        [1.0, 2.0, 2.0]
        """
        return _made(cls, _moving(cls.__name__, 3, dim, dt, spectral_density, observation_variance), initial)

    @classmethod
    def local_level(
        cls, level_variance: ArrayLike = 1.0, observation_variance: ArrayLike = 1.0, dim: int = 1, initial: Any = None
    ) -> Self:
        """Local level model: a random walk with steps of `level_variance`, one state per column, observed with noise.

        Parameters
        ----------
        level_variance : float or array-like, default 1.0
            Variance of the steps of the level.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.local_level(1469.0, 15099.0).process_covariance.tolist()
        [[1469.0]]
        """
        p, name = count(dim, cls.__name__, "dim"), cls.__name__
        one, Q, R = (
            np.eye(p),
            covariance_of(level_variance, p, name, "level_variance"),
            covariance_of(observation_variance, p, name, "observation_variance"),
        )
        return _made(
            cls, {"transition": one, "process_covariance": Q, "observation": one, "observation_covariance": R}, initial
        )

    @classmethod
    def local_trend(
        cls,
        level_variance: ArrayLike = 1.0,
        slope_variance: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        dim: int = 1,
        initial: Any = None,
    ) -> Self:
        """Local linear trend: level and slope are random walks with steps of these variances.

        `level_variance=0` gives a smooth trend.

        States: `dim` levels, then `dim` slopes.

        Parameters
        ----------
        level_variance : float or array-like, default 1.0
            Variance of the steps of the level.
        slope_variance : float or array-like, default 1.0
            Variance of the steps of the slope.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.local_trend(0.5, 0.1, 2.0).process_covariance.tolist()
        [[0.5, 0.0], [0.0, 0.1]]
        """
        p, name = count(dim, cls.__name__, "dim"), cls.__name__
        parts = {
            "transition": kron([[1.0, 1.0], [0.0, 1.0]], np.eye(p)),
            "process_covariance": blocks(
                covariance_of(level_variance, p, name, "level_variance"),
                covariance_of(slope_variance, p, name, "slope_variance"),
            ),
            "observation": kron([[1.0, 0.0]], np.eye(p)),
            "observation_covariance": covariance_of(observation_variance, p, name, "observation_variance"),
        }
        return _made(cls, parts, initial)

    @classmethod
    def seasonal(
        cls, period: float, seasonal_variance: ArrayLike = 0.0, observation_variance: ArrayLike = 0.0,
        form: SeasonalForm = "dummy", harmonics: int | None = None, initial: Any = None,
    ) -> Self:  # fmt: skip
        """Seasonal pattern that repeats after `period` frames and sums to 0; it changes if `seasonal_variance` > 0.

        - `form="dummy"`: the effect of a season is minus the sum of the period − 1 before it, plus noise of variance
          `seasonal_variance`. States: the effects of this season, the last one, … (period − 1).
        - `form="trigonometric"`: `harmonics` of periods period/j (all, by default), each with noise of variance
          `seasonal_variance`; the period need not be an integer. States: cosine and sine part of each harmonic (of
          that of period 2 only the first). The signal is the sum of the first parts.

        Parameters
        ----------
        period : float
            Number of frames after which the pattern repeats.
        seasonal_variance : float or array-like, default 0.0
            Variance of the changes of the pattern.
        form : {"dummy", "trigonometric"}, default "dummy"
            How the pattern is represented.
        harmonics : int, optional
            Number of harmonics of the trigonometric form; None is all of them.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.seasonal(4).transition.tolist()
        [[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        """
        name = f"{cls.__name__}.seasonal"
        check_option(form, SeasonalForm, name, "form")
        if form == "dummy":
            if harmonics is not None:
                raise DomainError(sentence(name, "harmonics belong to form='trigonometric'", harmonics))
            A, Q, C = _dummies(count(period, name, "period", 2), variance(seasonal_variance, name, "seasonal_variance"))
        else:
            A, Q, C = _waves(
                real(period, name, "period", 2.0),
                harmonics,
                variance(seasonal_variance, name, "seasonal_variance"),
                name,
            )
        R = covariance_of(observation_variance, 1, name, "observation_variance")
        return _made(
            cls, {"transition": A, "process_covariance": Q, "observation": C, "observation_covariance": R}, initial
        )

    @classmethod
    def cycle(
        cls,
        period: float,
        damping: float = 1.0,
        cycle_variance: ArrayLike = 1.0,
        observation_variance: ArrayLike = 0.0,
        initial: Any = None,
    ) -> Self:
        """Stochastic cycle of the given `period`: damped by `damping` per frame, with noise of `cycle_variance`.

        States: the cycle, and its quadrature component (a quarter of a period later). With damping < 1 the initial
        state is stationary, of variance cycle_variance/(1 − damping²); with 1 it is diffuse.

        Parameters
        ----------
        period : float
            Period in frames.
        damping : float, default 1.0
            Factor of damping per frame.
        cycle_variance : float or array-like, default 1.0
            Variance of the noise of the cycle.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.cycle(4, 0.5, cycle_variance=3.0).initial_covariance.round(12).tolist()
        [[4.0, 0.0], [0.0, 4.0]]
        """
        name = f"{cls.__name__}.cycle"
        size, q = real(damping, name, "damping", 0.0), variance(cycle_variance, name, "cycle_variance")
        if size > 1.0:
            raise DomainError(sentence(name, "damping must lie in 0 … 1", size))
        A = size * _rotation(2 * np.pi / real(period, name, "period", 2.0))
        R = covariance_of(observation_variance, 1, name, "observation_variance")
        parts = {
            "transition": A,
            "process_covariance": q * np.eye(2),
            "observation": np.array([[1.0, 0.0]]),
            "observation_covariance": R,
        }
        if size < 1.0:
            parts |= {"initial_mean": np.zeros(2), "initial_covariance": q / ((1 - size) * (1 + size)) * np.eye(2)}
        return _made(cls, parts, initial)

    @classmethod
    def ar(
        cls,
        coefficients: ArrayLike,
        innovation_variance: ArrayLike = 1.0,
        observation_variance: ArrayLike = 0.0,
        mean: ArrayLike = 0.0,
        initial: Any = None,
    ) -> Self:
        """Stationary autoregression y_t − μ = Σ_k φ_k (y_{t−k} − μ) + w_t, w ~ N(0, innovation_variance).

        `coefficients` (K,) of one column, or (K, p, p) of p columns (a vector autoregression). States: y_t − μ,
        y_{t−1} − μ, … (K · p); then, unless `mean` is 0, p constants μ, which are diffuse states with `mean=None`. A
        nonstationary process needs `initial`.

        Parameters
        ----------
        coefficients : array-like (K,) or (K, p, p)
            Coefficients φ of the lags 1 … K.
        innovation_variance : float or array-like, default 1.0
            Variance of the innovations w.
        mean : float, array-like (p,) or None, default 0.0
            Mean μ; None makes it a diffuse state.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.ar([0.5], innovation_variance=3.0).initial_covariance.tolist()
        [[4.0]]
        """
        name = f"{cls.__name__}.ar"
        A, p = _companion(coefficients, name)
        Q = np.zeros_like(A)
        Q[:p, :p] = covariance_of(innovation_variance, p, name, "innovation_variance")
        C, R = np.eye(p, len(A)), covariance_of(observation_variance, p, name, "observation_variance")
        parts = {"transition": A, "process_covariance": Q, "observation": C, "observation_covariance": R}
        if initial is None:
            parts |= {"initial_mean": np.zeros(len(A)), "initial_covariance": solve_discrete_lyapunov(A, Q, name)}
        return _made(cls, _about(parts, mean, p, initial is not None, name), initial)

    def __add__(self, other: Any) -> Self:
        """Sum of two models: the observation is the sum of both; states of the first, then of the second; noises add.

        `components` gives the signals of the parts from smoothed states.

        >>> import likely as lk
        >>> (lk.LinearGaussian.local_level(1.0, 2.0) + lk.LinearGaussian.seasonal(4)).observation.tolist()
        [[1.0, 1.0, 0.0, 0.0]]
        """
        return added(self, other)

    def __radd__(self, other: Any) -> Self:
        """For `sum([a, b, c])`, which starts at 0."""
        return self if isinstance(other, int) and other == 0 else added(other, self)


# ----------------------------------------------------------------------- parts


def _moving(name: str, order: int, dim: Any, dt: Any, noise: Any, observation: Any) -> dict[str, Array]:
    """Integrated white noise of the given order, for each of `dim` columns."""
    p = count(dim, name, "dim")
    A, Q = _steps(np.eye(order, k=1), np.diag([0.0] * (order - 1) + [1.0]), dt, name)
    parts = {
        "transition": kron(A, np.eye(p)),
        "process_covariance": kron(Q, covariance_of(noise, p, name, "spectral_density")),
    }
    C, R = kron(np.eye(1, order), np.eye(p)), covariance_of(observation, p, name, "observation")
    return {**parts, "observation": C, "observation_covariance": R}


def _steps(drift: Array, diffusion: Array, dt: Any, name: str) -> tuple[Array, Array]:
    """A and Q of one step (d, d), or of T − 1 steps (T, d, d): entry t is the step to frame t."""
    steps = parameter(dt, name, "dt")
    if steps.ndim > 1:
        raise ShapeError(sentence(name, "dt must be a number, or the T − 1 steps between frames", steps.shape))
    if not (steps >= 0).all():
        raise DomainError(sentence(name, "dt must not be negative", float(steps.min()), "sort the frames by time"))
    first = steps[:1] if steps.size > 0 and steps.ndim else np.zeros(1)  # not used: no step leads to the first frame
    A, Q = discretize(drift, diffusion, np.concatenate([first, np.atleast_1d(steps)]))
    return (A, Q) if steps.ndim else (A[1], Q[1])


def _dummies(period: int, noise: float) -> tuple[Array, Array, Array]:
    A, Q = np.eye(period - 1, k=-1), np.zeros((period - 1, period - 1))
    A[0], Q[0, 0] = -1.0, noise
    return A, Q, np.eye(1, period - 1)


def _waves(period: float, harmonics: int | None, noise: float, name: str) -> tuple[Array, Array, Array]:
    most = int(period / 2)
    n = most if harmonics is None else count(harmonics, name, "harmonics")
    if n > most:
        raise DomainError(sentence(name, f"a period of {period:g} has at most {most} harmonics", n))
    A, C = np.zeros((0, 0)), np.zeros((1, 0))
    for j in range(1, n + 1):
        alone = 2 * j == period  # cos πt alternates in sign; the sine is 0
        A = blocks(A, np.array([[-1.0]]) if alone else _rotation(2 * np.pi * j / period))
        C = np.concatenate([C, np.eye(1, 1 if alone else 2)], axis=1)
    return A, noise * np.eye(len(A)), C


def _rotation(angle: float) -> Array:
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def _companion(coefficients: Any, name: str) -> tuple[Array, int]:
    """Companion matrix of an autoregression, and its number of columns p."""
    phi = parameter(coefficients, name, "coefficients")
    phi = phi.reshape(-1, 1, 1) if phi.ndim <= 1 else phi
    if phi.ndim != 3 or phi.shape[1] != phi.shape[2] or not len(phi):
        raise ShapeError(sentence(name, "coefficients must have shape (K,) or (K, p, p)", np.shape(coefficients)))
    K, p, _ = phi.shape
    A = np.eye(K * p, k=-p)
    A[:p] = np.concatenate(list(phi), axis=1)
    return A, p


def _about(parts: dict[str, Array], mean: Any, p: int, given: bool, name: str) -> dict[str, Array]:
    """The same with p constant states for the mean, known or (None) diffuse."""
    unknown = mean is None
    mu = np.zeros(p) if unknown else _each(mean, p, name, "mean")
    if not unknown and not mu.any():
        return parts
    d, none = len(parts["transition"]), np.zeros((p, p))
    more = {
        "transition": blocks(parts["transition"], np.eye(p)),
        "process_covariance": blocks(parts["process_covariance"], none),
        "observation": np.concatenate([parts["observation"], np.eye(p)], axis=1),
        "observation_covariance": parts["observation_covariance"],
    }
    if not given:
        more |= {
            "initial_mean": np.concatenate([np.zeros(d), mu]),
            "initial_covariance": blocks(parts["initial_covariance"], none),
        }
    return more | ({"diffuse": np.eye(d + p, p, k=-d)} if unknown and not given else {})


# ----------------------------------------------------------------- checks


def _made(cls: Any, parts: dict[str, Array], start: Any) -> Any:
    return cls(**with_initial(parts, start, cls.__name__))


def with_initial(parts: dict[str, Array], start: Any, name: str) -> dict[str, Array]:
    """The same parts, with a given (mean, covariance) of the initial state."""
    if start is None:
        return parts
    if not isinstance(start, tuple | list) or len(start) != 2:
        expected = "initial must be (mean, covariance) of the initial state"
        raise ShapeError(sentence(name, expected, type(start).__name__))
    d = parts["observation"].shape[-1]
    mean, covariance = (
        _each(start[0], d, name, "initial mean"),
        covariance_of(start[1], d, name, "initial covariance"),
    )
    given = {"initial_mean": mean, "initial_covariance": covariance}
    return {**{k: v for k, v in parts.items() if k not in ("initial_mean", "initial_covariance", "diffuse")}, **given}


def _each(value: Any, n: int, name: str, what: str) -> Array:
    """Array of n numbers, broadcast from one if needed."""
    a = parameter(value, name, what)
    if a.shape not in ((), (n,)):
        raise ShapeError(sentence(name, f"{what} must be a number, or have shape ({n},)", a.shape))
    return np.array(np.broadcast_to(a, (n,)))


def covariance_of(value: Any, p: int, name: str, what: str) -> Array:
    """A covariance (p, p) from a number, p variances, or a matrix."""
    a = parameter(value, name, what)
    a = np.diag(np.broadcast_to(a, (p,))) if a.ndim == 0 or a.shape == (p,) else a
    if a.shape != (p, p):
        expected = f"{what} must be a number, {p} variances or a matrix ({p}, {p})"
        raise ShapeError(sentence(name, expected, a.shape))
    if not is_symmetric(a) or (p and np.linalg.eigvalsh(a)[0] < -1e-9 * np.abs(a).max()):
        expected = f"{what} must be a covariance: symmetric and positive semidefinite"
        raise DomainError(sentence(name, expected, np.array2string(a, precision=4, threshold=16).replace("\n", "")))
    return np.array(a)


def variance(value: Any, name: str, what: str) -> float:
    """A variance: one number, not negative."""
    return float(covariance_of(value, 1, name, what)[0, 0])


def real(value: Any, name: str, what: str, least: float) -> float:
    """A number of at least `least`."""
    a = parameter(value, name, what)
    if a.ndim or not a >= least:
        raise DomainError(sentence(name, f"{what} must be a number of at least {least:g}", value))
    return float(a)


def count(value: Any, name: str, what: str, least: int = 1) -> int:
    """An integer of at least `least`."""
    a = parameter(value, name, what)
    if isinstance(value, bool) or a.ndim or a != np.round(a) or a < least:
        raise DomainError(sentence(name, f"{what} must be an integer of at least {least}", repr(value)))
    return int(a)
