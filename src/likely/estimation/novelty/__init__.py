"""Novelty scores and thresholds from data that were left out."""
