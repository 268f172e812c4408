"""Sampling of state paths, a priori and given the frames, and of the frames emitted along them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.hmm.forward_backward import LogPass, Pass, ScaledPass, frames_of, log_likelihoods, scaled_or_log
from likely.hmm.logistic_transition import LogisticTransition
from likely.hmm.markov_chain import Arcs, Chain
from likely.hmm.sequence_blocks import SequenceBlocks

MAX_FRAMES = 10**7  # frames after which sampling gives up on a sequence that has not ended


def sample_paths(chain: Chain, n: int, rng: Generator, length: Any = None) -> Ragged:
    """Sample n paths of a chain: until it exits, or of given lengths, from p(path | length)."""
    if length is not None:
        return _sample_of_length(chain.summed, np.broadcast_to(np.asarray(length, dtype=np.intp), (n,)), rng)
    if chain.final is None:
        remedy = "give a length: sample(n, rng, length=100)"
        expected = "a chain without final probabilities never stops: a length is needed"
        raise DomainError(sentence("HMM.sample", expected, "no length", remedy))
    return _sample_until_exit(chain.summed, n, rng)


def _sample_of_length(arcs: Arcs, lengths: Index, rng: Generator) -> Ragged:
    """Forward filtering without observations, then backward sampling."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    no_scores = np.zeros((int(offsets[-1]), len(arcs.initial)))
    with np.errstate(all="ignore"):
        impossible = np.isneginf(log_likelihoods([arcs], no_scores.copy(), offsets)[:, 0])
        if impossible.any():
            bad = int(lengths[impossible.argmax()])
            raise DomainError(sentence("HMM.sample", "sequences of that length must be possible under the chain", bad))
        path = sample_paths_given(arcs, no_scores, offsets, rng.random(len(no_scores)))
    return Ragged.trusted(values=path, offsets=offsets)


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
        if len(steps) > MAX_FRAMES:
            remedy = "give a length: sample(n, rng, length=100)"
            raise DomainError(sentence("HMM.sample", "sequences must come to an end", f"{MAX_FRAMES} frames", remedy))
        state = _categorical_samples(on[state], rng.random(len(state)))
    whose = np.concatenate([np.empty(0, np.intp), *(a for a, _ in steps)])
    what = np.concatenate([np.empty(0, np.intp), *(s for _, s in steps)])
    order = np.argsort(whose, kind="stable")
    lengths = np.bincount(whose, minlength=n)
    return Ragged(what[order], np.concatenate([[0], np.cumsum(lengths)]))


def _categorical_samples(sums: Array, u: Array) -> Index:
    """Sample an index per row by inversion of u, given cumulative sums."""
    return np.minimum((u[:, None] * sums[:, -1:] >= sums).sum(axis=1), sums.shape[1] - 1)


def sample_driven_paths(initial: Array, transition: LogisticTransition, u: Ragged, rng: Generator) -> Ragged:
    """Sample the state paths of all sequences with covariates u step by step."""
    z, lengths = transition.features(u.values, u.offsets), u.lengths
    path = np.empty(len(z), dtype=np.intp)
    state = rng.choice(len(initial), len(u), p=initial / initial.sum())
    for t in range(int(lengths.max(initial=0))):
        alive = np.flatnonzero(lengths > t)
        at = u.offsets[alive] + t
        if t:
            state[alive] = transition.sample(state[alive], z[at], rng.random((len(alive), 1)))
        path[at] = state[alive]
    return Ragged.trusted(values=path, offsets=u.offsets)


# ------------------------------------------------------------ given the frames


def sample_states(data: SequenceBlocks, rng: Generator) -> Index:
    """Forward filtering, backward sampling: one state path per sequence, concatenated (T,), from p(s | x)."""
    T = len(data.frames.values)
    out, uniform = np.empty(T, dtype=np.intp), rng.random(T)

    def fill(a: int, b: int) -> None:
        at = slice(int(data.offsets[a]), int(data.offsets[b]))
        if data.is_cut(a, b):
            out[at] = scaled_or_log(lambda method: _sample_long(data, a, method, uniform[at]))
        else:
            part = data.block(a, b)
            out[at] = sample_paths_given(part.arcs, part.logs, part.seqs.offsets, uniform[at], a)

    data.fill(fill)
    return out


def sample_paths_given(arcs: Arcs, logs: Array, offsets: Index, uniform: Array, before: int = 0) -> Index:
    """One path per sequence from p(s | x) (T,), given the scores (T, K) and uniform numbers (T,).

    Where scaled probabilities underflow, it is sampled in logarithms: a state that is very improbable given the past
    may be required by the future.
    """
    forward = ScaledPass(arcs, logs, offsets)
    path = _backwards(arcs, forward.log_filter, forward.offsets, uniform, None)
    impossible = np.zeros(len(forward.in_range), dtype=bool)
    nonempty = np.flatnonzero(np.diff(forward.offsets) > 0)
    impossible[nonempty] = path[forward.offsets[nonempty]] < 0
    failed = np.flatnonzero(~forward.in_range | impossible)
    if len(failed):
        frames, cut = frames_of(failed, forward.offsets)
        again, part = LogPass(arcs.at(frames), logs[frames], cut), arcs.at(frames)
        _refuse_impossible(again.log_prob, before, failed)
        path[frames] = _backwards(part, again.log_filter, cut, uniform[frames], None)
    return path


def _sample_long(data: SequenceBlocks, i: int, method: Pass, uniform: Array) -> Index:
    """Backward sampling, last piece first: the first state of the piece after is then known."""
    path, z, after = np.empty(len(uniform), dtype=np.intp), len(uniform), None
    for part, forward in data.backwards(i, method):
        _refuse_impossible(forward.log_prob, i, np.zeros(1, dtype=np.intp))
        a = z - len(part.logs)
        path[a:z] = _backwards(part.arcs, forward.log_filter, part.seqs.offsets, uniform[a:z], after)
        after, z = part.arcs.logs.matrices[0][:, path[a]], a
    return path


def _backwards(arcs: Arcs, log_filter: Array, offsets: Index, uniform: Array, after: Array | None) -> Index:
    """Backward sampling; `after` (K,) are the log-probabilities of what follows the last frame, if not the end."""
    from likely.hmm._loops import log_recursions as loops

    path, log_arcs = np.empty(len(log_filter), dtype=np.intp), arcs.logs
    final = log_arcs.final if after is None else np.ascontiguousarray(after)
    loops.backward_sampling(
        log_arcs.matrices, final, log_filter, np.array(offsets), np.ascontiguousarray(uniform), path
    )
    return path


def _refuse_impossible(log_prob: Array, before: int, which: Index) -> None:
    """Raise for a sequence of probability 0: its states are not defined."""
    if np.isneginf(log_prob).any():
        place = f"sequence {before + int(which[np.isneginf(log_prob).argmax()])}, which is impossible under the model"
        raise DataError(sentence("HMM", "states are sampled for sequences of positive probability", place))


# --------------------------------------------------------------------- frames


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
