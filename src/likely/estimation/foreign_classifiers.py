"""Third-party classifiers: sample weights, groups, and scores with one column per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.estimation.class_labels import checked_labels, encoded, labeled_things
from likely.estimation.foreign_tables import take_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.scikit_learn import clone, has_fit_parameter, number_of_rows

RESPONSES = ("decision_function", "predict_log_proba", "predict_proba")  # unbounded scores calibrate best


# ---------------------------------------------------------------------- learning


def checked_targets(X: Any, y: Any, sample_weight: Any, whose: Any) -> tuple[NDArray[Any], Index, Array | None]:
    """Classes (C,), class index of each row (n,) and weights, of rows with positive weight."""
    targets = checked_labels(y, number_of_rows(X), type(whose).__name__, each=labeled_things(X))
    weight = None
    if sample_weight is not None:
        weight = row_weights(sample_weight, np.empty((len(targets), 0)))
    counted = np.ones(len(targets), dtype=bool) if weight is None else weight > 0
    labels = np.zeros(len(targets), dtype=np.intp)  # rows of weight 0 may have any class
    classes, labels[counted] = encoded(targets[counted])
    return classes, labels, weight


def fitted(
    estimator: Any, X: Any, y: Any, weight: Array | None, rows: Index | None = None, groups: Any = None, *,
    posteriors_only: bool = False,
) -> Any:  # fmt: skip
    """A clone fitted to the given rows (None: all of positive weight); groups are passed if accepted.

    `posteriors_only`: without the novelty threshold, which takes two thirds of the time of a fit.
    """
    rows = rows if rows is not None or weight is None else np.flatnonzero(weight > 0)
    if rows is not None and len(rows) < len(y):
        X, y = take_rows(X, rows), y[rows]
        weight = None if weight is None else weight[rows]
        groups = None if groups is None else np.asarray(groups)[rows]
    fresh = clone(estimator)
    if posteriors_only and getattr(fresh, "novelty", None) is not None:
        fresh.set_params(novelty=None)
    given = {weight_argument(fresh): weight} if weight is not None else {}
    given |= {"groups": groups} if groups is not None and has_fit_parameter(fresh, "groups") else {}
    return fresh.fit(X, y, **{name: value for name, value in given.items() if name is not None})


def weight_argument(estimator: Any) -> str | None:
    """The name of the weight argument of `fit`, also inside pipelines and searches; None if there is none."""
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        last, inner = estimator.steps[-1]
        name = None if inner in (None, "passthrough") else weight_argument(inner)
        return None if name is None else f"{last}__{name}"
    if isinstance(estimator, BaseSearchCV):
        return weight_argument(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def one_score_per_class(estimator: Any) -> Any:
    """A clone whose support vector machines give one score per class, not one per pair of classes."""
    pairs = [name for name, value in estimator.get_params().items() if _asks_pairs(name, value)]
    return clone(estimator).set_params(**dict.fromkeys(pairs, "ovr")) if pairs else estimator


def _asks_pairs(name: str, value: Any) -> bool:
    return name.split("__")[-1] == "decision_function_shape" and isinstance(value, str) and value == "ovo"


# ------------------------------------------------------------------------ scores


def response_of(estimator: Any) -> str:
    """The first available of decision_function, predict_log_proba and predict_proba."""
    for name in RESPONSES:
        if hasattr(estimator, name):
            return name
    expected = f"the classifier must offer {', '.join(RESPONSES[:-1])} or {RESPONSES[-1]}"
    raise DomainError(sentence("CalibratedClassifier", expected, type(estimator).__name__))


def raw_scores(estimator: Any, X: Any, classes: NDArray[Any], response: str) -> Array:
    """Scores (n, C) in the order of `classes`; −inf for a class that did not occur in training."""
    with np.errstate(divide="ignore"):  # log 0, here and inside predict_log_proba of other libraries
        out = np.asarray(getattr(estimator, response)(X), dtype=np.float64)
        out = np.log(out) if response == "predict_proba" else out
    seen = np.asarray(estimator.classes_)
    if out.ndim == 1 or (out.shape[1] == 1 and len(seen) == 2):
        out = np.multiply.outer(out.reshape(len(out)), [-0.5, 0.5])  # their softmax is σ(score)
    if out.shape[1] != len(seen):
        remedy = "set decision_function_shape='ovr'" if hasattr(estimator, "decision_function_shape") else ""
        expected = f"{response} must have one column for each of {len(seen)} classes"
        raise ShapeError(sentence(type(estimator).__name__, expected, out.shape, remedy))
    if np.isnan(out).any():
        row = np.flatnonzero(np.isnan(out).any(axis=1))[0]
        raise DataError(sentence(type(estimator).__name__, f"{response} must be numbers", f"NaN at row {row}"))
    return aligned_to(classes, seen, out)


def aligned_to(classes: NDArray[Any], seen: NDArray[Any], out: Array) -> Array:
    """The columns of the `seen` classes in the order of `classes`, −inf elsewhere."""
    if np.array_equal(classes, seen):
        return out
    place = {c: i for i, c in enumerate(classes.tolist())}
    foreign = [c for c in seen.tolist() if c not in place]
    if foreign:
        expected = f"the estimator's classes must be among {classes.tolist()[:12]}"
        raise DataError(sentence("CalibratedClassifier", expected, foreign[0]))
    full = np.full((len(out), len(classes)), -np.inf)
    full[:, [place[c] for c in seen.tolist()]] = out
    return full


def log_posteriors(estimator: Any, X: Any, classes: NDArray[Any]) -> Array:
    """Normalized log p(class | x) (n, C) of any classifier with probabilities."""
    names = [name for name in ("log_posterior", "predict_log_proba", "predict_proba") if hasattr(estimator, name)]
    if not names:
        whose = type(estimator).__name__
        remedy = f"wrap it: lk.CalibratedClassifier({whose}(…))"
        raise DomainError(sentence("evaluate", "a classifier with probabilities is needed", whose, remedy))
    out = raw_scores(estimator, X, classes, names[0])
    return out - np.logaddexp.reduce(out, axis=1, keepdims=True)
