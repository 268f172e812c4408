"""Shares between two ends learned as beta distributions."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likely.core.errors import DomainError, sentence
from likely.distributions.estimators.column_density import OTHER_DISTRIBUTIONS, ColumnDensity
from likely.distributions.estimators.gamma_density import without_edges
from likely.distributions.univariate.beta import Beta
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator


class BetaDensity(ColumnDensity):
    """Learn independent beta distributions, a and b per column: `model_` is a `Beta` of (x − low) / (high − low).

    - **low**, **high**: the ends that shares lie between: 0 and 1, or 0 and 100 for per cent.
    - **prior**: "weak" (a tenth of a row that looks like all rows), None for maximum likelihood, or a `Prior`.
    - **outside**: "missing": what does not lie between the ends (the ends themselves too, where the distribution has
      poles) counts as not observed, in learning and in scoring, and a warning says how much that is; "error": it is
      refused in learning, and has the distribution's own density after.

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

    def _rows(self, X: Any, reset: bool) -> Any:
        X = given = DensityEstimator._rows(self, X, reset)
        if not self.low < self.high:
            raise DomainError(sentence("BetaDensity", "low must be below high", (self.low, self.high)))
        if (self.low, self.high) != (0, 1):
            X = ((X - self.low) / (self.high - self.low)).astype(X.dtype)
        if reset:
            self._warn_of_unseen(X)  # before what lies outside is left out, of which a note of its own tells
        with np.errstate(invalid="ignore"):
            edge, beyond = ((X <= 0) | (X >= 1)) & np.isfinite(X), ((X < 0) | (X > 1)) & np.isfinite(X)
        if reset and self._chosen and beyond.any():
            raise self._unsuited(given, beyond, self._expected, f"set low and high, or {OTHER_DISTRIBUTIONS}")
        if self.outside == "missing":
            X = without_edges(self, X, edge, f"what is not between {self.low:g} and {self.high:g}", reset)
        elif reset and edge.any():
            raise self._unsuited(given, edge, self._expected, 'set outside="missing" to leave it out')
        if reset:
            self._warn_of_constants(X)
        return X

    @property
    def _expected(self) -> str:
        return f"values must lie between {self.low:g} and {self.high:g}"

    def _look_for_gaps(self, data: Any) -> None:
        """Rows were looked at before what lies outside was left out: a table of nothing else is left to the prior."""

    def score_samples(self, X: Any) -> Any:
        """log p(x) of each row (n,), in the units of x."""
        found = super().score_samples(X)
        if (self.low, self.high) == (0, 1):
            return found
        seen = (~np.isnan(self._rows(X, reset=False))).sum(axis=1)
        return (found - seen * np.log(self.high - self.low)).astype(found.dtype)

    def _outward(self, rows: Any, like: Any = None) -> Any:
        return super()._outward(self.low + (self.high - self.low) * rows, like)

    @property
    def a_(self) -> Any:
        """The learned a (d,)."""
        return self._learned.a

    @property
    def b_(self) -> Any:
        """The learned b (d,)."""
        return self._learned.b
