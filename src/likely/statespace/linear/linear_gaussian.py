"""A linear-Gaussian model: a hidden Markov model whose state is a vector. Kalman's filter is its forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from likely.cluster.kmeans.kmeans_plus_plus import standardized
from likely.core.arrays import Array, numbers, parameter
from likely.core.columns import Columns
from likely.core.covariates import FRAMES
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.distributions.distribution import Distribution
from likely.hmm.decoding import PassedOver, is_one, tell_of_passed, whole
from likely.mixture.embedding import by_thirds, dense, embedded
from likely.numerics import covariance_roots
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_em, linear_simulation, predicted_observations
from likely.statespace.linear.fixed_lag_smoother import lagged
from likely.statespace.linear.forecast import StateForecast, Steady, forecast_from, steady_state
from likely.statespace.linear.kalman_filter import Series, Smoothed, States, locked, series_of
from likely.statespace.linear.kalman_smoother import smoothed
from likely.statespace.linear.linear_em import LinearLearner
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.result_repr import linear_words
from likely.statespace.linear.state_belief import Loose, StateBelief, loose_moments
from likely.statespace.linear.structural_models import ReadyMade
from likely.statespace.nonlinear.state_space import StateSpace, as_distributions

ME = "LinearGaussian"


class Matrices(NamedTuple):
    """The model as the loops take it: a leading axis everywhere, roots for covariances."""

    A: Array
    N: Array  # root of the noise
    C: Array
    R: Array  # root of the observation's
    m: Array
    U: Array  # root of the start's covariance
    E: Array  # (d, q): directions in which the start is unknown


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearGaussian(ReadyMade, Distribution):
    """x_t = A x_{t−1} + F u_t + w_t,  y_t = C x_t + G u_t + v_t;  w ~ N(0, BBᵀ), v ~ N(0, DDᵀ)   (Herbst 8).

    A row is a sequence of frames y_t (T, p), NaN where nothing was seen; inputs u are known. `transition` is A,
    `process_covariance` BBᵀ, `observation_covariance` C, `observation_covariance` DDᵀ, `control` F, `feedthrough` G;
    covariances may be singular. A leading axis of one entry per frame makes any of them change with time: entry t makes
    x_t and y_t (so the first transition and noise are not used). The first state is N(mean, covariance), and is
    observed. `diffuse` (d, q) are directions in which nothing is known of it: variances are infinite there, exactly.
    Without a covariance all are. The constructor checks its arguments; `replace`, which learning calls at every step,
    trusts them.

    >>> import likely as lk
    >>> walk = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> walk.smooth([0.0, np.nan, 3.0]).mean.ravel().round(3).tolist()
    [0.429, 1.286, 2.143]
    """

    transition: Array  # (d, d), or (T, d, d)
    process_covariance: Array  # (d, d), or (T, d, d)
    observation: Array  # (p, d), or (T, p, d)
    observation_covariance: Array  # (p, p), or (T, p, p)
    initial_mean: Array = None  # type: ignore[assignment]  # (d,)
    initial_covariance: Array = None  # type: ignore[assignment]  # (d, d)
    control: Array | None = None  # (d, k), or (T, d, k)
    feedthrough: Array | None = None  # (p, k), or (T, p, k)
    diffuse: Array | None = None  # (d, q)

    def __post_init__(self) -> None:
        A = _matrix(self.transition, "transition")
        d = A.shape[-1]
        Q, C = _matrix(self.process_covariance, "process_covariance"), _matrix(self.observation, "observation")
        p = C.shape[-2]
        R = _matrix(self.observation_covariance, "observation_covariance")
        F, G = _inputs(self.control, "control"), _inputs(self.feedthrough, "feedthrough")
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
                expected = f"{name} must have shape {tuple(shape)}, perhaps with one for each frame in front"
                raise ShapeError(sentence(ME, expected, a.shape))
        lengths = sorted({len(a) for a, *_ in wanted.values() if a is not None and a.ndim == 3})
        if len(lengths) > 1:
            raise ShapeError(
                sentence(ME, "matrices that change must have one entry for each of the same frames", lengths)
            )
        _refuse_no_covariance({"process_covariance": Q, "observation_covariance": R})
        mean, covariance, diffuse = _start(self.initial_mean, self.initial_covariance, self.diffuse, d)
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
        cls, A: Any, B: Any, C: Any, D: Any, F: Any = None, G: Any = None, mean: Any = None, covariance: Any = None
    ) -> LinearGaussian:
        """The form of the notes, x_t = A x_{t−1} + B w_t + F u_t, y_t = C x_t + D v_t + G u_t with white w and v.

        >>> LinearGaussian.from_letters([[1.0]], [[2.0]], [[1.0]], [[3.0]]).process_covariance
        array([[4.]])
        """
        B, D = _matrix(B, "B"), _matrix(D, "D")
        Q, R = B @ np.swapaxes(B, -1, -2), D @ np.swapaxes(D, -1, -2)
        return cls(
            transition=A, process_covariance=Q, observation=C, observation_covariance=R, initial_mean=mean,
            initial_covariance=covariance, control=F, feedthrough=G,
        )  # fmt: skip

    # ------------------------------------------------------------------ shape

    @property
    def states(self) -> int:
        """Number of entries d of the state."""
        return int(self.transition.shape[-1])

    @property
    def dim(self) -> int:
        """Number of columns p of a frame."""
        return int(self.observation.shape[-2])

    @property
    def n_inputs(self) -> int:
        """Number of known inputs k."""
        return next((int(a.shape[-1]) for a in (self.control, self.feedthrough) if a is not None), 0)

    @property
    def length(self) -> int | None:
        """Number of frames for which there are matrices; None if none of them changes."""
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
        return linear_words(
            self,
            ("transition", "process_covariance", "observation", "observation_covariance", "control", "feedthrough"),
        )

    @property
    def n_parameters(self) -> int:
        """Entries of all matrices, covariances counted once."""
        d, p, k = self.states, self.dim, self.n_inputs
        start = 0 if self.diffuse is not None and self.diffuse.shape[1] == d else d + d * (d + 1) // 2
        inputs = (d if self.control is not None else 0) + (p if self.feedthrough is not None else 0)
        return d * d + d * (d + 1) // 2 + p * d + p * (p + 1) // 2 + k * inputs + start

    @property
    def smallest_eigenvalue(self) -> float:
        """The least variance of noise and observation in any direction."""
        return float(min(np.linalg.eigvalsh(a).min() for a in (self.process_covariance, self.observation_covariance)))

    @cached_property
    def matrices(self) -> Matrices:
        """The model as the loops take it."""
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
        return Matrices(*(locked(np.array(a, order="C")) for a in made))

    # ---------------------------------------------------------------- density

    def log_prob(self, y: Any, inputs: Any = None) -> Array:
        """log p(y) of each sequence (n,); with a diffuse start the limit of log p + (q/2) log κ as variances κ grow.

        An observation that cannot be makes it −inf   (de Jong 1991).
        """
        seqs = Ragged.of(y)
        series = series_of(self, seqs, inputs)
        found = passes.in_parts(lambda part, _: passes.filtered(self, part, keeps=False).total, series)
        out = np.concatenate([np.empty(0), *found])
        return out.astype(np.float32) if seqs.dtype == np.float32 else out

    def sample(self, n: int, rng: Generator, length: Any = None, inputs: Any = None) -> Ragged:
        """n sequences of observations (a Ragged) of the given `length`, a number or one each."""
        return linear_simulation.simulate(self, n, rng, length, inputs)[1]

    def simulate(self, n: int, rng: Generator, length: Any = None, inputs: Any = None) -> tuple[Ragged, Ragged]:
        """States and observations of n sequences. A diffuse start is drawn with nothing unknown: at `mean`."""
        return linear_simulation.simulate(self, n, rng, length, inputs)

    # ------------------------------------------------------------ what was the state

    def filter(self, y: Any, inputs: Any = None) -> States:
        """p(x_t | y_1 … y_t) of every frame: what was known at the time.

        A frame that cannot be counts as not observed; a note names the first, and log_prob is −inf.
        """
        series = series_of(self, y, inputs)
        passed: list[PassedOver] = []

        def part(some: Series, before: int) -> tuple[Array, Array, Array]:
            kept = passes.filtered(self, some)
            passed.extend(passes.passed_over(kept, some, before))
            return *passes.covariances(kept, some), kept.total

        found = _arranged(y, series, passes.in_parts(part, series))
        tell_of_passed(passed, f"{ME}.filter")
        return States(*found)

    def smooth(self, y: Any, inputs: Any = None, lag: int | None = None) -> Any:
        """p(x_t | all frames): mean, covariance, log_prob, lag_one   (Rauch, Tung and Striebel 1965).

        With a `lag`, from frames up to t + lag, and without lag_one; variances are infinite where these frames do not
        yet say where the state began. A frame that cannot be counts as not observed, as in `filter`.
        """
        series = series_of(self, y, inputs)
        passed: list[PassedOver] = []
        if lag is not None:
            lag = whole(lag, 0, f"{ME}.smooth", "lag")

        def part(some: Series, before: int) -> tuple[Any, ...]:
            if lag is not None:
                kept, mean, cov = lagged(self, some, before, lag)
                passed.extend(passes.passed_over(kept, some, before))
                return mean, cov, kept.total
            kept, mean, cov, lag_one = smoothed(self, some, before)
            passed.extend(passes.passed_over(kept, some, before))
            return mean, cov, kept.total, lag_one

        found = _arranged(y, series, passes.in_parts(part, series))
        tell_of_passed(passed, f"{ME}.smooth")
        return Smoothed(*found) if lag is None else States(*found)

    def draw_states(self, y: Any, n: int, rng: Generator, inputs: Any = None) -> Any:
        """n paths of states given one sequence (n, T, d), from p(x | y) itself   (Durbin and Koopman 2002)."""
        return linear_simulation.drawn_states(self, y, n, rng, inputs)

    def observed(self, states: Any, inputs: Any = None) -> States:
        """What would be seen of states: mean C x (+ G u) and covariance with the observation's noise, for one sequence.

        >>> m = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[2.0]],
        ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
        >>> m.observed(m.smooth([2.0, 2.0])).mean.ravel().round(3).tolist()
        [1.655, 1.931]
        """
        return predicted_observations.seen_of(self, states, inputs)

    def impute(self, y: Any, inputs: Any = None) -> Any:
        """y with what is missing replaced by its expectation given all that was seen."""
        return predicted_observations.imputed(self, y, inputs)

    def forecast(
        self, y: Any = None, steps: int = 1, inputs: Any = None, future: Any = None, belief: Any = None
    ) -> StateForecast:
        """States and observations 1 … steps frames after a sequence, or after a live `belief`, with intervals.

        `inputs` are those of y, `future` (steps, k) those of the frames ahead.
        """
        steps = whole(steps, 1, f"{ME}.forecast", "steps")
        if belief is None:
            belief = self.belief_after(y, inputs)
        return forecast_from(self, belief, steps, future)

    def belief_after(self, y: Any, inputs: Any = None) -> StateBelief:
        """The belief after one whole sequence, as `lk.follow` would have left it."""
        series = series_of(self, y, inputs)
        if len(series.offsets) != 2 or not len(series.y):
            raise DataError(
                sentence(ME, "one sequence of at least one frame is needed", f"{len(series.offsets) - 1} sequences")
            )
        kept = passes.filtered(self, series)
        if kept.tied[0] == len(series.y):
            return self._loosely(series)
        return StateBelief.trusted(
            mean=kept.means[-1].copy(), root=kept.roots[-1].copy(), time=len(series.y) - 1, loose=None
        )

    def _loosely(self, series: Series) -> StateBelief:
        belief = self.initial_belief()
        for f in range(len(series.y)):
            push = series.push if series.inputs is None else series.push[f : f + 1]
            belief = belief if not f else self._moved(belief, np.ascontiguousarray(push))
            belief, _ = self._updated(belief, np.ascontiguousarray(series.y[f : f + 1]))
        return belief

    def with_inputs(self, control: Any = None, feedthrough: Any = None) -> LinearGaussian:
        """The same model with known inputs u: `control` (d, k) moves the state, `feedthrough` (p, k) what is seen.

        Coefficients of regressors, for ready-made models too; `learn=["feedthrough"]` estimates them.

        >>> import likely as lk
        >>> lk.LinearGaussian.local_level().with_inputs(feedthrough=[[0.0, 0.0]]).n_inputs
        2
        """
        return LinearGaussian(**{**self._parts(), "control": control, "feedthrough": feedthrough})

    def predictions(self, y: Any, inputs: Any = None) -> States:
        """What was expected of each frame of one sequence before it was seen: mean (T, p) and covariance.

        y − mean are the innovations; divided by their standard deviation they are white where the model is right.
        Infinite variances where the start is not yet known.

        >>> walk = LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
        ...     observation_covariance=[[4.0]], initial_mean=[0.0], initial_covariance=[[9.0]])
        >>> found = walk.predictions([1.0, 3.0])
        >>> found.mean.ravel().round(3).tolist(), found.covariance.ravel().round(3).tolist()
        ([0.0, 0.692], [13.0, 7.769])
        """
        return predicted_observations.foreseen(self, y, inputs)

    @property
    def distributions(self) -> StateSpace:
        """The same model as a `StateSpace`, for filters of these: `lk.ParticleFilter(model.distributions, 1000)`."""
        return as_distributions(self)

    def steady_state(self) -> Steady:
        """Gain and covariances to which the filter settles when every frame is complete and nothing changes."""
        return steady_state(self)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> StateBelief:
        """The first state, before any frame."""
        m = self.matrices
        if not m.E.shape[1]:
            return StateBelief.trusted(mean=m.m.copy(), root=m.U.copy(), time=0, loose=None)
        q = m.E.shape[1]
        loose = Loose.trusted(
            mean=m.m.copy(), root=m.U.copy(), spread=m.E.copy(), basis=np.eye(q), point=np.zeros(q),
            rows=np.zeros((q + 1, q + 1)), free=q, known=0.0,
        )  # fmt: skip
        return StateBelief.trusted(mean=m.m.copy(), root=m.U.copy(), time=0, loose=loose)

    def predict(self, belief: StateBelief, inputs: Any = None) -> StateBelief:
        """The state one frame on, before that frame is seen."""
        return self._moved(belief, self._push(inputs, belief.time + 1))

    def _moved(self, belief: StateBelief, push: Array) -> StateBelief:
        from likely.statespace.linear import _loops as kalman

        m, t = self.matrices, belief.time + 1
        self._refuse_other(belief)
        if self.length is not None and t >= self.length:
            raise DataError(sentence(ME, f"this model has matrices for {self.length} frames", f"frame {t}"))
        if belief.loose is not None:
            return self._moved_loosely(belief, push, t)
        mean, root = np.empty_like(belief.mean), np.empty_like(belief.root)
        kalman.predict_one(m.A, m.N, locked(push), t, belief.mean, belief.root, mean, root)
        return StateBelief.fresh(mean, root, t)

    def _moved_loosely(self, belief: StateBelief, push: Array, t: int) -> StateBelief:
        nothing = np.full((1, self.dim), np.nan)
        return self._loose_step(belief, push, nothing, t)[0]

    def _loose_step(self, belief: StateBelief, push: Array, y: Array, t: int) -> tuple[StateBelief, float]:
        """A move to frame t (none if t is negative) and an update, while the start is unknown."""
        from likely.statespace.linear import _loops as kalman

        b, m = belief.loose, self.matrices
        assert b is not None
        own = [np.array(a) for a in (b.mean, b.root, b.spread, b.basis, b.point, b.rows)]
        mean, root, q = np.empty(self.states), np.empty((self.states, self.states)), len(b.point)
        to = (mean, root, np.zeros(q), np.zeros((q, q)))
        lp, free, known, tied = kalman.diffuse_step(
            m.A, m.N, m.C, m.R, locked(push), locked(y), t, belief.time, *own, b.free, b.known, *to
        )
        if not lp > -np.inf:
            return belief, -np.inf
        if tied:
            return StateBelief.trusted(mean=mean, root=root, time=max(t, belief.time), loose=None), lp
        names = ("mean", "root", "spread", "basis", "point", "rows")
        loose = Loose.trusted(**dict(zip(names, own, strict=True)), free=int(free), known=float(known))
        mean = loose_moments(loose)[0]
        return StateBelief.trusted(mean=mean, root=root, time=max(t, belief.time), loose=loose), float(lp)

    def update(self, belief: StateBelief, y: Any, inputs: Any = None) -> tuple[StateBelief, float]:
        """The state once a frame y is seen, and log p(y | all before); NaN entries were not seen.

        A frame that cannot be (off a flat of singular covariances, or beyond the range of numbers) leaves the belief as
        it was, at −inf.
        """
        frame = self._frame(y)
        if self.feedthrough is not None:
            frame = frame - self._input(inputs) @ _at(self.feedthrough, belief.time).T
        return self._updated(belief, frame)

    def _updated(self, belief: StateBelief, frame: Array) -> tuple[StateBelief, float]:
        from likely.statespace.linear import _loops as kalman

        m = self.matrices
        self._refuse_other(belief)
        if belief.loose is not None:
            return self._loose_step(belief, np.zeros((1, self.states)), frame, -1)
        mean, root = np.empty_like(belief.mean), np.empty_like(belief.root)
        lp = kalman.update_one(locked(frame), m.C, m.R, belief.time, belief.mean, belief.root, mean, root)
        if lp == -np.inf:
            return belief, lp
        return StateBelief.fresh(mean, root, belief.time), lp

    def _refuse_other(self, belief: StateBelief) -> None:
        """Loops trust shapes: a belief of another state must not reach them."""
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
        if any(map(isinf, frame[0].tolist())):  # a tenth of what NumPy takes for a few numbers
            remedy = "correct it, or replace it by NaN"
            raise DataError(
                sentence(ME, "a frame must be finite, or NaN where nothing was observed", frame[0].tolist(), remedy)
            )
        return frame

    def _input(self, inputs: Any) -> Array:
        if inputs is None:
            raise DataError(sentence(ME, f"this model has {self.n_inputs} inputs", "none", "give inputs="))
        u = numbers(inputs, ME).reshape(1, -1)
        if u.shape[1] != self.n_inputs or not np.isfinite(u).all():
            raise ShapeError(sentence(ME, f"{self.n_inputs} finite inputs per frame are needed", u[0].tolist()))
        return u

    def _push(self, inputs: Any, t: int) -> Array:
        if self.control is None:
            return self._nothing
        return np.ascontiguousarray(self._input(inputs) @ _at(self.control, t).T)

    @cached_property
    def _nothing(self) -> Array:
        return locked(np.zeros((1, self.states)))

    # --------------------------------------------------------------- learning

    of_sequences = True
    takes_parts = True  # `collect` cuts them for itself, at the ends of sequences

    def collect(self, y: Any, weight: Any = None, inputs: Any = None) -> LinearStats:
        """Expected moments of states, moves, observations under p(x | y): the E-step   (Shumway and Stoffer 1982)."""
        series = series_of(self, y, inputs)
        stats = linear_em.collected(self, series, weight)
        if not np.isfinite(stats.entropy):
            passes.refuse_huge(series)
        return stats

    def refit(self, stats: LinearStats, prior: Any = None) -> LinearGaussian:
        """The model that explains these moments best, all of it; `lk.LinearLearner` learns parts, or with structure."""
        return linear_em.refitted(self, stats, prior, linear_em.everything(self))

    def objective(self, stats: LinearStats, prior: Any = None) -> float:
        """Expected log-likelihood of states and observations, plus the states' entropy, plus the log prior."""
        return linear_em.objective(self, stats, prior)

    def weak_prior(self, stats: LinearStats) -> Any:
        """One frame's worth of what the first pass saw."""
        return linear_em.weak_prior(self, stats)


