"""Speech: MFCC features, word networks, bigrams, recognition of spoken words, word errors."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
