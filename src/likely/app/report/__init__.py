"""The HTML report: a `Study` in, one self-contained page out."""

from __future__ import annotations

from likely.app.report.gather import column_facts
from likely.app.report.page import report_html, write_report
from likely.app.report.study import Case, ColumnFacts, Contender, Driver, Plane, Study

__all__ = [
    "Case",
    "ColumnFacts",
    "Contender",
    "Driver",
    "Plane",
    "Study",
    "column_facts",
    "report_html",
    "write_report",
]
