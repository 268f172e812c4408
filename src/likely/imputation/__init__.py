"""Imputation of missing values in rows and sequences."""
