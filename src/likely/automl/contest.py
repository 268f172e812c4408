"""Models compared by cross-validation with the same folds for all, and the rule by which one of them is chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from likely.automl.candidates import Candidate
from likely.classify.calibration.calibration_maps import Calibration
from likely.classify.calibration.recalibration import Recalibration, recalibrated
from likely.core.arrays import Array, Index
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.warnings import tell as tell_of
from likely.core.warnings import unheard
from likely.decision.cost import Cost
from likely.estimation.foreign_classifiers import checked_targets, fitted, log_posteriors, weight_argument
from likely.estimation.foreign_tables import take_rows
from likely.estimation.parallel import in_threads
from likely.metrics.confidence_intervals import Mean, mean
from likely.metrics.evaluation import Evaluation
from likely.model_selection.splits import Split, fold_of, make_splits


@dataclass(frozen=True)
class Field:
    """The rows on which all compete: who trains, who is tested, and what mistakes cost."""

    X: Any  # (n, d) a data frame
    classes: NDArray[Any]  # (C,)
    labels: Index  # (n,) place of each row's label among the classes
    splits: list[Split]
    cost: Any = None
    reject_cost: float | None = None
    weight: Array | None = None  # (n,) for learning
    class_prior: Array | None = None  # (C,) what is expected in use, where that is not as in the sample
    calibrate: bool = True  # soften posteriors where out-of-fold ones say so
    cluster: Index | None = None  # (n,) rows of one cluster are no independent witnesses

    @classmethod
    def of(cls, X: Any, classes: Any, labels: Index, cv: Any, *, groups: Any = None, time: Any = None, seed: int = 0,
           weight: Array | None = None, **more: Any) -> Field:  # fmt: skip
        """Rows with splits as `cv` says (see `make_splits`)."""
        splits = make_splits(X, labels, cv, weight=weight, groups=groups, time=time, seed=seed)
        splits = [split for split in splits if len(split.test) and len(split.train)]
        if not splits:
            raise DataError(sentence("cross-validation", "some rows must be left for testing", "none"))
        cluster = None if groups is None else np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]
        return cls(X, np.asarray(classes), labels, splits, weight=weight, cluster=cluster, **more)

    @property
    def fold(self) -> Index:
        """The split that tests each row (n,), −1 where none does."""
        fold = fold_of(self.splits, len(self.labels))
        assert fold is not None  # `make_splits` tests no row twice
        return fold

    @property
    def tested(self) -> Index:
        """The rows that are tested, in order."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def costs(self) -> Cost:
        """The table of all actions: classes, further actions, and refusing where it has a cost."""
        cost = Cost.of(self.cost, self.classes)
        return cost if self.reject_cost is None else cost.with_refusal(self.reject_cost)

    @property
    def judging(self) -> Array | None:
        """Weights (n,) under which the classes are as frequent as they are expected in use."""
        if self.class_prior is None:
            return self.weight
        weight = np.ones(len(self.labels)) if self.weight is None else self.weight
        share = np.bincount(self.labels, weight, len(self.classes)) / weight.sum()
        return weight * (self.class_prior / share)[self.labels]

    def posteriors(self, model: Any, X: Any, split: Split) -> Array:
        """log p(c | x) (n, C) of a model of that split, under the class probabilities expected in use."""
        found = log_posteriors(model, X, self.classes)
        if self.class_prior is None:
            return found
        weight = None if self.weight is None else self.weight[split.train]
        share = np.bincount(self.labels[split.train], weight, len(self.classes))
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(share > 0, np.log(self.class_prior) - np.log(share / share.sum()), 0.0)
        moved = found + shift
        return moved - np.logaddexp.reduce(moved, axis=1, keepdims=True)

    def evaluation(self, log_posterior: Array) -> Evaluation:
        """What posteriors (n, C) are worth on the tested rows."""
        at, fold, weight = self.tested, self.fold, self.judging
        return Evaluation(
            log_posterior[at], self.labels[at], self.classes, cost=self.cost, reject_cost=self.reject_cost,
            weight=None if weight is None else weight[at], fold=fold[at] if len(self.splits) > 1 else None,
            cluster=None if self.cluster is None else self.cluster[at],
        )  # fmt: skip


class Standing(NamedTuple):
    """How one model fared beside the others.

    `behind` is the paired difference, row by row, of the first measure of the rule to the best of those that may win.
    `loss_behind` is that of the log-loss to the least of those that are tied in the first measure.
    """

    candidate: Candidate
    evaluation: Evaluation | None
    seconds: float
    failure: str = ""
    behind: Mean | None = None
    loss_behind: Mean | None = None  # of those tied in the first measure
    ties: tuple[str, ...] = ()  # measures in which it lies within one standard error of the best, in order
    calibration: Recalibration | None = None
    gain: float = 0.0  # of log-loss, in nats per row, by the calibration

    @property
    def cost(self) -> float:
        """Mean cost of what was decided; infinite where the model failed."""
        return self.by("cost")

    def by(self, measure: str) -> float:
        """The mean of a measure (see `MEASURES`); infinite where the model failed."""
        if self.evaluation is None:
            return np.inf
        e = self.evaluation
        value = e.error.value if measure == "error" else (e.decision_cost if measure == "cost" else e.log_loss).value
        return float(value)


