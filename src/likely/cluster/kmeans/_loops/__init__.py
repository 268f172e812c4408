"""Compiled functions of k-means."""
