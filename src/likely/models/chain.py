"""A Markov chain of states with null states between them, which emit nothing and take no time.

A walk may pass through any number of null states from one frame to the next. Summed over all such ways, the chain is
an ordinary one of emitting states alone (`summed`); taken by the best way, likewise (`best`). Which ways were used is
then a matter of the chain only, not of the frames: expected uses of every arc follow from the moves between emitting
states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array
from likely.core.value import Value
from likely.errors import DomainError, sentence

THIN = 1e-20  # an arc below that may take a product out of the range of numbers


class Ways(NamedTuple):
    """From entry to states, between states, to the exit, and from entry to exit without any frame."""

    starts: Array  # (K,)
    moves: Array  # (K, K)
    ends: Array  # (K,)
    empty: float
    entry: Array  # (K,): how a state is entered: inf never, 0 by ordinary arcs, −1 by some that is thin, too

    @property
    def logs(self) -> Ways:
        """The same in logarithms."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.starts), np.log(self.moves), np.log(self.ends), float(np.log(self.empty))
        return Ways(*logs, self.entry)


@dataclass(frozen=True, eq=False)
class Chain(Value):
    """States 0 … K − 1 emit, those after them do not; `ends` None lets a sequence stop anywhere   (Herbst 9.4.3).

    >>> half = Chain(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]), None, 1)  # state 1 is a null state
    >>> half.summed.moves  # stay, or go through the null state and come back
    array([[1.]])
    """

    starts: Array  # (N,): from the entry
    moves: Array  # (N, N)
    ends: Array | None  # (N,): to the exit
    states: int  # K of the N

    @cached_property
    def _system(self) -> tuple[Array, Array, Array]:
        """Arcs from emitting states and entry, and from null states, to emitting states and exit; null to null."""
        K = self.states
        out = self.ends if self.ends is not None else np.zeros(len(self.starts))
        arcs = np.concatenate([self.moves[:K], self.starts[None]])
        full = np.concatenate([arcs, np.append(out[:K], 0.0)[:, None]], axis=1)
        nulls = np.concatenate([self.moves[K:], out[K:, None]], axis=1)
        return full, nulls[:, [*range(K), len(self.starts)]], self.moves[K:, K:]

    @cached_property
    def _between(self) -> Array:
        """Σ of all walks from null state to null state (Q, Q): (I − A)⁻¹."""
        loops = self._system[2]
        return np.asarray(np.linalg.inv(np.eye(len(loops)) - loops), dtype=np.float64)

    @cached_property
    def summed(self) -> Ways:
        """Probabilities between emitting states, over all ways through null states."""
        full, leave, _ = self._system
        K = self.states
        direct = np.delete(full, np.s_[K:-1], axis=1)
        if full.shape[1] > K + 1:
            direct = direct + full[:, K:-1] @ self._between @ leave
        return self._ways(direct)

    @cached_property
    def best(self) -> Ways:
        """The same by the best single way."""
        return self._ways(self._routes[0])

    @cached_property
    def logs(self) -> Ways:
        """`summed` in logarithms."""
        return self.summed.logs

    @cached_property
    def best_logs(self) -> Ways:
        """`best` in logarithms."""
        return self.best.logs

    def _ways(self, between: Array) -> Ways:
        K = self.states
        ends = np.ones(K) if self.ends is None else np.ascontiguousarray(between[:K, K])
        empty = 1.0 if self.ends is None else float(between[K, K])
        starts, moves = np.ascontiguousarray(between[K, :K]), np.ascontiguousarray(between[:K, :K])
        return Ways(starts, moves, ends, empty, _entry(starts, moves))

    @cached_property
    def _routes(self) -> tuple[Array, dict[tuple[int, int], list[int]]]:
        """The best probability from each source to each sink, and the null states on the way where there are any."""
        full, leave, loops = self._system
        K, Q = self.states, len(loops)
        best, way = _shortest(loops)
        direct = np.delete(full, np.s_[K:-1], axis=1)
        routes: dict[tuple[int, int], list[int]] = {}
        for a in range(K + 1):
            for b in range(K + 1):
                through = full[a, K : K + Q, None] * best * leave[None, :, b] if Q else np.zeros((0, 0))
                if through.size and through.max() > direct[a, b]:
                    n, m = np.unravel_index(int(through.argmax()), through.shape)
                    direct[a, b], routes[a, b] = through[n, m], way[int(n)][int(m)]
        return direct, routes

    # ---------------------------------------------------------------- counting

    def uses(self, starts: Array, moves: Array, ends: Array, empty: float) -> Chain:
        """Expected uses of every arc, null arcs too, from those of the ways between emitting states."""
        K, Q = self.states, len(self.starts) - self.states
        ways = np.block([[moves, ends[:, None]], [starts[None], np.array([[empty]])]])
        if not Q:
            return self._counted(np.insert(ways, [K] * Q, 0.0, axis=1), np.zeros((0, K + 1)), np.zeros((0, 0)))
        full, leave, loops = self._system
        s = self.summed
        sums = np.block([[s.moves, s.ends[:, None]], [s.starts[None], np.array([[s.empty]])]])
        share = np.divide(ways, sums, out=np.zeros_like(ways), where=sums > 0)
        enter, ahead = full[:, K : K + Q] @ self._between, self._between @ leave
        used = np.concatenate(
            [full[:, :K] * share[:, :K], full[:, K:-1] * (share @ ahead.T), full[:, -1:] * share[:, K:]], axis=1
        )
        if self.ends is None:
            used[:K, -1] = ends
        return self._counted(used, leave * (enter.T @ share), loops * (enter.T @ share @ ahead.T))

    def best_uses(self, starts: Array, moves: Array, ends: Array, empty: float) -> Chain:
        """The same where each way was the best one."""
        K, Q = self.states, len(self.starts) - self.states
        ways = np.block([[moves, ends[:, None]], [starts[None], np.array([[empty]])]])
        used, left, looped = np.zeros((K + 1, K + Q + 1)), np.zeros((Q, K + 1)), np.zeros((Q, Q))
        routes = self._routes[1]
        for a, b in zip(*np.nonzero(ways), strict=True):
            count, route = ways[a, b], routes.get((int(a), int(b)))
            if route is None or (self.ends is None and b == K):
                used[a, b if b < K else K + Q] += count
                continue
            used[a, K + route[0]] += count
            left[route[-1], b] += count
            for n, m in pairwise(route):
                looped[n, m] += count
        return self._counted(used, left, looped)

    def _counted(self, used: Array, left: Array, looped: Array) -> Chain:
        K = self.states
        N = used.shape[1] - 1
        moves = np.zeros((N, N))
        moves[:K], moves[K:, :K], moves[K:, K:] = used[:K, :N], left[:, :K], looped
        ends = np.concatenate([used[:K, N], left[:, K]])
        return Chain.trusted(starts=used[K, :N].copy(), moves=moves, ends=ends, states=K)

    def expected_log(self, uses: Chain) -> float:
        """Σ uses · log probability over all arcs."""
        value = float(xlogy(uses.starts, self.starts).sum() + xlogy(uses.moves, self.moves).sum())
        if self.ends is None or uses.ends is None:
            return value
        return value + float(xlogy(uses.ends, self.ends).sum())


