"""State inference in an HMM with covariates: Viterbi and k-best paths, smoothing, filtering, sampling, live belief."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, FRAMES, Driven
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.hmm.decoding import PassedOver, Path, tell_of_passed
from likely.hmm.driven import driven_forward_backward as recursions
from likely.hmm.driven.driven_pieces import DrivenData
from likely.hmm.hmm import _one_frame


def over_blocks(data: DrivenData, fill: Callable[[int, int], None]) -> None:
    """fill(a, b) for all blocks of sequences, on all cores."""

    def one(edges: tuple[int, int]) -> None:
        with np.errstate(all="ignore"):
            fill(*edges)

    with one_blas_thread():
        for _ in ordered_map(one, data.blocks(), cores()):
            pass


def log_probs(data: DrivenData) -> Array:
    """log p(x | u) of each sequence (n,)."""
    out = np.empty(len(data.driven.frames))

    def fill(a: int, b: int) -> None:
        if data.is_cut(a, b):
            out[a] = recursions.scaled_or_log(
                lambda method: sum(passed.log_prob[0] for _, passed in data.forwards(a, method))
            )
        else:
            part = data.block(a, b)
            out[a:b] = recursions.filtered(data.model.initial, part.transition, part.logs, part.seqs.offsets)[1]

    over_blocks(data, fill)
    return out


def smoothed(data: DrivenData) -> tuple[Array, Array]:
    """Smoothed probabilities p(s_t | x, u) of every frame (T, K), and log p(x | u) of each sequence (n,)."""
    out, total = np.empty((len(data.driven.covariates), data.model.states)), np.empty(len(data.driven.frames))
    passed: list[PassedOver] = []

    def fill(a: int, b: int) -> None:
        at = slice(data.offsets[a], data.offsets[b])
        if data.is_cut(a, b):
            total[a] = recursions.scaled_or_log(lambda method: _smooth_long(data, a, method, out[at]))
        else:
            part = data.block(a, b)
            result = recursions.smoothed(data.model.initial, part.transition, part.logs, part.seqs.offsets)
            out[at], total[a:b] = result.states, result.log_prob
        passed.extend(_skip_impossible(data, a, total[a:b], None, out))

    over_blocks(data, fill)
    tell_of_passed(passed, "DrivenHMM.posterior")
    return out, total


def _smooth_long(data: DrivenData, i: int, method: recursions.Pass, out: Array) -> float:
    total, z = 0.0, len(out)
    for _, result in data.smoothed(i, method):
        a = z - len(result.states)
        out[a:z], z = result.states, a
        total += float(result.log_prob[0])
    return total


def lagged(data: DrivenData, lag: int) -> Array:
    """Fixed-lag smoothing p(s_t | x_1 … x_{t + lag}, u) of every frame (T, K); a lag of 0 is filtering."""
    out, passed = np.empty((len(data.driven.covariates), data.model.states)), list[PassedOver]()

    def fill(a: int, b: int) -> None:
        at = slice(data.offsets[a], data.offsets[b])
        if data.is_cut(a, b):
            total = np.array([recursions.scaled_or_log(lambda method: _lag_long(data, a, method, lag, out[at]))])
        else:
            total = _lag_whole(data, a, b, lag, out[at])
        passed.extend(_skip_impossible(data, a, total, lag, out))

    over_blocks(data, fill)
    tell_of_passed(passed, "DrivenHMM.posterior")
    return out


def _lag_whole(data: DrivenData, a: int, b: int, lag: int, out: Array) -> Array:
    part, initial = data.block(a, b), data.model.initial
    if lag == 0:
        result, total = recursions.filtered(initial, part.transition, part.logs, part.seqs.offsets)
        out[:] = np.exp(result)
        return total
    passed = recursions.LogPass(initial, part.transition, part.logs, part.seqs.offsets)
    out[:] = recursions.lagged(passed, part.transition, part.logs, part.seqs.offsets, lag)
    return passed.log_prob


def _lag_long(data: DrivenData, i: int, method: recursions.Pass, lag: int, out: Array) -> float:
    """Fixed-lag smoothing piece by piece, each with the next `lag` frames."""
    total, T = 0.0, len(out)
    for (a, z), (_, passed) in zip(
        data.pieces(i), data.forwards(i, recursions.LogPass if lag else method), strict=True
    ):  # fmt: skip
        total += float(passed.log_prob[0])
        if lag == 0:
            out[a:z] = passed.filter
            continue
        more = data.piece(i, a, min(z + lag, T))
        out[a:z] = recursions.lagged(passed, more.transition, more.logs, more.seqs.offsets, lag)
    return total


def _skip_impossible(data: DrivenData, before: int, log_prob: Array, lag: int | None, out: Array) -> list[PassedOver]:
    """Posteriors of impossible sequences, written to out (T, K): impossible frames are treated as missing."""
    passed = []
    for i in (before + np.flatnonzero(np.isneginf(log_prob))).tolist():
        at = slice(data.offsets[i], data.offsets[i + 1])
        out[at], over = _skipping_posterior(data, i, lag)
        passed.append(over)
    return passed


def _skipping_posterior(data: DrivenData, i: int, lag: int | None) -> tuple[Array, PassedOver]:
    """Posterior (T, K) of one sequence with impossible frames treated as missing, as `lk.step` does."""
    part, initial = data.block(i, i + 1), data.model.initial
    logs, T = part.logs.copy(), len(part.logs)
    impossible = np.isneginf(logs).all(axis=1)
    logs[impossible] = 0.0
    frames, end = np.flatnonzero(impossible).tolist(), T
    while True:
        alpha = recursions.filtered(initial, part.transition, logs, np.array([0, T]))[0]
        failures = np.flatnonzero(~np.isfinite(alpha).any(axis=1))
        if not len(failures):
            break
        if int(failures[0]) in frames:  # not even a missing frame can follow
            end = int(failures[0])
            break
        logs[failures[0]] = 0.0
        frames.append(int(failures[0]))
    out, transition, logs, cut = (
        np.zeros((T, len(initial))),
        part.transition.at(np.arange(end)),
        logs[:end],
        np.array([0, end]),
    )
    if end and lag is None:
        out[:end] = recursions.smoothed(initial, transition, logs, cut).states
    elif end and lag:
        out[:end] = recursions.lagged(recursions.LogPass(initial, transition, logs, cut), transition, logs, cut, lag)
    elif end:
        out[:end] = np.exp(alpha[:end])
    return out, PassedOver(i, sorted(t for t in frames if t < end), False, None if end == T else end)


def refuse_impossible(log_prob: Array, before: int) -> None:
    """Raise for a sequence of probability 0: its states are not defined."""
    if np.isneginf(log_prob).any():
        place = f"sequence {before + int(np.isneginf(log_prob).argmax())} is impossible under the model"
        raise DataError(
            sentence("DrivenHMM", "a sequence must have positive probability for its states to be sampled", place)
        )


def best_paths(data: DrivenData) -> tuple[Index, Array]:
    """Viterbi path of every sequence (T,), and its joint log-probability with the observations (n,)."""
    states, score = np.empty(len(data.driven.covariates), dtype=np.intp), np.empty(len(data.driven.frames))

    def fill(a: int, b: int) -> None:
        at = slice(data.offsets[a], data.offsets[b])
        if data.is_cut(a, b):
            states[at], score[a] = long_path(data, a)
        else:
            part = data.block(a, b)
            states[at], score[a:b] = recursions.best_paths(
                data.model.initial, part.transition, part.logs, part.seqs.offsets
            )

    over_blocks(data, fill)
    return states, score


def long_path(data: DrivenData, i: int, unobserved: bool = False) -> tuple[Index, float]:
    """Viterbi path of one long sequence: only backpointers are stored."""
    from likely.hmm._loops import path_recursions
    from likely.hmm._loops import time_varying_recursions as driven

    T, delta = int(data.driven.frames.lengths[i]), np.log(data.model.initial)
    backpointers, path = np.empty((T, data.model.states), np.int16), np.empty(T, dtype=np.intp)
    for a, z in data.pieces(i):
        part = data.piece(i, a, z, unobserved)
        driven.advance(delta, a == 0, part.transition.logs, part.logs, backpointers[a:z])
    last = int(delta.argmax())
    path_recursions.backtrack(backpointers, np.array([0, T]), np.array([last]), path)
    return path, float(delta[last])


def k_best(data: DrivenData, k: int) -> list[Path]:
    """The k most probable paths of one sequence, best first; fewer where fewer are possible."""
    from likely.hmm._loops import time_varying_recursions as driven

    K, T = data.model.states, int(data.driven.frames.lengths[0])
    delta, (backpointers, ranks) = np.full((K, k), -np.inf), np.zeros((2, T, K, k), dtype=np.int32)
    with np.errstate(all="ignore"):
        delta[:, 0] = np.log(data.model.initial)
        for a, z in data.pieces(0):
            part = data.piece(0, a, z)
            driven.advance_k_best(delta, a == 0, part.transition.logs, part.logs, backpointers[a:z], ranks[a:z])
    order = np.argsort(-delta, axis=None, kind="stable")[:k]
    result = [(int(at // k), int(at % k)) for at in order if np.isfinite(delta.flat[at])]
    return [Path(_backtracked(backpointers, ranks, *at), float(delta[at])) for at in result]


def _backtracked(backpointers: Index, ranks: Index, state: int, rank: int) -> Index:
    path = np.empty(len(backpointers), dtype=np.intp)
    for t in range(len(backpointers) - 1, -1, -1):
        path[t] = state
        state, rank = int(backpointers[t, state, rank]), int(ranks[t, state, rank])
    return path


def sample_states(data: DrivenData, rng: Generator) -> Index:
    """Forward filtering, backward sampling: one state path per sequence, concatenated (T,), from p(s | x, u)."""
    T = len(data.driven.covariates)
    out, uniform = np.empty(T, dtype=np.intp), rng.random(T)

    def fill(a: int, b: int) -> None:
        at = slice(data.offsets[a], data.offsets[b])
        if data.is_cut(a, b):
            out[at] = recursions.scaled_or_log(lambda method: _sample_long(data, a, method, uniform[at]))
            return
        part = data.block(a, b)
        result, total = recursions.filtered(data.model.initial, part.transition, part.logs, part.seqs.offsets)
        refuse_impossible(total, a)
        out[at] = recursions.sample_paths(result, part.transition, part.seqs.offsets, uniform[at])

    over_blocks(data, fill)
    return out


def _sample_long(data: DrivenData, i: int, method: recursions.Pass, uniform: Array) -> Index:
    """Backward sampling, last piece first: the first state of the piece after is then known."""
    path, z, after = np.empty(len(uniform), dtype=np.intp), len(uniform), None
    for part, passed in data.backwards(i, method):
        refuse_impossible(passed.log_prob, i)
        a = z - len(part.logs)
        path[a:z] = recursions.sample_paths(passed.log_filter, part.transition, part.seqs.offsets, uniform[a:z], after)
        after, z = part.transition.logs[0, :, path[a]], a
    return path


def last_filter(data: DrivenData) -> Array:
    """Filtered probabilities p(s_T | x, u) (K,) at the end of one sequence."""

    def run(method: recursions.Pass) -> Array | None:
        for _, passed in data.forwards(0, method):
            if np.isneginf(passed.log_prob[0]):
                return None
        return np.asarray(passed.filter[-1])

    with np.errstate(all="ignore"):
        result = recursions.scaled_or_log(run)
        if result is None:
            probs, over = _skipping_posterior(data, 0, 0)
            tell_of_passed([over], "DrivenHMM.forecast")
            return np.asarray(probs[-1])
        return np.asarray(result)


# ------------------------------------------------------------------------ live


@dataclass(frozen=True, eq=False)
class Belief(Value):
    """Belief state of an HMM with covariates: state probabilities, and whether a transition is `due`.

    A transition is due until its covariates are known.

    >>> Belief(np.array([0.5, 0.5])).due
    False
    """

    probs: Annotated[Array, declared.numbers("K", 0)]  # (K,)
    due: bool = False


def predicted(model: Any, belief: Belief, covariates: Any) -> Belief:
    """Prediction step: the belief after the transition that was due, given the covariates (p,) of its target frame."""
    if not belief.due:
        return belief
    u = np.asarray(covariates, dtype=np.float64).reshape(1, -1)
    return Belief.trusted(probs=belief.probs @ model.transition(u)[0], due=False)


def updated(model: Any, belief: Belief, frame: Any) -> tuple[Belief, float]:
    """Update step: the belief given a frame, and log p(frame | all before); an impossible frame leaves it unchanged."""
    row = frame if isinstance(frame, Columns) else _one_frame(frame, model.dim)
    with np.errstate(divide="ignore"):
        joint = np.log(belief.probs) + model.emission.log_prob(row)[0]
    top = float(joint.max())
    if np.isneginf(top):
        return belief, top
    probs = np.exp(joint - top)
    return Belief.trusted(probs=probs / probs.sum(), due=False), top + float(np.log(probs.sum()))


def observation(y: Any, p: int) -> tuple[Any, Any]:
    """A frame and the covariates (p,) of the transition into it: a pair, or a row of Columns (a dict) with both."""
    if isinstance(y, Columns | dict) and {FRAMES, COVARIATES} <= set(y):
        if isinstance(y, Columns) and len(y) != 1:
            raise ShapeError(sentence("DrivenHMM", "an observation is one row", f"{len(y)} rows", "take x[t : t + 1]"))
        return y[FRAMES], y[COVARIATES]
    if isinstance(y, tuple) and len(y) == 2:
        return y
    expected = 'an observation is a pair (frame, covariates), or Columns of "frames" and "covariates"'
    remedy = "lk.step(model, belief, (x, u))" + (", u with one number" if p == 1 else f", u with {p} numbers")
    raise DataError(sentence("DrivenHMM", expected, type(y).__name__, remedy))


def whole_lag(lag: Any) -> int:
    """Validate a lag as a number of frames; covariates in its place get their own message."""
    if isinstance(lag, int | np.integer) and not isinstance(lag, bool) and lag >= 0:
        return int(lag)
    if np.ndim(lag) or isinstance(lag, Ragged | Columns | list):
        expected, remedy = "the second argument is the lag", "pass covariates by name: covariates=u"
        raise ShapeError(sentence("DrivenHMM.posterior", expected, type(lag).__name__, remedy))
    raise DomainError(sentence("DrivenHMM.posterior", "lag must be a whole number of frames, not negative", lag))


def one_of(driven: Driven, doing: str) -> None:
    """Require a single sequence with at least one frame."""
    if len(driven.frames) != 1 or not len(driven.covariates):
        expected = "one sequence with at least one frame is needed"
        raise DataError(sentence(f"DrivenHMM.{doing}", expected, repr(driven.frames)))
