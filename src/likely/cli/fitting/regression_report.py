"""Data of the HTML report (`RegressionStudy`) of a fit, or of an evaluation, of a regressor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.automl.table_classifier import Typed
from likely.cli.fitting.fit_run import splits_in_words
from likely.cli.fitting.fit_study import ShownRows
from likely.cli.fitting.model_facts import rule_words
from likely.cli.fitting.permutation_importance import importance
from likely.cli.fitting.real_targets import number_contender
from likely.core.arrays import Array, Index
from likely.metrics.regression_evaluation import loss_words
from likely.report import Band, Driver, Effect, RegressionStudy, Study
from likely.report.regression_study import NumberCase

if TYPE_CHECKING:
    from likely.cli.fitting.fit_run import FitRun

COLUMNS = 4  # whose partial effects are drawn
GRID, LEVELS, ROWS = 25, 8, 200  # points along a column, levels of a category, and rows that are averaged
MODELS = 10  # fits without a fold, at most
WORST, POINTS = 12, 400
THIRDS = ("low third", "middle third", "high third")
BANDS = (0.5, 0.9)


def regression_study_of(fit_run: FitRun) -> RegressionStudy:
    """The data of the report of `likely fit`."""
    from likely.automl.model_comparison import learned, silence

    job, data, field, contest = fit_run.job, fit_run.data, fit_run.field, fit_run.contest
    assert field is not None and contest is not None
    winner, e = contest.winner.candidate, contest.winner.evaluation
    shown = data.shown()
    drivers = importance(field, shown.names, winner.estimator, contest.winner.map, seed=job.seed, jobs=job.jobs)
    target, unit = str(job.target), ""
    if e.loss == "squared":  # squares of the target's units are hard to read
        total = float(np.var(field.targets))
        drivers = tuple(Driver(d.column, d.increase / total, None if d.se is None else d.se / total) for d in drivers)
        unit = "added squared error, in units of the target's variance"
    about: dict[str, Any] = {
        "title": f"Predicting “{target}” from {', '.join(Path(f).name for f in job.files)}",
        "target": target,
        "source": tuple(Path(f).name for f in job.files),
        "warnings": fit_run.warnings,
        "made": fit_run.made,
        "command": job.command,
        "seed": job.seed,
        "model_file": job.out,
        "importance": drivers,
        "leaderboard": tuple(number_contender(s, s.candidate is winner) for s in contest.results),
        "cv": splits_in_words(job, field),
        "criterion": contest.criterion,
        "losing": loss_words(e.loss, e.over, e.under),
        "importance_unit": unit,
        "rule": rule_words(contest.criterion, field.unit, contest.tie_breaker),
    }
    with silence():
        folds = [learned(winner.estimator, field, split) for split in field.splits[:MODELS]]
    simplest = [s.evaluation for s in contest.results if s.candidate.key == "mean" and s.evaluation is not None]
    ground = simplest[0].rmse.value if simplest else None
    return _study(fit_run.model, shown, data.X, field.targets, e, field.tested, about, drivers, folds, ground)


def regression_study_of_new(model: Any, table: Any, e: Any, about: Mapping[str, Any]) -> RegressionStudy:
    """The study of `likely evaluate`: a model that exists, on rows that it may never have seen."""
    X = model.frame(table.frame)
    shown = ShownRows(table, list(X.columns))
    about = {**about, "losing": loss_words(e.loss, e.over, e.under)}
    return _study(model, shown, X, table.y, e, np.arange(len(e)), about, (), [], None)


def _study(
    model: Any,
    shown: Any,
    X: Any,
    y: Array,
    e: Any,
    tested: Index,
    about: Mapping[str, Any],
    drivers: Sequence[Driver],
    folds: Sequence[Any],
    ground: float | None,
) -> RegressionStudy:
    thirds = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y, side="left")
    study = Study(classes=THIRDS, unit="row", **shown.facts(thirds, 3, None), **about)
    order = list(dict.fromkeys([*(d.column for d in drivers), *shown.names]))
    constant = not hasattr(model.regressor_, "regressor_") or model.regressor_.basis == "constant"
    named = [] if constant else order[:COLUMNS]
    found = tuple(_effect(model, folds, X, name) for name in named)
    numbers = [name for name in order if X[name].dtype.is_numeric() and X[name].n_unique() > 2]
    band = _band(model, X, y, numbers[0]) if numbers and not constant else None
    cases = []
    for case in e.worst(WORST):
        row, cells = shown.case(int(tested[case.row]), order[:8])
        cases.append(NumberCase(row, case.truth, case.decided, case.low, case.high, cells))
    why = "The model uses no column: it predicts the mean of all targets." if constant else ""
    density = "held-out residuals" if model.calibration_ is not None else "the model itself"
    return RegressionStudy(
        study,
        e,
        float(np.std(y)),
        ground,
        found,
        why,
        band,
        why or "No column of numbers to draw bands along.",
        tuple(cases),
        density,
    )


def _effect(model: Any, folds: Sequence[Any], X: Any, name: str) -> Effect:
    """Mean predictions along a column; standard errors by the jackknife over fits without a fold."""
    some = X[np.sort(np.random.default_rng(0).permutation(X.height)[:ROWS])]
    column = X[name].drop_nulls()
    if column.dtype.is_numeric():
        values: list[Any] = list(_grid(column))
    else:
        values = column.value_counts(sort=True)[name][:LEVELS].to_list()
    rows = _repeated(some, name, values, column.dtype)

    def curve(predict: Any) -> Array:
        return np.asarray(predict(rows), dtype=np.float64).reshape(len(values), -1).mean(axis=1)

    mean = curve(lambda frame: model.predict(Typed(frame)))
    each = np.array([curve(fold.predict) for fold in folds])
    k = len(each)
    error = np.full(len(values), np.nan)
    if k > 1:
        error = np.sqrt((k - 1) / k * ((each - each.mean(axis=0)) ** 2).sum(axis=0))
    seen = column.sample(min(150, len(column)), seed=0).to_list() if column.dtype.is_numeric() else ()
    return Effect(name, tuple(values), mean, error, seen)


def _grid(column: Any) -> list[float]:
    """Points between the outer hundredths of a column of numbers; few different values are taken as they are."""
    x = column.to_numpy()
    distinct = np.unique(x)
    if len(distinct) <= GRID:
        return [float(v) for v in distinct]
    low, high = np.quantile(x, [0.01, 0.99])
    return [float(v) for v in np.linspace(low, high, GRID)]


def _repeated(some: Any, name: str, values: Sequence[Any], dtype: Any) -> Any:
    """Rows once per value, with one column set to it."""
    import polars as pl

    return pl.concat([some.with_columns(pl.lit(value, dtype=dtype).alias(name)) for value in values])


def _band(model: Any, X: Any, y: Array, name: str) -> Band:
    """Predictive intervals along a column, the others at median or mode."""
    xs = _grid(X[name].drop_nulls())
    typical: dict[str, Any] = {}
    for column in X:
        present = column.drop_nulls()
        if column.name != name and len(present):
            numeric = column.dtype.is_numeric()
            typical[column.name] = float(present.median()) if numeric else present.mode().sort()[0]
    import polars as pl

    rows = X.clear(1).with_columns(pl.lit(value, dtype=X[key].dtype).alias(key) for key, value in typical.items())
    rows = _repeated(rows, name, xs, X[name].dtype)
    found = model.predictive(Typed(rows))
    levels = {}
    for level in BANDS:
        low, high = np.asarray(found.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])).reshape(2, -1)
        levels[level] = (low, high)
    at = np.sort(np.random.default_rng(1).permutation(len(y))[:POINTS])
    x = X[name].to_numpy()[at]
    points = np.column_stack([x, y[at]])[np.isfinite(x)]
    return Band(name, np.array(xs), np.ravel(found.mean), levels, points, typical)
