"""Candidates compared by cross-validation; models of tables and sequences that know their columns."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
