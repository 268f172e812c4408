"""Radial profiles f(q) of elliptical distributions, with normalization constants, moments and radius sampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import digamma, gammaln, zeta

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics.special import LOG_PI, gamma_excess

TOLERANCE = 1e-10  # relative error of a normalization constant by quadrature
NEAREST = 1e-24  # lower limit of the squared distance for a profile with a cusp


class Profile(NamedTuple):
    """Radial profile f(q) with the functions that an elliptical distribution needs: `shape` parameter, dimension d."""

    log_f: Callable[[Array, float, int], Array]
    row_weight: Callable[[Array, float, int], Array]  # −2 f′/f: weight of a row at q in the reweighted moments
    log_radial: Callable[[float, int], float]  # log ∫ r^{d−1} f(r²) dr
    spread: Callable[[float, int], float]  # E q
    radius: Callable[[int, float, int, Generator], Array]  # random samples of √q
    default: float = 1.0
    learns: bool = True


def _eta(s: float) -> float:
    """Dirichlet's eta: Σ (−1)^{k−1} k^{−s}."""
    return float(np.log(2.0)) if s == 1 else 0.5 if s == 0 else float((1 - 2 ** (1 - s)) * zeta(s))


def _logistic_radius(n: int, shape: float, d: int, rng: Generator) -> Array:
    """Rejection sampling from a gamma distribution: acceptance probability 1/(1 + e^{−r})², at least ¼."""
    out = np.empty(0)
    while len(out) < n:
        r = rng.standard_gamma(d, 2 * (n - len(out)) + 16)
        out = np.concatenate([out, r[rng.random(len(r)) < 1 / (1 + np.exp(-r)) ** 2]])
    return out[:n]


def _t_spread(v: float, d: int) -> float:
    if not v > 2:
        raise DomainError(sentence("Elliptical", "the covariance of a t profile exists for shape above 2", v))
    return d * v / (v - 2)


def _root(q: Array) -> Array:
    return np.sqrt(np.maximum(q, NEAREST))


LearnedProfile = Literal["gaussian", "t", "laplace", "power", "logistic"]
ProfileName = Literal[LearnedProfile, "uniform"]
PROFILES: dict[ProfileName, Profile] = {
    "gaussian": Profile(
        lambda q, s, d: -0.5 * q, lambda q, s, d: np.ones_like(q),
        lambda s, d: (0.5 * d - 1) * np.log(2.0) + gammaln(0.5 * d), lambda s, d: float(d),
        lambda n, s, d, rng: np.sqrt(rng.chisquare(d, n)),
    ),
    "t": Profile(
        lambda q, s, d: -0.5 * (s + d) * np.log1p(q / s), lambda q, s, d: (s + d) / (s + q),
        lambda s, d: (0.5 * d - 1) * np.log(2.0) + gammaln(0.5 * d) - float(gamma_excess(0.5 * s, 0.5 * d)),
        _t_spread, lambda n, s, d, rng: np.sqrt(s * rng.chisquare(d, n) / rng.chisquare(s, n)), 4.0,
    ),
    "laplace": Profile(
        lambda q, s, d: -np.sqrt(q), lambda q, s, d: 1 / _root(q), lambda s, d: float(gammaln(d)),
        lambda s, d: d * (d + 1.0), lambda n, s, d, rng: rng.standard_gamma(d, n),
    ),
    "power": Profile(
        lambda q, s, d: -0.5 * q**s, lambda q, s, d: s * np.maximum(q, NEAREST) ** (s - 1),
        lambda s, d: float(gammaln(0.5 * d / s) + 0.5 * d / s * np.log(2.0) - np.log(2 * s)),
        lambda s, d: float(np.exp(np.log(2.0) / s + gammaln(0.5 * (d + 2) / s) - gammaln(0.5 * d / s))),
        lambda n, s, d, rng: (2 * rng.standard_gamma(0.5 * d / s, n)) ** (0.5 / s), 0.5,
    ),
    "logistic": Profile(
        lambda q, s, d: -np.sqrt(q) - 2 * np.log1p(np.exp(-np.sqrt(q))),
        lambda q, s, d: np.tanh(0.5 * _root(q)) / _root(q),
        lambda s, d: float(gammaln(d) + np.log(_eta(d - 1))),
        lambda s, d: d * (d + 1) * _eta(d + 1) / _eta(d - 1), _logistic_radius,
    ),
    "uniform": Profile(
        lambda q, s, d: np.where(q <= 1, 0.0, -np.inf), lambda q, s, d: np.ones_like(q), lambda s, d: -float(np.log(d)),
        lambda s, d: d / (d + 2.0), lambda n, s, d, rng: rng.random(n) ** (1 / d), learns=False,
    ),
}  # fmt: skip


def of_function(log_f: Callable[[Array], Any]) -> Profile:
    """A profile from log f(q) alone: integrals by adaptive quadrature, derivatives by finite differences."""

    def value(q: Array, s: float, d: int) -> Array:
        return _numbers(log_f, np.asarray(q, dtype=np.float64))

    @cache
    def integral(d: int, more: int) -> float:
        return _log_integral(value, 1.0, d, more)

    def row_weight(q: Array, s: float, d: int) -> Array:
        step = 1e-5 * np.maximum(q, 1e-6)
        low = np.maximum(q - step, 0.0)
        return np.maximum(-2 * (value(q + step, s, d) - value(low, s, d)) / (q + step - low), 0.0)

    def log_radial(s: float, d: int) -> float:
        return integral(d, 0)

    def spread(s: float, d: int) -> float:
        return float(np.exp(integral(d, 2) - integral(d, 0)))

    def radius(n: int, s: float, d: int, rng: Generator) -> Array:
        return _inverse(value, s, d, rng.random(n))

    return Profile(value, row_weight, log_radial, spread, radius)


