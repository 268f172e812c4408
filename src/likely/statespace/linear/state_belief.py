"""Gaussian belief state of a Kalman filter: mean and square root of the covariance, and the diffuse part if any."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import covariance_roots
from likely.statespace.linear.diffuse_initialization import DiffusePart, diffuse_moments


@dataclass(frozen=True, eq=False)
class StateBelief(Value):
    """Gaussian belief state N(mean, covariance) at frame `time`, with covariance = rootᵀ root: itself a density.

    While a diffuse initial state is not yet determined by the observations there is a `diffuse_part`, and variances are
    infinite in the directions that are not determined.

    Parameters
    ----------
    mean : array-like (d,)
        Mean of the state.
    root : array-like (d, d)
        Upper triangular square root of the covariance.
    time : int, default 0
        Number of the frame.
    diffuse_part : DiffusePart, optional
        Directions of a diffuse initial state that are not yet determined.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> belief = StateBelief([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
    >>> belief.covariance[0, 0], belief.log_prob([[1.0, 0.0]]).round(3)
    (np.float64(4.0), array([-2.531]))
    """

    mean: Annotated[Array, declared.numbers("d")]  # (d,)
    root: Annotated[Array, declared.numbers("d d")]  # (d, d), upper triangular
    time: int = 0
    diffuse_part: Annotated[DiffusePart | None, declared.maybe(declared.of_class("DiffusePart"))] = None

    def __post_init__(self) -> None:
        mean, root = parameter(self.mean, "StateBelief", "mean"), parameter(self.root, "StateBelief", "root")
        if mean.ndim != 1 or root.shape != (len(mean), len(mean)):
            expected = "mean must have shape (d,) and root (d, d)"
            raise ShapeError(sentence("StateBelief", expected, (mean.shape, root.shape)))
        if np.tril(root, -1).any():
            raise DomainError(sentence("StateBelief", "root must be upper triangular", "entries below the diagonal"))
        if isinstance(self.time, bool) or not isinstance(self.time, int | np.integer) or not 0 <= self.time < 2**53:
            raise DomainError(sentence("StateBelief", "time must be the number of a frame, from 0 on", repr(self.time)))
        if self.diffuse_part is not None and self.diffuse_part.mean.shape != mean.shape:
            expected = "the diffuse part must have the dimension of the state"
            raise ShapeError(sentence("StateBelief", expected, (self.diffuse_part.mean.shape, mean.shape)))
        self._set(mean=mean, root=root, time=int(self.time))

    @classmethod
    def of(cls, density: Any, time: int = 0) -> StateBelief:
        """The belief state with the mean and covariance of a Gaussian.

        Parameters
        ----------
        density : density
            A Gaussian.
        time : int, default 0
            Number of the frame.
        """
        root = covariance_roots.root(np.ascontiguousarray(density.covariance_matrix))
        return cls.trusted(mean=np.array(density.mean), root=root, time=time, diffuse_part=None)

    @classmethod
    def fresh(cls, mean: Array, root: Array, time: int) -> StateBelief:
        """As `trusted`, in a tenth of its time: an online step makes two, of arrays without other references.

        Parameters
        ----------
        mean : ndarray (d,)
            Mean of the state.
        root : ndarray (d, d)
            Upper triangular square root of the covariance.
        time : int
            Number of the frame.
        """
        self = object.__new__(cls)
        mean.setflags(write=False)
        root.setflags(write=False)
        self.__dict__.update(mean=mean, root=root, time=time, diffuse_part=None)
        return self

    @property
    def dim(self) -> int:
        """Number of entries of the state."""
        return len(self.mean)

    @cached_property
    def covariance(self) -> Array:
        """The covariance (d, d); infinite variances in the diffuse directions."""
        if self.diffuse_part is None:
            return covariance_roots.square(self.root)
        return diffuse_moments(self.diffuse_part)[1]

    @property
    def variance(self) -> Array:
        """Variance of each entry (d,)."""
        return np.diagonal(self.covariance).copy()

    @cached_property
    def gaussian(self) -> Gaussian:
        """The same belief as a `Gaussian`."""
        if self.diffuse_part is not None:
            remedy = "filter more observations first, or give the model an initial covariance"
            raise DomainError(
                sentence("StateBelief", "the initial state must be determined", "infinite variances", remedy)
            )
        return Gaussian.trusted(mean=self.mean, covariance=self.covariance, kind="full")

    def log_prob(self, x: Any) -> Array:
        """Log-density of states.

        Parameters
        ----------
        x : array-like (n, d)
            States.
        """
        return self.gaussian.log_prob(x)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draw n states (n, d)."""
        return self.gaussian.sample(n, rng)
