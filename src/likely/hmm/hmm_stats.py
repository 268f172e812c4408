"""What learning a hidden Markov model adds up: expected beginnings, moves and endings, and what each state emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class HMMStats(Addable, Value):
    """Expected uses of the arcs of a chain, and the emissions' statistics; a leading axis C for a stack of chains.

    moves(j, k) = Σ_t p(s_{t−1} = j, s_t = k | x)   (Ney 7.4); statistics of two sets of sequences add.

    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> h.collect([[0.0, 0.1, 9.0], [0.0, 9.0]]).moves.round(3)
    array([[1., 2.],
           [0., 0.]])
    """

    starts: Array  # (N,): from the entry
    moves: Array  # (N, N)
    ends: Array  # (N,): to the exit, or the last states where the chain has none
    counts: Array  # (K,): frames in each emitting state
    parts: Any  # the statistics of the emissions
    entropy: Array  # (): of the hidden states, in nats; −inf where a sequence cannot be
    seen: bool = False  # all states were given

    @property
    def complete(self) -> bool:
        """True if neither states nor entries were hidden."""
        return bool(self.seen and self.parts.complete)

    @property
    def filled(self) -> bool:
        """True if parts filled gaps in."""
        return bool(getattr(self.parts, "filled", False))

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.counts.sum())

    unit = "frame"

    @property
    def units(self) -> float:
        """What a gain is measured by: frames."""
        return self.total_weight

    @property
    def sequences(self) -> float:
        """Weight of all sequences that have a frame."""
        return float(self.starts.sum())

    def __add__(self, other: HMMStats) -> HMMStats:
        return HMMStats.trusted(
            starts=self.starts + other.starts, moves=self.moves + other.moves, ends=self.ends + other.ends,
            counts=self.counts + other.counts, parts=self.parts + other.parts,
            entropy=np.asarray(self.entropy + other.entropy), seen=self.seen and other.seen,
        )  # fmt: skip

    def __mul__(self, factor: float) -> HMMStats:
        return self.replace(
            starts=self.starts * factor, moves=self.moves * factor, ends=self.ends * factor,
            counts=self.counts * factor, parts=self.parts * factor, entropy=np.asarray(self.entropy * factor),
        )  # fmt: skip

    __rmul__ = __mul__

    def as_stack(self) -> HMMStats:
        """One chain's statistics as a stack of one."""
        arrays = {name: getattr(self, name)[None] for name in ("starts", "moves", "ends", "counts", "entropy")}
        return self.replace(**arrays)

    def member(self, c: Any) -> HMMStats:
        """The statistics of one chain of a stack, or of some; emissions that chains share are not told apart."""
        K = self.counts.shape[-1]
        at = (np.asarray(c)[..., None] * K + np.arange(K)).ravel()
        arrays = {name: np.asarray(getattr(self, name)[c]) for name in ("starts", "moves", "ends", "counts", "entropy")}
        return self.replace(parts=self.parts.member(at), **arrays)
