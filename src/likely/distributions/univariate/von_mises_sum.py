"""Sum of two von Mises angles: the predictive distribution of angles whose center is uncertain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array
from likely.distributions.column_distribution import ColumnDistribution
from likely.distributions.symmetric_distribution import Centered
from likely.numerics.bessel import bessel_ratio, bessel_ratio_complement, log_i0_quotient, log_i0_scaled
from likely.numerics.special import LOG_2PI

DROP = 45.0  # of log p: smaller densities are negligible in an integral
NODES, SHARES = np.polynomial.legendre.leggauss(64)
POINTS = 1 << 12  # of the periodic trapezoidal rule, which converges exponentially


@dataclass(frozen=True, eq=False)
class VonMisesSum(Centered, ColumnDistribution):
    """Distribution of the sum of two independent von Mises angles.

    p(x) = I₀(|κ eⁱˣ + c eⁱᵐ|) / (2π I₀(κ) I₀(c)): the sum of two independent von Mises angles, and m.

    The predictive distribution of `VonMisesPrior`: κ is the known concentration of the angles, c that of the posterior
    of their center. It has `log_prob` and `sample`, but no estimator of its own.

    Parameters
    ----------
    center : array-like (d,) or (K, d)
        Centers m, in radians.
    concentration : array-like (d,) or (K, d)
        Known concentrations κ of the angles.
    belief : array-like (d,) or (K, d)
        Concentrations c of the posterior of the centers.

    See Also
    --------
    VonMises : One angle.
    VonMisesPrior : The prior whose predictive distribution it is.

    Examples
    --------
    >>> VonMisesSum(0.0, 2.0, 0.0).log_prob([0.0, 1.0]).round(4)
    array([-1.8379, -1.8379])
    """

    center: Annotated[Array, declared.numbers("* d")]  # m: (d,) or (K, d)
    concentration: Annotated[Array, declared.numbers("* d", 0)]  # κ
    belief: Annotated[Array, declared.numbers("* d", 0)]  # c

    _domains: ClassVar[dict[str, str]] = {"center": "real", "concentration": "unsigned", "belief": "unsigned"}
    _harmless = 0.0

    def _log_pdf(self, x: Array, center: Any, concentration: Array, belief: Array) -> Array:
        square = np.sin(0.5 * (x - center)) ** 2
        whole = concentration + belief
        length = np.sqrt(np.maximum(whole**2 - 4 * concentration * belief * square, 0.0))
        lost = np.where(whole > 0, 4 * concentration * belief * square / np.where(whole > 0, whole + length, 1.0), 0.0)
        more, less = np.maximum(concentration, belief), np.minimum(concentration, belief)
        return np.asarray(log_i0_quotient(length, more) - log_i0_scaled(less) - lost - LOG_2PI)

    def _draw(
        self, shape: tuple[int, ...], rng: Generator, center: Array, concentration: Array, belief: Array
    ) -> Array:
        angle = rng.vonmises(0.0, concentration + 0.0, shape) + rng.vonmises(0.0, belief + 0.0, shape)  # −0 is none
        return np.asarray(center + np.angle(np.exp(1j * angle)))

    def _entropy(self, center: Array, concentration: Array, belief: Array) -> Array:
        """Integral over one period, or over its relevant part: log p falls at least by κ c / (κ + c) · 2 z² / π²."""
        with np.errstate(divide="ignore"):
            wide = np.pi * np.sqrt(0.5 * DROP * (1 / concentration + 1 / belief))
        reach = np.minimum(wide, np.pi)
        x = np.linspace(-1.0, 1.0, POINTS, endpoint=False).reshape(-1, *(1,) * np.ndim(concentration)) * reach
        logs = self._log_pdf(x, np.zeros_like(center), concentration, belief)
        return np.asarray(-(np.exp(logs) * logs).sum(axis=0) * 2 * reach / POINTS)

    @property
    def variance(self) -> Array:
        """The circular variance 1 − A(κ) A(c)."""
        rest = bessel_ratio_complement(self.concentration)
        return np.asarray(rest + bessel_ratio(self.concentration) * bessel_ratio_complement(self.belief))

    @property
    def n_parameters(self) -> int:
        """Free parameters: three per column."""
        return 3 * int(self.center.size)

    def _cdf(self, x: Array, center: Array, concentration: Array, belief: Array) -> Array:
        z, kappa, c = np.broadcast_arrays(x - center, concentration, belief)
        below = self._lower_share(-np.minimum(np.abs(z), np.pi), kappa, c)
        return np.where(z <= 0, below, 1.0 - below)

    def _lower_share(self, z: Array, kappa: Array, c: Array) -> Array:
        """P(Z ≤ z ≤ 0) about the center 0: quadrature from where log p is 45 lower, or from −π."""
        top = self._log_pdf(z, 0.0, kappa, c)
        start = _bisection(lambda t: self._log_pdf(t, 0.0, kappa, c) >= top - DROP, np.full(z.shape, -np.pi), z)
        half = 0.5 * (z - start)
        at = start[..., None] + half[..., None] * (1 + NODES)
        heights = np.exp(self._log_pdf(at, 0.0, kappa[..., None], c[..., None]))
        return np.asarray((heights @ SHARES) * half)

    def _quantile(self, p: Array, center: Array, concentration: Array, belief: Array) -> Array:
        p, kappa, c = np.broadcast_arrays(p, concentration, belief)
        tail = np.minimum(p, 1.0 - p)
        low, high = np.full(p.shape, -np.pi), np.zeros(p.shape)
        z = _bisection(lambda t: self._lower_share(t, kappa, c) >= tail, low, high)
        return np.asarray(center + np.where(p <= 0.5, z, -z))


def _bisection(reached: Callable[[Array], Any], low: Array, high: Array) -> Array:
    """Bisection for the point where `reached`, true at `high`, begins to hold; −π where it holds at `low`."""
    done = reached(low)
    for _ in range(70):
        middle = 0.5 * (low + high)
        yes = reached(middle)
        low, high = np.where(yes, low, middle), np.where(yes, middle, high)
    return np.where(done, -np.pi, high)
