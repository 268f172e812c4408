"""Every public distribution in 50 digits: a table of formulas, and of points over all sizes of parameters.

A new distribution joins by one `case(...)`: how the library says it, the formula in mpmath, and how to draw a point.
Points are tuples of inputs; those that are counts (`whole`) are exact, the others are known to half a unit in the last
place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from numpy.random import Generator

import likely as lk

Point = tuple[float, ...]
FLOOR = -1e5  # both tails, down to this log p


@dataclass(frozen=True)
class Case:
    """A distribution: `distribution(*parameters)`; a point is (x…, parameters…)."""

    name: str
    covers: tuple[str, ...]  # public names
    found: Callable[..., float]  # log p by the library
    exact: Callable[..., Any]  # log p in mpmath
    point: Callable[[Generator], Point]
    whole: tuple[int, ...] = ()  # which inputs are exact


@dataclass(frozen=True)
class Spread:
    """A distribution of one column with its distribution function: a point is (x, parameters…)."""

    name: str
    distribution: Callable[..., Any]
    exact: Callable[..., Any]  # P(X ≤ x) in mpmath
    point: Callable[[Generator], Point]
    whole: bool = False  # counts
    place: int | None = None  # the parameter whose own size counts for quantiles
    costly: bool = False  # an integral: fewer points


CASES: list[Case] = []
SPREADS: list[Spread] = []


def case(name: str, found: Any, exact: Any, point: Any, whole: tuple[int, ...] = ()) -> None:
    CASES.append(Case(name, (name.split()[0],), found, exact, point, whole))


def of_column(distribution: Callable[..., Any]) -> Callable[..., float]:
    """log p of one number under a distribution of one column."""
    return lambda x, *parameters: float(distribution(*parameters).log_prob([x])[0])


def of_row(distribution: Callable[..., Any], d: int) -> Callable[..., float]:
    """log p of a row of d entries, the distribution being made of the other inputs."""
    return lambda *point: float(distribution(*point[d:]).log_prob([point[:d]])[0])


# ------------------------------------------------------------------- measures


def wrong_bits(case: Case, point: Point) -> float | None:
    """Bits of log p that are wrong beyond what half a unit in the last place of each input and of the answer explains.

    None below the floor.
    """
    numbers = [mp.mpf(float(v)) for v in point]
    wanted = case.exact(*numbers)
    if not wanted > FLOOR:
        return None
    found = case.found(*(float(v) for v in point))
    allowed = mp.mpf(float(0.5 * np.spacing(abs(float(wanted)))))  # also next to p = 1, where log p is small
    for i, v in enumerate(point):
        if i not in case.whole:
            allowed += _moved(case, numbers, i, mp.mpf(float(0.5 * np.spacing(abs(float(v))))), wanted)
    error = abs(mp.mpf(found) - wanted) if np.isfinite(found) else mp.inf
    return float(mp.log(error / allowed, 2)) if error > allowed else 0.0


def _moved(case: Case, numbers: list[Any], i: int, step: Any, wanted: Any) -> Any:
    """How far log p moves with one input, to whichever side it is defined."""
    moves = []
    for by in (step, -step):
        other = case.exact(*numbers[:i], numbers[i] + by, *numbers[i + 1 :])
        moves.append(abs(other - wanted) if mp.isfinite(other) and not isinstance(other, mp.mpc) else mp.mpf(0))
    return max(moves)


def cdf_error(s: Spread, point: Point) -> float | None:
    """Relative error of P(X ≤ x); None where it leaves the range of numbers."""
    wanted = s.exact(*(mp.mpf(float(v)) for v in point))
    if not 1e-300 < wanted:
        return None
    return float(abs(mp.mpf(float(np.ravel(s.distribution(*point[1:]).cdf([point[0]]))[0])) / wanted - 1))


def quantile_holds(s: Spread, p: float, parameters: Point, tolerance: float = 1e-9) -> tuple[bool, float]:
    """Whether the quantile lies within the tolerance of the exact one, and where it is (counts: exactly it)."""
    q = float(np.ravel(s.distribution(*parameters).quantile([p]))[0])
    P, numbers = mp.mpf(p), [mp.mpf(float(v)) for v in parameters]
    if s.whole:
        below = s.exact(mp.mpf(q) - 1, *numbers) if q > 0 else mp.mpf(0)
        return bool(s.exact(mp.mpf(q), *numbers) >= P * (1 - tolerance) and below < P * (1 + tolerance)), q
    size = abs(q) + (abs(parameters[s.place]) if s.place is not None else 0.0)
    largest = float(np.finfo(float).max)
    step = tolerance * mp.mpf(min(size, largest)) + mp.mpf(5e-324)
    low, high = (mp.mpf(float(np.clip(q, -largest, largest))) + by for by in (-step, step))
    left = mp.mpf(0) if q == -np.inf else s.exact(low, *numbers)
    right = mp.mpf(1) if q == np.inf else s.exact(high, *numbers)
    return bool(left <= P <= right), q


# --------------------------------------------------------------------- points


def size(r: Generator, low: float = -6, high: float = 6) -> float:
    return float(10.0 ** r.uniform(low, high))


def place(r: Generator) -> float:
    return 0.0 if r.random() < 0.25 else float(r.choice([-1.0, 1.0])) * size(r)


def sign(r: Generator) -> float:
    return float(r.choice([-1.0, 1.0]))


def share(r: Generator) -> float:
    """A probability near 0, between, or near 1."""
    return [size(r, -6, -0.1), float(r.uniform(0.01, 0.99)), 1 - size(r, -6, -1)][r.integers(3)]


def count_near(r: Generator, mean: float, deviation: float) -> float:
    """A count near the mean, or of any size."""
    near = mean + deviation * r.normal() * r.choice([1.0, 5.0])
    return float(np.rint(max(near if r.random() < 0.7 else size(r, 0, 6) - 1, 0.0)))


def simplex(r: Generator, d: int) -> Point:
    """Shares that add up to one, some small."""
    raw = 10.0 ** r.uniform(-4, 0, d)
    return tuple(float(v) for v in raw / raw.sum())


# ----------------------------------------------------------------- log p

log, lgamma, pi = mp.log, mp.loggamma, mp.pi


def lbeta(a: Any, b: Any) -> Any:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def log_normal(x: Any, m: Any, v: Any) -> Any:
    return -(log(2 * pi * v) + (x - m) ** 2 / v) / 2


def log_gamma_distribution(x: Any, a: Any, b: Any) -> Any:
    return a * log(b) - lgamma(a) + (a - 1) * log(x) - b * x


def gaussian_point(r: Generator) -> Point:
    m, v = place(r), size(r)
    return m + np.sqrt(v) * (r.normal() if r.random() < 0.5 else sign(r) * r.uniform(0, 440)), m, v


case("Gaussian full", of_column(lambda m, v: lk.Gaussian([m], [[v]])), log_normal, gaussian_point)
case("Gaussian diagonal", of_column(lambda m, v: lk.Gaussian([m], [v], kind="diagonal")), log_normal, gaussian_point)
case("Gaussian spherical", of_column(lambda m, v: lk.Gaussian([m], v)), log_normal, gaussian_point)


def t_log_prob(x: Any, m: Any, s: Any, v: Any) -> Any:
    with mp.workdps(70):
        head = lgamma((v + 1) / 2) - lgamma(v / 2) - log(v * pi * s) / 2
        return head - (v + 1) / 2 * mp.log1p((x - m) ** 2 / s / v)


def t_point(r: Generator) -> Point:
    m, s = place(r), size(r)
    away = r.normal() if r.random() < 0.5 else sign(r) * size(r, -3, 100)
    return m + np.sqrt(s) * away, m, s, size(r)


case("StudentT full", of_column(lambda m, s, v: lk.StudentT([m], [[s]], v)), t_log_prob, t_point)
case(
    "StudentT independent", of_column(lambda m, s, v: lk.StudentT([m], [s], [v], kind="independent")), t_log_prob,
    t_point,
)  # fmt: skip


def scaled_point(r: Generator, low: float, high: float) -> Point:
    c, s = place(r), size(r)
    return c + s * sign(r) * size(r, low, high), c, s


case("Laplace", of_column(lk.Laplace), lambda x, c, s: -log(2 * s) - abs(x - c) / s, lambda r: scaled_point(r, -3, 4.9))
case(
    "Cauchy", of_column(lk.distributions.Cauchy), lambda x, c, s: -log(pi * s * (1 + ((x - c) / s) ** 2)),
    lambda r: scaled_point(r, -3, 100),
)  # fmt: skip


def ends(r: Generator) -> tuple[float, float]:
    low = place(r)
    return low, low + max(size(r), 1e-9 * abs(low))


def uniform_point(r: Generator) -> Point:
    low, high = ends(r)
    return float(np.clip(low + (high - low) * r.random(), low, high)), low, high


def triangular_log_prob(x: Any, a: Any, c: Any, b: Any) -> Any:
    part = (x - a) / (c - a) if x < c else (b - x) / (b - c) if x > c else mp.mpf(1)
    return log(2 / (b - a)) + log(part) if part > 0 else -mp.inf


def triangular_point(r: Generator) -> Point:
    while True:
        low, high = ends(r)
        mode, x = (float(low + (high - low) * u) for u in r.random(2))
        if low < x < high and low < mode < high:
            return x, low, mode, high


def plateau_log_prob(x: Any, a: Any, b: Any, s: Any) -> Any:
    beyond = max(a - x, x - b, mp.mpf(0))
    return -log(b - a) - log(1 + 2 / s) - (s + 1) * log(1 + beyond / (b - a))


def plateau_point(r: Generator) -> Point:
    low, high = ends(r)
    return low + (high - low) * sign(r) * size(r, -4, 6), low, high, size(r)


case("Uniform", of_column(lk.Uniform), lambda x, a, b: -log(b - a), uniform_point)
case("Triangular", of_column(lk.distributions.Triangular), triangular_log_prob, triangular_point)
case("UniformPredictive", of_column(lk.distributions.UniformPredictive), plateau_log_prob, plateau_point)


def positive_near(r: Generator, mean: float, deviation: float) -> float:
    """Near the mean, or of any size, far beyond it too."""
    near = abs(mean + deviation * r.normal() * r.choice([1.0, 10.0]))
    return float([near, mean * size(r, -4, 4), size(r, -300, 5)][r.integers(3)]) or 1e-300


def gamma_point(r: Generator) -> Point:
    a, b = size(r), size(r)
    return positive_near(r, a / b, np.sqrt(a) / b), a, b


def chi_square_point(r: Generator) -> Point:
    k = size(r)
    return positive_near(r, k, np.sqrt(2 * k)), k


case("Gamma", of_column(lk.Gamma), log_gamma_distribution, gamma_point)
case(
    "ChiSquare",
    of_column(lk.distributions.ChiSquare),
    lambda x, k: log_gamma_distribution(x, k / 2, mp.mpf(1) / 2),
    chi_square_point,
)
case(
    "Exponential", of_column(lk.Exponential), lambda x, b: log(b) - b * x,
    lambda r: (lambda b: (size(r, -8, 4.9) / b, b))(size(r)),
)  # fmt: skip
case(
    "Lomax", of_column(lk.distributions.Lomax), lambda x, a, b: log(a / b) - (a + 1) * mp.log1p(x / b),
    lambda r: (lambda b: (b * size(r, -8, 100), size(r), b))(size(r)),
)  # fmt: skip


def inside(r: Generator, a: float, b: float) -> float:
    """A share that a beta distribution would draw, or one near either end."""
    x = [float(r.beta(max(a, 1e-2), max(b, 1e-2))), size(r, -300, -0.01), 1 - size(r, -15, -0.5)][r.integers(3)]
    return x if 0 < x < 1 else 0.5


def beta_point(r: Generator) -> Point:
    a, b = size(r), size(r)
    return inside(r, a, b), a, b


def dirichlet_point(r: Generator) -> Point:
    alpha = tuple(size(r) for _ in range(3))
    return (*simplex(r, 3), *alpha)


case(
    "Beta", of_column(lk.Beta), lambda x, a, b: (a - 1) * log(x) + (b - 1) * mp.log1p(-x) - lbeta(a, b), beta_point
)  # fmt: skip
case(
    "Dirichlet", of_row(lambda *a: lk.Dirichlet(a), 3),
    lambda x, y, z, a, b, c: lgamma(a + b + c)
    + sum((k - 1) * log(v) - lgamma(k) for v, k in ((x, a), (y, b), (z, c))),
    dirichlet_point,
)  # fmt: skip


def log_i0(k: Any) -> Any:
    return log(mp.besseli(0, k))


def direction_point(r: Generator) -> Point:
    """Anywhere above the floor, or near the center: concentrations up to 10¹⁵."""
    m, k = float(r.uniform(-4, 4)), size(r, -6, 15)
    wide = min(np.pi, np.sqrt(-2 * FLOOR / k))
    return float(m + (r.uniform(-wide, wide) if r.random() < 0.5 else r.normal() / np.sqrt(k))), m, k


def von_mises_log_prob(x: Any, m: Any, k: Any) -> Any:
    return k * mp.cos(x - m) - log(2 * pi) - log_i0(k)


def von_mises_sum_log_prob(x: Any, m: Any, k: Any, c: Any) -> Any:
    length = mp.sqrt((k + c) ** 2 - 4 * k * c * mp.sin((x - m) / 2) ** 2)
    return log_i0(length) - log(2 * pi) - log_i0(k) - log_i0(c)


case("VonMises", of_column(lk.distributions.VonMises), von_mises_log_prob, direction_point)
case(
    "VonMisesSum",
    of_column(lk.distributions.VonMisesSum),
    von_mises_sum_log_prob,
    lambda r: (*direction_point(r), size(r, -6, 15)),
)

# counts

case(
    "Bernoulli", of_column(lk.Bernoulli), lambda x, p: log(p) if x else mp.log1p(-p),
    lambda r: (float(r.integers(2)), share(r)), (0,),
)  # fmt: skip
case(
    "Categorical", lambda k, *p: float(lk.Categorical(p).log_prob([k])[0]), lambda k, *p: log(p[int(k)]),
    lambda r: (float(r.integers(4)), *simplex(r, 4)), (0,),
)  # fmt: skip


def poisson_point(r: Generator) -> Point:
    rate = size(r)
    return count_near(r, rate, np.sqrt(rate)), rate


def binomial_point(r: Generator) -> Point:
    trials, p = float(np.rint(size(r, 0, 6))), share(r)
    return min(count_near(r, trials * p, np.sqrt(trials * p * (1 - p))), trials), trials, p


def negative_binomial_point(r: Generator) -> Point:
    n, p = size(r), share(r)
    mean = n * (1 - p) / p
    return count_near(r, mean, np.sqrt(mean / p)), n, p


def log_ways(n: Any, x: Any) -> Any:
    return lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1)


def urn_point(r: Generator) -> Point:
    trials, a, b = float(np.rint(size(r, 0, 6))), size(r), size(r)
    drawn = float(np.rint(trials * r.beta(max(a, 1e-3), max(b, 1e-3))))
    return (drawn if r.random() < 0.7 else float(r.integers(trials + 1))), trials, a, b


def beta_negative_point(r: Generator) -> Point:
    """Any count, or none where next to none are expected."""
    if r.random() < 0.2:
        return 0.0, size(r, -9, 3), size(r, 3, 15), size(r, -9, 3)
    return count_near(r, 10.0, 10.0), size(r), size(r), size(r)


def words_of_urns_point(r: Generator) -> Point:
    """Any words, or all of the one that nearly all are."""
    if r.random() < 0.2:
        return 0.0, float(np.rint(size(r, 0, 4))), 0.0, size(r, -9, 2), size(r, 2, 12), size(r, -9, 2)
    return (*words(r), *(size(r) for _ in range(3)))


def words(r: Generator) -> Point:
    total = size(r, 0, 5)
    return tuple(float(np.rint(total * v)) for v in r.dirichlet([0.7, 0.7, 0.7]))


def multinomial_log_prob(*point: Any) -> Any:
    x, p = point[:3], point[3:]
    return lgamma(sum(x) + 1) + sum(k * log(q) - lgamma(k + 1) for k, q in zip(x, p, strict=True))


def urns_log_prob(*point: Any) -> Any:
    x, a = point[:3], point[3:]
    with mp.workdps(90):  # 10⁻³⁰ as a difference of 10¹⁶
        head = lgamma(sum(x) + 1) + lgamma(sum(a)) - lgamma(sum(x) + sum(a))
        return head + sum(lgamma(k + q) - lgamma(q) - lgamma(k + 1) for k, q in zip(x, a, strict=True))


def beta_negative_log_prob(x: Any, n: Any, a: Any, b: Any) -> Any:
    with mp.workdps(90):
        return lgamma(n + x) - lgamma(n) - lgamma(x + 1) + lbeta(a + n, b + x) - lbeta(a, b)


case("Poisson", of_column(lk.Poisson), lambda x, m: x * log(m) - m - lgamma(x + 1), poisson_point, (0,))
case(
    "Binomial", of_column(lk.Binomial), lambda x, n, p: log_ways(n, x) + x * log(p) + (n - x) * mp.log1p(-p),
    binomial_point, (0, 1),
)  # fmt: skip
case(
    "NegativeBinomial", of_column(lk.NegativeBinomial),
    lambda x, n, p: lgamma(x + n) - lgamma(n) - lgamma(x + 1) + n * log(p) + x * mp.log1p(-p),
    negative_binomial_point, (0,),
)  # fmt: skip
case(
    "BetaBinomial", of_column(lk.distributions.BetaBinomial),
    lambda x, n, a, b: log_ways(n, x) + lbeta(x + a, n - x + b) - lbeta(a, b), urn_point, (0, 1),
)  # fmt: skip
case(
    "BetaNegativeBinomial", of_column(lk.distributions.BetaNegativeBinomial),
    beta_negative_log_prob, beta_negative_point, (0,),
)  # fmt: skip
case(
    "Multinomial", of_row(lambda *p: lk.Multinomial(p), 3), multinomial_log_prob,
    lambda r: (*words(r), *simplex(r, 3)), (0, 1, 2),
)  # fmt: skip
case(
    "DirichletMultinomial", of_row(lambda *a: lk.distributions.DirichletMultinomial(a), 3), urns_log_prob,
    words_of_urns_point, (0, 1, 2),
)  # fmt: skip

# matrices, of two columns: (x₁₁, x₁₂, x₂₂, ν, s₁₁, s₁₂, s₂₂)


def log_gamma_2(a: Any) -> Any:
    return log(pi) / 2 + lgamma(a) + lgamma(a - mp.mpf(1) / 2)


def wishart_log_prob(x: Any, y: Any, z: Any, v: Any, a: Any, b: Any, c: Any) -> Any:
    X, S = x * z - y * y, a * c - b * b
    trace = (c * x - 2 * b * y + a * z) / S
    return (v - 3) / 2 * log(X) - v / 2 * log(S) - v * log(2) - log_gamma_2(v / 2) - trace / 2


def inverse_wishart_log_prob(x: Any, y: Any, z: Any, v: Any, a: Any, b: Any, c: Any) -> Any:
    X, S = x * z - y * y, a * c - b * b
    trace = (z * a - 2 * y * b + x * c) / X
    return -(v + 3) / 2 * log(X) + v / 2 * log(S) - v * log(2) - log_gamma_2(v / 2) - trace / 2


def spd(r: Generator) -> tuple[float, float, float]:
    a, c = size(r, -3, 3), size(r, -3, 3)
    return a, float(r.uniform(-0.99, 0.99) * np.sqrt(a * c)), c


def matrix_point(r: Generator) -> Point:
    a, b, c = spd(r)
    dof = 1 + size(r)
    root = np.linalg.cholesky([[a, b], [b, c]]) @ np.tril(np.eye(2) + 0.3 * r.normal(size=(2, 2)))
    x = root @ root.T * dof * size(r, -1, 1)
    return x[0, 0], x[0, 1], x[1, 1], dof, a, b, c


def of_matrix(distribution: Callable[..., Any]) -> Callable[..., float]:
    return lambda x, y, z, v, a, b, c: float(distribution(v, [[a, b], [b, c]]).log_prob([[[x, y], [y, z]]])[0])


def inverse_matrix_point(r: Generator) -> Point:
    x, y, z, v, *s = matrix_point(r)
    return (x / v**2, y / v**2, z / v**2, v, *s)


case("Wishart", of_matrix(lk.distributions.Wishart), wishart_log_prob, matrix_point)
case("InverseWishart", of_matrix(lk.distributions.InverseWishart), inverse_wishart_log_prob, inverse_matrix_point)

# beliefs about parameters, as densities of them


def normal_gamma_log_prob(m: Any, t: Any, mean: Any, kappa: Any, a: Any, b: Any) -> Any:
    return log_normal(m, mean, 1 / (kappa * t)) + log_gamma_distribution(t, a, b)


def inverse_gamma_log_prob(m: Any, v: Any, mean: Any, kappa: Any, scale: Any, dof: Any) -> Any:
    a, b = dof / 2, scale / 2
    return log_normal(m, mean, v / kappa) + a * log(b) - lgamma(a) - (a + 1) * log(v) - b / v


def belief_point(r: Generator) -> Point:
    mean, kappa, a, b = place(r), size(r), size(r, -2), size(r)
    t = float(a / b * np.exp(r.normal() * min(3.0, 3.0 / np.sqrt(a))))
    return mean + r.normal() * r.choice([1.0, 9.0]) / np.sqrt(kappa * t), t, mean, kappa, a, b


def inverse_belief_point(r: Generator) -> Point:
    m, t, mean, kappa, a, b = belief_point(r)
    return m, 1 / t, mean, kappa, 2 * b, 2 * a


case(
    "NormalGamma", lambda m, t, *p: float(lk.priors.NormalGamma(*p).log_prob([[m, t]])[0]), normal_gamma_log_prob,
    belief_point,
)  # fmt: skip
case(
    "NormalInverseGamma",
    lambda m, v, mean, k, s, n: float(
        lk.priors.NormalInverseGamma([mean], [k], [s], [n]).log_density(lk.Gaussian([m], [v], kind="diagonal"))
    ),
    inverse_gamma_log_prob, inverse_belief_point,
)  # fmt: skip
case(
    "NormalInverseWishart",
    lambda m, v, mean, k, s, n: float(
        lk.priors.NormalInverseWishart([mean], k, [[s]], n).log_density(lk.Gaussian([m], [[v]]))
    ),
    inverse_gamma_log_prob, inverse_belief_point,
)  # fmt: skip

# elliptical distributions of one column and of two


def profile(name: str) -> tuple[Any, Any]:
    """log f(q) and log ∫ f(‖z‖²) dz over the plane, with the shape."""
    half = mp.mpf(1) / 2
    return {
        "gaussian": (lambda q, b: -q / 2, lambda b: log(2 * pi)),
        "t": (lambda q, b: -(b + 2) / 2 * mp.log1p(q / b), lambda b: log(2 * pi)),
        "laplace": (lambda q, b: -mp.sqrt(q), lambda b: log(2 * pi)),
        "power": (lambda q, b: -half * q**b, lambda b: log(pi) + mp.loggamma(1 + 1 / b) + log(2) / b),
        "logistic": (
            lambda q, b: -mp.sqrt(q) - 2 * mp.log1p(mp.exp(-mp.sqrt(q))),
            lambda b: log(2 * pi) + log(log(2)),  # ∫ r e⁻ʳ/(1 + e⁻ʳ)² dr = log 2
        ),
    }[name]


def elliptical_case(name: str, shaped: bool) -> None:
    f, volume = profile(name)

    def exact(x: Any, y: Any, a: Any, b: Any, c: Any, shape: Any) -> Any:
        det = a * c - b * b
        return f((c * x * x - 2 * b * x * y + a * y * y) / det, shape) - volume(shape) - log(det) / 2

    def found(x: float, y: float, a: float, b: float, c: float, shape: float) -> float:
        distribution = lk.distributions.Elliptical(name, [0.0, 0.0], [[a, b], [b, c]], shape if shaped else None)
        return float(distribution.log_prob([[x, y]])[0])

    def point(r: Generator) -> Point:
        a, b, c = spd(r)
        z = np.linalg.cholesky([[a, b], [b, c]]) @ (r.normal(size=2) * size(r, -2, 2))
        return z[0], z[1], a, b, c, size(r, -0.5, 2) if shaped else 1.0

    case(f"Elliptical {name}", found, exact, point)


for _name, _shaped in (("gaussian", False), ("t", True), ("laplace", False), ("power", True), ("logistic", False)):
    elliptical_case(_name, _shaped)

# ------------------------------------------------------- distribution functions

TINY = mp.mpf(10) ** -45


def lower_gamma(a: Any, y: Any) -> Any:
    """P(a, y): terms are positive, so nothing is lost."""
    if y <= 0:
        return mp.mpf(0)
    if y > a + 60 * mp.sqrt(a) + 400:
        return 1 - upper_gamma(a, y)
    total = term = mp.mpf(1)
    n = a
    while term > total * TINY:
        n += 1
        term *= y / n
        total += term
    return mp.exp(a * log(y) - y - lgamma(a + 1)) * total


def upper_gamma(a: Any, y: Any) -> Any:
    """Q(a, y) for y well above a, by Legendre's continued fraction (Lentz)."""
    b = y + 1 - a
    c, d, n = 1 / TINY**2, 1 / b, 0
    h = d
    while True:
        n += 1
        top, b = n * (a - n), b + 2
        d, c = 1 / (b + top * d), b + top / c
        h *= d * c
        if abs(d * c - 1) < TINY:
            return mp.exp(a * log(y) - y - lgamma(a)) * h


