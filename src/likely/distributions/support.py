"""Numerical support of a distribution, from its samples: values to enumerate, or an interval to integrate over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics.quadrature import integrate

LOOK = 512  # samples from which the kind of distribution is recognized
FARTHEST = 150.0  # x = center + scale · sinh(t) up to this t: 10⁶⁵ scales to either side
LISTED = 1 << 20  # largest number of values that are enumerated
LEFT_OUT = 1e-13  # probability that an enumeration may leave out
POINT = 1e-10  # probability below which a set counts as single points
MANY, PANELS = 100_000, 512  # samples and panels of an expectation
STEEP = 128  # pairs of adjacent samples between which the function changes most
HIDDEN = 1e-3  # probability of poles that quadrature may miss: it counts as error
ROUNDING = 1e-12  # relative error of an integral, at least
INACCURATE = 1e-3  # error of an expectation relative to E|g(x)| from which on it is rejected
NOTHING = 1e-9  # of the size of g: an error that is always small enough
SMALLEST = 700.0  # x = scale · exp(t) from exp(−700) to exp(700)
LEVEL = 1e-9  # a decrease of a logarithm by less may be rounding error
SLOW = 0.999  # a tail that falls by a larger factor per unit of t has no integral that could be computed


class Atoms(NamedTuple):
    """Support of a discrete distribution: its values with their log-probabilities."""

    values: Any  # (m,) or (m, d)
    log_probs: Array  # (m,)


class Line(NamedTuple):
    """Quadrature panels of a univariate continuous distribution in t, with x = center + scale · sinh(t).

    Positive distributions may use x = scale · exp(t): a pole at 0 is then a tail.
    """

    center: float
    scale: float
    edges: Array  # in t
    positive: bool = False

    def places(self, t: Array) -> Array:
        """Change of variable x(t)."""
        return np.asarray(np.exp(t + math.log(self.scale)) if self.positive else self.center + self.scale * np.sinh(t))

    def where(self, x: Array) -> Array:
        """Inverse change of variable t(x)."""
        if self.positive:
            return np.asarray(np.log(x) - math.log(self.scale))
        return np.asarray(np.arcsinh((x - self.center) / self.scale))

    def log_width(self, t: Array) -> Array:
        """Log Jacobian log dx/dt."""
        return np.asarray(t if self.positive else _log_cosh(t)) + math.log(self.scale)


def look(distribution: Any) -> Atoms | Line | None:
    """Support: `Atoms` of a discrete distribution, `Line` of a univariate continuous one; None for all others.

    >>> import likely as lk
    >>> type(look(lk.Poisson(3.0))).__name__, type(look(lk.Gaussian([0.0], 1.0))).__name__
    ('Atoms', 'Line')
    >>> look(lk.Gaussian([0.0, 0.0], 1.0)) is None
    True
    """
    if hasattr(distribution, "probs") and hasattr(distribution, "values") and not callable(distribution.values):
        with np.errstate(divide="ignore"):
            return Atoms(distribution.values, np.log(distribution.probs))
    draws = _draws(distribution)
    if draws is None:
        return None
    if _only_integers(distribution, draws):
        return _listed(distribution, draws)
    return _line(draws[:, 0]) if draws.shape[1] == 1 else None


def is_discrete(distribution: Any) -> bool:
    """True for a discrete distribution: single values have positive probability."""
    if hasattr(distribution, "probs") and hasattr(distribution, "values") and not callable(distribution.values):
        return True
    draws = _draws(distribution)
    return draws is not None and _only_integers(distribution, draws)


def _draws(distribution: Any) -> Array | None:
    """Samples as rows (n, d); None if they are not numeric."""
    try:
        drawn = distribution.sample(LOOK, np.random.default_rng(0))
    except TypeError:  # a distribution of sequences needs a length
        return None
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind not in "biuf":
        return None
    a = np.asarray(drawn, dtype=np.float64)
    a = a[:, None] if a.ndim == 1 else a
    return a if a.ndim == 2 and np.isfinite(a).all() else None


def _only_integers(distribution: Any, draws: Array) -> bool:
    """True if the samples are integers and the density between integers is 0."""
    if not (draws == np.floor(draws)).all():
        return False
    with np.errstate(all="ignore"):
        return bool(np.isneginf(log_density(distribution, draws[:16] + 0.5)).all())


def log_density(distribution: Any, x: Array) -> Array:
    """Log-density of rows; NaN, which overflow may give at extreme values, becomes −inf."""
    logs = np.asarray(distribution.log_prob(x), dtype=np.float64)
    return np.where(np.isnan(logs), -np.inf, logs)


def _listed(distribution: Any, draws: Array) -> Atoms | None:
    """Enumerated support: the bounding box of the samples, enlarged until nearly all probability lies inside."""
    low, high = draws.min(axis=0), draws.max(axis=0)
    before = -1.0
    while np.prod(high - low + 1) <= LISTED:
        axes = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)), indexing="ij")
        values = np.stack([axis.ravel() for axis in axes], axis=1)
        logs = log_density(distribution, values)
        mass = float(np.exp(logs).sum())
        if mass >= 1 - LEFT_OUT or (mass > 1 - 1e-9 and mass - before < LEFT_OUT):
            possible = logs > -np.inf
            return Atoms(values[possible], logs[possible])
        before, wider = mass, np.ceil(0.5 * (high - low + 1))
        low, high = low - wider, high + wider
    return None


def _line(draws: Array, panels: int = 64, ends: Any = (), positive: bool = False) -> Line:
    """Quadrature panels with edges at quantiles of the samples and at known endpoints, continued on both sides."""
    marks = np.quantile(draws, np.linspace(0, 1, panels + 1))
    center = float(marks[panels // 2])
    scale = float(marks[3 * panels // 4] - marks[panels // 4]) / 2 or float(np.ptp(draws)) or abs(center) or 1.0
    beyond = float(np.ptp(draws)) * 0.5 ** np.arange(40.0)  # the support may end anywhere just outside the samples
    marks = np.concatenate([marks, marks[0] - beyond, marks[-1] + beyond, ends])
    if positive:
        line, marks = Line(0.0, center, marks, True), marks[marks > 0]
        low, high = -SMALLEST - math.log(center), SMALLEST - math.log(center)
    else:
        line, low, high = Line(center, scale, marks), -FARTHEST, FARTHEST
    far = np.concatenate([np.arange(0.0, 12.0, 0.5), np.arange(12.0, max(-low, high), 6.0)])
    edges = np.unique(np.concatenate([[low, high], -far, far, line.where(marks)]))
    return line._replace(edges=edges[(edges >= low) & (edges <= high)])


def _is_positive(distribution: Any, draws: Array) -> bool:
    """True if all samples are positive and the density is 0 below 0."""
    if not draws.min() > 0:
        return False
    with np.errstate(all="ignore"):
        return bool(np.isneginf(log_density(distribution, -np.quantile(draws, [[0.0], [0.01], [0.5], [0.99]]))).all())


def integral(
    line: Line, distribution: Any, g: Callable[[Array, Array], Array], missing: float = 1e-8, most: float = 1.0
) -> tuple[float, float] | None:
    """∫ p(x) g(x, log p(x)) dx and its error; ±inf where it diverges; None where p itself does not integrate to 1.

    `missing` is the probability of poles that quadrature may miss, and `most` a bound of g there.

    >>> import likely as lk
    >>> cauchy = lk.StudentT([0.0], [1.0], 1.0)
    >>> value, error = integral(look(cauchy), cauchy, lambda x, logs: -logs)
    >>> round(value, 9) == round(float(np.log(4 * np.pi)), 9)
    True
    """

    def weighted(t: Array) -> tuple[Array, Array, Array]:
        x = line.places(t)
        logs = log_density(distribution, x[:, None])
        logs = np.where(np.isposinf(logs), -np.inf, logs)  # a pole is a single point of measure 0
        return x, logs, np.exp(logs + line.log_width(t))

    def values(t: Array) -> Array:
        x, logs, p = weighted(t)
        return np.where(p > 0, p * g(x, np.where(p > 0, logs, 0.0)), 0.0)

    def finite(t: Array) -> Array:
        found = values(t)
        return np.where(np.isfinite(found), found, 0.0)

    def infinite(sign: float) -> Callable[[Array], Array]:
        return lambda t: np.where(values(t) == sign * np.inf, weighted(t)[2], 0.0)

    with np.errstate(all="ignore"):
        mass, lost = integrate(lambda t: weighted(t)[2], line.edges)
        if not abs(mass - 1) <= missing + lost:
            return None
        for sign in (1.0, -1.0):  # g may be infinite at single points (measure 0), or where p has probability
            if integrate(infinite(sign), line.edges)[0] > POINT:
                return sign * math.inf, 0.0
        value, error = integrate(finite, line.edges)
        size = abs(value)
        ends = float(line.edges[0]), float(line.edges[-1])
        tails = [_tail(finite, end, size) + _underflowed_tail(line, weighted, values, end, size) for end in ends]
    error += abs(1 - mass) * (most + abs(value)) + sum(abs(t) for t in tails if math.isfinite(t))
    return value + sum(tails), error


class Within(NamedTuple):
    """A circular distribution restricted to one period, as a distribution on the real line."""

    distribution: Any
    low: float
    high: float

    def log_prob(self, x: Array) -> Array:
        """log p within the period, −inf outside."""
        inside = (x[:, 0] >= self.low) & (x[:, 0] <= self.high)
        return np.where(inside, self.distribution.log_prob(x), -np.inf)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples of the distribution."""
        return np.asarray(self.distribution.sample(n, rng))


