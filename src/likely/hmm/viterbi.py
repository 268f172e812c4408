"""Paths of states: the best ones for what was seen, and ones drawn from a chain; and frames emitted along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.hmm.markov_chain import Chain, Ways

FOREVER = 10**7  # frames after which a drawn sequence that has not ended is given up


class BestPaths(NamedTuple):
    """The best path of each of several sequences."""

    states: Index  # (T,)
    log_prob: Array  # (n,)

    def counted(self, offsets: Index, weight: Array, K: int) -> tuple[Array, Array, Array]:
        """First states (K,), moves (K, K) and last states (K,) in weight."""
        there = np.diff(offsets) > 0
        first, last, w = offsets[:-1][there], offsets[1:][there] - 1, weight[there]
        inside = np.ones(len(self.states), dtype=bool)
        inside[first] = False
        at = np.flatnonzero(inside)
        each = np.repeat(weight, np.diff(offsets))[at]
        pairs = self.states[at - 1] * K + self.states[at]
        transition = np.bincount(pairs, each, K * K).reshape(K, K).astype(np.float64)
        initial = np.bincount(self.states[first], w, K).astype(np.float64)
        return initial, transition, np.bincount(self.states[last], w, K).astype(np.float64)


def best_paths(way: Ways, logs: Array, offsets: Index) -> BestPaths:
    """Viterbi's algorithm on the scores (T, K) of all frames, which are used up; `way` is in logarithms."""
    from likely.hmm._loops import path_recursions as loops

    offsets = np.array(offsets)
    n = len(offsets) - 1
    path, last, score = np.empty(len(logs), dtype=np.intp), np.empty(n, dtype=np.intp), np.empty(n)
    loops.viterbi(way.initial, way.transition, way.final, logs, offsets, last, score)
    loops.retrace(np.ascontiguousarray(way.transition.T), logs, offsets, last, path)
    score[np.diff(offsets) == 0] = way.empty
    return BestPaths(path, score)


def drawn_paths(chain: Chain, n: int, rng: Generator, length: Any = None) -> Ragged:
    """n paths of a chain: until it leaves, or of given lengths, then from p(path | length)."""
    if length is not None:
        return _of_length(chain.summed, np.broadcast_to(np.asarray(length, dtype=np.intp), (n,)), rng)
    if chain.final is None:
        remedy = "say how long: sample(n, rng, length=100)"
        raise DomainError(sentence("HMM.sample", "a chain without ends never stops", "no length", remedy))
    return _until_the_end(chain.summed, n, rng)


def _of_length(way: Ways, lengths: Index, rng: Generator) -> Ragged:
    """Filtering forwards as if nothing were seen, then drawing backwards."""
    from likely.hmm.forward_backward import log_likelihoods

    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    flat = np.zeros((int(offsets[-1]), len(way.initial)))
    with np.errstate(all="ignore"):
        impossible = np.isneginf(log_likelihoods([way], flat.copy(), offsets)[:, 0])
    if impossible.any():
        bad = int(lengths[impossible.argmax()])
        raise DomainError(sentence("HMM.sample", "the chain must be able to make sequences of that length", bad))
    return Ragged.trusted(values=path_draws(way, flat, offsets, rng), offsets=offsets)


def path_draws(way: Ways, logs: Array, offsets: Index, rng: Generator) -> Index:
    """A path of each sequence from p(s | x) (T,), given the scores (T, K) of its frames: filter, then draw backwards.

    Where numbers left their range, it is drawn by logarithms: what the past found most unlikely, the future may prove.
    """
    from likely.hmm._loops import path_recursions as paths
    from likely.hmm._loops import scaled_recursions

    offsets = np.array(offsets)
    (T, K), n = logs.shape, len(offsets) - 1
    b, top, alpha, path = logs.copy(), np.empty((T, 1)), np.empty((T, K)), np.empty(T, dtype=np.intp)
    scale, finish, sound, lost = np.empty(T), np.empty(n), np.empty(n, dtype=np.bool_), np.zeros(n)
    uniform = np.asarray(rng.random(T))
    with np.errstate(all="ignore"):
        scaled_recursions.shift(b, top, K)
        np.exp(b, out=b)
        scaled_recursions.forward(
            way.initial, way.transition, way.final, way.entry, b, offsets, alpha, scale, finish, sound, lost
        )
        paths.draw(way.transition, way.final, alpha, offsets, uniform, path, sound)
        for a, z in zip(offsets[:-1][~sound], offsets[1:][~sound], strict=True):
            path[a:z] = _drawn_by_logs(way.logs, logs[a:z].copy(), uniform[a:z])
    return path


def _drawn_by_logs(way: Ways, logs: Array, uniform: Array) -> Index:
    """The same for one sequence in logarithms; the scores are used up."""
    from likely.hmm._loops import path_recursions as paths
    from likely.hmm.forward_backward import forward_logs

    T = len(logs)
    alpha, _ = forward_logs(way, logs)
    path, sound = np.empty(T, dtype=np.intp), np.empty(1, dtype=np.bool_)
    paths.draw_by_logs(way.transition, way.final, alpha, np.array([0, T]), uniform, path, sound)
    if not sound[0]:
        raise DataError(sentence("HMM", "paths are drawn for sequences that can be", "one that is impossible"))
    return path


def _until_the_end(way: Ways, n: int, rng: Generator) -> Ragged:
    """All sequences a step at a time, until the last of them has left."""
    K = len(way.initial)
    on = np.cumsum(np.concatenate([way.transition, way.final[:, None]], axis=1), axis=1)
    begin = np.cumsum(np.append(way.initial, way.empty))
    state = _chosen(np.broadcast_to(begin, (n, K + 1)), rng.random(n))
    alive, steps = np.arange(n), []
    while True:
        going = state < K
        alive, state = alive[going], state[going]
        if not len(alive):
            break
        steps.append((alive, state))
        if len(steps) > FOREVER:
            remedy = "say how long: sample(n, rng, length=100)"
            raise DomainError(sentence("HMM.sample", "sequences must come to an end", f"{FOREVER} frames", remedy))
        state = _chosen(on[state], rng.random(len(state)))
    whose = np.concatenate([np.empty(0, np.intp), *(a for a, _ in steps)])
    what = np.concatenate([np.empty(0, np.intp), *(s for _, s in steps)])
    order = np.argsort(whose, kind="stable")
    lengths = np.bincount(whose, minlength=n)
    return Ragged(what[order], np.concatenate([[0], np.cumsum(lengths)]))


def _chosen(sums: Array, u: Array) -> Index:
    """The place of u among rising sums, row by row."""
    return np.minimum((u[:, None] * sums[:, -1:] >= sums).sum(axis=1), sums.shape[1] - 1)


def emitted(emission: Any, paths: Ragged, rng: Generator) -> Ragged:
    """A frame for every state of every path."""
    order = np.argsort(paths.values, kind="stable")
    counts = np.bincount(paths.values, minlength=emission.members)
    draws = [emission.member(k).sample(int(c), rng) for k, c in enumerate(counts) if c]
    values = _end_to_end(draws) if draws else emission.member(0).sample(0, rng)
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    return Ragged(values[back], paths.offsets)


def _end_to_end(draws: list[Any]) -> Any:
    if isinstance(draws[0], Columns):
        return Columns({name: _end_to_end([d[name] for d in draws]) for name in draws[0]})
    return np.concatenate(draws)
