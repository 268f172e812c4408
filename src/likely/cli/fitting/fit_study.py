"""Data of the HTML report (`Study`) of a fit run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from likely.automl.sequence_models import by_name
from likely.classify.explanation import typical
from likely.cli.fitting.discriminant_plane import FisherPlane, axis_label, grid, regions, rows_of_numbers, separation
from likely.cli.fitting.fit_run import splits_in_words
from likely.cli.fitting.model_facts import contender, rule_words
from likely.cli.fitting.permutation_importance import importance
from likely.cli.fitting.recording_data import files_fingerprint
from likely.cli.fitting.sequence_input import frames_fingerprint
from likely.core.arrays import Array, Index
from likely.report import ColumnFacts, Driver, Plane, Study, WorstCase, column_facts

if TYPE_CHECKING:
    from likely.cli.fitting.fit_run import FitRun
    from likely.core.ragged import Ragged
    from likely.data.table import Table
    from likely.metrics.evaluation import Evaluation

NONE: Mapping[str, str] = {}
POINTS = 1500
WORST = 12
LEAST = 0.5  # share of the classes' separation that columns of numbers must carry for a map of them to be drawn
INDICATORS = 300  # levels of words, of all columns together, that are compared with the numbers
NOTE = "Regions are the decisions at points of this plane, with all other directions at the mean"
MOST_NUMBERS = 2000  # columns of numbers of which a map is drawn: it takes their scatter, d × d
WORDLESS = "; categorical columns are treated as missing there"


class Shown(Protocol):
    """What a report shows of the data: rows, sequences or recordings."""

    unit: str
    names: list[str]  # the columns, in order

    def facts(self, labels: Index, n_classes: int, weight: Array | None) -> dict[str, Any]:
        """Size, fingerprint, and how each column is spread in each class."""

    def case(self, i: int, names: list[str]) -> tuple[int | str, dict[str, Any]]:
        """What the i-th is called in the file, and its cells."""


def study_of(fit_run: FitRun) -> Study:
    """The data of the report of `likely fit`."""
    job, data, contest = fit_run.job, fit_run.data, fit_run.contest
    field: Any = fit_run.field  # of classes
    shown = data.shown()
    target = job.target or ("word" if shown.unit == "recording" else "folder")
    about: dict[str, Any] = {
        "title": f"Deciding “{target}” from {', '.join(Path(f).name for f in job.files)}", "target": target,
        "source": tuple(Path(f).name for f in job.files), "warnings": fit_run.warnings, "made": fit_run.made,
        "command": job.command, "seed": job.seed, "model_file": job.out,
    }  # fmt: skip
    if contest is None:
        return _study(shown, fit_run.model, field.X, field.labels, field.classes, None, about)
    e, winner = contest.winner.evaluation, contest.winner.candidate
    drivers: tuple[Driver, ...] = ()
    if len(shown.names) > 1 or shown.unit == "row":
        own = (winner.estimator, fit_run.model.calibration_)
        drivers = importance(field, shown.names, *own, seed=job.seed, jobs=job.jobs)
    about |= {
        "leaderboard": tuple(contender(s, s.candidate is winner) for s in contest.results),
        "cv": splits_in_words(job, field), "criterion": contest.criterion,
        "rule": rule_words(contest.criterion, field.unit), "importance": drivers,
    }  # fmt: skip
    tested: dict[str, Any] = {
        "tested": field.tested,
        "weight": field.judging,
        "training_weight": field.weight,
        "seed": job.seed,
    }
    return _study(shown, fit_run.model, field.X, field.labels, field.classes, e, about, **tested)


def study_of_new(
    model: Any, shown: Shown, X: Any, e: Evaluation, weight: Array | None, about: Mapping[str, Any]
) -> Study:
    """The study of `likely evaluate`: a model that exists, on data that it may never have seen."""
    every = np.arange(len(e))
    return _study(shown, model, X, e.truth, e.classes, e, about, tested=every, weight=weight, training_weight=weight)


def _study(
    shown: Shown, model: Any, X: Any, labels: Index, classes: Any, e: Evaluation | None, about: Mapping[str, Any], *,
    tested: Any = None, weight: Array | None = None, training_weight: Array | None = None, seed: int = 0,
) -> Study:  # fmt: skip
    plane, why = None, ""
    if shown.unit == "row" and e is not None:
        plane, why = plane_of(model, X, labels, e, tested, weight, seed)
    order = list(dict.fromkeys([*(driver.column for driver in about.get("importance", ())), *shown.names]))
    return Study(
        classes=tuple(str(c) for c in classes.tolist()), unit=shown.unit, evaluation=e, plane=plane, no_plane=why,
        worst=() if e is None else worst_of(e, shown, tested, order),
        **shown.facts(labels, len(classes), training_weight), **about,
    )  # fmt: skip


def worst_of(e: Evaluation, shown: Shown, tested: Index, names: list[str]) -> tuple[WorstCase, ...]:
    """Those with the lowest predicted probability of the true class, with their cells."""
    cases = []
    for case in e.worst(WORST):
        row, cells = shown.case(int(tested[case.row]), names)
        decided = e.actions[int(e.decided[case.row])]
        cases.append(WorstCase(row, str(case.truth), decided, case.posterior_of_truth, cells))
    return tuple(cases)


# ------------------------------------------------------------------ what is shown


class ShownRows:
    """The rows of a table; `here` are those that count."""

    unit = "row"

    def __init__(self, table: Table, names: list[str], here: Any = None) -> None:
        self.table, self.names = table, names
        self.here = np.arange(len(table)) if here is None else here

    def facts(self, labels: Index, n_classes: int, weight: Array | None) -> dict[str, Any]:
        """Number of rows, columns with their histograms, and fingerprint."""
        table = self.table
        return {
            "rows": len(self.here), "rows_unlabeled": table.unlabeled, "fingerprint": table.fingerprint,
            "columns": columns_of(table, labels, n_classes, weight, self.here),
            "excluded": tuple(table.excluded.items()),
        }  # fmt: skip

    def case(self, i: int, names: list[str]) -> tuple[int | str, dict[str, Any]]:
        """The number of a row in the file, and its cells."""
        at = int(self.here[i])
        return int(self.table.row_numbers[at]), {name: self.table.frame[name][at] for name in names}


def columns_of(
    table: Table, labels: Index, n_classes: int, weight: Array | None, here: Any = None
) -> tuple[ColumnFacts, ...]:
    """What each column in use is, and how it is spread in each class."""
    rows = table.rows()
    return tuple(
        column_facts(c.name, c.kind, rows[c.name] if here is None else np.asarray(rows[c.name])[here], labels,
                     n_classes, weight=weight, reason=c.reason)
        for c in table.used
    )  # fmt: skip


class ShownSequences:
    """Sequences in the form of a model: `frames`, with columns of these kinds."""

    unit = "sequence"

    def __init__(self, frames: Ragged, ids: Any, kinds: Mapping[str, str], excluded: Mapping[str, str] = NONE) -> None:
        self.frames, self.ids, self.kinds, self.excluded, self.names = frames, ids, kinds, excluded, list(kinds)
        self.columns = by_name(frames, self.names)

    def facts(self, labels: Index, n_classes: int, weight: Array | None) -> dict[str, Any]:
        """Numbers of sequences and frames, columns with histograms of their frames, and fingerprint."""
        lengths = self.frames.lengths
        own, each = np.repeat(labels, lengths), None if weight is None else np.repeat(weight, lengths)
        columns = (column_facts(n, self.kinds[n], a, own, n_classes, weight=each) for n, a in self.columns.items())
        return {
            "rows": len(lengths), "frames": int(lengths.sum()), "columns": tuple(columns),
            "fingerprint": frames_fingerprint(self.columns, lengths), "excluded": tuple(self.excluded.items()),
        }  # fmt: skip

    def case(self, i: int, names: list[str]) -> tuple[int | str, dict[str, Any]]:
        """The ID of a sequence, its length, and the mean or the most frequent value of each column."""
        at = slice(*self.frames.offsets[i : i + 2])
        cells = {name: typical(tuple(self.columns[name][at].tolist())) for name in names}
        return str(self.ids[i]), {"frames": at.stop - at.start, **cells}


class ShownRecordings:
    """Recordings: files without columns."""

    unit = "recording"

    def __init__(self, files: Sequence[str]) -> None:
        self.files, self.names = files, list[str]()

    def facts(self, labels: Index, n_classes: int, weight: Array | None) -> dict[str, Any]:
        """The number of recordings, and their fingerprint."""
        return {"rows": len(self.files), "fingerprint": files_fingerprint(self.files)}

    def case(self, i: int, names: list[str]) -> tuple[int | str, dict[str, Any]]:
        """The file of a recording, in its folder."""
        return "/".join(Path(self.files[i]).parts[-2:]), {}


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
            finding = f"the {len(numbers)} numeric columns, in which it would lie, carry {own / full:.0%}"
            return (
                None,
                f"The map is left out: {finding} of what separates the classes. The rest is in categorical columns.",
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
    schema = model.schema  # read once: it is parsed anew each time

    def decide(places: Array) -> Any:
        return _marks(e.costs.decide(model.log_posterior(rows_of_numbers(places, numbers, X, schema))), e)

    return decide


def _marks(decided: Any, e: Evaluation) -> Any:
    """Actions as marked in the plot: −1 is rejected."""
    refuses = len(e.costs.table) - 1 if e.reject_cost is not None else -2
    return np.where(decided == refuses, -1, decided)
