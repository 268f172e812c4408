"""Particle filter (sequential importance resampling) with bootstrap, guided and auxiliary proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Mask, check_integer, is_gap, unmasked
from likely.core.columns import Columns
from likely.core.docstrings import complete
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.value import fill_cache
from likely.core.warnings import warn
from likely.distributions.stacks.one_row_per_member import log_prob_each
from likely.statespace.nonlinear.state_space import as_states
from likely.statespace.particle.impoverishment import Descent
from likely.statespace.particle.noise_draws import FrameNoise, draw_at
from likely.statespace.particle.particle_belief import (
    CHOOSE,
    ParticleBelief,
    keyed,
    normalized,
    seed_of,
    share,
    weighted_quantile,
)
from likely.statespace.particle.particle_smoother import SmoothedPaths, backward_paths
from likely.statespace.particle.proposals import ProposalLike, Setting, bootstrap, is_poor, proposal_of
from likely.statespace.particle.resampling import ResamplingScheme, resampled, scheme


@complete
@dataclass(frozen=True, eq=False)
class ParticleFilter:
    """Particle filter: p(x_t | y_0 … y_t) by n weighted particles (de Freitas 13; Gordon, Salmond, Smith 1993).

    The evidence is multiplied by Σ_i W_i α_i per frame, with W the normalized weights before it: exp(log_evidence) is
    unbiased for every resampling scheme. Frames of NaN change no weight. If all particles have likelihood 0 at a frame,
    its increment is −inf (an unbiased estimate of a number near 0), the belief stays unchanged, and there is a warning.
    States with little process noise suffer from sample impoverishment once resampling has left few common ancestors:
    `run` marks them, and it and `lk.follow` warn.

    Parameters
    ----------
    model : StateSpace
        The model.
    n_particles : int
        Number of particles n.
    proposal : {"bootstrap", "guided", "auxiliary"} or callable, default "bootstrap"
        "bootstrap" draws from the transition; "guided" from an extended Kalman update per particle; "auxiliary" first
        resamples by p(y | mean of the transition); or a function of (x, y, t) and, if it takes them, inputs u, that
        returns distributions.
    resample : {"systematic", "stratified", "residual", "multinomial"}, default "systematic"
        How particles are resampled.
    ess_threshold : float, default 0.5
        Particles are resampled when the effective sample size falls below ess_threshold · n (1: at every frame, 0:
        never).
    random_state : int, default 0
        Seed; random numbers are keyed by seed and frame, so the methods are pure functions of the belief.

    See Also
    --------
    RaoBlackwellizedFilter : Particles of regimes, each with a Kalman filter.

    References
    ----------
    Gordon, Salmond and Smith (1993); Doucet, de Freitas and Gordon (2001); de Freitas, lecture notes, 13.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Gaussian(x, 0.5))
    >>> run = ParticleFilter(walk, 2000, random_state=1).run([0.3, 0.1, np.nan, 0.4])
    >>> round(run.log_evidence), run.mean.shape
    (-3, (4, 1))
    """

    model: Any
    n_particles: int
    proposal: ProposalLike = "bootstrap"
    resample: ResamplingScheme = "systematic"
    ess_threshold: float = 0.5
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", getattr(self.model, "distributions", self.model))  # of a linear model
        if not all(
            hasattr(self.model, verb)
            for verb in ("initial_distribution", "transition_distribution", "observation_distribution")
        ):
            expected = "a model given by distributions is needed"
            raise DomainError(sentence("ParticleFilter", expected, type(self.model).__name__, "pass a StateSpace"))
        check_integer(self.n_particles, "ParticleFilter", "n_particles", 1)
        check_integer(self.random_state, "ParticleFilter", "random_state")
        scheme(self.resample)
        object.__setattr__(self, "_place", proposal_of(self.proposal))
        share(self.ess_threshold, "ParticleFilter", "ess_threshold")

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> ParticleBelief:
        """Belief of the initial state, before any observation."""
        return self._initial(int(self.random_state))

    def _initial(self, seed: int) -> ParticleBelief:
        n = int(self.n_particles)
        states = self.model.sample_initial(n, keyed(seed, 0))
        return ParticleBelief.trusted(
            states=states, log_weights=np.full(n, -np.log(n)), time=0, seed=seed, seen=False, before=None,
            ancestors=None,
        )  # fmt: skip

    def predict(self, belief: ParticleBelief, inputs: ArrayLike | None = None) -> ParticleBelief:
        """Prediction step: resampling if the effective sample size is small, then the transition."""
        self.model.check_inputs(inputs)
        return self._predict(belief, inputs, None)

    def _predict(self, belief: ParticleBelief, u: Any, noise: FrameNoise | None) -> ParticleBelief:
        t, n = belief.time + 1, len(belief)
        before, logs, ancestors = belief.states, belief.log_weights, None
        if self.proposal != "auxiliary" and is_poor(belief.ess, n, self.ess_threshold):
            ancestors = resampled(self.resample, belief.weights, n, keyed(belief.seed, t, CHOOSE))
            before, logs = before.take(ancestors, axis=0), np.full(n, -np.log(n))
        drawn = draw_at(self.model.transition_distribution(before, t, u), belief.seed, t, noise)
        states = as_states(drawn, n, f"StateSpace.transition at frame {t}", before.shape[1])
        return ParticleBelief.trusted(
            states=states, log_weights=logs, time=t, seed=belief.seed, seen=False,
            before=before if self._looks else None, ancestors=ancestors,
        )  # fmt: skip

    @property
    def _looks(self) -> bool:
        return self._place is not bootstrap  # type: ignore[attr-defined]

    def update(
        self, belief: ParticleBelief, y: ArrayLike, inputs: ArrayLike | None = None,
    ) -> tuple[ParticleBelief, float]:  # fmt: skip
        """Update step: weights multiplied by the likelihood of y, and an estimate of log p(y | earlier frames)."""
        y = one_frame(y)
        if not is_seen(y):
            return belief.replace(seen=True, before=None), 0.0
        at = Setting(self.model, belief, y, inputs, self.resample, float(self.ess_threshold))
        place = bootstrap if belief.seen else self._place  # type: ignore[attr-defined]
        states, logs, ancestors = place(at)
        logs = logs + self._scores(states, y, belief.time, inputs)
        logs, weights, increment = normalized(logs)
        if not increment < np.inf:  # nor NaN
            whose = f"StateSpace.observation at frame {belief.time}"
            raise DataError(
                sentence(whose, "log-densities must be numbers below infinity", increment, "check its distribution")
            )
        return (
            _lost(belief) if increment == -np.inf else _weighed(belief, states, logs, weights, ancestors)
        ), increment

    def _scores(self, states: Array, y: Any, t: int, u: Any) -> Array:
        scores = log_prob_each(self.model.observation_distribution(states, t, u), y)
        if scores.shape != states.shape[:1]:
            expected = f"log_prob of one frame must give one number per state ({len(states)})"
            raise ShapeError(sentence(f"StateSpace.observation at frame {t}", expected, scores.shape))
        return scores

    # -------------------------------------------------------------- sequences

    def run(self, y: ArrayLike, inputs: ArrayLike | None = None, keep: bool = True) -> Any:
        """Filter one sequence, or many.

        Parameters
        ----------
        y : array-like (T,) or (T, p), or sequences
            Observations; NaN is a missing value.
        inputs : array-like (T, k) or sequences, optional
            Known inputs, passed to functions that take a third argument.
        keep : bool, default True
            Keep all beliefs; False stores moments and the last belief only.

        Returns
        -------
        ParticleRun or list of ParticleRun
            The result; one per sequence.
        """
        seqs, alone = Ragged.of(y), is_single_sequence(y)
        known = _inputs_of(inputs, seqs, alone)
        runs = [self._run(frames, known[i], seed_of(self.random_state, i), keep) for i, frames in enumerate(seqs)]
        return runs[0] if alone else runs

    filter = run

    def _run(self, frames: Any, inputs: Any, seed: int, keep: bool) -> ParticleRun:
        first = self._initial(seed)
        increments, beliefs, moments = [], [], []
        belief, descent = first, Descent(first)
        for belief, increment in self._follow(first, frames, inputs):
            descent.step(belief)
            increments.append(increment)
            moments.append((belief.ess, belief.mean, belief.covariance))
            if keep:
                beliefs.append(belief)
        descent.tell(len(first))
        d = first.states.shape[1]
        ess, mean, covariance = (list(part) for part in zip(*moments, strict=True)) if moments else ([], [], [])
        return ParticleRun(
            np.array(increments), np.reshape(mean, (-1, d)), np.reshape(covariance, (-1, d, d)), np.array(ess), belief,
            tuple(beliefs) if keep else None, descent.impoverished,
        )  # fmt: skip

    def _follow(self, belief: ParticleBelief, frames: Any, inputs: Any) -> Iterator[tuple[ParticleBelief, float]]:
        noise = FrameNoise(belief.seed, belief.states.shape)
        for t in range(len(frames)):
            u = None if inputs is None else inputs[t]
            belief = self._predict(belief, u, noise) if t else belief
            belief, increment = self.update(belief, frames[t : t + 1], u)
            yield belief, increment

    def _noticing(self, belief: Any) -> Callable[[ParticleBelief], None]:
        """Callback of `follow` after each frame of a stream."""
        return Descent(belief if isinstance(belief, ParticleBelief) else self.initial_belief()).notice

    def log_prob(self, y: ArrayLike, inputs: ArrayLike | None = None) -> Array:
        """Estimate of the log-likelihood log p(y) per sequence (n,)."""
        runs = self.run(y, inputs, keep=False)
        return np.array([r.log_evidence for r in ([runs] if isinstance(runs, ParticleRun) else runs)])

    def smooth(self, y: ArrayLike, n_paths: int = 100, inputs: ArrayLike | None = None) -> Any:
        """Particle smoother: paths drawn from p(x_0 … x_T | y) by backward simulation, (M, T, d), and their moments.

        Parameters
        ----------
        n_paths : int, default 100
            Number of paths M.

        Returns
        -------
        SmoothedPaths or list of SmoothedPaths
            The result; one per sequence.

        Examples
        --------
        >>> import likely as lk
        >>> walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Gaussian(x, 0.5))
        >>> ParticleFilter(walk, 500).smooth([0.3, 0.1, 0.4], n_paths=50).paths.shape
        (50, 3, 1)
        """
        n_paths = check_integer(n_paths, "ParticleFilter.smooth", "n_paths", 1)
        seqs, alone = Ragged.of(y), is_single_sequence(y)
        known = _inputs_of(inputs, seqs, alone)
        found = [self._smooth(frames, known[i], i, n_paths) for i, frames in enumerate(seqs)]
        return found[0] if alone else found

    def _smooth(self, frames: Any, inputs: Any, i: int, n_paths: int) -> SmoothedPaths:
        if not len(frames):
            raise DataError(sentence("ParticleFilter.smooth", "a sequence must have at least one frame", "none"))
        run = self._run(frames, inputs, seed_of(self.random_state, i), keep=True)
        return SmoothedPaths(backward_paths(self.model, run.beliefs, n_paths, inputs), run.log_evidence)


@complete
@dataclass(frozen=True, eq=False, repr=False)
class ParticleRun:
    """Result of a particle filter for one sequence of T frames.

    Parameters
    ----------
    log_evidences : ndarray (T,)
        Estimates of log p(y_t | earlier frames).
    mean : ndarray (T, d)
        Filtered means.
    covariance : ndarray (T, d, d)
        Filtered covariances.
    ess : ndarray (T,)
        Effective sample sizes.
    belief : ParticleBelief
        The last belief: `predict` and `update` continue from it.
    beliefs : tuple of ParticleBelief or None
        All beliefs, if they were stored.
    impoverished : ndarray of bool (d,)
        States with sample impoverishment: variances and the evidence are too small.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Gaussian(x, 0.5))
    >>> run = lk.ParticleFilter(walk, 500, random_state=1).run([0.3, 0.1, 0.4])
    >>> run.particles.shape, run.quantile([0.05, 0.95]).shape, bool(run.log_evidence == run.log_evidences.sum())
    ((3, 500, 1), (3, 2, 1), True)
    """

    log_evidences: Array  # (T,): estimates of log p(y_t | earlier frames)
    mean: Array  # (T, d): filtered mean of x_t
    covariance: Array  # (T, d, d)
    ess: Array  # (T,): effective sample size
    belief: ParticleBelief  # the last one: `predict` and `update` continue from it
    beliefs: tuple[ParticleBelief, ...] | None  # all of them, if they were stored
    impoverished: Mask  # (d,): states with sample impoverishment: variances and the evidence are too small

    @property
    def log_evidence(self) -> float:
        """Estimate of log p(y)."""
        return float(self.log_evidences.sum())

    log_prob = log_evidence  # the name used by exact filters

    @property
    def variance(self) -> Array:
        """Var[x_t] of each column (T, d)."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)

    def _kept(self) -> tuple[ParticleBelief, ...]:
        if self.beliefs is None:
            raise DomainError(sentence("ParticleRun", "particles were not stored", remedy="run(y, keep=True)"))
        return self.beliefs

    @cached_property
    def particles(self) -> Array:
        """Particles x_t^i (T, N, d)."""
        return np.stack([b.states for b in self._kept()])

    @cached_property
    def weights(self) -> Array:
        """Weights W_t^i (T, N)."""
        return np.stack([b.weights for b in self._kept()])

    @cached_property
    def ancestors(self) -> Index:
        """Ancestors (T, N): index in frame t − 1 of the parent of each particle of frame t."""
        same = np.arange(len(self.belief))
        return np.stack([same if b.ancestors is None else b.ancestors for b in self._kept()])

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each column at every frame: (T, d), or (T, m, d) for m values of q.

        Parameters
        ----------
        q : float or array-like (m,)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles.
        """
        return np.stack([weighted_quantile(b.states, b.weights, q) for b in self._kept()])

    def genealogy(self) -> Array:
        """Genealogical path of each of the last particles: (N, T, d).

        Returns
        -------
        ndarray (N, T, d)
            Paths.
        """
        index, back = np.arange(len(self.belief)), []
        for b in self._kept()[::-1]:
            back.append(b.states[index])
            index = index if b.ancestors is None else b.ancestors[index]
        return np.stack(back[::-1], axis=1)

    def __repr__(self) -> str:
        return (
            f"ParticleRun({len(self.ess)} frames, {len(self.belief)} particles, log_evidence={self.log_evidence:.4f})"
        )


# ----------------------------------------------------------------------- frames


def one_frame(y: Any) -> Any:
    """One frame as one row: numbers (1, p), a category (1,), or Columns of one row."""
    if isinstance(y, Columns):
        return y
    if isinstance(y, dict):
        return Columns.of({name: np.asarray(unmasked(part))[None] for name, part in y.items()})
    a = np.asarray(unmasked(y))
    if a.dtype.kind in "USO":
        return a.reshape(1) if a.size == 1 else a.reshape(1, -1)
    if a.ndim > 2 or (a.ndim == 2 and len(a) != 1):
        raise ShapeError(sentence("ParticleFilter", "one frame (p,) is needed", a.shape, "pass frames one by one"))
    return a if a.ndim == 2 else a.reshape(1, -1)


def is_seen(y: Any) -> bool:
    """False for a frame without any observed entry."""
    if isinstance(y, Columns):
        return any(is_seen(np.asarray(part)) for part in y.parts.values())
    if y.dtype.kind == "f":
        return not np.isnan(y).all()
    return y.dtype.kind != "O" or not all(is_gap(cell) for cell in y.ravel())


def _weighed(
    belief: ParticleBelief, states: Array, logs: Array, weights: Array, ancestors: Index | None
) -> ParticleBelief:
    """The belief with these log-weights and their exponentials."""
    found = ParticleBelief.trusted(
        states=states, log_weights=logs, time=belief.time, seed=belief.seed, seen=True, before=None,
        ancestors=ancestors,
    )  # fmt: skip
    return fill_cache(found, weights=weights)


def _lost(belief: ParticleBelief) -> ParticleBelief:
    expected = f"all particles have likelihood 0 at frame {belief.time}, which leaves the belief unchanged"
    remedy = 'use more particles, proposal="guided", or an observation distribution with heavier tails'
    warn(sentence("ParticleFilter", expected, remedy=remedy))
    return belief.replace(seen=True, before=None)


def _inputs_of(inputs: Any, seqs: Ragged, alone: bool) -> list[Any]:
    """Inputs per sequence, one row per frame; None for sequences without inputs."""
    if inputs is None:
        return [None] * len(seqs)
    known = [np.asarray(inputs)] if alone else [np.asarray(u) for u in inputs]
    if [len(u) for u in known] != seqs.lengths.tolist():
        got = [len(u) for u in known][:5]
        raise ShapeError(sentence("ParticleFilter", f"inputs must have one row per frame {seqs.lengths[:5]}", got))
    return known
