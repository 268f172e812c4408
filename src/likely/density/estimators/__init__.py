"""Estimators of nonparametric densities."""
