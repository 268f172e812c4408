"""Weights that are known: learning leaves them alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.distributions.categorical.categorical import Categorical


@dataclass(frozen=True, eq=False)
class GivenWeights(Value):
    """A prior of a mixture's weights that is sure of them: all its probability lies on one point.

    >>> GivenWeights([0.9, 0.1]).point().probs
    array([0.9, 0.1])
    """

    probs: Array  # (K,)

    def __post_init__(self) -> None:
        probs = parameter(self.probs, "GivenWeights", "probs")
        if probs.ndim != 1 or not probs.size or (probs < 0).any() or abs(probs.sum() - 1) > 1e-9:
            expected = "probs must be (K,), not negative, and sum to 1"
            raise DomainError(sentence("GivenWeights", expected, probs.tolist()))
        self._set(probs=probs)

    def update(self, stats: Any) -> GivenWeights:
        """Itself: nothing is learned."""
        return self

    def point(self, rule: str = "mode") -> Categorical:
        """The distribution over the parts."""
        return Categorical.trusted(probs=np.array(self.probs), levels=None)

    def draw(self, rng: Generator) -> Categorical:
        """The same."""
        return self.point()

    def predictive(self) -> Categorical:
        """The same."""
        return self.point()

    def log_evidence(self, stats: Any) -> float:
        """log p of labels with these counts, in the order that they came."""
        return self.point().objective(stats)

    def log_density(self, model: Any) -> float:
        """0: there is nothing to weigh."""
        return 0.0
