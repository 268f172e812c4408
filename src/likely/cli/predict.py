"""`likely predict`: decisions about the rows of a table, read in batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
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
A model of numbers gives mean, the ends low and high of the interval (--level),
quantiles (--quantiles 0.1,0.5,0.9), with --loss the decision, and novel.
"""

PIECE = 1 << 16  # characters


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@options.deciding
@options.losing
@click.option("--level", metavar="P", type=options.Share(), help="Regression: level of the interval.  [0.9]")
@click.option("--quantiles", metavar="P,...", callback=options.shares_of, help="Regression: quantiles to write.")
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

    Where the model predicts a number: its mean, an interval, quantiles, and the decision of least expected loss.

    Columns may be in any order; unknown columns are ignored. Files of any size are read in batches. A category that
    did not occur in training counts as missing: the other columns decide, and the row is marked novel. With --novelty
    it is rejected. (`likely novelty` gives such a category infinite surprisal.)
    """
    from likely.cli.open_model import classifier_of, cluster_model, is_regressor
    from likely.data.read_table import called

    loaded: Any
    of: Any
    check_outputs({"-o": out}, (model, *files, rules["cost"], rules["class_prior"]))
    clusters, thing = cluster_model(model)
    if is_regressor(thing):
        loaded, how, of = thing, number_rules(thing, rules), PredictedBatch.of
    elif clusters is None:
        loaded = classifier_of(thing, model)
        how, of = decision_rules(loaded, classes_only(rules)), DecidedBatch.of
    else:
        loaded, how, of = clusters, _no_decisions(rules), ClusteredBatch.of
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
    unsupported = [name for name, value in rules.items() if value not in (None, ()) and name != "novelty"]
    if unsupported:
        raise click.UsageError(f"--{unsupported[0].replace('_', '-')} is for classifiers: this file holds clusters.")
    return {"novelty": rules.get("novelty")}


OF_NUMBERS = (*options.LOSS, "level", "quantiles")


def classes_only(rules: dict[str, Any]) -> dict[str, Any]:
    """Options for classifiers; raises for those of regression."""
    given = [name for name in OF_NUMBERS if rules.get(name) not in (None, ())]
    if given:
        raise click.UsageError(f"--{given[0]} is for models of numbers: this file holds a classifier.")
    return {name: value for name, value in rules.items() if name not in OF_NUMBERS}


def number_rules(model: Any, rules: dict[str, Any]) -> dict[str, Any]:
    """Options for regressors; None keeps the setting of the model."""
    given = [name for name in options.RULES if rules.get(name) is not None]
    if given:
        flag = given[0].replace("_", "-")
        raise click.UsageError(f"--{flag} is for classifiers: this file predicts a number; --loss sets the decision.")
    loss, costs = rules.get("loss"), (rules.get("over"), rules.get("under"))
    if (loss == "asymmetric") != all(cost is not None for cost in costs) and (loss or any(costs)):
        raise click.UsageError("--loss asymmetric needs --over and --under, and these need --loss asymmetric.")
    if loss is None and model.loss != "squared":
        loss, costs = model.loss, (model.over, model.under)
    level, quantiles = rules.get("level") or 0.9, rules.get("quantiles") or ()
    return {"loss": loss, "over": costs[0], "under": costs[1], "level": level, "quantiles": quantiles}


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


class Batch:
    """Answers about one batch, ready to be written: input columns, its own, whether it is novel, and why."""

    kept: Any  # a frame of input columns
    novel: Any  # (n,): rows that hold an unseen category, or are outliers

    def reasons(self) -> list[str]:
        """Why an answer is what it is, where that needs a reason; empty for the others."""
        raise NotImplementedError  # abstract

    def columns(self, proba: bool) -> list[Any]:
        """Its own columns, as series."""
        raise NotImplementedError  # abstract

    def records(self, proba: bool) -> Iterator[dict[str, Any]]:
        """The same as one dict per row."""
        raise NotImplementedError  # abstract

    def csv(self, proba: bool, header: bool) -> str:
        """Lines of a CSV file."""
        import polars as pl

        why = pl.Series("reason", [reason or None for reason in self.reasons()], dtype=pl.String)
        columns = [*self.columns(proba), pl.Series("novel", self.novel), why]
        taken = {column.name for column in columns}
        kept = self.kept.rename({name: f"input {name}" for name in self.kept.columns if name in taken})
        return pl.DataFrame([*kept.iter_columns(), *columns]).write_csv(include_header=header)

    def json_lines(self, proba: bool) -> str:
        """One JSON object per line."""
        import json

        novel, reasons, lines = self.novel.tolist(), self.reasons(), []
        kept = self.kept.iter_rows(named=True) if self.kept.width else [{}] * len(reasons)
        for i, (cells, record) in enumerate(zip(kept, self.records(proba), strict=True)):
            entry = {**cells, **record, "novel": novel[i], "reason": reasons[i] or None}
            lines.append(json.dumps(entry, default=str))
        return "".join(f"{line}\n" for line in lines)


def _rows_of(model: Any, frame: Any, missing: Any, allow: bool, whose: str) -> Any:
    """A frame of cells in the form of a model; messages name `whose`."""
    from likely.automl.table_classifier import laid_out
    from likely.data.table import Table

    table = Table.like(model.schema, frame, missing=missing, allow_missing=allow, whose=whose)
    return laid_out(table.frame, list(model.schema))


class DecidedBatch(Batch):
    """The decisions about one batch of rows, or about sequences."""

    def __init__(self, decisions: Any, kept: Any, unseen: dict[str, Any], log_prob: Any = None) -> None:
        self.decisions, self.kept, self.unseen, self.log_prob = decisions, kept, unseen, log_prob

    @classmethod
    def of(
        cls, model: Any, frame: Any, how: dict[str, Any], keep: list[str], missing: Any, allow: bool, whose: str = ""
    ) -> DecidedBatch:  # fmt: skip
        """Decide about a frame of cells."""
        from likely.automl.table_classifier import Typed
        from likely.data.read_table import chosen

        kept, rows = chosen(frame, keep), _rows_of(model, frame, missing, allow, whose)
        return cls(model.decide(Typed(rows), full=True, **how), kept, model.unseen_categories(rows))

    @cached_property
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
            note = _unseen_words(self.unseen, i)
            out[i] = d.reason(i) if d.index[i] < 0 else "; ".join(part for part in (note, out[i]) if part)
        return out

    def columns(self, proba: bool) -> list[Any]:
        """Decision, expected cost, posterior probabilities, and log p of sequences."""
        import polars as pl

        d = self.decisions
        found = [pl.Series("decision", [str(choice) for choice in d.choice.tolist()])]
        found.append(pl.Series("cost", d.cost).fill_nan(None))
        if proba:
            found += [pl.Series(f"p({c})", d.posterior[:, j]) for j, c in enumerate(d.classes.tolist())]
        if self.log_prob is not None:
            found.append(pl.Series("log_prob", self.log_prob).fill_nan(None))
        return found

    def records(self, proba: bool) -> Iterator[dict[str, Any]]:
        """Decision, expected cost and posterior of each row."""
        d, cost = self.decisions, self.decisions.cost.tolist()
        names = [str(c) for c in d.classes.tolist()]
        choices = [choice if isinstance(choice, str | int | float) else str(choice) for choice in d.choice.tolist()]
        for i, choice in enumerate(choices):
            record = {"decision": choice, "cost": None if cost[i] != cost[i] else cost[i]}
            if proba:
                record["posterior"] = dict(zip(names, d.posterior[i].tolist(), strict=True))
            yield record


class PredictedBatch(Batch):
    """Predictions of numbers for one batch of rows."""

    def __init__(self, parts: dict[str, Any], kept: Any, unseen: dict[str, Any]) -> None:
        self.parts, self.kept, self.unseen = parts, kept, unseen

    @classmethod
    def of(
        cls, model: Any, frame: Any, how: dict[str, Any], keep: list[str], missing: Any, allow: bool, whose: str = ""
    ) -> PredictedBatch:  # fmt: skip
        """Means, intervals, quantiles and decisions for a frame of cells."""
        import numpy as np

        from likely.automl.table_classifier import Typed
        from likely.data.read_table import chosen
        from likely.decision.point_estimates import point_estimate

        kept, rows = chosen(frame, keep), _rows_of(model, frame, missing, allow, whose)
        found, level = model.predictive(Typed(rows)), how["level"]
        ends = np.asarray(found.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level, *how["quantiles"]]))
        ends = ends.reshape(2 + len(how["quantiles"]), -1)
        parts = {"mean": np.ravel(found.mean), "low": ends[0], "high": ends[1]}
        if how["loss"] is not None:
            parts["decision"] = point_estimate(found, how["loss"], over=how["over"], under=how["under"])
        parts |= {f"q{p:g}": q for p, q in zip(how["quantiles"], ends[2:], strict=True)}
        return cls(parts, kept, model.unseen_categories(rows))

    @cached_property
    def novel(self) -> Any:
        """Rows (n,) that hold an unseen category."""
        import numpy as np

        return np.logical_or.reduce([np.zeros(len(self.parts["mean"]), dtype=bool), *self.unseen.values()])

    def reasons(self) -> list[str]:
        """The columns with an unseen category; empty for the others."""
        return [_unseen_words(self.unseen, i) if odd else "" for i, odd in enumerate(self.novel.tolist())]

    def columns(self, proba: bool) -> list[Any]:
        """Mean, interval, decision and quantiles."""
        import polars as pl

        return [pl.Series(name, part) for name, part in self.parts.items()]

    def records(self, proba: bool) -> Iterator[dict[str, Any]]:
        """The same of each row."""
        for cells in zip(*(part.tolist() for part in self.parts.values()), strict=True):
            yield dict(zip(self.parts, cells, strict=True))


def _unseen_words(unseen: dict[str, Any], i: int) -> str:
    words = [f'"{name}"' for name, mask in unseen.items() if mask[i]]
    return f"a value of {', '.join(words)} was not seen in training: it counts as missing"


class ClusteredBatch(Batch):
    """The clusters of one batch of rows."""

    def __init__(self, shares: Any, kept: Any, novel: Any, reasons: list[str]) -> None:
        self.shares, self.kept, self.novel, self._reasons = shares, kept, novel, reasons

    @classmethod
    def of(
        cls, model: Any, frame: Any, how: dict[str, Any], keep: list[str], missing: Any, allow: bool, whose: str = ""
    ) -> ClusteredBatch:  # fmt: skip
        """Probabilities of the clusters for a frame of cells; `how` may set an alarm for rows unlike all of them."""
        from likely.automl.novelty_detector import NoveltyDetector
        from likely.automl.table_classifier import Typed
        from likely.data.read_table import chosen
        from likely.estimation.novelty.novelty_score import exceeds

        kept, rows = chosen(frame, keep), _rows_of(model, frame, missing, allow, whose)
        watch, rate = NoveltyDetector.of_model(model), how.get("novelty")
        seen = watch.score(rows)
        novel = seen.has_unseen if rate is None else seen.has_unseen | exceeds(seen.novelty, watch.level(rate))
        reasons = [seen.why(i) if beyond else "" for i, beyond in enumerate(novel.tolist())]
        return cls(model.predict_proba(Typed(rows)), kept, novel, reasons)

    def reasons(self) -> list[str]:
        """Why a row is novel; empty for the others."""
        return self._reasons

    def columns(self, proba: bool) -> list[Any]:
        """Cluster, its probability, and those of all clusters."""
        import polars as pl

        found = [pl.Series("cluster", self.shares.argmax(axis=1) + 1)]
        found.append(pl.Series("probability", self.shares.max(axis=1)))
        each = enumerate(self.shares.T) if proba else ()
        return [*found, *(pl.Series(f"p({k + 1})", share) for k, share in each)]

    def records(self, proba: bool) -> Iterator[dict[str, Any]]:
        """The same of each row."""
        for share in self.shares.tolist():
            best = max(share)
            record = {"cluster": share.index(best) + 1, "probability": best}
            yield {**record, "probabilities": share} if proba else record
