"""Tail probabilities and quantiles of univariate elliptical distributions, from the radial profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaincc, gammainccinv, gammaincinv, ndtr, ndtri

from likely.core.arrays import Array, Mask
from likely.core.errors import DomainError, sentence
from likely.distributions.elliptical.radial_profile import TOLERANCE, _log_integrand, _range, profile_of
from likely.distributions.student_t.student_t import _cdf as t_cdf
from likely.distributions.student_t.student_t import _quantile as t_quantile
from likely.numerics.quadrature import GAUSS, KRONROD, NODES

PANELS = 128
HALVINGS = 60  # of a panel, to the last bit of log r
STEP_TOLERANCE = 1e-12  # Newton step in log r at which the search stops
TINY = 1e-300
SHARPEST = 48  # bisections of a panel: a profile may be discontinuous
MARGIN = 1 - float(NODES[-1])  # share of half a panel that lies beyond its last node


class RadialDistribution(NamedTuple):
    """Distribution of the distance r = √q from the center of a univariate elliptical distribution."""

    outside: Callable[[Array], Array]  # survival function P(√q > r)
    radius: Callable[[Array, Array], Array]  # quantile r of (P(√q ≤ r), P(√q > r)), both given for accuracy


def radial_distribution(profile: Any, s: float) -> RadialDistribution:
    """Closed forms for named profiles; quadrature accurate to 1e-10 for a function.

    >>> radial_distribution("laplace", 1.0).outside(np.array([0.0, 1.0])).round(4)
    array([1.    , 0.3679])
    """
    if not callable(profile):
        return _CLOSED_FORMS[profile](s)
    try:
        return _cached(profile)
    except TypeError:  # a callable without a hash
        return _of_function(profile)


def _power(s: float) -> RadialDistribution:
    """r^{2β}/2 has a gamma distribution of shape 1/(2β)."""
    a = 0.5 / s

    def radius(inside: Array, outside: Array) -> Array:
        half = np.where(inside < 0.5, gammaincinv(a, inside), gammainccinv(a, outside))
        return np.asarray((2 * half) ** (0.5 / s))

    return RadialDistribution(lambda r: gammaincc(a, 0.5 * r ** (2 * s)), radius)


def _logistic(s: float) -> RadialDistribution:
    return RadialDistribution(lambda r: 2 * expit(-r), lambda inside, outside: np.log1p(inside) - np.log(outside))


_CLOSED_FORMS: dict[str, Callable[[float], RadialDistribution]] = {
    "gaussian": lambda s: RadialDistribution(
        lambda r: 2 * ndtr(-r),
        lambda inside, outside: np.where(inside < 0.5, np.sqrt(2 * gammaincinv(0.5, inside)), -ndtri(0.5 * outside)),
    ),
    "t": lambda s: RadialDistribution(
        lambda r: 2 * t_cdf(-r, np.asarray(s)),
        lambda inside, outside: np.abs(
            np.where(
                inside < 0.5, t_quantile(0.5 + 0.5 * inside, np.asarray(s)), t_quantile(0.5 * outside, np.asarray(s))
            )
        ),
    ),
    "laplace": lambda s: RadialDistribution(
        lambda r: np.exp(-r),
        lambda inside, outside: np.where(inside < 0.5, -np.log1p(-inside), -np.log(outside)),
    ),
    "power": _power,
    "logistic": _logistic,
    "uniform": lambda s: RadialDistribution(lambda r: np.maximum(1 - r, 0.0), lambda inside, outside: inside),
}


# ----------------------------------------------------------------- profiles from functions


def _of_function(profile: Callable[..., Any]) -> RadialDistribution:
    """Adaptive quadrature in t = log r; probabilities are sums of panels from the nearer end, and part of one panel."""
    at = _log_integrand(profile_of(profile).log_f, 1.0, 1, 0)
    top, low, high = _range(at)

    def density(t: Array) -> Array:
        return np.exp(at(t) - top)

    edges, mass = _panels(density, low, high)
    inner = np.concatenate([[0.0], np.cumsum(mass)])
    outer = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    whole = float(mass.sum())
    ends = np.isneginf(at(np.array([high + 1.0]))[0])
    last = float(np.exp(edges[np.flatnonzero(mass)[-1] + 1])) if ends else np.inf

    def piece(a: Array, b: Array) -> Array:
        half = 0.5 * (b - a)
        return half * (density(a[..., None] + half[..., None] * (1 + NODES)) @ KRONROD)

    def outside(r: Array) -> Array:
        with np.errstate(divide="ignore"):
            t = np.clip(np.log(r), edges[0], edges[-1])
        k = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(mass) - 1)
        near = inner[k] + piece(edges[k], t)
        far = outer[k + 1] + piece(t, edges[k + 1])
        return np.where(np.isnan(r), np.nan, np.where(near < far, 1 - near / whole, far / whole))

    table = QuantileTable.of(edges, piece)

    def radius(inside: Array, beyond: Array) -> Array:
        at = table.place(inside * whole, beyond * whole, inside < 0.5, density, piece)
        return np.where(beyond <= 0, last, np.where(inside <= 0, 0.0, np.minimum(np.exp(at), last)))

    return RadialDistribution(outside, radius)


class QuantileTable(NamedTuple):
    """Probabilities below and above a fine grid: quantiles start from the table and are refined by Newton's method."""

    edges: Array  # (m + 1,)
    mass: Array  # (m,): between two edges
    inner: Array  # (m + 1,): below each edge, added from below
    outer: Array  # (m + 1,): above it, added from above

    @classmethod
    def of(cls, edges: Array, piece: Callable[[Array, Array], Array]) -> QuantileTable:
        """The table with each panel divided into eight, so that linear interpolation is a good start."""
        fine = np.append((edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(8) / 8)).ravel(), edges[-1])
        mass = piece(fine[:-1], fine[1:])
        inner, outer = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
        return cls(fine, mass, np.append(0.0, inner), np.append(outer, 0.0))

    def place(
        self, below: Array, above: Array, from_below: Mask, density: Callable[[Array], Array],
        piece: Callable[[Array, Array], Array],
    ) -> Array:  # fmt: skip
        """The place t with these probabilities below and above, by the more accurate of the two."""
        last = len(self.mass) - 1
        by_inner = np.searchsorted(self.inner, below, side="right") - 1
        by_outer = last + 1 - np.searchsorted(self.outer[::-1], above, side="left")
        k = np.clip(np.where(from_below, by_inner, by_outer), 0, last)
        side = np.where(from_below, 1.0, -1.0)
        wanted = np.where(from_below, below - self.inner[k], above - self.outer[k + 1])
        start, stop = self.edges[k], self.edges[k + 1]
        share = np.clip(wanted / np.where(self.mass[k] > 0, self.mass[k], 1.0), 0.0, 1.0)
        first = np.where(from_below, start, stop)
        search = Search(first, side, wanted, density, piece)
        return search.run(start, stop, first + side * share * (stop - start))


