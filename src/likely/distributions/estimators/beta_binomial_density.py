"""Estimator of beta-binomial columns: overdispersed counts of successes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likely.core.warnings import tell
from likely.distributions.estimators.count_density import TrialsDensity
from likely.distributions.univariate.beta_binomial import BetaBinomial
from likely.estimation.density_estimator import EM, PRIOR


class BetaBinomialDensity(TrialsDensity):
    """Independent beta-binomial columns of successes among known trials: `model_` is a `BetaBinomial`.

    - **trials**: number of trials: one number, or one per column; None takes the largest count of each
      column, with a warning (a lower bound).
    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    >>> import likely as lk
    >>> lk.BetaBinomialDensity(trials=4).fit([[0], [2], [4], [4], [0]]).a_.round(2)
    array([0.15])
    """

    _distribution = BetaBinomial
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "trials": [Interval(Real, 1, None, closed="left"), "array-like", None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(self, *, trials: Any = None, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.trials = trials

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        like = np.atleast_1d(np.atleast_2d(model.binomial_like).any(axis=0))
        if like.any():
            which = self._are(np.flatnonzero(like))
            text = "not overdispersed: a + b is at its upper bound (binomial limit)"
            tell(f"BetaBinomialDensity: {which} {text}")
        return model

    @property
    def a_(self) -> Any:
        """The estimated a (d,)."""
        return self.learned_model_.a

    @property
    def b_(self) -> Any:
        """The estimated b (d,)."""
        return self.learned_model_.b
