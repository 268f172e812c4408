"""PCA, probabilistic PCA and factor analysis."""
