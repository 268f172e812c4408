"""Sampling from truncated expansions: ancestral sampling if positive, else importance resampling and Gibbs moves.

Marginalizing an expansion over a column drops the sets that contain it, so the conditional of a column given those
before it is a ratio of two short sums. Where nothing is negative, that is exact. Where some cells are negative, the
ratios are not those of the positive part, whose marginals are unknown. But its value in any cell is known: rows are
proposed column by column, resampled in proportion to (positive part)/(proposal probability), and then moved
by a Gibbs sampler, which leaves the positive part invariant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.warnings import tell
from likely.distributions.binary.annealed_importance_sampling import resampled
from likely.distributions.binary.sign_products import CHUNK, expanded, pair_matrix, products, sets_of, split_sizes

TINY = 1e-300  # weight below which a prefix is impossible
FLOOR = 0.02  # mixture weight of independent columns in each proposal, so that every cell can be proposed
PROPOSALS, SWEEPS = 4000, 10  # minimum number of proposals; Gibbs sweeps after resampling
FEW = 50.0  # effective sample size below which there is a warning


class Proposed(NamedTuple):
    """Columns as they enter the products (n, d), which of them are 1 (n, d), and the log proposal probability."""

    z: Array
    ones: Array
    log_chance: Array


def drawn_rows(each: Array, probs: Array, d: int, order: int, n: int, rng: Generator, positive: bool) -> Array:
    """Rows (n, d) of 0 and 1 from the positive part of Π base(x) · Σ_S c_S Π z; `positive`: everywhere."""
    if positive:
        return _proposed(each, probs, d, order, n, rng, 0.0).ones
    found = _proposed(each, probs, d, order, max(PROPOSALS, 2 * n), rng, FLOOR)
    importance = _importance(found, each, probs, order)
    _tell_of_few(importance)
    at = resampled(importance, n, rng)
    return _moved(found.z[at], found.ones[at], each, probs, order, rng)


def _ends(probs: Array) -> tuple[Array, Array]:
    """The standardized values of a 1 and of a 0 in each column (d,)."""
    return np.sqrt((1 - probs) / probs), -np.sqrt(probs / (1 - probs))


def _proposed(each: Array, probs: Array, d: int, order: int, n: int, rng: Generator, floor: float) -> Proposed:
    """Rows drawn column by column, negative values as 0, mixed with a share `floor` of independent columns."""
    parts, sets = split_sizes(each, d, order), sets_of(d, order)
    (high, low), log_chance = _ends(probs), np.zeros(n)
    z, x, weight = np.zeros((n, d)), np.zeros((n, d)), np.full(n, parts[0][0])
    for j in range(d):
        more = np.zeros(n)
        for s, c in zip(sets, parts[1:], strict=True):
            mine = np.flatnonzero(s[:, -1] == j)
            if len(mine):
                more += (products(z, s[mine, :-1]) if s.shape[1] > 1 else np.ones((n, 1))) @ c[mine]
        one = probs[j] * np.maximum(weight + more * high[j], 0.0)
        zero = (1 - probs[j]) * np.maximum(weight + more * low[j], 0.0)
        both = one + zero
        p = np.divide(one, both, out=np.full(n, probs[j]), where=both > TINY)
        p = (1.0 - floor) * p + floor * probs[j]
        x[:, j] = rng.random(n) < p
        log_chance += np.log(np.where(x[:, j] == 1, p, 1.0 - p))
        z[:, j] = np.where(x[:, j] == 1, high[j], low[j])
        weight = np.maximum(weight + more * z[:, j], 0.0)
    return Proposed(z, x, log_chance)


def _importance(found: Proposed, each: Array, probs: Array, order: int) -> Array:
    """Normalized importance weights of the proposed rows (n,)."""
    value = np.maximum(expanded(found.z, each[None], order)[:, 0], 0.0)
    base = found.ones @ np.log(probs) + (1.0 - found.ones) @ np.log1p(-probs)
    with np.errstate(divide="ignore"):
        strength = np.log(value) + base - found.log_chance
    importance = np.exp(strength - strength.max()) if np.isfinite(strength.max()) else np.ones(len(strength))
    return np.asarray(importance / importance.sum())


def _tell_of_few(importance: Array) -> None:
    effective = 1.0 / float((importance**2).sum())
    if effective < FEW:
        text = f"{len(importance):,} proposed rows have an effective sample size of {effective:.0f}: few distinct draws"
        tell(f"truncated expansion: it is negative nearly everywhere; {text}; WalshDensity(log=True) stays positive")


def _moved(z: Array, ones: Array, each: Array, probs: Array, order: int, rng: Generator) -> Array:
    """Gibbs sampler for the positive part: every column given all others, all rows in parallel."""
    high, low = _ends(probs)
    ones, at = ones.copy(), _Pairs(z, each) if order <= 2 else _Sets(z, each, order)
    for _ in range(SWEEPS):
        for j in range(z.shape[1]):
            rest, slope = at.line(j)
            one = probs[j] * np.maximum(rest + slope * high[j], 0.0)
            both = one + (1 - probs[j]) * np.maximum(rest + slope * low[j], 0.0)
            p = np.divide(one, both, out=np.array(ones[:, j]), where=both > TINY)
            ones[:, j] = rng.random(len(z)) < p
            at.turn(j, np.where(ones[:, j] == 1, high[j], low[j]))
    return ones


class _Pairs:
    """c + Σ c_j zⱼ + Σ c_ij zᵢ zⱼ as a linear function of each column, updated with each flip."""

    def __init__(self, z: Array, each: Array) -> None:
        d = z.shape[1]
        parts = split_sizes(each, d, 2 if len(each) > d + 1 else 1)
        upper = pair_matrix(parts[2], d) if len(parts) > 2 else np.zeros((d, d))
        self._z, self._J = z.copy(), upper + upper.T
        self._slope = parts[1] + self._z @ self._J
        self._value = expanded(z, each[None], len(parts) - 1)[:, 0]

    def line(self, j: int) -> tuple[Array, Array]:
        return self._value - self._slope[:, j] * self._z[:, j], self._slope[:, j]

    def turn(self, j: int, new: Array) -> None:
        change = new - self._z[:, j]
        self._value += self._slope[:, j] * change
        self._slope += change[:, None] * self._J[j]
        self._z[:, j] = new


class _Sets:
    """The same for sets of any size: a column's slope is summed again over the sets that contain it."""

    def __init__(self, z: Array, each: Array, order: int) -> None:
        d = z.shape[1]
        self._z, self._value = z.copy(), expanded(z, each[None], order)[:, 0]
        self._sets = [_holding(j, each, d, order) for j in range(d)]
        self._slope = np.zeros(len(z))

    def line(self, j: int) -> tuple[Array, Array]:
        alone, others = self._sets[j]
        self._slope = np.full(len(self._z), alone)
        for rest, c in others:
            step = max(CHUNK // max(len(rest), 1), 1)
            for a in range(0, len(self._z), step):
                self._slope[a : a + step] += products(self._z[a : a + step], rest) @ c
        return self._value - self._slope * self._z[:, j], self._slope

    def turn(self, j: int, new: Array) -> None:
        self._value += self._slope * (new - self._z[:, j])
        self._z[:, j] = new


def _holding(j: int, each: Array, d: int, order: int) -> tuple[float, list[tuple[Index, Array]]]:
    """The coefficient of {j}, and of larger sets with j: their other columns (m, k − 1), and coefficients (m,)."""
    parts, found = split_sizes(each, d, order), []
    for sets, c in zip(sets_of(d, order)[1:], parts[2:], strict=True):
        mine = np.flatnonzero((sets == j).any(axis=1))
        rest = sets[mine][sets[mine] != j].reshape(len(mine), -1)
        found.append((rest, c[mine]))
    return float(parts[1][j]), found
