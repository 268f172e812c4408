"""Surprises of rows under mixtures that had not learned from them: what an alarm for unlikely rows is set by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from likely.core.arrays import Array, n_rows
from likely.core.engine import one_blas_thread
from likely.core.errors import LikelyError
from likely.core.warnings import tell, unheard
from likely.estimation.foreign_tables import take_rows
from likely.estimation.novelty.novelty_score import surprise
from likely.estimation.novelty.novelty_threshold import MANY, _kept, folds, scores_of

STEPS = 25  # of EM without a fold: an alarm needs no more


def left_out_surprises(density: Any, X: Any, weight: Any = None) -> Array:
    """Surprise, weight and what was learned from (3, m) of the rows X that a density was fitted to.

    Rows are dealt into folds; each is scored by a density that was learned anew from the others. Of very many rows the
    density hardly knows any one: there a share of them is scored as it is. Rows whose fold leaves too little to learn
    from are left out, and that is said: scores by a density that knows them would make the alarm too sharp.
    """
    rows = density._known(density._rows(X, reset=False), density._learned)[0]
    n = n_rows(rows)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    counted = np.flatnonzero(w > 0)
    if len(counted) > MANY:
        some = counted[:: max(len(counted) // 4096, 1)]
        return _kept(surprise(density.model_, rows[some]), w[some] * (w.sum() / w[some].sum()), w.sum())
    scores = np.full(n, np.nan)
    fold = folds(rows)
    with unheard(), one_blas_thread():  # what a fold lacks, the whole may have
        for f in np.unique(fold[counted]):
            mine = np.flatnonzero((fold == f) & (w > 0))
            _score_without(density, X, w, np.flatnonzero((fold != f) & (w > 0)), mine, scores)
    scored = counted[~np.isnan(scores[counted])]
    if len(scored) < len(counted):
        _say_so(len(counted) - len(scored), len(counted))
    found = surprise(density.model_, rows[scored], scores[scored]) if len(scored) else np.zeros(0)
    return _kept(found, w[scored], w.sum())


def _score_without(density: Any, X: Any, w: Array, rest: Any, mine: Any, scores: Array) -> None:
    """Scores of `mine` by a density learned from the `rest`; where these hold too little, none."""
    if not len(rest):
        return
    settings = density.get_params(deep=False)
    fewer = {name: value for name, value in (("max_iter", STEPS), ("n_init", 1)) if name in settings}
    try:
        other = clone(density).set_params(**fewer).fit(take_rows(X, rest), sample_weight=w[rest])
        rows = other._rows(take_rows(X, mine), reset=False)
    except LikelyError:
        return
    scores[mine] = scores_of(other, other.model_, other._learned, rows)


def _say_so(lost: int, n: int) -> None:
    text = f"{lost:,} of {n:,} rows could not be scored by a model that lacks them: the others hold too little"
    by = "the model's own draws set" if lost == n else "the other rows set"
    tell(f"novelty: {text}; {by} the alarm")
