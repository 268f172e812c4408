"""Simulated false-alarm rate of a fault monitor under sampling error of the normal model."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from likely.core.arrays import Array
from likely.recognizers.faults.fault_watch import FaultWatch
from likely.recognizers.faults.sensor_dynamics import Chosen, plausible

DISTRIBUTIONS = (
    25  # the true distribution is above the largest of 25 samples once in 26 times; the rest of 5 % is for other errors
)
STREAMS, FRAMES = 20, 500  # per distribution: 10,000 frames, as alarms come in runs and fewer give a noisy rate
ENTRY = 50  # burn-in frames before them


def simulated_alarms(watch: FaultWatch, normal: Chosen, seed: int = 0) -> float:
    """Upper limit (95 %) of the false-alarm rate, where `normal` is known up to its sampling error.

    Distributions are sampled from the posterior of the learned one; the limit is the largest rate among them.
    """
    rng = np.random.default_rng(seed)
    frames = plausible(normal, DISTRIBUTIONS, rng).frames(
        normal.distribution.initial_covariance, STREAMS, ENTRY + 1 + FRAMES, rng
    )
    alarm = odds_of_streams(watch, frames)[ENTRY:] > watch.threshold
    return float(alarm.reshape(FRAMES, DISTRIBUTIONS, STREAMS).mean(axis=(0, 2)).max())


def odds_of_streams(watch: FaultWatch, frames: Iterable[Array]) -> Array:
    """Log-odds of a fault (T − 1, N) in N streams at a time, from complete frames (N, p) in units of training.

    The first frame only predicts the second one. The same as `FaultWatch.update`, stream by stream, but in
    probabilities instead of logarithms, and with offsets only for persistent faults.
    """
    distribution, c, frames_iter = watch.normal, watch.size, iter(frames)
    persistent = np.flatnonzero(watch.memory > 0)
    memory, gain = watch.memory[persistent, None, None], (c / (1 + c))[persistent, None, None]
    out: list[Array] = []
    before = next(frames_iter)
    offsets = np.zeros((len(persistent), *before.shape))
    weights = np.tile(np.exp(watch.initial_belief().log_weights), (len(before), 1))
    with np.errstate(divide="ignore"):  # log 0 for impossible states
        transition = np.exp(watch._transition(np.log(np.eye(weights.shape[1]))))
        for x in frames_iter:
            u, *of_faults = (one.white(before, x) for one in (distribution, *watch.faults))
            squares = np.einsum("np,np->n", u, u)
            deviation, residual = u - offsets, np.tile(squares[:, None], len(c))
            residual[:, persistent] = np.einsum("jnp,jnp->nj", deviation, deviation)
            unknown = -0.5 * distribution.dim * np.log1p(c) - 0.5 * (residual / (1 + c) - squares[:, None])
            known = [0.5 * (squares - (v * v).sum(axis=1)) + distribution._constant - one._constant
                     for one, v in zip(watch.faults, of_faults, strict=True)]  # fmt: skip
            evidence = np.column_stack([np.zeros_like(squares), watch.shares * np.column_stack([unknown, *known])])
            weights = (weights @ transition if out else weights) * np.exp(
                evidence - evidence.max(axis=1, keepdims=True)
            )
            weights /= weights.sum(axis=1, keepdims=True)
            out.append(np.log(weights[:, 1:].sum(axis=1)) - np.log(weights[:, 0]))
            offsets, before = memory * (offsets + gain * deviation), x
    return np.array(out)
