"""Model comparison by cross-validation with common folds, and the selection rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.automl.candidates import Candidate
from likely.classify.calibration.calibration_maps import Calibration
from likely.classify.calibration.recalibration import Recalibration, applied, recalibrated
from likely.core.arrays import Array, Index
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.core.warnings import warn as tell_of
from likely.core.warnings import warnings_discarded
from likely.decision.cost import Cost
from likely.estimation.foreign_classifiers import checked_targets, fitted, log_posteriors, weight_argument
from likely.estimation.foreign_tables import take_rows
from likely.estimation.parallel import in_threads
from likely.estimation.scikit_learn import clone
from likely.metrics.confidence_intervals import Mean, is_tied, mean, paired_difference
from likely.metrics.evaluation import Evaluation
from likely.model_selection.splits import Split, fold_of, make_splits


class Comparable:
    """Base of the data of a comparison: what is tested, by which models, and how a model of a split answers.

    `ComparisonTask` is of classes, `RegressionTask` of numbers. A kind defines what estimators are fitted to
    (`targets`), what is kept of each tested row (`answers`), the result of a candidate (`result`), the loss of answers
    (`losses_of`), and its measures: `MEASURES` by name, of which `tie_breaker` decides among those tied in the first.
    """

    X: Any
    splits: list[Split]
    weight: Array | None
    cluster: Index | None
    unit: str
    measures: ClassVar[tuple[str, ...]]  # the first is the default criterion
    tie_breaker: ClassVar[str]

    def __len__(self) -> int:
        """Number of rows n."""
        return len(self.targets)

    @property
    def targets(self) -> Any:
        """What estimators are fitted to (n,)."""
        raise NotImplementedError  # abstract

    @property
    def judging(self) -> Array | None:
        """Weights (n,) of the tested rows."""
        return self.weight

    def answers(self, model: Any, X: Any, split: Split) -> Array:
        """What is kept of rows X under a model of that split (m, k)."""
        raise NotImplementedError  # abstract

    def result(self, candidate: Candidate, answers: Array, seconds: float) -> CandidateResult:
        """The result of a candidate with these answers (n, k)."""
        raise NotImplementedError  # abstract

    def losses_of(self, answers: Array, rows: Index, calibration: Any) -> Array:
        """The loss of the decisions about these rows (m,)."""
        raise NotImplementedError  # abstract

    def for_all_rows(self, estimator: Any) -> Any:
        """A clone with the settings that the final model has beyond the compared ones."""
        return clone(estimator)

    @property
    def fold(self) -> Index:
        """The split that tests each row (n,), −1 for none."""
        fold = fold_of(self.splits, len(self))
        assert fold is not None  # no row is tested twice
        return fold

    @property
    def tested(self) -> Index:
        """The tested rows, in order."""
        return np.flatnonzero(self.fold >= 0)


def tested_splits(X: Any, labels: Index, cv: Any, **how: Any) -> list[Split]:
    """The splits of `cv` (see `make_splits`) that train and test some rows."""
    splits = [split for split in make_splits(X, labels, cv, **how) if len(split.test) and len(split.train)]
    if not splits:
        raise DataError(sentence("cross-validation", "some rows must be left for testing", "none"))
    return splits


def clusters_of(groups: Any) -> Index | None:
    """The number of each row's group (n,); None without groups."""
    return None if groups is None else np.unique(np.asarray(groups).astype(str), return_inverse=True)[1]


