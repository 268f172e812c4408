"""Known mixture weights: a point-mass prior that learning does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.categorical.categorical import Categorical


@dataclass(frozen=True, eq=False)
class FixedWeights(Value):
    """Point-mass prior of a mixture's weights: they are known and not learned.

    >>> FixedWeights([0.9, 0.1]).point().probs
    array([0.9, 0.1])
    """

    probs: Annotated[Array, declared.numbers("K", 0)]  # (K,)

    def __post_init__(self) -> None:
        probs = parameter(self.probs, "FixedWeights", "probs")
        if probs.ndim != 1 or not probs.size or (probs < 0).any() or abs(probs.sum() - 1) > 1e-9:
            expected = "probs must be (K,), not negative, and sum to 1"
            raise DomainError(sentence("FixedWeights", expected, probs.tolist()))
        self._set(probs=probs)

    def update(self, stats: Any) -> FixedWeights:
        """The prior itself: nothing is learned."""
        return self

    def point(self, rule: PointRule = "mode") -> Categorical:
        """The distribution over the components."""
        return Categorical.trusted(probs=np.array(self.probs), levels=None)

    def draw(self, rng: Generator) -> Categorical:
        """The known weights."""
        return self.point()

    def predictive(self) -> Categorical:
        """The known weights."""
        return self.point()

    def log_evidence(self, stats: Any) -> float:
        """Log-density of a sequence of labels with these counts."""
        return self.point().objective(stats)

    def log_density(self, model: Any) -> float:
        """0: a point mass adds no term to the objective."""
        return 0.0