def _numbers(log_f: Callable[[Array], Any], q: Array) -> Array:
    """Validated log f at q: one number per entry."""
    expected = (
        "profile must be a function log f(q) that takes an array of squared distances and gives one number for each"
    )
    try:
        out = np.asarray(log_f(q))
    except (TypeError, ValueError, IndexError, AttributeError, KeyError) as error:
        got = f"a function that raises {type(error).__name__}"
        raise DomainError(sentence("Elliptical", expected, got, "correct it; its own message stands above")) from error
    if out.dtype.kind not in "fiu" or out.shape != q.shape:
        raise DomainError(sentence("Elliptical", expected, f"{out.dtype} {out.shape} for {q.shape}"))
    return out.astype(np.float64, copy=False)


def check_function(log_f: Callable[[Array], Any], d: int) -> None:
    """Raise unless the function is a profile in d dimensions: numeric values with a finite integral."""
    q = np.geomspace(1e-6, 1e6, 25)
    with np.errstate(all="ignore"):
        bad = np.isnan(_numbers(log_f, q))
    if bad.any():
        expected, got = "profile must give a number for every q", f"NaN at q = {q[bad][0]:g}"
        raise DomainError(sentence("Elliptical", expected, got, "return -inf where the density is 0"))
    profile_of(log_f).log_radial(1.0, d)


def profile_of(profile: Any) -> Profile:
    """The profile of that name, or of that function, whose integrals are cached."""
    if not callable(profile):
        return PROFILES[profile]
    try:
        return _cached(profile)
    except TypeError:  # a callable without a hash
        return of_function(profile)


def mean_log(profile: Any, s: float, d: int) -> float:
    """E log f(q), in closed form or accurate to 1e-10."""
    closed_form: dict[str, Callable[[], float]] = {
        "gaussian": lambda: -0.5 * d,
        "t": lambda: -0.5 * (s + d) * float(digamma(0.5 * (s + d)) - digamma(0.5 * s)),
        "laplace": lambda: -float(d),
        "power": lambda: -0.5 * d / s,
        "uniform": lambda: 0.0,
    }
    if isinstance(profile, str) and profile in closed_form:
        return closed_form[profile]()
    value = profile_of(profile).log_f
    at = _log_integrand(value, s, d, 0)
    top, low, high = _range(at)

    def integrand(t: float) -> float:
        here = float(at(t))
        return float(np.exp(here - top)) * (here - d * t) if np.isfinite(here) else 0.0

    return _integral(integrand, low, high) / float(np.exp(_log_integral(value, s, d, 0) - top))


_cached = lru_cache(64)(of_function)


def log_volume(profile: Profile, shape: float, d: int) -> float:
    """log ∫ f(‖z‖²) dz over d-dimensional space: surface of the unit sphere times the radial integral."""
    return float(np.log(2.0) + 0.5 * d * LOG_PI - gammaln(0.5 * d) + profile.log_radial(shape, d))


def _log_integrand(value: Any, s: float, d: int, more: int) -> Callable[[Any], Array]:
    """Log of r^{d + more} f(r²) as a function of t = log r, with dr = r dt."""

    def at(t: Any) -> Array:
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out = (d + more) * t + value(np.exp(2 * t), s, d)
        return np.where(np.isnan(out), -np.inf, out)

    return at


def _range(at: Callable[[Any], Array]) -> tuple[float, float, float]:
    """Maximum of the log integrand in t, and the interval outside of which it is smaller by a factor e^{−45}."""
    grid = np.linspace(-80.0, 80.0, 16001)
    logs = at(grid)
    k = int(np.argmax(logs))
    if not np.isfinite(logs[k]):
        raise _no_finite_integral()
    inside = np.flatnonzero(logs >= logs[k] - 45.0)
    a, b = int(inside[0]), int(inside[-1])
    if b >= len(grid) - 1 or a <= 0:
        raise _no_finite_integral()
    return float(logs[k]), float(grid[a - 1]), float(grid[b + 1])


def _no_finite_integral() -> DomainError:
    expected = "the profile must have a finite integral over all of space"
    got = "one that does not decrease, or is 0 everywhere"
    return DomainError(sentence("Elliptical", expected, got, "log f(q) must decrease, as -0.5 * q does"))


def _log_integral(value: Any, s: float, d: int, more: int) -> float:
    at = _log_integrand(value, s, d, more)
    top, low, high = _range(at)
    return top + float(np.log(_integral(lambda t: float(np.exp(at(t) - top)), low, high)))


def _integral(f: Callable[[float], float], low: float, high: float) -> float:
    from scipy.integrate import IntegrationWarning, quad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)  # the error is checked below
        found, error = quad(f, low, high, epsrel=0.1 * TOLERANCE, epsabs=0.0, limit=500)
    if not error <= 100 * TOLERANCE * abs(found):
        expected, remedy = f"integrals must be accurate to {TOLERANCE:g}", "give a smoother profile"
        raise DomainError(sentence("Elliptical", expected, f"an error of {error / abs(found):.2g}", remedy))
    return float(found)


def _inverse(value: Any, s: float, d: int, p: Array) -> Array:
    """Inverse CDF of the radius, by interpolation of the CDF on 20,000 points."""
    at = _log_integrand(value, s, d, 0)
    top, low, high = _range(at)
    t = np.linspace(low, high, 20001)
    mass = np.exp(at(t) - top)
    inside = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    return np.exp(np.interp(p, inside / inside[-1], t))
