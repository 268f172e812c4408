"""Estimators of binary columns: independent ones, expansions and log-linear models."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows
from likely.core.blocks import Block
from likely.core.errors import DataError, sentence
from likely.core.protocols import PriorLike
from likely.core.stats import Stats
from likely.distributions.binary.bahadur import Bahadur
from likely.distributions.binary.bernoulli import Bernoulli, is_binary
from likely.distributions.binary.log_linear import LogLinear
from likely.distributions.binary.sign_products import pseudo_spin_sums
from likely.distributions.binary.walsh import Walsh
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.continuous_densities import OTHER_DISTRIBUTIONS
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, predictive
from likely.estimation.parameter_constraints import Interval
from likely.estimation.sparse_validation import checked_sparse, odd_columns, warn_of_columns


class BernoulliDensity(DensityEstimator):
    """Independent Bernoulli columns, one probability each.

    Rows are dense or sparse (SciPy's matrices stay sparse). A classifier with this density is Bernoulli naive
    Bayes: `BayesClassifier(BernoulliDensity(prior=1.0))` has the posteriors of scikit-learn's `BernoulliNB(alpha=1.0)`.

    Parameters
    ----------
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (`Beta.weak`: one pseudo-count at the column's own mean), None for maximum likelihood, a number α (α
        pseudo-counts of 1 and of 0 in each column), or a `Prior`.
    threshold : float or None, default 0.0
        Numbers above it are 1, the others 0, with a warning if there were any but 0 and 1; None: anything but 0 and 1
        is an error in `fit`, and has probability 0 afterwards.
    predictive : bool, default False
        True integrates out the probabilities: the mean of their posterior, not its mode.

    Attributes
    ----------
    model_ : Bernoulli
        The fitted density.

    See Also
    --------
    Bernoulli : The distribution.
    WalshDensity : Dependent columns.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 2.6.1.

    Examples
    --------
    >>> from likely.distributions.estimators.binary_densities import BernoulliDensity
    >>> BernoulliDensity(prior=1.0).fit([[1, 0], [1, 1], [1, 0]]).probs_
    array([0.8, 0.4])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")],
        "threshold": [Interval(Real, None, None, closed="neither"), None], "predictive": ["boolean"], **EM,
    }  # fmt: skip

    def __init__(
        self, *, prior: PriorLike = "weak", threshold: float | None = 0.0, predictive: bool = False,
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.prior = prior
        self.threshold = threshold
        self.predictive = predictive
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Bernoulli,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Bernoulli:
        return Bernoulli.blank(X[:4096], members)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        return predictive(model, stats, prior, "BernoulliDensity") if self.predictive else model

    def prior_rule(self) -> Any:
        from likely.distributions.univariate.beta import Beta

        if isinstance(self.prior, Real):
            return lambda model, stats: Beta.symmetric(model.dim, float(self.prior))
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        if reset and self.threshold is None and not scipy.sparse.issparse(X):
            invalid = ~is_binary(X) & np.isfinite(X)
            if invalid.any():
                remedy = f"give a threshold above which a number is 1, or {OTHER_DISTRIBUTIONS}"
                raise self._unsuited(X, invalid, "values must be 0 or 1", remedy)
        return X if self.threshold is None else self._binary(X, float(self.threshold), reset)

    def _binary(self, X: Any, threshold: float, reset: bool) -> Any:
        """Rows of 0 and 1; binary rows are not copied."""
        invalid = odd_columns(X, lambda part: ~is_binary(part) & np.isfinite(part))
        if invalid.any():
            what = f"is not all 0 and 1: numbers above {threshold:g} count as 1, the others as 0"
            warn_of_columns(invalid, self.column_names(), "BernoulliDensity", what)
        return X if not invalid.any() and 0 <= threshold < 1 else self._cut(X, threshold)

    def _cut(self, X: Any, threshold: float) -> Any:
        """1 above the threshold, 0 below; missing and infinite values are kept."""
        if not scipy.sparse.issparse(X):
            return np.where(np.isfinite(X), X > threshold, X).astype(X.dtype)
        if threshold < 0:
            expected, remedy = "zeros of sparse rows must count as 0", "pass dense rows, or a nonnegative threshold"
            raise DataError(sentence("BernoulliDensity", expected, f"threshold {threshold:g}", remedy))
        X = X.copy()
        X.data = np.where(np.isfinite(X.data), X.data > threshold, X.data).astype(X.dtype)
        return X

    @property
    def probs_(self) -> Array:
        """The estimated probabilities of a 1 (d,)."""
        return self.learned_model_.probs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


BINARY_SETTINGS: dict[str, Any] = {
    "order": [Interval(Integral, 1, None, closed="left")],
    "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")],
    "threshold": [Interval(Real, None, None, closed="neither"), None], **EM,
}  # fmt: skip


