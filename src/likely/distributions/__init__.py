"""Probability distributions with their sufficient statistics and priors."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
