"""Particle smoother by backward simulation (forward filtering, backward sampling).

p(x_t = x_i | x_{t+1}, y) ∝ W_i p(x_{t+1} | x_i) (Godsill, Doucet, West 2004). Indices are drawn by rejection sampling
if the maximum of the transition density is known, which takes a few draws per path instead of N densities; paths that
are rejected too often are drawn from all N.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import log_prob_each
from likely.statespace.particle.particle_belief import BACK, ParticleBelief, keyed

ROUNDS = 100  # of rejection sampling at most
LEAST_ACCEPTED = 0.005  # share of paths per round: a draw costs about 1/200 of evaluating 10,000 particles


@complete
@dataclass(frozen=True, eq=False)
class SmoothedPaths:
    """Smoothed paths (M, T, d) drawn from p(x_0 … x_T | y), with equal weights (Godsill, Doucet, West 2004).

    Parameters
    ----------
    paths : ndarray (M, T, d)
        Paths.
    log_evidence : float
        Estimate of log p(y) by the filter.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Gaussian(x, 0.5))
    >>> found = lk.ParticleFilter(walk, 500, random_state=1).smooth([0.3, 0.1, 0.4], n_paths=50)
    >>> found.mean.shape, found.quantile(0.9).shape
    ((3, 1), (3, 1))
    """

    paths: Array
    log_evidence: float

    @cached_property
    def mean(self) -> Array:
        """E[x_t | y] (T, d)."""
        return self.paths.mean(axis=0)

    @cached_property
    def covariance(self) -> Array:
        """Cov[x_t | y] (T, d, d)."""
        away = self.paths - self.mean
        return np.einsum("mti,mtj->tij", away, away) / len(away)

    @property
    def variance(self) -> Array:
        """Var[x_t | y] of each column (T, d)."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)

    def quantile(self, q: Any) -> Array:
        """Quantiles of each column at every frame: (T, d), or (T, m, d) for m values of q.

        Parameters
        ----------
        q : float or array-like (m,)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles.
        """
        found = np.quantile(self.paths, q, axis=0, method="inverted_cdf")
        return found if np.ndim(q) == 0 else np.moveaxis(found, 0, 1)

    @property
    def log_prob(self) -> float:
        """Estimate of log p(y), under the name used by exact smoothers."""
        return self.log_evidence

    def __repr__(self) -> str:
        return f"SmoothedPaths({len(self.paths)} paths of {self.paths.shape[1]} frames)"


def backward_paths(model: Any, beliefs: Any, n_paths: int, inputs: Any = None) -> Array:
    """Backward simulation: n_paths draws (M, T, d) from p(x_0 … x_T | y), given the filter's beliefs."""
    last = beliefs[-1]
    chosen = _drawn(last.weights, keyed(last.seed, last.time, BACK).random(n_paths))
    back = [last.states[chosen]]
    for t in range(len(beliefs) - 2, -1, -1):
        b, u = beliefs[t], None if inputs is None else inputs[t + 1]
        distribution = model.transition_distribution(b.states, b.time + 1, u)
        chosen = _chosen_before(b, distribution, back[-1], keyed(b.seed, b.time, BACK))
        back.append(b.states[chosen])
    return np.stack(back[::-1], axis=1)


def _chosen_before(b: ParticleBelief, distribution: Any, after: Array, rng: Generator) -> Index:
    """Draw the index of an ancestor for each state of the next frame (M, d)."""
    chosen = np.full(len(after), -1, dtype=np.intp)
    peak = log_peak(distribution)
    if peak is not None:
        _by_rejection(b.weights, distribution, after, peak, rng, chosen)
    for m in np.flatnonzero(chosen < 0):
        logs = b.log_weights + log_prob_each(distribution, after[m : m + 1])
        top = logs.max()
        if not np.isfinite(top):
            expected = f"a path must have positive transition density from some particle of frame {b.time}"
            raise DomainError(sentence("ParticleFilter.smooth", expected, "a transition density of 0 from all"))
        chosen[m] = _drawn(np.exp(logs - top), rng.random(1))[0]
    return chosen


def _by_rejection(
    weights: Array, distribution: Gaussian, after: Array, peak: float, rng: Generator, chosen: Index
) -> None:
    reach = np.cumsum(weights)
    open_ = np.arange(len(after))
    for _ in range(ROUNDS):
        guess = _found(reach, rng.random(len(open_)))
        logs = log_prob_each(distribution.take(guess), after[open_]) - peak
        kept = np.log(rng.random(len(open_))) < logs
        chosen[open_[kept]] = guess[kept]
        tried, open_ = len(open_), open_[~kept]
        if not len(open_) or kept.sum() < LEAST_ACCEPTED * tried:
            return


def log_peak(distribution: Any) -> float | None:
    """Maximum of the log-densities of a stack of Gaussians; None for other families or singular covariances."""
    if not isinstance(distribution, Gaussian) or not distribution.members:
        return None
    if distribution.kind == "full" and distribution.tied and distribution.form.roots is None:
        return None
    if distribution.kind != "full" and not (distribution.covariance > 0).all():
        return None
    return float(log_prob_each(distribution, distribution.mean).max())


def _drawn(weights: Array, uniform: Array) -> Index:
    """Indices drawn with probability proportional to weights (N,), one per uniform number."""
    return _found(np.cumsum(weights), uniform)


def _found(reach: Array, uniform: Array) -> Index:
    """Inversion of cumulative weights `reach` (N,) at uniform numbers; weights of 0 are never drawn."""
    last = int(np.searchsorted(reach, reach[-1], side="left"))  # the last positive weight
    return np.minimum(np.searchsorted(reach, uniform * reach[-1], side="right"), last)
