"""The run of `likely fit`: read, compare models, choose one, fit it to all data, write."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from likely._version import __version__
from likely.cli.console import Console, nats
from likely.cli.costs import read_class_prior, read_cost
from likely.cli.fitting.data_checks import odd_costs
from likely.cli.fitting.fit_job import Job, refuse_deciding, splitting_words
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, sentence
from likely.io.atomic_write import write_text

if TYPE_CHECKING:
    from likely.automl.model_comparison import CandidateComparison, Comparable
    from likely.cli.fitting.fit_study import Shown

MANY_FITS = 5_000
TRIVIAL = ("prior", "mean")  # models that use no column
LEAST_GAIN = 0.01  # nats of log-loss per row that calibration must gain to be a hazard


class Data(Protocol):
    """What a job learns from: the rows of a table, sequences, or recordings."""

    job: Job
    unit: str  # "row", "sequence" or "recording"
    task: str  # "classification" or "regression"
    X: Any  # (n, …) as models take it
    y: Any  # (n,) labels, or numbers; None: there is no target
    weight: Any  # (n,)
    groups: Any  # (n,)
    time: Any  # (n,)
    jobs: int | None  # threads
    testable: bool  # whether some can be held out

    def describe(self) -> str:
        """The data in a few lines."""

    def facts(self) -> dict[str, Any]:
        """What a model card says about the data."""

    def candidates(self, field: Comparable, rules: dict[str, Any]) -> tuple[list[Any], str, str]:
        """The models to compare, a note, and a caution."""

    def model(self, classifier: Any, calibration: Any) -> Any:
        """The fitted classifier with the columns of the data."""

    def shown(self) -> Shown:
        """The data as a report shows them."""

    def warnings(self, field: Comparable) -> Iterator[str]:
        """Warnings about the data."""


def version_and_date() -> str:
    """By what a model was made, and when."""
    return f"likely {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


@dataclasses.dataclass(frozen=True, eq=False)
class FitRun:
    """Result of a fit job: the data, the comparison, and the model fitted to all of the data."""

    job: Job
    data: Any
    model: Any
    warnings: tuple[str, ...]
    field: Comparable | None = None  # of a comparison
    contest: CandidateComparison | None = None
    found: dict[str, Any] = dataclasses.field(default_factory=dict)  # what was measured otherwise
    choice: Any = None  # of a number of states
    made: str = dataclasses.field(default_factory=version_and_date)


def run_job(job: Job, console: Console) -> FitRun:
    """Run the job; model file and report are written at the end, each atomically."""
    outputs = {"-o": job.out, "--report": job.report}
    check_outputs(outputs, (*job.files, job.cost, job.class_prior), models=("-o",))
    data = read_data(job)
    console(data.describe())
    if data.y is None:
        from likely.cli.fitting.sequence_states import density_run

        refuse_deciding(job)
        fit_run = density_run(data, console)
    else:
        fit_run = comparison_run(data, console)
    write(fit_run)
    return fit_run


def read_data(job: Job) -> Any:
    """The rows, sequences or recordings of a job."""
    if not job.sequences:
        from likely.cli.fitting.table_data import TableData

        return TableData(job)
    from likely.cli.fitting.recording_data import RecordingData, are_recordings

    if job.format is None and are_recordings(job.files):
        return RecordingData(job)
    from likely.cli.fitting.sequence_data import SequenceData

    return SequenceData.of(job)


# -------------------------------------------------------------------------- comparing


def comparison_run(data: Data, console: Console) -> FitRun:
    """Compare classifiers or regressors, choose one, and fit it to all of the data."""
    from likely.automl.model_comparison import from_all_rows
    from likely.core.warnings import warnings_renamed

    field, candidates, same, left_out = prepared(data)
    for note in filter(None, (same, left_out)):
        console(f"\n{note[0].lower()}{note[1:]}")
    contest = compared(data, field, candidates, console) if data.testable else None
    chosen = candidates[0] if contest is None else contest.winner.candidate
    estimator = chosen.estimator if chosen.final is None else chosen.final
    inner = [type(part).__name__ for part in (estimator, getattr(estimator, "regressor", None)) if part is not None]

    def learn() -> Any:
        with warnings_renamed(f"{chosen.name[0].upper()}{chosen.name[1:]}", *inner):
            return from_all_rows(estimator, field)

    classifier, caught = heard(learn)
    model = data.model(classifier, None if contest is None else contest.winner.map)
    told = (*data.warnings(field), *_warnings(field, contest), *caught, *filter(None, [left_out]))
    return FitRun(data.job, data, model, tuple(dict.fromkeys(told)), field, contest)


def prepared(data: Data) -> tuple[Any, list[Any], str, str]:
    """The data of the comparison, the candidates, and notes on candidates that were skipped or renamed."""
    from likely.automl.model_comparison import ComparisonTask
    from likely.estimation.class_labels import encoded

    job = data.job
    if data.task == "regression":
        return _prepared_numbers(data)
    classes, labels = encoded(data.y)
    if len(classes) < 2:
        remedy = "name another column" + (", or none: then one model is fitted to all" if job.sequences else "")
        if job.sequences and job.id is None and len(labels) == 1:
            remedy = "--id COL names the sequence of each row; without it a file is one sequence"
        raise DataError(sentence("--target", "two classes are needed", f'only "{classes[0]}"', remedy))
    cost = None if job.cost is None else read_cost(job.cost, classes)
    prior = None if job.class_prior is None else np.array(read_class_prior(job.class_prior, classes))
    field = ComparisonTask.of(
        data.X, classes, labels, job.splitting, groups=data.groups, time=data.time, seed=job.seed, weight=data.weight,
        cost=cost, reject_cost=job.reject_cost, class_prior=prior, calibrate=job.calibrate and data.unit != "recording",
        unit=data.unit,
    )  # fmt: skip
    rules = {"cost": cost, "reject_cost": job.reject_cost, "reject_below": job.reject_below, "novelty": job.novelty}
    return field, *data.candidates(field, rules)


def _prepared_numbers(data: Data) -> tuple[Any, list[Any], str, str]:
    from likely.automl.regression_task import RegressionTask

    job = data.job
    field = RegressionTask.of(
        data.X, data.y, job.splitting, groups=data.groups, time=data.time, seed=job.seed, weight=data.weight,
        loss=job.loss or "squared", over=job.over, under=job.under, calibrate=job.calibrate,
    )  # fmt: skip
    return field, *data.candidates(field, {})


def compared(data: Data, field: Comparable, candidates: list[Any], console: Console) -> CandidateComparison:
    """Compare the candidates, with a progress bar."""
    from likely.automl.model_comparison import compare_candidates

    job = data.job
    fits = len(candidates) * len(field.splits)
    doing = (
        f"comparing {len(candidates)} models" if len(candidates) > 1 else f"evaluating one model, {candidates[0].name}"
    )
    console(f"\n{doing}: {splits_in_words(job, field)}")
    if fits > MANY_FITS:
        console(f"{fits:,} fits will take a while; --cv 5 needs {5 * len(candidates)}")
    with console.progress(fits) as done:
        contest = compare_candidates(
            field, candidates, criterion=job.criterion, jobs=data.jobs, callback=lambda candidate: done(candidate.name)
        )
    tried = [s for s in contest.results if s.candidate.key not in TRIVIAL]
    if tried and all(s.failure for s in tried):  # class frequencies alone are no result
        reasons = "; ".join(dict.fromkeys(s.failure.rstrip(".") for s in tried))
        raise DataError(sentence("fit", f"nothing could be learned from these {field.unit}s", remedy=reasons))
    return contest


def splits_in_words(job: Job, field: Comparable) -> str:
    """Description of the cross-validation."""
    stratified = field.tie_breaker == "log-loss"
    return splitting_words(job.splitting, len(field.splits), job.group is not None, field.unit, stratified)


def heard(learn: Callable[[], Any]) -> tuple[Any, tuple[str, ...]]:
    """What was learned, and what was warned of on the way, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = learn()
    return done, tuple(dict.fromkeys(str(w.message) for w in caught))


