"""The run of `likely cluster`: read the table, choose covariance and number of components, fit, describe, write."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likely._version import __version__
from likely.cli.clustering.cluster_profiles import Trait, profile, trait_words
from likely.cli.console import Console
from likely.cli.outputs import check_outputs
from likely.core.arrays import Array, Index
from likely.core.errors import FitWarning
from likely.io.atomic_write import write_text

if TYPE_CHECKING:
    import polars as pl

    from likely.automl.table_clusterer import TableClusterer
    from likely.automl.table_mixture import ChosenMixture, ClusterCriterion
    from likely.data.table import Table

SURE = 0.8  # a row whose cluster is less probable than that is uncertain
FEW_ROWS = 10


@dataclass(frozen=True)
class ClusterJob:
    """Options of `likely cluster`."""

    files: tuple[str, ...]
    n_components: int | None = None  # None: chosen
    criterion: ClusterCriterion = "bic"
    max_components: int = 10
    weight: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    sql: str | None = None
    format: str | None = None
    n_init: int = 3
    seed: int = 0
    out: str = "clusters.csv"
    save_model: str | None = None
    report: str | None = None

    @property
    def command(self) -> str:
        """The command line that does the same.

        >>> ClusterJob(("faithful.csv",), n_components=2, report="r.html").command
        'likely cluster faithful.csv --n-components 2 --report r.html'
        """
        return shlex.join(["likely", "cluster", *self.files, *self._options()])

    def _options(self) -> Iterator[str]:
        usual = ClusterJob(())
        for name in ("n_components", "criterion", "max_components", "weight", "id", "sql", "format", "n_init", "seed",
                     "save_model", "report"):  # fmt: skip
            if getattr(self, name) != getattr(usual, name):
                yield from (f"--{name.replace('_', '-')}", str(getattr(self, name)))
        for name in ("missing", "ignore"):
            for value in getattr(self, name):
                yield from (f"--{name}", value)
        for name, kind in self.kinds.items():
            yield from ("--as", f"{name}={kind}")
        if self.out != usual.out:
            yield from ("-o", self.out)


@dataclass(frozen=True)
class ClusterRun:
    """Result of a clustering job: the table, the model and the assignments."""

    job: ClusterJob
    source: pl.DataFrame  # as it was read
    table: Table
    frame: Any  # typed columns, in the model's order
    found: ChosenMixture
    model: TableClusterer
    shares: Array  # (n, K): p(cluster | row)
    traits: list[Trait]
    warnings: tuple[str, ...]
    made: str

    @property
    def labels(self) -> Index:
        """The cluster of each row (n,), from 0."""
        return self.shares.argmax(axis=1)

    @property
    def certainty(self) -> Array:
        """Probability of each row's own cluster (n,)."""
        return self.shares.max(axis=1)

    @property
    def weight(self) -> Array:
        """Sample weights (n,)."""
        return np.ones(len(self.shares)) if self.table.weight is None else self.table.weight

    @property
    def sizes(self) -> Array:
        """Rows, or their weight, in each cluster (K,)."""
        return np.asarray(np.bincount(self.labels, self.weight, self.shares.shape[1]), dtype=np.float64)

    @property
    def mean_certainty(self) -> float:
        """Mean posterior probability of the assigned cluster."""
        return float(self.weight @ self.certainty / self.weight.sum())

    @property
    def unsure(self) -> float:
        """Fraction of rows whose cluster is less than 80 % probable."""
        return float(self.weight @ (self.certainty < SURE) / self.weight.sum())


def found_clusters(job: ClusterJob, console: Console) -> ClusterRun:
    """Run the job; files are written at the end, each atomically."""
    check_outputs(
        {"-o": job.out, "--save-model": job.save_model, "--report": job.report}, job.files, models=("--save-model",)
    )
    source, table = _read(job)
    console(table.describe())
    console("\nfitting mixtures")
    done = _learned(job, source, table, console)
    write(done)
    return done


