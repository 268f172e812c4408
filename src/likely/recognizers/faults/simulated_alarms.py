"""Share of normal frames in which a monitor would raise alarms if they followed distributions near the learned one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from likely.core.arrays import Array
from likely.recognizers.faults.fault_watch import FaultWatch
from likely.recognizers.faults.sensor_dynamics import Chosen, plausible

DISTRIBUTIONS = (
    25  # the true distribution is above the largest of 25 draws once in 26 times; the rest of 5 % is for other errors
)
STREAMS, FRAMES = 20, 500  # of each distribution: 10,000 frames, as alarms come in runs and a share of fewer scatters
ENTRY = 50  # frames before them, in which the monitor settles


def simulated_alarms(watch: FaultWatch, normal: Chosen, seed: int = 0) -> float:
    """An upper limit (95 %) of the share of normal frames in alarm, where `normal` is known up to its sampling error.

    Distributions are drawn from the posterior distribution of what was learned; the limit is the largest share among
    them.
    """
    rng = np.random.default_rng(seed)
    frames = plausible(normal, DISTRIBUTIONS, rng).frames(normal.distribution.start, STREAMS, ENTRY + 1 + FRAMES, rng)
    alarm = odds_of_streams(watch, frames)[ENTRY:] > watch.threshold
    return float(alarm.reshape(FRAMES, DISTRIBUTIONS, STREAMS).mean(axis=(0, 2)).max())


def odds_of_streams(watch: FaultWatch, frames: Iterable[Array]) -> Array:
    """Log-odds of a fault (T − 1, N) in N streams at a time, from frames (N, p) without gaps in units of training.

    The first frame is only what the second one is predicted from. The same as `FaultWatch.update`, stream by stream,
    but by probabilities instead of their logarithms, and with offsets for the distributions that keep one only.
    """
    distribution, c, later = watch.normal, watch.size, iter(frames)
    lasting = np.flatnonzero(watch.memory > 0)
    memory, gain = watch.memory[lasting, None, None], (c / (1 + c))[lasting, None, None]
    out: list[Array] = []
    before = next(later)
    offsets = np.zeros((len(lasting), *before.shape))
    weights = np.tile(np.exp(watch.initial_belief().log_weights), (len(before), 1))
    with np.errstate(divide="ignore"):  # log 0: what has no probability
        moves = np.exp(watch._moved(np.log(np.eye(weights.shape[1]))))
        for x in later:
            u, *of_faults = (one.white(before, x) for one in (distribution, *watch.faults))
            squares = np.einsum("np,np->n", u, u)
            away, left = u - offsets, np.tile(squares[:, None], len(c))
            left[:, lasting] = np.einsum("jnp,jnp->nj", away, away)
            pushed = -0.5 * distribution.dim * np.log1p(c) - 0.5 * (left / (1 + c) - squares[:, None])
            known = [0.5 * (squares - (v * v).sum(axis=1)) + distribution._constant - one._constant
                     for one, v in zip(watch.faults, of_faults, strict=True)]  # fmt: skip
            evidence = np.column_stack([np.zeros_like(squares), watch.shares * np.column_stack([pushed, *known])])
            weights = (weights @ moves if out else weights) * np.exp(evidence - evidence.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            out.append(np.log(weights[:, 1:].sum(axis=1)) - np.log(weights[:, 0]))
            offsets, before = memory * (offsets + gain * away), x
    return np.array(out)