# --------------------------------------------------------------------------- warnings


def _warnings(field: Any, contest: CandidateComparison | None) -> Iterator[str]:
    """Warnings about the result."""
    if field.tie_breaker == "log-score":
        from likely.cli.fitting.real_targets import hazards_of_numbers

        assert contest is not None  # rows can always be held out
        yield from hazards_of_numbers(field, contest)
        return
    sizes = np.bincount(field.labels, minlength=len(field.classes)).tolist()
    few = [f'"{c}" ({n})' for c, n in zip(field.classes.tolist(), sizes, strict=True) if n < 10]
    if few:
        yield f"Classes with fewer than ten {field.unit}s: {', '.join(few[:10])}{' …' if len(few) > 10 else ''}."
    if contest is None:
        return
    absent = {c for split in field.splits for c in _absent(field, split)}
    if absent:
        named = ", ".join(f'"{c}"' for c in sorted(map(str, absent)))
        yield f"Absent from the training {field.unit}s of a split, and so never predicted there: {named}."
    for result in contest.results:
        if result.failure:
            yield f"{result.candidate.name} failed: {result.failure}"
    yield from _of_the_winner(contest)


def _absent(field: Any, split: Any) -> list[Any]:
    return field.classes[np.setdiff1d(np.arange(len(field.classes)), field.labels[split.train])].tolist()


