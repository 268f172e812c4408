"""Follow one moving target: through scans that are empty, or full of false measurements, and say when it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from likely.core.arrays import Array, Index, Mask, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.estimation.recognizer import Recognizer
from likely.recognizers.tracking.data_association import DataAssociation, TrackBelief
from likely.statespace.continuous.linear_sde import LinearSDE
from likely.statespace.continuous.observation_times import clock, clocks
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.nonlinear.gaussian_filter import GaussianFilter

ME = "Tracker"
BITS = float(np.log(2.0))
WIDEST = 20.0  # nats that learned variances may lie away from the first guess


@dataclass(frozen=True, eq=False)
class Track(Value):
    """Where the target was at each scan: `mean` (T, d), `covariance` (T, d, d) of the best place; NaN where none is.

    `exists` (T,) is P(there is a target), `confirmed` (T,) whether the track counts as found; association[t] (n_t + 1,)
    are the chances that nothing, or measurement i, was the target's. `log_prob` (T,) is log p(scan | all before), up
    to −clutter·volume.

    >>> import likely as lk
    >>> track = lk.Tracker(dim=2).run([[[0.0, 0.0]], [[1.0, 0.5]], [[2.0, 1.0]]])
    >>> track.mean.shape, track.summary()
    ((3, 4), '3 scans, 3 with a confirmed track; found at 0; lost at never.')
    """

    mean: Array
    covariance: Array
    exists: Array
    confirmed: Mask
    association: tuple[Array, ...]
    log_prob: Array

    def __len__(self) -> int:
        return len(self.exists)

    @property
    def surprise(self) -> Array:
        """−log₂ p(scan | all before) (T,), in bits."""
        return -self.log_prob / BITS

    @property
    def found(self) -> Index:
        """Scans at which a track was confirmed."""
        return np.flatnonzero(self.confirmed & ~np.concatenate([[False], self.confirmed[:-1]]))

    @property
    def lost(self) -> Index:
        """Scans at which it was given up."""
        return np.flatnonzero(~self.confirmed & np.concatenate([[False], self.confirmed[:-1]]))

    def summary(self) -> str:
        """How it went, in sentences."""
        T, some = len(self), int(self.confirmed.sum())
        ends = ", ".join(map(str, self.lost.tolist())) or "never"
        begins = ", ".join(map(str, self.found.tolist())) or "never"
        return f"{T} scans, {some} with a confirmed track; found at {begins}; lost at {ends}."


class Tracker(Recognizer):
    """Follow one target in 2-D or 3-D: gating, clutter, missed detections, a track that begins and may be lost.

    A scan is an array of measurements (n, p), n = 0, 1 or many; None where nobody looked. Scans are a list, a `Ragged`,
    or an array (T, p) of one measurement each. Without clutter this is Kalman's filter; with it, integrated
    probabilistic data association (see `DataAssociation`).

    - **model**: a `LinearGaussian`, `LinearSDE`, `ExtendedFilter` …; None: constant velocity in `dim` dimensions
    - **dt**: time between scans, where no times are given; **spectral_density**: spectral density of the acceleration;
      **observation_variance**: variance of a measured coordinate; numbers, or one an axis; `fit` learns them from
      tracks
    - **gate, clutter, detection, survival, exists, birth_odds, speed, confirm, lose**: as in `DataAssociation`

    `lk.follow(tracker, scans)` follows live; with times, make it `Tracker(lk.LinearSDE.constant_velocity(…))`
    and give (time, scan).

    >>> import likely as lk, numpy as np
    >>> variances = {"spectral_density": 0.01, "observation_variance": 0.04}
    >>> tracker = Tracker(dim=2, **variances, clutter=0.01, detection=0.9, speed=2.0)
    >>> rng, scans = np.random.default_rng(0), []
    >>> for t in range(20):
    ...     scans.append(np.vstack([[t, 0.5 * t] + 0.2 * rng.normal(size=2), rng.uniform(-20, 20, (4, 2))]))
    >>> track = tracker.run(scans)
    >>> track.mean[-1].round(0), track.found, track.lost
    (array([19., 10.,  1.,  1.]), array([3]), array([], dtype=int64))
    """

    _saved = ("spectral_density_", "observation_variance_")

    def __init__(
        self,
        model: Any = None,
        *,
        dim: int = 2,
        dt: float = 1.0,
        spectral_density: Any = 1.0,
        observation_variance: Any = 1.0,
        gate: float = 0.99,
        clutter: float = 0.0,
        detection: float = 1.0,
        survival: float | None = None,
        exists: float | None = None,
        birth_odds: float = 0.01,
        speed: Any = None,
        confirm: float = 0.95,
        lose: float = 0.1,
    ) -> None:
        self.model = model
        self.dim = dim
        self.dt = dt
        self.spectral_density = spectral_density
        self.observation_variance = observation_variance
        self.gate = gate
        self.clutter = clutter
        self.detection = detection
        self.survival = survival
        self.exists = exists
        self.birth_odds = birth_odds
        self.speed = speed
        self.confirm = confirm
        self.lose = lose

    # ------------------------------------------------------------------ the model

    @property
    def motion(self) -> Any:
        """The model of the target's motion and of a measurement of it."""
        if self.model is not None:
            return self.model
        return LinearGaussian.constant_velocity(self.dim, self.dt, *self._variances)

    @property
    def _variances(self) -> tuple[Any, Any]:
        if "spectral_density_" in vars(self):
            return self.spectral_density_, self.observation_variance_
        return self.spectral_density, self.observation_variance

    @property
    def association(self) -> DataAssociation:
        """The filter that these settings mean."""
        return self._filter(self.motion)

    def _filter(self, motion: Any) -> DataAssociation:
        names = ("clutter", "detection", "gate", "survival", "exists", "birth_odds", "speed", "confirm", "lose")
        return DataAssociation(motion, **{name: getattr(self, name) for name in names})

    def _timed(self, times: Any, T: int) -> tuple[DataAssociation, Array | None]:
        """The filter for scans at these times; without times the model's own step."""
        if times is None:
            if isinstance(self.model, LinearSDE):
                raise DataError(sentence(ME, "a model in continuous time needs times", "none", "give times="))
            return self.association, None
        t = clock(times, ME)
        if len(t) != T:
            raise ShapeError(sentence(ME, f"times must be one for each of {T} scans", len(t)))
        return self._filter(self._continuous), t

    @property
    def _continuous(self) -> LinearSDE:
        if isinstance(self.model, LinearSDE):
            return self.model
        if self.model is not None:
            got, remedy = type(self.model).__name__, "leave times out, or pass a LinearSDE"
            raise DomainError(sentence(ME, "times need a model in continuous time", got, remedy))
        return LinearSDE.constant_velocity(self.dim, *self._variances)

    # --------------------------------------------------------------------- tracks

    def run(self, scans: Any, times: Any = None) -> Track:
        """Follow through many scans: what was known of the target at each."""
        listed = _listed(scans)
        filter_, t = self._timed(times, len(listed))
        return _track(filter_, *_followed(filter_, listed, t))

    def smooth(self, scans: Any, times: Any = None) -> Track:
        """The same from all scans, those after it too: places that were replaced by one Gaussian each stay so."""
        listed = _listed(scans)
        filter_, t = self._timed(times, len(listed))
        beliefs, news = _followed(filter_, listed, t)
        track = _track(filter_, beliefs, news)
        if listed and filter_.clutter == 0 and not isinstance(filter_._here, GaussianFilter):
            found = _kalman_smoothed(filter_, listed, t)
            return track.replace(mean=found.mean, covariance=found.covariance)
        mean, covariance = np.array(track.mean), np.array(track.covariance)
        for i, state in _back(filter_, beliefs, t):
            mean[i], covariance[i] = state.mean, state.covariance
        return track.replace(mean=mean, covariance=covariance)

    # ----------------------------------------------------------------------- live

    @property
    def model_(self) -> DataAssociation:
        """Who plays the filter in `lk.follow`."""
        return self.association

    def initial_belief(self) -> TrackBelief:
        """The belief before the first scan."""
        return self.association.initial_belief()

    def predict(self, belief: TrackBelief, time: float | None = None) -> TrackBelief:
        """The belief one scan on."""
        return self.association.predict(belief, time)

    def update(self, belief: TrackBelief, y: Any) -> tuple[TrackBelief, float]:
        """The belief once a scan is seen, and log p(scan | all before)."""
        return self.association.update(belief, y)

    # ------------------------------------------------------------------- learning

    def fit(self, tracks: Any, times: Any = None, sample_weight: Any = None) -> Self:
        """Learn noise and observation, of each axis, from tracks (T, dim) without clutter: NaN where nobody looked.

        They make the tracks most probable (maximum likelihood of the constant-velocity model, axis by axis).
        """
        if self.model is not None:
            remedy = "learn a model of your own with lk.LinearGaussianDensity, and pass what it learned"
            raise DomainError(sentence(f"{ME}.fit", "the model must be None", type(self.model).__name__, remedy))
        seqs = Ragged.of(tracks)
        if not len(seqs.values) or seqs.values.ndim != 2 or seqs.values.shape[1] != self.dim:
            raise ShapeError(sentence(f"{ME}.fit", f"tracks must have shape (T, {self.dim})", seqs.values.shape))
        told = None if times is None else clocks(times, seqs, ME)
        w = weights(sample_weight, len(seqs), ME)
        found = [self._axis(seqs, told, np.ones(len(seqs)) if w is None else w, j) for j in range(self.dim)]
        self.spectral_density_, self.observation_variance_ = np.array(found).T.copy()
        return self

    def _axis(self, seqs: Ragged, told: Ragged | None, w: Array, j: int) -> tuple[float, float]:
        y = seqs.map(lambda frames: np.asarray(frames, dtype=np.float64)[:, j : j + 1])
        first = _guess(y, w, self.dt if told is None else _typical_step(told))

        def cost(logs: Array) -> float:
            q, r = first * np.exp(np.clip(logs, -WIDEST, WIDEST))
            if told is None:
                found = LinearGaussian.constant_velocity(1, self.dt, q, r).log_prob(y)
            else:
                found = LinearSDE.constant_velocity(1, q, r).log_prob(y, told)
            return -float(w @ found)

        best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6, "maxiter": 400})
        q, r = first * np.exp(np.clip(best.x, -WIDEST, WIDEST))
        return float(q), float(r)

    def _check_state(self) -> None:
        """After a file was read."""
        for name in self._saved:
            a = vars(self).get(name)
            if a is not None and not (isinstance(a, np.ndarray) and a.shape == (self.dim,) and (a >= 0).all()):
                raise DataError(sentence(ME, f"{name} must be a variance an axis", repr(a)))
        _ = self.association


