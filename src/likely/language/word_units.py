"""Word network as flat arrays: states, arcs and boundaries, for the compiled recursions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.hmm.markov_chain import Arcs, Chain
from likely.language.bigram import Bigram


class Units(NamedTuple):
    """Words, then one copy of the silence per boundary; states and arcs of all of them, in logarithms.

    Arcs are stored sparsely by target state (`arc_first`); `by_source` has them by source state.
    """

    first: Index  # (U + 1,): the states of unit u are first[u] … first[u + 1] − 1
    context: Index  # (U,): the boundary that its end leads to
    arc_first: Index  # (S + 1,)
    arc_from: Index  # (A,)
    arcs: Array  # (A,)
    initial: Array  # (S,)
    final: Array  # (S,)
    column: Index  # (S,): of the emission scores

    @classmethod
    def of(cls, chains: list[Arcs], context: Index, columns: list[Index]) -> Units:
        """Units from their arc log-probabilities and the columns of their states' scores."""
        sizes = [len(chain.initial) for chain in chains]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        arcs = [listed(chain.transition, a) for chain, a in zip(chains, first.tolist(), strict=False)]
        counts = np.concatenate([a[0] for a in arcs])
        return cls(
            first, context, np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            np.concatenate([a[1] for a in arcs]), np.concatenate([a[2] for a in arcs]),
            np.concatenate([c.initial for c in chains]), np.concatenate([c.final for c in chains]),
            np.concatenate(columns),
        )  # fmt: skip

    @property
    def by_source(self) -> Units:
        """The same units with arcs by source state: `arc_from` then holds the targets."""
        S = len(self.initial)
        to = np.repeat(np.arange(S), np.diff(self.arc_first))
        order = np.argsort(self.arc_from, kind="stable")
        counts = np.bincount(self.arc_from, minlength=S)
        return self._replace(
            arc_first=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            arc_from=to[order],
            arcs=self.arcs[order],
        )

    @property
    def widest(self) -> int:
        """Number of states of the largest unit."""
        return int(np.diff(self.first).max())


def listed(transition: Array, offset: int = 0) -> tuple[Index, Index, Array]:
    """Sparse columns of a matrix of logarithms: how many entries per column, their rows, and values."""
    possible = transition.T > -np.inf
    return possible.sum(axis=1), np.nonzero(possible)[1] + offset, transition.T[possible]


def arc_logs(chain: Chain, best: bool) -> Arcs:
    """Log-probabilities of the arcs of a word: by the best route through null states, or summed over all routes."""
    return chain.best_logs if best and len(chain.initial) > chain.states else chain.logs


class Boundaries(NamedTuple):
    """Word boundaries: 0 is the beginning of the utterance, the others are histories with equal bigram rows.

    Words with equal rows of the bigram share one boundary; for a unigram all words do.
    """

    context: Index  # (C,): the boundary after each word
    follow: Array  # (G, C): p(next word | boundary)
    leave: Array  # (G,): p(end | boundary)

    @classmethod
    def of(cls, grammar: Bigram) -> Boundaries:
        """Merge equal rows of the bigram into one boundary each."""
        rows = np.concatenate([grammar.bigram, grammar.final[:, None]], axis=1)
        _, where, context = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        nothing = max(0.0, 1.0 - float(grammar.initial.sum()))
        return cls(
            context.ravel().astype(np.intp) + 1,
            np.concatenate([grammar.initial[None], grammar.bigram[where]]),
            np.concatenate([[nothing if nothing > 1e-9 else 0.0], grammar.final[where]]),
        )

    def __len__(self) -> int:
        return len(self.leave)


class Plan(NamedTuple):
    """Log-probabilities at word boundaries, with scaled language model and word penalty."""

    lm: Array  # (G, C): into a word
    highest: Array  # (G,): the largest of each row, 0 for a row without any
    pause: float  # into the silence
    finals: Array  # (G,): to the end

    @classmethod
    def of(cls, at: Boundaries, pause: float, penalty: float, scale: float) -> Plan:
        """log(1 − pause) + scale · log p(word | boundary) − penalty, and likewise for silence and end."""
        with np.errstate(divide="ignore", invalid="ignore"):
            on, into = np.log1p(-pause), float(np.log(pause))
            lm = on + scale * np.log(at.follow) - penalty
            lm[at.follow == 0] = -np.inf  # a scale of 0 leaves impossible transitions impossible
            finals = on + scale * np.log(at.leave)
            finals[at.leave == 0] = -np.inf
        highest = lm.max(axis=1)
        return cls(lm, np.where(np.isneginf(highest), 0.0, highest), into, finals)

    def sparse(self, by_source: bool) -> tuple[Array, Array, Index, Index, Array]:
        """For sums: exp(lm − highest), highest, and the possible entries of lm, stored sparsely.

        (G, C) and by word for the forward recursion; (C, G) and by boundary for the backward one.
        """
        probs = np.exp(self.lm - self.highest[:, None])
        counts, other, values = listed(self.lm.T if by_source else self.lm)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        return np.ascontiguousarray(probs.T) if by_source else probs, self.highest, first, other, values


def chained(parts: Iterable[Index]) -> tuple[list[Index], int]:
    """Consecutive ranges of columns, and their total number."""
    out, used = [], 0
    for part in parts:
        out.append(part + used)
        used += len(part)
    return out, used
