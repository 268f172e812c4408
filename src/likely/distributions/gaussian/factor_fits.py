"""Maximum-likelihood fits of factor models to a covariance: probabilistic PCA and factor analysis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from likely.core.arrays import Array, Mask
from likely.numerics import spd
from likely.numerics.eigenvectors import TIED, canonical_basis, with_canonical_signs

STEPS = 100  # Newton's method needs 5 to 10 from scratch, 2 from the last EM iteration, 20 for a Heywood case
GRADIENT_TOLERANCE = 1e-12  # largest gradient entry at which the iteration stops
GAIN_TOLERANCE = 1e-13  # relative gain of a step after which the iteration stops
LOG_SMALL_NOISE = -4.0  # log of the share of a column's variance below which its noise may go to zero
SMALL = 64  # columns up to which all eigenvectors cost no more than some


class Factors(NamedTuple):
    """Loadings (d, q) and noise variances () or (d,), with a mask of those that were raised to their floor."""

    loadings: Array
    noise: Array
    at_floor: Mask  # (d,), or () for one noise


def leading(a: Array, q: int) -> tuple[Array, Array]:
    """The q largest eigenvalues of a symmetric matrix in decreasing order, and their eigenvectors as columns (d, q).

    Bases of equal eigenvalues, and all signs, are chosen by a rule (`canonical_basis`), not by rounding.

    >>> values, vectors = leading(np.array([[2.0, 1.0], [1.0, 2.0]]), 1)
    >>> values.round(6), vectors.round(4).ravel()
    (array([3.]), array([0.7071, 0.7071]))
    """
    d = len(a)
    if q == 0:
        return np.empty(0), np.empty((d, 0))
    if d <= SMALL or 3 * q > d:
        values, vectors = np.linalg.eigh(a)
    else:
        values, vectors = eigh(a, subset_by_index=(d - q, d - 1), check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    last = q  # an eigenspace that is cut at q is made unique as a whole
    while last < len(values) and values[last - 1] - values[last] <= TIED * values[0]:
        last += 1
    return values[:q].copy(), canonical_basis(values[:last], vectors[:, :last])[:, :q]


# --------------------------- probabilistic PCA: one noise variance for all columns


def principal_factors(covariance: Array, q: int, least: float) -> Factors:
    """Maximum-likelihood probabilistic PCA: W = U (Λ − σ²I)^½, σ² = mean of the discarded eigenvalues.

    Tipping and Bishop, Probabilistic principal component analysis (1999); Bishop 12.2.1. σ² is at least `least`. With
    q = d the loadings of one factor are 0.

    >>> principal_factors(np.diag([5.0, 2.0, 1.0]), 1, 1e-9).noise
    array(1.5)
    """
    d = len(covariance)
    used, unit = min(q, d - 1), float(np.diagonal(covariance).max())
    unit = unit if unit > 0 else least
    values, vectors = leading(covariance / unit, used)
    discarded = (np.diagonal(covariance).sum() / unit - values.sum()) / (d - used)
    noise = max(float(discarded), least / unit)
    loadings = np.zeros((d, q))
    loadings[:, :used] = vectors * np.sqrt(np.maximum(values - noise, 0.0) * unit)
    return Factors(loadings, np.asarray(noise * unit), np.asarray(discarded < least / unit))


def em_step(covariance: Array, loadings: Array, noise: float) -> tuple[Array, float]:
    """One EM iteration for probabilistic PCA: W ← S W (σ²I + M⁻¹WᵀSW)⁻¹, σ² ← tr(S − S W M⁻¹ Wᵀ) / d.

    M = WᵀW + σ²I; S is the covariance of the rows (Tipping and Bishop 1999, equations 29 and 30).
    """
    d, q = loadings.shape
    if q == 0:
        return loadings, float(np.trace(covariance)) / d
    unit = power_of_two(max(float(np.diagonal(covariance).max()), noise))
    covariance, loadings, noise = covariance / unit / unit, loadings / unit, noise / unit / unit
    inner = np.linalg.inv(loadings.T @ loadings + noise * np.eye(q))
    SW = covariance @ loadings
    new_loadings = np.asarray(np.linalg.solve(noise * np.eye(q) + (inner @ (loadings.T @ SW)).T, SW.T).T, float)
    new_noise = float(np.trace(covariance) - ((SW @ inner) * new_loadings).sum()) / d
    return new_loadings * unit, new_noise * unit * unit


def power_of_two(variance: float) -> float:
    """The power of two nearest to a standard deviation: scaling by it is exact and avoids overflow.

    >>> power_of_two(15.0), power_of_two(1e-200) == 2.0**-332
    (4.0, True)
    """
    return float(2.0 ** np.round(0.5 * np.log2(variance))) if variance > 0 else 1.0


# ----------------------------- factor analysis: one noise variance for each column


def factor_analysis(covariance: Array, q: int, least: Array, start: Array | None = None) -> Factors:
    """Maximum-likelihood factor analysis: loadings and noise variances (d,), at least `least`, from initial `start`.

    For given noise the best loadings are eigenvectors (Lawley), so the likelihood is a function of log ψ alone. It is
    maximized by Newton's method with bounds (Jöreskog 1967). The result is never worse than the start.
    """
    if q == 0:
        variance = np.diagonal(covariance)
        return Factors(np.empty((len(covariance), 0)), np.maximum(variance, least), variance < least)
    unit = np.sqrt(np.maximum(np.diagonal(covariance), least))
    correlation = covariance / unit[:, None] / unit
    low = np.log(least / unit**2)
    high = np.log(np.maximum(np.diagonal(correlation), least / unit**2))
    if start is None:
        starts = [np.clip(s, low, high) for s in _starts(correlation, q)]
    else:
        starts = [np.maximum(np.log(start) - 2 * np.log(unit), low)]
    fits = [_minimized(correlation, q, s, low, high) for s in starts]
    best = min(fits, key=lambda fit: fit[0])[1]
    values, vectors = leading(_scaled(correlation, best), q)
    root = np.exp(0.5 * best)
    loadings = with_canonical_signs(unit[:, None] * root[:, None] * vectors * np.sqrt(np.maximum(values - 1.0, 0.0)))
    return Factors(loadings, (unit * root) ** 2, best <= low)


def _starts(correlation: Array, q: int) -> list[Array]:
    """Initial log noise variances: residuals of probabilistic PCA; with few columns also half of the variances."""
    d = len(correlation)
    loadings = principal_factors(correlation, q, 1e-9).loadings
    residual = np.diagonal(correlation) - (loadings**2).sum(axis=1)
    return [np.log(np.clip(residual, 0.02, None)), *([np.full(d, np.log(0.5))] if d <= SMALL else [])]


def _scaled(correlation: Array, log_noise: Array) -> Array:
    """Ψ^{-1/2} R Ψ^{-1/2}."""
    root = np.exp(-0.5 * log_noise)
    return correlation * root[:, None] * root


def _minimized(correlation: Array, q: int, at: Array, low: Array, high: Array) -> tuple[float, Array]:
    """Minimize the negative log-likelihood over log ψ within bounds by damped Newton steps; minimum and its place."""
    loss, gradient, hessian = _loss_and_derivatives(correlation, q, at)
    for _ in range(STEPS):
        free = ~(((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0)))
        if not free.any() or np.abs(gradient[free]).max() < GRADIENT_TOLERANCE:
            break
        move = np.zeros_like(at)
        move[free] = np.clip(-_newton_step(hessian[np.ix_(free, free)], gradient[free]), -2.0, 2.0)
        # where the loss falls in proportion to ψ, Newton steps in log ψ have length one: go to the bound at once
        heywood = (gradient > 0) & (at < LOG_SMALL_NOISE) & (np.diagonal(hessian) < 1.5 * gradient)
        move[heywood] = (low - at)[heywood]
        found = _line_search(correlation, q, at, move, low, high, (loss, gradient))
        if found is None:
            break
        gain = loss - found[1][0]
        at, (loss, gradient, hessian) = found
        if gain <= GAIN_TOLERANCE * (1.0 + abs(loss)):  # quadratic convergence: the next gain is its square
            break
    return loss, at


def _line_search(
    correlation: Array, q: int, at: Array, move: Array, low: Array, high: Array, here: tuple[float, Array]
) -> tuple[Array, tuple[float, Array, Array]] | None:
    """Backtracking line search with the Armijo condition: point and derivatives there, or None."""
    loss, gradient = here
    rounding = 1e-15 * (1.0 + abs(loss)) * len(at)
    for _ in range(30):
        there = np.clip(at + move, np.minimum(low, at), np.maximum(high, at))
        derivatives = _loss_and_derivatives(correlation, q, there)
        if derivatives[0] <= loss + 1e-4 * min(float(gradient @ (there - at)), 0.0) + rounding:
            return there, derivatives
        move = 0.5 * move
    return None


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """Newton step H⁻¹g; where the Hessian is indefinite, with the absolute values of its eigenvalues."""
    root = spd.cholesky(hessian)
    if root is not None:
        half = spd.solve_factor(root, gradient[None].copy())
        return np.asarray(np.linalg.solve(root.T, half)[:, 0])
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(np.abs(values), 1e-8)
    return np.asarray(vectors @ ((vectors.T @ gradient) / values))


def _loss_and_derivatives(correlation: Array, q: int, log_noise: Array) -> tuple[float, Array, Array]:
    """Negative log-likelihood ½ Σ_{left} (λ − log λ − 1) + constant, its gradient and its Hessian in log ψ.

    λ are the eigenvalues of Ψ^{-1/2}RΨ^{-1/2}; left are all but the q largest, and those of them below 1. In terms of
    projections P_m = u_m u_mᵀ the gradient is
    ½ Σ_{left} (1 − λ_m) diag P_m and the Hessian ½ [(Σ λ_m P_m)∘(Σ P_m) + Σ_m Σ_{n used} c_mn P_m∘P_n],
    c_mn = (1 − λ_m)(λ_n + λ_m)/(λ_n − λ_m).
    """
    values, u = np.linalg.eigh(_scaled(correlation, log_noise))
    d = len(values)
    m = d - int((values[d - q :] > 1.0).sum()) if q else d
    left, used, lambda_left, lambda_used = u[:, :m], u[:, m:], values[:m], values[m:]
    hessian = ((left * lambda_left) @ left.T) * (left @ left.T)
    for n in range(d - m):
        eigengap = np.maximum(lambda_used[n] - lambda_left, 1e-12 * lambda_used[n])
        c = (1.0 - lambda_left) * (lambda_used[n] + lambda_left) / eigengap
        hessian += ((left * c) @ left.T) * np.multiply.outer(used[:, n], used[:, n])
    loss, gradient = _loss_and_gradient(correlation, used * np.sqrt(lambda_used - 1.0), log_noise)
    return loss, gradient, 0.5 * hessian


def _loss_and_gradient(correlation: Array, white: Array, log_noise: Array) -> tuple[float, Array]:
    """Negative log-likelihood ½ [log det C + tr C⁻¹R] and its gradient, C = Ψ^½ (I + white whiteᵀ) Ψ^½.

    Computed from C itself: where a noise variance is nearly 0, Ψ^{-1/2}RΨ^{-1/2} has lost digits that C still has.
    """
    noise = np.exp(log_noise)
    loadings = np.sqrt(noise)[:, None] * white
    root = np.linalg.cholesky(loadings @ loadings.T + np.diag(noise))
    inverse = spd.precision(root)
    pulled = inverse @ correlation
    gradient = 0.5 * noise * (np.diagonal(inverse) - (pulled * inverse).sum(axis=1))
    return 0.5 * float(spd.logdet(root) + np.trace(pulled)), gradient


def em_start(covariance: Array, q: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Initial values of EM for probabilistic PCA: small random loadings and the mean variance."""
    d, variance = len(covariance), float(np.trace(covariance)) / len(covariance)
    return np.sqrt(variance) * rng.standard_normal((d, q)) / np.sqrt(d), variance


__all__ = [
    "Factors", "em_start", "em_step", "factor_analysis", "leading", "power_of_two", "principal_factors"
]  # fmt: skip