class Search(NamedTuple):
    """Safeguarded Newton search for the places up to which the integral from `end` is `wanted`."""

    end: Array
    side: Array  # 1 from the lower end, −1 from the upper one
    wanted: Array
    density: Callable[[Array], Array]
    piece: Callable[[Array, Array], Array]

    def run(self, low: Array, high: Array, first: Array) -> Array:
        """The places, from brackets and initial values; places that have converged are left alone."""
        t, low, high = (np.array(part).ravel() for part in (first, low, high))
        end, side, wanted = (part.ravel() for part in (self.end, self.side, self.wanted))
        before, at = high - low, np.arange(len(t))
        for _ in range(HALVINGS):
            now = t[at]
            residual = self.piece(end[at], now) - side[at] * wanted[at]
            low[at], high[at] = np.where(residual < 0, now, low[at]), np.where(residual < 0, high[at], now)
            step = residual / np.maximum(self.density(now), TINY)
            new, slow = now - step, np.abs(step) > 0.5 * before[at]
            bisect = slow | (new < low[at]) | (new > high[at])
            t[at] = np.where(bisect, 0.5 * (low[at] + high[at]), new)
            before[at] = np.abs(t[at] - now)
            at = at[before[at] > STEP_TOLERANCE]
            if not len(at):
                break
        return t.reshape(np.shape(first))


def _panels(density: Callable[[Array], Array], low: float, high: float) -> tuple[Array, Array]:
    """Panel edges and integrals: panels are bisected until the Gauss and Kronrod rules agree."""
    left = np.linspace(low, high, PANELS + 1)[:-1]
    right = left + (high - low) / PANELS
    done: list[Array] = []
    for depth in range(SHARPEST + 1):
        half = 0.5 * (right - left)
        values = density(left[:, None] + half[:, None] * (1 + NODES))
        fine, rough = half * (values @ KRONROD), half * (values[:, 1::2] @ GAUSS)
        error = np.abs(fine - rough) + half * MARGIN * _endpoint_error(density, values, left, right)
        bad = error > 1e-4 * TOLERANCE
        if depth == SHARPEST:
            _refuse_inaccurate(float(error.sum()))
            bad[:] = False
        done.append(np.stack([left, right, fine])[:, ~bad])
        if not bad.any():
            break
        middle = left[bad] + half[bad]
        left, right = np.concatenate([left[bad], middle]), np.concatenate([middle, right[bad]])
    found = np.concatenate(done, axis=1)
    found = found[:, np.argsort(found[0])]
    return np.append(found[0], found[1, -1]), found[2]


def _endpoint_error(density: Callable[[Array], Array], values: Array, left: Array, right: Array) -> Array:
    """Error of the panel's polynomial at its endpoints: detects a jump beyond the last node."""
    extrapolated = values @ _ends().T
    return np.asarray(np.abs(np.stack([density(left), density(right)], axis=1) - extrapolated).max(axis=1))


@cache
def _ends() -> Array:
    """Weights (2, 15) that extrapolate a polynomial from the nodes to −1 and 1."""
    legendre = np.polynomial.legendre.legvander
    return np.asarray(np.linalg.solve(legendre(NODES, 14).T, legendre(np.array([-1.0, 1.0]), 14).T).T)


def _refuse_inaccurate(error: float) -> None:
    if not error <= TOLERANCE:
        expected, remedy = f"the CDF must be accurate to {TOLERANCE:g}", "give a smoother profile"
        raise DomainError(sentence("Elliptical", expected, f"an error of {error:.2g}", remedy))


_cached = lru_cache(64)(_of_function)

__all__ = ["RadialDistribution", "radial_distribution"]
