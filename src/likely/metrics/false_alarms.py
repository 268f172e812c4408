"""False-alarm rates from held-out frames: thresholds, the rate that frames support, autocorrelation time, tempering."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from likely.core.arrays import Array, Mask

WINDOW = 10  # frames per window: neighboring frames are correlated
ERRORS = 2.0  # standard errors added to a mean over windows
TAIL = 0.1  # share of frames from which the tail is extrapolated
FEW = 10  # number of runs beyond a threshold below which the fitted tail is used
NAT = 1.0  # mean excess of log-odds under the model
PRIOR_RUNS = 10.0  # runs that the prior of the mean excess counts as
CONFIDENCE = 0.95  # confidence level of upper limits
MOST = 0.5  # larger supported rates are not meaningful
NEAR = 1e-12  # rounding of sums of weights
ONE_SIDED = 1.645  # standard errors of an upper limit at a confidence of 95 %


class Tail(NamedTuple):
    """Exponential tail: the share above a border, and the mean excess over it."""

    border: float
    share: float
    excess: float  # on average

    def threshold(self, rate: float) -> float:
        """The threshold with exceedance probability `rate`, c = border + excess · log(share / rate)."""
        further = float(np.log(self.share / rate)) if self.share > 0 else 0.0
        return self.border + self.excess * max(further, 0.0)

    def beyond(self, threshold: float) -> float:
        """The share above a threshold that lies above the border."""
        return self.share * float(np.exp(-(threshold - self.border) / max(self.excess, 1e-300)))


def tail(series: Sequence[Array], w: Array, share: float = TAIL) -> Tail:
    """The exponential tail of segments of values, with weights.

    >>> found = tail([np.random.default_rng(0).exponential(size=5000)], np.ones(1))
    >>> round(found.excess, 1), round(found.threshold(0.01), 1)
    (1.1, 4.8)
    """
    border = quantile(series, w, share)
    values, own = _concatenated(series, w)
    above = own * (values > border)
    total = float(above.sum())
    return Tail(border, total / float(own.sum()), float(above @ (values - border)) / total if total else 0.0)


def predictive_threshold(odds: Sequence[Array], w: Array, rate: float) -> float:
    """Log-odds threshold that a share `rate` of new normal frames exceeds on average, from held-out segments.

    Under the true distribution of normal frames a likelihood ratio exceeds x with probability 1/x at most (Markov,
    Ville), so that log-odds have a tail of one nat of mean excess or less. Alarms come in runs: 3,000 frames with 1 %
    of alarms hold five to ten runs, and a sample may lack the long ones. Hence the excesses of the k runs over the
    border are exponential with an unknown mean, whose conjugate prior counts as `PRIOR_RUNS` runs of one nat; the
    predictive distribution is Lomax: P(excess > c) = (1 + c/S)^−(k + k₀), S the sum of all excesses. The threshold is
    never below the quantile of the held-out frames themselves.
    """
    found = tail(odds, w, max(TAIL, rate))
    runs_above = _run_count(odds, w, found.border)
    total, shape = runs_above * found.excess + PRIOR_RUNS * NAT, runs_above + PRIOR_RUNS
    further = total * ((max(found.share, rate) / rate) ** (1.0 / shape) - 1.0)
    return max(found.border + further, quantile(odds, w, rate))


def exceeding(series: Sequence[Array], w: Array, threshold: float) -> float:
    """The share of values above a threshold; with few runs above it, from the fitted tail."""
    found = tail(series, w)
    above = [x > threshold for x in series]
    if threshold > found.border and _run_count(series, w, threshold) < FEW:
        return found.beyond(threshold)
    return float(sum(v * flags.sum() for v, flags in zip(w, above, strict=True)) / (w @ [len(x) for x in series]))


def supported_rate(odds: Sequence[Array], w: Array, threshold: float) -> float:
    """Upper confidence limit (95 %) of the share of normal frames above a threshold, from held-out segments.

    Runs of frames above it are Poisson events. With only few of them, the limit is that of the tail: the mean excess
    of k runs over a border below the threshold is known up to a gamma distribution of shape k
    (peaks over threshold, Davison and Smith 1990).

    >>> odds, one = [np.random.default_rng(0).exponential(size=3000)], np.ones(1)
    >>> [round(supported_rate(odds, one, np.log(every)), 4) for every in (20, 1000)]
    [0.0634, 0.0022]
    """
    found, seen = tail(odds, w), _run_count(odds, w, threshold)
    if seen >= FEW or threshold <= found.border or not found.share:
        frames = float(w @ [len(x) for x in odds])
        length = max(
            exceeding(odds, w, threshold) / max(seen, 1.0), 1.0 / frames
        )  # mean length of a run, as a share of all frames
        return upper_limit(seen, 1.0 / length)
    of_tail = max(_run_count(odds, w, found.border), NEAR)
    least = max(float(gammaincinv(of_tail, 1.0 - CONFIDENCE)) / of_tail, NEAR)
    return found._replace(excess=found.excess / least).beyond(threshold)


def upper_limit(events: float, independent: float) -> float:
    """Upper confidence limit (95 %) of a rate, from the number of events among independent frames (Poisson).

    >>> [round(upper_limit(events, 300.0), 3) for events in (0.0, 3.0, 30.0)]
    [0.01, 0.026, 0.136]
    """
    return min(float(gammaincinv(events + 1.0, CONFIDENCE)) / max(independent, 1.0), 1.0)


def rule_of_three(independent: float) -> float:
    """Upper confidence limit (95 %) of a rate if no event occurred among so many independent frames.

    >>> round(rule_of_three(300.0), 3)
    0.01
    """
    return upper_limit(0.0, independent)


def correlation_time(series: Sequence[Array], w: Array) -> float:
    """An upper limit of the integrated autocorrelation time τ = 1 + 2 Σ ρ_k of segments of values.

    Pairs of autocorrelations are summed while they are positive (Geyer 1992). The logarithm of what exceeds 1 is taken
    as normal with standard error √(2(2m + 1) / n) for m lags (Madras and Sokal 1988).

    >>> white = np.random.default_rng(0).normal(size=4000)
    >>> slow = np.convolve(white, np.ones(10))  # τ = 10
    >>> correlation_time([white], np.ones(1)) < 1.5, 9 < correlation_time([slow], np.ones(1)) < 16
    (True, True)
    """
    values, own = _concatenated(series, w)
    mean = float(own @ values) / float(own.sum())
    apart = [x - mean for x in series]
    variance = _covariance(apart, w, 0)
    found, lag = 1.0, 1
    while variance > 0 and w @ [max(len(x) - lag - 1, 0) for x in series] >= own.sum() / 2:
        pair = (_covariance(apart, w, lag) + _covariance(apart, w, lag + 1)) / variance
        if pair <= 0:
            break
        found, lag = found + 2 * pair, lag + 2
    return 1.0 + (found - 1.0) * float(np.exp(ONE_SIDED * np.sqrt(2 * (2 * lag - 1) / own.sum())))


def _covariance(apart: Sequence[Array], w: Array, lag: int) -> float:
    """Autocovariance at `lag` within segments."""
    pairs = float(w @ [max(len(x) - lag, 0) for x in apart])
    return float(w @ [x[: len(x) - lag] @ x[lag:] if len(x) > lag else 0.0 for x in apart]) / pairs


def _run_count(series: Sequence[Array], w: Array, threshold: float) -> float:
    return float(sum(v * runs(x > threshold) for x, v in zip(series, w, strict=True)))


def quantile(series: Sequence[Array], w: Array, rate: float) -> float:
    """The smallest value that at most a share `rate` exceeds.

    >>> quantile([np.arange(10.0)], np.ones(1), 0.2)
    7.0
    """
    values, own = _concatenated(series, w)
    order = np.argsort(values)
    above = 1.0 - np.cumsum(own[order]) / own.sum()
    return float(values[order][np.searchsorted(-above, -rate - NEAR)])


def _concatenated(series: Sequence[Array], w: Array) -> tuple[Array, Array]:
    """All values with their weights."""
    return np.concatenate(series), np.concatenate([np.full(len(x), v) for x, v in zip(series, w, strict=True)])


def runs(which: Mask) -> int:
    """The number of runs of True in a series of flags.

    >>> runs(np.array([True, True, False, True]))
    2
    """
    return int((which & ~np.concatenate([[False], which[:-1]])).sum())


# ----------------------------------------------------------------------- tempering


def allowed_share(ratios: Sequence[Array], w: Array) -> float:
    """The largest exponent s ≤ 1 for which E e^{s z} ≤ 1 over windows of normal frames.

    A likelihood ratio has mean 1 under the denominator; correlated neighbors, tails heavier than Gaussian, and
    dynamics estimated from few frames make it larger.
    """
    cut = [(np.add.reduceat(z, np.arange(0, len(z), WINDOW)), v) for z, v in zip(ratios, w, strict=True) if len(z)]
    if not cut:
        return 0.0
    z, v = np.concatenate([c for c, _ in cut]), np.concatenate([np.full(len(c), v) for c, v in cut])
    if _mean_ratio(z, v, 1.0) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_ratio(z, v, middle) <= 0 else (low, middle)
    return low


def _mean_ratio(z: Array, w: Array, share: float) -> float:
    """Log of the mean of e^{s z}, plus its standard errors, as windows are few."""
    a = share * z
    top = float(a.max())
    r, v = np.exp(a - top), w / w.sum()
    mean = float(v @ r)
    spread = float(np.sqrt(v @ (r - mean) ** 2 / w.sum()))
    return top + float(np.log(mean + ERRORS * spread))


def allowed_shares(parts: Sequence[Sequence[Array]], w: Array, without: int | None = None) -> Array:
    """Exponents (J,), one per column of the ratios (T, J) in parts[segment][part]; one part may be left out of all."""
    some = [(z, v) for segment, v in zip(parts, w, strict=True) for k, z in enumerate(segment) if k != without]
    own = np.array([v for _, v in some])
    return np.array([allowed_share([z[:, j] for z, _ in some], own) for j in range(some[0][0].shape[1])])


def tempered(parts: Sequence[Sequence[Array]], w: Array) -> list[list[Array]]:
    """Tempered evidence of each part, with the exponents from the other parts (cross-fitting)."""
    shares = [allowed_shares(parts, w, k) for k in range(len(parts[0]))]
    return [[s * z for s, z in zip(shares, segment, strict=True)] for segment in parts]


def edges(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Start and end of parts of these lengths.

    >>> edges([2, 3])
    [(0, 2), (2, 5)]
    """
    return list(pairwise(accumulate(lengths, initial=0)))
