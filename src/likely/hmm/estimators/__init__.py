"""Estimators of hidden Markov models."""
