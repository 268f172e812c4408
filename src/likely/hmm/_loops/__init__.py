"""Compiled recursions of hidden Markov models."""