def beta_share(x: Any, a: Any, b: Any) -> Any:
    """I_x(a, b) by its continued fraction (Lentz), on the side where it converges fast."""
    if x <= 0 or x >= 1:
        return mp.mpf(1 if x >= 1 else 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _fraction(1 - x, b, a)
    return _fraction(x, a, b)


def _fraction(x: Any, a: Any, b: Any) -> Any:
    c, d = mp.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
    h, m = d, 0
    while True:
        m += 1
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):  # fmt: skip
            d, c = 1 / (1 + top * d), 1 + top / c
            step = d * c
            h *= step
        if abs(step - 1) < TINY:
            return mp.exp(a * log(x) + b * mp.log1p(-x) - lbeta(a, b)) / a * h


def poisson_cdf(x: Any, m: Any) -> Any:
    """Below the mean by terms from x downwards, above it as what is left."""
    top = mp.floor(x)
    if top < 0:
        return mp.mpf(0)
    if top >= m:
        return 1 - lower_gamma(top + 1, m)
    total = term = mp.mpf(1)
    k = top
    while term > total * TINY and k > 0:
        term, k = term * k / m, k - 1
        total += term
    return mp.exp(top * log(m) - m - lgamma(top + 1)) * total


def summed(log_first: Callable[..., Any], ratio: Callable[..., Any]) -> Callable[..., Any]:
    """P(X ≤ k) as a sum from 0: p(0) = exp(log_first), p(j + 1) = p(j) ratio(j)."""

    def cdf(k: Any, *parameters: Any) -> Any:
        if k < 0:
            return mp.mpf(0)
        total = term = mp.exp(log_first(*parameters))
        for j in range(int(k)):
            term *= ratio(j, *parameters)
            total += term
        return total

    return cdf


