"""Convolution: distribution of a weighted sum of independent variables.

Sums in closed form give a named distribution (Gaussian, Poisson, gamma …). Sums of discrete distributions are
enumerated. All others are computed on a grid: all variables but one are rounded to grid points, that one keeps its CDF,
and the convolution is a product of Fourier transforms. The step is halved until the CDF no longer changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.distribution import Distribution
from likely.distributions.sums.closed_form_sums import Term, known_sum
from likely.distributions.sums.grid_distribution import GridDistribution
from likely.distributions.sums.lattice_distribution import LatticeDistribution
from likely.distributions.support import Atoms, Line, look

ME = "sum_of"
CELLS = 1 << 12, 1 << 20  # of the first grid, and of the last
CLEANEST = 1e-13  # relative probability that is truncated in any case
PAIRS = 1 << 27  # products of a direct convolution; beyond it, Fourier transform
LIST = 1 << 22  # number of values without a common lattice
RESOLVED = 64  # cells below which a distribution is too narrow for the rounding error to show under halving
WIDEST = 1e5  # largest range in interquartile ranges: heavier tails are truncated, and the error says so


def sum_of(*distributions: Any, weights: ArrayLike | None = None, copies: Any = 1, error: float = 1e-8) -> Distribution:
    """Distribution of w₁x₁ + … + w_m x_m for independent x_i.

    The result is a density with log_prob, cdf, quantile, mean and sample. Sums in closed form give that distribution.
    Otherwise the result is a `LatticeDistribution` (all are discrete: exact) or a `GridDistribution`, each with
    `.error`: the truncated probability plus a conservative estimate of the error of the CDF, from the changes of the
    last two halvings of the grid, the shift of means by rounding and the interpolation between edges. An error that
    cannot be met, as with Cauchy tails or poles, gives a warning.

    Parameters
    ----------
    *distributions : density
        Distributions of one column.
    weights : array-like (m,), optional
        Factors w of the variables; 1 by default.
    copies : int or sequence of int, default 1
        Number of independent variables of each distribution: one number for all, or one per distribution.
    error : float, default 1e-8
        Largest error of the CDF, where there is no closed form.

    Returns
    -------
    Distribution
        The distribution of the sum.

    See Also
    --------
    convolve : Two distributions.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.sum_of(lk.Gaussian([1.0], 3.0), lk.Gaussian([2.0], 4.0), weights=[1, -1])
    Gaussian(mean=[-1.0], covariance=[[7.0]], kind='full')
    >>> dice = lk.Categorical(np.full(6, 1 / 6), levels=[1, 2, 3, 4, 5, 6])
    >>> (36 * np.exp(lk.distributions.sum_of(dice, copies=2).log_prob([2, 7, 12, 13]))).round(6)
    array([1., 6., 1., 0.])
    >>> lk.distributions.sum_of(lk.Beta(1, 1), copies=2).cdf([0.5, 1.0]).round(6)
    array([0.125, 0.5  ])
    """
    if not 0 < error < 1:
        raise DomainError(sentence(ME, "error must lie between 0 and 1", error))
    terms = _terms(distributions, weights, copies)
    known = known_sum(terms)
    if known is not None:
        return known
    parts = [_part(term, error / (8 * sum(t.copies for t in terms))) for term in terms]
    discrete = [part for part in parts if part.values is not None]
    if len(discrete) == len(parts):
        return _listed(discrete)
    return _gridded(parts, error)


def convolve(a: Any, b: Any, *, weights: ArrayLike | None = None, copies: Any = 1, error: float = 1e-8) -> Distribution:
    """Convolution: the distribution of a sum of two independent variables, `sum_of(a, b)`.

    Parameters
    ----------
    a : density
        A distribution of one column.
    b : density
        Another.
    weights : array-like (2,), optional
        Factors of the variables; 1 by default.
    copies : int or sequence of int, default 1
        Number of independent variables of each distribution.
    error : float, default 1e-8
        Largest error of the CDF, where there is no closed form.

    Returns
    -------
    Distribution
        The distribution of the sum.

    See Also
    --------
    sum_of : Several distributions.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.convolve(lk.Poisson(1.0), lk.Poisson(2.0))
    Poisson(rate=[3.])
    """
    return sum_of(a, b, weights=weights, copies=copies, error=error)


# ------------------------------------------------------------------------------ terms


def _terms(distributions: Sequence[Any], weights: Any, copies: Any) -> list[Term]:
    if not distributions:
        raise DomainError(sentence(ME, "at least one distribution is needed", "none"))
    w = _one_per_distribution(1.0 if weights is None else weights, len(distributions), "weights")
    c = _one_per_distribution(copies, len(distributions), "copies")
    if (c < 1).any() or (c != np.floor(c)).any():
        raise DomainError(sentence(ME, "copies must be integers above 0", c.tolist()))
    for distribution in distributions:
        if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
            raise DomainError(sentence(ME, "densities are needed", type(distribution).__name__))
        if getattr(distribution, "members", None) is not None:
            raise DomainError(
                sentence(ME, "single distributions are needed", f"a stack of {distribution.members}", "take member(k)")
            )
    return [Term(distribution, float(a), int(k)) for distribution, a, k in zip(distributions, w, c, strict=True) if a]


def _one_per_distribution(given: Any, n: int, name: str) -> Array:
    try:
        a = np.broadcast_to(np.asarray(given, dtype=np.float64), (n,))
    except (TypeError, ValueError) as wrong:
        raise ShapeError(
            sentence(ME, f"{name} must be one number, or one for each of {n} distributions", given)
        ) from wrong
    if not np.isfinite(a).all():
        raise DomainError(sentence(ME, f"{name} must be finite", given))
    return a


class _Part(NamedTuple):
    """One weighted variable: a list of values, or a range with a function that gives the probabilities of cells."""

    copies: int
    low: float
    high: float
    cut: float  # probability outside of it
    values: Array | None = None
    probs: Array | None = None
    cells: Callable[[Array], Array] | None = None  # edges (m + 1,) → masses (m,)


def _part(term: Term, cut: float) -> _Part:
    support = look(term.distribution)
    if isinstance(support, Atoms):
        return _atoms(term, support, cut)
    if not isinstance(support, Line):
        expected = "univariate distributions are needed"
        remedy = "Gaussians add in any dimension; take marginals of others"
        raise DomainError(sentence(ME, expected, type(term.distribution).__name__, remedy))
    low, high, lost = _range(term.distribution, support, cut)
    ends = sorted((term.weight * low, term.weight * high))
    return _Part(term.copies, ends[0], ends[1], lost, cells=_cells(term))


def _atoms(term: Term, seen: Atoms, cut: float) -> _Part:
    try:
        values = np.asarray(seen.values, dtype=np.float64)
    except (TypeError, ValueError) as wrong:
        raise DomainError(sentence(ME, "values must be numbers to be added", "labels", "give levels=")) from wrong
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise DomainError(sentence(ME, "distributions of one column are needed", f"{values.shape[1]} columns"))
    order = np.argsort(term.weight * values)
    values, probs = term.weight * values[order], np.exp(seen.log_probs[order])
    left, right = np.cumsum(probs), np.cumsum(probs[::-1])[::-1]
    kept = (left > CLEANEST * cut) & (right > CLEANEST * cut) & (probs > 0)
    lost = float(max(0.0, 1.0 - probs[kept].sum()))
    return _Part(term.copies, values[kept][0], values[kept][-1], lost, values[kept], probs[kept])


def _range(distribution: Any, seen: Line, cut: float) -> tuple[float, float, float]:
    """Range with at most probability `cut` outside; smaller where tails are too heavy for a grid."""
    if not hasattr(distribution, "quantile"):
        return _range_by_panels(distribution, seen, cut)
    ends = np.ravel(distribution.quantile(np.array([0.0, 1.0])))
    low, quarter, most, high = np.ravel(distribution.quantile(np.array([0.01, 0.25, 0.75, 0.99])))
    # a distribution with a pole may have nearly equal quartiles: then the width is that of the central 98 %
    widest = WIDEST * max(float(most - quarter), float(high - low) / 30, 1e-300)
    while True:
        inner = np.ravel(distribution.quantile(np.array([cut, 1 - cut])))
        low, high = (float(e if math.isfinite(e) else i) for e, i in zip(ends, inner, strict=True))
        if high - low <= widest or cut > 0.01:
            return low, high, cut * int((~np.isfinite(ends)).sum())
        cut *= 4


def _range_by_panels(distribution: Any, seen: Line, cut: float) -> tuple[float, float, float]:
    t = np.linspace(seen.edges[0], seen.edges[-1], 6001)
    while True:
        with np.errstate(all="ignore"):
            logs = np.asarray(distribution.log_prob(seen.places(t)[:, None]), dtype=np.float64)
            height = np.nan_to_num(np.exp(logs) * seen.scale * np.cosh(t), nan=0.0)
        sums = np.cumsum(height) * (t[1] - t[0])
        inside = np.flatnonzero((sums > cut) & (sums < sums[-1] - cut))
        low, high = seen.places(t[[max(inside[0] - 2, 0), min(inside[-1] + 2, len(t) - 1)]])
        if high - low <= WIDEST * seen.scale or cut > 0.01:
            return float(low), float(high), 2 * cut
        cut *= 4


def _cells(term: Term) -> Callable[[Array], Array]:
    """Probabilities of cells of w x: by the CDF, or by Gauss–Legendre quadrature where there is none."""
    distribution, w = term.distribution, term.weight
    if hasattr(distribution, "cdf"):
        return lambda edges: np.abs(np.diff(np.ravel(distribution.cdf(edges / w))))
    if hasattr(getattr(distribution, "components", None), "cdf") and getattr(distribution, "weights", None) is not None:
        return lambda edges: np.abs(np.diff(np.asarray(distribution.components.cdf(edges / w)) @ distribution.weights))
    nodes, shares = np.polynomial.legendre.leggauss(6)

    def by_density(edges: Array) -> Array:
        half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
        x = (middle[:, None] + half[:, None] * nodes) / w
        density = np.exp(np.asarray(distribution.log_prob(x.reshape(-1, 1)), dtype=np.float64)).reshape(x.shape)
        return np.asarray(density @ shares * np.abs(half / w))

    return by_density


# ---------------------------------------------------------------- discrete distributions


def lattice_step(values: Sequence[Array]) -> float | None:
    """Lattice step: the largest step of which all differences within each list are multiples; None if there is none.

    >>> lattice_step([np.array([1.0, 2.5, 4.0]), np.array([0.0, 1.0])])
    0.5
    """
    gaps = np.unique(np.concatenate([np.diff(v) for v in values])) if values else np.empty(0)
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 1.0
    step, slack = float(gaps[0]), 1e-9 * float(gaps[-1])
    for gap in gaps[1:]:
        a, b = float(gap), step
        while b > slack:
            a, b = b, abs(a - b * round(a / b))
        step = a
    multiple = gaps / step
    longest = sum(float(v[-1] - v[0]) for v in values) / step
    exact = np.abs(multiple - np.rint(multiple)).max() <= 1e-6 and longest < LIST
    return step if exact else None


def _listed(parts: list[_Part]) -> LatticeDistribution | Any:
    step = lattice_step([part.values for part in parts if part.values is not None])
    if step is None:
        return _without_lattice(parts)
    first, probs = 0.0, np.ones(1)
    for part in parts:
        probs = folded(probs, _power(_on_lattice(part, step), part.copies))
        first += part.copies * part.low
    lost = sum(part.copies * part.cut for part in parts)
    return LatticeDistribution.trusted(first=float(first), step=step, probs=probs / probs.sum(), error=float(lost))


def _on_lattice(part: _Part, step: float) -> Array:
    assert part.values is not None and part.probs is not None
    at = np.rint((part.values - part.low) / step).astype(np.intp)
    return np.asarray(np.bincount(at, part.probs), dtype=np.float64)


def folded(a: Array, b: Array) -> Array:
    """Convolution Σ_i a_i b_{j−i}: directly, so that even the smallest values are accurate; by FFT if long.

    >>> folded(np.array([0.5, 0.5]), np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    if len(a) * len(b) <= PAIRS:
        return np.convolve(a, b)
    n = len(a) + len(b) - 1
    return np.maximum(np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n), 0.0)


