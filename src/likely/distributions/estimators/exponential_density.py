"""Estimator of exponential rates of waiting times."""

from __future__ import annotations

from typing import Any

from likely.distributions.estimators.column_density import PredictingDensity
from likely.distributions.univariate.exponential import Exponential


class ExponentialDensity(PredictingDensity):
    """Independent exponential waiting times, one rate per column: `model_` is an `Exponential`.

    - **prior**: "weak" (`Gamma.weak`: pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a
      `Prior`, such as `Gamma(a, b)`.
    - **predictive**: True integrates out the rates: `model_` is then a `Lomax`.

    >>> import likely as lk
    >>> lk.ExponentialDensity(prior=None).fit([[1.0], [2.0], [6.0]]).rate_.round(4)
    array([0.3333])
    """

    _distribution = Exponential

    @property
    def rate_(self) -> Any:
        """The estimated rates (d,)."""
        return self.learned_model_.rate
