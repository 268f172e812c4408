"""Special functions without cancellation: saddle-point form of log-densities (Loader 2000), gamma function ratios.

x log λ − λ − log x! is a small difference of large numbers where x is near λ: at 10⁶ it loses seven digits.
Loader (2000) writes it as the log-density at the mode less a deviance, both computed without cancellation:

    log Poisson(x | λ) = log_poisson_peak(x) − deviance(x, λ)

and the gamma, negative binomial, Dirichlet and t distributions are made of the same two functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from likely.core.arrays import Array

LOG_2, LOG_PI, LOG_2PI = (float(np.log(x)) for x in (2.0, np.pi, 2 * np.pi))
TABLE = 256  # counts below it are read from a table


# Quotients of polynomials of lowest order first: of [3/4] and [8/8] they reach what rounding leaves (2.5e-17, 1.4e-16
# of the function) in a third of the steps of a series
ATANH_TOP = (0.3333333333333333, -0.5156189804426828, 0.22344765869949698, -0.023581157202664297)
ATANH_LOW = (1.0, -2.1468569413280667, 1.5298857123272571, -0.4019266862902619, 0.028382422234385103)
STIRLING_TOP = (
    0.08333333333333333, 1.858840472589229, 14.28487117510949, 48.25246886957957, 75.89658413572485,
    54.29788759491462, 15.95445560535831, 1.5047329856525282, 0.021520387139101302,
)  # fmt: skip
STIRLING_LOW = (
    1.0, 22.33941900440408, 172.15357759193697, 584.5624655069788, 928.7543335398183,
    677.9928948090231, 208.08161242933107, 21.861739711695243, 0.46165110759516276,
)  # fmt: skip
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # in 1/z², exact to rounding from FAR on
FAR = 16.0


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """c₀ + c₁ x + c₂ x² + …"""
    total = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total *= x
        total += c
    return total


def _atanh_rest(square: Array) -> Array:
    """(atanh(v) / v − 1) / v² = 1/3 + v²/5 + v⁴/7 + …, exact to rounding for v² ≤ 1/9."""
    return np.asarray(_polynomial(square, ATANH_TOP) / _polynomial(square, ATANH_LOW))


def deviance(x: Any, m: Any, away: Any = None) -> Array:
    """Half the Poisson deviance: x log(x / m) − x + m ≥ 0, without cancellation for x near m; 0 log 0 = 0.

    It is KL(Poisson(x) ‖ Poisson(m)). `away` is x − m, where it is known more accurately than from the rounded x and m.
    """
    x, m = np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64)
    with np.errstate(all="ignore"):
        away = x - m if away is None else away
        both = x + m
        v = away / both if np.isfinite(both).all() else 0.5 * away / (0.5 * x + 0.5 * m)
        near = np.abs(v) < 1 / 3
        out = _near_deviance(x, away, v) if near.any() else np.zeros(near.shape)
        if not near.all():
            out = np.where(near, out, np.where(x == 0, m, x * log_ratio(x, m) - away))
    return np.asarray(out)


def _near_deviance(x: Array, away: Array, v: Array) -> Array:
    square = np.asarray(v * v)
    return np.asarray(away * v + x * (2 * v * square * _atanh_rest(square)))


def log_ratio(x: Array, m: Array) -> Array:
    """log(x / m), also where the quotient overflows or underflows."""
    with np.errstate(all="ignore"):
        ratio = x / m
        inside = (ratio > 1e-290) & (ratio < 1e290)
        log = np.asarray(np.log(ratio))
        return log if np.all(inside) else np.where(inside, log, np.log(x) - np.log(m))


def stirling_error(z: Any) -> Array:
    """Error of Stirling's formula, log Γ(z + 1) − [(z + ½) log z − z + ½ log 2π] for z ≥ 1, about 1 / 12z.

    Times z it is a mean of 1 / (1 + t² / z²) over t (Binet), which a rational function of 1 / z² approximates closely.
    """
    z = np.asarray(z, dtype=np.float64)
    inverse = 1 / z
    square = np.asarray(inverse * inverse)
    if np.all(z >= FAR):
        return np.asarray(_polynomial(square, STIRLING) * inverse)
    return np.asarray(_polynomial(square, STIRLING_TOP) / _polynomial(square, STIRLING_LOW) * inverse)


def _inverse_powers(z: Array, coefficients: tuple[float, ...]) -> Array:
    """c₀/z + c₁/z³ + c₂/z⁵ + …"""
    inverse = 1 / z
    square, total = inverse * inverse, np.zeros_like(z)
    for c in reversed(coefficients):
        total = total * square + c
    return total * inverse


def log_poisson_peak_terms(z: Any) -> tuple[Array, Array]:
    """u and s with log_poisson_peak(z) = −s − ½ log u for real z ≥ 0.

    u is 2πz and s the error of Stirling's formula; below 1, u is 1. Where several peaks are added, their u are
    multiplied first, so that no logarithms cancel.
    """
    z = np.asarray(z, dtype=np.float64)
    above = np.maximum(z, 1.0)
    u, s = np.asarray(2 * np.pi * above), stirling_error(above)
    if np.all(z >= 1):
        return u, s
    below = np.minimum(z, 1.0)
    return np.where(z >= 1, u, 1.0), np.where(z >= 1, s, gammaln(below + 1) + below - xlogy(below, below))


def log_poisson_peak(x: Any) -> Array:
    """log (xˣ e⁻ˣ / x!) for real x ≥ 0: the log-probability of x under a Poisson distribution of rate x."""
    u, s = log_poisson_peak_terms(x)
    return np.asarray(-s - 0.5 * np.log(u))


PEAKS = log_poisson_peak(np.arange(TABLE))
LOG_FACTORIALS: Array = gammaln(np.arange(TABLE) + 1.0)


def log_poisson_peak_of_counts(x: Array) -> Array:
    """`log_poisson_peak` of integers: small ones are read from a table."""
    return _from_table(x, PEAKS, log_poisson_peak)


def log_factorial(x: Array) -> Array:
    """log x!, and log Γ(x + 1) for expected counts, which need not be whole."""
    return _from_table(x, LOG_FACTORIALS, lambda z: gammaln(z + 1.0))


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42p-1"), 4.7493250390316726e-07  # log 2 = 24 bits and the rest


def _split(x: Array) -> Any:
    """`split_log_factorial` by Stirling's formula, for x = 2ᵏ m with m near 1."""
    above = np.maximum(x, 1.0)
    k = np.frexp(above * np.sqrt(2.0))[1] - 1
    m, whole, log = np.ldexp(above, -k), np.floor(above), k * LN2_HIGH - 1
    u, s = log_poisson_peak_terms(above)
    low = above * (k * LN2_LOW + np.log(m)) + (above - whole) * log + (0.5 * np.log(u) + s)
    return np.where(x < 1, 1j * gammaln(np.minimum(x, 1.0) + 1), whole * log + 1j * low)


