"""Pairs of very many binary columns: start with what can be summed exactly, climb by sampling, keep what is proved.

The log-likelihood a row, Σ_S b_S E[φ_S] − log Z, needs of the rows only the averages E[φ_S], so every candidate can be
judged by it: independent columns and a forest (log Z exact), mean-field inversion, and what climbing makes of the best
of them (log Z by annealing). The best one is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.notes import tell
from likely.families.log_walsh_fits import (
    SEED,
    annealed_enough,
    independent,
    of_pairs,
    reliable,
    step_of,
    sweep,
    weights_of_field,
)
from likely.families.sign_sums import pair_matrix

CHAINS, FEWEST = 400, 100  # that climb side by side: fewer where columns are many, as each costs their square
STEPS, FEW, AGAIN = 600, 80, 50  # of climbing; after so many the chains begin anew, lest they stay on one hill
FIRST, LAST = 0.15, 0.02  # what a step takes of the gap between wanted and found
STRONGEST = 12.0  # weight that no step passes
DOUBT = 2.0  # standard errors of log Z that a candidate must be better by


class Candidate(NamedTuple):
    """Weights (M,) with −log Z in front, its standard error, and the wanted log-likelihood a row."""

    weights: Array
    error: float
    value: float


def learnt_pairs(mean: Array, n: float, d: int) -> tuple[Array, float]:
    """Weights (M,) and the standard error of log Z, from averages of signs and pairs of signs in n rows.

    What is wanted are the averages without the correlations that noise alone would show. Never worse, on the rows as
    they are, than independent columns: these are taken, with a warning, if all else fails.
    """
    target, R = reliable(mean, n, d)
    alone = _valued(np.concatenate([independent(mean, d), np.zeros(len(mean) - 1 - d)]), 0.0, target)
    field = np.arctanh(np.clip(mean[1 : d + 1], -1 + 1e-12, 1 - 1e-12))
    support = np.flatnonzero(R[np.triu_indices(d, 1)])
    if not len(support):
        return alone.weights, 0.0
    forest = _valued(_forest(target, R, d), 0.0, target)
    flat = _annealed(weights_of_field(mean[1 : d + 1], R), target, field, d)
    best = _best(alone, forest, flat)
    best = _best(best, _climbed(best.weights, target, support, field, d))
    if best.weights @ mean < alone.weights @ mean - DOUBT * best.error:
        tell("LogWalsh: no couplings were found that explain the rows better than independent columns: order 1 is kept")
        best = alone
    return best.weights, best.error


def _valued(b: Array, error: float, target: Array) -> Candidate:
    return Candidate(b, error, float(b @ target))


def _best(known: Candidate, *others: Candidate) -> Candidate:
    """The highest log-likelihood, where what is uncertain must win by more than its uncertainty."""
    return max((known, *others), key=lambda c: c.value - DOUBT * c.error)


def _annealed(b: Array, target: Array, field: Array, d: int) -> Candidate:
    found = annealed_enough(b, d, np.random.default_rng(SEED), field)
    return _valued(np.concatenate([[-found.log_z], b[1:]]), found.error, target)


def _forest(target: Array, R: Array, d: int) -> Array:
    """The best forest of pairs (Chow and Liu 1968), with its exact −log Z: p(x) = Π p(xᵢ) Π p(xᵢ, xⱼ)/(p(xᵢ) p(xⱼ))."""
    i, j = _spanning(R)
    m = target[1 : d + 1]
    J, field, ones = of_pairs(m, R * np.sqrt(np.outer(1 - m**2, 1 - m**2)))
    h = np.arctanh(np.clip(m, -1 + 1e-15, 1 - 1e-15))
    alone, kept = h.copy(), np.zeros((d, d))
    np.add.at(h, i, field[i, j] - alone[i])
    np.add.at(h, j, field[j, i] - alone[j])
    kept[i, j] = J[i, j]
    p = np.log(0.5 * (1 + m))
    at_ones = p.sum() + (ones[i, j] - p[i] - p[j]).sum()  # log p(1, 1, …), whose signs are all +1
    b = np.concatenate([[0.0], h, kept[np.triu_indices(d, 1)]])
    b[0] = at_ones - b.sum()
    return b


def _spanning(R: Array) -> tuple[Index, Index]:
    """Edges i < j of the forest with the largest correlations that are more than noise."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    upper = np.triu(np.abs(R), 1)
    information = -np.log1p(-np.minimum(upper**2, 1 - 1e-9))
    tree = minimum_spanning_tree(-information).tocoo()
    i, j = np.minimum(tree.row, tree.col), np.maximum(tree.row, tree.col)
    return i.astype(np.intp), j.astype(np.intp)


def _climbed(b: Array, target: Array, support: Index, field: Array, d: int) -> Candidate:
    """Stochastic maximum likelihood (Younes 1989; Tieleman 2008): chains show what the law expects, weights follow.

    Couplings that noise explains stay as they are; steps shrink, and the last half of them is averaged.
    """
    free = np.concatenate([np.arange(1, d + 1), d + 1 + support])
    chains = int(np.clip(CHAINS * 40 / d, FEWEST, CHAINS))
    rng, b, kept = np.random.default_rng(SEED), b.copy(), np.zeros_like(b)
    steps = int(np.clip(STEPS * 30 / d, FEW, STEPS))
    spread = np.maximum(1.0 - target[free] ** 2, 0.02)
    for t in range(steps):
        if t % AGAIN == 0:
            z = step_of(b, d, chains, rng, field)
        J = pair_matrix(b[d + 1 :], d)
        z = _moved(z, b[1 : d + 1], J + J.T, rng)
        found = np.concatenate([[1.0], z.mean(axis=0), (_product(z.T, z) / len(z))[np.triu_indices(d, 1)]])
        rate = FIRST * (LAST / FIRST) ** (t / steps)
        b[free] = np.clip(b[free] + rate * (target - found)[free] / spread, -STRONGEST, STRONGEST)
        kept += b * (t >= steps // 2)
    return _annealed(kept / (steps - steps // 2), target, field, d)


def _moved(z: Array, h: Array, J: Array, rng: np.random.Generator) -> Array:
    sweep(z, _product(z, J), h, 1.0, J, rng)
    return z


def _product(a: Array, b: Array) -> Array:
    """a b without threads: in hundreds of small products they would wait for each other longer than they work."""
    return np.einsum("ij,jk->ik", a, b)
