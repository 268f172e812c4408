"""`likely follow`: online filtering of a stream, one line of output per observation."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from likely.cli import options
from likely.cli.console import Console
from likely.cli.following.follow_checkpoint import CheckpointStore, journal_of
from likely.cli.following.follow_columns import refuse_absent, refuse_strangers
from likely.cli.following.follow_lines import MISSING, BadLine, Layout, Lines, layout_of, number, word
from likely.cli.following.follow_output import Output, csv_line, json_line
from likely.cli.following.follow_signals import Stops
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, LikelyError, sentence, unread
from likely.io.atomic_write import is_stream

if TYPE_CHECKING:
    from likely.cli.following.follow_models import Subject
    from likely.core.stream_checkpoint import FollowedLines, Following

EPILOG = """\b
Examples:
  tail -n +1 -f log.csv | likely follow model.likely
  likely follow model.likely log.csv --time t --checkpoint live.likely -o beliefs.csv
  sensor | likely follow model.likely - --fault broken --miss-cost 100
  sensor | likely follow model.likely - --false-alarm-every 10000 --json
Columns: frame (from 0), time if there is one, state and p(state) for discrete
states, mean and sd for continuous ones, surprise in bits (surprisal: -log2 of
the predictive probability or density of the line given all lines before),
alarm if an alarm rule is given. For a fault monitor: p(fault), alarm (by its
own rule), the sensor with the largest contribution and its bits; for a
tracker: exists, confirmed.
An empty cell, or a key absent from a JSON line, is a missing value; a line
without any column of the model is an error (see --skip-bad).
--checkpoint: if the process is killed and restarted on the same input with -o,
the output file ends with the same bytes as without the interruption. Ctrl-C,
TERM and HUP finish the current line and save a checkpoint. For a pipe that
cannot be read again, lines read (up to 8 KB ahead) after the last checkpoint
are lost; on stdout, lines after the last checkpoint are written again. While
the process runs, recent changes are in FILE.journal, which belongs to FILE; a
normal end merges both into FILE.
"""

FROM_A_FILE = 1000  # lines between two checkpoints: it can be read again, a pipe cannot


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option("--id", "id", metavar="COL", help="Column with the stream ID: one filter per stream.  [as in training]")
@click.option("--time", metavar="COL", help="Time column, repeated in the output.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Input columns to use for the model's columns, in its order; repeatable.  [by name]")  # fmt: skip
@click.option("--fault", multiple=True, metavar="STATE,...", callback=options.names_of,
              help="States that are faults: alarm by expected cost; repeatable.")  # fmt: skip
@click.option("--miss-cost", type=click.FloatRange(0, min_open=True), help="Cost of a missed fault.  [1]")
@click.option("--alarm-cost", type=click.FloatRange(0, min_open=True), help="Cost of a false alarm.  [1]")
@click.option("--false-alarm-every", type=click.FloatRange(1, min_open=True), metavar="N",
              help="CUSUM alarm on the surprisal, with one false alarm in N lines on average.")  # fmt: skip
@click.option("--checkpoint", "keep", metavar="FILE", help="Save progress to this file; resume from it if it exists.")
@click.option(
    "--checkpoint-every",
    "every",
    type=click.IntRange(1),
    metavar="N",
    help="Lines between two checkpoints.  [1 for a pipe, 1000 for a FILE]",
)
@click.option("--replay/--continue", "replay", default=None,
              help="On resuming: the input starts again, or continues.  [FILE: replay; pipe: continue]")  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Skip lines that cannot be used, with a message on stderr.")
@click.option("--missing", multiple=True, metavar="TOKEN", help="Another token for a missing value; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.  [CSV]")
@click.option("-o", "--out", metavar="FILE", help="Write to a file.  [stdout]")
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
    feed = _feed(model, file, settings, Console(quiet))
    book = None if keep is None else CheckpointStore(keep, feed.asked)
    kept = None if book is None else book.load()
    with _opened(file) as stream, Stops() as stops:
        lines = Lines(lambda: stops.listen(stream.readline), feed.whose)
        if kept is not None:
            _resume_input(lines, kept, settings["replay"], file)
        output = Output.to(out, kept)
        try:
            every = settings["every"] or (1 if file == "-" else FROM_A_FILE)
            _run(feed, lines, output, _State(kept), book, every, stops)
        finally:
            output.close()


def _check_files(model: str, file: str, out: str | None, keep: str | None) -> None:
    if keep is not None and out is not None and is_stream(out):
        expected = "with --checkpoint the output must be a file, which can be truncated to the checkpoint"
        raise DataError(sentence(f"-o {out}", expected, "a device or a pipe", "leave -o or --checkpoint out"))
    journal = None if keep is None else journal_of(keep)
    outputs = {"-o": out, "--checkpoint": keep, "the journal of --checkpoint": journal}
    check_outputs(outputs, (model, file), models=("--checkpoint", "the journal of --checkpoint"))


def _refuse_half_rules(settings: dict[str, Any]) -> None:
    if settings["fault"] and settings["false_alarm_every"]:
        raise click.UsageError("--fault and --false-alarm-every are two rules for alarms: choose one.")
    for name in ("miss_cost", "alarm_cost"):
        if settings[name] is not None and not settings["fault"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs the fault states: --fault STATE.")


# ------------------------------------------------------------------------- the feed


@dataclass(frozen=True, eq=False)
class Feed:
    """The model, the options, and how lines are read and written: the same for all lines."""

    subject: Subject
    rule: Any  # for alarms, or None
    settings: dict[str, Any]
    missing: frozenset[str]
    whose: str  # the input, in messages
    model: str  # fingerprint of the model
    asked: str  # fingerprint of model and options
    console: Console

    @property
    def id(self) -> str | None:
        """The column with the stream ID."""
        return self.settings["id"]

    def wanted(self, layout: Layout) -> list[str]:
        """The input columns used for the model's columns, in its order."""
        asked = list(self.settings["columns"])
        if asked or not self.subject.nameless or layout.names is None:
            return asked or list(self.subject.columns)
        rest = [name for name in layout.names if name not in (self.id, self.settings["time"])]
        if len(rest) != len(self.subject.columns):
            expected = f"the model takes {len(self.subject.columns)} columns, which have no names"
            remedy = "choose with --columns, or say --id and --time"
            raise DataError(sentence(self.whose, expected, f"{len(rest)}: {', '.join(rest[:8])}", remedy))
        return rest


