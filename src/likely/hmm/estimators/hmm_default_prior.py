"""Prior of an HMM from the settings of its estimator: of the transitions, and of emissions by the component."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any

from likely.core.em_loop import resolve_prior
from likely.distributions.stacks.tied import untied
from likely.hmm.priors import HMMPrior


class PriorOfHMM:
    """Callable that builds the prior of transitions and emissions once there are statistics; called by `fit`."""

    def __init__(self, component: Any, prior: Any) -> None:
        self.component, self.prior = component, prior

    def __call__(self, model: Any, stats: Any) -> Any:
        if isinstance(self.prior, HMMPrior):
            return self.prior
        outer = None if self.prior is None else "weak"
        emission = resolve_prior(untied(model.emission), model.for_prior(stats), self._emission_prior(outer))
        if self.prior is None:
            return None if emission is None else HMMPrior(None, None, None, emission)
        if isinstance(self.prior, Real):
            return HMMPrior.symmetric(model, float(self.prior), emission)
        return HMMPrior.weak(model, emission)

    def _emission_prior(self, outer: Any) -> Any:
        """The component's own prior; its "weak" follows the setting of the HMM."""
        component = copy(self.component)
        if isinstance(component.prior, str):
            component.prior = outer
        return component.prior_rule()
