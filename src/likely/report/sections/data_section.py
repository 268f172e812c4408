"""Sections on the data: columns, missing values, histograms per class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likely.core.arrays import Array
from likely.report.bars import ridges
from likely.report.class_legend import FEW, largest, legend_items, marks, sizes
from likely.report.markers import OTHER, legend
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, count, counted, listed, percent
from likely.report.page_blocks import absent, section, table, with_note
from likely.report.study import ColumnFacts, Study

MOST_COLUMNS = 60
MOST_RIDGES = 8
MOST_BINS = 30
MOST_WORDS = 60  # columns excluded, or warnings, that are listed


def data(study: Study, lead: str = "", each: str = "class") -> Markup:
    """Every column that was used, with a histogram for each class, or for each of what else rows are divided into."""
    shown = chosen_columns(study)
    known = f"{counted(study.rows, study.unit)} with a known “{clipped(study.target, 60)}”{_frames(study)}"
    used = "" if study.unit == "recording" else f", {counted(len(study.columns), 'column')} used"
    lead = lead or f"{known}{used}. {_unlabeled(study)}"
    if not shown and study.unit == "recording":
        return section("data", "The data", lead, _class_legend(study, each))
    if not shown:
        return section("data", "The data", lead, absent("No column is described here."))
    left = len(study.columns) - len(shown)
    more = (
        tag("p", f"{left} further columns are not shown; these are the most important.", class_="note") if left else ""
    )
    head = ["Column", "Kind", "#Missing", "#Distinct", "Values", f"Histogram per {each}"]
    lines = ([*_facts(column, study), _spread(column, study)] for column in shown)
    return section(
        "data",
        "The data",
        lead,
        _class_legend(study, each),
        table(head, lines, label="Columns", class_="mid facts"),
        more,
    )


def _frames(study: Study) -> str:
    return f", {counted(study.frames, 'frame')} in all" if study.frames else ""


def _unlabeled(study: Study) -> str:
    n = study.rows_unlabeled
    return f"{counted(n, study.unit)} without a label {'was' if n == 1 else 'were'} excluded." if n else ""


def chosen_columns(study: Study) -> Sequence[ColumnFacts]:
    """All columns, or of very many those that drive the decisions most."""
    if len(study.columns) <= MOST_COLUMNS:
        return study.columns
    weight = {d.column: d.increase for d in study.importance}
    keep = sorted(study.columns, key=lambda c: -weight.get(c.name, -np.inf))[:MOST_COLUMNS]
    names = {c.name for c in keep}
    return [c for c in study.columns if c.name in names]


def _facts(column: ColumnFacts, study: Study) -> list[object]:
    total = study.frames or study.rows or 1
    missing = with_note(count(column.missing), percent(column.missing / total) if column.missing else "")
    distinct = "–" if column.distinct is None else count(column.distinct)
    return [clipped(column.name, 60), with_note(column.kind, clipped(column.reason, 120)), missing, distinct,
            _two_lines(column.summary)]  # fmt: skip


def _two_lines(summary: str) -> Markup:
    main, _, rest = summary.partition("; ")
    return with_note(clipped(main, 120), clipped(rest, 120))


def _spread(column: ColumnFacts, study: Study) -> object:
    if column.counts is None or not np.size(column.counts):
        return "–"
    counts = np.asarray(column.counts, dtype=np.float64)
    shown, markers = ridge_rows(study)
    table = counts[shown] if shown else counts.sum(axis=0, keepdims=True)
    note = f"first {MOST_BINS} of {counts.shape[1]} levels" if column.levels and counts.shape[1] > MOST_BINS else ""
    return with_note(
        ridges(coarse(table, bool(column.levels)), markers, _label(column), apart=bool(column.levels)),
        note or _ends(column),
    )


def ridge_rows(study: Study) -> tuple[list[int], list[int]]:
    """Which classes have a histogram of their own, and their marks; none where there are too many to compare."""
    if len(study.classes) > FEW:
        return [], [OTHER]
    own = marks(study)
    shown = largest(study, MOST_RIDGES)
    return shown, [own[k] for k in shown]


def coarse(counts: Array, levels: bool) -> Array:
    """At most `MOST_BINS` bins: of numbers neighbors are added, of levels the first are kept."""
    if levels or counts.shape[1] <= MOST_BINS:
        return counts[:, :MOST_BINS]
    step = -(-counts.shape[1] // MOST_BINS)
    return np.add.reduceat(counts, np.arange(0, counts.shape[1], step), axis=1)


def _label(column: ColumnFacts) -> str:
    return f"Histogram of {column.name} in each class"


def _ends(column: ColumnFacts) -> str:
    """Labels of the left and right ends of a histogram."""
    if column.levels:
        return (
            clipped(listed([clipped(level, 14) for level in column.levels[:4]]), 50) if len(column.levels) <= 4 else ""
        )
    return ""


def _class_legend(study: Study, each: str = "class") -> Markup:
    several = f"{each}{'es' if each.endswith('s') else 's'}"
    if len(study.classes) > FEW:
        words = f"{len(study.classes)} {several} are too many to plot separately: the histograms are of all of them."
        return tag("p", words, class_="note")
    n = sizes(study)
    known = n.sum() > 0
    items = [(m, f"{name} ({counted(n[m], study.unit)})" if known else name) for m, name in legend_items(study)]
    left = len(study.classes) - MOST_RIDGES
    note = tag("p", f"Histograms show the {MOST_RIDGES} largest {several}.", class_="note") if left > 0 else ""
    return join([legend(items), note])


def aside(study: Study) -> Markup:
    """Columns that no model saw, and warnings."""
    if study.unit == "recording":
        return section("aside", "Warnings", "", _warnings(study.warnings))
    content: list[object] = []
    if study.excluded:
        pairs = ([clipped(name, 60), clipped(reason, 200)] for name, reason in study.excluded[:MOST_WORDS])
        content.append(table(["Column", "Reason"], pairs, label="Excluded columns"))
        content.append(_left_out(len(study.excluded)))
    else:
        content.append(tag("p", "No column was excluded."))
    content.append(tag("h3", "Warnings"))
    content.append(_warnings(study.warnings))
    return section(
        "aside", "Excluded columns and warnings", "Columns that the model does not use, and warnings.", *content
    )


def _warnings(warnings: Sequence[str]) -> Markup:
    if not warnings:
        return tag("p", "None.")
    shown = tag("ul", *(tag("li", clipped(words, 600)) for words in warnings[:MOST_WORDS]), class_="warnings")
    return join([shown, _left_out(len(warnings))])


def _left_out(n: int) -> Markup | str:
    return tag("p", f"{n - MOST_WORDS} more are not listed.", class_="note") if n > MOST_WORDS else ""
