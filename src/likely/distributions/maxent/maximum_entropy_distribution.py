"""Maximum-entropy density exp(λ·f(x))/Z on an interval: normalization, CDF, quantiles, moments by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from likely.core import declared
from likely.core.arrays import Array, like_input, parameter, refuse_infinite, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.distributions.distribution import Distribution, in_units
from likely.distributions.statistics.counts import one_column
from likely.numerics.quadrature import integrate

ME = "MaximumEntropyDistribution"
PANELS, REACH = 200, 40.0  # panels in t from −40 to 40: e⁴⁰ exceeds any scale
TABLED = 40 * PANELS + 1  # points of the CDF table for sampling
_NODES, _SHARES = np.polynomial.legendre.leggauss(12)

FEATURES: dict[str, Callable[[Array], Array]] = {
    "mean": lambda x: x, "square": lambda x: x**2, "cube": lambda x: x**3, "fourth": lambda x: x**4,
    "abs": np.abs, "log": np.log, "log1m": lambda x: np.log1p(-x), "cos": np.cos, "sin": np.sin,
}  # fmt: skip


class Map(NamedTuple):
    """Change of variables from the real line to an interval: x(t), t(x) and log dx/dt."""

    x: Callable[[Array], Array]
    t: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


def interval_map(low: float, high: float, center: float, scale: float) -> Map:
    """Change of variables x(t): logistic for a bounded interval, exponential for a half-line, sinh for the real line.

    >>> interval_map(0.0, 1.0, 0.0, 1.0).x(np.array([0.0])).tolist()
    [0.5]
    """
    finite = np.isfinite(low), np.isfinite(high)
    if all(finite):
        w = high - low
        return Map(lambda t: low + w * expit(t), lambda x: logit((x - low) / w),
                   lambda t: np.log(w) + log_expit(t) + log_expit(-t))  # fmt: skip
    if any(finite):
        end, sign = (low, 1.0) if finite[0] else (high, -1.0)
        return Map(lambda t: end + sign * scale * np.exp(sign * t), lambda x: sign * np.log(sign * (x - end) / scale),
                   lambda t: np.log(scale) + sign * t)  # fmt: skip
    return Map(lambda t: center + scale * np.sinh(t), lambda x: np.arcsinh((x - center) / scale),
               lambda t: np.log(scale) + np.log(np.cosh(t)))  # fmt: skip


@dataclass(frozen=True, eq=False)
class MaximumEntropyDistribution(Distribution):
    """Exponential-family density of maximum entropy on an interval.

    log p(x) = λ·f(x) − log Z for low < x < high: the result of `maximum_entropy`.

    Parameters
    ----------
    features : tuple of str or callable
        Names ("mean", "square", "log" …) or functions of x; only names can be saved.
    multipliers : array-like (k,)
        Lagrange multipliers λ, one per feature.
    low : float
        Lower end; may be −∞.
    high : float
        Upper end; may be ∞.
    center : float, default 0.0
        Center of the change of variables for an unbounded interval.
    scale : float, default 1.0
        Scale of this change of variables.

    See Also
    --------
    maximum_entropy : Finds the multipliers.

    References
    ----------
    Jaynes (1957); Herbst and du Preez, lecture notes, 1.6.

    Examples
    --------
    >>> distribution = MaximumEntropyDistribution(("mean",), [1.0], 0.0, 1.0)
    >>> round(distribution.mean, 6), distribution.cdf([0.5]).round(6), distribution.quantile([0.5]).round(6)
    (0.581977, array([0.377541]), array([0.620115]))
    """

    features: Annotated[tuple[Any, ...], declared.texts]
    multipliers: Annotated[Array, declared.numbers("k")]  # λ: (k,)
    low: Annotated[float, declared.end]
    high: Annotated[float, declared.end]
    center: float = 0.0
    scale: Annotated[float, declared.number(0)] = 1.0

    def __post_init__(self) -> None:
        features = (self.features,) if isinstance(self.features, str) or callable(self.features) else self.features
        lam = np.atleast_1d(parameter(self.multipliers, ME, "multipliers"))
        if unknown := [f for f in features if not callable(f) and f not in FEATURES]:
            raise DomainError(sentence(ME, f"features must be functions, or among {', '.join(FEATURES)}", unknown[0]))
        if lam.shape != (len(features),):
            raise ShapeError(sentence(ME, f"one multiplier per feature is needed ({len(features)})", lam.shape))
        low, high, center, scale = (float(part) for part in (self.low, self.high, self.center, self.scale))
        if not low < high or not (np.isfinite(center) and 0 < scale < np.inf):
            raise DomainError(sentence(ME, "low must lie below high, and scale be positive", (low, high, scale)))
        self._set(features=tuple(features), multipliers=lam, low=low, high=high, center=center, scale=scale)
        if not np.isfinite(self.log_normalizer):
            raise DomainError(sentence(ME, "the density must have a finite integral", "an infinite one"))

    dim = 1
    members = None

    @cached_property
    def _map(self) -> Map:
        return interval_map(self.low, self.high, self.center, self.scale)

    def _exponent(self, x: Array) -> Array:
        """Exponent λ·f(x)."""
        with np.errstate(all="ignore"):
            parts = [lam * feature_values(f, x) for f, lam in zip(self.features, self.multipliers, strict=True)]
            return np.nan_to_num(sum(parts, np.zeros_like(x)), nan=-np.inf, posinf=np.inf, neginf=-np.inf)

    def _log_density(self, t: Array) -> Array:
        """Unnormalized log density of t."""
        with np.errstate(all="ignore"):
            return self._exponent(self._map.x(t)) + self._map.log_slope(t)

    @cached_property
    def _edges(self) -> Array:
        return np.linspace(-REACH, REACH, PANELS + 1)

    @cached_property
    def _panels(self) -> tuple[Array, float, Array, Array]:
        """Probabilities of panels (P,), log Z, nodes (P·12,) and their probabilities."""
        t, w = panel_nodes()
        logs = self._log_density(t)
        peak = logs.max()
        p = w * np.exp(logs - peak)
        masses = p.reshape(PANELS, -1).sum(axis=1)
        return masses / p.sum(), float(peak + np.log(p.sum())), self._map.x(t), p / p.sum()

    @property
    def log_normalizer(self) -> float:
        """Log normalization constant log Z."""
        return self._panels[1]

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of rows (n,) or (n, 1); −inf outside the interval, 0 for missing values."""
        z = rows(x, 1, ME)
        refuse_infinite(z, ME)
        at, missing = z[:, 0], np.isnan(z[:, 0])
        inside = (at >= self.low) & (at <= self.high)
        logs = self._exponent(np.where(inside, at, self._panels[2][len(self._panels[2]) // 2])) - self.log_normalizer
        return like_input(np.where(missing, 0.0, np.where(inside, logs, -np.inf)), x)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, 1), by inversion of a table of the CDF."""
        below, t = self._table
        return self._map.x(np.interp(rng.random(n), below, t))[:, None]

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """Table of P(T ≤ t) and t."""
        t = np.linspace(-REACH, REACH, TABLED)
        below = np.maximum.accumulate(np.clip(self._below(t), 0.0, 1.0))
        rising = np.concatenate([[True], np.diff(below) > 0])
        return below[rising] / below[-1], t[rising]

    @cached_property
    def _sums(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self._panels[0])])

    def _below(self, t: Array) -> Array:
        """P(T ≤ t): sum of panels, and Gauss–Legendre quadrature of the last partial panel."""
        t = np.clip(t, -REACH, REACH)
        at = np.clip(np.searchsorted(self._edges, t, "right") - 1, 0, PANELS - 1)
        half = 0.5 * (t - self._edges[at])
        nodes = self._edges[at][..., None] + half[..., None] * (1 + _NODES)
        return np.asarray(self._sums[at] + half * (np.exp(self._log_density(nodes) - self.log_normalizer) @ _SHARES))

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x)."""
        z = one_column(x, None)
        inside = (z > self.low) & (z < self.high)
        with np.errstate(all="ignore"):
            t = self._map.t(np.where(inside, z, self._panels[2][len(self._panels[2]) // 2]))
        outside = np.where(np.isnan(z), np.nan, np.where(z >= self.high, 1.0, 0.0))
        return np.where(inside, np.clip(self._below(t), 0.0, 1.0), outside)

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) by bisection; NaN outside 0 … 1."""
        p = np.asarray(p, dtype=np.float64)
        at = np.clip(np.searchsorted(self._sums, p, "right") - 1, 0, PANELS - 1)
        low, high = self._edges[at], self._edges[at + 1]
        for _ in range(50):  # a panel is 0.4 wide: 10⁻¹⁵ after as many bisections
            middle = 0.5 * (low + high)
            below = self._below(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        x = self._map.x(0.5 * (low + high))
        x = np.where(p == 0, self.low, np.where(p == 1, self.high, x))
        return np.where((p >= 0) & (p <= 1), x, np.nan)

    def expected(self, f: Callable[[Array], Array]) -> float:
        """Expectation E[f(x)] by fixed quadrature.

        Parameters
        ----------
        f : callable
            Function of points (m,).

        Returns
        -------
        float
            The expectation.
        """
        _, _, x, p = self._panels
        positive = p > 1e-300
        return float(p[positive] @ f(x[positive]))

    def integrated(self, f: Callable[[Array], Array]) -> float:
        """Expectation E[f(x)] by adaptive quadrature, for f with jumps.

        Parameters
        ----------
        f : callable
            Function of points (m,).

        Returns
        -------
        float
            The expectation.
        """
        with np.errstate(all="ignore"):

            def integrand(t: Array) -> Array:
                p = np.exp(self._log_density(t) - self.log_normalizer)
                return np.where(p > 1e-300, p * f(self._map.x(t)), 0.0)

            total = integrate(lambda t: np.exp(self._log_density(t) - self.log_normalizer), self._edges)[0]
            return integrate(integrand, self._edges)[0] / total

    @property
    def mean(self) -> float:
        """Mean."""
        return self.expected(lambda x: x)

    @property
    def variance(self) -> float:
        """Variance."""
        mean = self.mean
        return self.expected(lambda x: (x - mean) ** 2)

    def entropy(self, bits: bool = False) -> float:
        """Entropy log Z − λ·E[f]."""
        return float(in_units(self.log_normalizer - self.expected(self._exponent), bits))


def feature_values(feature: Any, x: Array) -> Array:
    """A feature, by name or as a function, at points (m,)."""
    with np.errstate(all="ignore"):
        found = np.asarray(FEATURES[feature](x) if isinstance(feature, str) else feature(x), dtype=np.float64)
    return np.broadcast_to(found, x.shape)


def panel_nodes() -> tuple[Array, Array]:
    """Gauss–Legendre nodes in t (m,) and their weights (m,)."""
    edges = np.linspace(-REACH, REACH, PANELS + 1)
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    return (middle[:, None] + half[:, None] * _NODES).ravel(), (half[:, None] * _SHARES).ravel()
