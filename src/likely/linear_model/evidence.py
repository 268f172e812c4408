"""Evidence maximization: precisions of prior and noise from sufficient statistics alone.

With prior w ~ N(0, α⁻¹I) and noise precision β the evidence is log N(y | 0, I/β + ΦΦᵀ/α) (Bishop 3.5, Herbst 3.4). In
the singular vectors of the design matrix it is a function of the ratio α/β alone, once β is at its best for the ratio;
so a root of one derivative is the fixed point of MacKay's α = γ/‖m‖², β = (n − γ)/‖y − Φm‖², and the best of them.
With one α per weight (automatic relevance determination) each α in turn is set to its best (Tipping and Faul 2003).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from likely.core.arrays import Array
from likely.numerics.special import LOG_2PI

EXACT = 1e-14  # of the variance of the target: the least noise variance, where the fit is exact
LIMIT = 1e10  # ratio to the largest eigenvalue from which the prior wins: all coefficients are 0
STEPS = 240  # points per grid over the ratio α/β
SWEEPS = 1000  # of automatic relevance determination
TOLERANCE = 1e-10  # nats per row
PLATEAU = 1e-13  # nats per row: below it the evidence is that of no basis function, up to rounding


class Evidence(NamedTuple):
    """What evidence maximization found for one target."""

    alpha: Array  # (M,): precision of the prior of each coefficient; infinite where the coefficient is 0
    beta: float  # precision of the noise
    effective: float  # γ, the number of parameters that the data determine
    log_evidence: float
    converged: bool
    reason: str
    iterations: int = 1


class Problem(NamedTuple):
    """Least squares of one target on penalized basis functions: an R factor and what it leaves."""

    root: Array  # (M, M): R₁₁
    target: Array  # (M,): R₁₂
    rest: float  # squared norm of what the basis functions cannot explain
    rows: float  # n, less the number of coefficients without a prior
    log_noise: float = 0.0  # Σ w log v of known relative noise variances, and log det of what has no prior

    def least_noise(self, variance: float) -> Problem:
        """The problem with a remainder of at least that of the smallest noise variance."""
        return self._replace(rest=max(self.rest, EXACT * variance * self.rows))


def maximize(problem: Problem, prior_root: Array | None = None) -> Evidence:
    """α and β of largest evidence; with `prior_root` C the prior is w = C u, u ~ N(0, I), and β alone is free."""
    root = problem.root if prior_root is None else problem.root @ prior_root
    U, s, _ = np.linalg.svd(root)
    p2, eigenvalues, n, M = (U.T @ problem.target) ** 2, s**2, problem.rows, len(s)
    if not M or not eigenvalues.max(initial=0.0) > 0:
        return _nothing_to_learn(problem)
    if prior_root is not None:
        return _noise_alone(problem, p2, eigenvalues)

    def energy(ratio: Array) -> Array:
        return problem.rest + (p2 * (ratio / (ratio + eigenvalues))).sum(axis=-1)

    def evidence(ratio: Array) -> Array:
        return 0.5 * (np.log(ratio / (ratio + eigenvalues)).sum(axis=-1) - n * np.log(energy(ratio)))

    def slope(log_ratio: float) -> float:
        ratio = np.exp(log_ratio)
        share = eigenvalues / (ratio + eigenvalues)
        return float(share.sum() - n * (p2 * share * (ratio / (ratio + eigenvalues))).sum() / energy(np.asarray(ratio)))

    low, high = np.log(eigenvalues[eigenvalues > 0].min() * 1e-16), np.log(eigenvalues.max() * LIMIT)
    grid = np.linspace(low, high, STEPS)
    values = evidence(np.exp(grid)[:, None])
    best = int(values.argmax())
    limit = -0.5 * n * np.log(problem.rest + p2.sum())  # of the evidence, as the prior narrows
    if values[best] <= limit + PLATEAU * max(n, 1.0):
        return _prior_wins(problem, M)
    if best == 0:
        ratio, converged, reason = np.exp(low), False, "the evidence grows without bound as the prior widens"
    else:
        around = grid[best - 1], grid[best + 1]
        if slope(around[0]) <= 0 or slope(around[1]) >= 0:
            ratio, converged, reason = np.exp(grid[best]), False, "no maximum of the evidence was found"
        else:
            ratio = np.exp(brentq(slope, *around, xtol=1e-14, rtol=8.9e-16))
            converged, reason = True, "the derivative of the evidence is 0"
    beta = n / float(energy(np.asarray(ratio)))
    gamma = float((eigenvalues / (ratio + eigenvalues)).sum())
    value = float(evidence(np.asarray(ratio))) + _constant(problem)
    return Evidence(np.full(M, ratio * beta), beta, gamma, value, converged, reason)


def _constant(problem: Problem) -> float:
    """The part of the evidence that depends neither on α nor on β, at the best β for each ratio."""
    n = problem.rows
    return 0.5 * (n * (np.log(n) - 1.0 - LOG_2PI) - problem.log_noise)


def _noise_alone(problem: Problem, p2: Array, eigenvalues: Array) -> Evidence:
    """β of largest evidence for a given prior."""
    n = problem.rows

    def slope(log_beta: float) -> float:
        b = np.exp(log_beta)
        over = 1 + b * eigenvalues
        return float(n - (b * eigenvalues / over).sum() - b * (problem.rest + (p2 / over**2).sum()))

    center = np.log(n / (problem.rest + p2.sum()))
    low, high = center - 1.0, center + 1.0
    while slope(low) < 0:
        low -= 2.0
    while slope(high) > 0:
        high += 2.0
    grid = np.linspace(low, high, STEPS)
    over = 1 + np.exp(grid)[:, None] * eigenvalues
    values = n * grid - np.log(over).sum(axis=1) - np.exp(grid) * (problem.rest + (p2 / over).sum(axis=1))
    best = int(np.clip(values.argmax(), 1, STEPS - 2))
    beta = float(np.exp(brentq(slope, grid[best - 1], grid[best + 1], xtol=1e-14, rtol=8.9e-16)))
    over = 1 + beta * eigenvalues
    value = n * np.log(beta) - np.log(over).sum() - beta * (problem.rest + (p2 / over).sum()) - n * LOG_2PI
    gamma = float((beta * eigenvalues / over).sum())
    reason = "the derivative of the evidence is 0"
    return Evidence(np.ones(len(p2)), beta, gamma, 0.5 * float(value - problem.log_noise), True, reason)


def _nothing_to_learn(problem: Problem) -> Evidence:
    """No basis function, or all of them 0: the noise alone explains the target."""
    total = problem.rest + float(problem.target @ problem.target)
    n = problem.rows
    value = _constant(problem) - 0.5 * n * np.log(total) if n > 0 else 0.0
    alpha = np.full(len(problem.target), np.inf)
    return Evidence(alpha, n / total if n > 0 else 1.0, 0.0, float(value), True, "there is nothing to penalize")


def _prior_wins(problem: Problem, M: int) -> Evidence:
    reason = "the evidence is largest without any basis function: all coefficients are 0"
    return _nothing_to_learn(problem)._replace(alpha=np.full(M, np.inf), reason=reason)


def relevance(problem: Problem) -> Evidence:
    """One α per coefficient (automatic relevance determination): irrelevant coefficients become 0, α infinite.

    Each α in turn is set to its best value given the others, then all α and β are scaled together: no step lowers the
    evidence. Basis functions enter and leave. The result is a local maximum, reached from the one with a common α.
    """
    size = np.sqrt((problem.rest + float(problem.target @ problem.target)) / max(problem.rows, 1.0))
    if size > 0 and size != 1.0:  # in units of the target: squares of precisions do not overflow
        inner = problem._replace(target=problem.target / size, rest=problem.rest / size**2)
        found = _relevance(inner)
        shift = problem.rows * np.log(size)
        return found._replace(
            alpha=found.alpha / size**2, beta=found.beta / size**2, log_evidence=found.log_evidence - shift
        )
    return _relevance(problem)


def _relevance(problem: Problem) -> Evidence:
    start = maximize(problem)
    scale = np.sqrt((problem.root**2).sum(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    if not np.isfinite(start.alpha).all():
        start = start._replace(alpha=np.full(len(scale), 1.0) * start.beta * scale**2)
    R = problem.root / scale
    G, b = R.T @ R, R.T @ problem.target
    alpha, beta, n = start.alpha / scale**2, start.beta, problem.rows
    value, sweep, converged = -np.inf, 0, False
    while not converged and sweep < SWEEPS:
        sweep += 1
        for i in range(len(alpha)):
            alpha[i] = _best_alpha(i, alpha, beta, G, b)
        active = np.flatnonzero(np.isfinite(alpha))
        ratio = alpha[active] / beta
        energy, logdet = _energy(problem, R[:, active], ratio)
        beta, before = n / energy, value
        alpha[active] = ratio * beta
        value = 0.5 * (np.log(ratio).sum() - logdet - n * np.log(energy)) + _constant(problem)
        converged = value - before <= TOLERANCE * max(n, 1.0)
    active = np.flatnonzero(np.isfinite(alpha))
    precision = np.diag(alpha[active]) + beta * G[np.ix_(active, active)]
    covariance = _solved(precision, np.eye(len(active)))
    gamma = float((1.0 - alpha[active] * np.diagonal(covariance)).sum())
    reason = f"gain below {TOLERANCE:g} per row" if converged else f"{SWEEPS} sweeps were not enough"
    return Evidence(alpha * scale**2, float(beta), gamma, float(value), converged, reason, sweep)


def _best_alpha(i: int, alpha: Array, beta: float, G: Array, b: Array) -> float:
    """The α of largest evidence of one coefficient, given all others; infinite where the coefficient is irrelevant."""
    others = np.flatnonzero(np.isfinite(alpha))
    others = others[others != i]
    sparsity, quality = beta * G[i, i], beta * b[i]
    if len(others):
        precision = np.diag(alpha[others]) + beta * G[np.ix_(others, others)]
        found = _solved(precision, np.stack([G[others, i], b[others]], axis=1))
        sparsity -= beta**2 * G[others, i] @ found[:, 0]
        quality -= beta**2 * G[others, i] @ found[:, 1]
    gain = quality**2 - sparsity
    return float(sparsity**2 / gain) if gain > 1e-12 * sparsity and sparsity > 0 else np.inf


def _solved(precision: Array, right: Array) -> Array:
    """Solution of a symmetric system; of least norm where basis functions are equal to rounding."""
    try:
        return np.asarray(np.linalg.solve(precision, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(precision, right, rcond=None)[0], dtype=np.float64)


def _energy(problem: Problem, R: Array, ratio: Array) -> tuple[float, float]:
    """‖y − Φm‖² + mᵀ diag(α/β) m at its minimum, and log det(diag(α/β) + ΦᵀΦ)."""
    k = len(ratio)
    rows = np.concatenate([R, np.diag(np.sqrt(ratio))])
    joint = np.concatenate([rows, np.concatenate([problem.target, np.zeros(k)])[:, None]], axis=1)
    upper = np.asarray(np.linalg.qr(joint, mode="r"))
    logdet = 2 * np.log(np.abs(np.diagonal(upper)[:k])).sum()
    return problem.rest + float((upper[k:, k] ** 2).sum()), float(logdet)
