"""Forward–backward algorithm for many sequences at once: scaled, with a fallback in logarithms.

`ScaledPass` and `LogPass` are one forward and backward pass: the first is fast and detects underflow, the second cannot
underflow. Transitions are constant or vary with time (`Arcs`). The frames are those of whole sequences, or a piece of
one: `Start` is what a piece needs of the frames before it, and `back` what it needs of those after. The recursions
are in `_loops/scaled_recursions.py` and `_loops/log_recursions.py`: `forward`, `backward`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.engine import cores, ordered_map
from likely.hmm.markov_chain import THIN, Arcs

CHUNK = 2**15  # frames that one core exponentiates at a time
FAR = 1e-260  # a time-varying transition probability below which scaled probabilities are not tried


class Posterior(NamedTuple):
    """Expected states and transitions, weighted, and the log-likelihood of each sequence."""

    states: Array  # (T, K): γ_t(k) = p(s_t = k | x) times the weight of the sequence
    transition: Array  # (K, K): Σ_t ξ_t(j, k); where transitions vary with time ξ_t (T, K, K), 0 at first frames
    log_prob: Array  # (n,): log p(x)


class Start(NamedTuple):
    """What a piece of a sequence needs of the frames before it."""

    log_filter: Array  # (K,): log p(s_t | x_1 … x_t) of the frame before
    underflow: Array  # (1,): bound of the mass lost so far


class ScaledPass:
    """Forward pass with scaling factors, and `back`; `in_range` (n,) is false for sequences that underflow.

    `out` takes the filtered probabilities; `overwrite` allows to overwrite the scores.
    """

    def __init__(
        self, arcs: Arcs, logs: Array, offsets: Index, start: Start | None = None, out: Array | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        from likely.hmm._loops import scaled_recursions as loops

        (T, K), n = logs.shape, len(offsets) - 1
        self.arcs, self.offsets, self.start = arcs, np.array(offsets), start
        self.log_max, self.b = np.empty((T, 1)), logs if overwrite else logs.copy()
        _exponentiate(self.b, self.log_max)
        self.alpha, self.scale = np.empty((T, K)) if out is None else out, np.ones(T)
        self.termination, self.underflow = np.empty(n), np.zeros(n) if start is None else start.underflow.copy()
        initial = arcs.initial if start is None else np.exp(start.log_filter) @ arcs.matrices[0]
        entry, self.in_range = _thresholds(arcs, self.offsets, start is not None)
        loops.forward(
            initial, arcs.matrices, arcs.final, entry, self.b[:, None], 0, self.offsets, self.alpha, self.scale,
            self.termination, self.in_range, self.underflow,
        )  # fmt: skip

    @property
    def increments(self) -> Array:
        """log p(x_t | x_1 … x_{t−1}) (T,)."""
        return np.log(self.scale) + self.log_max[:, 0]

    @property
    def log_prob(self) -> Array:
        """log p(x) (n,); of a piece, given the frames before it."""
        return np.log(self.termination) + _sums(self.increments, self.offsets)

    @property
    def filter(self) -> Array:
        """p(s_t | x_1 … x_t) (T, K)."""
        return self.alpha

    @property
    def log_filter(self) -> Array:
        """log p(s_t | x_1 … x_t) (T, K)."""
        return np.log(self.alpha)

    @property
    def end(self) -> Start:
        """The start of the next piece."""
        return Start(np.log(self.alpha[-1]), self.underflow)

    def back(self, weight: Array | None = None, beta_last: Array | None = None) -> tuple[Posterior, Array]:
        """Backward pass: γ_t and ξ_t, and β of the frame before the first one (K,).

        `beta_last` (K,) is β of the last frame, from all later pieces. Sequences that are not in range get zeros.
        """
        from likely.hmm._loops import scaled_recursions as loops

        gamma, b_beta = np.empty((2, *self.alpha.shape))
        weight = np.ones(len(self.offsets) - 1) if weight is None else np.array(weight)
        final, norm = (self.arcs.final, self.termination) if beta_last is None else (beta_last, np.ones(1))
        loops.backward(
            self._transposed, final, self.b, self.offsets, weight, self.alpha, self.scale, norm, self.in_range, gamma,
            b_beta,
        )  # fmt: skip
        failed = np.flatnonzero(~self.in_range)
        if len(failed):
            frames = frames_of(failed, self.offsets)[0]
            self.alpha[frames], gamma[frames], b_beta[frames] = 0.0, 0.0, 0.0
        beta_before = self.arcs.final if self.start is None else self.arcs.matrices[0] @ b_beta[0]
        return Posterior(gamma, self._transitions(b_beta), self.log_prob), beta_before

    def smooth(self) -> None:
        """Backward pass without ξ: the filtered probabilities become p(s_t | x), in place."""
        from likely.hmm._loops import scaled_recursions as loops

        loops.smooth(
            self._transposed, self.arcs.final, self.b, self.offsets, self.scale, self.termination, self.in_range,
            self.alpha,
        )  # fmt: skip

    @property
    def _transposed(self) -> Array:
        return np.ascontiguousarray(self.arcs.matrices.transpose(0, 2, 1))

    def _transitions(self, b_beta: Array) -> Array:
        """ξ_t(i, j) = α_{t−1}(i) a_ij b_beta_t(j), or their sum where transitions are constant."""
        first, into = _first(self.offsets), self.arcs.matrices
        across = None if self.start is None else np.exp(self.start.log_filter)[:, None] * into[0] * b_beta[0]
        if not self.arcs.is_varying:
            b_beta[first] = 0.0
            total = expected_transitions(self.arcs.transition, self.alpha, b_beta)
            return total if across is None else total + across
        xi = np.empty(self.arcs.transition.shape)
        np.multiply(self.arcs.transition[1:], b_beta[1:, None, :], out=xi[1:])
        xi[1:] *= self.alpha[:-1, :, None]
        xi[first] = 0.0 if across is None else across
        return xi


class LogPass:
    """Forward and backward pass in logarithms: slower, without underflow; the reference of `ScaledPass`."""

    def __init__(self, arcs: Arcs, logs: Array, offsets: Index, start: Start | None = None) -> None:
        from likely.hmm._loops import log_recursions as loops
        from likely.hmm._loops import scaled_recursions

        T, n = len(logs), len(offsets) - 1
        self.arcs, self.offsets, self.start = arcs.logs, np.array(offsets), start
        log_max, self.logs = np.empty((T, 1)), np.array(logs, order="C")
        scaled_recursions.shift(self.logs, log_max, logs.shape[1])
        self.alpha, scale, total = np.empty_like(self.logs), np.empty(T), np.empty(n)
        initial = self.arcs.initial
        if start is not None:
            initial = np.logaddexp.reduce(start.log_filter[:, None] + self.arcs.matrices[0], axis=0)
        loops.forward(initial, self.arcs.matrices, self.arcs.final, self.logs, self.offsets, self.alpha, scale, total)
        self.total, self.increments = total, scale + log_max[:, 0]
        self.log_prob = total + _sums(log_max[:, 0], self.offsets)

    @property
    def in_range(self) -> Mask:
        """True for all sequences."""
        return np.ones(len(self.offsets) - 1, dtype=bool)

    @property
    def filter(self) -> Array:
        """p(s_t | x_1 … x_t) (T, K)."""
        return np.exp(self.alpha)

    @property
    def log_filter(self) -> Array:
        """log p(s_t | x_1 … x_t) (T, K)."""
        return self.alpha

    @property
    def end(self) -> Start:
        """The start of the next piece."""
        return Start(self.alpha[-1].copy(), np.zeros(1))

    def back(self, weight: Array | None = None, beta_last: Array | None = None) -> tuple[Posterior, Array]:
        """Backward pass: γ_t and ξ_t, zeros for impossible sequences; and log β of the frame before the first one."""
        from likely.hmm._loops import log_recursions as loops

        weight = np.ones(len(self.offsets) - 1) if weight is None else np.array(weight)
        beta, gamma, into = np.empty_like(self.logs), np.empty_like(self.logs), self.arcs.matrices
        counts, final = np.zeros_like(into), self.arcs.final if beta_last is None else beta_last
        loops.backward(into, final, self.logs, self.offsets, beta)
        loops.expected_counts(into, self.logs, self.offsets, self.alpha, beta, self.total, weight, gamma, counts)
        beta_before = self.arcs.final
        if self.start is not None:
            pairs = into[0] + self.logs[0] + beta[0]
            beta_before = np.logaddexp.reduce(pairs, axis=1)
            pairs += self.start.log_filter[:, None]
            counts[0] += np.exp(pairs - np.logaddexp.reduce(pairs, axis=None))
        counts = counts[: len(gamma)] if self.arcs.is_varying else counts[0]
        return Posterior(gamma, counts, self.log_prob), beta_before


Pass = type[ScaledPass] | type[LogPass]


class Underflow(Exception):
    """Scaled probabilities underflow for a sequence that is processed piece by piece."""


def scaled_or_log(run: Callable[[Pass], Any]) -> Any:
    """The result of `run` with scaled probabilities, or in logarithms if they underflow."""
    try:
        return run(ScaledPass)
    except Underflow:
        return run(LogPass)


# --------------------------------------------------------- several sequences


def stacked(chains: list[Arcs]) -> tuple[Array, ...]:
    """Initial (C, K), transition (C, K, K), final (C, K) and thresholds (C, K) of constant chains, as arrays."""
    arcs = [(w.initial, w.transition, w.final, w.entry) for w in chains]
    return tuple(np.stack(part) for part in zip(*arcs, strict=True))


def log_likelihoods(chains: list[Arcs], logs: Array, offsets: Index, stack: tuple[Array, ...] | None = None) -> Array:
    """log p(x) of n sequences under C chains (n, C), from scores log b (T, C·K), which are overwritten.

    Several chains have constant transitions; `stack` are those of `stacked`, where they are known already.
    """
    from likely.hmm._loops import scaled_recursions as loops

    offsets, scores = np.array(offsets), logs.copy()  # read-only offsets would be a second signature of the loops
    C, K, T, n = len(chains), len(chains[0].initial), len(logs), len(offsets) - 1
    if chains[0].is_varying:
        forward = ScaledPass(chains[0], logs, offsets, overwrite=True)
        out, in_range = forward.log_prob[:, None], forward.in_range[None]
    else:
        log_max, in_range = np.empty((T, C)), np.empty((C, n), dtype=np.bool_)
        scale, termination = np.empty((C, T)), np.empty((C, n))
        loops.shift(logs, log_max, K)
        each = stacked(chains) if stack is None else stack
        b = np.exp(logs, out=logs).reshape(T, C, K)
        loops.likelihoods(*each, b, offsets, scale, termination, in_range)
        out = np.log(termination).T + _sums(np.log(scale).T + log_max, offsets)
    for c in np.flatnonzero(~in_range.all(axis=1)):
        failed = np.flatnonzero(~in_range[c])
        frames, cut = frames_of(failed, offsets)
        again = LogPass(chains[c].at(frames), scores[frames, c * K : (c + 1) * K], cut)
        out[failed, c] = again.log_prob
    empty = np.diff(offsets) == 0
    out[empty] = [w.logs.empty for w in chains] if empty.any() else 0.0
    return out


def posterior(arcs: Arcs, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """Forward–backward algorithm on the scores log b (T, K) of all frames; impossible sequences get zeros."""
    forward = ScaledPass(arcs, logs, offsets)
    found = forward.back(weight)[0]
    failed = np.flatnonzero(~forward.in_range)
    if len(failed):
        frames, cut = frames_of(failed, offsets)
        again = LogPass(arcs.at(frames), logs[frames], cut).back(weight[failed])[0]
        found.states[frames], found.log_prob[failed] = again.states, again.log_prob
        if arcs.is_varying:
            found.transition[frames] = again.transition
        else:
            found = found._replace(transition=found.transition + again.transition)
    _set_empty(found.log_prob, arcs, offsets)
    return found


def log_posterior(arcs: Arcs, logs: Array, offsets: Index, weight: Array) -> Posterior:
    """Forward–backward algorithm in logarithms: the reference of `posterior`."""
    found = LogPass(arcs, logs, offsets).back(weight)[0]
    _set_empty(found.log_prob, arcs, offsets)
    return found


def smoothed(arcs: Arcs, logs: Array, offsets: Index, gamma: Array, rescore: Callable[[], Array]) -> Array:
    """log p(x) (n,) and p(s_t | x) of every frame, written to gamma (T, K): no ξ, so it needs less memory.

    The scores are overwritten; where logarithms are needed, `rescore` computes them again.
    """
    forward = ScaledPass(arcs, logs, offsets, out=gamma, overwrite=True)
    forward.smooth()
    total, failed = forward.log_prob, np.flatnonzero(~forward.in_range)
    if len(failed):
        frames, cut = frames_of(failed, offsets)
        again = LogPass(arcs.at(frames), rescore()[frames], cut).back()[0]
        gamma[frames], total[failed] = again.states, again.log_prob
    _set_empty(total, arcs, offsets)
    return total


def filtered(arcs: Arcs, logs: Array, offsets: Index) -> tuple[Array, Array]:
    """Filtered probabilities p(s_t | x_1 … x_t) (T, K), and the increments log p(x_t | x_1 … x_{t−1}) (T,)."""
    anywhere = arcs._replace(final=np.ones(len(arcs.final)))
    forward = ScaledPass(anywhere, logs, offsets)
    alpha, increments, failed = forward.filter, forward.increments, np.flatnonzero(~forward.in_range)
    if len(failed):
        frames, cut = frames_of(failed, offsets)
        again = LogPass(anywhere.at(frames), logs[frames], cut)
        alpha[frames], increments[frames] = again.filter, again.increments
    return alpha, increments


def expected_transitions(transition: Array, alpha: Array, b_beta: Array) -> Array:
    """Σ_t ξ_t (K, K) from alpha and b_beta: sparse where few transitions are possible, else a product of matrices."""
    from likely.hmm._loops import scaled_recursions as loops

    out = np.empty_like(transition)
    return (
        out
        if loops.sparse_transition_counts(transition[None], alpha, b_beta, out)
        else np.multiply(transition, alpha[:-1].T @ b_beta[1:], out=out)
    )


# --------------------------------------------------------------- known states


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


# -------------------------------------------------------------------- helpers


def frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """Indices of the frames of some sequences, and the offset of each among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut


