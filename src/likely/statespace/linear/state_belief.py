"""What a filter believes of a vector: a Gaussian with a root of its covariance, and the frame that it speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import covariance_roots


@dataclass(frozen=True, eq=False)
class Loose(Value):
    """What is known while the start is not: the state given η, where δ = point + basis η are the unknown directions.

    The state is N(mean + spread η, rootᵀroot); `rows` [G | g] say |G η − g|² of η. `known` is what they gave to log p.
    """

    mean: Array  # (d,)
    root: Array  # (d, d)
    spread: Array  # (d, q)
    basis: Array  # (q, q)
    point: Array  # (q,)
    rows: Array  # (q + 1, q + 1)
    free: int
    known: float


@dataclass(frozen=True, eq=False)
class StateBelief(Value):
    """N(mean, covariance) of the state at frame `time`, covariance = rootᵀ root: a belief is a density.

    While a diffuse start is not yet determined by what was seen (`loose`), variances are infinite where they are.

    >>> import likely as lk, numpy as np
    >>> belief = StateBelief([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
    >>> belief.covariance[0, 0], belief.log_prob([[1.0, 0.0]]).round(3)
    (np.float64(4.0), array([-2.531]))
    """

    mean: Array  # (d,)
    root: Array  # (d, d), upper triangular
    time: int = 0
    loose: Loose | None = None

    def __post_init__(self) -> None:
        mean, root = parameter(self.mean, "StateBelief", "mean"), parameter(self.root, "StateBelief", "root")
        if mean.ndim != 1 or root.shape != (len(mean), len(mean)):
            expected = "mean must have shape (d,) and root (d, d)"
            raise ShapeError(sentence("StateBelief", expected, (mean.shape, root.shape)))
        if np.tril(root, -1).any():
            raise DomainError(sentence("StateBelief", "root must be upper triangular", "entries below the diagonal"))
        if isinstance(self.time, bool) or not isinstance(self.time, int | np.integer) or not 0 <= self.time < 2**53:
            raise DomainError(sentence("StateBelief", "time must be the number of a frame, from 0 on", repr(self.time)))
        if self.loose is not None and self.loose.mean.shape != mean.shape:
            expected = "what is known of the start must be of the same state"
            raise ShapeError(sentence("StateBelief", expected, (self.loose.mean.shape, mean.shape)))
        self._set(mean=mean, root=root, time=int(self.time))

    @classmethod
    def of(cls, density: Any, time: int = 0) -> StateBelief:
        """The belief that a Gaussian is."""
        root = covariance_roots.root(np.ascontiguousarray(density.covariance_matrix))
        return cls.trusted(mean=np.array(density.mean), root=root, time=time, loose=None)

    @classmethod
    def fresh(cls, mean: Array, root: Array, time: int) -> StateBelief:
        """As `trusted`, in a tenth of its time: a live step makes two, of arrays that nobody else holds."""
        self = object.__new__(cls)
        mean.setflags(write=False)
        root.setflags(write=False)
        self.__dict__.update(mean=mean, root=root, time=time, loose=None)
        return self

    @property
    def dim(self) -> int:
        """Number of entries of the state."""
        return len(self.mean)

    @cached_property
    def covariance(self) -> Array:
        """The covariance (d, d); infinite variances where nothing is known yet."""
        if self.loose is None:
            return covariance_roots.square(self.root)
        return loose_moments(self.loose)[1]

    @property
    def variance(self) -> Array:
        """Variance of each entry (d,)."""
        return np.diagonal(self.covariance).copy()

    @cached_property
    def gaussian(self) -> Gaussian:
        """The same belief as a `Gaussian`."""
        if self.loose is not None:
            remedy = "see more observations first, or give the model a covariance of its start"
            raise DomainError(sentence("StateBelief", "the start must be known", "infinite variances", remedy))
        return Gaussian.trusted(mean=self.mean, covariance=self.covariance, kind="full")

    def log_prob(self, x: Any) -> Array:
        """log density of states (n, d)."""
        return self.gaussian.log_prob(x)

    def sample(self, n: int, rng: Generator) -> Array:
        """States drawn from the belief (n, d)."""
        return self.gaussian.sample(n, rng)


def loose_moments(loose: Loose) -> tuple[Array, Array]:
    """Mean and covariance of a state whose start is not yet known in all directions."""
    free, q = loose.free, len(loose.point)
    G, g = loose.rows[:, :free], loose.rows[:, q]
    unit = np.sqrt((G * G).sum(axis=0))
    unit[unit == 0] = 1.0  # columns may have any units: small ones must not look unknown
    G = G / unit
    u, s, vt = np.linalg.svd(G, full_matrices=True)
    some = s > 1e-11 * max(float(s.max(initial=0.0)), 1e-300)
    v = vt[: len(s)][some]
    M = loose.spread[:, :free] / unit
    mean = loose.mean + M @ (v.T @ ((u[:, : len(s)][:, some].T @ g) / s[some]))
    seen = (M @ v.T) / s[some]
    covariance = covariance_roots.square(loose.root) + seen @ seen.T
    unseen = M - (M @ v.T) @ v
    open_ = np.abs(unseen).max(axis=1, initial=0.0) > 1e-9 * np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300)
    covariance[open_], covariance[:, open_] = 0.0, 0.0
    covariance[open_, open_] = np.inf
    return mean, covariance
