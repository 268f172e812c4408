"""Dimension reduction: PCA, probabilistic PCA, factor analysis, linear discriminant subspaces."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
