"""The ends of a uniform distribution, learned from what lay between them."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import PredictingDensity
from likely.distributions.univariate.uniform import Uniform


class UniformDensity(PredictingDensity):
    """Learn independent uniform columns: `model_` is a `Uniform`.

    - **prior**: "weak" (`BilateralPareto.weak`: ends as far beyond the extremes as neighbors are apart), None for
      maximum likelihood (ends at the extremes: a new row outside has probability 0), or a `Prior`.
    - **predictive**: True integrates the ends out: `model_` is then a `UniformPredictive`, which has tails.

    >>> import likely as lk
    >>> X = [[1.0], [2.0], [4.0]]
    >>> lk.UniformDensity(prior=None).fit(X).high_, lk.UniformDensity().fit(X).high_
    (array([4.]), array([5.5]))
    """

    _distribution = Uniform

    @property
    def low_(self) -> Any:
        """The learned lower ends (d,)."""
        return self._learned.low

    @property
    def high_(self) -> Any:
        """The learned upper ends (d,)."""
        return self._learned.high
