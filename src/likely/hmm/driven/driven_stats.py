"""Sufficient statistics of an HMM with covariates: gradient and curvature of the transition log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.core.stats import Addable
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class DrivenStats(Addable, Value):
    """Expected initial states, emission statistics, and gradient and curvature of the transition log-likelihood.

    A logistic model has no finite sufficient statistic, so transitions are summarized at the coefficients of the model
    that collected them: statistics at different coefficients do not add.

    >>> import likely as lk, numpy as np
    >>> h = lk.DrivenHMM([0.5, 0.5], np.zeros((2, 2, 2)), lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> h.collect([[0.0, 9.0, 9.1]], covariates=[[0.0, 1.0, 1.0]]).counts.round(3)
    array([1., 2.])
    """

    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,)
    counts: Annotated[Array, declared.numbers("K", 0)]  # (K,): frames in each state
    emission: Annotated[Any, declared.stats]  # the statistics of the emissions
    entropy: Annotated[Array, declared.numbers("")]  # (): of the hidden states, in nats
    fitted: Annotated[Array, declared.numbers("")]  # (): expected log-probability of the transitions, at `coefficients`
    gradient: Annotated[Array, declared.numbers("K K q")]  # (K, K, p + 1): of that
    curvature: Annotated[Array, declared.numbers("K q q")]  # (K, p + 1, p + 1): Σ_t γ_{t−1}(i) z zᵀ
    coefficients: Annotated[Array, declared.numbers("K K q")]  # (K, K, p + 1): of the model that collected

    @property
    def complete(self) -> bool:
        """False: even with known states, coefficients are found iteratively."""
        return False

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

    def __add__(self, other: DrivenStats) -> DrivenStats:
        if not np.array_equal(self.coefficients, other.coefficients):
            expected = "statistics must have been collected at the same coefficients to be added"
            raise DomainError(sentence("DrivenStats", expected, "others", "collect both with the same model"))
        sums = {name: np.asarray(getattr(self, name) + getattr(other, name)) for name in _ADDING}
        return self.replace(**sums, emission=self.emission + other.emission)

    def __mul__(self, factor: float) -> DrivenStats:
        parts = {name: np.asarray(getattr(self, name) * factor) for name in _ADDING}
        return self.replace(**parts, emission=self.emission * factor)

    __rmul__ = __mul__


_ADDING = ("initial", "counts", "entropy", "fitted", "gradient", "curvature")
