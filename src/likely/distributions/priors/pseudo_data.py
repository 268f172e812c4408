"""A prior for any distribution that learns by adding: to the letter, data that came before.

Where a family has no conjugate distribution of its own, its posterior mode needs none: statistics of before and of now
add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.random import Generator

from likely.core.errors import DomainError, sentence
from likely.core.value import Value

STRENGTH = 0.1  # rows that the weak prior is worth


@dataclass(frozen=True, eq=False)
class EarlierData(Value):
    """log p(model) = log-likelihood of earlier statistics, up to a constant: neither evidence nor draws.

    >>> import likely as lk
    >>> distribution = lk.Exponential(1.0)
    >>> EarlierData(distribution, distribution.collect([4.0])).update(distribution.collect([1.0, 1.0])).point().mean
    array([2.])
    """

    distribution: Any  # one value, or a stack: what the statistics are of
    stats: Any

    def __post_init__(self) -> None:
        if not (hasattr(self.distribution, "refit") and hasattr(self.stats, "total_weight")):
            got = (type(self.distribution).__name__, type(self.stats).__name__)
            raise DomainError(
                sentence("EarlierData", "a distribution that learns and statistics of it are needed", got)
            )

    @classmethod
    def weak(cls, distribution: Any, stats: Any, strength: float = STRENGTH) -> EarlierData:
        """`strength` rows that look like the pooled ones, for each member of a stack."""
        pooled = stats.pooled()
        if not pooled.total_weight > 0:
            raise DomainError(sentence("EarlierData.weak", "statistics of at least one row are needed", "none"))
        some = pooled * (strength / pooled.total_weight)
        return cls(distribution, some if distribution.members is None else spread_out(some, distribution.members))

    def update(self, stats: Any) -> EarlierData:
        """The posterior: earlier data and these."""
        return self.replace(stats=self.stats + stats)

    def point(self, rule: str = "mode") -> Any:
        """The "mode": the distribution that is best for all of the data; mean and median are not known."""
        if rule != "mode":
            self._refuse(f"posterior {rule}")
        return self.distribution.refit(self.stats)

    def log_density(self, model: Any) -> Any:
        """log p(model), up to a constant."""
        return model.objective(self.stats)

    def draw(self, rng: Generator) -> NoReturn:
        """No draws: the constant is not known."""
        self._refuse("draw of the posterior")

    def predictive(self) -> NoReturn:
        """No prediction but that of the mode."""
        self._refuse("predictive distribution")

    def log_evidence(self, stats: Any) -> NoReturn:
        """No evidence: the constant is not known."""
        self._refuse("evidence")

    def _refuse(self, what: str) -> NoReturn:
        me = type(self.distribution).__name__
        expected = f"no {what} is known of {me} with a prior that is earlier data, which has only a mode"
        remedy = f'use the mode: lk.estimate(lk.{me}, x, "map", prior="weak"), or point("mode")'
        raise DomainError(sentence("EarlierData", expected, remedy=remedy))


def spread_out(stats: Any, members: int) -> Any:
    """Statistics of one value as those of a stack whose members have each seen them."""
    from likely.distributions.statistics.weighted_values import WeightedValues

    if not isinstance(stats, WeightedValues):
        return stats.trusted(
            **{name: np.repeat(np.asarray(part)[None], members, axis=0) for name, part in stats._field_values().items()}
        )
    d, m = stats.weight.shape[-1], len(stats.cell)
    each = {name: part for name, part in stats._field_values().items() if name not in ("cell", "value", "each")}
    repeated = {name: np.repeat(np.asarray(part)[None], members, axis=0) for name, part in each.items()}
    cell = np.tile(stats.cell, members) + np.repeat(np.arange(members) * d, m)
    return stats.replace(**repeated, cell=cell, value=np.tile(stats.value, members), each=np.tile(stats.each, members))
