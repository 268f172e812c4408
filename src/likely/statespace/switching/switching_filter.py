"""Filter and smoother of switching models over sequences: GPB2/IMM forward pass, expectation correction backward."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.warnings import warn
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import Series, read_only, series_of, split_sequences


class RegimeMatrices(NamedTuple):
    """Matrices of all regimes stacked, as the compiled loops take them."""

    P: Array  # (K, K): transition matrix of the regimes
    A: Array  # (K, d, d)
    N: Array  # (K, d, d): roots of the process covariances
    C: Array  # (K, p, d)
    R: Array  # (K, p, p): roots of the observation covariances
    log_initial: Array  # (K,)
    m: Array  # (K, d): initial means
    U: Array  # (K, d, d)


class Switched(NamedTuple):
    """Sequences per regime: y minus the effect of inputs, and the state intercepts."""

    each: list[Series]  # one per regime
    offsets: Index
    y: Array  # (F, p), or (K F, p)
    stride: int
    intercept: Array  # (1, d), or (K F, d)
    step: int
    mask: Array  # (1, K), or (F, K): log-mask of known regimes

    @classmethod
    def of(cls, each: list[Series], mask: Array) -> Switched:
        """Combine the series of the regimes."""
        F, driven = len(each[0].y), each[0].inputs is not None
        same = all(s.y is each[0].y or not driven for s in each)
        y = each[0].y if same else np.concatenate([s.y for s in each])
        intercept = np.concatenate([s.intercept for s in each]) if driven else np.array(each[0].intercept)
        y, intercept, mask = (read_only(np.ascontiguousarray(a)) for a in (y, intercept, mask))
        return cls(each, read_only(each[0].offsets), y, 0 if same else F, intercept, int(driven), mask)

    def cut(self, a: int, b: int) -> Switched:
        """Sequences a … b − 1."""
        first, last = int(self.offsets[a]), int(self.offsets[b])
        mask = self.mask if len(self.mask) == 1 else self.mask[first:last]
        return Switched.of([s.cut(a, b) for s in self.each], np.ascontiguousarray(mask))


class Filtered(NamedTuple):
    """Output of a filter pass: log-weight, mean and root per frame and regime."""

    log_weights: Array  # (F, K)
    means: Array  # (F, K, d)
    roots: Array  # (F, K, d, d)
    increments: Array  # (F,)
    total: Array  # (n,)


class RegimeMoments(NamedTuple):
    """Smoothed moments per frame and regime, and per transition (f, j, k) those of the previous state."""

    share: Array  # (F, K)
    means: Array  # (F, K, d)
    roots: Array  # (F, K, d, d)
    joint: Array  # (F, K, K): p(z_{f−1} = j, z_f = k)
    left: Array  # (F, K, K, d): x_{f−1} in that case
    left_cov: Array  # (F, K, K, d, d)
    lag: Array  # (F, K, K, d, d): Cov(x_f, x_{f−1})


class SwitchingStates(NamedTuple):
    """Regime probabilities (T, K), mean (T, d) and covariance (T, d, d) of the state, and the log-likelihood.

    Of many sequences all but log_prob (n,) are Ragged. All of it is approximate, see `SwitchingLinearGaussian`.
    """

    regimes: Any
    mean: Any
    covariance: Any
    log_prob: Any


def switched(model: Any, y: Any, inputs: Any = None, mask: Array | None = None) -> Switched:
    """Sequences checked against the model."""
    if model.incomparable:
        warn(model.incomparable)
    each = [series_of(m, y, inputs) for m in model.regimes]
    return Switched.of(each, np.zeros((1, model.n_regimes)) if mask is None else np.ascontiguousarray(mask))


def forward(stack: RegimeMatrices, s: Switched, both: bool) -> Filtered:
    """Forward pass: IMM, or with `both` all pairs of regimes (generalized pseudo-Bayes, GPB2)."""
    from likely.statespace.linear import _loops as kalman

    F, (K, d) = len(s.each[0].y), stack.m.shape
    kept = Filtered(np.full((F, K), -np.inf), np.zeros((F, K, d)), np.zeros((F, K, d, d)), np.empty(F),
                    np.empty(len(s.offsets) - 1))  # fmt: skip
    kalman.switch_pass.dispatcher(  # never in plain Python, whose exp has other last bits: see `backward`
        stack.P, stack.A, stack.N, stack.C, stack.R, s.intercept, s.step, F * s.step, s.y, s.stride, s.mask, s.offsets,
        stack.log_initial, stack.m, stack.U, both, *kept,
    )  # fmt: skip
    return kept


def backward(stack: RegimeMatrices, s: Switched, kept: Filtered) -> RegimeMoments:
    """Backward pass by expectation correction (Barber 2006): z_t is weighted by its predictive density of x_{t+1}.

    Where a state has no noise, last bits decide about the rank of a predictive covariance, and so about the weights.
    """
    from likely.statespace.linear import _loops as kalman

    F, K, d = kept.means.shape
    out = RegimeMoments(np.zeros((F, K)), np.zeros((F, K, d)), np.zeros((F, K, d, d)), np.zeros((F, K, K)),
                   np.zeros((F * K * K, d)), np.zeros((F * K * K, d, d)), np.zeros((F * K * K, d, d)))  # fmt: skip
    kalman.switch_back.dispatcher(
        stack.P,
        stack.A,
        stack.N,
        s.intercept,
        s.step,
        F * s.step,
        s.offsets,
        kept.log_weights,
        kept.means,
        kept.roots,
        *out,
    )
    pairs = (F, K, K, d)
    left_cov, lag = out.left_cov.reshape(*pairs, d), out.lag.reshape(*pairs, d)
    return out._replace(left=out.left.reshape(pairs), left_cov=left_cov, lag=lag)


def moments(share: Array, means: Array, roots: Array) -> tuple[Array, Array]:
    """Mean (F, d) and covariance (F, d, d) of the state, averaged over regimes."""
    mean = np.einsum("fk,fkd->fd", share, means)
    off = means - mean[:, None]
    inside = np.sqrt(share)[:, :, None, None] * roots
    cov = np.einsum("fkai,fkaj->fij", inside, inside) + np.einsum("fk,fki,fkj->fij", share, off, off)
    return mean, spd.symmetric(cov)


def states(model: Any, y: Any, inputs: Any, both: bool, smooths: bool) -> SwitchingStates:
    """Filtered or smoothed regimes and states of all sequences."""
    series = switched(model, y, inputs)

    def part(edges: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
        some = series.cut(*edges)
        kept = forward(model.stack, some, both)
        found = backward(model.stack, some, kept) if smooths else None
        share, means, roots = found[:3] if found else (np.exp(kept.log_weights), kept.means, kept.roots)
        return share, *moments(share, means, roots), kept.total

    found = map_parts(part, series, model)
    share, mean, cov, total = (np.concatenate(column) for column in zip(*found, strict=True))
    if is_single_sequence(y):
        return SwitchingStates(share, mean, cov, float(total[0]))
    a, b, c = (Ragged(part, series.offsets) for part in (share, mean, cov))
    return SwitchingStates(a, b, c, total)


def map_parts(f: Any, series: Switched, model: Any) -> list[Any]:
    """f of ranges [a, b) of sequences, in parts whose pairs of regimes fit into memory, in threads."""
    frames = max(2**24 // (model.n_regimes * (model.states + 1)) ** 2, 256)
    parts = split_sequences(series.offsets, frames) or [(0, 0)]
    with one_blas_thread():
        return list(ordered_map(f, parts, cores()))
