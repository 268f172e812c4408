"""Dirichlet-multinomial (Pólya urn) log-probabilities without cancellation.

The probability of counts xⱼ of N draws, with parameters αⱼ and S = Σ αⱼ, is

    N! Γ(S) / Γ(N + S) · Πⱼ Γ(xⱼ + αⱼ) / (Γ(αⱼ) xⱼ!)

Written with peaks and deviances of x relative to x + α,

    log p = Σⱼ (log root(xⱼ, αⱼ) + rest(xⱼ, αⱼ)) − (log root(N, S) + rest(N, S))

where `rest` is small or of one sign, and all roots are multiplied before one logarithm is taken: log p keeps its digits
where log-gamma functions, a million each, would cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from scipy.special import bernoulli

from likely.core.arrays import Array
from likely.numerics.special import _polynomial, deviance, gamma_excess, log_poisson_peak_terms

SMALLEST = 1e-290  # products below it, or above its inverse, are computed as sums of logarithms
LARGEST = 1e150  # largest number that is squared


def peak_factors(x: Any, a: Any) -> tuple[Array, Array]:
    """`root` and `rest` of count x with parameter α at its expected share."""
    n = a + x
    (u_n, s_n), (u_a, s_a), (u_x, s_x) = (log_poisson_peak_terms(part) for part in (n, a, x))
    return np.asarray(a / n * np.sqrt(u_n / (u_a * u_x))), np.asarray(s_n - s_a - s_x)


def category_factors(x: Any, a: Any, total: Any, whole: Any, low: Any = 0.0) -> tuple[Array, Array]:
    """`root` and `rest` of one category: count x of `total`, parameter a of `whole`.

    x, α, N and S may be any real numbers from 0 on, α and S above 0. `low` is the rounding error of S.
    """
    with np.errstate(all="ignore"):
        root, rest = peak_factors(x, a)
        return root, np.asarray(rest - category_deviance(x, a, total, whole, low))


def category_deviance(x: Any, a: Any, total: Any, whole: Any, low: Any = 0.0) -> Array:
    """Distance of a category below its peak: the deviances of α and x from their shares of α + x."""
    with np.errstate(all="ignore"):
        away, both, n = _deviation_from_share(x, a, total, whole, low), whole + total, a + x
        return np.asarray(deviance(a, n * (whole / both), away) + deviance(x, n * (total / both), -away))


def _deviation_from_share(x: Any, a: Any, total: Any, whole: Any, low: Any) -> Array:
    """α − (α + x) S / (N + S) = (α N − x S) / (N + S), scaled against overflow."""
    both = whole + total
    if np.max(both, initial=0.0) < LARGEST:
        return np.asarray((a * total - x * whole - x * low) / both)
    share, power = np.frexp(both)
    unit = np.ldexp(1.0, -power)
    return np.asarray(((a * unit) * total - x * (whole * unit) - x * (low * unit)) / share)


def summation_error(parts: Array, whole: Array) -> Array:
    """Σ parts − whole along the last axis by compensated summation: the rounding error of a sum."""
    total, error = np.zeros(parts.shape[:-1]), np.zeros(parts.shape[:-1])
    for part in np.moveaxis(parts, -1, 0):
        new = total + part
        other = new - total
        error += (total - (new - other)) + (part - other)
        total = new
    return np.asarray((total - whole) + error)


def log_product(
    roots: Array, whole: Array, product: Callable[[Array], Array], total: Callable[[Array], Array]
) -> Array:
    """log(Π roots / whole) by one logarithm, or as a sum of logarithms where the product overflows or underflows.

    `product` and `total` multiply and add the roots of each group.
    """
    with np.errstate(all="ignore"):
        quotient = product(roots) / whole
        in_range = (quotient > SMALLEST) & (quotient < 1 / SMALLEST)
        out = np.log(quotient)
        return out if in_range.all() else np.where(in_range, out, total(np.log(roots)) - np.log(whole))


def log_two_colors(x: Any, y: Any, n: Any, a: Any, b: Any, factor: Any = 1.0) -> Array:
    """Beta-binomial log-probability of counts x and y, n in all, with parameters a and b; times a factor."""
    x, y, n, a, b = (np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (x, y, n, a, b))
    whole = a + b
    low = summation_error(np.stack(np.broadcast_arrays(a, b), axis=-1), whole)
    (one, first), (other, second), (root, rest) = (
        category_factors(x, a, n, whole, low), category_factors(y, b, n, whole, low), peak_factors(n, whole)
    )  # fmt: skip
    with np.errstate(all="ignore"):
        return np.asarray(np.log(one * other / root * factor) + (first + second - rest))


def nearly_certain(log_p: Array, where: Any, other: Any, one: Any, n: Any) -> Array:
    """`log_p`, refined where all n draws are of one category and this is nearly certain.

    Then |log p| is far below 1. The parameters are a of the `other` categories and b of the `one`; a and n are
    symmetric.
    """
    if not np.any(where):
        return log_p
    a, b, n = (np.broadcast_to(part, log_p.shape)[where] for part in (other, one, n))
    a, n = np.minimum(a, n), np.maximum(a, n)
    out = np.array(log_p)
    with np.errstate(all="ignore"):
        terms = -a * np.log1p(n / b), gamma_excess(b, a), -gamma_excess(b + n, a)
        large = np.where(sum(np.abs(term) for term in terms) < 1, sum(terms), out[where])
        little = _small_log_ratio(np.minimum(a, 1.0), b, n)
        out[where] = np.where(a > 1, large, np.where(little > -1, little, out[where]))
    return out


def _small_log_ratio(a: Array, b: Array, n: Array) -> Array:
    """log Γ(b + n) Γ(b + a) / (Γ(b) Γ(a + b + n)) for a ≤ 1 and a ≤ n, to full relative precision.

    It is Σ log1p(−a n / ((b + n + k)(b + a + k)) over k = 0, 1, …: all of one sign; from b + k = 32 on the rest of the
    sum is −a log(1 + n/c), and the series of Γ(c + a) / Γ(c) in Bernoulli's polynomials of a less that at c + n.
    """
    k, near = np.arange(ROUNDS, dtype=np.float64)[:, None], b < ROUNDS
    first = np.where(near, np.log1p(-(a / (b + a + k)) * (n / (b + n + k))).sum(axis=0), 0.0)
    c = np.where(near, b + ROUNDS, b)
    grown = np.log1p(n / c)
    rest = [-np.expm1(-k * grown) / c**k * a * _polynomial(a, q) for k, q in enumerate(BERNOULLI, 1)]
    return np.asarray(first - a * grown + sum(rest))


def _bernoulli(order: int) -> list[tuple[float, ...]]:
    """(−1)^{k+1} (B_{k+1}(a) − B_{k+1}(0)) / (a k (k + 1)) for k = 1 … order, as coefficients of powers of a."""
    numbers = bernoulli(order + 1)
    return [
        tuple(float((-1) ** (k + 1) * comb(k + 1, j) * numbers[k + 1 - j] / (k * (k + 1))) for j in range(1, k + 2))
        for k in range(1, order + 1)
    ]


ROUNDS = 32  # start of the asymptotic series: 10 terms are then exact to rounding
BERNOULLI = _bernoulli(10)
