"""Data of the HTML report (`ClusterStudy`) of a clustering."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from likely.cli.clustering.cluster_profiles import trait_words
from likely.cli.clustering.cluster_run import SURE, ClusterRun, title_of
from likely.cli.fitting.discriminant_plane import FisherPlane, axis_label, grid, regions, rows_of_numbers
from likely.cli.fitting.fit_study import columns_of
from likely.core.arrays import Array
from likely.report.cluster_study import Choice, ClusterStudy, Doubt, EMRun, TraitRow
from likely.report.study import Plane, Study

POINTS = 1500
DOUBTS = 12
CELLS = 8
NOTE = "The background shows the most probable cluster at points of this plane, with all other directions at the mean"
WORDLESS = "; categorical columns are treated as missing there"


def cluster_study_of(c: ClusterRun) -> ClusterStudy:
    """The data of the report of `likely cluster`."""
    report, k = c.found.mixture.report_, c.shares.shape[1]
    n, choice = max(float(c.weight.sum()), 1e-300), c.found.choice
    return ClusterStudy(
        _study(c), c.found.why, c.sizes, tuple(tuple(trait_words(c.traits, i)) for i in range(k)),
        tuple(TraitRow(t.column, t.level, t.overall, t.values, t.apart) for t in c.traits),
        c.certainty, c.weight, c.mean_certainty, c.unsure, tuple(_doubts(c)),
        choice and Choice(tuple(choice.numbers), choice.bic, choice.held_out, choice.held_out_error,
                          choice.n_components_mml, choice.best, c.found.criterion),
        tuple(value / n for value in report.trace), report.reason,
        tuple(EMRun(run.objective / n, run.iterations, run.converged) for run in report.runs), report.agreement,
    )  # fmt: skip


def _study(c: ClusterRun) -> Study:
    k, job = c.shares.shape[1], c.job
    return Study(
        title=title_of(job), target="cluster", classes=tuple(f"cluster {i + 1}" for i in range(k)),
        source=tuple("standard input" if f == "-" else Path(f).name for f in job.files), rows=len(c.table),
        columns=columns_of(c.table, c.labels, k, c.table.weight), excluded=tuple(c.table.excluded.items()),
        warnings=c.warnings, plane=_plane(c), made=c.made, command=job.command, fingerprint=c.table.fingerprint,
        seed=job.seed, model_file=job.save_model or "",
        snippet=_snippet(job.save_model),
    )  # fmt: skip


def _snippet(model: str | None) -> str:
    if model is None:
        return "import likely as lk\nmodel = lk.automl.TableClusterer().fit(rows)  # a data frame\nmodel.predict(rows)"
    use = "model.predict(rows)  # columns of the same names, in any order"
    return f"import likely as lk\nmodel = lk.load({model!r})\n{use}"


def _doubts(c: ClusterRun) -> Iterator[Doubt]:
    """The rows that lie most evenly between clusters."""
    if c.shares.shape[1] < 2:
        return
    shown = list(dict.fromkeys(trait.column for trait in c.traits))[:CELLS]
    order = np.argsort(c.certainty, kind="stable")[:DOUBTS]
    for i in order[c.certainty[order] < SURE].tolist():
        first, second = np.argsort(-c.shares[i], kind="stable")[:2].tolist()
        named = str(c.source[c.job.id][i]) if c.job.id else f"{i + 1:,}"
        cells = {name: c.table.frame[name][i] for name in shown}
        yield Doubt(named, first, second, float(c.shares[i, first]), float(c.shares[i, second]), cells)


def _plane(c: ClusterRun) -> Plane | None:
    """Clusters in the plane of two Fisher directions; None where there are fewer than two columns of numbers."""
    numbers = [name for name, entry in c.model.schema.items() if entry["kind"] in ("real", "count")]
    if len(numbers) < 2 or c.shares.shape[1] < 2:
        return None
    X = c.frame.select(numbers).to_numpy()
    plane = FisherPlane.of(X, c.labels, c.shares.shape[1], c.table.weight)
    if plane is None:
        return None
    seen = plane.seen(X)
    xs, ys = grid(seen)
    some = np.sort(np.random.default_rng(c.job.seed).permutation(len(X))[:POINTS])
    schema = c.model.schema

    def cluster_at(places: Array) -> Any:
        return c.model.predict(rows_of_numbers(places, numbers, c.frame, schema)) - 1

    doubtful = np.where(c.certainty < SURE, -1, c.labels)
    return Plane(
        points=seen[some], truth=c.labels[some], decided=doubtful[some], xs=xs, ys=ys,
        region=regions(plane, xs, ys, cluster_at), share=plane.share,
        labels=tuple(axis_label(f"{which} direction", plane.weights[:, j], numbers)
                     for j, which in enumerate(("first", "second"))),  # type: ignore[arg-type]
        note=NOTE + (WORDLESS if len(numbers) < len(schema) else "") + ".",
    )  # fmt: skip