SPLIT = _split(np.arange(float(TABLE)))


def split_log_factorial(x: Array) -> Any:
    """log x! for x ≥ 0 as the sum of a real and an imaginary part, both in one table look-up and one sum.

    Sums of the real part are exact up to 10⁷ counts, and the imaginary part is no larger than x.
    """
    at = (x if x.max(initial=0.0) < TABLE else np.where(x < TABLE, x, 0.0)).astype(np.intp)
    out, rest = SPLIT.take(at), at != x
    if rest.any():
        out[rest] = _split(x[rest])
    return out


def log_multinomial_coefficient(counts: Array, total: Array, add: Callable[[Any], Any] | None = None) -> Array:
    """Log multinomial coefficient log N!/Π x! of rows of counts (n, d) and their totals, without cancellation.

    `add` sums the entries of each row, if counts are not a table.

    >>> log_multinomial_coefficient(np.array([[1.0, 3.0]]), np.array([4.0])).round(4)  # log 4
    array([1.3863])
    """
    each = split_log_factorial(counts)
    ways = split_log_factorial(total) - (each.sum(axis=1) if add is None else add(each))
    return np.asarray(ways.real + ways.imag)


def _from_table(x: Array, table: Array, otherwise: Callable[[Array], Any]) -> Array:
    at = np.where(x < TABLE, x, 0.0).astype(np.intp)
    out = table[at]
    rest = at != x
    if rest.any():
        out[rest] = otherwise(x[rest])
    return out


def count_by_count(x: Array, f: Callable[..., Array], *distribution: Array) -> Array:
    """f(x, parameters) of counts (n, d); if all are small and whole, once per distinct value: 3 to 40 times faster.

    Expected counts need not be whole. f is elementwise, so both give the same result, whatever the other rows are.
    """
    last = float(x.max(initial=0.0))
    if last >= min(TABLE, len(x)):
        return f(x, *distribution)
    d, at = x.shape[1], x.astype(np.intp)
    if not np.array_equal(at, x):
        return f(x, *distribution)
    table = f(np.repeat(np.arange(last + 1)[:, None], d, axis=1), *distribution)
    return np.asarray(table.ravel().take(at * d + np.arange(d)))