@dataclass(frozen=True)
class ComparisonTask(Comparable):
    """The data of a comparison of classifiers: rows or sequences, splits, weights and costs."""

    X: Any  # (n, d) a data frame, or n sequences
    classes: NDArray[Any]  # (C,)
    labels: Index  # (n,) class index of each row
    splits: list[Split]
    cost: Any = None
    reject_cost: float | None = None
    weight: Array | None = None  # (n,) training weights
    class_prior: Array | None = None  # (C,) class priors in use, if they differ from the sample
    calibrate: bool = True  # whether to calibrate posteriors
    cluster: Index | None = None  # (n,) rows of one cluster are not independent
    unit: str = "row"  # what is classified: "row", "sequence" or "recording"

    @classmethod
    def of(cls, X: Any, classes: Any, labels: Index, cv: Any, *, groups: Any = None, time: Any = None, seed: int = 0,
           weight: Array | None = None, **more: Any) -> ComparisonTask:  # fmt: skip
        """Rows with the splits of `cv` (see `make_splits`)."""
        splits = tested_splits(X, labels, cv, weight=weight, groups=groups, time=time, seed=seed)
        cluster = clusters_of(groups)
        unit = more.pop("unit", "sequence" if isinstance(X, Ragged) else "row")
        return cls(X, np.asarray(classes), labels, splits, weight=weight, cluster=cluster, unit=unit, **more)

    measures = ("cost", "log-loss", "error")
    tie_breaker = "log-loss"

    @property
    def targets(self) -> NDArray[Any]:
        """The label of each row (n,)."""
        return self.classes[self.labels]

    @property
    def costs(self) -> Cost:
        """The cost table of all actions: classes, further actions, and rejection if it has a cost."""
        cost = Cost.of(self.cost, self.classes)
        return cost if self.reject_cost is None else cost.with_reject(self.reject_cost)

    @property
    def judging(self) -> Array | None:
        """Weights (n,) with the class frequencies expected in use."""
        if self.class_prior is None:
            return self.weight
        weight = np.ones(len(self.labels)) if self.weight is None else self.weight
        share = np.bincount(self.labels, weight, len(self.classes)) / weight.sum()
        return weight * (self.class_prior / share)[self.labels]

    def answers(self, model: Any, X: Any, split: Split) -> Array:
        """log p(c | x) (n, C) of a model of that split, under the class priors in use."""
        found = log_posteriors(model, X, self.classes)
        if self.class_prior is None:
            return found
        weight = None if self.weight is None else self.weight[split.train]
        share = np.bincount(self.labels[split.train], weight, len(self.classes))
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(share > 0, np.log(self.class_prior) - np.log(share / share.sum()), 0.0)
        moved = found + shift
        return moved - np.logaddexp.reduce(moved, axis=1, keepdims=True)

    def result(self, candidate: Candidate, answers: Array, seconds: float) -> CandidateResult:
        """The result of a candidate, with posteriors calibrated where that helps."""
        return _measured(self, candidate, self.evaluation(answers), seconds)

    def losses_of(self, answers: Array, rows: Index, calibration: Any) -> Array:
        """The cost of the decisions about these rows (m,)."""
        costs = self.costs
        return np.asarray(costs.table[costs.decide(applied(calibration, answers)), self.labels[rows]])

    def for_all_rows(self, estimator: Any) -> Any:
        """A clone with the class priors in use."""
        fresh = clone(estimator)
        return fresh if self.class_prior is None else fresh.set_params(class_prior=self.class_prior.tolist())

    def evaluation(self, log_posterior: Array) -> Evaluation:
        """The evaluation of posteriors (n, C) on the tested rows."""
        at, fold, weight = self.tested, self.fold, self.judging
        return Evaluation(
            log_posterior[at], self.labels[at], self.classes, cost=self.cost, reject_cost=self.reject_cost,
            weight=None if weight is None else weight[at], fold=fold[at] if len(self.splits) > 1 else None,
            cluster=None if self.cluster is None else self.cluster[at], unit=self.unit,
        )  # fmt: skip


