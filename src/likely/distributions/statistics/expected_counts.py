"""Expectations of count distributions: direct summation of small counts, Euler–Maclaurin integral of large ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.distributions.column_distribution import same_columns
from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial
from likely.distributions.univariate.beta_negative_binomial import log_pmf as log_urn

NEAR = 4096  # counts that are summed one by one: beyond, the next term of Euler–Maclaurin is below 10⁻¹⁴
PEAK, WIDE = 40.0, 1000.0  # half-width of a peak in standard deviations; width from which it is smooth between counts
STEP = 0.5  # panel width in log x
FINER = 1.3  # growth of panels away from the peak
END = 1e200  # a power-law tail is integrated up to here, and beyond in closed form

Log = Callable[[Array], Array]  # of counts, and of numbers between them


def expected(log_p: Log, g: Log, mode: float, last: float) -> float:
    """Expectation Σ p(x) g(x) over x = 0 … last, for p and g that are smooth beyond the first few thousand counts.

    Large counts by the Euler–Maclaurin formula: ∫ from N − ½ on, + [f(N) − f(N − 1)] / 24.

    >>> round(expected(lambda x: x * np.log(0.5) - np.log(2), lambda x: x, 0.0, 200.0), 12)
    1.0
    """

    def f(x: Array) -> Array:
        logs = log_p(x)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(logs), 0.0, np.exp(logs) * g(x))

    width = _width(log_p, mode)
    cut = _cut(mode, width)
    near = float(f(np.arange(min(last, cut - 1) + 1)).sum())
    if last < cut:
        return near
    nodes, shares = _legendre()
    edges = _panels(mode, width, cut - 0.5, last)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    far = float((f(middle[:, None] + half[:, None] * nodes) @ shares) @ half)
    return near + far + float(np.diff(f(np.array([cut - 1.0, cut])))[0]) / 24


@cache
def _legendre() -> tuple[Array, Array]:
    nodes, shares = np.polynomial.legendre.leggauss(32)
    return nodes, shares


def _width(log_p: Log, mode: float) -> float:
    """Standard deviation of the normal distribution with the same curvature at the mode; 0 if the mode is 0."""
    if mode < 1:
        return 0.0
    h = math.sqrt(mode)
    below, top, above = log_p(mode + h * np.array([-1.0, 0.0, 1.0])).tolist()
    return h / math.sqrt(max(2 * top - below - above, 1e-6))


def _cut(mode: float, width: float) -> int:
    """First count of the integral: not on the slope of a narrow peak, which changes from count to count."""
    narrow = 0 < width < WIDE and mode - PEAK * width < NEAR
    return max(NEAR, math.ceil(mode + PEAK * width)) if narrow else NEAR


def _panels(mode: float, width: float, first: float, last: float) -> Array:
    """Panel edges: equidistant in log x, and finer around the peak, also where it lies just below the first panel."""
    edges = [np.exp(np.arange(math.log(first), math.log(last), STEP)), np.array([first, last])]
    if width > 0:
        count = math.log(4 * max(mode, first) / width + 4) / math.log(FINER) + 1
        distance = 0.5 * width * FINER ** np.arange(0.0, count)
        edges += [mode + distance, mode - distance, np.array([mode])]
    return np.unique(np.clip(np.concatenate(edges), first, last))


# ----------------------------------------------- beta negative binomial distribution: sums without a closed form


def urn_entropy(distribution: BetaNegativeBinomial) -> float:
    """Entropy of a beta negative binomial distribution, summed over columns; accurate to about 10⁻¹³.

    >>> round(urn_entropy(BetaNegativeBinomial(2.0, 3.0, 1.0)), 6)
    1.318023
    """
    return sum(_expectation(one, lambda x, log_p: -log_p(x), float(one[1]) + 1) for one in _distributions(distribution))


def urn_kl(p: BetaNegativeBinomial, q: BetaNegativeBinomial) -> float:
    """KL(p ‖ q) of beta negative binomial distributions: always finite, because E log x is."""
    same_columns(p, q)
    each = zip(_distributions(p), _distributions(q), strict=True)
    return max(sum(_expectation(one, _log_ratio(other), float(other[1] - one[1])) for one, other in each), 0.0)


def _distributions(distribution: BetaNegativeBinomial) -> Any:
    """The three parameters of each column."""
    return list(zip(distribution.size, distribution.a, distribution.b, strict=True))


def _log_ratio(other: Any) -> Callable[[Array, Log], Array]:
    return lambda x, log_p: log_p(x) - log_urn(x, *other)


def _expectation(one: Any, g: Callable[[Array, Log], Array], slope: float) -> float:
    """Σ p g with the tail beyond END, where x p(x) falls as x^(−a), and g grows as `slope` times log x."""

    def log_p(x: Array) -> Array:
        return log_urn(x, *one)

    r, a, b = (float(part) for part in one)
    mode = max((r - 1) * (b - 1) / (a + 1), 0.0) if min(r, b) > 1 else 0.0
    end = np.array([END])
    beyond = math.exp(float(log_p(end)[0]) + math.log(END)) / a
    tail = beyond * (float(g(end, log_p)[0]) + slope / a) if beyond > 0 else 0.0
    return expected(log_p, lambda x: g(x, log_p), mode, END) + tail
