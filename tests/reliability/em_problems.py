"""Random problems for EM: a start, rows, and what is known of them; of every family, small and nasty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from likely import Bernoulli, Categorical, Dirichlet, Gaussian, Mixture, Multinomial, Poisson, Product
from likely.core import Blocks, Columns
from likely.distributions import Tied
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.mixture.sparse_weights import SparseWeights
from likely.priors import MixturePrior
from tests.reliability import plainly

PRIORS = ("none", "weak", "Dirichlet", "sparse", "emptying")


@dataclass(frozen=True)
class Problem:
    """Everything that `iterate` takes."""

    start: Mixture
    x: Any
    weight: np.ndarray | None
    labels: np.ndarray | None
    given: np.ndarray | None
    prior: Any
    hard: bool

    @property
    def data(self) -> Blocks:
        return Blocks.of(self.x, self.weight, labels=self.labels, log_mask=self.given)

    def log_likelihood(self, model: Mixture) -> float:
        """Σ weight · log p(x, what is known of the label), or of the most probable labels where `hard`."""
        joint = plainly.log(model.weights) + self._inside(model)
        if self.labels is not None:
            each = np.where(self.labels >= 0, joint[np.arange(len(joint)), self.labels], 0.0)
        else:
            joint = joint if self.given is None else joint + self.given
            each = joint.max(axis=1) if self.hard else logsumexp(joint, axis=1)
        w = np.ones(len(each)) if self.weight is None else self.weight
        return float(w @ np.where(w > 0, each, 0.0))

    def _inside(self, model: Mixture) -> np.ndarray:
        """log p_k(x); the maximum approximation holds inside, too."""
        inner = model.components
        if not (self.hard and isinstance(inner, Mixture)):
            return plainly.log_probs(inner, self.x)
        joint = plainly.log_probs(inner.components, self.x) + plainly.log(inner.weights.ravel())
        return joint.reshape(len(joint), *inner.weights.shape).max(axis=-1)

    def objective(self, model: Mixture, prior: Any) -> float:
        return self.log_likelihood(model) + plainly.log_prior(model, prior)


# ------------------------------------------------------------------ distributions and rows


def gaussians(rng: Generator, K: int, d: int, kind: str, tied: bool = False) -> Gaussian:
    """A stack of Gaussians that are not too narrow."""
    a = rng.standard_normal((1 if tied else K, d, d + 2))
    full = a @ np.swapaxes(a, 1, 2) + 0.1 * np.eye(d)
    spread = {"full": full, "diagonal": full[:, range(d), range(d)], "spherical": full[:, 0, 0]}[kind]
    return Gaussian(2 * rng.standard_normal((K, d)), spread[0] if tied else spread, kind=kind)


def reals(rng: Generator, n: int, d: int, gaps: float) -> np.ndarray:
    """Clouds; at times with copies, a rounding grid, an offset, other units."""
    x = (
        rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
        + 3 * rng.standard_normal((4, d))[rng.integers(0, 4, n)]
    )
    how = rng.random()
    if how < 0.15:
        x = x[rng.integers(0, max(n // 3, 1), n)]
    elif how < 0.25:
        x = np.round(x)
    elif how < 0.35:
        x = x + 1e6 * rng.standard_normal(d)
    elif how < 0.45:
        x = x * 10.0 ** rng.uniform(-6, 6, d)
    return with_gaps(rng, x, gaps)


def with_gaps(rng: Generator, x: np.ndarray, rate: float) -> np.ndarray:
    return np.where(rng.random(x.shape) < rate, np.nan, x) if rate else x


def gaussian_parts(kind: str, tied: bool = False) -> Callable[..., tuple[Any, Any]]:
    def make(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
        d = int(rng.integers(1, 5))
        x = reals(rng, n, d, gaps)
        return placed(gaussians(rng, K, d, kind, tied), x), x

    return make


def placed(distribution: Gaussian, x: np.ndarray) -> Gaussian:
    """A stack moved to where the rows are, and scaled as they are."""
    seen = np.isfinite(x)
    some = np.where(seen.any(axis=0), seen.sum(axis=0), 1)
    center = np.where(seen, x, 0.0).sum(axis=0) / some
    unit = np.sqrt(np.where(seen, (x - center) ** 2, 0.0).sum(axis=0) / some)
    unit = np.where(unit > 1e-12 * np.abs(center), unit, 1.0)
    unit = unit if distribution.kind != "spherical" else np.full(len(unit), unit.max())
    by = {"full": np.outer(unit, unit), "diagonal": unit**2, "spherical": unit[0] ** 2}[distribution.kind]
    return Gaussian(center + distribution.mean * unit, distribution.covariance * by, kind=distribution.kind)


def shared_covariances(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    distribution, x = gaussian_parts(str(rng.choice(["full", "diagonal", "spherical"])))(rng, n, K, gaps)
    index = rng.integers(0, max(K // 2, 1), K)
    first = np.array([np.flatnonzero(index == g)[0] for g in index])
    return Tied(
        Gaussian(distribution.mean, distribution.covariance[first], kind=distribution.kind), index, "covariance"
    ), x


def shared_whole(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    size = int(rng.integers(1, K + 1))
    distribution, x = gaussian_parts(str(rng.choice(["full", "diagonal", "spherical"])))(rng, n, size, gaps)
    return Tied(distribution, rng.integers(0, size, K)), x


def factors(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    """Few causes for many columns: probabilistic PCA and factor analysis."""
    d = int(rng.integers(2, 5))
    x = reals(rng, n, d, gaps)
    distribution = placed(gaussians(rng, K, d, "diagonal" if rng.random() < 0.5 else "spherical"), x)
    unit = np.sqrt(distribution.variance)
    loadings = rng.standard_normal((K, d, int(rng.integers(1, d)))) * unit[:, :, None]
    return FactorGaussian(distribution.mean, loadings, distribution.covariance, kind=distribution.kind), x


def categories(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    L = int(rng.integers(2, 6))
    return Categorical(rng.dirichlet(np.ones(L), K)), with_gaps(rng, rng.integers(0, L, (n, 1)).astype(float), gaps)


def poissons(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    d = int(rng.integers(1, 5))
    x = rng.poisson(rng.gamma(1.0, 5.0, (3, d))[rng.integers(0, 3, n)]).astype(float)
    return Poisson(rng.gamma(1.0, 5.0, (K, d)) + 0.01), with_gaps(rng, x, gaps)


def words(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    d = int(rng.integers(2, 7))
    topics = rng.dirichlet(np.full(d, 0.5), 3)
    x = np.array([rng.multinomial(rng.integers(0, 20), topics[rng.integers(0, 3)]) for _ in range(n)], dtype=float)
    return Multinomial(rng.dirichlet(np.ones(d), K)), with_gaps(rng, x.reshape(n, d), gaps)


def sparse_words(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    distribution, x = words(rng, n, K, 0.0)
    return distribution, csr_matrix(x)


def coins(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    d = int(rng.integers(1, 7))
    x = (rng.random((n, d)) < rng.random((3, d))[rng.integers(0, 3, n)]).astype(float)
    return Bernoulli(rng.uniform(0.05, 0.95, (K, d))), with_gaps(rng, x, gaps)


def sparse_coins(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    distribution, x = coins(rng, n, K, 0.0)
    return distribution, csr_matrix(x)


def products(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    kind = str(rng.choice(["full", "diagonal"]))
    makers = {"size": gaussian_parts(kind), "visits": poissons, "color": categories, "words": words, "flags": coins}
    names = rng.choice(list(makers), int(rng.integers(1, 4)), replace=False)
    made = {name: makers[name](rng, n, K, gaps) for name in names}
    return Product({k: distribution for k, (distribution, _) in made.items()}), Columns(
        {k: x for k, (_, x) in made.items()}
    )


SIMPLE = {
    "full": gaussian_parts("full"), "diagonal": gaussian_parts("diagonal"), "spherical": gaussian_parts("spherical"),
    "tied": gaussian_parts("full", tied=True), "tied diagonal": gaussian_parts("diagonal", tied=True),
    "shared covariance": shared_covariances, "shared all": shared_whole, "factors": factors, "categorical": categories,
    "Poisson": poissons, "multinomial": words, "sparse multinomial": sparse_words, "Bernoulli": coins,
    "sparse Bernoulli": sparse_coins, "product": products,
}  # fmt: skip
INSIDE = ["full", "diagonal", "tied", "shared covariance", "shared all", "categorical", "Poisson", "multinomial",
          "Bernoulli", "product"]  # fmt: skip


def mixtures(rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    """A stack of K mixtures of M parts each."""
    M = int(rng.integers(1, 4))
    parts, x = SIMPLE[str(rng.choice(INSIDE))](rng, n, K * M, gaps)
    return Mixture(rng.dirichlet(np.ones(M), K), parts), x


FAMILIES = {**SIMPLE, "mixtures": mixtures}


# ----------------------------------------------------------------------- problems


def problem(family: str, seed: int) -> Problem:
    """A problem of a family; the same seed gives the same one."""
    rng = np.random.default_rng([len(family), sum(map(ord, family)), seed])
    n, K = int(rng.integers(1, 31)), int(rng.integers(1, 6))
    K = K if rng.random() > 0.05 else n + 2  # more parts than rows
    gaps = float(rng.choice([0.0, 0.0, 0.1, 0.3, 0.6]))
    parts, x = FAMILIES[family](rng, n, K, gaps)
    weight = weights(rng, n)
    targets, labels, given = rng.random(), None, None
    if targets < 0.15 or (family == "mixtures" and targets < 0.4):
        labels = rng.integers(-1, K, n)
        if not _total(weight, labels) > 0:
            labels = None
    elif targets < 0.4:
        given = np.where(
            rng.random((n, 1)) < 0.4, np.where(rng.integers(0, K, (n, 1)) == np.arange(K), 0, -np.inf), 0.0
        )
    prior = PRIORS[int(rng.integers(0, len(PRIORS)))]
    hard = bool(rng.random() < 0.25)
    return Problem(Mixture(rng.dirichlet(np.ones(K)), parts), x, weight, labels, given, _prior(rng, prior, K), hard)


def _total(weight: Any, labels: Any) -> float:
    return float((np.ones(len(labels)) if weight is None else weight)[labels >= 0].sum())


def weights(rng: Generator, n: int) -> np.ndarray | None:
    """None, integers with 0 among them, or fractions; never nothing at all."""
    how = int(rng.integers(0, 3))
    if how == 0:
        return None
    w = rng.integers(0, 4, n).astype(float) if how == 1 else rng.random(n) * 10.0 ** rng.uniform(-3, 3)
    return w if w.sum() > 0 else np.ones(n)


def _prior(rng: Generator, how: str, K: int) -> Any:
    if how in ("none", "weak"):
        return None if how == "none" else "weak"
    if how == "emptying":
        distribution: Any = SparseWeights.costing(K, float(rng.uniform(0.5, 5.0)))
    else:
        distribution = Dirichlet.symmetric(
            K, float(rng.uniform(1.0, 4.0) if how == "Dirichlet" else rng.uniform(0.05, 0.95))
        )
    return lambda model, stats: MixturePrior(distribution, model.components.weak_prior(stats.components))
