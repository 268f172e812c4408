"""Data of the HTML report (`Study`) of a fit run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.cli.fitting.discriminant_plane import FisherPlane, axis_label, grid, regions, separation
from likely.cli.fitting.fit_run import splits_in_words
from likely.cli.fitting.model_facts import contender, rule_words
from likely.cli.fitting.permutation_importance import importance
from likely.core.arrays import Array, Index
from likely.report import ColumnFacts, Plane, Study, WorstCase, column_facts

if TYPE_CHECKING:
    from likely.cli.fitting.fit_run import FitRun
    from likely.data.table import Table
    from likely.metrics.evaluation import Evaluation

POINTS = 1500
WORST = 12
LEAST = 0.5  # share of the classes' separation that columns of numbers must carry for a map of them to be drawn
INDICATORS = 300  # levels of words, of all columns together, that are compared with the numbers
NOTE = "Regions are the decisions at points of this plane, with all other directions at the mean"
MOST_NUMBERS = 2000  # columns of numbers of which a map is drawn: it takes their scatter, d × d
WORDLESS = "; categorical columns are treated as missing there"


def study_of(fit_run: FitRun) -> Study:
    """The data of the report of `likely fit`."""
    job, table, field, contest = fit_run.job, fit_run.data.table, fit_run.field, fit_run.contest
    assert field is not None and contest is not None and job.target is not None
    e = contest.winner.evaluation
    assert e is not None  # a winner was measured
    drivers = importance(
        field, contest.winner.candidate.estimator, fit_run.model.calibration_, seed=job.seed, jobs=job.jobs
    )
    plane, why = plane_of(fit_run.model, field.X, field.labels, e, field.tested, field.judging, job.seed)
    order = list(dict.fromkeys([*(driver.column for driver in drivers), *field.X.columns]))
    return Study(
        title=f"Deciding “{job.target}” from {', '.join(Path(f).name for f in job.files)}", target=job.target,
        classes=_texts(field.classes), source=tuple(Path(f).name for f in job.files), rows=len(table),
        rows_unlabeled=table.unlabeled, columns=columns_of(table, field.labels, len(field.classes), field.weight),
        set_aside=tuple(table.set_aside.items()), hazards=fit_run.hazards,
        leaderboard=tuple(contender(s, s.candidate is contest.winner.candidate) for s in contest.standings),
        evaluation=e,
        cv=splits_in_words(job, field), criterion=job.criterion, rule=rule_words(job.criterion), importance=drivers,
        worst=worst_of(e, table, field.tested, order),
        plane=plane, no_plane=why,
        made=fit_run.made, command=job.command, fingerprint=table.fingerprint, seed=job.seed, model_file=job.out,
    )  # fmt: skip


def study_of_new(model: Any, table: Table, e: Evaluation, labels: Index, facts: Mapping[str, Any]) -> Study:
    """The study of `likely evaluate`: a model that exists, on rows that it may never have seen."""
    X, every = model.frame(table.frame), np.arange(len(labels))
    plane, why = plane_of(model, X, labels, e, every, table.weight, 0)
    return Study(
        classes=_texts(e.classes), rows=len(table), rows_unlabeled=table.unlabeled, evaluation=e,
        columns=columns_of(table, labels, len(e.classes), table.weight), fingerprint=table.fingerprint,
        plane=plane, no_plane=why,
        worst=worst_of(e, table, every, list(X.columns)), **facts,
    )  # fmt: skip


def _texts(classes: Any) -> tuple[str, ...]:
    return tuple(str(c) for c in classes.tolist())


def columns_of(table: Table, labels: Index, n_classes: int, weight: Array | None) -> tuple[ColumnFacts, ...]:
    """What each column in use is, and how it is spread in each class."""
    rows = table.rows()
    return tuple(
        column_facts(c.name, c.kind, rows[c.name], labels, n_classes, weight=weight, reason=c.reason)
        for c in table.used
    )


def worst_of(e: Evaluation, table: Table, tested: Index, shown: list[str]) -> tuple[WorstCase, ...]:
    """The rows with the lowest predicted probability of the true class, with their cells."""
    cases = []
    for case in e.worst(WORST):
        at = int(tested[case.row])
        cells = {name: table.frame[name][at] for name in shown}
        decided = e.actions[int(e.decided[case.row])]
        row = int(table.row_numbers[at])
        cases.append(WorstCase(row, str(case.truth), decided, case.posterior_of_truth, cells))
    return tuple(cases)


# ------------------------------------------------------------------------- the plane


def plane_of(
    model: Any, X: Any, labels: Index, e: Evaluation, tested: Index, weight: Array | None, seed: int
) -> tuple[Plane | None, str]:
    """The classes in the plane of two Fisher directions of the columns of numbers; or None, and why there is none."""
    schema = model.schema
    numbers = [name for name, entry in schema.items() if entry["kind"] in ("real", "count")]
    if len(numbers) < 2:
        return None, "No map: it needs two numeric columns."
    if len(numbers) > MOST_NUMBERS:
        return None, f"No map: {len(numbers):,} numeric columns are too many for one ({MOST_NUMBERS:,})."
    table = X.select(numbers).to_numpy()
    plane = FisherPlane.of(table, labels, len(e.classes), weight)
    if plane is None:
        return None, "No map: it needs two numeric columns that vary."
    if len(numbers) < X.width:
        own = separation(table, labels, len(e.classes), weight)
        full = separation(np.column_stack([table, *_indicators(X, numbers)]), labels, len(e.classes), weight)
        if own < LEAST * full:
            told = f"the {len(numbers)} numeric columns, in which it would lie, carry {own / full:.0%}"
            return (
                None,
                f"The map is left out: {told} of what separates the classes. The rest is in categorical columns.",
            )
    seen = plane.seen(table[tested])
    xs, ys = grid(seen)
    some = np.sort(np.random.default_rng(seed).permutation(len(tested))[:POINTS])
    names = ("first direction", "second direction")
    found = Plane(
        points=seen[some], truth=labels[tested][some], decided=_marks(e.decided[some], e), xs=xs, ys=ys,
        region=regions(plane, xs, ys, _decider(model, X, numbers, e)), share=plane.share,
        labels=(axis_label(names[0], plane.weights[:, 0], numbers), axis_label(names[1], plane.weights[:, 1], numbers)),
        note=NOTE + (WORDLESS if len(numbers) < len(schema) else "") + ".", columns=len(numbers),
    )  # fmt: skip
    return found, ""


def _indicators(X: Any, numbers: list[str]) -> Iterator[Array]:
    """A column of 0 and 1 for each frequent level of each column of words; NaN where it is missing."""
    words = [name for name in X.columns if name not in numbers]
    for name in words:
        column = X[name]
        often = column.drop_nulls().value_counts(sort=True)[name][: max(2, INDICATORS // len(words))]
        for level in often.to_list():
            yield (column == level).cast(float).to_numpy()


def _decider(model: Any, X: Any, numbers: list[str], e: Evaluation) -> Callable[[Array], Any]:
    """Decisions of the model for rows of numbers alone, what else there is being unobserved."""
    import polars as pl

    from likely.automl.table_classifier import Typed

    schema, numbered = model.schema, set(numbers)  # read once: it is parsed anew each time
    counts = [name for name in numbers if schema[name]["kind"] == "count"]

    def decide(rows: Array) -> Any:
        frame = pl.DataFrame({name: rows[:, j] for j, name in enumerate(numbers)})
        frame = frame.with_columns(pl.col(name).round().clip(0) for name in counts)  # counts are whole
        rest = [pl.lit(None, dtype=X[name].dtype).alias(name) for name in X.columns if name not in numbered]
        found = model.log_posterior(Typed(frame.with_columns(rest).select(X.columns)))
        return _marks(e.costs.decide(found), e)

    return decide


def _marks(decided: Any, e: Evaluation) -> Any:
    """Actions as marked in the plot: −1 is rejected."""
    refuses = len(e.costs.table) - 1 if e.reject_cost is not None else -2
    return np.where(decided == refuses, -1, decided)
