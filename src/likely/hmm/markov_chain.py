"""A Markov chain of states with null states between them, which emit nothing and take no time.

A walk may pass through any number of null states from one frame to the next. Summed over all such ways, the chain is
an ordinary one of emitting states alone (`summed`); taken by the best way, likewise (`best`). Which ways were used is
then a matter of the chain only, not of the frames: expected uses of every arc follow from the moves between emitting
states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.core.value import Value

THIN = 1e-20  # an arc below that may take a product out of the range of numbers


class Ways(NamedTuple):
    """From entry to states, between states, to the exit, and from entry to exit without any frame."""

    initial: Array  # (K,)
    transition: Array  # (K, K)
    final: Array  # (K,)
    empty: float
    entry: Array  # (K,): how a state is entered: inf never, 0 by ordinary arcs, −1 by some that is thin, too

    @property
    def logs(self) -> Ways:
        """The same in logarithms."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.initial), np.log(self.transition), np.log(self.final), float(np.log(self.empty))
        return Ways(*logs, self.entry)


class Routes(NamedTuple):
    """The best ways from K states and the entry to K states and the exit, through Q null states."""

    best: Array  # (K + 1, K + 1): probabilities
    first: NDArray[np.int16]  # (K + 1, Q): the null state that a way to this last one begins with
    last: NDArray[np.int16]  # (K + 1, K + 1): the null state that a way ends with, −1 where it is direct
    hop: Index  # (Q, Q): the next null state on the way from one to another

    def walked(self, counts: Array) -> Array:
        """Uses of arcs between null states (Q, Q), from how often each went to each."""
        used = np.zeros_like(counts)
        for n, m in zip(*np.nonzero(counts), strict=True):
            here = n
            while here != m:
                used[here, self.hop[here, m]] += counts[n, m]
                here = self.hop[here, m]
        return used