def _exponentiate(b: Array, log_max: Array) -> None:
    """Replace b by exp(b − log_max), the largest of each frame at 1; a long sequence on all cores."""
    from likely.hmm._loops import scaled_recursions as loops

    def fill(a: int) -> None:
        at = slice(a, a + CHUNK)
        loops.shift(b[at], log_max[at], b.shape[1])
        with np.errstate(all="ignore"):
            np.exp(b[at], out=b[at])

    for _ in ordered_map(fill, range(0, len(b), CHUNK), cores()):
        pass


def _thresholds(arcs: Arcs, offsets: Index, inside: bool) -> tuple[Array, Mask]:
    """Thresholds of underflow (1, K) or (n, K), and which sequences (n,) may be tried with scaled probabilities."""
    n = len(offsets) - 1
    if not arcs.is_varying:
        return arcs.entry[None], np.ones(n, dtype=bool)
    least = np.where(np.isneginf(arcs.log_transition), 0.0, arcs.log_transition).min(axis=(1, 2), initial=0.0)
    thin, far = (_any_of(least < np.log(limit), offsets, inside) for limit in (THIN, FAR))
    return np.where(thin[:, None] & np.isfinite(arcs.entry), -1.0, arcs.entry), ~far


def _any_of(marked: Mask, offsets: Index, inside: bool) -> Mask:
    """Which sequences have a marked frame after their first, (n,); with `inside`, the first counts too."""
    if not inside:
        marked[_first(offsets)] = False
    count = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(count[offsets[1:]] > count[offsets[:-1]])


def _first(offsets: Index) -> Index:
    """The first frame of each sequence that is not empty."""
    return np.asarray(offsets[:-1][np.diff(offsets) > 0])


def _set_empty(total: Array, arcs: Arcs, offsets: Index) -> None:
    """Sequences without a frame have the probability of passing from entry to exit at once."""
    empty = np.diff(offsets) == 0
    if empty.any():
        with np.errstate(divide="ignore"):
            total[empty] = np.log(arcs.empty)


def _sums(each: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence."""
    if len(offsets) == 2:
        return each.sum(axis=0, keepdims=True)
    nonempty = np.diff(offsets) > 0
    out = np.zeros((len(offsets) - 1, *each.shape[1:]))
    if nonempty.any():
        out[nonempty] = np.add.reduceat(each, offsets[:-1][nonempty], axis=0)
    return out
