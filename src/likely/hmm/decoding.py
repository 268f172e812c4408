"""State inference in an HMM: smoothing, filtering, fixed-lag smoothing, forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged, single_sequence
from likely.core.value import Value
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import Categorical
from likely.hmm import forward_backward
from likely.hmm.forward_backward import LogPass, Pass, Start, Underflow, scaled_or_log
from likely.hmm.markov_chain import Arcs
from likely.hmm.sequence_blocks import Part, SequenceBlocks
from likely.mixture.mixture import Mixture

LEAST = -460.0  # log of the probability of the next frames below which logarithms are needed: 1e-200
PIECE = 1024  # frames that are filtered at a time where some are impossible


class Smoothed(NamedTuple):
    """Smoothed probabilities p(s_t | x) of every frame, and log p(x); for many sequences a Ragged and (n,)."""

    states: Any  # (T, K), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def smoothed(data: SequenceBlocks, lag: int | None) -> Smoothed:
    """p(s_t | x_1 … x_{t + lag}) of all frames (T, K); lag None is smoothing with all frames, 0 is filtering.

    With lag None also log p(x) of each sequence (n,).
    """
    out, total = np.empty((len(data.frames.values), data.model.states)), np.zeros(len(data.frames))
    skipped: list[SkippedFrames] = []

    def fill(a: int, b: int) -> None:
        view = out[data.offsets[a] : data.offsets[b]]
        if data.is_cut(a, b):
            total[a] = scaled_or_log(lambda method: _smooth_in_pieces(data, a, method, lag, view))
        else:
            total[a:b] = _smooth_block(data, a, b, lag, view)
        for i in np.flatnonzero(np.isneginf(total[a:b]) & (data.frames.lengths[a:b] > 0)).tolist():
            at = slice(data.offsets[a + i] - data.offsets[a], data.offsets[a + i + 1] - data.offsets[a])
            view[at], over = _skipping_posterior(data.block(a + i, a + i + 1), lag, a + i)
            skipped.append(over)

    data.fill(fill)
    warn_of_skipped(skipped, "HMM.posterior")
    return Smoothed(out, total)


def _smooth_block(data: SequenceBlocks, a: int, b: int, lag: int | None, out: Array) -> Array:
    """Posterior of whole sequences, written to out; log p(x) of each, or with a lag −inf where one is impossible."""
    part = data.block(a, b)
    seqs = part.seqs
    if lag is None:
        return forward_backward.smoothed(part.arcs, part.logs, seqs.offsets, out, lambda: data.block(a, b).logs)
    out[:], increments = forward_backward.filtered(part.arcs, part.logs, seqs.offsets)
    bad = np.concatenate([[0], np.cumsum(~np.isfinite(increments))])
    impossible = bad[seqs.offsets[1:]] > bad[seqs.offsets[:-1]]
    if lag and not impossible.all():
        out[:] = _fixed_lag(part.arcs, part.logs, out, seqs, lag)
    return np.where(impossible, -np.inf, 0.0)


def _smooth_in_pieces(data: SequenceBlocks, i: int, method: Pass, lag: int | None, out: Array) -> float:
    """The same for one long sequence."""
    total, T = 0.0, len(out)
    if lag is None:
        z = T
        for _, found in data.smoothed(i, method):
            a = z - len(found.states)
            out[a:z], z = found.states, a
            total += float(found.log_prob[0])
        return total
    start = None
    for a, z in data.pieces(i):
        part = data.piece(i, a, min(z + lag, T))
        anywhere = part.arcs._replace(final=np.ones(data.model.states))
        forward = method(anywhere.at(slice(0, z - a)), part.logs[: z - a], np.array([0, z - a]), start)
        if not forward.in_range.all():
            raise Underflow
        alpha = forward.filter
        out[a:z] = _fixed_lag(anywhere, part.logs, alpha, part.seqs, lag, start) if lag else alpha
        total += float(forward.increments.sum())
        start = forward.end
    return total


def predictive_log_prob(data: SequenceBlocks) -> Array:
    """log p(x_t | x_1 … x_{t−1}) of all frames (T,); that of ending where a sequence ends is in its last frame."""
    out = np.empty(len(data.frames.values))

    def fill(a: int, b: int) -> None:
        view = out[data.offsets[a] : data.offsets[b]]
        if data.is_cut(a, b):
            view[:], ending = scaled_or_log(lambda method: _increments_in_pieces(data, a, method))
            view[-1] += ending
            return
        part = data.block(a, b)
        alpha, view[:] = forward_backward.filtered(part.arcs, part.logs, part.seqs.offsets)
        last = part.seqs.offsets[1:][part.seqs.lengths > 0] - 1
        view[last] += np.log(alpha[last] @ part.arcs.final)

    data.fill(fill)
    return out


def _increments_in_pieces(data: SequenceBlocks, i: int, method: Pass) -> tuple[Array, float]:
    """The same for one long sequence, and the log-probability of its end."""
    passes = [(forward.increments, forward.log_prob[0]) for _, forward in data.forwards(i, method)]
    found = np.concatenate([increments for increments, _ in passes])
    return found, float(sum(total for _, total in passes) - found.sum())


# --------------------------------------------------------------- impossible frames


class SkippedFrames(NamedTuple):
    """Impossible frames of one sequence that were treated as missing."""

    sequence: int
    frames: list[int]  # impossible given the frames before
    final: bool = False  # the sequence cannot end where it does
    over: int | None = None  # from this frame on no state is possible: the chain has exited


def _skipping_posterior(part: Part, lag: int | None, sequence: int) -> tuple[Array, SkippedFrames]:
    """Posterior (T, K) of one sequence with impossible frames treated as missing, as `lk.step` does."""
    logs, alpha, frames, end = _skipping_filter(part.arcs, part.logs)
    out, any_final, arcs = np.zeros_like(logs), False, part.arcs.at(slice(0, end))
    kept, cut = logs[:end], np.array([0, end])
    if end and lag is None:
        total = forward_backward.smoothed(arcs, kept.copy(), cut, out[:end], kept.copy)[0]
        any_final = bool(end == len(logs) and np.isneginf(total))
        if np.isneginf(total):  # the end is treated as missing, too
            anywhere = arcs._replace(final=np.ones(len(arcs.final)))
            forward_backward.smoothed(anywhere, kept.copy(), cut, out[:end], kept.copy)
    elif end:
        one = Ragged.trusted(values=kept, offsets=cut)
        out[:end] = _fixed_lag(arcs, kept, alpha[:end], one, lag) if lag else alpha[:end]
    return out, SkippedFrames(sequence, frames, any_final, end if end < len(logs) else None)


def _skipping_filter(arcs: Arcs, logs: Array) -> tuple[Array, Array, list[int], int]:
    """Filter of one sequence, in logarithms, that treats impossible frames as missing.

    Returns the scores in which they are missing (T, K), the filter (T, K), the impossible frames, and the number of
    frames that the chain can reach.
    """
    logs, alpha = logs.copy(), np.zeros_like(logs)
    impossible = np.isneginf(logs).all(axis=1)
    logs[impossible] = 0.0
    frames, a, start = np.flatnonzero(impossible).tolist(), 0, None
    anywhere = arcs._replace(final=np.ones(len(arcs.final)))
    while a < len(logs):
        z = min(a + PIECE, len(logs))
        forward = LogPass(anywhere.at(slice(a, z)), logs[a:z], np.array([0, z - a]), start)
        failures = np.flatnonzero(~np.isfinite(forward.increments))
        valid = int(failures[0]) if len(failures) else z - a
        alpha[a : a + valid] = forward.filter[:valid]
        if valid:
            start = Start(forward.alpha[valid - 1].copy(), np.zeros(1))
        a += valid
        if len(failures):
            if a in frames:  # not even a missing frame can follow: the chain has exited
                break
            logs[a] = 0.0
            frames.append(a)
    return logs, alpha, sorted(t for t in frames if t < a), a


def warn_of_skipped(skipped: list[SkippedFrames], whose: str) -> None:
    """Warn about all frames that were treated as missing."""
    if not skipped:
        return
    first = min(skipped, key=lambda over: over.sequence)
    if first.frames:
        message = f"frame {first.frames[0]} of sequence {first.sequence} is impossible after those before it"
    elif first.over is not None:
        message = f"sequence {first.sequence} goes on at frame {first.over}, where the chain must have exited"
    else:
        message = f"sequence {first.sequence} cannot end where it does"
    many = sum(len(over.frames) for over in skipped)
    where = f"in {len(skipped)} sequences" if len(skipped) > 1 else "in all"
    more = f" ({many} frames {where})" if many > 1 or len(skipped) > 1 else ""
    warn(f"{whose}: {message}, and counts as not observed{more}: log_prob is -inf")


# ------------------------------------------------------------- fixed-lag smoothing


def _fixed_lag(arcs: Arcs, logs: Array, alpha: Array, seqs: Ragged, lag: int, start: Start | None = None) -> Array:
    """Fixed-lag smoothing: p(s_t | x_1 … x_{t+lag}) ∝ α_t β_t, β over the next `lag` frames only, for all t at once.

    For a piece of a sequence, `start` is that of the pass which filtered it, and logs reach further than alpha.
    """
    T = len(alpha)
    end = np.repeat(seqs.offsets[1:], seqs.lengths)[:T]  # the end of each frame's sequence
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    beta, log_scale = np.ones_like(alpha), np.zeros(T)
    for step in range(lag, 0, -1):
        later = np.arange(T) + step
        inside = later < end
        at = later[inside]
        forward = b[at] * beta[inside]
        product = (
            np.einsum("tij,tj->ti", arcs.transition[at], forward) if arcs.is_varying else forward @ arcs.transition.T
        )
        maximum = product.max(axis=1)
        beta[inside] = product / maximum[:, None]
        log_scale[inside] += np.log(maximum)
    out = alpha * beta
    total = out.sum(axis=1)
    out /= total[:, None]
    in_range = np.log(total) + log_scale > LEAST
    if in_range.all():
        return out
    return _log_fixed_lag(arcs, logs, out, seqs, lag, np.flatnonzero(~in_range), start)


def _log_fixed_lag(
    arcs: Arcs, logs: Array, out: Array, seqs: Ragged, lag: int, which: Index, start: Start | None
) -> Array:
    """Fixed-lag smoothing in logarithms, for the frames at which α_t β_t underflows."""
    from likely.hmm._loops import log_recursions as loops

    sequence = np.searchsorted(seqs.offsets, which, side="right") - 1
    for i in np.unique(sequence).tolist():
        a, z = int(seqs.offsets[i]), int(seqs.offsets[i + 1])
        forward = LogPass(arcs.at(slice(a, z)), logs[a:z], np.array([0, z - a]), start)
        for t in which[sequence == i].tolist():
            window = slice(t - a, t - a + lag + 1)
            rows = np.ascontiguousarray(forward.logs[window])
            beta, into = np.empty_like(rows), forward.arcs.at(window).matrices
            loops.backward(into, np.zeros(len(arcs.initial)), rows, np.array([0, len(rows)]), beta)
            joint = forward.alpha[t - a] + beta[0]
            probs = np.exp(joint - joint.max())
            out[t] = probs / probs.sum()
    return out


# --------------------------------------------------------------------- forecasts


@dataclass(frozen=True, eq=False)
class Forecast(Value):
    """Forecast of 1 … steps frames after a sequence: `states` (steps, K), and by index each observation's distribution.

    `going` (steps,) is the probability that the sequence lasts that long; the rest is conditional on it.

    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> ahead = h.forecast([0.1, 0.2], 2)
    >>> ahead.states, ahead[0].log_prob([[9.0]]).round(2)
    (array([[0.5 , 0.5 ],
           [0.25, 0.75]]), array([-1.61]))
    """

    states: Array  # (steps, K)
    going: Array  # (steps,)
    emission: Any

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, step: int) -> Mixture:
        """The density of the observation `step + 1` frames ahead."""
        return Mixture.trusted(weights=self.states[step].copy(), components=self.emission)

    def __iter__(self) -> Iterator[Mixture]:
        return (self[step] for step in range(len(self)))

    @property
    def mean(self) -> Array:
        """The expected observations (steps, d), for emissions with means."""
        return np.asarray(self.states @ np.asarray(_means(self.emission)))


def _means(emission: Any) -> Array:
    if isinstance(emission, Mixture):
        parts = np.asarray(emission.components.mean)
        return np.einsum("km,km...->k...", emission.weights, parts.reshape(*emission.weights.shape, *parts.shape[1:]))
    return np.asarray(emission.mean, dtype=np.float64)


def forecast(emission: Any, now: Array, transitions: list[Array]) -> Forecast:
    """Prediction of states and observations by these transitions (K, K), from the state probabilities (K,) of now."""
    steps = len(transitions)
    out, going = np.empty((steps, len(now))), np.empty(steps)
    for step, transition in enumerate(transitions):
        now = now @ transition
        going[step] = now.sum()
        out[step] = now / going[step] if going[step] > 0 else 1.0 / len(now)
    return Forecast.trusted(states=out, going=np.minimum(going, 1.0), emission=emission)


def last_filter(data: SequenceBlocks) -> Array:
    """Filtered state probabilities (K,) at the end of one sequence."""
    single_sequence(data.frames, "HMM.forecast")

    def run(method: Pass) -> Array | None:
        if not data.is_long(0):
            part = data.block(0, 1)
            alpha, increments = forward_backward.filtered(part.arcs, part.logs, part.seqs.offsets)
            return np.asarray(alpha[-1]) if np.isfinite(increments).all() else None
        for _, forward in data.forwards(0, method):
            if not np.isfinite(forward.increments).all():
                return None
        return np.asarray(forward.filter[-1])

    with np.errstate(all="ignore"):
        found = scaled_or_log(run)
        if found is None:
            probs, over = _skipping_posterior(data.block(0, 1), 0, 0)
            warn_of_skipped([over], "HMM.forecast")
            found = probs[-1]
    return np.asarray(found)


def belief_over(belief: Any, states: int) -> Array:
    """The state probabilities (K,) of a belief state."""
    if not isinstance(belief, Categorical) or belief.probs.shape != (states,):
        remedy = "begin with None, and pass what the last step returned"
        expected = f"a belief must be a Categorical over {states} states"
        raise DomainError(sentence("HMM", expected, repr(belief)[:60], remedy))
    return belief.probs
