"""Estimator of the ends of uniform columns."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import PredictingDensity
from likely.distributions.univariate.uniform import Uniform


class UniformDensity(PredictingDensity):
    """Independent uniform columns: `model_` is a `Uniform`.

    - **prior**: "weak" (`BilateralPareto.weak`: ends beyond the extremes by the mean spacing of the data), None for
      maximum likelihood (ends at the extremes: a new row outside has density 0), or a `Prior`.
    - **predictive**: True integrates out the ends: `model_` is then a `UniformPredictive`, which has tails.

    >>> import likely as lk
    >>> X = [[1.0], [2.0], [4.0]]
    >>> lk.UniformDensity(prior=None).fit(X).high_, lk.UniformDensity().fit(X).high_
    (array([4.]), array([5.5]))
    """

    _distribution = Uniform

    @property
    def low_(self) -> Any:
        """The estimated lower ends (d,)."""
        return self.learned_model_.low

    @property
    def high_(self) -> Any:
        """The estimated upper ends (d,)."""
        return self.learned_model_.high
