"""The HTML report: a `Study` in, one self-contained page out."""

from __future__ import annotations

from likely.report.column_statistics import column_facts
from likely.report.page import report_html, write_report
from likely.report.study import ColumnFacts, Contender, Driver, Plane, Study, WorstCase

__all__ = [
    "ColumnFacts",
    "Contender",
    "Driver",
    "Plane",
    "Study",
    "WorstCase",
    "column_facts",
    "report_html",
    "write_report",
]
