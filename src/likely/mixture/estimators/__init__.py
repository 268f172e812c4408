"""Estimators: mixture density, mixture clustering, contaminated Gaussian, choice of the number of components."""