def _read(job: ClusterJob) -> tuple[pl.DataFrame, Table]:
    from likely.data.read_table import called, require
    from likely.data.table import Table
    from likely.data.type_inference import as_frame

    source = as_frame(list(job.files), job.missing, job.sql, job.format)
    if job.id is not None:
        require(job.id, source.columns, "--id")
    for name in job.ignore:
        require(name, source.columns, "--ignore")
    aside = dict.fromkeys([*job.ignore, *([job.id] if job.id else [])])
    kinds = {name: kind for name, kind in job.kinds.items() if name not in aside}
    whose = called(job.files)
    return source, Table.of(
        source, weight=job.weight, kinds=kinds, missing=job.missing, ignore=list(aside), whose=whose
    )  # fmt: skip


def _learned(job: ClusterJob, source: pl.DataFrame, table: Table, console: Console) -> ClusterRun:
    from likely.automl.table_classifier import Typed, arranged_schema, laid_out
    from likely.automl.table_clusterer import TableClusterer, most_clusters
    from likely.automl.table_mixture import discover

    schema = arranged_schema(table.schema())
    kinds = {name: entry["kind"] for name, entry in schema.items()}
    frame = laid_out(table.frame, list(schema))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(frame, kinds, job.n_components, criterion=job.criterion, weight=table.weight,
                         n_init=job.n_init, max_components=most_clusters(frame, job.max_components, table.weight),
                         seed=job.seed, callback=lambda text: console(f"  {text}"))  # fmt: skip
        model = TableClusterer.from_fitted(found, schema, frame, table.weight, table.names, criterion=job.criterion,
                                           n_init=job.n_init, max_components=job.max_components,
                                           random_state=job.seed)  # fmt: skip
        shares = model.predict_proba(Typed(frame))
    rows, made = table.rows(), f"likely {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    traits = profile({name: rows[name] for name in kinds}, kinds, shares.argmax(axis=1), shares.shape[1], table.weight)
    done = ClusterRun(job, source, table, frame, found, model, shares, traits, (), made)
    heard = (str(w.message) for w in caught if issubclass(w.category, FitWarning))
    found_warnings = dict.fromkeys([*_warnings(done), *heard])
    return ClusterRun(job, source, table, frame, found, model, shares, traits, tuple(found_warnings), made)


def _warnings(c: ClusterRun) -> Iterator[str]:
    """Warnings about the clusters."""
    from likely.automl.table_clusterer import most_clusters

    report, k = c.found.mixture.report_, c.shares.shape[1]
    if k == 1 and c.found.criterion != "given":
        yield "One cluster describes the rows best: these columns do not separate groups."
    if report.agreement is not None and report.agreement < 0.9 and k > 1:
        finding = f"adjusted Rand index {report.agreement:.2f} on average"
        yield f"Different initializations give different clusters ({finding})."
    yield from _of_the_choice(c)
    if c.unsure > 0.2:
        yield f"{c.unsure:.0%} of rows belong to their cluster with less than {SURE:.0%}: clusters overlap."
    few = most_clusters(c.frame, c.job.max_components, c.table.weight)
    if c.found.criterion != "given" and k >= few < c.job.max_components:
        finding = f"numbers up to {few} were tried, one for three distinct rows"
        yield f"There are few different rows: {finding}; --n-components asks for more."
    small = [str(i + 1) for i, size in enumerate(c.sizes.tolist()) if size < FEW_ROWS]
    if small:
        yield f"Fewer than {FEW_ROWS} rows: cluster {', '.join(small)}. They may be outliers rather than groups."
    for column in c.table.used:
        if column.n_missing > len(c.table) / 2:
            yield f'Column "{column.name}" is missing in {column.n_missing / len(c.table):.0%} of rows.'


