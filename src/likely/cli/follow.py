"""`likely follow`: observations come in line by line, and what a model believes goes out, line by line, at once."""

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
  likely follow model.likely log.csv --time t --keep live.likely -o beliefs.csv
  sensor | likely follow model.likely - --fault broken --miss-cost 100
  sensor | likely follow model.likely - --false-alarm-every 10000 --json
Columns: frame (from 0), the time where there is one, state and p(state) of
models with states, mean and sd of continuous ones, surprise in bits (-log2 of
the probability, or density, of the line given all before), alarm where a rule
is given. Of a fault monitor: p(fault), alarm (it decides itself), the sensor
that speaks most and its bits; of a tracker: exists, confirmed.
An empty cell, or a key that a JSON line leaves out, is not observed; a line
of which the model knows no key is a bad one.
--keep promises: after a crash, with input that begins again and -o, the file
ends with the same bytes as without the crash. Ctrl-C and a kill that can be
heard (TERM, HUP) wait for the line at hand and keep all that was answered.
Of a pipe that goes on, lines that were read (up to 8 KB ahead) and not yet
kept are lost with the process; on stdout, lines after the last that was kept
come again, with --every 1 one. While it runs, and after a crash, what changed
last is in FILE.journal: both files belong together. An end leaves one.
"""

FROM_A_FILE = 1000  # lines between two checkpoints: it can be read again, a pipe cannot


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--id", "id", metavar="COL", help="Whose observation a line is; each has its own belief.  [as in training]"
)
@click.option("--time", metavar="COL", help="A column that is written out again.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Columns that stand for the model's, in its order; repeatable.  [by name]")  # fmt: skip
@click.option("--fault", multiple=True, metavar="STATE,...", callback=options.names_of,
              help="States that call for an alarm; repeatable.")  # fmt: skip
@click.option("--miss-cost", type=click.FloatRange(0, min_open=True), help="What silence in a fault costs.  [1]")
@click.option("--alarm-cost", type=click.FloatRange(0, min_open=True), help="What an alarm without one costs.  [1]")
@click.option("--false-alarm-every", type=click.FloatRange(1, min_open=True), metavar="N",
              help="Alarm where surprise keeps beyond expectation; a false one comes in N, on average.")  # fmt: skip
@click.option("--keep", metavar="FILE", help="Keep progress in a file, and go on from it.")
@click.option(
    "--every", type=click.IntRange(1), metavar="N", help="Lines between two times of keeping.  [1; of a FILE 1000]"
)
@click.option("--replay/--continue", "replay", default=None,
              help="Whether the input begins again with its first line.  [a FILE does, a pipe goes on]")  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Pass over lines that cannot be used, with a word on stderr.")
@click.option("--missing", multiple=True, metavar="TOKEN", help="A further word for a missing cell; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.  [CSV]")
@click.option("-o", "--out", metavar="FILE", help="Write to a file.  [stdout]")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr.")
def follow(model: str, file: str, out: str | None, keep: str | None, quiet: bool, **told: Any) -> None:
    """Follow a live feed: a line in, what the model believes out.

    MODEL is a file that holds whatever can be followed: a hidden Markov model, a linear-Gaussian or a switching one.
    Lines are CSV with a header, or JSON, one object per line. A word that training never saw is not observed by a model
    that `likely fit` wrote; for an HMM saved from Python it is impossible: the surprise is inf, the belief passes on.
    """
    _refuse_half_rules(told)
    _check_files(model, file, out, keep)
    feed = _feed(model, file, told, Console(quiet))
    book = None if keep is None else CheckpointStore(keep, feed.asked)
    kept = None if book is None else book.load()
    with _opened(file) as stream, Stops() as stops:
        lines = Lines(lambda: stops.listen(stream.readline), feed.whose)
        if kept is not None:
            _go_on(lines, kept, told["replay"], file)
        output = Output.to(out, kept)
        try:
            every = told["every"] or (1 if file == "-" else FROM_A_FILE)
            _run(feed, lines, output, _State(kept), book, every, stops)
        finally:
            output.close()


def _check_files(model: str, file: str, out: str | None, keep: str | None) -> None:
    if keep is not None and out is not None and is_stream(out):
        expected = "with --keep the output must be a file, which can be cut back to what was kept"
        raise DataError(sentence(f"-o {out}", expected, "a device or a pipe", "leave -o or --keep out"))
    journal = None if keep is None else journal_of(keep)
    outputs = {"-o": out, "--keep": keep, "--keep, its journal": journal}
    check_outputs(outputs, (model, file), models=("--keep", "--keep, its journal"))


def _refuse_half_rules(told: dict[str, Any]) -> None:
    if told["fault"] and told["false_alarm_every"]:
        raise click.UsageError("--fault and --false-alarm-every are two rules for alarms: choose one.")
    for name in ("miss_cost", "alarm_cost"):
        if told[name] is not None and not told["fault"]:
            raise click.UsageError(f"--{name.replace('_', '-')} needs the states of a fault: --fault STATE.")


# ------------------------------------------------------------------------- the feed


@dataclass(frozen=True, eq=False)
class Feed:
    """A model, what was asked of it, and how lines are read and written: the same for all lines."""

    subject: Subject
    rule: Any  # for alarms, or None
    told: dict[str, Any]
    missing: frozenset[str]
    whose: str  # the input, in messages
    model: str  # fingerprint of the model
    asked: str  # fingerprint of model and options
    talk: Console

    @property
    def id(self) -> str | None:
        """The column that tells streams apart."""
        return self.told["id"]

    def wanted(self, layout: Layout) -> list[str]:
        """The columns of the input that stand for the model's, in its order."""
        asked = list(self.told["columns"])
        if asked or not self.subject.nameless or layout.names is None:
            return asked or list(self.subject.columns)
        rest = [name for name in layout.names if name not in (self.id, self.told["time"])]
        if len(rest) != len(self.subject.columns):
            expected = f"the model takes {len(self.subject.columns)} columns, which have no names"
            remedy = "choose with --columns, or say --id and --time"
            raise DataError(sentence(self.whose, expected, f"{len(rest)}: {', '.join(rest[:8])}", remedy))
        return rest


