"""Where a stable linear system settles: as much noise comes in as is forgotten."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics.sde_discretization import coupled, discretize, doubled


def settled(transition: Array, noise: Array, whose: str = "settled") -> Array:
    """P = A P Aᵀ + Q = Σ Aᵏ Q Aᵏᵀ (d, d), by doubling the number of terms: only covariances are added.

    >>> settled(np.array([[0.5]]), np.array([[3.0]])).tolist()
    [[4.0]]
    """
    radius = float(np.abs(np.linalg.eigvals(transition)).max(initial=0.0))
    if not radius < 1.0:
        expected = "a stationary start needs a transition whose eigenvalues lie inside the unit circle"
        raise DomainError(sentence(whose, expected, f"one of modulus {radius:.6g}", "pass start=(mean, covariance)"))
    A, P = transition, noise
    for _ in range(64):  # 2⁶⁴ terms
        before = P
        A, P = doubled(A, P)
        if (P == before).all():
            break
    return P


def settled_drift(drift: Array, diffusion: Array, whose: str = "settled") -> Array:
    """P with F P + P Fᵀ + Q_c = 0 (d, d): what a step without end makes of any start.

    >>> settled_drift(np.array([[-0.5]]), np.array([[3.0]])).round(12).tolist()
    [[3.0]]
    """
    P = np.zeros_like(drift)
    for at in coupled(drift, diffusion):
        F, Qc, block = drift[np.ix_(at, at)], diffusion[np.ix_(at, at)], np.ix_(at, at)
        rates = np.linalg.eigvals(F).real
        if not rates.max() < 0:
            expected = "a stationary start needs a drift whose eigenvalues have negative real parts"
            raise DomainError(sentence(whose, expected, f"one of {rates.max():.6g}", "pass start=(mean, covariance)"))
        A, Q = discretize(F, Qc, np.array([1.0 / np.abs(rates).max()]))
        P[block] = settled(A[0], Q[0], whose)
    return P
