"""NaiveBayes: columns independent within a class, one distribution per column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy.sparse import issparse

from likely.classify.bayes import BayesClassifier
from likely.classify.calibration.calibration_maps import MethodChoice
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import AnyPrior
from likely.decision.cost import CostLike
from likely.density.estimators.histogram_density import HistogramDensity
from likely.distributions.estimators import continuous_densities, count_densities
from likely.distributions.estimators.binary_densities import BernoulliDensity
from likely.distributions.estimators.categorical_densities import CategoricalDensity
from likely.distributions.estimators.continuous_densities import ColumnDensity
from likely.distributions.estimators.count_densities import PoissonDensity
from likely.distributions.estimators.product_density import ProductDensity
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.student_t.estimator import StudentTDensity
from likely.estimation.decision_mixin import ClassPriorLike
from likely.estimation.density_estimator import DensityEstimator, a_density
from likely.estimation.parameter_constraints import StrOptions
from likely.estimation.scikit_learn import clone, get_tags


def _column_densities() -> Iterator[tuple[str, type[ColumnDensity]]]:
    """Estimators of independent columns with the names of their distributions, such as "negative-binomial"."""
    for module in (continuous_densities, count_densities):
        for name, found in vars(module).items():
            if isinstance(found, type) and issubclass(found, ColumnDensity) and hasattr(found, "_distribution"):
                yield "-".join(re.findall("[A-Z][a-z]+", name.removesuffix("Density"))).lower(), found


ColumnDistributionName = Literal[
    "auto", "gaussian", "student-t", "laplace", "cauchy", "uniform", "triangular", "histogram", "exponential", "gamma",
    "chi-square", "beta", "von-mises", "poisson", "negative-binomial", "binomial", "beta-binomial", "bernoulli",
    "categorical",
]  # fmt: skip
DISTRIBUTIONS: dict[str, Callable[[], Any]] = {
    "gaussian": lambda: GaussianDensity("diagonal"),
    "poisson": PoissonDensity,
    "categorical": CategoricalDensity,
    "bernoulli": lambda: BernoulliDensity(threshold=None),
    "histogram": HistogramDensity,
    "student-t": lambda: StudentTDensity("independent"),
    **dict(_column_densities()),
}  # densities of any number of independent columns


class NaiveBayes(BayesClassifier):
    """Naive Bayes classifier: p(x | c) = Π_j p_j(x_j | c), one distribution of any kind per column   (Ney 2.6).

    Parameters
    ----------
    distributions : str, density estimator or dict
        "auto": Gaussian for numbers, categorical for strings and booleans; for every column a density, or one of
        "gaussian", "student-t", "laplace", "cauchy", "uniform", "triangular", "histogram" (numbers), "exponential",
        "gamma", "chi-square" (positive ones), "beta" (shares), "von-mises" (angles), "poisson", "negative-binomial",
        "binomial", "beta-binomial" (counts), "bernoulli" (0 and 1), "categorical"; or a dict {column: any of these}
        for some (the others as in "auto"), columns by name or number.
    class_prior : "uniform", array-like (C,), dict, float or Dirichlet, optional
        None: relative frequencies; "uniform", numbers in the order of `classes_`, or a dict by label: fixed; a number α
        or a `Dirichlet`: the posterior mean of the frequencies with α pseudo-counts per class.
    calibration : {"temperature", "logistic", "isotonic", "auto"}, optional
        The calibration of posteriors by held-out rows, as in `BayesClassifier`; None: those of Bayes' theorem.

    See Also
    --------
    BayesClassifier : One joint density per class.

    Examples
    --------
    >>> import likely as lk
    >>> X = {"size": [1.0, 1.2, 3.0, 3.1], "visits": [0, 1, 7, 9], "color": ["red", "red", "blue", None]}
    >>> nb = lk.NaiveBayes({"visits": "poisson"}).fit(X, ["a", "a", "b", "b"])
    >>> nb.predict({"size": [1.1], "visits": [1], "color": ["green"]})  # a color never seen counts as unobserved
    array(['a'], dtype=object)
    """

    _default_parts: ClassVar[dict[str, Any]] = {}
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "distributions": [StrOptions(set(get_args(ColumnDistributionName))), dict, a_density()],
        **{name: kinds for name, kinds in BayesClassifier._parameter_rules.items() if name != "density"},
    }

    def __init__(
        self, distributions: ColumnDistributionName | Mapping[Any, Any] | DensityEstimator = "auto",
        class_prior: ClassPriorLike | AnyPrior = None, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None, calibration: MethodChoice | None = None,
    ) -> None:  # fmt: skip
        self.distributions = distributions
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty
        self.calibration = calibration

    def _fresh_density(self, X: Any) -> Any:
        """One distribution for all columns if possible, which is faster than one each; else a product."""
        if _takes_columns_apart(self.distributions) and not isinstance(X, dict | Columns):
            return clone(self.distributions)
        chosen = self.distributions if isinstance(self.distributions, dict) else {}
        kinds = _kinds(X)
        default = "auto" if isinstance(self.distributions, dict) else self.distributions
        unknown = [c for c in chosen if c not in kinds]
        if unknown:
            expected = f"distributions must name columns of X: {list(kinds)[:20]}"
            raise DataError(sentence("NaiveBayes", expected, repr(unknown[0])))
        distributions = {name: chosen.get(name, default) for name in kinds}
        for name, distribution in chosen.items():
            refuse_unknown_distribution(distribution, f"the distribution of column {name!r}")
        plain = {
            _plain(distribution, kinds[name])
            for name, distribution in distributions.items()
            if isinstance(distribution, str)
        }
        alike = len(plain) <= 1 and all(isinstance(distribution, str) for distribution in distributions.values())
        if alike and not isinstance(X, dict | Columns):  # named parts of any number of columns need a product
            density = DISTRIBUTIONS[plain.pop() if plain else "gaussian"]()
            density.strict_support = bool(chosen)
            return density
        return ProductDensity(
            [
                (str(name), _distribution(distribution, kinds[name]), [name])
                for name, distribution in distributions.items()
            ]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = (
            get_tags(_distribution(self.distributions, "number")).input_tags
            if not isinstance(self.distributions, dict)
            else None
        )
        if inner is not None:
            tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
            tags.input_tags.sparse = inner.sparse
            tags.classifier_tags.poor_score = inner.positive_only or inner.categorical
        return tags


def _takes_columns_apart(distribution: Any) -> bool:
    """True for a density with independent columns."""
    if isinstance(distribution, GaussianDensity):
        return distribution.covariance == "diagonal"
    if isinstance(distribution, StudentTDensity):
        return distribution.covariance == "independent"
    return isinstance(distribution, PoissonDensity | CategoricalDensity | ColumnDensity)


def _plain(distribution: str, kind: str) -> str:
    """The name of a distribution, with "auto" resolved by the type of the column."""
    if distribution == "auto":
        return "gaussian" if kind == "number" else "categorical"
    return distribution


def _distribution(distribution: Any, kind: str) -> Any:
    refuse_unknown_distribution(distribution, "a distribution")
    return DISTRIBUTIONS[_plain(distribution, kind)]() if isinstance(distribution, str) else clone(distribution)


def refuse_unknown_distribution(distribution: Any, whose: str) -> None:
    """Raise an error unless a distribution is a density estimator or a known name."""
    if isinstance(distribution, str) and distribution != "auto" and distribution not in DISTRIBUTIONS:
        near = get_close_matches(distribution, DISTRIBUTIONS, n=1, cutoff=0.5)
        expected = f"{whose} must be a density or one of auto, {', '.join(DISTRIBUTIONS)}"
        raise DomainError(
            sentence("NaiveBayes", expected, repr(distribution), f'did you mean "{near[0]}"?' if near else "")
        )
    if not isinstance(distribution, str) and not a_density().is_satisfied_by(distribution):
        remedy = 'pass a name such as "gaussian", or an estimator such as GaussianDensity()'
        raise DomainError(sentence("NaiveBayes", f"{whose} must be a density", repr(distribution), remedy))


def _kinds(X: Any) -> dict[Any, str]:
    """The type of each column, numbers or categories, by name or number."""
    if issparse(X):  # sparse counts, validated by the density; some sparse formats are dicts, too
        return dict.fromkeys(range(X.shape[1]), "number")
    if isinstance(X, dict | Columns):
        return {name: _kind(part) for name, part in Columns.of(X).parts.items()}
    if hasattr(X, "columns"):
        return {name: _kind(X[name].to_numpy()) for name in X.columns}
    a = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
    width = a.shape[1] if getattr(a, "ndim", 2) == 2 else 1
    if a.dtype.kind in "iufc" or getattr(a, "ndim", 2) != 2 or not hasattr(a, "__getitem__"):
        return dict.fromkeys(range(width), "number")
    return {j: _kind(a[:, j]) for j in range(width)}


def _kind(column: Any) -> str:
    a = np.asarray(column)
    if a.dtype.kind in "iufc":
        return "number"
    if a.dtype.kind == "O":
        return "category" if any(isinstance(cell, str | bool | np.bool_) for cell in a.ravel()) else "number"
    return "category"
