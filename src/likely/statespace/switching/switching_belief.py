"""Belief state of a switching model: a Gaussian mixture with one regime per component."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index, check_integer, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import spd

ME = "SwitchingBelief"


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingBelief(Value):
    """Belief state of a switching model: a Gaussian mixture over regimes.

    Gaussian mixture p(z_t, x_t | y) ≈ Σ_i W_i 1{z_t = which_i} N(x_t; mean_i, rootᵢᵀ rootᵢ).

    The belief of every filter of a switching model: interacting models keep one Gaussian per regime or a pair of them,
    Rao–Blackwell particles one each. Random numbers are keyed by (seed, time), so that a belief kept in a file goes on
    to the same bits.

    Parameters
    ----------
    means : array-like (n, d)
        Means of the components.
    roots : array-like (n, d, d)
        Upper triangular square roots of their covariances.
    which : array-like of int (n,)
        Regime of each component.
    log_weights : array-like (n,)
        Logarithms of the normalized weights.
    n_regimes : int
        Number of regimes.
    time : int, default 0
        Number of the frame.
    seed : int, default 0
        Seed of the random numbers.
    parents : array-like of int (n,), optional
        Index of the parent component in the previous frame.
    particle : array-like of int (n,), optional
        Index of the particle.

    Examples
    --------
    >>> b = SwitchingBelief([[0.0], [1.0]], [[[1.0]], [[1.0]]], [0, 1], np.log([0.25, 0.75]), 2)
    >>> b.regimes.tolist(), b.mean.tolist(), b.covariance.tolist()
    ([0.25, 0.75], [0.75], [[1.1875]])
    """

    means: Annotated[Array, declared.numbers("n d")]  # (n, d)
    roots: Annotated[Array, declared.numbers("n d d")]  # (n, d, d), upper triangular
    which: Annotated[Index, declared.numbers("n", 0, np.int64)]  # (n,): regime per component
    log_weights: Annotated[Array, declared.logs]  # (n,): Σ exp = 1
    n_regimes: int
    time: int = 0  # number of the frame
    seed: int = 0
    # (n,): index of the parent component in the previous frame
    parents: Annotated[Index | None, declared.maybe(declared.numbers("n", 0, np.int64))] = None
    # (n,): index of the particle
    particle: Annotated[Index | None, declared.maybe(declared.numbers("n", 0, np.int64))] = None

    def __post_init__(self) -> None:
        means, roots = parameter(self.means, ME, "means"), parameter(self.roots, ME, "roots")
        which, logs = np.array(self.which, dtype=np.int64), np.array(self.log_weights, dtype=np.float64)
        shapes, n = (roots.shape, which.shape, logs.shape), len(means)
        if means.ndim != 2 or not means.size or shapes != ((*means.shape, means.shape[1]), (n,), (n,)):
            expected = "means (n, d), roots (n, d, d), which (n,) and log_weights (n,) must have matching shapes"
            raise ShapeError(sentence(ME, expected, [means.shape, *shapes]))
        if which.min() < 0 or which.max() >= self.n_regimes:
            raise DataError(sentence(ME, f"regimes must lie in 0 … {self.n_regimes - 1}", which.tolist()[:8]))
        if not abs(float(np.exp(logs).sum()) - 1.0) < 1e-6:
            raise DataError(sentence(ME, "exp(log_weights) must add up to one", float(np.exp(logs).sum())))
        self._set(means=means, roots=roots, which=which, log_weights=logs)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        n, d = self.means.shape
        return f"{ME}({n} Gaussians, d={d}, time={self.time}, regimes={self.regimes.round(4).tolist()})"

    @cached_property
    def weights(self) -> Array:
        """Normalized weights W_i (n,)."""
        return np.exp(self.log_weights)

    @cached_property
    def regimes(self) -> Array:
        """Regime probabilities p(z_t = k | y) (K,)."""
        return np.asarray(np.bincount(self.which, self.weights, self.n_regimes), dtype=np.float64)

    @cached_property
    def ess(self) -> float:
        """Effective sample size, 1 / Σ W²."""
        return 1.0 / max(float(np.add.reduce(self.weights * self.weights)), 1e-300)

    @cached_property
    def mean(self) -> Array:
        """Mean E[x_t | y] (d,)."""
        return np.einsum("n,nd->d", self.weights, self.means)

    @cached_property
    def covariance(self) -> Array:
        """Covariance Cov[x_t | y] (d, d): within components plus between components."""
        return mixed_covariance(self.weights, self.means, self.roots, self.mean)

    @property
    def variance(self) -> Array:
        """Variance of each entry (d,)."""
        return np.diagonal(self.covariance).copy()

    def sample(self, n: int, rng: Generator) -> Array:
        """Draw n states (n, d)."""
        i = rng.choice(len(self), size=n, p=self.weights / self.weights.sum())
        return self.means[i] + np.einsum("ni,nij->nj", rng.standard_normal((n, self.means.shape[1])), self.roots[i])


def mixed_covariance(weights: Array, means: Array, roots: Array, mean: Array) -> Array:
    """Covariance of a Gaussian mixture, from roots (n, d, d)."""
    d, scale = means.shape[1], np.sqrt(weights)
    within = (scale[:, None, None] * roots).reshape(-1, d)
    between = scale[:, None] * (means - mean)
    return spd.symmetric(within.T @ within + between.T @ between)


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingRun:
    """Result of a filter of a switching model for one sequence of T frames."""

    regime_posterior: Array  # (T, K): p(z_t | y_0 … y_t)
    mean: Array  # (T, d): filtered mean of x_t
    covariance: Array  # (T, d, d)
    log_evidences: Array  # (T,): log p(y_t | earlier frames)
    ess: Array  # (T,): effective sample size
    belief: SwitchingBelief | None  # the last one: `predict` and `update` continue from it; None without frames
    history: Any = None  # which, log_weights and parents of every frame, if they were stored

    @property
    def log_evidence(self) -> float:
        """Log-likelihood log p(y) of the sequence."""
        return float(self.log_evidences.sum())

    @property
    def regimes(self) -> Array:
        """Same as `regime_posterior`, under the name used by beliefs."""
        return self.regime_posterior

    def __repr__(self) -> str:
        T, K = self.regime_posterior.shape
        return f"SwitchingRun({T} frames, {K} regimes, log_evidence={self.log_evidence:.6g})"

    def regime_smoothed(self, lag: int) -> Array:
        """Fixed-lag smoothed regimes p(z_t | y_0 … y_{t + lag}) (T, K), from the ancestors of later particles."""
        if self.history is None:
            expected = "the ancestors of the particles were not stored"
            raise DomainError(sentence("SwitchingRun", expected, remedy="run(y, keep=True)"))
        lag, (T, K) = check_integer(lag, "SwitchingRun.regime_smoothed", "lag"), self.regime_posterior.shape
        return np.array([self._traced(t, min(t + lag, T - 1), K) for t in range(T)]).reshape(T, K)

    def _traced(self, t: int, end: int, K: int) -> Array:
        at = np.arange(len(self.history[end][0]))
        for f in range(end, t, -1):
            at = self.history[f][2][at]
        return np.asarray(np.bincount(self.history[t][0][at], np.exp(self.history[end][1]), K), dtype=np.float64)


def run_of(rows: list[Any], belief: SwitchingBelief, history: Any) -> SwitchingRun:
    """A run from regimes, mean, covariance, log-evidence and effective sample size per frame."""
    (_, d), K, T = belief.means.shape, belief.n_regimes, len(rows)
    shapes = ((T, K), (T, d), (T, d, d), (T,), (T,))
    columns = zip(*rows, strict=True) if rows else ((),) * len(shapes)
    parts = [np.array(column, dtype=np.float64).reshape(shape) for column, shape in zip(columns, shapes, strict=True)]
    a, b, c, increments, ess = parts
    return SwitchingRun(a, b, c, increments, ess, belief if rows else None, history)
