"""Initialization of HMMs: frames are assigned to states, and each density is fitted to its own; or a model is given."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.ragged_input import joined
from likely.core.row_hashes import row_hashes
from likely.core.sketch import Sketch
from likely.distributions.stacks.tied import Tied, untied
from likely.estimation.fit_blocks import own_streams
from likely.hmm.baum_welch import path_counts, previous_states
from likely.hmm.hmm import HMM
from likely.hmm.topology import Topology
from likely.mixture.initialization import grouped

Initialization = Literal["auto", "segments", "clusters", "random"]
FEW = 5  # distinct frames per density below which clusters would be too small


class ChainStarts:
    """Mixin of `HMMDensity` with the initialization; it uses the settings, `component_`, `topology_` and `_base`."""

    init: Any
    n_init: int
    random_state: Any
    emit: str
    component_: Any
    topology_: Topology

    def _base(self) -> Topology:
        raise NotImplementedError  # the estimator's own

    def _starts(self, blank: HMM, X: Ragged, weight: Any, rng: Generator, given: Ragged | None = None) -> Any:
        if isinstance(self.init, HMM):
            yield self._given_start(blank)
            return
        for run in range(self.n_init):
            labels = np.zeros(len(X), dtype=np.intp)
            yield self._started_run(_as_stack(blank), X, labels, weight, rng, run, given).member(0)

    def _given_start(self, blank: HMM) -> HMM:
        start = self.init
        if start.initial.shape != blank.initial.shape or start.states != blank.states or start.dim != blank.dim:
            expected = f"init must be an HMM of {blank.states} states for {blank.dim} columns"
            raise ShapeError(sentence(type(self).__name__, expected, f"{start.states} states, {start.dim} columns"))
        if (start.final is None) != (blank.final is None):
            raise DomainError(
                sentence(type(self).__name__, "init must have final probabilities where the topology has", "other")
            )
        for name in ("initial", "transition", "final"):
            arcs, mask = getattr(start, name), getattr(self.topology_, name)
            if arcs is not None and (arcs[~mask] > 0).any():
                place = f"{name} at {tuple(int(i) for i in np.argwhere((arcs > 0) & ~mask)[0])}"
                remedy = "allow them, or set them to 0"
                raise DomainError(sentence(type(self).__name__, "init must respect the topology", place, remedy))
        self._refuse_other_emissions(start.emission, blank.emission)
        return start

    def _refuse_other_emissions(self, emission: Any, blank: Any) -> None:
        """Validate that the initial model has emissions of the component's kind, with the requested ties."""
        inner, tied = untied(emission), isinstance(blank, Tied) and blank.what == "all"
        index = emission.index if inner is not emission else None
        if tied and (index is None or (index != blank.index).any()):
            expected = f"init must tie its states as requested: Tied(…, {blank.index.tolist()})"
            raise DomainError(sentence(type(self).__name__, expected, type(emission).__name__))
        like = untied(blank)
        kinds = [
            (type(distribution).__name__, getattr(distribution, "kind", None), distribution.n_parameters)
            for distribution in (inner, like)
        ]
        if kinds[0] != kinds[1] and not (inner is not emission and not tied):
            expected = f"init must have emissions as the component fits them: {_kind(kinds[1])}"
            raise DomainError(sentence(type(self).__name__, expected, _kind(kinds[0])))

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any, run: int = 0) -> HMM:
        """Initial models of a stack, one chain per label; without labels, of one chain."""
        if labels is None:
            alone = np.zeros(len(X), dtype=np.intp)
            return self._started_run(_as_stack(blank), X, alone, weight, rng, run).member(0)
        return self._started_run(blank, X, labels, weight, rng, run)

    def _started_run(
        self, blank: HMM, X: Ragged, labels: Index, weight: Any, rng: Generator, run: int, given: Ragged | None = None
    ) -> HMM:
        """A stack whose emissions are fitted to the frames assigned to their states."""
        if not isinstance(self.init, str):
            expected = f"in a classifier, or inside another model, init must be one of {get_args(Initialization)}"
            raise DomainError(sentence(type(self).__name__, expected, type(self.init).__name__))
        own = [np.flatnonzero(labels == c) for c in range(len(blank.initial))]
        streams = own_streams(rng, [row_hashes(X[members]) for members in own] if len(own) > 1 else own)
        pieces = [
            self._assigned(blank, X, members, weight, stream, run, given)
            for members, stream in zip(own, streams, strict=True)
        ]
        emission = self._first_emissions(blank, pieces, rng)
        if all(piece.arcs is None for piece in pieces):
            return blank.replace(emission=emission)
        arcs = [
            (c.initial, c.transition, c.final) if p.arcs is None else p.arcs
            for p, c in zip(pieces, blank.chains, strict=True)
        ]
        initial, transition, final = zip(*arcs, strict=True)
        whole = None if blank.final is None else np.stack(final)
        return HMM.trusted(initial=np.stack(initial), transition=np.stack(transition), final=whole, emission=emission)

    def _assigned(
        self, blank: HMM, X: Ragged, members: Index, weight: Any, rng: Generator, run: int, given: Ragged | None
    ) -> _Assigned:
        """The frames of one chain with a density per frame, and transition probabilities where these determine them."""
        topology, own, w = self.topology_, X[members], None if weight is None else weight[members]
        base, per_frame = self._base(), own.weights(w)
        if given is not None:
            state = self._certain_states(given[members])
            if len(np.unique(state[state >= 0])) == base.states:
                return self._assigned_by_states(base, own, state, per_frame)
        how = self.init if self.init != "auto" else "segments" if goes_forward(base) else "clusters"
        if how == "segments":
            state = by_segments(base, own, rng if run else None)
            assigned = self._assigned_by_states(base, own, state, per_frame)
            if topology.states == len(topology.initial) and topology.origin is None:
                assigned.arcs = arcs_by_path(topology, state, own, w)
            return assigned
        distribution = untied(blank.emission)
        how = "random" if how == "random" else "k-means++"
        frames, group, shares = by_clusters(distribution, own.values, per_frame, topology.densities, rng, how)
        return _Assigned(frames, group, shares, None)

    def _certain_states(self, given: Ragged) -> Index:
        """The known state of each frame where only one is possible (T,), else −1."""
        stands_for = np.eye(int(self.topology_.original.max()) + 1)[self.topology_.original]
        possible = np.isfinite(given.values) @ stands_for > 0
        return np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1)

    def _assigned_by_states(self, base: Topology, own: Ragged, state: Index, per_frame: Any) -> _Assigned:
        """Frames with a known state, and the density assigned to each of them."""
        if self.emit == "transitions":
            before = np.concatenate([[0], state[:-1]]) if len(state) else state
            density = np.where(before >= 0, densities_on_transitions(base, np.maximum(state, 0), own.offsets), -1)
            density = np.where(state >= 0, density, -1)
        else:
            density = np.where(state >= 0, base.density[state], -1)
        certain = np.flatnonzero(density >= 0)
        return _Assigned(own.values[certain], density[certain], None if per_frame is None else per_frame[certain], None)

    def _first_emissions(self, blank: HMM, pieces: list[_Assigned], rng: Generator) -> Any:
        D = self.topology_.densities
        frames, _ = joined([p.frames for p in pieces])
        labels = np.concatenate([c * D + p.density for c, p in enumerate(pieces)])
        weights = [np.ones(len(p.density)) if p.weight is None else p.weight for p in pieces]
        distribution = untied(blank.emission)
        started = self.component_.initialize(distribution, frames, labels, np.concatenate(weights), rng)
        return started if distribution is blank.emission else blank.emission.replace(components=started)


class _Assigned:
    """Frames of one chain, a density per frame, their weights, and transition probabilities where known."""

    def __init__(self, frames: Any, density: Index, weight: Any, arcs: Any) -> None:
        self.frames, self.density, self.weight, self.arcs = frames, density, weight, arcs


def _kind(kind: tuple[str, str | None, int]) -> str:
    name, shape, parameters = kind
    return f"{shape + ' ' if shape else ''}{name} of {parameters} parameters"


def _as_stack(model: HMM) -> HMM:
    """One chain as a stack of one."""
    final = None if model.final is None else model.final[None]
    return HMM.trusted(
        initial=model.initial[None], transition=model.transition[None], final=final, emission=model.emission
    )


# ------------------------------------------------------------- state assignment


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
    frame_weight, nonempty = np.repeat(np.ones(len(seqs)) if weight is None else weight, seqs.lengths), seqs.lengths > 0
    first, last = seqs.offsets[:-1][nonempty], seqs.offsets[1:][nonempty] - 1
    before = previous_states(states, seqs.offsets)
    initial, transition, final = path_counts(states, before, frame_weight, first, last, topology.states)
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
