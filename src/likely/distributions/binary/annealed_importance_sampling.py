"""Annealed importance sampling: the partition function of an Ising model, and draws from it.

Annealed importance sampling (Neal 2001) is unbiased for Z for any number of temperatures; temperatures and chains
only reduce its error, which is estimated from the chains. Where the distribution has modes that no
chain found, the estimate is too small, and so is its error: therefore chains start from several initial
distributions, whose estimates must agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.engine import one_blas_thread
from likely.core.warnings import tell
from likely.distributions.binary.sign_products import pair_matrix, split_sizes

CHAINS, TEMPERATURES, SWEEPS = 400, 100, 20  # sweeps at the last temperature for draws
FEWEST, WIDE = 10, 3.0  # minimum number of temperatures; standard deviation of log p from which all of them are used
GOOD, APART = 0.05, 2.0  # a small error of log Z; standard errors by which two runs may differ
WORK = 60_000_000  # chains × temperatures × columns at most
PLAIN = 0.2  # nats: an error of log Z from which there is a warning
SEED = 2001  # fixed, so that the same statistics give the same result


class Annealed(NamedTuple):
    """log Z with its standard error, the final spins of the chains (n, d), and their importance weights (n,)."""

    log_z: float
    error: float
    states: Array
    weight: Array


def annealed_enough(
    weights: Array, d: int, rng: Generator, start: Array | None = None, chains: int = CHAINS
) -> Annealed:  # fmt: skip
    """log Z from chains with several initial distributions; chains and temperatures double until the runs agree.

    Chains start from uniform spins, from the model's own fields, and from fields `start`: a mode missed by one of them
    is probably found by the others. Fewer initial `chains` also lower the maximum: a rough answer with a
    larger error.
    """
    n, steps, work = chains, temperatures(weights, d), WORK * (chains / CHAINS) ** 2
    begins = [np.zeros(d), None] + ([] if start is None else [start])
    while True:
        found = [annealed(weights, d, n, rng, start=one, steps=steps) for one in begins]
        both, agree = _combined(found)
        if (agree and both.error <= GOOD) or 4 * len(begins) * n * steps * d > work:
            return both
        n, steps = 2 * n, 2 * steps


def _combined(found: list[Annealed]) -> tuple[Annealed, bool]:
    """The combined estimate of all runs, and whether they agree.

    Runs that agree are averaged with equal weights: a run that missed a mode underestimates its own error. Where they
    disagree, one has missed a mode: the largest estimate is taken, as a missed mode makes Z too small, and half of
    the difference is the error.
    """
    z, error = np.array([one.log_z for one in found]), np.array([one.error for one in found])
    top = int(z.argmax())
    ratio = np.exp(z - z[top])
    weight = np.concatenate([r * one.weight for r, one in zip(ratio, found, strict=True)]) / ratio.sum()
    states = np.concatenate([one.states for one in found])
    if (z[top] - z <= APART * np.hypot(error, error[top])).all():
        spread = float(np.linalg.norm(ratio * error) / ratio.sum())
        return Annealed(float(z[top] + np.log(ratio.mean())), spread, states, weight), True
    return Annealed(float(z[top]), max(float(error[top]), 0.5 * float(z[top] - z.min())), states, weight), False


def tell_of_error(error: float) -> None:
    """Warn where log Z, and so every log p, has a standard error above 0.2 nats."""
    if error > PLAIN:
        text = f"log Z, and so every log p, has a standard error of {error:.2g} nats"
        tell(f"LogLinear: {text}: couplings are strong; differences of log p between rows are exact")


def temperatures(weights: Array, d: int) -> int:
    """Number of temperatures: few where couplings are too weak for a second mode.

    √Σ J² is the standard deviation of log p over uniform cells; modes separate where the largest eigenvalue of J is 1.
    """
    upper = pair_matrix(weights[d + 1 :], d)
    need = max(float(np.linalg.norm(upper)) / WIDE, float(np.linalg.eigvalsh(upper + upper.T)[-1]))
    return int(np.clip(np.ceil(TEMPERATURES * need), FEWEST, TEMPERATURES))


def annealed(
    weights: Array, d: int, n: int, rng: Generator, sweeps: int = 0, start: Array | None = None,
    steps: int | None = None,
) -> Annealed:  # fmt: skip
    """log Z of fields and couplings from n annealed chains.

    Each starts from independent spins with fields `start` (d,), is annealed to the model in `steps` temperatures, and
    accumulates its log importance weight; the mean weight is unbiased for Z, and its logarithm is jackknifed.
    """
    steps = temperatures(weights, d) if steps is None else steps
    _, h, c = split_sizes(weights, d, 2)
    upper = pair_matrix(c, d)
    J = upper + upper.T
    initial_field = np.clip(h if start is None else start, -2.0, 2.0)
    z = np.where(rng.random((n, d)) < 1.0 / (1.0 + np.exp(-2.0 * initial_field)), 1.0, -1.0)
    log_weight = np.full(n, float(np.logaddexp(initial_field, -initial_field).sum()))
    with one_blas_thread():
        local_field = z @ J
        for t in range(steps):
            log_weight += (0.5 * np.einsum("nd,nd->n", local_field, z) + z @ (h - initial_field)) / steps
            beta = (t + 1.0) / steps
            sweep(z, local_field, (1 - beta) * initial_field + beta * h, beta, J, rng)
        for _ in range(sweeps):
            sweep(z, local_field, h, 1.0, J, rng)
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    error = float(weight.std(ddof=1) / weight.mean() / np.sqrt(n)) if n > 1 else float("inf")
    return Annealed(float(top + _log_mean(weight)), error, z, weight / weight.sum())


def annealed_draws(weights: Array, d: int, n: int, rng: Generator) -> Array:
    """Draws of spins (n, d): annealed chains, resampled by importance weight, then swept.

    Without resampling a chain would stay in the mode in which it cooled, whatever its probability.
    """
    m = max(n, CHAINS)
    found, _ = _combined([annealed(weights, d, m, rng, start=one) for one in (np.zeros(d), None)])
    z = np.ascontiguousarray(found.states[resampled(found.weight, n, rng)])
    _, h, c = split_sizes(weights, d, 2)
    J = pair_matrix(c, d)
    J = J + J.T
    local_field = z @ J
    for _ in range(SWEEPS):
        sweep(z, local_field, h, 1.0, J, rng)
    return z


def resampled(weight: Array, n: int, rng: Generator) -> Array:
    """Systematic resampling: n indices of chains in proportion to their weights, in random order."""
    edges = np.cumsum(weight)
    at = np.searchsorted(edges, (np.arange(n) + rng.random()) / n * edges[-1], side="right")
    return rng.permutation(np.minimum(at, len(weight) - 1))


def _log_mean(weight: Array) -> float:
    """log of the mean, with jackknife bias correction."""
    n, plain = len(weight), float(np.log(weight.mean()))
    rest = (weight.sum() - weight) / max(n - 1, 1)
    if n < 2 or not (rest > 1e-3 * weight.mean()).all():  # one chain dominates: the bias cannot be estimated
        return plain
    return n * plain - (n - 1) * float(np.log(rest).mean())


def sweep(z: Array, local_field: Array, h: Array, beta: float, J: Array, rng: Generator) -> None:
    """One Gibbs sweep over every spin of all chains, in place."""
    from likely.distributions.binary._loops import gibbs_sweep

    u = rng.random(z.shape)
    u += 2.0**-60  # never 0; other values are unchanged
    logit_u = np.log(u / (1.0 - u))
    gibbs_sweep(z, local_field, np.ascontiguousarray(h), float(beta), J, logit_u)
