"""Viterbi paths, and sampling of state paths and of the frames emitted along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.hmm.markov_chain import Arcs, Chain

FOREVER = 10**7  # frames after which sampling gives up on a sequence that has not ended


class BestPaths(NamedTuple):
    """Viterbi path of each of several sequences."""

    states: Index  # (T,)
    log_prob: Array  # (n,)

    def counted(self, offsets: Index, weight: Array, K: int) -> tuple[Array, Array, Array]:
        """Weighted counts of first states (K,), transitions (K, K) and last states (K,)."""
        nonempty = np.diff(offsets) > 0
        first, last, w = offsets[:-1][nonempty], offsets[1:][nonempty] - 1, weight[nonempty]
        inside = np.ones(len(self.states), dtype=bool)
        inside[first] = False
        at = np.flatnonzero(inside)
        each = np.repeat(weight, np.diff(offsets))[at]
        pairs = self.states[at - 1] * K + self.states[at]
        transition = np.bincount(pairs, each, K * K).reshape(K, K).astype(np.float64)
        initial = np.bincount(self.states[first], w, K).astype(np.float64)
        return initial, transition, np.bincount(self.states[last], w, K).astype(np.float64)


def best_paths(log_arcs: Arcs, logs: Array, offsets: Index) -> BestPaths:
    """Viterbi algorithm on the scores log b (T, K) of all frames, which are overwritten; `log_arcs` are logarithms."""
    from likely.hmm._loops import path_recursions as loops

    offsets = np.array(offsets)
    n = len(offsets) - 1
    path, last, score = np.empty(len(logs), dtype=np.intp), np.empty(n, dtype=np.intp), np.empty(n)
    loops.viterbi(log_arcs.initial, log_arcs.transition, log_arcs.final, logs, offsets, last, score)
    loops.backtrack_by_scores(np.ascontiguousarray(log_arcs.transition.T), logs, offsets, last, path)
    score[np.diff(offsets) == 0] = log_arcs.empty
    return BestPaths(path, score)


def sample_paths(chain: Chain, n: int, rng: Generator, length: Any = None) -> Ragged:
    """Sample n paths of a chain: until it exits, or of given lengths, from p(path | length)."""
    if length is not None:
        return _sample_of_length(chain.summed, np.broadcast_to(np.asarray(length, dtype=np.intp), (n,)), rng)
    if chain.final is None:
        remedy = "give a length: sample(n, rng, length=100)"
        raise DomainError(
            sentence(
                "HMM.sample", "a chain without final probabilities never stops: a length is needed", "no length", remedy
            )
        )
    return _sample_until_exit(chain.summed, n, rng)


def _sample_of_length(arcs: Arcs, lengths: Index, rng: Generator) -> Ragged:
    """Forward filtering without observations, then backward sampling."""
    from likely.hmm.forward_backward import log_likelihoods

    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    no_scores = np.zeros((int(offsets[-1]), len(arcs.initial)))
    with np.errstate(all="ignore"):
        impossible = np.isneginf(log_likelihoods([arcs], no_scores.copy(), offsets)[:, 0])
    if impossible.any():
        bad = int(lengths[impossible.argmax()])
        raise DomainError(sentence("HMM.sample", "sequences of that length must be possible under the chain", bad))
    return Ragged.trusted(values=sample_paths_given(arcs, no_scores, offsets, rng), offsets=offsets)


def sample_paths_given(arcs: Arcs, logs: Array, offsets: Index, rng: Generator) -> Index:
    """Forward filtering, backward sampling: one path per sequence from p(s | x) (T,), given the scores (T, K).

    Where scaled probabilities underflow, it is sampled in logarithms: a state that is very improbable given the past
    may be required by the future.
    """
    from likely.hmm._loops import path_recursions as paths
    from likely.hmm._loops import scaled_recursions

    offsets = np.array(offsets)
    (T, K), n = logs.shape, len(offsets) - 1
    b, log_max, alpha, path = logs.copy(), np.empty((T, 1)), np.empty((T, K)), np.empty(T, dtype=np.intp)
    scale, termination, in_range, underflow = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    uniform = np.asarray(rng.random(T))
    with np.errstate(all="ignore"):
        scaled_recursions.shift(b, log_max, K)
        np.exp(b, out=b)
        scaled_recursions.forward(
            arcs.initial, arcs.transition, arcs.final, arcs.entry, b, offsets, alpha, scale, termination, in_range,
            underflow,
        )  # fmt: skip
        paths.backward_sampling(arcs.transition, arcs.final, alpha, offsets, uniform, path, in_range)
        for a, z in zip(offsets[:-1][~in_range], offsets[1:][~in_range], strict=True):
            path[a:z] = _log_sample_given(arcs.logs, logs[a:z].copy(), uniform[a:z])
    return path


def _log_sample_given(arcs: Arcs, logs: Array, uniform: Array) -> Index:
    """Forward filtering, backward sampling of one sequence in logarithms; the scores are overwritten."""
    from likely.hmm._loops import path_recursions as paths
    from likely.hmm.forward_backward import forward_logs

    T = len(logs)
    alpha, _ = forward_logs(arcs, logs)
    path, in_range = np.empty(T, dtype=np.intp), np.empty(1, dtype=np.bool_)
    paths.log_backward_sampling(arcs.transition, arcs.final, alpha, np.array([0, T]), uniform, path, in_range)
    if not in_range[0]:
        raise DataError(sentence("HMM", "paths are sampled for sequences of positive probability", "an impossible one"))
    return path


def _sample_until_exit(arcs: Arcs, n: int, rng: Generator) -> Ragged:
    """Simulate all sequences step by step until each has reached the exit."""
    K = len(arcs.initial)
    on = np.cumsum(np.concatenate([arcs.transition, arcs.final[:, None]], axis=1), axis=1)
    begin = np.cumsum(np.append(arcs.initial, arcs.empty))
    state = _categorical_samples(np.broadcast_to(begin, (n, K + 1)), rng.random(n))
    alive, steps = np.arange(n), []
    while True:
        going = state < K
        alive, state = alive[going], state[going]
        if not len(alive):
            break
        steps.append((alive, state))
        if len(steps) > FOREVER:
            remedy = "give a length: sample(n, rng, length=100)"
            raise DomainError(sentence("HMM.sample", "sequences must come to an end", f"{FOREVER} frames", remedy))
        state = _categorical_samples(on[state], rng.random(len(state)))
    whose = np.concatenate([np.empty(0, np.intp), *(a for a, _ in steps)])
    what = np.concatenate([np.empty(0, np.intp), *(s for _, s in steps)])
    order = np.argsort(whose, kind="stable")
    lengths = np.bincount(whose, minlength=n)
    return Ragged(what[order], np.concatenate([[0], np.cumsum(lengths)]))


def _categorical_samples(sums: Array, u: Array) -> Index:
    """Sample an index per row by inversion of u, given cumulative sums."""
    return np.minimum((u[:, None] * sums[:, -1:] >= sums).sum(axis=1), sums.shape[1] - 1)


def emitted(emission: Any, paths: Ragged, rng: Generator) -> Ragged:
    """Sample one frame for every state of every path."""
    order = np.argsort(paths.values, kind="stable")
    counts = np.bincount(paths.values, minlength=emission.members)
    draws = [emission.member(k).sample(int(c), rng) for k, c in enumerate(counts) if c]
    values = _concatenated(draws) if draws else emission.member(0).sample(0, rng)
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    return Ragged(values[back], paths.offsets)


def _concatenated(draws: list[Any]) -> Any:
    if isinstance(draws[0], Columns):
        return Columns({name: _concatenated([d[name] for d in draws]) for name in draws[0]})
    return np.concatenate(draws)
