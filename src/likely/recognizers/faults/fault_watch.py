"""Is something wrong? A hidden state that is "normal" until it is not, and sensors that are off their prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from likely.core.arrays import Array, Index, Mask, numbers, parameter, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.recognizers.faults.sensor_dynamics import Innovation, SensorDynamics
from likely.statespace.linear.result_repr import path_words

ME = "FaultWatch"
BITS = float(np.log(2.0))
FARTHEST = 1e100  # standard deviations: more is no other news, and squares must not overflow
STILL = 1e-9  # share of its value by which a sensor that never moved may differ: rounding


def _log_sum(logs: Any) -> Any:
    return np.logaddexp.reduce(logs, axis=-1)  # of a few numbers: a tenth of the time of SciPy's


@dataclass(frozen=True, eq=False)
class FaultBelief(Value):
    """Belief after a frame: log-probabilities of normal, of each distribution of an unknown fault, of each known fault.

    Which fault it is has a posterior of its own, `log_kinds`, in which the distributions of all faults count alike.
    `surprise` is how many bits the frame is less probable than normal frames are on average; `alarm` whether the
    log-odds of a fault are above the threshold.
    """

    log_weights: Array  # (1 + J + K,), they add up to 1
    log_kinds: Array  # (1 + K,): of an unknown fault and each known one, given that there is a fault
    frame: Array | None  # (p,): the last frame in units of training, gaps filled in; None before the first
    spread: Array | None  # (p, p): covariance of what was filled in
    offsets: Array  # (J, p): what each unknown fault would push the next frame by, in white coordinates
    error: Array  # (p,): the last frame − its prediction, in units of training
    moved: Array  # (P,): 1 where a sensor moved that never did before
    surprise: float
    alarm: bool
    due: bool  # a frame is expected, and not yet seen
    time: int  # number of frames seen

    @property
    def log_odds(self) -> float:
        """log P(fault) / P(normal)."""
        return float(_log_sum(self.log_weights[1:]) - self.log_weights[0])

    @property
    def fault(self) -> float:
        """P(something is wrong | all frames)."""
        return float(1.0 / (1.0 + np.exp(-min(self.log_odds, 700.0))))


class Watched(NamedTuple):
    """A stream that was watched: one entry per frame."""

    log_odds: Array  # (T,) of a fault
    alarm: Mask  # (T,)
    surprise: Array  # (T,) bits
    posterior: Array  # (T, 2 + K): normal, an unknown fault, each known one
    contributions: Array  # (T, P): bits by which each sensor, given the others, speaks for a fault
    log_prob: Array  # (T,): log p(frame | all before)

    @property
    def fault(self) -> Array:
        """P(fault) (T,)."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.minimum(self.log_odds, 700.0))))

    def __repr__(self) -> str:
        size = path_words(self.contributions, "sensor")
        first = f", the first is {int(np.argmax(self.alarm))}" if self.alarm.any() else ""
        return f"Watched({size}, {int(self.alarm.sum()):,} in alarm{first})"


