"""A network of words written out flat: states, arcs, boundaries, as loops take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.hmm.markov_chain import Arcs, Chain
from likely.language.bigram import Bigram


class Units(NamedTuple):
    """Words, then copies of the silence, one for each boundary; states and arcs of all of them, in logarithms.

    Arcs stand in lists by the state they lead to (`arc_first`); `turned` has them by the state they leave.
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
    def of(cls, ways: list[Arcs], context: Index, columns: list[Index]) -> Units:
        """Units from their ways in logarithms and the columns of their states' scores."""
        sizes = [len(way.initial) for way in ways]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        arcs = [listed(way.transition, a) for way, a in zip(ways, first.tolist(), strict=False)]
        counts = np.concatenate([a[0] for a in arcs])
        return cls(
            first, context, np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            np.concatenate([a[1] for a in arcs]), np.concatenate([a[2] for a in arcs]),
            np.concatenate([w.initial for w in ways]), np.concatenate([w.final for w in ways]), np.concatenate(columns),
        )  # fmt: skip

    @property
    def turned(self) -> Units:
        """The same, with arcs by the state they leave: `arc_from` then says where they lead."""
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
        """States of the largest unit."""
        return int(np.diff(self.first).max())


def listed(moves: Array, offset: int = 0) -> tuple[Index, Index, Array]:
    """How many arcs lead to each column, from which rows, and their logarithms."""
    there = moves.T > -np.inf
    return there.sum(axis=1), np.nonzero(there)[1] + offset, moves.T[there]


def ways_of(chain: Chain, best: bool) -> Arcs:
    """Arcs through a word in logarithms: by the best way through null states, or summed over all."""
    return chain.best_logs if best and len(chain.initial) > chain.states else chain.logs


class Boundaries(NamedTuple):
    """Where words meet: 0 is the beginning, the others are histories after which the same words follow alike.

    Words whose rows of the bigram are equal share one boundary, so that all of a unigram's do.
    """

    context: Index  # (C,): the boundary after each word
    follow: Array  # (G, C): p(next word | boundary)
    leave: Array  # (G,): p(end | boundary)

    @classmethod
    def of(cls, grammar: Bigram) -> Boundaries:
        """Equal rows of the bigram as one boundary each."""
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
    """What passing a boundary costs, with the language model scaled and words penalized: all in logarithms."""

    lm: Array  # (G, C): into a word
    highest: Array  # (G,): the largest of each row, 0 for a row without any
    pause: float  # into the silence
    finals: Array  # (G,): to the end

    @classmethod
    def of(cls, at: Boundaries, pause: float, penalty: float, scale: float) -> Plan:
        """log(1 − pause) + scale · log p(word | boundary) − penalty, and the like."""
        with np.errstate(divide="ignore", invalid="ignore"):
            on, into = np.log1p(-pause), float(np.log(pause))
            lm = on + scale * np.log(at.follow) - penalty
            lm[at.follow == 0] = -np.inf  # a scale of 0 does not make what is impossible possible
            finals = on + scale * np.log(at.leave)
            finals[at.leave == 0] = -np.inf
        highest = lm.max(axis=1)
        return cls(lm, np.where(np.isneginf(highest), 0.0, highest), into, finals)

    def summing(self, back: bool) -> tuple[Array, Array, Index, Index, Array]:
        """What sums take: exp(lm − highest), highest, and lists of the ways that are possible.

        (G, C) and by word forwards; (C, G) and by boundary back.
        """
        shares = np.exp(self.lm - self.highest[:, None])
        counts, other, ways = listed(self.lm.T if back else self.lm)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        return np.ascontiguousarray(shares.T) if back else shares, self.highest, first, other, ways


def chained(parts: Iterable[Index]) -> tuple[list[Index], int]:
    """Runs of columns that follow each other, and how many there are together."""
    out, used = [], 0
    for part in parts:
        out.append(part + used)
        used += len(part)
    return out, used
