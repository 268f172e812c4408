"""Maximum likelihood of gamma and Dirichlet shapes from mean logarithms, to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import polygamma

from likely.core.arrays import Array
from likely.numerics.newton_ascent import Objective, newton_maximize
from likely.numerics.special import log_minus_digamma, log_poisson_peak

SMALLEST, LARGEST = 1e-8, 1e12  # range of shapes


def gamma_shape(gap: Any) -> Array:
    """Shape a of a gamma distribution from gap = log a − ψ(a) > 0, the log of the mean minus the mean log.

    >>> gamma_shape(log_minus_digamma([1e-3, 2.5, 1e9])).round(6)
    array([1.0e-03, 2.5e+00, 1.0e+09])
    """
    gap = np.asarray(gap, dtype=np.float64)
    a = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)  # Minka's initial value: 1 % error
    for _ in range(50):
        near = np.minimum(a, 1e4)
        slope = np.where(a < 1e4, near * polygamma(1, near) - 1.0, (0.5 + 1 / (6 * a)) / a)  # −d gap / d log a
        step = np.log(log_minus_digamma(a) / gap) * log_minus_digamma(a) / slope
        a = a * np.exp(np.clip(step, -2.0, 2.0))
        if np.all(np.abs(step) <= 4e-16):
            break
    return np.asarray(a)


def dirichlet_shapes(mean_log: Array) -> Array:
    """Maximum likelihood α of a Dirichlet distribution for mean logarithms (L,); L = 2 is the beta distribution.

    >>> from scipy.special import digamma
    >>> dirichlet_shapes(digamma([2.0, 5.0, 0.5]) - digamma(7.5)).round(9)
    array([2. , 5. , 0.5])
    """
    share = np.exp(mean_log)
    lack = max(-float(np.expm1(np.log(max(float(share.sum()), 1e-300)))), 1e-15)  # 1 − Σ: 0 for one point alone
    whole = 0.5 * (len(share) - 1) / lack
    start = np.log(np.clip(share * whole + 0.05, SMALLEST, LARGEST))
    found = newton_maximize(
        lambda logs: dirichlet_log_likelihood(logs, mean_log), start, np.log(SMALLEST), np.log(LARGEST)
    )
    return np.asarray(np.exp(found))


def dirichlet_expected_log_prob(alpha: Array, mean_log: Array) -> Array:
    """E log p of a Dirichlet distribution (..., L) for mean logarithms (..., L), without cancellation for large α."""
    whole = alpha.sum(axis=-1, keepdims=True)
    deviances = (alpha * (np.log(alpha / whole) - mean_log)).sum(axis=-1)
    peaks = (log_poisson_peak(alpha) + np.log(alpha) - mean_log).sum(axis=-1) - (
        log_poisson_peak(whole) + np.log(whole)
    )[..., 0]
    return np.asarray(peaks - deviances)


def dirichlet_log_likelihood(logs: Array, mean_log: Array) -> Objective:
    """Log-likelihood per row as a function of log α, with gradient and Hessian."""
    alpha = np.exp(logs)
    whole = float(alpha.sum())
    slope = (mean_log - np.log(alpha / whole) + log_minus_digamma(alpha) - log_minus_digamma(whole)) * alpha
    diagonal = alpha * alpha * polygamma(1, alpha) - slope
    return Objective(
        float(dirichlet_expected_log_prob(alpha, mean_log)), slope, diagonal, float(polygamma(1, whole)), alpha
    )
