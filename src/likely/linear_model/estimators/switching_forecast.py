"""Predictive densities of Markov-switching regressions: one step ahead, and several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, check_integer
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.distributions.gaussian.gaussian import Gaussian
from likely.linear_model.markov_switching import MarkovSwitchingRegression
from likely.mixture.mixture import Mixture

MOST = 1024  # paths of states that a forecast keeps apart


@dataclass(frozen=True, eq=False)
class Forecast(Value):
    """Forecast of a Markov-switching regression: probabilities of states, and densities of values, step by step.

    `result[i]` is the density of the value i + 1 frames ahead, a mixture of Gaussians.
    """

    states: Annotated[Array, declared.numbers("H K", 0)]  # (steps, K)
    densities: Annotated[tuple[Any, ...], declared.items(declared.density)]

    def __len__(self) -> int:
        return len(self.densities)

    def __getitem__(self, step: int) -> Mixture:
        return self.densities[step]

    def __iter__(self) -> Iterator[Mixture]:
        return iter(self.densities)

    @property
    def mean(self) -> Array:
        """Expected values (steps,)."""
        return np.array([float(one.mean[0]) for one in self.densities])

    @property
    def std(self) -> Array:
        """Standard deviations (steps,)."""
        return np.sqrt([float(one.variance[0]) for one in self.densities])

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends (steps,) of central predictive intervals."""
        ends = np.array([one.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level]) for one in self.densities])
        return ends[:, 0], ends[:, 1]


def mixtures(model: MarkovSwitchingRegression, rows: Ragged) -> Mixture:
    """One-step predictive densities of all rows: a stack of mixtures of the Gaussians of runs."""
    filtered, hmm = model.hmm.posterior(rows, 0).values, model.hmm
    predicted = np.empty_like(filtered)
    predicted[1:] = filtered[:-1] @ hmm.transition
    predicted[rows.offsets[:-1][rows.lengths > 0]] = hmm.initial
    means = model.regressions._means(rows.values["x"])  # (n, E, 1)
    n, E, _ = means.shape
    variance = np.tile(model.variance[model.runs[:, 0]], n)[:, None, None]
    components = Gaussian.trusted(mean=means.reshape(n * E, 1), covariance=variance, kind="full")
    return Mixture.trusted(weights=predicted / predicted.sum(axis=1, keepdims=True), components=components)


def forecast(estimator: Any, y: Any, steps: int, X: Any, future: Any) -> Forecast:
    """Densities of the next values of one series, by propagating Gaussians of the last p values along paths."""
    me, m, p = type(estimator).__name__, estimator.regimes_, estimator.lags
    steps = check_integer(steps, f"{me}.forecast", "steps", 1)
    series = estimator._series(y)[0]
    g = _future_functions(estimator, series, X, future, steps)
    if len(series) < p or np.isnan(series[len(series) - p :]).any():
        expected = f"forecast needs the last {p} values of the series"
        raise DataError(sentence(me, expected, "NaN" if len(series) >= p else f"{len(series)} values"))
    rows = estimator.rows(y, X)
    runs = m.hmm.posterior(rows, 0).values[-1] if len(rows.values) else m.run_probabilities
    paths = _Paths(m, estimator.mean_adjusted, p, runs, series[len(series) - p :][::-1].copy(), len(rows.values) == 0)
    states, densities = [], []
    for h in range(steps):
        paths.step(g[len(g) - steps + h - (p if estimator.mean_adjusted else 0) : len(g) - steps + h + 1])
        states.append(paths.of_states())
        densities.append(paths.density())
    return Forecast.trusted(states=np.stack(states), densities=tuple(densities))


def _future_functions(estimator: Any, series: Array, X: Any, future: Any, steps: int) -> Array:
    """Basis functions of the series and the frames to come (T + steps, q)."""
    d, me = estimator.n_regressors_, type(estimator).__name__
    if not d:
        return estimator._functions(len(series) + steps, None)
    coming = estimator._tables(future)
    if coming is None or coming[0].shape != (steps, d) or not np.isfinite(coming[0]).all():
        got = "none" if coming is None else coming[0].shape
        raise ShapeError(
            sentence(me, f"forecast needs future=, the X of the {steps} frames to come ({steps}, {d})", got)
        )
    return estimator._functions(len(series) + steps, np.concatenate([estimator._tables(X)[0], coming[0]]))


