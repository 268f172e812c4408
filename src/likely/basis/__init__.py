"""Basis functions: design matrices of polynomials, splines, radial functions, categories and their combinations."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
