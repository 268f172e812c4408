"""Every row judged by a classifier that never saw it: statistics add, so one row can be taken away again."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from likely.core.arrays import Array, Index
from likely.core.blocks import Blocks
from likely.core.hashing import row_hashes
from likely.core.learn import Stop, fit, resolve_prior
from likely.estimators.bayes import BayesClassifier
from likely.estimators.labels import owners_among
from likely.models.mixture import Mixture
from likely.models.taking_away import without


def leave_one_out(clf: BayesClassifier, X: Any, y: Any, sample_weight: Any = None) -> tuple[Array, Any, Index]:
    """Log-posteriors (n, C) of rows under a classifier learnt from all the others; classes; true places (n,).

    A row and its copies are one row of more weight, and are left out together: else a copy would vouch for it.
    Without gaps no row is learnt from twice; with gaps each row costs a fit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of the whole has been said by `fit`
        whole = clone(clf).fit(X, y, sample_weight=sample_weight)
    rows, labels, weight = whole._checked(X, y, sample_weight, reset=False)
    owner = owners_among(labels, whole.classes_, type(clf).__name__)
    judged = _by_statistics if whole.stats_.complete else _by_fitting
    out = np.empty((len(owner), len(whole.classes_)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group in _copies(rows, owner):
            out[group] = judged(whole, rows, owner, weight, group)
    return out, whole.classes_, owner


def _by_statistics(whole: BayesClassifier, rows: Any, owner: Index, weight: Any, group: Index) -> Array:
    learnt = whole._learnt
    own = learnt.collect(rows[group], None if weight is None else weight[group], owner[group])
    rest = without(whole.stats_, own)
    prior = resolve_prior(learnt, rest, whole._prior_rule)
    return _finished(whole, learnt.refit(rest, prior), rest, prior).log_posterior(rows[group])


def _by_fitting(whole: BayesClassifier, rows: Any, owner: Index, weight: Any, group: Index) -> Array:
    keep = np.ones(len(owner), bool)
    keep[group] = False
    data = Blocks.of(rows[keep], None if weight is None else weight[keep], owner=owner[keep])
    density = whole.density_
    report = fit(whole._blank(rows[keep]), data, prior=whole._prior_rule, stop=Stop(density.max_iter, density.tol))
    return _finished(whole, report.model, report.stats, report.prior).log_posterior(rows[group])


def _finished(whole: BayesClassifier, learnt: Mixture, stats: Any, prior: Any) -> Mixture:
    """What scores, made of what was learnt."""
    parts = whole.density_._finish(learnt.parts, stats.parts, prior.parts)
    return Mixture.trusted(weights=np.array(whole._final_weights(learnt, stats)), parts=parts)


def _copies(rows: Any, owner: Index) -> list[Index]:
    """Rows grouped so that equal ones of one class stand together."""
    which = np.unique(row_hashes(rows) + np.uint64(0x9E3779B9) * owner.astype(np.uint64), return_inverse=True)[1]
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
