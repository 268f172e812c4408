"""Persistent Gibbs chains that follow an Ising model during its fit: reweighted, resampled, swept.

When the weights change by Δ, a chain in state x gets the importance weight exp(Δ·φ(x)) (sequential Monte Carlo: Del
Moral, Doucet and Jasra 2006). A step after which the effective sample size would be small is shortened. So modes keep
their probabilities, though single chains never cross between them; and as the fit starts from
independent columns, it is itself an annealing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.distributions.binary.annealed_importance_sampling import annealed_draws, resampled, sweep

CARRIED = 0.6  # minimum effective sample size after a step, as a fraction of the chains
SWEEPS = 2  # Gibbs sweeps after each step


class PersistentChains:
    """Chains (n, d) of spins that represent the model with fields and couplings `weights` (d + pairs,)."""

    def __init__(self, weights: Array, states: Array, rng: Generator) -> None:
        self.weights, self.states, self._rng = weights, states, rng
        self._upper = np.triu_indices(states.shape[1], 1)

    @classmethod
    def independent(cls, field: Array, n: int, rng: Generator) -> PersistentChains:
        """n chains of independent spins."""
        d = len(field)
        z = np.where(rng.random((n, d)) < 1.0 / (1.0 + np.exp(-2.0 * field)), 1.0, -1.0)
        return cls(np.concatenate([field, np.zeros(d * (d - 1) // 2)]), z, rng)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.states.shape[1])

    def enlarged(self, n: int) -> PersistentChains:
        """n chains: copies that then evolve independently."""
        z = np.ascontiguousarray(self.states[np.arange(n) % len(self.states)])
        return PersistentChains(self.weights, z, self._rng)

    def matrix(self, weights: Array) -> tuple[Array, Array]:
        """Fields (d,) and couplings as a symmetric matrix (d, d)."""
        J = np.zeros((self.dim, self.dim))
        J[self._upper] = weights[self.dim :]
        return weights[: self.dim], J + J.T

    def moments(self, z: Array) -> Array:
        """Means of spins and of products of pairs over states (n, d)."""
        return np.concatenate([z.mean(axis=0), (z.T @ z)[self._upper] / len(z)])

    def features(self, z: Array, weights: Array) -> Array:
        """Σ weight · φ of each state (n,)."""
        h, J = self.matrix(weights)
        return np.asarray(z @ h + 0.5 * np.einsum("nd,nd->n", z @ J, z))

    def curvature(self, z: Array) -> Callable[[Array], Array]:
        """Covariance of all φ over states (n, d) as a matrix-vector product; the matrix is never formed."""

        def times(v: Array) -> Array:
            f = self.features(z, v)
            f -= f.mean()
            return np.concatenate([f @ z, ((z * f[:, None]).T @ z)[self._upper]]) / len(z)

        return times

    def follow(self, change: Array) -> tuple[float, float]:
        """Change the weights, by a fraction where the effective sample size would be too small.

        Returns the fraction made, and the change of log Z, estimated from the mean importance weight.
        """
        gain = self.features(self.states, change)
        top = float(gain.max())
        gain -= top
        part = 1.0
        while (weight := np.exp(part * gain)).sum() ** 2 < CARRIED * len(gain) * (weight @ weight):
            part *= 0.7
        self.weights = self.weights + part * change
        self.states = np.ascontiguousarray(self.states[resampled(weight / weight.sum(), len(weight), self._rng)])
        self.sweep(SWEEPS)
        return part, part * top + float(np.log(weight.mean()))

    def reanneal(self) -> None:
        """Replace the chains by newly annealed ones: persistent chains of a frozen distribution lose modes."""
        b = np.concatenate([[0.0], self.weights])
        self.states = annealed_draws(b, self.dim, len(self.states), self._rng)

    def sweep(self, times: int) -> None:
        """Gibbs sweeps over every spin of all chains."""
        h, J = self.matrix(self.weights)
        local_field = self.states @ J
        for _ in range(times):
            sweep(self.states, local_field, h, 1.0, J, self._rng)

    def states_after_sweeps(self, times: int) -> Array:
        """States after each of `times` sweeps, concatenated (times · n, d)."""
        found = []
        for _ in range(times):
            self.sweep(1)
            found.append(self.states.copy())
        return np.concatenate(found)


def solved(times: Callable[[Array], Array], right: Array, scale: Array, rounds: int, small: float) -> Array:
    """Conjugate gradients for A x ≈ right, with `times` the product with A and `scale` about its diagonal."""
    x, rest = np.zeros_like(right), right.copy()
    step = rest / scale
    first = size = float(rest @ step)
    for _ in range(rounds):
        if size <= small**2 * first or size <= 0.0:
            break
        product = times(step)
        length = size / float(step @ product)
        x += length * step
        rest -= length * product
        size, before = float(rest @ (rest / scale)), size
        step = rest / scale + (size / before) * step
    return x
