"""Topology of a hidden Markov model: which initial states, transitions and final states are possible.

Higher-order HMMs, explicit state durations and emissions on transitions are expanded state spaces. Null states keep
what is one decision one set of probabilities: where several states lead to the same choice, they lead to one null
state, which makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, check_option
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value

MOST = 5000  # states that an expansion may have: the transition matrix is quadratic in them
TopologyName = Literal["ergodic", "left-to-right", "cyclic", "parallel"]


@dataclass(frozen=True, eq=False)
class Topology(Value):
    """Possible initial states, transitions and final states, and the density index of each emitting state.

    The first K = len(`density`) states emit, by density `density[k]`: states with the same number are tied. The others
    are null states.

    Parameters
    ----------
    initial : array-like of bool (N,)
        Possible initial states.
    transition : array-like of bool (N, N)
        Possible transitions.
    final : array-like of bool (N,) or None
        Possible final states; None lets sequences stop anywhere.
    density : array-like of int (K,)
        Number of the density of each emitting state, from 0.
    origin : array-like of int (K,), optional
        In an expansion, the original state of each one.

    See Also
    --------
    HMMDensity : Takes a topology.

    References
    ----------
    Rabiner (1989); Ney, lecture notes, 7.1.

    Examples
    --------
    >>> t = Topology.steps(3, (0, 1, 2))
    >>> t.transition.astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """

    initial: Annotated[Mask, declared.numbers("N", dtype=np.bool_)]  # (N,)
    transition: Annotated[Mask, declared.numbers("N N", dtype=np.bool_)]  # (N, N)
    final: Annotated[Mask | None, declared.maybe(declared.numbers("N", dtype=np.bool_))]  # (N,)
    density: Annotated[Index, declared.numbers("K", 0, np.int64)]  # (K,): 0 … number of densities − 1
    # (K,): in an expansion, the original state of each one
    origin: Annotated[Index | None, declared.maybe(declared.numbers("K", 0, np.int64))] = None

    def __post_init__(self) -> None:
        initial, transition = np.array(self.initial, dtype=bool), np.array(self.transition, dtype=bool)
        final = None if self.final is None else np.array(self.final, dtype=bool)
        density, N = np.array(self.density, dtype=np.intp), len(initial)
        if transition.shape != (N, N) or (final is not None and final.shape != (N,)) or initial.shape != (N,):
            shapes = [initial.shape, transition.shape, None if final is None else final.shape]
            raise ShapeError(
                sentence("Topology", "initial (N,), transition (N, N), final (N,) must have matching shapes", shapes)
            )
        numbers = np.unique(density)
        if not 0 < len(density) <= N or (numbers != np.arange(len(numbers))).any():
            expected = f"density must number the densities 0, 1, … of at most {N} emitting states"
            raise DomainError(sentence("Topology", expected, density.tolist()))
        if not initial.any():
            raise DomainError(sentence("Topology", "at least one initial state is needed", "none"))
        origin = None if self.origin is None else np.array(self.origin, dtype=np.intp)
        if origin is not None and origin.shape != density.shape:
            raise ShapeError(
                sentence("Topology", f"origin must have one state per emitting state ({len(density)})", origin.shape)
            )
        if origin is not None and (origin.min() < 0 or origin.max() >= len(origin)):
            raise DomainError(sentence("Topology", f"origin must be 0 … {len(origin) - 1}", origin.tolist()[:9]))
        self._set(initial=initial, transition=transition, final=final, density=density, origin=origin)
        self._refuse_dead_ends()

    def _refuse_dead_ends(self) -> None:
        stuck = ~self.transition.any(axis=1) & (True if self.final is None else ~self.final)
        if stuck.any():
            state = int(stuck.argmax())
            remedy = "allow a self-transition, another transition, or ending there"
            raise DomainError(sentence("Topology", f"state {state} must have a transition", "none", remedy))

    # ------------------------------------------------------------------ by name

    @classmethod
    def ergodic(cls, states: int, final: bool = False) -> Topology:
        """Ergodic (fully connected): every state may follow every other.

        Parameters
        ----------
        states : int
            Number of states.
        final : bool, default False
            Whether sequences end by an exit, possible from every state.
        """
        all_ = np.ones(states, dtype=bool)
        return cls(all_, np.ones((states, states), dtype=bool), all_ if final else None, np.arange(states))

    @classmethod
    def steps(cls, states: int, allowed: Sequence[int], final: bool = True, around: bool = False) -> Topology:
        """Transitions by one of the `allowed` numbers of states: (0, 1) is left-to-right (Bakis), (0, 1, 2) may skip.

        Sequences begin in the first state and end in the last; with `around` the topology is cyclic, and they may begin
        anywhere   (Ney 7.1: the (0, 1, 2) model).

        Parameters
        ----------
        states : int
            Number of states.
        allowed : sequence of int
            Allowed numbers of states to go on by.
        final : bool, default True
            Whether sequences end by an exit.
        around : bool, default False
            The first state follows the last: a cyclic topology.
        """
        if not allowed or any(s != int(s) or s < 0 for s in allowed):
            raise DomainError(sentence("Topology", "steps must be integers, not negative", tuple(allowed)))
        transition = np.zeros((states, states), dtype=bool)
        for step in allowed:
            for k in range(states):
                if around or k + step < states:
                    transition[k, (k + int(step)) % states] = True
        first, last = np.zeros((2, states), dtype=bool)
        first[0], last[-1] = True, True
        if around:
            first, last = np.ones((2, states), dtype=bool)
        return cls(first, transition, last if final else None, np.arange(states))

    @classmethod
    def parallel(cls, states: int, branches: int = 2, final: bool = True) -> Topology:
        """Several left-to-right branches in parallel; each sequence takes one, such as one variant of a word.

        Parameters
        ----------
        states : int
            Number of states of all branches.
        branches : int, default 2
            Number of branches.
        final : bool, default True
            Whether sequences end by an exit, from the last state of a branch.
        """
        if not 0 < branches <= states:
            raise DomainError(sentence("Topology", f"branches must be 1 … {states}", branches))
        cuts = [int(c) for c in np.linspace(0, states, branches + 1)]
        initial, transition, last = np.zeros(states, bool), np.zeros((states, states), bool), np.zeros(states, bool)
        for a, z in pairwise(cuts):
            initial[a], last[z - 1] = True, True
            transition[a:z, a:z] = Topology.steps(z - a, (0, 1)).transition
        return cls(initial, transition, last if final else None, np.arange(states))

    @classmethod
    def of(cls, what: TopologyLike, states: int, final: bool | None = None) -> Topology:
        """A name, a tuple of allowed steps, a mask (K, K) of transitions, or a Topology, for `states` states.

        Parameters
        ----------
        what : str, sequence of int, array-like of bool (K, K) or Topology
            The name, allowed steps, mask or topology.
        states : int
            Number of states.
        final : bool, optional
            Whether sequences end by an exit; None: as is usual for this topology.
        """
        if isinstance(what, Topology):
            if what.states != states:
                raise ShapeError(sentence("Topology", f"a topology of {states} emitting states is needed", what.states))
            return what
        if isinstance(what, str):
            check_option(what, TopologyName, "Topology", "topology", "steps, or a mask")
            make, may_end = _BY_NAME[what]
            return make(states, may_end if final is None else final)
        if np.ndim(what) == 1:
            return cls.steps(states, tuple(np.asarray(what).tolist()), True if final is None else final)
        return cls._of_mask(np.asarray(what), states, bool(final))

    @classmethod
    def _of_mask(cls, mask: NDArray[Any], states: int, final: bool) -> Topology:
        if mask.shape != (states, states):
            raise ShapeError(
                sentence("Topology", f"a mask of transitions must have shape ({states}, {states})", mask.shape)
            )
        all_ = np.ones(states, dtype=bool)
        return cls(all_, mask != 0, all_ if final else None, np.arange(states))

    # -------------------------------------------------------------------- shape

    @property
    def states(self) -> int:
        """Number of emitting states K."""
        return len(self.density)

    @property
    def densities(self) -> int:
        """Number of different densities."""
        return int(self.density.max()) + 1

    @property
    def original(self) -> Index:
        """The original state of each emitting state (K,): itself, unless this is an expansion."""
        return np.arange(self.states) if self.origin is None else self.origin

    def tied(self, index: ArrayLike) -> Topology:
        """The topology with tied states: those with the same number share one density.

        Parameters
        ----------
        index : array-like of int (K,)
            Number per state; equal numbers are tied.

        Returns
        -------
        Topology
            The tied topology.
        """
        index = np.array(index)
        if index.shape != (self.densities,) or index.dtype.kind not in "iu":
            expected = f"tie must number the density of each of {self.densities} states"
            raise ShapeError(sentence("Topology", expected, index.tolist()))
        return self.replace(density=np.unique(index, return_inverse=True)[1][self.density])

    @property
    def skeleton(self) -> Topology:
        """The topology of the emitting states alone, with transitions through null states made direct."""
        K = self.states
        if len(self.initial) == K:
            return self
        reach = np.stack([self._through_nulls(row) for row in self.transition[:K]])
        out = None
        if self.final is not None:
            out = self.final[:K] | (reach[:, K:] & self.final[K:]).any(axis=1)
        initial = self._through_nulls(self.initial)[:K]
        return Topology.trusted(
            initial=initial, transition=reach[:, :K], final=out, density=self.density, origin=self.origin
        )

    @property
    def min_length(self) -> int:
        """The least number of frames of a sequence from an initial to a final state."""
        if self.final is None:
            return 1
        reach, emits = self._through_nulls(self.initial), np.arange(len(self.initial)) < self.states
        if (reach & ~emits & self.final).any():
            return 0
        for frames in range(1, self.states + 1):
            now = reach & emits
            reach = self._through_nulls(np.asarray(self.transition[now].any(axis=0)))
            if (now & self.final).any() or (reach & ~emits & self.final).any():
                return frames
        raise DomainError(sentence("Topology", "a final state must be reachable from an initial state", "none"))

    def _through_nulls(self, reach: Mask) -> Mask:
        out, K = reach.copy(), self.states
        for _ in range(len(reach) - K):
            nulls = out.copy()
            nulls[:K] = False
            out |= self.transition[nulls].any(axis=0)
        return out

    def probabilities(self, stay: float = 0.5) -> tuple[Array, Array, Array | None]:
        """Initial, transition and final probabilities, uniform over what is possible; self-transitions have `stay`.

        Parameters
        ----------
        stay : float, default 0.5
            Probability of a self-transition.

        Returns
        -------
        tuple of ndarray
            Initial (N,), transition (N, N) and final (N,) probabilities; final is None where there is no exit.
        """
        own = np.diag(self.transition)
        out = np.zeros(len(own), dtype=bool) if self.final is None else self.final
        others = self.transition.sum(axis=1) - own + out
        prob = np.where(own & (others > 0), 1.0 - stay, 1.0) / np.maximum(others, 1)
        transition = np.where(self.transition, prob[:, None], 0.0)
        np.fill_diagonal(transition, np.where(own, np.where(others > 0, stay, 1.0), 0.0))
        final = None if self.final is None else np.where(self.final, prob, 0.0)
        return self.initial / self.initial.sum(), transition, final


TopologyLike = TopologyName | ArrayLike | Topology  # ArrayLike: steps, or a mask of transitions
_BY_NAME: dict[str, tuple[Callable[[int, bool], Topology], bool]] = {
    "ergodic": (lambda states, final: Topology.ergodic(states, final), False),
    "left-to-right": (lambda states, final: Topology.steps(states, (0, 1), final), True),
    "cyclic": (lambda states, final: Topology.steps(states, (0, 1), final, around=True), False),
    "parallel": (lambda states, final: Topology.parallel(states, min(2, states), final), True),
}


# ------------------------------------------------------------------- expansions


def of_higher_order(topology: Topology, order: int) -> Topology:
    """Higher-order Markov chain: states that remember the `order` − 1 states before them.

    p(s_t | s_{t−1}, …, s_{t−order}).

    An expanded state is a run of states; at the beginning of a sequence runs are shorter.
    """
    _refuse_nulls(topology, "order")
    if order < 1 or order != int(order):
        raise DomainError(sentence("Topology", "order must be an integer above 0", order))
    runs = _runs(topology, int(order))
    initial = np.array([len(run) == 1 and bool(topology.initial[run[0]]) for run in runs])
    transition = np.zeros((len(runs), len(runs)), dtype=bool)
    place = {run: i for i, run in enumerate(runs)}
    for run, i in place.items():
        for k in np.flatnonzero(topology.transition[run[-1]]).tolist():
            successor = (*run, k)[-order:]
            if successor in place:
                transition[i, place[successor]] = True
    final = None if topology.final is None else np.array([bool(topology.final[run[-1]]) for run in runs])
    last = np.array([run[-1] for run in runs])
    return Topology(initial, transition, final, topology.density[last], last)


def _runs(topology: Topology, order: int) -> list[tuple[int, ...]]:
    """Runs of states along possible transitions: of full length from anywhere, shorter ones from initial states."""
    counts = _count_runs(topology, order)
    begin = np.flatnonzero(topology.initial).tolist()
    short: list[tuple[int, ...]] = [(k,) for k in begin] if order > 1 else []
    out = list(short)
    for _ in range(order - 2):
        short = _extended(short, topology)
        out += short
    full: list[tuple[int, ...]] = [(k,) for k in range(topology.states) if counts[order - 1][k] > 0]
    for left in range(order - 2, -1, -1):  # only those that can still become a full run
        full = [run for run in _extended(full, topology) if counts[left][run[-1]] > 0]
    return out + full


def _count_runs(topology: Topology, order: int) -> list[Array]:
    """Number of runs of 0, 1, … order − 1 further states from each state, counted before any is made."""
    _refuse_many(order)
    counts, short = [np.ones(topology.states)], 0.0
    for _ in range(order - 1):
        short += float(counts[-1] @ topology.initial)  # these begin sequences
        _refuse_many(int(short))
        counts.append(np.minimum(topology.transition @ counts[-1], 1e12))  # beyond counting, and refused
    _refuse_many(int(short + counts[-1].sum()))
    return counts


def _extended(runs: list[tuple[int, ...]], topology: Topology) -> list[tuple[int, ...]]:
    return [(*run, k) for run in runs for k in np.flatnonzero(topology.transition[run[-1]]).tolist()]


def with_durations(topology: Topology, longest: int) -> Topology:
    """Explicit-duration (semi-Markov) states: any distribution of durations 1 … longest instead of the geometric one.

    State k becomes a countdown (k, d), d = longest … 1. A null state before each chooses the duration; when it
    has run out, the next state is another one: staying is modeled by the duration.
    """
    _refuse_nulls(topology, "durations")
    if longest < 1 or longest != int(longest):
        raise DomainError(sentence("Topology", "durations must be an integer above 0", longest))
    K, D = topology.states, int(longest)
    _refuse_many(K * D)
    N = K * D + K  # (k, d) at k · D + d − 1, and the null state of k at K · D + k
    initial, transition = np.zeros(N, dtype=bool), np.zeros((N, N), dtype=bool)
    final = None if topology.final is None else np.zeros(N, dtype=bool)
    initial[K * D :] = topology.initial
    for k in range(K):
        transition[K * D + k, k * D : (k + 1) * D] = True
        for d in range(1, D):
            transition[k * D + d, k * D + d - 1] = True
        successors = topology.transition[k].copy()
        successors[k] = not (np.delete(successors, k).any() or (topology.final is not None and topology.final[k]))
        transition[k * D, K * D :] = successors
        if final is not None and topology.final is not None:
            final[k * D] = topology.final[k]
    return Topology(initial, transition, final, np.repeat(topology.density, D), np.repeat(np.arange(K), D))


def on_transitions(topology: Topology) -> Topology:
    """Emissions on transitions rather than states: p(x_t | s_{t−1}, s_t)   (Ney 7.1; Mealy form).

    Each incoming transition becomes a state. The first frame of a sequence is emitted on the transition from the entry.
    A null state after each transition chooses the next one.
    """
    _refuse_nulls(topology, "emissions on transitions")
    K = topology.states
    arcs = [(-1, k) for k in np.flatnonzero(topology.initial).tolist()]
    arcs += [(int(i), int(k)) for i, k in zip(*np.nonzero(topology.transition), strict=True)]
    A = len(arcs)
    _refuse_many(A)
    initial, transition = np.zeros(A + K, dtype=bool), np.zeros((A + K, A + K), dtype=bool)
    final = None if topology.final is None else np.concatenate([np.zeros(A, dtype=bool), topology.final])
    for a, (i, k) in enumerate(arcs):
        transition[a, A + k] = True
        if i < 0:
            initial[a] = True
        else:
            transition[A + i, a] = True
    if topology.final is None:
        for k in range(K):
            if not transition[A + k].any():
                raise DomainError(sentence("Topology", f"state {k} must have a transition", "none"))
    return Topology(initial, transition, final, np.arange(A), np.array([k for _, k in arcs]))


def _refuse_nulls(topology: Topology, what: str) -> None:
    if len(topology.initial) > topology.states:
        raise DomainError(
            sentence("Topology", f"{what} can be expanded for topologies without null states only", "some")
        )


def _refuse_many(states: int) -> None:
    if states > MOST:
        expected = f"an expansion may have at most {MOST} states"
        raise DomainError(sentence("Topology", expected, states, "use fewer states, a lower order, shorter durations"))
