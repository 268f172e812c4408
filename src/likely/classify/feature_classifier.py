"""Base class of recognizers that are a classifier behind a feature extractor."""

from __future__ import annotations

from typing import Any, Self

from likely.classify.bayes import BayesClassifier
from likely.core.arrays import Array, Mask, Rows
from likely.core.description import Description
from likely.core.errors import DataError, sentence
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted
from likely.estimation.decision_mixin import Deciding
from likely.estimation.model_card import WithCard


class FeatureClassifier(Deciding, WithCard, BaseEstimator):
    """Base class of recognizers: `_built()` returns a classifier, `_front(X, learning)` its features.

    The fitted classifier is `classifier_`.
    """

    classifier_: BayesClassifier
    saved_attributes: tuple[str, ...] = ("classifier_", "card_")

    def _built(self) -> BayesClassifier:
        """The unfitted classifier for these parameters."""
        raise NotImplementedError  # abstract

    def _front(self, X: Any, learning: bool = False) -> Any:
        """The classifier's input, from the raw input."""
        raise NotImplementedError  # abstract

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to raw inputs X and their labels y."""
        classifier = self._built()
        self.classifier_ = classifier.fit(self._front(X, learning=True), y, sample_weight)
        return self

    # ----------------------------------------------------------------------- prediction

    @property
    def classes_(self) -> Any:
        """The labels, sorted."""
        return self.classifier_.classes_

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self.classifier_.class_prior_

    def log_posterior(self, X: Any) -> Array:
        """log p(c | x) of each (n, C), columns in the order of `classes_`."""
        self._check_fitted()
        return self.classifier_.log_posterior(self._front(X))

    def score_samples(self, X: Rows) -> Array:
        """Marginal log-density log p(x) of each input (n,)."""
        self._check_fitted()
        return self.classifier_.score_samples(self._front(X))

    def describe(self) -> Description:
        """The classifier behind the features; of an unfitted recognizer, its settings."""
        if not hasattr(self, "classifier_"):
            return super().describe()
        return self.classifier_.describe().plus(title=type(self).__name__)

    # -------------------------------------------------------------------- inside

    def _check_fitted(self) -> None:
        """Raise NotFittedError before fitting."""
        check_is_fitted(self)

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        return self.classifier_._novel(self._front(X), rate)

    def check_state(self) -> None:
        """After loading a file: `classifier_` must be a fitted classifier."""
        inner = vars(self).get("classifier_")
        if inner is not None and not (isinstance(inner, BayesClassifier) and "model_" in vars(inner)):
            raise DataError(sentence(type(self).__name__, "classifier_ must be a classifier", type(inner).__name__))
        try:
            sound = isinstance(self.card, dict)
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "card_ must be a model card as JSON", repr(self.card_)[:60]))
