"""Belief state of a particle filter: weighted particles, and the seed of its random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, check_integer, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.statespace.particle.resampling import resampled

MOVE, LOOK, BACK, CHOOSE, AHEAD = 0, 1, 2, 3, 4  # keys of the random numbers of a frame, by purpose


@dataclass(frozen=True, eq=False, repr=False)
class ParticleBelief(Value):
    """Weighted particles: p(x_t | y) ≈ Σ_i W_i δ(x_t − x_i), with states x_i and normalized weights (de Freitas 13).

    Random numbers are keyed by (seed, time): who goes on from a belief, also one that was kept in a file, draws what
    whoever never stopped would have drawn.

    Parameters
    ----------
    states : array-like (N, d)
        States of the particles.
    log_weights : array-like (N,)
        Logarithms of the normalized weights; −inf is a particle of probability 0.
    time : int, default 0
        Number of the frame.
    seed : int, default 0
        Seed of the random numbers.
    seen : bool, default False
        True after the update with the observation of that frame.
    before : array-like (N, d), optional
        Previous states, until a proposal uses the observation.
    ancestors : array-like of int (N,), optional
        Index of the ancestor in the previous frame; None: the same index.

    Examples
    --------
    >>> b = ParticleBelief([[0.0], [1.0]], np.log([0.25, 0.75]))
    >>> b.mean.tolist(), b.covariance.tolist(), round(b.ess, 3)
    ([0.75], [[0.1875]], 1.6)
    """

    states: Annotated[Array, declared.numbers("N d")]  # (N, d)
    log_weights: Annotated[Array, declared.logs]  # (N,): Σ exp = 1; −inf is a particle of probability 0
    time: int = 0  # number of the frame
    seed: int = 0
    seen: bool = False  # True after the update with the observation of that frame
    # (N, d): previous states, until a proposal uses the observation
    before: Annotated[Array | None, declared.maybe(declared.numbers("N d"))] = None
    # (N,): index of the ancestor in the previous frame; None: the same index
    ancestors: Annotated[Index | None, declared.maybe(declared.numbers("N", dtype=np.int64))] = None

    def __post_init__(self) -> None:
        states = parameter(self.states, "ParticleBelief", "states")
        logs = np.array(self.log_weights, dtype=np.float64)
        if states.ndim != 2 or 0 in states.shape:
            raise ShapeError(sentence("ParticleBelief", "states must have shape (N, d)", states.shape))
        if logs.shape != states.shape[:1]:
            raise ShapeError(sentence("ParticleBelief", f"log_weights must have shape ({len(states)},)", logs.shape))
        _check_weights(logs)
        check_integer(self.time, "ParticleBelief", "time")
        check_integer(self.seed, "ParticleBelief", "seed")
        self._set(states=states, log_weights=logs, **self._checked_origin(states))

    def _checked_origin(self, states: Array) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        if self.before is not None:
            before = parts["before"] = parameter(self.before, "ParticleBelief", "before")
            if before.ndim != 2 or len(before) != len(states):
                expected = f"before must have {len(states)} rows, one per particle"
                raise ShapeError(sentence("ParticleBelief", expected, before.shape))
        if self.ancestors is not None:
            ancestors = parts["ancestors"] = np.array(self.ancestors)
            sound = ancestors.shape == states.shape[:1] and ancestors.dtype.kind in "iu"
            if not sound or (ancestors < 0).any():
                expected = f"ancestors must be integers from 0 on, one per particle ({len(states)})"
                raise DomainError(sentence("ParticleBelief", expected, f"{ancestors.dtype} {ancestors.shape}"))
        return parts

    def __len__(self) -> int:
        """Number of particles N."""
        return len(self.states)

    def __repr__(self) -> str:
        n, d = self.states.shape
        return f"ParticleBelief({n} particles, d={d}, time={self.time}, effective {self.ess:.0f})"

    # ---------------------------------------------------------------- moments

    @cached_property
    def weights(self) -> Array:
        """Normalized weights W_i (N,)."""
        return np.exp(self.log_weights)

    @cached_property
    def ess(self) -> float:
        """Effective sample size, 1 / Σ W²: N for equal weights, 1 if one particle has all the weight."""
        # no BLAS: the decision to resample must not depend on the number of its threads
        return 1.0 / float(np.einsum("n,n->", self.weights, self.weights))

    @cached_property
    def mean(self) -> Array:
        """Mean E[x] (d,)."""
        return np.einsum("n,nd->d", self.weights, self.states)

    @cached_property
    def covariance(self) -> Array:
        """Covariance Cov[x] (d, d)."""
        if self.states.shape[1] == 1:
            alone = self.states[:, 0] - self.mean[0]
            return np.einsum("n,n->", self.weights * alone, alone).reshape(1, 1)
        # columns side by side: a thirtieth of the time of a sum over rows of two entries
        away = np.ascontiguousarray(self.states.T) - self.mean[:, None]
        found = np.einsum("dn,en->de", self.weights * away, away)
        return 0.5 * (found + found.T)

    @property
    def variance(self) -> Array:
        """Variance per column (d,)."""
        return np.diagonal(self.covariance)

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles per column: the smallest x with P(X ≤ x) ≥ q, (d,), or (m, d) for m values of q.

        >>> ParticleBelief([[3.0], [1.0], [2.0]], np.log([0.2, 0.3, 0.5])).quantile([0.3, 0.5]).ravel().tolist()
        [1.0, 2.0]
        """
        return weighted_quantile(self.states, self.weights, q)

    def expect(self, g: Any) -> Any:
        """Expectation E[g(x)] of a function of states (N, d)."""
        values = np.asarray(g(self.states), dtype=np.float64)
        return np.tensordot(self.weights, values, axes=1)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draw n states (n, d) from the particles."""
        index = resampled("multinomial", self.weights, check_integer(n, "ParticleBelief.sample", "n"), rng)
        return self.states[rng.permutation(index)]


def weighted_quantile(x: Array, weights: Array, q: Any) -> Array:
    """Quantiles (…, d) of the columns of x (N, d) with weights (N,)."""
    q = np.asarray(q, dtype=np.float64)
    if not ((q >= 0) & (q <= 1)).all():
        raise DomainError(sentence("quantile", "probabilities must lie in 0 … 1", q.tolist()))
    order = np.argsort(x, axis=0, kind="stable")
    reach = np.cumsum(weights[order], axis=0)
    reach /= reach[-1]
    first = [np.searchsorted(reach[:, j], q - 1e-12, side="left") for j in range(x.shape[1])]
    at = [order[np.minimum(i, len(x) - 1), j] for j, i in enumerate(first)]
    return np.stack([x[i, j] for j, i in enumerate(at)], axis=-1)


def keyed(seed: int, time: int, what: int = MOVE) -> Generator:
    """Random generator of one frame, reproducible by seed, frame and purpose."""
    return Generator(SFC64(SeedSequence((seed, time, what))))


def seed_of(seed: int, i: int) -> int:
    """Seed per sequence; the first sequence has the same random numbers as if it were alone."""
    return int(seed) if i == 0 else int(SeedSequence((int(seed), i)).generate_state(1, np.uint64)[0])


def normalized(logs: Array) -> tuple[Array, Array, float]:
    """Normalized log-weights, their exponentials, and log Σ exp of those given; NaN, NaN if that is not finite.

    Each is counted from the largest first: log Σ exp of an outlier is too large a number to keep the digits of log N.

    >>> [part.round(3).tolist() for part in normalized(np.array([-1e20, -1e20]))[:2]]
    [[-0.693, -0.693], [0.5, 0.5]]
    """
    top = float(logs.max())
    if not np.isfinite(top):
        nothing = np.full_like(logs, np.nan)
        return nothing, nothing, top
    logs = logs - top
    shares = np.exp(logs)
    total = float(np.add.reduce(shares))
    shares *= 1.0 / total  # twice as fast as a division
    logs -= np.log(total)
    return logs, shares, top + float(np.log(total))


def share(x: Any, whose: str, what: str) -> float:
    """A number in 0 … 1."""
    if not isinstance(x, int | float | np.number) or isinstance(x, bool) or not 0 <= float(x) <= 1:
        raise DomainError(sentence(whose, f"{what} must lie in 0 … 1", repr(x)))
    return float(x)


def _check_weights(logs: Array) -> None:
    with np.errstate(over="ignore"):
        total = float(np.exp(logs).sum())
    if not abs(total - 1.0) < 1e-6:  # NaN is not
        remedy = "subtract the logarithm of the sum"
        raise DataError(sentence("ParticleBelief", "exp(log_weights) must add up to one", f"{total:.6g}", remedy))
