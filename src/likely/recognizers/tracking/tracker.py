"""Single-target tracking in clutter: integrated probabilistic data association, smoothing, learning of variances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from likely.core.arrays import Array, Index, Mask, SequencesLike, weights
from likely.core.description import Description, counted
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
WIDEST = 20.0  # largest change of log-variances from the initial guess


@dataclass(frozen=True, eq=False)
class Track(Value):
    """Track of a target: the best hypothesis per scan, and whether there is a target.

    `mean` and `covariance` are NaN where there is no hypothesis.

    Parameters
    ----------
    mean : ndarray (T, d)
        Mean of the state.
    covariance : ndarray (T, d, d)
        Covariance of the state.
    exists : ndarray (T,)
        P(there is a target).
    confirmed : ndarray of bool (T,)
        Whether the track is confirmed.
    association : tuple of ndarray (n_t + 1,)
        Posterior probabilities that none, or measurement i, is from the target.
    log_prob : ndarray (T,)
        Log-probability of each scan given all before, up to −clutter·volume.

    Examples
    --------
    >>> import likely as lk
    >>> track = lk.Tracker(dim=2).run([[[0.0, 0.0]], [[1.0, 0.5]], [[2.0, 1.0]]])
    >>> track.mean.shape, track.describe().facts["found at"]
    ((3, 4), [0])
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
    def surprisal(self) -> Array:
        """Surprisal −log₂ p(scan | all before) (T,), in bits."""
        return -self.log_prob / BITS

    @property
    def found(self) -> Index:
        """Scans at which a track was confirmed."""
        return np.flatnonzero(self.confirmed & ~np.concatenate([[False], self.confirmed[:-1]]))

    @property
    def lost(self) -> Index:
        """Scans at which a confirmed track was dropped."""
        return np.flatnonzero(~self.confirmed & np.concatenate([[False], self.confirmed[:-1]]))

    def describe(self) -> Description:
        """When the target was found and lost."""
        facts = {
            "scans": len(self), "with a confirmed track": int(self.confirmed.sum()),
            "found at": self.found.tolist() or "never", "lost at": self.lost.tolist() or "never",
        }  # fmt: skip
        return Description(type(self).__name__, facts=facts)