def normal_cdf(x: Any, m: Any, v: Any) -> Any:
    return mp.erfc((m - x) / mp.sqrt(2 * v)) / 2


def t_cdf(x: Any, m: Any, s: Any, v: Any) -> Any:
    q, half = (x - m) ** 2 / s, mp.mpf(1) / 2
    with mp.workdps(60 if q < 1e12 * v else 700):  # v / (v + q) must hold both
        tail = (1 - beta_share(q / (v + q), half, v / 2)) / 2 if q < 1 else beta_share(v / (v + q), v / 2, half) / 2
        return tail if x < m else 1 - tail


def laplace_cdf(x: Any, c: Any, s: Any) -> Any:
    tail = mp.exp(-abs(x - c) / s) / 2
    return tail if x < c else 1 - tail


def triangular_cdf(x: Any, a: Any, c: Any, b: Any) -> Any:
    if x <= a or x >= b:
        return mp.mpf(1 if x >= b else 0)
    return (x - a) ** 2 / ((b - a) * (c - a)) if x <= c else 1 - (b - x) ** 2 / ((b - a) * (b - c))


def plateau_cdf(x: Any, a: Any, b: Any, s: Any) -> Any:
    beyond = max(a - x, x - b, mp.mpf(0)) / (b - a)
    tail = (1 + beyond) ** -s / (s + 2)
    return tail if x < a else 1 - tail if x > b else tail + (x - a) / (b - a) * s / (s + 2)


