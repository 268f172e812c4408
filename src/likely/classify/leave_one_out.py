"""Exact leave-one-out posteriors of generative classifiers by subtraction of statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.classify.bayes import BayesClassifier
from likely.core.arrays import Array, Index
from likely.core.engine import one_blas_thread
from likely.core.row_hashes import row_hashes
from likely.core.warnings import warnings_discarded
from likely.distributions.downdating import Canceled, without
from likely.estimation.class_labels import labels_among
from likely.estimation.foreign_classifiers import fitted, log_posteriors
from likely.estimation.foreign_tables import as_table, take_rows
from likely.estimation.scikit_learn import clone


def leave_one_out(clf: BayesClassifier, X: Any, y: Any, sample_weight: Any = None) -> tuple[Array, Any, Index]:
    """Log-posteriors (n, C) of rows under a classifier fitted to all others; classes; true class indices (n,).

    An integer weight of k is k rows, and one of them is left out; with other weights the whole row is. Complete rows
    need one fit; with missing values, with data-dependent hyperparameters (shrinkage intensities), or where
    subtraction would lose too many digits, each row costs a fit, and with a calibration six.
    """
    X = as_table(X)
    with warnings_discarded(), one_blas_thread():  # warnings are issued by `fit`; and many small solves
        whole = clone(clf).set_params(calibration=None).fit(X, y, sample_weight=sample_weight)
        rows, targets, weight = whole._checked(X, y, sample_weight, reset=False)
        labels = labels_among(targets, whole.classes_, type(clf).__name__)
        weight = np.ones(len(labels)) if weight is None else weight
        out = np.empty((len(labels), len(whole.classes_)))
        for group in _groups_of_equal_rows(rows, labels, weight):
            i = int(group[0])
            unit = 1.0 if weight[i] == round(weight[i]) else float(weight[i])
            if clf.calibration is None:
                out[group] = _log_posterior_without(whole, rows, labels, weight, unit, i)
            else:
                out[group] = _calibrated(clf, X, y, _log_posteriors_without(weight, unit, i), i, whole.classes_)
    return out, whole.classes_, labels


def _log_posteriors_without(weight: Array, unit: float, i: int) -> Array:
    rest = weight.copy()
    rest[i] -= unit
    return rest


def _calibrated(clf: BayesClassifier, X: Any, y: Any, weight: Array, i: int, classes: Any) -> Array:
    """Log-posteriors (1, C) of row i under a classifier fitted and calibrated without it."""
    fresh = fitted(clf, X, np.asarray(y), weight, np.flatnonzero(weight > 0), posteriors_only=True)
    return log_posteriors(fresh, take_rows(X, np.array([i])), classes)


def _log_posterior_without(
    whole: BayesClassifier, rows: Any, labels: Index, weight: Array, unit: float, i: int
) -> Array:
    """Log-posteriors (1, C) of row i under a model of the others."""
    if whole.stats_.complete and not whole.density_.traits.second_pass:
        try:
            return _by_statistics(whole, rows, labels, unit, i)
        except Canceled:
            pass
    return _by_refitting(whole, rows, labels, _log_posteriors_without(weight, unit, i), i)


def _by_statistics(whole: BayesClassifier, rows: Any, labels: Index, unit: float, i: int) -> Array:
    learned, one = whole.learned_model_, slice(i, i + 1)
    rest = without(whole.stats_, learned.collect(rows[one], np.array([unit]), labels[one]))
    return whole.scoring_model_of(whole.refit_once(learned, rest)).log_posterior(rows[one])


def _by_refitting(whole: BayesClassifier, rows: Any, labels: Index, weight: Array, i: int) -> Array:
    keep = weight > 0
    report = whole.run_em(rows[keep], labels[keep], weight[keep])
    others = whole._seen_rows(rows[keep], labels[keep], weight[keep])
    return whole.scoring_model_of(report, others).log_posterior(rows[i : i + 1])


def _groups_of_equal_rows(rows: Any, labels: Index, weight: Array) -> list[Index]:
    """Groups of equal rows of one class with equal weights, which have equal results; else single rows."""
    if (weight != np.round(weight)).any():
        return list(np.arange(len(labels))[:, None])
    which = np.unique(row_hashes(rows) + np.uint64(0x9E3779B9) * labels.astype(np.uint64), return_inverse=True)[1]
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