@dataclass(frozen=True, eq=False)
class Chain(Value):
    """States 0 … K − 1 emit, those after them do not; `final` None lets a sequence stop anywhere   (Herbst 9.4.3).

    >>> half = Chain(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [1.0, 0.0]]), None, 1)  # state 1 is a null state
    >>> half.summed.transition  # stay, or go through the null state and come back
    array([[1.]])
    """

    initial: Array  # (N,): from the entry
    transition: Array  # (N, N)
    final: Array | None  # (N,): to the exit
    states: int  # K of the N

    @cached_property
    def _system(self) -> tuple[Array, Array, Array]:
        """Arcs from emitting states and entry, and from null states, to emitting states and exit; null to null."""
        K = self.states
        out = self.final if self.final is not None else np.zeros(len(self.initial))
        arcs = np.concatenate([self.transition[:K], self.initial[None]])
        full = np.concatenate([arcs, np.append(out[:K], 0.0)[:, None]], axis=1)
        nulls = np.concatenate([self.transition[K:], out[K:, None]], axis=1)
        return full, nulls[:, [*range(K), len(self.initial)]], self.transition[K:, K:]

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
        return self._ways(self._routes.best)

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
        final = np.ones(K) if self.final is None else np.ascontiguousarray(between[:K, K])
        empty = 1.0 if self.final is None else float(between[K, K])
        initial, transition = np.ascontiguousarray(between[K, :K]), np.ascontiguousarray(between[:K, :K])
        return Ways(initial, transition, final, empty, _entry(initial, transition))

    @cached_property
    def _routes(self) -> Routes:
        """The best way from each source to each sink: directly, or through null states."""
        full, leave, loops = self._system
        K, Q = self.states, len(loops)
        between, hop = _shortest(loops)
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
        return Routes(best, first, last, hop)

    @cached_property
    def _sums(self) -> Array:
        s = self.summed
        return _table(s.initial, s.transition, s.final, s.empty)

    # ---------------------------------------------------------------- counting

    def uses(self, initial: Array, transition: Array, final: Array, empty: float) -> Chain:
        """Expected uses of every arc, null arcs too, from those of the ways between emitting states."""
        K, Q = self.states, len(self.initial) - self.states
        if not Q:
            return Chain.trusted(
                initial=np.array(initial), transition=np.array(transition), final=np.array(final), states=K
            )
        ways = _table(initial, transition, final, empty)
        full, leave, loops = self._system
        share = np.divide(ways, self._sums, out=ways, where=self._sums > 0)
        enter, ahead = full[:, K : K + Q] @ self._between, self._between @ leave
        used = np.empty_like(full)
        np.multiply(full[:, :K], share[:, :K], out=used[:, :K])
        np.multiply(full[:, K:-1], share @ ahead.T, out=used[:, K:-1])
        np.multiply(full[:, -1], share[:, K], out=used[:, -1])
        if self.final is None:
            used[:K, -1] = final
        return self._counted(used, leave * (enter.T @ share), loops * (enter.T @ share @ ahead.T))

    def best_uses(self, initial: Array, transition: Array, final: Array, empty: float) -> Chain:
        """The same where each way was the best one."""
        K, Q = self.states, len(self.initial) - self.states
        ways = _table(initial, transition, final, empty)
        routes = self._routes
        last = routes.last.copy()
        if self.final is None:
            last[:, K] = -1  # a sequence may stop anywhere: no way leads there
        used, left, each = np.zeros((K + 1, K + Q + 1)), np.zeros((Q, K + 1)), np.zeros((Q, Q))
        a, b = np.nonzero(ways)
        m = last[a, b].astype(np.intp)
        direct, count = m < 0, ways[a, b]
        used[a[direct], np.where(b[direct] < K, b[direct], K + Q)] = count[direct]
        a, b, m, count = a[~direct], b[~direct], m[~direct], count[~direct]
        n = routes.first[a, m].astype(np.intp)
        np.add.at(used, (a, K + n), count)
        np.add.at(left, (m, b), count)
        np.add.at(each, (n, m), count)
        return self._counted(used, left, routes.walked(each))

    def _counted(self, used: Array, left: Array, looped: Array) -> Chain:
        K = self.states
        N = used.shape[1] - 1
        transition = np.zeros((N, N))
        transition[:K], transition[K:, :K], transition[K:, K:] = used[:K, :N], left[:, :K], looped
        final = np.concatenate([used[:K, N], left[:, K]])
        return Chain.trusted(initial=used[K, :N].copy(), transition=transition, final=final, states=K)

    def expected_log(self, uses: Chain) -> float:
        """Σ uses · log probability over all arcs."""
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
    ever = (initial > 0) | (transition > 0).any(axis=0)
    thin = ((transition > 0) & (transition < THIN)).any(axis=0)
    return np.where(thin, -1.0, np.where(ever, 0.0, np.inf))


def _shortest(loops: Array) -> tuple[Array, Index]:
    """The best walk between any two null states (Q, Q), and the first step of it   (Floyd and Warshall)."""
    Q = len(loops)
    best = np.maximum(loops, np.eye(Q))
    hop = np.broadcast_to(np.arange(Q), (Q, Q)).copy()
    for over in range(Q):
        through = best[:, over, None] * best[over]
        better = through > best
        best = np.where(better, through, best)
        hop = np.where(better, hop[:, over, None], hop)
    return best, hop


SUM_TO_ONE = 1e-9


def check_chain(initial: Array, transition: Array, final: Array | None, states: int) -> None:
    """Probabilities leave every state and the entry, none is negative, and walks among null states come to an end."""
    for name, a in (("initial", initial), ("transition", transition), ("final", final)):
        if a is not None and (a < 0).any():
            raise DomainError(sentence("HMM", f"{name} must not be negative", float(a.min())))
    if abs(initial.sum() - 1) > SUM_TO_ONE:
        raise DomainError(sentence("HMM", "starts must sum to 1", float(initial.sum())))
    leaving = transition.sum(axis=1) + (0.0 if final is None else final)
    worst = int(np.abs(leaving - 1).argmax())
    if abs(leaving[worst] - 1) > SUM_TO_ONE:
        what = "transition probabilities" if final is None else "transition and final probabilities"
        expected = f"{what} of state {worst} must sum to 1"
        raise DomainError(sentence("HMM", expected, float(leaving[worst])))
    loops = transition[states:, states:]
    if len(loops) and np.abs(np.linalg.eigvals(loops)).max() > 1 - 1e-12:
        remedy = "give every null state a way to an emitting state or to the exit"
        raise DomainError(sentence("HMM", "walks among null states must come to an end", "a closed loop", remedy))