def expectation(distribution: Any, g: Callable[[Array], Array]) -> tuple[Array, Array] | None:
    """E[g(x)] of a univariate continuous distribution by quadrature, and an error bound; None for any other one.

    g takes rows (m, 1) and gives (m, ...). Panel edges are quantiles of samples, and samples between which g changes
    most, so that a jump on either side of a single sample is resolved. NaN of g where the distribution has
    probability, and integrals that do not converge, raise.
    """
    if not isinstance(look(distribution), Line):
        return None
    whose = f"{type(distribution).__name__}.expect"
    on_line = Within(distribution, *distribution._turn) if hasattr(distribution, "_turn") else distribution
    x = np.sort(np.ravel(distribution.sample(MANY, np.random.default_rng(0))))
    if hasattr(distribution, "_turn"):
        line = _line(x, PANELS, ends=distribution._turn)
    else:
        line = _line(x, PANELS, positive=_is_positive(distribution, x))
    with np.errstate(all="ignore"):
        values = np.asarray(g(x[:, None]), dtype=np.float64)
    found = [_entry(line, on_line, g, j, x, column, whose) for j, column in enumerate(values.reshape(len(x), -1).T)]
    if any(one is None for one in found):
        return None
    parts = np.array(found, dtype=np.float64).reshape(*values.shape[1:], 2)
    if not np.isfinite(parts).all():
        raise _no_convergence(whose)
    return parts[..., 0][()], parts[..., 1][()]


