"""Priors of regressions as pairs: a row is (y, x), so that the properties of all priors apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special

from likely.distributions.gaussian.moments import Moments
from likely.linear_model import GaussianRegression, RegressionPredictive
from likely.linear_model.least_squares import RegressionStats
from likely.priors import CoefficientsGivenNoise, MatrixNormalInverseWishart

Draws = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class RowRegression(GaussianRegression):
    """A regression whose rows are arrays (y, x), with x from a normal distribution."""

    def log_prob(self, y: Any, x: Any = None) -> Any:
        return super().log_prob(y[:, : self.targets], y[:, self.targets :])

    def collect(self, y: Any, x: Any = None, weight: Any = None, *, labels: Any = None, log_mask: Any = None) -> Any:
        return super().collect(y[:, : self.targets], y[:, self.targets :], weight, labels=labels)

    def sample(self, x: Any, rng: Generator) -> Any:
        found = rng.standard_normal((x, self.coefficients.shape[-1] - 1)) + 1.0
        return np.concatenate([super().sample(found, rng), found], axis=1)


@dataclass(frozen=True, eq=False)
class RowPredictive(RegressionPredictive):
    def log_prob(self, y: Any, x: Any = None) -> Any:
        m = self.posterior.targets
        return super().log_prob(y[:, :m], y[:, m:]) if x is None else super().log_prob(y, x)


class OfRows:
    """Mixin: models of the prior take rows (y, x)."""

    def point(self, rule: str = "mode") -> Any:
        return RowRegression.trusted(**super().point(rule).field_values())

    def draw(self, rng: Generator) -> Any:
        return RowRegression.trusted(**super().draw(rng).field_values())

    def predictive(self) -> Any:
        return RowPredictive.trusted(posterior=self)


@dataclass(frozen=True, eq=False)
class RowNoisePrior(OfRows, CoefficientsGivenNoise):
    pass


@dataclass(frozen=True, eq=False)
class RowWishartPrior(OfRows, MatrixNormalInverseWishart):
    pass


PRECISION = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
CENTER = np.array([0.5, -1.0, 2.0])
DESIGN = np.column_stack([np.ones(5), np.random.default_rng(31).standard_normal((5, 2)) + [0.5, 2.0]])


def known_noise() -> RowNoisePrior:
    return RowNoisePrior(CENTER, PRECISION, 0.4)


def unknown_noise() -> RowWishartPrior:
    return RowWishartPrior(CENTER, PRECISION, 1.3, 7.0)


def two_targets() -> RowWishartPrior:
    return RowWishartPrior([CENTER, -CENTER], PRECISION, [[1.3, 0.4], [0.4, 0.8]], 9.0)


def moved_coefficients(g: Any, rng: Generator, size: float) -> Any:
    return g.replace(coefficients=g.coefficients + size * rng.standard_normal(g.coefficients.shape))


def moved_regression(g: Any, rng: Generator, size: float) -> Any:
    root = np.linalg.cholesky(g.covariance)
    a = np.eye(g.targets) + size * rng.standard_normal(g.covariance.shape)
    covariance = root @ (a @ np.swapaxes(a, -1, -2)) @ np.swapaxes(root, -1, -2)
    return moved_coefficients(g, rng, size).replace(covariance=covariance)


def coefficients_of(g: Any) -> Draws:
    return {"coefficients": np.ravel(g.coefficients)}


def parameters_of(g: Any) -> Draws:
    return coefficients_of(g) | {"covariance": np.ravel(g.covariance)}


# simulation: five rows with the same regressors in each of n problems


def statistics(y: np.ndarray) -> RegressionStats:
    """Statistics of targets (n, 5) at the rows of DESIGN, as a stack of n."""
    n = len(y)
    z = np.concatenate([np.broadcast_to(DESIGN, (n, 5, 3)), y[..., None]], axis=2)
    mean = z.mean(axis=1)
    away = z - mean[:, None]
    sums = Moments.trusted(
        weight=np.full(n, 5.0), origin=np.zeros(4), shift=mean, scatter=np.einsum("nri,nrj->nij", away, away),
        entropy=np.zeros(n), complete=True,
    )  # fmt: skip
    return RegressionStats.of(sums, 1)


def simulated_targets(w: np.ndarray, variance: Any, rng: Generator) -> np.ndarray:
    return w @ DESIGN.T + np.sqrt(variance) * rng.standard_normal((len(w), 5))


def simulate_known(prior: Any, n: int, rng: Generator) -> tuple[Draws, RegressionStats]:
    w = rng.multivariate_normal(CENTER, np.linalg.inv(PRECISION), n)
    return {"coefficients": w}, statistics(simulated_targets(w, float(prior.noise_variance), rng))


def simulate_unknown(prior: Any, n: int, rng: Generator) -> tuple[Draws, RegressionStats]:
    variance = float(prior.scale[0, 0]) / rng.chisquare(float(prior.dof), n)
    noise = rng.multivariate_normal(np.zeros(3), np.linalg.inv(PRECISION), n)
    w = CENTER + np.sqrt(variance)[:, None] * noise
    return {"coefficients": w, "variance": variance}, statistics(simulated_targets(w, variance[:, None], rng))


def variances(post: Any) -> np.ndarray:
    return np.diagonal(np.linalg.inv(post.precision), axis1=1, axis2=2)


def pits_known(post: Any, truth: Draws) -> Draws:
    u = special.ndtr((truth["coefficients"] - post.mean) / np.sqrt(variances(post)))
    return {f"w{j}": u[:, j] for j in range(3)}


def pits_unknown(post: Any, truth: Draws) -> Draws:
    scale, dof = post.scale[:, 0, 0], post.dof
    spread = np.sqrt(scale / dof)[:, None] * np.sqrt(variances(post))
    u = special.stdtr(dof[:, None], (truth["coefficients"] - post.mean[:, 0]) / spread)
    return {f"w{j}": u[:, j] for j in range(3)} | {"variance": special.chdtrc(dof, scale / truth["variance"])}


def log_likelihood(p: Draws, s: RegressionStats, variance: Any) -> np.ndarray:
    mean, scatter = s.sums.mean, s.sums.scatter
    v = np.concatenate([-p["coefficients"], np.ones((len(mean), 1))], axis=1)
    square = np.einsum("ni,nij,nj->n", v, scatter, v) + 5 * np.einsum("ni,ni->n", v, mean) ** 2
    return -0.5 * (5 * np.log(variance) + square / variance)


def read_known(g: Any) -> Draws:
    return {"coefficients": g.coefficients[:, 0]}


def read_unknown(g: Any) -> Draws:
    return {"coefficients": g.coefficients[:, 0], "variance": g.covariance[:, 0, 0]}


BUGS_KNOWN = {
    "precision 20 % too large": lambda p, s: p.update(s).replace(precision=1.2 * p.update(s).precision),
    "prior forgotten": lambda p, s: p.replace(mean=np.zeros(3)).update(s),
    "rows counted twice": lambda p, s: p.update(s * 2.0),
}
BUGS_UNKNOWN = {
    "one row too many": lambda p, s: p.update(s).replace(dof=p.update(s).dof + 1.0),
    "scale without the prior's distance": lambda p, s: p.update(s).replace(scale=0.9 * p.update(s).scale),
    "prior forgotten": lambda p, s: p.replace(mean=np.zeros((1, 3))).update(s),
    "half of a degree of freedom": lambda p, s: p.update(s).replace(dof=p.update(s).dof - 0.5),
}
