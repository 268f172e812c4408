"""Decisions of least expected cost, the reject option, and combined posteriors."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