def _feed(model: str, file: str, settings: dict[str, Any], console: Console) -> Feed:
    from likely.cli.following.follow_models import subject_of
    from likely.core.model_fingerprint import fingerprint
    from likely.io.model_files import load

    subject = subject_of(load(model), model)
    if settings["columns"] and len(settings["columns"]) != len(subject.columns):
        expected = f"the model takes {len(subject.columns)} column{'s' * (len(subject.columns) != 1)}"
        raise DataError(sentence("--columns", expected, len(settings["columns"]), "name them in that order"))
    if subject.timed and settings["time"] is None:
        raise click.UsageError("A model in continuous time needs the time of each observation: --time COL.")
    own = fingerprint(subject.plays)
    shaping = {name: settings[name] for name in settings if name not in ("replay", "every")}
    missing = MISSING | frozenset(settings["missing"])
    whose = "standard input" if file == "-" else file
    rule = _rule(subject, settings, model, console)
    return Feed(subject, rule, settings, missing, whose, own, fingerprint([own, shaping]), console)


def _rule(subject: Subject, settings: dict[str, Any], path: str, console: Any) -> Any:
    from likely.cli.following.follow_alarms import ByCost, BySurprise

    if subject.decides and (settings["fault"] or settings["false_alarm_every"]):
        asked = "--fault" if settings["fault"] else "--false-alarm-every"
        raise click.UsageError(
            f"{asked} is for models without an alarm rule of their own. {path} {subject.decides}: leave it out."
        )
    if settings["fault"]:
        return ByCost(subject, settings["fault"], settings["miss_cost"] or 1.0, settings["alarm_cost"] or 1.0)
    if settings["false_alarm_every"]:
        return BySurprise(subject, settings["false_alarm_every"], path, console)
    return None


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