def _listed(scans: Any) -> list[Any]:
    """Scans one by one; an array (T, p) has one measurement in each."""
    scans = scans.to_numpy() if hasattr(scans, "to_numpy") else scans  # a data frame has one measurement a row
    if isinstance(scans, np.ndarray) and scans.ndim == 2 and scans.dtype != object:
        return [row[None] for row in scans]
    if isinstance(scans, Ragged):
        return list(scans)
    if isinstance(scans, str | bytes) or not hasattr(scans, "__iter__"):
        raise DataError(sentence(ME, "scans must be a list of arrays (n, p)", type(scans).__name__))
    return list(scans)


def _followed(filter_: DataAssociation, listed: list[Any], t: Array | None) -> tuple[list[TrackBelief], list[float]]:
    """The belief after every scan, and log p(scan | all before)."""
    belief, out, news = None, [], []
    for i, scan in enumerate(listed):
        try:
            belief = filter_.initial_belief() if belief is None else filter_.predict(belief)
            belief, new = filter_.update(belief, scan if t is None else (t[i], scan))
        except (DataError, ShapeError) as error:
            raise type(error)(f"Scan {i}: {error}") from error
        out.append(belief)
        news.append(new)
    return out, news


def _track(filter_: DataAssociation, beliefs: list[TrackBelief], news: list[float]) -> Track:
    d, T = filter_.states, len(beliefs)
    return Track.trusted(
        mean=np.array([b.mean for b in beliefs]).reshape(T, d),
        covariance=np.array([b.covariance for b in beliefs]).reshape(T, d, d),
        exists=np.array([b.exists for b in beliefs]), confirmed=np.array([b.confirmed for b in beliefs], dtype=bool),
        association=tuple(b.association for b in beliefs), log_prob=np.array(news, dtype=np.float64),
    )  # fmt: skip


