"""Rows of a table as the data of `likely fit`: reading, candidate models, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likely.cli.fitting.data_checks import leaks, zeros
from likely.cli.fitting.fit_job import Job, refuse_for_task
from likely.core.errors import DataError, DomainError, sentence

if TYPE_CHECKING:
    from likely.automl.model_comparison import ComparisonTask
    from likely.automl.table_classifier import TableClassifier
    from likely.automl.table_regressor import TableRegressor
    from likely.cli.fitting.fit_study import Shown
    from likely.data.table import Table

BASELINE_ROWS, BASELINE_COLUMNS, BASELINE_CELLS = 20_000, 2_000, 1_000_000  # up to which baselines take part unasked
PARTS_OF_WORDS = 52  # of a model file, that a column of words takes in naive Bayes


class TableData:
    """The rows of a table that count, in the columns of a model; a row without weight is not there."""

    unit, testable = "row", True

    def __init__(self, job: Job, table: Table | None = None) -> None:
        from likely.automl.table_classifier import arranged_schema, laid_out

        self.job, self.table = job, _read(job) if table is None else table
        self.task = self.table.task
        refuse_for_task(job, self.task, self.table.why_task)
        refuse_too_long(self.table, job)
        self.schema = arranged_schema(self.table.schema())
        here = np.arange(len(self.table))
        if self.table.weight is not None and not (self.table.weight > 0).all():
            here = np.flatnonzero(self.table.weight > 0)
        self.here = here
        self.X = laid_out(self.table.frame, list(self.schema))[here]
        parts = (self.table.y, self.table.weight, self.table.group, self.table.time)
        self.y: Any
        self.y, self.weight, self.groups, self.time = (None if part is None else part[here] for part in parts)
        self.jobs = job.jobs
        if self.task == "regression" and not np.ptp(self.y) > 0:
            remedy = "there is nothing to predict: name another column"
            got = f"only {self.y[0]:g}" if len(self.y) else "no row with a weight"
            raise DataError(
                sentence(f'target "{job.target}"', "at least two different numbers are needed", got, remedy)
            )

    def describe(self) -> str:
        """The table in a few lines."""
        return self.table.describe()

    def facts(self) -> dict[str, Any]:
        """What a model card says about the data."""
        from likely.data.table_fingerprint import fingerprint

        entries = self.table.as_dict()
        kept = {name: entries[name] for name in ("rows", "unlabeled", "classes", "roles", "fingerprint")}
        columns = [{k: v for k, v in c.items() if k != "levels"} for c in entries["columns"] if c["used"]]
        kept["unit"] = self.unit
        if self.task == "regression":
            kept |= {"task": "regression", "why_task": self.table.why_task}
            y = self.y
            kept["targets"] = {"low": y.min(), "mean": y.mean(), "high": y.max(), "sd": y.std()}
        return {**kept, "rows_fingerprint": fingerprint(self.X), "columns": columns, "excluded": self.table.excluded}

    def candidates(self, field: Any, rules: dict[str, Any]) -> tuple[list[Any], str, str]:
        """The models to compare, a note on those that are the same, and a caution about those that were skipped."""
        from likely.automl.candidates import NAMES, affordable, chosen_candidates, not_applicable, same_model
        from likely.automl.regression_candidates import REGRESSION_NAMES

        job, skipped = self.job, list[str]()
        regression = self.task == "regression"
        names = REGRESSION_NAMES if regression else NAMES
        candidates = self._regressors(field) if regression else self._classifiers(field, rules)
        if job.models == "all":
            candidates, slow = affordable(candidates, sum(len(split.train) for split in field.splits))
            skipped.append(slow)
            if not regression:
                from likely.automl.candidates import without_gaps

                candidates, whole = without_gaps(candidates, self._kinds(), self.X)
                skipped.append(whole)
        if rivals_take_part(job, self.X, len(field.splits)):
            from likely.automl.sklearn_baselines import baselines, regression_baselines

            kinds = self._kinds()
            candidates += regression_baselines(kinds, job.seed) if regression else baselines(kinds, rules, job.seed)
        try:
            chosen = chosen_candidates(candidates, job.models, names)
            left = not_applicable(candidates, job.models, names)
        except DomainError as error:
            raise click.UsageError(str(error)) from error
        if all(candidate.baseline for candidate in chosen):
            remedy = "add one of likely's own to --models"
            raise DataError(sentence("--models", "one model must be able to go into a model file", job.models, remedy))
        same = "" if regression else same_model(chosen, job.models)
        return chosen, same, " ".join(filter(None, [*skipped, left]))

    def _kinds(self) -> dict[str, str]:
        return {name: entry["kind"] for name, entry in self.schema.items()}

    def _distinct(self) -> dict[str, int]:
        return {column.name: column.distinct for column in self.table.used}

    def _levels(self) -> dict[str, Any]:
        return {name: entry["levels"] for name, entry in self.schema.items() if "levels" in entry}

    def _classifiers(self, field: Any, rules: dict[str, Any]) -> list[Any]:
        from likely.automl.candidates import model_candidates

        return model_candidates(self._kinds(), rules, self._distinct(), _fewest(field), self._levels())

    def _regressors(self, field: Any) -> list[Any]:
        from likely.automl.regression_candidates import regression_candidates

        fewest = min(len(split.train) for split in field.splits)
        return regression_candidates(self._kinds(), fewest, self._distinct(), self._levels())

    def model(self, classifier: Any, calibration: Any) -> TableClassifier | TableRegressor:
        """The fitted classifier or regressor with these columns."""
        from likely.automl.table_classifier import TableClassifier

        if self.task == "regression":
            from likely.automl.table_regressor import TableRegressor

            job = self.job
            loss: dict[str, Any] = {"loss": job.loss or "squared", "over": job.over, "under": job.under}
            return TableRegressor.from_fitted(classifier, self.schema, calibration, self.table.names, **loss)
        return TableClassifier.from_fitted(classifier, self.schema, calibration, self.table.names)

    def shown(self) -> Shown:
        """The rows as a report shows them."""
        from likely.cli.fitting.fit_study import ShownRows

        return ShownRows(self.table, list(self.X.columns), self.here)

    def warnings(self, field: Any) -> Iterator[str]:
        """Warnings about the data."""
        table = self.table
        if table.unlabeled:
            what = "target" if self.task == "regression" else "label"
            yield f"{table.unlabeled:,} rows without a {what} were excluded."
        copies = int(table.frame.is_duplicated().sum())
        if copies > len(table) / 10 and field.cluster is None and any(column.kind == "real" for column in table.used):
            share = f"{copies / len(table):.0%} of rows are duplicates"
            effect = "and duplicates in both training and test inflate the figures"
            yield f"{share}, {effect}: remove them, or keep them together with --group."
        for column in table.used:
            if column.n_missing > len(table) / 2:
                yield f'Column "{column.name}" is missing in {column.n_missing / len(table):.0%} of rows.'
        if self.task == "classification":
            yield from leaks(field)
        yield from zeros(field, {column.name: column.kind for column in table.used})


def _read(job: Job) -> Table:
    from likely.data.table import Table

    return Table.of(
        list(job.files), target=job.target, weight=job.weight, group=job.group, time=job.time, kinds=job.kinds,
        missing=job.missing, ignore=job.ignore, sql=job.sql, format=job.format, task=job.task,
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
        expected = f"a model file can hold about {most:,} categorical columns"
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


def _fewest(field: ComparisonTask) -> list[int]:
    """Rows of each class in the smallest training part."""
    split = min(field.splits, key=lambda split: len(split.train))
    return np.bincount(field.labels[split.train], minlength=len(field.classes)).tolist()


def rivals_take_part(job: Job, X: Any, splits: int) -> bool:
    """Whether baselines are fitted: as the user says, else for small tables with few splits; always if named."""
    if job.baselines is not None:
        return job.baselines
    if job.models != "all":
        return True  # `chosen_rungs` leaves out whom the user did not name
    small = X.height <= BASELINE_ROWS and X.width <= BASELINE_COLUMNS and X.height * X.width <= BASELINE_CELLS
    return small and splits <= 20