class CandidateResult(NamedTuple):
    """The result of one model in the comparison.

    `difference` is the paired difference (over rows) of the first measure to the best of the eligible models.
    `loss_difference` is that of the log-loss to the smallest of those tied in the first measure.
    """

    candidate: Candidate
    evaluation: Any  # an Evaluation, or a RegressionEvaluation; None if it failed
    seconds: float
    failure: str = ""
    difference: Mean | None = None
    loss_difference: Mean | None = None  # of those tied in the first measure
    ties: tuple[str, ...] = ()  # measures in which it is within one standard error of the best, in order
    calibration: Recalibration | None = None
    gain: float = 0.0  # gain of log-loss by the calibration, in nats per row
    map: Any = None  # calibration map of the saved model

    @property
    def cost(self) -> float:
        """Mean cost of the decisions; infinite if the model failed."""
        return self.by("cost")

    def by(self, measure: str) -> float:
        """The mean of a measure (see `MEASURES`); infinite if the model failed."""
        return np.inf if self.evaluation is None else float(MEANS[measure](self.evaluation).value)


class CandidateComparison(NamedTuple):
    """All results, the best in the first measure first, and the selected model."""

    results: tuple[CandidateResult, ...]
    winner: CandidateResult
    best: CandidateResult  # the best in the first measure, of the eligible models
    truest: CandidateResult  # the smallest log-loss of those tied in the first measure
    criterion: str = "cost"
    tie_breaker: str = "log-loss"
    with_baselines: CandidateResult | None = None  # what the rule would select if baselines were eligible

    @property
    def unit(self) -> str:
        """What is classified."""
        return str(self.winner.evaluation.unit)

    @property
    def baseline(self) -> CandidateResult | None:
        """The best model that is compared but not eligible."""
        found = [s for s in self.results if s.candidate.baseline and s.evaluation is not None]
        return found[0] if found else None

    @property
    def next(self) -> CandidateResult | None:
        """The best of the other eligible models."""
        found = [
            s for s in self.results if s is not self.winner and not s.candidate.baseline and s.evaluation is not None
        ]
        return found[0] if found else None


def compare_candidates(
    field: Comparable, candidates: Sequence[Candidate], *, criterion: str | None = None, jobs: int | None = None,
    callback: Callable[[Candidate], None] = lambda candidate: None,
) -> CandidateComparison:  # fmt: skip
    """Fit every model in every split, in parallel, and select one (see `ranked`); `callback` is called after each fit.

    A model that fails is listed with its reason; the others are still compared.
    """
    criterion = _known(criterion, field)
    tasks = [(candidate, split) for candidate in candidates for split in field.splits]

    def run(task: tuple[Candidate, Split]) -> _SplitResult:
        done = _run_split(field, *task)
        callback(task[0])
        return done

    size = len(field.splits)
    with silence():
        heats = in_threads(run, tasks, jobs)
        of_candidate = [(candidate, heats[i * size : (i + 1) * size]) for i, candidate in enumerate(candidates)]
        results = in_threads(lambda pair: _joined(field, *pair), of_candidate, jobs)
    return ranked(field, results, criterion)


MEASURES: dict[str, Callable[[Any], Array]] = {  # selection measures: one value per row (n,)
    "cost": lambda e: e.costs.table[e.decided, e.truth],
    "log-loss": lambda e: -e.log_posterior_of_truth,
    "error": lambda e: e.wrong.astype(np.float64),
    "loss": lambda e: e.losses,
    "log-score": lambda e: -e.log_prob,
    "interval-score": lambda e: e.interval_scores,
}
MEANS: dict[str, Callable[[Any], Any]] = {  # their means
    "cost": lambda e: e.decision_cost,
    "log-loss": lambda e: e.log_loss,
    "error": lambda e: e.error,
    "loss": lambda e: e.mean_loss,
    "log-score": lambda e: e.log_score,
    "interval-score": lambda e: e.interval_score,
}


RESOLUTION = 1e-3  # negligible difference of log-loss, in nats per row


