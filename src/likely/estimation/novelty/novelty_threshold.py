"""Cross-validated novelty scores of training rows: the reference for novelty thresholds of classifiers.

They are stored as (3, m): novelty score, weight, and the training weight of the model that scored the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask, n_rows
from likely.core.covariates import n_covariates
from likely.core.em_loop import gather
from likely.core.engine import Threads, one_blas_thread
from likely.core.errors import DataError, LikelyError, sentence
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.warnings import warnings_discarded
from likely.distributions.downdating import Canceled, without
from likely.estimation.novelty.duplicate_rows import ranks
from likely.estimation.novelty.novelty_score import missing_entries, novelty_score
from likely.mixture.mixture import Mixture

FOLDS = 10
MANY = 20_000  # number of rows beyond which only some are held out, from statistics that subtract
MANY_WITH_GAPS, SHOWN_WITH_GAPS = (
    2000,
    256,
)  # with missing values each fold is iterative, and each pattern is scored separately
STEPS = 5  # EM steps per fold: a threshold needs no more
PASSES, AGAIN = 8, 12  # share of the fitting cost for one more step of each fold, and maximum number of these
FOLDS_OF_SEQUENCES = 5  # sequences are long and have latent states: fewer folds, continued from the model of all data
KEPT = 4096


class RowsNeeded(NamedTuple):
    """Copies of the training rows that are held out for novelty: all of them, or some of very many."""

    X: Any
    labels: Index
    weight: Any  # None: ones
    total: float | None  # weight of all rows, where these are some of very many


def rows_needed(X: Any, labels: Index, weight: Any, complete: bool) -> RowsNeeded | None:
    """The rows that `left_out` needs, copied: the caller may change its array. None where novelty is not known."""
    if not is_known(X):
        return None
    n = n_rows(X)
    many = n > (MANY if complete else MANY_WITH_GAPS)
    some = _some(X, SHOWN_WITH_GAPS if missing_entries(X[:KEPT]).any() else KEPT) if many else np.arange(n)
    w = None if weight is None else np.array(weight, dtype=np.float64)
    total = None if not many else float(n) if w is None else float(w.sum())
    return RowsNeeded(X[some], labels[some], None if w is None else w[some], total)


def is_known(X: Any) -> bool:
    """Whether the novelty score of such rows is known: of sequences with covariates it is not."""
    return not (isinstance(X, Ragged) and n_covariates(X))


def left_out(clf: Any, needed: RowsNeeded | None) -> Array:
    """Novelty scores of training rows under models fitted without them; fold statistics add, so this is cheap."""
    if needed is None:
        return np.empty((3, 0))
    X, labels, weight, total = needed
    n = n_rows(X)
    w = np.ones(n) if weight is None else weight
    if total is not None:
        scores = _taken_away(clf, X, labels, w) if clf.stats_.complete else None
        return _kept(novelty_score(clf.model_, X, scores), w * (total / w.sum()), total)
    fold = folds(X, FOLDS_OF_SEQUENCES if isinstance(X, Ragged) else FOLDS)
    scores = np.empty(n)
    with (
        warnings_discarded(),
        one_blas_thread(),
    ):  # warnings of a fold need not hold for all rows; and many small solves
        for f, model, learned in _without_each_fold(clf, X, labels, weight, fold):
            scores[fold == f] = scores_of(clf.density_, model, learned, X[fold == f])
    some = _some(X, SHOWN_WITH_GAPS if missing_entries(X).any() else n)
    scale = w.sum() / w[some].sum()
    return _kept(novelty_score(clf.model_, X[some], scores[some]), w[some] * scale, w.sum())


def _some(X: Any, about: int) -> Index:
    """About so many rows, evenly over an order that what they hold decides: the order in which they came may have a
    pattern. Copies of one observation are all of them, or none."""
    return np.flatnonzero(ranks(X) % max(n_rows(X) // about, 1) == 0)


def _taken_away(clf: Any, X: Any, labels: Index, w: Array) -> Array | None:
    """Log-density of some of very many rows under models with these rows subtracted from the statistics, by fold.

    None if statistics do not subtract: then the model itself is used, as the influence of a single row is negligible.
    """
    fold, scores = folds(X), np.empty(n_rows(X))
    try:
        with warnings_discarded(), one_blas_thread():
            for f in np.unique(fold):
                here = fold == f
                rest = without(clf.stats_, clf.learned_model_.collect(X[here], w[here], labels[here]))
                scores[here] = clf.scoring_model_of(clf.refit_once(clf.learned_model_, rest)).log_prob(X[here])
    except (Canceled, LikelyError, TypeError):
        return None
    return scores


def scores_of(density: Any, model: Any, learned: Any, X: Any) -> Array:
    """Log-density log p(x) of rows (n,); −inf where a row has a level that did not occur in training."""
    known, unseen = density.mask_unknown(X, learned)
    out = np.array(model.log_prob(known), dtype=np.float64)
    for mask in unseen.values():
        out[mask] = -np.inf
    return out


def streamed(before: Array, found: Array, weight: Any, learned_from: float) -> Array:
    """Add the novelty scores of a chunk, computed before it is learned; those of a much earlier model are dropped."""
    w = np.ones(len(found)) if weight is None else np.asarray(weight, dtype=np.float64)
    together = np.concatenate([before, _kept(found, w, learned_from)], axis=1)
    together = together[:, together[2] >= 0.5 * learned_from]
    if together.shape[1] > KEPT:  # evenly over time, so that old and new rows keep their shares
        pick = np.linspace(0, together.shape[1] - 1, KEPT).round().astype(int)
        scale = together[1].sum() / together[1, pick].sum()
        together = together[:, pick]
        together[1] *= scale
    return together


def _kept(found: Array, weight: Array, learned_from: float) -> Array:
    """At most KEPT scores, evenly over their order."""
    if len(found) > KEPT:
        order = np.argsort(found, kind="stable")
        pick = order[np.linspace(0, len(found) - 1, KEPT).round().astype(int)]
        found, weight = found[pick], weight[pick] * (weight.sum() / weight[pick].sum())
    return np.stack([found, weight, np.full(len(found), float(learned_from))])


def folds(X: Any, among: int = FOLDS) -> Index:
    """A fold for each row, by an order determined by content; duplicates of one observation stay together."""
    return ranks(X) % among


def _without_each_fold(clf: Any, X: Any, labels: Index, weight: Any, fold: Index) -> Iterator[tuple[int, Mixture, Any]]:
    """Each fold, with the scoring and the fitted model without it; with it, if the others are too few."""
    way = _leave_out_method(clf, X)
    learn, as_learned = way(clf, X, labels, weight, fold), way is _refitted or clf.density_.traits.sketchable
    for f in np.unique(fold):
        try:
            report = learn(f)
            seen = (
                report.model if as_learned else clf.blank_mixture(X[fold != f])
            )  # only the levels of the other folds are known
            yield f, clf.scoring_model_of(report), seen.components
        except LikelyError:
            yield f, clf.model_, clf.learned_model_.components


def _leave_out_method(clf: Any, X: Any) -> Callable[[Any, Any, Index, Any, Index], Callable[[int], FitReport]]:
    """How to fit without a fold: as exactly as is cheap."""
    if isinstance(X, Ragged) and not clf.stats_.complete:
        return _learned_on
    return _added if clf.stats_.complete and clf.density_.traits.sketchable else _refitted


def _added(clf: Any, X: Any, labels: Index, weight: Any, fold: Index) -> Callable[[int], FitReport]:
    """Without a fold: by adding the statistics of the others."""

    def collected(f: int) -> Any:
        here = fold == f
        return clf.learned_model_.collect(X[here], None if weight is None else weight[here], labels[here])

    each = {f: collected(f) for f in np.unique(fold)}

    def without(f: int) -> FitReport:
        rest = [stats for g, stats in each.items() if g != f]
        if not rest:
            raise DataError(sentence("folds", "at least one other fold is needed", "none"))
        return clf.refit_once(clf.learned_model_, sum(rest))

    return without


def _collected(clf: Any, model: Mixture, X: Any, labels: Index, weight: Any, some: Mask) -> Any:
    """Statistics of some rows under a model."""
    data = clf.blocks_of(X[some], labels[some], None if weight is None else weight[some])
    return Threads().total(partial(gather, model, hard=clf.is_hard), data.whole())


def _refitted(clf: Any, X: Any, labels: Index, weight: Any, fold: Index) -> Callable[[int], FitReport]:
    """Without a fold, for missing values or data-dependent edges and levels: a refit to the others.

    Edges and levels of all rows would include the held-out row, unlike a new one. A few EM steps are sufficient.
    """

    def without(f: int) -> FitReport:
        rest = fold != f
        return clf.run_em(X[rest], labels[rest], None if weight is None else weight[rest], STEPS)

    return without


def _learned_on(clf: Any, X: Any, labels: Index, weight: Any, fold: Index) -> Callable[[int], FitReport]:
    """Without a fold, where initialization is expensive: EM steps from the model of all data, by additive statistics.

    It removes the statistics of the fold's own frames. Where convergence was slow, states are ambiguous, and the fold
    still influences the posteriors of the others: then more steps remove most of that, too, for about half of the cost
    of the fit.
    """
    collected = partial(_collected, clf, X=X, labels=labels, weight=weight)
    each = {f: collected(clf.learned_model_, some=fold == f) for f in np.unique(fold)}

    def without(f: int) -> FitReport:
        rest = [stats for g, stats in each.items() if g != f]
        if not rest:
            raise DataError(sentence("folds", "at least one other fold is needed", "none"))
        stats: Any = sum(rest)
        model = clf.learned_model_.refit(stats, clf.prior_)
        for _ in range(min(clf.n_iter_ // PASSES, AGAIN)):
            stats = collected(model, some=fold != f)
            model = model.refit(stats, clf.prior_)
        return FitReport(model, stats, clf.prior_, False, "steps without a fold", [])

    return without


def novelty_scores(clf: Any, rows: Any) -> tuple[Array, dict[str, Any]]:
    """Novelty score (n,) of validated rows, and the rows with unknown levels, by column.

    An unknown level has an infinite score.
    """
    known, unseen = clf.density_.mask_unknown(rows, clf.learned_model_.components)
    out = novelty_score(clf.model_, known)
    for mask in unseen.values():
        out[mask] = np.inf
    return out, unseen


class Why:
    """The reason why a row is novel, as text."""

    def __init__(self, score: Array, limit: float, rate: float, unseen: dict[str, Any]) -> None:
        self.score, self.limit, self.rate, self.unseen = score, limit, rate, unseen

    def __call__(self, i: int) -> str:
        columns = [repr(name) for name, mask in self.unseen.items() if mask[i]]
        if columns:
            return f"a value of {', '.join(columns)} did not occur in training"
        if np.isposinf(self.score[i]):
            return "p(x) is 0: no class has a density here"
        share = f"{100 * self.rate:g} % of training rows are above {self.limit:.3g}"
        return f"p(x) is too small: its novelty score is {self.score[i]:.3g}, {share}"
