"""Prior of a mixture as given by the estimator's settings: of the weights, and of the components."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any

import numpy as np

from likely.core.em_loop import resolve_prior
from likely.core.errors import DomainError, sentence
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.stacks.tied import untied
from likely.mixture.priors import MixturePrior
from likely.mixture.sparse_weights import SparseWeights


class MixturePriorRule:
    """Resolve the prior of a mixture's weights and components from its settings, once there are statistics."""

    def __init__(self, component: Any, prior: Any) -> None:
        self.component, self.prior = component, prior

    def __call__(self, model: Any, stats: Any) -> Any:
        prior = self.prior
        if isinstance(prior, MixturePrior):
            return prior
        weights = _weights_distribution(float(prior), model.size) if isinstance(prior, Real) else None
        if not (prior is None or isinstance(prior, str | Real)):
            weights = _of_weights(prior, model.size)
        parts = resolve_prior(
            untied(model.components), model.for_prior(stats), self._of_parts(None if prior is None else "weak")
        )
        return None if weights is None and parts is None else MixturePrior.trusted(weights=weights, components=parts)

    def _of_parts(self, outer: Any) -> Any:
        """A component's own "weak" follows the setting of the whole; its own number or prior takes precedence."""
        component = copy(self.component)
        if isinstance(component.prior, str):
            component.prior = outer
        return component.prior_rule()


def _weights_distribution(a: float, size: int) -> Any:
    """The prior of the weights for a number α; below 1 it is sparse."""
    return Dirichlet.symmetric(size, a) if a >= 1 else SparseWeights(np.full(size, a))


def _of_weights(prior: Any, size: int) -> Any:
    """A prior of the weights alone."""
    alpha = getattr(prior, "alpha", None)
    if alpha is None or np.shape(alpha) != (size,):
        expected = f'prior must be "weak", None, a number, a MixturePrior, or a distribution of {size} weights'
        raise DomainError(sentence("MixtureDensity", expected, type(prior).__name__))
    return prior
