"""Bayes error of continuous distributions by closed forms and numerical integration over decision regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from likely.core.arrays import Array, Index
from likely.decision.theory.decision_problem import Problem
from likely.distributions.distribution import Estimate
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import spd

SAME = 1e-13  # relative difference below which covariances are equal
POINTS = 1001  # quantiles of each distribution at which decisions are evaluated
REACH = 8.3  # range of these quantiles, in standard deviations of a normal distribution
ENDS = ("edges", "low", "mode", "high", "peak")  # parameters of distributions that are breakpoints
WINDOW = np.array([-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0])  # around a point, in units of its bandwidth
MOST_BREAKS = 300_000  # beyond, sampling is faster
AGREED = 1e-6  # allowed difference of two grids
MANY, FEWER = 500, 30  # boundaries, and halvings of the steps between them
HALVINGS = 1100  # from any width of doubles down to neighbors
PLANE = 1e-10  # error tolerance of an integral over the plane


# ------------------------------------------------------- Gaussians that share a covariance


def shared_covariance(asked: Problem) -> Estimate | None:
    """Equal covariances: log p(x | 0)/p(x | 1) is normal, with mean ± v²/2 and variance v²   (Ney 2.5, errata).

    More than two classes are projected to the affine subspace through their means.
    """
    white = _white_means(asked)
    if white is None:
        return None
    if len(white) == 2:
        return Estimate(_two_classes(asked, float(np.linalg.norm(white[0] - white[1]))), 0.0)
    centered = white - white.mean(axis=0)
    _, size, turn = np.linalg.svd(centered, full_matrices=False)
    rank = max(int((size > 1e-12 * max(float(size[0]), 1.0)).sum()), 1)
    if rank > 2:
        return None
    distributions = tuple(Gaussian(mean, np.ones(rank)) for mean in centered @ turn[:rank].T)
    flat = Problem(distributions, asked.prior, asked.cost, asked.classes)
    return on_the_line(flat) if rank == 1 else in_the_plane(flat)


def _white_means(asked: Problem) -> Array | None:
    """Whitened means (C, d), if all covariances are equal."""
    if not all(isinstance(distribution, Gaussian) for distribution in asked.distributions):
        return None
    matrices = np.stack([distribution.covariance_matrix for distribution in asked.distributions])
    scale = spd.scales(matrices[0])
    with np.errstate(over="ignore", invalid="ignore"):
        unlike = np.abs(matrices / scale[:, None] / scale - matrices[0] / scale[:, None] / scale).max()
    root = spd.cholesky(np.ascontiguousarray(matrices[0])) if unlike <= SAME else None
    if root is None:
        return None
    means = np.stack([distribution.mean for distribution in asked.distributions])
    return np.asarray(spd.solve_factor(root, means - means[0])).T


def _two_classes(asked: Problem, v: float) -> float:
    """The risk where the log-ratio is N(v²/2, v²) under class 0 and N(−v²/2, v²) under class 1."""
    cuts, actions = asked.thresholds()
    if v == 0:
        return asked.paid + float(asked.excess.sum(axis=1).min())
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    chance = np.stack([_normal_between(ends / v - v / 2), _normal_between(ends / v + v / 2)], axis=1)
    return asked.paid + float((asked.excess[actions] * chance).sum())


def _normal_between(z: Array) -> Array:
    """Φ(z₊) − Φ(z) for neighbors along the last axis, in the tail without cancellation."""
    low, high = z[..., :-1], z[..., 1:]
    upper = low > 0
    return np.asarray(np.where(upper, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


# ---------------------------------------------------------------------- one column


def on_the_line(asked: Problem) -> Estimate | None:
    """Distributions of one column with a cdf: find all changes of decision by bisection, and sum the probabilities."""
    if not all(_is_continuous(distribution) for distribution in asked.distributions):
        return None
    x = np.unique(np.concatenate([_quantiles(distribution) for distribution in asked.distributions]))
    breaks = np.unique(np.concatenate([_breaks(distribution) for distribution in asked.distributions]))
    if len(breaks) > MOST_BREAKS:
        return None
    fine, coarse = (_over_sides(asked, np.union1d(some, _around(breaks))) for some in (x, x[::2]))
    error = abs(fine - coarse)
    return (
        Estimate(fine, error + 1e-15) if error <= AGREED else None
    )  # sampling has a standard error; two grids may agree by chance


def _is_continuous(distribution: Any) -> bool:
    """True for one column with a cdf and a density that is not on a lattice."""
    parts = getattr(distribution, "components", distribution)
    if getattr(distribution, "dim", None) != 1 or not all(
        hasattr(parts, verb) for verb in ("cdf", "quantile", "log_prob")
    ):
        return False
    try:
        q = np.asarray(parts.quantile(np.array([0.31, 0.47, 0.73])), dtype=np.float64).reshape(3, -1)
    except (TypeError, ValueError):  # levels that are not numbers
        return False
    if not np.isfinite(q).all() or (q[0] == q[2]).any():
        return False
    beside = q + 1e-7 * np.sqrt(2.0) * (q[2] - q[0])
    return bool(np.isfinite(distribution.log_prob(beside.reshape(-1, 1))).all())


def _breaks(distribution: Any) -> Array:
    """Points where a distribution of one column is not smooth or has a mode: edges, ends, points, bandwidths."""
    parts = getattr(distribution, "components", distribution)
    found = [np.ravel(np.asarray(getattr(parts, name), dtype=np.float64)) for name in ENDS if _is_numbers(parts, name)]
    if hasattr(parts, "kernel_covariance"):  # a kernel density: the edges of the kernels
        squared = parts.kernel_covariance if parts.bandwidth is None else np.square(parts.bandwidth)
        points, width = np.ravel(parts.points), np.sqrt(np.ravel(squared)[:1])
        found = [(points[:, None] + width * WINDOW).ravel()]
    every = np.concatenate(found) if found else np.empty(0)
    return np.asarray(every[np.isfinite(every)])


def _is_numbers(distribution: Any, name: str) -> bool:
    if name not in getattr(type(distribution), "__dataclass_fields__", {}):  # a property may raise an error
        return False
    value = getattr(distribution, name, None)
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _around(breaks: Array) -> Array:
    """Points on both sides of each breakpoint, and midpoints between them."""
    if not len(breaks):
        return breaks
    sides = np.concatenate([np.nextafter(breaks, -np.inf), breaks, np.nextafter(breaks, np.inf)])
    return np.unique(np.concatenate([sides, 0.5 * (breaks[1:] + breaks[:-1])]))


def _quantiles(distribution: Any) -> Array:
    parts = getattr(distribution, "components", distribution)
    p = ndtr(np.linspace(-REACH, REACH, POINTS))
    ends = np.array([0.0, *10.0 ** -np.arange(300.0, 16.0, -20.0)])
    q = np.asarray(parts.quantile(np.concatenate([ends, p, [1.0]])), dtype=np.float64).ravel()
    return q[np.isfinite(q)]


def _over_sides(asked: Problem, x: Array) -> float:
    x, actions = _changes(asked, x)
    at = np.flatnonzero(np.diff(actions))
    ends = np.concatenate([[-np.inf], 0.5 * x[at] + 0.5 * x[at + 1], [np.inf]])
    taken = actions[np.concatenate([at, [len(actions) - 1]])]
    chance = np.stack([_between(distribution, ends) for distribution in asked.distributions], axis=1)
    return asked.paid + float((asked.excess[taken] * chance).sum())


def _changes(asked: Problem, x: Array) -> tuple[Array, Index]:
    """Points where the action changes, to floating-point resolution, and the actions between them."""
    actions = asked.action(asked.log_probs(x[:, None]))
    many = len(np.flatnonzero(np.diff(actions))) > MANY
    for _ in range(FEWER if many else HALVINGS):  # the remaining interval has a second-order effect
        at = np.flatnonzero(np.diff(actions))
        middle = 0.5 * x[at] + 0.5 * x[at + 1]
        new = (middle > x[at]) & (middle < x[at + 1])
        if not new.any():
            break
        at, middle = at[new], middle[new]
        x = np.insert(x, at + 1, middle)
        actions = np.insert(actions, at + 1, asked.action(asked.log_probs(middle[:, None])))
    return x, actions


def _between(distribution: Any, ends: Array) -> Array:
    """P(a < X ≤ b | distribution) for neighboring ends."""
    if isinstance(distribution, Gaussian):
        return _normal_between((ends - distribution.mean[0]) / np.sqrt(distribution.variance[0]))
    inner = ends[1:-1]
    mixed = hasattr(distribution, "components")
    below = np.asarray(
        distribution.components.cdf(inner) @ distribution.weights if mixed else distribution.cdf(inner),
        dtype=np.float64,
    )
    return np.diff(np.concatenate([[0.0], below.ravel(), [1.0]]))


# ----------------------------------------------------------------------- the plane


def in_the_plane(asked: Problem) -> Estimate | None:
    """Gaussians in two columns: exact along one, where boundaries are roots of quadratics, adaptive along the other."""
    if not (all(isinstance(distribution, Gaussian) and distribution.dim == 2 for distribution in asked.distributions)):
        return None
    if len(asked.distributions) > 2 and not asked.counts_mistakes:
        return None
    lines = _Lines.of(asked)
    if lines is None:
        return None
    steps = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
    edges = np.unique(lines.center + steps[:, None] * lines.width)
    value, error = _adaptive(lines.risk, edges, PLANE)
    return Estimate(asked.paid + value, error + 10 * PLANE)  # where boundaries are tangent, halves agree too early


class _Lines:
    """The plane as lines u = const: along each, every class is a normal distribution in v."""

    def __init__(self, asked: Problem, mean: Array, covariance: Array) -> None:
        self.asked = asked
        self.center, self.width = mean[:, 0], np.sqrt(covariance[:, 0, 0])
        self.mean, self.slope = mean[:, 1], covariance[:, 0, 1] / covariance[:, 0, 0]
        self.deviation = np.sqrt(covariance[:, 1, 1] - self.slope * covariance[:, 0, 1])
        self.cuts = asked.thresholds()[0] if len(asked.distributions) == 2 else None

    @classmethod
    def of(cls, asked: Problem) -> _Lines | None:
        """In coordinates that whiten the mean covariance."""
        matrices = np.stack([distribution.covariance_matrix for distribution in asked.distributions])
        means = np.stack([distribution.mean for distribution in asked.distributions])
        scale = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2).max(axis=0))
        if (scale == 0).any():
            return None
        matrices, means = matrices / scale[:, None] / scale, (means - means[0]) / scale
        root = spd.cholesky(np.ascontiguousarray(matrices.mean(axis=0)))
        if root is None or spd.cholesky(np.ascontiguousarray(matrices)) is None:
            return None
        inverse = spd.inverse_factor(root)
        return cls(asked, means @ inverse.T, inverse @ matrices @ inverse.T)

    def risk(self, u: Array) -> Array:
        """The risk along each line u (m,): a sum over the intervals between boundaries."""
        away = (u[:, None] - self.center) / self.width
        density = np.exp(-0.5 * away**2) / (np.sqrt(2 * np.pi) * self.width)  # (m, C)
        mean = self.mean + self.slope * (u[:, None] - self.center)
        borders = np.sort(self._boundaries(away, mean), axis=1)
        ends = np.pad(borders, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        z = (ends[:, None, :] - mean[:, :, None]) / self.deviation[:, None]
        chance = _normal_between(z) * density[:, :, None]  # (m, C, sides)
        costs = np.einsum("ac,mcs->mas", self.asked.excess, chance)
        return np.asarray(costs.min(axis=1).sum(axis=1))

    def _boundaries(self, away: Array, mean: Array) -> Array:
        """All v (m, R) where two classes have equal risk, +inf where there is none."""
        C = mean.shape[1]
        log_weight = -0.5 * away**2 - np.log(self.width) - np.log(self.deviation)
        levels = self.cuts if self.cuts is not None else None
        found = []
        for i in range(C):
            for j in range(i + 1, C):
                asked = np.log(self.asked.prior[j] / self.asked.prior[i])
                for level in [asked] if levels is None else levels:
                    rest = log_weight[:, i] - log_weight[:, j] - level
                    found += self._roots(mean[:, i], mean[:, j], self.deviation[i], self.deviation[j], rest)
        return np.stack(found, axis=1) if found else np.empty((len(mean), 0))

    @staticmethod
    def _roots(a: Array, b: Array, s: float, t: float, rest: Array) -> list[Array]:
        """Both v with −½((v − a)/s)² + ½((v − b)/t)² + rest = 0, relative to the midpoint of a and b."""
        o = 0.5 * (a + b)
        A = 0.5 / t**2 - 0.5 / s**2
        B = (a - o) / s**2 - (b - o) / t**2
        c = rest - 0.5 * ((a - o) / s) ** 2 + 0.5 * ((b - o) / t) ** 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            half = -0.5 * (B + np.where(B >= 0, 1.0, -1.0) * np.sqrt(B * B - 4 * A * c))
            roots = [o + half / A, o + c / half]
        return [np.where(np.isfinite(root), root, np.inf) for root in roots]


NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def _adaptive(f: Callable[[Array], Array], edges: Array, tolerance: float) -> tuple[float, float]:
    """Adaptive quadrature: panels are halved until both halves agree with the whole; the difference is the error."""
    low, high = edges[:-1], edges[1:]
    whole = _panels(f, low, high)
    value = error = 0.0
    for level in range(40):
        middle = 0.5 * (low + high)
        left, right = _panels(f, low, middle), _panels(f, middle, high)
        differ = np.abs(left + right - whole)
        good = (differ <= tolerance * 0.01) | (level == 39)
        value += float((left + right)[good].sum())
        error += float(differ[good].sum())
        if good.all():
            break
        low, high = np.concatenate([low[~good], middle[~good]]), np.concatenate([middle[~good], high[~good]])
        whole = np.concatenate([left[~good], right[~good]])
    return value, error


def _panels(f: Callable[[Array], Array], low: Array, high: Array) -> Array:
    half = 0.5 * (high - low)
    at = (low + half)[:, None] + half[:, None] * NODES
    return np.asarray(f(at.ravel()).reshape(at.shape) @ WEIGHTS * half)