def log_gamma_density(x: Any, a: Any, rate: Any) -> Array:
    """Log-density of the gamma distribution, a log b − log Γ(a) + (a − 1) log x − b x for x ≥ 0, elementwise.

    The form with the least cancellation is used. Terms of a and b alone are computed in their own shape: a distribution
    of d columns has d of them, and many rows.
    """
    x, a, b = (np.asarray(part, dtype=np.float64) for part in (x, a, rate))
    positive = x > 0
    at, all_positive = (x, True) if positive.all() else (np.where(positive, x, 1.0), False)
    with np.errstate(all="ignore"):
        y = b * at
        in_range = (y > 1e-290) & (y < np.inf)
        saddle_point = (a >= 3) & in_range
        out = _saddle_point_density(at, a, y) if saddle_point.all() else _direct_density(at, a, b, y)
        if not saddle_point.all() and saddle_point.any():
            c, z = np.where(a >= 3, a, 3.0), np.where(in_range, y, 3.0)
            out = np.where(saddle_point, _saddle_point_density(at, c, z), out)
        if all_positive and in_range.all():
            return out
        at_zero = np.where(a > 1, -np.inf, np.where(a < 1, np.inf, np.log(b)))
        return np.where(positive, np.where(y < np.inf, out, -np.inf), at_zero)


def _saddle_point_density(x: Array, a: Array, y: Array) -> Array:
    """Saddle-point form: peak less deviance, with y = b x, for shapes from 3 on."""
    return np.asarray(log_poisson_peak(a) + log_ratio(a, x) - deviance(a, y))


def _direct_density(x: Array, a: Array, b: Array, y: Array) -> Array:
    """Direct formula; below ½ with Γ(1 + a), which is not large, instead of Γ(a)."""
    small = a < 0.5
    head, power = np.where(small, -gammaln(1 + a), np.log(b) - gammaln(a)), np.where(small, a, a - 1)
    in_range = (y > 1e-290) & (y < 1e290)
    out = power * (np.log(y) if np.all(in_range) else np.where(in_range, np.log(y), np.log(x) + np.log(b)))
    out -= y
    out += head
    return np.where(small, out + log_ratio(a, x), out) if small.any() else out


def gamma_excess(a: Any, delta: Any) -> Array:
    """log Γ(a + δ) − log Γ(a) − δ log a, which tends to 0 as a grows; accurate also for a = 10³⁰⁰."""
    a, delta = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    b = a + delta
    large = (a >= 1) & (b >= 1)
    a1, b1, d1 = np.where(large, a, 1.0), np.where(large, b, 1.0), np.where(large, delta, 0.0)
    out = deviance(b1, a1, d1) - 0.5 * np.log1p(d1 / a1) + (stirling_error(b1) - stirling_error(a1))
    return out if large.all() else np.where(large, out, gammaln(b) - gammaln(a) - delta * np.log(a))


def log_gamma_ratio(a: Any, delta: Any) -> Array:
    """log Γ(a + δ) − log Γ(a)."""
    return np.asarray(delta * np.log(a) + gamma_excess(a, delta))


GAP = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def log_minus_digamma(a: Any) -> Array:
    """log a − ψ(a), about 1 / 2a."""
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 10.0)
    series = (0.5 + _inverse_powers(large, GAP)) / large
    return np.asarray(np.where(a >= 10, series, np.log(a) - digamma(a)))


def gamma_entropy(a: Any) -> Array:
    """Entropy of the gamma distribution of rate 1: a + log Γ(a) + (1 − a) ψ(a)."""
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 1.0)
    asymptotic = 0.5 * (LOG_2PI + np.log(large)) + stirling_error(large) + (large - 1) * log_minus_digamma(large)
    return np.asarray(np.where(a >= 1, asymptotic, a + gammaln(a) + (1 - a) * digamma(a)))


def gamma_divergence(b: Any, a: Any) -> Array:
    """KL divergence of gamma distributions of shapes a and b: log Γ(b) − log Γ(a) − (b − a) ψ(a) ≥ 0.

    For shapes below 1, D(b, a) = D(b + 1, a + 1) + deviance(a, b) / a, two terms of one sign.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    small = np.minimum(a, b) < 1
    c = a + small
    return np.asarray(
        gamma_excess(c, b - a) + (b - a) * log_minus_digamma(c) + np.where(small, deviance(a, b) / a, 0.0)
    )


def less_cancellation(one: tuple[Any, ...], other: tuple[Any, ...]) -> Array:
    """Of two sums of terms for the same number, the one with less cancellation, elementwise."""
    sizes = [sum(np.abs(term) for term in terms) for terms in (one, other)]
    return np.where(sizes[0] <= sizes[1], sum(one), sum(other))
