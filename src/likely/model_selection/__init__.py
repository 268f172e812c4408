"""Splits, cross-validation and learning curves."""