def _entry(
    line: Line, distribution: Any, g: Any, j: int, x: Array, at_samples: Array, whose: str
) -> tuple[float, float] | None:
    """E of entry j of g, given its values at the sorted samples x; scaled by their median for absolute tolerances."""
    sizes = np.abs(at_samples[np.isfinite(at_samples)])
    unit = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 1.0

    def entry(at: Array, logs: Array) -> Array:
        values = np.asarray(g(at[:, None]), dtype=np.float64).reshape(len(at), -1)[:, j]
        undefined = np.isnan(values)
        if undefined.any():
            heights = np.where(undefined, log_density(distribution, at[:, None]), -np.inf)
            if heights.max() > math.log(np.finfo(np.float64).tiny):
                got = f"NaN at {at[heights.argmax()]:g}"
                raise DomainError(sentence(whose, "g must be a number wherever the density is positive", got))
        return np.where(undefined, 0.0, values) / unit

    with np.errstate(all="ignore"):
        change = np.nan_to_num(np.abs(np.diff(at_samples)))
    steep = np.argpartition(-change, STEEP)[:STEEP]
    edges = line.where(x[np.unique(np.concatenate([steep, steep + 1]))])
    line = line._replace(edges=np.unique(np.concatenate([line.edges, edges])))
    found = integral(line, distribution, entry, HIDDEN, float(sizes.max(initial=0.0)) / unit)
    if found is None:
        return None
    value, error = found
    if math.isfinite(value + error) and error > INACCURATE * abs(value) + NOTHING:
        size = integral(line, distribution, lambda at, logs: np.abs(entry(at, logs)), HIDDEN)
        if size is None or not error <= INACCURATE * size[0] + NOTHING:
            raise _no_convergence(whose, f"{unit * value:.3g} with an error of {unit * error:.1g}")
    return unit * value, unit * (error + ROUNDING * (1 + abs(value)))


