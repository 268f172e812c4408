"""How sensors move while all is well: each frame from the one before, and a noise that knows who goes with whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtrc

from likely.core.arrays import Array, Index, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import spd
from likely.numerics.special import LOG_2PI
from likely.statespace.linear.linear_gaussian import LinearGaussian

ME = "SensorDynamics"
RIDGES = (0.0003, 0.003, 0.03, 0.3, 3.0, np.inf)  # shares of a frame's variance that hold moves back; ∞: none
SHRUNK = (0.003, 0.01, 0.03, 0.1, 0.3)  # shares of a covariance that are taken from correlations
PARTS = 5  # in time, each left out once
TINY = 1e-9
CHANCE = 0.005  # probability below which a trend is no chance
SLOWEST = 0.999  # share of a motion that a frame keeps of the one before, at most, in plausible distributions
ONE_SIDED = 1.645  # standard errors of an upper limit at a confidence of 95 %
SMALLER, STEPS = 0.7, 8  # errors of moves become so much smaller, so often, and then none


class Innovation(NamedTuple):
    """A frame against its prediction: white coordinates of what was seen, and the frame with gaps filled in."""

    white: Array  # (m,): standard normal while all is well
    log_prob: float
    frame: Array  # (p,): gaps by conditional expectation
    spread: Array | None  # (p, p): covariance of what was filled in; None for a complete frame
    error: Array  # (p,): frame − prediction
    lower: Array | None = None  # (m, m): the factor that made it white; None: that of the noise, all sensors seen
    back: Array | None = None  # (m, p): from white coordinates to expected errors of all sensors


@dataclass(frozen=True, eq=False)
class SensorDynamics(Value):
    """x_t − m = A (x_{t−1} − m) + w_t, w ~ N(0, noise); the first frame is N(m, start).

    The state is the frame itself, so that gaps are integrated out by one regression a frame.

    >>> distribution = SensorDynamics([0.0], [[0.5]], [[1.0]], [[1.0]])
    >>> distribution.after([2.0], None, [1.0]).white
    array([0.])
    """

    mean: Array  # (p,)
    moves: Array  # (p, p)
    noise: Array  # (p, p)
    start: Array  # (p, p)

    def __post_init__(self) -> None:
        parts = {name: parameter(getattr(self, name), ME, name) for name in ("mean", "moves", "noise", "start")}
        p = parts["mean"].size
        if parts["mean"].shape != (p,) or any(parts[n].shape != (p, p) for n in ("moves", "noise", "start")):
            expected = "mean must have shape (p,), moves, noise and start (p, p)"
            raise ShapeError(sentence(ME, expected, [a.shape for a in parts.values()]))
        for name in ("noise", "start"):
            if spd.cholesky(parts[name]) is None or not spd.is_symmetric(parts[name]):
                raise DomainError(sentence(ME, f"{name} must be a covariance, positive definite", parts[name].tolist()))
        self._set(**parts)

    @property
    def dim(self) -> int:
        """Number of sensors."""
        return len(self.mean)

    @cached_property
    def linear(self) -> LinearGaussian:
        """The same as a linear-Gaussian model of frames about the mean, seen without noise."""
        one = np.eye(self.dim)
        return LinearGaussian(
            transition=self.moves,
            process_covariance=self.noise,
            observation=one,
            observation_covariance=0.0 * one,
            initial_mean=np.zeros(self.dim),
            initial_covariance=self.start,
        )

    @cached_property
    def whitening(self) -> Array:
        """W (p, p) with W noise Wᵀ = I."""
        return spd.inverse_factor(self.root)

    @cached_property
    def root(self) -> Array:
        """L (p, p) lower, L Lᵀ = noise: back from white coordinates."""
        return np.asarray(np.linalg.cholesky(self.noise), dtype=np.float64)

    @cached_property
    def precision(self) -> Array:
        """noise⁻¹ (p, p)."""
        return spd.symmetric(self.whitening.T @ self.whitening)

    @cached_property
    def _constant(self) -> float:
        return 0.5 * self.dim * LOG_2PI + float(np.log(self.root.diagonal()).sum())

    def log_probs(self, x: Array) -> Array:
        """log p(x_t | x_{t−1}) of all frames but the first (T − 1,), without gaps."""
        u = self.white(x[:-1], x[1:])
        return np.asarray(-0.5 * (u * u).sum(axis=1) - self._constant)

    def white(self, before: Array, x: Array) -> Array:
        """White coordinates (n, p) of frames x (n, p) after others, without gaps: standard normal while all is well."""
        off = before - self.mean
        return np.asarray((x - self.mean - off @ self.moves.T) @ self.whitening.T)

    def after(self, before: Any, spread: Array | None, x: Any) -> Innovation:
        """A frame x (p,), NaN where nothing was seen, after the one `before` (None: at first), known up to `spread`."""
        x = np.asarray(x, dtype=np.float64)
        if before is None:
            return self._innovation(self.mean, self.start, x)
        expected = self.mean + self.moves @ (np.asarray(before) - self.mean)
        if spread is None and not np.isnan(x).any():
            error = x - expected
            u = self.whitening @ error
            return Innovation(u, float(-0.5 * (u @ u) - self._constant), x, None, error)
        wide = self.noise if spread is None else spd.symmetric(self.noise + self.moves @ spread @ self.moves.T)
        return self._innovation(expected, wide, x)

    def _innovation(self, expected: Array, wide: Array, x: Array) -> Innovation:
        there = ~np.isnan(x)
        error = np.where(there, x - expected, 0.0)
        if not there.any():
            return Innovation(
                np.empty(0), 0.0, np.array(expected), wide, error, np.empty((0, 0)), np.empty((0, len(x)))
            )
        lower = np.linalg.cholesky(wide[np.ix_(there, there)])
        u = solve_triangular(lower, error[there], lower=True, check_finite=False)
        log_prob = float(-0.5 * (u @ u + len(u) * LOG_2PI) - np.log(lower.diagonal()).sum())
        if there.all():
            return Innovation(u, log_prob, x, None, error, lower, lower.T)
        back = solve_triangular(lower, wide[there], lower=True, check_finite=False)
        error = u @ back
        left = spd.symmetric(wide - back.T @ back)
        left[there], left[:, there] = 0.0, 0.0
        return Innovation(u, log_prob, np.where(there, x, expected + error), left, error, lower, back)


# --------------------------------------------------------------------- learning


class Pairs(NamedTuple):
    """Sums over pairs of neighboring frames (a before, b after) and over frames: all that learning needs; they add."""

    pairs: float
    sums: Array  # (2p,)
    products: Array  # (2p, 2p)
    frames: float
    total: Array  # (p,)
    squares: Array  # (p, p)

    def plus(self, other: Pairs) -> Pairs:
        """Of both."""
        return Pairs(*(add(a, b) for a, b in zip(self, other, strict=True)))

    @classmethod
    def of(cls, x: Array, weight: float = 1.0) -> Pairs:
        """Of one stretch without gaps (T, p)."""
        both = np.hstack([x[:-1], x[1:]])
        return cls(weight * len(both), weight * both.sum(axis=0), weight * both.T @ both, weight * len(x),
                   weight * x.sum(axis=0), weight * x.T @ x)  # fmt: skip


def learned(pairs: Pairs, ridge: float, shrunk: float) -> SensorDynamics:
    """Moves by ridge regression, covariances with correlations shrunk toward 0 by a share."""
    p = len(pairs.total)
    mean = pairs.total / pairs.frames
    frame = pairs.squares / pairs.frames - np.outer(mean, mean)
    center = np.concatenate([mean, mean])
    n = max(pairs.pairs, 1.0)
    cross = np.outer(pairs.sums / n, center)
    both = pairs.products / n - cross - cross.T + np.outer(center, center)
    moves = _moves(both[:p, :p], both[:p, p:], ridge)
    left = both[p:, p:] - moves @ both[:p, p:] - both[p:, :p] @ moves.T + moves @ both[:p, :p] @ moves.T
    size = np.diagonal(frame)
    return SensorDynamics.trusted(
        mean=mean, moves=moves, noise=_less_tied(left, shrunk, size), start=_less_tied(frame, shrunk, size)
    )


def _moves(a: Array, ab: Array, ridge: float) -> Array:
    if np.isinf(ridge):
        return np.zeros_like(a)
    s = np.sqrt(np.maximum(np.diagonal(a), 1e-300))
    inside = a / s[:, None] / s + ridge * np.eye(len(a))
    return np.ascontiguousarray(np.linalg.solve(inside, ab / s[:, None]).T / s)  # as a file has it: same bits


def _less_tied(a: Array, share: float, size: Array) -> Array:
    """Correlations shrunk by a share, and no variance below a billionth of the frame's."""
    v = np.maximum(np.diagonal(a), np.maximum(1e-6 * size, TINY))
    out = (1.0 - share) * spd.symmetric(a)
    np.fill_diagonal(out, v)
    return out


