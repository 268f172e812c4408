"""Pseudo-data prior for any distribution with additive statistics: statistics of pseudo-observations.

Where a family has no conjugate prior, its posterior mode needs none: statistics of pseudo-observations and of data add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import PerMember
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyDensity, PointRule
from likely.core.stats import Stats
from likely.core.value import Value

STRENGTH = 0.1  # pseudo-counts of the weak prior


@dataclass(frozen=True, eq=False)
class PseudoData(Value):
    """Pseudo-data prior: log p(model) = log-likelihood of given statistics + constant.

    It has a mode, but neither evidence nor sampling.

    Parameters
    ----------
    distribution : value
        The distribution, or stack, to which the statistics belong.
    stats : statistics
        Sufficient statistics of the pseudo-data.

    Examples
    --------
    >>> import likely as lk
    >>> distribution = lk.Exponential(1.0)
    >>> PseudoData(distribution, distribution.collect([4.0])).update(distribution.collect([1.0, 1.0])).point().mean
    array([2.])
    """

    distribution: Annotated[Any, declared.density]  # the distribution, or stack, to which the statistics belong
    stats: Annotated[Any, declared.stats]

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that pseudo-observations are statistics of the distribution."""
        try:
            with np.errstate(all="ignore"):
                sound = isinstance(fields["distribution"].objective(fields["stats"]), float)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        return "" if sound else "stats must be statistics of the distribution"

    def __post_init__(self) -> None:
        if not (hasattr(self.distribution, "refit") and hasattr(self.stats, "total_weight")):
            got = (type(self.distribution).__name__, type(self.stats).__name__)
            raise DomainError(
                sentence("PseudoData", "a distribution that can be fitted and its statistics are needed", got)
            )

    @classmethod
    def weak(cls, distribution: Any, stats: Any, strength: float = STRENGTH) -> PseudoData:
        """Weakly informative prior: pseudo-observations with the pooled statistics, for each member.

        Parameters
        ----------
        distribution : value
            The distribution, or stack, to which the statistics belong.
        """
        pooled = stats.pooled()
        if not pooled.total_weight > 0:
            raise DomainError(sentence("PseudoData.weak", "statistics of at least one row are needed", "none"))
        pseudo = pooled * (strength / pooled.total_weight)
        return cls(distribution, pseudo if distribution.members is None else spread_out(pseudo, distribution.members))

    def update(self, stats: Stats) -> PseudoData:
        """Posterior: the statistics add."""
        return self.replace(stats=self.stats + stats)

    def point(self, rule: PointRule = "mode") -> AnyDensity:
        """The posterior "mode": maximum likelihood for all statistics; mean and median are not available."""
        if rule != "mode":
            self._refuse(f"posterior {rule}")
        return self.distribution.refit(self.stats)

    def log_density(self, model: Any) -> PerMember:
        """Log-density log p(model), up to a constant."""
        return model.objective(self.stats)

    def draw(self, rng: Generator) -> NoReturn:
        """Raises: the normalization constant is not known."""
        self._refuse("draw of the posterior")

    def predictive(self) -> NoReturn:
        """Raises: only the posterior mode is available."""
        self._refuse("predictive distribution")

    def log_evidence(self, stats: Stats) -> NoReturn:
        """Raises: the normalization constant is not known."""
        self._refuse("evidence")

    def _refuse(self, what: str) -> NoReturn:
        me = type(self.distribution).__name__
        expected = f"no {what} is known of {me} with a pseudo-data prior, which has only a mode"
        remedy = f'use the mode: lk.estimate(lk.{me}, x, "map", prior="weak"), or point("mode")'
        raise DomainError(sentence("PseudoData", expected, remedy=remedy))


def spread_out(stats: Any, members: int) -> Any:
    """Statistics of one distribution, repeated for each member of a stack."""
    from likely.distributions.statistics.weighted_values import WeightedValues

    if not isinstance(stats, WeightedValues):
        return stats.trusted(
            **{name: np.repeat(np.asarray(part)[None], members, axis=0) for name, part in stats.field_values().items()}
        )
    d, m = stats.weight.shape[-1], len(stats.cell)
    each = {name: part for name, part in stats.field_values().items() if name not in ("cell", "value", "each")}
    repeated = {name: np.repeat(np.asarray(part)[None], members, axis=0) for name, part in each.items()}
    cell = np.tile(stats.cell, members) + np.repeat(np.arange(members) * d, m)
    return stats.replace(**repeated, cell=cell, value=np.tile(stats.value, members), each=np.tile(stats.each, members))