# ------------------------------------------------------------------------- keeping


def _resume_input(lines: Lines, kept: FollowedLines, replay: bool | None, file: str) -> None:
    if file != "-" if replay is None else replay:
        lines.pass_over(kept.lines, kept.digest)
    else:
        lines.went_on(kept.lines, kept.digest)


class _State:
    """Progress of a stream; the only mutable value here."""

    def __init__(self, kept: FollowedLines | None) -> None:
        self.header = "" if kept is None else kept.header
        self.lines, self.digest = (0, "") if kept is None else (kept.lines, kept.digest)
        self.streams: dict[str, Following] = {} if kept is None else dict(zip(kept.names, kept.streams, strict=True))
        self.changed: dict[str, None] = {}  # streams, in their order, since they were kept
        self.fresh = kept is None or not (kept.header or kept.streams or kept.written)

    def counts(self, feed: Feed, output: Output) -> FollowedLines:
        """The progress without the streams, as a frozen value."""
        from likely.core.stream_checkpoint import FollowedLines

        output.sync()  # progress must not promise what a power cut could take back
        return FollowedLines(feed.asked, self.header, self.lines, self.digest, output.written, (), (), output.digest)


# ------------------------------------------------------------------------- running


def _run(
    feed: Feed, lines: Lines, output: Output, state: _State, book: CheckpointStore | None, every: int, stops: Stops
) -> None:
    saved = state.lines
    try:
        for _ in _lines_done(feed, lines, output, state):
            if book is not None and state.lines - saved >= every:
                book.note(state.counts(feed, output), state.streams, state.changed)
                saved, state.changed = state.lines, {}
            stops.leave()
    finally:  # the end, Ctrl-C, a closed pipe, a bad line: what was done counts
        if book is not None:
            book.close(state.counts(feed, output), state.streams, changed=state.lines > saved)


def _lines_done(feed: Feed, lines: Lines, output: Output, state: _State) -> Iterator[None]:
    """Process line after line; after each complete line, `state` is up to date."""
    laid = _with_layout(feed, layout_of(state.header, False)[0]) if state.header else None
    for text in lines:
        if laid is None and text is not None and text.strip():
            laid, state.header = _first(feed, lines.taken, text)
            if state.fresh:
                _title(laid.feed, output)
        if laid is not None and (text is None or not (laid.layout.is_blank(text) or text == state.header)):
            _process_line(laid, lines.taken, text, output, state)
        state.lines, state.digest = lines.taken, lines.digest
        yield


class _Laid(NamedTuple):
    """A stream whose first line was read: its layout, and the columns that the model uses."""

    feed: Feed
    layout: Layout
    columns: list[str]


def _first(feed: Feed, at: int, text: str) -> tuple[_Laid, str]:
    """Layout from the first line, and the line itself if it is a header."""
    try:
        layout, is_header = layout_of(text, feed.subject.nameless)
    except DataError as error:
        raise DataError(f"{feed.whose}, line {at}: {error}") from error
    return _with_layout(feed, layout), text if is_header else ""


def _with_layout(feed: Feed, layout: Layout) -> _Laid:
    feed = _with_roles(feed, layout)
    columns = feed.wanted(layout)
    named = [name for name in (feed.id, feed.settings["time"]) if name is not None]
    refuse_absent([*columns, *named], layout, feed.whose)
    return _Laid(feed, layout, columns)


def _with_roles(feed: Feed, layout: Layout) -> Feed:
    """ID and time columns as in training, unless options say otherwise and if the columns exist."""
    learned = feed.subject.roles
    there = {role: name for role, name in learned.items() if layout.names is None or name in layout.names}
    return replace(
        feed, settings={**feed.settings, **{role: feed.settings[role] or there.get(role) for role in ("id", "time")}}
    )