def _arranged(y: Any, series: Series, found: list[tuple[Any, ...]]) -> list[Any]:
    """Parts joined: arrays of one sequence, or Ragged of many; the third entry is log p of each."""
    columns = [np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*found, strict=True)]
    if is_one(y):
        return [c if i != 2 else float(c[0]) for i, c in enumerate(columns)]
    return [Ragged(c, series.offsets) if i != 2 else c for i, c in enumerate(columns)]


def _at(a: Array, t: int) -> Array:
    return a if a.ndim == 2 else a[min(t, len(a) - 1)]


def _matrix(value: Any, name: str) -> Array:
    a = np.atleast_2d(parameter(value, ME, name))
    if a.ndim > 3:
        raise ShapeError(sentence(ME, f"{name} must be a matrix, or one for each frame", a.shape))
    return a


def _inputs(value: Any, name: str) -> Array | None:
    return None if value is None else _matrix(value, name)


def _refuse_no_covariance(named: dict[str, Array]) -> None:
    for name, a in named.items():
        if not covariance_roots.is_covariance(a):
            raise DomainError(
                sentence(ME, f"{name} must be symmetric, with no negative variance in any direction", a.tolist())
            )


def _start(mean: Any, covariance: Any, diffuse: Any, d: int) -> tuple[Array, Array, Array | None]:
    """Mean, covariance and unknown directions of the first state."""
    mean = np.zeros(d) if mean is None else parameter(mean, ME, "initial_mean")
    if covariance is None and diffuse is None:
        diffuse = np.eye(d)
    covariance = np.zeros((d, d)) if covariance is None else parameter(covariance, ME, "initial_covariance")
    diffuse = None if diffuse is None else parameter(diffuse, ME, "diffuse")
    diffuse = None if diffuse is None or not diffuse.size else diffuse
    shapes = (mean.shape, covariance.shape, (d,) if diffuse is None else diffuse.shape[:1])
    if shapes != ((d,), (d, d), (d,)) or (diffuse is not None and diffuse.ndim != 2):
        expected = f"mean must have shape ({d},), covariance ({d}, {d}) and diffuse ({d}, q)"
        raise ShapeError(sentence(ME, expected, (mean.shape, covariance.shape, getattr(diffuse, "shape", None))))
    _refuse_no_covariance({"initial_covariance": covariance})
    if diffuse is not None and np.linalg.matrix_rank(diffuse) < diffuse.shape[1]:
        raise DomainError(sentence(ME, "diffuse directions must be independent", diffuse.tolist()))
    return mean, covariance, diffuse


@embedded.register(LinearGaussian)
@embedded.register(LinearLearner)
def _(distribution: Any, x: Any, weight: Array) -> Array:
    """A sequence by its levels and by its steps: noise of the state and of the observation show there."""
    values = x.values[FRAMES] if isinstance(x.values, Columns) else x.values
    frames = dense(values).reshape(len(values), -1)
    steps = np.zeros_like(frames)
    steps[1:] = np.abs(np.diff(frames, axis=0))
    steps[x.offsets[:-1][x.lengths > 0]] = np.nan  # from one sequence to the next there is none
    return by_thirds(standardized(np.hstack([frames, np.sqrt(steps)]), x.weights(weight)), x, weight)
