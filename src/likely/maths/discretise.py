"""What a linear stochastic differential equation does in a step of any length, exactly."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Index
from likely.maths.spd import symmetric

REACH = 0.5  # ‖F h‖ at which the series begins: 16 terms then leave nothing
TERMS = 18


def discretise(drift: Array, diffusion: Array, steps: Array) -> tuple[Array, Array]:
    """A = e^{F h} and Q = ∫₀ʰ e^{F s} Q_c e^{Fᵀ s} ds for dx = F x dt + dβ, E[dβ dβᵀ] = Q_c dt, of each step (m,).

    Both are power series for a short step, Q = Σ_k hᵏ/k! Lᵏ⁻¹(Q_c) with L(X) = F X + X Fᵀ, and two steps make one:
    A₂ = A², Q₂ = Q + A Q Aᵀ. Only covariances are added, so that nothing overflows or cancels where Van Loan's block,
    which holds e^{−F h}, does: stable, unstable and singular drifts, short and long steps. States that do not act on
    each other are done apart, each in units of its own. Gives (m, d, d) twice.

    >>> A, Q = discretise(np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([0.0, 3.0]), np.array([2.0]))
    >>> A[0].tolist(), Q[0].tolist()
    ([[1.0, 2.0], [0.0, 1.0]], [[8.0, 6.0], [6.0, 6.0]])
    """
    steps = np.asarray(steps, dtype=np.float64)
    d = len(drift)
    A, Q = np.zeros((len(steps), d, d)), np.zeros((len(steps), d, d))
    for at in coupled(drift, diffusion):
        block = np.ix_(np.arange(len(steps)), at, at)
        A[block], Q[block] = _of_block(drift[np.ix_(at, at)], diffusion[np.ix_(at, at)], steps)
    return A, Q


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


def _of_block(F: Array, diffusion: Array, steps: Array) -> tuple[Array, Array]:
    s = _units(F)
    F, Qc = F / s[:, None] * s, diffusion / s[:, None] / s
    ends = is_nilpotent(F)  # the series is a polynomial, right for any step
    size = 0.0 if ends else float(np.abs(F).sum(axis=0).max(initial=0.0))
    with np.errstate(divide="ignore"):
        halvings = np.maximum(np.ceil(np.log2(size * steps / REACH)), 0.0).astype(np.intp)
    E, Q = _series(F, Qc, np.ldexp(steps, -halvings), 2 * len(F) - 1 if ends else TERMS)
    A = E + np.eye(len(F))
    for k in range(int(halvings.max(initial=0))):
        on = halvings > k
        _, Q[on] = doubled(A[on], Q[on])
        A[on], E[on] = _squared(A[on], E[on])
    return A * s[:, None] / s, symmetric(Q * s[:, None] * s)


def _squared(A: Array, E: Array) -> tuple[Array, Array]:
    """A² and A² − I from both: slow states beside fast ones live in the difference, until all has died away."""
    E = 2.0 * E + E @ E
    near = E + np.eye(E.shape[-1])
    alive = np.abs(near).sum(axis=-2).max(axis=-1) > 0.5
    return np.where(alive[:, None, None], near, A @ A), E


def doubled(A: Array, Q: Array) -> tuple[Array, Array]:
    """Two steps as one: A² and Q + A Q Aᵀ."""
    return A @ A, symmetric(Q + A @ Q @ np.swapaxes(A, -1, -2))


def is_nilpotent(F: Array) -> bool:
    """True if no state acts on itself by any detour, so that F^d = 0: pure integrators."""
    arcs = F != 0
    for _ in range(len(F).bit_length()):
        arcs = arcs @ arcs
    return not arcs.any()


def _units(F: Array) -> Array:
    """Powers of two (d,) as units of the states, in which rows and columns of F are of one size."""
    from scipy.linalg import matrix_balance

    if not len(F) or not np.abs(F).max() > 0:
        return np.ones(len(F))
    scale, _ = matrix_balance(F, permute=False, separate=True)[1]
    return np.asarray(scale, dtype=np.float64)


def _series(F: Array, Qc: Array, h: Array, terms: int) -> tuple[Array, Array]:
    """e^{F h} − I and Q at h (m,), smallest terms first, by Horner's rule."""
    powers, noises = [F], [Qc]
    for _ in range(1, terms):
        powers.append(powers[-1] @ F)
        noises.append(F @ noises[-1] + noises[-1] @ F.T)
    step = h[:, None, None]
    E, Q = np.zeros((len(h), *F.shape)), np.zeros((len(h), *F.shape))
    for k in range(terms - 1, -1, -1):
        E = powers[k] + step / (k + 2) * E
        Q = noises[k] + step / (k + 2) * Q
    return step * E, step * Q
