"""One self-contained page on the clusters of a table."""

from __future__ import annotations

from likely.report.cluster_study import ClusterStudy
from likely.report.markup import Markup, tag
from likely.report.page import _check, _head, with_contents
from likely.report.sections.clusters_section import (
    certainty,
    cluster_data,
    cluster_map,
    head,
    learning,
    numbers,
    profiles,
)
from likely.report.sections.data_section import aside
from likely.report.sections.reproduce_section import reproduce

# in the order of reading: id, words in the table of contents
CONTENTS = (
    ("profiles", "Profiles"), ("map", "Map"), ("certainty", "Certainty"), ("numbers", "Number of clusters"),
    ("learning", "Learning"), ("data", "Data"), ("aside", "Excluded columns, cautions"), ("reproduce", "Reproduce"),
)  # fmt: skip


def cluster_html(c: ClusterStudy) -> str:
    """The whole page as text.

    >>> from likely.report.study import Study
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
    body = tag("body", with_contents(head(c), CONTENTS), main, _footer(c))
    return f"<!doctype html>\n{tag('html', _head(c.study), body, lang='en')}\n"


def _footer(c: ClusterStudy) -> Markup:
    return tag("footer", f"Written by likely{f' ({c.study.made})' if c.study.made else ''}.")