class Tracker(Recognizer):
    """Tracking of one target in 2-D or 3-D, with gating, clutter, missed detections, and track initiation and loss.

    A scan is an array of measurements (n, p), n = 0, 1 or many; None for a missing scan. Scans are a list, a `Ragged`,
    or an array (T, p) of one measurement each. Without clutter this is the Kalman filter; with it, integrated
    probabilistic data association (IPDA; see `DataAssociation`).

    `lk.follow(tracker, scans)` tracks live; with times, use `Tracker(lk.LinearSDE.constant_velocity(…))`
    and pass them as `inputs`.

    Parameters
    ----------
    model : LinearGaussian, LinearSDE, ExtendedKalmanFilter, …, optional
        Motion and measurements of the target; None: constant velocity in `dim` dimensions.
    dim : int, default 2
        Number of dimensions.
    dt : float, default 1.0
        Time between scans, where no times are given.
    spectral_density : float or array-like (dim,), default 1.0
        Spectral density of the acceleration; `fit` learns it from tracks.
    observation_variance : float or array-like (dim,), default 1.0
        Variance of a measured coordinate; `fit` learns it from tracks.
    gate : float, default 0.99
        Probability that the target's measurement falls into the validation gate; 1 is no gate.
    clutter_density : float, default 0.0
        False measurements per scan and unit volume of the measurement space.
    detection_probability : float, default 1.0
        Probability that the target, where it exists, is measured in a scan.
    survival_probability : float, optional
        Probability that a target is still there at the next scan; None: 1 without clutter, else 0.99.
    initial_existence : float, optional
        Probability of existence in the model's initial state; None: 1 without clutter, else 0.
    birth_odds : float, default 0.01
        Odds that a measurement begins a track, against clutter.
    speed : float or array-like, optional
        Standard deviation of what a first measurement does not determine (velocities), a number or one per state;
        needed in clutter where the model's initialization is diffuse.
    confirm_above : float, default 0.95
        Probability at which a track is confirmed.
    lose_below : float, default 0.1
        Probability below which a track is lost.

    References
    ----------
    Bar-Shalom and Tse (1975); Musicki, Evans and Stankovic (1994).

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> variances = {"spectral_density": 0.01, "observation_variance": 0.04}
    >>> tracker = Tracker(dim=2, **variances, clutter_density=0.01, detection_probability=0.9, speed=2.0)
    >>> rng, scans = np.random.default_rng(0), []
    >>> for t in range(20):
    ...     scans.append(np.vstack([[t, 0.5 * t] + 0.2 * rng.normal(size=2), rng.uniform(-20, 20, (4, 2))]))
    >>> track = tracker.run(scans)
    >>> track.mean[-1].round(0), track.found, track.lost
    (array([19., 10.,  1.,  1.]), array([3]), array([], dtype=int64))
    """

    saved_attributes = ("spectral_density_", "observation_variance_")

    def __init__(
        self,
        model: Any = None,
        *,
        dim: int = 2,
        dt: float = 1.0,
        spectral_density: ArrayLike = 1.0,
        observation_variance: ArrayLike = 1.0,
        gate: float = 0.99,
        clutter_density: float = 0.0,
        detection_probability: float = 1.0,
        survival_probability: float | None = None,
        initial_existence: float | None = None,
        birth_odds: float = 0.01,
        speed: Any = None,
        confirm_above: float = 0.95,
        lose_below: float = 0.1,
    ) -> None:
        self.model = model
        self.dim = dim
        self.dt = dt
        self.spectral_density = spectral_density
        self.observation_variance = observation_variance
        self.gate = gate
        self.clutter_density = clutter_density
        self.detection_probability = detection_probability
        self.survival_probability = survival_probability
        self.initial_existence = initial_existence
        self.birth_odds = birth_odds
        self.speed = speed
        self.confirm_above = confirm_above
        self.lose_below = lose_below

    # ------------------------------------------------------------------ the model

    @property
    def motion(self) -> Any:
        """The state-space model of the target's motion and its measurement."""
        if self.model is not None:
            return self.model
        return LinearGaussian.constant_velocity(self.dim, self.dt, *self._variances)

    @property
    def _variances(self) -> tuple[Any, Any]:
        learned = vars(self)
        return (
            learned.get("spectral_density_", self.spectral_density),
            learned.get("observation_variance_", self.observation_variance),
        )

    @property
    def association(self) -> DataAssociation:
        """The data association filter with these settings."""
        return self._filter(self.motion)

    def _filter(self, motion: Any) -> DataAssociation:
        names = (
            "clutter_density",
            "detection_probability",
            "gate",
            "survival_probability",
            "initial_existence",
            "birth_odds",
            "speed",
            "confirm_above",
            "lose_below",
        )
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

    def run(self, scans: Any, times: ArrayLike | None = None) -> Track:
        """Filter many scans: the track given the scans up to each.

        Parameters
        ----------
        scans : sequence of array-like (n, p)
            Measurements of each scan; None is a missing scan.

        Returns
        -------
        Track
            The track.
        """
        listed = _listed(scans)
        filter_, t = self._timed(times, len(listed))
        return _track(filter_, *_followed(filter_, listed, t))

    def smooth(self, scans: Any, times: ArrayLike | None = None) -> Track:
        """Smoothed track given all scans; hypotheses that were merged into one Gaussian stay so.

        Parameters
        ----------
        scans : sequence of array-like (n, p)
            Measurements of each scan; None is a missing scan.

        Returns
        -------
        Track
            The smoothed track.
        """
        listed = _listed(scans)
        filter_, t = self._timed(times, len(listed))
        beliefs, increments = _followed(filter_, listed, t)
        track = _track(filter_, beliefs, increments)
        if listed and filter_.clutter_density == 0 and not isinstance(filter_._here, GaussianFilter):
            found = _kalman_smoothed(filter_, listed, t)
            return track.replace(mean=found.mean, covariance=found.covariance)
        mean, covariance = np.array(track.mean), np.array(track.covariance)
        for i, state in _backward(filter_, beliefs, t):
            mean[i], covariance[i] = state.mean, state.covariance
        return track.replace(mean=mean, covariance=covariance)

    # ----------------------------------------------------------------------- live

    @property
    def model_(self) -> DataAssociation:
        """The filter that `lk.follow` uses."""
        return self.association

    def initial_belief(self) -> TrackBelief:
        """The belief before the first scan."""
        return self.association.initial_belief()

    def predict(self, belief: TrackBelief, inputs: SequencesLike | None = None) -> TrackBelief:
        """Prediction step: the belief at the next scan."""
        return self.association.predict(belief, inputs)

    def update(
        self, belief: TrackBelief, y: ArrayLike, inputs: SequencesLike | None = None
    ) -> tuple[TrackBelief, float]:
        """Update step: the belief given a scan, and log p(scan | all before).

        Parameters
        ----------
        y : array-like (n, p) or None
            Measurements of the scan; None is a missing scan.
        """
        return self.association.update(belief, y, inputs)

    # ------------------------------------------------------------------- learning

    def fit(
        self, tracks: SequencesLike, times: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn spectral density and observation variance per axis from tracks (T, dim) without clutter.

        Maximum likelihood of the constant-velocity model, axis by axis; NaN where missing.

        Parameters
        ----------
        tracks : sequences
            A Ragged, a list of arrays (T_i, dim), or one array; NaN is a missing value.
        sample_weight : array-like (n,), optional
            Weight per track: k equals k copies.
        """
        if self.model is not None:
            remedy = "fit the model with lk.LinearGaussianDensity, and pass its model_"
            raise DomainError(sentence(f"{ME}.fit", "the model must be None", type(self.model).__name__, remedy))
        seqs = Ragged.of(tracks)
        if not len(seqs.values) or seqs.values.ndim != 2 or seqs.values.shape[1] != self.dim:
            raise ShapeError(sentence(f"{ME}.fit", f"tracks must have shape (T, {self.dim})", seqs.values.shape))
        clock_times = None if times is None else clocks(times, seqs, ME)
        w = weights(sample_weight, len(seqs), ME)
        found = [self._axis(seqs, clock_times, np.ones(len(seqs)) if w is None else w, j) for j in range(self.dim)]
        self.spectral_density_, self.observation_variance_ = np.array(found).T.copy()
        return self

    def _axis(self, seqs: Ragged, clock_times: Ragged | None, w: Array, j: int) -> tuple[float, float]:
        y = seqs.map(lambda frames: np.asarray(frames, dtype=np.float64)[:, j : j + 1])
        first = _guess(y, w, self.dt if clock_times is None else _typical_step(clock_times))

        def cost(logs: Array) -> float:
            q, r = first * np.exp(np.clip(logs, -WIDEST, WIDEST))
            if clock_times is None:
                found = LinearGaussian.constant_velocity(1, self.dt, q, r).log_prob(y)
            else:
                found = LinearSDE.constant_velocity(1, q, r).log_prob(y, clock_times)
            return -float(w @ found)

        best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6, "maxiter": 400})
        q, r = first * np.exp(np.clip(best.x, -WIDEST, WIDEST))
        return float(q), float(r)

    def describe(self) -> Description:
        """The motion model, the measurements, and when a track is confirmed."""
        rule = self.association
        learned = ", noise estimated from tracks" if hasattr(self, "spectral_density_") else ""
        text = [f"a tracker of one target in {counted(rule.model.dim, 'dimension')}{learned}"]
        if rule.clutter_density == 0:
            text.append("without clutter: every measurement is from the target")
        else:
            text.append(f"in clutter of {rule.clutter_density:g} per scan and unit of volume")
            text.append(f"gate {rule.gate:g}, birth odds {rule.birth_odds:g}")
        survival = f"survival probability {rule.survival_probability:g}"
        text.append(f"detection probability {rule.detection_probability:g} per scan, {survival}")
        bounds = f"reaches {rule.confirm_above:g}, and lost below {rule.lose_below:g}"
        text.append(f"a track is confirmed when P(exists) {bounds}")
        motion = rule.model.describe()
        return Description(type(self).__name__, text, sections=[motion.plus(title=f"motion model: {motion.title}")])

    def check_state(self) -> None:
        """Validate the fitted state after a file was read."""
        for name in self.saved_attributes:
            a = vars(self).get(name)
            if a is not None and not (isinstance(a, np.ndarray) and a.shape == (self.dim,) and (a >= 0).all()):
                raise DataError(sentence(ME, f"{name} must be one variance per axis", repr(a)))
        _ = self.association


def _listed(scans: Any) -> list[Any]:
    """Scans as a list; an array (T, p) has one measurement each."""
    scans = scans.to_numpy() if hasattr(scans, "to_numpy") else scans  # a data frame has one measurement per row
    if isinstance(scans, np.ndarray) and scans.ndim == 2 and scans.dtype != object:
        return [row[None] for row in scans]
    if isinstance(scans, Ragged):
        return list(scans)
    if isinstance(scans, str | bytes) or not hasattr(scans, "__iter__"):
        raise DataError(sentence(ME, "scans must be a list of arrays (n, p)", type(scans).__name__))
    return list(scans)


def _followed(filter_: DataAssociation, listed: list[Any], t: Array | None) -> tuple[list[TrackBelief], list[float]]:
    """The belief after every scan, and log p(scan | all before)."""
    belief, out, increments = None, [], []
    for i, scan in enumerate(listed):
        try:
            time = None if t is None else t[i]
            belief = filter_.initial_belief() if belief is None else filter_.predict(belief, time)
            belief, increment = filter_.update(belief, scan, time)
        except (DataError, ShapeError) as error:
            raise type(error)(f"Scan {i}: {error}") from error
        out.append(belief)
        increments.append(increment)
    return out, increments


def _track(filter_: DataAssociation, beliefs: list[TrackBelief], increments: list[float]) -> Track:
    d, T = filter_.states, len(beliefs)
    return Track.trusted(
        mean=np.array([b.mean for b in beliefs]).reshape(T, d),
        covariance=np.array([b.covariance for b in beliefs]).reshape(T, d, d),
        exists=np.array([b.exists for b in beliefs]), confirmed=np.array([b.confirmed for b in beliefs], dtype=bool),
        association=tuple(b.association for b in beliefs), log_prob=np.array(increments, dtype=np.float64),
    )  # fmt: skip


def _backward(filter_: DataAssociation, beliefs: list[TrackBelief], t: Array | None) -> Iterator[tuple[int, Any]]:
    """Smoothed hypotheses from the last scan to the first, each back to where its track began."""
    hypothesis, later = -1, beliefs[-1].best if beliefs else None
    for i in range(len(beliefs) - 1, -1, -1):
        belief = beliefs[i]
        if hypothesis < 0:
            hypothesis, later = (0, belief.best) if belief.states else (-1, None)
        elif later is not None:
            model = None if t is None else filter_.model.at([t[i], t[i + 1]])
            later = filter_.corrected(belief.states[hypothesis], later, model)
        if later is not None and hypothesis >= 0:
            yield i, later
            hypothesis = int(belief.parents[hypothesis])


def _kalman_smoothed(filter_: DataAssociation, listed: list[Any], t: Array | None) -> Any:
    """Kalman smoother: without clutter a track is a sequence."""
    p = filter_.model.dim
    measured = [filter_.scan(scan) for scan in listed]
    frames = np.array([np.full(p, np.nan) if z is None or not len(z) else z[0] for z in measured])
    return filter_.model.smooth(frames) if t is None else filter_.model.smooth(frames, t)


def _typical_step(clock_times: Ragged) -> float:
    steps = np.concatenate([np.diff(t) for t in clock_times] or [np.ones(1)])
    return float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0


def _guess(y: Ragged, w: Array, dt: float) -> Array:
    """Initial guess of acceleration and noise from second differences."""
    second = [np.diff(np.asarray(one)[:, 0], 2) for one in y]
    values = np.concatenate([x[np.isfinite(x)] for x, v in zip(second, w, strict=True) if v > 0] or [np.empty(0)])
    if len(values) < 3:
        remedy = "give more of them"
        raise DataError(
            sentence(f"{ME}.fit", "tracks with at least three consecutive measurements are needed", "fewer", remedy)
        )
    size = float(np.median(values**2)) or float(np.mean(values**2))
    if not size > 0:
        raise DataError(sentence(f"{ME}.fit", "tracks must not be exactly straight", "no noise at all"))
    return np.array([size / (2 * dt**3), size / 12])
