"""All paths through states whose moves change with time: what is likely, given all that was seen.

`Numbers` and `Logarithms` are one pass forwards and back: the first is fast and knows when it lost something, the
second never loses. Frames may be whole sequences, or a piece of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from likely.core.arrays import Array, Index, Mask
from likely.hmm.driven.logistic_transitions import Moves
from likely.hmm.viterbi import BestPaths

FAR = -600.0  # log-probability of a move that numbers, not logarithms, are too coarse for
THIN = -46.0  # log-probability of a move that may take a product out of the range of numbers: 1e-20


class Smoothed(NamedTuple):
    """What is known of states and of moves once all is seen, in probabilities."""

    states: Array  # (T, K)
    transition: Array  # (T, K, K): from the frame before; 0 in the first frame of a sequence
    log_prob: Array  # (n,)


class Begun(NamedTuple):
    """Where a piece of a sequence begins: the filter of the frame before, and what was lost up to there."""

    before: Array  # (K,): in the way of the pass that made it
    lost: Array  # (1,)


class Numbers:
    """Scaled numbers: only products and sums. `sound` (n,) says for which sequences they sufficed."""

    def __init__(
        self, initial: Array, transition: Moves, logs: Array, offsets: Index, begun: Begun | None = None
    ) -> None:
        from likely.hmm._loops import scaled_recursions, time_varying_recursions

        T, K = logs.shape
        self.offsets, self.begun, self.probs = np.array(offsets), begun, transition.probs
        top, self.b = np.empty((T, 1)), np.array(logs, order="C")
        scaled_recursions.shift(self.b, top, K)
        np.exp(self.b, out=self.b)
        self.alpha, self.scale = np.empty((T, K)), np.ones(T)
        self.sound, floor = self._range(transition.least, begun is not None)
        self.lost = np.zeros(len(offsets) - 1) if begun is None else begun.lost.copy()
        enter = initial if begun is None else begun.before @ self.probs[0]
        ever = (enter > 0) | np.isfinite(transition.logs[:1]).any(axis=(0, 1))
        time_varying_recursions.forward(
            np.array(enter),
            self.probs,
            ever,
            floor,
            self.b,
            self.offsets,
            self.alpha,
            self.scale,
            self.sound,
            self.lost,
        )
        self.log_prob = _sums(np.log(self.scale) + top[:, 0], self.offsets)

    def _range(self, least: Array, inside: bool) -> tuple[Mask, Array]:
        """Which sequences may be tried, and 0, or −1 where moves are thin."""
        thin, far = (_any_of(least < limit, self.offsets, inside) for limit in (THIN, FAR))
        return ~far, np.where(thin, -1.0, 0.0)

    @property
    def filter(self) -> Array:
        """p(s_t | x_1 … x_t) (T, K)."""
        return self.alpha

    @property
    def log_filter(self) -> Array:
        """Its logarithm."""
        return np.log(self.alpha)

    @property
    def end(self) -> Begun:
        """What the next piece begins with."""
        return Begun(self.alpha[-1].copy(), self.lost)

    def back(self, after: Array | None = None) -> tuple[Smoothed, Array]:
        """Backwards: states and moves, and what the first frame is worth to the states before it (K,)."""
        from likely.hmm._loops import time_varying_recursions

        gamma, ahead = np.zeros(self.alpha.shape), np.zeros(self.alpha.shape)
        after = np.ones(gamma.shape[1]) if after is None else after
        time_varying_recursions.backward(
            self.probs, after, self.b, self.offsets, self.alpha, self.scale, self.sound, gamma, ahead
        )  # fmt: skip
        pairs = np.empty(self.probs.shape)
        np.multiply(self.probs[1:], ahead[1:, None, :], out=pairs[1:])
        pairs[1:] *= self.alpha[:-1, :, None]
        pairs[_first(self.offsets)] = 0.0
        if self.begun is not None:
            pairs[0] = self.begun.before[:, None] * self.probs[0] * ahead[0]
        worth = self.probs[0] @ ahead[0] if len(gamma) else after
        return Smoothed(gamma, pairs, self.log_prob), worth


class Logarithms:
    """The same in logarithms: slower by the exponentials, and nothing is ever lost."""

    def __init__(
        self, initial: Array, transition: Moves, logs: Array, offsets: Index, begun: Begun | None = None
    ) -> None:
        from likely.hmm._loops import scaled_recursions, time_varying_recursions

        T, K = logs.shape
        self.offsets, self.begun, self.transition = np.array(offsets), begun, transition.logs
        top, self.logs = np.empty((T, 1)), np.array(logs, order="C")
        scaled_recursions.shift(self.logs, top, K)
        self.alpha, scale = np.empty((T, K)), np.empty(T)
        enter = np.log(initial) if begun is None else logsumexp(begun.before[:, None] + transition.logs[0], axis=0)
        time_varying_recursions.log_forward(
            np.asarray(enter), self.transition, self.logs, self.offsets, self.alpha, scale
        )
        self.log_prob = _sums(scale + top[:, 0], self.offsets)

    @property
    def sound(self) -> Mask:
        """Always."""
        return np.ones(len(self.offsets) - 1, dtype=bool)

    @property
    def filter(self) -> Array:
        """p(s_t | x_1 … x_t) (T, K)."""
        return np.exp(self.alpha)

    @property
    def log_filter(self) -> Array:
        """Its logarithm."""
        return self.alpha

    @property
    def end(self) -> Begun:
        """What the next piece begins with."""
        return Begun(self.alpha[-1].copy(), np.zeros(1))

    def back(self, after: Array | None = None) -> tuple[Smoothed, Array]:
        """Backwards: states and moves, and what the first frame is worth to the states before it (K,)."""
        from likely.hmm._loops import time_varying_recursions

        T, K = self.alpha.shape
        beta, after = np.empty((T, K)), np.zeros(K) if after is None else after
        time_varying_recursions.log_backward(self.transition, after, self.logs, self.offsets, beta)
        onward = self.logs + beta
        pairs = self.transition + onward[:, None, :]
        worth = np.asarray(logsumexp(pairs[0], axis=1)) if T else after
        pairs[1:] += self.alpha[:-1, :, None]
        if self.begun is not None:
            pairs[0] += self.begun.before[:, None]
        pairs = _shares(pairs.reshape(T, K * K)).reshape(T, K, K)
        if self.begun is None:
            pairs[_first(self.offsets)] = 0.0
        gamma = _shares(self.alpha + beta)
        cannot = np.repeat(np.isneginf(self.log_prob), np.diff(self.offsets))
        gamma[cannot], pairs[cannot] = 0.0, 0.0
        return Smoothed(gamma, pairs, self.log_prob), worth


Way = type[Numbers] | type[Logarithms]


class Lost(Exception):
    """Numbers do not suffice for a sequence that is passed piece by piece."""


def either(run: Callable[[Way], Any]) -> Any:
    """What a run over pieces finds in numbers, else what it finds in logarithms."""
    try:
        return run(Numbers)
    except Lost:
        return run(Logarithms)


def sound(passed: Any) -> Any:
    """The same pass; an exception that `either` knows where it lost something."""
    if not passed.sound.all():
        raise Lost
    return passed


def filtered(initial: Array, transition: Moves, logs: Array, offsets: Index) -> tuple[Array, Array]:
    """log p(s_t | x_1 … x_t) of each frame (T, K), and log p(x) of each sequence (n,)."""
    passed = Numbers(initial, transition, logs, offsets)
    found, total, bad = passed.log_filter, passed.log_prob, np.flatnonzero(~passed.sound)
    if len(bad):
        frames, cut = frames_of(bad, offsets)
        again = Logarithms(initial, transition.at(frames), logs[frames], cut)
        found[frames], total[bad] = again.log_filter, again.log_prob
    return found, total


def smoothed(initial: Array, transition: Moves, logs: Array, offsets: Index) -> Smoothed:
    """Forwards and backwards: p(s_t | x) and p(s_{t−1}, s_t | x); zeros for sequences that cannot be."""
    passed = Numbers(initial, transition, logs, offsets)
    found, bad = passed.back()[0], np.flatnonzero(~passed.sound)
    if len(bad):
        frames, cut = frames_of(bad, offsets)
        again = Logarithms(initial, transition.at(frames), logs[frames], cut).back()[0]
        found.states[frames], found.transition[frames], found.log_prob[bad] = again
    return found


def lagged(passed: Logarithms, transition: Moves, logs: Array, offsets: Index, lag: int) -> Array:
    """p(s_t | x_1 … x_{t + lag}) of the frames of a pass (T, K); moves, scores and offsets may reach further ahead."""
    from likely.hmm._loops import time_varying_recursions

    out = np.empty(passed.alpha.shape)
    shifted = logs - np.maximum(logs.max(axis=1, keepdims=True), -1e300)
    time_varying_recursions.lagged(transition.logs, shifted, passed.alpha, np.array(offsets), lag, out)
    return out


def best_paths(initial: Array, transition: Moves, logs: Array, offsets: Index) -> BestPaths:
    """The best path of each sequence   (Viterbi)."""
    from likely.hmm._loops import path_recursions, time_varying_recursions

    offsets, n = np.array(offsets), len(offsets) - 1
    came, path = np.empty(logs.shape, dtype=np.int16), np.empty(len(logs), dtype=np.intp)
    last, score = np.empty(n, dtype=np.intp), np.empty(n)
    time_varying_recursions.viterbi(np.log(initial), transition.logs, logs, offsets, came, last, score)
    path_recursions.trace(came, offsets, last, path)
    return BestPaths(path, score)


def drawn_paths(found: Array, transition: Moves, offsets: Index, uniform: Array, after: Array | None = None) -> Index:
    """A path of each sequence (T,) from p(s | x), by uniform numbers (T,); `found` is what `filtered` gives."""
    from likely.hmm._loops import time_varying_recursions

    path = np.empty(len(found), dtype=np.intp)
    after = np.zeros(found.shape[1]) if after is None else np.array(after)
    time_varying_recursions.draw(transition.logs, after, found, np.array(offsets), uniform, path)
    return path


def _shares(logs: Array) -> Array:
    """exp of each row, divided by its sum; zeros where all is −inf."""
    high = logs.max(axis=1, keepdims=True, initial=-np.inf)
    shares = np.exp(logs - np.where(np.isneginf(high), 0.0, high))
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))


def _first(offsets: Index) -> Index:
    """The first frame of each sequence that has one."""
    return np.asarray(offsets[:-1][np.diff(offsets) > 0])


def _any_of(each: Mask, offsets: Index, inside: bool = False) -> Mask:
    """Which sequences have such a frame after their first, (n,); `inside` one, the first counts too."""
    marked = each.copy()
    if not inside:
        marked[_first(offsets)] = False
    count = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(count[offsets[1:]] > count[offsets[:-1]])


def _sums(each: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence (n,)."""
    there, out = np.diff(offsets) > 0, np.zeros(len(offsets) - 1)
    if there.any():
        out[there] = np.add.reduceat(each, offsets[:-1][there])
    return out


def frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """The frames of some sequences, and where each of those begins among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut


def expected_score(shares: Array, logs: Array) -> float:
    """Σ share · log over what has a share."""
    return float(np.vdot(shares, np.where(shares > 0, logs, 0.0)))
