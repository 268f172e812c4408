"""Initial state assignment of an HMM: each frame gets a state, by its place in the sequence or by clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.ragged import Ragged
from likely.core.row_hashes import row_hashes
from likely.core.sketch import Sketch
from likely.hmm.topology import Topology
from likely.hmm.viterbi import BestPaths
from likely.mixture.initialization import grouped


def goes_forward(topology: Topology) -> bool:
    """True if states follow in order (left-to-right), so that the place of a frame determines its state."""
    skeleton = topology.skeleton
    return not np.tril(skeleton.transition, -1).any() and not skeleton.initial.all()


def by_segments(topology: Topology, seqs: Ragged, rng: Generator | None) -> Index:
    """A state per frame (T,): equal segments, one per state, or with `rng` segments of random lengths.

    Where sequences may begin in several states (parallel branches), a hash of its content assigns a sequence to one.
    """
    branches = _branches(topology.skeleton)
    which = (row_hashes(seqs) % np.uint64(len(branches))).astype(np.intp)
    out = np.empty(len(seqs.values), dtype=np.intp)
    for i, (a, b) in enumerate(zip(seqs.offsets[:-1], seqs.offsets[1:], strict=True)):
        branch = branches[which[i]]
        out[a:b] = branch[_segments(int(b - a), len(branch), rng)]
    return out


def _segments(length: int, states: int, rng: Generator | None) -> Index:
    position = (np.arange(length) + 0.5) / max(length, 1)
    if rng is None or states == 1:
        return np.minimum((position * states).astype(np.intp), states - 1)
    borders = np.cumsum(rng.dirichlet(np.full(states, 4.0)))[:-1]
    return np.searchsorted(borders, position)


def _branches(topology: Topology) -> list[Index]:
    """The states reachable from each initial state, in order."""
    out = []
    for at in np.flatnonzero(topology.initial):
        reach = np.arange(topology.states) == at
        for _ in range(topology.states):
            reach |= topology.transition[reach].any(axis=0)
        out.append(np.flatnonzero(reach))
    return out


def densities_on_transitions(base: Topology, states: Index, offsets: Index) -> Index:
    """The density of each frame (T,) where every transition has its own, numbered as by `on_transitions`.

    −1 where a path makes an impossible transition.
    """
    K = base.states
    number = np.full((K + 1, K), -1, dtype=np.intp)  # the last row is the entry
    first = np.flatnonzero(base.initial)
    number[K, first] = np.arange(len(first))
    number[:K][base.transition] = len(first) + np.arange(int(base.transition.sum()))
    before = np.concatenate([[K], states[:-1]]) if len(states) else states
    before[offsets[:-1][np.diff(offsets) > 0]] = K
    return number[before, states]


FEW = 5  # distinct frames per density below which clusters would be too small


def by_clusters(
    distribution: Any, frames: Any, weight: Any, size: int, rng: Generator, how: str
) -> tuple[Any, Index, Array]:
    """Similar frames share a density: frames of a sketch, the density assigned to each, and its weight.

    Few distinct frames, such as symbols, cannot be clustered: each density then gets all of them, with random weights.
    """
    sketch = Sketch.of(frames, weight)
    if len(sketch) >= FEW * size and how != "random":
        return sketch.rows, grouped(distribution, sketch, size, rng, how), sketch.weight
    again = np.tile(np.arange(len(sketch)), size)
    shares = rng.standard_gamma(1.0, (size, len(sketch)))
    shares /= shares.sum(axis=0)
    return sketch.rows[again], np.repeat(np.arange(size), len(sketch)), (shares * sketch.weight).ravel()


def arcs_by_path(topology: Topology, states: Index, seqs: Ragged, weight: Array | None) -> tuple[Any, Any, Any]:
    """Initial, transition and final probabilities by counting along given states, with one pseudo-count each."""
    w = np.ones(len(seqs)) if weight is None else weight
    initial, transition, final = BestPaths(states, np.zeros(len(seqs))).counted(seqs.offsets, w, topology.states)
    initial, transition = (
        np.where(topology.initial, initial + 1, 0.0),
        np.where(topology.transition, transition + 1, 0.0),
    )
    final_counts = np.zeros(len(initial)) if topology.final is None else np.where(topology.final, final + 1, 0.0)
    total = transition.sum(axis=1) + final_counts
    return (
        initial / initial.sum(),
        transition / total[:, None],
        None if topology.final is None else final_counts / total,
    )
