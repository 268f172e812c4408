"""State inference in an HMM: Viterbi and k-best paths, smoothing, filtering, fixed-lag smoothing, forecasts."""

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

LEAST = -460.0  # log of the probability of the next frames below which logarithms are needed: 1e-200
PIECE = 1024  # frames that are filtered at a time where some are impossible
LONG = 2**18  # frames of a sequence from which scores are computed piece by piece, and only backpointers are stored


class Path(NamedTuple):
    """A path of states and its joint log-probability with the observations; for many sequences a Ragged and (n,)."""

    states: Any  # (T,), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def is_one(x: Any) -> bool:
    """True if x is one sequence, so that the result is one too."""
    many = isinstance(x, Ragged) or getattr(x, "ndim", 1) == 3
    return not (many or is_list_of_sequences(x))


def whole(x: Any, least: int, whose: str, what: str) -> int:
    """Validate a whole number that is not below `least`."""
    if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < least:
        raise DomainError(sentence(whose, f"{what} must be a whole number from {least} on", repr(x)))
    return int(x)


def decode(model: Any, x: Any) -> Path:
    """Viterbi path of each sequence   (Rabiner 1989, Herbst 9.6, Ney 7.2.2); −1 where no path is possible."""
    seqs, arcs = Ragged.of(x), model.chains[0].best_logs
    states, score = np.empty(len(seqs.values), dtype=np.intp), np.empty(len(seqs))

    def fill(edges: tuple[int, int]) -> None:
        a, b = edges
        part, frames = seqs[a:b], slice(seqs.offsets[a], seqs.offsets[b])
        with np.errstate(all="ignore"):
            if len(part.values) > LONG and len(part) == 1:
                states[frames], score[a] = _long_path(model, part.values)
            else:
                states[frames], score[a:b] = best_paths(arcs, model.scores(part, a), part.offsets)

    _over_blocks(fill, seqs)
    if np.isneginf(score).any():
        states[np.repeat(np.isneginf(score), seqs.lengths)] = -1
    return Path(states, float(score[0])) if is_one(x) else Path(Ragged(states, seqs.offsets), score)


def _long_path(model: Any, values: Any) -> tuple[Index, float]:
    """Viterbi path of one long sequence, whose scores would not fit into memory at once."""
    from likely.hmm._loops import path_recursions as loops

    arcs, T = model.chains[0].best_logs, len(values)
    backpointers, path, delta = np.empty((T, model.states), np.int16), np.empty(T, dtype=np.intp), arcs.initial.copy()
    for a in range(0, T, LONG):
        logs = model.scores(Ragged.of(values[a : a + LONG]))
        loops.advance(delta, a == 0, arcs.transition, logs, backpointers[a : a + LONG])
    whole = delta + arcs.final
    last = int(whole.argmax())
    loops.backtrack(backpointers, np.array([0, T]), np.array([last]), path)
    return path, float(whole[last])


def _over_blocks(fill: Any, seqs: Ragged) -> None:
    with one_blas_thread():
        for _ in ordered_map(fill, runs(seqs), cores()):
            pass


def k_best(model: Any, x: Any, k: int) -> list[Path]:
    """The k most probable paths of one sequence, best first."""
    from likely.hmm._loops import path_recursions as loops

    k = whole(k, 1, "HMM.k_best", "k")
    seqs, arcs = one_sequence(x, "k_best"), model.chains[0].best_logs
    score, path = np.empty(int(k)), np.empty((int(k), len(seqs.values)), dtype=np.intp)
    with np.errstate(all="ignore"):
        loops.k_best(arcs.initial, arcs.transition, arcs.final, model.scores(seqs), int(k), score, path)
    return [Path(p, float(s)) for p, s in zip(path, score, strict=True) if np.isfinite(s)]


class Smoothed(NamedTuple):
    """Smoothed probabilities p(s_t | x) of every frame, and log p(x); for many sequences a Ragged and (n,)."""

    states: Any  # (T, K), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def smooth(model: Any, x: Any) -> Smoothed:
    """Forward–backward algorithm: smoothed state probabilities and log p(x)."""
    seqs = Ragged.of(x)
    total = np.empty(len(seqs))
    out = _smoothed(model, seqs, None, total)
    return Smoothed(out, float(total[0])) if is_one(x) else Smoothed(Ragged(out, seqs.offsets), total)


def smoothed(model: Any, x: Any, lag: int | None) -> Any:
    """p(s_t | x_1 … x_{t + lag}) of every frame; lag None is smoothing with all frames, 0 is filtering."""
    seqs = Ragged.of(x)
    if lag is not None:
        lag = min(whole(lag, 0, "HMM.posterior", "lag"), int(seqs.lengths.max(initial=0)))
    out = _smoothed(model, seqs, lag, np.empty(len(seqs)))
    return out if is_one(x) else Ragged(out, seqs.offsets)