def _of_the_winner(contest: CandidateComparison) -> Iterator[str]:
    winner, e, unit = contest.winner, contest.winner.evaluation, contest.unit
    assert e is not None  # a winner was measured
    constant = False
    if e.cost is not None:
        yield from odd_costs(e.costs, e.classes)
        constant = any((row <= e.costs.table).all() for row in e.costs.table)
    if winner.calibration is not None and winner.gain >= LEAST_GAIN:
        own = f"The uncalibrated probabilities were poor (log-loss {nats(e.log_loss.value + winner.gain)} per {unit})"
        how = f"they were {winner.calibration.words} on held-out {unit}s"
        yield f"{own}: {how}, which gives {nats(e.log_loss.value)}."
    verdict = e.calibration().verdict
    if "do not contradict" not in verdict and "too few cases" not in verdict:
        yield verdict
    baseline = contest.baseline
    if (
        baseline is not None
        and baseline.difference is not None
        and baseline.difference.value < -2 * baseline.difference.se
    ):
        less = f"{baseline.candidate.name} costs {-baseline.difference.value:.4f} less per {unit}"
        yield f"{less[0].upper()}{less[1:]}: there is structure that none of the models of likely captures."
    ground = next((s for s in contest.results if s.candidate.key == "prior" and s.evaluation is not None), None)
    if constant or ground is None:
        return
    if winner.candidate is ground.candidate:
        yield "No model costs clearly less than the class frequencies alone: the columns say little about the target."
    elif "cost" in ground.ties:
        always = "Always making the same decision costs no more, within one standard error"
        yield f"{always}: the columns improve the probabilities, but hardly the decisions."


# ---------------------------------------------------------------------------- writing


def write(fit_run: FitRun) -> None:
    """The model file with its card, and the report."""
    from likely.cli.fitting.model_facts import card_of

    if hasattr(type(fit_run.model), "card_"):
        fit_run.model.card_ = json.dumps(card_of(fit_run))
    page = None
    if fit_run.job.report is not None:
        page = report_of(fit_run)
    fit_run.model.save(fit_run.job.out)
    if page is not None and fit_run.job.report is not None:
        write_text(fit_run.job.report, page)


def report_of(fit_run: FitRun) -> str:
    """The HTML report of classifiers; of a single hidden Markov model, its card as a page."""
    if fit_run.field is None:
        from likely.cli.card import described

        return described(fit_run.model, fit_run.job.out).to_html(page=True)
    from likely.cli.fitting.fit_study import study_of
    from likely.report import report_html

    if fit_run.field.tie_breaker == "log-score":
        from likely.cli.fitting.regression_report import regression_study_of
        from likely.report import regression_html

        return regression_html(regression_study_of(fit_run))
    return report_html(study_of(fit_run))
