"""Exact discretization of a linear stochastic differential equation for steps of any length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import matrix_balance

from likely.core.arrays import Array, Index
from likely.numerics import covariance_roots
from likely.numerics.spd import symmetric

REACH = 0.5  # ‖F h‖ up to which the power series is used: 18 terms are then exact to rounding
TERMS = 18


def discretize(drift: Array, diffusion: Array, steps: Array) -> tuple[Array, Array]:
    """A = e^{F h} and Q = ∫₀ʰ e^{F s} Q_c e^{Fᵀ s} ds for dx = F x dt + dβ, E[dβ dβᵀ] = Q_c dt, of each step (m,).

    Both are power series for a short step, Q = Σ_k hᵏ/k! Lᵏ⁻¹(Q_c) with L(X) = F X + X Fᵀ, and two steps make one:
    A₂ = A², Q₂ = Q + A Q Aᵀ. Only covariances are added, so that nothing overflows or cancels where Van Loan's block
    matrix, which contains e^{−F h}, does: stable, unstable and singular drifts, short and long steps. Uncoupled groups
    of states are computed separately, each in its own units. Returns A and Q, (m, d, d) each.

    >>> A, Q = discretize(np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([0.0, 3.0]), np.array([2.0]))
    >>> A[0].tolist(), Q[0].tolist()
    ([[1.0, 2.0], [0.0, 1.0]], [[8.0, 6.0], [6.0, 6.0]])
    """
    A, Q, _ = Discretizer.of(drift, diffusion).over(steps)
    return A, Q


@dataclass(frozen=True, eq=False)
class Discretizer:
    """A drift and a diffusion matrix, prepared for steps of any length."""

    parts: tuple[tuple[Index, CoupledStates], ...]  # coupled states, and their series

    @classmethod
    def of(cls, drift: Array, diffusion: Array) -> Self:
        """Prepare the coupled groups of states."""
        groups = coupled(drift, diffusion)
        return cls(tuple((at, CoupledStates.of(drift[np.ix_(at, at)], diffusion[np.ix_(at, at)])) for at in groups))

    def over(self, steps: Array, root: bool = False) -> tuple[Array, Array, Array]:
        """A, Q and, with `root`, the upper triangular U with UᵀU = Q, of each step (m,): (m, d, d) each."""
        steps = np.asarray(steps, dtype=np.float64)
        m, d = len(steps), sum(len(at) for at, _ in self.parts)
        A, Q, U = (np.zeros((m, d, d)) for _ in range(3))
        for at, part in self.parts:
            block = (slice(None), at[:, None], at)
            A[block], Q[block] = result = part.over(steps)
            if root and part.moved:
                positive = np.flatnonzero(steps > 0)  # a step of length 0 has no noise
                U[positive[:, None, None], at[:, None], at] = covariance_roots.root(result[1][positive])
        return A, Q, U


@dataclass(frozen=True, eq=False)
class CoupledStates:
    """Coupled states: the power series of A and Q, in units in which the drift is balanced."""

    units: Array  # (d,), powers of two
    powers: Array  # (K, 2, d, d): F^k and L^{k−1}(Q_c), k = 1 … K
    size: float  # ‖F‖; 0 where the series is a polynomial, exact for any step
    moved: bool  # True if there is noise

    @classmethod
    def of(cls, drift: Array, diffusion: Array) -> Self:
        """Prepare both series."""
        s = _units(drift)
        F, Qc = drift / s[:, None] * s, diffusion / s[:, None] / s
        nilpotent = is_nilpotent(F)
        terms = [np.stack([F, Qc])]
        for _ in range(2 * len(F) - 2 if nilpotent else TERMS - 1):
            P, N = terms[-1]
            terms.append(np.stack([P @ F, F @ N + N @ F.T]))
        return cls(s, np.stack(terms), 0.0 if nilpotent else float(np.abs(F).sum(axis=0).max()), bool(diffusion.any()))

    def over(self, steps: Array) -> tuple[Array, Array]:
        """A and Q of each step (m,)."""
        halvings = np.zeros(len(steps), dtype=np.intp)
        if self.size > 0:
            halvings = np.maximum(np.frexp(self.size * steps / REACH)[1], 0).astype(np.intp)
        E, Q = self._short(np.ldexp(steps, -halvings))
        A = E + np.eye(len(self.units))
        for k in range(int(halvings.max(initial=0))):
            on = halvings > k
            _, Q[on] = doubled(A[on], Q[on])
            A[on], E[on] = _squared(A[on], E[on])
        s = self.units
        return A * s[:, None] / s, symmetric(Q * s[:, None] * s)

    def _short(self, h: Array) -> tuple[Array, Array]:
        """e^{F h} − I and Q of steps within the range of the series."""
        K, _, d, _ = self.powers.shape
        weight = np.cumprod(h[:, None] / np.arange(1, K + 1), axis=1)  # hᵏ/k!
        both = (weight @ self.powers.reshape(K, -1)).reshape(len(h), 2, d, d)
        return both[:, 0].copy(), both[:, 1].copy()


def doubled(A: Array, Q: Array) -> tuple[Array, Array]:
    """Two steps as one: A² and Q + A Q Aᵀ."""
    return A @ A, symmetric(Q + A @ Q @ np.swapaxes(A, -1, -2))


def _squared(A: Array, E: Array) -> tuple[Array, Array]:
    """A² and A² − I from both: slow states next to fast ones keep their digits in the difference."""
    E = 2.0 * E + E @ E
    near_identity = E + np.eye(E.shape[-1])
    is_large = np.abs(near_identity).sum(axis=-2).max(axis=-1) > 0.5
    return np.where(is_large[:, None, None], near_identity, A @ A), E


def coupled(drift: Array, diffusion: Array) -> list[Index]:
    """Groups of states that neither drift nor noise connects: connected components."""
    reach = (drift != 0) | (diffusion != 0) | np.eye(len(drift), dtype=bool)
    reach = reach | reach.T
    for _ in range(len(drift).bit_length()):  # paths of twice as many edges
        reach = reach @ reach
    return [np.flatnonzero(reach[i]) for i in range(len(drift)) if not reach[i, :i].any()]


def is_nilpotent(F: Array) -> bool:
    """True if F is nilpotent (F^d = 0) by its zero pattern: pure integrators."""
    arcs = F != 0
    for _ in range(len(F).bit_length()):
        arcs = arcs @ arcs
    return not arcs.any()


def _units(F: Array) -> Array:
    """Powers of two (d,) as units of the states, which balance rows and columns of F."""
    scale, _ = matrix_balance(F, permute=False, separate=True)[1]
    return np.asarray(scale, dtype=np.float64)