def _smoothed(model: Any, seqs: Ragged, lag: int | None, total: Array) -> Array:
    arcs, out = model.chains[0].summed, np.empty((len(seqs.values), model.states))
    skipped: list[PassedOver] = []

    def fill(edges: tuple[int, int]) -> None:
        a, b = edges
        part = seqs[a:b]
        with np.errstate(all="ignore"):
            if b - a == 1 and len(part.values) > LONG and _in_pieces(model, part.values, lag, a, out, seqs, total):
                return
            logs, view = model.scores(part, a), out[seqs.offsets[a] : seqs.offsets[b]]
            if lag is None:
                total[a:b] = forward_backward.smoothed(arcs, logs, part.offsets, view, partial(model.scores, part, a))
                impossible = np.isneginf(total[a:b])
            else:
                view[:], impossible = _with_lag(arcs, logs, part, lag)
            for i in np.flatnonzero(impossible & (part.lengths > 0)).tolist():
                at = slice(part.offsets[i], part.offsets[i + 1])
                view[at], over = _skipping_posterior(arcs, model.scores(part[i : i + 1], a + i), lag, a + i)
                skipped.append(over)

    _over_blocks(fill, seqs)
    tell_of_passed(skipped, "HMM.posterior")
    return out


def _in_pieces(model: Any, values: Any, lag: int | None, a: int, out: Array, seqs: Ragged, total: Array) -> bool:
    """Smooth or filter one long sequence piece by piece, in place; False where it must be done as a whole."""
    view = out[seqs.offsets[a] : seqs.offsets[a + 1]]
    if lag is None:
        total[a] = long_sequences.smooth(model, values, view)
        return not np.isneginf(total[a])
    if lag == 0:
        return bool(long_sequences.filtered(model, values, view))
    return bool(long_sequences.lagged(model, values, lag, view, _fixed_lag))


def _with_lag(arcs: Any, logs: Array, seqs: Ragged, lag: int) -> tuple[Array, Any]:
    """p(s_t | x_1 … x_{t + lag}) (T, K), and which sequences (n,) have an impossible frame."""
    alpha, increments = forward_backward.filtered(arcs, logs, seqs.offsets)
    impossible, nonempty = np.zeros(len(seqs), dtype=bool), seqs.lengths > 0
    impossible[nonempty] = np.logical_or.reduceat(~np.isfinite(increments), seqs.offsets[:-1][nonempty])
    if lag and not impossible.all():
        alpha = _fixed_lag(arcs, logs, alpha, seqs, lag)
    return alpha, impossible


# --------------------------------------------------------------- impossible frames


class PassedOver(NamedTuple):
    """Impossible frames of one sequence that were treated as missing."""

    sequence: int
    frames: list[int]  # impossible given the frames before
    final: bool = False  # the sequence cannot end where it does
    over: int | None = None  # from this frame on no state is possible: the chain has exited


class _SkippingFilter(NamedTuple):
    """Scores in which impossible frames are missing, the filter over them, and the impossible frames."""

    logs: Array  # (T, K)
    alpha: Array  # (T, K)
    frames: list[int]
    end: int  # number of frames that the chain can reach


def _skipping_posterior(arcs: Any, logs: Array, lag: int | None, sequence: int) -> tuple[Array, PassedOver]:
    """Posterior (T, K) of one sequence with impossible frames treated as missing, as `lk.step` does."""
    found = _skipping_filter(arcs.logs, logs)
    end, out, any_final = found.end, np.zeros_like(logs), False
    kept = found.logs[:end]
    if end and lag is None:
        view, cut = np.empty_like(kept), np.array([0, end])
        total = forward_backward.smoothed(arcs, kept.copy(), cut, view, kept.copy)[0]
        if end == len(logs) and np.isneginf(total):
            any_final = True
        if np.isneginf(total):  # the end is treated as missing, too
            forward_backward.smoothed(arcs._replace(final=np.ones(len(arcs.final))), kept.copy(), cut, view, kept.copy)
        out[:end] = view
    elif end:
        one = Ragged.trusted(values=kept, offsets=np.array([0, end]))
        out[:end] = _fixed_lag(arcs, kept, found.alpha[:end], one, lag) if lag else found.alpha[:end]
    return out, PassedOver(sequence, found.frames, any_final, end if end < len(logs) else None)


def _skipping_filter(arcs: Any, logs: Array) -> _SkippingFilter:
    """Filter of one sequence, in logarithms, that treats impossible frames as missing."""
    logs, alpha = logs.copy(), np.zeros_like(logs)
    impossible = np.isneginf(logs).all(axis=1)
    logs[impossible] = 0.0
    frames, a, initial = np.flatnonzero(impossible).tolist(), 0, arcs.initial
    while a < len(logs) and not np.isneginf(initial).all():
        piece, scale = forward_backward.forward_logs(arcs._replace(initial=initial), logs[a : a + PIECE].copy())
        failures = np.flatnonzero(~np.isfinite(scale))
        valid = int(failures[0]) if len(failures) else len(scale)
        probs = np.exp(piece[:valid])
        alpha[a : a + valid] = probs / probs.sum(axis=1, keepdims=True)
        if valid:
            initial = np.logaddexp.reduce(piece[valid - 1][:, None] + arcs.transition, axis=0)
        a += valid
        if len(failures) and not np.isneginf(initial).all():
            logs[a] = 0.0
            frames.append(a)
    return _SkippingFilter(logs, alpha, sorted(t for t in frames if t < a), a)