def _no_convergence(whose: str, got: str | None = None) -> DomainError:
    expected = "the expectation does not exist, or its integral does not converge"
    remedy = "pass a g that grows more slowly than the density falls off, or bound it with np.clip"
    return DomainError(sentence(whose, expected, got, remedy))


def _tail(integrand: Callable[[Array], Array], end: float, size: float) -> float:
    """Integral beyond the last panel: a geometric series, or infinity."""
    last, before = integrand(np.array([end, end - math.copysign(1.0, end)]))
    if abs(last) <= 1e-15 * (1 + size):
        return 0.0
    ratio = float(last / before) if before else 1.0
    return math.copysign(math.inf, last) if ratio >= SLOW or ratio <= 0 else float(last) / -math.log(ratio)


def _underflowed_tail(line: Line, weighted: Any, values: Any, farthest: float, size: float) -> float:
    """Integral of the tail in which p underflows or g overflows.

    If p g is still large and increasing at the start of that tail, it has no integral; if decreasing, an exponential
    tail e^(−c x) is assumed.
    """
    t = np.linspace(0.0, farthest, 8 * math.ceil(abs(farthest)) + 1)

    def representable(t: Array) -> Array:
        return np.isfinite(values(t)) & (weighted(t)[2] > 0)

    logs, inside = weighted(t)[1], np.flatnonzero(representable(t))
    last = int(inside[-1]) if len(inside) else -1
    if not 1 <= last < len(t) - 1 or not np.isfinite(logs[last + 1]):
        return 0.0
    end = _last_representable(representable, float(t[last]), float(t[last + 1]))
    near = np.array([end - 0.01 * math.copysign(1.0, farthest), end])
    found = values(near)
    if abs(found[1]) <= 1e-13 * (1 + size):
        return 0.0
    height, x = np.log(np.abs(found)) - line.log_width(near), line.places(near)
    fall = float(height[0] - height[1])
    rest = math.exp(height[1]) * abs(x[1] - x[0]) / fall if fall > LEVEL else math.inf
    return math.copysign(rest, found[1])


def _last_representable(representable: Callable[[Array], Array], inside: float, outside: float) -> float:
    """The last t at which p and g are representable, by bisection."""
    for _ in range(50):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if representable(np.array([middle]))[0] else (inside, middle)
    return inside


def _log_cosh(t: Array) -> Array:
    a = np.abs(t)
    return a + np.log1p(np.exp(-2 * a)) - math.log(2.0)


def generator(rng: Generator | None) -> Generator:
    """The given random generator, or one with a fixed seed."""
    return np.random.default_rng(0) if rng is None else rng
