"""What the hidden states were, are, and will be: best paths, posteriors, filters, forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.blocks import runs
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.ragged_input import is_list_of_sequences
from likely.core.value import Value
from likely.core.warnings import tell
from likely.distributions.categorical.categorical import Categorical
from likely.hmm import forward_backward, long_sequences
from likely.hmm.viterbi import best_paths
from likely.mixture.mixture import Mixture

LEAST = -460.0  # log of how likely frames ahead may be before logarithms are needed: 1e-200
PIECE = 1024  # frames that are filtered at a time where some are impossible
LONG = 2**18  # frames of a sequence from which scores are found piece by piece, and only back-pointers are kept


class Path(NamedTuple):
    """A path of states and its joint log-probability with what was seen; of many sequences a Ragged, and (n,)."""

    states: Any  # (T,), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def is_one(x: Any) -> bool:
    """True if x is one sequence, so that the answer is one too."""
    many = isinstance(x, Ragged) or getattr(x, "ndim", 1) == 3
    return not (many or is_list_of_sequences(x))


def whole(x: Any, least: int, whose: str, what: str) -> int:
    """A whole number that is not below the least."""
    if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < least:
        raise DomainError(sentence(whose, f"{what} must be a whole number from {least} on", repr(x)))
    return int(x)


def decode(model: Any, x: Any) -> Path:
    """The best path of each sequence   (Viterbi; Herbst 9.6, Ney 7.2.2); −1 where no path is possible."""
    seqs, way = Ragged.of(x), model.chains[0].best_logs
    states, score = np.empty(len(seqs.values), dtype=np.intp), np.empty(len(seqs))

    def fill(edges: tuple[int, int]) -> None:
        a, b = edges
        part, frames = seqs[a:b], slice(seqs.offsets[a], seqs.offsets[b])
        with np.errstate(all="ignore"):
            if len(part.values) > LONG and len(part) == 1:
                states[frames], score[a] = _long_path(model, part.values)
            else:
                states[frames], score[a:b] = best_paths(way, model.scores(part, a), part.offsets)

    _in_runs(fill, seqs)
    if np.isneginf(score).any():
        states[np.repeat(np.isneginf(score), seqs.lengths)] = -1
    return Path(states, float(score[0])) if is_one(x) else Path(Ragged(states, seqs.offsets), score)


def _long_path(model: Any, values: Any) -> tuple[Index, float]:
    """The same for one long sequence, whose scores would not fit into memory at once."""
    from likely.hmm._loops import path_recursions as loops

    way, T = model.chains[0].best_logs, len(values)
    came, path, best = np.empty((T, model.states), np.int16), np.empty(T, dtype=np.intp), way.initial.copy()
    for a in range(0, T, LONG):
        logs = model.scores(Ragged.of(values[a : a + LONG]))
        loops.advance(best, a == 0, way.transition, logs, came[a : a + LONG])
    whole = best + way.final
    last = int(whole.argmax())
    loops.trace(came, np.array([0, T]), np.array([last]), path)
    return path, float(whole[last])


def _in_runs(fill: Any, seqs: Ragged) -> None:
    with one_blas_thread():
        for _ in ordered_map(fill, runs(seqs), cores()):
            pass


def k_best(model: Any, x: Any, k: int) -> list[Path]:
    """The k best paths of one sequence, best first."""
    from likely.hmm._loops import path_recursions as loops

    k = whole(k, 1, "HMM.k_best", "k")
    seqs, way = one_sequence(x, "k_best"), model.chains[0].best_logs
    score, path = np.empty(int(k)), np.empty((int(k), len(seqs.values)), dtype=np.intp)
    with np.errstate(all="ignore"):
        loops.k_best(way.initial, way.transition, way.final, model.scores(seqs), int(k), score, path)
    return [Path(p, float(s)) for p, s in zip(path, score, strict=True) if np.isfinite(s)]


class Smoothed(NamedTuple):
    """p(s_t | x) of every frame, and log p(x); of many sequences a Ragged, and (n,)."""

    states: Any  # (T, K), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def smooth(model: Any, x: Any) -> Smoothed:
    """The forward–backward algorithm: what the states were, given all that was seen."""
    seqs = Ragged.of(x)
    total = np.empty(len(seqs))
    out = _smoothed(model, seqs, None, total)
    return Smoothed(out, float(total[0])) if is_one(x) else Smoothed(Ragged(out, seqs.offsets), total)


def smoothed(model: Any, x: Any, lag: int | None) -> Any:
    """p(s_t | x_1 … x_{t + lag}) of every frame; None looks at all frames, 0 at none that come later."""
    seqs = Ragged.of(x)
    if lag is not None:
        lag = min(whole(lag, 0, "HMM.posterior", "lag"), int(seqs.lengths.max(initial=0)))
    out = _smoothed(model, seqs, lag, np.empty(len(seqs)))
    return out if is_one(x) else Ragged(out, seqs.offsets)


def _smoothed(model: Any, seqs: Ragged, lag: int | None, total: Array) -> Array:
    way, out = model.chains[0].summed, np.empty((len(seqs.values), model.states))
    passed: list[PassedOver] = []

    def fill(edges: tuple[int, int]) -> None:
        a, b = edges
        part = seqs[a:b]
        with np.errstate(all="ignore"):
            if b - a == 1 and len(part.values) > LONG and _in_pieces(model, part.values, lag, a, out, seqs, total):
                return
            logs, view = model.scores(part, a), out[seqs.offsets[a] : seqs.offsets[b]]
            if lag is None:
                total[a:b] = forward_backward.smoothed(way, logs, part.offsets, view, partial(model.scores, part, a))
                bad = np.isneginf(total[a:b])
            else:
                view[:], bad = _with_lag(way, logs, part, lag)
            for i in np.flatnonzero(bad & (part.lengths > 0)).tolist():
                at = slice(part.offsets[i], part.offsets[i + 1])
                view[at], over = _passing_over(way, model.scores(part[i : i + 1], a + i), lag, a + i)
                passed.append(over)

    _in_runs(fill, seqs)
    tell_of_passed(passed, "HMM.posterior")
    return out


def _in_pieces(model: Any, values: Any, lag: int | None, a: int, out: Array, seqs: Ragged, total: Array) -> bool:
    """One long sequence piece by piece, into its place; False where only all of it at once would do."""
    view = out[seqs.offsets[a] : seqs.offsets[a + 1]]
    if lag is None:
        total[a] = long_sequences.smooth(model, values, view)
        return not np.isneginf(total[a])
    if lag == 0:
        return bool(long_sequences.filtered(model, values, view))
    return bool(long_sequences.lagged(model, values, lag, view, _fixed_lag))


def _with_lag(way: Any, logs: Array, seqs: Ragged, lag: int) -> tuple[Array, Any]:
    """p(s_t | x_1 … x_{t + lag}) (T, K), and in which sequences (n,) some frame is impossible after those before."""
    alpha, news = forward_backward.filtered(way, logs, seqs.offsets)
    bad, there = np.zeros(len(seqs), dtype=bool), seqs.lengths > 0
    bad[there] = np.logical_or.reduceat(~np.isfinite(news), seqs.offsets[:-1][there])
    if lag and not bad.all():
        alpha = _fixed_lag(way, logs, alpha, seqs, lag)
    return alpha, bad


# --------------------------------------------------------------- frames that cannot be


class PassedOver(NamedTuple):
    """What was passed over in one sequence."""

    sequence: int
    frames: list[int]  # impossible after what came before
    final: bool = False  # the sequence cannot end where it does
    over: int | None = None  # from this frame on no state is possible: the chain must have ended


class _GoingOn(NamedTuple):
    """Scores in which impossible frames count as not observed, the filter over them, and which they are."""

    logs: Array  # (T, K)
    alpha: Array  # (T, K)
    frames: list[int]
    end: int  # frames up to which the chain can go on


def _passing_over(way: Any, logs: Array, lag: int | None, sequence: int) -> tuple[Array, PassedOver]:
    """The posterior (T, K) of one sequence in which frames that cannot be are passed over, as `lk.step` does."""
    found = _going_on(way.logs, logs)
    end, out, free = found.end, np.zeros_like(logs), False
    kept = found.logs[:end]
    if end and lag is None:
        view, cut = np.empty_like(kept), np.array([0, end])
        total = forward_backward.smoothed(way, kept.copy(), cut, view, kept.copy)[0]
        if end == len(logs) and np.isneginf(total):
            free = True
        if np.isneginf(total):  # the end is not observed, either
            forward_backward.smoothed(way._replace(final=np.ones(len(way.final))), kept.copy(), cut, view, kept.copy)
        out[:end] = view
    elif end:
        one = Ragged.trusted(values=kept, offsets=np.array([0, end]))
        out[:end] = _fixed_lag(way, kept, found.alpha[:end], one, lag) if lag else found.alpha[:end]
    return out, PassedOver(sequence, found.frames, free, end if end < len(logs) else None)


def _going_on(way: Any, logs: Array) -> _GoingOn:
    """A filter of one sequence, in logarithms, that is not stopped by frames that cannot be."""
    logs, alpha = logs.copy(), np.zeros_like(logs)
    odd = np.isneginf(logs).all(axis=1)
    logs[odd] = 0.0
    frames, a, enter = np.flatnonzero(odd).tolist(), 0, way.initial
    while a < len(logs) and not np.isneginf(enter).all():
        piece, scale = forward_backward.forward_logs(way._replace(initial=enter), logs[a : a + PIECE].copy())
        stops = np.flatnonzero(~np.isfinite(scale))
        sound = int(stops[0]) if len(stops) else len(scale)
        shares = np.exp(piece[:sound])
        alpha[a : a + sound] = shares / shares.sum(axis=1, keepdims=True)
        if sound:
            enter = np.logaddexp.reduce(piece[sound - 1][:, None] + way.transition, axis=0)
        a += sound
        if len(stops) and not np.isneginf(enter).all():
            logs[a] = 0.0
            frames.append(a)
    return _GoingOn(logs, alpha, sorted(t for t in frames if t < a), a)


def tell_of_passed(passed: list[PassedOver], whose: str) -> None:
    """One note on all frames that were passed over."""
    if not passed:
        return
    first = min(passed, key=lambda over: over.sequence)
    if first.frames:
        told = f"frame {first.frames[0]} of sequence {first.sequence} is impossible after those before it"
    elif first.over is not None:
        told = f"sequence {first.sequence} goes on at frame {first.over}, where the chain must have ended"
    else:
        told = f"sequence {first.sequence} cannot end where it does"
    many = sum(len(over.frames) for over in passed)
    where = f"in {len(passed)} sequences" if len(passed) > 1 else "in all"
    more = f" ({many} frames {where})" if many > 1 or len(passed) > 1 else ""
    tell(f"{whose}: {told}, and counts as not observed{more}: log_prob is -inf")


def _fixed_lag(way: Any, logs: Array, alpha: Array, seqs: Ragged, lag: int) -> Array:
    """p(s_t | x_1 … x_{t+lag}) ∝ α_t β, where β is worth the next frames only: one step back for all t at once."""
    T = len(logs)
    end = np.repeat(seqs.offsets[1:], seqs.lengths)  # where the sequence of each frame ends
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    beta, worth = np.ones_like(alpha), np.zeros(T)
    for step in range(lag, 0, -1):
        ahead = np.arange(T) + step
        inside = ahead < end
        at = ahead[inside]
        moved = (b[at] * beta[inside]) @ way.transition.T
        high = moved.max(axis=1)
        beta[inside] = moved / high[:, None]
        worth[inside] += np.log(high)
    out = alpha * beta
    total = out.sum(axis=1)
    out /= total[:, None]
    met = np.log(total) + worth > LEAST
    return out if met.all() else _by_logs(way, logs, out, seqs, lag, np.flatnonzero(~met))


def _by_logs(way: Any, logs: Array, out: Array, seqs: Ragged, lag: int, which: Index) -> Array:
    """The same for some frames, at which past and future met below the smallest numbers."""
    from likely.hmm._loops import log_recursions as loops

    whose = np.searchsorted(seqs.offsets, which, side="right") - 1
    for i in np.unique(whose).tolist():
        a, z = int(seqs.offsets[i]), int(seqs.offsets[i + 1])
        shifted = logs[a:z].copy()
        alpha, _ = forward_backward.forward_logs(way.logs, shifted)
        for t in which[whose == i].tolist():
            window = shifted[t - a : t - a + lag + 1]
            beta = np.empty_like(window)
            loops.backward(way.logs.transition, np.zeros(len(way.initial)), window, np.array([0, len(window)]), beta)
            share = np.exp(alpha[t - a] + beta[0] - (alpha[t - a] + beta[0]).max())
            out[t] = share / share.sum()
    return out


@dataclass(frozen=True, eq=False)
class Forecast(Value):
    """Forecast of 1 … steps frames after a sequence: `states` (steps, K), and by index each observation's distribution.

    `going` (steps,) is the probability that the sequence goes on that long; states and observations are those of
    sequences that do.

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
        """The expected observation (steps, d), for emissions that have means."""
        return np.asarray(self.states @ np.asarray(_means(self.emission)))


