"""Approximate inference: Laplace approximation, sequential Monte Carlo, stochastic approximation."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
