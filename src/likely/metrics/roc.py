"""ROC and DET curves, area under the curve, equal error rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from likely.core.arrays import Array, Index, Mask, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value

LARGEST = float(np.finfo(np.float64).max)


class EqualError(NamedTuple):
    """Equal error rate.

    Parameters
    ----------
    rate : float
        The error rate where false alarms and misses are equal.
    threshold : float
        The threshold nearest to it.
    """

    rate: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Roc(Value):
    """ROC curve: all pairs of error rates of thresholds on one score; a row is accepted where score ≥ threshold.

    One point per distinct score, from "accept nothing" (threshold +∞) to "accept everything".

    Parameters
    ----------
    false_alarm : ndarray (m,)
        False-alarm rates, increasing from 0 to 1.
    detection : ndarray (m,)
        Detection rates, increasing from 0 to 1.
    threshold : ndarray (m,)
        Thresholds, decreasing from +∞.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Herbst and du Preez, lecture notes, 1.2.2.

    Examples
    --------
    >>> curve = roc([0.9, 0.8, 0.8, 0.1], [True, True, False, False])
    >>> curve.false_alarm, curve.detection, curve.auc
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]), 0.875)
    """

    false_alarm: Array  # (m,) increasing from 0 to 1
    detection: Array  # (m,) increasing from 0 to 1
    threshold: Array  # (m,) decreasing from +∞

    @property
    def miss(self) -> Array:
        """Miss rate 1 − detection (m,)."""
        return 1.0 - self.detection

    @property
    def auc(self) -> float:
        """Area under the curve: P(a positive scores above a negative), ties count half (Mann and Whitney)."""
        return float(np.trapezoid(self.detection, self.false_alarm))

    def partial_auc(self, up_to: float) -> float:
        """Area under the curve up to a false-alarm rate."""
        if not 0 <= up_to <= 1:
            raise DomainError(sentence("Roc.partial_auc", "up_to must lie in 0 … 1", up_to))
        inside = self.false_alarm <= up_to
        x = np.append(self.false_alarm[inside], up_to)
        return float(np.trapezoid(np.append(self.detection[inside], self.detection_at(up_to)), x))

    def detection_at(self, false_alarm: float) -> float:
        """Detection rate at a false-alarm rate, interpolated between two thresholds (a randomized decision)."""
        after = int(np.searchsorted(self.false_alarm, false_alarm, side="right"))
        if after == len(self.false_alarm):
            return 1.0
        x, y = self.false_alarm[after - 1 : after + 1], self.detection[after - 1 : after + 1]
        return float(y[0] + (y[1] - y[0]) * (false_alarm - x[0]) / (x[1] - x[0]))

    def threshold_at(self, false_alarm: float) -> float:
        """The lowest threshold whose false-alarm rate is within the given one; +∞ accepts nothing."""
        within = np.flatnonzero(self.false_alarm <= false_alarm)
        if not len(within):
            raise DomainError(sentence("Roc.threshold_at", "false_alarm must not be negative", false_alarm))
        return float(self.threshold[within[-1]])

    def equal_error(self, hull: bool = False) -> EqualError:
        """The equal error rate: where the piecewise linear curve crosses false alarm = miss.

        `hull` uses the convex hull instead, which randomized decisions between two thresholds can reach.

        >>> roc([3.0, 2.0, 1.0, 0.0], [True, False, True, False]).equal_error().rate
        0.5
        """
        curve = self.hull() if hull else self
        gap = curve.false_alarm - curve.miss  # increases from −1 to 1
        after = int(np.argmax(gap >= 0))
        a, b = gap[after - 1], gap[after]
        share = a / (a - b)
        rate = curve.false_alarm[after - 1] + share * (curve.false_alarm[after] - curve.false_alarm[after - 1])
        return EqualError(float(rate), float(curve.threshold[after if -a >= b else after - 1]))

    def hull(self) -> Roc:
        """The convex hull of the curve (smallest concave curve above it)."""
        corners = _hull(self.false_alarm, self.detection)
        return self.take(corners)

    def det(self) -> Det:
        """The DET curve: misses against false alarms in normal deviates; Gaussian scores give a line."""
        deviates = ndtri(self.false_alarm), ndtri(self.miss)
        return Det.trusted(
            false_alarm=self.false_alarm, miss=self.miss, threshold=self.threshold,
            false_alarm_deviate=deviates[0], miss_deviate=deviates[1],
        )  # fmt: skip

    def take(self, at: Index) -> Roc:
        """A subset of the points."""
        return Roc.trusted(**{name: part[at] for name, part in self.field_values().items()})

    def thinned(self, points: int = 200) -> Roc:
        """At most the given number of points, evenly spaced along the curve, including both ends, for plotting."""
        return self.take(thin(self.false_alarm, self.detection, points))


@dataclass(frozen=True, eq=False)
class Det(Value):
    """DET curve: misses against false alarms, as rates and as normal deviates Φ⁻¹(rate); ±∞ at the ends.

    Parameters
    ----------
    false_alarm, miss : ndarray (m,)
        Error rates.
    threshold : ndarray (m,)
        Thresholds.
    false_alarm_deviate, miss_deviate : ndarray (m,)
        Error rates as normal deviates.
    """

    false_alarm: Array  # (m,)
    miss: Array  # (m,)
    threshold: Array  # (m,)
    false_alarm_deviate: Array  # (m,)
    miss_deviate: Array  # (m,)

    def thinned(self, points: int = 200) -> Det:
        """At most the given number of points, evenly spaced along the plotted curve, in deviates up to ±4."""
        at = thin(np.clip(self.false_alarm_deviate, -4, 4), np.clip(self.miss_deviate, -4, 4), points)
        return Det.trusted(**{name: part[at] for name, part in self.field_values().items()})


def roc(score: Any, positive: Any, weight: Any = None) -> Roc:
    """The ROC curve of a score (n,) that should be high where `positive` (n,) is true; infinite scores are allowed."""
    s, yes, w = scored(score, positive, weight, "roc")
    order = np.argsort(-s, kind="stable")
    s, yes, w = s[order], yes[order], w[order]
    last = np.append(s[1:] != s[:-1], True)  # the last of each group of ties
    hits, alarms = np.cumsum(w * yes)[last], np.cumsum(w * ~yes)[last]
    return Roc.trusted(
        false_alarm=np.append(0.0, alarms / alarms[-1]),
        detection=np.append(0.0, hits / hits[-1]),
        threshold=np.append(np.inf, np.where(s[last] == -LARGEST, -np.inf, s[last])),  # accepts −∞, too
    )


def scored(score: Any, positive: Any, weight: Any, whose: str) -> tuple[Array, Mask, Array]:
    """Scores (n,), positives and weights; rows of weight 0 are dropped, positives and negatives must exist."""
    s = np.asarray(score, dtype=np.float64)
    yes = np.asarray(positive)
    if s.ndim != 1 or yes.shape != s.shape:
        raise ShapeError(sentence(whose, "scores and truth must be of one length (n,)", f"{s.shape} and {yes.shape}"))
    if np.isnan(s).any():
        raise DataError(sentence(whose, "scores must be numbers", f"NaN at row {np.flatnonzero(np.isnan(s))[0]}"))
    if not np.isin(yes, (0, 1)).all():
        expected, remedy = "truth must be True or False for each row", "compare labels first: y == 1"
        raise DataError(sentence(whose, expected, yes.dtype, remedy))
    yes = yes.astype(bool)
    w = weights(weight, len(s), whose)
    w = np.ones(len(s)) if w is None else w
    if not (w[yes].any() and w[~yes].any()):
        raise DataError(
            sentence(whose, "positive and negative rows are needed", f"{yes.sum()} positive of {len(yes)} rows")
        )
    here = w > 0
    # the threshold that accepts nothing is above infinite scores
    return np.clip(s[here], -LARGEST, LARGEST), yes[here], w[here]


def thin(x: Array, y: Array, points: int) -> Index:
    """Indices of at most `points` points, evenly along the length of a curve, including both ends."""
    if len(x) <= points:
        return np.arange(len(x))
    length = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    at = np.searchsorted(length, np.linspace(0.0, length[-1], points - 1))
    return np.unique(np.concatenate([[0], at, [len(x) - 1]])).astype(np.intp)[:points]


def _hull(x: Array, y: Array) -> Index:
    """Corners of the upper hull of points that increase in both coordinates (Andrew's monotone chain)."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _is_below(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return np.array(kept, dtype=np.intp)


def _is_below(x: Array, y: Array, a: int, b: int, c: int) -> bool:
    """Whether b lies on or below the line from a to c."""
    return bool((x[b] - x[a]) * (y[c] - y[a]) >= (x[c] - x[a]) * (y[b] - y[a]))
