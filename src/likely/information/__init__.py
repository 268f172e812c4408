"""Entropy, Kullback-Leibler divergence and mutual information."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
