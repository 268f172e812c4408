"""Estimators: linear, ridge and Bayesian linear regression."""
