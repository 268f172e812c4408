"""`likely predict`: decisions about the rows of a table, read in batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from likely.cli import options
from likely.cli.batches import batches, counted_from
from likely.cli.outputs import check_outputs
from likely.io.atomic_write import written_whole

EPILOG = """\b
Examples:
  likely predict model.likely new.csv -o decisions.csv
  cat new.csv | likely predict model.likely - --json
Columns: decision (a class, a further action, REJECT or NOVEL), expected cost,
p(class) for each class, novel (a category not seen in training, or NOVEL), and
the reason if the row was rejected, is novel, or if costs led to a class other
than the most probable one.
A model of `likely cluster` gives cluster, probability, p(cluster) and novel.
"""

PIECE = 1 << 16  # characters


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@options.deciding
@options.reading
@click.option("--keep", metavar="COL,...", help="Input columns to repeat in the output.")
@click.option("--proba/--no-proba", default=True, help="Write the posterior probability of each class.  [yes]")
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("-o", "--output", "out", metavar="FILE", help="Write to this file (atomically).  [stdout]")
def predict(
    model: str, files: tuple[str, ...], sql: str | None, format_: str | None, missing: tuple[str, ...],
    keep: str | None, proba: bool, allow_missing: bool, as_json: bool, out: str | None, **rules: Any,
) -> None:  # fmt: skip
    """Classify the rows of a table, with the costs and reject options of the model file or with others.

    Columns may be in any order; unknown columns are ignored. Files of any size are read in batches. A category that
    did not occur in training counts as missing: the other columns decide, and the row is marked novel. With --novelty
    it is rejected. (`likely novelty` gives such a category infinite surprisal.)
    """
    from likely.cli.open_model import classifier_of, cluster_model
    from likely.data.read_table import called

    check_outputs({"-o": out}, (model, *files, rules["cost"], rules["class_prior"]))
    clusters, thing = cluster_model(model)
    loaded: Any = classifier_of(thing, model) if clusters is None else clusters
    how = decision_rules(loaded, rules) if clusters is None else _no_decisions(rules)
    of = DecidedBatch.of if clusters is None else _clustered
    kept = [name.strip() for name in keep.split(",")] if keep else []
    with _written_to(out) as stream:
        header = True
        for before, frame in _parts(files, sql, format_, missing):
            with counted_from(before):
                decided = of(loaded, frame, how, kept, missing, allow_missing, called(files))
            _put(stream, decided.json_lines(proba) if as_json else decided.csv(proba, header))
            header = False


def _no_decisions(rules: dict[str, Any]) -> dict[str, Any]:
    """Options for clusters: --novelty is the only decision rule that they have."""
    unsupported = [name for name, value in rules.items() if value is not None and name != "novelty"]
    if unsupported:
        raise click.UsageError(f"--{unsupported[0].replace('_', '-')} is for classifiers: this file holds clusters.")
    return {"novelty": rules.get("novelty")}


def _clustered(*args: Any) -> Any:
    from likely.cli.clustering.predict_clusters import Clustered

    return Clustered.of(*args)


def decision_rules(model: Any, rules: dict[str, Any]) -> dict[str, Any]:
    """Options as `decide` takes them; None keeps the setting of the model."""
    from likely.cli.costs import read_class_prior, read_cost

    found = dict(rules)
    if rules.get("cost") is not None:
        found["cost"] = read_cost(rules["cost"], model.classes_)
    if rules.get("class_prior") is not None:
        found["class_prior"] = read_class_prior(rules["class_prior"], model.classes_)
    return found


def _parts(files: tuple[str, ...], sql: str | None, format: str | None, missing: Any) -> Iterator[tuple[int, Any]]:
    if sql is None:
        yield from batches(files, format)
        return
    from likely.data.read_table import read_table

    yield 0, read_table(list(files), sql=sql, format=format, missing=missing)


def _put(stream: IO[str], text: str) -> None:
    """Write in pieces: Python does not report a pipe that closes during one large write."""
    for start in range(0, len(text), PIECE):
        stream.write(text[start : start + PIECE])
    stream.flush()


@contextmanager
def _written_to(out: str | None) -> Iterator[IO[str]]:
    if out is None:
        yield sys.stdout
        return
    with written_whole(out) as stream:
        yield stream


class DecidedBatch:
    """The decisions about one batch of rows, or about sequences, ready to be written."""

    def __init__(self, decisions: Any, kept: Any, unseen: dict[str, Any], log_prob: Any = None) -> None:
        self.decisions, self.kept, self.unseen, self.log_prob = decisions, kept, unseen, log_prob

    @classmethod
    def of(
        cls, model: Any, frame: Any, how: dict[str, Any], keep: list[str], missing: Any, allow: bool, whose: str = ""
    ) -> DecidedBatch:  # fmt: skip
        """Decide about a frame of cells; messages name `whose`."""
        from likely.automl.table_classifier import Typed, laid_out
        from likely.data.read_table import chosen
        from likely.data.table import Table

        kept = chosen(frame, keep)
        table = Table.like(model.schema, frame, missing=missing, allow_missing=allow, whose=whose)
        rows = laid_out(table.frame, list(model.schema))
        return cls(model.decide(Typed(rows), full=True, **how), kept, model.unseen_categories(rows))

    @property
    def novel(self) -> Any:
        """Rows (n,) that hold an unseen category, or are outliers."""
        import numpy as np

        from likely.decision.reject import NOVEL

        return np.logical_or.reduce([self.decisions.index == NOVEL.code, *self.unseen.values()])

    def reasons(self) -> list[str]:
        """Why a row was rejected, is novel, or did not get its most probable class; empty for the others."""
        d = self.decisions
        out = [""] * len(d)
        for i in ((d.index >= 0) & (d.index != d.posterior.argmax(axis=1))).nonzero()[0].tolist():
            out[i] = d.cost_decided(i)
        for i in (self.novel | (self.decisions.index < 0)).nonzero()[0].tolist():
            words = [f'"{name}"' for name, mask in self.unseen.items() if mask[i]]
            note = f"a value of {', '.join(words)} was not seen in training: it counts as missing"
            out[i] = d.reason(i) if d.index[i] < 0 else "; ".join(part for part in (note, out[i]) if part)
        return out

    def csv(self, proba: bool, header: bool) -> str:
        """Lines of a CSV file."""
        import polars as pl

        d = self.decisions
        columns: list[pl.Series] = [
            pl.Series("decision", [str(choice) for choice in d.choice.tolist()]),
            pl.Series("cost", d.cost).fill_nan(None),
        ]
        if proba:
            columns += [pl.Series(f"p({c})", d.posterior[:, j]) for j, c in enumerate(d.classes.tolist())]
        if self.log_prob is not None:
            columns.append(pl.Series("log_prob", self.log_prob).fill_nan(None))
        why = pl.Series("reason", [reason or None for reason in self.reasons()], dtype=pl.String)
        columns += [pl.Series("novel", self.novel), why]
        taken = {column.name for column in columns}
        kept = self.kept.rename({name: f"input {name}" for name in self.kept.columns if name in taken})
        return pl.DataFrame([*kept.iter_columns(), *columns]).write_csv(include_header=header)

    def json_lines(self, proba: bool) -> str:
        """One JSON object per line."""
        import json

        d, reasons, novel, cost = self.decisions, self.reasons(), self.novel.tolist(), self.decisions.cost.tolist()
        names = [str(c) for c in d.classes.tolist()]
        choices = [choice if isinstance(choice, str | int | float) else str(choice) for choice in d.choice.tolist()]
        lines = []
        for i, (choice, kept) in enumerate(zip(choices, self._kept_rows(), strict=True)):
            record = {**kept, "decision": choice, "cost": None if cost[i] != cost[i] else cost[i]}
            if proba:
                record["posterior"] = dict(zip(names, d.posterior[i].tolist(), strict=True))
            lines.append(json.dumps(record | {"novel": novel[i], "reason": reasons[i] or None}, default=str))
        return "".join(f"{line}\n" for line in lines)

    def _kept_rows(self) -> Any:
        return self.kept.iter_rows(named=True) if self.kept.width else [{}] * len(self.decisions)
