"""Draws of a cut expansion: a column at a time while all is positive; else chosen by importance, then moved.

Leaving columns out of an expansion leaves out the sets that hold them, so the distribution of a column given those
before it is a ratio of two short sums. Where nothing is negative, that is exact. Where some cells are negative, the
ratios are not those of the positive part, whose own sums nobody knows. But its value in any cell is known: rows are
proposed a column at a time, each chosen in proportion to (positive part)/(probability of its proposal), and then moved
by Gibbs' sampler, which leaves the positive part as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.warnings import tell
from likely.distributions.binary.annealed_importance_sampling import resampled
from likely.distributions.binary.sign_products import CHUNK, expanded, pair_matrix, products, sets_of, split_sizes

TINY = 1e-300  # weight below which a prefix is one that cannot happen
FLOOR = 0.02  # share of independent columns in each proposal, so that no cell is out of reach
PROPOSALS, SWEEPS = 4000, 10  # rows proposed at least; visits of every column after the choice
FEW = 50.0  # proposals of equal worth below which the draws are told to be doubtful


class Proposed(NamedTuple):
    """Columns as they enter the products (n, d), which of them are 1 (n, d), and log of what each row's proposal is."""

    z: Array
    ones: Array
    log_chance: Array


def drawn_rows(each: Array, probs: Array, d: int, order: int, n: int, rng: Generator, positive: bool) -> Array:
    """Rows (n, d) of 0 and 1 from the positive part of Π base(x) · Σ_S c_S Π z; `positive`: there is no other."""
    if positive:
        return _proposed(each, probs, d, order, n, rng, 0.0).ones
    found = _proposed(each, probs, d, order, max(PROPOSALS, 2 * n), rng, FLOOR)
    share = _importance(found, each, probs, order)
    _tell_of_few(share)
    at = resampled(share, n, rng)
    return _moved(found.z[at], found.ones[at], each, probs, order, rng)


def _ends(probs: Array) -> tuple[Array, Array]:
    """A standardized column where it is 1, and where it is 0 (d,)."""
    return np.sqrt((1 - probs) / probs), -np.sqrt(probs / (1 - probs))


def _proposed(each: Array, probs: Array, d: int, order: int, n: int, rng: Generator, floor: float) -> Proposed:
    """Rows a column at a time, negative as 0, with a share `floor` of independent columns in each step."""
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
    """What each proposed row is worth (n,), adding up to 1."""
    value = np.maximum(expanded(found.z, each[None], order)[:, 0], 0.0)
    base = found.ones @ np.log(probs) + (1.0 - found.ones) @ np.log1p(-probs)
    with np.errstate(divide="ignore"):
        strength = np.log(value) + base - found.log_chance
    share = np.exp(strength - strength.max()) if np.isfinite(strength.max()) else np.ones(len(strength))
    return np.asarray(share / share.sum())


def _tell_of_few(share: Array) -> None:
    effective = 1.0 / float((share**2).sum())
    if effective < FEW:
        text = (
            f"{len(share):,} proposed rows are worth {effective:.0f}: draws of the positive part stem from few of them"
        )
        tell(f"cut expansion: it is negative nearly everywhere; {text}; WalshDensity(log=True) stays positive")


def _moved(z: Array, ones: Array, each: Array, probs: Array, order: int, rng: Generator) -> Array:
    """Gibbs' sampler on the positive part: every column given all others, all rows side by side."""
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
    """c + Σ c_j zⱼ + Σ c_ij zᵢ zⱼ as a line in each column, kept true as columns turn."""

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
    """The same for sets of any size: a column's slope is summed anew over the sets that hold it."""

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
    """The number of the set {j}, and of larger sets with j: their other columns (m, k − 1), and their numbers (m,)."""
    parts, found = split_sizes(each, d, order), []
    for sets, c in zip(sets_of(d, order)[1:], parts[2:], strict=True):
        mine = np.flatnonzero((sets == j).any(axis=1))
        rest = sets[mine][sets[mine] != j].reshape(len(mine), -1)
        found.append((rest, c[mine]))
    return float(parts[1][j]), found