def ranked(field: Comparable, results: Sequence[CandidateResult], criterion: str | None = None) -> CandidateComparison:
    """Select the simplest of the models that are tied with the best, first by `criterion`, then by log-loss.

    1. Of all eligible models, keep those whose mean of `criterion` ("cost", "log-loss" or "error"; of numbers "loss",
       "log-score" or "interval-score") exceeds the smallest by no more than one standard error of the paired
       difference over rows.
    2. Of these, keep those whose log-loss (log score) exceeds the least of these by no more than one standard error,
       paired too, or by no more than 0.001 nats: smaller differences do not justify a more complex model.
    3. Of these, take the simplest: the one of the lowest rank.

    Baselines are compared but not eligible; `with_baselines` is what the rule selects if they are.
    """
    criterion = _known(criterion, field)
    able = [s for s in results if s.evaluation is not None and not s.candidate.baseline]
    if not able:
        reasons = "; ".join(f"{s.candidate.key}: {s.failure or NOT_OURS}" for s in results)
        raise DataError(sentence("fit", "at least one model must be fitted successfully", reasons))
    found = _selected(field, results, {id(s.candidate) for s in able}, criterion)
    if len(able) == len([s for s in results if s.evaluation is not None]):
        return found
    every = {id(s.candidate) for s in results if s.evaluation is not None}
    return found._replace(with_baselines=_selected(field, results, every, criterion).winner)


def _selected(
    field: Comparable, results: Sequence[CandidateResult], eligible: set[int], criterion: str
) -> CandidateComparison:
    """The rule among the candidates with these IDs."""
    second = field.tie_breaker
    able = [s for s in results if id(s.candidate) in eligible]
    best = min(able, key=lambda s: (s.by(criterion), s.candidate.rank))
    told = [s._replace(difference=_difference(field, s, best, criterion)) for s in results]
    told = [s._replace(ties=(criterion,)) if is_tied(s.difference) and id(s.candidate) in eligible else s for s in told]
    near = [s for s in told if s.ties]
    truest = min(near, key=lambda s: (s.by(second), s.candidate.rank))
    told = [s._replace(loss_difference=_difference(field, s, truest, second)) if s.ties else s for s in told]
    as_true = [id(s.candidate) for s in told if is_tied(s.loss_difference, RESOLUTION)]
    told = [s._replace(ties=tuple(dict.fromkeys((*s.ties, second)))) if id(s.candidate) in as_true else s for s in told]
    winner = min((s for s in told if id(s.candidate) in as_true), key=lambda s: s.candidate.rank)
    order = sorted(told, key=lambda s: (s.by(criterion), s.candidate.rank))
    best, truest = (next(s for s in told if s.candidate is one.candidate) for one in (best, truest))
    return CandidateComparison(tuple(order), winner, best, truest, criterion, second)


NOT_OURS = "cannot be written to a model file"


def _known(criterion: str | None, field: Comparable) -> str:
    """The criterion, by default the first measure of the field; an unknown one raises an error."""
    if criterion is not None and criterion not in field.measures:
        raise DomainError(
            sentence("compare_candidates", f"criterion must be one of {', '.join(field.measures)}", repr(criterion))
        )
    return criterion or field.measures[0]


def _difference(field: Comparable, result: CandidateResult, best: CandidateResult, measure: str) -> Mean | None:
    """Mean paired difference to the best with its standard error, cluster-robust where rows have clusters."""
    if result.evaluation is None or best.evaluation is None:
        return None
    own, least = MEASURES[measure](result.evaluation), MEASURES[measure](best.evaluation)
    cluster = None if field.cluster is None else field.cluster[field.tested]
    return paired_difference(own, least, best.evaluation.weight, cluster)


class _SplitResult(NamedTuple):
    answers: Array | None
    rows: Index
    seconds: float
    failure: str


