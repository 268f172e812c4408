"""Word network as one HMM, with null states as word boundaries; and sampling of utterances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.core.ragged import Ragged
from likely.distributions.stacks.stack import Stack
from likely.distributions.stacks.tied import Tied
from likely.hmm.hmm import HMM
from likely.hmm.markov_chain import Chain

LARGEST = 5000  # states: a matrix of 200 MB


def joined(network: Any) -> tuple[HMM, Index]:
    """One HMM and the word of each emitting state: words, then silence after each boundary, null states, boundaries."""
    at, C = network.boundaries, len(network)
    chains = [*network._chains, *([] if network.silence is None else [network.silence.chains[0]] * len(at))]
    indices, N = _state_indices(chains, len(at))
    if N > LARGEST:
        remedy = "decode and log_prob need no such matrix"
        raise DomainError(sentence("WordNetwork.joined", f"at most {LARGEST} states can be joined", N, remedy))
    initial, transition, final, boundary = np.zeros(N), np.zeros((N, N)), np.zeros(N), np.arange(N - len(at), N)
    no_pause = 1.0 if network.silence is None else 1.0 - network.pause
    initial[boundary[0]], final[boundary] = 1.0, no_pause * at.leave
    for u, (chain, own) in enumerate(zip(chains, indices, strict=True)):
        transition[np.ix_(own, own)] = chain.transition
        transition[own, boundary[at.context[u] if u < C else u - C]] = chain.final
        if u < C:
            transition[np.ix_(boundary, own)] = no_pause * at.follow[:, u, None] * chain.initial
        else:
            transition[boundary[u - C], own] = network.pause * chain.initial
    word = np.repeat([u if u < C else -1 for u in range(len(chains))], [chain.states for chain in chains])
    return HMM(initial, transition, _emissions(network), final=final), word.astype(np.intp)


def _state_indices(chains: list[Chain], boundaries: int) -> tuple[list[Index], int]:
    """State indices of each chain: all emitting states come before all null states."""
    K = sum(chain.states for chain in chains)
    indices, emitting, null = [], 0, K
    for chain in chains:
        n_null = len(chain.initial) - chain.states
        indices.append(np.r_[emitting : emitting + chain.states, null : null + n_null].astype(np.intp))
        emitting, null = emitting + chain.states, null + n_null
    return indices, null + boundaries


def _emissions(network: Any) -> Any:
    """One emission density per emitting state; all copies of the silence share theirs."""
    if isinstance(network.words, HMM) and network.silence is None:
        return network.words.emission
    parts = list(network.words) if isinstance(network.words, tuple) else [network.words]
    parts += [] if network.silence is None else [network.silence]
    members = Stack(tuple(part.emission.member(k) for part in parts for k in range(part.emission.members)))
    return members if network.silence is None else Tied(members, np.concatenate(network._columns[0]))


# ------------------------------------------------------------------------ sampling


def uttered(network: Any, n: int, rng: Generator) -> tuple[list[tuple[str, ...]], Ragged]:
    """Sample n utterances: words from the bigram, pauses between them, and then the frames of each."""
    plans = [_units_of(network, rng) for _ in range(n)]
    flat = np.array([u for plan in plans for u in plan], dtype=np.intp)
    pieces: list[Any] = [None] * len(flat)
    for u in np.unique(flat):
        where = np.flatnonzero(flat == u)
        model = network.silence if u == len(network) else network.word(int(u))
        for place, frames in zip(where.tolist(), model.sample(len(where), rng), strict=True):
            pieces[place] = frames
    counts = np.cumsum([0, *map(len, plans)])
    if not pieces:
        pieces = [network.word(0).emission.member(0).sample(0, rng)]
    all_, lengths = Ragged.from_list(pieces), np.zeros(len(pieces) + 1, dtype=np.intp)
    lengths[1:] = np.cumsum(all_.lengths)
    names = [tuple(network.names[u] for u in plan if u < len(network)) for plan in plans]
    return names, Ragged(all_.values, lengths[counts])


def _units_of(network: Any, rng: Generator) -> list[int]:
    """Sample words in order, C for a silence."""
    at, C = network.boundaries, len(network)
    units, g = [], 0
    while True:
        while network.silence is not None and rng.random() < network.pause:
            units.append(C)
        word = _categorical_sample(np.append(at.follow[g], at.leave[g]), rng)
        if word == C:
            return units
        units.append(word)
        g = int(at.context[word])


def _categorical_sample(probabilities: Array, rng: Generator) -> int:
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
