"""Conformal prediction: intervals of any regressor with a guaranteed coverage, from residuals of held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _check_y, check_consistent_length

from likely.core.arrays import Array, Rows, Seed, Targets
from likely.core.description import Description, DescriptionTable
from likely.core.errors import DataError, DomainError, sentence
from likely.core.warnings import warn, warnings_once
from likely.estimation.base_estimator import BaseEstimator, RegressorMixin, check_is_fitted, whole_state
from likely.estimation.foreign_classifiers import fitted, weight_argument
from likely.estimation.foreign_tables import as_table, take_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.parallel import in_threads
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.scikit_learn import number_of_rows
from likely.io.registry import class_for
from likely.metrics.confidence_intervals import as_counts
from likely.model_selection.splits import Copies, Split, fold_of, make_splits

ConformalMethod = Literal["split", "cross"]
SHARE, FOLDS = 0.25, 10  # calibration rows of a split; folds of "cross"
CELLS = 4_000_000  # entries of a table of test rows × calibration rows that is made at a time: 32 MB
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of the table in `describe`


class ConformalRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Prediction intervals for any regressor, by split conformal prediction or by CV+.

    The score of a held-out row is its residual s = (y − ŷ(x)) / σ(x), σ = 1 unless the regressor gives a standard
    deviation. With n scores and α = 1 − level, the interval of a new row is

    - **"split"**: ŷ(x) ± q σ(x), where q is the ⌈(n + 1)(1 − α)⌉-th smallest |s|. One model, which never saw the n
      calibration rows. For exchangeable rows y lies in it with probability at least 1 − α, and at most
      1 − α + 1/(n + 1) if no scores are equal (Lei et al. 2018, theorem 2.2).
    - **"cross"**: from the ⌊(n + 1) α⌋-th smallest ŷ₋ₖ₍ᵢ₎(x) − |sᵢ| σ₋ₖ₍ᵢ₎(x) to the ⌈(n + 1)(1 − α)⌉-th smallest
      ŷ₋ₖ₍ᵢ₎(x) + |sᵢ| σ₋ₖ₍ᵢ₎(x), where the model −k(i) was trained without the fold of row i (CV+; with
      `cv="leave-one-out"` jackknife+). Every row trains and calibrates. The guarantee is weaker: 1 − 2α, less a term
      that vanishes with n (Barber, Candès, Ramdas and Tibshirani 2021, theorems 1 and 4). In practice the coverage is
      about 1 − α.

    Where the rank exceeds n, too few rows calibrate for the level: the interval is infinite, and a warning says so.

    Parameters
    ----------
    estimator : regressor
        Any regressor with `fit` and `predict`; it gets X unchanged, and is itself not fitted.
    method : {"split", "cross"}
        See above.
    cv : optional
        Of "split" the share of rows that calibrate (None: 0.25), or "prefit": the estimator is fitted already, and all
        rows of `fit` calibrate. Of "cross" the number of folds (None: 10), "leave-one-out", or a splitter.
    normalized : {"auto", True, False}
        Whether residuals are divided by the standard deviation of `predict(X, return_std=True)`, so that intervals are
        wider where the regressor is less certain; "auto": where it has one.
    symmetric : bool
        False: each tail has its own quantile, at α/2, of the signed scores: for skewed noise. The guarantees hold for
        each tail, so the term of "cross" that vanishes counts twice.
    random_state : int, RandomState or None
        Chooses the rows that calibrate together.

    Attributes
    ----------
    estimators_ : list
        The model of "split", or one per fold.
    fold_ : ndarray of int (n,)
        The model that scored each calibration row, as an index of `estimators_`.
    normalized_ : bool
        Whether residuals are divided by a standard deviation.
    scores_ : ndarray (n,)
        Scores s of the calibration rows.
    weight_ : ndarray (n,)
        Weight of each calibration row.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, chapter 2.
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman 2018, Distribution-free predictive inference for regression.
    Barber, Candès, Ramdas and Tibshirani 2021, Predictive inference with the jackknife+.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (400, 1)); y = X[:, 0] + rng.normal(size=400)
    >>> low, high = ConformalRegressor(LinearRegression()).fit(X[:300], y[:300]).interval(X[300:], 0.9)
    >>> bool(((low <= y[300:]) & (y[300:] <= high)).mean() > 0.8)
    True
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "method": [StrOptions(set(get_args(ConformalMethod)))],
        "cv": ["cv_object", Interval(Real, 0, 1, closed="neither"), StrOptions({"prefit", "leave-one-out"})],
        "normalized": [StrOptions({"auto"}), "boolean"],
        "symmetric": ["boolean"],
        "random_state": ["random_state"],
    }
    saved_attributes: tuple[str, ...] = (
        "estimators_", "scores_", "fold_", "weight_", "normalized_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, estimator: Any, method: ConformalMethod = "split", *, cv: Any = None,
        normalized: Literal["auto"] | bool = "auto", symmetric: bool = True, random_state: Seed = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.normalized = normalized
        self.symmetric = symmetric
        self.random_state = random_state

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the models, and score the rows that they did not see.

        An integer weight of k is k copies of a row, which train or calibrate together: no model is scored on a copy of
        a row of its training (see `lk.evaluate`).
        """
        self._validate_params()
        X, y, weight = self._targets(as_table(X), y, sample_weight)
        self.normalized_ = gives_deviation(self.estimator) if self.normalized == "auto" else bool(self.normalized)
        with warnings_once():
            if isinstance(self.cv, str) and self.cv == "prefit":
                check_is_fitted(self.estimator)
                splits = [Split(np.empty(0, np.intp), np.flatnonzero(weight > 0))]
                self.estimators_ = [self.estimator]
            else:
                X, y, weight, splits = self._split(X, y, weight)
                used = None if (weight == 1).all() else weight
                self._note_weights(used)
                self.estimators_ = in_threads(lambda s: fitted(self.estimator, X, y, used, s.train), splits)
        tested = [
            self._scored(m, take_rows(X, s.test), y[s.test]) for m, s in zip(self.estimators_, splits, strict=True)
        ]
        self.scores_ = np.concatenate(tested)
        self.fold_ = np.repeat(np.arange(len(splits)), [len(scores) for scores in tested])
        self.weight_ = as_counts(weight[np.concatenate([split.test for split in splits])], len(self.scores_))
        self._adopt_columns()
        return self

    def predict(self, X: Rows) -> Array:
        """Predictions (n,): of the model, or the median of those of all folds, each with the weight of its rows."""
        check_is_fitted(self)
        centers, _ = self._predicted(X)
        if len(self.estimators_) == 1:
            return centers[:, 0]
        size = np.bincount(self.fold_, self.weight_, len(self.estimators_))
        order = np.argsort(centers, axis=1)
        reached, half = np.cumsum(size[order], axis=1), 0.5 * size.sum()
        ends = [np.argmax(reached >= half * (1 - 1e-12), axis=1), np.argmax(reached > half * (1 + 1e-12), axis=1)]
        middle = [np.take_along_axis(centers, np.take_along_axis(order, e[:, None], 1), 1)[:, 0] for e in ends]
        return 0.5 * middle[0] + 0.5 * middle[1]

    def interval(self, X: Rows, level: float = 0.95) -> tuple[Array, Array]:
        """Prediction intervals: lower and upper ends (n,), infinite where too few rows calibrate for the level."""
        check_is_fitted(self)
        tail = self._tail(level)
        if (self.weight_.sum() + 1) * (1 - tail) * (1 - 1e-12) > self.weight_.sum():
            need = f"{int(np.ceil((1 - tail) / tail * (1 - 1e-12))):,} calibration rows"
            what = f"intervals of level {level:g} need {need}, got {self.weight_.sum():,.4g}: they are infinite"
            warn(f"ConformalRegressor: {what}; pass more rows, or a lower level")
        centers, spreads = self._predicted(X)
        up, down = (np.abs(self.scores_),) * 2 if self.symmetric else (self.scores_, -self.scores_)
        return -self._upper(-centers, spreads, down, 1 - tail), self._upper(centers, spreads, up, 1 - tail)

    def guaranteed_coverage(self, level: float = 0.95) -> float:
        """The probability with which the interval of that level covers y at least, for exchangeable rows.

        Of "split" the level; of "cross" 1 − 2α − min(2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)) with K folds of n/K
        rows, of jackknife+ (K = n) 1 − 2α.

        Parameters
        ----------
        level : float, default 0.95
            The level 1 − α of the interval.

        Returns
        -------
        float
            A lower bound of the probability.
        """
        check_is_fitted(self)
        self._tail(level)
        n, K = float(self.weight_.sum()), len(self.estimators_)
        if self.method == "split" or K == 1:
            return level
        less = min(2 * (1 - 1 / K) / (n / K + 1), (1 - K / n) / (K + 1))
        return max(1 - 2 * (1 - level) - (1 if self.symmetric else 2) * less, 0.0)

    def describe(self) -> Description:
        """Method, calibration rows, and the quantile of the scores at several levels."""
        found = super().describe()
        if "scores_" not in vars(self):
            return found
        unit = "standard deviations" if self.normalized_ else "the units of y"
        facts = {
            "method": self.method, "models": len(self.estimators_), "calibration rows": float(self.weight_.sum()),
            "normalized by the standard deviation": self.normalized_, "symmetric": self.symmetric,
        }  # fmt: skip
        rows = []
        for level in LEVELS:
            ends = (np.abs(self.scores_),) if self.symmetric else (-self.scores_, self.scores_)
            wide = [conformal_quantile(end, self.weight_, 1 - self._tail(level)) for end in ends]
            rows.append((level, wide[0], wide[-1], self.guaranteed_coverage(level)))
        head = ("level", "below", "above", "guaranteed coverage")
        note = f"below and above: how far the interval reaches from the prediction, in {unit}"
        note = note if len(self.estimators_) == 1 else f"{note}, if all folds predicted the same"
        tables = [DescriptionTable("intervals", head, rows, {"level": "g"}, note=note)]
        inner = getattr(self.estimators_[0], "describe", lambda: Description(str(self.estimators_[0])))()
        title = "the model" if len(self.estimators_) == 1 else "the model of the first fold"
        sections = [inner.plus(title=f"{title}: {inner.title}")]
        return Description(type(self).__name__, facts=facts, tables=tables, sections=sections)

    # ------------------------------------------------------------------- calibration

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        if y is None:
            raise DataError(sentence("ConformalRegressor", "fit requires y to be passed, but the target y is None"))
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            remedy = "use one ConformalRegressor per target"
            raise DataError(sentence("ConformalRegressor", "y must be one target (n,)", y.shape, remedy))
        y = np.asarray(_check_y(y, multi_output=False, y_numeric=True, estimator=self), dtype=np.float64)
        check_consistent_length(X, y)
        return X, y, np.ones(len(y)) if sample_weight is None else row_weights(sample_weight, X)

    def _split(self, X: Any, y: Array, weight: Array) -> tuple[Any, Array, Array, list[Split]]:
        """Rows with integer weights written out, and the splits of them."""
        cv = self.cv if self.cv is not None else SHARE if self.method == "split" else FOLDS
        each = np.arange(len(y))
        seed = int(check_random_state(self.random_state).randint(2**31))
        X, at, w, _, _, _ = Copies(X, each, weight).written_out(cv)
        w, y = np.ones(len(at)) if w is None else w, y[at]
        splits = make_splits(X, np.zeros(len(y), np.intp), cv, weight=w, seed=seed, target=y)
        splits = [s for s in splits if len(s.test)]
        if self.method == "split" and len(splits) > 1:
            remedy = 'pass a share between 0 and 1, or use method="cross"'
            raise DomainError(sentence("ConformalRegressor", 'method="split" takes one split', repr(self.cv), remedy))
        if fold_of(splits, len(y)) is None or not all(len(split.train) for split in splits):
            expected = "each row must calibrate at most once, and each fold leave some rows for training"
            raise DomainError(sentence("ConformalRegressor", expected, repr(self.cv)))
        return X, y, w, splits

    def _scored(self, model: Any, X: Any, y: Array) -> Array:
        center, spread = self._predicted_by(model, X)
        return (y - center) / spread

    def _predicted(self, X: Any) -> tuple[Array, Array]:
        """Predictions and spreads (n, K) of all models."""
        both = [self._predicted_by(model, X) for model in self.estimators_]
        return np.column_stack([center for center, _ in both]), np.column_stack([spread for _, spread in both])

    def _predicted_by(self, model: Any, X: Any) -> tuple[Array, Array]:
        center, spread = model.predict(X, return_std=True) if self.normalized_ else (model.predict(X), None)
        center = np.asarray(center, dtype=np.float64).reshape(number_of_rows(X))
        if spread is None:
            return center, np.ones(len(center))
        spread = np.asarray(spread, dtype=np.float64).reshape(len(center))
        if not (spread >= 0).all():
            row = int(np.flatnonzero(~(spread >= 0))[0])
            got, remedy = f"{spread[row]} at row {row}", "pass normalized=False"
            raise DataError(sentence(type(model).__name__, "standard deviations must be at least 0", got, remedy))
        return center, np.maximum(spread, np.finfo(float).tiny)

    def _upper(self, centers: Array, spreads: Array, scores: Array, level: float) -> Array:
        """The conformal quantile of centers + spreads · score of each row (m,), over all calibration rows."""
        if centers.shape[1] == 1:
            q = conformal_quantile(scores, self.weight_, level)
            return centers[:, 0] + spreads[:, 0] * q
        ends = [
            conformal_quantile(
                centers[rows][:, self.fold_] + spreads[rows][:, self.fold_] * scores, self.weight_, level
            )
            for rows in _blocks(len(centers), max(CELLS // len(scores), 1))
        ]
        return np.concatenate(ends) if ends else np.empty(0)

    def _tail(self, level: float) -> float:
        """The probability of each end that is left out."""
        if not 0 < level < 1:
            raise DomainError(sentence("interval", "level must lie between 0 and 1", level, "0.95 is usual"))
        return (1 - level) if self.symmetric else 0.5 * (1 - level)

    def _note_weights(self, weight: Array | None) -> None:
        if weight is not None and np.ptp(weight[weight > 0]) > 0 and weight_argument(self.estimator) is None:
            expected = f"{type(self.estimator).__name__} takes no weights: they are used for the calibration only"
            remedy = "repeat rows, or choose an estimator that takes sample_weight"
            warn(sentence("ConformalRegressor", expected, remedy=remedy))

    # ------------------------------------------------------------------- scikit-learn and files

    def _adopt_columns(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.target_tags.multi_output = False
        return tags

    def why_not_saved(self) -> tuple[str, str, str] | None:
        """Expected, got and remedy, if the estimator cannot be in a file."""
        for one in (self.estimator, *vars(self).get("estimators_", ())):
            if class_for(one) is None:
                kind = f"{type(one).__module__}.{type(one).__qualname__}"
                return "the estimator of a ConformalRegressor must be a model of likely to be saved", kind, ""
        if not isinstance(self.random_state, int | None):
            return "random_state must be a number to be saved", type(self.random_state).__name__, "set it to a number"
        return None

    def check_state(self) -> None:
        """After loading a file: scores, folds and weights of the same rows."""
        if not whole_state(self, "n_features_in_"):
            return
        scores, fold = self.scores_, self.fold_
        sound = isinstance(scores, np.ndarray) and scores.ndim == 1 and scores.dtype == np.float64 and len(scores) > 0
        sound = sound and isinstance(fold, np.ndarray) and fold.shape == scores.shape and fold.dtype.kind == "i"
        sound = sound and self.weight_.shape == scores.shape and type(self.normalized_) is bool
        sound = (
            sound and not np.isnan(scores).any() and isinstance(self.estimators_, list) and len(self.estimators_) > 0
        )
        if not (
            sound and ((fold >= 0) & (fold < len(self.estimators_))).all() and all(map(_predicts, self.estimators_))
        ):
            raise DataError(sentence("ConformalRegressor", "the fitted attributes must be consistent"))


def conformal_quantile(scores: Array, weight: Array, level: float) -> Any:
    """The ⌈(n + 1) level⌉-th smallest score of n, along the last axis; infinite where that exceeds n.

    An integer weight of k is k equal scores; n is the sum of the weights.

    >>> float(conformal_quantile(np.arange(1.0, 10.0), np.ones(9), 0.9))
    9.0
    >>> float(conformal_quantile(np.arange(1.0, 9.0), np.ones(8), 0.9))
    inf
    """
    total = float(weight.sum())
    rank = (total + 1) * level * (1 - 1e-12)  # products such as 10 · 0.9 are rounded upward
    if rank > total:
        return np.full(scores.shape[:-1], np.inf)
    if (weight == 1).all():
        k = int(np.ceil(rank)) - 1
        return np.partition(scores, k, axis=-1)[..., k]
    order = np.argsort(scores, axis=-1)
    at = np.argmax(np.cumsum(weight[order], axis=-1) >= rank, axis=-1)
    at = np.take_along_axis(order, np.expand_dims(at, -1), axis=-1)
    return np.take_along_axis(scores, at, axis=-1)[..., 0]


def gives_deviation(estimator: Any) -> bool:
    """Whether `predict` of a regressor, or of the last step of a pipeline, takes `return_std`; that of a search not."""
    if isinstance(estimator, Pipeline):
        return gives_deviation(estimator.steps[-1][1])
    return "return_std" in signature(estimator.predict).parameters


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, n, size))


def _predicts(model: Any) -> bool:
    return hasattr(model, "predict")
