"""Stationary covariance of a stable linear system: discrete and continuous Lyapunov equations."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.numerics.sde_discretization import coupled, discretize, doubled


def solve_discrete_lyapunov(transition: Array, noise: Array, whose: str = "solve_discrete_lyapunov") -> Array:
    """Solve the discrete Lyapunov equation P = A P Aᵀ + Q = Σ Aᵏ Q Aᵏᵀ (d, d) by doubling: only covariances are added.

    >>> solve_discrete_lyapunov(np.array([[0.5]]), np.array([[3.0]])).tolist()
    [[4.0]]
    """
    radius = float(np.abs(np.linalg.eigvals(transition)).max(initial=0.0))
    if not radius < 1.0:
        expected = "a stationary distribution needs a transition matrix with eigenvalues inside the unit circle"
        raise DomainError(sentence(whose, expected, f"one of modulus {radius:.6g}", "pass initial=(mean, covariance)"))
    A, P = transition, noise
    for _ in range(64):  # 2⁶⁴ terms
        before = P
        A, P = doubled(A, P)
        if (P == before).all():
            break
    return P


def solve_continuous_lyapunov(drift: Array, diffusion: Array, whose: str = "solve_continuous_lyapunov") -> Array:
    """Solve the continuous Lyapunov equation F P + P Fᵀ + Q_c = 0 (d, d): the stationary covariance.

    >>> solve_continuous_lyapunov(np.array([[-0.5]]), np.array([[3.0]])).round(12).tolist()
    [[3.0]]
    """
    P = np.zeros_like(drift)
    for at in coupled(drift, diffusion):
        F, Qc, block = drift[np.ix_(at, at)], diffusion[np.ix_(at, at)], np.ix_(at, at)
        rates = np.linalg.eigvals(F).real
        if not rates.max() < 0:
            expected = "a stationary distribution needs a drift matrix whose eigenvalues have negative real parts"
            raise DomainError(sentence(whose, expected, f"one of {rates.max():.6g}", "pass initial=(mean, covariance)"))
        A, Q = discretize(F, Qc, np.array([1.0 / np.abs(rates).max()]))
        P[block] = solve_discrete_lyapunov(A[0], Q[0], whose)
    return P
