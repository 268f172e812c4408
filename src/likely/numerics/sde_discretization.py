"""What a linear stochastic differential equation does in a step of any length, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import matrix_balance

from likely.core.arrays import Array, Index
from likely.numerics import covariance_roots
from likely.numerics.spd import symmetric

REACH = 0.5  # ‖F h‖ at which the series begins: 18 terms then leave nothing
TERMS = 18


def discretize(drift: Array, diffusion: Array, steps: Array) -> tuple[Array, Array]:
    """A = e^{F h} and Q = ∫₀ʰ e^{F s} Q_c e^{Fᵀ s} ds for dx = F x dt + dβ, E[dβ dβᵀ] = Q_c dt, of each step (m,).

    Both are power series for a short step, Q = Σ_k hᵏ/k! Lᵏ⁻¹(Q_c) with L(X) = F X + X Fᵀ, and two steps make one:
    A₂ = A², Q₂ = Q + A Q Aᵀ. Only covariances are added, so that nothing overflows or cancels where Van Loan's block,
    which holds e^{−F h}, does: stable, unstable and singular drifts, short and long steps. States that do not act on
    each other are done apart, each in units of its own. Gives (m, d, d) twice.

    >>> A, Q = discretize(np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([0.0, 3.0]), np.array([2.0]))
    >>> A[0].tolist(), Q[0].tolist()
    ([[1.0, 2.0], [0.0, 1.0]], [[8.0, 6.0], [6.0, 6.0]])
    """
    A, Q, _ = Motion.of(drift, diffusion).over(steps)
    return A, Q


@dataclass(frozen=True, eq=False)
class Motion:
    """A drift and a diffusion, prepared for steps of any length."""

    parts: tuple[tuple[Index, Part], ...]  # states that act on each other, and how

    @classmethod
    def of(cls, drift: Array, diffusion: Array) -> Self:
        """Prepare the groups of states."""
        groups = coupled(drift, diffusion)
        return cls(tuple((at, Part.of(drift[np.ix_(at, at)], diffusion[np.ix_(at, at)])) for at in groups))

    def over(self, steps: Array, root: bool = False) -> tuple[Array, Array, Array]:
        """A, Q and, if asked for, the upper U with UᵀU = Q, of each step (m,): (m, d, d) each."""
        steps = np.asarray(steps, dtype=np.float64)
        m, d = len(steps), sum(len(at) for at, _ in self.parts)
        A, Q, U = (np.zeros((m, d, d)) for _ in range(3))
        for at, part in self.parts:
            block = (slice(None), at[:, None], at)
            A[block], Q[block] = here = part.over(steps)
            if root and part.moved:
                some = np.flatnonzero(steps > 0)  # a step of nothing has no noise
                U[some[:, None, None], at[:, None], at] = covariance_roots.root(here[1][some])
        return A, Q, U


@dataclass(frozen=True, eq=False)
class Part:
    """States that act on each other: both power series, in units in which the drift is balanced."""

    units: Array  # (d,), powers of two
    powers: Array  # (K, 2, d, d): F^k and L^{k−1}(Q_c), k = 1 … K
    size: float  # ‖F‖; 0 where the series is a polynomial, right for any step
    moved: bool  # by noise

    @classmethod
    def of(cls, drift: Array, diffusion: Array) -> Self:
        """Prepare both series."""
        s = _units(drift)
        F, Qc = drift / s[:, None] * s, diffusion / s[:, None] / s
        ends = is_nilpotent(F)
        terms = [np.stack([F, Qc])]
        for _ in range(2 * len(F) - 2 if ends else TERMS - 1):
            P, N = terms[-1]
            terms.append(np.stack([P @ F, F @ N + N @ F.T]))
        return cls(s, np.stack(terms), 0.0 if ends else float(np.abs(F).sum(axis=0).max()), bool(diffusion.any()))

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
        """e^{F h} − I and Q of steps that the series reaches."""
        K, _, d, _ = self.powers.shape
        weight = np.cumprod(h[:, None] / np.arange(1, K + 1), axis=1)  # hᵏ/k!
        both = (weight @ self.powers.reshape(K, -1)).reshape(len(h), 2, d, d)
        return both[:, 0].copy(), both[:, 1].copy()


def doubled(A: Array, Q: Array) -> tuple[Array, Array]:
    """Two steps as one: A² and Q + A Q Aᵀ."""
    return A @ A, symmetric(Q + A @ Q @ np.swapaxes(A, -1, -2))


def _squared(A: Array, E: Array) -> tuple[Array, Array]:
    """A² and A² − I from both: slow states beside fast ones live in the difference, until all has died away."""
    E = 2.0 * E + E @ E
    near = E + np.eye(E.shape[-1])
    alive = np.abs(near).sum(axis=-2).max(axis=-1) > 0.5
    return np.where(alive[:, None, None], near, A @ A), E


def coupled(drift: Array, diffusion: Array) -> list[Index]:
    """The states in groups that neither drift nor noise connects.

    >>> [at.tolist() for at in coupled(np.diag([-1.0, -2.0, -3.0]), np.eye(3)[::-1])]
    [[0, 2], [1]]
    """
    reach = (drift != 0) | (diffusion != 0) | np.eye(len(drift), dtype=bool)
    reach = reach | reach.T
    for _ in range(len(drift).bit_length()):  # ways of twice as many arcs
        reach = reach @ reach
    return [np.flatnonzero(reach[i]) for i in range(len(drift)) if not reach[i, :i].any()]


def is_nilpotent(F: Array) -> bool:
    """True if no state acts on itself by any detour, so that F^d = 0: pure integrators."""
    arcs = F != 0
    for _ in range(len(F).bit_length()):
        arcs = arcs @ arcs
    return not arcs.any()


def _units(F: Array) -> Array:
    """Powers of two (d,) as units of the states, in which rows and columns of F are of one size."""
    scale, _ = matrix_balance(F, permute=False, separate=True)[1]
    return np.asarray(scale, dtype=np.float64)