def clamped(f: Callable[..., Any]) -> Callable[..., Any]:
    """0 below 0."""
    return lambda x, *p: f(x, *p) if x > 0 else mp.mpf(0)


NODES, SHARES = ([mp.mpf(float(v)) for v in part] for part in np.polynomial.legendre.leggauss(100))


def turn_cdf(log_prob: Callable[..., Any], peak: Callable[..., Any]) -> Callable[..., Any]:
    """∫ from half a turn below the center, over the piece that counts: 100 nodes of Gauss and Legendre, 14 digits."""

    def cdf(x: Any, m: Any, *k: Any) -> Any:
        z = x - m
        if abs(z) >= pi:
            return mp.mpf(1 if z > 0 else 0)
        flip, z = z > 0, -abs(z)
        wide = min(16 / mp.sqrt(peak(*k)), 60 / (peak(*k) * mp.sin(-z) + mp.mpf(1e-30)), z + pi)
        with mp.workdps(45):  # 10¹⁵ of concentration cancel
            each = [
                w * mp.exp(log_prob(z - wide * (1 + t) / 2, mp.mpf(0), *k)) for t, w in zip(NODES, SHARES, strict=True)
            ]
        head = sum(each) * wide / 2
        return 1 - head if flip else head

    return cdf


def spread(name: str, distribution: Any, exact: Any, point: Any, **how: Any) -> None:
    SPREADS.append(Spread(name, distribution, exact, point, **how))


