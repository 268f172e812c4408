"""Expected sufficient statistics of a switching model: `LinearStats` per regime and transition counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.stats import Addable
from likely.core.value import Value
from likely.statespace.linear.linear_stats import LinearStats


@dataclass(frozen=True, eq=False)
class SwitchingStats(Addable, Value):
    """Expected sufficient statistics: `LinearStats` per regime, weighted by its posterior, and expected counts.

    Parameters
    ----------
    regimes : tuple of LinearStats
        Statistics of each regime.
    initial : ndarray (K,)
        Expected counts of initial regimes.
    transition : ndarray (K, K)
        Expected counts of transitions.
    counts : ndarray (K,)
        Expected frames per regime.
    entropy : ndarray ()
        Entropy of the posterior of regimes and states.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> lk.SwitchingLinearGaussian([walk], [[1.0]]).collect([[0.0, 1.0], [2.0]]).transition
    array([[1.]])
    """

    regimes: Annotated[tuple[LinearStats, ...], declared.items(declared.of_class("LinearStats"))]
    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,): expected counts of initial regimes
    transition: Annotated[Array, declared.numbers("K K", 0)]  # (K, K): expected counts of transitions
    counts: Annotated[Array, declared.numbers("K", 0)]  # (K,): expected frames per regime
    entropy: Annotated[Array, declared.numbers("")]  # (): of the posterior of regimes and states

    complete = False
    unit = "frame"

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.counts.sum())

    @property
    def units(self) -> float:
        """Number of frames, by which a gain of the objective is divided."""
        return self.total_weight

    def __add__(self, other: SwitchingStats) -> SwitchingStats:
        return self.trusted(
            regimes=tuple(a + b for a, b in zip(self.regimes, other.regimes, strict=True)),
            **{name: np.asarray(getattr(self, name) + getattr(other, name)) for name in SUMS},
        )

    def __mul__(self, factor: float) -> SwitchingStats:
        return self.trusted(
            regimes=tuple(a * factor for a in self.regimes),
            **{name: np.asarray(getattr(self, name) * factor) for name in SUMS},
        )

    __rmul__ = __mul__


SUMS = ("initial", "transition", "counts", "entropy")
