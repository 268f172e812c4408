"""Basis functions of linear models: values that map rows to the columns of a design matrix."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
