"""Stationary covariance of a stable linear system: discrete and continuous Lyapunov equations."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics.sde_discretization import coupled, discretize, doubled


def settled(transition: Array, noise: Array, whose: str = "settled") -> Array:
    """Solve the discrete Lyapunov equation P = A P Aᵀ + Q = Σ Aᵏ Q Aᵏᵀ (d, d) by doubling: only covariances are added.

    >>> settled(np.array([[0.5]]), np.array([[3.0]])).tolist()
    [[4.0]]
    """
    radius = float(np.abs(np.linalg.eigvals(transition)).max(initial=0.0))
    if not radius < 1.0:
        expected = "a stationary distribution needs a transition matrix with eigenvalues inside the unit circle"
        raise DomainError(sentence(whose, expected, f"one of modulus {radius:.6g}", "pass start=(mean, covariance)"))
    A, P = transition, noise
    for _ in range(64):  # 2⁶⁴ terms
        before = P
        A, P = doubled(A, P)
        if (P == before).all():
            break
    return P


def settled_drift(drift: Array, diffusion: Array, whose: str = "settled") -> Array:
    """Solve the continuous Lyapunov equation F P + P Fᵀ + Q_c = 0 (d, d): the stationary covariance.

    >>> settled_drift(np.array([[-0.5]]), np.array([[3.0]])).round(12).tolist()
    [[3.0]]
    """
    P = np.zeros_like(drift)
    for at in coupled(drift, diffusion):
        F, Qc, block = drift[np.ix_(at, at)], diffusion[np.ix_(at, at)], np.ix_(at, at)
        rates = np.linalg.eigvals(F).real
        if not rates.max() < 0:
            expected = "a stationary distribution needs a drift matrix whose eigenvalues have negative real parts"
            raise DomainError(sentence(whose, expected, f"one of {rates.max():.6g}", "pass start=(mean, covariance)"))
        A, Q = discretize(F, Qc, np.array([1.0 / np.abs(rates).max()]))
        P[block] = settled(A[0], Q[0], whose)
    return P