spread("Gaussian", lambda m, v: lk.Gaussian([m], v), normal_cdf, gaussian_point, place=0)
spread("StudentT", lambda m, s, v: lk.StudentT(m, s, v), t_cdf, t_point, place=0)
spread("Laplace", lk.Laplace, laplace_cdf, lambda r: scaled_point(r, -3, 2.8), place=0)
spread(
    "Cauchy",
    lk.distributions.Cauchy,
    lambda x, c, s: mp.atan2(s, c - x) / pi,
    lambda r: scaled_point(r, -3, 100),
    place=0,
)
spread("Uniform", lk.Uniform, lambda x, a, b: min(max((x - a) / (b - a), mp.mpf(0)), mp.mpf(1)), uniform_point, place=0)
spread("Triangular", lk.distributions.Triangular, triangular_cdf, triangular_point, place=0)
spread("UniformPredictive", lk.distributions.UniformPredictive, plateau_cdf, plateau_point, place=0)
spread("Exponential", lk.Exponential, clamped(lambda x, b: -mp.expm1(-b * x)), lambda r: (size(r, -300, 6), size(r)))
spread(
    "Lomax", lk.distributions.Lomax, clamped(lambda x, a, b: -mp.expm1(-a * mp.log1p(x / b))),
    lambda r: (size(r, -300, 300), size(r), size(r)),
)  # fmt: skip
spread("Gamma", lk.Gamma, clamped(lambda x, a, b: lower_gamma(a, b * x)), gamma_point)
spread("ChiSquare", lk.distributions.ChiSquare, clamped(lambda x, k: lower_gamma(k / 2, x / 2)), chi_square_point)
spread("Beta", lk.Beta, beta_share, beta_point)
spread(
    "VonMises",
    lk.distributions.VonMises,
    turn_cdf(von_mises_log_prob, lambda k: k),
    direction_point,
    place=0,
    costly=True,
)
spread(
    "VonMisesSum", lk.distributions.VonMisesSum, turn_cdf(von_mises_sum_log_prob, lambda k, c: k * c / (k + c)),
    lambda r: (*direction_point(r), size(r, -6, 15)), place=0, costly=True,
)  # fmt: skip
spread("Poisson", lk.Poisson, poisson_cdf, poisson_point, whole=True)
spread(
    "Binomial", lk.Binomial,
    lambda x, n, p: beta_share(1 - p, n - mp.floor(x), mp.floor(x) + 1) if x < n else mp.mpf(1),
    binomial_point, whole=True,
)  # fmt: skip
spread(
    "NegativeBinomial", lk.NegativeBinomial, lambda x, n, p: beta_share(p, n, mp.floor(x) + 1) if x >= 0 else mp.mpf(0),
    negative_binomial_point, whole=True,
)  # fmt: skip


def short_urn_point(r: Generator) -> Point:
    trials = float(np.rint(size(r, 0, 3.3)))
    return float(r.integers(trials + 1)), trials, size(r), size(r)


spread(
    "BetaBinomial", lk.distributions.BetaBinomial,
    summed(lambda n, a, b: lbeta(a, n + b) - lbeta(a, b),
           lambda j, n, a, b: (n - j) / (j + 1) * (a + j) / (b + n - j - 1)),
    short_urn_point, whole=True,
)  # fmt: skip
spread(
    "BetaNegativeBinomial", lk.distributions.BetaNegativeBinomial,
    summed(lambda n, a, b: lbeta(a + n, b) - lbeta(a, b),
           lambda j, n, a, b: (n + j) / (j + 1) * (b + j) / (a + n + b + j)),
    lambda r: (float(np.rint(size(r, 0, 3))) - 1, size(r, -6, 1.5), size(r, 0, 6), size(r, -6, 1.5)), whole=True,
)  # fmt: skip
