"""Belief state of a continuous-time filter: a Gaussian state and its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.core.value import Value


@dataclass(frozen=True, eq=False, repr=False)
class TimedBelief(Value):
    """Belief state of a continuous-time filter: a Gaussian state at a time.

    Parameters
    ----------
    state : StateBelief
        Distribution of the state.
    time : float or None
        Time of the state; None before the first observation.

    Examples
    --------
    >>> import likely as lk
    >>> lk.LinearSDE.ornstein_uhlenbeck(1.0, spectral_density=4.0).initial_belief().variance
    array([2.])
    """

    state: Annotated[Any, declared.of_class("StateBelief")]  # a StateBelief
    time: Annotated[float | None, declared.maybe(declared.number())]

    def __post_init__(self) -> None:
        if self.time is not None and not np.isfinite(self.time):
            raise DomainError(sentence("TimedBelief", "time must be finite, or None before the first", self.time))

    @property
    def mean(self) -> Array:
        """Mean of the state (d,)."""
        return np.asarray(self.state.mean)

    @property
    def covariance(self) -> Array:
        """Covariance of the state (d, d)."""
        return np.asarray(self.state.covariance)

    @property
    def variance(self) -> Array:
        """Variances of the state (d,)."""
        return np.asarray(self.state.variance)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of states (n, d)."""
        return np.asarray(self.state.log_prob(x))

    def sample(self, n: int, rng: Generator) -> Array:
        """Draw n states (n, d)."""
        return np.asarray(self.state.sample(n, rng))