def _feed(model: str, file: str, told: dict[str, Any], talk: Console) -> Feed:
    from likely.cli.following.follow_models import subject_of
    from likely.core.model_fingerprint import fingerprint
    from likely.io.model_files import load

    subject = subject_of(load(model), model)
    if told["columns"] and len(told["columns"]) != len(subject.columns):
        expected = f"the model takes {len(subject.columns)} column{'s' * (len(subject.columns) != 1)}"
        raise DataError(sentence("--columns", expected, len(told["columns"]), "name them in that order"))
    if subject.timed and told["time"] is None:
        raise click.UsageError("A model in continuous time needs the time of each observation: --time COL.")
    own = fingerprint(subject.plays)
    shaping = {name: told[name] for name in told if name not in ("replay", "every")}
    missing = MISSING | frozenset(told["missing"])
    whose = "standard input" if file == "-" else file
    rule = _rule(subject, told, model, talk)
    return Feed(subject, rule, told, missing, whose, own, fingerprint([own, shaping]), talk)


def _rule(subject: Subject, told: dict[str, Any], path: str, talk: Any) -> Any:
    from likely.cli.following.follow_alarms import ByCost, BySurprise

    if subject.decides and (told["fault"] or told["false_alarm_every"]):
        asked = "--fault" if told["fault"] else "--false-alarm-every"
        raise click.UsageError(f"{asked} is for models that raise no alarms. {path} {subject.decides}: leave it out.")
    if told["fault"]:
        return ByCost(subject, told["fault"], told["miss_cost"] or 1.0, told["alarm_cost"] or 1.0)
    if told["false_alarm_every"]:
        return BySurprise(subject, told["false_alarm_every"], path, talk)
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


def _go_on(lines: Lines, kept: FollowedLines, replay: bool | None, file: str) -> None:
    if file != "-" if replay is None else replay:
        lines.pass_over(kept.lines, kept.digest)
    else:
        lines.went_on(kept.lines, kept.digest)


class _State:
    """How far a feed has come; the one thing here that changes."""

    def __init__(self, kept: FollowedLines | None) -> None:
        self.header = "" if kept is None else kept.header
        self.lines, self.digest = (0, "") if kept is None else (kept.lines, kept.digest)
        self.streams: dict[str, Following] = {} if kept is None else dict(zip(kept.names, kept.streams, strict=True))
        self.changed: dict[str, None] = {}  # streams, in their order, since they were kept
        self.fresh = kept is None or not (kept.header or kept.streams or kept.written)

    def counts(self, feed: Feed, output: Output) -> FollowedLines:
        """All but the streams, as a value."""
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
    """Take line after line; after each that was taken whole, `state` speaks of it."""
    laid = _laid(feed, layout_of(state.header, False)[0]) if state.header else None
    for text in lines:
        if laid is None and text is not None and text.strip():
            laid, state.header = _first(feed, lines.taken, text)
            if state.fresh:
                _title(laid.feed, output)
        if laid is not None and (text is None or not (laid.layout.is_blank(text) or text == state.header)):
            _taken(laid, lines.taken, text, output, state)
        state.lines, state.digest = lines.taken, lines.digest
        yield


class _Laid(NamedTuple):
    """A feed whose first line was seen: how cells are found, and which the model takes."""

    feed: Feed
    layout: Layout
    columns: list[str]


