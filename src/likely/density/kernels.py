"""Kernel functions of kernel density estimates, normalized in any number of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, betaln, ndtr, ndtri

from likely.core.arrays import Array, check_option
from likely.core.errors import DomainError, sentence
from likely.distributions.student_t.student_t import StudentT

KernelName = Literal[
    "gaussian", "t", "cube", "exponential", "cosine",
    "tophat", "epanechnikov", "quartic", "triweight", "linear", "tricube",
]  # fmt: skip
BALLS: dict[str, tuple[float, float]] = {  # (1 − r^a)^b inside the unit ball
    "tophat": (2.0, 0.0),
    "epanechnikov": (2.0, 1.0),
    "quartic": (2.0, 2.0),
    "triweight": (2.0, 3.0),
    "linear": (1.0, 1.0),
    "tricube": (3.0, 3.0),
}
MARGINAL_KERNELS = ("gaussian", "t", "cube")  # their marginals are kernels of the same name


class Kernel(NamedTuple):
    """A kernel of d columns at bandwidth 1: number and shape in `density._loops`, height, variance and sampler."""

    code: int
    a: float
    b: float
    log_height: float  # log k(0): it integrates to 1
    variance: float  # of each column; infinite for a t of 2 degrees of freedom or less
    draw: Callable[[int, Generator], Array]  # (n, d) about 0


def kernel_of(name: str, d: int, dof: float) -> Kernel:
    """The kernel of that name in d dimensions, normalized there.

    >>> kernel_of("cube", 3, 3.0).variance, round(float(np.exp(kernel_of("epanechnikov", 1, 3.0).log_height)), 2)
    (0.0833..., 0.75)
    """
    if name == "gaussian":
        return Kernel(0, 0.0, 0.0, -0.5 * d * log(2 * pi), 1.0, lambda n, rng: rng.standard_normal((n, d)))
    if name == "t":
        return _student(d, dof)
    if name == "cube":
        return Kernel(4, 0.0, 0.0, 0.0, 1 / 12, lambda n, rng: rng.random((n, d)) - 0.5)
    sphere = log(2) + 0.5 * d * log(pi) - lgamma(0.5 * d)  # log of the unit sphere's surface
    if name == "exponential":
        draw = _radial(d, lambda n, rng: rng.standard_gamma(d, n))
        return Kernel(2, 0.0, 0.0, -sphere - lgamma(d), d + 1.0, draw)
    if name == "cosine":
        mass = _cosine_integral(d)
        variance = _cosine_integral(d + 2) / mass / d
        return Kernel(5, 0.0, 0.0, -sphere - log(mass), variance, _radial(d, lambda n, rng: _cosine_radii(n, d, rng)))
    a, b = BALLS[name]
    log_mass = float(betaln(d / a, b + 1))
    variance = float(np.exp(betaln((d + 2) / a, b + 1) - log_mass)) / d
    draw = _radial(d, lambda n, rng: rng.beta(d / a, b + 1, n) ** (1 / a))
    return Kernel(3, a, b, -sphere - log_mass + log(a), variance, draw)


def _student(d: int, v: float) -> Kernel:
    height = lgamma(0.5 * (v + d)) - lgamma(0.5 * v) - 0.5 * d * log(pi * v)

    def draw(n: int, rng: Generator) -> Array:
        shrink = np.maximum(rng.standard_gamma(0.5 * v, n) / (0.5 * v), 1e-200)
        return rng.standard_normal((n, d)) / np.sqrt(shrink)[:, None]

    return Kernel(1, v, v + d, height, v / (v - 2) if v > 2 else np.inf, draw)


def _cosine_integral(d: int) -> float:
    """∫₀¹ r^(d−1) cos(πr/2) dr = Σ_k (−1)^k (π/2)^(2k+1) Γ(d)/Γ(d + 2k + 2): 12 terms give all digits."""
    term, total = 0.5 * pi / (d * (d + 1)), 0.0
    for k in range(12):
        total += term
        term *= -((0.5 * pi) ** 2) / ((d + 2 * k + 2) * (d + 2 * k + 3))
    return total


def _cosine_radii(n: int, d: int, rng: Generator) -> Array:
    """Samples (n,) of r^(d−1) cos(πr/2) by rejection from r^(d−1) (1 − r²): at least π/4 of them are accepted."""
    out = np.empty(0)
    while len(out) < n:
        r = np.sqrt(rng.beta(0.5 * d, 2.0, n))
        out = np.append(out, r[rng.random(n) * (1.0 - r * r) <= np.cos(0.5 * pi * r)])
    return out[:n]


def _radial(d: int, radius: Callable[[int, Generator], Array]) -> Callable[[int, Generator], Array]:
    def draw(n: int, rng: Generator) -> Array:
        z = rng.standard_normal((n, d))
        return z * (radius(n, rng) / np.maximum(np.linalg.norm(z, axis=1), 1e-300))[:, None]

    return draw


def cdf_of(name: str, u: Array, dof: float) -> Array:
    """P(U ≤ u) of a kernel in one dimension."""
    if name == "gaussian":
        return np.asarray(ndtr(u))
    if name == "t":
        return StudentT([0.0], [1.0], dof).cdf(u)
    if name == "cube":
        return np.clip(u + 0.5, 0.0, 1.0)
    if name == "exponential":
        tail = 0.5 * np.exp(-np.abs(u))
        return np.where(u < 0, tail, 1.0 - tail)
    if name == "cosine":
        tail = np.sin(0.25 * pi * np.maximum(1.0 - np.abs(u), 0.0)) ** 2
        return np.where(u < 0, tail, 1.0 - tail)
    a, b = BALLS[name]
    tail = 0.5 * betainc(b + 1, 1 / a, np.maximum(1.0 - np.abs(u) ** a, 0.0))  # without cancellation
    return np.where(u < 0, tail, 1.0 - tail)


def reach_of(name: str, p: Array, dof: float) -> Array:
    """Distance from its point within which a kernel's quantiles of p and 1 − p lie, in bandwidths."""
    least = np.minimum(p, 1.0 - p)
    if name == "gaussian":
        return np.maximum(-ndtri(least), 1.0)
    if name == "t":
        return np.maximum(-StudentT([0.0], [1.0], dof).quantile(least), 1.0)
    return np.maximum(-np.log(2 * np.maximum(least, 1e-308)), 1.0) if name == "exponential" else np.ones_like(p)


def checked_kernel(name: str, dof: float, whose: str) -> None:
    """Refuse an unknown kernel, or degrees of freedom that are not positive (Ney's M = (dof + d)/2 is above d/2)."""
    check_option(name, KernelName, whose, "kernel")
    if not 0 < dof < np.inf:
        raise DomainError(sentence(whose, "dof must be positive", dof))
