"""Prior of a mixture: a prior of the weights and a prior of the components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.errors import DomainError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.mixture.mixture import Mixture, categorical, level_counts


@dataclass(frozen=True, eq=False)
class MixturePrior(Value):
    """Prior of a mixture: of its weights and of its components.

    Parameters
    ----------
    weights : Dirichlet or SparseWeights, optional
        Prior of the weights; None is maximum likelihood.
    components : Prior, optional
        Prior of the components; None is maximum likelihood.

    See Also
    --------
    Mixture : Its likelihood.

    Examples
    --------
    >>> import likely as lk
    >>> MixturePrior(lk.Dirichlet([2.0, 2.0]), None).weights.mode
    array([0.5, 0.5])
    """

    weights: Annotated[Dirichlet | None, declared.maybe(declared.prior)] = None
    components: Annotated[Any, declared.maybe(declared.prior)] = None

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
        """The posterior of weights and components."""
        weights = None if self.weights is None else self.weights.update(level_counts(stats.counts))
        return MixturePrior(weights, None if self.components is None else self.components.update(stats.components))

    def point(self, rule: PointRule = "mode") -> Mixture:
        """The Mixture at the point estimates of weights and components."""
        weights, parts = self._both("point")
        return Mixture(weights.point(rule).probs, parts.point(rule))

    def draw(self, rng: Generator) -> Mixture:
        """A Mixture with weights and parameters drawn from the prior."""
        weights, parts = self._both("draw")
        return Mixture(weights.draw(rng).probs, parts.draw(rng))

    def predictive(self) -> Mixture:
        """Posterior predictive: the mixture of the components' predictive distributions, with mean weights."""
        weights, parts = self._both("predictive")
        return Mixture(weights.predictive().probs, parts.predictive())

    def log_evidence(self, stats: Any) -> float:
        """Log marginal likelihood log p(labels) + log p(rows | labels), for statistics of labeled rows."""
        weights, parts = self._both("log_evidence")
        if not stats.complete:
            raise DomainError(sentence("MixturePrior.log_evidence", "labels and entries must be observed"))
        return float(weights.log_evidence(level_counts(stats.counts)) + np.sum(parts.log_evidence(stats.components)))

    def log_density(self, model: Mixture) -> float:
        """Log prior density of a mixture's parameters; what has no prior adds 0."""
        of_weights = 0.0 if self.weights is None else self.weights.log_density(categorical(model.weights))
        return float(
            of_weights + (0.0 if self.components is None else np.sum(self.components.log_density(model.components)))
        )

    def _both(self, doing: str) -> tuple[Dirichlet, Any]:
        if self.weights is None or self.components is None:
            raise DomainError(
                sentence(f"MixturePrior.{doing}", "weights and components need priors", "None for one of them")
            )
        return self.weights, self.components
