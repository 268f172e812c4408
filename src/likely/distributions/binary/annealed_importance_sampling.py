"""The constant of signs that like or dislike each other: chains meet the couplings step by step and keep count.

Annealed importance sampling (Neal 2001) is unbiased for Z whatever the number of steps; steps and chains only make its
error small, and the error is estimated from the chains themselves. Where the distribution has more hills than the
chains found, the estimate is too small, and so is its error: against that there are chains with several beginnings,
which must agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.engine import one_blas_thread
from likely.core.warnings import tell
from likely.distributions.binary.sign_products import pair_matrix, split_sizes

CHAINS, TEMPERATURES, SWEEPS = 400, 100, 20  # sweeps after the last temperature for draws
FEWEST, WIDE = 10, 3.0  # temperatures: so few at least; all of them where couplings spread log p by so much
GOOD, APART = 0.05, 2.0  # an error of log Z that is small; standard errors by which two runs may differ
WORK = 60_000_000  # chains × temperatures × columns that it may take, begun with so many chains
PLAIN = 0.2  # nats: an error of log Z that is told
SEED = 2001  # of every annealing: the same statistics give the same bits


class Annealed(NamedTuple):
    """log Z with its standard error, the last states of the chains (n, d) of signs, and what each is worth (n,)."""

    log_z: float
    error: float
    states: Array
    share: Array


def annealed_enough(
    weights: Array, d: int, rng: Generator, start: Array | None = None, chains: int = CHAINS
) -> Annealed:  # fmt: skip
    """log Z from chains of several beginnings, twice as many and twice as slow until they agree or work ends.

    Chains begin even, with the distribution's own fields, and with fields `start`: whichever hill one of them misses,
    the others are not likely to miss. Fewer `chains` to begin with also end sooner: that is a rough answer with a
    larger error.
    """
    n, steps, work = chains, temperatures(weights, d), WORK * (chains / CHAINS) ** 2
    begins = [np.zeros(d), None] + ([] if start is None else [start])
    while True:
        found = [annealed(weights, d, n, rng, start=one, steps=steps) for one in begins]
        both, agree = _joined(found)
        if (agree and both.error <= GOOD) or 4 * len(begins) * n * steps * d > work:
            return both
        n, steps = 2 * n, 2 * steps


def _joined(found: list[Annealed]) -> tuple[Annealed, bool]:
    """All runs as one, and whether they agree.

    Runs that agree are averaged, all alike: a run that missed something looks more certain than it is. Where they do
    not agree, one has missed a hill: the largest is nearest, as what is missed can only make Z look small, and half of
    what they differ by is the error.
    """
    z, error = np.array([one.log_z for one in found]), np.array([one.error for one in found])
    top = int(z.argmax())
    ratio = np.exp(z - z[top])
    share = np.concatenate([r * one.share for r, one in zip(ratio, found, strict=True)]) / ratio.sum()
    states = np.concatenate([one.states for one in found])
    if (z[top] - z <= APART * np.hypot(error, error[top])).all():
        spread = float(np.linalg.norm(ratio * error) / ratio.sum())
        return Annealed(float(z[top] + np.log(ratio.mean())), spread, states, share), True
    return Annealed(float(z[top]), max(float(error[top]), 0.5 * float(z[top] - z.min())), states, share), False


def tell_of_error(error: float) -> None:
    """Say so where log Z, and so every log p, may be off by more than a fifth of a nat."""
    if error > PLAIN:
        text = f"log Z is known to ±{error:.2g} nats only, and so is every log p"
        tell(f"LogLinear: {text}: couplings are strong; comparisons of rows are not touched")


def temperatures(weights: Array, d: int) -> int:
    """How many steps couplings ask for: few where they hardly spread log p and are too weak to make a second hill.

    √Σ J² is their spread of log p over even cells; hills part where the largest eigenvalue of J comes to 1.
    """
    upper = pair_matrix(weights[d + 1 :], d)
    need = max(float(np.linalg.norm(upper)) / WIDE, float(np.linalg.eigvalsh(upper + upper.T)[-1]))
    return int(np.clip(np.ceil(TEMPERATURES * need), FEWEST, TEMPERATURES))


def annealed(
    weights: Array, d: int, n: int, rng: Generator, sweeps: int = 0, start: Array | None = None,
    steps: int | None = None,
) -> Annealed:  # fmt: skip
    """log Z of fields and couplings from n chains.

    Each begins with independent columns of fields `start` (d,), meets the couplings in `steps` temperatures, and
    keeps count of what each step is worth; the mean of the counts is unbiased for Z, and its logarithm is jackknifed.
    """
    steps = temperatures(weights, d) if steps is None else steps
    _, h, c = split_sizes(weights, d, 2)
    upper = pair_matrix(c, d)
    J = upper + upper.T
    alone = np.clip(h if start is None else start, -2.0, 2.0)
    z = np.where(rng.random((n, d)) < 1.0 / (1.0 + np.exp(-2.0 * alone)), 1.0, -1.0)
    strength = np.full(n, float(np.logaddexp(alone, -alone).sum()))
    with one_blas_thread():
        couple = z @ J
        for t in range(steps):
            strength += (0.5 * np.einsum("nd,nd->n", couple, z) + z @ (h - alone)) / steps
            beta = (t + 1.0) / steps
            sweep(z, couple, (1 - beta) * alone + beta * h, beta, J, rng)
        for _ in range(sweeps):
            sweep(z, couple, h, 1.0, J, rng)
    top = strength.max()
    share = np.exp(strength - top)
    error = float(share.std(ddof=1) / share.mean() / np.sqrt(n)) if n > 1 else float("inf")
    return Annealed(float(top + _log_mean(share)), error, z, share / share.sum())


def annealed_draws(weights: Array, d: int, n: int, rng: Generator) -> Array:
    """Signs (n, d): annealed chains, chosen by what each is worth, then swept.

    Without the choice a chain would keep the hill on which it happened to cool, however little that hill holds.
    """
    m = max(n, CHAINS)
    found, _ = _joined([annealed(weights, d, m, rng, start=one) for one in (np.zeros(d), None)])
    z = np.ascontiguousarray(found.states[resampled(found.share, n, rng)])
    _, h, c = split_sizes(weights, d, 2)
    J = pair_matrix(c, d)
    J = J + J.T
    couple = z @ J
    for _ in range(SWEEPS):
        sweep(z, couple, h, 1.0, J, rng)
    return z


def resampled(share: Array, n: int, rng: Generator) -> Array:
    """n numbers of chains, each as often as its share says (systematically), in random order."""
    edges = np.cumsum(share)
    at = np.searchsorted(edges, (np.arange(n) + rng.random()) / n * edges[-1], side="right")
    return rng.permutation(np.minimum(at, len(share) - 1))


def _log_mean(share: Array) -> float:
    """log of the mean, without the bias that a logarithm has (jackknife)."""
    n, plain = len(share), float(np.log(share.mean()))
    rest = (share.sum() - share) / max(n - 1, 1)
    if n < 2 or not (rest > 1e-3 * share.mean()).all():  # one chain is all: nothing is known of the bias
        return plain
    return n * plain - (n - 1) * float(np.log(rest).mean())


def sweep(z: Array, couple: Array, h: Array, beta: float, J: Array, rng: Generator) -> None:
    """One visit of every column by Gibbs' sampler, all chains side by side, in place."""
    from likely.distributions.binary._loops import sweep_signs

    u = rng.random(z.shape)
    u += 2.0**-60  # never 0, and no other number changes that could be seen
    chance = np.log(u / (1.0 - u))
    sweep_signs(z, couple, np.ascontiguousarray(h), float(beta), J, chance)
