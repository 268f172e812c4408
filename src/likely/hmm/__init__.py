"""Hidden Markov models: forward-backward, Viterbi, Baum-Welch."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