def _first(feed: Feed, at: int, text: str) -> tuple[_Laid, str]:
    """What the first line says of all, and the line itself if it is a header."""
    try:
        layout, is_header = layout_of(text, feed.subject.nameless)
    except DataError as error:
        raise DataError(f"{feed.whose}, line {at}: {error}") from error
    return _laid(feed, layout), text if is_header else ""


def _laid(feed: Feed, layout: Layout) -> _Laid:
    feed = _with_roles(feed, layout)
    columns = feed.wanted(layout)
    named = [name for name in (feed.id, feed.told["time"]) if name is not None]
    refuse_absent([*columns, *named], layout, feed.whose)
    return _Laid(feed, layout, columns)


def _with_roles(feed: Feed, layout: Layout) -> Feed:
    """Id and time as in training, where nobody says otherwise and the columns are there."""
    learned = feed.subject.roles
    there = {role: name for role, name in learned.items() if layout.names is None or name in layout.names}
    return replace(feed, told={**feed.told, **{role: feed.told[role] or there.get(role) for role in ("id", "time")}})


def _taken(laid: _Laid, at: int, text: str | None, output: Output, state: _State) -> None:
    """One line: what it says, what the model now believes, and out it goes."""
    feed, layout, columns = laid
    try:
        if text is None:
            raise BadLine(sentence("text", "it must be UTF-8", remedy="save it as UTF-8"))
        cells = layout.cells(text)
        if layout.names is None:
            refuse_strangers(cells, columns, (feed.id, feed.told["time"]), bool(feed.told["columns"]))
        name = "" if feed.id is None else word(cells.get(feed.id), frozenset()) or ""
        y = feed.subject.observation({column: cells.get(column) for column in columns}, feed.missing)
        y = (_moment(feed, cells), y) if feed.subject.timed else y
        before = state.streams.get(name) or _fresh(feed)
        after, row = _stepped(feed, before, y, name, cells)
    except LikelyError as error:
        complaint = f"{feed.whose}, line {at}: {error}"
        if not feed.told["skip_bad"]:
            raise DataError(complaint) from error
        feed.talk(f"{complaint} It is passed over.")
        return
    output.write(json_line(row) if feed.told["as_json"] else csv_line(list(row.values())))
    state.streams[name] = after
    state.changed[name] = None


def _moment(feed: Feed, cells: dict[str, Any]) -> float:
    """When an observation was, for models in continuous time."""
    when = number(cells.get(feed.told["time"]), feed.told["time"], feed.missing)
    if math.isnan(when):
        expected = "a model in continuous time needs the time of each observation"
        raise BadLine(sentence(f'column "{feed.told["time"]}"', expected, "none"))
    return when


def _fresh(feed: Feed) -> Following:
    from likely.core.stream_checkpoint import Following

    alarm = None if feed.rule is None else feed.rule.start
    return Following.trusted(model=feed.model, belief=None, taken=0, log_evidence=0.0, alarm=alarm)


def _stepped(
    feed: Feed, before: Following, y: Any, name: str, cells: dict[str, Any]
) -> tuple[Following, dict[str, Any]]:
    predicted = feed.subject.predicted(before.belief, y)
    belief, news = feed.subject.plays.update(predicted, y)
    alarm, alarmed = before.alarm, None
    if feed.rule is not None:
        alarm, alarmed = feed.rule.step(before.alarm, predicted, y, news, belief)
    evidence = before.log_evidence + float(news)
    after = before.replace(belief=belief, taken=before.taken + 1, log_evidence=evidence, alarm=alarm)
    return after, _row(feed, before.taken, belief, -float(news) / math.log(2), alarmed, name, cells)


def _row(
    feed: Feed, frame: int, belief: Any, bits: float, alarmed: bool | None, name: str, cells: dict[str, Any]
) -> dict[str, Any]:
    """The columns of a line of output."""
    from likely.cli.following.follow_models import describe_belief

    row: dict[str, Any] = {} if feed.id is None else {"sequence": name}
    row["frame"] = frame
    time = feed.told["time"]
    told = describe_belief(belief, feed.subject)
    if time is not None:
        taken = ("sequence", "frame", "state", "surprise", "alarm", *told)
        row[f"input {time}" if time in taken else time] = cells.get(time)
    row |= told
    row["surprise"] = bits + 0.0  # no −0
    if alarmed is not None:
        row["alarm"] = alarmed
    return row if feed.told["as_json"] else {name: _in_words(cell) for name, cell in row.items()}


def _in_words(cell: Any) -> Any:
    return ("yes" if cell else "no") if isinstance(cell, bool) else cell


def _title(feed: Feed, output: Output) -> None:
    """The header of CSV: the names of a line that nothing was seen for."""
    if not feed.told["as_json"]:
        alarmed = None if feed.rule is None else False
        names = _row(feed, 0, feed.subject.plays.initial_belief(), 0.0, alarmed, "", {})
        output.write(csv_line(list(names)))
