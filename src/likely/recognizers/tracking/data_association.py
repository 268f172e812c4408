"""Integrated probabilistic data association (IPDA): single-target tracking in clutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaincinv

from likely.core import declared
from likely.core.arrays import Array, Index, numbers
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.numerics import covariance_roots
from likely.statespace.continuous.linear_sde import LinearSDE
from likely.statespace.continuous.observation_times import moments
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.linear.state_belief import StateBelief
from likely.statespace.nonlinear.gaussian_filter import GaussianFilter, turned
from likely.statespace.nonlinear.joint_gaussian import Linear, backward_gain, joint, root_of, triangular

ME = "DataAssociation"
LEAST_PROBABILITY = 1e-5  # hypotheses less probable than this are pruned
MOST = 64  # hypotheses that are kept
LOG_LEAST_PROBABILITY = float(np.log(LEAST_PROBABILITY))
SAME = 1.0  # squared Mahalanobis distance below which hypotheses are merged


@dataclass(frozen=True, eq=False)
class TrackBelief(Value):
    """Belief state of a tracker: Gaussian hypotheses with their probabilities, best first; the rest is P(no target).

    `mean` and `covariance` are those of the best hypothesis, NaN while there is none.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> radar = DataAssociation(walk, clutter_density=0.1, initial_existence=0.5)
    >>> belief, log_prob = radar.update(radar.initial_belief(), [0.2])
    >>> round(belief.exists, 3), belief.association.round(3)
    (0.741, array([0.004, 0.996]))
    """

    # one StateBelief per hypothesis
    states: Annotated[tuple[Any, ...], declared.perhaps(declared.value("a belief", "covariance", "log_prob"))]
    weights: Annotated[Array, declared.numbers("?", 0)]  # (H,): P(the target exists and is there)
    # (H,): the hypothesis before that each one continues; −1 − i where measurement i began it
    parents: Annotated[Index, declared.numbers(dtype=np.int64)]
    # (n + 1,): last scan, best hypothesis: P(none is from the target), P(measurement i is)
    association: Annotated[Array, declared.numbers("n", 0)]
    confirmed: bool  # True for a confirmed track that is not yet lost
    time: int  # number of the frame
    moment: Annotated[float | None, declared.maybe(declared.number())]  # its time; None if unknown
    size: Annotated[int, declared.count]  # entries of a state

    @property
    def exists(self) -> float:
        """P(there is a target | all scans)."""
        return float(self.weights.sum())

    @property
    def best(self) -> Any:
        """The most probable hypothesis, a `StateBelief`; None while there is none."""
        return self.states[0] if self.states else None

    @property
    def mean(self) -> Array:
        """Mean of the best hypothesis (d,)."""
        return np.asarray(self.states[0].mean) if self.states else np.full(self.size, np.nan)

    @property
    def covariance(self) -> Array:
        """Covariance of the best hypothesis (d, d)."""
        return np.asarray(self.states[0].covariance) if self.states else np.full((self.size, self.size), np.nan)

    @property
    def status(self) -> str:
        """ "none", "tentative" or "confirmed"."""
        return "confirmed" if self.confirmed else "tentative" if self.states else "none"


class Possible(NamedTuple):
    """Associations of a scan with one hypothesis, before they are merged: exact, given the hypothesis."""

    shares: Array  # (n + 1,): association probabilities of none, and of measurement i
    states: tuple[Any, ...]  # updated by the measurements within the gate, after the prediction itself
    inside: Index  # indices of these measurements
    log_ratio: float  # log p(scan | the target is there) / p(scan | clutter alone)

    @property
    def used(self) -> Index:
        """Indices of the states among the association probabilities."""
        return np.concatenate([[0], self.inside + 1]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class DataAssociation(Value):
    """Integrated probabilistic data association (IPDA): a target that may not exist, in Poisson clutter.

    (Bar-Shalom and Tse 1975; Musicki, Evans and Stankovic 1994.)

    With N_i the predictive density of measurement i, P_D = `detection_probability`, P_G = `gate`,
    λ = `clutter_density`:
    p(scan | there) / p(scan | clutter) = 1 − P_D P_G + P_D Σ_i N_i / λ over the measurements within the gate. The
    terms are the association probabilities; the resulting mixture is replaced by a Gaussian by moment matching.
    A measurement may also begin a track, with odds `birth_odds` against clutter.

    - **model**: a `LinearGaussian`, a `LinearSDE` (then the inputs of a scan are its time), or an
      `ExtendedKalmanFilter`, `UnscentedKalmanFilter`, … for sensors that are not linear
    - **clutter_density** λ: false measurements per scan and unit volume of the measurement space. 0: every measurement
      is from the target, nothing is gated, and this is the model's own filter; an empty scan is then informative
      only where `detection_probability` < 1
    - **detection_probability**: that the target, where it exists, is measured in a scan
    - **gate**: probability that its measurement falls into the validation gate; 1 is no gate
    - **survival_probability**: that a target is still there at the next scan; None: 1 without clutter, else 0.99
    - **initial_existence**: probability of existence in the model's initial state; None: 1 without clutter, else 0
    - **speed**: standard deviation of what a first measurement does not determine (velocities), a number or one per
      state; needed in clutter where the model's initialization is diffuse
    - **confirm_above, lose_below**: the probability at which a track is confirmed, and that below which it is lost

    A scan is (n, p), n = 0 for an empty one; None is a missing scan. `update` returns log p(scan | all before) up to
    the constant −λ·volume of the Poisson distribution.
    """

    model: Annotated[Any, declared.value("a filter", "initial_belief", "predict", "update")]
    clutter_density: float = 0.0
    detection_probability: float = 1.0
    gate: float = 0.99
    survival_probability: float = None  # type: ignore[assignment]
    initial_existence: float = None  # type: ignore[assignment]
    birth_odds: float = 0.01
    speed: Annotated[Any, declared.maybe(declared.one_or_each)] = None
    confirm_above: float = 0.95
    lose_below: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.model, LinearGaussian | LinearSDE | GaussianFilter):
            expected = "model must be a LinearGaussian, a LinearSDE or a Gaussian filter such as ExtendedKalmanFilter"
            raise DomainError(sentence(ME, expected, type(self.model).__name__))
        if inputs := getattr(self.model, "n_inputs", 0):
            raise DomainError(sentence(ME, "model must have no inputs", inputs))
        no_clutter = not _number(self.clutter_density, "clutter_density", 0.0, np.inf, True)
        survival = (1.0 if no_clutter else 0.99) if self.survival_probability is None else self.survival_probability
        exists = (1.0 if no_clutter else 0.0) if self.initial_existence is None else self.initial_existence
        for name, value in (
            ("detection_probability", self.detection_probability),
            ("gate", self.gate),
            ("survival_probability", survival),
        ):
            _number(value, name, 0.0, 1.0)
        for name, value in (
            ("initial_existence", exists),
            ("birth_odds", self.birth_odds),
            ("lose_below", self.lose_below),
        ):
            _number(value, name, 0.0, 1.0, True)
        _number(self.confirm_above, "confirm_above", float(self.lose_below), 1.0)
        self._set(survival_probability=float(survival), initial_existence=float(exists))
        if no_clutter and not exists:
            raise DomainError(
                sentence(
                    ME,
                    "without clutter initial_existence must be above 0",
                    exists,
                    "every measurement is from the target",
                )
            )
        if not no_clutter:
            self._refuse_boundless()

    def _refuse_boundless(self) -> None:
        """Refuse an unbounded prior: every measurement would lie in its gate."""
        diffuse = getattr(self.model, "diffuse", None) is not None
        if diffuse and self.speed is None:
            remedy = "give speed, the standard deviation of velocities, or a model with a proper initial distribution"
            raise DomainError(
                sentence(
                    ME, "a track in clutter needs a proper initial distribution", "a diffuse initialization", remedy
                )
            )
        if diffuse and self.initial_existence:
            remedy = "give the model an initial mean and covariance, or leave initial_existence at 0"
            raise DomainError(
                sentence(
                    ME, "a target that exists needs a proper initial distribution", "a diffuse initialization", remedy
                )
            )
        if self.speed is not None:
            s = numbers(self.speed, ME)
            fits = s.shape == () or (s.ndim == 1 and len(s) == self.states)
            if not fits or not ((s > 0) & (s < np.inf)).all():
                raise DomainError(sentence(ME, "speed must be positive, a number or one per state", self.speed))

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> TrackBelief:
        """Belief state before the first scan."""
        states, weights = ((self._first,), [self.initial_existence]) if self.initial_existence else ((), [])
        return TrackBelief.trusted(
            states=states, weights=np.array(weights, dtype=np.float64), parents=np.full(len(states), -1),
            association=np.ones(1), confirmed=bool(self.initial_existence >= self.confirm_above),
            time=0, moment=None, size=self.states,
        )  # fmt: skip

    @property
    def states(self) -> int:
        """Number of entries of the state."""
        return int(self._first.mean.size)

    @cached_property
    def _first(self) -> StateBelief:
        """The model's own initial state."""
        found: StateBelief = self._here.initial_belief()
        return found

    @property
    def continuous_time(self) -> bool:
        """Whether the inputs of a scan are its time."""
        return isinstance(self.model, LinearSDE)

    def predict(self, belief: TrackBelief, inputs: Any = None) -> TrackBelief:
        """Prediction step to the next scan; with a model in continuous time, to the time `inputs` (None: no step)."""
        if self.continuous_time:
            return belief if inputs is None else self._moved_to(belief, inputs)
        if inputs is not None:
            raise DomainError(sentence(ME, "times need a model in continuous time", type(self.model).__name__))
        return self._predicted(belief, self.model, belief.moment)

    def _moved_to(self, belief: TrackBelief, time: float) -> TrackBelief:
        (t,) = moments([time], ME).tolist()
        if belief.moment is None:
            return belief.replace(moment=t)
        if t < belief.moment:
            raise DataError(sentence(ME, f"times must not fall: the belief is of {belief.moment:g}", f"{t:g}"))
        return self._predicted(belief, self.model.at([belief.moment, t]), t)

    def _predicted(self, belief: TrackBelief, model: Any, moment: float | None) -> TrackBelief:
        states = tuple(model.predict(state) for state in belief.states)
        here = np.arange(len(states))
        return belief.replace(
            states=states,
            weights=belief.weights * self.survival_probability,
            parents=here,
            time=belief.time + 1,
            moment=moment,
        )

    def update(self, belief: TrackBelief, y: Any, inputs: Any = None) -> tuple[TrackBelief, float]:
        """Update step: the belief given a scan, and log p(scan | all before), up to −λ·volume."""
        if self.continuous_time:
            if inputs is None:
                remedy = "give inputs=, the time of each"
                raise DataError(sentence(ME, "with a model in continuous time a scan needs its time", "none", remedy))
            if belief.moment != moments([inputs], ME)[0]:  # not yet predicted to this time
                belief = self._moved_to(belief, inputs)
        return self.seen(belief, y)

    def seen(self, belief: TrackBelief, scan: Any) -> tuple[TrackBelief, float]:
        """Update step where the belief is already predicted to this time."""
        z = self.scan(scan)
        if z is None:
            return belief.replace(association=np.ones(1)), 0.0
        return self._alone(belief, z) if not self.clutter_density else self._among(belief, z)

    def scan(self, y: Any) -> Array | None:
        """Validate measurements (n, p); None for a missing scan."""
        if y is None:
            return None
        p, z = self._width, numbers(y, ME)
        if z.size == 0:
            return np.empty((0, p or 0))
        p = z.shape[-1] if p is None else p
        z = z.reshape(-1, p) if z.ndim == 1 and (p == 1 or z.size == p) else z
        if z.ndim != 2 or z.shape[1] != p:
            raise ShapeError(sentence(ME, f"a scan must have shape (n, {p})", z.shape, "one row per measurement"))
        return self._checked(z)

    def _checked(self, z: Array) -> Array | None:
        if np.isinf(z).any():
            raise DataError(sentence(ME, "measurements must be finite", z[np.isinf(z).any(axis=1)][0].tolist()))
        z = z[~np.isnan(z).all(axis=1)]
        if not len(z):
            return None
        if self.clutter_density and np.isnan(z).any():
            remedy = "leave the measurement out, or use clutter_density=0"
            raise DataError(
                sentence(ME, "in clutter a measurement must be complete", "one with missing values", remedy)
            )
        if not self.clutter_density and len(z) > 1:
            remedy = "give clutter_density, the density of false measurements"
            raise DataError(sentence(ME, "without clutter a scan has one measurement at most", len(z), remedy))
        return z

    @property
    def _width(self) -> int | None:
        """Columns of a measurement, if the model knows; a nonlinear model does not."""
        return getattr(self.model, "dim", None)

    # -------------------------------------------------------------- no clutter

    def _alone(self, belief: TrackBelief, z: Array) -> tuple[TrackBelief, float]:
        """Update without clutter: the measurement is from the target."""
        w, state = belief.weights[0] if len(belief.weights) else 0.0, belief.best
        if not len(z):
            missed = 1.0 if self.detection_probability == 1 else 1.0 - self.detection_probability
            total = 1.0 - w + w * missed
            return self._with(belief, (state,), np.array([w * missed / total]), np.ones(1)), float(np.log(total))
        state, log_prob = self._here.update(state, z[0])
        if log_prob == -np.inf:
            return belief, log_prob
        return self._with(belief, (state,), np.ones(1), np.array([0.0, 1.0])), float(
            np.log(w * self.detection_probability)
        ) + log_prob

    # ----------------------------------------------------------------- clutter

    def _among(self, belief: TrackBelief, z: Array) -> tuple[TrackBelief, float]:
        """Update in clutter: every hypothesis, and new ones from measurements, each with its evidence."""
        hypotheses = [self.possible(state, z) for state in belief.states]
        states = [
            collapsed(association.shares[association.used], association.states, self._angles)
            for association in hypotheses
        ]
        with np.errstate(divide="ignore"):
            log_none = np.log(max(1.0 - belief.exists, 0.0))
            logs = np.log(belief.weights) + [association.log_ratio for association in hypotheses]
        none, log_births, births = (
            self._beginnings(z, belief.time) if log_none > LOG_LEAST_PROBABILITY else (0.0, np.empty(0), [])
        )
        logs = np.concatenate([logs, log_none + log_births])
        total = float(np.logaddexp.reduce([*logs, log_none + none]))
        if total == -np.inf:
            return belief, -np.inf
        parents = np.concatenate([np.arange(len(states)), -1 - np.arange(len(births))])
        merged = _pruned_and_merged([*states, *births], np.exp(logs - total), parents, self._angles)
        log_prob = len(z) * float(np.log(self.clutter_density)) + total
        return self._with(
            belief, tuple(merged[0]), merged[1], _of_best(merged[2], hypotheses, len(z)), merged[2]
        ), log_prob

    def possible(self, state: StateBelief, scan: Any) -> Possible:
        """Associations of a scan with one hypothesis: exact, given the hypothesis.

        >>> import likely as lk
        >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
        ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
        >>> rule = DataAssociation(walk, clutter_density=0.1, detection_probability=0.9)
        >>> rule.possible(walk.initial_belief(), [[0.0], [9.0]]).shares.round(3)
        array([0.041, 0.959, 0.   ])
        """
        z = np.asarray(scan)
        model = self._here
        inside = self._inside(state, z)
        found = [model.update(state, z[i]) for i in inside]
        with np.errstate(divide="ignore"):
            logs = [np.log1p(-self.detection_probability * self.gate)]
            logs += [
                np.log(self.detection_probability) + log_prob - np.log(self.clutter_density) for _, log_prob in found
            ]
        total = float(np.logaddexp.reduce(logs))
        association = Possible(np.zeros(len(z) + 1), (state, *(s for s, _ in found)), inside, total)
        association.shares[association.used] = np.exp(np.array(logs) - total) if total > -np.inf else 1.0 / len(logs)
        return association

    def _inside(self, state: StateBelief, z: Array) -> Index:
        """Indices of the measurements in the validation gate: the smallest region of probability P_G."""
        if not len(z):
            return np.empty(0, dtype=np.intp)
        if self.gate == 1:
            return np.arange(len(z))
        d2 = self.distances(state, z)
        return np.flatnonzero(d2 <= 2.0 * gammaincinv(z.shape[1] / 2, self.gate))  # the quantile of χ²

    def distances(self, state: StateBelief, z: Any) -> Array:
        """Squared Mahalanobis distances (n,) of measurements from the prediction."""
        mean, root = self.expected(state)
        off = turned(np.asarray(z) - mean, self._wrap)
        if not np.diagonal(root).all():
            expected, remedy = "measurements must have noise", "give the model a positive observation covariance"
            raise DomainError(sentence("DataAssociation", expected, "a singular covariance", remedy))
        white = solve_triangular(root, off.T, trans="T", check_finite=False)
        with np.errstate(over="ignore"):  # an overflow is outside of any gate
            return np.asarray((white * white).sum(axis=0))

    def expected(self, state: StateBelief) -> tuple[Array, Array]:
        """Predictive mean (p,) and upper triangular root (p, p) of the covariance of a measurement."""
        model = self._here
        if isinstance(model, GaussianFilter):
            near = model.predicted_observation(state.mean, state.root, int(state.time), None)
            return near.mean, near.root
        C, R = model.matrices.C, model.matrices.R
        C, R = (a[0] if len(a) == 1 else a[state.time] for a in (C, R))
        return C @ state.mean, triangular(np.concatenate([state.root @ C.T, R]))

    def _beginnings(self, z: Array, time: int) -> tuple[float, Array, list[StateBelief]]:
        """Track initiation: log ratio of none, log ratios (n,) of measurement i, and their states."""
        if not self.birth_odds or not len(z):
            return 0.0, np.full(len(z), -np.inf), [self._first] * len(z)
        found = [self._begin.update(self._begin.initial_belief().replace(time=time), one) for one in z]
        states = [state for state, _ in found]
        if self._begin.initial_belief().diffuse_part is not None:  # anywhere: one measurement is as good as another
            odds = np.array([1.0, *np.full(len(z), self.birth_odds)])
            logs = np.log(odds / odds.sum())
            return float(logs[0]), logs[1:], states
        seen = self.birth_odds * self.detection_probability
        with np.errstate(divide="ignore"):
            none = float(np.log1p(-seen))
        return none, np.array([np.log(seen) + log_prob - np.log(self.clutter_density) for _, log_prob in found]), states

    # ------------------------------------------------------------------ inside

    @cached_property
    def _here(self) -> Any:
        """The measurement model, for any step."""
        return self.model.at([0.0]) if isinstance(self.model, LinearSDE) else self.model

    @cached_property
    def _begin(self) -> Any:
        """The model of a first measurement: diffuse in what it determines, variance `speed`² elsewhere."""
        model = self._here
        diffuse = getattr(model, "diffuse", None)
        if diffuse is None:
            return model
        C = model.observation if model.observation.ndim == 2 else model.observation[0]
        _, s, vt = np.linalg.svd(C @ diffuse)
        rank = int((s > 1e-9 * s.max(initial=0.0)).sum())
        shown, hidden = diffuse @ vt[:rank].T, diffuse @ vt[rank:].T
        projection = hidden @ np.linalg.pinv(hidden)
        wide = projection * np.broadcast_to(numbers(self.speed, ME), len(projection)) ** 2 @ projection
        return model.replace(initial_covariance=model.initial_covariance + (wide + wide.T) / 2, diffuse=shown)

    @property
    def _wrap(self) -> Sequence[int]:
        return getattr(self.model, "wrap", ())

    @property
    def _angles(self) -> Sequence[int]:
        return getattr(self.model, "wrap_state", ())

    def _with(self, belief: TrackBelief, states: tuple[Any, ...], weights: Array, association: Array,
              parents: Index | None = None) -> TrackBelief:  # fmt: skip
        """The belief after a scan; a track is confirmed at `confirm_above`, and lost below `lose_below`."""
        parents = belief.parents if parents is None else parents
        best = float(weights[0]) if len(weights) else 0.0
        goes_on = belief.confirmed and len(weights) > 0 and parents[0] == 0 and best >= self.lose_below
        return belief.replace(
            states=states, weights=weights, parents=parents, association=association,
            confirmed=bool(best >= self.confirm_above or goes_on),
        )  # fmt: skip

    # --------------------------------------------------------------- smoothing

    def corrected(self, state: StateBelief, later: StateBelief, model: Any = None) -> StateBelief:
        """Rauch–Tung–Striebel smoothing step: a hypothesis given the smoothed one of the next scan."""
        model = self.model if model is None else model
        if isinstance(model, GaussianFilter):
            return model.corrected(state, later, None)[0]
        A, N = model.matrices.A, model.matrices.N
        A, N = (a[0] if len(a) == 1 else a[state.time + 1] for a in (A, N))
        mean = A @ state.mean
        S, C, rest = joint(Linear(mean, state.root @ A.T, N, np.abs(mean)), state.root)
        gain = backward_gain(S, C)
        root = triangular(np.concatenate([rest, later.root @ gain]))
        return state.replace(mean=state.mean + (later.mean - mean) @ gain, root=root)


def collapsed(shares: Any, states: Sequence[StateBelief], angles: Sequence[int] = ()) -> StateBelief:
    """Moment matching of a Gaussian mixture: m = Σ β_i m_i, P = Σ β_i (P_i + (m_i − m)(m_i − m)ᵀ).

    >>> one = StateBelief([0.0], [[1.0]])
    >>> collapsed([0.5, 0.5], [one, StateBelief([2.0], [[1.0]])]).covariance
    array([[2.]])
    """
    if len(states) == 1:
        return states[0]
    b = np.asarray(shares, dtype=np.float64)
    origin = states[0].mean
    off = turned(np.stack([s.mean for s in states]) - origin, angles)
    shift = b @ off / b.sum()
    size = np.sqrt(b / b.sum())
    rows = [size[i] * s.root for i, s in enumerate(states)]
    root = triangular(np.concatenate([*rows, size[:, None] * (off - shift)]))
    return states[0].replace(mean=turned(origin + shift, angles), root=root)


def _of_best(parents: Index, hypotheses: list[Possible], n: int) -> Array:
    """Association probabilities (n + 1,) of the best hypothesis."""
    if len(parents) and parents[0] >= 0:
        return hypotheses[parents[0]].shares
    shares = np.zeros(n + 1)
    shares[-parents[0] if len(parents) else 0] = 1.0  # the measurement that began it, or nothing
    return shares


