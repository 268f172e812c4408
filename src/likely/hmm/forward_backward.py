"""All paths through states over the frames of many sequences at once: what is likely, given all that was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.engine import cores, ordered_map
from likely.hmm.markov_chain import Ways

STRETCH = 2**15  # frames that a core exponentiates at a time


class Posterior(NamedTuple):
    """What is expected of the hidden states, in weight, and how probable each sequence is."""

    states: Array  # (T, K): p(s_t | x) times the weight of the sequence
    initial: Array  # (K,): expected first states
    transition: Array  # (K, K): expected moves from frame to frame
    final: Array  # (K,): expected last states
    log_prob: Array  # (n,): log p(x)


def log_likelihoods(chains: list[Ways], logs: Array, offsets: Index) -> Array:
    """log p(x) of n sequences under C chains (n, C) from the scores (T, C·K) of their states, which are used up."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)  # read-only ones would be a second signature of the loops
    C, K, T = len(chains), len(chains[0].initial), len(logs)
    each = [np.stack(part) for part in zip(*[(w.initial, w.transition, w.final, w.entry) for w in chains], strict=True)]
    top, scale = np.empty((2, T, C))
    finish, sound = np.empty((len(offsets) - 1, C)), np.empty((len(offsets) - 1, C), dtype=np.bool_)
    kept = logs.copy()
    loops.shift(logs, top, K)
    loops.likelihoods(*each, np.exp(logs, out=logs), offsets, scale, finish, sound)
    out = np.log(finish) + _summed(np.log(scale) + top, offsets)
    for c in np.flatnonzero(~sound.all(axis=0)):
        bad = np.flatnonzero(~sound[:, c])
        frames, cut = _frames_of(bad, offsets)
        out[bad, c] = _by_logs(chains[c].logs, np.ascontiguousarray(kept[frames, c * K : (c + 1) * K]), cut)[2]
    none = np.diff(offsets) == 0
    out[none] = [w.logs.empty for w in chains] if none.any() else 0.0
    return out


