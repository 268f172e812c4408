"""Markov chain with null states, which emit nothing and take no time.

A path may pass through any number of null states between two frames. Summed over all such routes, the chain is an
ordinary one of emitting states alone (`summed`); with the most probable route, likewise (`best`). Which routes were
used depends on the chain only, not on the frames: expected uses of every arc follow from the expected transitions
between emitting states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DomainError, sentence
from likely.core.value import Value

THIN = 1e-20  # a transition probability below that may make a product underflow


class Arcs(NamedTuple):
    """Initial, transition and final probabilities between emitting states, and that of an empty sequence.

    `transition` is one matrix, or one that leads into each of T frames. Its logarithms are stored as well:
    probabilities may underflow.
    """

    initial: Array  # (K,)
    transition: Array  # (K, K), or (T, K, K)
    final: Array  # (K,)
    empty: float
    entry: Array  # (K,): inf for states never entered, −1 if some probability into it is below THIN, else 0
    log_transition: Array  # as `transition`

    @classmethod
    def varying(cls, initial: Array, transition: Array, log_transition: Array, possible: Mask) -> Arcs:
        """Time-varying transitions (T, K, K); `possible` (K, K) are those that are possible at some time."""
        K = len(initial)
        entry = np.where((initial > 0) | possible.any(axis=0), 0.0, np.inf)
        return cls(np.array(initial), transition, np.ones(K), 1.0, entry, log_transition)  # writable, as constant ones

    @property
    def is_varying(self) -> bool:
        """True if transitions vary with time."""
        return self.transition.ndim == 3

    @property
    def matrices(self) -> Array:
        """Transition matrices (S, K, K) as the recursions take them: S is 1, or the number of frames, at least 1."""
        if self.is_varying:
            return self.transition if len(self.transition) else np.zeros((1, *self.transition.shape[1:]))
        return self.transition[None]

    @property
    def logs(self) -> Arcs:
        """The same probabilities in logarithms."""
        with np.errstate(divide="ignore"):
            ends = np.log(self.initial), np.log(self.final), float(np.log(self.empty))
        logs = self.log_transition
        return Arcs(ends[0], logs, *ends[1:], self.entry, logs)

    def at(self, frames: Any) -> Arcs:
        """The arcs into some frames: the same ones where they are constant."""
        if not self.is_varying:
            return self
        return self._replace(transition=self.transition[frames], log_transition=self.log_transition[frames])


class Routes(NamedTuple):
    """Most probable routes from K states and the entry to K states and the exit, through Q null states."""

    best: Array  # (K + 1, K + 1): probabilities
    first: NDArray[np.int16]  # (K + 1, Q): the first null state of the route that ends with this one
    last: NDArray[np.int16]  # (K + 1, K + 1): the last null state of the route, −1 if it is direct
    next_null: Index  # (Q, Q): the next null state on the route from one to another

    def null_uses(self, counts: Array) -> Array:
        """Uses of arcs between null states (Q, Q), from the number of routes between each pair."""
        used = np.zeros_like(counts)
        for n, m in zip(*np.nonzero(counts), strict=True):
            here = n
            while here != m:
                used[here, self.next_null[here, m]] += counts[n, m]
                here = self.next_null[here, m]
        return used


@dataclass(frozen=True, eq=False)
class Chain(Value):
    """Markov chain of constant transitions: states 0 … K − 1 emit, the others are null states.

    `final` None lets a sequence stop anywhere.

    >>> half = Chain(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]), None, 1)  # state 1 is a null state
    >>> half.summed.transition  # stay, or go through the null state and come back
    array([[1.]])
    """

    initial: Array  # (N,): from the entry
    transition: Array  # (N, N)
    final: Array | None  # (N,): to the exit
    states: int  # K of the N

    @cached_property
    def _blocks(self) -> tuple[Array, Array, Array]:
        """Arcs from emitting states and entry, and from null states, to emitting states and exit; and null to null."""
        K = self.states
        out = self.final if self.final is not None else np.zeros(len(self.initial))
        arcs = np.concatenate([self.transition[:K], self.initial[None]])
        full = np.concatenate([arcs, np.append(out[:K], 0.0)[:, None]], axis=1)
        nulls = np.concatenate([self.transition[K:], out[K:, None]], axis=1)
        return full, nulls[:, [*range(K), len(self.initial)]], self.transition[K:, K:]

    @cached_property
    def _null_routes(self) -> Array:
        """Sum over all routes from null state to null state (Q, Q): (I − A)⁻¹."""
        loops = self._blocks[2]
        return np.asarray(np.linalg.inv(np.eye(len(loops)) - loops), dtype=np.float64)

    @cached_property
    def summed(self) -> Arcs:
        """Probabilities between emitting states, summed over all routes through null states."""
        full, leave, _ = self._blocks
        K = self.states
        direct = np.delete(full, np.s_[K:-1], axis=1)
        if full.shape[1] > K + 1:
            direct = direct + full[:, K:-1] @ self._null_routes @ leave
        return self._arcs(direct)

    @cached_property
    def best(self) -> Arcs:
        """Probabilities between emitting states along the most probable route."""
        return self._arcs(self._routes.best)

    @cached_property
    def logs(self) -> Arcs:
        """`summed` in logarithms."""
        return self.summed.logs

    @cached_property
    def best_logs(self) -> Arcs:
        """`best` in logarithms."""
        return self.best.logs

    def _arcs(self, between: Array) -> Arcs:
        K = self.states
        final = np.ones(K) if self.final is None else np.ascontiguousarray(between[:K, K])
        empty = 1.0 if self.final is None else float(between[K, K])
        initial, transition = np.ascontiguousarray(between[K, :K]), np.ascontiguousarray(between[:K, :K])
        with np.errstate(divide="ignore"):
            logs = np.log(transition)
        return Arcs(initial, transition, final, empty, _entry(initial, transition), logs)

    @cached_property
    def _routes(self) -> Routes:
        """The most probable route from each source to each sink: direct, or through null states."""
        full, leave, loops = self._blocks
        K, Q = self.states, len(loops)
        between, next_null = _shortest(loops)
        best = np.delete(full, np.s_[K:-1], axis=1)
        last, first = np.full(best.shape, -1, dtype=np.int16), np.empty((K + 1, Q), dtype=np.int16)
        for m in range(Q):
            enter = full[:, K:-1] * between[:, m]
            first[:, m] = enter.argmax(axis=1)
            reach = enter.max(axis=1)
            at = np.ix_(np.flatnonzero(reach), np.flatnonzero(leave[m]))
            through = reach[at[0]] * leave[m][at[1]]
            better = through > best[at]
            best[at], last[at] = np.where(better, through, best[at]), np.where(better, m, last[at])
        return Routes(best, first, last, next_null)

    @cached_property
    def _summed_table(self) -> Array:
        s = self.summed
        return _table(s.initial, s.transition, s.final, s.empty)

    # ---------------------------------------------------------------- counting

    def uses(self, initial: Array, transition: Array, final: Array, empty: float) -> Chain:
        """Expected uses of every arc, including null arcs, from the expected transitions between emitting states."""
        K, Q = self.states, len(self.initial) - self.states
        if not Q:
            return Chain.trusted(
                initial=np.array(initial), transition=np.array(transition), final=np.array(final), states=K
            )
        table = _table(initial, transition, final, empty)
        full, leave, loops = self._blocks
        ratio = np.divide(table, self._summed_table, out=table, where=self._summed_table > 0)
        enter, to_sink = full[:, K : K + Q] @ self._null_routes, self._null_routes @ leave
        used = np.empty_like(full)
        np.multiply(full[:, :K], ratio[:, :K], out=used[:, :K])
        np.multiply(full[:, K:-1], ratio @ to_sink.T, out=used[:, K:-1])
        np.multiply(full[:, -1], ratio[:, K], out=used[:, -1])
        if self.final is None:
            used[:K, -1] = final
        return self._counted(used, leave * (enter.T @ ratio), loops * (enter.T @ ratio @ to_sink.T))

    def best_uses(self, initial: Array, transition: Array, final: Array, empty: float) -> Chain:
        """Uses of every arc where each transition took its most probable route."""
        K, Q = self.states, len(self.initial) - self.states
        table = _table(initial, transition, final, empty)
        routes = self._routes
        last = routes.last.copy()
        if self.final is None:
            last[:, K] = -1  # a sequence may stop anywhere: no route leads there
        used, left, null_pairs = np.zeros((K + 1, K + Q + 1)), np.zeros((Q, K + 1)), np.zeros((Q, Q))
        a, b = np.nonzero(table)
        m = last[a, b].astype(np.intp)
        direct, count = m < 0, table[a, b]
        used[a[direct], np.where(b[direct] < K, b[direct], K + Q)] = count[direct]
        a, b, m, count = a[~direct], b[~direct], m[~direct], count[~direct]
        n = routes.first[a, m].astype(np.intp)
        np.add.at(used, (a, K + n), count)
        np.add.at(left, (m, b), count)
        np.add.at(null_pairs, (n, m), count)
        return self._counted(used, left, routes.null_uses(null_pairs))

    def _counted(self, used: Array, left: Array, looped: Array) -> Chain:
        K = self.states
        N = used.shape[1] - 1
        transition = np.zeros((N, N))
        transition[:K], transition[K:, :K], transition[K:, K:] = used[:K, :N], left[:, :K], looped
        final = np.concatenate([used[:K, N], left[:, K]])
        return Chain.trusted(initial=used[K, :N].copy(), transition=transition, final=final, states=K)

    def expected_log(self, uses: Chain) -> float:
        """Σ uses · log probability over all arcs: the expected complete-data log-likelihood of the chain."""
        value = float(xlogy(uses.initial, self.initial).sum() + xlogy(uses.transition, self.transition).sum())
        if self.final is None or uses.final is None:
            return value
        return value + float(xlogy(uses.final, self.final).sum())


def _table(initial: Array, transition: Array, final: Array, empty: float) -> Array:
    """From states and entry to states and exit (K + 1, K + 1)."""
    K = len(initial)
    out = np.empty((K + 1, K + 1))
    out[:K, :K], out[:K, K], out[K, :K], out[K, K] = transition, final, initial, empty
    return out


def _entry(initial: Array, transition: Array) -> Array:
    reachable = (initial > 0) | (transition > 0).any(axis=0)
    thin = ((transition > 0) & (transition < THIN)).any(axis=0)
    return np.where(thin, -1.0, np.where(reachable, 0.0, np.inf))


def _shortest(loops: Array) -> tuple[Array, Index]:
    """The most probable route between any two null states (Q, Q), and its first step   (Floyd–Warshall)."""
    Q = len(loops)
    best = np.maximum(loops, np.eye(Q))
    next_null = np.broadcast_to(np.arange(Q), (Q, Q)).copy()
    for over in range(Q):
        through = best[:, over, None] * best[over]
        better = through > best
        best = np.where(better, through, best)
        next_null = np.where(better, next_null[:, over, None], next_null)
    return best, next_null


SUM_TO_ONE = 1e-9


def check_chain(initial: Array, transition: Array, final: Array | None, states: int) -> None:
    """Validate that probabilities are not negative, sum to 1, and that null states have no closed loop."""
    for name, a in (("initial", initial), ("transition", transition), ("final", final)):
        if a is not None and (a < 0).any():
            raise DomainError(sentence("HMM", f"{name} must not be negative", float(a.min())))
    if abs(initial.sum() - 1) > SUM_TO_ONE:
        raise DomainError(sentence("HMM", "initial must sum to 1", float(initial.sum())))
    leaving = transition.sum(axis=1) + (0.0 if final is None else final)
    worst = int(np.abs(leaving - 1).argmax())
    if abs(leaving[worst] - 1) > SUM_TO_ONE:
        what = "transition probabilities" if final is None else "transition and final probabilities"
        expected = f"{what} of state {worst} must sum to 1"
        raise DomainError(sentence("HMM", expected, float(leaving[worst])))
    loops = transition[states:, states:]
    if len(loops) and np.abs(np.linalg.eigvals(loops)).max() > 1 - 1e-12:
        remedy = "give every null state a route to an emitting state or to the exit"
        raise DomainError(sentence("HMM", "routes through null states must come to an end", "a closed loop", remedy))
