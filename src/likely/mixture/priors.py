"""A mixture's prior has the mixture's shape: one for the weights, one for the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.mixture.mixture import Mixture, categorical, level_counts


@dataclass(frozen=True, eq=False)
class MixturePrior(Value):
    """What we believe of a `Mixture`; None, the default, leaves weights or parts to maximum likelihood.

    >>> import likely as lk
    >>> MixturePrior(lk.Dirichlet([2.0, 2.0]), None).weights.mode
    array([0.5, 0.5])
    """

    weights: Dirichlet | None = None
    components: Any = None

    def __post_init__(self) -> None:
        for name in ("weights", "components"):
            given = getattr(self, name)
            sound = not isinstance(given, type) and hasattr(given, "update")
            if name == "weights":  # its point must be probabilities
                sound = sound and hasattr(given, "alpha")
            if given is not None and not sound:
                example = "Dirichlet([2.0, 2.0])" if name == "weights" else "a NormalInverseWishart"
                remedy = f'pass a prior such as {example}; prior="weak" is for the whole mixture'
                raise DomainError(sentence("MixturePrior", f"{name} must be a prior or None", repr(given)[:60], remedy))

    def update(self, stats: Any) -> MixturePrior:
        """The posterior of weights and parts."""
        weights = None if self.weights is None else self.weights.update(level_counts(stats.counts))
        return MixturePrior(weights, None if self.components is None else self.components.update(stats.components))

    def point(self, rule: str = "mode") -> Mixture:
        """The Mixture of the weights' and the parts' points."""
        weights, parts = self._both("point")
        return Mixture(weights.point(rule).probs, parts.point(rule))

    def draw(self, rng: Generator) -> Mixture:
        """A Mixture with weights and parameters drawn."""
        weights, parts = self._both("draw")
        return Mixture(weights.draw(rng).probs, parts.draw(rng))

    def predictive(self) -> Mixture:
        """The Mixture of the parts' predictives, each as likely as a next row would be its own."""
        weights, parts = self._both("predictive")
        return Mixture(weights.predictive().probs, parts.predictive())

    def log_evidence(self, stats: Any) -> float:
        """log p(labels) + log p(rows | labels), for statistics of rows whose labels were seen."""
        weights, parts = self._both("log_evidence")
        if not stats.complete:
            raise DomainError(sentence("MixturePrior.log_evidence", "labels and entries must have been seen"))
        return float(weights.log_evidence(level_counts(stats.counts)) + np.sum(parts.log_evidence(stats.components)))

    def log_density(self, model: Mixture) -> float:
        """log p of a mixture's parameters; what has no prior adds nothing."""
        of_weights = 0.0 if self.weights is None else self.weights.log_density(categorical(model.weights))
        return float(
            of_weights + (0.0 if self.components is None else np.sum(self.components.log_density(model.components)))
        )

    def _both(self, doing: str) -> tuple[Dirichlet, Any]:
        if self.weights is None or self.components is None:
            raise DomainError(
                sentence(f"MixturePrior.{doing}", "weights and parts need priors", "None for one of them")
            )
        return self.weights, self.components
