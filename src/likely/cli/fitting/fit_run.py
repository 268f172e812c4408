"""The run of `likely fit` on a table: read, infer types, compare, choose, refit to all rows, write."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likely._version import __version__
from likely.cli.console import Console, nats
from likely.cli.costs import read_class_prior, read_cost
from likely.cli.fitting.data_checks import leaks, odd_costs, zeros
from likely.cli.fitting.fit_job import Job, splitting_words
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, DomainError, sentence
from likely.io.atomic_write import write_text

if TYPE_CHECKING:
    from likely.automl.model_comparison import Contest, Field
    from likely.automl.table_classifier import TableClassifier
    from likely.data.table import Table

BASELINE_ROWS, BASELINE_COLUMNS, BASELINE_CELLS = 20_000, 2_000, 1_000_000  # up to which baselines take part unasked
MANY_FITS = 5_000
PARTS_OF_WORDS = 52  # of a model file, that a column of words takes in naive Bayes
WORTH_TELLING = 0.01  # nats of log-loss per row that calibration must gain to be a hazard


@dataclass(frozen=True)
class FitRun:
    """Result of a fit job: the table, the comparison, and the model fitted to all rows."""

    job: Job
    table: Table
    field: Field
    contest: Contest
    model: TableClassifier
    hazards: tuple[str, ...]
    made: str

    @property
    def cv(self) -> str:
        """Description of the cross-validation."""
        return splitting_words(self.job.splitting, len(self.field.splits), self.job.group is not None)


def run_job(job: Job, console: Console) -> FitRun:
    """Run the job; model file and report are written at the end, each atomically."""
    outputs = {"-o": job.out, "--report": job.report}
    check_outputs(outputs, (*job.files, job.cost, job.class_prior), models=("-o",))
    table = read_table(job)
    refuse_too_long(table, job)
    console(table.describe())
    field, candidates, same, left_out = prepared(job, table)
    for note in filter(None, (same, left_out)):
        console(f"\n{note[0].lower()}{note[1:]}")
    contest = compared(job, field, candidates, console)
    model, hazards = learned(table, field, contest)
    hazards += (left_out,) if left_out else ()
    made = f"likely {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    fit_run = FitRun(job, table, field, contest, model, hazards, made)
    write(fit_run)
    return fit_run


# ---------------------------------------------------------------------------- before


def read_table(job: Job) -> Table:
    """The table with its roles and kinds."""
    from likely.data.table import Table

    return Table.of(
        list(job.files), target=job.target, weight=job.weight, group=job.group, time=job.time, kinds=job.kinds,
        missing=job.missing, ignore=job.ignore, sql=job.sql, format=job.format,
    )  # fmt: skip


def refuse_too_long(table: Table, job: Job) -> None:
    """Raise before fitting if columns, names and levels exceed the limits of a model file."""
    from likely.data.read_table import called
    from likely.io.container import MAX_NOTE
    from likely.io.json_nodes import MAX_NODES

    words = [column for column in table.used if column.kind in ("binary", "category")]
    size = described(table)
    remedy = "leave columns out with --ignore, or with --sql"
    if size > MAX_NOTE:
        expected = f"names and levels of columns may take {MAX_NOTE:,} bytes of a model file"
        got = f"about {size:,} for {len(table.used):,} columns"
        raise DataError(sentence(called(job.files), expected, got, remedy))
    most = max(MAX_NODES, size // 32) // PARTS_OF_WORDS  # as `files` reads them
    if len(words) > most and job.models != "prior":  # which looks at no column
        expected = f"a model file can hold about {most:,} columns of words"
        raise DataError(sentence(called(job.files), expected, f"{len(words):,}", remedy))


def described(table: Table) -> int:
    """Bytes of the description of a model of these columns, about."""
    size = 0
    for column in table.used:
        if column.kind in ("binary", "category"):
            size += 946 + 15 * len(column.name) + sum(3 * len(level) + 14 for level in column.levels)
        else:
            size += 250 + 4 * len(column.name)
    return size


def prepared(job: Job, table: Table) -> tuple[Field, list[Any], str, str]:
    """The data of the comparison, the candidates, and notes on candidates that were skipped or renamed."""
    from likely.automl.candidates import (
        affordable,
        chosen_candidates,
        model_candidates,
        not_applicable,
        same_model,
        without_gaps,
    )
    from likely.automl.model_comparison import Field
    from likely.automl.table_classifier import arranged_schema, laid_out
    from likely.estimation.class_labels import encoded

    schema = arranged_schema(table.schema())
    assert table.y is not None  # a target was named
    X, y, weight, group, time = _counted(laid_out(table.frame, list(schema)), table)
    classes, labels = encoded(y)
    cost = None if job.cost is None else read_cost(job.cost, classes)
    prior = None if job.class_prior is None else np.array(read_class_prior(job.class_prior, classes))
    field = Field.of(
        X, classes, labels, job.splitting, groups=group, time=time, seed=job.seed, weight=weight,
        cost=cost, reject_cost=job.reject_cost, class_prior=prior, calibrate=job.calibrate,
    )  # fmt: skip
    kinds = {name: entry["kind"] for name, entry in schema.items()}
    rules = {"cost": cost, "reject_cost": job.reject_cost, "reject_below": job.reject_below, "novelty": job.novelty}
    levels = {name: entry["levels"] for name, entry in schema.items() if "levels" in entry}
    candidates = model_candidates(
        kinds, rules, {column.name: column.distinct for column in table.used}, _fewest(field), levels
    )
    slow = ""
    if job.models == "all":
        candidates, slow = affordable(candidates, sum(len(split.train) for split in field.splits))
        candidates, whole = without_gaps(candidates, kinds, X)
        slow = " ".join(words for words in (slow, whole) if words)
    if rivals_take_part(job, X, len(field.splits)):
        from likely.automl.sklearn_baselines import baselines

        candidates += baselines(kinds, rules, job.seed)
    try:
        candidates, left = chosen_candidates(candidates, job.models), not_applicable(candidates, job.models)
    except DomainError as error:
        raise click.UsageError(str(error)) from error
    if all(candidate.baseline for candidate in candidates):
        remedy = "add one of likely's own to --models"
        raise DataError(sentence("--models", "one model must be able to go into a model file", job.models, remedy))
    return field, candidates, same_model(candidates, job.models), " ".join(part for part in (slow, left) if part)


def _fewest(field: Field) -> list[int]:
    """Rows of each class in the smallest training part."""
    split = min(field.splits, key=lambda split: len(split.train))
    return np.bincount(field.labels[split.train], minlength=len(field.classes)).tolist()


def _counted(X: Any, table: Table) -> tuple[Any, Any, Any, Any, Any]:
    """Rows, labels, weights, groups and times of the rows that count; a row without weight is not there."""
    parts = (table.y, table.weight, table.group, table.time)
    if table.weight is None or (table.weight > 0).all():
        return (X, *parts)
    here = np.flatnonzero(table.weight > 0)
    y, weight, group, time = (None if part is None else part[here] for part in parts)
    return X[here], y, weight, group, time


def rivals_take_part(job: Job, X: Any, splits: int) -> bool:
    """Whether baselines are fitted: as the user says, else for small tables with few splits; always if named."""
    if job.baselines is not None:
        return job.baselines
    if job.models != "all":
        return True  # `chosen_rungs` leaves out whom the user did not name
    small = X.height <= BASELINE_ROWS and X.width <= BASELINE_COLUMNS and X.height * X.width <= BASELINE_CELLS
    return small and splits <= 20


def compared(job: Job, field: Field, candidates: list[Any], console: Console) -> Contest:
    """Compare the candidates, with a progress bar."""
    from likely.automl.model_comparison import compete

    fits = len(candidates) * len(field.splits)
    doing = (
        f"comparing {len(candidates)} models" if len(candidates) > 1 else f"evaluating one model, {candidates[0].name}"
    )
    console(f"\n{doing}: {splitting_words(job.splitting, len(field.splits), job.group is not None)}")
    if fits > MANY_FITS:
        console(f"{fits:,} fits will take a while; --cv 5 needs {5 * len(candidates)}")
    with console.progress(fits) as done:
        return compete(
            field, candidates, criterion=job.criterion, jobs=job.jobs, callback=lambda candidate: done(candidate.name)
        )


# ----------------------------------------------------------------------------- after


def learned(table: Table, field: Field, contest: Contest) -> tuple[TableClassifier, tuple[str, ...]]:
    """The chosen model fitted to all rows, and the warnings, each once."""
    from likely.automl.model_comparison import from_all_rows
    from likely.automl.table_classifier import TableClassifier, arranged_schema
    from likely.core.warnings import warnings_renamed

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        candidate = contest.winner.candidate
        with warnings_renamed(f"{candidate.name[0].upper()}{candidate.name[1:]}", type(candidate.estimator).__name__):
            classifier = from_all_rows(candidate.estimator, field)
    hazards = tuple(dict.fromkeys([*_hazards(table, field, contest), *(str(w.message) for w in caught)]))
    found = contest.winner.calibration
    map = None if found is None else found.map
    model = TableClassifier.from_fitted(classifier, arranged_schema(table.schema()), map, table.names)
    return model, hazards


def _hazards(table: Table, field: Field, contest: Contest) -> Iterator[str]:
    """Cautions about the result."""
    if table.unlabeled:
        yield f"{table.unlabeled:,} rows without a label were set aside."
    rows = np.bincount(field.labels, minlength=len(field.classes))
    few = [f'"{c}" ({n})' for c, n in zip(field.classes.tolist(), rows.tolist(), strict=True) if n < 10]
    if few:
        yield f"Classes with fewer than ten rows: {', '.join(few[:10])}{' …' if len(few) > 10 else ''}."
    absent = {c for split in field.splits for c in _absent(field, split)}
    if absent:
        named = ", ".join(f'"{c}"' for c in sorted(map(str, absent)))
        yield f"Absent from the training rows of a split, and so never predicted there: {named}."
    copies = int(table.frame.is_duplicated().sum())
    if copies > len(table) / 10 and field.cluster is None and any(column.kind == "real" for column in table.used):
        told = f"{copies / len(table):.0%} of rows are duplicates, and duplicates in both training and test inflate"
        yield f"{told} the figures: remove them, or keep them together with --group."
    for column in table.used:
        if column.n_missing > len(table) / 2:
            yield f'Column "{column.name}" is missing in {column.n_missing / len(table):.0%} of rows.'
    yield from leaks(field)
    yield from zeros(field, {column.name: column.kind for column in table.used})
    for standing in contest.standings:
        if standing.failure:
            yield f"{standing.candidate.name} failed: {standing.failure}"
    yield from _of_the_winner(contest)


def _absent(field: Field, split: Any) -> list[Any]:
    return field.classes[np.setdiff1d(np.arange(len(field.classes)), field.labels[split.train])].tolist()


def _of_the_winner(contest: Contest) -> Iterator[str]:
    winner, e = contest.winner, contest.winner.evaluation
    assert e is not None  # a winner was measured
    constant = False
    if e.cost is not None:
        yield from odd_costs(e.costs, e.classes)
        constant = any((row <= e.costs.table).all() for row in e.costs.table)
    if winner.calibration is not None and winner.gain >= WORTH_TELLING:
        own = f"The uncalibrated probabilities were poor (log-loss {nats(e.log_loss.value + winner.gain)} per row)"
        how = f"they were {winner.calibration.words} on held-out rows"
        yield f"{own}: {how}, which gives {nats(e.log_loss.value)}."
    verdict = e.calibration().verdict
    if "do not contradict" not in verdict and "too few rows" not in verdict:
        yield verdict
    baseline = contest.baseline
    if baseline is not None and baseline.behind is not None and baseline.behind.value < -2 * baseline.behind.se:
        less = f"{baseline.candidate.name} costs {-baseline.behind.value:.4f} less per row"
        yield f"{less[0].upper()}{less[1:]}: there is structure that none of the models of likely captures."
    ground = next((s for s in contest.standings if s.candidate.key == "prior" and s.evaluation is not None), None)
    if constant or ground is None:
        return
    if winner.candidate is ground.candidate:
        yield "No model costs clearly less than the class frequencies alone: the columns say little about the target."
    elif "cost" in ground.ties:
        always = "Always making the same decision costs no more, within one standard error"
        yield f"{always}: the columns improve the probabilities, but hardly the decisions."


def write(fit_run: FitRun) -> None:
    """The model file with its card, and the report."""
    from likely.cli.fitting.model_facts import card_of

    fit_run.model.card_ = _json(card_of(fit_run))
    page = None
    if fit_run.job.report is not None:
        from likely.cli.fitting.fit_study import study_of
        from likely.report import report_html

        page = report_html(study_of(fit_run))
    fit_run.model.save(fit_run.job.out)
    if page is not None and fit_run.job.report is not None:
        write_text(fit_run.job.report, page)


def _json(facts: dict[str, Any]) -> str:
    import json

    return json.dumps(facts)
