"""Prior distributions: conjugate priors of distributions, mixtures, HMMs and linear-Gaussian models."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
