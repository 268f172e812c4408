"""Estimators of counts: independent columns, successes among trials, and counts of words."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, refuse_infinite
from likely.core.blocks import Block
from likely.core.errors import DataError, sentence
from likely.core.protocols import PriorLike
from likely.core.stats import Stats
from likely.core.warnings import warn
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.column_distribution import refuse_fractions
from likely.distributions.estimators.continuous_densities import OTHER_DISTRIBUTIONS, ColumnDensity
from likely.distributions.univariate.beta_binomial import BetaBinomial
from likely.distributions.univariate.binomial import Binomial
from likely.distributions.univariate.binomial_trials import largest_counts
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.parameter_constraints import Interval
from likely.estimation.sparse_validation import (
    checked_sparse,
    odd_columns,
    refuse_negative,
    warn_of_columns,
)


class CountDensity(ColumnDensity):
    """Base of estimators of counts: numbers that are not integers have probability 0, and are refused."""

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        X = super().validate_rows(X, reset)
        if reset:
            refuse_non_integers(self, X)
        return X

    def __sklearn_tags__(self) -> Any:
        return counts_tags(super().__sklearn_tags__())


class TrialsDensity(CountDensity):
    """Base of estimators of successes among known trials."""

    trials: Any
    traits = Traits(sketchable=False)  # unless given, trials are the largest count of all rows

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Any:
        given = self.trials is not None
        if not given:
            warn(f"{type(self).__name__}: trials were not given: the largest count of each column is used")
        distribution: Any = self._distribution
        return distribution.blank(
            X[:4096], members, trials=self._given(X) if given else largest_counts(np.asarray(X, float))
        )

    def _given(self, X: Any) -> Any:
        trials = np.asarray(self.trials, dtype=np.float64)
        if trials.ndim > 1 or trials.shape not in ((), (1,), (X.shape[1],)):
            expected = f"trials must be one number, or one for each of the {X.shape[1]} columns"
            raise DataError(sentence(type(self).__name__, expected, trials.shape))
        return trials


def refuse_non_integers(estimator: Any, X: Any) -> None:
    """Raise for rows, dense or sparse, with a number that is not an integer, naming its column."""
    named = estimator.column_titles is not None or hasattr(estimator, "feature_names_in_")
    names = estimator.column_names() if named else None
    refuse_fractions(X, type(estimator).__name__, f"round it, or {OTHER_DISTRIBUTIONS}", names)


def counts_tags(tags: Any) -> Any:
    """Tags of an estimator that takes nonnegative integers: scikit-learn's tag for that is "categorical"."""
    tags.input_tags.positive_only = tags.input_tags.categorical = True
    return tags


