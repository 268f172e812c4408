"""Surprises of rows that a classifier had not learnt from: what an alarm for novelty is set by.

They are kept as (3, m): surprise, weight, and how much the classifier had learnt from when it was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, n_rows
from likely.core.blocks import Blocks
from likely.core.engine import one_blas_thread
from likely.core.hashing import row_hashes
from likely.core.learn import Stop, fit, resolve_prior
from likely.core.notes import unheard
from likely.errors import DataError, LikelyError, sentence
from likely.estimators.novelty import missing_entries, surprise
from likely.models.mixture import Mixture

FOLDS = 10
MANY = 20_000  # rows beyond which a model hardly knows any one of them: no folds
MANY_WITH_GAPS, SHOWN_WITH_GAPS = 2000, 256  # gaps make each fold an iteration, and each pattern a question of its own
STEPS = 5  # of EM for a fold, from where the whole has settled
KEPT = 4096


def left_out(clf: Any, X: Any, owner: Index, weight: Any) -> Array:
    """Surprises of training rows under models that had not seen them; fold statistics add, so this is cheap."""
    n, whole = n_rows(X), clf.stats_.complete
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    if n > (MANY if whole else MANY_WITH_GAPS):
        step = max(n // (SHOWN_WITH_GAPS if missing_entries(X[:KEPT]).any() else KEPT), 1)
        return _kept(surprise(clf.model_, X[::step]), w[::step] * (w.sum() / w[::step].sum()), w.sum())
    fold = _folds(X)
    scores = np.empty(n)
    with unheard(), one_blas_thread():  # what a fold lacks, the whole may have; and many small solves
        for f, model in _without_each_fold(clf, X, owner, weight, fold):
            scores[fold == f] = model.log_prob(X[fold == f])
    some = slice(None, None, max(n // SHOWN_WITH_GAPS, 1) if missing_entries(X).any() else 1)
    scale = w.sum() / w[some].sum()
    return _kept(surprise(clf.model_, X[some], scores[some]), w[some] * scale, w.sum())


def streamed(before: Array, found: Array, weight: Any, learnt_from: float) -> Array:
    """Surprises of a chunk, taken before it was learnt, join the others; those of a much younger model go."""
    w = np.ones(len(found)) if weight is None else np.asarray(weight, dtype=np.float64)
    together = np.concatenate([before, _kept(found, w, learnt_from)], axis=1)
    together = together[:, together[2] >= 0.5 * learnt_from]
    if together.shape[1] > KEPT:  # evenly over time, so that old and new keep their shares
        pick = np.linspace(0, together.shape[1] - 1, KEPT).round().astype(int)
        scale = together[1].sum() / together[1, pick].sum()
        together = together[:, pick]
        together[1] *= scale
    return together


def _kept(found: Array, weight: Array, learnt_from: float) -> Array:
    """At most KEPT surprises, evenly over their order."""
    if len(found) > KEPT:
        order = np.argsort(found, kind="stable")
        pick = order[np.linspace(0, len(found) - 1, KEPT).round().astype(int)]
        found, weight = found[pick], weight[pick] * (weight.sum() / weight[pick].sum())
    return np.stack([found, weight, np.full(len(found), float(learnt_from))])


def _folds(X: Any) -> Index:
    """A fold for each row, by what it holds; copies go to one after the other."""
    hashes = row_hashes(X)
    order = np.argsort(hashes, kind="stable")
    first = np.r_[True, hashes[order][1:] != hashes[order][:-1]]
    copy_number = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = ((hashes[order] % np.uint64(FOLDS)).astype(np.intp) + copy_number) % FOLDS
    return fold


def _without_each_fold(clf: Any, X: Any, owner: Index, weight: Any, fold: Index) -> Any:
    learnt, folds = clf._learnt, np.unique(fold)
    if not clf.stats_.complete:
        for f in folds:
            yield f, _or_whole(clf, partial(_iterated, clf, X, owner, weight, fold != f))
        return
    each = {
        f: learnt.collect(X[fold == f], None if weight is None else weight[fold == f], owner[fold == f]) for f in folds
    }
    for f in folds:
        rest = [stats for g, stats in each.items() if g != f]
        yield f, _or_whole(clf, partial(_finished, clf, learnt, rest))


def _or_whole(clf: Any, learn: Callable[[], Mixture]) -> Mixture:
    """The model of the other folds; where they hold too little to learn from, that of all rows."""
    try:
        return learn()
    except LikelyError:
        return clf.model_


def _finished(clf: Any, learnt: Mixture, rest: list[Any]) -> Mixture:
    """What these statistics alone would have given; a copy of the density finishes, for it may note how."""
    if not rest:
        raise DataError(sentence("folds", "at least one other fold is needed", "none"))
    stats: Any = sum(rest)
    prior = resolve_prior(learnt, stats, clf._prior_rule)
    model = learnt.refit(stats, prior)
    parts = copy(clf.density_)._finish(model.parts, stats.parts, prior.parts)
    return Mixture.trusted(weights=np.array(clf._final_weights(model, stats)), parts=parts)


def _iterated(clf: Any, X: Any, owner: Index, weight: Any, keep: Any) -> Mixture:
    """A few steps of EM on some of the rows."""
    data = Blocks.of(X[keep], None if weight is None else weight[keep], owner=owner[keep])
    report = fit(clf._blank(X[keep]), data, prior=clf._prior_rule, stop=Stop(STEPS, clf.density_.tol))
    parts = copy(clf.density_)._finish(report.model.parts, report.stats.parts, report.prior.parts)
    return Mixture.trusted(weights=np.array(clf._final_weights(report.model, report.stats)), parts=parts)
