"""Which prior the settings of a hidden Markov model mean: one of its arcs, and what its component says of emissions."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any

from likely.core.fit_loop import resolve_prior
from likely.distributions.stacks.tied import untied
from likely.hmm.priors import HMMPrior


class PriorOfHMM:
    """The prior of a chain's arcs and emissions, once there are statistics: what `fit` calls."""

    def __init__(self, component: Any, prior: Any) -> None:
        self.component, self.prior = component, prior

    def __call__(self, model: Any, stats: Any) -> Any:
        if isinstance(self.prior, HMMPrior):
            return self.prior
        outer = None if self.prior is None else "weak"
        parts = resolve_prior(untied(model.emission), model.for_prior(stats), self._of_parts(outer))
        if self.prior is None:
            return None if parts is None else HMMPrior(None, None, None, parts)
        if isinstance(self.prior, Real):
            return HMMPrior.symmetric(model, float(self.prior), parts)
        return HMMPrior.weak(model, parts)

    def _of_parts(self, outer: Any) -> Any:
        """A component's own "weak" means what the whole says; its own number or prior stands."""
        component = copy(self.component)
        if isinstance(component.prior, str):
            component.prior = outer
        return component._prior_rule()