def posterior(chain: Ways, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """The forward–backward algorithm on the scores (T, K) of all frames; sequences that cannot be have weight 0."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets, weight = np.array(offsets), np.array(weight)
    T, K = logs.shape
    n = len(offsets) - 1
    top, shifted = np.empty((T, 1)), logs.copy()
    loops.shift(shifted, top, K)
    b = np.exp(shifted, out=shifted)
    alpha, gamma, ahead = np.empty((3, T, K))
    scale, finish, sound, lost = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    loops.forward(
        chain.initial, chain.transition, chain.final, chain.entry, b, offsets, alpha, scale, finish, sound, lost
    )
    back = np.ascontiguousarray(chain.transition.T)
    loops.backward(back, chain.final, b, offsets, weight, alpha, scale, finish, sound, gamma, ahead)
    bad = np.flatnonzero(~sound)
    frames = None
    if len(bad):
        frames, cut = _frames_of(bad, offsets)
        alpha[frames], gamma[frames], ahead[frames], scale[frames], top[frames] = 0.0, 0.0, 0.0, 1.0, 0.0
        finish[bad] = 1.0
    total = np.log(finish) + _summed(np.log(scale) + top[:, 0], offsets)
    first = offsets[:-1][np.diff(offsets) > 0]
    ahead[first] = 0.0
    transition = moves_between(chain.transition, alpha, ahead)
    if frames is not None:
        own = posterior_by_logs(chain, logs[frames], cut, weight[bad])
        gamma[frames], transition, total[bad] = own.states, transition + own.transition, own.log_prob
    _mark_empty(total, chain, offsets)
    return Posterior(gamma, *_ends_of(gamma, transition, offsets), total)


def smoothed(chain: Ways, logs: Array, offsets: Index, shares: Array, again: Callable[[], Array]) -> Array:
    """log p(x) (n,); into shares (T, K) goes p(s_t | x) of every frame. Without the moves between, in less memory.

    The scores are used up; where logarithms are needed, `again` gives them once more.
    """
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)
    n, T = len(offsets) - 1, len(logs)
    top, b = np.empty((T, 1)), logs
    _exponentiated(b, top)
    scale, finish, sound, lost = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    loops.forward(
        chain.initial, chain.transition, chain.final, chain.entry, b, offsets, shares, scale, finish, sound, lost
    )
    loops.smooth(np.ascontiguousarray(chain.transition.T), chain.final, b, offsets, scale, finish, sound, shares)
    total = np.log(finish) + _summed(np.log(scale) + top[:, 0], offsets)
    bad = np.flatnonzero(~sound)
    if len(bad):
        frames, cut = _frames_of(bad, offsets)
        own = posterior_by_logs(chain, again()[frames], cut, np.ones(len(bad)))
        shares[frames], total[bad] = own.states, own.log_prob
    _mark_empty(total, chain, offsets)
    return np.asarray(total)


def _exponentiated(b: Array, top: Array) -> None:
    """b becomes exp(b − top), the largest of each frame 1; a long sequence on all cores."""
    from likely.hmm._loops import scaled_recursions as loops

    def fill(a: int) -> None:
        at = slice(a, a + STRETCH)
        loops.shift(b[at], top[at], b.shape[1])
        with np.errstate(all="ignore"):
            np.exp(b[at], out=b[at])

    for _ in ordered_map(fill, range(0, len(b), STRETCH), cores()):
        pass


def moves_between(transition: Array, alpha: Array, ahead: Array) -> Array:
    """Expected moves (K, K) from what `forward` and `backward` leave: along arcs if they are few, else as a product."""
    from likely.hmm._loops import scaled_recursions as loops

    out = np.empty_like(transition)
    return (
        out
        if loops.between(transition, alpha, ahead, out)
        else np.multiply(transition, alpha[:-1].T @ ahead[1:], out=out)
    )


def posterior_by_logs(chain: Ways, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """The same in logarithms throughout: what the fast way is checked by, and falls back on."""
    from likely.hmm._loops import log_recursions as loops

    offsets, weight = np.array(offsets), np.array(weight)
    way, logs = chain.logs, np.array(logs, order="C")
    alpha, _, total = _by_logs(way, logs, offsets)
    beta, gamma, transition = np.empty_like(logs), np.empty_like(logs), np.zeros_like(chain.transition)
    loops.backward(way.transition, way.final, logs, offsets, beta)
    loops.moved(way.transition, logs, offsets, alpha, beta, total, weight, gamma, transition)
    _mark_empty(total, chain, offsets)
    return Posterior(gamma, *_ends_of(gamma, transition, offsets), total)


def filtered(chain: Ways, logs: Array, offsets: Index) -> tuple[Array, Array]:
    """p(s_t | x_1 … x_t) of each frame (T, K), and log p(x_t | x_1 … x_{t−1}) (T,)."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)
    T, K = logs.shape
    n = len(offsets) - 1
    top, b, alpha = np.empty((T, 1)), logs.copy(), np.empty((T, K))
    loops.shift(b, top, K)
    scale, finish, sound, lost = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    free = np.ones(K)
    loops.forward(
        chain.initial, chain.transition, free, chain.entry, np.exp(b), offsets, alpha, scale, finish, sound, lost
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        news = np.log(scale) + top[:, 0]
        for i in np.flatnonzero(~sound):
            a, z = offsets[i], offsets[i + 1]
            alpha[a:z], news[a:z] = _filtered_by_logs(chain.logs, logs[a:z].copy())
    return alpha, news


def forward_logs(way: Ways, logs: Array) -> tuple[Array, Array]:
    """log p(x_1 … x_t, s_t) of one sequence (T, K), less the sum of (T,) up to t; the scores are used up."""
    return _by_logs(way, logs, np.array([0, len(logs)]))[:2]


def _filtered_by_logs(way: Ways, logs: Array) -> tuple[Array, Array]:
    alpha, scale = forward_logs(way, logs)
    total = np.log(np.exp(alpha).sum(axis=1))  # of each frame the largest is 0
    return np.exp(alpha - total[:, None]), scale + np.diff(total, prepend=0.0)


def _by_logs(way: Ways, logs: Array, offsets: Index) -> tuple[Array, Array, Array]:
    """The forward pass in logarithms: each frame of the scores comes out less its largest."""
    from likely.hmm._loops import log_recursions as loops

    alpha, scale, total = np.empty_like(logs), np.empty(len(logs)), np.empty(len(offsets) - 1)
    loops.forward(way.initial, way.transition, way.final, logs, offsets, alpha, scale, total)
    return alpha, scale, total


def with_known(logs: Array, known: Any) -> Array:
    """Scores (T, K), in place, −inf where a state cannot be: known (T,) are states, −1 for none; or log-masks."""
    if known is None:
        return logs
    if known.ndim == 2:
        logs += known
        return logs
    at = np.flatnonzero(known >= 0)
    kept = logs[at, known[at]]
    logs[at] = -np.inf
    logs[at, known[at]] = kept
    return logs


def all_known(known: Any) -> bool:
    """True if the state of every frame is known."""
    if known is None:
        return False
    return bool((known >= 0).all() if known.ndim == 1 else (np.isfinite(known).sum(axis=1) == 1).all())


def expected(shares: Array, logs: Array) -> float:
    """Σ share · log over what has a share."""
    value = float(shares.ravel() @ logs.ravel())
    return value if np.isfinite(value) else float(np.vdot(shares, np.where(shares > 0, logs, 0.0)))


def _ends_of(gamma: Array, transition: Array, offsets: Index) -> tuple[Array, Array, Array]:
    there = np.diff(offsets) > 0
    return gamma[offsets[:-1][there]].sum(axis=0), transition, gamma[offsets[1:][there] - 1].sum(axis=0)


def _mark_empty(total: Array, chain: Ways, offsets: Index) -> None:
    """Sequences without a frame have the probability of leaving at once."""
    none = np.diff(offsets) == 0
    if none.any():
        with np.errstate(divide="ignore"):
            total[none] = np.log(chain.empty)


def _summed(each: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence."""
    if len(offsets) == 2:
        return each.sum(axis=0, keepdims=True)
    there = np.diff(offsets) > 0
    out = np.zeros((len(offsets) - 1, *each.shape[1:]))
    if there.any():
        out[there] = np.add.reduceat(each, offsets[:-1][there], axis=0)
    return out


def _frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """The frames of some sequences, and where each of those begins among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut
