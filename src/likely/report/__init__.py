"""The HTML report: a `Study` in, one self-contained page out."""

from __future__ import annotations

from likely.report.column_statistics import column_facts
from likely.report.page import regression_html, report_html, write_report
from likely.report.regression_study import Band, Effect, RegressionStudy
from likely.report.study import ColumnFacts, Contender, Driver, Plane, Study, WorstCase

__all__ = [
    "Band",
    "ColumnFacts",
    "Contender",
    "Driver",
    "Effect",
    "Plane",
    "RegressionStudy",
    "Study",
    "WorstCase",
    "column_facts",
    "regression_html",
    "report_html",
    "write_report",
]