class PoissonDensity(DensityEstimator):
    """Independent Poisson columns, one rate each.

    Rows are dense or sparse (SciPy's matrices stay sparse).

    Parameters
    ----------
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (`Gamma.weak`: 0.1 pseudo-rows at the column's own mean), None for maximum likelihood, a number α (α
        pseudo-rows at the mean of each column), or a `Prior`.
    predictive : bool, default False
        True integrates out the rates: `model_` is then a `NegativeBinomial`.

    Attributes
    ----------
    model_ : Poisson or NegativeBinomial
        The fitted density.

    See Also
    --------
    Poisson : The distribution.
    NegativeBinomialDensity : Overdispersed counts.

    Examples
    --------
    >>> import likely as lk
    >>> lk.PoissonDensity(prior=None).fit([[1], [2], [6]]).rate_
    array([3.])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Poisson,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Poisson:
        return Poisson.blank(X[:4096], members)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        return predictive(model, stats, prior, "PoissonDensity") if self.predictive else model

    def prior_rule(self) -> Any:
        from likely.distributions.univariate.gamma import Gamma

        if isinstance(self.prior, Real):
            return lambda model, stats: Gamma.weak(stats, strength=float(self.prior))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset and is_sparse(X):
            refuse_negative(X, "PoissonDensity")
        elif reset:
            with np.errstate(invalid="ignore"):
                low = X < 0
            if low.any():
                raise self._unsuited(X, low, "counts are needed (Negative values in data)", OTHER_DISTRIBUTIONS)
        if reset:
            refuse_non_integers(self, X)
        return X

    @property
    def rate_(self) -> Array:
        """The estimated rates (d,)."""
        return self.learned_model_.rate

    def __sklearn_tags__(self) -> Any:
        tags = counts_tags(super().__sklearn_tags__())
        tags.input_tags.sparse = True
        return tags


class NegativeBinomialDensity(CountDensity):
    """Independent negative binomial columns, size and probability each.

    Rows are dense or sparse (SciPy's matrices stay sparse). A column that is not overdispersed relative to a Poisson
    distribution gets the largest size, with a warning.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior` (`Beta(a, b,
        "negative binomial", known=size)` estimates p for a known size).

    Attributes
    ----------
    model_ : NegativeBinomial
        The fitted density.

    See Also
    --------
    NegativeBinomial : The distribution.
    PoissonDensity : No overdispersion.

    Examples
    --------
    >>> import likely as lk
    >>> lk.NegativeBinomialDensity(prior=None).fit([[0], [0], [3], [9], [1]]).size_.round(3)
    array([0.522])
    """

    _distribution = NegativeBinomial

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        if not is_sparse(X):
            return super().validate_rows(X, reset)
        X = checked_sparse(self, X, reset)
        if reset:
            refuse_negative(X, "NegativeBinomialDensity")
            refuse_non_integers(self, X)
        return X

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        like = np.atleast_1d(np.atleast_2d(model.poisson_like).any(axis=0))
        if like.any():
            which = self._are(np.flatnonzero(like))
            text = "not overdispersed: size is at its upper bound (Poisson limit)"
            warn(f"NegativeBinomialDensity: {which} {text}")
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def size_(self) -> Array:
        """The estimated sizes (d,)."""
        return self.learned_model_.size

    @property
    def prob_(self) -> Array:
        """The estimated probabilities (d,)."""
        return self.learned_model_.prob


class BinomialDensity(TrialsDensity):
    """Independent binomial columns with known trials, one probability each.

    Parameters
    ----------
    trials : int or array-like (d,), optional
        Number of trials: one number, or one per column; None takes the largest count of each column, with a warning (a
        lower bound).
    prior : {"weak"}, Beta or None, default "weak"
        "weak" (`Beta.weak`: one pseudo-count at the column's own mean), None for maximum likelihood, or a `Beta`.
    predictive : bool, default False
        True integrates out the probabilities: `model_` is then a `BetaBinomial`.

    Attributes
    ----------
    model_ : Binomial or BetaBinomial
        The fitted density.

    See Also
    --------
    Binomial : The distribution.
    BetaBinomialDensity : Overdispersed numbers.

    Examples
    --------
    >>> import likely as lk
    >>> lk.BinomialDensity(trials=4, prior=None).fit([[1], [2], [3]]).probs_
    array([0.5])
    """

    _distribution = Binomial
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "trials": [Interval(Real, 1, None, closed="left"), "array-like", None], "prior": PRIOR,
        "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, trials: ArrayLike | None = None, prior: PriorLike = "weak", predictive: bool = False,
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.trials = trials
        self.predictive = predictive

    @property
    def model_types(self) -> Any:
        return (Binomial, BetaBinomial)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        return predictive(model, stats, prior, "BinomialDensity") if self.predictive else model

    @property
    def probs_(self) -> Array:
        """The estimated probabilities of success (d,)."""
        return self.learned_model_.probs


class BetaBinomialDensity(TrialsDensity):
    """Independent beta-binomial columns of successes among known trials.

    Parameters
    ----------
    trials : int or array-like (d,), optional
        Number of trials: one number, or one per column; None takes the largest count of each column, with a warning (a
        lower bound).
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : BetaBinomial
        The fitted density.

    See Also
    --------
    BetaBinomial : The distribution.
    BinomialDensity : No overdispersion.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.BetaBinomialDensity(trials=4).fit([[0], [2], [4], [4], [0]]).a_.round(2)
    array([0.15])
    """

    _distribution = BetaBinomial
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "trials": [Interval(Real, 1, None, closed="left"), "array-like", None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, *, trials: ArrayLike | None = None, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.trials = trials

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        like = np.atleast_1d(np.atleast_2d(model.binomial_like).any(axis=0))
        if like.any():
            which = self._are(np.flatnonzero(like))
            text = "not overdispersed: a + b is at its upper bound (binomial limit)"
            warn(f"BetaBinomialDensity: {which} {text}")
        return model

    @property
    def a_(self) -> Array:
        """The estimated a (d,)."""
        return self.learned_model_.a

    @property
    def b_(self) -> Array:
        """The estimated b (d,)."""
        return self.learned_model_.b


class MultinomialDensity(DensityEstimator):
    """Multinomial distribution of d counts given their total.

    Rows are counts, dense or sparse (SciPy's matrices stay sparse). A classifier with this density is
    multinomial naive Bayes: `BayesClassifier(MultinomialDensity(prior=1.0))` has the posteriors of scikit-learn's
    `MultinomialNB(alpha=1.0)`.

    Parameters
    ----------
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (one pseudo-count, spread over the columns), None for maximum likelihood, a number α (α pseudo-counts of
        each column, so 1 is Laplace smoothing), a `MultinomialPrior` or a `Dirichlet`.
    predictive : bool, default False
        True integrates out the probabilities: `model_` is then a `DirichletMultinomial`.

    Attributes
    ----------
    model_ : Multinomial or DirichletMultinomial
        The fitted density.

    See Also
    --------
    Multinomial : The distribution.
    DirichletMultinomialDensity : Overdispersed counts.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.5 and 3.4.

    Examples
    --------
    >>> from likely.distributions.estimators.count_densities import MultinomialDensity
    >>> MultinomialDensity(prior=1.0).fit([[2, 0, 1], [1, 0, 3]]).probs_
    array([0.4, 0.1, 0.5])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Multinomial, DirichletMultinomial)
    traits = Traits(reports_unobserved=False)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Multinomial:
        return Multinomial.blank(X[:4096], members)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
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

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset:
            refuse_negative(X, "MultinomialDensity")
            odd = odd_columns(X, lambda part: (part != np.floor(part)) & np.isfinite(part))
            what = "is not all integers: the others are scored as expected counts"
            warn_of_columns(odd, self.column_names(), "MultinomialDensity", what)
        return X

    @property
    def probs_(self) -> Array:
        """The estimated probabilities (d,)."""
        return self.learned_model_.probs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags


class DirichletMultinomialDensity(DensityEstimator):
    """Dirichlet-multinomial distribution of d counts given their total.

    Rows are counts, dense or sparse (SciPy's matrices stay sparse), scored given their totals.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1, plus a row with each count 1), None for maximum likelihood, or
        a `Prior`.

    Attributes
    ----------
    model_ : DirichletMultinomial
        The fitted density.

    See Also
    --------
    DirichletMultinomial : The distribution.
    MultinomialDensity : No overdispersion.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.DirichletMultinomialDensity(prior=None).fit([[9, 0, 1], [1, 8, 0], [0, 1, 7]]).alpha_.round(2)
    array([0.29, 0.29, 0.28])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {"prior": PRIOR, **EM}

    def __init__(self, *, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (DirichletMultinomial,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> DirichletMultinomial:
        return DirichletMultinomial.blank(X[:4096], members)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if not is_sparse(X):
            refuse_infinite(np.asarray(X, dtype=np.float64), "DirichletMultinomialDensity")
            if reset and np.isnan(X).any():
                i, j = (int(k) for k in np.argwhere(np.isnan(X))[0])
                place = f"row {i}, column {j}: leave the row out"
                raise DataError(f"DirichletMultinomialDensity: Input contains NaN: rows must be complete; {place}")
        if reset:
            refuse_negative(X, "DirichletMultinomialDensity")
            odd = odd_columns(X, lambda part: (part != np.floor(part)) & np.isfinite(part))
            what = "is not all integers: the others are scored as expected counts"
            warn_of_columns(odd, self.column_names(), "DirichletMultinomialDensity", what)
        return X

    @property
    def alpha_(self) -> Array:
        """The estimated α (d,)."""
        return self.learned_model_.alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags
