"""Vector autoregressive model of sensors in normal operation, with ridge and shrinkage by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtrc

from likely.core import declared
from likely.core.arrays import Array, Index, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import spd
from likely.numerics.special import LOG_2PI
from likely.statespace.linear.linear_gaussian import LinearGaussian

ME = "SensorDynamics"
RIDGES = (0.0003, 0.003, 0.03, 0.3, 3.0, np.inf)  # ridge penalties relative to a frame's variance; ∞: no dynamics
SHRUNK = (0.003, 0.01, 0.03, 0.1, 0.3)  # shrinkage of correlations toward 0
PARTS = 5  # cross-validation folds in time
TINY = 1e-9
CHANCE = 0.005  # p-value below which a trend is significant
SLOWEST = 0.999  # largest autoregressive eigenvalue in plausible distributions
ONE_SIDED = 1.645  # standard errors of an upper limit at a confidence of 95 %
SMALLER, STEPS = 0.7, 8  # errors of the transition are shrunk by this factor, so often, and then to 0


class Innovation(NamedTuple):
    """Innovation of a frame: whitened coordinates of the observed entries, and the frame with the others imputed."""

    white: Array  # (m,): standard normal in normal operation
    log_prob: float
    frame: Array  # (p,): missing entries by conditional expectation
    spread: Array | None  # (p, p): covariance of the imputed entries; None for a complete frame
    error: Array  # (p,): frame − prediction
    lower: Array | None = (
        None  # (m, m): the Cholesky factor of its covariance; None: that of the noise, all sensors observed
    )
    back: Array | None = None  # (m, p): from whitened coordinates to expected errors of all sensors


@dataclass(frozen=True, eq=False)
class SensorDynamics(Value):
    """First-order vector autoregression x_t − m = A (x_{t−1} − m) + w_t, w ~ N(0, Q); first frame N(m, P).

    The state is the frame itself, so that missing entries are marginalized by one regression per frame.

    >>> distribution = SensorDynamics([0.0], [[0.5]], [[1.0]], [[1.0]])
    >>> distribution.after([2.0], None, [1.0]).white
    array([0.])
    """

    mean: Annotated[Array, declared.numbers("p")]  # (p,)
    transition: Annotated[Array, declared.numbers("p p")]  # (p, p)
    noise_covariance: Annotated[Array, declared.numbers("p p")]  # (p, p)
    initial_covariance: Annotated[Array, declared.numbers("p p")]  # (p, p)

    def __post_init__(self) -> None:
        parts = {
            name: parameter(getattr(self, name), ME, name)
            for name in ("mean", "transition", "noise_covariance", "initial_covariance")
        }
        p = parts["mean"].size
        if parts["mean"].shape != (p,) or any(
            parts[n].shape != (p, p) for n in ("transition", "noise_covariance", "initial_covariance")
        ):
            expected = "mean must have shape (p,), transition, noise_covariance and initial_covariance (p, p)"
            raise ShapeError(sentence(ME, expected, [a.shape for a in parts.values()]))
        for name in ("noise_covariance", "initial_covariance"):
            if spd.cholesky(parts[name]) is None or not spd.is_symmetric(parts[name]):
                raise DomainError(sentence(ME, f"{name} must be a covariance, positive definite", parts[name].tolist()))
        self._set(**parts)

    @property
    def dim(self) -> int:
        """Number of sensors."""
        return len(self.mean)

    @cached_property
    def linear(self) -> LinearGaussian:
        """The model as a `LinearGaussian` of frames about the mean, observed without noise."""
        one = np.eye(self.dim)
        return LinearGaussian(
            transition=self.transition,
            process_covariance=self.noise_covariance,
            observation=one,
            observation_covariance=0.0 * one,
            initial_mean=np.zeros(self.dim),
            initial_covariance=self.initial_covariance,
        )

    @cached_property
    def whitening(self) -> Array:
        """Whitening matrix W (p, p) with W noise Wᵀ = I."""
        return spd.inverse_factor(self.root)

    @cached_property
    def root(self) -> Array:
        """Cholesky factor L (p, p) of the noise covariance."""
        return np.asarray(np.linalg.cholesky(self.noise_covariance), dtype=np.float64)

    @cached_property
    def precision(self) -> Array:
        """Precision noise⁻¹ (p, p)."""
        return spd.symmetric(self.whitening.T @ self.whitening)

    @cached_property
    def _constant(self) -> float:
        return 0.5 * self.dim * LOG_2PI + float(np.log(self.root.diagonal()).sum())

    def log_probs(self, x: Array) -> Array:
        """log p(x_t | x_{t−1}) of all frames but the first (T − 1,), for complete frames."""
        u = self.white(x[:-1], x[1:])
        return np.asarray(-0.5 * (u * u).sum(axis=1) - self._constant)

    def white(self, before: Array, x: Array) -> Array:
        """Whitened innovations (n, p) of complete frames x (n, p) after others: standard normal in normal operation."""
        off = before - self.mean
        return np.asarray((x - self.mean - off @ self.transition.T) @ self.whitening.T)

    def after(self, before: Any, spread: Array | None, x: Any) -> Innovation:
        """Innovation of a frame x (p,), NaN where missing, after `before` (None: first) of covariance `spread`."""
        x = np.asarray(x, dtype=np.float64)
        if before is None:
            return self._innovation(self.mean, self.initial_covariance, x)
        expected = self.mean + self.transition @ (np.asarray(before) - self.mean)
        if spread is None and not np.isnan(x).any():
            error = x - expected
            u = self.whitening @ error
            return Innovation(u, float(-0.5 * (u @ u) - self._constant), x, None, error)
        covariance = (
            self.noise_covariance
            if spread is None
            else spd.symmetric(self.noise_covariance + self.transition @ spread @ self.transition.T)
        )
        return self._innovation(expected, covariance, x)

    def _innovation(self, expected: Array, covariance: Array, x: Array) -> Innovation:
        observed = ~np.isnan(x)
        error = np.where(observed, x - expected, 0.0)
        if not observed.any():
            return Innovation(
                np.empty(0), 0.0, np.array(expected), covariance, error, np.empty((0, 0)), np.empty((0, len(x)))
            )
        lower = np.linalg.cholesky(covariance[np.ix_(observed, observed)])
        u = solve_triangular(lower, error[observed], lower=True, check_finite=False)
        log_prob = float(-0.5 * (u @ u + len(u) * LOG_2PI) - np.log(lower.diagonal()).sum())
        if observed.all():
            return Innovation(u, log_prob, x, None, error, lower, lower.T)
        back = solve_triangular(lower, covariance[observed], lower=True, check_finite=False)
        error = u @ back
        left = spd.symmetric(covariance - back.T @ back)
        left[observed], left[:, observed] = 0.0, 0.0
        return Innovation(u, log_prob, np.where(observed, x, expected + error), left, error, lower, back)


# --------------------------------------------------------------------- learning


class PairStats(NamedTuple):
    """Additive sufficient statistics of pairs of consecutive frames (a before, b after) and of frames."""

    pairs: float
    sums: Array  # (2p,)
    products: Array  # (2p, 2p)
    frames: float
    total: Array  # (p,)
    squares: Array  # (p, p)

    def plus(self, other: PairStats) -> PairStats:
        """The sum of two statistics."""
        return PairStats(*(add(a, b) for a, b in zip(self, other, strict=True)))

    @classmethod
    def of(cls, x: Array, weight: float = 1.0) -> PairStats:
        """Statistics of one complete segment (T, p)."""
        both = np.hstack([x[:-1], x[1:]])
        return cls(weight * len(both), weight * both.sum(axis=0), weight * both.T @ both, weight * len(x),
                   weight * x.sum(axis=0), weight * x.T @ x)  # fmt: skip


def learned(pairs: PairStats, ridge: float, shrunk: float) -> SensorDynamics:
    """Fit by ridge regression, with correlations of the covariances shrunk toward 0."""
    p = len(pairs.total)
    mean = pairs.total / pairs.frames
    frame = pairs.squares / pairs.frames - np.outer(mean, mean)
    center = np.concatenate([mean, mean])
    n = max(pairs.pairs, 1.0)
    cross = np.outer(pairs.sums / n, center)
    both = pairs.products / n - cross - cross.T + np.outer(center, center)
    transition = _transition(both[:p, :p], both[:p, p:], ridge)
    left = (
        both[p:, p:]
        - transition @ both[:p, p:]
        - both[p:, :p] @ transition.T
        + transition @ both[:p, :p] @ transition.T
    )
    size = np.diagonal(frame)
    return SensorDynamics.trusted(
        mean=mean,
        transition=transition,
        noise_covariance=_shrunk(left, shrunk, size),
        initial_covariance=_shrunk(frame, shrunk, size),
    )


def _transition(a: Array, ab: Array, ridge: float) -> Array:
    if np.isinf(ridge):
        return np.zeros_like(a)
    s = np.sqrt(np.maximum(np.diagonal(a), 1e-300))
    inside = a / s[:, None] / s + ridge * np.eye(len(a))
    return np.ascontiguousarray(
        np.linalg.solve(inside, ab / s[:, None]).T / s
    )  # memory order as read from a file, for the same bits


def _shrunk(a: Array, share: float, size: Array) -> Array:
    """Covariance with correlations shrunk by a share, and variances at least a billionth of the frame's."""
    v = np.maximum(np.diagonal(a), np.maximum(1e-6 * size, TINY))
    out = (1.0 - share) * spd.symmetric(a)
    np.fill_diagonal(out, v)
    return out


class Chosen(NamedTuple):
    """Cross-validated dynamics: the model, those of each fold, and the chosen settings."""

    distribution: SensorDynamics
    left_out: list[SensorDynamics]
    ridge: float
    shrunk: float
    pairs: PairStats  # statistics of all frames
    trend: Array  # (p,): whitened errors after as many frames again, if their trend continues; 0 if not significant


def chosen(segments: Sequence[Array], weights: Array) -> Chosen:
    """Choose ridge and shrinkage by cross-validation in time; the noise is scaled to the held-out errors.

    Parameters fitted to n frames predict these better than new ones: held-out errors include the parameter uncertainty.
    """
    cut = [np.array_split(x, PARTS) for x in segments]
    folds = [_sum([(c[k], w) for c, w in zip(cut, weights, strict=True)]) for k in range(PARTS)]
    without_fold = [reduce(PairStats.plus, [one for j, one in enumerate(folds) if j != k]) for k in range(PARTS)]
    tried = {
        (r, s): _cross_validated([learned(one, r, s) for one in without_fold], cut, weights)
        for r in RIDGES
        for s in SHRUNK
    }
    ridge, shrunk = max(tried, key=lambda pair: tried[pair].log_prob)
    noise_factor = tried[ridge, shrunk].noise_factor
    pairs = _sum(list(zip(segments, weights, strict=True)))
    left_out = [_rescaled(learned(one, ridge, shrunk), noise_factor) for one in without_fold]
    distribution = _rescaled(learned(pairs, ridge, shrunk), noise_factor)
    return Chosen(distribution, left_out, ridge, shrunk, pairs, _trend(distribution, segments, weights))


def _trend(distribution: SensorDynamics, segments: Sequence[Array], weights: Array) -> Array:
    """Extrapolated trend of whitened errors (p,) after as many frames again; 0 where it is not significant.

    Without a trend, Σ t u_t / √Σ t² of whitened errors u at centered times t is standard normal, its square χ² (p).
    With many segments the trend is not extrapolated: each may begin as all of them do.
    """
    products, squares = np.zeros(distribution.dim), TINY
    for x, w in zip(segments, weights, strict=True):
        t = np.arange(len(x) - 1.0) - 0.5 * (len(x) - 2)
        products, squares = products + w * (t @ distribution.white(x[:-1], x[1:])), squares + float(w * (t @ t))
    if len(segments) >= PARTS or chdtrc(distribution.dim, products @ products / squares) > CHANCE:
        return np.zeros(distribution.dim)
    return np.asarray(max(map(len, segments)) * products / squares)


def _sum(parts: Sequence[tuple[Array, Any]]) -> PairStats:
    return reduce(PairStats.plus, [PairStats.of(x, float(w)) for x, w in parts if len(x)])


class _CrossValidated(NamedTuple):
    log_prob: float  # held-out, once the noise is rescaled
    noise_factor: float  # factor of the noise


def _cross_validated(
    distributions: Sequence[SensorDynamics], cut: Sequence[Sequence[Array]], weights: Array
) -> _CrossValidated:
    """Held-out log-likelihood of the folds, with the best factor of the noise: the mean square of whitened errors."""
    squares = count = logs = 0.0
    for k, distribution in enumerate(distributions):
        for parts, w in zip(cut, weights, strict=True):
            u = distribution.white(parts[k][:-1], parts[k][1:])
            squares, count = squares + float(w) * float((u * u).sum()), count + float(w) * u.size
            logs += float(w) * len(u) * distribution._constant
    noise_factor = max(squares / max(count, 1e-300), 1e-300)
    return _CrossValidated(-0.5 * count * (1.0 + np.log(noise_factor)) - logs, noise_factor)


def _rescaled(distribution: SensorDynamics, noise_factor: float) -> SensorDynamics:
    return SensorDynamics.trusted(
        mean=distribution.mean,
        transition=distribution.transition,
        noise_covariance=distribution.noise_covariance * noise_factor,
        initial_covariance=distribution.initial_covariance * noise_factor,
    )


class Plausible(NamedTuple):
    """A stack of B distributions sampled from the posterior."""

    mean: Array  # (B, p)
    transition: Array  # (B, p, p)
    root: Array  # (B, p, p): root rootᵀ = noise

    def frames(self, start: Array, streams: int, T: int, rng: np.random.Generator) -> Iterator[Array]:
        """Simulate T frames (B · streams, p), one by one; the first have covariance `start`; by distribution."""
        B, p = self.mean.shape
        x = rng.normal(size=(B, streams, p)) @ np.linalg.cholesky(start).T
        # copies: products with transposed stacks take twice the time
        transition, root = (np.ascontiguousarray(a.transpose(0, 2, 1)) for a in (self.transition, self.root))
        for _ in range(T):
            x = x @ transition + rng.standard_normal(x.shape) @ root
            yield (self.mean[:, None] + x).reshape(-1, p)


def plausible(found: Chosen, B: int, rng: np.random.Generator) -> Plausible:
    """Sample distributions from the posterior of the fitted one: Bayesian ridge regression of n pairs of frames.

    noise ~ inverse Wishart with n / (1 − s) degrees of freedom, s the share by which correlations are shrunk;
    transition | noise ~ matrix normal about the fitted ones with row covariance noise and column covariance
    (n (C + λ))⁻¹, C the correlations of frames and λ the ridge; the error of the constant term has covariance
    noise / n, about the extrapolated trend. If no dynamics (λ = ∞) predict held-out parts best, that does not prove
    that there are none: the largest finite ridge is the prior then. The fitted noise was scaled to held-out errors of
    distributions that lack one fold in `PARTS`; the samples have errors of their own, so that the share of the former
    is removed.
    """
    distribution, pairs, p = found.distribution, found.pairs, found.distribution.dim
    n = max(pairs.pairs, 2.0 * (p + 1))
    mean = pairs.total / pairs.frames
    cov = pairs.squares / pairs.frames - np.outer(mean, mean)
    s = np.sqrt(np.maximum(np.diagonal(cov), 1e-300))
    cor = spd.symmetric(cov / s[:, None] / s)
    inverse = np.linalg.inv(cor + min(found.ridge, RIDGES[-2]) * np.eye(p))
    columns = np.linalg.cholesky(inverse / n) / s[:, None]
    errors = (1.0 + float((inverse * cor).sum())) / (n * (1.0 - 1.0 / PARTS))  # coefficients per sensor and pair
    freedom = n / (1.0 - found.shrunk)
    size = np.sqrt((freedom - p - 1) / freedom / (1.0 + errors))
    root = size * distribution.root @ _inverse_wishart_roots(freedom, p, B, rng)
    transition = _steady(distribution.transition, root @ rng.normal(size=(B, p, p)) @ columns.T, n)
    constant = root @ rng.normal(size=(B, p, 1)) / np.sqrt(n) + (distribution.root @ found.trend)[:, None]
    return Plausible(distribution.mean + np.linalg.solve(np.eye(p) - transition, constant)[..., 0], transition, root)


def _steady(transition: Array, errors: Array, n: float) -> Array:
    """transition + errors (B, p, p), with errors shrunk where the dynamics would be slower than n frames allow.

    The largest eigenvalue ρ of n frames has standard error √((1 − ρ²) / n): at most `ONE_SIDED` of them more. Errors
    spread eigenvalues, in the estimate and again in samples about it, so that many samples would be too slow.
    """
    slowest = float(np.abs(np.linalg.eigvals(transition)).max())
    most = max(slowest, min(slowest + ONE_SIDED * np.sqrt(max(1.0 - slowest**2, 0.0) / n), SLOWEST))
    out, left = transition + errors, np.arange(len(errors))
    for step in range(1, STEPS + 1):
        left = left[np.abs(np.linalg.eigvals(out[left])).max(axis=1) > most]
        if not len(left):
            break
        out[left] = transition + (SMALLER**step if step < STEPS else 0.0) * errors[left]
    return np.asarray(out)


def _inverse_wishart_roots(n: float, p: int, B: int, rng: np.random.Generator) -> Array:
    """V (B, p, p) with V Vᵀ inverse Wishart of n degrees of freedom and scale n I, by Bartlett's decomposition."""
    lower = np.tril(rng.normal(size=(B, p, p)), -1)
    at = np.arange(p)
    lower[:, at, at] = np.sqrt(rng.chisquare(n - at, size=(B, p)))
    return np.asarray(np.sqrt(n) * np.linalg.inv(lower).transpose(0, 2, 1))


def filled(x: Array, rounds: int = 5) -> Array:
    """Impute missing entries (NaN) of rows (T, p) by conditional expectations under a Gaussian, in a few iterations."""
    missing = np.isnan(x)
    if not missing.any():
        return x
    out = np.where(missing, np.nanmean(x, axis=0), x)
    for _ in range(rounds):
        mean = out.mean(axis=0)
        cov = _shrunk(np.cov(out.T, bias=True).reshape(x.shape[1], -1), 0.1, np.nanvar(x, axis=0))
        for t in np.flatnonzero(missing.any(axis=1)):
            out[t] = _expected(x[t], mean, cov)
    return out


def _expected(row: Array, mean: Array, cov: Array) -> Array:
    observed: Index = np.flatnonzero(~np.isnan(row))
    if not len(observed):
        return mean
    solved = np.linalg.solve(cov[np.ix_(observed, observed)], row[observed] - mean[observed])
    return np.where(np.isnan(row), mean + cov[:, observed] @ solved, row)
