"""Estimator of beta distributions of proportions, or of values in an interval."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likely.core.errors import DomainError, sentence
from likely.distributions.estimators.column_density import OTHER_DISTRIBUTIONS, ColumnDensity
from likely.distributions.estimators.gamma_density import with_missing
from likely.distributions.univariate.beta import Beta
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator


class BetaDensity(ColumnDensity):
    """Independent beta columns, a and b each: `model_` is a `Beta` of (x − low) / (high − low).

    - **low**, **high**: the ends of the interval: 0 and 1, or 0 and 100 for percentages.
    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    - **outside**: "missing": values outside the interval (and the ends themselves, where the density may be
      infinite) count as missing, in fitting and in scoring, with a warning of their number; "error": they are
      refused in `fit`, and have the distribution's own density afterwards.

    >>> import likely as lk
    >>> lk.BetaDensity(prior=None).fit([[0.2], [0.5], [0.6]]).a_.round(3)
    array([3.354])
    """

    _distribution = Beta
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "low": [Interval(Real, None, None, closed="neither")], "high": [Interval(Real, None, None, closed="neither")],
        "prior": PRIOR, "outside": [StrOptions({"missing", "error"})], **EM,
    }  # fmt: skip

    def __init__(
        self, *, low: float = 0.0, high: float = 1.0, prior: Any = "weak", outside: str = "missing",
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.low = low
        self.high = high
        self.outside = outside

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = given = DensityEstimator.validate_rows(self, X, reset)
        if not self.low < self.high:
            raise DomainError(sentence("BetaDensity", "low must be below high", (self.low, self.high)))
        if (self.low, self.high) != (0, 1):
            X = ((X - self.low) / (self.high - self.low)).astype(X.dtype)
        if reset:
            self._warn_of_unseen(X)  # before outside values are dropped, which has its own warning
        with np.errstate(invalid="ignore"):
            edge, beyond = ((X <= 0) | (X >= 1)) & np.isfinite(X), ((X < 0) | (X > 1)) & np.isfinite(X)
        if reset and self.strict_support and beyond.any():
            raise self._unsuited(given, beyond, self._expected, f"set low and high, or {OTHER_DISTRIBUTIONS}")
        if self.outside == "missing":
            X = with_missing(self, X, edge, f"what is not between {self.low:g} and {self.high:g}", reset)
        elif reset and edge.any():
            raise self._unsuited(given, edge, self._expected, 'set outside="missing" to leave it out')
        if reset:
            self._warn_of_constants(X)
        return X

    @property
    def _expected(self) -> str:
        return f"values must lie between {self.low:g} and {self.high:g}"

    def _look_for_unobserved(self, data: Any) -> None:
        """No check: it was made before outside values were dropped; an all-missing table is left to the prior."""

    def score_samples(self, X: Any) -> Any:
        """log p(x) of each row (n,), in the units of x."""
        found = super().score_samples(X)
        if (self.low, self.high) == (0, 1):
            return found
        observed = (~np.isnan(self.validate_rows(X, reset=False))).sum(axis=1)
        return (found - observed * np.log(self.high - self.low)).astype(found.dtype)

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return super().decode_rows(self.low + (self.high - self.low) * rows, like)

    @property
    def a_(self) -> Any:
        """The estimated a (d,)."""
        return self.learned_model_.a

    @property
    def b_(self) -> Any:
        """The estimated b (d,)."""
        return self.learned_model_.b
