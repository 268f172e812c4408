"""Reference implementation of HMM algorithms by enumeration of all state paths and all routes through null states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from likely import HMM, Categorical

EXIT = -1


@dataclass
class Route:
    """One route from an emitting state (or the entry) to another (or the exit): its arcs, and its probability."""

    arcs: list[tuple[int, int]]  # the entry is state N, the exit is −1
    prob: float


def routes(initial: Any, transition: Any, final: Any, K: int, source: int, sink: int) -> list[Route]:
    """All routes from source (N: the entry) to sink through null states, which must be acyclic; none has prob 0."""
    N = len(initial)

    def arc(a: int, b: int) -> float:
        if b == EXIT:
            return 0.0 if a == N or final is None else float(final[a])
        return float(initial[b] if a == N else transition[a, b])

    def walk(at: int, arcs: list[tuple[int, int]], prob: float) -> Iterator[Route]:
        if arc(at, sink) > 0:
            yield Route([*arcs, (at, sink)], prob * arc(at, sink))
        for null in range(K, N):
            if arc(at, null) > 0:
                yield from walk(null, [*arcs, (at, null)], prob * arc(at, null))

    return list(walk(source, [], 1.0))


class AllPaths:
    """All that is to be known of one sequence with scores (T, K) under a chain, by writing out every path."""

    def __init__(self, initial: Any, transition: Any, final: Any, scores: np.ndarray, free: bool = False) -> None:
        self.initial, self.transition, self.final = np.asarray(initial), np.asarray(transition), final
        self.scores, (self.T, self.K), self.N = scores, scores.shape, len(self.initial)
        self.free = free or final is None  # a sequence may stop anywhere

    @cached_property
    def between(self) -> dict[tuple[int, int], list[Route]]:
        sources, sinks = [*range(self.K), self.N], [*range(self.K), EXIT]
        found = {
            (a, b): routes(self.initial, self.transition, self.final, self.K, a, b) for a, b in product(sources, sinks)
        }
        if self.free:
            found |= {(a, EXIT): [Route([(a, EXIT)], 1.0)] for a in sources}
        return found

    @cached_property
    def paths(self) -> np.ndarray:
        """All paths (P, T) of emitting states."""
        return np.array(list(product(range(self.K), repeat=self.T)), dtype=int).reshape(self.K**self.T, self.T)

    def joint(self, how: Any) -> np.ndarray:
        """log p(path, x) of each path (P,); routes between the same two states are combined by `how`: sum or max."""
        table = np.full((self.N + 1, self.N + 1), -np.inf)
        for (a, b), options in self.between.items():
            if options:
                table[a, b] = np.log(how([way.prob for way in options]))
        total = np.zeros(len(self.paths))
        before = np.full(len(self.paths), self.N)
        for t in range(self.T):
            total = total + table[before, self.paths[:, t]] + self.scores[t, self.paths[:, t]]
            before = self.paths[:, t]
        return total + table[before, EXIT]

    @cached_property
    def logs(self) -> np.ndarray:
        return self.joint(sum)

    @cached_property
    def best_logs(self) -> np.ndarray:
        return self.joint(max)

    @cached_property
    def log_prob(self) -> float:
        return float(logsumexp(self.logs)) if np.isfinite(self.logs).any() else -np.inf

    @cached_property
    def shares(self) -> np.ndarray:
        return np.exp(self.logs - self.log_prob)

    @cached_property
    def posterior(self) -> np.ndarray:
        return np.stack([np.bincount(self.paths[:, t], self.shares, self.K) for t in range(self.T)])

    @cached_property
    def uses(self) -> np.ndarray:
        """Expected uses (N + 1, N + 1) of all arcs: row N from the entry, column −1 to the exit."""
        return self._used(self.shares, lambda options: [w.prob / sum(o.prob for o in options) for w in options])

    @cached_property
    def best_uses(self) -> np.ndarray:
        """Uses along the best path by its best routes."""
        one = np.zeros(len(self.paths))
        one[self.best_logs.argmax()] = 1.0
        best = lambda options: [float(w is max(options, key=lambda o: o.prob)) for w in options]  # noqa: E731
        return self._used(one, best)

    def _used(self, shares: np.ndarray, split: Any) -> np.ndarray:
        total = np.zeros((self.N + 1, self.N + 1))
        for p in np.flatnonzero(shares > 0):
            steps = [self.N, *self.paths[p].tolist(), EXIT]
            for a, b in pairwise(steps):
                options = self.between[a, b]
                for way, share in zip(options, split(options), strict=True):
                    for arc in way.arcs:
                        total[arc] += shares[p] * share
        return total


def every_walk(initial: Any, transition: Any, final: Any, scores: np.ndarray) -> Iterator[tuple[list[int], float]]:
    """Every walk from entry to exit, null states and all, one after the other: the oracle of the oracle."""
    (T, K), N = scores.shape, len(initial)

    def walk(at: int, t: int, states: list[int], log: float) -> Iterator[tuple[list[int], float]]:
        row = initial if at == N else transition[at]
        if t == T and (at < K if final is None else at < N and final[at] > 0):
            yield states, log + (0.0 if final is None else np.log(final[at]))
        for to in np.flatnonzero(row > 0).tolist():
            emits = to < K
            if emits and t == T:
                continue
            yield from walk(to, t + emits, [*states, to], log + np.log(row[to]) + (scores[t, to] if emits else 0.0))

    if T == 0 and final is None:
        yield [], 0.0
        return
    yield from walk(N, 0, [], 0.0)


# ------------------------------------------------------------------------ problems


@dataclass
class Small:
    """A random chain, a sequence of symbols, and what is known of its states."""

    model: HMM
    x: np.ndarray  # (T, 1)
    given: np.ndarray | None  # (T, K): a log-mask
    scores: np.ndarray  # (T, K)

    @property
    def known(self) -> np.ndarray:
        return self.scores if self.given is None else self.scores + self.given

    def all_paths(self, scores: np.ndarray | None = None, free: bool = False) -> AllPaths:
        m = self.model
        return AllPaths(m.initial, m.transition, m.final, self.known if scores is None else scores, free)


def shares(rng: Generator, possible: np.ndarray, zeros: float) -> np.ndarray:
    """Probabilities over what is possible, some of them 0."""
    keep = possible & (rng.random(len(possible)) >= zeros)
    keep = keep if keep.any() else np.arange(len(possible)) == rng.choice(np.flatnonzero(possible))
    w = np.where(keep, rng.standard_gamma(0.7, len(possible)) + 1e-3, 0.0)
    return w / w.sum()


def random_chain(rng: Generator, K: int, Q: int, with_ends: bool, zeros: float) -> tuple[Any, Any, Any]:
    """Starts, moves and ends (or None); null states lead to emitting states, to later null states, to the exit."""
    N = K + Q
    possible = np.ones((N + 1, N + 1), dtype=bool)
    for q in range(Q):
        possible[K + q, K : K + q + 1] = False
    possible[:, N] = with_ends
    possible[N, N] = False
    rows = np.stack([shares(rng, possible[a], zeros) for a in range(N + 1)])
    return rows[N, :N], rows[:N, :N], rows[:N, N].copy() if with_ends else None


def small(seed: int) -> Small:
    """A problem of at most five states and six frames; the same seed gives the same one."""
    rng = np.random.default_rng([5, seed])
    K = int(rng.integers(1, 6))
    Q = int(rng.integers(0, min(3, 6 - K)))
    T = int(rng.integers(0, 1 + min(6, int(np.log(700) / np.log(max(K, 2))))))
    zeros = float(rng.choice([0.0, 0.3, 0.6]))
    initial, transition, final = random_chain(rng, K, Q, bool(rng.random() < 0.6), zeros)
    symbols = np.stack([shares(rng, np.ones(3, bool), zeros / 2) for _ in range(K)])
    x = rng.integers(0, 3, (T, 1)).astype(float)
    x[rng.random(T) < 0.15] = np.nan
    with np.errstate(divide="ignore"):
        table = np.log(np.concatenate([symbols, np.ones((K, 1))], axis=1))
    scores = table[:, np.where(np.isnan(x[:, 0]), 3, x[:, 0]).astype(int)].T.copy()
    given = None
    if rng.random() < 0.4:
        may = rng.random((T, K)) < 0.7
        given = np.where(may | ~may.any(axis=1, keepdims=True), 0.0, -np.inf)
    return Small(HMM(initial, transition, Categorical(symbols), final=final), x, given, scores)
