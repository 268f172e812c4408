"""How many clusterings there are: Stirling numbers of the second kind, and their sum, the Bell numbers."""

from __future__ import annotations

from math import comb, factorial
from typing import Any

import numpy as np
from scipy.special import expm1, lambertw, logsumexp, xlogy

from likely.errors import DomainError, sentence
from likely.maths.special import log_gamma_ratio


def stirling2(n: int, k: int) -> int:
    """S(n, k): the ways to part n things into k clusters, none of them empty; a whole number of any length.

        S(n, k) = 1/k! Σ_j (−1)^(k−j) C(k, j) jⁿ,     S(n, k) = k S(n − 1, k) + S(n − 1, k − 1)     (Ney 6.2)

    >>> stirling2(10, 2), stirling2(25, 5)
    (511, 2436684974110751)
    """
    n, k = _whole(n, "n"), _whole(k, "k")
    if k > n or (k == 0) != (n == 0):
        return 0
    total = sum((-1) ** (k - j) * comb(k, j) * j**n for j in range(k + 1))
    return total // factorial(k)


def log_stirling2(n: int, k: int) -> float:
    """log S(n, k), to about twelve digits for n of any size; −inf where there is no such clustering.

    S(n, k) = n!/k! [zⁿ] (eᶻ − 1)ᵏ, a contour integral: on the circle through the saddle point, r / (1 − e⁻ʳ) = n/k, all
    that matters has one sign, and some √n points give it to the last digits.

    >>> round(log_stirling2(25, 5), 10) == round(float(np.log(2436684974110751)), 10)
    True
    >>> round(log_stirling2(10_000, 100), 4)
    45687.9625
    """
    n, k = _whole(n, "n"), _whole(k, "k")
    if k > n or (k == 0) != (n == 0):
        return -np.inf
    if k in (0, 1, n):
        return 0.0
    ratio = n / k
    r = float(ratio + lambertw(-ratio * np.exp(-ratio)).real)
    turn = 2j * np.pi * np.arange(points := 64 + 16 * int(np.sqrt(n))) / points
    growth = _log_growth(r * np.exp(turn))
    top = growth[0].real
    mean = float(np.exp(k * (growth - top) - (n - k) * turn).real.mean())
    log_count = k * top - (n - k) * np.log(r) + np.log(mean)
    return float(log_count + log_gamma_ratio(k + 1.0, float(n - k)))


def _log_growth(z: Any) -> Any:
    """log((eᶻ − 1) / z), up to whole turns; eᶻ is taken out where it is large."""
    right = z.real > 0
    near = np.where(right, -z, z)
    return np.where(right, z, 0.0) + np.log(np.where(right, -1, 1) * expm1(near)) - np.log(z)


def bell(n: int) -> int:
    """The number of all partitions of n things, Σ_k S(n, k), by Bell's triangle.

    >>> bell(10), bell(20)
    (115975, 51724158235372)
    """
    row = [1]
    for _ in range(_whole(n, "n")):
        below = [row[-1]]
        for entry in row:
            below.append(below[-1] + entry)
        row = below
    return row[0]


def log_bell(n: int) -> float:
    """log of the number of all partitions, by Dobiński's sum e⁻¹ Σ_k kⁿ / k!.

    >>> round(log_bell(20), 9) == round(float(np.log(51724158235372)), 9)
    True
    """
    n = _whole(n, "n")
    j = np.arange(1.0, n + 100.0)  # terms fall from j = n / log n on
    return 0.0 if n == 0 else float(logsumexp(xlogy(n, j) - log_gamma_ratio(1.0, j)) - 1.0)


def _whole(n: Any, name: str) -> int:
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
        raise DomainError(sentence("Stirling numbers", f"{name} must be a whole number from 0 on", repr(n)))
    return int(n)