def _power(p: Array, n: int) -> Array:
    """n-fold convolution of p with itself, by repeated squaring."""
    out, square = np.ones(1), p
    while n:
        if n & 1:
            out = folded(out, square)
        n >>= 1
        if n:
            square = folded(square, square)
    return out


def _without_lattice(parts: list[_Part]) -> Any:
    """Distribution of all combinations of values, probabilities of equal sums added."""
    from likely.distributions.categorical.categorical import Categorical

    values, probs = np.zeros(1), np.ones(1)
    for part in [one for one in parts for _ in range(one.copies)]:
        assert part.values is not None and part.probs is not None
        if len(values) * len(part.values) > LIST:
            expected = f"sums of values without a common step must be fewer than {LIST}"
            raise DomainError(sentence(ME, expected, len(values) * len(part.values), "round the values"))
        sums = (values[:, None] + part.values).ravel()
        unit = 1e-12 * max(float(np.abs(sums).max()), 1e-300)
        found, at = np.unique(np.rint(sums / unit), return_inverse=True)
        values = np.zeros(len(found))
        values[at] = sums
        probs = np.asarray(np.bincount(at, (probs[:, None] * part.probs).ravel()), dtype=np.float64)
    return Categorical(probs / probs.sum(), levels=values)


# ---------------------------------------------------------------------------- grids


