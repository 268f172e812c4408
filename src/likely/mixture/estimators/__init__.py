"""Estimators of mixtures, clusters of mixtures, and the number of components."""
