"""Densities and priors by SciPy and dense formulas, row by row and member by member: what we must agree with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from likely import Bernoulli, Categorical, Gaussian, Mixture, Multinomial, Poisson, Product
from likely.distributions import Tied
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.priors.pseudo_observations import PseudoObservations
from likely.mixture.sparse_weights import SparseWeights


def log_probs(distribution: Any, x: Any) -> np.ndarray:
    """log p_k(x) of each row under each member of a stack (n, K)."""
    if isinstance(distribution, Mixture):
        joint = log_probs(distribution.components, x) + log(distribution.weights.ravel())
        return logsumexp(joint.reshape(len(joint), *distribution.weights.shape), axis=-1)
    if isinstance(distribution, Product):
        return sum(log_probs(part, x[name]) for name, part in distribution.components)
    if isinstance(distribution, Tied):
        inner = log_probs(distribution.components, x)
        return inner[:, distribution.index] if distribution.what == "all" else inner
    return np.stack([of_one(distribution.member(k), x) for k in range(distribution.members)], axis=1)


def of_one(distribution: Any, x: Any) -> np.ndarray:
    """log p(x) of each row under one distribution of some family."""
    x = x.toarray() if hasattr(x, "toarray") else np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    if isinstance(distribution, FactorGaussian):
        distribution = Gaussian(
            distribution.mean,
            distribution.loadings @ distribution.loadings.T
            + np.diag(distribution.noise_variance * np.ones(distribution.dim)),
        )
    if isinstance(distribution, Gaussian):
        return np.array([of_seen(row, distribution.mean, distribution.covariance_matrix) for row in x])
    seen = np.isfinite(x)
    z = np.where(seen, x, 0.0)
    if isinstance(distribution, Poisson):
        return np.where(seen, xlogy(z, distribution.rate) - distribution.rate - gammaln(z + 1), 0.0).sum(axis=1)
    if isinstance(distribution, Bernoulli):
        return np.where(seen, xlogy(z, distribution.probs) + xlog1py(1 - z, -distribution.probs), 0.0).sum(axis=1)
    if isinstance(distribution, Categorical):
        return np.where(seen[:, 0], log(distribution.probs)[z[:, 0].astype(int)], 0.0)
    assert isinstance(distribution, Multinomial)
    share = seen @ distribution.probs  # counts of the columns seen, given their total
    p = seen * distribution.probs / np.where(share > 0, share, 1.0)[:, None]
    return gammaln(z.sum(axis=1) + 1) - gammaln(z + 1).sum(axis=1) + xlogy(z, p).sum(axis=1)


def of_seen(row: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """The marginal density of what was seen in a row."""
    o = np.flatnonzero(np.isfinite(row))
    if not len(o):
        return 0.0
    unit = np.sqrt(np.diagonal(covariance)[o])  # in the columns' own units no square leaves the range of numbers
    root = np.linalg.cholesky(covariance[np.ix_(o, o)] / unit[:, None] / unit)
    z = np.linalg.solve(root, (row[o] - mean[o]) / unit)
    return float(-0.5 * (z @ z + len(o) * np.log(2 * np.pi)) - np.log(np.diagonal(root)).sum() - np.log(unit).sum())


def log(p: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(p)


# ---------------------------------------------------------------- priors


def log_prior(model: Any, prior: Any) -> float:
    """log p(parameters), by SciPy."""
    if prior is None:
        return 0.0
    if isinstance(model, Mixture):
        return of_weights(model.weights, prior.weights) + log_prior(model.components, prior.components)
    if isinstance(model, Product):
        return sum(log_prior(part, prior[name]) for name, part in model.components)
    if isinstance(model, Tied) and model.what == "all":
        return log_prior(model.components, prior)
    if isinstance(model, Tied):
        groups = [np.flatnonzero(model.index == g) for g in np.unique(model.index)]
        matrices = model.components.covariance_matrix
        return sum(
            of_gaussians(model.components.mean[g], matrices[g[:1]], model.components.kind, prior) for g in groups
        )
    if isinstance(model, Gaussian):
        matrices = model.covariance_matrix
        if model.tied:
            return of_gaussians(model.mean, matrices[:1], model.kind, prior)
        each = [own(prior, k) for k in range(model.members)]
        return sum(of_gaussians(model.mean[[k]], matrices[[k]], model.kind, one) for k, one in enumerate(each))
    if isinstance(model, FactorGaussian):
        each = [own(prior, k) for k in range(model.members)]
        return sum(of_earlier_rows(model.mean[k], model.covariance_matrix[k], one) for k, one in enumerate(each))
    if isinstance(model, Poisson):
        return float(stats.gamma.logpdf(model.rate, prior.shape, scale=1 / prior.rate).sum())
    if isinstance(model, Bernoulli):
        return float(stats.beta.logpdf(model.probs, prior.a, prior.b).sum())
    belief = prior.belief if isinstance(model, Multinomial) else prior
    return float(sum(stats.dirichlet.logpdf(p / p.sum(), belief.alpha) for p in model.probs))


def own(prior: Any, k: int) -> Any:
    """The prior of one member of a stack, where each has its own."""
    if prior.mean.ndim == 1:
        return prior
    names = ("mean", "kappa", "scale", "rows" if isinstance(prior, PseudoObservations) else "dof")
    return prior.replace(**{name: getattr(prior, name)[k] for name in names})


def of_earlier_rows(mean: np.ndarray, S: np.ndarray, prior: Any) -> float:
    """What rows seen before say of a Gaussian: their expected log-likelihood."""
    at = np.flatnonzero(np.diagonal(prior.scale))  # other columns were not observed in those rows
    mean, S = mean[at], S[np.ix_(at, at)]
    d, unit = len(mean), np.sqrt(np.diagonal(S))
    away = (mean - prior.mean[at]) / unit
    scatter = prior.scale[np.ix_(at, at)] / unit[:, None] / unit + prior.kappa * np.outer(away, away)
    R = S / unit[:, None] / unit
    logdet = np.linalg.slogdet(R)[1] + 2 * np.log(unit).sum()
    return float(-0.5 * (prior.rows * (d * np.log(2 * np.pi) + logdet) + np.trace(np.linalg.solve(R, scatter))))


def of_weights(weights: np.ndarray, prior: Any) -> float:
    if prior is None:
        return 0.0
    if isinstance(prior, SparseWeights):
        return float(((prior.alpha - 1) * np.log(weights)).sum())
    constant = gammaln(prior.alpha.sum()) - gammaln(prior.alpha).sum()  # SciPy refuses weights that are next to 0
    return float(sum(constant + xlogy(prior.alpha - 1, w).sum() for w in np.atleast_2d(weights)))


def of_gaussians(means: np.ndarray, matrix: np.ndarray, kind: str, prior: Any) -> float:
    """Means (m, d) that have one covariance (1, d, d) between them."""
    S, d = matrix[0], means.shape[1]
    if isinstance(prior, PseudoObservations):
        return sum(of_earlier_rows(mean, S, prior) for mean in means)
    unit = np.sqrt(np.diagonal(S))
    kappa = np.broadcast_to(prior.kappa, (d,))
    value = sum(of_seen(np.sqrt(kappa) * (m - prior.mean), np.zeros(d), S) + 0.5 * np.log(kappa).sum() for m in means)
    if kind == "full":
        scaled = prior.scale / unit[:, None] / unit
        inside = stats.invwishart.logpdf(S / unit[:, None] / unit, float(prior.dof), scaled)
        return float(value + inside - (d + 1) * np.log(unit).sum())
    variance = np.diagonal(S) if kind == "diagonal" else S[0, 0]
    gamma = stats.invgamma.logpdf(1.0, prior.dof / 2, scale=prior.scale / 2 / variance)
    return float(value + np.sum(gamma - np.log(variance)))
