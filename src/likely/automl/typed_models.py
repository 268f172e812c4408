"""What models of tables and of sequences share: named columns with types, a model card, a calibrated classifier."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from likely.classify.calibration.calibration_maps import Calibration, IsotonicMap, LogisticMap, Temperature
from likely.classify.calibration.recalibration import applied
from likely.classify.explanation import Explanation
from likely.core.arrays import Array, Mask, Rows, Targets
from likely.core.errors import DataError, DomainError, sentence
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_or_nothing
from likely.estimation.decision_mixin import Deciding
from likely.estimation.model_card import WithCard
from likely.estimation.parameter_constraints import HasMethods
from likely.estimation.scikit_learn import clone


class TypedModel(WithCard, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Base of models with named, typed columns and a model card."""

    schema_: str  # JSON: names and types of the columns
    _inner_name: ClassVar[str]  # the attribute with the fitted model

    @property
    def schema(self) -> dict[str, Any]:
        """Names and types of the columns."""
        check_is_fitted(self, "schema_")
        found: dict[str, Any] = json.loads(self.schema_)
        return found

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """Context manager of a fit: where it fails, the model stays what it was, with the columns that belong to it."""
        with whole_or_nothing(self):
            self.__dict__.pop("card_", None)  # it tells of other data
            yield

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    def check_state(self) -> None:
        """After loading a file: texts are JSON, and the model inside is one for these columns."""
        if self._inner_name not in vars(self):
            return
        try:
            sound = isinstance(self.card, dict) and self._sound()
        except (AttributeError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            name = self._inner_name.removesuffix("_")
            raise DataError(sentence(type(self).__name__, f"schema, card and {name} must be consistent"))

    def _sound(self) -> bool:
        """Whether schema and model are valid and agree."""
        raise NotImplementedError  # abstract


class TypedClassifier(Deciding, TypedModel):
    """Base of classifiers with named, typed columns: a classifier inside, and a calibration map of its posteriors."""

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "classifier": [HasMethods(["fit", "decide"]), None], "calibrate": ["boolean"],
    }  # fmt: skip
    _inner_name = "classifier_"
    calibration_: Calibration | None = None  # calibration map of the classifier's log-posteriors
    classifier: Any
    calibrate: bool

    @property
    def _fit_calibrates(self) -> bool:
        """Whether each fit learns its own calibration map."""
        return bool(self.calibrate)

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Infer the column types of X, and fit to labels y (n,)."""
        from likely.automl.model_comparison import calibration_of

        self._validate_params()
        with self._whole_or_nothing():
            rows = self._know_columns_of(X)
            model = self._usual() if self.classifier is None else clone(self.classifier)
            with self._spoken(model):
                self.classifier_ = model.fit(rows, y, sample_weight)
                self.calibration_ = calibration_of(model, rows, y, sample_weight) if self.calibrate else None
        return self

    def _know_columns_of(self, X: Any) -> Any:
        """Infer and store the columns of training data; the data in the form of the classifier."""
        raise NotImplementedError  # abstract

    def _rows(self, X: Any) -> Any:
        """New data in the form of the classifier."""
        raise NotImplementedError  # abstract

    def _usual(self) -> Any:
        """The classifier where none was given."""
        raise NotImplementedError  # abstract

    @classmethod
    def _around(cls, classifier: Any, calibration: Calibration | None) -> Self:
        make: Any = cls  # a subclass, whose constructor takes these
        made: Self = make(clone(classifier), calibrate=calibration is not None)
        made.classifier_, made.calibration_ = classifier, calibration
        return made

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes (C,)."""
        check_is_fitted(self, "classifier_")
        return self.classifier_.classes_

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self.classifier_.class_prior_

    def log_posterior(self, X: Rows) -> Array:
        """Logarithms of the posterior probabilities, log p(c | x), of each row or sequence."""
        check_is_fitted(self, "classifier_")
        rows = self._rows(X)
        with self._spoken(self.classifier_):
            return applied(self.calibration_, self.classifier_.log_posterior(rows))

    def unseen(self, X: Any) -> dict[str, Mask]:
        """Mask of rows or sequences (n,) with unknown levels, by column; only columns that have some."""
        raise NotImplementedError  # abstract

    def explain(self, X: Rows) -> Explanation:
        """Explanation of each decision: log-odds by column, and the value of each; of sequences, by frame, too."""
        check_is_fitted(self, "classifier_")
        if not hasattr(self.classifier_, "explain"):
            expected, remedy = "there is nothing to explain", "it decides by class priors and uses no column"
            raise DomainError(sentence(type(self).__name__, expected, remedy=remedy))
        rows = self._rows(X)
        with self._spoken(self.classifier_):
            return replace(Explanation.of(self.classifier_, rows, self.calibration_), columns=self._names())

    def _names(self) -> list[str]:
        """The columns in the order of the classifier."""
        return self.classifier_.column_names()

    # decision parameters are those of the classifier
    cost = property(lambda self: self.classifier_.cost)
    reject_cost = property(lambda self: self.classifier_.reject_cost)
    reject_below = property(lambda self: self.classifier_.reject_below)
    novelty = property(lambda self: self.classifier_.novelty)

    def _novel(self, X: Any, rate: float) -> tuple[Mask | None, Any]:
        with self._spoken(self.classifier_):
            return self.classifier_._novel(self._rows(X), rate)

    def _sound(self) -> bool:
        map = self.calibration_
        known = isinstance(map, Temperature | LogisticMap | IsotonicMap)
        sound = isinstance(self.classifier_, Deciding)
        return sound and (map is None or (known and map.classes == len(self.classifier_.classes_)))
