"""Estimators of independent columns of real numbers, and of proportions."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, refuse_infinite
from likely.core.blocks import Block, Blocks
from likely.core.errors import MANY, DataError, DomainError, sentence
from likely.core.protocols import PriorLike
from likely.core.stats import Stats
from likely.core.warnings import warn
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.column_distribution import ColumnDistribution, outside, refuse_outside
from likely.distributions.constant_columns import NARROW, constant_columns
from likely.distributions.univariate.beta import Beta
from likely.distributions.univariate.cauchy import Cauchy
from likely.distributions.univariate.chi_square import ChiSquare
from likely.distributions.univariate.exponential import Exponential
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.laplace import Laplace
from likely.distributions.univariate.triangular import Triangular
from likely.distributions.univariate.uniform import Uniform
from likely.distributions.univariate.von_mises import VonMises
from likely.distributions.unobserved_columns import nothing_seen
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.parameter_constraints import Interval, StrOptions

Outside = Literal["missing", "error"]  # what values outside the support are
OTHER_DISTRIBUTIONS = (
    'use a distribution of real numbers: GaussianDensity or HistogramDensity (in NaiveBayes "gaussian" or "histogram")'
)


class ColumnDensity(DensityEstimator):
    """Base of estimators of independent columns; a subclass names the distribution.

    - **prior**: "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    """

    _distribution: ClassVar[type[ColumnDistribution]]
    _parameter_rules: ClassVar[dict[str, Any]] = {"prior": PRIOR, **EM}

    def __init__(self, *, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    @property
    def model_types(self) -> Any:
        return (self._distribution,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> ColumnDistribution:
        return self._distribution.blank(X[:4096], members)

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
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
        warn(f"{type(self).__name__}: {names} {verb} never observed: the estimate is meaningless there")

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
            warn(f"{type(self).__name__}: {self._are(self._constant)} {NARROW}")

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        if isinstance(model, self._distribution):
            model._warn_of_limits(getattr(self, "_constant", ()))
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

    _parameter_rules: ClassVar[dict[str, Any]] = {"prior": PRIOR, "predictive": ["boolean"], **EM}

    def __init__(
        self, *, prior: PriorLike = "weak", predictive: bool = False, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.predictive = predictive

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        model = super().scoring_model(model, stats, prior)
        return predictive(model, stats, prior, type(self).__name__) if self.predictive else model


class UniformDensity(PredictingDensity):
    """Independent uniform columns.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (`BilateralPareto.weak`: ends beyond the extremes by the mean spacing of the data), None for maximum
        likelihood (ends at the extremes: a new row outside has density 0), or a `Prior`.
    predictive : bool, default False
        True integrates out the ends: `model_` is then a `UniformPredictive`, which has tails.

    Attributes
    ----------
    model_ : Uniform or UniformPredictive
        The fitted density.

    See Also
    --------
    Uniform : The distribution.
    HistogramDensity : Several intervals.

    Examples
    --------
    >>> import likely as lk
    >>> X = [[1.0], [2.0], [4.0]]
    >>> lk.UniformDensity(prior=None).fit(X).high_, lk.UniformDensity().fit(X).high_
    (array([4.]), array([5.5]))
    """

    _distribution = Uniform

    @property
    def low_(self) -> Array:
        """The estimated lower ends (d,)."""
        return self.learned_model_.low

    @property
    def high_(self) -> Array:
        """The estimated upper ends (d,)."""
        return self.learned_model_.high


class TriangularDensity(ColumnDensity):
    """Independent triangular columns.

    Parameters
    ----------
    low, high : float or array-like (d,), optional
        Fixed ends, a number or one per column; None estimates them.
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : Triangular
        The fitted density.

    See Also
    --------
    Triangular : The distribution.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.TriangularDensity(low=0.0, high=8.0, prior=None).fit([[1.0], [2.0], [4.0]]).mode_
    array([2.])
    """

    _distribution = Triangular
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "low": ["array-like", Real, None], "high": ["array-like", Real, None], "prior": PRIOR, **EM,
    }  # fmt: skip

    def __init__(
        self, *, low: ArrayLike | None = None, high: ArrayLike | None = None, prior: PriorLike = "weak",
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.low = low
        self.high = high

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Triangular:
        return Triangular.blank(X[:4096], members, low=self.low, high=self.high)

    @property
    def low_(self) -> Array:
        """The lower ends (d,)."""
        return self.learned_model_.low

    @property
    def mode_(self) -> Array:
        """The estimated modes (d,)."""
        return self.learned_model_.mode

    @property
    def high_(self) -> Array:
        """The upper ends (d,)."""
        return self.learned_model_.high


class LaplaceDensity(ColumnDensity):
    """Independent Laplace columns, a median and a mean absolute deviation each.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : Laplace
        The fitted density.

    See Also
    --------
    Laplace : The distribution.

    Examples
    --------
    >>> import likely as lk
    >>> est = lk.LaplaceDensity(prior=None).fit([[1.0], [2.0], [4.0], [8.0], [16.0]])
    >>> est.center_, est.scale_
    (array([4.]), array([4.2]))
    """

    _distribution = Laplace

    @property
    def center_(self) -> Array:
        """The estimated medians (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Array:
        """The estimated mean absolute deviations (d,)."""
        return self.learned_model_.scale


class CauchyDensity(ColumnDensity):
    """Independent Cauchy columns, a center and a scale each.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : Cauchy
        The fitted density.

    See Also
    --------
    Cauchy : The distribution.
    StudentTDensity : Estimated degrees of freedom.

    Examples
    --------
    >>> import likely as lk
    >>> est = lk.distributions.CauchyDensity(prior=None).fit([[-1.0], [0.0], [1.0], [1000.0], [-1000.0]])
    >>> abs(est.center_.round(4)), est.scale_.round(2)
    (array([0.]), array([1.73]))
    """

    _distribution = Cauchy

    @property
    def center_(self) -> Array:
        """The estimated centers (d,)."""
        return self.learned_model_.center

    @property
    def scale_(self) -> Array:
        """The estimated scales (d,)."""
        return self.learned_model_.scale


class ExponentialDensity(PredictingDensity):
    """Independent exponential waiting times, one rate per column.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (`Gamma.weak`: pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`, such
        as `Gamma(a, b)`.
    predictive : bool, default False
        True integrates out the rates: `model_` is then a `Lomax`.

    Attributes
    ----------
    model_ : Exponential or Lomax
        The fitted density.

    See Also
    --------
    Exponential : The distribution.
    GammaDensity : Other shapes.

    Examples
    --------
    >>> import likely as lk
    >>> lk.ExponentialDensity(prior=None).fit([[1.0], [2.0], [6.0]]).rate_.round(4)
    array([0.3333])
    """

    _distribution = Exponential

    @property
    def rate_(self) -> Array:
        """The estimated rates (d,)."""
        return self.learned_model_.rate


class GammaDensity(ColumnDensity):
    """Independent gamma columns of positive numbers, a shape and a rate each.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    zeros : {"missing", "error"}, default "missing"
        "missing": a 0, outside the support, counts as missing, in fitting and in scoring, with a warning; "error": it
        is refused in `fit`, and has the distribution's own density afterwards.

    Attributes
    ----------
    model_ : Gamma
        The fitted density.

    See Also
    --------
    Gamma : The distribution.
    ExponentialDensity : Shape 1.

    Examples
    --------
    >>> import likely as lk
    >>> lk.GammaDensity(prior=None).fit([[1.0], [2.0], [6.0]]).shape_.round(3)
    array([2.])
    """

    _distribution = Gamma
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": PRIOR, "zeros": [StrOptions(set(get_args(Outside)))], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", zeros: Outside = "missing", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        super().__init__(prior=prior, max_iter=max_iter, tol=tol)
        self.zeros = zeros

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        X = DensityEstimator.validate_rows(self, X, reset)
        if reset:
            support = "unsigned" if self.zeros == "missing" else "positive"
            self._refuse_outside(X, support)
        X = with_missing(self, X, X == 0, "0", reset) if self.zeros == "missing" else X
        if reset:
            self._warn_of_constants(X)
            self._warn_of_unseen(X)
        return X

    @property
    def shape_(self) -> Array:
        """The estimated shapes (d,)."""
        return self.learned_model_.shape

    @property
    def rate_(self) -> Array:
        """The estimated rates (d,)."""
        return self.learned_model_.rate


def with_missing(estimator: Any, X: Any, edge: Any, what: str, reset: bool) -> Any:
    """Rows with the masked entries set to missing, with a warning in `fit`."""
    if not edge.any():
        return X
    if reset:
        which = ", ".join(estimator.column_names()[j] for j in np.flatnonzero(edge.any(axis=0)))
        share = f"{edge.sum()} of {edge.size} entries"
        warn(f"{type(estimator).__name__}: {which}: {what} counts as missing ({share})")
    return np.where(edge, np.nan, X).astype(X.dtype)


class ChiSquareDensity(ColumnDensity):
    """Independent chi-square columns, the degrees of freedom of each.

    An entry of 0, outside the support, counts as missing, in fitting and in scoring, with a
    warning.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.

    Attributes
    ----------
    model_ : ChiSquare
        The fitted density.

    See Also
    --------
    ChiSquare : The distribution.
    GammaDensity : The general case.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.ChiSquareDensity(prior=None).fit([[1.0], [2.0], [6.0]]).dof_.round(4)
    array([3.2213])
    """

    _distribution = ChiSquare

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        X = DensityEstimator.validate_rows(self, X, reset)
        if reset:
            self._refuse_outside(X, "unsigned")
        X = with_missing(self, X, X == 0, "0", reset)
        if reset:
            self._warn_of_unseen(X)
        return X

    @property
    def dof_(self) -> Array:
        """The estimated degrees of freedom (d,)."""
        return self.learned_model_.dof


class BetaDensity(ColumnDensity):
    """Independent beta columns, two shape parameters each, on an interval.

    Parameters
    ----------
    low, high : float, default 0.0 and 1.0
        The ends of the interval: 0 and 1, or 0 and 100 for percentages.
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    outside : {"missing", "error"}, default "missing"
        "missing": values outside the interval (and the ends themselves, where the density may be infinite) count as
        missing, in fitting and in scoring, with a warning of their number; "error": they are refused in `fit`, and have
        the distribution's own density afterwards.

    Attributes
    ----------
    model_ : Beta
        The fitted density of (x − low) / (high − low).

    See Also
    --------
    Beta : The distribution.
    DirichletDensity : Several proportions that sum to 1.

    Examples
    --------
    >>> import likely as lk
    >>> lk.BetaDensity(prior=None).fit([[0.2], [0.5], [0.6]]).a_.round(3)
    array([3.354])
    """

    _distribution = Beta
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "low": [Interval(Real, None, None, closed="neither")], "high": [Interval(Real, None, None, closed="neither")],
        "prior": PRIOR, "outside": [StrOptions(set(get_args(Outside)))], **EM,
    }  # fmt: skip

    def __init__(
        self, *, low: float = 0.0, high: float = 1.0, prior: PriorLike = "weak", outside: Outside = "missing",
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

    def score_samples(self, X: Rows) -> Array:
        """Log-density log p(x) of each row (n,), in the units of x."""
        found = super().score_samples(X)
        if (self.low, self.high) == (0, 1):
            return found
        observed = (~np.isnan(self.validate_rows(X, reset=False))).sum(axis=1)
        return (found - observed * np.log(self.high - self.low)).astype(found.dtype)

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return super().decode_rows(self.low + (self.high - self.low) * rows, like)

    @property
    def a_(self) -> Array:
        """The estimated a (d,)."""
        return self.learned_model_.a

    @property
    def b_(self) -> Array:
        """The estimated b (d,)."""
        return self.learned_model_.b


class VonMisesDensity(ColumnDensity):
    """Independent von Mises angles in radians, a center and a concentration per column.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior` (`VonMisesPrior`
        fixes the concentration).

    Attributes
    ----------
    model_ : VonMises
        The fitted density.

    See Also
    --------
    VonMises : The distribution.

    References
    ----------
    Bishop (2006), chapter 2.

    Examples
    --------
    >>> import likely as lk
    >>> lk.distributions.VonMisesDensity(prior=None).fit([[3.0], [-3.1], [3.2], [2.9]]).center_.round(4)
    array([3.0708])
    """

    _distribution = VonMises

    @property
    def center_(self) -> Array:
        """The estimated directions (d,)."""
        return self.learned_model_.center

    @property
    def concentration_(self) -> Array:
        """The estimated concentrations (d,)."""
        return self.learned_model_.concentration


class DirichletDensity(DensityEstimator):
    """Dirichlet distribution of compositional data, rows of proportions that sum to 1.

    Rows that do not sum to 1 are divided by their sums, with a warning: in compositional data only ratios count.

    Parameters
    ----------
    prior : {"weak"}, Prior or None, default "weak"
        "weak" (pooled pseudo-observations of weight 0.1), None for maximum likelihood, or a `Prior`.
    floor : float, default 1e-6
        The smallest proportion: smaller ones (0 has no logarithm) are replaced by it, with a warning.

    Attributes
    ----------
    model_ : Dirichlet
        The fitted density.

    See Also
    --------
    Dirichlet : The distribution.
    BetaDensity : Single proportions.

    Examples
    --------
    >>> import likely as lk
    >>> lk.DirichletDensity(prior=None).fit([[0.2, 0.8], [0.5, 0.5], [0.6, 0.4]]).alpha_.round(3)
    array([3.354, 4.468])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": PRIOR, "floor": [Interval(Real, 0, 0.1, closed="neither")], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", floor: float = 1e-6, max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.prior = prior
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Dirichlet,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Dirichlet:
        return Dirichlet.blank(X[:4096], members)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = super().validate_rows(X, reset)
        z = np.asarray(X, dtype=np.float64)
        refuse_infinite(z, "DirichletDensity")
        if np.isnan(z).any():
            i, j = (int(k) for k in np.argwhere(np.isnan(z))[0])
            remedy = "fill it in, or leave the row out"
            raise DataError(
                f"DirichletDensity: Input contains NaN: rows must be complete; row {i}, column {j}: {remedy}"
            )
        try:
            refuse_outside(z, "unsigned", "DirichletDensity")
        except DataError as error:  # the words that scikit-learn's checks look for
            raise DataError(f"{error} (Negative values in data)") from error
        return self._closed(z, reset).astype(X.dtype)

    def _closed(self, z: Any, reset: bool) -> Any:
        """Rows of proportions above the floor that sum to 1; a row of zeros becomes uniform."""
        largest = z.max(axis=1, keepdims=True, initial=0.0)
        z = np.where(largest > 0, z / np.where(largest > 0, largest, 1.0), 1.0)
        total = z.sum(axis=1, keepdims=True)
        not_normalized = np.abs(total * largest - 1.0)[:, 0] > 1e-6
        proportions = z / total
        low = proportions < self.floor
        if reset and not_normalized.any():
            warn(f"DirichletDensity: {not_normalized.sum()} rows do not sum to 1: they are divided by their sums")
        if reset and low.any():
            warn(f"DirichletDensity: {low.sum()} proportions below {self.floor:g} are set to it")
        proportions = np.maximum(proportions, self.floor) if low.any() else proportions
        return (
            proportions / proportions.sum(axis=1, keepdims=True) if low.any() or not_normalized.any() else z * largest
        )

    @property
    def alpha_(self) -> Array:
        """The estimated α (d,)."""
        return self.learned_model_.alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = False
        return tags
