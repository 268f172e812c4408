"""The HTML reports of a classifier, of a regressor and of clusters, each as one self-contained page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from likely.core.errors import DataError, ShapeError, sentence
from likely.io.atomic_write import write_text
from likely.report.cluster_study import ClusterStudy
from likely.report.markup import Markup, join, tag
from likely.report.regression_study import RegressionStudy
from likely.report.sections.calibration_section import calibration, coverage, trade_offs
from likely.report.sections.clusters_section import (
    certainty,
    cluster_data,
    cluster_map,
    head,
    learning,
    numbers,
    profiles,
)
from likely.report.sections.confusion_section import confusion
from likely.report.sections.data_section import aside, data
from likely.report.sections.explanation_section import drivers, plane, worst
from likely.report.sections.leaderboard_section import leaderboard
from likely.report.sections.regression_section import (
    bands,
    effects,
    interval_calibration,
    largest_errors,
    real_data,
    regression_verdict,
    residuals,
)
from likely.report.sections.reproduce_section import reproduce
from likely.report.sections.verdict_section import verdict
from likely.report.study import Plane, Study
from likely.report.style import style_sheet

# in the order of reading: id, words in the table of contents, what writes it
SECTIONS = (
    ("data", "Data", data),
    ("aside", "Excluded columns, warnings", aside),
    ("leaderboard", "Leaderboard", leaderboard),
    ("confusion", "Confusion", confusion),
    ("calibration", "Calibration", calibration),
    ("roc", "ROC and DET", trade_offs),
    ("coverage", "Risk and coverage", coverage),
    ("plane", "Map", plane),
    ("drivers", "Feature importance", drivers),
    ("worst", "Largest errors", worst),
    ("reproduce", "Reproduce", reproduce),
)
SIGNS = "Ranges of percentages are 95\u202f% confidence intervals; ± is one standard error."
# no script runs and nothing is loaded from anywhere, whatever the data held
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_html(study: Study) -> str:
    """The whole page as text.

    >>> page = report_html(Study("wine", target="class", classes=("Barbera", "Barolo")))
    >>> page[:15], "<script" in page
    ('<!doctype html>', False)
    """
    _check(study)
    written = [(name, words, part) for name, words, write in SECTIONS if (part := write(study))]
    contents = [
        (name, words if name != "aside" or study.unit != "recording" else "Warnings") for name, words, _ in written
    ]
    main = tag("main", *(part for _, _, part in written))
    body = tag("body", with_contents(verdict(study), contents), main, _footer(study))
    return f"<!doctype html>\n{tag('html', _head(study), body, lang='en')}\n"


# in the order of reading: id, words in the table of contents
CLUSTER_CONTENTS = (
    ("profiles", "Profiles"), ("map", "Map"), ("certainty", "Certainty"), ("numbers", "Number of clusters"),
    ("learning", "Learning"), ("data", "Data"), ("aside", "Excluded columns, warnings"), ("reproduce", "Reproduce"),
)  # fmt: skip


def cluster_html(c: ClusterStudy) -> str:
    """The whole page as text.

    >>> study = Study("rows", target="cluster", classes=("cluster 1",))
    >>> page = cluster_html(ClusterStudy(study, "1 cluster: as you said", sizes=[3.0]))
    >>> page[:15], "<script" in page
    ('<!doctype html>', False)
    """
    _check(c.study)
    main = tag(
        "main", profiles(c), cluster_map(c), certainty(c), numbers(c), learning(c), cluster_data(c),
        aside(c.study), reproduce(c.study),
    )  # fmt: skip
    footer = tag("footer", f"Written by likely{f' ({c.study.made})' if c.study.made else ''}.")
    body = tag("body", with_contents(head(c), CLUSTER_CONTENTS), main, footer)
    return f"<!doctype html>\n{tag('html', _head(c.study), body, lang='en')}\n"


REGRESSION_CONTENTS = (
    ("data", "Data"), ("aside", "Excluded columns, warnings"), ("leaderboard", "Leaderboard"),
    ("residuals", "Residuals"), ("calibration", "Intervals"), ("drivers", "Feature importance"),
    ("effects", "Partial effects"), ("bands", "Predictive bands"), ("worst", "Largest errors"),
    ("reproduce", "Reproduce"),
)  # fmt: skip


def regression_html(r: RegressionStudy) -> str:
    """The whole page of a regressor as text."""
    _check(r.study)
    parts = {
        "data": real_data(r), "aside": aside(r.study),
        "leaderboard": leaderboard(r.study) if r.study.leaderboard else "",
        "residuals": residuals(r), "calibration": interval_calibration(r),
        "drivers": drivers(r.study) if r.study.importance else "", "effects": effects(r), "bands": bands(r),
        "worst": largest_errors(r), "reproduce": reproduce(r.study),
    }  # fmt: skip
    contents = [(name, words) for name, words in REGRESSION_CONTENTS if parts[name]]
    main = tag("main", *(parts[name] for name, _ in contents))
    body = tag("body", with_contents(regression_verdict(r), contents), main, _footer(r.study))
    return f"<!doctype html>\n{tag('html', _head(r.study), body, lang='en')}\n"


def write_report(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file, atomically."""
    target = Path(path)
    text = report_html(study)
    if target.is_dir() or not target.parent.is_dir():
        expected = "the report needs the name of a file in a folder that exists"
        raise DataError(sentence("write_report", expected, str(target), "make the folder first, or name another"))
    write_text(str(target), text)
    return target


def with_contents(header: Markup, contents: Iterable[tuple[str, str]]) -> Markup:
    """The head of a page with links to the sections: id, words."""
    links = (tag("li", tag("a", words, href=f"#{name}")) for name, words in contents)
    return Markup(header.removesuffix("</header>") + tag("nav", tag("ul", *links), aria_label="Contents") + "</header>")


def _head(study: Study) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="likely"),
        tag("title", study.title),
        tag("style", Markup(style_sheet())),
    )


def _footer(study: Study) -> Markup:
    return tag(
        "footer",
        join(["Written by likely", f" ({study.made})" if study.made else "", f". {SIGNS}"]),
    )


def _check(study: Study) -> None:
    """Check that the parts of a study agree: classes, shapes of the map."""
    n = len(study.classes)
    if study.evaluation is not None:
        _same("the evaluation must have the classes of the study", len(study.evaluation.classes), n)
    for column in study.columns:
        if column.counts is not None:
            _same(f"counts of column {column.name!r} must have a row for each class", len(column.counts), n)
    if study.plane is not None:
        _check_plane(study.plane, n)


def _check_plane(p: Plane, n_classes: int) -> None:
    n = len(p.points)
    shapes = tuple(map(np.shape, (p.points, p.truth, p.decided)))
    _same("the plane's points must have two columns, and a truth and a decision each", shapes, ((n, 2), (n,), (n,)))
    beyond = set(np.unique(p.truth).tolist()) - set(range(n_classes))
    _same("the plane's truth must be indices of classes; others", beyond, set())
    if p.region is not None:
        _same(
            "the plane's region must have a cell for each of ys and xs",
            np.shape(p.region),
            (np.size(p.ys), np.size(p.xs)),
        )


def _same(expected: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise ShapeError(sentence("Study", f"{expected} ({wanted})", got))
