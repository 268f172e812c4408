"""State-space models: linear, continuous-time, nonlinear, switching, and particle filters."""

from likely.names import namespace

__getattr__, __dir__, __all__ = namespace(__name__)