class Chosen(NamedTuple):
    """Dynamics, the settings under which they foretell left-out parts best, and those that lack one part each."""

    distribution: SensorDynamics
    left_out: list[SensorDynamics]
    ridge: float
    shrunk: float
    pairs: Pairs  # sums over all frames
    trend: Array  # (p,): white errors in as many frames again, if their trend goes on; 0 where it may be chance


def chosen(stretches: Sequence[Array], weights: Array) -> Chosen:
    """Ridge and shrinkage by left-out parts; the noise is widened to what left-out frames show.

    What is learned from n frames explains these better than those to come: errors of the latter are larger by what the
    parameters are uncertain.
    """
    cut = [np.array_split(x, PARTS) for x in stretches]
    every = [_sum([(c[k], w) for c, w in zip(cut, weights, strict=True)]) for k in range(PARTS)]
    rest = [reduce(Pairs.plus, [one for j, one in enumerate(every) if j != k]) for k in range(PARTS)]
    tried = {(r, s): _foretold([learned(one, r, s) for one in rest], cut, weights) for r in RIDGES for s in SHRUNK}
    ridge, shrunk = max(tried, key=lambda pair: tried[pair].log_prob)
    wider = tried[ridge, shrunk].wider
    pairs = _sum(list(zip(stretches, weights, strict=True)))
    left_out = [_widened(learned(one, ridge, shrunk), wider) for one in rest]
    distribution = _widened(learned(pairs, ridge, shrunk), wider)
    return Chosen(distribution, left_out, ridge, shrunk, pairs, _trend(distribution, stretches, weights))


def _trend(distribution: SensorDynamics, stretches: Sequence[Array], weights: Array) -> Array:
    """What white errors (p,) will be in as many frames again if they grow on as they do; 0 where chance explains it.

    Without a trend, Σ t u_t / √Σ t² of white errors u at centered times t is standard normal, its square χ² (p). In
    many stretches growth is not extrapolated: each may begin as all of them do.
    """
    products, squares = np.zeros(distribution.dim), TINY
    for x, w in zip(stretches, weights, strict=True):
        t = np.arange(len(x) - 1.0) - 0.5 * (len(x) - 2)
        products, squares = products + w * (t @ distribution.white(x[:-1], x[1:])), squares + float(w * (t @ t))
    if len(stretches) >= PARTS or chdtrc(distribution.dim, products @ products / squares) > CHANCE:
        return np.zeros(distribution.dim)
    return np.asarray(max(map(len, stretches)) * products / squares)


def _sum(parts: Sequence[tuple[Array, Any]]) -> Pairs:
    return reduce(Pairs.plus, [Pairs.of(x, float(w)) for x, w in parts if len(x)])


class _Foretold(NamedTuple):
    log_prob: float  # a frame, once the noise is widened
    wider: float  # factor of the noise


def _foretold(distributions: Sequence[SensorDynamics], cut: Sequence[Sequence[Array]], weights: Array) -> _Foretold:
    """How well distributions predict their held-out parts: noise · d² is best, d² the mean square of white errors."""
    squares = count = logs = 0.0
    for k, distribution in enumerate(distributions):
        for parts, w in zip(cut, weights, strict=True):
            u = distribution.white(parts[k][:-1], parts[k][1:])
            squares, count = squares + float(w) * float((u * u).sum()), count + float(w) * u.size
            logs += float(w) * len(u) * distribution._constant
    wider = max(squares / max(count, 1e-300), 1e-300)
    return _Foretold(-0.5 * count * (1.0 + np.log(wider)) - logs, wider)


def _widened(distribution: SensorDynamics, wider: float) -> SensorDynamics:
    return SensorDynamics.trusted(
        mean=distribution.mean,
        moves=distribution.moves,
        noise=distribution.noise * wider,
        start=distribution.start * wider,
    )


