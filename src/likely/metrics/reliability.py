"""Calibration of forecast probabilities: reliability diagram, decomposition of proper scores, tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, rel_entr, xlogy

from likely.core.arrays import Array, Index, check_option
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.confidence_intervals import as_counts, proportion_interval, shown_p

FEW = 20  # minimum number of rows for a calibration test


EqualBins = Literal["width", "count"]  # what all bins have in common


class Decomposition(NamedTuple):
    """Decomposition of a proper score: score = reliability − resolution + uncertainty + within (Murphy 1973).

    Parameters
    ----------
    score : float
        The mean score.
    reliability : float
        Loss due to miscalibration.
    resolution : float
        Gain over the base rate.
    uncertainty : float
        Score of the base rate.
    within : float
        Variation inside bins.
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


class Statistic(NamedTuple):
    """A test statistic and its p-value.

    Parameters
    ----------
    value : float
        The statistic.
    p_value : float
        Its p-value.
    """

    value: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Reliability(Value):
    """Reliability diagram: forecasts in bins against observed frequencies, with exact 95 % intervals; no empty bins.

    Parameters
    ----------
    confidence : ndarray (b,)
        Mean forecast per bin.
    frequency : ndarray (b,)
        Observed frequency per bin.
    low, high : ndarray (b,)
        Ends of the intervals of the frequencies.
    weight : ndarray (b,)
        Weight of the rows per bin.
    brier : Decomposition
        Decomposition of the mean of (p − [event])².
    log_loss : Decomposition
        Decomposition of the mean of −log of the forecast probability of the outcome, in nats.
    spiegelhalter : Statistic
        Test of calibration, a normal deviate.
    chi2 : Statistic
        Sum of (observed − expected)² / variance over bins; as many degrees of freedom as bins.

    Examples
    --------
    >>> r = reliability([0.8, 0.8, 0.8, 0.8, 0.1], [True, True, True, False, False])
    >>> r.confidence, r.frequency, round(r.ece, 4)
    (array([0.1, 0.8]), array([0.  , 0.75]), 0.06)
    """

    confidence: Array  # (b,) mean forecast
    frequency: Array  # (b,) observed frequency
    low: Array  # (b,)
    high: Array  # (b,)
    weight: Array  # (b,) of the rows
    brier: Decomposition  # of (p − [event])²
    log_loss: Decomposition  # of −log of the forecast probability of the outcome, in nats
    spiegelhalter: Statistic  # a normal deviate
    chi2: Statistic  # Σ (observed − expected)² / variance over bins, as many degrees of freedom as bins

    @property
    def ece(self) -> float:
        """Expected calibration error: weighted mean of |frequency − confidence|."""
        return float(self.weight @ np.abs(self.frequency - self.confidence) / self.weight.sum())

    @property
    def maximum(self) -> float:
        """Maximum calibration error: the largest |frequency − confidence| of a bin."""
        return float(np.abs(self.frequency - self.confidence).max())

    @property
    def bias(self) -> float:
        """Mean forecast − observed frequency: positive for overconfident forecasts."""
        return float(self.weight @ (self.confidence - self.frequency) / self.weight.sum())

    @property
    def verdict(self) -> str:
        """The result of the tests as a sentence."""
        if self.weight.sum() < FEW:
            return "There are too few cases to judge the probabilities."
        p = min(self.spiegelhalter.p_value, self.chi2.p_value)
        if p >= 0.025:  # two tests at 5 % together
            return f"The data do not contradict the probabilities ({shown_p(p)})."
        z, p_of_z = self.spiegelhalter  # positive: the Brier score is worse than expected under the forecasts
        how = "off" if p_of_z >= 0.05 else "overconfident" if z > 0 else "underconfident"
        off = f"on average by {abs(self.bias):.3f}, in bins by {self.ece:.3f}"
        return f"The probabilities are {how} ({shown_p(p)}): {off}."


def reliability(
    probability: ArrayLike, happened: ArrayLike, weight: ArrayLike | None = None, bins: int = 10,
    equal: EqualBins = "width", level: float = 0.95,
) -> Reliability:  # fmt: skip
    """Reliability diagram of forecasts (n,) of an event (n,), in bins of equal "width" or equal "count"."""
    p, y, w = _checked(probability, happened, weight)
    which = _bins(p, w, bins, equal)
    total: Array = np.bincount(which, w).astype(np.float64)
    confidence, hits = np.bincount(which, w * p) / total, np.bincount(which, w * y)
    rate = proportion_interval(np.minimum(hits, total), total, level)
    return Reliability.trusted(
        confidence=confidence, frequency=rate.value, low=rate.low, high=rate.high, weight=total,
        brier=_brier_parts(p, y, w, confidence, rate.value, total),
        log_loss=_log_loss_parts(p, y, w, confidence, rate.value, total),
        spiegelhalter=_spiegelhalter(p, y, w),
        chi2=_chi2(hits - total * confidence, np.bincount(which, w * p * (1 - p)).astype(np.float64)),
    )  # fmt: skip


def _checked(probability: Any, happened: Any, weight: Any) -> tuple[Array, Array, Array]:
    """Forecasts, outcomes as 0 and 1, and weights as counts, of rows with positive weight."""
    p, y = np.asarray(probability, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        expected = "forecasts and outcomes must be of one length (n,), n > 0"
        raise ShapeError(sentence("reliability", expected, f"{p.shape} and {y.shape}"))
    w = as_counts(weight, len(p), "reliability")
    p, y, w = p[w > 0], y[w > 0], w[w > 0]
    if not ((p >= 0) & (p <= 1 + 1e-6)).all() or not np.isin(y, (0, 1)).all():
        raise DataError(sentence("reliability", "forecasts must lie in 0 … 1, outcomes be True or False"))
    return np.minimum(p, 1.0), y, w


def _bins(p: Array, w: Array, bins: int, equal: str) -> Index:
    """The bin of each row, numbered consecutively; equal forecasts share a bin."""
    check_option(equal, EqualBins, "reliability", "equal")
    if bins < 1:
        raise DomainError(sentence("reliability", "bins must be at least 1", bins))
    share = p
    if equal == "count":
        _, which = np.unique(p, return_inverse=True)
        group = np.bincount(which, w)
        share = ((np.cumsum(group) - group / 2) / group.sum())[which]  # mid-ranks of ties
    return np.unique(np.minimum((share * bins).astype(np.intp), bins - 1), return_inverse=True)[1]


def _brier_parts(p: Array, y: Array, w: Array, confidence: Array, frequency: Array, total: Array) -> Decomposition:
    n, base = total.sum(), float(w @ y / w.sum())
    score = float(w @ (p - y) ** 2 / n)
    apart, beyond = float(total @ (confidence - frequency) ** 2 / n), float(total @ (frequency - base) ** 2 / n)
    return _decomposition(score, apart, beyond, base * (1 - base))


def _log_loss_parts(p: Array, y: Array, w: Array, confidence: Array, frequency: Array, total: Array) -> Decomposition:
    n, base = total.sum(), float(w @ y / w.sum())
    score = -float(w @ (xlogy(y, p) + xlogy(1 - y, 1 - p)) / n)
    apart, beyond = float(total @ _kl(frequency, confidence) / n), float(total @ _kl(frequency, base) / n)
    return _decomposition(score, apart, beyond, -float(xlogy(base, base) + xlogy(1 - base, 1 - base)))


def _kl(a: Any, b: Any) -> Array:
    """Divergence of two binary distributions."""
    return rel_entr(a, b) + rel_entr(1 - np.asarray(a), 1 - np.asarray(b))


def _decomposition(score: float, apart: float, beyond: float, base: float) -> Decomposition:
    within = 0.0 if np.isinf(apart) else score - (apart - beyond + base)
    return Decomposition(score, apart, beyond, base, within)


def _spiegelhalter(p: Array, y: Array, w: Array) -> Statistic:
    """Spiegelhalter's test of calibration: z = Σ w (y − p)(1 − 2p) / √(Σ w (1 − 2p)² p (1 − p))."""
    slope = 1 - 2 * p
    excess, variance = float(w @ ((y - p) * slope)), float(w @ (slope**2 * p * (1 - p)))
    if variance > 0:
        z = excess / np.sqrt(variance)
    else:  # every forecast was 0, ½ or 1
        z = 0.0 if abs(excess) < 1e-12 else np.copysign(np.inf, excess)
    return Statistic(float(z), float(2 * ndtr(-abs(z))))


def _chi2(excess: Array, variance: Array) -> Statistic:
    """Hosmer–Lemeshow test; the degrees of freedom are the number of bins, as the forecasts are out of sample."""
    sure = variance <= 0
    if (np.abs(excess[sure]) > 1e-9).any():
        return Statistic(np.inf, 0.0)
    statistic = float((excess[~sure] ** 2 / variance[~sure]).sum())
    degrees = int((~sure).sum())
    return Statistic(statistic, float(chdtrc(degrees, statistic)) if degrees else 1.0)
