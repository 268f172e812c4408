"""Estimator of multinomial probabilities from counts, sparse or dense."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.sparse_validation import (
    checked_sparse,
    odd_columns,
    refuse_negative,
    tell_of_columns,
)


class MultinomialDensity(DensityEstimator):
    """Multinomial distribution of d counts given their total: `model_` is a `Multinomial`.

    Rows are counts, dense or sparse (SciPy's matrices stay sparse). A classifier with this density is
    multinomial naive Bayes: `BayesClassifier(MultinomialDensity(prior=1.0))` has the posteriors of scikit-learn's
    `MultinomialNB(alpha=1.0)`.

    - **prior**: "weak" (one pseudo-count, spread over the columns), None for maximum likelihood, a number α
      (α pseudo-counts of each column, so 1 is Laplace smoothing), a `MultinomialPrior` or a `Dirichlet`.
    - **predictive**: True integrates out the probabilities: `model_` is then a `DirichletMultinomial`.

    >>> from likely.distributions.estimators.multinomial_density import MultinomialDensity
    >>> MultinomialDensity(prior=1.0).fit([[2, 0, 1], [1, 0, 3]]).probs_
    array([0.4, 0.1, 0.5])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: Any = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Multinomial, DirichletMultinomial)
    traits = Traits(reports_unobserved=False)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Multinomial:
        return Multinomial.blank(X[:4096], members)

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return predictive(model, stats, prior, "MultinomialDensity") if self.predictive else model

    def prior_rule(self) -> Any:
        from likely.distributions.categorical.dirichlet import Dirichlet
        from likely.distributions.priors.multinomial_prior import MultinomialPrior

        if isinstance(self.prior, Real):
            counts = float(self.prior)
            return lambda model, stats: MultinomialPrior.symmetric(model.dim, counts, model.length)
        if isinstance(self.prior, Dirichlet):
            return lambda model, stats: MultinomialPrior(self.prior, model.length)
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset:
            refuse_negative(X, "MultinomialDensity")
            odd = odd_columns(X, lambda part: (part != np.floor(part)) & np.isfinite(part))
            what = "is not all whole numbers: the others are scored as expected counts"
            tell_of_columns(odd, self.column_names(), "MultinomialDensity", what)
        return X

    @property
    def probs_(self) -> Any:
        """The estimated probabilities (d,)."""
        return self.learned_model_.probs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
