"""Forward–backward and Viterbi algorithms of an HMM with time-varying transitions.

`ScaledPass` and `LogPass` are one forward and backward pass: the first is fast and detects underflow, the second cannot
underflow. Frames may be whole sequences, or a piece of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from likely.core.arrays import Array, Index, Mask
from likely.hmm.driven.logistic_transitions import Transitions
from likely.hmm.viterbi import BestPaths

FAR = -600.0  # log-probability of a transition below which scaled probabilities are not tried
THIN = -46.0  # log-probability of a transition that may make a product underflow: 1e-20


class Smoothed(NamedTuple):
    """Smoothed state and transition probabilities γ_t and ξ_t."""

    states: Array  # (T, K)
    transition: Array  # (T, K, K): from the frame before; 0 in the first frame of a sequence
    log_prob: Array  # (n,)


class PieceStart(NamedTuple):
    """The start of a piece of a sequence: the filter of the frame before, and the underflow bound up to there."""

    before: Array  # (K,): probabilities or logarithms, as in the pass that made it
    underflow: Array  # (1,)


class ScaledPass:
    """Forward and backward pass with scaling factors; `in_range` (n,) is false for sequences that underflow."""

    def __init__(
        self, initial: Array, transition: Transitions, logs: Array, offsets: Index, start: PieceStart | None = None
    ) -> None:
        from likely.hmm._loops import scaled_recursions, time_varying_recursions

        T, K = logs.shape
        self.offsets, self.start, self.probs = np.array(offsets), start, transition.probs
        log_max, self.b = np.empty((T, 1)), np.array(logs, order="C")
        scaled_recursions.shift(self.b, log_max, K)
        np.exp(self.b, out=self.b)
        self.alpha, self.scale = np.empty((T, K)), np.ones(T)
        self.in_range, threshold = self._range(transition.least, start is not None)
        self.underflow = np.zeros(len(offsets) - 1) if start is None else start.underflow.copy()
        predicted = initial if start is None else start.before @ self.probs[0]
        reachable = (predicted > 0) | np.isfinite(transition.logs[:1]).any(axis=(0, 1))
        time_varying_recursions.forward(
            np.array(predicted), self.probs, reachable, threshold, self.b, self.offsets, self.alpha, self.scale,
            self.in_range, self.underflow,
        )  # fmt: skip
        self.log_prob = _sums(np.log(self.scale) + log_max[:, 0], self.offsets)

    def _range(self, least: Array, inside: bool) -> tuple[Mask, Array]:
        """Which sequences may be tried, and the threshold of underflow: 0, or −1 where transitions are small."""
        thin, far = (_any_of(least < limit, self.offsets, inside) for limit in (THIN, FAR))
        return ~far, np.where(thin, -1.0, 0.0)

    @property
    def filter(self) -> Array:
        """p(s_t | x_1 … x_t) (T, K)."""
        return self.alpha

    @property
    def log_filter(self) -> Array:
        """log p(s_t | x_1 … x_t) (T, K)."""
        return np.log(self.alpha)

    @property
    def end(self) -> PieceStart:
        """The start of the next piece."""
        return PieceStart(self.alpha[-1].copy(), self.underflow)

    def back(self, beta_last: Array | None = None) -> tuple[Smoothed, Array]:
        """Backward pass: γ_t and ξ_t, and β of the frame before the first one (K,)."""
        from likely.hmm._loops import time_varying_recursions

        gamma, b_beta = np.zeros(self.alpha.shape), np.zeros(self.alpha.shape)
        beta_last = np.ones(gamma.shape[1]) if beta_last is None else beta_last
        time_varying_recursions.backward(
            self.probs, beta_last, self.b, self.offsets, self.alpha, self.scale, self.in_range, gamma, b_beta
        )  # fmt: skip
        xi = np.empty(self.probs.shape)
        np.multiply(self.probs[1:], b_beta[1:, None, :], out=xi[1:])
        xi[1:] *= self.alpha[:-1, :, None]
        xi[_first(self.offsets)] = 0.0
        if self.start is not None:
            xi[0] = self.start.before[:, None] * self.probs[0] * b_beta[0]
        beta_before = self.probs[0] @ b_beta[0] if len(gamma) else beta_last
        return Smoothed(gamma, xi, self.log_prob), beta_before


class LogPass:
    """Forward and backward pass in logarithms: slower, without underflow."""

    def __init__(
        self, initial: Array, transition: Transitions, logs: Array, offsets: Index, start: PieceStart | None = None
    ) -> None:
        from likely.hmm._loops import scaled_recursions, time_varying_recursions

        T, K = logs.shape
        self.offsets, self.start, self.transition = np.array(offsets), start, transition.logs
        log_max, self.logs = np.empty((T, 1)), np.array(logs, order="C")
        scaled_recursions.shift(self.logs, log_max, K)
        self.alpha, scale = np.empty((T, K)), np.empty(T)
        predicted = np.log(initial) if start is None else logsumexp(start.before[:, None] + transition.logs[0], axis=0)
        time_varying_recursions.log_forward(
            np.asarray(predicted), self.transition, self.logs, self.offsets, self.alpha, scale
        )
        self.log_prob = _sums(scale + log_max[:, 0], self.offsets)

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
    def end(self) -> PieceStart:
        """The start of the next piece."""
        return PieceStart(self.alpha[-1].copy(), np.zeros(1))

    def back(self, beta_last: Array | None = None) -> tuple[Smoothed, Array]:
        """Backward pass: γ_t and ξ_t, and log β of the frame before the first one (K,)."""
        from likely.hmm._loops import time_varying_recursions

        T, K = self.alpha.shape
        beta, beta_last = np.empty((T, K)), np.zeros(K) if beta_last is None else beta_last
        time_varying_recursions.log_backward(self.transition, beta_last, self.logs, self.offsets, beta)
        log_b_beta = self.logs + beta
        xi = self.transition + log_b_beta[:, None, :]
        beta_before = np.asarray(logsumexp(xi[0], axis=1)) if T else beta_last
        xi[1:] += self.alpha[:-1, :, None]
        if self.start is not None:
            xi[0] += self.start.before[:, None]
        xi = _softmax(xi.reshape(T, K * K)).reshape(T, K, K)
        if self.start is None:
            xi[_first(self.offsets)] = 0.0
        gamma = _softmax(self.alpha + beta)
        impossible = np.repeat(np.isneginf(self.log_prob), np.diff(self.offsets))
        gamma[impossible], xi[impossible] = 0.0, 0.0
        return Smoothed(gamma, xi, self.log_prob), beta_before


Pass = type[ScaledPass] | type[LogPass]


class Underflow(Exception):
    """Scaled probabilities underflow for a sequence that is processed piece by piece."""


def scaled_or_log(run: Callable[[Pass], Any]) -> Any:
    """The result of `run` with scaled probabilities, or in logarithms if they underflow."""
    try:
        return run(ScaledPass)
    except Underflow:
        return run(LogPass)


def check_range(forward: Any) -> Any:
    """The same pass; raises `Underflow`, which `scaled_or_log` handles, if it is out of range."""
    if not forward.in_range.all():
        raise Underflow
    return forward


def filtered(initial: Array, transition: Transitions, logs: Array, offsets: Index) -> tuple[Array, Array]:
    """log p(s_t | x_1 … x_t) of each frame (T, K), and log p(x) of each sequence (n,)."""
    forward = ScaledPass(initial, transition, logs, offsets)
    result, total, failed = forward.log_filter, forward.log_prob, np.flatnonzero(~forward.in_range)
    if len(failed):
        frames, cut = frames_of(failed, offsets)
        again = LogPass(initial, transition.at(frames), logs[frames], cut)
        result[frames], total[failed] = again.log_filter, again.log_prob
    return result, total


def smoothed(initial: Array, transition: Transitions, logs: Array, offsets: Index) -> Smoothed:
    """Forward–backward algorithm: γ_t = p(s_t | x) and ξ_t = p(s_{t−1}, s_t | x); zeros for impossible sequences."""
    forward = ScaledPass(initial, transition, logs, offsets)
    result, failed = forward.back()[0], np.flatnonzero(~forward.in_range)
    if len(failed):
        frames, cut = frames_of(failed, offsets)
        again = LogPass(initial, transition.at(frames), logs[frames], cut).back()[0]
        result.states[frames], result.transition[frames], result.log_prob[failed] = again
    return result


def lagged(forward: LogPass, transition: Transitions, logs: Array, offsets: Index, lag: int) -> Array:
    """Fixed-lag smoothing p(s_t | x_1 … x_{t + lag}) (T, K) of the frames of a pass; other arrays may reach further."""
    from likely.hmm._loops import time_varying_recursions

    out = np.empty(forward.alpha.shape)
    shifted = logs - np.maximum(logs.max(axis=1, keepdims=True), -1e300)
    time_varying_recursions.lagged(transition.logs, shifted, forward.alpha, np.array(offsets), lag, out)
    return out


def best_paths(initial: Array, transition: Transitions, logs: Array, offsets: Index) -> BestPaths:
    """Viterbi path of each sequence."""
    from likely.hmm._loops import path_recursions, time_varying_recursions

    offsets, n = np.array(offsets), len(offsets) - 1
    backpointers, path = np.empty(logs.shape, dtype=np.int16), np.empty(len(logs), dtype=np.intp)
    last, score = np.empty(n, dtype=np.intp), np.empty(n)
    time_varying_recursions.viterbi(np.log(initial), transition.logs, logs, offsets, backpointers, last, score)
    path_recursions.backtrack(backpointers, offsets, last, path)
    return BestPaths(path, score)


def sample_paths(
    result: Array, transition: Transitions, offsets: Index, uniform: Array, beta_last: Array | None = None
) -> Index:
    """Backward sampling: one path per sequence (T,) from p(s | x), by uniform numbers; `result` is from `filtered`."""
    from likely.hmm._loops import time_varying_recursions

    path = np.empty(len(result), dtype=np.intp)
    beta_last = np.zeros(result.shape[1]) if beta_last is None else np.array(beta_last)
    time_varying_recursions.backward_sampling(transition.logs, beta_last, result, np.array(offsets), uniform, path)
    return path


def _softmax(logs: Array) -> Array:
    """Softmax of each row; zeros where all is −inf."""
    high = logs.max(axis=1, keepdims=True, initial=-np.inf)
    probs = np.exp(logs - np.where(np.isneginf(high), 0.0, high))
    return np.asarray(probs / np.maximum(probs.sum(axis=1, keepdims=True), 1e-300))


def _first(offsets: Index) -> Index:
    """The first frame of each sequence that is not empty."""
    return np.asarray(offsets[:-1][np.diff(offsets) > 0])


def _any_of(values: Mask, offsets: Index, inside: bool = False) -> Mask:
    """Which sequences have a marked frame after their first, (n,); with `inside`, the first counts too."""
    marked = values.copy()
    if not inside:
        marked[_first(offsets)] = False
    count = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(count[offsets[1:]] > count[offsets[:-1]])


def _sums(values: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence (n,)."""
    nonempty, out = np.diff(offsets) > 0, np.zeros(len(offsets) - 1)
    if nonempty.any():
        out[nonempty] = np.add.reduceat(values, offsets[:-1][nonempty])
    return out


def frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """Indices of the frames of some sequences, and the offset of each among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut


def expected_score(probs: Array, logs: Array) -> float:
    """Σ p · log q over the entries with p > 0."""
    return float(np.vdot(probs, np.where(probs > 0, logs, 0.0)))
