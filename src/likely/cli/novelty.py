"""`likely novelty`: outlier detection at a stated false-alarm rate, with the contribution of each column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import click

from likely.cli import options
from likely.cli.batches import counted_from
from likely.cli.cluster import names_of
from likely.cli.console import Console
from likely.cli.outputs import check_outputs
from likely.core.description import clipped, columns

EPILOG = """\b
Examples:
  likely novelty today.csv --train normal.csv --rate 0.001 -o marked.csv
  likely novelty new.csv --model model.likely --json
Output columns: those of the input, novel, surprisal (in bits, above that of a
typical reference row; may be inf), p_value (the fraction of reference rows with
at least this surprisal); for novel rows top_column (the column with the largest
contribution), top_column_bits, and other_columns: further unusual columns, the
most unusual first. In JSON, ranking has the bits of every column;
infinite values are null, and surprisal_infinite is true.
"""

TRAINING_FLAGS = {"ignore": "--ignore", "kinds": "--as", "save_model": "--save-model"}
LISTED = 5  # the most unusual rows in the summary
ODD = 3.0  # bits from which on a further column is named: about one reference row in eight
NAMED = 4  # columns of a row in the summary


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--model", metavar="FILE", help="Model file of `likely fit`, `likely cluster`, or a density.")
@click.option(
    "--train", multiple=True, metavar="FILE", help="Reference (normal) rows to fit a density to instead; repeatable."
)
@click.option(
    "--rate",
    metavar="P",
    type=options.Share(),
    default=0.01,
    show_default=True,
    help="False-alarm rate among reference rows.",
)
@click.option(
    "--ignore", multiple=True, metavar="COL,...", callback=names_of, help="With --train: columns to leave out."
)
@click.option("--as", "kinds", multiple=True, metavar="NAME=KIND", callback=options.kinds_of,
              help="With --train: type of a column: real, count, binary, category, ignore.")  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="With --train: random seed."
)
@click.option("--save-model", metavar="FILE", help="With --train: also write the fitted density to a model file.")
@options.reading
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("-o", "--output", "out", metavar="FILE", help="Write to this file (atomically).  [stdout]")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def novelty(
    files: tuple[str, ...], model: str | None, train: tuple[str, ...], rate: float, sql: str | None,
    format_: str | None, missing: tuple[str, ...], allow_missing: bool, as_json: bool, out: str | None, quiet: bool,
    **learning: Any,
) -> None:  # fmt: skip
    """Detect outliers: mark rows whose log-density is lower than that of all but a given fraction of reference rows.

    The threshold is set on held-out reference rows, so the stated false-alarm rate holds even if the model fits badly.
    Rows with missing values are compared with reference rows that lack the same values.

    A category that did not occur in training has infinite surprisal: the row is novel at any rate, and its other
    columns are ranked as if the category were missing. (`likely predict` treats it as missing, and marks the row.)
    """
    from likely.cli.predict import _parts, _put, _written_to
    from likely.data.read_table import called

    _check_usage(model, train, learning)
    check_outputs(
        {"-o": out, "--save-model": learning["save_model"]}, (*files, *train, model), models=("--save-model",)
    )
    console = Console(quiet)
    watch = _watch(model, train, missing, format_, learning, console)
    with _notes(console):
        level = watch.level(rate)
    tally = Tally(rate)
    with _written_to(out) as stream:
        for before, frame in _parts(files, sql, format_, missing):
            with counted_from(before):
                marked = Marked.of(watch, level, frame, missing, allow_missing, called(files))
            _put(stream, marked.json_lines() if as_json else marked.csv(not tally.rows))
            tally.add(marked)
    written = [file for file in (out, learning["save_model"]) if file is not None]
    console(tally.words() + (f"\n\nwritten: {', '.join(written)}" if written else ""))


def _check_usage(model: str | None, train: tuple[str, ...], learning: dict[str, Any]) -> None:
    if (model is None) == (not train):
        raise click.UsageError("give the reference: either --model FILE or --train FILE with normal rows.")
    given = [flag for name, flag in TRAINING_FLAGS.items() if learning[name]]
    if model is not None and given:
        raise click.UsageError(f"{given[0]} goes with --train: a model file has its columns already.")


def _watch(
    model: str | None, train: tuple[str, ...], missing: Any, format: str | None, how: Any, console: Console
) -> Any:
    """The novelty detector of a model file, or one fitted to reference rows."""
    from likely.cli.open_model import watch_model

    if model is None:
        return _learned(train, missing, format, how, console)
    watch = watch_model(model)
    if watch.held_out_novelty is None or not watch.held_out_novelty.shape[1]:
        warning = "the file holds no held-out scores: the threshold is set on samples from the model, and the"
        console(f"{warning} rate holds only if the model fits; --train sets it on held-out rows")
    return watch


def _learned(train: tuple[str, ...], missing: Any, format: str | None, how: dict[str, Any], console: Console) -> Any:
    import json

    from likely.automl.novelty_detector import NoveltyDetector
    from likely.automl.table_classifier import arranged_schema, laid_out
    from likely.automl.table_clusterer import TableClusterer, most_clusters
    from likely.automl.table_mixture import MOST, discover
    from likely.data.table import Table

    table = Table.of(list(train), kinds=how["kinds"], missing=missing, ignore=how["ignore"], format=format)
    console(table.describe())
    schema = arranged_schema(table.schema())
    frame, kinds = laid_out(table.frame, list(schema)), {name: entry["kind"] for name, entry in schema.items()}
    with _notes(console) as notes:
        most = most_clusters(frame, MOST)
        found = discover(frame, kinds, seed=how["seed"], density=True, max_components=most)
        model = TableClusterer.from_fitted(found, schema, frame, columns=table.names, random_state=how["seed"])
    console(f"\nreference rows: a mixture of {_why(found)}\n")
    if how["save_model"] is not None:
        model.card_ = json.dumps(_facts(table, found, train, missing, format, how, notes.messages))
        model.save(how["save_model"])
    return NoveltyDetector.of_model(model)


def _why(found: Any) -> str:
    return str(found.why.replace("cluster", "component"))


def _facts(
    table: Any, found: Any, train: tuple[str, ...], missing: Any, format: str | None, how: Any, notes: list[str]
) -> dict[str, Any]:
    """Facts for the model file: how the density was fitted, as plain values."""
    from datetime import UTC, datetime

    from likely._version import __version__
    from likely.core.description import plain

    described, report = table.as_dict(), found.mixture.report_
    facts: dict[str, Any] = plain({
        "task": "density", "made": f"likely {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "command": _command(train, missing, format, how), "seed": how["seed"], "source": list(train),
        "rows": len(table), "roles": described["roles"], "fingerprint": described["fingerprint"],
        "columns": [{k: v for k, v in x.items() if k != "levels"} for x in described["columns"] if x["used"]],
        "excluded": table.excluded, "warnings": notes, "why": _why(found), "shape": found.shape,
        "bic_of_shapes": found.bic,
        "learning": {"converged": report.converged, "reason": report.reason, "iterations": report.iterations,
                     "objective": report.objective},
    })  # fmt: skip
    return facts


def _command(train: tuple[str, ...], missing: Any, format: str | None, how: dict[str, Any]) -> str:
    """A command line that fits the same density; the rows to score may be any, here the reference rows."""
    import shlex

    words = ["likely", "novelty", train[0]]
    repeated = {"--train": train, "--missing": missing, "--ignore": how["ignore"],
                "--as": [f"{name}={kind}" for name, kind in how["kinds"].items()]}  # fmt: skip
    words += [word for flag, values in repeated.items() for value in values for word in (flag, value)]
    words += ["--format", format] if format else []
    words += ["--seed", str(how["seed"])] if how["seed"] else []
    return shlex.join([*words, "--save-model", how["save_model"]])


class _notes:
    """Prints warnings of the library as notes, each once."""

    def __init__(self, console: Console) -> None:
        self.console, self.caught = console, warnings.catch_warnings(record=True)
        self.messages: list[str] = []

    def __enter__(self) -> _notes:
        self.heard = self.caught.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error: Any) -> None:
        self.caught.__exit__(*error)
        self.messages = list(dict.fromkeys(str(w.message) for w in self.heard or ()))
        for text in self.messages:
            self.console(f"note: {text}")


class Marked:
    """One batch of rows with their novelty scores."""

    def __init__(self, source: Any, novel: Any, bits: Any, p_value: Any, ranked: list[dict[str, float]]) -> None:
        self.source, self.novel, self.bits, self.p_value = source, novel, bits, p_value
        self.ranked = ranked  # per novel row: columns with their bits, the largest first

    @classmethod
    def of(cls, watch: Any, level: float, frame: Any, missing: Any, allow_missing: bool, whose: str = "") -> Marked:
        """Score a frame of cells."""
        import numpy as np

        from likely.automl.table_classifier import laid_out
        from likely.data.table import Table
        from likely.estimation.novelty.novelty_score import exceeds

        names = list(watch.schema)
        table = Table.like(watch.schema, frame, missing=missing, allow_missing=allow_missing, whose=whose)
        rows = laid_out(table.frame, names)
        look = watch.score(rows)
        novel = exceeds(look.novelty, level)
        ranked: list[dict[str, float]] = [{} for _ in novel]
        at = np.flatnonzero(novel)
        if len(at):
            for i, bits in zip(at.tolist(), watch.ranking(rows[at]), strict=True):
                order = np.argsort(-bits, kind="stable").tolist()
                ranked[i] = {names[j]: float(bits[j]) for j in order if bits[j] > -np.inf}
        beyond = np.where(look.has_unseen, np.inf, look.bits)  # an unseen category has infinite surprisal
        return cls(frame, novel, beyond, watch.p_value(look.novelty), ranked)

    @property
    def top_column(self) -> list[str | None]:
        """Per novel row, the column with the largest contribution."""
        return [next(iter(ranks), None) for ranks in self.ranked]

    def _also(self, i: int) -> list[str]:
        """The other unusual columns of a row."""
        return [name for name, bits in list(self.ranked[i].items())[1:] if bits >= ODD]

    def columns(self) -> list[Any]:
        """The new columns."""
        import polars as pl

        first = [next(iter(ranks.values()), None) for ranks in self.ranked]
        also = ["; ".join(self._also(i)) or None for i in range(len(self.novel))]
        return [
            pl.Series("novel", self.novel), pl.Series("surprisal", self.bits), pl.Series("p_value", self.p_value),
            pl.Series("top_column", self.top_column, dtype=pl.String),
            pl.Series("top_column_bits", first, dtype=pl.Float64),
            pl.Series("other_columns", also, dtype=pl.String),
        ]  # fmt: skip

    def frame(self) -> Any:
        """The input's columns and the new ones."""
        new = self.columns()
        taken = {column.name for column in new}
        return self.source.rename({n: f"input {n}" for n in self.source.columns if n in taken}).with_columns(new)

    def csv(self, header: bool) -> str:
        """Lines of a CSV file."""
        text: str = self.frame().write_csv(include_header=header)
        return text

    def json_lines(self) -> str:
        """One JSON object per line."""
        import json

        new = ("ranking", "surprisal_infinite")  # which a CSV file has not

        def line(i: int, row: dict[str, Any]) -> str:
            also, ranks = self._also(i), {name: _finite(bits) for name, bits in self.ranked[i].items()}
            more = {"other_columns": also, "ranking": ranks, "surprisal_infinite": row["surprisal"] == float("inf")}
            cells = {f"input {n}" if n in new else n: _finite(cell) for n, cell in row.items()}
            return json.dumps(cells | more, default=str)

        return "".join(f"{line(i, row)}\n" for i, row in enumerate(self.frame().iter_rows(named=True)))

    def worst(self, before: int) -> Iterator[tuple[float, int, str]]:
        """The most unusual novel rows: bits, row number, and the top columns with their values."""
        import numpy as np

        at = np.flatnonzero(self.novel)
        for i in at[np.argsort(-self.bits[at], kind="stable")][:LISTED].tolist():
            named = [*list(self.ranked[i])[:1], *self._also(i)]
            more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
            yield float(self.bits[i]), before + i + 1, ", ".join(self._cell(n, i) for n in named[:NAMED]) + more

    def _cell(self, name: str, i: int) -> str:
        cell = self.source[name][i] if name in self.source.columns else None
        return f"{clipped(name, 40)} = {clipped(str(cell), 40)}"


def _finite(cell: Any) -> Any:
    """None for infinity, which JSON lacks."""
    import math

    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


class Tally:
    """Number of marked rows, and the most unusual of them."""

    def __init__(self, rate: float) -> None:
        self.rate, self.rows, self.novel = rate, 0, 0
        self.worst: list[tuple[float, int, str]] = []

    def add(self, marked: Marked) -> None:
        """Count a batch."""
        self.worst = sorted([*self.worst, *marked.worst(self.rows)], key=lambda one: -one[0])[:LISTED]
        self.rows += len(marked.novel)
        self.novel += int(marked.novel.sum())

    def words(self) -> str:
        """The summary as text."""
        share = self.novel / max(self.rows, 1)
        first = f"{self.novel:,} of {self.rows:,} rows are novel ({share:.2%})"
        first = f"{first}; expected among reference rows: {self.rate:.2%}"
        if not self.worst:
            return first
        lines = [["", "row", "bits", "because of"]]
        for bits, row, named in self.worst:
            lines.append(["", f"{row:,}", f"{bits:.1f}" if bits < float("inf") else "∞", named])
        return f"{first}\nthe most unusual:\n{columns(lines, right=(1, 2))}"
