"""Online learners as filters: each observation is first predicted, then learned from (prequential)."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import unmasked
from likely.core.errors import DataError, DomainError, sentence


@dataclass(frozen=True)
class Learner:
    """An estimator with `partial_fit`: the belief is the estimator so far (prequential: predict, then learn; Dawid).

    An observation is a row, or (row, label) for a classifier, whose score is then log p(label | row).
    """

    start: Any

    def initial_belief(self) -> Any:
        """The given estimator."""
        return self.start

    def predict(self, belief: Any) -> Any:
        """The belief, unchanged: nothing is forgotten between rows."""
        return belief

    def update(self, belief: Any, y: Any) -> tuple[Any, float]:
        """The estimator after `partial_fit` on y, and the score of y under the estimator before."""
        better = _independent_copy(belief)
        if _takes_labels(belief):
            x, label = _labeled(y)
            log_p = _label_score(belief, x, label)
            return better.partial_fit(x, label), log_p
        x = _row(y)
        log_p = float(np.sum(_scores(belief, x, "score_samples")))
        return better.partial_fit(x), log_p


@dataclass(frozen=True)
class BayesianLearner:
    """A conjugate prior: the belief is the posterior so far, and the scores sum to the log evidence, exactly."""

    prior: Any

    def initial_belief(self) -> Any:
        """The prior itself."""
        return self.prior

    def predict(self, belief: Any) -> Any:
        """The belief, unchanged: parameters are constant."""
        return belief

    def update(self, belief: Any, y: Any) -> tuple[Any, float]:
        """The posterior after observing y, and the posterior predictive log p(y | past observations)."""
        distribution = belief.point("mean")
        x = _row(y, getattr(distribution, "dim", None))
        if isinstance(x, np.ndarray) and x.dtype.kind == "f" and np.isnan(x).all():
            return belief, 0.0  # nothing was observed; conjugate priors cannot use partly missing rows
        stats = distribution.collect(x)
        return belief.update(stats), float(np.sum(belief.log_evidence(stats)))


def _independent_copy(estimator: Any) -> Any:
    """A copy that can learn without changing the original."""
    if not hasattr(estimator, "saved_attributes"):  # another library's may write into its arrays
        return deepcopy(estimator)
    other = copy(estimator)  # ours hold frozen values, and perhaps other estimators
    inner = {name: _independent_copy(part) for name, part in vars(estimator).items() if hasattr(part, "get_params")}
    vars(other).update(inner)
    return other


def _takes_labels(estimator: Any) -> bool:
    return hasattr(estimator, "log_posterior") or hasattr(estimator, "predict_log_proba")


def _row(y: Any, dim: int | None = None) -> Any:
    """One row as a table with one row; a table is unchanged."""
    if not isinstance(y, np.ndarray | list | tuple | int | float | str | np.generic):
        return y
    a = np.asarray(unmasked(y))
    return a[None] if a.ndim == 1 or (a.ndim == 0 and dim == 1) else a.reshape(1, 1) if a.ndim == 0 else a


def _labeled(y: Any) -> tuple[Any, Any]:
    if not isinstance(y, tuple) or len(y) != 2:
        remedy = "pass (row, label), with None for an unknown label"
        raise DataError(sentence("follow", "a classifier learns from rows with labels", type(y).__name__, remedy))
    return _row(y[0]), np.array([y[1]], dtype=object if y[1] is None or isinstance(y[1], str) else None)


def _label_score(estimator: Any, x: Any, label: Any) -> float:
    """log p(label | row); 0 where there is no label to predict."""
    if label[0] is None or label[0] != label[0]:
        return 0.0
    verb = "log_posterior" if hasattr(estimator, "log_posterior") else "predict_log_proba"
    log_posterior = np.asarray(_scores(estimator, x, verb))[0]
    at = np.flatnonzero(np.asarray(estimator.classes_) == label[0])
    return float(log_posterior[at[0]]) if len(at) else -np.inf  # `partial_fit` validates a new class


def _scores(estimator: Any, x: Any, verb: str) -> Any:
    name = type(estimator).__name__
    if not hasattr(estimator, verb):
        raise DomainError(sentence("follow", f"a learner that scores rows is needed, by {verb}", name))
    try:
        return getattr(estimator, verb)(x)
    except (AttributeError, ValueError) as error:
        if type(error).__name__ != "NotFittedError":
            raise
        remedy = "call fit or partial_fit with the first rows"
        raise DataError(sentence("follow", "a learner must be fitted before it can be followed", name, remedy)
                        ) from error  # fmt: skip
