"""A network of words as one HMM, whose null states are the boundaries between words; and utterances drawn from it."""

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
    places, N = _places(chains, len(at))
    if N > LARGEST:
        remedy = "decode and log_prob need no such matrix"
        raise DomainError(sentence("WordNetwork.joined", f"at most {LARGEST} states can be joined", N, remedy))
    starts, moves, ends, meet = np.zeros(N), np.zeros((N, N)), np.zeros(N), np.arange(N - len(at), N)
    on = 1.0 if network.silence is None else 1.0 - network.pause
    starts[meet[0]], ends[meet] = 1.0, on * at.leave
    for u, (chain, mine) in enumerate(zip(chains, places, strict=True)):
        moves[np.ix_(mine, mine)] = chain.transition
        moves[mine, meet[at.context[u] if u < C else u - C]] = chain.final
        if u < C:
            moves[np.ix_(meet, mine)] = on * at.follow[:, u, None] * chain.initial
        else:
            moves[meet[u - C], mine] = network.pause * chain.initial
    word = np.repeat([u if u < C else -1 for u in range(len(chains))], [chain.states for chain in chains])
    return HMM(starts, moves, _emissions(network), final=ends), word.astype(np.intp)


def _places(chains: list[Chain], boundaries: int) -> tuple[list[Index], int]:
    """Where the states of each chain stand: those that emit before all null states."""
    K = sum(chain.states for chain in chains)
    places, emitting, null = [], 0, K
    for chain in chains:
        quiet = len(chain.initial) - chain.states
        places.append(np.r_[emitting : emitting + chain.states, null : null + quiet].astype(np.intp))
        emitting, null = emitting + chain.states, null + quiet
    return places, null + boundaries


def _emissions(network: Any) -> Any:
    """A density for each emitting state; all copies of the silence share theirs."""
    if isinstance(network.words, HMM) and network.silence is None:
        return network.words.emission
    parts = list(network.words) if isinstance(network.words, tuple) else [network.words]
    parts += [] if network.silence is None else [network.silence]
    members = Stack(tuple(part.emission.member(k) for part in parts for k in range(part.emission.members)))
    return members if network.silence is None else Tied(members, np.concatenate(network._columns[0]))


# ------------------------------------------------------------------------ drawing


def uttered(network: Any, n: int, rng: Generator) -> tuple[list[tuple[str, ...]], Ragged]:
    """n utterances: words from the grammar, pauses between them, and then the frames of each."""
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
    """Words in the order said, C for a silence."""
    at, C = network.boundaries, len(network)
    said, g = [], 0
    while True:
        while network.silence is not None and rng.random() < network.pause:
            said.append(C)
        word = _drawn(np.append(at.follow[g], at.leave[g]), rng)
        if word == C:
            return said
        said.append(word)
        g = int(at.context[word])


def _drawn(probabilities: Array, rng: Generator) -> int:
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
