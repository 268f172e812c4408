"""Plots with matplotlib: `lk.plots.plot_convergence(report)` and so on; matplotlib is imported on first use."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