def _back(filter_: DataAssociation, beliefs: list[TrackBelief], t: Array | None) -> Iterator[tuple[int, Any]]:
    """Smoothed places from the last scan to the first: from each one back to where its line began."""
    place, later = -1, beliefs[-1].best if beliefs else None
    for i in range(len(beliefs) - 1, -1, -1):
        belief = beliefs[i]
        if place < 0:
            place, later = (0, belief.best) if belief.states else (-1, None)
        elif later is not None:
            model = None if t is None else filter_.model.at([t[i], t[i + 1]])
            later = filter_.corrected(belief.states[place], later, model)
        if later is not None and place >= 0:
            yield i, later
            place = int(belief.parents[place])


def _kalman_smoothed(filter_: DataAssociation, listed: list[Any], t: Array | None) -> Any:
    """Without clutter a track is a sequence."""
    p = filter_.model.dim
    seen = [filter_.scan(scan) for scan in listed]
    frames = np.array([np.full(p, np.nan) if z is None or not len(z) else z[0] for z in seen])
    return filter_.model.smooth(frames) if t is None else filter_.model.smooth(frames, t)


def _typical_step(told: Ragged) -> float:
    steps = np.concatenate([np.diff(t) for t in told] or [np.ones(1)])
    return float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0


def _guess(y: Ragged, w: Array, dt: float) -> Array:
    """Acceleration and noise of a size that second differences allow."""
    second = [np.diff(np.asarray(one)[:, 0], 2) for one in y]
    values = np.concatenate([x[np.isfinite(x)] for x, v in zip(second, w, strict=True) if v > 0] or [np.empty(0)])
    if len(values) < 3:
        remedy = "give more of them"
        raise DataError(
            sentence(f"{ME}.fit", "tracks of three measurements in a row and more are needed", "fewer", remedy)
        )
    size = float(np.median(values**2)) or float(np.mean(values**2))
    if not size > 0:
        raise DataError(sentence(f"{ME}.fit", "tracks must not be straight to the last digit", "no noise at all"))
    return np.array([size / (2 * dt**3), size / 12])
