"""Bayesian change detection for sensors: posterior of normal operation, unknown faults and known faults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, numbers, parameter, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.recognizers.faults.sensor_dynamics import Innovation, SensorDynamics
from likely.statespace.linear.result_repr import path_words

ME = "FaultWatch"
BITS = float(np.log(2.0))
FARTHEST = 1e100  # standard deviations: larger deviations are clipped, as squares must not overflow
STILL = 1e-9  # relative change of a constant sensor that counts as rounding


def _log_sum(logs: Any) -> Any:
    return np.logaddexp.reduce(logs, axis=-1)  # of a few numbers: a tenth of the time of SciPy's


@dataclass(frozen=True, eq=False)
class FaultBelief(Value):
    """Belief state: log-probabilities of normal, of each kind of unknown fault, and of each known fault.

    Which fault it is has a separate posterior, `log_kinds`, with one weight for all distributions. `surprisal` is the
    surprisal of the frame in bits, less the mean of normal frames; `alarm` whether the log-odds of a fault are above
    the threshold.
    """

    log_weights: Annotated[Array, declared.numbers("L")]  # (1 + J + K,), normalized
    # (1 + K,): of an unknown fault and each known one, given that there is a fault
    log_kinds: Annotated[Array, declared.numbers("M")]
    # (p,): the last frame in units of training, missing entries imputed; None before the first
    frame: Annotated[Array | None, declared.maybe(declared.numbers("p"))]
    # (p, p): covariance of the imputed entries
    spread: Annotated[Array | None, declared.maybe(declared.numbers("p p"))]
    # (J, p): predicted offset of the next frame under each unknown fault, whitened
    offsets: Annotated[Array, declared.numbers("J p")]
    error: Annotated[Array, declared.numbers("p")]  # (p,): the last frame − its prediction, in units of training
    moved: Annotated[Array, declared.numbers("P", 0)]  # (P,): 1 where a sensor that was constant in training changed
    surprisal: float
    alarm: bool
    due: bool  # True if a frame is predicted and not yet observed
    time: Annotated[int, declared.count]  # number of frames so far

    @property
    def log_odds(self) -> float:
        """log P(fault) / P(normal)."""
        return float(_log_sum(self.log_weights[1:]) - self.log_weights[0])

    @property
    def fault(self) -> float:
        """Posterior probability of a fault, given all frames."""
        return float(1.0 / (1.0 + np.exp(-min(self.log_odds, 700.0))))


class Watched(NamedTuple):
    """Results of monitoring a stream: one entry per frame."""

    log_odds: Array  # (T,) of a fault
    alarm: Mask  # (T,)
    surprisal: Array  # (T,) bits
    posterior: Array  # (T, 2 + K): normal, an unknown fault, each known one
    contributions: Array  # (T, P): contribution of each sensor to the evidence of a fault, given the others, in bits
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

    In normal operation frames follow `normal`; e_t is the innovation, with covariance S. An unknown fault j adds an
    offset of any direction, δ_t = ρ_j δ_{t−1} + …, with predictive covariance c_j S: ρ = 0 is an independent offset per
    frame, ρ near 1 a persistent one. A known fault has its own dynamics. A fault begins with probability `hazard` per
    frame and ends with probability `repair`; log-likelihood ratios are multiplied by `shares` (tempering), calibrated
    on held-out normal frames. Which fault it is has a separate posterior with one tempering factor, `kind_share`, for
    all.
    """

    mean: Annotated[Array, declared.numbers("P")]  # (P,)
    scale: Annotated[Array, declared.numbers("P", 0)]  # (P,), 0 for a constant sensor
    normal: Annotated[SensorDynamics, declared.of_class("SensorDynamics")]  # of the p varying sensors
    # the K known ones
    faults: Annotated[tuple[SensorDynamics, ...], declared.perhaps(declared.of_class("SensorDynamics"))]
    memory: Annotated[Array, declared.numbers("J", 0)]  # (J,): ρ
    size: Annotated[Array, declared.numbers("J", 0)]  # (J,): c
    shares: Annotated[Array, declared.numbers("S", 0)]  # (J + K,): of the evidence that there is a fault
    kind_share: float  # of the evidence which one it is
    hazard: float
    repair: float
    unknown: float  # share of faults that are of no known kind
    threshold: float  # log-odds above which there is an alarm
    learned_from: float  # frames

    def __post_init__(self) -> None:
        arrays = {n: parameter(getattr(self, n), ME, n) for n in ("mean", "scale", "memory", "size", "shares")}
        J, K, p = arrays["memory"].size, len(self.faults), int((arrays["scale"] > 0).sum())
        valid = arrays["mean"].shape == arrays["scale"].shape and arrays["mean"].ndim == 1
        valid = valid and arrays["size"].shape == arrays["memory"].shape == (J,) and arrays["shares"].shape == (J + K,)
        if not valid or any(distribution.dim != p for distribution in (self.normal, *self.faults)):
            raise ShapeError(
                sentence(
                    ME, "dynamics must be of the varying sensors", [distribution.dim for distribution in self.faults]
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
            raise DomainError(
                sentence(ME, "unknown must lie between 0 and 1, and be 1 without known faults", self.unknown)
            )
        self._set(**arrays)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> FaultBelief:
        """Belief before the first frame: the prior after one hazard step."""
        J, p = len(self.memory), self.normal.dim
        return FaultBelief.trusted(
            log_weights=self._transition(np.r_[0.0, np.full(J + len(self.faults), -np.inf)]),
            log_kinds=np.array(self._kinds), frame=None, spread=None,
            offsets=np.zeros((J, p)), error=np.zeros(p), moved=np.zeros(len(self.mean)), surprisal=0.0, alarm=False,
            due=True, time=0,
        )  # fmt: skip

    def predict(self, belief: FaultBelief) -> FaultBelief:
        """Prediction step; a frame that never arrived counts as missing."""
        if belief.due:
            belief, _ = self.update(belief, np.full(len(self.mean), np.nan))
        kinds = self._kind_transition(belief.log_kinds)
        return belief.replace(log_weights=self._transition(belief.log_weights), log_kinds=kinds, due=True)

    def update(self, belief: FaultBelief, y: Any) -> tuple[FaultBelief, float]:
        """Update step: the belief given a frame y (P,), and log p(y | all before); NaN where a sensor is missing."""
        x, moved = self._units(y)
        innovation = self.normal.after(belief.frame, belief.spread, x)
        ratios, offsets = self._ratios(belief, innovation, x)
        # a sensor constant in n frames changes in the next with probability 1/(n + 1), for any fault
        logs, total = self._reweighted(
            belief.log_weights, ratios, float(np.log1p(self.learned_from)) * int(moved.sum())
        )
        kinds = belief.log_kinds + self.kind_share * self._kind_evidence(ratios)
        surprisal = 0.5 * (float(innovation.white @ innovation.white) - len(innovation.white)) / BITS
        after = belief.replace(
            log_weights=logs, log_kinds=kinds - _log_sum(kinds),
            frame=innovation.frame, spread=innovation.spread, offsets=offsets, error=innovation.error,
            moved=moved.astype(np.float64), surprisal=surprisal, due=False, time=belief.time + 1,
        )  # fmt: skip
        units = float(np.log(self.scale[self.sensors][~np.isnan(x)]).sum())
        return after.replace(alarm=bool(after.log_odds > self.threshold)), innovation.log_prob - units + total

    def _units(self, y: Any) -> tuple[Array, Mask]:
        """Varying sensors in units of training (p,), and which constant sensors changed (P,)."""
        row = numbers(y, ME)
        if row.size != len(self.mean) or row.ndim > 2:
            raise ShapeError(
                sentence(ME, f"a frame must have one number for each of {len(self.mean)} sensors", row.shape)
            )
        row = row.ravel()
        if np.isinf(row).any():
            at = int(np.flatnonzero(np.isinf(row))[0])
            raise DataError(sentence(ME, "a frame must be finite, or NaN where a sensor is missing", f"sensor {at}"))
        off = np.abs(row - self.mean) > STILL * np.maximum(np.abs(self.mean), 1e-12)
        still = (self.scale == 0) & off & ~np.isnan(row)
        varying = self.sensors
        with np.errstate(over="ignore"):
            return np.clip((row[varying] - self.mean[varying]) / self.scale[varying], -FARTHEST, FARTHEST), still

    @cached_property
    def sensors(self) -> Index:
        """Indices of the varying sensors."""
        return np.flatnonzero(self.scale > 0)

    def _ratios(self, belief: FaultBelief, innovation: Innovation, x: Array) -> tuple[Array, Array]:
        """log p(frame | fault) / p(frame | normal) (J + K,), and the predicted offsets of the next frame."""
        u, c, b = innovation.white, self.size, belief.offsets
        v = b if innovation.lower is None else self._observed_offsets(innovation, b, x)
        deviation = u - v
        unknown = -0.5 * len(u) * np.log1p(c) - 0.5 * ((deviation * deviation).sum(axis=1) / (1 + c) - u @ u)
        step = deviation if innovation.back is None else deviation @ innovation.back @ self.normal.whitening.T
        offsets = self.memory[:, None] * (b + (c / (1 + c))[:, None] * step)
        known = [
            distribution.after(belief.frame, belief.spread, x).log_prob - innovation.log_prob
            for distribution in self.faults
        ]
        return np.concatenate([unknown, known]), offsets

    def _observed_offsets(self, innovation: Innovation, b: Array, x: Array) -> Array:
        """Offsets in the whitened coordinates of the observed entries."""
        observed = ~np.isnan(x)
        assert innovation.lower is not None
        if not observed.any():
            return b[:, :0]
        pushed = (b @ self.normal.root.T)[:, observed]
        return np.asarray(solve_triangular(innovation.lower, pushed.T, lower=True, check_finite=False).T)

    # -------------------------------------------------------------- two states

    def _transition(self, logs: Array) -> Array:
        """Transition step of log-probabilities (…, 1 + J + K): hazard and repair."""
        out = np.logaddexp(logs + np.log1p(-self.repair), logs[..., :1] + self._log_hazard)
        repaired = _log_sum(logs[..., 1:]) + np.log(self.repair)
        out[..., 0] = np.logaddexp(logs[..., 0] + np.log1p(-self.hazard), repaired)
        return out

    @cached_property
    def _log_hazard(self) -> Array:
        J, K = len(self.memory), len(self.faults)
        each = [0.0, *np.full(J, self.unknown / max(J, 1)), *np.full(K, (1 - self.unknown) / max(K, 1))]
        with np.errstate(divide="ignore"):
            return np.log(self.hazard) + np.log(each)

    @cached_property
    def _kinds(self) -> Array:
        """Prior log-probabilities of an unknown fault and of each known one."""
        K = len(self.faults)
        with np.errstate(divide="ignore"):
            return np.log([self.unknown, *np.full(K, (1 - self.unknown) / max(K, 1))])

    def _kind_transition(self, kinds: Array) -> Array:
        """Transition step of the kinds: one fault may be replaced by another."""
        return np.logaddexp(kinds + np.log1p(-self.repair), self._kinds + np.log(self.repair))

    def _kind_evidence(self, ratios: Array) -> Array:
        """Evidence (…, 1 + K) of an unknown fault, averaged over its kinds, and of each known one."""
        J = len(self.memory)
        unknown = np.logaddexp.reduce(ratios[..., :J], axis=-1) - np.log(max(J, 1))
        return np.concatenate([unknown[..., None], ratios[..., J:]], axis=-1)

    def kinds_of(self, ratios: Array) -> Array:
        """Posterior log-probabilities (T, 1 + K) of the kind of fault, from log-likelihood ratios (T, J + K)."""
        logs, evidence, out = (
            self._kinds,
            self.kind_share * self._kind_evidence(ratios),
            np.empty((len(ratios), len(self._kinds))),
        )
        for t, z in enumerate(evidence):
            logs = (logs if not t else self._kind_transition(logs)) + z
            logs = out[t] = logs - _log_sum(logs)
        return out

    def _reweighted(self, logs: Array, ratios: Array, moved: float = 0.0) -> tuple[Array, float]:
        out = logs + np.concatenate([[0.0], self.shares * ratios + moved])
        total = float(_log_sum(out))
        return out - total, total

    def odds_of(self, ratios: Array) -> Array:
        """Log-odds of a fault (T,) after each frame, from log-likelihood ratios (T, J + K)."""
        logs, out = self.initial_belief().log_weights, np.empty(len(ratios))
        for t, z in enumerate(ratios):
            logs, _ = self._reweighted(logs if not t else self._transition(logs), z)
            out[t] = _log_sum(logs[1:]) - logs[0]
        return out

    def ratios_of(self, y: Any) -> Array:
        """Log-likelihood ratios (T, J + K) of the frames of one segment, faults against normal."""
        belief, out = self.initial_belief(), np.empty((len(y), len(self.shares)))
        for t, frame in enumerate(y):
            x, _ = self._units(frame)
            innovation = self.normal.after(belief.frame, belief.spread, x)
            out[t], offsets = self._ratios(belief, innovation, x)
            belief = belief.replace(frame=innovation.frame, spread=innovation.spread, offsets=offsets)
        return out

    # ------------------------------------------------------------- contributions

    def contributions(self, belief: FaultBelief) -> Array:
        """Contribution of each sensor to the evidence of a fault, given all others, in bits (P,).

        For an error e with precision Λ, leaving sensor i out lowers eᵀΛe by (Λe)_i² / Λ_ii. The error is that of the
        last frame, or the estimated offset of the most probable persistent fault.
        """
        distribution, J = self.normal, len(self.memory)
        best = int(np.argmax(belief.log_weights[1 : 1 + J])) if J else 0
        e, times = belief.error, 1.0
        if J and self.memory[best] > 0:
            e, times = (
                distribution.root @ belief.offsets[best] / self.memory[best],
                (1 + self.size[best]) / self.size[best],
            )
        scaled_error = distribution.precision @ e
        out = np.log1p(self.learned_from) / BITS * belief.moved
        out[self.sensors] = 0.5 * times * scaled_error**2 / distribution.precision.diagonal() / BITS
        return out

    def kinds(self, belief: FaultBelief) -> Array:
        """P(normal), P(an unknown fault), P(each known fault) (2 + K,)."""
        return np.concatenate([[1.0 - belief.fault], belief.fault * np.exp(belief.log_kinds)])

    def run(self, y: Any, belief: FaultBelief | None = None) -> Watched:
        """Monitor a segment of frames (T, P), from the beginning or from a belief state."""
        results: list[tuple[Any, ...]] = []
        for frame in rows(y, len(self.mean), ME):
            belief, log_prob = self.update(self.initial_belief() if belief is None else self.predict(belief), frame)
            of_sensors = self.contributions(belief)
            results.append((belief.log_odds, belief.alarm, belief.surprisal, self.kinds(belief), of_sensors, log_prob))
        empty = (np.empty(0), np.empty(0, bool), np.empty(0), np.empty((0, 2 + len(self.faults))),
                np.empty((0, len(self.mean))), np.empty(0))  # fmt: skip
        return Watched(*(np.array(part) for part in zip(*results, strict=True))) if results else Watched(*empty)
