"""Higher-order HMMs, explicit state durations and emissions on transitions, as expanded state spaces.

Null states keep what is one decision one set of probabilities: where several states lead to the same choice, they lead
to one null state, which makes it.
"""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.hmm.topology import Topology

MOST = 5000  # states that an expansion may have: the transition matrix is quadratic in them


def of_higher_order(topology: Topology, order: int) -> Topology:
    """Higher-order Markov chain: states that remember the `order` − 1 states before them.

    p(s_t | s_{t−1}, …, s_{t−order}).

    An expanded state is a run of states; at the beginning of a sequence runs are shorter.
    """
    _refuse_nulls(topology, "order")
    if order < 1 or order != int(order):
        raise DomainError(sentence("Topology", "order must be a whole number above 0", order))
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
        raise DomainError(sentence("Topology", "durations must be a whole number above 0", longest))
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
