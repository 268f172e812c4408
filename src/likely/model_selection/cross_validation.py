"""Cross-validation: out-of-fold posterior probabilities of any classifier, and their evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.arrays import Array, Index, Rows, Seed
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, enumerated, sentence
from likely.core.warnings import warn, warnings_once
from likely.decision.cost import Cost
from likely.estimation.class_labels import checked_labels, labeled_things
from likely.estimation.foreign_classifiers import aligned_to, checked_targets, fitted, log_posteriors
from likely.estimation.foreign_tables import as_table, equal_rows, take_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.parallel import in_threads
from likely.estimation.scikit_learn import check_random_state, clone, number_of_rows
from likely.metrics.evaluation import Evaluation
from likely.metrics.regression_evaluation import JOINED, RegressionEvaluation
from likely.model_selection.conformal import gives_deviation
from likely.model_selection.splits import Copies, Split, fold_of, make_splits


def evaluate(
    estimator: Any, X: Rows, y: ArrayLike, *, cv: Any = None, groups: ArrayLike | None = None,
    time: ArrayLike | None = None, cost: Cost | ArrayLike | Mapping[Any, Any] | None = None,
    reject_cost: float | None = None, sample_weight: ArrayLike | None = None, random_state: Seed = 0,
    n_jobs: int | None = None, loss: str = "squared", over: float | None = None, under: float | None = None,
    level: float = 0.9,
) -> Any:  # fmt: skip
    """Evaluate a classifier or regressor on rows that it was not trained on   (Ney 2.5: errors are those of test data).

    With `cv="prefit"` a fitted classifier is evaluated unchanged: X and y are then test rows that it was not fitted to.
    Otherwise copies of it are fitted to parts of X, and each is tested on the rest; the classifier itself is not used.

    A regressor without a predictive density (`predictive(X)`, or `predict(X, return_std=True)`) gets that of its
    residuals in the other folds.

    Parameters
    ----------
    estimator : classifier or regressor
        Any regressor, or any classifier with probabilities; `lk.CalibratedClassifier` gives them to the others. It is
        not changed.
    X : array-like (n, d), data frame or sequences
        Samples, one per row.
    y : array-like (n,)
        Class labels or targets.
    cv : int, float, splitter, "leave-one-out", "time" or "prefit", optional
        A number of stratified folds (by `groups` where given), "leave-one-out", "time" (each block is tested by the
        earlier ones, in the order of `time`, or of the rows), a share between 0 and 1 (hold-out), a splitter or
        "prefit": no copy is fitted. None: 5 folds, with a warning where the classifier is fitted already.
    groups : array-like (n,), optional
        Group of each row; rows of one group are never on both sides of a split.
    time : array-like (n,), optional
        Times of the rows, by which `cv="time"` orders them; None: the order of the rows.
    cost : Cost, matrix or dict, optional
        Cost of each action (row) for each class (column); None: that of the classifier, if it has any.
    reject_cost : float, optional
        Cost of rejecting; None: that of the classifier, if it has any.
    sample_weight : array-like (n,), optional
        Weight per sample: an integer k equals k copies, which are trained on or tested together.
    random_state : int, Generator or None
        Seed of the splits.
    n_jobs : int, optional
        Number of threads; None: one per core.
    loss : {"squared", "absolute", "asymmetric"}
        Loss of the decisions of a regressor.
    over : float, optional
        Cost per unit of an estimate that is too large, of "asymmetric".
    under : float, optional
        Cost per unit of an estimate that is too small, of "asymmetric".
    level : float, default 0.9
        Level of the predictive intervals of a regressor.

    Returns
    -------
    Evaluation or RegressionEvaluation
        Measures of the tested rows, with intervals: of a classifier an `Evaluation`, of a regressor a
        `lk.metrics.RegressionEvaluation`.

    See Also
    --------
    compare : Compare models by evidence and by cross-validated log score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> evaluate(GaussianNB(), *load_iris(return_X_y=True)).error.value < 0.08
    True
    """
    if _predicts_numbers(estimator):
        if cost is not None or reject_cost is not None:
            expected, remedy = "cost and reject_cost are for classifiers", "use loss=, over= and under="
            raise DomainError(sentence("evaluate", expected, type(estimator).__name__, remedy))
        how: dict[str, Any] = {"loss": loss, "over": over, "under": under, "level": level}
        split = {"groups": groups, "time": time, "random_state": random_state, "n_jobs": n_jobs}
        return _of_regressor(estimator, X, y, cv, sample_weight, split, how)
    costs: dict[str, Any] = {
        "cost": getattr(estimator, "cost", None) if cost is None else cost,
        "reject_cost": getattr(estimator, "reject_cost", None) if reject_cost is None else reject_cost,
    }
    if isinstance(cv, str) and cv == "prefit":
        return _as_it_is(estimator, X, y, sample_weight, costs)
    _warn_of_copies(estimator, cv)
    held = out_of_fold(
        estimator, X, y, cv=5 if cv is None else cv, groups=groups, time=time, sample_weight=sample_weight,
        random_state=random_state, n_jobs=n_jobs,
    )  # fmt: skip
    return Evaluation(
        held.log_posterior, held.truth, held.classes, weight=held.weight, fold=held.fold, score=held.score, **costs
    )


def _predicts_numbers(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    return not hasattr(estimator, "classes_") and bool(is_regressor(estimator))


def _of_regressor(
    estimator: Any, X: Any, y: Any, cv: Any, sample_weight: Any, split: dict[str, Any], how: dict[str, Any]
) -> RegressionEvaluation:
    """The evaluation of a regressor: by its own predictive density, else by the residuals of other folds."""
    from likely.model_selection.comparable_models import predictive_of
    from likely.model_selection.residual_distribution import center_and_scale, with_residuals_of_others

    X = as_table(X)
    t = checked_numbers(y, number_of_rows(X), type(estimator).__name__)
    weight = None if sample_weight is None else row_weights(sample_weight, np.empty((len(t), 0)))
    dense = hasattr(estimator, "predictive") or gives_deviation(estimator)
    if isinstance(cv, str) and cv == "prefit":
        if not dense:
            expected = 'cv="prefit" needs a regressor with a predictive density'
            remedy = "pass a number of folds: densities are then those of held-out residuals"
            raise DomainError(sentence("evaluate", expected, type(estimator).__name__, remedy))
        return RegressionEvaluation.of(predictive_of(estimator, X), t, weight=weight, **how)
    seed = int(check_random_state(split["random_state"]).randint(2**31))
    zeros = np.zeros(len(t), dtype=np.intp)
    rows = Columns(x=equal_rows(X), y=t)  # equal rows differ by their y, and are dealt in any order alike
    splits = make_splits(rows, zeros, 5 if cv is None else cv, weight=weight, groups=split["groups"],
                         time=split["time"], seed=seed)  # fmt: skip
    splits = [one for one in splits if len(one.test) and len(one.train)]
    fold = fold_of(splits, len(t))
    if fold is None or not splits:
        raise DomainError(sentence("evaluate", "each row of a regression must be tested at most once", repr(cv)))

    def tested_on(one: Split) -> Any:
        model = fitted(estimator, X, t, weight, one.train, split["groups"])
        part = take_rows(X, one.test)
        if dense:
            return RegressionEvaluation.of(predictive_of(model, part), t[one.test], **how)
        return center_and_scale(model, part)

    with warnings_once():
        found = in_threads(tested_on, splits, split["n_jobs"])
    at = np.concatenate([one.test for one in splits])
    order = np.argsort(at, kind="stable")
    own = None if weight is None else weight[at[order]]
    folds = fold[at[order]] if len(splits) > 1 else None
    if not dense:
        center, scale = (np.concatenate(part)[order] for part in zip(*found, strict=True))
        return with_residuals_of_others(center, scale, t[at[order]], folds, own, **how)
    joined: dict[str, Any] = {name: np.concatenate([getattr(e, name) for e in found])[order] for name in JOINED}
    return RegressionEvaluation(**joined, **how, weight=own, fold=folds)


def checked_numbers(y: Any, n: int, whose: str) -> Array:
    """Targets (n,) as finite numbers."""
    try:
        t = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(sentence(whose, "targets must be numbers", remedy=str(error))) from error
    if t.shape != (n,) or not np.isfinite(t).all():
        got = t.shape if t.shape != (n,) else f"{t[~np.isfinite(t)][0]}"
        raise DataError(sentence(whose, f"one finite number per row is needed ({n})", got))
    return t


def _as_it_is(estimator: Any, X: Any, y: Any, sample_weight: Any, costs: dict[str, Any]) -> Evaluation:
    """Posteriors of a fitted classifier on test rows."""
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        expected, remedy = 'cv="prefit" needs a fitted classifier', "fit it first, or pass a number of folds"
        raise DomainError(sentence("evaluate", expected, type(estimator).__name__, remedy))
    classes = np.asarray(classes)
    labels = checked_labels(y, number_of_rows(X), type(estimator).__name__, each=labeled_things(X))
    truth = _places(labels, classes)
    tested = _tested(estimator, X, classes)
    return Evaluation(tested.log_posterior, truth, classes, weight=sample_weight, score=tested.score, **costs)


def _places(labels: NDArray[Any], classes: NDArray[Any]) -> Index:
    """The index of each label among the classes; numbers and strings that read alike are the same."""
    names, known = labels.tolist(), classes.tolist()
    place = {str(c): i for i, c in enumerate(known)} | {c: i for i, c in enumerate(known)}
    at = [place.get(label, place.get(str(label), -1)) for label in names]
    if -1 in at:
        row = at.index(-1)
        expected, got = f"labels must be among the classes {known[:12]}", f"{names[row]!r} at row {row}"
        raise DataError(sentence("evaluate", expected, got, "drop such rows"))
    return np.array(at, dtype=np.intp)


def _warn_of_copies(estimator: Any, cv: Any) -> None:
    """Warn that copies of a fitted classifier are evaluated, without its calibration."""
    if getattr(estimator, "classes_", None) is None:
        return
    name = type(estimator).__name__
    if cv is None:
        what = f"this {name} is fitted already, but copies of it, fitted to parts of these rows, are evaluated"
        remedy = 'cv="prefit" evaluates it unchanged, cv=5 evaluates copies without this warning'
        warn(sentence("evaluate", what, remedy=remedy))
    again = getattr(estimator, "_fit_calibrates", False)  # copies learn their own map, from the rows of their fold
    if getattr(estimator, "calibration_", None) is not None and not again:
        what = f"the probabilities of this {name} are calibrated; copies of it are evaluated without calibration"
        warn(sentence("evaluate", what, remedy='cv="prefit" evaluates it unchanged'))


class OutOfFold(NamedTuple):
    """Out-of-fold posteriors: each row under a model that was not trained on it."""

    row: Index  # (m,): row numbers of X, sorted; a row tested repeatedly occurs once
    log_posterior: Array  # (m, C)
    truth: Index  # (m,)
    classes: NDArray[Any]  # (C,)
    weight: Array | None  # (m,)
    fold: Index  # (m,)
    score: Array | None  # (m,): log p(x), of generative models


def out_of_fold(
    estimator: Any, X: Any, y: Any, *, cv: Any = 5, groups: Any = None, time: Any = None, sample_weight: Any = None,
    random_state: Any = 0, n_jobs: int | None = None,
) -> OutOfFold:  # fmt: skip
    """Out-of-fold posteriors of each tested row; parameters as in `evaluate`."""
    X = as_table(X)
    classes, labels, weight = checked_targets(X, y, sample_weight, estimator)
    if isinstance(cv, str) and cv == "leave-one-out" and groups is None and hasattr(estimator, "leave_one_out"):
        return _in_closed_form(estimator, X, classes, labels, weight)
    seed = int(check_random_state(random_state).randint(2**31))
    X, labels, weight, groups, time, copy_of = Copies(X, labels, weight, groups, time).written_out(cv)
    splits = make_splits(X, labels, cv, weight=weight, groups=groups, time=time, seed=seed)
    splits, targets = [split for split in splits if len(split.test)], classes[labels]

    def tested_on(split: Split) -> _Tested:
        model = fitted(estimator, X, targets, weight, split.train, groups, posteriors_only=True)
        return _tested(model, take_rows(X, split.test), classes)

    with warnings_once():
        for split in splits:
            _warn_of_absent(split, labels, classes)
        tested = in_threads(tested_on, splits, n_jobs)
    found = _joined(tested, splits, classes, labels, weight)
    return found if copy_of is None else found._replace(row=copy_of[found.row])


class _Tested(NamedTuple):
    log_posterior: Array
    score: Array | None


def _tested(model: Any, rows: Any, classes: NDArray[Any]) -> _Tested:
    """Posteriors and log p(x) of test rows under a model."""
    score = np.asarray(model.score_samples(rows), dtype=np.float64) if hasattr(model, "score_samples") else None
    return _Tested(log_posteriors(model, rows, classes), score)


def _joined(
    tested: list[_Tested], splits: Sequence[Split], classes: NDArray[Any], labels: Index, weight: Array | None
) -> OutOfFold:
    """All folds as one table, by row where each was tested once."""
    if not splits:
        raise DataError(sentence("evaluate", "at least one row must be tested", "none", "pass more rows"))
    row = np.concatenate([split.test for split in splits])
    fold = np.repeat(np.arange(len(splits)), [len(split.test) for split in splits])
    log_posterior = np.concatenate([t.log_posterior for t in tested])
    known = [t.score for t in tested if t.score is not None]
    score = np.concatenate(known) if len(known) == len(tested) else None
    rows, first, at, tests = np.unique(row, return_index=True, return_inverse=True, return_counts=True)
    return OutOfFold(
        rows, _averaged(log_posterior, at, tests), labels[rows], classes, None if weight is None else weight[rows],
        fold[first], None if score is None else _mean_of(score, at, tests),
    )  # fmt: skip


def _averaged(log_posterior: Array, at: Index, tests: Index) -> Array:
    """Rows tested repeatedly get the mean of their posteriors: each row counts once."""
    if (tests == 1).all():
        return log_posterior[np.argsort(at, kind="stable")]
    total = np.zeros((len(tests), log_posterior.shape[1]))
    np.add.at(total, at, np.exp(log_posterior))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(total / tests[:, None]))


def _mean_of(score: Array, at: Index, tests: Index) -> Array:
    return np.bincount(at, score) / tests


def _in_closed_form(estimator: Any, X: Any, classes: NDArray[Any], labels: Index, weight: Array | None) -> OutOfFold:
    """Leave-one-out in closed form, by an estimator that subtracts a row from its statistics."""
    row = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0)
    X, y = take_rows(X, row), classes[labels[row]]
    w = None if weight is None else weight[row]
    own = clone(estimator)
    log_posterior = own.leave_one_out(X, y) if w is None else own.leave_one_out(X, y, sample_weight=w)
    log_posterior = aligned_to(classes, np.asarray(getattr(own, "classes_", classes)), np.asarray(log_posterior))
    return OutOfFold(row, log_posterior, labels[row], classes, w, equal_rows(X), None)


def _warn_of_absent(split: Split, labels: Index, classes: NDArray[Any]) -> None:
    """Warn of classes that are absent from a training fold: their posterior is 0."""
    absent = np.setdiff1d(np.arange(len(classes)), labels[split.train])
    if len(absent):
        named, one = enumerated("class", map(repr, classes[absent].tolist())), len(absent) == 1
        what = f"{named} {'is' if one else 'are'} absent from the training rows of a fold, where the posterior is 0"
        remedy = "pass more rows, or use fewer folds or other groups"
        warn(sentence("evaluate", what, remedy=remedy))