class Plausible(NamedTuple):
    """B distributions that the frames do not exclude, as a stack."""

    mean: Array  # (B, p)
    moves: Array  # (B, p, p)
    root: Array  # (B, p, p): root rootᵀ = noise

    def frames(self, start: Array, streams: int, T: int, rng: np.random.Generator) -> Iterator[Array]:
        """T frames (B · streams, p), one by one; the first have covariance `start`; ordered by distribution."""
        B, p = self.mean.shape
        x = rng.normal(size=(B, streams, p)) @ np.linalg.cholesky(start).T
        # copies: products with transposed stacks take twice the time
        moves, root = (np.ascontiguousarray(a.transpose(0, 2, 1)) for a in (self.moves, self.root))
        for _ in range(T):
            x = x @ moves + rng.standard_normal(x.shape) @ root
            yield (self.mean[:, None] + x).reshape(-1, p)


def plausible(found: Chosen, B: int, rng: np.random.Generator) -> Plausible:
    """Distributions drawn from the posterior distribution of the learned one: ridge regression of n pairs of frames.

    noise ~ inverse Wishart with n / (1 − s) degrees of freedom, s the share by which correlations are shrunk;
    moves | noise ~ matrix normal about the learned ones with row covariance noise and column covariance
    (n (C + λ))⁻¹, C the correlations of frames and λ the ridge; the error of the constant term has covariance
    noise / n, about the trend of errors if that continues. That no motion at all predicts left-out parts best
    (λ = ∞) does not prove that there is none: the largest finite ridge is the prior then. The learned noise was
    widened to the errors of distributions that lack one part in `PARTS`; the draws have errors of their own, so that
    the share of the former is taken out.
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
    moves = _steady(distribution.moves, root @ rng.normal(size=(B, p, p)) @ columns.T, n)
    constant = root @ rng.normal(size=(B, p, 1)) / np.sqrt(n) + (distribution.root @ found.trend)[:, None]
    return Plausible(distribution.mean + np.linalg.solve(np.eye(p) - moves, constant)[..., 0], moves, root)


def _steady(moves: Array, errors: Array, n: float) -> Array:
    """moves + errors (B, p, p), errors smaller where frames would wander more slowly than n of them allow.

    The slowest motion ρ of n frames is known up to a standard error √((1 − ρ²) / n): `ONE_SIDED` of them more, at most.
    Errors spread eigenvalues, in the estimate and again in draws about it, so that many draws would be too slow.
    """
    slowest = float(np.abs(np.linalg.eigvals(moves)).max())
    most = max(slowest, min(slowest + ONE_SIDED * np.sqrt(max(1.0 - slowest**2, 0.0) / n), SLOWEST))
    out, left = moves + errors, np.arange(len(errors))
    for step in range(1, STEPS + 1):
        left = left[np.abs(np.linalg.eigvals(out[left])).max(axis=1) > most]
        if not len(left):
            break
        out[left] = moves + (SMALLER**step if step < STEPS else 0.0) * errors[left]
    return np.asarray(out)


def _inverse_wishart_roots(n: float, p: int, B: int, rng: np.random.Generator) -> Array:
    """V (B, p, p) with V Vᵀ inverse Wishart of n degrees of freedom and scale n I, by Bartlett's decomposition."""
    lower = np.tril(rng.normal(size=(B, p, p)), -1)
    at = np.arange(p)
    lower[:, at, at] = np.sqrt(rng.chisquare(n - at, size=(B, p)))
    return np.asarray(np.sqrt(n) * np.linalg.inv(lower).transpose(0, 2, 1))


def filled(x: Array, rounds: int = 5) -> Array:
    """Gaps (NaN) in rows (T, p) filled by conditional expectations under a Gaussian of the rows, in a few rounds."""
    gaps = np.isnan(x)
    if not gaps.any():
        return x
    out = np.where(gaps, np.nanmean(x, axis=0), x)
    for _ in range(rounds):
        mean = out.mean(axis=0)
        cov = _less_tied(np.cov(out.T, bias=True).reshape(x.shape[1], -1), 0.1, np.nanvar(x, axis=0))
        for t in np.flatnonzero(gaps.any(axis=1)):
            out[t] = _expected(x[t], mean, cov)
    return out


def _expected(row: Array, mean: Array, cov: Array) -> Array:
    there: Index = np.flatnonzero(~np.isnan(row))
    if not len(there):
        return mean
    solved = np.linalg.solve(cov[np.ix_(there, there)], row[there] - mean[there])
    return np.where(np.isnan(row), mean + cov[:, there] @ solved, row)
