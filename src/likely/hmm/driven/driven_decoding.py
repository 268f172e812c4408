"""What the hidden states of a driven chain were, are, and will be: best paths, posteriors, filters, draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, FRAMES, Driven
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.hmm.decoding import PassedOver, Path, tell_of_passed
from likely.hmm.driven import driven_forward_backward as trellis
from likely.hmm.driven.driven_pieces import Look
from likely.hmm.hmm import _one_frame


def in_stretches(look: Look, fill: Callable[[int, int], None]) -> None:
    """fill(a, b) for all stretches of sequences, on all cores."""

    def one(edges: tuple[int, int]) -> None:
        with np.errstate(all="ignore"):
            fill(*edges)

    with one_blas_thread():
        for _ in ordered_map(one, look.stretches(), cores()):
            pass


def log_probs(look: Look) -> Array:
    """log p(x | u) of each sequence (n,)."""
    out = np.empty(len(look.driven.frames))

    def fill(a: int, b: int) -> None:
        if look.is_cut(a, b):
            out[a] = trellis.either(lambda way: sum(passed.log_prob[0] for _, passed in look.forwards(a, way)))
        else:
            part = look.whole(a, b)
            out[a:b] = trellis.filtered(look.model.initial, part.transition, part.logs, part.seqs.offsets)[1]

    in_stretches(look, fill)
    return out


def smoothed(look: Look) -> tuple[Array, Array]:
    """p(s_t | x, u) of every frame (T, K), and log p(x | u) of each sequence (n,)."""
    out, total = np.empty((len(look.driven.covariates), look.model.states)), np.empty(len(look.driven.frames))
    passed: list[PassedOver] = []

    def fill(a: int, b: int) -> None:
        at = slice(look.offsets[a], look.offsets[b])
        if look.is_cut(a, b):
            total[a] = trellis.either(lambda way: _smooth_long(look, a, way, out[at]))
        else:
            part = look.whole(a, b)
            found = trellis.smoothed(look.model.initial, part.transition, part.logs, part.seqs.offsets)
            out[at], total[a:b] = found.states, found.log_prob
        passed.extend(_pass_over(look, a, total[a:b], None, out))

    in_stretches(look, fill)
    tell_of_passed(passed, "DrivenHMM.posterior")
    return out, total


def _smooth_long(look: Look, i: int, way: trellis.Way, out: Array) -> float:
    total, z = 0.0, len(out)
    for _, found in look.smoothed(i, way):
        a = z - len(found.states)
        out[a:z], z = found.states, a
        total += float(found.log_prob[0])
    return total


def lagged(look: Look, lag: int) -> Array:
    """p(s_t | x_1 … x_{t + lag}, u) of every frame (T, K); a lag of 0 is the causal filter."""
    out, passed = np.empty((len(look.driven.covariates), look.model.states)), list[PassedOver]()

    def fill(a: int, b: int) -> None:
        at = slice(look.offsets[a], look.offsets[b])
        if look.is_cut(a, b):
            total = np.array([trellis.either(lambda way: _lag_long(look, a, way, lag, out[at]))])
        else:
            total = _lag_whole(look, a, b, lag, out[at])
        passed.extend(_pass_over(look, a, total, lag, out))

    in_stretches(look, fill)
    tell_of_passed(passed, "DrivenHMM.posterior")
    return out


def _lag_whole(look: Look, a: int, b: int, lag: int, out: Array) -> Array:
    part, initial = look.whole(a, b), look.model.initial
    if lag == 0:
        found, total = trellis.filtered(initial, part.transition, part.logs, part.seqs.offsets)
        out[:] = np.exp(found)
        return total
    passed = trellis.Logarithms(initial, part.transition, part.logs, part.seqs.offsets)
    out[:] = trellis.lagged(passed, part.transition, part.logs, part.seqs.offsets, lag)
    return passed.log_prob


def _lag_long(look: Look, i: int, way: trellis.Way, lag: int, out: Array) -> float:
    """Piece by piece, each with the frames after it that may be looked at."""
    total, T = 0.0, len(out)
    for (a, z), (_, passed) in zip(
        look.pieces(i), look.forwards(i, trellis.Logarithms if lag else way), strict=True
    ):  # fmt: skip
        total += float(passed.log_prob[0])
        if lag == 0:
            out[a:z] = passed.filter
            continue
        more = look.piece(i, a, min(z + lag, T))
        out[a:z] = trellis.lagged(passed, more.transition, more.logs, more.seqs.offsets, lag)
    return total


def _pass_over(look: Look, before: int, log_prob: Array, lag: int | None, out: Array) -> list[PassedOver]:
    """Posteriors of sequences that cannot be, into out (T, K): what is impossible counts as not observed."""
    passed = []
    for i in (before + np.flatnonzero(np.isneginf(log_prob))).tolist():
        at = slice(look.offsets[i], look.offsets[i + 1])
        out[at], over = _passing_over(look, i, lag)
        passed.append(over)
    return passed


def _passing_over(look: Look, i: int, lag: int | None) -> tuple[Array, PassedOver]:
    """The posterior (T, K) of one sequence in which frames that cannot be are passed over, as `lk.step` does."""
    part, initial = look.whole(i, i + 1), look.model.initial
    logs, T = part.logs.copy(), len(part.logs)
    odd = np.isneginf(logs).all(axis=1)
    logs[odd] = 0.0
    frames, end = np.flatnonzero(odd).tolist(), T
    while True:
        alpha = trellis.filtered(initial, part.transition, logs, np.array([0, T]))[0]
        stuck = np.flatnonzero(~np.isfinite(alpha).any(axis=1))
        if not len(stuck):
            break
        if int(stuck[0]) in frames:  # not even an unseen frame can follow
            end = int(stuck[0])
            break
        logs[stuck[0]] = 0.0
        frames.append(int(stuck[0]))
    out, transition, logs, cut = (
        np.zeros((T, len(initial))),
        part.transition.at(np.arange(end)),
        logs[:end],
        np.array([0, end]),
    )
    if end and lag is None:
        out[:end] = trellis.smoothed(initial, transition, logs, cut).states
    elif end and lag:
        out[:end] = trellis.lagged(trellis.Logarithms(initial, transition, logs, cut), transition, logs, cut, lag)
    elif end:
        out[:end] = np.exp(alpha[:end])
    return out, PassedOver(i, sorted(t for t in frames if t < end), False, None if end == T else end)


def refuse_impossible(log_prob: Array, before: int) -> None:
    """States of a sequence that cannot be are not defined."""
    if np.isneginf(log_prob).any():
        whose = f"sequence {before + int(np.isneginf(log_prob).argmax())} is impossible under the model"
        raise DataError(sentence("DrivenHMM", "the states of what cannot be are not defined", whose))


def best_paths(look: Look) -> tuple[Index, Array]:
    """The best path of every sequence (T,), and its joint log-probability with what was seen (n,)."""
    states, score = np.empty(len(look.driven.covariates), dtype=np.intp), np.empty(len(look.driven.frames))

    def fill(a: int, b: int) -> None:
        at = slice(look.offsets[a], look.offsets[b])
        if look.is_cut(a, b):
            states[at], score[a] = long_path(look, a)
        else:
            part = look.whole(a, b)
            states[at], score[a:b] = trellis.best_paths(
                look.model.initial, part.transition, part.logs, part.seqs.offsets
            )

    in_stretches(look, fill)
    return states, score


def long_path(look: Look, i: int, free: bool = False) -> tuple[Index, float]:
    """The best path of one long sequence: only where paths came from is kept."""
    from likely.hmm._loops import path_recursions
    from likely.hmm._loops import time_varying_recursions as driven

    T, best = int(look.driven.frames.lengths[i]), np.log(look.model.initial)
    came, path = np.empty((T, look.model.states), np.int16), np.empty(T, dtype=np.intp)
    for a, z in look.pieces(i):
        part = look.piece(i, a, z, free)
        driven.advance(best, a == 0, part.transition.logs, part.logs, came[a:z])
    last = int(best.argmax())
    path_recursions.trace(came, np.array([0, T]), np.array([last]), path)
    return path, float(best[last])


def k_best(look: Look, k: int) -> list[Path]:
    """The k best paths of one sequence, best first; fewer where there are fewer."""
    from likely.hmm._loops import time_varying_recursions as driven

    K, T = look.model.states, int(look.driven.frames.lengths[0])
    best, (came, which) = np.full((K, k), -np.inf), np.zeros((2, T, K, k), dtype=np.int32)
    with np.errstate(all="ignore"):
        best[:, 0] = np.log(look.model.initial)
        for a, z in look.pieces(0):
            part = look.piece(0, a, z)
            driven.advance_several(best, a == 0, part.transition.logs, part.logs, came[a:z], which[a:z])
    order = np.argsort(-best, axis=None, kind="stable")[:k]
    found = [(int(at // k), int(at % k)) for at in order if np.isfinite(best.flat[at])]
    return [Path(_traced(came, which, *at), float(best[at])) for at in found]


def _traced(came: Index, which: Index, state: int, way: int) -> Index:
    path = np.empty(len(came), dtype=np.intp)
    for t in range(len(came) - 1, -1, -1):
        path[t] = state
        state, way = int(came[t, state, way]), int(which[t, state, way])
    return path


def drawn(look: Look, rng: Generator) -> Index:
    """A path of states of each sequence, end to end (T,), drawn from p(s | x, u)."""
    T = len(look.driven.covariates)
    out, uniform = np.empty(T, dtype=np.intp), rng.random(T)

    def fill(a: int, b: int) -> None:
        at = slice(look.offsets[a], look.offsets[b])
        if look.is_cut(a, b):
            out[at] = trellis.either(lambda way: _drawn_long(look, a, way, uniform[at]))
            return
        part = look.whole(a, b)
        found, total = trellis.filtered(look.model.initial, part.transition, part.logs, part.seqs.offsets)
        refuse_impossible(total, a)
        out[at] = trellis.drawn_paths(found, part.transition, part.seqs.offsets, uniform[at])

    in_stretches(look, fill)
    return out


def _drawn_long(look: Look, i: int, way: trellis.Way, uniform: Array) -> Index:
    """The last piece first: the state that a piece must lead to is known then."""
    path, z, after = np.empty(len(uniform), dtype=np.intp), len(uniform), None
    for part, passed in look.backwards(i, way):
        refuse_impossible(passed.log_prob, i)
        a = z - len(part.logs)
        path[a:z] = trellis.drawn_paths(passed.log_filter, part.transition, part.seqs.offsets, uniform[a:z], after)
        after, z = part.transition.logs[0, :, path[a]], a
    return path


def last_filter(look: Look) -> Array:
    """p(s_T | x, u) (K,) at the end of one sequence."""

    def run(way: trellis.Way) -> Array | None:
        for _, passed in look.forwards(0, way):
            if np.isneginf(passed.log_prob[0]):
                return None
        return np.asarray(passed.filter[-1])

    with np.errstate(all="ignore"):
        found = trellis.either(run)
        if found is None:
            shares, over = _passing_over(look, 0, 0)
            tell_of_passed([over], "DrivenHMM.forecast")
            return np.asarray(shares[-1])
        return np.asarray(found)


# ------------------------------------------------------------------------ live


@dataclass(frozen=True, eq=False)
class Belief(Value):
    """Where a driven chain is: `probs` of the states. A move is `due` until the covariates that drive it are known.

    >>> Belief(np.array([0.5, 0.5])).due
    False
    """

    probs: Array  # (K,)
    due: bool = False


def moved(model: Any, belief: Belief, covariates: Any) -> Belief:
    """The belief after the move that was due; the covariates (p,) are those of the frame that it leads to."""
    if not belief.due:
        return belief
    u = np.asarray(covariates, dtype=np.float64).reshape(1, -1)
    return Belief.trusted(probs=belief.probs @ model.transition(u)[0], due=False)


def seen(model: Any, belief: Belief, frame: Any) -> tuple[Belief, float]:
    """The belief once a frame is seen, and log p(frame | all before); what cannot be leaves it as it was."""
    row = frame if isinstance(frame, Columns) else _one_frame(frame, model.dim)
    with np.errstate(divide="ignore"):
        joint = np.log(belief.probs) + model.emission.log_prob(row)[0]
    top = float(joint.max())
    if np.isneginf(top):
        return belief, top
    shares = np.exp(joint - top)
    return Belief.trusted(probs=shares / shares.sum(), due=False), top + float(np.log(shares.sum()))


def observation(y: Any, p: int) -> tuple[Any, Any]:
    """A frame and the covariates (p,) of the move into it: a pair, or a row of Columns (a dict) that has both."""
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
    """A lag as a number of frames; covariates in its place are told so."""
    if isinstance(lag, int | np.integer) and not isinstance(lag, bool) and lag >= 0:
        return int(lag)
    if np.ndim(lag) or isinstance(lag, Ragged | Columns | list):
        expected, remedy = "the second argument is the lag", "name the other: covariates=u"
        raise ShapeError(sentence("DrivenHMM.posterior", expected, type(lag).__name__, remedy))
    raise DomainError(sentence("DrivenHMM.posterior", "lag must be a whole number of frames, not negative", lag))


def one_of(driven: Driven, doing: str) -> None:
    """A single sequence with at least one frame is needed."""
    if len(driven.frames) != 1 or not len(driven.covariates):
        expected = "one sequence with at least one frame is needed"
        raise DataError(sentence(f"DrivenHMM.{doing}", expected, repr(driven.frames)))
