"""Bessel functions for circular distributions: the ratio I₁ / I₀, its complement, derivative and inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import i0e, i1e

from likely.core.arrays import Array

FAR = 50.0  # concentrations from which the asymptotic series in 1/κ is exact to rounding


def _series(terms: int) -> list[float]:
    """Coefficients c with 1 − I₁(κ)/I₀(κ) = Σ cₖ κ⁻ᵏ, from the differential equation A′ = 1 − A/κ − A²."""
    c = [0.0, 0.5]
    for k in range(2, terms + 1):
        products = sum(c[i] * c[k - i] for i in range(1, k))
        c.append(0.5 * (products + (k - 2) * c[k - 1]))
    return c


SERIES = _series(20)


def log_i0_scaled(kappa: Any) -> Array:
    """log I₀(κ) − κ without overflow: 0 at κ = 0, −½ log 2πκ for large κ."""
    kappa = np.asarray(kappa, dtype=np.float64)
    small = np.minimum(kappa, 0.5)
    square = 0.25 * small * small  # I₀ − 1 = Σ (κ²/4)ᵏ / k!²
    more = square * (1 + square / 4 * (1 + square / 9 * (1 + square / 16 * (1 + square / 25 * (1 + square / 36)))))
    return np.asarray(np.where(kappa <= 0.5, np.log1p(more) - small, np.log(i0e(kappa))))


def log_i0_quotient(one: Any, other: Any) -> Array:
    """`log_i0_scaled` of one less that of the other, by one logarithm, without cancellation."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    asymptotic = np.log(i0e(one) / i0e(other))
    return np.asarray(np.where(np.minimum(one, other) > 0.5, asymptotic, log_i0_scaled(one) - log_i0_scaled(other)))


def bessel_ratio(kappa: Any) -> Array:
    """A(κ) = I₁(κ) / I₀(κ): the mean resultant length of a von Mises distribution of concentration κ."""
    return np.asarray(i1e(kappa) / i0e(kappa))


def bessel_ratio_complement(kappa: Any) -> Array:
    """1 − A(κ), accurate also where A is 1 to rounding: about 1 / 2κ."""
    kappa = np.asarray(kappa, dtype=np.float64)
    inverse = 1.0 / np.maximum(kappa, FAR)
    asymptotic = np.zeros_like(inverse)
    for c in reversed(SERIES):
        asymptotic = asymptotic * inverse + c
    return np.asarray(np.where(kappa >= FAR, asymptotic, 1.0 - bessel_ratio(kappa)))


def bessel_slope(kappa: Any) -> Array:
    """Derivative A′(κ) = 1 − A/κ − A²: ½ at 0, about 1 / 2κ² for large κ."""
    kappa = np.asarray(kappa, dtype=np.float64)
    inverse = 1.0 / np.maximum(kappa, FAR)
    asymptotic = np.zeros_like(inverse)
    for k in range(len(SERIES) - 1, 0, -1):
        asymptotic = asymptotic * inverse + k * SERIES[k]
    at = np.maximum(kappa, 1e-3)
    ratio = bessel_ratio(at)
    near = np.where(kappa < 1e-3, 0.5 - 3 / 16 * kappa * kappa, 1.0 - ratio / at - ratio * ratio)
    return np.asarray(np.where(kappa >= FAR, asymptotic * inverse * inverse, near))


def concentration_of(ratio: Any, lack: Any = None) -> Array:
    """κ with A(κ) = ratio, in 0 … 1: Newton's method for log A, or log(1 − A) where A is near 1.

    `lack` is 1 − ratio, where it is known more accurately than from the rounded ratio.

    >>> concentration_of(bessel_ratio(3.0)).round(12)
    np.float64(3.0)
    """
    ratio = np.asarray(ratio, dtype=np.float64)
    lack = 1.0 - ratio if lack is None else np.asarray(lack, dtype=np.float64)
    positive = ratio > 0
    r, u = np.where(positive, ratio, 0.5), np.where(positive, lack, 0.5)
    with np.errstate(divide="ignore"):
        kappa = np.where(r < 0.6, 2 * r + r**3 + 5 / 6 * r**5, 0.5 / u + 0.25)
    for _ in range(40):
        slope, a, rest = bessel_slope(kappa) * kappa, bessel_ratio(kappa), bessel_ratio_complement(kappa)
        step = np.where(r < 0.6, np.log(a / r) * a / slope, -np.log(rest / u) * rest / slope)
        kappa = kappa * np.exp(-np.clip(step, -2.0, 2.0))
        if np.all(np.abs(step) < 4e-16):
            break
    return np.where(positive, kappa, 0.0)[()]
