"""Linear regression: conditional densities of real targets, their priors, evidence and estimators."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
