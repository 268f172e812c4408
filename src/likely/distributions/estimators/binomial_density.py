"""Estimator of binomial success probabilities."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from likely.distributions.estimators.count_density import TrialsDensity
from likely.distributions.univariate.beta_binomial import BetaBinomial
from likely.distributions.univariate.binomial import Binomial
from likely.estimation.density_estimator import EM, PRIOR, predictive


class BinomialDensity(TrialsDensity):
    """Independent binomial columns with known trials, one probability each: `model_` is a `Binomial`.

    - **trials**: number of trials: one number, or one per column; None takes the largest count of each
      column, with a warning (a lower bound).
    - **prior**: "weak" (`Beta.weak`: one pseudo-count at the column's own mean), None for maximum likelihood, or a
      `Beta`.
    - **predictive**: True integrates out the probabilities: `model_` is then a `BetaBinomial`.

    >>> import likely as lk
    >>> lk.BinomialDensity(trials=4, prior=None).fit([[1], [2], [3]]).probs_
    array([0.5])
    """

    _distribution = Binomial
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "trials": [Interval(Real, 1, None, closed="left"), "array-like", None], "prior": PRIOR,
        "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, trials: Any = None, prior: Any = "weak", predictive: bool = False, max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:  # fmt: skip
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.trials = trials
        self.predictive = predictive

    @property
    def model_types(self) -> Any:
        return (Binomial, BetaBinomial)

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return predictive(model, stats, prior, "BinomialDensity") if self.predictive else model

    @property
    def probs_(self) -> Any:
        """The estimated probabilities of success (d,)."""
        return self.learned_model_.probs
