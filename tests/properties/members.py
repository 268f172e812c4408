"""Who has to obey the distributions. A new family joins by one line here.

`Member("Poisson", lambda: Poisson([3.0]), ("count",), ...)` says how to make a value and what its columns hold;
the suites find out the rest by asking the value: a stack, a prior, gaps, a divergence, a distribution function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely import (
    KDE,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    Laplace,
    Mixture,
    NegativeBinomial,
    Poisson,
    Product,
    StudentT,
    Uniform,
)
from likely.core import Columns
from likely.distributions import (
    Bahadur,
    BetaBinomial,
    Bijector,
    Cauchy,
    ChiSquare,
    ChowLiuTree,
    LatticeDistribution,
    LogLinear,
    Lomax,
    Stack,
    Tied,
    Transformed,
    Triangular,
    UniformPredictive,
    VonMises,
    VonMisesSum,
    Walsh,
    maximum_entropy,
)
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.elliptical.elliptical import Elliptical
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.matrix.inverse_wishart import InverseWishart
from likely.distributions.matrix.wishart import Wishart
from likely.distributions.univariate.beta import Beta

Rows = np.ndarray


class Pieces(tuple[float, ...]):
    """A column of real numbers whose density has corners or jumps at these places, and may end at the outer ones."""


def is_continuous(kind: Any) -> bool:
    """True for columns that are integrated, up to any point, not summed."""
    return isinstance(kind, Pieces) or (isinstance(kind, str) and kind in ("real", "positive"))


@dataclass(frozen=True)
class Member:
    """A density (and, unless `learns` is False, a learnable) under test."""

    name: str
    make: Callable[[], Any]
    columns: tuple[Any, ...]  # what each column holds: "real", "positive", "unit", "count", Pieces, or how many levels
    other: Callable[[], Any] | None = None  # a second value of the family, for `kl`
    moved: Callable[[Any, float], Any] | None = None  # the same distribution, shifted; for families that can follow
    learns: bool = True
    gaps: bool = True
    hidden: bool = False  # something is hidden even in complete rows: fitting iterates

    @cached_property
    def value(self) -> Any:
        return self.make()

    @property
    def stack(self) -> bool:
        return self.value.members is not None

    @property
    def dim(self) -> int:
        return len(self.columns)

    def each(self) -> list[Any]:
        """The value itself, or the members of a stack one by one."""
        return list(self._each)

    @cached_property
    def _each(self) -> tuple[Any, ...]:
        value = self.value
        return (value,) if value.members is None else tuple(value.member(k) for k in range(value.members))

    def draws(self, n: int, rng: Generator, of: Any = None) -> Rows:
        """Rows (n, d) from one density."""
        x = (self.each()[0] if of is None else of).sample(n, rng)
        if isinstance(x, Columns):
            x = np.concatenate([x[name] if np.ndim(x[name]) == 2 else x[name][:, None] for name in x], axis=1)
        return np.asarray(x, float).reshape(n, self.dim)

    def rows(self, n: int, rng: Generator, gaps: float = 0.0) -> Rows:
        """Rows from all members in turn; a share of the entries is missing, if the family knows gaps."""
        each = self.each()
        x = np.empty((n, self.dim))
        for k, one in enumerate(each):
            x[k :: len(each)] = self.draws(len(x[k :: len(each)]), rng, one)
        if gaps and self.gaps:
            x[rng.random(x.shape) < gaps] = np.nan
        return x


MEMBERS: list[Member] = []


def register(name: str, make: Callable[[], Any], *columns: Any, **options: Any) -> None:
    MEMBERS.append(Member(name, make, columns, **options))


# ------------------------------------------------------------------- Gaussian

A3 = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.4, 0.3, 0.7]])
FULL3 = A3 @ A3.T
FULL2 = np.array([[2.0, -1.1], [-1.1, 1.0]])
MEANS3 = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.0], [-1.0, -1.0, 4.0], [0.2, 2.0, 1.0], [1.0, 0.0, 0.0]])
STACK3 = np.stack([FULL3, np.eye(3), FULL3[::-1, ::-1], 0.3 * FULL3, 4 * np.eye(3) + FULL3])


def shifted(g: Gaussian, by: float) -> Gaussian:
    return Gaussian(g.mean + by, g.covariance, kind=g.kind)


def gaussian(name: str, make: Callable[[], Gaussian], other: Callable[[], Gaussian]) -> None:
    register(f"Gaussian-{name}", make, *("real",) * make().dim, other=other, moved=shifted)


gaussian("1d-full", lambda: Gaussian([2.0], [[0.25]]), lambda: Gaussian([1.5], [[0.5]]))
gaussian("1d-spherical", lambda: Gaussian([2.0], 0.25), lambda: Gaussian([1.5], 0.5))
gaussian("2d-full", lambda: Gaussian([1.0, -1.0], FULL2), lambda: Gaussian([0.0, 0.0], np.eye(2)))
gaussian("2d-diagonal", lambda: Gaussian([1.0, -1.0], [0.5, 3.0]), lambda: Gaussian([0.0, 0.0], [1.0, 2.0]))
gaussian("3d-full", lambda: Gaussian(MEANS3[0], FULL3), lambda: Gaussian(MEANS3[1], np.eye(3)))
gaussian("3d-diagonal", lambda: Gaussian(MEANS3[0], [0.1, 1.0, 9.0]), lambda: Gaussian(MEANS3[1], [1.0, 1.0, 1.0]))
gaussian("3d-spherical", lambda: Gaussian(MEANS3[0], 2.0), lambda: Gaussian(MEANS3[1], 1.0))
gaussian("stack-full", lambda: Gaussian(MEANS3, STACK3), lambda: Gaussian(MEANS3[::-1] + 0.1, STACK3[::-1]))
gaussian(
    "stack-diagonal",
    lambda: Gaussian(MEANS3, 0.2 + MEANS3**2, kind="diagonal"),
    lambda: Gaussian(MEANS3, 1.2 + MEANS3**2, kind="diagonal"),
)
gaussian(
    "stack-spherical",
    lambda: Gaussian(MEANS3, [1.0, 2.0, 0.5, 0.1, 3.0], kind="spherical"),
    lambda: Gaussian(MEANS3 + 0.1, [1.0, 2.0, 0.5, 0.2, 3.0], kind="spherical"),
)
gaussian("stack-of-two", lambda: Gaussian(MEANS3[:2], STACK3[:2]), lambda: Gaussian(MEANS3[1:3], STACK3[:2]))
MANY = np.random.default_rng(20).standard_normal((20, 2)) * 3
gaussian(  # from 16 members on, rows with labels are summed in segments
    "stack-of-20",
    lambda: Gaussian(MANY, np.stack([FULL2 * (1 + k % 3) for k in range(20)])),
    lambda: Gaussian(MANY + 0.5, FULL2),
)
gaussian("tied-of-20-diagonal", lambda: Gaussian(MANY, [0.5, 2.0]), lambda: Gaussian(MANY, [1.0, 2.0]))
gaussian("tied-full", lambda: Gaussian(MEANS3, FULL3), lambda: Gaussian(MEANS3 + 1.0, np.eye(3)))
gaussian("tied-diagonal", lambda: Gaussian(MEANS3, [0.5, 1.0, 2.0]), lambda: Gaussian(MEANS3, [1.0, 1.0, 1.0]))
gaussian("tied-spherical", lambda: Gaussian(MEANS3, 0.7), lambda: Gaussian(MEANS3, 1.7))

# ---------------------------------------------------------------- other distributions

RATES = np.array([[3.0, 0.4], [0.7, 8.0], [5.0, 5.0], [0.1, 2.0], [20.0, 1.0]])
LEVELS = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])

POINTS = np.random.default_rng(12).normal(size=(9, 2)) * [1.0, 2.0]
register("KDE-1d", lambda: KDE(POINTS[:, 0], 0.6**0.5), "real", learns=False)
register("KDE-t-1d", lambda: KDE(POINTS[:, 0], 0.6**0.5, "t", np.arange(1.0, 10.0), 5.0), "real", learns=False)
register("KDE-2d", lambda: KDE(POINTS, np.sqrt([0.6, 1.9])), "real", "real", learns=False)
register("KDE-t-2d", lambda: KDE(POINTS, np.sqrt([0.6, 1.9]), "t", dof=5.0), "real", "real", learns=False)
register(
    "KDE-elliptical", lambda: KDE(POINTS, kernel_covariance=FULL2, weight=np.arange(1.0, 10.0)), "real", "real",
    learns=False,
)  # fmt: skip
register(
    "KDE-stack", lambda: KDE([POINTS, POINTS[:2] + 1.0], np.sqrt([[0.6, 1.9], [2.0, 1.0]])), "real", "real",
    learns=False,
)  # fmt: skip
register("Poisson-1d", lambda: Poisson(3.5), "count", other=lambda: Poisson(2.0))
register("Poisson-2d", lambda: Poisson([3.0, 0.4]), "count", "count", other=lambda: Poisson([2.0, 1.0]))
register("Poisson-stack", lambda: Poisson(RATES), "count", "count", other=lambda: Poisson(RATES + 0.5))
register("Categorical", lambda: Categorical(LEVELS[0]), 3, other=lambda: Categorical(LEVELS[1]))
register("Categorical-stack", lambda: Categorical(LEVELS), 3, other=lambda: Categorical(LEVELS[::-1]))
COINS = np.array([[0.2, 0.5, 0.9], [0.6, 0.1, 0.7], [0.4, 0.8, 0.3], [0.9, 0.3, 0.5]])
register("Bernoulli-1d", lambda: Bernoulli(0.3), 2, other=lambda: Bernoulli(0.6))
register("Bernoulli-3d", lambda: Bernoulli(COINS[0]), 2, 2, 2, other=lambda: Bernoulli(COINS[1]))
register("Bernoulli-stack", lambda: Bernoulli(COINS), 2, 2, 2, other=lambda: Bernoulli(COINS[::-1]))
PAIRED = [0.0, 0.3, -0.4, 0.2, 0.6, -0.5, 0.4]
register(
    "LogLinear", lambda: LogLinear.normalized(PAIRED, 3), 2, 2, 2,
    other=lambda: LogLinear.normalized([0.0, 0.1, 0.2, 0.3, -0.2, 0.1, 0.0], 3),
)  # fmt: skip
register(
    "LogLinear-stack", lambda: LogLinear.normalized([PAIRED, PAIRED[::-1]], 3), 2, 2, 2,
    other=lambda: LogLinear.normalized([PAIRED[::-1], PAIRED], 3),
)  # fmt: skip
CELLS = np.array([0.2, 0.1, 0.05, 0.05, 0.15, 0.1, 0.15, 0.2])
register("Walsh", lambda: Walsh.of(CELLS), 2, 2, 2, learns=False)  # a cut expansion has no likelihood to maximize
register("Walsh-order-2", lambda: Walsh.of(CELLS, 2), 2, 2, 2, learns=False)
register("Bahadur", lambda: Bahadur([0.4, 0.6, 0.5], [1.0, 0, 0, 0, 0.2, -0.1, 0.3]), 2, 2, 2, learns=False)
TREE = np.array([[0, -1, 1], [1, 0, 1], [-1, 1, 0], [0, 0, -1], [1, -1, 0], [1, 1, 1], [-1, -1, 1], [0, 1, 1]]) + 1.0
TREES = [1 + np.arange(8.0), 9 - np.arange(8.0)]


def tree_of(*each: Any) -> ChowLiuTree:
    """A tree a member, learned from rows of unlike weights."""
    blank = ChowLiuTree.blank(TREE, len(each) if len(each) > 1 else None)
    stats = blank.collect(TREE, np.stack(each, axis=1) if len(each) > 1 else each[0])
    return blank.refit(stats, blank.weak_prior(stats))


register("ChowLiuTree", lambda: tree_of(TREES[0]), 3, 3, 3, other=lambda: tree_of(TREES[1]))
register("ChowLiuTree-stack", lambda: tree_of(*TREES), 3, 3, 3, other=lambda: tree_of(*TREES[::-1]))
register("NegativeBinomial-1d", lambda: NegativeBinomial(2.5, 0.3), "count", other=lambda: NegativeBinomial(4.0, 0.5))
register(
    "NegativeBinomial-stack", lambda: NegativeBinomial([[2.0, 0.5], [1.0, 9.0]], 0.4), "count", "count",
    other=lambda: NegativeBinomial([[2.0, 0.5], [3.0, 9.0]], 0.5),
)  # fmt: skip
register("Binomial-1d", lambda: Binomial(7, 0.3), "count", other=lambda: Binomial(7, 0.4))
register(
    "Binomial-stack", lambda: Binomial([[4, 9]] * 3, [[0.2, 0.5], [0.6, 0.1], [0.5, 0.9]]), "count", "count",
    other=lambda: Binomial([[4, 9]] * 3, [[0.3, 0.5], [0.6, 0.2], [0.4, 0.8]]),
)  # fmt: skip
register("BetaBinomial-1d", lambda: BetaBinomial(9, 1.5, 3.0), "count", other=lambda: BetaBinomial(9, 1.0, 1.0))
register(
    "BetaBinomial-stack", lambda: BetaBinomial([[4, 9], [4, 9]], [[0.7, 2.0], [3.0, 0.8]], [[1.0, 2.0], [1.0, 5.0]]),
    "count", "count", other=lambda: BetaBinomial([[4, 9], [4, 9]], 1.0, [[1.0, 2.0], [1.0, 5.0]]),
)  # fmt: skip
HIDES = {"hidden": True}  # how far out a row lies is hidden in its scale
register("StudentT-1d", lambda: StudentT([1.0], [[2.0]], 3.0), "real", **HIDES)
register("StudentT-2d", lambda: StudentT([1.0, 0.0], FULL2, 5.0), "real", "real", **HIDES)
register("StudentT-3d", lambda: StudentT(MEANS3[0], FULL3, 4.0), *("real",) * 3, **HIDES)
register("StudentT-diagonal", lambda: StudentT([1.0, 0.0], [2.0, 0.3], 5.0), "real", "real", **HIDES)
register("StudentT-spherical", lambda: StudentT([1.0, 0.0], 2.0, 5.0), "real", "real", **HIDES)
register("StudentT-fixed", lambda: StudentT([1.0, 0.0], FULL2, 3.0, fixed_dof=True), "real", "real", **HIDES)
register(
    "StudentT-independent", lambda: StudentT([1.0, 0.0], [2.0, 0.3], [5.0, 9.0], kind="independent"), "real", "real",
    learns=False,  # of some dozen rows a dof of 9 is as good as none: the heavy one learns
)  # fmt: skip
register(  # has no fourth moment
    "StudentT-independent-heavy", lambda: StudentT([1.0, 0.0], [2.0, 0.3], [3.0, 4.0], kind="independent"),
    "real", "real", **HIDES,
)  # fmt: skip
register(
    "StudentT-independent-stack",
    lambda: StudentT(MEANS3[:2, :2], [[2.0, 0.3], [1.0, 1.0]], [[5.0, 9.0], [9.0, 5.0]], kind="independent"), "real",
    "real", **HIDES,
)  # fmt: skip
register("StudentT-stack", lambda: StudentT(MEANS3, STACK3, [3.0, 4.0, 5.0, 9.0, 30.0]), *("real",) * 3, **HIDES)
register(
    "StudentT-stack-diagonal", lambda: StudentT(MEANS3[:2], [[1.0, 2.0, 0.5]] * 2, [3.0, 6.0], kind="diagonal"),
    *("real",) * 3, **HIDES,
)  # fmt: skip
register("Gamma-1d", lambda: Gamma(2.5, 3.0), "positive", other=lambda: Gamma(2.0, 1.0))
register(
    "Gamma-stack", lambda: Gamma([[2.0, 7.0], [1.0, 3.0]], [[1.0, 2.0], [0.1, 5.0]]), "positive", "positive",
    other=lambda: Gamma([[2.5, 6.0], [1.0, 3.5]], 1.0),
)  # fmt: skip

SIMPLEX = {"gaps": False}  # entries are not free: one cannot be left out of a complete row
register("Dirichlet", lambda: Dirichlet([6.0, 7.0, 8.0]), *("unit",) * 3, other=lambda: Dirichlet([5.0] * 3), **SIMPLEX)
register(
    "Dirichlet-stack",
    lambda: Dirichlet([[6.0, 7.0, 8.0], [9.0, 6.0, 6.0]]),
    *("unit",) * 3,
    other=lambda: Dirichlet([[5.0, 5.0, 5.0], [9.0, 7.0, 6.0]]),
    **SIMPLEX,
)

UNITS = {"gaps": False}  # the grid of "unit" is too coarse for cumulated sums
register("Beta-1d", lambda: Beta(2.5, 4.0), Pieces((0.0, 1.0)), other=lambda: Beta(2.0, 4.5))
register("Beta-2d", lambda: Beta([6.0, 3.0], [4.0, 8.0]), *("unit",) * 2, other=lambda: Beta(5.0, [4.0, 7.0]), **UNITS)
register(
    "Beta-stack",
    lambda: Beta([[6.0, 3.0], [2.0, 9.0]], [[4.0, 8.0], [2.5, 3.0]]),
    *("unit",) * 2,
    other=lambda: Beta([[5.0, 3.0], [2.0, 8.0]], 4.0),
    **UNITS,
)

# ------------------------------------------------------- independent columns

register("Exponential-1d", lambda: Exponential(2.0), "positive", other=lambda: Exponential(1.0))
register(
    "Exponential-stack", lambda: Exponential([[2.0, 0.3], [1.0, 7.0]]), "positive", "positive",
    other=lambda: Exponential([[2.5, 0.3], [1.0, 6.0]]),
)  # fmt: skip

register("Lomax-1d", lambda: Lomax(7.0, 3.0), "positive", other=lambda: Lomax(8.0, 2.0), learns=False)
register(
    "Lomax-stack", lambda: Lomax([[7.0, 9.0], [11.0, 8.0]], [[1.0, 2.0], [0.3, 4.0]]), "positive", "positive",
    other=lambda: Lomax([[7.0, 9.5], [9.0, 7.0]], [[2.0, 2.0], [0.3, 5.0]]), learns=False,
)  # fmt: skip
register("ChiSquare-1d", lambda: ChiSquare(3.5), "positive", other=lambda: ChiSquare(5.0))
register(
    "ChiSquare-stack", lambda: ChiSquare([[2.0, 9.0], [1.5, 4.0]]), "positive", "positive",
    other=lambda: ChiSquare([[2.5, 9.0], [1.0, 6.0]]),
)  # fmt: skip


def shifted_by(*names: str) -> Callable[[Any, float], Any]:
    """Parameters of place move with the data."""
    return lambda distribution, by: distribution.replace(**{name: getattr(distribution, name) + by for name in names})


ENDS = shifted_by("low", "high")
register(
    "Uniform-1d", lambda: Uniform(0.0, 3.0), Pieces((0.0, 3.0)), other=lambda: Uniform(-0.5, 3.0), moved=ENDS,
)  # fmt: skip
register(  # of one support: elsewhere rows of one member are impossible for another
    "Uniform-stack", lambda: Uniform([[-1.0, 0.0]] * 2, [[2.0, 5.0]] * 2), Pieces((-1.0, 2.0)), Pieces((0.0, 5.0)),
    other=lambda: Uniform([[-1.0, -1.0], [-2.0, 0.0]], [[2.5, 5.0], [2.0, 6.0]]), moved=ENDS,
)  # fmt: skip
PLACES = shifted_by("low", "mode", "high")
register(
    "Triangular-1d", lambda: Triangular(0.0, 1.0, 4.0), Pieces((0.0, 1.0, 4.0)),
    other=lambda: Triangular(-1.0, 2.0, 4.0), moved=PLACES,
)  # fmt: skip
register(
    "Triangular-known", lambda: Triangular(0.0, 1.0, 4.0, known="both"), Pieces((0.0, 1.0, 4.0)),
    other=lambda: Triangular(0.0, 2.0, 4.0),
)  # fmt: skip
register(
    "Triangular-stack", lambda: Triangular([[0.0, -1.0]] * 2, [[1.0, 2.0], [3.0, -1.0]], [[4.0, 2.0]] * 2),
    Pieces((0.0, 1.0, 3.0, 4.0)), Pieces((-1.0, 2.0)), other=lambda: Triangular([[0.0, -1.5]] * 2, 1.9, 5.0),
    moved=PLACES,
)  # fmt: skip
CENTERS = shifted_by("center")
register(
    "Laplace-1d", lambda: Laplace(1.0, 2.0), Pieces((-np.inf, 1.0, np.inf)), other=lambda: Laplace(0.0, 2.5),
    moved=CENTERS,
)  # fmt: skip
register(
    "Laplace-stack", lambda: Laplace([[1.0, 0.0], [-1.0, 0.0]], [[2.0, 0.3], [1.0, 0.5]]),
    Pieces((-np.inf, -1.0, 1.0, np.inf)), Pieces((-np.inf, 0.0, np.inf)),
    other=lambda: Laplace([[1.5, 0.1], [-1.0, 0.0]], [[2.0, 0.5], [1.5, 0.5]]), moved=CENTERS,
)  # fmt: skip
register("Cauchy-1d", lambda: Cauchy(1.0, 2.0), "real", other=lambda: Cauchy(0.0, 2.5), moved=CENTERS)
register(
    "Cauchy-stack", lambda: Cauchy([[1.0, 0.0], [-1.0, 0.0]], [[2.0, 0.3], [1.0, 0.5]]),
    Pieces((-np.inf, 0.0, np.inf)), Pieces((-np.inf, 0.0, np.inf)),
    other=lambda: Cauchy([[1.5, 0.1], [-1.0, 0.0]], [[2.0, 0.5], [1.5, 0.5]]), moved=CENTERS,
)  # fmt: skip
register(
    "UniformPredictive-1d", lambda: UniformPredictive(0.0, 3.0, 2.5), Pieces((-np.inf, 0.0, 3.0, np.inf)), learns=False
)
register(
    "UniformPredictive-stack", lambda: UniformPredictive([[-1.0, 0.0]] * 2, [[2.0, 5.0]] * 2, [[4.0, 3.0], [6.0, 7.0]]),
    Pieces((-np.inf, -1.0, 2.0, np.inf)), Pieces((-np.inf, 0.0, 5.0, np.inf)), learns=False,
)  # fmt: skip

TURN = Pieces((1.0 - np.pi, 0.5, 0.9, 1.0, 1.1, 1.5, 1.0 + np.pi))  # the circle is cut opposite the center
register("VonMises-1d", lambda: VonMises(1.0, 400.0), TURN, other=lambda: VonMises(1.1, 300.0))
register(
    "VonMises-stack", lambda: VonMises([[1.0, -2.0]] * 3, [[2.0, 0.1], [7.0, 1.0], [0.5, 3.0]]),
    Pieces((1.0 - np.pi, 1.0 + np.pi)), Pieces((-2.0 - np.pi, -2.0 + np.pi)),
    other=lambda: VonMises([[1.5, -1.0], [1.0, 3.0], [0.0, -2.0]], [[2.0, 0.2], [6.0, 1.5], [0.6, 2.0]]),
)  # fmt: skip
register(
    "VonMisesSum", lambda: VonMisesSum([1.0, 0.5], [2.0, 7.0], [1.0, 3.0]), Pieces((1.0 - np.pi, 1.0 + np.pi)),
    Pieces((0.5 - np.pi, 0.5 + np.pi)), learns=False,
)  # fmt: skip

# ------------------------------------------------------------------ elliptical distributions

WHOLE = {"gaps": False}
register("Elliptical-logistic", lambda: Elliptical("logistic", [1.0, 0.0], FULL2), "real", "real", **WHOLE)
register("Elliptical-1d", lambda: Elliptical("t", [1.0], 2.0, 5.0), "real", **WHOLE)
register("Elliptical-flat", lambda: Elliptical("power", [1.0, 0.0], FULL2, 2.0), "real", "real", **WHOLE)
register("Elliptical-1d-logistic", lambda: Elliptical("logistic", [1.0], 2.0), "real", **WHOLE)
register("Elliptical-1d-flat", lambda: Elliptical("power", [1.0], 2.0, 2.0), "real", learns=False, **WHOLE)
register("Elliptical-stack", lambda: Elliptical("t", MEANS3[:2, :2], STACK3[:2, :2, :2], 6.0), "real", "real", **WHOLE)
register(
    "Elliptical-stack-cusped", lambda: Elliptical("laplace", [[0.0, 1.0]] * 2, STACK3[:2, :2, :2]),
    Pieces((-np.inf, 0.0, np.inf)), Pieces((-np.inf, 1.0, np.inf)), **WHOLE,
)  # fmt: skip

# ------------------------------------------------------------------ matrices, of one row and one column: a variance

register("Wishart-1d", lambda: Wishart(5.0, 2.0), "positive", other=lambda: Wishart(6.0, 1.0))
register(
    "Wishart-1d-stack", lambda: Wishart([5.0, 8.0], [[[2.0]], [[0.5]]]), "positive",
    other=lambda: Wishart([6.0, 3.0], 1.0),
)  # fmt: skip
register("InverseWishart-1d", lambda: InverseWishart(9.0, 2.0), "positive", other=lambda: InverseWishart(6.0, 1.0))
register(
    "InverseWishart-1d-stack", lambda: InverseWishart([9.0, 12.0], [[[2.0]], [[0.5]]]), "positive",
    other=lambda: InverseWishart([6.0, 3.0], 1.0),
)  # fmt: skip

# --------------------------------------------------------------------- factors

LOADINGS = np.array([[1.0, 0.2], [0.8, -0.5], [-0.6, 0.3], [0.2, 1.0], [0.0, 0.4], [0.7, 0.0], [0.3, -0.9]])
MEANS7 = np.array([[0.0, 1.0, -2.0, 0.0, 3.0, 0.5, 1.0], [2.0, 0.0, 0.0, 1.0, -1.0, 0.0, 2.0]])
NOISE7 = np.array([0.5, 0.3, 0.4, 0.6, 0.2, 0.5, 0.7])


def with_factors(name: str, make: Callable[[], FactorGaussian], other: Callable[[], FactorGaussian]) -> None:
    register(f"FactorGaussian-{name}", make, *("real",) * make().dim, other=other)


with_factors(
    "wide", lambda: FactorGaussian(MEANS7[0], LOADINGS[:, :1], 0.4), lambda: FactorGaussian(MEANS7[0], LOADINGS, 0.7)
)
with_factors(
    "many", lambda: FactorGaussian(MEANS3[0], LOADINGS[:3], 0.4), lambda: FactorGaussian(MEANS3[1], LOADINGS[:3], 0.7)
)
with_factors(
    "analysis", lambda: FactorGaussian(MEANS7[0], LOADINGS[:, :1], NOISE7),
    lambda: FactorGaussian(MEANS7[1], LOADINGS, NOISE7[::-1]),
)  # fmt: skip
with_factors(
    "stack", lambda: FactorGaussian(MEANS7, np.stack([LOADINGS[:, :1], 2 * LOADINGS[:, 1:]]), [0.4, 0.9]),
    lambda: FactorGaussian(MEANS7[::-1], np.stack([LOADINGS, LOADINGS]), 0.7),
)  # fmt: skip
with_factors(
    "analysis-stack",
    lambda: FactorGaussian(MEANS7[[0, 0]] + [[0.0], [0.2]], LOADINGS[None, :, :1] * [[[1.0]], [[1.2]]], [NOISE7] * 2),
    lambda: FactorGaussian(MEANS7[::-1], np.stack([LOADINGS, LOADINGS]), [NOISE7, 2 * NOISE7]),
)  # fmt: skip

# ------------------------------------------------------------------ composites

register(
    "Product-Gaussians",
    lambda: Product({"a": Gaussian([1.0], 0.5), "b": Gaussian([0.0, 1.0], FULL2)}),
    *("real",) * 3,
    other=lambda: Product({"a": Gaussian([0.0], 1.0), "b": Gaussian([0.0, 0.0], np.eye(2))}),
)
register(
    "Product-stack",
    lambda: Product({"a": Gaussian(MEANS3[:, :1], 0.5), "b": Gaussian(MEANS3[:, 1:], STACK3[:, 1:, 1:])}),
    *("real",) * 3,
    other=lambda: Product({"a": Gaussian(MEANS3[:, 1:2], 1.0), "b": Gaussian(MEANS3[:, :2], STACK3[:, :2, :2])}),
)
register(
    "Product-mixed",
    lambda: Product({"size": Gaussian([1.0], 0.5), "visits": Poisson(2.0), "color": Categorical(LEVELS[0])}),
    "real", "count", 3,
    other=lambda: Product({"size": Gaussian([0.0], 1.0), "visits": Poisson(1.0), "color": Categorical(LEVELS[1])}),
)  # fmt: skip
register(
    "Stack",
    lambda: Stack([Gaussian([0.0, 1.0], FULL2), Gaussian([3.0, 0.0], [1.0, 0.2]), Gaussian([1.0, 1.0], 0.4)]),
    *("real",) * 2,
    other=lambda: Stack([Gaussian([0.0, 0.0], np.eye(2)), Gaussian([3.0, 1.0], [1.0, 1.2]), Gaussian([1.0, 0.0], 1.0)]),
)
register("Tied-all", lambda: Tied(Gaussian(MEANS3[:3], STACK3[:3]), [0, 2, 1, 2]), *("real",) * 3)
register(
    "Tied-covariance",
    lambda: Tied(Gaussian(MEANS3, STACK3[[0, 1, 0, 1, 4]]), [0, 1, 0, 1, 2], what="covariance"),
    *("real",) * 3,
)
register(
    "Tied-covariance-diagonal",
    lambda: Tied(Gaussian(MEANS3[:3], [[1.0, 2.0, 3.0]] * 3, kind="diagonal"), [1, 1, 1], what="covariance"),
    *("real",) * 3,
)

register("Transformed-1d", lambda: Transformed(Gaussian([0.3], 0.2), Bijector.exp()), "positive")
UNEQUAL = Bijector.affine([0.5, -2.0, 1.0], [1.0, 0.0, -1.0])
register("Transformed-3d", lambda: Transformed(Gaussian(MEANS3[0], FULL3), UNEQUAL), *("real",) * 3)
register("Transformed-stack", lambda: Transformed(Gaussian(MEANS3, STACK3), UNEQUAL), *("real",) * 3)
register("LatticeDistribution", lambda: LatticeDistribution(0.0, 1.0, [0.1, 0.2, 0.4, 0.3]), 4, learns=False)
FLAT = {"interval": (-np.inf, np.inf), "expect": {"square": 1.0, "fourth": 2.0}}
register("MaximumEntropyDistribution", lambda: maximum_entropy(**FLAT), "real", learns=False)

# -------------------------------------------------------------------- mixtures

register(
    "Mixture-Gaussians", lambda: Mixture([0.5, 0.25, 0.25], Gaussian(MEANS3[:3], STACK3[:3])), *("real",) * 3,
    hidden=True,
)  # fmt: skip
register("Mixture-tied", lambda: Mixture([0.5, 0.5], Gaussian(MEANS3[:2, :2], FULL2)), "real", "real", hidden=True)
register("Mixture-Poissons", lambda: Mixture([0.5, 0.5], Poisson(RATES[:2])), "count", "count", hidden=True)
APART = np.array([[0.95, 0.9, 0.9, 0.95, 0.1, 0.1], [0.1, 0.1, 0.05, 0.1, 0.9, 0.95]])  # else EM takes for ever
register("Mixture-Bernoullis", lambda: Mixture([0.5, 0.5], Bernoulli(APART)), *(2,) * 6, hidden=True)
