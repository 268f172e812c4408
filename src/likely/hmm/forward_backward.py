"""Forward–backward algorithm for many sequences at once: scaled, with a fallback in logarithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.engine import cores, ordered_map
from likely.hmm.markov_chain import Arcs

STRETCH = 2**15  # frames that one core exponentiates at a time


class Posterior(NamedTuple):
    """Expected states and transitions of the E-step, weighted, and the log-likelihood of each sequence."""

    states: Array  # (T, K): γ_t(k) = p(s_t = k | x) times the weight of the sequence
    initial: Array  # (K,): expected first states
    transition: Array  # (K, K): Σ_t ξ_t(j, k), expected transitions between frames
    final: Array  # (K,): expected last states
    log_prob: Array  # (n,): log p(x)


def log_likelihoods(chains: list[Arcs], logs: Array, offsets: Index) -> Array:
    """log p(x) of n sequences under C chains (n, C), from the scores log b (T, C·K), which are overwritten."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)  # read-only ones would be a second signature of the loops
    C, K, T = len(chains), len(chains[0].initial), len(logs)
    each = [np.stack(part) for part in zip(*[(w.initial, w.transition, w.final, w.entry) for w in chains], strict=True)]
    log_max, scale = np.empty((2, T, C))
    termination, in_range = np.empty((len(offsets) - 1, C)), np.empty((len(offsets) - 1, C), dtype=np.bool_)
    scores = logs.copy()
    loops.shift(logs, log_max, K)
    loops.likelihoods(*each, np.exp(logs, out=logs), offsets, scale, termination, in_range)
    out = np.log(termination) + _summed(np.log(scale) + log_max, offsets)
    for c in np.flatnonzero(~in_range.all(axis=0)):
        failed = np.flatnonzero(~in_range[:, c])
        frames, cut = _frames_of(failed, offsets)
        out[failed, c] = _log_forward(chains[c].logs, np.ascontiguousarray(scores[frames, c * K : (c + 1) * K]), cut)[2]
    empty = np.diff(offsets) == 0
    out[empty] = [w.logs.empty for w in chains] if empty.any() else 0.0
    return out


