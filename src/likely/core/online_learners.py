"""A learner as a filter: each row is scored by what was learned before it, and learned from afterwards."""

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
        """The estimator as it was given."""
        return self.start

    def predict(self, belief: Any) -> Any:
        """Nothing is forgotten between rows."""
        return belief

    def update(self, belief: Any, y: Any) -> tuple[Any, float]:
        """The estimator that also learned from y, and what the one before it gave y."""
        better = _apart(belief)
        if _takes_labels(belief):
            x, label = _labeled(y)
            news = _label_score(belief, x, label)
            return better.partial_fit(x, label), news
        x = _row(y)
        news = float(np.sum(_scores(belief, x, "score_samples")))
        return better.partial_fit(x), news


@dataclass(frozen=True)
class BayesianLearner:
    """A conjugate prior: the belief is the posterior so far, and the scores add up to the log evidence, exactly."""

    prior: Any

    def initial_belief(self) -> Any:
        """The prior itself."""
        return self.prior

    def predict(self, belief: Any) -> Any:
        """Parameters do not move."""
        return belief

    def update(self, belief: Any, y: Any) -> tuple[Any, float]:
        """The posterior once y is seen, and log p(y | all before) with the parameters integrated out."""
        distribution = belief.point("mean")
        x = _row(y, getattr(distribution, "dim", None))
        if isinstance(x, np.ndarray) and x.dtype.kind == "f" and np.isnan(x).all():
            return belief, 0.0  # nothing was seen; of a row with some gaps no conjugate distribution can learn
        stats = distribution.collect(x)
        return belief.update(stats), float(np.sum(belief.log_evidence(stats)))


def _apart(estimator: Any) -> Any:
    """A copy that may learn without the other's knowing."""
    if not hasattr(estimator, "_saved"):  # another library's may write into its arrays
        return deepcopy(estimator)
    other = copy(estimator)  # ours hold frozen values, and perhaps other estimators
    inner = {name: _apart(part) for name, part in vars(estimator).items() if hasattr(part, "get_params")}
    vars(other).update(inner)
    return other


def _takes_labels(estimator: Any) -> bool:
    return hasattr(estimator, "log_posterior") or hasattr(estimator, "predict_log_proba")


def _row(y: Any, dim: int | None = None) -> Any:
    """One row as a table of one; a table stays what it is, and a column of single values one."""
    if not isinstance(y, np.ndarray | list | tuple | int | float | str | np.generic):
        return y
    a = np.asarray(unmasked(y))
    return a[None] if a.ndim == 1 or (a.ndim == 0 and dim == 1) else a.reshape(1, 1) if a.ndim == 0 else a


def _labeled(y: Any) -> tuple[Any, Any]:
    if not isinstance(y, tuple) or len(y) != 2:
        remedy = "pass (row, label), with None for a label that is not known"
        raise DataError(sentence("follow", "a classifier learns from rows with labels", type(y).__name__, remedy))
    return _row(y[0]), np.array([y[1]], dtype=object if y[1] is None or isinstance(y[1], str) else None)


def _label_score(estimator: Any, x: Any, label: Any) -> float:
    """log p(label | row); 0 where there is no label to predict."""
    if label[0] is None or label[0] != label[0]:
        return 0.0
    verb = "log_posterior" if hasattr(estimator, "log_posterior") else "predict_log_proba"
    log_posterior = np.asarray(_scores(estimator, x, verb))[0]
    at = np.flatnonzero(np.asarray(estimator.classes_) == label[0])
    return float(log_posterior[at[0]]) if len(at) else -np.inf  # `partial_fit` says what it thinks of a new class


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
        raise DataError(sentence("follow", "a learner must know something before it can be followed", name, remedy)
                        ) from error  # fmt: skip
