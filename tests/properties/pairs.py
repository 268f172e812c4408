"""Conjugate pairs under test: a prior, the model it is a prior of, and what an exact simulation needs to know.

A new pair joins by one line in PAIRS. `simulate` and `pits` are written without the library, for n problems at
once: parameters drawn from the prior, data drawn from the parameters, and where each parameter falls in the
posterior's own marginal distribution. `bugs` are wrong posteriors that the same check must catch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats
from numpy.random import Generator
from scipy import special

from likely import Categorical, Dirichlet, Exponential, Gamma, Gaussian, Poisson, Product, Uniform
from likely.distributions.binary.bernoulli import Bernoulli, Trials
from likely.distributions.categorical.categorical import LevelCounts
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.matrix.inverse_wishart import InverseWishart
from likely.distributions.matrix.wishart import Wishart
from likely.distributions.priors.covariance_given_mean import CovarianceGivenMean
from likely.distributions.priors.direction_prior import VonMisesPrior
from likely.distributions.priors.multinomial_prior import MultinomialPrior
from likely.distributions.priors.normal_gamma import NormalGamma
from likely.distributions.statistics.counts import Counts
from likely.distributions.statistics.extremes import MinMaxStats
from likely.distributions.statistics.feature_sums import FeatureSums
from likely.distributions.statistics.weighted_values import WeightedValues, weighted_values
from likely.distributions.univariate.beta import Beta
from likely.distributions.univariate.binomial import Binomial, Successes
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.von_mises import VonMises
from likely.priors import BilateralPareto, MeanGivenCovariance, NormalInverseGamma, NormalInverseWishart, ProductPrior
from tests.properties import regressions

Draws = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Simulation:
    """How to simulate many problems at once, exactly."""

    simulate: Callable[[Any, int, Generator], tuple[Draws, Any]]  # parameters (n, ...), and statistics as a stack
    pits: Callable[[Any, Draws], Draws]  # P(parameter ≤ its true value) under the posterior, (n,) each
    log_likelihood: Callable[[Draws, Any], np.ndarray]  # of the statistics, (n,)
    read: Callable[[Any], Draws]  # the parameters of a model, by name
    bugs: Mapping[str, Callable[[Any, Any], Any]]  # (prior, statistics) → a wrong posterior


@dataclass(frozen=True)
class Pair:
    """A prior and its model."""

    name: str
    prior: Callable[[], Any]
    model: Callable[[], Any]
    nudge: Callable[[Any, Generator, float], Any]  # a model near a model, in any direction
    numbers: Callable[[Any], Draws]  # parameters whose means the "mean" rule gives
    medians: tuple[str, ...] = ()  # parameters whose medians the "median" rule gives
    simulation: Simulation | None = None
    predicts: bool = True  # `predictive` is one density of a row
    options: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, n: int, rng: Generator) -> tuple[np.ndarray, dict[str, Any]]:
        """Rows that the model could have given, and for a stack whose they are."""
        model = self.model()
        if model.members is None:
            x = model.sample(n, rng)
            x = np.concatenate([np.reshape(x[k], (n, -1)) for k in x], axis=1) if hasattr(x, "parts") else x
            return np.asarray(x, float).reshape(n, -1), {}
        labels = rng.integers(0, model.members, n)
        return model.sample(n, rng)[np.arange(n), labels], {"labels": labels}


# ------------------------------------------------------------------- Gaussian


def nudged(g: Gaussian, rng: Generator, size: float) -> Gaussian:
    mean = g.mean + size * rng.standard_normal(g.mean.shape) * np.sqrt(g.variance)
    if g.kind != "full":
        return Gaussian(mean, g.covariance * np.exp(size * rng.standard_normal(g.covariance.shape)), kind=g.kind)
    root = np.linalg.cholesky(g.covariance)
    a = np.eye(g.dim) + size * rng.standard_normal(g.covariance.shape)
    return Gaussian(mean, root @ (a @ np.swapaxes(a, -1, -2)) @ np.swapaxes(root, -1, -2))


def moved(g: Gaussian, rng: Generator, size: float) -> Gaussian:
    """A known covariance stays."""
    return g.replace(mean=g.mean + size * rng.standard_normal(g.mean.shape))


def numbers(g: Gaussian) -> Draws:
    return {"mean": np.ravel(g.mean), "covariance": np.ravel(g.covariance)}


def only_mean(g: Gaussian) -> Draws:
    return {"mean": np.ravel(g.mean)}


def variances(g: Gaussian) -> Draws:
    return {**numbers(g), "variance": np.ravel(g.variance)}


ROWS = 3  # data of each simulated problem


def moments_of(x: np.ndarray) -> Moments:
    """Statistics of n problems (n, m, d), as a stack."""
    n, m, d = x.shape
    mean = x.mean(axis=1)
    z = x - mean[:, None]
    return Moments.trusted(
        weight=np.full(n, float(m)), origin=np.zeros(d), shift=mean, scatter=np.einsum("nmi,nmj->nij", z, z),
        entropy=np.zeros(n), complete=True,
    )  # fmt: skip


def column_moments_of(x: np.ndarray) -> ColumnMoments:
    n, m, d = x.shape
    mean = x.mean(axis=1)
    return ColumnMoments.trusted(
        rows=np.full(n, float(m)), weight=np.full((n, d), float(m)), origin=np.zeros(d), shift=mean,
        scatter=((x - mean[:, None]) ** 2).sum(axis=1),
    )  # fmt: skip


def student_cdf(z: np.ndarray, dof: np.ndarray) -> np.ndarray:
    return special.stdtr(dof, z)


def inverse_chi2_cdf(value: np.ndarray, scale: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """P(σ² ≤ value) for σ² = scale / χ²(dof)."""
    return special.chdtrc(dof, scale / value)


# normal-inverse-Wishart in two columns: both means, a variance, and the regression of the other column on it


def simulate_niw(prior: NormalInverseWishart, n: int, rng: Generator) -> tuple[Draws, Moments]:
    d, nu = prior.dim, float(prior.dof)
    # Σ = B Bᵀ with B = L (Aᵀ)⁻¹, A Bartlett's factor; L L' = Ψ
    a = np.tril(rng.standard_normal((n, d, d)), -1)
    a[:, range(d), range(d)] = np.sqrt(rng.chisquare(nu - np.arange(d), (n, d)))
    b = np.linalg.cholesky(prior.scale) @ np.swapaxes(np.linalg.inv(a), 1, 2)
    mean = prior.mean + np.einsum("nij,nj->ni", b, rng.standard_normal((n, d))) / np.sqrt(prior.kappa)
    x = mean[:, None] + np.einsum("nij,nmj->nmi", b, rng.standard_normal((n, ROWS, d)))
    return {"mean": mean, "covariance": b @ np.swapaxes(b, 1, 2)}, moments_of(x)


def pits_niw(post: NormalInverseWishart, truth: Draws) -> Draws:
    psi, nu, kappa, mean, S = post.scale, post.dof, post.kappa, truth["mean"], truth["covariance"]
    free = nu - post.dim + 1
    t = (mean - post.mean) / np.sqrt(np.diagonal(psi, axis1=1, axis2=2) / (kappa * free)[:, None])
    slope, psi_slope = S[:, 0, 1] / S[:, 0, 0], psi[:, 0, 1] / psi[:, 0, 0]
    rest, psi_rest = S[:, 1, 1] - slope * S[:, 0, 1], psi[:, 1, 1] - psi_slope * psi[:, 0, 1]
    return {
        "mean 0": student_cdf(t[:, 0], free),
        "mean 1": student_cdf(t[:, 1], free),
        "variance": inverse_chi2_cdf(S[:, 0, 0], psi[:, 0, 0], free),
        "slope": student_cdf((slope - psi_slope) / np.sqrt(psi_rest / (nu * psi[:, 0, 0])), nu),
        "residual": inverse_chi2_cdf(rest, psi_rest, nu),
    }


def full_log_likelihood(p: Draws, stats: Moments) -> np.ndarray:
    S, delta = p["covariance"], stats.mean - p["mean"]
    inverse, (_, logdet) = np.linalg.inv(S), np.linalg.slogdet(S)
    trace = np.einsum("nij,nji->n", inverse, stats.scatter)
    return -0.5 * (stats.weight * (logdet + np.einsum("ni,nij,nj->n", delta, inverse, delta)) + trace)


def between(prior: Any, stats: Moments, times: float) -> np.ndarray:
    """κn/(κ + n) (x̄ − m)(x̄ − m)ᵀ, so many times."""
    n, delta = stats.weight, stats.mean - prior.mean
    outer = delta[:, :, None] * delta[:, None, :]
    return times * (prior.kappa * n / (prior.kappa + n))[:, None, None] * outer


NIW = Simulation(
    simulate_niw, pits_niw, full_log_likelihood, lambda g: {"mean": g.mean, "covariance": g.covariance},
    {
        "dof one too many": lambda p, s: p.update(s).replace(dof=p.dof + s.weight + 1),
        "between-term doubled": lambda p, s: p.update(s).replace(scale=p.scale + s.scatter + between(p, s, 2.0)),
        "between-term forgotten": lambda p, s: p.update(s).replace(scale=p.scale + s.scatter),
        "kappa does not grow": lambda p, s: p.update(s).replace(kappa=np.full(len(s.weight), float(p.kappa))),
        "mean is the sample's": lambda p, s: p.update(s).replace(mean=s.mean),
    },
)  # fmt: skip


# normal-inverse-gamma, both kinds


def simulate_nig(prior: NormalInverseGamma, n: int, rng: Generator) -> tuple[Draws, ColumnMoments]:
    variance = prior.scale / rng.chisquare(prior.dof, (n, *np.shape(prior.dof)))
    v = variance if prior.kind == "diagonal" else variance[:, None]
    mean = prior.mean + np.sqrt(v / prior.kappa) * rng.standard_normal((n, prior.dim))
    x = mean[:, None] + np.sqrt(v)[:, None] * rng.standard_normal((n, ROWS, prior.dim))
    return {"mean": mean, "covariance": variance}, column_moments_of(x)


def pits_nig(post: NormalInverseGamma, truth: Draws) -> Draws:
    psi, nu = post.scale, post.dof
    wide = (psi / nu) if post.kind == "diagonal" else (psi / nu)[:, None]
    t = (truth["mean"] - post.mean) / np.sqrt(wide / post.kappa)
    dof = nu if post.kind == "diagonal" else nu[:, None]
    means = student_cdf(t, np.broadcast_to(dof, t.shape))
    spreads = inverse_chi2_cdf(truth["covariance"], psi, nu).reshape(len(t), -1)
    return {f"mean {j}": means[:, j] for j in range(2)} | {f"variance {j}": s for j, s in enumerate(spreads.T)}


def diagonal_log_likelihood(p: Draws, stats: ColumnMoments) -> np.ndarray:
    v = p["covariance"].reshape(len(p["covariance"]), -1)
    delta = stats.mean - p["mean"]
    return -0.5 * (stats.weight * (np.log(v) + delta**2 / v) + stats.scatter / v).sum(axis=1)


def added(prior: NormalInverseGamma, s: ColumnMoments, times: float) -> np.ndarray:
    each = s.scatter + times * prior.kappa * s.weight / (prior.kappa + s.weight) * (s.mean - prior.mean) ** 2
    return prior.scale + (each if prior.kind == "diagonal" else each.sum(axis=1))


NIG = Simulation(
    simulate_nig, pits_nig, diagonal_log_likelihood, lambda g: {"mean": g.mean, "covariance": g.covariance},
    {
        "dof one too many": lambda p, s: p.update(s).replace(dof=p.update(s).dof + 1),
        "between-term doubled": lambda p, s: p.update(s).replace(scale=added(p, s, 2.0)),
        "between-term forgotten": lambda p, s: p.update(s).replace(scale=added(p, s, 0.0)),
        "kappa does not grow": lambda p, s: p.update(s).replace(kappa=np.broadcast_to(p.kappa, s.weight.shape)),
        "mean is the sample's": lambda p, s: p.update(s).replace(mean=s.mean),
    },
)  # fmt: skip


# normal-gamma: means and precisions


def simulate_ng(prior: NormalGamma, n: int, rng: Generator) -> tuple[Draws, ColumnMoments]:
    precision = rng.standard_gamma(prior.shape, (n, prior.dim)) / prior.rate
    mean = prior.mean + rng.standard_normal((n, prior.dim)) / np.sqrt(prior.kappa * precision)
    x = mean[:, None] + rng.standard_normal((n, ROWS, prior.dim)) / np.sqrt(precision)[:, None]
    return {"mean": mean, "precision": precision}, column_moments_of(x)


def pits_ng(post: NormalGamma, truth: Draws) -> Draws:
    t = (truth["mean"] - post.mean) * np.sqrt(post.kappa * post.shape / post.rate)
    means, precisions = student_cdf(t, 2 * post.shape), special.gammainc(post.shape, post.rate * truth["precision"])
    return {f"mean {j}": means[:, j] for j in range(2)} | {f"precision {j}": precisions[:, j] for j in range(2)}


def precisions_of(g: Gaussian) -> Draws:
    return {"mean": g.mean, "precision": 1 / g.variance}


NG = Simulation(
    simulate_ng, pits_ng,
    lambda p, s: diagonal_log_likelihood({"mean": p["mean"], "covariance": 1 / p["precision"]}, s), precisions_of,
    {
        "shape grows by n": lambda p, s: p.update(s).replace(shape=p.shape + s.weight),
        "rate grows by the whole scatter": lambda p, s: p.update(s).replace(rate=2 * p.update(s).rate - p.rate),
        "kappa does not grow": lambda p, s: p.update(s).replace(kappa=np.broadcast_to(p.kappa, s.weight.shape)),
        "mean is the sample's": lambda p, s: p.update(s).replace(mean=s.mean),
    },
)  # fmt: skip


# a covariance, or a precision, with a known mean: a variance, the regression of the other column on it, the residual


def scatter_of(distribution: Any) -> np.ndarray:
    return np.linalg.inv(distribution.scale) if isinstance(distribution, Wishart) else np.asarray(distribution.scale)


def simulate_known(prior: CovarianceGivenMean, n: int, rng: Generator) -> tuple[Draws, Moments]:
    d, nu = prior.dim, float(prior.distribution.dof)
    a = np.tril(rng.standard_normal((n, d, d)), -1)
    a[:, range(d), range(d)] = np.sqrt(rng.chisquare(nu - np.arange(d), (n, d)))
    b = np.linalg.cholesky(scatter_of(prior.distribution)) @ np.swapaxes(np.linalg.inv(a), 1, 2)
    x = prior.mean + np.einsum("nij,nmj->nmi", b, rng.standard_normal((n, ROWS, d)))
    return {"covariance": b @ np.swapaxes(b, 1, 2)}, moments_of(x)


def pits_known(post: CovarianceGivenMean, truth: Draws) -> Draws:
    psi, nu, S = scatter_of(post.distribution), post.distribution.dof, truth["covariance"]
    slope, psi_slope = S[:, 0, 1] / S[:, 0, 0], psi[:, 0, 1] / psi[:, 0, 0]
    rest, psi_rest = S[:, 1, 1] - slope * S[:, 0, 1], psi[:, 1, 1] - psi_slope * psi[:, 0, 1]
    return {
        "variance": inverse_chi2_cdf(S[:, 0, 0], psi[:, 0, 0], nu - post.dim + 1),
        "slope": student_cdf((slope - psi_slope) / np.sqrt(psi_rest / (nu * psi[:, 0, 0])), nu),
        "residual": inverse_chi2_cdf(rest, psi_rest, nu),
    }


def known_log_likelihood(p: Draws, stats: Moments) -> np.ndarray:
    return full_log_likelihood({**p, "mean": np.broadcast_to(KNOWN_MEAN, stats.mean.shape)}, stats)


def with_scatter(p: CovarianceGivenMean, s: Moments, scatter: np.ndarray, more: float = 0.0) -> CovarianceGivenMean:
    """A posterior whose Ψ is this, and whose dof are off by `more`."""
    scale = np.linalg.inv(scatter) if isinstance(p.distribution, Wishart) else scatter
    return p.replace(distribution=p.distribution.replace(dof=p.distribution.dof + s.weight + more, scale=scale))


def about_known(s: Moments, times: float) -> np.ndarray:
    delta = s.mean - KNOWN_MEAN
    return s.scatter + times * s.weight[:, None, None] * delta[:, :, None] * delta[:, None, :]


KNOWN_MEAN = np.array([0.5, -0.5])
COVARIANCE = Simulation(
    simulate_known, pits_known, known_log_likelihood, lambda g: {"covariance": g.covariance},
    {
        "dof one too many": lambda p, s: with_scatter(p, s, scatter_of(p.distribution) + about_known(s, 1.0), 1.0),
        "scatter about the sample's mean": lambda p, s: with_scatter(
            p, s, scatter_of(p.distribution) + about_known(s, 0.0)
        ),
        "prior forgotten": lambda p, s: with_scatter(p, s, 1e-3 * np.eye(2) + about_known(s, 1.0)),
        "distance of means doubled": lambda p, s: with_scatter(p, s, scatter_of(p.distribution) + about_known(s, 2.0)),
    },
)  # fmt: skip


def widened(g: Gaussian, rng: Generator, size: float) -> Gaussian:
    """Another covariance, the same mean."""
    return nudged(g, rng, size).replace(mean=g.mean)


def only_covariance(g: Gaussian) -> Draws:
    return {"covariance": np.ravel(g.covariance)}


def only_precision(g: Gaussian) -> Draws:
    return {"precision": np.ravel(np.linalg.inv(g.covariance))}


# a mean with known covariance: whitened, so that each coordinate is a marginal of the posterior


def simulate_mean(prior: MeanGivenCovariance, n: int, rng: Generator) -> tuple[Draws, Moments]:
    b, d = prior.belief, prior.belief.dim
    mean = b.mean + rng.standard_normal((n, d)) @ np.linalg.cholesky(b.covariance).T
    noise = rng.standard_normal((n, ROWS, d)) @ np.linalg.cholesky(prior.covariance).T
    return {"mean": mean}, moments_of(mean[:, None] + noise)


def pits_mean(post: MeanGivenCovariance, truth: Draws) -> Draws:
    S = np.broadcast_to(post.belief.covariance, (len(truth["mean"]), 2, 2))
    z = np.linalg.solve(np.linalg.cholesky(S), (truth["mean"] - post.belief.mean)[..., None])[..., 0]
    return {"mean 0": special.ndtr(z[:, 0]), "mean 1 given mean 0": special.ndtr(z[:, 1])}


def mean_log_likelihood(p: Draws, stats: Moments) -> np.ndarray:
    delta = stats.mean - p["mean"]
    return -0.5 * stats.weight * np.einsum("ni,ij,nj->n", delta, np.linalg.inv(KNOWN), delta)


def mean_off(p: MeanGivenCovariance, s: Moments, rows: float, widen: float) -> MeanGivenCovariance:
    post = p.update(s * rows)
    belief = post.belief
    return post.replace(belief=belief.replace(covariance=belief.covariance * widen))


KNOWN = np.array([[1.0, 0.6], [0.6, 2.0]])
MEAN = Simulation(
    simulate_mean, pits_mean, mean_log_likelihood, lambda g: {"mean": g.mean},
    {
        "one row too many": lambda p, s: mean_off(p, s, (ROWS + 1) / ROWS, 1.0),
        "one row too few": lambda p, s: mean_off(p, s, (ROWS - 1) / ROWS, 1.0),
        "5 % too wide": lambda p, s: mean_off(p, s, 1.0, 1.05**2),
        "covariance as if diagonal": lambda p, s: p.replace(covariance=np.diag(np.diag(KNOWN))).update(s),
    },
)  # fmt: skip


# --------------------------------------------------------------------- counts


def simulate_gamma(prior: Gamma, n: int, rng: Generator) -> tuple[Draws, Counts]:
    rate = rng.standard_gamma(prior.shape, (n, prior.dim)) / prior.rate
    total = rng.poisson(rate * ROWS).astype(float)
    return {"rate": rate}, Counts.trusted(
        rows=np.full(n, float(ROWS)), weight=np.full((n, prior.dim), float(ROWS)), total=total,
        log_factorial=np.zeros(n),
    )  # fmt: skip


def pits_gamma(post: Gamma, truth: Draws) -> Draws:
    each = special.gammainc(post.shape, post.rate * truth["rate"])
    return {f"rate {j}": each[:, j] for j in range(each.shape[1])}


GAMMA = Simulation(
    simulate_gamma, pits_gamma, lambda p, s: (special.xlogy(s.total, p["rate"]) - s.weight * p["rate"]).sum(axis=1),
    lambda g: {"rate": g.rate},
    {
        "one event too many": lambda p, s: p.update(s).replace(shape=p.update(s).shape + 1.0),
        "one row too many": lambda p, s: p.update(s).replace(rate=p.update(s).rate + 1.0),
        "exposure 5 % too long": lambda p, s: p.update(s).replace(rate=p.rate + 1.05 * s.weight),
        "prior forgotten": lambda p, s: p.update(s).replace(shape=s.total + 1e-3),
    },
)  # fmt: skip


# waiting times, whose sum is a gamma variable


def simulate_waits(prior: Gamma, n: int, rng: Generator) -> tuple[Draws, FeatureSums]:
    rate = rng.standard_gamma(prior.shape, (n, prior.dim)) / prior.rate
    total = rng.standard_gamma(ROWS, (n, prior.dim)) / rate
    return {"rate": rate}, FeatureSums.trusted(
        rows=np.full(n, float(ROWS)), weight=np.full((n, prior.dim), float(ROWS)), sums=total[..., None]
    )


def waited(p: Gamma, s: FeatureSums, events: float = 0.0, longer: float = 1.0) -> Gamma:
    return p.update(s).replace(shape=p.shape + s.weight + events, rate=p.rate + longer * s.sums[..., 0])


WAITS = Simulation(
    simulate_waits, pits_gamma,
    lambda p, s: (s.weight * np.log(p["rate"]) - s.sums[..., 0] * p["rate"]).sum(axis=1), lambda g: {"rate": g.rate},
    {
        "one event too many": lambda p, s: waited(p, s, events=1.0),
        "one event too few": lambda p, s: waited(p, s, events=-1.0),
        "waits 5 % too long": lambda p, s: waited(p, s, longer=1.05),
        "counts for waits": lambda p, s: p.replace(shape=p.shape + s.sums[..., 0], rate=p.rate + s.weight),
    },
)  # fmt: skip


# both ends of a uniform distribution: each end is a Pareto variable beyond the other's bound


def simulate_ends(prior: BilateralPareto, n: int, rng: Generator) -> tuple[Draws, MinMaxStats]:
    width, a = prior.high - prior.low, prior.shape
    low = prior.high - width * rng.random((n, prior.dim)) ** (-1 / a)
    high = low + (prior.high - low) * rng.random((n, prior.dim)) ** (-1 / (a + 1))
    x = low[:, None] + (high - low)[:, None] * rng.random((n, ROWS, prior.dim))
    return {"low": low, "high": high}, MinMaxStats.trusted(
        rows=np.full(n, float(ROWS)), weight=np.full((n, prior.dim), float(ROWS)), low=x.min(axis=1), high=x.max(axis=1)
    )


def pits_ends(post: BilateralPareto, truth: Draws) -> Draws:
    width, a = post.high - post.low, post.shape
    low, high = (width / (post.high - truth["low"])) ** a, 1 - (width / (truth["high"] - post.low)) ** a
    beyond = 1 - ((post.high - truth["low"]) / (truth["high"] - truth["low"])) ** (a + 1)
    each = {"low": low, "high": high, "high given low": beyond}
    return {f"{name} {j}": u[:, j] for name, u in each.items() for j in range(u.shape[1])}


def ends_log_likelihood(p: Draws, s: MinMaxStats) -> np.ndarray:
    inside = (p["low"] <= s.low) & (s.high <= p["high"])
    return np.where(inside, -s.weight * np.log(p["high"] - p["low"]), -np.inf).sum(axis=1)


ENDS = Simulation(
    simulate_ends, pits_ends, ends_log_likelihood, lambda g: {"low": g.low, "high": g.high},
    {
        "one row too many": lambda p, s: p.update(s).replace(shape=p.shape + s.weight + 1.0),
        "one row too few": lambda p, s: p.update(s).replace(shape=p.shape + s.weight - 1.0),
        "ends 2 % too wide": lambda p, s: p.update(s).replace(high=p.update(s).high * 1.02),
        "prior's ends forgotten": lambda p, s: p.update(s).replace(low=np.array(s.low), high=np.array(s.high)),
    },
)  # fmt: skip


def nudged_waits(g: Exponential, rng: Generator, size: float) -> Exponential:
    return Exponential(g.rate * np.exp(size * rng.standard_normal(g.rate.shape)))


def nudged_ends(g: Uniform, rng: Generator, size: float) -> Uniform:
    """Outwards: elsewhere the data are impossible."""
    out = size * np.abs(rng.standard_normal((2, *g.low.shape)))
    return Uniform(g.low - out[0], g.high + out[1])


def simulate_dirichlet(prior: Dirichlet, n: int, rng: Generator) -> tuple[Draws, LevelCounts]:
    g = rng.standard_gamma(prior.alpha, (n, prior.dim))
    probs = g / g.sum(axis=1, keepdims=True)
    counts = rng.multinomial(2 * ROWS, probs).astype(float)
    return {"probs": probs}, LevelCounts.trusted(counts=counts, rows=np.full(n, 2.0 * ROWS))


def pits_dirichlet(post: Dirichlet, truth: Draws) -> Draws:
    rest = post.alpha.sum(axis=1, keepdims=True) - post.alpha
    each = special.betainc(post.alpha, rest, np.clip(truth["probs"], 0.0, 1.0))
    return {f"p{j}": each[:, j] for j in range(each.shape[1])}


DIRICHLET = Simulation(
    simulate_dirichlet, pits_dirichlet, lambda p, s: special.xlogy(s.counts, p["probs"]).sum(axis=1),
    lambda g: {"probs": g.probs},
    {
        "alpha off by 0.1": lambda p, s: p.update(s).replace(alpha=p.alpha + s.counts + 0.1),
        "one level off by a half": lambda p, s: p.update(s).replace(alpha=p.alpha + s.counts + [0.5, 0.0, 0.0]),
        "prior forgotten": lambda p, s: p.update(s).replace(alpha=s.counts + 1e-3),
        "counts one short": lambda p, s: p.update(s).replace(alpha=p.alpha + s.counts * (1 - 1 / (2 * ROWS))),
    },
)  # fmt: skip


def simulate_beta(prior: Beta, n: int, rng: Generator) -> tuple[Draws, Trials]:
    probs = rng.beta(prior.a, prior.b, (n, prior.dim))
    ones = rng.binomial(2 * ROWS, probs).astype(float)
    return {"probs": probs}, Trials.trusted(rows=np.full(n, 2.0 * ROWS), ones=ones, zeros=2.0 * ROWS - ones)


def pits_beta(post: Beta, truth: Draws) -> Draws:
    each = special.betainc(post.a, post.b, truth["probs"])
    return {f"p{j}": each[:, j] for j in range(each.shape[1])}


BETA = Simulation(
    simulate_beta, pits_beta,
    lambda p, s: (special.xlogy(s.ones, p["probs"]) + special.xlog1py(s.zeros, -p["probs"])).sum(axis=1),
    lambda g: {"probs": g.probs},
    {
        "a off by 0.1": lambda p, s: p.update(s).replace(a=p.a + s.ones + 0.1),
        "ones and zeros exchanged": lambda p, s: p.update(s).replace(a=p.a + s.zeros, b=p.b + s.ones),
        "prior forgotten": lambda p, s: p.update(s).replace(a=s.ones + 1e-3, b=s.zeros + 1e-3),
        "one zero too many": lambda p, s: p.update(s).replace(b=p.b + s.zeros + 1.0),
    },
)  # fmt: skip


def simulate_successes(prior: Beta, n: int, rng: Generator) -> tuple[Draws, Successes]:
    trials = np.broadcast_to(prior.known, (n, prior.dim))
    probs = rng.beta(prior.a, prior.b, (n, prior.dim))
    x = rng.binomial(trials[:, None].astype(int), probs[:, None], (n, ROWS, prior.dim)).astype(float)
    N = trials[:, None]
    ways = special.gammaln(N + 1) - special.gammaln(x + 1) - special.gammaln(N - x + 1)
    return {"probs": probs}, Successes.trusted(
        rows=np.full(n, float(ROWS)), weight=np.full(trials.shape, float(ROWS)), ones=x.sum(axis=1),
        zeros=(N - x).sum(axis=1), log_coefficients=ways.sum(axis=(1, 2)), trials=np.array(trials),
    )  # fmt: skip


BINOMIAL = Simulation(simulate_successes, pits_beta, BETA.log_likelihood, BETA.read, BETA.bugs)


def simulate_failures(prior: Beta, n: int, rng: Generator) -> tuple[Draws, WeightedValues]:
    probs = np.clip(
        rng.beta(prior.a, prior.b, (n, prior.dim)), 1e-4, None
    )  # the distribution has no p = 0, and few so small
    size = np.broadcast_to(prior.known, probs.shape)
    x = rng.negative_binomial(size[:, None], probs[:, None], (n, ROWS, prior.dim)).astype(float)
    whose = scipy.sparse.csr_array((np.ones(n * ROWS), (np.repeat(np.arange(n), ROWS), np.arange(n * ROWS))))
    return {"probs": probs}, weighted_values(x.reshape(n * ROWS, -1), whose, n)


def failures(stats: WeightedValues) -> np.ndarray:
    return np.bincount(stats.cell, stats.each * stats.value, stats.weight.size).reshape(stats.weight.shape)


NEGATIVE = Simulation(
    simulate_failures, pits_beta,
    lambda p, s: (s.weight * SIZES * np.log(p["probs"]) + failures(s) * np.log1p(-p["probs"])).sum(axis=1),
    lambda g: {"probs": g.prob},
    {
        "a off by 0.1": lambda p, s: p.update(s).replace(a=p.update(s).a + 0.1),
        "size forgotten": lambda p, s: p.update(s).replace(a=p.a + s.weight),
        "prior forgotten": lambda p, s: p.update(s).replace(a=s.weight * SIZES, b=failures(s) + 1e-3),
        "successes and failures exchanged": lambda p, s: p.update(s).replace(
            a=p.a + failures(s), b=p.b + s.weight * SIZES
        ),
    },
)  # fmt: skip
SIZES = np.array([2.5, 4.0])


# directions: vectors add


def simulate_directions(prior: VonMisesPrior, n: int, rng: Generator) -> tuple[Draws, FeatureSums]:
    center = prior.belief.center + rng.vonmises(0.0, prior.belief.concentration, (n, prior.dim))
    x = center[:, None] + rng.vonmises(0.0, prior.concentration, (n, ROWS, prior.dim))
    sums = np.stack([np.cos(x).sum(axis=1), np.sin(x).sum(axis=1)], axis=-1)
    weight = np.full((n, prior.dim), float(ROWS))
    return {"center": center}, FeatureSums.trusted(rows=weight[:, 0].copy(), weight=weight, sums=sums)


def pits_directions(post: VonMisesPrior, truth: Draws) -> Draws:
    away = np.angle(np.exp(1j * (truth["center"] - post.belief.center)))
    each = scipy.stats.vonmises.cdf(away, post.belief.concentration)
    return {f"center {j}": each[:, j] for j in range(each.shape[1])}


def turned(post: VonMisesPrior, **parts: np.ndarray) -> VonMisesPrior:
    return post.replace(belief=post.belief.replace(**parts))


DIRECTIONS = Simulation(
    simulate_directions, pits_directions,
    lambda p, s: (s.sums[..., 0] * np.cos(p["center"]) + s.sums[..., 1] * np.sin(p["center"])).sum(axis=1),
    lambda g: {"center": g.center},
    {
        "10 % too sharp": lambda p, s: turned(p.update(s), concentration=1.1 * p.update(s).belief.concentration),
        "one row too few": lambda p, s: p.update(s * ((ROWS - 1) / ROWS)),
        "prior forgotten": lambda p, s: turned(p.update(s), center=np.arctan2(s.sums[..., 1], s.sums[..., 0])),
        "lengths add": lambda p, s: turned(
            p.update(s), concentration=p.belief.concentration + p.concentration * s.weight
        ),
    },
)  # fmt: skip


def nudged_directions(g: VonMises, rng: Generator, size: float) -> VonMises:
    return g.replace(center=g.center + size * rng.standard_normal(g.center.shape))


def nudged_successes(g: Binomial, rng: Generator, size: float) -> Binomial:
    return Binomial(g.trials, nudged_coins(Bernoulli(g.probs), rng, size).probs)


def nudged_failures(g: NegativeBinomial, rng: Generator, size: float) -> NegativeBinomial:
    return NegativeBinomial(g.size, nudged_coins(Bernoulli(g.prob), rng, size).probs)


def nudged_coins(g: Bernoulli, rng: Generator, size: float) -> Bernoulli:
    odds = special.logit(g.probs) + size * rng.standard_normal(g.probs.shape)
    return Bernoulli(special.expit(odds))


def nudged_words(g: Multinomial, rng: Generator, size: float) -> Multinomial:
    probs = g.probs * np.exp(size * rng.standard_normal(g.probs.shape))
    return Multinomial(probs / probs.sum(axis=-1, keepdims=True), g.length)


def nudged_rate(g: Poisson, rng: Generator, size: float) -> Poisson:
    return Poisson(g.rate * np.exp(size * rng.standard_normal(g.rate.shape)))


def nudged_probs(g: Categorical, rng: Generator, size: float) -> Categorical:
    probs = g.probs * np.exp(size * rng.standard_normal(g.probs.shape))
    return Categorical(probs / probs.sum(axis=-1, keepdims=True))


PSI2 = np.array([[2.0, 0.7], [0.7, 1.5]])
PSI3 = np.array([[2.0, 0.7, 0.1], [0.7, 1.5, -0.3], [0.1, -0.3, 0.8]])
MEANS = np.array([[0.0, 1.0], [3.0, -1.0], [1.0, 4.0]])

PAIRS = [
    Pair(
        "NIW-1d", lambda: NormalInverseWishart([0.5], 0.5, [[2.0]], 7.0), lambda: Gaussian([1.0], [[0.7]]),
        nudged, numbers, ("covariance",),
    ),
    Pair(
        "NIW-2d", lambda: NormalInverseWishart([0.5, -0.5], 0.5, PSI2, 6.0), lambda: Gaussian([1.0, 0.0], PSI2),
        nudged, numbers, simulation=NIW,
    ),
    Pair(
        "NIW-3d", lambda: NormalInverseWishart([0.0, 1.0, 2.0], 2.0, PSI3, 9.0),
        lambda: Gaussian([0.0, 1.0, 1.0], PSI3), nudged, numbers,
    ),
    Pair(
        "NIW-tied", lambda: NormalInverseWishart(MEANS, np.ones(3), PSI2, 6.0, tied=True),
        lambda: Gaussian(MEANS, PSI2), nudged, numbers, predicts=False,
    ),
    Pair(
        "NIG-diagonal", lambda: NormalInverseGamma([0.5, -0.5], [0.5, 1.0], [2.0, 0.5], [5.0, 6.0]),
        lambda: Gaussian([1.0, 0.0], [0.5, 0.3]), nudged, numbers, ("covariance",), simulation=NIG,
    ),
    Pair(
        "NIG-spherical", lambda: NormalInverseGamma([0.5, -0.5], [0.5, 1.0], 2.0, 5.0, kind="spherical"),
        lambda: Gaussian([1.0, 0.0], 0.5), nudged, numbers, ("covariance",), simulation=NIG,
    ),
    Pair(
        "NIG-tied-diagonal", lambda: NormalInverseGamma(MEANS, 1.0, [2.0, 0.5], [5.0, 6.0], tied=True),
        lambda: Gaussian(MEANS, [0.5, 0.3]), nudged, numbers, ("covariance",), predicts=False,
    ),
    Pair(
        "NIG-tied-spherical", lambda: NormalInverseGamma(MEANS, 1.0, 2.0, 5.0, kind="spherical", tied=True),
        lambda: Gaussian(MEANS, 0.5), nudged, numbers, ("covariance",), predicts=False,
    ),
    Pair(
        "NormalGamma", lambda: NormalGamma([0.5, -0.5], [0.5, 1.0], [2.5, 3.0], [1.0, 0.5]),
        lambda: Gaussian([1.0, 0.0], [0.5, 0.3]), nudged, precisions_of, ("precision",), simulation=NG,
    ),
    Pair(
        "CovarianceGivenMean-covariance", lambda: CovarianceGivenMean(KNOWN_MEAN, InverseWishart(6.0, PSI2)),
        lambda: Gaussian(KNOWN_MEAN, PSI2), widened, only_covariance, simulation=COVARIANCE,
    ),
    Pair(
        "CovarianceGivenMean-precision", lambda: CovarianceGivenMean(KNOWN_MEAN, Wishart(6.0, np.linalg.inv(PSI2))),
        lambda: Gaussian(KNOWN_MEAN, PSI2), widened, only_precision, simulation=COVARIANCE,
    ),
    Pair(
        "CovarianceGivenMean-1d", lambda: CovarianceGivenMean([0.5], InverseWishart(6.0, 2.0)),
        lambda: Gaussian([0.5], [[0.7]]), widened,
        only_covariance, ("covariance",),
    ),
    Pair(
        "MeanGivenCovariance-full", lambda: MeanGivenCovariance(Gaussian([0.5, -0.5], PSI2), KNOWN),
        lambda: Gaussian([1.0, 0.0], KNOWN),
        moved, only_mean, ("mean",), simulation=MEAN,
    ),
    Pair(
        "MeanGivenCovariance-diagonal", lambda: MeanGivenCovariance(Gaussian([0.5, -0.5], PSI2), [1.0, 0.2]),
        lambda: Gaussian([1.0, 0.0], [1.0, 0.2]), moved, only_mean, ("mean",),
    ),
    Pair(
        "MeanGivenCovariance-spherical", lambda: MeanGivenCovariance(Gaussian([0.5, -0.5], 2.0 * np.eye(2)), 0.3),
        lambda: Gaussian([1.0, 0.0], 0.3), moved, only_mean, ("mean",),
    ),
    Pair(
        "Gamma-Poisson", lambda: Gamma([1.7, 3.0], [0.6, 2.0]), lambda: Poisson([2.0, 1.0]),
        nudged_rate, lambda g: {"rate": g.rate}, ("rate",), simulation=GAMMA,
    ),
    Pair(
        "Gamma-Exponential", lambda: Gamma([1.7, 3.0], [0.6, 2.0], likelihood="exponential"),
        lambda: Exponential([2.0, 1.0]),
        nudged_waits, lambda g: {"rate": g.rate}, ("rate",), simulation=WAITS,
    ),
    Pair(
        "BilateralPareto-Uniform", lambda: BilateralPareto([0.0, -1.0], [1.0, 1.5], [3.5, 5.0]),
        lambda: Uniform([-1.0, -2.0], [2.0, 3.0]), nudged_ends, lambda g: {"low": g.low, "high": g.high},
        ("low", "high"), simulation=ENDS,
    ),
    Pair(
        "Dirichlet-Categorical", lambda: Dirichlet([1.5, 2.0, 3.0]), lambda: Categorical([0.2, 0.5, 0.3]),
        nudged_probs, lambda g: {"probs": g.probs}, simulation=DIRICHLET,
    ),
    Pair(
        "Beta-Bernoulli", lambda: Beta([1.5, 2.0], [3.0, 1.7]), lambda: Bernoulli([0.2, 0.6]),
        nudged_coins, lambda g: {"probs": g.probs}, ("probs",), simulation=BETA,
    ),
    Pair(
        "Beta-Binomial", lambda: Beta([1.5, 2.0], [3.0, 1.7], "binomial", [5.0, 3.0]),
        lambda: Binomial([5, 3], [0.2, 0.6]), nudged_successes, lambda g: {"probs": g.probs}, ("probs",),
        simulation=BINOMIAL,
    ),
    Pair(
        "Beta-NegativeBinomial", lambda: Beta([3.5, 4.0], [3.0, 1.7], "negative binomial", SIZES),
        lambda: NegativeBinomial(SIZES, [0.4, 0.6]), nudged_failures, lambda g: {"probs": g.prob}, ("probs",),
        simulation=NEGATIVE,
    ),
    Pair(
        "Direction-VonMises", lambda: VonMisesPrior(VonMises([0.5, -2.0], [0.7, 3.0]), [2.0, 0.9]),
        lambda: VonMises([1.0, -2.5], [2.0, 0.9]), nudged_directions, lambda g: {"center": g.center}, ("center",),
        simulation=DIRECTIONS,
    ),
    Pair(
        "Dirichlet-Multinomial", lambda: MultinomialPrior([1.5, 2.0, 3.0], 4), lambda: Multinomial([0.2, 0.5, 0.3], 4),
        nudged_words, lambda g: {"probs": g.probs},
    ),
    Pair(
        "ProductPrior",
        lambda: ProductPrior({"a": NormalInverseWishart([0.0, 1.0], 1.0, PSI2, 6.0), "b": Gamma(2.0, 1.0)}),
        lambda: Product({"a": Gaussian([0.5, 1.0], PSI2), "b": Poisson(2.0)}),
        lambda m, rng, size: Product({"a": nudged(m["a"], rng, size), "b": nudged_rate(m["b"], rng, size)}),
        lambda m: {**numbers(m["a"]), "rate": m["b"].rate},
    ),
    Pair(
        "CoefficientsGivenNoise", regressions.known_noise, lambda: regressions.known_noise().point(),
        regressions.moved_coefficients, regressions.coefficients_of, ("coefficients",),
        Simulation(
            regressions.simulate_known, regressions.pits_known,
            lambda p, s: regressions.log_likelihood(p, s, 0.4), regressions.read_known, regressions.BUGS_KNOWN,
        ),
    ),
    Pair(
        "MatrixNormalInverseWishart", regressions.unknown_noise, lambda: regressions.unknown_noise().point(),
        regressions.moved_regression, regressions.parameters_of, ("covariance",),
        Simulation(
            regressions.simulate_unknown, regressions.pits_unknown,
            lambda p, s: regressions.log_likelihood(p, s, p["variance"]), regressions.read_unknown,
            regressions.BUGS_UNKNOWN,
        ),
    ),
    Pair(
        "MatrixNormalInverseWishart-2d", regressions.two_targets, lambda: regressions.two_targets().point(),
        regressions.moved_regression, regressions.parameters_of,
    ),
]  # fmt: skip