class Contest(NamedTuple):
    """All standings, the best in the first measure first, and the one that was chosen."""

    standings: tuple[Standing, ...]
    winner: Standing
    best: Standing  # in the first measure, of those that may win
    truest: Standing  # with the least log-loss of those tied in the first measure
    choose_by: str = "cost"

    @property
    def rival(self) -> Standing | None:
        """The best model that takes part for comparison only."""
        found = [s for s in self.standings if s.candidate.rival and s.evaluation is not None]
        return found[0] if found else None

    @property
    def next(self) -> Standing | None:
        """The best of the others that could have won."""
        found = [
            s for s in self.standings if s is not self.winner and not s.candidate.rival and s.evaluation is not None
        ]
        return found[0] if found else None


def compete(
    field: Field, candidates: Sequence[Candidate], *, choose_by: str = "cost", jobs: int | None = None,
    tell: Callable[[Candidate], None] = lambda candidate: None,
) -> Contest:  # fmt: skip
    """Fit every model in every split, in parallel, and choose (see `judged`); `tell` hears of each fit that is done.

    A model that fails is shown with its reason; it does not end the contest.
    """
    _refuse_unknown(choose_by)
    tasks = [(candidate, split) for candidate in candidates for split in field.splits]

    def run(task: tuple[Candidate, Split]) -> _Heat:
        done = _heat(field, *task)
        tell(task[0])
        return done

    size = len(field.splits)
    with silence():
        heats = in_threads(run, tasks, jobs)
        of_candidate = [(candidate, heats[i * size : (i + 1) * size]) for i, candidate in enumerate(candidates)]
        standings = in_threads(lambda pair: _joined(field, *pair), of_candidate, jobs)
    return judged(field, standings, choose_by)


MEASURES: dict[str, Callable[[Evaluation], Array]] = {  # by which models may be chosen: a value for each row (n,)
    "cost": lambda e: e.costs.table[e.decided, e.truth],
    "log-loss": lambda e: -e.log_posterior_of_truth,
    "error": lambda e: e.wrong.astype(np.float64),
}


RESOLUTION = 1e-3  # nats of log-loss per row that are worth nothing


def judged(field: Field, standings: Sequence[Standing], choose_by: str = "cost") -> Contest:
    """Choose the simplest model of those that cannot be told from the best, first by `choose_by`, then by log-loss.

    1. Of all models that may win, keep those whose mean of `choose_by` ("cost", "log-loss" or "error") exceeds the
       least by no more than one standard error of the difference. The difference is paired: row by row.
    2. Of these, keep those whose log-loss exceeds the least of these by no more than one standard error, paired too,
       or by no more than 0.001 nats: twins may be told apart by less, which is worth no richer model.
    3. Of these, take the simplest: the one of the lowest rank.
    """
    _refuse_unknown(choose_by)
    able = [s for s in standings if s.evaluation is not None and not s.candidate.rival]
    if not able:
        reasons = "; ".join(f"{s.candidate.key}: {s.failure or NOT_OURS}" for s in standings)
        raise DataError(sentence("fit", "at least one model must learn these data", reasons))
    best = min(able, key=lambda s: (s.by(choose_by), s.candidate.rank))
    told = [s._replace(behind=_behind(field, s, best, choose_by)) for s in standings]
    told = [s._replace(ties=(choose_by,)) if _tied(s.behind) and not s.candidate.rival else s for s in told]
    near = [s for s in told if s.ties]
    truest = min(near, key=lambda s: (s.by("log-loss"), s.candidate.rank))
    told = [s._replace(loss_behind=_behind(field, s, truest, "log-loss")) if s.ties else s for s in told]
    as_true = [id(s.candidate) for s in told if _tied(s.loss_behind, RESOLUTION)]
    told = [
        s._replace(ties=tuple(dict.fromkeys((*s.ties, "log-loss")))) if id(s.candidate) in as_true else s for s in told
    ]
    winner = min((s for s in told if id(s.candidate) in as_true), key=lambda s: s.candidate.rank)
    order = sorted(told, key=lambda s: (s.by(choose_by), s.candidate.rank))
    best, truest = (next(s for s in told if s.candidate is one.candidate) for one in (best, truest))
    return Contest(tuple(order), winner, best, truest, choose_by)


NOT_OURS = "cannot be written to a model file"


def _refuse_unknown(choose_by: str) -> None:
    if choose_by not in MEASURES:
        raise DomainError(sentence("compete", f"choose_by must be one of {', '.join(MEASURES)}", repr(choose_by)))


def _behind(field: Field, standing: Standing, best: Standing, measure: str) -> Mean | None:
    """Mean paired difference to the best with its standard error, over clusters where rows come in some."""
    if standing.evaluation is None or best.evaluation is None:
        return None
    own, least = MEASURES[measure](standing.evaluation), MEASURES[measure](best.evaluation)
    with np.errstate(invalid="ignore"):
        more = np.where(own == least, 0.0, own - least)  # two truths that were held impossible are level
    cluster = None if field.cluster is None else field.cluster[field.tested]
    found = mean(more, best.evaluation.weight, cluster)
    over = found.se_folds
    return found if over is None or not np.isfinite(over) else found._replace(se=over)


