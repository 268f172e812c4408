"""Estimators of the distributions of single columns, of binary rows and of products."""
