"""Workloads of the benchmark: one module per subject, each with its data, its quality figures and all libraries."""
