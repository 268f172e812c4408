"""The base of the library: protocols, values, the fit loop, blocks, engines, ragged arrays, warnings and errors."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
