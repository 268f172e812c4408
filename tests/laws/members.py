"""Who has to obey the laws. A new family joins by one line here.

`Member("Poisson", lambda: Poisson([3.0]), ("count",), ...)` says how to make a value and what its columns hold;
the suites find out the rest by asking the value: a stack, a prior, gaps, a divergence, a distribution function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely import (
    Categorical,
    Columns,
    Dirichlet,
    Gamma,
    Gaussian,
    Mixture,
    NegativeBinomial,
    Poisson,
    Product,
    Several,
    Shared,
    StudentT,
)
from likely.families.bernoulli import Bernoulli
from likely.families.factor_gaussian import FactorGaussian
from likely.priors.beta import Beta

Rows = np.ndarray


@dataclass(frozen=True)
class Member:
    """A density (and, unless `learns` is False, a learnable) under test."""

    name: str
    make: Callable[[], Any]
    columns: tuple[Any, ...]  # what each column holds: "real", "positive", "unit", "count", or how many levels
    other: Callable[[], Any] | None = None  # a second value of the family, for `kl`
    moved: Callable[[Any, float], Any] | None = None  # the same law, shifted; for families that can follow
    learns: bool = True
    gaps: bool = True
    hidden: bool = False  # something is hidden even in complete rows: fitting iterates

    @property
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
        value = self.value
        return [value] if value.members is None else [value.member(k) for k in range(value.members)]

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
gaussian(  # from 16 members on, rows with owners are summed in segments
    "stack-of-20",
    lambda: Gaussian(MANY, np.stack([FULL2 * (1 + k % 3) for k in range(20)])),
    lambda: Gaussian(MANY + 0.5, FULL2),
)
gaussian("tied-of-20-diagonal", lambda: Gaussian(MANY, [0.5, 2.0]), lambda: Gaussian(MANY, [1.0, 2.0]))
gaussian("tied-full", lambda: Gaussian(MEANS3, FULL3), lambda: Gaussian(MEANS3 + 1.0, np.eye(3)))
gaussian("tied-diagonal", lambda: Gaussian(MEANS3, [0.5, 1.0, 2.0]), lambda: Gaussian(MEANS3, [1.0, 1.0, 1.0]))
gaussian("tied-spherical", lambda: Gaussian(MEANS3, 0.7), lambda: Gaussian(MEANS3, 1.7))

# ---------------------------------------------------------------- other laws

RATES = np.array([[3.0, 0.4], [0.7, 8.0], [5.0, 5.0], [0.1, 2.0], [20.0, 1.0]])
LEVELS = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])

register("Poisson-1d", lambda: Poisson(3.5), "count", other=lambda: Poisson(2.0))
register("Poisson-2d", lambda: Poisson([3.0, 0.4]), "count", "count", other=lambda: Poisson([2.0, 1.0]))
register("Poisson-stack", lambda: Poisson(RATES), "count", "count", other=lambda: Poisson(RATES + 0.5))
register("Categorical", lambda: Categorical(LEVELS[0]), 3, other=lambda: Categorical(LEVELS[1]))
register("Categorical-stack", lambda: Categorical(LEVELS), 3, other=lambda: Categorical(LEVELS[::-1]))
COINS = np.array([[0.2, 0.5, 0.9], [0.6, 0.1, 0.7], [0.4, 0.8, 0.3], [0.9, 0.3, 0.5]])
register("Bernoulli-1d", lambda: Bernoulli(0.3), 2, other=lambda: Bernoulli(0.6))
register("Bernoulli-3d", lambda: Bernoulli(COINS[0]), 2, 2, 2, other=lambda: Bernoulli(COINS[1]))
register("Bernoulli-stack", lambda: Bernoulli(COINS), 2, 2, 2, other=lambda: Bernoulli(COINS[::-1]))
register("NegativeBinomial-1d", lambda: NegativeBinomial(2.5, 0.3), "count", learns=False)
register(
    "NegativeBinomial-stack", lambda: NegativeBinomial([[2.0, 0.5], [1.0, 9.0]], 0.4), "count", "count", learns=False
)
register("StudentT-1d", lambda: StudentT([1.0], [[2.0]], 3.0), "real", learns=False)
register("StudentT-2d", lambda: StudentT([1.0, 0.0], FULL2, 5.0), "real", "real", learns=False)
register("StudentT-3d", lambda: StudentT(MEANS3[0], FULL3, 4.0), *("real",) * 3, learns=False)
register("StudentT-diagonal", lambda: StudentT([1.0, 0.0], [2.0, 0.3], 5.0), "real", "real", learns=False)
register(
    "StudentT-independent", lambda: StudentT([1.0, 0.0], [2.0, 0.3], [5.0, 9.0], kind="independent"), "real", "real",
    learns=False,
)  # fmt: skip
register("StudentT-stack", lambda: StudentT(MEANS3, STACK3, [3.0, 4.0, 5.0, 9.0, 30.0]), *("real",) * 3, learns=False)
register("Gamma-1d", lambda: Gamma(2.5, 3.0), "positive", other=lambda: Gamma(2.0, 1.0), learns=False)
register(
    "Gamma-stack", lambda: Gamma([[2.0, 7.0], [1.0, 3.0]], [[1.0, 2.0], [0.1, 5.0]]), "positive", "positive",
    other=lambda: Gamma([[2.5, 6.0], [1.0, 3.5]], 1.0), learns=False,
)  # fmt: skip

SIMPLEX = {"learns": False, "gaps": False}  # entries are not free: one cannot be left out of a complete row
register("Dirichlet", lambda: Dirichlet([6.0, 7.0, 8.0]), *("unit",) * 3, other=lambda: Dirichlet([5.0] * 3), **SIMPLEX)
register(
    "Dirichlet-stack",
    lambda: Dirichlet([[6.0, 7.0, 8.0], [9.0, 6.0, 6.0]]),
    *("unit",) * 3,
    other=lambda: Dirichlet([[5.0, 5.0, 5.0], [9.0, 7.0, 6.0]]),
    **SIMPLEX,
)

UNITS = {"learns": False, "gaps": False}  # the grid of "unit" is too coarse for cumulated sums
register("Beta-2d", lambda: Beta([6.0, 3.0], [4.0, 8.0]), *("unit",) * 2, other=lambda: Beta(5.0, [4.0, 7.0]), **UNITS)
register(
    "Beta-stack",
    lambda: Beta([[6.0, 3.0], [2.0, 9.0]], [[4.0, 8.0], [2.5, 3.0]]),
    *("unit",) * 2,
    other=lambda: Beta([[5.0, 3.0], [2.0, 8.0]], 4.0),
    **UNITS,
)

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
    lambda: Product({"size": Gaussian([1.0], 0.5), "visits": Poisson(2.0), "colour": Categorical(LEVELS[0])}),
    "real", "count", 3,
    other=lambda: Product({"size": Gaussian([0.0], 1.0), "visits": Poisson(1.0), "colour": Categorical(LEVELS[1])}),
)  # fmt: skip
register(
    "Several",
    lambda: Several([Gaussian([0.0, 1.0], FULL2), Gaussian([3.0, 0.0], [1.0, 0.2]), Gaussian([1.0, 1.0], 0.4)]),
    *("real",) * 2,
    other=lambda: Several(
        [Gaussian([0.0, 0.0], np.eye(2)), Gaussian([3.0, 1.0], [1.0, 1.2]), Gaussian([1.0, 0.0], 1.0)]
    ),
)
register("Shared-all", lambda: Shared(Gaussian(MEANS3[:3], STACK3[:3]), [0, 2, 1, 2]), *("real",) * 3)
register(
    "Shared-covariance",
    lambda: Shared(Gaussian(MEANS3, STACK3[[0, 1, 0, 1, 4]]), [0, 1, 0, 1, 2], what="covariance"),
    *("real",) * 3,
)
register(
    "Shared-covariance-diagonal",
    lambda: Shared(Gaussian(MEANS3[:3], [[1.0, 2.0, 3.0]] * 3, kind="diagonal"), [1, 1, 1], what="covariance"),
    *("real",) * 3,
)

# -------------------------------------------------------------------- mixtures

register(
    "Mixture-Gaussians", lambda: Mixture([0.5, 0.25, 0.25], Gaussian(MEANS3[:3], STACK3[:3])), *("real",) * 3,
    hidden=True,
)  # fmt: skip
register("Mixture-tied", lambda: Mixture([0.5, 0.5], Gaussian(MEANS3[:2, :2], FULL2)), "real", "real", hidden=True)
register("Mixture-Poissons", lambda: Mixture([0.5, 0.5], Poisson(RATES[:2])), "count", "count", hidden=True)
APART = np.array([[0.95, 0.9, 0.9, 0.95, 0.1, 0.1], [0.1, 0.1, 0.05, 0.1, 0.9, 0.95]])  # else EM takes for ever
register("Mixture-Bernoullis", lambda: Mixture([0.5, 0.5], Bernoulli(APART)), *(2,) * 6, hidden=True)
