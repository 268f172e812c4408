"""Fault detection in multivariate sensor streams: a model of normal operation and an alarm threshold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, SequencesLike, refuse_infinite, rows, weights
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.time_index import warn_of_uneven
from likely.core.warnings import warn
from likely.estimation.recognizer import Recognizer
from likely.estimation.sequence_validation import cut
from likely.metrics.false_alarms import (
    CONFIDENCE,
    MOST,
    allowed_shares,
    edges,
    exceeding,
    predictive_threshold,
    quantile,
    rule_of_three,
    supported_rate,
    tempered,
)
from likely.recognizers.faults.fault_watch import FaultBelief, FaultWatch, Watched
from likely.recognizers.faults.sensor_dynamics import Chosen, SensorDynamics, chosen, filled
from likely.recognizers.faults.simulated_alarms import simulated_alarms

ME = "FaultMonitor"
KINDS = (  # memory and size of unknown faults: independent offsets, and persistent ones
    (0.0, 0.5), (0.0, 4.0), (0.0, 50.0), (0.0, 1000.0), (0.8, 0.25), (0.95, 0.06),
)  # fmt: skip
ENTRY = 20  # burn-in frames before a held-out part
SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)  # tempering factors of the kind of fault
LOG_POSTERIOR_FLOOR = -30.0  # floor of log-posteriors in the log-loss
MUCH = 3.0  # times the stated rate: a supported rate above that gives a warning
INDEPENDENT = (
    20  # effective sample size of the slowest mode below which neither its distribution nor the mean is reliable
)
FEWEST = 20  # frames of normal operation
SHORTEST = 10  # frames of the longest segment of a label: two in each held-out part
UNITS = 1e-9  # standard deviation relative to the mean below which a sensor is constant


class FaultMonitor(Recognizer):
    """Fault detection: learns normal operation from rows of sensors over time, then monitors a live stream of them.

    A rate is only as good as the normal frames that it was stated from: alarms come in runs, and slow motions make few
    independent ones. In simulated plants of eight kinds, with 1 % stated, the share of new normal frames in alarm was
    0.6 % on average with 500 frames of training, 0.8 % with 2,000 (`bench/faults.py --supported`); in single plants it
    is anything from 0 to 5 %. Where the frames support no less than three times the stated
    rate, because they are few, slow, or drift, `fit` warns. `normal` frames must show all that is normal: a slow
    drift that is absent in training is an alarm.

    Rows may have missing values (NaN); a sensor that is constant in training raises an alarm when it changes.

    Parameters
    ----------
    hazard : float, default 1e-3
        Probability that a fault begins in a frame.
    repair : float, default 1e-2
        Probability that a fault ends in a frame.
    unknown : float, default 0.5
        Prior probability that a fault is of an unknown kind, where some kinds were learned.
    false_alarm_rate : float, default 0.01
        Rate of alarms in normal frames; the threshold comes from held-out parts of the normal frames
        (`likely.metrics.false_alarms.predictive_threshold`).
    cost_false : float, optional
        Cost per frame of a false alarm: there is an alarm where P(fault) cost_missed > P(normal) cost_false. Both costs
        or none.
    cost_missed : float, optional
        Cost per frame of an undetected fault.
    normal : label, default "normal"
        The label of normal segments, where labels are given.

    Attributes
    ----------
    model_ : FaultWatch
        The fitted model.
    classes_ : ndarray (K,)
        Labels of known faults.
    false_alarm_rate_ : float
        Share of normal frames in alarm that the held-out parts lead to expect, where costs decide, too.
    later_half_rate_ : float
        Share of the later halves of normal segments in which alarms stand when only the earlier halves were learned:
        if it is above three times the stated rate, the later halves set the threshold, too.
    supported_rate_ : float
        Share of alarms that the frames do not exclude (95 % confidence): by the tail of held-out log-odds, and by
        simulated frames whose distributions differ from the learned one by its sampling error. Where the slowest mode
        leaves fewer than 20 independent frames, it is no less than three divided by their number.
    ridge_ : float
        Ridge penalty of the autoregression, chosen by cross-validation, relative to the variance of a frame.
    shrunk_ : float
        Shrinkage of correlations toward 0, chosen by cross-validation.

    See Also
    --------
    follow : Monitors frame by frame.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = FaultMonitor(false_alarm_rate=0.01).fit(rng.normal(size=(400, 3)))
    >>> stream = rng.normal(size=(60, 3)) + np.where(np.arange(60) < 40, 0.0, 3.0)[:, None] * [0.0, 1.0, 0.0]
    >>> seen = monitor.watch(stream)
    >>> int(np.argmax(seen.alarm)), int(seen.contributions[45].argmax())
    (40, 1)
    """

    saved_attributes = (
        "model_", "classes_", "false_alarm_rate_", "supported_rate_", "later_half_rate_",
        "n_features_in_", "feature_names_in_", "ridge_", "shrunk_",
    )  # fmt: skip

    def __init__(
        self, *, hazard: float = 1e-3, repair: float = 1e-2, unknown: float = 0.5, false_alarm_rate: float = 0.01,
        cost_false: float | None = None, cost_missed: float | None = None, normal: Any = "normal",
    ) -> None:  # fmt: skip
        self.hazard = hazard
        self.repair = repair
        self.unknown = unknown
        self.false_alarm_rate = false_alarm_rate
        self.cost_false = cost_false
        self.cost_missed = cost_missed
        self.normal = normal

    # ------------------------------------------------------------------- learning

    def fit(
        self, X: SequencesLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *,
        lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit to segments X of frames: one array (T, P), or several in a list or a Ragged.

        `lengths` split one array into segments.
        `y` labels segments, or the rows of one array; None: all is normal. `sample_weight` is one per segment.

        Parameters
        ----------
        y : array-like, optional
            Label of each segment, or of each row of one array; None: all is normal.
        """
        self._check_settings()
        names = _names(X)
        segments = _segments(cut(X, lengths), y, sample_weight, self.normal)
        normal_segments = [s for s in segments if s.label == self.normal]
        mean, scale, count = _units(normal_segments)
        self.n_features_in_ = len(mean)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        self.classes_ = np.array(sorted({s.label for s in segments if s.label != self.normal}, key=str))
        varying = scale > 0
        units = [s._replace(frames=filled((s.frames[:, varying] - mean[varying]) / scale[varying])) for s in segments]
        distributions = {label: _learned(units, label) for label in [self.normal, *self.classes_.tolist()]}
        self.ridge_, self.shrunk_ = distributions[self.normal].ridge, distributions[self.normal].shrunk
        watch = self._calibrated(
            normal_segments, self._watch(distributions, mean, scale, count), distributions[self.normal]
        )
        self.model_ = _calibrated_kinds(watch, units, distributions, self.classes_.tolist())
        self._tell_what_is_supported(drifts=bool(distributions[self.normal].trend.any()))
        return self

    def _watch(self, distributions: dict[Any, Chosen], mean: Array, scale: Array, count: float) -> FaultWatch:
        """The monitor without tempering."""
        faults = tuple(distributions[label].distribution for label in self.classes_.tolist())
        memory, size = np.array(KINDS).T.copy()
        return FaultWatch(
            mean, scale, distributions[self.normal].distribution, faults, memory, size,
            np.ones(len(KINDS) + len(faults)), 1.0,
            self.hazard, self.repair, self.unknown if faults else 1.0, 0.0, count,
        )  # fmt: skip

    def _calibrated(self, normal_segments: Sequence[Segment], watch: FaultWatch, normal: Chosen) -> FaultWatch:
        """The monitor with tempering and threshold calibrated on held-out parts of the normal frames.

        Folds between training frames show stationary behavior, the later halves drift: where there are far too many
        alarms in these, tempering and threshold are calibrated on the later halves, too.
        """
        w = np.array([s.weight for s in normal_segments])
        parts = [_held_out(watch, s.frames, normal.left_out) for s in normal_segments]
        shares, odds = _tempered_odds(watch, parts, w)
        later, later_threshold = self._later_halves(normal_segments, watch), -np.inf
        self.later_half_rate_ = 0.0 if later is None else later.in_alarm
        if later is not None and later.in_alarm > MUCH * self.false_alarm_rate:
            shares = np.minimum(shares, allowed_shares([[z] for z in later.ratios], w))
            odds = [_odds(watch, shares * np.concatenate(segment)) for segment in parts]
            later_threshold = quantile([_odds(watch, shares * z) for z in later.ratios], w, self.false_alarm_rate)
        threshold = max(predictive_threshold(odds, w, self.false_alarm_rate), later_threshold)
        if self.cost_false is not None and self.cost_missed is not None:
            threshold = float(np.log(self.cost_false / self.cost_missed))
        self.false_alarm_rate_ = exceeding(odds, w, threshold)
        watch = watch.replace(shares=shares, threshold=threshold)
        independent = normal.pairs.pairs * (1.0 - _slowest(watch.normal))
        by_mode = rule_of_three(independent) if independent < INDEPENDENT else 0.0
        held_out = supported_rate(odds, w, threshold)
        self.supported_rate_ = max(held_out, by_mode, simulated_alarms(watch, normal), self.later_half_rate_)
        return watch

    def _later_halves(self, normal_segments: Sequence[Segment], watch: FaultWatch) -> LaterHalves | None:
        """The later half of each segment, monitored by a model of the earlier halves; None if there are too few."""
        early = [s._replace(frames=s.frames[: len(s.frames) // 2]) for s in normal_segments]
        lengths, w = [len(s.frames) for s in early], np.array([s.weight for s in normal_segments])
        if sum(lengths) < FEWEST or max(lengths) < SHORTEST:
            return None
        varying = watch.sensors
        distribution = chosen(
            [filled((s.frames[:, varying] - watch.mean[varying]) / watch.scale[varying]) for s in early], w
        )
        first = watch.replace(normal=distribution.distribution)
        shares, odds = _tempered_odds(first, [_held_out(first, s.frames, distribution.left_out) for s in early], w)
        threshold, ratios = predictive_threshold(odds, w, self.false_alarm_rate), []
        for s, half in zip(normal_segments, lengths, strict=True):
            before = min(half, ENTRY)
            ratios.append(first.ratios_of(s.frames[half - before :])[before:])
        above = sum(v * (_odds(first, shares * z) > threshold).sum() for z, v in zip(ratios, w, strict=True))
        return LaterHalves(ratios, float(above / (w @ [len(z) for z in ratios])))

    def _tell_what_is_supported(self, drifts: bool) -> None:
        """Warn where the false-alarm rate that normal frames support is far above the stated one."""
        if self.cost_false is not None or self.supported_rate_ <= MUCH * self.false_alarm_rate:
            return
        n, stated = f"{self.model_.learned_from:g} normal frames", f"{100 * self.false_alarm_rate:g} %"
        if self.later_half_rate_ > MUCH * self.false_alarm_rate:
            share = f"{_percent(self.later_half_rate_)} of the later half, not in {stated}"
            text = f"learned from the earlier half of {n}, alarms stand in {share}: the level drifts, or slow motions"
            warn(f"{ME}: {text} were not all seen; expect such a share or more, and fit again as time goes on")
            return
        if drifts:
            share = f"up to {_percent(self.supported_rate_)} of frames, not in {stated}"
            text = f"the level of {n} drifts: if this continues, alarms must be expected in {share}"
            warn(f"{ME}: {text}; fit again as time goes on, or remove trends from the sensors first")
            return
        memory = _slowest(self.model_.normal)
        slowest = f"(slowest mode {memory:.2f} per frame)"
        if self.supported_rate_ > MOST:
            new = max(
                1.0 - memory, 1.0 / self.model_.learned_from
            )  # share of a frame that is independent of the one before
            needed = float(f"{-np.log(1.0 - CONFIDENCE) / (new * self.false_alarm_rate):.1g}")
            text = f"{n} support no false-alarm rate at all {slowest}: give more of them, at least {needed:,.0f}"
            warn(f"{ME}: {text} for {stated}; or remove slow trends from the sensors first")
            return
        limit = f"up to {_percent(self.supported_rate_)} cannot be excluded"
        text = f"{n} are too few to support a false-alarm rate of {stated}: {limit} {slowest}"
        warn(f"{ME}: {text}; give more of them")

    # ------------------------------------------------------------------------ use

    def watch(self, X: SequencesLike) -> Watched:
        """Monitor one segment of frames (T, P): log-odds of a fault, alarms, surprisal in bits, contributions.

        Parameters
        ----------
        X : array-like (T, P)
            One segment of frames; NaN is a missing value.

        Returns
        -------
        Watched
            Log-odds, alarms, surprisal, posterior probabilities and contributions of the sensors, one entry per frame.
        """
        self._check_fitted()
        return self.model_.run(self._frames(X))

    def diagnose(self, X: SequencesLike) -> Array:
        """Posterior of each known fault, and last of an unknown one, given a fault (T, K + 1); see `classes_`.

        Parameters
        ----------
        X : array-like (T, P)
            One segment of frames; NaN is a missing value.

        Returns
        -------
        ndarray (T, K + 1)
            Posterior probabilities, in the order of `classes_`, and of an unknown fault.
        """
        posterior = self.watch(X).posterior
        both = np.hstack([posterior[:, 2:], posterior[:, 1:2]])
        total = both.sum(axis=1, keepdims=True)
        return np.divide(both, total, out=np.full_like(both, 1.0 / both.shape[1]), where=total > 0)

    def top_contributions(self, belief: FaultBelief, top: int = 5) -> list[tuple[str, float]]:
        """The sensors with the largest contributions to a fault, by name, in bits.

        Parameters
        ----------
        belief : FaultBelief
            The belief after a frame, as `follow` gives it.
        top : int, default 5
            Largest number of sensors.

        Returns
        -------
        list of tuple
            Names and contributions, the largest first.
        """
        self._check_fitted()
        bits = self.model_.contributions(belief)
        return [(self._name(int(i)), float(bits[i])) for i in np.argsort(-bits, kind="stable")[:top]]

    def _frames(self, X: Any) -> Array:
        learned, names = getattr(self, "feature_names_in_", None), _names(X)
        if learned is not None and names is not None and names != list(learned):
            raise DataError(sentence(ME, f"columns must be those of training, {list(learned)}", names, "in this order"))
        warn_of_uneven([(X, lambda: "the segment")], ME)
        x = rows(X.to_numpy() if hasattr(X, "to_numpy") else X, self.n_features_in_, ME)
        refuse_infinite(x, ME)
        return x

    def _name(self, i: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"sensor {i}" if names is None else str(names[i])

    def describe(self) -> Description:
        """Sensors, known faults and the alarm rule; of an unfitted monitor, its settings."""
        if not hasattr(self, "model_"):
            return super().describe()
        m = self.model_
        constant = ", ".join(self._name(int(i)) for i in np.flatnonzero(m.scale == 0))
        text = [
            "a fault monitor of sensors: P(fault), and an alarm by expected cost",
            f"{self.n_features_in_} sensors, {m.learned_from:g} normal frames; "
            f"slowest mode {_slowest(m.normal):.2f} per frame.",
            f"Alarm above log-odds {m.threshold:.2f}: {_percent(self.false_alarm_rate_)} of normal frames held out.",
            *self._support(),
            f"Known faults: {', '.join(map(str, self.classes_.tolist())) or 'none'}.",
            *([f"Constant in training: {constant}."] if constant else []),
            f"A fault starts with probability {self.hazard:g}, and ends with {self.repair:g}.",
            f"The threshold was set for alarms in {100 * self.false_alarm_rate:.3g} % of normal frames.",
        ]
        if self.cost_false is not None and self.cost_missed is not None:
            text[-1] = f"A false alarm costs {self.cost_false:g} per frame, a missed fault {self.cost_missed:g}."
        facts = {"sensors": self.column_names()} if hasattr(self, "feature_names_in_") else {}
        notes = ["`likely follow` writes p(fault), alarm and the sensor with the largest contribution."]
        return Description(type(self).__name__, text, facts, notes=notes)

    def summary(self) -> Description:
        """The same as `describe`, of a fitted monitor only."""
        self._check_fitted()
        return self.describe()

    def _support(self) -> list[str]:
        """The supported false-alarm rate, in a sentence; nothing for files without it."""
        if not hasattr(self, "supported_rate_"):
            return []
        limit = f"up to {_percent(self.supported_rate_)} of normal frames"
        line = f"By so many frames, alarms in {limit} are not excluded (95 % confidence)."
        if self.supported_rate_ > MOST:
            line = "So many frames support no false-alarm rate at all: give more of them."
        if self.later_half_rate_ > MUCH * self.false_alarm_rate:
            line += f" By their earlier half alone, alarms stand in {_percent(self.later_half_rate_)} of the later."
        return [line]

    # ------------------------------------------------------------------- internal

    def _check_settings(self) -> None:
        for name in ("hazard", "repair", "unknown", "false_alarm_rate"):
            if not (_real(getattr(self, name)) and 0 < getattr(self, name) < 1):
                raise DomainError(sentence(ME, f"{name} must lie between 0 and 1", getattr(self, name)))
        costs = (self.cost_false, self.cost_missed)
        if costs != (None, None) and not all(_real(c) and 0 < float(c or 0) < np.inf for c in costs):
            remedy = "give both, in the same unit, or none"
            raise DomainError(sentence(ME, "cost_false and cost_missed must be positive numbers", costs, remedy))

    def check_state(self) -> None:
        """Validate the fitted state after a file was read."""
        self._check_settings()
        m = vars(self).get("model_")
        if m is None:
            return
        rates = [vars(self).get(f"{name}_", 0.0) for name in ("false_alarm_rate", "supported_rate", "later_half_rate")]
        if not all(_real(rate) and rate >= 0 for rate in rates):
            raise DataError(sentence(ME, "rates must be numbers that are not negative", rates))
        if not isinstance(m, FaultWatch) or len(m.mean) != self.n_features_in_ or len(m.faults) != len(self.classes_):
            raise DataError(sentence(ME, "the fitted attributes must be consistent", type(m).__name__))


class Segment(NamedTuple):
    """Consecutive frames (T, P), their label and weight."""

    frames: Array
    label: Any
    weight: float


class LaterHalves(NamedTuple):
    """Later halves of normal segments, monitored by a model of the earlier halves."""

    ratios: list[Array]  # log-likelihood ratios (T, J + K), faults against normal, for each segment
    in_alarm: float  # share of frames above the threshold that the earlier halves have set


def _percent(share: float) -> str:
    if share < 1e-4:
        return "less than 0.01 %"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _names(X: Any) -> list[str] | None:
    """Column names of a data frame, or of the first of several."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return [str(c) for c in first.columns] if hasattr(first, "columns") else None


def _segments(X: Any, y: Any, sample_weight: Any, normal: Any) -> list[Segment]:
    if hasattr(X, "to_numpy"):
        warn_of_uneven([(X, lambda: "the segment")], ME)
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim == 2 and y is not None and len(y) == len(X):
        X, y = _cut(X, np.asarray(y))
    listed = [rows(x, None, ME) for x in Ragged.of(X)]
    labels = [normal] * len(listed) if y is None else list(np.asarray(y, dtype=object))
    if len(labels) != len(listed):
        remedy = "for lengths of segments write lengths=" if len(listed) == 1 else ""
        raise ShapeError(sentence(ME, f"y must have one label per segment ({len(listed)})", len(labels), remedy))
    w = weights(sample_weight, len(listed), ME)
    if w is not None and w.ndim != 1:
        raise ShapeError(sentence(ME, "sample_weight must be one per segment", w.shape))
    for x in listed:
        refuse_infinite(x, ME)
    sized = zip(listed, labels, np.ones(len(listed)) if w is None else w, strict=True)
    out = [Segment(x, label, float(v)) for x, label, v in sized if v > 0 and len(x)]
    if sum(len(s.frames) for s in out if s.label == normal) < FEWEST:
        remedy = f"give more of them, or name their label: normal={normal!r} here"
        raise DataError(sentence(ME, f"at least {FEWEST} frames of normal operation are needed", "fewer", remedy))
    for label in {s.label for s in out}:
        longest = max(len(s.frames) for s in out if s.label == label)
        if longest < SHORTEST:
            remedy = "dynamics are learned from consecutive frames; leave the label out, or give more of it"
            raise DataError(sentence(ME, f"{label!r} needs a segment of {SHORTEST} frames and more", longest, remedy))
    return out


def _cut(X: Array, y: Any) -> tuple[list[Array], list[Any]]:
    """Split the rows of one array at every change of label."""
    edges = np.r_[0, np.flatnonzero(y[1:] != y[:-1]) + 1, len(y)]
    return [X[a:b] for a, b in pairwise(edges)], [y[a] for a in edges[:-1]]


def _units(normal_segments: Sequence[Segment]) -> tuple[Array, Array, float]:
    """Mean and standard deviation of each sensor (0 for constant ones), and the number of frames."""
    x = np.concatenate([s.frames for s in normal_segments])
    w = np.concatenate([np.full(len(s.frames), s.weight) for s in normal_segments])
    observed = ~np.isnan(x)
    total = w @ observed
    if not (total > 0).all():
        at = int(np.argmin(total))
        raise DataError(sentence(ME, "every sensor must have observed values", f"none of sensor {at}", "leave it out"))
    mean = w @ np.where(observed, x, 0.0) / total
    scale = np.sqrt(w @ np.where(observed, x - mean, 0.0) ** 2 / total)
    scale = np.where(scale > UNITS * np.abs(mean), scale, 0.0)
    if not (scale > 0).any():
        raise DataError(sentence(ME, "at least one sensor must vary", "none does in all frames"))
    constant = np.flatnonzero(scale == 0)
    if len(constant):
        first = np.argmax(observed, axis=0)
        mean[constant] = x[first[constant], constant]
        text = f"{len(constant)} sensors are constant in training (the first is {constant[0]})"
        warn(f"{ME}: {text}: any change counts as a fault")
    return mean, scale, float(w.sum())


def _learned(units: Sequence[Segment], label: Any) -> Chosen:
    own = [s for s in units if s.label == label]
    return chosen([s.frames for s in own], np.array([s.weight for s in own]))


# ----------------------------------------------------------------- held-out frames


def _tempered_odds(watch: FaultWatch, parts: Sequence[Sequence[Array]], w: Array) -> tuple[Array, list[Array]]:
    """Tempering factors that held-out parts[segment][part] allow, and the log-odds of each segment."""
    odds = [_odds(watch, np.concatenate(segment)) for segment in tempered(parts, w)]
    return allowed_shares(parts, w), odds


def _odds(watch: FaultWatch, evidence: Array) -> Array:
    """Log-odds of a fault (T,) from evidence (T, J + K) without tempering."""
    return watch.replace(shares=np.ones(len(watch.shares))).odds_of(evidence)


def _slowest(distribution: SensorDynamics) -> float:
    """The largest modulus of the eigenvalues of the transition matrix."""
    return float(np.abs(np.linalg.eigvals(distribution.transition)).max())


def _held_out(watch: FaultWatch, x: Array, left_out: list[SensorDynamics]) -> list[Array]:
    """Log-likelihood ratios (T_k, J + K) of the parts of a normal segment, each by a model fitted without it.

    Burn-in frames precede each part, as in a stream.
    """
    out = []
    for distribution, (a, b) in zip(
        left_out, edges([len(part) for part in np.array_split(x, len(left_out))]), strict=True
    ):
        before = min(a, ENTRY)
        out.append(watch.replace(normal=distribution).ratios_of(x[a - before : b])[before:])
    return out


def _calibrated_kinds(
    watch: FaultWatch, units: Sequence[Segment], distributions: dict[Any, Chosen], labels: list[Any]
) -> FaultWatch:
    """Choose the tempering of the kind of fault by the log-loss of held-out parts of known faults."""
    if len(labels) < 1:
        return watch
    candidates = [watch.replace(kind_share=share) for share in SHARES]
    loss = np.zeros(len(candidates))
    for s in units:
        if s.label in labels:
            k = labels.index(s.label)
            for part, distribution in zip(
                np.array_split(s.frames, len(distributions[s.label].left_out)),
                distributions[s.label].left_out,
                strict=True,
            ):
                ratios = _ratios(watch, part, k, distribution)
                loss -= [
                    s.weight * float(np.maximum(one.kinds_of(ratios)[:, 1 + k], LOG_POSTERIOR_FLOOR).sum())
                    for one in candidates
                ]
    return candidates[int(np.argmin(loss))]


def _ratios(watch: FaultWatch, part: Array, k: int, distribution: SensorDynamics) -> Array:
    """Log-likelihood ratios (T − 1, J + K) of frames in training units, with fault k by a held-out model."""
    if len(part) < 2:
        return np.empty((0, len(watch.shares)))
    J, one = len(watch.memory), np.ones(watch.normal.dim)
    plain = watch.replace(mean=0.0 * one, scale=one, faults=(), shares=np.ones(J), unknown=1.0)
    own = [distribution if i == k else other for i, other in enumerate(watch.faults)]
    normal = watch.normal.log_probs(part)
    known = [other.log_probs(part) - normal for other in own]
    return np.column_stack([plain.ratios_of(part)[1:], *known])
