"""Mixture models and the EM algorithm."""
