"""Distributions of one number per column."""
