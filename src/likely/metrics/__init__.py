"""Evaluation of decisions, probabilities, clusterings, transcripts and distances."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
