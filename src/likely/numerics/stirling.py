"""Number of partitions into clusters: logarithms of Stirling numbers of the second kind."""

from __future__ import annotations

from math import comb, factorial, log
from typing import Any

import numpy as np
from scipy.special import expm1, lambertw

from likely.core.errors import DomainError, sentence
from likely.numerics.special import log_gamma_ratio

NEAR = 64  # S(n, n − j) up to this j is computed exactly, for any n
SMALL = 0.5  # |z| below which (eᶻ − 1) / z is computed as 1 + z/2 + …, so that its log loses no digits
TERMS = 16  # of that series: 0.5¹⁶ / 17! is far below the last digit


def log_stirling2(n: int, k: int) -> float:
    """Logarithm of the Stirling number of the second kind S(n, k): partitions of n objects into k clusters.

    To about twelve digits for n of any size. S(n, k) = n!/k! [zⁿ] (eᶻ − 1)ᵏ is a contour
    integral: on the circle through the saddle point, r / (1 − e⁻ʳ) = n/k, the dominant terms have one sign, and about
    √n points give full precision. Where nearly all clusters are singletons, S(n, n − j) is a polynomial in n of degree
    2 j, and its exact value is used.

    Parameters
    ----------
    n : int
        Number of objects.
    k : int
        Number of clusters.

    Returns
    -------
    float
        Its logarithm; −inf where S(n, k) = 0.

    References
    ----------
    Ney, lecture notes, 6.2.

    Examples
    --------
    >>> round(log_stirling2(25, 5), 10) == round(float(np.log(2436684974110751)), 10)
    True
    >>> round(log_stirling2(10_000, 100), 4)
    45687.9625
    """
    n, k = _integer(n, "n"), _integer(k, "k")
    if k > n or (k == 0) != (n == 0):
        return -np.inf
    if k in (0, 1, n):
        return 0.0
    if n - k <= NEAR:
        return log(_near_diagonal(n, n - k))
    r = _saddle(n, k)
    angle = 2j * np.pi * np.arange(points := 64 + 16 * int(np.sqrt(n - k))) / points
    growth = _log_growth(r * np.exp(angle))
    top = growth[0].real
    mean = float(np.exp(k * (growth - top) - (n - k) * angle).real.mean())
    log_count = k * top - (n - k) * np.log(r) + np.log(mean)
    return float(log_count + log_gamma_ratio(k + 1.0, float(n - k)))


def _log_growth(z: Any) -> Any:
    """log((eᶻ − 1) / z), up to multiples of 2πi; eᶻ is factored out where it is large."""
    if abs(z[0]) < SMALL:
        return _log1p(sum(z**m / factorial(m + 1) for m in range(TERMS, 0, -1)))
    right = z.real > 0
    near = np.where(right, -z, z)
    return np.where(right, z, 0.0) + np.log(np.where(right, -1, 1) * expm1(near)) - np.log(z)


def _log1p(z: Any) -> Any:
    """log(1 + z) of complex numbers, accurate for small ones."""
    return 0.5 * np.log1p(z.real * (2.0 + z.real) + z.imag**2) + 1j * np.arctan2(z.imag, 1.0 + z.real)


def _saddle(n: int, k: int) -> float:
    """Saddle point r with r / (1 − e⁻ʳ) = n / k; a series where they are nearly equal."""
    excess = (n - k) / k
    if excess < 1e-3:
        return excess * (2.0 - 2.0 / 3.0 * excess)
    ratio = n / k
    return float(ratio + lambertw(-ratio * np.exp(-ratio)).real)


def _near_diagonal(n: int, j: int) -> int:
    """S(n, n − j) = Σ_i E(j, i) C(n + j − 1 − i, 2 j), E the Eulerian numbers of the second order (Knuth, 6.43)."""
    euler = [1]
    for m in range(1, j + 1):
        before = [*euler, 0]
        euler = [(i + 1) * before[i] + (2 * m - 1 - i) * (before[i - 1] if i else 0) for i in range(m)]
    return sum(e * comb(n + j - 1 - i, 2 * j) for i, e in enumerate(euler))


def _integer(n: Any, name: str) -> int:
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
        raise DomainError(sentence("Stirling numbers", f"{name} must be an integer from 0 on", repr(n)))
    return int(n)
