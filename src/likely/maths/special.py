"""Special functions that keep their digits where the textbook's formula loses them.

x log λ − λ − log x! is a small difference of large numbers where x is near λ: at 10⁶ seven digits are gone.
Loader's remedy (2000) writes it as the height of the peak less a deviance, both computed without cancellation:

    log Poisson(x | λ) = peak(x) − deviance(x, λ)

and the gamma, negative binomial, Dirichlet and t laws are made of the same two functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from likely.core.arrays import Array

LOG_2, LOG_PI, LOG_2PI = (float(np.log(x)) for x in (2.0, np.pi, 2 * np.pi))
TABLE = 256  # counts below it are looked up


def _atanh_rest(square: Array) -> Array:
    """(atanh(v) / v − 1) / v² = 1/3 + v²/5 + v⁴/7 + …, exact to rounding for v² ≤ 1/9."""
    total = np.full_like(square, 1 / 35)
    for k in range(15, 0, -1):
        total *= square
        total += 1 / (2 * k + 1)
    return total


def deviance(x: Any, m: Any, away: Any = None) -> Array:
    """x log(x / m) − x + m ≥ 0, without the cancellation where x is near m; 0 log 0 = 0.

    It is KL(Poisson(x) ‖ Poisson(m)), and half the deviance of Poisson regression. `away` is x − m, for who
    knows it better than the rounded x and m do.
    """
    x, m = np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64)
    with np.errstate(all="ignore"):
        away = x - m if away is None else away
        v = 0.5 * away / (0.5 * x + 0.5 * m)  # halves: the sum must not overflow
        square = v * v
        near = away * v + 2 * x * v * square * _atanh_rest(square)
        far = x * log_ratio(x, m) - away
    return np.asarray(np.where(x == 0, m, np.where(np.abs(v) < 1 / 3, near, far)))


def log_ratio(x: Array, m: Array) -> Array:
    """log(x / m), also where the quotient leaves the range of numbers."""
    with np.errstate(all="ignore"):
        ratio = x / m
        inside = (ratio > 1e-290) & (ratio < 1e290)
        log = np.asarray(np.log(ratio))
        return log if np.all(inside) else np.where(inside, log, np.log(x) - np.log(m))


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def stirling_error(z: Any) -> Array:
    """log Γ(z + 1) − [(z + ½) log z − z + ½ log 2π] for z ≥ 1: what Stirling's formula leaves out."""
    z = np.asarray(z, dtype=np.float64)
    small = z < 10
    out = _inverse_powers(np.where(small, z + 10, z), STIRLING)
    if np.any(small):
        # ten steps down from z + 10, each a sum of positive terms: no digit is lost
        v = 1 / (2 * (np.where(small, z, 10.0)[..., None] + np.arange(10)) + 1)
        out = out + np.where(small, (v * v * _atanh_rest(v * v)).sum(axis=-1), 0.0)
    return out


def _inverse_powers(z: Array, coefficients: tuple[float, ...]) -> Array:
    """c₀/z + c₁/z³ + c₂/z⁵ + …"""
    inverse = 1 / z
    square, total = inverse * inverse, np.zeros_like(z)
    for c in reversed(coefficients):
        total = total * square + c
    return total * inverse


def peak(x: Any) -> Array:
    """log (xˣ e⁻ˣ / x!) for real x ≥ 0: the log-probability of x under a Poisson law of rate x."""
    x = np.asarray(x, dtype=np.float64)
    above = np.maximum(x, 1.0)
    large = np.asarray(-stirling_error(above) - 0.5 * (LOG_2PI + np.log(above)))
    if np.all(x >= 1):
        return large
    below = np.minimum(x, 1.0)
    return np.where(x >= 1, large, xlogy(below, below) - below - gammaln(below + 1))


PEAKS = peak(np.arange(TABLE))
LOG_FACTORIALS: Array = gammaln(np.arange(TABLE) + 1.0)


def count_peak(x: Array) -> Array:
    """`peak` of whole numbers: small ones are looked up."""
    return _looked_up(x, PEAKS, peak)


