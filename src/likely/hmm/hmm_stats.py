"""Sufficient statistics of a hidden Markov model: expected transition counts and emission statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.stats import Addable
from likely.core.value import Value
from likely.hmm.logistic_transition import LogisticStats


@dataclass(frozen=True, eq=False)
class HMMStats(Addable, Value):
    """Expected counts of initial states, transitions and final states, and the emissions' sufficient statistics.

    A leading axis C holds a stack of chains.

    transition(j, k) = Σ_t ξ_t(j, k), ξ_t(j, k) = p(s_{t−1} = j, s_t = k | x)   (Rabiner 1989, Ney 7.4); where
    transitions depend on covariates, `LogisticStats`. Statistics of two sets of sequences add.

    Parameters
    ----------
    initial : ndarray (N,)
        Expected counts of initial states.
    transition : ndarray (N, N) or LogisticStats
        Expected counts of transitions.
    final : ndarray (N,)
        Expected counts of final states: of exits, or of last states where the chain has none.
    counts : ndarray (K,)
        Expected number of frames in each emitting state.
    emission : statistics
        Sufficient statistics of the emissions.
    entropy : ndarray ()
        Entropy of the hidden states in nats; −inf where a sequence is impossible.
    seen : bool, default False
        True if all states were observed.

    Examples
    --------
    >>> import likely as lk
    >>> h = lk.HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> h.collect([[0.0, 0.1, 9.0], [0.0, 9.0]]).transition.round(3)
    array([[1., 2.],
           [0., 0.]])
    """

    initial: Annotated[Array, declared.numbers("* N", 0)]  # (N,): from the entry
    # (N, N), or LogisticStats of transitions with covariates
    transition: Annotated[Any, declared.either(declared.numbers("* N N", 0), declared.of_class("LogisticStats"))]
    # (N,): to the exit, or the last states where the chain has none
    final: Annotated[Array, declared.numbers("* N", 0)]
    counts: Annotated[Array, declared.numbers("* K", 0)]  # (K,): frames in each emitting state
    emission: Annotated[Any, declared.stats]  # the statistics of the emissions
    # (): of the hidden states, in nats; −inf where a sequence is impossible
    entropy: Annotated[Array, declared.numbers("*")]
    seen: bool = False  # all states were observed

    @classmethod
    def inconsistency(cls, fields: Mapping[str, Any]) -> str:
        """Statistics of transitions with covariates have the states of the others."""
        transition, K = fields["transition"], len(fields["counts"])
        if isinstance(transition, LogisticStats) and (fields["initial"].ndim > 1 or len(transition.coefficients) != K):
            return f"transition must have {K} states"
        return ""

    @property
    def complete(self) -> bool:
        """True if neither states nor entries were missing; coefficients of covariates are always found iteratively."""
        return bool(self.seen and self.emission.complete and not isinstance(self.transition, LogisticStats))

    @property
    def filled(self) -> bool:
        """True if missing entries were imputed by the emissions."""
        return bool(getattr(self.emission, "filled", False))

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.counts.sum())

    unit = "frame"

    @property
    def units(self) -> float:
        """The number of units that a gain per unit is divided by: frames."""
        return self.total_weight

    @property
    def sequences(self) -> float:
        """Weight of all sequences with at least one frame."""
        return float(self.initial.sum())

    def __add__(self, other: HMMStats) -> HMMStats:
        return HMMStats.trusted(
            initial=self.initial + other.initial,
            transition=self.transition + other.transition,
            final=self.final + other.final,
            counts=self.counts + other.counts,
            emission=self.emission + other.emission,
            entropy=np.asarray(self.entropy + other.entropy),
            seen=self.seen and other.seen,
        )

    def __mul__(self, factor: float) -> HMMStats:
        return self.replace(
            initial=self.initial * factor, transition=self.transition * factor, final=self.final * factor,
            counts=self.counts * factor, emission=self.emission * factor, entropy=np.asarray(self.entropy * factor),
        )  # fmt: skip

    __rmul__ = __mul__

    def as_stack(self) -> HMMStats:
        """The statistics of one chain as a stack of one.

        Returns
        -------
        HMMStats
            The same statistics with a leading axis of length 1.
        """
        arrays = {name: getattr(self, name)[None] for name in ("initial", "transition", "final", "counts", "entropy")}
        return self.replace(**arrays)

    def member(self, c: Any) -> HMMStats:
        """The statistics of one chain, or of some chains, of a stack; tied emissions are not separated.

        Parameters
        ----------
        c : int or array-like of int
            Number of the chain, or of several, from 0.

        Returns
        -------
        HMMStats
            The statistics; of several chains, as a stack.
        """
        K = self.counts.shape[-1]
        at = (np.asarray(c)[..., None] * K + np.arange(K)).ravel()
        arrays = {
            name: np.asarray(getattr(self, name)[c]) for name in ("initial", "transition", "final", "counts", "entropy")
        }
        return self.replace(emission=self.emission.member(at), **arrays)
