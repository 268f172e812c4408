"""Dimension reduction: PCA, probabilistic PCA, factor analysis, linear discriminant subspaces."""
