"""Small switching models, and their posterior path by path from time-varying Kalman models: the oracle's oracle."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian

P2 = [[0.9, 0.1], [0.2, 0.8]]


def regime(a: float = 0.9, q: float = 0.1, r: float = 0.2, c: float = 1.0, **more: object) -> LinearGaussian:
    """Two states, one column."""
    return LinearGaussian(
        transition=[[a, 0.1], [0.0, 0.8]],
        process_covariance=np.diag([q, q / 2]),
        observation=[[c, 0.3]],
        observation_covariance=[[r]],
        initial_mean=[0.0, 0.5],
        initial_covariance=np.eye(2),
        **more,
    )


def two() -> SwitchingLinearGaussian:
    """A quiet regime, and a wild one that oscillates."""
    return SwitchingLinearGaussian((regime(), regime(-0.5, 1.0, 0.5, 2.0)), P2)


def driven() -> SwitchingLinearGaussian:
    """Two regimes that differ in what an input does, to the state and to what is seen."""
    rng = np.random.default_rng(7)
    made = [regime(control=rng.normal(size=(2, 2)), feedthrough=rng.normal(size=(1, 2))) for _ in range(2)]
    return SwitchingLinearGaussian(tuple(made), P2, [0.3, 0.7])


def along(model: SwitchingLinearGaussian, path: tuple[int, ...]) -> LinearGaussian:
    """The Kalman model whose matrices follow one path of regimes."""
    m = [model.regimes[k] for k in path]
    inputs = {
        n: np.stack([getattr(r, n) for r in m]) for n in ("control", "feedthrough") if getattr(m[0], n) is not None
    }
    names = ("transition", "process_covariance", "observation", "observation_covariance")
    return LinearGaussian(
        **{n: np.stack([getattr(r, n) for r in m]) for n in names},
        initial_mean=m[0].initial_mean,
        initial_covariance=m[0].initial_covariance,
        **inputs,
    )


def all_paths(model: SwitchingLinearGaussian, y: np.ndarray, u: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """log p(y), and p(z_t = k), mean and covariance of x_t given all frames."""
    T, K, d = len(y), model.n_regimes, model.states
    logs, paths, means, covs = [], list(product(range(K), repeat=T)), [], []
    for path in paths:
        chain = np.log(model.initial[path[0]]) + sum(np.log(model.transition[a, b]) for a, b in pairwise(path))
        found = along(model, path).smooth(y, u)
        logs.append(chain + found.log_prob)
        means.append(found.mean)
        covs.append(found.covariance)
    log_prob = np.logaddexp.reduce(logs)
    w = np.exp(np.array(logs) - log_prob)
    shares = np.array([[w[[p[t] == k for p in paths]].sum() for k in range(K)] for t in range(T)])
    mean = np.tensordot(w, np.array(means), axes=1)
    off = np.array(means) - mean
    cov = np.tensordot(w, np.array(covs), axes=1) + np.einsum("n,nti,ntj->tij", w, off, off)
    return {"log_prob": log_prob, "regimes": shares, "mean": mean.reshape(T, d), "covariance": cov}
