"""Continuous-time models by name: integrated Wiener, Ornstein–Uhlenbeck, Matérn and cycle processes, and sums."""

from __future__ import annotations

from math import comb, factorial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.numerics.lyapunov import solve_continuous_lyapunov
from likely.statespace.linear.structural_models import count, covariance_of, real, variance, with_initial
from likely.statespace.linear.sums_of_models import blocks, check_addable, concatenated, joined_initial, kron


@complete
class SDEModels:
    """Constructors of a `LinearSDE`, and the sum `+`.

    Everywhere `initial=(mean, covariance)` is the distribution of the state at the first observation. Without it,
    nonstationary states are exactly diffuse, and stationary ones have their stationary distribution. States of several
    columns are grouped: all values, then all first derivatives, and so on.
    """

    @classmethod
    def integrated(
        cls, order: int, dim: int = 1, spectral_density: ArrayLike = 1.0, observation_variance: ArrayLike = 1.0,
        initial: Any = None,
    ) -> Self:  # fmt: skip
        """Integrated Wiener process: white noise integrated `order` times; smoothing splines (order 2: cubic).

        Parameters
        ----------
        order : int
            Number of integrations.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearSDE.integrated(2).drift.tolist()
        [[0.0, 1.0], [0.0, 0.0]]
        """
        name = f"{cls.__name__}.integrated"
        n, p = count(order, name, "order"), count(dim, name, "dim")
        Qc = kron(np.diag([0.0] * (n - 1) + [1.0]), covariance_of(spectral_density, p, name, "spectral_density"))
        F, C = kron(np.eye(n, k=1), np.eye(p)), kron(np.eye(1, n), np.eye(p))
        R = covariance_of(observation_variance, p, name, "observation_variance")
        return _made(cls, {"drift": F, "diffusion": Qc, "observation": C, "observation_covariance": R}, initial)

    @classmethod
    def wiener(
        cls, dim: int = 1, spectral_density: ArrayLike = 1.0, observation_variance: ArrayLike = 1.0, initial: Any = None
    ) -> Self:
        """Wiener process (random walk): the variance grows by `spectral_density` per unit of time.

        >>> import likely as lk
        >>> lk.LinearSDE.wiener(spectral_density=2.0).at([0.0, 1.5]).process_covariance.ravel()
        array([3.])
        """
        return cls.integrated(1, dim, spectral_density, observation_variance, initial)

    @classmethod
    def constant_velocity(
        cls, dim: int = 1, spectral_density: ArrayLike = 1.0, observation_variance: ArrayLike = 1.0, initial: Any = None
    ) -> Self:
        """Constant-velocity model: white-noise acceleration of the given spectral density.

        >>> import likely as lk
        >>> lk.LinearSDE.constant_velocity().at([0.0, 2.0]).transition.tolist()
        [[1.0, 2.0], [0.0, 1.0]]
        """
        return cls.integrated(2, dim, spectral_density, observation_variance, initial)

    @classmethod
    def constant_acceleration(
        cls, dim: int = 1, spectral_density: ArrayLike = 1.0, observation_variance: ArrayLike = 1.0, initial: Any = None
    ) -> Self:
        """Constant-acceleration model: white-noise jerk of the given spectral density.

        >>> import likely as lk
        >>> lk.LinearSDE.constant_acceleration(dim=2).drift.shape
        (6, 6)
        """
        return cls.integrated(3, dim, spectral_density, observation_variance, initial)

    @classmethod
    def ornstein_uhlenbeck(
        cls,
        rate: float,
        spectral_density: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        dim: int = 1,
        initial: Any = None,
    ) -> Self:
        """Ornstein–Uhlenbeck process dx = −rate · x dt + dβ, of stationary variance spectral_density/(2 · rate).

        Parameters
        ----------
        rate : float
            Rate of the decay per unit of time.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearSDE.ornstein_uhlenbeck(0.5, spectral_density=3.0).initial_covariance.round(12).tolist()
        [[3.0]]
        """
        name = f"{cls.__name__}.ornstein_uhlenbeck"
        r, p = _positive(rate, name, "rate"), count(dim, name, "dim")
        Qc, R = (
            covariance_of(spectral_density, p, name, "spectral_density"),
            covariance_of(observation_variance, p, name, "observation_variance"),
        )
        parts = {"drift": -r * np.eye(p), "diffusion": Qc, "observation": np.eye(p), "observation_covariance": R}
        return _made(cls, parts | _stationary(Qc / (2 * r)), initial)

    @classmethod
    def matern(
        cls,
        order: float = 1.5,
        length_scale: float = 1.0,
        variance: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        initial: Any = None,
    ) -> Self:
        """Gaussian process with a Matérn kernel of half-integer `order` ν = 1/2, 3/2, 5/2, …, as an exact SDE.

        (d/dt + λ)^{ν + 1/2} f = white noise, λ = √(2ν)/length_scale, of density variance · (2λ)^{2ν} (n!)²/(2n)!,
        n = ν − 1/2 (Hartikainen and Särkkä 2010). States: f and its derivatives. `observation_variance` is that of the
        observation noise. Regression costs O(T) here and O(T³) with a kernel matrix.

        Parameters
        ----------
        order : float, default 1.5
            Smoothness ν, one of 1/2, 3/2, 5/2 and so on.
        length_scale : float, default 1.0
            Length scale of the kernel.
        variance : float, default 1.0
            Variance of the process.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearSDE.matern(1.5, length_scale=3.0**0.5, variance=2.0).initial_covariance.round(12).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
        """
        name = f"{cls.__name__}.matern"
        nu, length = _positive(order, name, "order"), _positive(length_scale, name, "length_scale")
        n = nu - 0.5
        if n != round(n) or n > 6:
            raise DomainError(
                sentence(name, "order must be 1/2, 3/2, 5/2, … up to 13/2", nu, "round it to one of them")
            )
        rate, n = np.sqrt(2 * nu) / length, int(n)
        size = _variance(variance, name) * (2 * rate) ** (2 * n + 1) * factorial(n) ** 2 / factorial(2 * n)
        F, Qc = _cascade(n + 1, float(rate)), np.diag([0.0] * n + [float(size)])
        R = covariance_of(observation_variance, 1, name, "observation_variance")
        parts = {"drift": F, "diffusion": Qc, "observation": np.eye(1, n + 1), "observation_covariance": R}
        return _made(cls, parts | _stationary(solve_continuous_lyapunov(F, Qc, name)), initial)

    @classmethod
    def cycle(
        cls,
        period: float,
        damping: float = 0.0,
        cycle_variance: ArrayLike = 1.0,
        observation_variance: ArrayLike = 0.0,
        initial: Any = None,
    ) -> Self:
        """Stochastic cycle of the given `period`, damped at the rate `damping`, driven by white noise.

        States: the cycle, and its quadrature component (a quarter of a period later). With damping > 0 the initial
        state is stationary, of variance cycle_variance/(2 · damping); with 0 it is diffuse.

        Parameters
        ----------
        period : float
            Period of the cycle, in units of time.
        damping : float, default 0.0
            Rate of damping per unit of time.
        cycle_variance : float, default 1.0
            Spectral density of the driving white noise.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearSDE.cycle(4.0).at([0.0, 1.0]).transition.round(12).tolist()
        [[0.0, 1.0], [-1.0, 0.0]]
        """
        name = f"{cls.__name__}.cycle"
        w, r = 2 * np.pi / _positive(period, name, "period"), real(damping, name, "damping", 0.0)
        Qc, R = (
            variance(cycle_variance, name, "cycle_variance") * np.eye(2),
            covariance_of(observation_variance, 1, name, "observation_variance"),
        )
        F = np.array([[-r, w], [-w, -r]])
        parts = {"drift": F, "diffusion": Qc, "observation": np.eye(1, 2), "observation_covariance": R}
        return _made(cls, parts | (_stationary(Qc / (2 * r)) if r > 0 else {}), initial)

    def __add__(self, other: Any) -> Self:
        """Sum of two models: the observation is the sum of both; states of the first, then of the second; noises add.

        >>> import likely as lk
        >>> both = lk.LinearSDE.integrated(2) + lk.LinearSDE.cycle(1.0)
        >>> both.observation.tolist(), both.observation_covariance.tolist()
        ([[1.0, 0.0, 1.0, 0.0]], [[1.0]])
        """
        return _added(self, other)

    def __radd__(self, other: Any) -> Self:
        """For `sum([a, b, c])`, which starts at 0."""
        return self if isinstance(other, int) and other == 0 else _added(other, self)


def _made(cls: Any, parts: dict[str, Array], start: Any) -> Any:
    return cls(**with_initial(parts, start, cls.__name__))


def _stationary(covariance: Array) -> dict[str, Array]:
    """Stationary initial distribution with mean 0."""
    return {"initial_mean": np.zeros(len(covariance)), "initial_covariance": covariance}


def _cascade(n: int, rate: float) -> Array:
    """Companion matrix of (s + rate)ⁿ."""
    F = np.eye(n, k=1)
    F[-1] = [-comb(n, k) * rate ** (n - k) for k in range(n)]
    return F


def _positive(value: Any, name: str, what: str) -> float:
    x = real(value, name, what, 0.0)
    if not x > 0:
        raise DomainError(sentence(name, f"{what} must be positive", x))
    return x


def _variance(value: Any, name: str) -> float:
    return variance(value, name, "variance")


def _added(a: Any, b: Any) -> Any:
    check_addable(a, b)
    return type(a)(
        drift=blocks(a.drift, b.drift),
        diffusion=blocks(a.diffusion, b.diffusion),
        observation=concatenated(a.observation, b.observation),
        observation_covariance=a.observation_covariance + b.observation_covariance,
        **joined_initial(a, b),
    )