@dataclass(frozen=True, eq=False)
class FaultWatch(Value):
    """Shiryaev's posterior of a change, for faults of unknown and of known kind   (Shiryaev 1963).

    While all is well frames follow `normal`; e_t is what they are off their prediction, with covariance S. An unknown
    fault j pushes it by an offset of any direction, δ_t = ρ_j δ_{t−1} + …, whose predictive covariance is c_j S:
    ρ = 0 is a blow in every frame, ρ near 1 something that stays. A known fault has dynamics of its own. A fault comes
    with probability `hazard` a frame and goes with probability `repair`; each distribution's log-likelihood ratio
    counts the `shares` of it that normal frames have been found to allow. Which fault it is, is asked apart from that,
    with one share for all, so that no distribution is believed more than another.
    """

    mean: Array  # (P,)
    scale: Array  # (P,), 0 for a sensor that never moved
    normal: SensorDynamics  # of the p sensors that move
    faults: tuple[SensorDynamics, ...]  # the K known ones
    memory: Array  # (J,): ρ
    size: Array  # (J,): c
    shares: Array  # (J + K,): of the evidence that there is a fault
    kind_share: float  # of the evidence which one it is
    hazard: float
    repair: float
    unknown: float  # share of faults that are of no known kind
    threshold: float  # log-odds above which there is an alarm
    learned_from: float  # frames

    def __post_init__(self) -> None:
        arrays = {n: parameter(getattr(self, n), ME, n) for n in ("mean", "scale", "memory", "size", "shares")}
        J, K, p = arrays["memory"].size, len(self.faults), int((arrays["scale"] > 0).sum())
        sound = arrays["mean"].shape == arrays["scale"].shape and arrays["mean"].ndim == 1
        sound = sound and arrays["size"].shape == arrays["memory"].shape == (J,) and arrays["shares"].shape == (J + K,)
        if not sound or any(distribution.dim != p for distribution in (self.normal, *self.faults)):
            raise ShapeError(
                sentence(
                    ME, "dynamics must be of the sensors that move", [distribution.dim for distribution in self.faults]
                )
            )
        if not ((arrays["scale"] >= 0).all() and ((arrays["memory"] >= 0) & (arrays["memory"] < 1)).all()
                and (arrays["size"] > 0).all() and (arrays["shares"] >= 0).all()):  # fmt: skip
            raise DomainError(sentence(ME, "scales, memories, sizes and shares must not be negative", "some are"))
        if not 0 < self.kind_share <= 1:
            raise DomainError(sentence(ME, "kind_share must lie above 0, at most 1", self.kind_share))
        for name in ("hazard", "repair"):
            if not 0 < getattr(self, name) < 1:
                raise DomainError(sentence(ME, f"{name} must lie between 0 and 1", getattr(self, name)))
        if not 0 < self.unknown <= 1 or (self.unknown == 1) != (K == 0) or not J:
            raise DomainError(sentence(ME, "unknown must lie between 0 and 1, and be 1 if none is known", self.unknown))
        self._set(**arrays)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> FaultBelief:
        """Before the first frame: a fault is as probable as one that came in this frame."""
        J, p = len(self.memory), self.normal.dim
        return FaultBelief.trusted(
            log_weights=self._moved(np.r_[0.0, np.full(J + len(self.faults), -np.inf)]),
            log_kinds=np.array(self._kinds), frame=None, spread=None,
            offsets=np.zeros((J, p)), error=np.zeros(p), moved=np.zeros(len(self.mean)), surprise=0.0, alarm=False,
            due=True, time=0,
        )  # fmt: skip

    def predict(self, belief: FaultBelief) -> FaultBelief:
        """One frame on; a frame that never came counts as one of which nothing was seen."""
        if belief.due:
            belief, _ = self.update(belief, np.full(len(self.mean), np.nan))
        kinds = self._changed(belief.log_kinds)
        return belief.replace(log_weights=self._moved(belief.log_weights), log_kinds=kinds, due=True)

    def update(self, belief: FaultBelief, y: Any) -> tuple[FaultBelief, float]:
        """The belief once a frame y (P,) is seen, and log p(y | all before); NaN where a sensor was silent."""
        x, moved = self._units(y)
        found = self.normal.after(belief.frame, belief.spread, x)
        ratios, offsets = self._ratios(belief, found, x)
        # n frames said that a sensor never moves: the next one does with probability 1/(n + 1), whatever the fault
        logs, total = self._weighed(belief.log_weights, ratios, float(np.log1p(self.learned_from)) * int(moved.sum()))
        kinds = belief.log_kinds + self.kind_share * self._alike(ratios)
        surprise = 0.5 * (float(found.white @ found.white) - len(found.white)) / BITS
        after = belief.replace(
            log_weights=logs, log_kinds=kinds - _log_sum(kinds),
            frame=found.frame, spread=found.spread, offsets=offsets, error=found.error,
            moved=moved.astype(np.float64), surprise=surprise, due=False, time=belief.time + 1,
        )  # fmt: skip
        units = float(np.log(self.scale[self.sensors][~np.isnan(x)]).sum())
        return after.replace(alarm=bool(after.log_odds > self.threshold)), found.log_prob - units + total

    def _units(self, y: Any) -> tuple[Array, Mask]:
        """The sensors that move, in units of training (p,), and which of the others moved (P,)."""
        row = numbers(y, ME)
        if row.size != len(self.mean) or row.ndim > 2:
            raise ShapeError(
                sentence(ME, f"a frame must have one number for each of {len(self.mean)} sensors", row.shape)
            )
        row = row.ravel()
        if np.isinf(row).any():
            at = int(np.flatnonzero(np.isinf(row))[0])
            raise DataError(sentence(ME, "a frame must be finite, or NaN where a sensor was silent", f"sensor {at}"))
        off = np.abs(row - self.mean) > STILL * np.maximum(np.abs(self.mean), 1e-12)
        still = (self.scale == 0) & off & ~np.isnan(row)
        some = self.sensors
        with np.errstate(over="ignore"):
            return np.clip((row[some] - self.mean[some]) / self.scale[some], -FARTHEST, FARTHEST), still

    @cached_property
    def sensors(self) -> Index:
        """Numbers of the sensors that move."""
        return np.flatnonzero(self.scale > 0)

    def _ratios(self, belief: FaultBelief, found: Innovation, x: Array) -> tuple[Array, Array]:
        """log p(frame | fault) / p(frame | normal) (J + K,), and the offsets that are expected of the next frame."""
        u, c, b = found.white, self.size, belief.offsets
        v = b if found.lower is None else self._here(found, b, x)
        away = u - v
        pushed = -0.5 * len(u) * np.log1p(c) - 0.5 * ((away * away).sum(axis=1) / (1 + c) - u @ u)
        step = away if found.back is None else away @ found.back @ self.normal.whitening.T
        offsets = self.memory[:, None] * (b + (c / (1 + c))[:, None] * step)
        known = [
            distribution.after(belief.frame, belief.spread, x).log_prob - found.log_prob for distribution in self.faults
        ]
        return np.concatenate([pushed, known]), offsets

    def _here(self, found: Innovation, b: Array, x: Array) -> Array:
        """Offsets in the white coordinates of what was seen."""
        there = ~np.isnan(x)
        assert found.lower is not None
        if not there.any():
            return b[:, :0]
        pushed = (b @ self.normal.root.T)[:, there]
        return np.asarray(solve_triangular(found.lower, pushed.T, lower=True, check_finite=False).T)

    # -------------------------------------------------------------- two states

    def _moved(self, logs: Array) -> Array:
        """Log-probabilities (…, 1 + J + K) one frame on: faults come, and go."""
        out = np.logaddexp(logs + np.log1p(-self.repair), logs[..., :1] + self._comes)
        gone = _log_sum(logs[..., 1:]) + np.log(self.repair)
        out[..., 0] = np.logaddexp(logs[..., 0] + np.log1p(-self.hazard), gone)
        return out

    @cached_property
    def _comes(self) -> Array:
        J, K = len(self.memory), len(self.faults)
        each = [0.0, *np.full(J, self.unknown / max(J, 1)), *np.full(K, (1 - self.unknown) / max(K, 1))]
        with np.errstate(divide="ignore"):
            return np.log(self.hazard) + np.log(each)

    @cached_property
    def _kinds(self) -> Array:
        """Log-probabilities of an unknown fault and of each known one, before anything was seen."""
        K = len(self.faults)
        with np.errstate(divide="ignore"):
            return np.log([self.unknown, *np.full(K, (1 - self.unknown) / max(K, 1))])

    def _changed(self, kinds: Array) -> Array:
        """One frame on: one fault may give way to another."""
        return np.logaddexp(kinds + np.log1p(-self.repair), self._kinds + np.log(self.repair))

    def _alike(self, ratios: Array) -> Array:
        """Evidence (…, 1 + K) for an unknown fault, whatever its distribution, and for each known one."""
        J = len(self.memory)
        unknown = np.logaddexp.reduce(ratios[..., :J], axis=-1) - np.log(max(J, 1))
        return np.concatenate([unknown[..., None], ratios[..., J:]], axis=-1)

    def kinds_of(self, ratios: Array) -> Array:
        """Log-probabilities (T, 1 + K) of which fault it is, from log-likelihood ratios (T, J + K) of a stretch."""
        logs, evidence, out = (
            self._kinds,
            self.kind_share * self._alike(ratios),
            np.empty((len(ratios), len(self._kinds))),
        )
        for t, z in enumerate(evidence):
            logs = (logs if not t else self._changed(logs)) + z
            logs = out[t] = logs - _log_sum(logs)
        return out

    def _weighed(self, logs: Array, ratios: Array, moved: float = 0.0) -> tuple[Array, float]:
        out = logs + np.concatenate([[0.0], self.shares * ratios + moved])
        total = float(_log_sum(out))
        return out - total, total

    def odds_of(self, ratios: Array) -> Array:
        """log-odds of a fault (T,) after each of many frames, from their log-likelihood ratios (T, J + K)."""
        logs, out = self.initial_belief().log_weights, np.empty(len(ratios))
        for t, z in enumerate(ratios):
            logs, _ = self._weighed(logs if not t else self._moved(logs), z)
            out[t] = _log_sum(logs[1:]) - logs[0]
        return out

    def ratios_of(self, y: Any) -> Array:
        """Log-likelihood ratios (T, J + K) of the frames of one stretch, faults against normal."""
        belief, out = self.initial_belief(), np.empty((len(y), len(self.shares)))
        for t, frame in enumerate(y):
            x, _ = self._units(frame)
            found = self.normal.after(belief.frame, belief.spread, x)
            out[t], offsets = self._ratios(belief, found, x)
            belief = belief.replace(frame=found.frame, spread=found.spread, offsets=offsets)
        return out

    # --------------------------------------------------------------- who speaks

    def contributions(self, belief: FaultBelief) -> Array:
        """Bits by which each sensor, given all others, speaks for a fault (P,).

        For an error e with precision Λ, leaving sensor i out lowers eᵀΛe by (Λe)_i² / Λ_ii. The error is that of the
        last frame, or the offset of the most probable unknown fault, with the frames that it was learned from.
        """
        distribution, J = self.normal, len(self.memory)
        best = int(np.argmax(belief.log_weights[1 : 1 + J])) if J else 0
        e, times = belief.error, 1.0
        if J and self.memory[best] > 0:
            e, times = (
                distribution.root @ belief.offsets[best] / self.memory[best],
                (1 + self.size[best]) / self.size[best],
            )
        pulled = distribution.precision @ e
        out = np.log1p(self.learned_from) / BITS * belief.moved
        out[self.sensors] = 0.5 * times * pulled**2 / distribution.precision.diagonal() / BITS
        return out

    def kinds(self, belief: FaultBelief) -> Array:
        """P(normal), P(an unknown fault), P(each known fault) (2 + K,)."""
        return np.concatenate([[1.0 - belief.fault], belief.fault * np.exp(belief.log_kinds)])

    def run(self, y: Any, belief: FaultBelief | None = None) -> Watched:
        """Watch a stretch of frames (T, P), from the beginning or from a live belief on."""
        found: list[tuple[Any, ...]] = []
        for frame in rows(y, len(self.mean), ME):
            belief, news = self.update(self.initial_belief() if belief is None else self.predict(belief), frame)
            of_sensors = self.contributions(belief)
            found.append((belief.log_odds, belief.alarm, belief.surprise, self.kinds(belief), of_sensors, news))
        none = (np.empty(0), np.empty(0, bool), np.empty(0), np.empty((0, 2 + len(self.faults))),
                np.empty((0, len(self.mean))), np.empty(0))  # fmt: skip
        return Watched(*(np.array(part) for part in zip(*found, strict=True))) if found else Watched(*none)