class BinaryDensity(DensityEstimator):
    """Base of estimators for binary columns: rows of 0 and 1 (or −1 and 1), dense or sparse; pseudo-row priors."""

    threshold: float | None
    prior: Any
    _parameter_rules: ClassVar[dict[str, Any]] = BINARY_SETTINGS

    _for_text = "write 1 for one word and 0 for the other, or use ChowLiuTreeDensity(words=…), which takes strings"

    def prior_rule(self) -> Any:
        from likely.distributions.priors.pseudo_data import PseudoData

        if isinstance(self.prior, Real):
            strength = float(self.prior)
            return lambda model, stats: PseudoData.trusted(distribution=model, stats=pseudo_spin_sums(stats, strength))
        return self.prior

    def validate_rows(self, X: Rows, reset: bool = False) -> Any:
        X = checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)
        return X if self.threshold is None else self._binary(X, float(self.threshold), reset)

    def _binary(self, X: Any, threshold: float, reset: bool) -> Any:
        """Rows of 0 and 1; binary rows are not copied, and −1 with 1 gives no warning."""
        invalid = odd_columns(X, lambda part: ~is_binary(part) & np.isfinite(part))
        if invalid.any():
            what = f"is not all 0 and 1: numbers above {threshold:g} count as 1, the others as 0"
            warn_of_columns(invalid & ~_plus_minus(X), self.column_names(), type(self).__name__, what)
        return X if not invalid.any() and 0 <= threshold < 1 else self._cut(X, threshold)

    def _cut(self, X: Any, threshold: float) -> Any:
        """1 above the threshold, 0 below; missing and infinite values are kept."""
        if not scipy.sparse.issparse(X):
            return np.where(np.isfinite(X), X > threshold, X).astype(X.dtype)
        if threshold < 0:
            expected, remedy = "zeros of sparse rows must count as 0", "pass dense rows, or a nonnegative threshold"
            raise DataError(sentence(type(self).__name__, expected, f"threshold {threshold:g}", remedy))
        X = X.copy()
        X.data = np.where(np.isfinite(X.data), X.data > threshold, X.data).astype(X.dtype)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _plus_minus(X: Any) -> Any:
    """Mask of columns (d,) with nothing but −1 and 1 (and missing values)."""
    if scipy.sparse.issparse(X):
        return np.zeros(X.shape[1], dtype=bool)
    return ((np.abs(X) == 1) | np.isnan(X)).all(axis=0)


class WalshDensity(BinaryDensity):
    """Expansion of the density of dependent binary columns, or of its logarithm.

    Both sum over all cells, of at most 20 columns; with more, use `ChowLiuTreeDensity`. Statistics are additive:
    `partial_fit` equals the batch. Sparse rows are made dense block by block.

    Parameters
    ----------
    order : int, default 2
        Highest order of interaction: 1, 2 (pairs), …; more than there are columns means all of them.
    log : bool, default False
        False expands p(x): means, no iteration, but it can be negative: the positive part counts, and log p is −inf
        elsewhere, with a warning. True expands log p(x), which stays positive: exact maximum likelihood; missing values
        are integrated out, by EM.
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" (one pseudo-row of independent columns about the pooled means), None for maximum likelihood, a number of
        such rows, or a `Prior`.
    threshold : float or None, default 0.0
        Numbers above it are 1, the others 0, with a warning if there were any but 0 and 1 (or −1 and 1); None: anything
        but 0 and 1 is an error in `fit`, and has probability 0 afterwards.

    Attributes
    ----------
    model_ : Walsh or LogLinear
        The fitted density; a log-linear model with log=True.

    See Also
    --------
    Walsh : Expansion of p(x).
    LogLinear : Expansion of log p(x).
    ChowLiuTreeDensity : More than 20 columns.

    References
    ----------
    Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> from likely.distributions.estimators.binary_densities import WalshDensity
    >>> w = WalshDensity(2, log=True, prior=None).fit([[0, 0], [1, 1], [1, 1], [0, 1], [1, 0]])
    >>> w.model_.probabilities.round(6)
    array([0.2, 0.2, 0.2, 0.4])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {**BINARY_SETTINGS, "log": ["boolean"]}

    def __init__(
        self, order: int = 2, log: bool = False, *, prior: PriorLike = "weak", threshold: float | None = 0.0,
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.order = order
        self.log = log
        self.prior = prior
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Walsh, LogLinear)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Walsh | LogLinear:
        distribution: Any = LogLinear if self.log else Walsh
        blank: Walsh | LogLinear = distribution.blank(X[:1], members, min(int(self.order), X.shape[1]))
        return blank

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        return isinstance(model, LogLinear if self.log else Walsh) and super().accepts_model(model, width, members)


class BahadurDensity(BinaryDensity):
    """Bahadur–Lazarsfeld expansion of the density of dependent binary columns.

    Order 1 is `BernoulliDensity`. Truncated below the number of columns the expansion can be negative, and then log p
    is −inf, with a warning; `WalshDensity(log=True)` stays positive. Prior, threshold, weights, missing values and
    `partial_fit` are as there.

    Parameters
    ----------
    order : int, default 2
        Highest order of correlations; more than there are columns means all of them.
    prior : {"weak"}, float, Prior or None, default "weak"
        Pseudo-rows of independent columns about the pooled means: "weak" is one; None is maximum likelihood.
    threshold : float or None, default 0.0
        Numbers above it are 1, the others 0, with a warning if there were any but 0 and 1; None: anything but 0 and 1
        is an error in `fit`, and has probability 0 afterwards.

    Attributes
    ----------
    model_ : Bahadur
        The fitted density.

    See Also
    --------
    Bahadur : The distribution.
    WalshDensity : An expansion that stays positive, with log=True.

    References
    ----------
    Bahadur (1961); Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> from likely.distributions.estimators.binary_densities import BahadurDensity
    >>> b = BahadurDensity(prior=None).fit([[0, 0], [1, 1], [1, 1], [0, 0]])
    >>> b.model_.probs, b.model_.correlations
    (array([0.5, 0.5]), array([1., 0., 0., 1.]))
    """

    def __init__(
        self, order: int = 2, *, prior: PriorLike = "weak", threshold: float | None = 0.0, max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.order = order
        self.prior = prior
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Bahadur,)

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> Bahadur:
        return Bahadur.blank(X[:1], members, min(int(self.order), X.shape[1]))
