"""A crowd of chains that follows a distribution of signs while its weights are learned: reweighted, chosen anew, swept.

When the weights change by Δ, a chain in state x becomes worth exp(Δ·φ(x)) times as much (sequential Monte Carlo: Del
Moral, Doucet and Jasra 2006). A step after which few chains would carry the crowd is shortened. So hills keep the share
that they should have, though single chains could never cross from one to the other; and as the climb begins with
independent columns, it is itself the annealing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.distributions.binary.annealed_importance_sampling import annealed_draws, resampled, sweep

CARRIED = 0.6  # share of the chains that must still count after a step
SWEEPS = 2  # visits of every column after each step


class Crowd:
    """Chains (n, d) of signs that stand for the distribution with fields and couplings `weights` (d + pairs,)."""

    def __init__(self, weights: Array, states: Array, rng: Generator) -> None:
        self.weights, self.states, self._rng = weights, states, rng
        self._upper = np.triu_indices(states.shape[1], 1)

    @classmethod
    def independent(cls, field: Array, n: int, rng: Generator) -> Crowd:
        """So many chains of columns that do not know each other."""
        d = len(field)
        z = np.where(rng.random((n, d)) < 1.0 / (1.0 + np.exp(-2.0 * field)), 1.0, -1.0)
        return cls(np.concatenate([field, np.zeros(d * (d - 1) // 2)]), z, rng)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.states.shape[1])

    def enlarged(self, n: int) -> Crowd:
        """A crowd of n chains, each a copy that then goes its own way."""
        z = np.ascontiguousarray(self.states[np.arange(n) % len(self.states)])
        return Crowd(self.weights, z, self._rng)

    def matrix(self, weights: Array) -> tuple[Array, Array]:
        """Fields (d,) and couplings as a symmetric matrix (d, d)."""
        J = np.zeros((self.dim, self.dim))
        J[self._upper] = weights[self.dim :]
        return weights[: self.dim], J + J.T

    def moments(self, z: Array) -> Array:
        """Averages of signs and pairs over states (n, d)."""
        return np.concatenate([z.mean(axis=0), (z.T @ z)[self._upper] / len(z)])

    def features(self, z: Array, weights: Array) -> Array:
        """Σ weight · φ of each state (n,)."""
        h, J = self.matrix(weights)
        return np.asarray(z @ h + 0.5 * np.einsum("nd,nd->n", z @ J, z))

    def curvature(self, z: Array) -> Callable[[Array], Array]:
        """The product of the covariance of all φ over states (n, d) with a vector; the matrix is never formed."""

        def times(v: Array) -> Array:
            f = self.features(z, v)
            f -= f.mean()
            return np.concatenate([f @ z, ((z * f[:, None]).T @ z)[self._upper]]) / len(z)

        return times

    def follow(self, change: Array) -> tuple[float, float]:
        """Change the weights, by less than asked where too few chains could follow.

        How much of the change was made, and by how much log Z grew: the mean of what chains became worth.
        """
        gain = self.features(self.states, change)
        top = float(gain.max())
        gain -= top
        part = 1.0
        while (share := np.exp(part * gain)).sum() ** 2 < CARRIED * len(gain) * (share @ share):
            part *= 0.7
        self.weights = self.weights + part * change
        self.states = np.ascontiguousarray(self.states[resampled(share / share.sum(), len(share), self._rng)])
        self.sweep(SWEEPS)
        return part, part * top + float(np.log(share.mean()))

    def anew(self) -> None:
        """Replace the chains by newly annealed ones: chains that only follow a frozen distribution lose modes."""
        b = np.concatenate([[0.0], self.weights])
        self.states = annealed_draws(b, self.dim, len(self.states), self._rng)

    def sweep(self, times: int) -> None:
        """Visit every column of all chains."""
        h, J = self.matrix(self.weights)
        couple = self.states @ J
        for _ in range(times):
            sweep(self.states, couple, h, 1.0, J, self._rng)

    def several(self, times: int) -> Array:
        """States of so many sweeps, one below the other (times · n, d)."""
        found = []
        for _ in range(times):
            self.sweep(1)
            found.append(self.states.copy())
        return np.concatenate(found)


def solved(times: Callable[[Array], Array], right: Array, scale: Array, rounds: int, small: float) -> Array:
    """x with A x ≈ right by conjugate gradients, `times` the product with A, `scale` about its diagonal."""
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
