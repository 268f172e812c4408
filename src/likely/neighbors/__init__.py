"""Nearest-neighbor search, distances, voting, editing and condensing."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