def log_factorial(x: Array) -> Array:
    """log x!, and log Γ(x + 1) for expected counts that are not whole."""
    return _looked_up(x, LOG_FACTORIALS, lambda z: gammaln(z + 1.0))


def _looked_up(x: Array, table: Array, otherwise: Callable[[Array], Any]) -> Array:
    at = np.where(x < TABLE, x, 0.0).astype(np.intp)
    out = table[at]
    rest = at != x
    if rest.any():
        out[rest] = otherwise(x[rest])
    return out


def count_by_count(x: Array, f: Callable[..., Array], *law: Array) -> Array:
    """f(x, parameters) of whole numbers (n, d); where all are small, of each number once: 3 to 40 times faster."""
    last = float(x.max(initial=0.0))
    if last >= min(TABLE, len(x)):
        return f(x, *law)
    table = f(np.repeat(np.arange(last + 1)[:, None], x.shape[1], axis=1), *law)
    return np.take_along_axis(table, x.astype(np.intp), axis=0)


def log_gamma_density(x: Any, a: Any, rate: Any) -> Array:
    """a log b − log Γ(a) + (a − 1) log x − b x for x ≥ 0, entry by entry, in the form that keeps most digits."""
    x, a, b = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (x, a, rate)))
    at = np.where(x > 0, x, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        y = b * at
    log_y = -log_ratio(1 / b, at)
    out = np.where(
        a < 0.5,
        log_ratio(a, at) + a * log_y - y - gammaln(1 + a),
        np.log(b) + (a - 1) * log_y - y - gammaln(a),
    )
    if np.any(large := (a >= 3) & (y > 1e-290) & (y < np.inf)):
        c, z = np.where(large, a, 3.0), np.where(large, y, 3.0)
        out = np.where(large, peak(c) + log_ratio(c, at) - deviance(c, z), out)
    at_zero = np.where(a > 1, -np.inf, np.where(a < 1, np.inf, np.log(b)))
    return np.where(x > 0, np.where(y < np.inf, out, -np.inf), at_zero)


def gamma_excess(a: Any, delta: Any) -> Array:
    """log Γ(a + δ) − log Γ(a) − δ log a, which goes to 0 as a grows; exact also for a = 10³⁰⁰."""
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


def digamma_gap(a: Any) -> Array:
    """log a − ψ(a), about 1 / 2a."""
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 10.0)
    series = (0.5 + _inverse_powers(large, GAP)) / large
    return np.asarray(np.where(a >= 10, series, np.log(a) - digamma(a)))


def gamma_entropy(a: Any) -> Array:
    """a + log Γ(a) + (1 − a) ψ(a): the entropy of the gamma law of rate 1."""
    a = np.asarray(a, dtype=np.float64)
    large = np.maximum(a, 1.0)
    far = 0.5 * (LOG_2PI + np.log(large)) + stirling_error(large) + (large - 1) * digamma_gap(large)
    return np.asarray(np.where(a >= 1, far, a + gammaln(a) + (1 - a) * digamma(a)))


def gamma_divergence(b: Any, a: Any) -> Array:
    """D(b, a) = log Γ(b) − log Γ(a) − (b − a) ψ(a) ≥ 0: KL of the gamma law of shape a from that of shape b.

    Shapes below 1 go through D(b, a) = D(b + 1, a + 1) + deviance(a, b) / a, two terms of one sign.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    small = np.minimum(a, b) < 1
    c = a + small
    return np.asarray(gamma_excess(c, b - a) + (b - a) * digamma_gap(c) + np.where(small, deviance(a, b) / a, 0.0))


def steadier(one: tuple[Any, ...], other: tuple[Any, ...]) -> Array:
    """Of two ways to write a number as a sum of terms, the one in which less cancels, entry by entry."""
    sizes = [sum(np.abs(term) for term in terms) for terms in (one, other)]
    return np.where(sizes[0] <= sizes[1], sum(one), sum(other))
