"""Linear-Gaussian state-space model: Kalman filter, smoother, forecasts, simulation, and EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.cluster.kmeans.kmeans_plus_plus import standardized
from likely.core import declared
from likely.core.arrays import Array, SequencesLike, check_integer, numbers, parameter
from likely.core.columns import Columns
from likely.core.covariates import FRAMES
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.ragged import Ragged, is_single_sequence
from likely.distributions.distribution import Distribution
from likely.hmm.decoding import SkippedFrames, warn_of_skipped
from likely.mixture.embedding import by_thirds, dense, embedded
from likely.numerics import covariance_roots
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_em, linear_simulation, predicted_observations
from likely.statespace.linear.diffuse_initialization import DiffusePart, diffuse_moments
from likely.statespace.linear.fixed_lag_smoother import fixed_lag_part
from likely.statespace.linear.forecast import StateForecast, Steady, forecast_from, steady_state
from likely.statespace.linear.kalman_filter import Series, Smoothed, States, read_only, series_of
from likely.statespace.linear.kalman_smoother import smooth_part
from likely.statespace.linear.linear_description import MATRICES, linear_description
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.result_repr import linear_words
from likely.statespace.linear.state_belief import StateBelief
from likely.statespace.linear.structural_models import StructuralModels
from likely.statespace.nonlinear.state_space import StateSpace, as_distributions

ME = "LinearGaussian"


class SystemMatrices(NamedTuple):
    """Arguments of the compiled loops: matrices with a leading axis, square roots of the covariances."""

    A: Array  # transition
    N: Array  # root of the process covariance
    C: Array  # observation matrix
    R: Array  # root of the observation covariance
    m: Array  # initial mean
    U: Array  # root of the initial covariance
    E: Array  # (d, q): diffuse directions of the initial state


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearGaussian(StructuralModels, Distribution):
    """Linear-Gaussian state-space model: x_t = A x_{t−1} + F u_t + w_t, y_t = C x_t + G u_t + v_t.

    w ~ N(0, BBᵀ) is the process noise, v ~ N(0, DDᵀ) the observation noise (Durbin and Koopman; Herbst 8). One sample
    is a sequence of frames y_t (T, p), with NaN for missing entries; inputs u are known. Covariances may be singular. A
    leading axis of one entry per frame makes any of them time-varying: entry t is that of x_t and y_t (so the first
    transition and process covariance are not used). The initial state, which y_0 observes, is N(initial_mean,
    initial_covariance). `diffuse` (d, q) are directions in which its variance is infinite (exact diffuse
    initialization). Without an initial covariance all directions are diffuse. The constructor checks its arguments;
    `replace`, which learning calls at every step, trusts them.

    Parameters
    ----------
    transition : array-like (d, d) or (T, d, d)
        Transition matrix A.
    process_covariance : array-like (d, d) or (T, d, d)
        Covariance BBᵀ of the process noise.
    observation : array-like (p, d) or (T, p, d)
        Observation matrix C.
    observation_covariance : array-like (p, p) or (T, p, p)
        Covariance DDᵀ of the observation noise.
    initial_mean : array-like (d,), optional
        Mean of the initial state; 0 by default.
    initial_covariance : array-like (d, d), optional
        Covariance of the initial state; without it and `diffuse`, all directions are diffuse.
    control : array-like (d, k) or (T, d, k), optional
        Effect F of the inputs on the state.
    feedthrough : array-like (p, k) or (T, p, k), optional
        Effect G of the inputs on the observation.
    diffuse : array-like (d, q), optional
        Directions in which the variance of the initial state is infinite.

    See Also
    --------
    LinearGaussianDensity : Learns the parameters.
    LinearSDE : The model in continuous time.

    References
    ----------
    Durbin and Koopman (2012); Bishop (2006), chapter 13; Murphy (2012), chapter 18; Herbst and du Preez, lecture notes,
    8.

    Examples
    --------
    >>> import likely as lk
    >>> walk = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> walk.smooth([0.0, np.nan, 3.0]).mean.ravel().round(3).tolist()
    [0.429, 1.286, 2.143]
    """

    transition: Annotated[Array, declared.numbers("d d | T d d")]  # (d, d), or (T, d, d)
    process_covariance: Annotated[Array, declared.numbers("d d | T d d")]  # (d, d), or (T, d, d)
    observation: Annotated[Array, declared.numbers("p d | T p d")]  # (p, d), or (T, p, d)
    observation_covariance: Annotated[Array, declared.numbers("p p | T p p")]  # (p, p), or (T, p, p)
    initial_mean: Annotated[Array, declared.numbers("d")] = None  # type: ignore[assignment]  # (d,)
    initial_covariance: Annotated[Array, declared.numbers("d d")] = None  # type: ignore[assignment]  # (d, d)
    control: Annotated[Array | None, declared.maybe(declared.numbers("d k | T d k"))] = None  # (d, k), or (T, d, k)
    feedthrough: Annotated[Array | None, declared.maybe(declared.numbers("p k | T p k"))] = None  # (p, k), or (T, p, k)
    diffuse: Annotated[Array | None, declared.maybe(declared.numbers("d q"))] = None  # (d, q)

    def __post_init__(self) -> None:
        A = _as_matrix(self.transition, "transition")
        d = A.shape[-1]
        Q, C = _as_matrix(self.process_covariance, "process_covariance"), _as_matrix(self.observation, "observation")
        p = C.shape[-2]
        R = _as_matrix(self.observation_covariance, "observation_covariance")
        F, G = _as_input_matrix(self.control, "control"), _as_input_matrix(self.feedthrough, "feedthrough")
        k = 0 if F is None and G is None else (G if F is None else F).shape[-1]  # type: ignore[union-attr]
        wanted = {
            "transition": (A, d, d),
            "process_covariance": (Q, d, d),
            "observation": (C, p, d),
            "observation_covariance": (R, p, p),
            "control": (F, d, k),
            "feedthrough": (G, p, k),
        }
        for name, (a, *shape) in wanted.items():
            if a is not None and (list(a.shape[-2:]) != shape or 0 in a.shape):
                expected = f"{name} must have shape {tuple(shape)}, or that with a leading axis of one entry per frame"
                raise ShapeError(sentence(ME, expected, a.shape))
        lengths = sorted({len(a) for a, *_ in wanted.values() if a is not None and a.ndim == 3})
        if len(lengths) > 1:
            raise ShapeError(sentence(ME, "time-varying matrices must have the same number of frames", lengths))
        _check_covariances({"process_covariance": Q, "observation_covariance": R})
        mean, covariance, diffuse = _initial(self.initial_mean, self.initial_covariance, self.diffuse, d)
        self._set(
            transition=A,
            process_covariance=Q,
            observation=C,
            observation_covariance=R,
            control=F,
            feedthrough=G,
            initial_mean=mean,
            initial_covariance=covariance,
            diffuse=diffuse,
        )

    @classmethod
    def from_letters(
        cls, A: Any, B: ArrayLike, C: Any, D: ArrayLike, F: Any = None, G: Any = None, initial_mean: Any = None,
        initial_covariance: Any = None,
    ) -> LinearGaussian:  # fmt: skip
        """The model x_t = A x_{t−1} + B w_t + F u_t, y_t = C x_t + D v_t + G u_t with standard normal w and v.

        Parameters
        ----------
        A : array-like (d, d)
            Transition matrix.
        B : array-like (d, m)
            Square root of the covariance of the process noise.
        C : array-like (p, d)
            Observation matrix.
        D : array-like (p, m)
            Square root of the covariance of the observation noise.
        F : array-like (d, k), optional
            Effect of the inputs on the state.
        G : array-like (p, k), optional
            Effect of the inputs on the observation.
        initial_mean : array-like (d,), optional
            Mean of the initial state.
        initial_covariance : array-like (d, d), optional
            Covariance of the initial state.

        Examples
        --------
        >>> LinearGaussian.from_letters([[1.0]], [[2.0]], [[1.0]], [[3.0]]).process_covariance
        array([[4.]])
        """
        B, D = _as_matrix(B, "B"), _as_matrix(D, "D")
        Q, R = B @ np.swapaxes(B, -1, -2), D @ np.swapaxes(D, -1, -2)
        return cls(
            transition=A, process_covariance=Q, observation=C, observation_covariance=R, initial_mean=initial_mean,
            initial_covariance=initial_covariance, control=F, feedthrough=G,
        )  # fmt: skip

    # ------------------------------------------------------------------ shape

    @property
    def states(self) -> int:
        """Dimension d of the state."""
        return int(self.transition.shape[-1])

    @property
    def dim(self) -> int:
        """Number of observed columns p."""
        return int(self.observation.shape[-2])

    @property
    def n_inputs(self) -> int:
        """Number of known inputs k."""
        return next((int(a.shape[-1]) for a in (self.control, self.feedthrough) if a is not None), 0)

    @property
    def length(self) -> int | None:
        """Number of frames of the time-varying matrices; None if all are constant."""
        changing = (
            self.transition,
            self.process_covariance,
            self.observation,
            self.observation_covariance,
            self.control,
            self.feedthrough,
        )
        return next((len(a) for a in changing if a is not None and a.ndim == 3), None)

    members = None

    def __repr__(self) -> str:
        return linear_words(self, MATRICES)

    def describe(self) -> Description:
        """Equations, matrices and initial state."""
        return linear_description(self)

    @property
    def n_parameters(self) -> int:
        """Number of parameters: entries of all matrices, symmetric ones counted once."""
        d, p, k = self.states, self.dim, self.n_inputs
        start = 0 if self.diffuse is not None and self.diffuse.shape[1] == d else d + d * (d + 1) // 2
        inputs = (d if self.control is not None else 0) + (p if self.feedthrough is not None else 0)
        return d * d + d * (d + 1) // 2 + p * d + p * (p + 1) // 2 + k * inputs + start

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the process and observation covariances."""
        return float(min(np.linalg.eigvalsh(a).min() for a in (self.process_covariance, self.observation_covariance)))

    @cached_property
    def matrices(self) -> SystemMatrices:
        """Arguments of the compiled loops."""
        A, C = (
            self.transition.reshape(-1, *self.transition.shape[-2:]),
            self.observation.reshape(-1, self.dim, self.states),
        )
        N, R = (
            covariance_roots.root(a).reshape(-1, *a.shape[-2:])
            for a in (self.process_covariance, self.observation_covariance)
        )
        E = np.zeros((self.states, 0)) if self.diffuse is None else self.diffuse
        made = (A, N, C, R, self.initial_mean, covariance_roots.root(self.initial_covariance), E)
        return SystemMatrices(*(read_only(np.array(a, order="C")) for a in made))

    # ---------------------------------------------------------------- density

    def log_prob(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Array:
        """Log-likelihood log p(y) per sequence (n,).

        With a diffuse initial state it is the limit of log p + (q/2) log κ as the variances κ → ∞ (de Jong 1991). It is
        −inf if an observation has probability 0.
        """
        seqs = Ragged.of(y)
        series = series_of(self, seqs, inputs)
        found = passes.map_parts(lambda part, _: passes.filter_part(self, part, keeps=False).total, series)
        out = np.concatenate([np.empty(0), *found])
        return out.astype(np.float32) if seqs.dtype == np.float32 else out

    def sample(
        self, n: int, rng: Generator, length: ArrayLike | None = None, inputs: SequencesLike | None = None
    ) -> Ragged:
        """Draw n sequences of observations (a Ragged) of the given `length`, one number or one per sequence."""
        return linear_simulation.simulate(self, n, rng, length, inputs)[1]

    def simulate(
        self, n: int, rng: Generator, length: ArrayLike | None = None, inputs: SequencesLike | None = None
    ) -> tuple[Ragged, Ragged]:
        """Draw states and observations of n sequences. Diffuse directions of the initial state are set to its mean.

        Parameters
        ----------
        n : int
            Number of sequences.

        Returns
        -------
        tuple of Ragged
            States (T_i, d) and observations (T_i, p).
        """
        return linear_simulation.simulate(self, n, rng, length, inputs)

    # ------------------------------------------------------------ states

    def filter(self, y: SequencesLike, inputs: SequencesLike | None = None) -> States:
        """Kalman filter: mean and covariance of p(x_t | y_1 … y_t) per frame.

        A frame of probability 0 counts as missing; a warning names the first, and log_prob is −inf.
        """
        series = series_of(self, y, inputs)
        passed: list[SkippedFrames] = []

        def one_part(series_part: Series, before: int) -> tuple[Array, Array, Array]:
            filtered = passes.filter_part(self, series_part)
            passed.extend(passes.skipped_frames(filtered, series_part, before))
            return *passes.filtered_moments(filtered, series_part), filtered.total

        found = _arranged(y, series, passes.map_parts(one_part, series))
        warn_of_skipped(passed, f"{ME}.filter")
        return States(*found)

    def smooth(self, y: SequencesLike, inputs: SequencesLike | None = None, lag: int | None = None) -> Any:
        """Smoother: p(x_t | all frames), as mean, covariance, log_prob, lag_one (Rauch, Tung and Striebel 1965).

        With a `lag`, the fixed-lag smoother p(x_t | y_1 … y_{t + lag}), without lag_one; variances are infinite where
        these frames do not yet determine a diffuse initial state. A frame of probability 0 counts as missing, as in
        `filter`.
        """
        series = series_of(self, y, inputs)
        passed: list[SkippedFrames] = []
        if lag is not None:
            lag = check_integer(lag, f"{ME}.smooth", "lag")

        def one_part(series_part: Series, before: int) -> tuple[Any, ...]:
            if lag is not None:
                filtered, mean, cov = fixed_lag_part(self, series_part, before, lag)
                passed.extend(passes.skipped_frames(filtered, series_part, before))
                return mean, cov, filtered.total
            filtered, mean, cov, lag_one = smooth_part(self, series_part, before)
            passed.extend(passes.skipped_frames(filtered, series_part, before))
            return mean, cov, filtered.total, lag_one

        found = _arranged(y, series, passes.map_parts(one_part, series))
        warn_of_skipped(passed, f"{ME}.smooth")
        return Smoothed(*found) if lag is None else States(*found)

    def draw_states(self, y: SequencesLike, n: int, rng: Generator, inputs: SequencesLike | None = None) -> Any:
        """Simulation smoother: n draws of the states (n, T, d) from p(x | y) of one sequence (Durbin, Koopman 2002).

        Parameters
        ----------
        y : array-like (T, p)
            Observations; NaN is a missing value.
        n : int
            Number of draws.

        Returns
        -------
        ndarray (n, T, d)
            Draws of the states.
        """
        return linear_simulation.simulation_smoother(self, y, n, rng, inputs)

    def observed(self, states: Any, inputs: SequencesLike | None = None) -> States:
        """Mean C x (+ G u) and covariance C P Cᵀ + R of the observations given states of one sequence.

        Parameters
        ----------
        states : States
            Filtered or smoothed states, as `filter` and `smooth` return them.

        Returns
        -------
        States
            Mean (T, p) and covariance (T, p, p).

        Examples
        --------
        >>> m = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[2.0]],
        ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
        >>> m.observed(m.smooth([2.0, 2.0])).mean.ravel().round(3).tolist()
        [1.655, 1.931]
        """
        return predicted_observations.observation_moments(self, states, inputs)

    def impute(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Any:
        """Missing entries of y replaced by their expectation given all observed entries.

        Parameters
        ----------
        y : array-like (T, p) or sequences
            Observations; NaN is a missing value.
        """
        return predicted_observations.imputed(self, y, inputs)

    def forecast(
        self, y: Any = None, steps: int = 1, inputs: Any = None, future: SequencesLike | None = None, belief: Any = None
    ) -> StateForecast:
        """Forecast of states and observations 1 … steps frames after a sequence, or after a `belief`, with intervals.

        `inputs` are those of y, `future` (steps, k) those of the forecast frames.

        Parameters
        ----------
        y : array-like (T, p), optional
            The sequence so far; NaN is a missing value.
        inputs : array-like (T, k), optional
            Known inputs of y.
        belief : StateBelief, optional
            Belief to go on from, instead of y.

        Returns
        -------
        StateForecast
            Distributions of states and observations.
        """
        steps = check_integer(steps, f"{ME}.forecast", "steps", 1)
        if belief is None:
            belief = self.belief_after(y, inputs)
        return forecast_from(self, belief, steps, future)

    def belief_after(self, y: SequencesLike, inputs: SequencesLike | None = None) -> StateBelief:
        """Filtered belief after one whole sequence, equal to the last one of `lk.follow`.

        A frame of probability 0 counts as missing, as in `filter`.

        Parameters
        ----------
        y : array-like (T, p)
            Observations; NaN is a missing value.

        Returns
        -------
        StateBelief
            The belief.
        """
        series = series_of(self, y, inputs)
        if len(series.offsets) != 2 or not len(series.y):
            raise DataError(
                sentence(ME, "one sequence of at least one frame is needed", f"{len(series.offsets) - 1} sequences")
            )
        filtered = passes.filter_part(self, series)
        warn_of_skipped(list(passes.skipped_frames(filtered, series, 0)), f"{ME}.belief_after")
        if filtered.diffuse_end[0] == len(series.y):
            return self._diffuse_belief(series)
        return StateBelief.trusted(
            mean=filtered.means[-1].copy(), root=filtered.roots[-1].copy(), time=len(series.y) - 1, diffuse_part=None
        )

    def _diffuse_belief(self, series: Series) -> StateBelief:
        belief = self.initial_belief()
        for f in range(len(series.y)):
            intercept = series.intercept if series.inputs is None else series.intercept[f : f + 1]
            belief = belief if not f else self._predicted(belief, np.ascontiguousarray(intercept))
            belief, _ = self._updated(belief, np.ascontiguousarray(series.y[f : f + 1]))
        return belief

    def with_inputs(self, control: ArrayLike | None = None, feedthrough: ArrayLike | None = None) -> LinearGaussian:
        """The same model with inputs u: `control` (d, k) acts on the state, `feedthrough` (p, k) on the observation.

        These are regression coefficients, for structural models too; `learn=["feedthrough"]` estimates them.

        Parameters
        ----------
        control : array-like (d, k), optional
            Effect of the inputs on the state.
        feedthrough : array-like (p, k), optional
            Effect of the inputs on the observation.

        Returns
        -------
        LinearGaussian
            The model with inputs.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearGaussian.local_level().with_inputs(feedthrough=[[0.0, 0.0]]).n_inputs
        2
        """
        return LinearGaussian(**{**self.field_values(), "control": control, "feedthrough": feedthrough})

    def predictions(self, y: SequencesLike, inputs: SequencesLike | None = None) -> States:
        """One-step-ahead predictions p(y_t | y_1 … y_{t−1}) of one sequence: mean (T, p) and covariance.

        y − mean are the innovations; standardized, they are white noise under the model. Variances are infinite during
        the diffuse phase.

        Parameters
        ----------
        y : array-like (T, p)
            Observations; NaN is a missing value.

        Returns
        -------
        States
            Mean (T, p) and covariance (T, p, p) of the predictions.

        Examples
        --------
        >>> walk = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
        ...     observation_covariance=[[4.0]], initial_mean=[0.0], initial_covariance=[[9.0]])
        >>> found = walk.predictions([1.0, 3.0])
        >>> found.mean.ravel().round(3).tolist(), found.covariance.ravel().round(3).tolist()
        ([0.0, 0.692], [13.0, 7.769])
        """
        return predicted_observations.one_step_predictions(self, y, inputs)

    @property
    def distributions(self) -> StateSpace:
        """The same model as a general `StateSpace`, e.g. for `lk.ParticleFilter(model.distributions, 1000)`."""
        return as_distributions(self)

    def steady_state(self) -> Steady:
        """Steady-state Kalman gain and covariances: the limit for complete frames and a time-invariant model.

        Returns
        -------
        Steady
            The gain and the covariances.
        """
        return steady_state(self)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> StateBelief:
        """Belief of the initial state, before any observation."""
        m = self.matrices
        if not m.E.shape[1]:
            return StateBelief.trusted(mean=m.m.copy(), root=m.U.copy(), time=0, diffuse_part=None)
        q = m.E.shape[1]
        diffuse_part = DiffusePart.trusted(
            mean=m.m.copy(), root=m.U.copy(), loadings=m.E.copy(), basis=np.eye(q), offset=np.zeros(q),
            information_root=np.zeros((q + 1, q + 1)), n_free=q, log_prob=0.0,
        )  # fmt: skip
        return StateBelief.trusted(mean=m.m.copy(), root=m.U.copy(), time=0, diffuse_part=diffuse_part)

    def predict(self, belief: StateBelief, inputs: SequencesLike | None = None) -> StateBelief:
        """Prediction step: the belief one frame later, before its observation; `inputs` (k,) are that frame's."""
        return self._predicted(belief, self._intercept(inputs, belief.time + 1))

    def _predicted(self, belief: StateBelief, intercept: Array) -> StateBelief:
        from likely.statespace.linear import _loops as kalman

        m, t = self.matrices, belief.time + 1
        self._check_belief(belief)
        if self.length is not None and t >= self.length:
            raise DataError(sentence(ME, f"this model has matrices for {self.length} frames", f"frame {t}"))
        if belief.diffuse_part is not None:
            return self._diffuse_predict(belief, intercept, t)
        mean, root = np.empty_like(belief.mean), np.empty_like(belief.root)
        kalman.predict_one(m.A, m.N, read_only(intercept), t, belief.mean, belief.root, mean, root)
        return StateBelief.fresh(mean, root, t)

    def _diffuse_predict(self, belief: StateBelief, intercept: Array, t: int) -> StateBelief:
        missing = np.full((1, self.dim), np.nan)
        return self._diffuse_step(belief, intercept, missing, t)[0]

    def _diffuse_step(self, belief: StateBelief, intercept: Array, y: Array, t: int) -> tuple[StateBelief, float]:
        """Prediction to frame t (none if t is negative) and update, in the diffuse phase."""
        from likely.statespace.linear import _loops as kalman

        b, m = belief.diffuse_part, self.matrices
        assert b is not None
        names = ("mean", "root", "loadings", "basis", "offset", "information_root")
        arrays = [np.array(getattr(b, name)) for name in names]
        mean, root, q = np.empty(self.states), np.empty((self.states, self.states)), len(b.offset)
        to = (mean, root, np.zeros(q), np.zeros((q, q)))
        lp, n_free, log_prob, collapsed = kalman._diffuse_step(  # in plain Python: the phase has few frames
            m.A,
            m.N,
            m.C,
            m.R,
            read_only(intercept),
            read_only(y),
            t,
            belief.time,
            *arrays,
            b.n_free,
            b.log_prob,
            *to,
        )
        lp = float(lp)
        if not lp > -np.inf:
            return belief, -np.inf
        if collapsed:
            return StateBelief.trusted(mean=mean, root=root, time=max(t, belief.time), diffuse_part=None), lp
        parts: dict[str, Any] = dict(zip(names, arrays, strict=True))
        part = DiffusePart.trusted(**parts, n_free=int(n_free), log_prob=float(log_prob))
        mean = diffuse_moments(part)[0]
        return StateBelief.trusted(mean=mean, root=root, time=max(t, belief.time), diffuse_part=part), float(lp)

    def update(self, belief: StateBelief, y: SequencesLike, inputs: Any = None) -> tuple[StateBelief, float]:
        """Update step: the belief given a frame y too, and log p(y | earlier frames); NaN entries are missing.

        A frame of probability 0 (outside the support of a singular covariance, or overflowing) leaves the belief
        unchanged, with −inf.
        """
        frame = self._frame(y)
        if inputs is not None or self.feedthrough is not None:
            inputs = self._input(inputs)
        if self.feedthrough is not None:
            frame = frame - inputs @ _at(self.feedthrough, belief.time).T
        return self._updated(belief, frame)

    def _updated(self, belief: StateBelief, frame: Array) -> tuple[StateBelief, float]:
        from likely.statespace.linear import _loops as kalman

        m = self.matrices
        self._check_belief(belief)
        if belief.diffuse_part is not None:
            return self._diffuse_step(belief, np.zeros((1, self.states)), frame, -1)
        mean, root = np.empty_like(belief.mean), np.empty_like(belief.root)
        lp = kalman.update_one(read_only(frame), m.C, m.R, belief.time, belief.mean, belief.root, mean, root)
        if lp == -np.inf:
            return belief, lp
        return StateBelief.fresh(mean, root, belief.time), lp

    def _check_belief(self, belief: StateBelief) -> None:
        """Refuse a belief of another dimension: the compiled loops do not check shapes."""
        if len(belief.mean) != self.states:
            expected = f"a belief of {self.states} entries is needed"
            raise ShapeError(sentence(ME, expected, len(belief.mean), "follow with the model that made it"))

    def _frame(self, y: Any) -> Array:
        a = numbers(y, ME)
        if a.size != self.dim or a.ndim > 2:
            raise ShapeError(
                sentence(ME, f"one frame of {self.dim} columns is needed", a.shape, "pass frames one by one")
            )
        frame = a.reshape(1, self.dim)
        if any(map(isinf, frame[0].tolist())):  # a tenth of NumPy's time for a few numbers
            remedy = "correct it, or replace it by NaN"
            raise DataError(
                sentence(ME, "a frame must be finite, or NaN for missing entries", frame[0].tolist(), remedy)
            )
        return frame

    def _input(self, inputs: Any) -> Array:
        if inputs is None:
            raise DataError(sentence(ME, f"this model has {self.n_inputs} inputs", "none", "give inputs="))
        if not self.n_inputs:
            raise DomainError(sentence(ME, "this model takes no inputs", "some", "leave inputs out"))
        u = numbers(inputs, ME).reshape(1, -1)
        if u.shape[1] != self.n_inputs or not np.isfinite(u).all():
            raise ShapeError(sentence(ME, f"{self.n_inputs} finite inputs per frame are needed", u[0].tolist()))
        return u

    def _intercept(self, inputs: Any, t: int) -> Array:
        if self.control is None and inputs is None:
            return self._no_intercept
        u = self._input(inputs)
        if self.control is None:
            return self._no_intercept
        return np.ascontiguousarray(u @ _at(self.control, t).T)

    @cached_property
    def _no_intercept(self) -> Array:
        return read_only(np.zeros((1, self.states)))

    # --------------------------------------------------------------- learning

    of_sequences = True
    takes_parts = True  # `collect` splits the data itself, at the ends of sequences

    def collect(
        self, y: SequencesLike, weight: ArrayLike | None = None, inputs: SequencesLike | None = None
    ) -> LinearStats:
        """E-step: expected sufficient statistics under the smoothed p(x | y) (Shumway and Stoffer 1982)."""
        series = series_of(self, y, inputs)
        stats = linear_em.e_step(self, series, weight)
        if not np.isfinite(stats.entropy):
            passes.refuse_huge(series)
        return stats

    def refit(self, stats: LinearStats, prior: AnyPrior | None = None) -> LinearGaussian:
        """M-step for all parameters; `lk.statespace.ConstrainedLinearGaussian` learns some, or with constraints."""
        return linear_em.m_step(self, stats, prior, linear_em.all_parameters(self))

    def objective(self, stats: LinearStats, prior: AnyPrior | None = None) -> float:
        """EM objective: expected complete-data log-likelihood plus entropy of the states, plus the log prior."""
        return linear_em.objective(self, stats, prior)

    def weak_prior(self, stats: LinearStats) -> Any:
        """Weak prior: the statistics of one average frame of the first E-step."""
        return linear_em.weak_prior(self, stats)


def _arranged(y: Any, series: Series, found: list[tuple[Any, ...]]) -> list[Any]:
    """Concatenated parts: arrays for one sequence, Ragged for many; the third entry is the log-likelihood."""
    columns = [np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*found, strict=True)]
    if is_single_sequence(y):
        return [c if i != 2 else float(c[0]) for i, c in enumerate(columns)]
    return [Ragged(c, series.offsets) if i != 2 else c for i, c in enumerate(columns)]


def _at(a: Array, t: int) -> Array:
    return a if a.ndim == 2 else a[min(t, len(a) - 1)]


def _as_matrix(value: Any, name: str) -> Array:
    a = np.atleast_2d(parameter(value, ME, name))
    if a.ndim > 3:
        raise ShapeError(sentence(ME, f"{name} must be a matrix, or one matrix per frame", a.shape))
    return a


def _as_input_matrix(value: Any, name: str) -> Array | None:
    return None if value is None else _as_matrix(value, name)


def _check_covariances(named: dict[str, Array]) -> None:
    for name, a in named.items():
        if not covariance_roots.is_covariance(a):
            raise DomainError(sentence(ME, f"{name} must be symmetric and positive semidefinite", a.tolist()))


def _initial(mean: Any, covariance: Any, diffuse: Any, d: int) -> tuple[Array, Array, Array | None]:
    """Checked mean, covariance and diffuse directions of the initial state."""
    mean = np.zeros(d) if mean is None else parameter(mean, ME, "initial_mean")
    if covariance is None and diffuse is None:
        diffuse = np.eye(d)
    covariance = np.zeros((d, d)) if covariance is None else parameter(covariance, ME, "initial_covariance")
    diffuse = None if diffuse is None else parameter(diffuse, ME, "diffuse")
    diffuse = None if diffuse is None or not diffuse.size else diffuse
    shapes = (mean.shape, covariance.shape, (d,) if diffuse is None else diffuse.shape[:1])
    if shapes != ((d,), (d, d), (d,)) or (diffuse is not None and diffuse.ndim != 2):
        expected = f"initial_mean must have shape ({d},), initial_covariance ({d}, {d}) and diffuse ({d}, q)"
        raise ShapeError(sentence(ME, expected, (mean.shape, covariance.shape, getattr(diffuse, "shape", None))))
    _check_covariances({"initial_covariance": covariance})
    if diffuse is not None and np.linalg.matrix_rank(diffuse) < diffuse.shape[1]:
        raise DomainError(sentence(ME, "diffuse directions must be linearly independent", diffuse.tolist()))
    return mean, covariance, diffuse


@embedded.register(LinearGaussian)
@embedded.register(ConstrainedLinearGaussian)
def _(distribution: Any, x: Any, weight: Array) -> Array:
    """Features of a sequence: its values and its increments, which reflect observation and process noise."""
    values = x.values[FRAMES] if isinstance(x.values, Columns) else x.values
    frames = dense(values).reshape(len(values), -1)
    steps = np.zeros_like(frames)
    steps[1:] = np.abs(np.diff(frames, axis=0))
    steps[x.offsets[:-1][x.lengths > 0]] = np.nan  # no increment from one sequence to the next
    return by_thirds(standardized(np.hstack([frames, np.sqrt(steps)]), x.weights(weight)), x, weight)
