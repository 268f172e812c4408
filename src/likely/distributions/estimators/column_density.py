"""Base of estimators of independent columns: validation of the support, and warnings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from likely.core.blocks import Blocks
from likely.core.errors import MANY
from likely.core.warnings import tell
from likely.distributions.column_distribution import ColumnDistribution, outside
from likely.distributions.constant_columns import NARROW, constant_columns
from likely.distributions.unobserved_columns import nothing_seen
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive

OTHER_DISTRIBUTIONS = (
    'use a distribution of real numbers: GaussianDensity or HistogramDensity (in NaiveBayes "gaussian" or "histogram")'
)


class ColumnDensity(DensityEstimator):
    """Base of estimators of independent columns; a subclass names the distribution.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    """

    _distribution: ClassVar[type[ColumnDistribution]]
    _parameter_constraints: ClassVar[dict[str, Any]] = {"prior": PRIOR, **EM}

    def __init__(self, *, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    @property
    def model_types(self) -> Any:
        return (self._distribution,)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> ColumnDistribution:
        return self._distribution.blank(X[:4096], members)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = super().validate_rows(X, reset)
        if reset:
            self._refuse_outside(X, self._distribution._support)
            self._warn_of_constants(X)
            self._warn_of_unseen(X)
        return X

    def _warn_of_unseen(self, X: Any) -> None:
        """Warn of columns with all values missing; a table of nothing but missing values is refused."""
        unseen = np.isnan(X).all(axis=0)
        if not unseen.any() or not len(X):
            return
        if unseen.all():
            where = "" if self.column_titles is None else f" ({', '.join(self.column_titles)})"
            raise nothing_seen(f"{type(self).__name__}{where}")
        names, were = self._are(np.flatnonzero(unseen)).rsplit(" ", 1)
        verb = "was" if were == "is" else "were"
        tell(f"{type(self).__name__}: {names} {verb} never observed: the estimate is meaningless there")

    def _are(self, columns: Any) -> str:
        """Names of columns with their verb: "x1 is", "x1, x2 are"; of many, the first five."""
        names = self.column_names()
        more = f" and {len(columns) - 5} more" if len(columns) > MANY else ""
        which = ", ".join(names[j] for j in (columns[:5] if more else columns))
        return f"{which}{more} {'is' if len(columns) == 1 else 'are'}"

    def _refuse_outside(self, X: Any, support: str) -> None:
        """Raise for values outside the support; negative values with the words that scikit-learn's checks look for."""
        found = outside(np.asarray(X, dtype=np.float64), support)
        if found is None:
            return
        bad, expected = found
        negative = X[tuple(np.argwhere(bad)[0])] < 0 and support != "unit"
        expected += " (Negative values in data)" if negative else ""
        raise self._unsuited(X, bad, expected, f"correct it, replace it by NaN, or {OTHER_DISTRIBUTIONS}")

    def _warn_of_constants(self, X: Any) -> None:
        """Warn of constant columns, which leave some distributions without a scale."""
        self._constant: Any = ()
        if not self._distribution._spreads or len(X) < 2:
            return
        self._constant = constant_columns(Blocks.of(X), type(self).__name__)
        if len(self._constant):
            tell(f"{type(self).__name__}: {self._are(self._constant)} {NARROW}")

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        if isinstance(model, self._distribution):
            model._tell_limits(getattr(self, "_constant", ()))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._distribution._support in ("positive", "unsigned", "count")
        return tags


class PredictingDensity(ColumnDensity):
    """Base of estimators of independent columns with a predictive distribution.

    - **prior**: "weak", None for maximum likelihood, or a `Prior`.
    - **predictive**: True integrates out the parameters.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"prior": PRIOR, "predictive": ["boolean"], **EM}

    def __init__(
        self, *, prior: Any = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.predictive = predictive

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        model = super().scoring_model(model, stats, prior)
        return predictive(model, stats, prior, type(self).__name__) if self.predictive else model
