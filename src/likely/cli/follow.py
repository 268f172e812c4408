"""`likely follow`: online filtering of a stream, one line of output per observation."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from itertools import tee
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from likely.cli import options
from likely.cli.console import Console
from likely.cli.following.follow_lines import Lines
from likely.cli.following.follow_output import Output, csv_line, json_line
from likely.cli.following.follow_reader import ObservationReader
from likely.cli.following.follow_signals import Stops
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, sentence, unread
from likely.io.atomic_write import is_stream

if TYPE_CHECKING:
    from likely.cli.following.follow_models import Subject
    from likely.core.progress import FollowedLines, Following

EPILOG = """\b
Examples:
  tail -n +1 -f log.csv | likely follow model.likely
  likely follow model.likely log.csv --time t --checkpoint live.likely -o beliefs.csv
  sensor | likely follow model.likely - --fault broken --miss-cost 100
  sensor | likely follow model.likely - --false-alarm-every 10000 --json
  likely follow motor.likely log.csv --inputs voltage,load
Columns: frame (from 0), time if there is one, state and p(state) for discrete
states, mean and sd for continuous ones, surprisal in bits (-log2 of the
predictive probability or density of the line given all lines before),
alarm if an alarm rule is given. For a fault monitor: p(fault), alarm (by its
own rule), the sensor with the largest contribution and its bits; for a
tracker: exists, confirmed.
An empty cell, or a key absent from a JSON line, is a missing value; a line
without any column of the model is an error (see --skip-bad).
--checkpoint: if the process is killed and restarted on the same input with -o,
the output file ends with the same bytes as without the interruption. Ctrl-C,
TERM and HUP finish the current line and save a checkpoint. For a pipe that
cannot be read again, lines read (up to 8 KB ahead) after the last checkpoint
are lost; on stdout, lines after the last checkpoint are written again.
"""

FROM_A_FILE = 1000  # lines between two checkpoints: it can be read again, a pipe cannot


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--id", "id", metavar="COL", help="Column with the stream ID: one filter per stream.  [as in training]")
@click.option("--time", metavar="COL", help="Time column, repeated in the output.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Input columns to use for the model's columns, in its order; repeatable.  [by name]")  # fmt: skip
@click.option("--inputs", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Columns of the known inputs (controls, covariates), in the model's order; repeatable.")  # fmt: skip
@click.option("--fault", multiple=True, metavar="STATE,...", callback=options.names_of,
              help="States that are faults: alarm by expected cost; repeatable.")  # fmt: skip
@click.option(
    "--miss-cost", metavar="COST", type=click.FloatRange(0, min_open=True), help="Cost of a missed fault.  [1]"
)
@click.option(
    "--alarm-cost", metavar="COST", type=click.FloatRange(0, min_open=True), help="Cost of a false alarm.  [1]"
)
@click.option("--false-alarm-every", type=click.FloatRange(1, min_open=True), metavar="N",
              help="CUSUM alarm on the surprisal, with one false alarm in N lines on average.")  # fmt: skip
@click.option("--checkpoint", "keep", metavar="FILE", help="Save progress to this file; resume from it if it exists.")
@click.option(
    "--checkpoint-every",
    "every",
    type=click.IntRange(1),
    metavar="N",
    help="Lines between two checkpoints.  [a pipe: as many as there are streams; a FILE: 1000]",
)
@click.option("--replay/--continue", "replay", default=None,
              help="On resuming: the input starts again, or continues.  [FILE: replay; pipe: continue]")  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Skip lines that cannot be used, with a message on stderr.")
@click.option("--missing", multiple=True, metavar="TOKEN", help="Another token for a missing value; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.  [CSV]")
@click.option("-o", "--output", "out", metavar="FILE", help="Write to a file.  [stdout]")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def follow(model: str, file: str, out: str | None, keep: str | None, quiet: bool, **settings: Any) -> None:
    """Filter a stream online: one observation per line in, the filtered state and its surprisal out.

    MODEL is a model file with a hidden Markov model, a linear-Gaussian or a switching state-space model, a fault
    monitor or a tracker. Lines are CSV with a header, or JSON with one object per line. A category that did not occur
    in training is a missing value for a model of `likely fit`; for an HMM saved from Python it has probability zero:
    the surprisal is inf, and the belief state is only predicted.
    """
    _refuse_half_rules(settings)
    _check_files(model, file, out, keep)
    feed = Feed(model, settings, Console(quiet))
    kept = None if keep is None else _kept(keep, feed.asked)
    with _opened(file) as stream, Stops() as stops:
        lines = Lines(lambda: stops.listen(stream.readline), "standard input" if file == "-" else file)
        if kept is not None:
            _resume_input(lines, kept, settings["replay"], file)
        output = Output.to(out, kept)
        try:
            feed.run(lines, output, keep, kept, settings["every"] or (None if file == "-" else FROM_A_FILE))
        finally:
            output.close()


def _check_files(model: str, file: str, out: str | None, keep: str | None) -> None:
    if keep is not None and out is not None and is_stream(out):
        expected = "with --checkpoint the output must be a file, which can be truncated to the checkpoint"
        raise DataError(sentence(f"-o {out}", expected, "a device or a pipe", "leave -o or --checkpoint out"))
    check_outputs({"-o": out, "--checkpoint": keep}, (model, file), models=("--checkpoint",))


def _refuse_half_rules(settings: dict[str, Any]) -> None:
    if settings["fault"] and settings["false_alarm_every"]:
        raise click.UsageError("--fault and --false-alarm-every are two rules for alarms: choose one.")
    for name in ("miss_cost", "alarm_cost"):
        if settings[name] is not None and not settings["fault"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs the fault states: --fault STATE.")


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")
    except OSError as error:
        raise DataError(unread(file, error)) from error
    with stream:
        yield stream


# ------------------------------------------------------------------------- the feed


class Feed:
    """The model with its alarm as one filter, the options, and how beliefs are written."""

    def __init__(self, model: str, settings: dict[str, Any], console: Console) -> None:
        from likely.cli.following.follow_models import subject_of
        from likely.core.model_fingerprint import fingerprint
        from likely.decision.sequential.alarm_filter import AlarmFilter
        from likely.io.model_files import load

        self.subject, self.settings, self.console = subject_of(load(model), model), settings, console
        _refuse_columns(self.subject, settings)
        shaping = {name: settings[name] for name in settings if name not in ("replay", "every")}
        self.asked = fingerprint([fingerprint(self.subject.filter), shaping])  # the model and the options
        self.rule = _rule(self.subject, settings, model, console)
        filter_ = self.subject.filter
        self.filter = filter_ if self.rule is None else AlarmFilter(filter_, self.rule)

    def run(self, lines: Lines, output: Output, keep: str | None, kept: FollowedLines | None, every: Any) -> None:
        """Read, filter, write."""
        from likely.io.follow_stream import follow

        reader = ObservationReader(
            self.subject, self.settings, lines, self.console, kept, lambda r: self._title(r, output)
        )
        store = None if keep is None else LineCheckpoint(keep, self.asked, kept, reader, output)
        frames = {} if kept is None else dict(zip(kept.names, kept.counts.tolist(), strict=True))
        ys, us, names = tee(reader, 3)
        inputs = (row.inputs for row in us) if self.subject.timed or self.subject.n_inputs else None
        beliefs = follow(
            self.filter, (row.y for row in ys), inputs=inputs, streams=(row.stream for row in names), checkpoint=store,
            checkpoint_every=every, replay=False, on_error=reader.refused,
        )  # fmt: skip
        try:
            with closing(beliefs):  # type: ignore[type-var]
                for belief, log_prob in beliefs:
                    frame = frames.get(reader.row.stream, 0)
                    output.write(self._line(self._cells(reader, frame, belief, -float(log_prob) / math.log(2))))
                    frames[reader.row.stream] = frame + 1
        finally:
            if store is not None:
                store.close()

    def _cells(self, reader: ObservationReader, frame: int, belief: Any, bits: float) -> dict[str, Any]:
        """The columns of a line of output."""
        from likely.cli.following.follow_models import describe_belief

        row: dict[str, Any] = {} if reader.id is None else {"sequence": reader.row.stream}
        row["frame"] = frame
        described = describe_belief(belief if self.rule is None else belief.belief, self.subject)
        if reader.time is not None:
            taken = ("sequence", "frame", "state", "surprisal", "alarm", *described)
            row[f"input {reader.time}" if reader.time in taken else reader.time] = reader.row.time
        row |= described
        row["surprisal"] = bits + 0.0  # no −0
        if self.rule is not None:
            row["alarm"] = bool(belief.alarm)
        return row

    def _line(self, row: dict[str, Any]) -> str:
        if self.settings["as_json"]:
            return json_line(row)
        return csv_line([("yes" if cell else "no") if isinstance(cell, bool) else cell for cell in row.values()])

    def _title(self, reader: ObservationReader, output: Output) -> None:
        """The CSV header: the columns of a line without an observation."""
        if not self.settings["as_json"]:
            output.write(csv_line(list(self._cells(reader, 0, self.filter.initial_belief(), 0.0))))


def _refuse_columns(subject: Subject, settings: dict[str, Any]) -> None:
    """Columns must be as many as the model takes, and of each kind that it takes."""
    if settings["columns"] and len(settings["columns"]) != len(subject.columns):
        expected = f"the model takes {_counted(len(subject.columns), 'column')}"
        raise DataError(sentence("--columns", expected, len(settings["columns"]), "name them in that order"))
    if subject.timed and settings["time"] is None:
        raise click.UsageError("A model in continuous time needs the time of each observation: --time COL.")
    given = len(settings["inputs"])
    if given != subject.n_inputs:
        expected = f"The model takes {_counted(subject.n_inputs, 'input') if subject.n_inputs else 'no inputs'}"
        remedy = "name the columns in its order: --inputs COL,..." if subject.n_inputs else "leave --inputs out"
        raise click.UsageError(f"{expected} per line, got {given or 'none'}: {remedy}.")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _rule(subject: Subject, settings: dict[str, Any], path: str, console: Any) -> Any:
    from likely.cli.following.follow_alarms import ByCost, BySurprisal

    if subject.decides and (settings["fault"] or settings["false_alarm_every"]):
        asked = "--fault" if settings["fault"] else "--false-alarm-every"
        raise click.UsageError(
            f"{asked} is for models without an alarm rule of their own. {path} {subject.decides}: leave it out."
        )
    if settings["fault"]:
        return ByCost(subject, settings["fault"], settings["miss_cost"] or 1.0, settings["alarm_cost"] or 1.0)
    if settings["false_alarm_every"]:
        return BySurprisal(subject, settings["false_alarm_every"], path, console)
    return None


# ---------------------------------------------------------------------- checkpoints


class LineCheckpoint:
    """A checkpoint of `follow` with the lines read and the bytes written."""

    def __init__(
        self, path: str, asked: str, kept: FollowedLines | None, reader: ObservationReader, output: Output
    ) -> None:
        from likely.io.checkpoint import Checkpoint

        self.file, self.asked, self.kept, self.reader, self.output = Checkpoint(path), asked, kept, reader, output

    def load(self, kind: type[Any]) -> Any:
        """The progress that was kept, if it holds streams."""
        return self.kept if self.kept is not None and self.kept.names else None

    def save(self, following: Following, at_once: bool = True) -> None:
        """Save the progress with what was read and written for it."""
        from likely.core.progress import FollowedLines

        self.output.sync()  # progress must not promise what a power cut could take back
        lines, digest = self.reader.position(following.n_observations)
        own = {
            "asked": self.asked, "header": self.reader.header, "lines": lines, "digest": digest,
            "written": self.output.written, "output": self.output.digest,
        }  # fmt: skip
        self.kept = FollowedLines.trusted(**{f.name: getattr(following, f.name) for f in fields(following)} | own)
        self.file.save(self.kept, at_once=True)

    def close(self) -> None:
        """Save lines without an observation at the end."""
        from likely.core.progress import Following

        last = self.kept or Following("", (), (), np.zeros(0, np.int64), np.zeros(0))
        if self.reader.position(last.n_observations)[0] > getattr(last, "lines", 0):
            self.save(last)


def _kept(path: str, asked: str) -> FollowedLines | None:
    """The progress of this model with these options; None if there is no file."""
    from likely.core.progress import FollowedLines
    from likely.io.checkpoint import Checkpoint

    kept = Checkpoint(path).load(FollowedLines)
    if kept is not None and kept.asked != asked:
        expected = "the progress that was kept must be that of this model with these options"
        remedy = "use those that it began with, or name another file with --checkpoint"
        raise DataError(sentence(path, expected, "that of another", remedy))
    return kept


def _resume_input(lines: Lines, kept: FollowedLines, replay: bool | None, file: str) -> None:
    if file != "-" if replay is None else replay:
        lines.pass_over(kept.lines, kept.digest)
    else:
        lines.went_on(kept.lines, kept.digest)