class _Paths:
    """Weighted paths: each ends in a run of states, and the last p values are Gaussian, the newest first."""

    def __init__(
        self, m: MarkovSwitchingRegression, adjusted: bool, p: int, runs: Array, last: Array, fresh: bool
    ) -> None:
        self.m, self.adjusted, self.p, self.fresh = m, adjusted, p, fresh
        self.run, self.weight = np.arange(len(runs)), np.array(runs)
        self.mean: Array = np.tile(last, (len(runs), 1))
        self.cov: Array = np.zeros((len(runs), p, p))
        self.now: tuple[Array, Array] = np.zeros(len(runs)), np.zeros(len(runs))

    def step(self, g: Array) -> None:
        """One frame further; g (p + 1, q) or (1, q) are basis functions of the last frames, the newest last."""
        m, K, E = self.m, self.m.states, len(self.m.runs)
        if not self.fresh:  # else the first run is the first frame itself
            n = len(self.run)
            newest = m.runs[self.run, 0]
            self.weight = (self.weight[:, None] * m.transition[newest]).ravel()
            older = self.run // K if m.order else np.zeros(n, dtype=np.intp)
            self.run = (np.arange(K) * (E // K) + older[:, None]).ravel()
            self.mean, self.cov = np.repeat(self.mean, K, axis=0), np.repeat(self.cov, K, axis=0)
        self.fresh = False
        states = m.runs[self.run]
        beta, q = m.coefficients, g.shape[1]
        phi = m.ar[states[:, 0]] if self.adjusted else beta[states[:, 0]][:, q:]
        level = beta[states[:, 0]][:, :q] @ g[-1]
        before = [beta[states[:, i + 1]] @ g[-2 - i] for i in range(m.order)]
        deviation = self.mean - np.stack(before, axis=1) if before else self.mean
        value = level + (phi * deviation).sum(axis=1)
        cross = np.einsum("nij,nj->ni", self.cov, phi)
        variance = m.variance[states[:, 0]] + (phi * cross).sum(axis=1)
        self.now = value, variance
        if self.p:
            joint = np.zeros((len(value), self.p + 1, self.p + 1))
            joint[:, 0, 0], joint[:, 0, 1:], joint[:, 1:, 0], joint[:, 1:, 1:] = variance, cross, cross, self.cov
            self.mean = np.concatenate([value[:, None], self.mean], axis=1)[:, : self.p]
            self.cov = joint[:, : self.p, : self.p]
        self._merge()

    def _merge(self) -> None:
        """Paths in the same run as one Gaussian, where there is nothing to keep apart, or there are too many."""
        E = len(self.m.runs)
        if self.p and len(self.run) * self.m.states <= MOST:
            return
        total = np.bincount(self.run, self.weight, E).astype(float)
        share = self.weight / np.where(total > 0, total, 1.0)[self.run]
        value, variance = self.now
        mean = np.zeros((E, self.p))
        np.add.at(mean, self.run, share[:, None] * self.mean)
        away = self.mean - mean[self.run]
        cov = np.zeros((E, self.p, self.p))
        np.add.at(cov, self.run, share[:, None, None] * (self.cov + away[:, :, None] * away[:, None, :]))
        center = np.bincount(self.run, share * value, E).astype(float)
        spread = np.bincount(self.run, share * (variance + (value - center[self.run]) ** 2), E).astype(float)
        alive = np.flatnonzero(total > 0)
        self.run, self.weight, self.mean, self.cov = alive, total[alive], mean[alive], cov[alive]
        self.now = center[alive], spread[alive]

    def of_states(self) -> Array:
        """Probabilities of the newest states (K,)."""
        found = np.bincount(self.m.runs[self.run, 0], self.weight, self.m.states)
        return np.asarray(found / found.sum())

    def density(self) -> Mixture:
        """The density of the newest value."""
        alive = self.weight > 0
        value, variance = (part[alive] for part in self.now)
        weight = self.weight[alive]
        components = Gaussian.trusted(mean=value[:, None], covariance=variance[:, None, None], kind="full")
        return Mixture.trusted(weights=weight / weight.sum(), components=components)
