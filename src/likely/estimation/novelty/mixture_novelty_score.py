"""Cross-validated novelty scores of rows under mixtures: the reference for novelty thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, n_rows
from likely.core.engine import one_blas_thread
from likely.core.errors import LikelyError
from likely.core.warnings import warn, warnings_discarded
from likely.estimation.foreign_tables import take_rows
from likely.estimation.novelty.novelty_score import novelty_score
from likely.estimation.novelty.novelty_threshold import MANY, _kept, folds, scores_of
from likely.estimation.scikit_learn import clone

STEPS = 25  # EM steps without a fold: a threshold needs no more


def held_out_novelty_scores(density: Any, X: Any, weight: Any = None) -> Array:
    """Novelty score, weight and training weight (3, m) of the rows X that a density was fitted to, by cross-validation.

    Rows are assigned to folds; each is scored by a density refitted to the others. With very many rows the influence of
    a single one is negligible: a share of them is scored by the density itself. Rows whose fold leaves too few others
    are dropped, with a warning: in-sample scores would make the threshold too strict.
    """
    rows = density.mask_unknown(density.validate_rows(X, reset=False), density.learned_model_)[0]
    n = n_rows(rows)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    counted = np.flatnonzero(w > 0)
    if len(counted) > MANY:
        some = counted[:: max(len(counted) // 4096, 1)]
        return _kept(novelty_score(density.model_, rows[some]), w[some] * (w.sum() / w[some].sum()), w.sum())
    scores = np.full(n, np.nan)
    fold = folds(rows)
    with warnings_discarded(), one_blas_thread():  # warnings of a fold need not hold for all rows
        for f in np.unique(fold[counted]):
            mine = np.flatnonzero((fold == f) & (w > 0))
            _score_without(density, X, w, np.flatnonzero((fold != f) & (w > 0)), mine, scores)
    scored = counted[~np.isnan(scores[counted])]
    if len(scored) < len(counted):
        _warn_unscored(len(counted) - len(scored), len(counted))
    found = novelty_score(density.model_, rows[scored], scores[scored]) if len(scored) else np.zeros(0)
    return _kept(found, w[scored], w.sum())


def _score_without(density: Any, X: Any, w: Array, rest: Any, mine: Any, scores: Array) -> None:
    """Scores of `mine` by a density fitted to the `rest`; none if these are too few."""
    if not len(rest):
        return
    settings = density.get_params(deep=False)
    fewer = {name: value for name, value in (("max_iter", STEPS), ("n_init", 1)) if name in settings}
    try:
        other = clone(density).set_params(**fewer).fit(take_rows(X, rest), sample_weight=w[rest])
        rows = other.validate_rows(take_rows(X, mine), reset=False)
    except LikelyError:
        return
    scores[mine] = scores_of(other, other.model_, other.learned_model_, rows)


def _warn_unscored(lost: int, n: int) -> None:
    text = f"{lost:,} of {n:,} rows could not be scored out of sample: the other rows are too few"
    by = "the model's own samples set" if lost == n else "the other rows set"
    warn(f"novelty: {text}; {by} the alarm")
