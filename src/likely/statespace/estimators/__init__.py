"""Estimators of state-space models."""
