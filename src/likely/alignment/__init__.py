"""Dynamic time warping: alignments, bands, step patterns, barycenters."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