def _of_the_choice(c: ClusterRun) -> Iterator[str]:
    choice = c.found.choice
    if choice is None:
        return
    best = choice.best
    if best[c.found.criterion] >= c.job.max_components > 1:
        yield f"{c.job.max_components} clusters, the largest number tried, are the best: --max-components tries more."
    others = {way: number for way, number in best.items() if number != best[c.found.criterion]}
    if others:
        ways = {"bic": "BIC", "held-out": "held-out likelihood", "prior": "a sparse prior"}
        listed = ", ".join(f"{ways[way]} would choose {number}" for way, number in others.items())
        yield f"The number of clusters is ambiguous: {listed}."
    if not np.all(choice.converged.get(c.found.criterion, True)):
        yield "Some of the fits that chose the number had not converged: other seeds may choose another number."
    if c.found.chosen_on < len(c.table):
        yield f"The number was chosen on {c.found.chosen_on:,} rows; all {len(c.table):,} learned afterwards."


# -------------------------------------------------------------------------- what is written


def with_clusters(c: ClusterRun) -> pl.DataFrame:
    """The input columns, with cluster and probability per row."""
    import polars as pl

    new = [pl.Series("cluster", c.labels + 1), pl.Series("probability", c.certainty)]
    taken = {column.name for column in new}
    kept = c.source.rename({name: f"input {name}" for name in c.source.columns if name in taken})
    return kept.with_columns(new)


def facts_of(c: ClusterRun) -> dict[str, Any]:
    """The facts for `--json` and for the model file, as plain values."""
    from likely.core.description import plain

    described, report, choice = c.table.as_dict(), c.found.mixture.report_, c.found.choice
    return plain({
        "task": "clusters", "made": c.made, "command": c.job.command, "seed": c.job.seed, "source": list(c.job.files),
        "rows": len(c.table), "roles": described["roles"], "fingerprint": described["fingerprint"],
        "columns": [{k: v for k, v in x.items() if k != "levels"} for x in described["columns"] if x["used"]],
        "excluded": c.table.excluded, "warnings": list(c.warnings), "clusters": _clusters_as_dicts(c),
        "why": c.found.why, "shape": c.found.shape, "bic_of_shapes": c.found.bic,
        "choice": choice and {
            "by": c.found.criterion, "numbers": choice.numbers, "bic": choice.bic, "held_out": choice.held_out,
            "held_out_error": choice.held_out_error, "left_by_prior": choice.n_components_mml, "best": choice.best,
            "message_length": choice.message_length, "converged": choice.converged,
        },
        "certainty": {"mean": c.mean_certainty, "below_0.8": c.unsure},
        "learning": {"converged": report.converged, "reason": report.reason, "iterations": report.iterations,
                     "objective": report.objective, "starts": max(len(report.runs), 1),
                     "agreement": report.agreement},
    })  # fmt: skip


def _clusters_as_dicts(c: ClusterRun) -> list[dict[str, Any]]:
    total = c.sizes.sum()
    return [
        {
            "cluster": k + 1, "rows": float(size), "share": float(size / total), "profile": trait_words(c.traits, k),
            "differences": {t.name: {"value": float(t.values[k]), "apart": float(t.apart[k])} for t in c.traits},
        }
        for k, size in enumerate(c.sizes.tolist())
    ]  # fmt: skip


def write(c: ClusterRun) -> None:
    """Rows, model and report."""
    import json

    job = c.job
    c.model.card_ = json.dumps(facts_of(c))
    page = None
    if job.report is not None:
        from likely.cli.clustering.cluster_report_data import cluster_study_of
        from likely.report.page import cluster_html

        page = cluster_html(cluster_study_of(c))
    rows = with_clusters(c).write_csv()
    if job.save_model is not None:
        c.model.save(job.save_model)
    if page is not None and job.report is not None:
        write_text(job.report, page)
    if job.out == "-":
        click.echo(rows, nl=False)
    else:
        write_text(job.out, rows)


def title_of(job: ClusterJob) -> str:
    """What the page is called."""
    return f"Clusters in {', '.join('standard input' if f == '-' else Path(f).name for f in job.files)}"
