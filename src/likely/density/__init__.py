"""Nonparametric density estimation: kernels, histograms, nearest neighbors."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
