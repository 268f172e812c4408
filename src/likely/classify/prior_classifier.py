"""PriorClassifier: decisions by class priors alone, as a baseline."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Mask, Rows, Targets
from likely.core.errors import DataError, sentence
from likely.decision.cost import CostLike
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_state
from likely.estimation.class_labels import checked_labels, encoded, warn_of_labels
from likely.estimation.decision_mixin import NOVELTY, RULES, UNIFORM, ClassPriorLike, Deciding, class_probabilities
from likely.estimation.input_validation import row_weights
from likely.estimation.scikit_learn import number_of_rows


class PriorClassifier(Deciding, BaseEstimator):
    """Baseline p(c | x) = p(c): the decision of smallest prior expected cost, independent of the row   (Ney 2.2).

    Parameters
    ----------
    class_prior : "uniform", array-like (C,) or dict, optional
        None: relative frequencies; "uniform", numbers in the order of `classes_`, or a dict by label.
    novelty : float, optional
        No effect: without a density of rows none is novel.

    Examples
    --------
    >>> clf = PriorClassifier().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"])
    >>> clf.predict([[9.0]]), clf.predict_proba([[9.0]]).round(2)
    (array(['a'], dtype=object), array([[0.67, 0.33]]))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "class_prior": [UNIFORM, "array-like", dict, None],
        **RULES,
        **NOVELTY,
    }
    saved_attributes: tuple[str, ...] = ("classes_", "class_count_", "class_prior_")

    def __init__(
        self, class_prior: ClassPriorLike = None, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None,
    ) -> None:  # fmt: skip
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Count labels y (n,); of X only the number of rows is used."""
        self._validate_params()
        targets = checked_labels(y, number_of_rows(X), type(self).__name__)
        weight = row_weights(sample_weight, targets)
        targets, weight = targets[weight > 0], weight[weight > 0]
        if not len(targets):
            raise DataError(sentence(type(self).__name__, "some row must have a weight above 0", "none"))
        self.classes_, labels = encoded(targets)
        warn_of_labels(self.classes_, labels, type(self).__name__)
        self.class_count_ = np.bincount(labels, weight).astype(np.float64)
        self.class_prior_ = self.class_count_ / self.class_count_.sum()
        if self.class_prior is not None:
            self.class_prior_ = class_probabilities(self.class_prior, self.classes_, type(self).__name__)
        self._cost_of(None)
        return self

    def log_posterior(self, X: Rows) -> Array:
        """Logarithms of the class probabilities, log p(c), the same for each row."""
        check_is_fitted(self)
        with np.errstate(divide="ignore"):
            return np.tile(np.log(self.class_prior_), (number_of_rows(X), 1))

    def _novel(self, X: Any, rate: float) -> tuple[Mask | None, Any]:
        return np.zeros(number_of_rows(X), dtype=bool), None

    def _compares(self) -> list[str]:
        return ["It uses no column: its posterior is the class prior."]

    def check_state(self) -> None:
        """After loading a file: one probability per class."""
        if not whole_state(self):
            return
        count: Any = self.class_count_
        alike = isinstance(count, np.ndarray) and count.ndim == 1 and count.shape == np.shape(self.classes_)
        if not (alike and (count >= 0).all()):
            raise DataError(sentence(type(self).__name__, "the fitted attributes must be consistent"))
        class_probabilities(self.class_prior_, np.asarray(self.classes_), type(self).__name__)
        self._cost_of(None)