def posterior(chain: Arcs, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """Forward–backward algorithm on the scores log b (T, K) of all frames; impossible sequences get weight 0."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets, weight = np.array(offsets), np.array(weight)
    T, K = logs.shape
    n = len(offsets) - 1
    log_max, shifted = np.empty((T, 1)), logs.copy()
    loops.shift(shifted, log_max, K)
    b = np.exp(shifted, out=shifted)
    alpha, gamma, b_beta = np.empty((3, T, K))
    scale, termination, in_range, underflow = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    loops.forward(
        chain.initial, chain.transition, chain.final, chain.entry, b, offsets, alpha, scale, termination, in_range,
        underflow,
    )  # fmt: skip
    transposed = np.ascontiguousarray(chain.transition.T)
    loops.backward(transposed, chain.final, b, offsets, weight, alpha, scale, termination, in_range, gamma, b_beta)
    failed = np.flatnonzero(~in_range)
    frames = None
    if len(failed):
        frames, cut = _frames_of(failed, offsets)
        alpha[frames], gamma[frames], b_beta[frames], scale[frames], log_max[frames] = 0.0, 0.0, 0.0, 1.0, 0.0
        termination[failed] = 1.0
    total = np.log(termination) + _summed(np.log(scale) + log_max[:, 0], offsets)
    first = offsets[:-1][np.diff(offsets) > 0]
    b_beta[first] = 0.0
    transition = expected_transitions(chain.transition, alpha, b_beta)
    if frames is not None:
        exact = log_posterior(chain, logs[frames], cut, weight[failed])
        gamma[frames], transition, total[failed] = exact.states, transition + exact.transition, exact.log_prob
    _set_empty(total, chain, offsets)
    return Posterior(gamma, *_first_and_last(gamma, transition, offsets), total)


def smoothed(chain: Arcs, logs: Array, offsets: Index, gamma: Array, rescore: Callable[[], Array]) -> Array:
    """log p(x) (n,) and p(s_t | x) of every frame, written to gamma (T, K): no ξ, so it needs less memory.

    The scores are overwritten; where logarithms are needed, `rescore` computes them again.
    """
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)
    n, T = len(offsets) - 1, len(logs)
    log_max, b = np.empty((T, 1)), logs
    _exponentiate(b, log_max)
    scale, termination, in_range, underflow = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    loops.forward(
        chain.initial, chain.transition, chain.final, chain.entry, b, offsets, gamma, scale, termination, in_range,
        underflow,
    )  # fmt: skip
    loops.smooth(np.ascontiguousarray(chain.transition.T), chain.final, b, offsets, scale, termination, in_range, gamma)
    total = np.log(termination) + _summed(np.log(scale) + log_max[:, 0], offsets)
    failed = np.flatnonzero(~in_range)
    if len(failed):
        frames, cut = _frames_of(failed, offsets)
        exact = log_posterior(chain, rescore()[frames], cut, np.ones(len(failed)))
        gamma[frames], total[failed] = exact.states, exact.log_prob
    _set_empty(total, chain, offsets)
    return np.asarray(total)


def _exponentiate(b: Array, log_max: Array) -> None:
    """Replace b by exp(b − log_max), the largest of each frame at 1; a long sequence on all cores."""
    from likely.hmm._loops import scaled_recursions as loops

    def fill(a: int) -> None:
        at = slice(a, a + STRETCH)
        loops.shift(b[at], log_max[at], b.shape[1])
        with np.errstate(all="ignore"):
            np.exp(b[at], out=b[at])

    for _ in ordered_map(fill, range(0, len(b), STRETCH), cores()):
        pass


def expected_transitions(transition: Array, alpha: Array, b_beta: Array) -> Array:
    """Σ_t ξ_t (K, K) from alpha and b_beta: sparse where few transitions are possible, else a product of matrices."""
    from likely.hmm._loops import scaled_recursions as loops

    out = np.empty_like(transition)
    return (
        out
        if loops.sparse_transition_counts(transition, alpha, b_beta, out)
        else np.multiply(transition, alpha[:-1].T @ b_beta[1:], out=out)
    )


def log_posterior(chain: Arcs, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """Forward–backward algorithm in logarithms: the reference of the scaled one, and its fallback."""
    from likely.hmm._loops import log_recursions as loops

    offsets, weight = np.array(offsets), np.array(weight)
    log_arcs, logs = chain.logs, np.array(logs, order="C")
    alpha, _, total = _log_forward(log_arcs, logs, offsets)
    beta, gamma, transition = np.empty_like(logs), np.empty_like(logs), np.zeros_like(chain.transition)
    loops.backward(log_arcs.transition, log_arcs.final, logs, offsets, beta)
    loops.expected_counts(log_arcs.transition, logs, offsets, alpha, beta, total, weight, gamma, transition)
    _set_empty(total, chain, offsets)
    return Posterior(gamma, *_first_and_last(gamma, transition, offsets), total)


def filtered(chain: Arcs, logs: Array, offsets: Index) -> tuple[Array, Array]:
    """Filtered probabilities p(s_t | x_1 … x_t) (T, K), and the increments log p(x_t | x_1 … x_{t−1}) (T,)."""
    from likely.hmm._loops import scaled_recursions as loops

    offsets = np.array(offsets)
    T, K = logs.shape
    n = len(offsets) - 1
    log_max, b, alpha = np.empty((T, 1)), logs.copy(), np.empty((T, K))
    loops.shift(b, log_max, K)
    scale, termination, in_range, underflow = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    any_final = np.ones(K)
    loops.forward(
        chain.initial, chain.transition, any_final, chain.entry, np.exp(b), offsets, alpha, scale, termination,
        in_range, underflow,
    )  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        increments = np.log(scale) + log_max[:, 0]
        for i in np.flatnonzero(~in_range):
            a, z = offsets[i], offsets[i + 1]
            alpha[a:z], increments[a:z] = _log_filtered(chain.logs, logs[a:z].copy())
    return alpha, increments


def forward_logs(log_arcs: Arcs, logs: Array) -> tuple[Array, Array]:
    """log α_t of one sequence (T, K), less the cumulative sum of the second result (T,); scores are overwritten."""
    return _log_forward(log_arcs, logs, np.array([0, len(logs)]))[:2]


def _log_filtered(log_arcs: Arcs, logs: Array) -> tuple[Array, Array]:
    alpha, scale = forward_logs(log_arcs, logs)
    total = np.log(np.exp(alpha).sum(axis=1))  # of each frame the largest is 0
    return np.exp(alpha - total[:, None]), scale + np.diff(total, prepend=0.0)


def _log_forward(log_arcs: Arcs, logs: Array, offsets: Index) -> tuple[Array, Array, Array]:
    """Forward recursion in logarithms; each frame of the scores is shifted so that its maximum is 0."""
    from likely.hmm._loops import log_recursions as loops

    alpha, scale, total = np.empty_like(logs), np.empty(len(logs)), np.empty(len(offsets) - 1)
    loops.forward(log_arcs.initial, log_arcs.transition, log_arcs.final, logs, offsets, alpha, scale, total)
    return alpha, scale, total


def apply_known_states(logs: Array, known: Any) -> Array:
    """Set scores (T, K) to −inf where a state is excluded: known states (T,), −1 if unknown, or log-masks (T, K)."""
    if known is None:
        return logs
    if known.ndim == 2:
        logs += known
        return logs
    at = np.flatnonzero(known >= 0)
    scores = logs[at, known[at]]
    logs[at] = -np.inf
    logs[at, known[at]] = scores
    return logs


def all_known(known: Any) -> bool:
    """True if the state of every frame is known."""
    if known is None:
        return False
    return bool((known >= 0).all() if known.ndim == 1 else (np.isfinite(known).sum(axis=1) == 1).all())


def expected_log(probs: Array, logs: Array) -> float:
    """Σ p · log q over the entries with p > 0."""
    value = float(probs.ravel() @ logs.ravel())
    return value if np.isfinite(value) else float(np.vdot(probs, np.where(probs > 0, logs, 0.0)))


def _first_and_last(gamma: Array, transition: Array, offsets: Index) -> tuple[Array, Array, Array]:
    nonempty = np.diff(offsets) > 0
    return gamma[offsets[:-1][nonempty]].sum(axis=0), transition, gamma[offsets[1:][nonempty] - 1].sum(axis=0)


def _set_empty(total: Array, chain: Arcs, offsets: Index) -> None:
    """Sequences without a frame have the probability of passing from entry to exit at once."""
    empty = np.diff(offsets) == 0
    if empty.any():
        with np.errstate(divide="ignore"):
            total[empty] = np.log(chain.empty)


def _summed(each: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence."""
    if len(offsets) == 2:
        return each.sum(axis=0, keepdims=True)
    nonempty = np.diff(offsets) > 0
    out = np.zeros((len(offsets) - 1, *each.shape[1:]))
    if nonempty.any():
        out[nonempty] = np.add.reduceat(each, offsets[:-1][nonempty], axis=0)
    return out


def _frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """Indices of the frames of some sequences, and the offset of each among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut
