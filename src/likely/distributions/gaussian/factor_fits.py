"""The factors of a covariance: eigenvectors if all columns have one noise, Newton's method if each has its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from likely.core.arrays import Array, Mask
from likely.numerics import spd
from likely.numerics.eigenvectors import TIED, settled, upright

STEPS = 100  # Newton's method needs 5 to 10 from nothing, 2 from the last round of EM, 20 where a noise vanishes
ACTIVE = 1e-12  # slope below which a noise is as good as it gets
SETTLED = 1e-13  # gain of a step after which there is no other
FAINT = -4.0  # log of the share of a column's variance below which its noise may be about to vanish
SMALL = 64  # columns up to which all eigenvectors cost no more than some


class Factors(NamedTuple):
    """Loadings (d, q) and noise, () or (d,), with what was lifted to a floor."""

    loadings: Array
    noise: Array
    lifted: Mask  # (d,), or () for one noise


def leading(a: Array, q: int) -> tuple[Array, Array]:
    """The q largest eigenvalues of a symmetric matrix, falling, with their vectors as columns (d, q).

    Vectors of equal eigenvalues, and all signs, are chosen by a rule (`settled`), not by rounding.

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
    last = q  # a space that is cut is settled whole
    while last < len(values) and values[last - 1] - values[last] <= TIED * values[0]:
        last += 1
    return values[:q].copy(), settled(values[:last], vectors[:, :last])[:, :q]


# ------------------------------------------------------- one noise for all columns


def principal_factors(covariance: Array, q: int, least: float) -> Factors:
    """W = U (Λ − σ²I)^½, σ² = mean of the eigenvalues left over: the maximum of the likelihood.

    Tipping and Bishop, Probabilistic principal component analysis (1999). σ² is at least `least`. With q = d one
    factor has nothing to explain, and its loadings are 0.

    >>> principal_factors(np.diag([5.0, 2.0, 1.0]), 1, 1e-9).noise
    array(1.5)
    """
    d = len(covariance)
    used, unit = min(q, d - 1), float(np.diagonal(covariance).max())
    unit = unit if unit > 0 else least
    values, vectors = leading(covariance / unit, used)
    rest = (np.diagonal(covariance).sum() / unit - values.sum()) / (d - used)
    noise = max(float(rest), least / unit)
    loadings = np.zeros((d, q))
    loadings[:, :used] = vectors * np.sqrt(np.maximum(values - noise, 0.0) * unit)
    return Factors(loadings, np.asarray(noise * unit), np.asarray(rest < least / unit))


def em_step(covariance: Array, loadings: Array, noise: float) -> tuple[Array, float]:
    """One step of EM over the latent coordinates: W ← S W (σ²I + M⁻¹WᵀSW)⁻¹, σ² ← tr(S − S W M⁻¹ Wᵀ) / d.

    M = WᵀW + σ²I; S is the covariance of the rows (Tipping and Bishop 1999, equations 29 and 30).
    """
    d, q = loadings.shape
    if q == 0:
        return loadings, float(np.trace(covariance)) / d
    unit = power_of_two(max(float(np.diagonal(covariance).max()), noise))
    covariance, loadings, noise = covariance / unit / unit, loadings / unit, noise / unit / unit
    inner = np.linalg.inv(loadings.T @ loadings + noise * np.eye(q))
    spread = covariance @ loadings
    better = np.asarray(np.linalg.solve(noise * np.eye(q) + (inner @ (loadings.T @ spread)).T, spread.T).T, float)
    left = float(np.trace(covariance) - ((spread @ inner) * better).sum()) / d
    return better * unit, left * unit * unit


def power_of_two(variance: float) -> float:
    """The power of two next to a standard deviation: in such a unit numbers keep their bits, and products their range.

    >>> power_of_two(15.0), power_of_two(1e-200) == 2.0**-332
    (4.0, True)
    """
    return float(2.0 ** np.round(0.5 * np.log2(variance))) if variance > 0 else 1.0


# ---------------------------------------------------------- a noise for each column


def factor_analysis(covariance: Array, q: int, least: Array, start: Array | None = None) -> Factors:
    """Loadings and noise (d,) of greatest likelihood, the noise not below `least`; from noise `start`, or from nothing.

    For given noise the best loadings are eigenvectors (Lawley), so the likelihood is a function of log ψ alone;
    Newton's method with bounds climbs it (Jöreskog 1967). The answer is never worse than the start.
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
    ways = [_climbed(correlation, q, s, low, high) for s in starts]
    best = min(ways, key=lambda way: way[0])[1]
    values, vectors = leading(_scaled(correlation, best), q)
    root = np.exp(0.5 * best)
    loadings = upright(unit[:, None] * root[:, None] * vectors * np.sqrt(np.maximum(values - 1.0, 0.0)))
    return Factors(loadings, (unit * root) ** 2, best <= low)


def _starts(correlation: Array, q: int) -> list[Array]:
    """Logarithms of noise to begin with: what principal factors leave; with few columns also half of everything."""
    d = len(correlation)
    loadings = principal_factors(correlation, q, 1e-9).loadings
    left = np.diagonal(correlation) - (loadings**2).sum(axis=1)
    return [np.log(np.clip(left, 0.02, None)), *([np.full(d, np.log(0.5))] if d <= SMALL else [])]


def _scaled(correlation: Array, log_noise: Array) -> Array:
    """Ψ^{-1/2} R Ψ^{-1/2}."""
    root = np.exp(-0.5 * log_noise)
    return correlation * root[:, None] * root


def _climbed(correlation: Array, q: int, at: Array, low: Array, high: Array) -> tuple[float, Array]:
    """Newton steps in log ψ within bounds: half as long while they do not pay; height (to be small) and place."""
    height, slope, bend = _surface(correlation, q, at)
    for _ in range(STEPS):
        free = ~(((at <= low) & (slope > 0)) | ((at >= high) & (slope < 0)))
        if not free.any() or np.abs(slope[free]).max() < ACTIVE:
            break
        move = np.zeros_like(at)
        move[free] = np.clip(-_solved(bend[np.ix_(free, free)], slope[free]), -2.0, 2.0)
        # where the height falls like ψ itself Newton would go by one a step: go to the end
        fades = (slope > 0) & (at < FAINT) & (np.diagonal(bend) < 1.5 * slope)
        move[fades] = (low - at)[fades]
        found = _along(correlation, q, at, move, low, high, (height, slope))
        if found is None:
            break
        gain = height - found[1][0]
        at, (height, slope, bend) = found
        if gain <= SETTLED * (1.0 + abs(height)):  # the next would gain its square
            break
    return height, at


def _along(
    correlation: Array, q: int, at: Array, move: Array, low: Array, high: Array, here: tuple[float, Array]
) -> tuple[Array, tuple[float, Array, Array]] | None:
    """The first place along a move, halved and halved again, that is lower enough; None if there is none."""
    height, slope = here
    rounding = 1e-15 * (1.0 + abs(height)) * len(at)
    for _ in range(30):
        there = np.clip(at + move, np.minimum(low, at), np.maximum(high, at))
        surface = _surface(correlation, q, there)
        if surface[0] <= height + 1e-4 * min(float(slope @ (there - at)), 0.0) + rounding:
            return there, surface
        move = 0.5 * move
    return None


def _solved(bend: Array, slope: Array) -> Array:
    """bend⁻¹ slope, or where the surface does not bend upwards the same with eigenvalues made positive."""
    root = spd.cholesky(bend)
    if root is not None:
        half = spd.solve_factor(root, slope[None].copy())
        return np.asarray(np.linalg.solve(root.T, half)[:, 0])
    values, vectors = np.linalg.eigh(bend)
    values = np.maximum(np.abs(values), 1e-8)
    return np.asarray(vectors @ ((vectors.T @ slope) / values))


def _surface(correlation: Array, q: int, log_noise: Array) -> tuple[float, Array, Array]:
    """½ Σ_{left} (λ − log λ − 1) + a constant, its gradient and its Hessian in log ψ.

    λ are the eigenvalues of Ψ^{-1/2}RΨ^{-1/2}; left are all but the q largest, and those of them below 1. In terms of
    projections P_m = u_m u_mᵀ the gradient is
    ½ Σ_{left} (1 − λ_m) diag P_m and the Hessian ½ [(Σ λ_m P_m)∘(Σ P_m) + Σ_m Σ_{n used} c_mn P_m∘P_n],
    c_mn = (1 − λ_m)(λ_n + λ_m)/(λ_n − λ_m).
    """
    values, u = np.linalg.eigh(_scaled(correlation, log_noise))
    d = len(values)
    m = d - int((values[d - q :] > 1.0).sum()) if q else d
    left, used, lambda_left, lambda_used = u[:, :m], u[:, m:], values[:m], values[m:]
    bend = ((left * lambda_left) @ left.T) * (left @ left.T)
    for n in range(d - m):
        apart = np.maximum(lambda_used[n] - lambda_left, 1e-12 * lambda_used[n])
        c = (1.0 - lambda_left) * (lambda_used[n] + lambda_left) / apart
        bend += ((left * c) @ left.T) * np.multiply.outer(used[:, n], used[:, n])
    height, slope = _height(correlation, used * np.sqrt(lambda_used - 1.0), log_noise)
    return height, slope, 0.5 * bend


def _height(correlation: Array, white: Array, log_noise: Array) -> tuple[float, Array]:
    """½ [log det C + tr C⁻¹R] and its gradient, C = Ψ^½ (I + white whiteᵀ) Ψ^½.

    Through C itself: where a column has next to no noise, Ψ^{-1/2}RΨ^{-1/2} has lost the digits that C still has.
    """
    noise = np.exp(log_noise)
    loadings = np.sqrt(noise)[:, None] * white
    root = np.linalg.cholesky(loadings @ loadings.T + np.diag(noise))
    inverse = spd.precision(root)
    pulled = inverse @ correlation
    slope = 0.5 * noise * (np.diagonal(inverse) - (pulled * inverse).sum(axis=1))
    return 0.5 * float(spd.logdet(root) + np.trace(pulled)), slope


def em_start(covariance: Array, q: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Small random loadings and the mean variance: where EM over the latent coordinates begins."""
    d, variance = len(covariance), float(np.trace(covariance)) / len(covariance)
    return np.sqrt(variance) * rng.standard_normal((d, q)) / np.sqrt(d), variance


__all__ = [
    "Factors", "em_start", "em_step", "factor_analysis", "leading", "power_of_two", "principal_factors"
]  # fmt: skip