class _Grid(NamedTuple):
    """Periodic grid of points origin + (shift + j)·step, j = 0 … n − 1."""

    origin: float
    shift: int
    step: float
    n: int

    def finer(self) -> _Grid:
        return _Grid(self.origin, 2 * self.shift, self.step / 2, 2 * self.n)

    @property
    def first(self) -> float:
        return self.origin + self.shift * self.step

    def wrapped(self, masses: Array) -> Array:
        return np.asarray(np.bincount(np.arange(len(masses)) % self.n, masses, self.n), dtype=np.float64)


def _gridded(parts: list[_Part], error: float) -> GridDistribution:
    """Refine the grid until the CDF at common points has converged."""
    grid, cut = _first_grid(parts, error / 8)
    lost = cut + sum(part.copies * part.cut for part in parts)
    masses, change, last = _convolved_cells(parts, grid), math.inf, math.inf
    while change + lost > error and 2 * grid.n <= CELLS[1]:
        grid, before = grid.finer(), masses
        masses = _convolved_cells(parts, grid)
        before_last, last = last, float(np.abs(np.cumsum(before) - np.cumsum(masses)[1::2]).max())
        change = (
            _extrapolated_change(before_last, last) + _mean_shift(parts, grid, masses) + _interpolation_error(masses)
        )
    if change + lost > error:
        expected = f"the error should not exceed {error:.1e}"
        warn(sentence(ME, expected, f"{change + lost:.1e}", "allow a larger error, or accept this one"))
    if not cut:  # masses beyond the largest possible value are rounding error of the transform
        total = sum(part.copies for part in parts)
        width = sum(part.copies * (part.high - part.low) for part in parts)
        masses = masses[: math.ceil(width / grid.step * (1 - 1e-12)) + total // 2]
    masses = masses / masses.sum()
    return GridDistribution.trusted(first=grid.first, step=grid.step, masses=masses, error=float(change + lost))


def _extrapolated_change(before: float, last: float) -> float:
    """Richardson extrapolation: changes that fall by r per halving sum to last / (r − 1); doubled, with r at most 4."""
    r = 2.0 if not math.isfinite(before) or not last else min(max(before / last, 1.1), 4.0)
    return 2.0 * last / (r - 1.0)


def _mean_shift(parts: list[_Part], grid: _Grid, masses: Array) -> float:
    """Error by rounding of the mean, times the largest density, for variables too narrow for halving to show it."""
    keeper = next(i for i, part in enumerate(parts) if part.cells is not None)
    shift = 0.0
    for i, part in enumerate(parts):
        others = part.copies - (i == keeper)
        if others and part.cells is not None and part.high - part.low < RESOLVED * grid.step:
            at = _rounded(part, grid)
            shift += others * abs(float(at @ np.arange(len(at)) * grid.step / at.sum()) - _moments(part)[0] + part.low)
    return shift * float(masses.max()) / grid.step


def _interpolation_error(masses: Array) -> float:
    """Error of linear interpolation of the CDF between edges: |f′| h² / 8, with one-sided slopes at jumps; the whole
    mass of a cell where the density changes by more than a quarter from one cell to the next, as at a pole; 0.4 of that
    where it begins to rise no faster than x², since u − u³ is never more."""
    beside = np.concatenate([[0.0], masses, [0.0]])
    jumps, higher = np.abs(np.diff(beside)), np.maximum(beside[2:], beside[:-2])
    least = np.minimum(jumps[1:], jumps[:-1])
    rises = (higher > masses) & (higher < 7.5 * masses)
    return float(np.where(least > masses / 4, np.where(rises, 0.4, 1.0) * masses, least / 8).max(initial=0.0))


def _first_grid(parts: list[_Part], cut: float) -> tuple[_Grid, float]:
    """The coarsest grid over the range of the sum, truncated by Bernstein's inequality; discrete values lie on it."""
    from scipy.fft import next_fast_len

    low = sum(part.copies * part.low for part in parts)
    width = sum(part.copies * (part.high - part.low) for part in parts)
    start, cut = low, 0.0 if sum(part.copies for part in parts) < 8 else cut
    if cut:
        mean, reach = _bernstein(parts, cut)
        start, width, cut = (mean - reach, 2 * reach, cut) if 2 * reach < width else (low, width, 0.0)
    step = _starting_step(parts, width / CELLS[0])
    n = next_fast_len(math.ceil(width / step) + 2 * sum(part.copies for part in parts[:8]) + 2)
    return _Grid(low, math.floor((start - low) / step), step, int(n)), cut


def _starting_step(parts: list[_Part], step: float) -> float:
    lists = [part.values for part in parts if part.values is not None and len(part.values) > 1]
    lattice = lattice_step(lists) if lists else None
    return step if lattice is None else lattice / max(1, math.ceil(lattice / step))


def _bernstein(parts: list[_Part], cut: float) -> tuple[float, float]:
    """Mean of the sum, and the distance from it that holds all but `cut` of the probability: Bernstein's inequality."""
    moments = [_moments(part) for part in parts]
    mean = sum(part.copies * m for part, (m, _) in zip(parts, moments, strict=True))
    variance = sum(part.copies * v for part, (_, v) in zip(parts, moments, strict=True))
    widest, level = max(part.high - part.low for part in parts), math.log(2 / cut)
    return mean, widest * level / 3 + math.sqrt((widest * level / 3) ** 2 + 2 * variance * level)


def _moments(part: _Part) -> tuple[float, float]:
    """Mean and variance within the range."""
    if part.values is not None and part.probs is not None:
        p, x, h = part.probs, part.values, 0.0
    else:
        assert part.cells is not None
        edges = np.linspace(part.low, part.high, 20_001)
        p, x, h = part.cells(edges), 0.5 * (edges[1:] + edges[:-1]), float(edges[1] - edges[0])
    mean = float(p @ x / p.sum())
    return mean, float(p @ (x - mean) ** 2 / p.sum()) + h**2 / 12


def _convolved_cells(parts: list[_Part], grid: _Grid) -> Array:
    """Probabilities of the sum per cell: one variable keeps its CDF, the others are rounded to grid points."""
    from scipy.fft import irfft, rfft

    keeper = next(i for i, part in enumerate(parts) if part.cells is not None)
    spectrum = rfft(_between(parts[keeper], grid))
    for i, part in enumerate(parts):
        others = part.copies - (i == keeper)
        if others:
            spectrum = spectrum * rfft(_at_points(part, grid)) ** others
    return np.roll(np.maximum(irfft(spectrum, grid.n), 0.0), -grid.shift)


def _points(low: float, step: float, at: Array) -> Array:
    return np.asarray(low + step * at, dtype=np.float64)


def _between(part: _Part, grid: _Grid) -> Array:
    """Probabilities between points low + j·step."""
    assert part.cells is not None
    m = math.ceil((part.high - part.low) / grid.step * (1 - 1e-12))
    return grid.wrapped(part.cells(_points(part.low, grid.step, np.arange(m + 1.0))))


def _at_points(part: _Part, grid: _Grid) -> Array:
    """Probabilities rounded to the nearest point low + j·step."""
    if part.values is not None and part.probs is not None:
        at = np.rint((part.values - part.low) / grid.step).astype(np.intp)
        return grid.wrapped(np.asarray(np.bincount(at, part.probs), dtype=np.float64))
    assert part.cells is not None
    return grid.wrapped(_rounded(part, grid))


def _rounded(part: _Part, grid: _Grid) -> Array:
    assert part.cells is not None
    m = math.ceil((part.high - part.low) / grid.step)
    return part.cells(_points(part.low, grid.step, np.arange(m + 2.0) - 0.5))


__all__ = ["convolve", "lattice_step", "sum_of"]
