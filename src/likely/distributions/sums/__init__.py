"""Distributions of sums of independent variables."""