def tell_of_passed(skipped: list[PassedOver], whose: str) -> None:
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
    tell(f"{whose}: {message}, and counts as not observed{more}: log_prob is -inf")


def _fixed_lag(arcs: Any, logs: Array, alpha: Array, seqs: Ragged, lag: int) -> Array:
    """Fixed-lag smoothing: p(s_t | x_1 … x_{t+lag}) ∝ α_t β_t, β over the next `lag` frames only, for all t at once."""
    T = len(logs)
    end = np.repeat(seqs.offsets[1:], seqs.lengths)  # the end of each frame's sequence
    b = np.exp(logs - logs.max(axis=1, keepdims=True))
    beta, log_scale = np.ones_like(alpha), np.zeros(T)
    for step in range(lag, 0, -1):
        later = np.arange(T) + step
        inside = later < end
        at = later[inside]
        product = (b[at] * beta[inside]) @ arcs.transition.T
        maximum = product.max(axis=1)
        beta[inside] = product / maximum[:, None]
        log_scale[inside] += np.log(maximum)
    out = alpha * beta
    total = out.sum(axis=1)
    out /= total[:, None]
    in_range = np.log(total) + log_scale > LEAST
    return out if in_range.all() else _log_fixed_lag(arcs, logs, out, seqs, lag, np.flatnonzero(~in_range))


def _log_fixed_lag(arcs: Any, logs: Array, out: Array, seqs: Ragged, lag: int, which: Index) -> Array:
    """Fixed-lag smoothing in logarithms, for the frames at which α_t β_t underflows."""
    from likely.hmm._loops import log_recursions as loops

    sequence = np.searchsorted(seqs.offsets, which, side="right") - 1
    for i in np.unique(sequence).tolist():
        a, z = int(seqs.offsets[i]), int(seqs.offsets[i + 1])
        shifted = logs[a:z].copy()
        alpha, _ = forward_backward.forward_logs(arcs.logs, shifted)
        for t in which[sequence == i].tolist():
            window = shifted[t - a : t - a + lag + 1]
            beta = np.empty_like(window)
            loops.backward(arcs.logs.transition, np.zeros(len(arcs.initial)), window, np.array([0, len(window)]), beta)
            probs = np.exp(alpha[t - a] + beta[0] - (alpha[t - a] + beta[0]).max())
            out[t] = probs / probs.sum()
    return out


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


def forecast(model: Any, x: Any, steps: int) -> Forecast:
    """τ-step-ahead prediction of states and observations."""
    steps, arcs = whole(steps, 1, "HMM.forecast", "steps"), model.chains[0].summed
    now, out = _last_filtered(model, x), np.empty((steps, model.states))
    going = np.empty(steps)
    for step in range(steps):
        now = now @ arcs.transition
        going[step] = now.sum()
        out[step] = now / going[step] if going[step] > 0 else 1.0 / len(now)
    return Forecast.trusted(states=out, going=np.minimum(going, 1.0), emission=model.emission)


def _last_filtered(model: Any, x: Any) -> Array:
    """Filtered state probabilities (K,) at the end of a sequence, or those of a belief."""
    if isinstance(x, Categorical):
        return belief_over(x, model.states)
    seqs, arcs = one_sequence(x, "forecast"), model.chains[0].summed
    with np.errstate(all="ignore"):
        alpha, impossible = _with_lag(arcs, model.scores(seqs), seqs, 0)
        if impossible.any():
            alpha, skipped = _skipping_posterior(arcs, model.scores(seqs), 0, 0)
            tell_of_passed([skipped], "HMM.forecast")
    return np.asarray(alpha[-1])


def belief_over(belief: Any, states: int) -> Array:
    """The state probabilities (K,) of a belief state."""
    if not isinstance(belief, Categorical) or belief.probs.shape != (states,):
        remedy = "begin with None, and pass what the last step returned"
        expected = f"a belief must be a Categorical over {states} states"
        raise DomainError(sentence("HMM", expected, repr(belief)[:60], remedy))
    return belief.probs


def one_sequence(x: Any, doing: str) -> Ragged:
    """A single sequence with at least one frame."""
    seqs = Ragged.of(x)
    if len(seqs) != 1 or not len(seqs.values):
        raise DataError(sentence(f"HMM.{doing}", "one sequence with at least one frame is needed", repr(seqs)))
    return seqs
