"""A mixture's prior has the mixture's shape: one for the weights, one for the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likely.core.value import Value
from likely.priors.dirichlet import Dirichlet


@dataclass(frozen=True, eq=False)
class MixturePrior(Value):
    """What we believe of a `Mixture`; None leaves weights or parts to maximum likelihood.

    >>> import likely as lk
    >>> MixturePrior(lk.Dirichlet([2.0, 2.0]), None).weights.mode
    array([0.5, 0.5])
    """

    weights: Dirichlet | None
    parts: Any

    def update(self, stats: Any) -> MixturePrior:
        """The posterior of weights and parts."""
        from likely.models.mixture import _level_counts

        weights = None if self.weights is None else self.weights.update(_level_counts(stats.counts))
        return MixturePrior(weights, None if self.parts is None else self.parts.update(stats.parts))
