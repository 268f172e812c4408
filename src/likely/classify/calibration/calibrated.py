"""CalibratedClassifier: calibrated posteriors for any classifier, from cross-validated scores."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if

from likely.classify.calibration.calibration_maps import MethodChoice, Temperature, calibrate, choose_method
from likely.classify.calibration.probability_floor import Floor
from likely.core.arrays import Array, Index, Rows, Seed, Targets
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, enumerated, sentence
from likely.core.warnings import warn, warnings_once
from likely.decision.combine import change_log_prior
from likely.decision.cost import CostLike
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_state
from likely.estimation.decision_mixin import RULES, ClassPriorLike, Deciding
from likely.estimation.foreign_classifiers import (
    checked_targets,
    fitted,
    one_score_per_class,
    raw_scores,
    response_of,
    weight_argument,
)
from likely.estimation.foreign_tables import as_table, take_rows
from likely.estimation.parallel import in_threads
from likely.estimation.parameter_constraints import HasMethods, StrOptions
from likely.estimation.scikit_learn import check_random_state, get_tags
from likely.model_selection.splits import Copies, Split, make_splits


def _inside(name: str) -> Any:
    """True for a wrapper whose estimator has that method."""
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


class CalibratedClassifier(Deciding, MetaEstimatorMixin, BaseEstimator):
    """Calibrated posteriors for any classifier: trees, forests, boosting, support vector machines, pipelines.

    Each row is scored by a clone that was trained without it; a map from scores to posteriors is fitted to these, and
    the estimator is fitted once more to all rows. So prediction costs one model and one map.

    Parameters
    ----------
    estimator : classifier
        A classifier with decision_function, predict_log_proba or predict_proba. It gets X unchanged.
    method : {"temperature", "logistic", "isotonic", "auto"}
        "temperature" (temperature scaling and a lapse rate; the most probable class is unchanged), "logistic" (Platt's
        slope and offset; a shrunken matrix for more classes), "isotonic" (any increasing function), or "auto": the
        simplest whose cross-validated log-loss is within one standard error of the smallest.
    cv : int, splitter or "prefit"
        A number of folds, a splitter, or "prefit": the estimator is used unchanged, and `fit` gets rows that it was not
        trained on.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    log_loss_ : dict
        Cross-validated log-loss of each method, where `method="auto"`.
    method_ : str
        The method of `calibration_`; "none" where no row could be held out.

    Examples
    --------
    >>> import likely as lk
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> raw, cal = GaussianNB().fit(X[::2], y[::2]), CalibratedClassifier(GaussianNB()).fit(X[::2], y[::2])
    >>> loss = lambda c: -np.log(c.predict_proba(X[1::2])[np.arange(284), y[1::2]]).mean()
    >>> bool(loss(cal) < loss(raw) / 2)
    True
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "decision_function"]), HasMethods(["fit", "predict_proba"])],
        "method": [StrOptions(set(get_args(MethodChoice)))],
        "cv": ["cv_object", StrOptions({"prefit"})],
        **RULES,
        "random_state": ["random_state"],
    }

    saved_attributes: tuple[str, ...] = (
        *("estimator_", "calibration_", "floor_", "method_", "classes_", "class_prior_", "trained_prior_"),
        *("n_features_in_", "feature_names_in_"),
    )

    def __init__(
        self, estimator: Any, method: MethodChoice = "auto", cv: Any = 5, *, cost: CostLike | None = None,
        reject_cost: float | None = None, reject_below: float | None = None, random_state: Seed = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.random_state = random_state

    @property
    def _fit_calibrates(self) -> bool:
        """Whether each fit learns its own calibration map."""
        return True

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Fit to rows X and labels y; rows of one group are never on both sides of a split."""
        self._validate_params()
        self.__dict__.pop("trained_prior_", None)
        X = as_table(X)
        classes, labels, weight = checked_targets(X, y, sample_weight, self)
        with warnings_once():
            if isinstance(self.cv, str):
                self._adopt(self.estimator, *self._seen_classes(classes, labels))
                self._learn_map(self._own_scores(X, labels, weight, groups), labels, weight)
            else:
                self._refuse_pairwise()
                estimator = one_score_per_class(self.estimator)
                self._note_weights(estimator, weight)
                self._adopt(fitted(estimator, X, classes[labels], weight), classes, labels)
                self._learn_map(*self._left_out(estimator, X, classes, labels, weight, groups))
        self.class_prior_ = _shares(labels, weight, len(self.classes_))
        return self

    def learned_map(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> tuple[Any, Floor]:
        """The calibration map and the floor of scores from held-out rows, without the estimator of all rows.

        Returns
        -------
        calibration : Temperature, LogisticMap or IsotonicMap
            The map from scores to log-posteriors.
        floor : Floor
            The value that replaces a log-score of −∞.
        """
        X = as_table(X)
        classes, labels, weight = checked_targets(X, y, sample_weight, self)
        self._adopt(self.estimator, classes, labels)
        with warnings_once():
            self._learn_map(*self._left_out(self.estimator, X, classes, labels, weight, None))
        return self.calibration_, self.floor_

    def _left_out(
        self, estimator: Any, X: Any, classes: NDArray[Any], labels: Index, weight: Array | None, groups: Any
    ) -> tuple[HeldOutScores, Index, Array | None]:
        """Held-out scores, with true classes and weights of their rows."""
        copies = Copies(X, labels, weight, groups).written_out(self.cv)
        found = self._cross_scores(estimator, copies.X, classes, copies.labels, copies.weight, copies.groups)
        return found, copies.labels, copies.weight

    def describe(self) -> Description:
        """Classes, the calibration, the decision rule, and the estimator inside if it can describe itself."""
        found = super().describe()
        inner = getattr(self, "estimator_", None)
        if inner is None:
            return found
        text = [f"posterior probabilities of {type(inner).__name__}, calibrated by the method {self.method_}"]
        parts = [inner.describe()] if isinstance(inner, BaseEstimator) else []
        return found.plus(text=text, sections=parts)

    def log_posterior(self, X: Rows) -> Array:
        """Calibrated log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        check_is_fitted(self)
        raw = raw_scores(self.estimator_, X, self.classes_, response_of(self.estimator_))
        found = self.calibration_.log_posterior(self.floor_.applied(raw))
        trained, now = self._trained_prior, self.class_prior_
        return found if trained is now else change_log_prior(found, trained, now)

    def with_class_prior(self, class_prior: ClassPriorLike) -> Self:
        """A copy with other class probabilities."""
        check_is_fitted(self)
        other = copy(self)
        other.class_prior_ = self._prior_for(class_prior)
        other.trained_prior_ = self._trained_prior
        return other

    @property
    def _trained_prior(self) -> Array:
        return self.__dict__.get("trained_prior_", self.class_prior_)

    # ------------------------------------------------- methods of the estimator

    def _novel(self, X: Any, rate: float) -> Any:
        inside = getattr(self.estimator_, "_novel", None)
        return super()._novel(X, rate) if inside is None else inside(X, rate)

    @available_if(_inside("explain"))  # type: ignore[untyped-decorator]
    def explain(self, X: Any) -> Any:
        """Explanation of each decision, before calibration (`Explanation`)."""
        return self.estimator_.explain(X)

    @available_if(_inside("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Array:
        """Marginal log-density log p(x) of each row (n,)."""
        return self.estimator_.score_samples(X)

    def why_not_saved(self) -> tuple[str, str, str] | None:
        """The reason why it cannot be saved, and the remedy."""
        foreign = getattr(self, "estimator_", self.estimator)
        if hasattr(foreign, "saved_attributes"):
            return None
        expected = (
            "a model file holds numbers and settings, never code, so it cannot contain an estimator of another library"
        )
        remedy = "save it with that library, or use one of likely's classifiers, such as BayesClassifier"
        return expected, type(foreign).__name__, remedy

    def check_state(self) -> None:
        """After loading a file: the fitted attributes must be consistent."""
        if not whole_state(self, "trained_prior_", "n_features_in_"):
            return
        C = len(self.classes_)
        sound = C > 0 and isinstance(self.floor_, Floor) and getattr(self.calibration_, "classes", None) == C
        sound = sound and isinstance(self.estimator_, Deciding) and len(self.estimator_.classes_) <= C
        if not sound:
            raise DataError(sentence("CalibratedClassifier", "the fitted attributes must be consistent"))

    # ------------------------------------------------------------ held-out scores

    def _cross_scores(
        self, estimator: Any, X: Any, classes: NDArray[Any], labels: Index, weight: Array | None, groups: Any
    ) -> HeldOutScores:
        """Cross-validated scores: each row by a clone that was not trained on it."""
        if len(classes) == 1:
            return HeldOutScores.nothing(1)
        splits = make_splits(X, labels, self.cv, weight=weight, groups=groups, seed=self._seed())
        if groups is None and (self.cv is None or isinstance(self.cv, Integral)):
            splits = list(_singles_always_train(splits, labels, classes))
        response, y = response_of(estimator), classes[labels]

        def scored(split: Split) -> Array:
            _warn_of_absent(split, labels, classes)
            model = fitted(estimator, X, y, weight, split.train, posteriors_only=True)
            return raw_scores(model, take_rows(X, split.test), classes, response)

        splits = [split for split in splits if len(split.test)]
        raw = in_threads(scored, splits)
        return HeldOutScores.joined(raw, [split.test for split in splits], len(classes))

    def _own_scores(self, X: Any, labels: Index, weight: Array | None, groups: Any) -> HeldOutScores:
        """Scores of a fitted estimator, in folds for choosing among maps."""
        response = response_of(self.estimator_)
        rows = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0)
        raw = raw_scores(self.estimator_, take_rows(X, rows), self.classes_, response)
        of = None if groups is None else np.asarray(groups)[rows]
        splits = make_splits(raw, labels[rows], 5, groups=of, equal_apart=True)  # equal scores of unequal rows
        fold = np.zeros(len(rows), dtype=np.intp)
        for k, split in enumerate(splits):
            fold[split.test] = k
        return HeldOutScores(raw, rows, fold)

    def _seen_classes(self, classes: NDArray[Any], labels: Index) -> tuple[NDArray[Any], Index]:
        """The classes of a fitted estimator, and their indices in the order of these rows."""
        check_is_fitted(self.estimator)
        own = np.asarray(self.estimator.classes_)
        unknown = [c for c in classes.tolist() if c not in own.tolist()]
        if unknown:
            expected = f"labels must be among the fitted estimator's classes {own.tolist()[:12]}"
            raise DataError(sentence("CalibratedClassifier", expected, repr(unknown[0])))
        order = np.unique(own)
        labels[:] = np.searchsorted(order, classes)[labels]
        return order, labels

    # ------------------------------------------------------------------- learning

    def _learn_map(self, held_out: HeldOutScores, labels: Index, weight: Array | None) -> None:
        """The map from held-out scores to posteriors, of the requested or the best method."""
        raw, rows, fold = held_out
        w = np.ones(len(rows)) if weight is None else weight[rows]
        response = response_of(self.estimator_)
        self.floor_ = Floor.of(raw, float(w.sum()), response)
        if not len(rows):
            self.method_, self.calibration_ = "none", Temperature(np.asarray(1.0), len(self.classes_))
            if len(self.classes_) > 1:
                remedy = "pass more rows of each class"
                what = sentence(
                    "CalibratedClassifier", "no row could be held out, scores are not calibrated", remedy=remedy
                )
                warn(what)
            return
        scores = self.floor_.applied(raw)
        self.method_ = self.method
        if self.method == "auto":
            discriminant = response == "decision_function"
            self.method_, self.log_loss_ = choose_method(scores, labels[rows], fold, w, discriminant=discriminant)
        self.calibration_ = calibrate(scores, labels[rows], w, method=self.method_)

    def _adopt(self, estimator: Any, classes: NDArray[Any], labels: Index) -> None:
        self.estimator_, self.classes_ = estimator, classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _note_weights(self, estimator: Any, weight: Array | None) -> None:
        uneven = weight is not None and np.ptp(weight[weight > 0]) > 0
        if uneven and weight_argument(estimator) is None:
            expected = f"{type(estimator).__name__} takes no weights: they are used for the calibration only"
            remedy = "repeat rows, or choose an estimator that takes sample_weight"
            warn(sentence("CalibratedClassifier", expected, remedy=remedy))

    def _refuse_pairwise(self) -> None:
        if get_tags(self.estimator).input_tags.pairwise:
            remedy = "pass rows and a kernel or metric by name, or use cv='prefit'"
            expected = "rows are needed for cross-validation"
            raise DomainError(sentence("CalibratedClassifier", expected, "a table of all pairs", remedy))

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = own.input_tags
        if own.classifier_tags is not None:
            tags.classifier_tags.multi_class = own.classifier_tags.multi_class
        return tags


class HeldOutScores(NamedTuple):
    """Scores of held-out rows."""

    raw: Array  # (m, C)
    rows: Index  # (m,): row numbers
    fold: Index  # (m,): number of the split

    @classmethod
    def nothing(cls, classes: int) -> HeldOutScores:
        """No rows."""
        return cls(np.empty((0, classes)), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))

    @classmethod
    def joined(cls, raw: list[Array], rows: list[Index], classes: int) -> HeldOutScores:
        """Concatenation of folds."""
        if not rows:
            return cls.nothing(classes)
        fold = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
        return cls(np.concatenate(raw), np.concatenate(rows), fold)


def _singles_always_train(splits: list[Split], labels: Index, classes: NDArray[Any]) -> Iterator[Split]:
    """Keep classes with a single distinct row in training, with a warning."""
    for split in splits:
        absent = np.setdiff1d(labels[split.test], labels[split.train])
        alone = np.isin(labels[split.test], absent)
        if alone.any():
            named = enumerated("class", map(repr, classes[absent].tolist()))
            one = len(absent) == 1
            which = f"{named} {'has one distinct row' if one else 'have one distinct row each'}"
            what = "used for training, but cannot be calibrated"
            warn(
                sentence(
                    "CalibratedClassifier", f"{which}: {'it is' if one else 'they are'} {what}", remedy="pass more rows"
                )
            )
        yield Split(np.sort(np.concatenate([split.train, split.test[alone]])), split.test[~alone])


def _warn_of_absent(split: Split, labels: Index, classes: NDArray[Any]) -> None:
    absent = np.setdiff1d(np.arange(len(classes)), labels[split.train])
    if len(absent):
        named, one = enumerated("class", map(repr, classes[absent].tolist())), len(absent) == 1
        what = f"{named} {'is' if one else 'are'} absent from a training fold: their posterior there is 0"
        warn(sentence("CalibratedClassifier", what, remedy="use fewer folds or other groups"))


def _shares(labels: Index, weight: Array | None, classes: int) -> Array:
    count = np.bincount(labels, weight, classes)
    return count / count.sum()
