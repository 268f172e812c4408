"""FisherDiscriminant: linear discriminant analysis as dimensionality reduction and classifier."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from likely.core.arrays import Array, Index, Rows, Targets, refuse_infinite, rows
from likely.core.blocks import Block, Blocks
from likely.core.description import Description, DescriptionTable, counted, loadings_words
from likely.core.engine import Threads
from likely.core.errors import DataError, sentence
from likely.decision.cost import CostLike
from likely.decomposition.discriminant_subspace import DiscriminantSubspace, SeparabilityCriterion
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_values_em import any_missing, em_moments, gaussian_of
from likely.distributions.gaussian.moments import Moments
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, is_fitted, whole_state
from likely.estimation.class_labels import checked_labels, encoded, labels_among
from likely.estimation.decision_mixin import RULES, UNIFORM, ClassPriorLike, Deciding, class_probabilities
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.input_validation import row_weights
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.imputation.impute import impute
from likely.mixture.mixture import Mixture


class FisherDiscriminant(Deciding, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Fisher's linear discriminant analysis: `axes_` is a `DiscriminantSubspace` (Herbst 4.1.4–4.1.6, Ney 8.2.3–8.2.4).

    S_w and S_b are diagonalized simultaneously; coordinates (`transform`) have within-class scatter I. Both criteria
    are maximized by the same axes, those of the largest λ. Decisions (`predict`, `decide`) use Gaussians with a shared
    covariance in these coordinates: with all K − 1 axes it is linear discriminant analysis. Where S_w is singular the
    directions along which classes do not vary at all, but differ, come first (λ = ∞); directions along which nothing
    varies are left out. Units of the columns change nothing, nor do rotations and other invertible linear maps while
    correlations are not too close to 1: directions with less than 10⁻⁶ of the largest width are dropped, with a
    warning.

    `stats_` are the moments of each class: they add, so `partial_fit` equals the batch. Rows may have missing entries
    (NaN): the moments are then those of Gaussians with a shared covariance, fitted by EM (in a stream, with the
    model of the chunks before). `transform` gives the conditional expectation of the coordinates of such a row, and
    decisions integrate missing entries out.

    Parameters
    ----------
    n_components : int, optional
        Number of axes; None: the rank of S_b, at most K − 1.
    criterion : {"trace", "determinant"}
        "trace", tr(s_w⁻¹ s_b), or "determinant", det(s_w⁻¹ s_b). With the determinant more than K − 1 axes are
        possible: the total scatter then replaces that between classes (Ney 8.2.4), and axes with λ = 0 follow, those
        of the largest variance first.
    shrinkage : float, default 0
        Shrinkage of within-class correlations to 0, from 0 to 1; recommended with fewer rows than columns.
    class_prior : "uniform", array-like (C,) or dict, optional
        Class probabilities of decisions; None: relative frequencies.

    Attributes
    ----------
    axes_ : DiscriminantSubspace
        Mean, axes and λ of the coordinates.

    Examples
    --------
    >>> X, y = [[0, 0], [1, 2], [2, 0], [4, 1], [5, 3], [6, 1]], ["a", "a", "a", "b", "b", "b"]
    >>> f = FisherDiscriminant().fit(X, y)
    >>> f.transform(X).shape, f.ratios_.round(3), f.predict([[2.0, 0.0]])
    ((6, 1), array([6.281]), array(['a'], dtype=object))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "criterion": [StrOptions(set(get_args(SeparabilityCriterion)))],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "class_prior": [UNIFORM, "array-like", dict, None],
        **RULES,
    }
    saved_attributes: tuple[str, ...] = (
        "classes_", "axes_", "stats_", "class_prior_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, n_components: int | None = None, *, criterion: SeparabilityCriterion = "trace", shrinkage: float = 0.0,
        class_prior: ClassPriorLike = None, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.criterion = criterion
        self.shrinkage = shrinkage
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below

    # ----------------------------------------------------------------- learning

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X (n, d) with labels y (n,)."""
        self._validate_params()
        rows, targets, weight = self._checked(X, y, sample_weight, reset=True)
        self.classes_, labels = encoded(targets)
        return self._adopt(self._gathered(rows, labels, weight, None))

    def partial_fit(
        self, X: Rows, y: Targets, classes: Sequence[object] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Update with more rows: moments are added. The first call may name all `classes`."""
        self._validate_params()
        first = not hasattr(self, "axes_")
        rows, targets, weight = self._checked(X, y, sample_weight, reset=first)
        if first:
            named = targets if classes is None else checked_labels(classes, len(classes), type(self).__name__)
            self.classes_ = encoded(named)[0]
        labels = labels_among(targets, self.classes_, type(self).__name__)
        known = None if first else self.stats_
        new = self._gathered(rows, labels, weight, known)
        return self._adopt(new if known is None else known + new, patient=True)

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, Any]:
        if y is None:
            checked_labels(y, 0, type(self).__name__)
        X = self.validate_rows(X, reset=reset)
        y = checked_labels(y, len(X), type(self).__name__)
        if sample_weight is None:
            return X, y, None
        weight = row_weights(sample_weight, X)
        counts = weight > 0
        if not counts.any():
            raise DataError(
                sentence(type(self).__name__, "some row must have a weight above 0", "sample_weight all zero")
            )
        return (X, y, weight) if counts.all() else (X[counts], y[counts], weight[counts])

    def _gathered(self, X: Any, labels: Index, weight: Any, known: Moments | None) -> Moments:
        """The moments of each class."""
        K, d = len(self.classes_), X.shape[1]
        if K < 2:
            expected, remedy = "at least two classes are needed", "check the labels"
            raise DataError(sentence(type(self).__name__, expected, f"{K} class", remedy))
        whose = type(self).__name__
        gaps = any_missing(X)
        if gaps and known is None:
            refuse_infinite(X, whose)
            return em_moments(X, weight, whose, labels, K)
        with np.errstate(all="ignore"):
            distribution = gaussian_of(self.stats_) if gaps else Gaussian.blank(X[:256], members=K)

        def collect(block: Block) -> Any:
            x = rows(block.x, d, whose)
            if not np.isfinite(x.sum()):
                refuse_infinite(x, whose)
            return distribution.collect(x, block.weight, labels=block.labels)

        return Threads().total(collect, Blocks.of(X, weight, labels=labels))

    def _adopt(self, stats: Moments, patient: bool = False) -> Self:
        self.stats_ = stats
        self.axes_ = DiscriminantSubspace.of_statistics(
            stats, self.n_components, beyond=self.criterion == "determinant", shrinkage=float(self.shrinkage),
            patient=patient,
        )  # fmt: skip
        shares = stats.weight / stats.weight.sum()
        given = self.class_prior
        self.class_prior_ = shares if given is None else class_probabilities(given, self.classes_, type(self).__name__)
        self._cost_of(None)
        return self

    # ----------------------------------------------------------------------- prediction

    def transform(self, X: Rows) -> Any:
        """Coordinates along the axes (n, q); of a row with missing entries, their conditional expectation."""
        check_is_fitted(self)
        rows = self.validate_rows(X, reset=False)
        return self.axes_.project(impute(self._mixture, rows) if any_missing(rows) else rows)

    def log_posterior(self, X: Rows) -> Array:
        """Logarithms of the posterior probabilities, log p(c | x), of each row."""
        check_is_fitted(self)
        rows = self.validate_rows(X, reset=False)
        if not any_missing(rows):
            return self._of_complete(rows)
        out, gaps = np.empty((len(rows), len(self.classes_))), np.isnan(rows).any(axis=1)
        out[gaps], out[~gaps] = self._mixture.log_posterior(rows[gaps]), self._of_complete(rows[~gaps])
        return out

    def _of_complete(self, X: Any) -> Array:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            joint = self.axes_.log_joint(X, np.log(self.class_prior_))
        wrong = np.isnan(joint.max(axis=1)) | (joint.max(axis=1) == np.inf)
        if wrong.any():
            expected, remedy = "coordinates along the axes must stay finite", "rescale the columns"
            got = f"an overflow in row {int(wrong.argmax())}"
            raise DataError(sentence(type(self).__name__, expected, got, remedy))
        joint -= joint.max(axis=1, keepdims=True)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    @property
    def _mixture(self) -> Mixture:
        """Gaussians with a shared covariance W that give complete rows the same posteriors as in the coordinates.

        Their means differ along the axes only: m + WBᵀ(BWBᵀ)⁻¹B (m_k − m).
        """
        distribution, B = gaussian_of(self.stats_), self.axes_.axes
        W = (1.0 - self.shrinkage) * distribution.covariance + self.shrinkage * np.diag(distribution.variance[0])
        onto = np.linalg.lstsq(B @ W @ B.T, B, rcond=None)[0] if len(B) else B
        away = np.where(self.stats_.weight[:, None] > 0, self.stats_.mean - self.axes_.mean, 0.0)
        means = self.axes_.mean + away @ onto.T @ (B @ W)
        return Mixture.trusted(
            weights=np.array(self.class_prior_), components=Gaussian.trusted(mean=means, covariance=W, kind="full")
        )

    def with_class_prior(self, class_prior: ClassPriorLike) -> Self:
        """A copy with other class probabilities; the axes are the same."""
        check_is_fitted(self)
        other = copy(self)
        other.class_prior = class_prior
        other.class_prior_ = class_probabilities(class_prior, self.classes_, type(self).__name__)
        return other

    @property
    def ratios_(self) -> Array:
        """Ratio λ of each axis (q,): variance between classes over variance within."""
        return self.axes_.ratios

    @property
    def criterion_(self) -> float:
        """The value of the requested criterion."""
        return self.axes_.criterion(self.criterion)

    @property
    def scalings_(self) -> Array:
        """The axes as columns (d, q)."""
        return self.axes_.axes.T

    @property
    def means_(self) -> Array:
        """Mean of each class (K, d)."""
        return self.stats_.mean

    @property
    def _n_features_out(self) -> int:
        return len(self.axes_.axes)

    validate_rows: Any = DensityEstimator.validate_rows  # input validation as for densities

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def describe(self) -> Description:
        """Classes, discriminant directions, and the decision rule; of an unfitted classifier, its settings."""
        if not is_fitted(self):
            return super().describe()
        axes, names = self.axes_.axes, self.column_names()
        within = self.stats_.scatter.sum(axis=0) / self.stats_.total_weight
        spread = np.sqrt(np.maximum(np.diagonal(within), 0.0))
        shrunk = f", shrinkage {self.shrinkage:g}" if self.shrinkage else ""
        text = f"It compares with class means along {counted(len(axes), 'discriminant direction')}"
        rows = [
            (j, ratio, loadings_words(axis * spread, names))
            for j, (ratio, axis) in enumerate(zip(self.ratios_.tolist(), axes, strict=False), 1)
        ]
        head, note = ("axis", "between / within", "loadings"), "loadings are in within-class standard deviations"
        table = DescriptionTable("axes", head, rows, {"between / within": ".3g"}, "axes", note)
        return super().describe().plus(text=[f"{text} (within-class covariance: identity){shrunk}"], tables=[table])

    def check_state(self) -> None:
        """After loading a file: axes, moments and classes must be consistent."""
        axes, stats = getattr(self, "axes_", None), getattr(self, "stats_", None)
        if not whole_state(self):
            return
        K, width = len(getattr(self, "classes_", ())), getattr(self, "n_features_in_", None)
        sound = isinstance(axes, DiscriminantSubspace) and isinstance(stats, Moments) and type(width) is int
        sound = sound and _sized(axes, stats) == (width, K, (K, width))
        if not sound:
            raise DataError(
                sentence(type(self).__name__, "the fitted attributes must be consistent", type(axes).__name__)
            )
        class_probabilities(self.class_prior_, np.asarray(self.classes_), type(self).__name__)
        self._cost_of(None)


def _sized(axes: Any, stats: Any) -> tuple[Any, ...]:
    """Number of columns and classes of the axes, and the shape of the moments' means."""
    return axes.dim, len(axes.centroids), stats.shift.shape