def _means(emission: Any) -> Array:
    if isinstance(emission, Mixture):
        parts = np.asarray(emission.components.mean)
        return np.einsum("km,km...->k...", emission.weights, parts.reshape(*emission.weights.shape, *parts.shape[1:]))
    return np.asarray(emission.mean, dtype=np.float64)


def forecast(model: Any, x: Any, steps: int) -> Forecast:
    """τ-step prediction of states and observations."""
    steps, way = whole(steps, 1, "HMM.forecast", "steps"), model.chains[0].summed
    now, out = _now(model, x), np.empty((steps, model.states))
    going = np.empty(steps)
    for step in range(steps):
        now = now @ way.transition
        going[step] = now.sum()
        out[step] = now / going[step] if going[step] > 0 else 1.0 / len(now)
    return Forecast.trusted(states=out, going=np.minimum(going, 1.0), emission=model.emission)


def _now(model: Any, x: Any) -> Array:
    """What is believed of the state at the end of a sequence, or already known as a belief (K,)."""
    if isinstance(x, Categorical):
        return belief_over(x, model.states)
    seqs, way = one_sequence(x, "forecast"), model.chains[0].summed
    with np.errstate(all="ignore"):
        alpha, bad = _with_lag(way, model.scores(seqs), seqs, 0)
        if bad.any():
            alpha, passed = _passing_over(way, model.scores(seqs), 0, 0)
            tell_of_passed([passed], "HMM.forecast")
    return np.asarray(alpha[-1])


def belief_over(belief: Any, states: int) -> Array:
    """The probabilities of a belief about so many states (K,)."""
    if not isinstance(belief, Categorical) or belief.probs.shape != (states,):
        remedy = "begin with None, and hand back what the last step gave"
        expected = f"a belief must be a Categorical over {states} states"
        raise DomainError(sentence("HMM", expected, repr(belief)[:60], remedy))
    return belief.probs


def one_sequence(x: Any, doing: str) -> Ragged:
    """A single sequence with at least one frame."""
    seqs = Ragged.of(x)
    if len(seqs) != 1 or not len(seqs.values):
        raise DataError(sentence(f"HMM.{doing}", "one sequence with at least one frame is needed", repr(seqs)))
    return seqs