def _pruned_and_merged(
    states: list[Any], weights: Array, parents: Index, angles: Sequence[int]
) -> tuple[list[Any], Array, Index]:
    """Prune and merge hypotheses: sorted by probability, improbable ones dropped, similar ones merged."""
    remaining = [int(i) for i in np.argsort(-weights, kind="stable") if weights[i] > LEAST_PROBABILITY]
    out: list[tuple[Any, float, int]] = []
    while remaining and len(out) < MOST:
        first, *rest = remaining
        group = [first, *_similar(states, first, rest, angles)]
        share = weights[group]
        out.append((collapsed(share, [states[i] for i in group], angles), float(share.sum()), int(parents[first])))
        remaining = [i for i in rest if i not in group]
    order = sorted(range(len(out)), key=lambda i: -out[i][1])
    return (
        [out[i][0] for i in order], np.array([out[i][1] for i in order], dtype=np.float64),
        np.array([out[i][2] for i in order], dtype=np.intp),
    )  # fmt: skip


def _similar(states: list[Any], first: int, rest: list[int], angles: Sequence[int]) -> list[int]:
    """Hypotheses within one standard deviation of the first."""
    if not rest:
        return []
    off = turned(np.stack([states[i].mean for i in rest]) - states[first].mean, angles)
    root = states[first].root
    if not (np.abs(root.diagonal()) > 0).all():
        root = root_of(covariance_roots.square(root) + 1e-12 * np.diag(np.maximum(states[first].variance, 1e-300)))
    white = solve_triangular(root, off.T, trans="T", check_finite=False)
    with np.errstate(over="ignore"):
        return [i for i, d2 in zip(rest, (white * white).sum(axis=0), strict=True) if d2 < SAME]


def _number(value: Any, name: str, low: float, high: float, closed: bool = False) -> float:
    """Validate a number above low (or from low on), at most high."""
    valid = isinstance(value, Real) and not isinstance(value, bool)
    if not (valid and (low <= value if closed else low < value) and value <= high and value < np.inf):
        bound = f"from {low:g} on" if closed else f"above {low:g}"
        upper = "" if high == np.inf else f", at most {high:g}"
        raise DomainError(sentence(ME, f"{name} must be a number {bound}{upper}", value))
    return float(value)