def _process_line(laid: _Laid, at: int, text: str | None, output: Output, state: _State) -> None:
    """Process one line: parse, predict, update, and write."""
    feed, layout, columns = laid
    try:
        if text is None:
            raise BadLine(sentence("text", "it must be UTF-8", remedy="save it as UTF-8"))
        cells = layout.cells(text)
        if layout.names is None:
            refuse_strangers(cells, columns, (feed.id, feed.settings["time"]), bool(feed.settings["columns"]))
        name = "" if feed.id is None else word(cells.get(feed.id), frozenset()) or ""
        y = feed.subject.observation({column: cells.get(column) for column in columns}, feed.missing)
        y = (_moment(feed, cells), y) if feed.subject.timed else y
        before = state.streams.get(name) or _initial_progress(feed)
        after, row = _filter_step(feed, before, y, name, cells)
    except LikelyError as error:
        complaint = f"{feed.whose}, line {at}: {error}"
        if not feed.settings["skip_bad"]:
            raise DataError(complaint) from error
        feed.console(f"{complaint} The line is skipped.")
        return
    output.write(json_line(row) if feed.settings["as_json"] else csv_line(list(row.values())))
    state.streams[name] = after
    state.changed[name] = None


def _moment(feed: Feed, cells: dict[str, Any]) -> float:
    """Time of an observation, for models in continuous time."""
    when = number(cells.get(feed.settings["time"]), feed.settings["time"], feed.missing)
    if math.isnan(when):
        expected = "a model in continuous time needs the time of each observation"
        raise BadLine(sentence(f'column "{feed.settings["time"]}"', expected, "none"))
    return when


def _initial_progress(feed: Feed) -> Following:
    from likely.core.stream_checkpoint import Following

    alarm = None if feed.rule is None else feed.rule.start
    return Following.trusted(model=feed.model, belief=None, n_observations=0, log_evidence=0.0, alarm=alarm)


def _filter_step(
    feed: Feed, before: Following, y: Any, name: str, cells: dict[str, Any]
) -> tuple[Following, dict[str, Any]]:
    predicted = feed.subject.predicted(before.belief, y)
    belief, news = feed.subject.plays.update(predicted, y)
    alarm, alarmed = before.alarm, None
    if feed.rule is not None:
        alarm, alarmed = feed.rule.step(before.alarm, predicted, y, news, belief)
    evidence = before.log_evidence + float(news)
    after = before.replace(belief=belief, n_observations=before.n_observations + 1, log_evidence=evidence, alarm=alarm)
    return after, _row(feed, before.n_observations, belief, -float(news) / math.log(2), alarmed, name, cells)


def _row(
    feed: Feed, frame: int, belief: Any, bits: float, alarmed: bool | None, name: str, cells: dict[str, Any]
) -> dict[str, Any]:
    """The columns of a line of output."""
    from likely.cli.following.follow_models import describe_belief

    row: dict[str, Any] = {} if feed.id is None else {"sequence": name}
    row["frame"] = frame
    time = feed.settings["time"]
    described = describe_belief(belief, feed.subject)
    if time is not None:
        taken = ("sequence", "frame", "state", "surprise", "alarm", *described)
        row[f"input {time}" if time in taken else time] = cells.get(time)
    row |= described
    row["surprise"] = bits + 0.0  # no −0
    if alarmed is not None:
        row["alarm"] = alarmed
    return row if feed.settings["as_json"] else {name: _yes_no(cell) for name, cell in row.items()}


def _yes_no(cell: Any) -> Any:
    return ("yes" if cell else "no") if isinstance(cell, bool) else cell


def _title(feed: Feed, output: Output) -> None:
    """The CSV header: the columns of a line without an observation."""
    if not feed.settings["as_json"]:
        alarmed = None if feed.rule is None else False
        names = _row(feed, 0, feed.subject.plays.initial_belief(), 0.0, alarmed, "", {})
        output.write(csv_line(list(names)))
