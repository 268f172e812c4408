"""Plots with matplotlib, one function each: `lk.plots.trace(report)`; matplotlib is imported on first use."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