def _run_split(field: Comparable, candidate: Candidate, split: Split) -> _SplitResult:
    """Fit and test one model in one split."""
    start = perf_counter()
    try:
        model = learned(candidate.estimator, field, split)
        found = field.answers(model, take_rows(field.X, split.test), split)
        return _SplitResult(found, split.test, perf_counter() - start, "")
    except Exception as error:  # the failure of one model does not stop the others
        return _SplitResult(None, split.test, perf_counter() - start, _words(error))


def learned(estimator: Any, field: Comparable, split: Split) -> Any:
    """A clone fitted to the training rows of a split."""
    fresh, rows = clone(estimator), split.train
    if getattr(fresh, "novelty", None) is not None:  # the threshold takes two thirds of a fit, and is not needed here
        fresh.set_params(novelty=None)
    name = None if field.weight is None else weight_argument(fresh)
    weights = {} if field.weight is None or name is None else {name: field.weight[rows]}
    return fresh.fit(take_rows(field.X, rows), field.targets[rows], **weights)


def from_all_rows(estimator: Any, field: Comparable) -> Any:
    """A clone fitted to all rows, with the class priors in use."""
    return fitted(field.for_all_rows(estimator), field.X, field.targets, field.weight)


def _joined(field: Comparable, candidate: Candidate, heats: Sequence[_SplitResult]) -> CandidateResult:
    seconds = sum(heat.seconds for heat in heats)
    failure = next((heat.failure for heat in heats if heat.answers is None), "")
    if failure:
        return CandidateResult(candidate, None, seconds, failure)
    first: Any = heats[0].answers
    answers = np.zeros((len(field), *first.shape[1:]))
    for heat in heats:
        answers[heat.rows] = heat.answers
    try:
        return field.result(candidate, answers, seconds)
    except DataError as error:
        return CandidateResult(candidate, None, seconds, _words(error))


def _measured(field: ComparisonTask, candidate: Candidate, e: Evaluation, seconds: float) -> CandidateResult:
    """A result with posteriors calibrated where that helps; peers are calibrated already, priors need none."""
    if candidate.baseline or not field.calibrate or candidate.key == "prior":
        return CandidateResult(candidate, e, seconds)

    paid = MEASURES["cost"]

    def as_cheap(log_posterior: Array) -> bool:  # a better log-loss may still mean worse decisions
        dearer = mean(paid(e.replace(log_posterior=log_posterior)) - paid(e), e.weight)
        return is_tied(dearer)

    found = recalibrated(e.log_posterior, e.truth, e.fold, e.weight, as_cheap, field.unit == "sequence")
    if found is None:
        return CandidateResult(candidate, e, seconds)
    after = e.replace(log_posterior=found.log_posterior)
    gain = float(e.log_loss.value - after.log_loss.value)
    return CandidateResult(candidate, after, seconds, calibration=found, gain=gain, map=found.map)


def calibration_of(estimator: Any, X: Any, y: Any, weight: Any = None, cv: Any = 5) -> Calibration | None:
    """The calibration map from out-of-fold posteriors of a model; None if none helps."""
    classes, labels, weight = checked_targets(X, y, weight, estimator)
    costs: dict[str, Any] = {name: getattr(estimator, name, None) for name in ("cost", "reject_cost")}
    field = ComparisonTask.of(X, classes, labels, cv, weight=weight, **costs)
    try:
        found = compare_candidates(field, [Candidate("own", "the model", "", 0, estimator)]).winner.calibration
    except DataError as error:  # a failure on a part of the rows does not matter
        tell_of(sentence(type(estimator).__name__, "posteriors are not calibrated", remedy=str(error).rstrip(".")))
        return None
    return None if found is None else found.map


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:199] + "…"
    return text if isinstance(error, DataError) else f"{type(error).__name__}: {text}"


@contextmanager
def silence() -> Iterator[None]:
    """Context manager that discards warnings of folds; the fit to all rows issues its own.

    Recording works for any order in which threads open and close their own records: none was opened before this one.
    """
    with warnings.catch_warnings(record=True), warnings_discarded():
        warnings.simplefilter("ignore")
        yield