def _tied(behind: Mean | None, resolution: float = 0.0) -> bool:
    """Whether a difference to the best lies within one standard error, or below what is worth telling apart.

    Where one row alone is decided otherwise, difference and error are 1/n: a tie, whatever the last bit says.
    """
    if behind is None or not np.isfinite(behind.value):
        return False
    return bool(behind.value <= max(behind.se * (1 + 1e-9), resolution))


class _Heat(NamedTuple):
    log_posterior: Array | None
    rows: Index
    seconds: float
    failure: str


def _heat(field: Field, candidate: Candidate, split: Split) -> _Heat:
    """One model in one split."""
    start = perf_counter()
    try:
        model = learned(candidate.estimator, field, split)
        found = field.posteriors(model, take_rows(field.X, split.test), split)
        return _Heat(found, split.test, perf_counter() - start, "")
    except Exception as error:  # whatever a model trips over, the others go on
        return _Heat(None, split.test, perf_counter() - start, _words(error))


def learned(estimator: Any, field: Field, split: Split) -> Any:
    """A fresh copy, fitted to the training rows of a split."""
    fresh, rows = clone(estimator), split.train
    if hasattr(fresh, "_alarms"):  # alarms of novelty, two thirds of a fit's time, are not asked for here
        fresh.__dict__["_alarms"] = False
    name = None if field.weight is None else weight_argument(fresh)
    weights = {} if field.weight is None or name is None else {name: field.weight[rows]}
    return fresh.fit(take_rows(field.X, rows), field.classes[field.labels[rows]], **weights)


def from_all_rows(estimator: Any, field: Field) -> Any:
    """A fresh copy, fitted to all rows, with the class probabilities expected in use."""
    fresh = clone(estimator)
    if field.class_prior is not None:
        fresh.set_params(class_prior=field.class_prior.tolist())
    return fitted(fresh, field.X, field.classes[field.labels], field.weight)


def _joined(field: Field, candidate: Candidate, heats: Sequence[_Heat]) -> Standing:
    seconds = sum(heat.seconds for heat in heats)
    failure = next((heat.failure for heat in heats if heat.log_posterior is None), "")
    if failure:
        return Standing(candidate, None, seconds, failure)
    posterior = np.zeros((len(field.labels), len(field.classes)))
    for heat in heats:
        posterior[heat.rows] = heat.log_posterior
    try:
        return _measured(field, candidate, field.evaluation(posterior), seconds)
    except DataError as error:
        return Standing(candidate, None, seconds, _words(error))


def _measured(field: Field, candidate: Candidate, e: Evaluation, seconds: float) -> Standing:
    """A standing with posteriors that were calibrated where that helps; rivals have been, frequencies need none."""
    if candidate.rival or not field.calibrate or candidate.key == "frequencies":
        return Standing(candidate, e, seconds)

    paid = MEASURES["cost"]

    def as_cheap(log_posterior: Array) -> bool:  # truer on average may be worse where decisions are made
        dearer = mean(paid(e.replace(log_posterior=log_posterior)) - paid(e), e.weight)
        return _tied(dearer)

    found = recalibrated(e.log_posterior, e.truth, e.fold, e.weight, as_cheap, isinstance(field.X, Ragged))
    if found is None:
        return Standing(candidate, e, seconds)
    after = e.replace(log_posterior=found.log_posterior)
    gain = float(e.log_loss.value - after.log_loss.value)
    return Standing(candidate, after, seconds, calibration=found, gain=gain)


def calibration_of(estimator: Any, X: Any, y: Any, weight: Any = None, cv: Any = 5) -> Calibration | None:
    """The map that out-of-fold posteriors of a model teach, as a contest learns it; None where none helps."""
    classes, labels, weight = checked_targets(X, y, weight, estimator)
    costs: dict[str, Any] = {name: getattr(estimator, name, None) for name in ("cost", "reject_cost")}
    field = Field.of(X, classes, labels, cv, weight=weight, **costs)
    try:
        found = compete(field, [Candidate("own", "the model", "", 0, estimator)]).winner.calibration
    except DataError as error:  # what a part of the rows cannot teach, all of them may
        tell_of(sentence(type(estimator).__name__, "posteriors are not calibrated", remedy=str(error).rstrip(".")))
        return None
    return None if found is None else found.map


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:199] + "…"
    return text if isinstance(error, DataError) else f"{type(error).__name__}: {text}"


@contextmanager
def silence() -> Iterator[None]:
    """Warnings of folds are not shown: what a fold lacks, the whole may have, and the winner's own fit tells of it.

    Recording holds whatever order threads open and close their own records in: none was opened before this one.
    """
    with warnings.catch_warnings(record=True), unheard():
        warnings.simplefilter("ignore")
        yield
