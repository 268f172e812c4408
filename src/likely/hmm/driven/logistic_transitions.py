"""Multinomial logistic transition probabilities that depend on covariates, fitted by Böhning's lower bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from likely.core.arrays import Array, Index, Mask

CUTOFF = 1e-12  # of the largest eigenvalue: directions below it are in the null space of the covariates


class Transitions(NamedTuple):
    """Transition matrices into each of T frames, as logarithms and probabilities."""

    logs: Array  # (T, K, K)
    probs: Array  # (T, K, K)
    least: Array  # (T,): the smallest log-probability of a possible transition

    def at(self, frames: Index) -> Transitions:
        """The transition matrices into some frames."""
        return Transitions(*(part[frames] for part in self))

    @classmethod
    def of(cls, coefficients: Array, possible: Mask, z: Array) -> Transitions:
        """Transition matrices at features z (T, q); `log_transition` is the slow reference."""
        from likely.hmm._loops import time_varying_recursions

        K, _, q = coefficients.shape
        logs = np.ascontiguousarray(z @ coefficients.reshape(K * K, q).T).reshape(len(z), K, K)
        allowed, least = np.array(possible), np.empty(len(z))
        time_varying_recursions.subtract_row_max(logs, allowed)
        probs = np.exp(logs)
        time_varying_recursions.normalize(logs, allowed, probs, least)
        return cls(logs, probs, least)


def log_transition(coefficients: Array, possible: Mask, z: Array) -> Array:
    """log p(s_t = j | s_{t−1} = i, z_t) = β_ij · z_t − log Σ_k exp(β_ik · z_t), over possible k: (T, K, K).

    >>> log_transition(np.zeros((2, 2, 1)), np.array([[True, True], [False, True]]), np.ones((1, 1))).round(2).tolist()
    [[[-0.69, -0.69], [-inf, 0.0]]]
    """
    K, _, q = coefficients.shape
    logs = (z @ coefficients.reshape(K * K, q).T).reshape(len(z), K, K)
    logs[:, ~possible] = -np.inf
    logs -= logs.max(axis=2, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=2, keepdims=True))
    return logs


def log_row(coefficients: Array, possible: Mask, z: Array) -> Array:
    """Log transition probabilities of one row per sample: coefficients (n, K, q), possible (n, K), z (n, q); (n, K)."""
    logs = np.where(possible, np.einsum("nkq,nq->nk", coefficients, z), -np.inf)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def gradient_and_curvature(xi: Array, before: Array, transition: Array, z: Array) -> tuple[Array, Array]:
    """Gradient (K, K, q) of the expected log-probability of transitions, and Σ_t γ_{t−1}(i) z zᵀ (K, q, q).

    xi (T, K, K) are the weighted ξ_t(i, j) = p(s_{t−1} = i, s_t = j | x), before (T, K) their sums over j, γ_{t−1}(i).
    """
    (T, K), q = before.shape, z.shape[1]
    excess = (xi - before[:, :, None] * transition).reshape(T, K * K)
    squares = (z[:, :, None] * z[:, None, :]).reshape(T, q * q)
    return (excess.T @ z).reshape(K, K, q), (before.T @ squares).reshape(K, q, q)


def path_gradient_and_curvature(
    path: Index, before: Index, weight: Array, transition: Transitions, z: Array
) -> tuple[Array, Array, float]:
    """Gradient and curvature for a known path (T,), and the log-probability of its transitions.

    before (T,) are the previous states, −1 where a sequence begins.
    """
    K, q = transition.probs.shape[1], z.shape[1]
    gradient, curvature, fitted = np.zeros((K, K, q)), np.zeros((K, q, q)), 0.0
    for i in range(K):
        at = np.flatnonzero((before == i) & (weight > 0))
        w, own = weight[at], z[at]
        gradient[i] = (w[:, None] * (np.eye(K)[path[at]] - transition.probs[at, i])).T @ own
        curvature[i] = (w[:, None] * own).T @ own
        fitted += float(w @ transition.logs[at, i, path[at]])
    return gradient, curvature, fitted


def bound(change: Array, possible: Mask, gradient: Array, curvature: Array) -> float:
    """Lower bound of the gain of a change δ (K, K, q) of coefficients: g·δ − ½ δᵀBδ, B = ½ (I − 11ᵀ/m) ⊗ Σ γ z zᵀ.

    The negative Hessian of a multinomial logit of m outcomes is bounded by B   (Böhning 1992).
    """
    change = np.where(possible[:, :, None], change, 0.0)
    centered = _centered(change, possible)
    gain = float((gradient * change).sum())
    return gain - 0.25 * float(np.einsum("ijp,ipq,ijq->", centered, curvature, centered))


def step(coefficients: Array, possible: Mask, gradient: Array, curvature: Array, ridge: Array) -> Array:
    """The change (K, K, q) that maximizes the bound less ½ Σ ridge · β²: one small linear system per state.

    Along the mean over targets, which changes no probability, only the ridge acts: it takes the mean to 0.
    """
    beta = np.where(possible[:, :, None], coefficients, 0.0)
    penalized_gradient = np.where(possible[:, :, None], gradient - ridge * beta, 0.0)
    centered, out = _centered(penalized_gradient, possible), np.zeros_like(beta)
    for i in range(len(beta)):
        out[i] = _solved(0.5 * curvature[i] + np.diag(ridge), centered[i].T).T
    mean = beta.sum(axis=1) / possible.sum(axis=1)[:, None]
    out -= np.where(ridge > 0, mean, 0.0)[:, None, :]
    return np.where(possible[:, :, None], out, 0.0)


def _centered(a: Array, possible: Mask) -> Array:
    """Subtract the mean over the possible targets of each state."""
    mean = a.sum(axis=1) / possible.sum(axis=1)[:, None]
    return np.where(possible[:, :, None], a - mean[:, None, :], 0.0)


def _solved(matrix: Array, right: Array) -> Array:
    """Pseudo-inverse solution A⁺ b, scaled to a unit diagonal of A; components in the null space of A are 0."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.pinv(matrix / scale[:, None] / scale, rcond=CUTOFF, hermitian=True)
    return np.asarray((inverse @ (right / scale[:, None])) / scale[:, None])