def _entry(starts: Array, moves: Array) -> Array:
    ever = (starts > 0) | (moves > 0).any(axis=0)
    thin = ((moves > 0) & (moves < THIN)).any(axis=0)
    return np.where(thin, -1.0, np.where(ever, 0.0, np.inf))


def _shortest(loops: Array) -> tuple[Array, list[list[list[int]]]]:
    """The best walk between any two null states, and the states on it, both ends included."""
    Q = len(loops)
    best = np.maximum(loops, np.eye(Q))
    way = [[[n] if n == m else [n, m] for m in range(Q)] for n in range(Q)]
    for over in range(Q):
        for n in range(Q):
            for m in range(Q):
                if best[n, over] * best[over, m] > best[n, m]:
                    best[n, m] = best[n, over] * best[over, m]
                    way[n][m] = way[n][over] + way[over][m][1:]
    return best, way


SUM_TO_ONE = 1e-9


def check_chain(starts: Array, moves: Array, ends: Array | None, states: int) -> None:
    """Probabilities leave every state and the entry, none is negative, and walks among null states come to an end."""
    for name, a in (("starts", starts), ("moves", moves), ("ends", ends)):
        if a is not None and (a < 0).any():
            raise DomainError(sentence("HMM", f"{name} must not be negative", float(a.min())))
    if abs(starts.sum() - 1) > SUM_TO_ONE:
        raise DomainError(sentence("HMM", "starts must sum to 1", float(starts.sum())))
    leaving = moves.sum(axis=1) + (0.0 if ends is None else ends)
    worst = int(np.abs(leaving - 1).argmax())
    if abs(leaving[worst] - 1) > SUM_TO_ONE:
        expected = f"moves{'' if ends is None else ' and ends'} from state {worst} must sum to 1"
        raise DomainError(sentence("HMM", expected, float(leaving[worst])))
    loops = moves[states:, states:]
    if len(loops) and np.abs(np.linalg.eigvals(loops)).max() > 1 - 1e-12:
        remedy = "give every null state a way to an emitting state or to the exit"
        raise DomainError(sentence("HMM", "walks among null states must come to an end", "a closed loop", remedy))
