"""EM algorithm for linear-Gaussian models: E-step by the smoother, M-step by regressions (Shumway and Stoffer 1982)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from likely.core import declared
from likely.core.arrays import Array, SequencesLike, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior, PointRule
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.core.warnings import warn, warnings_discarded
from likely.numerics import spd
from likely.numerics.special import LOG_2PI
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_e_step as moments
from likely.statespace.linear.kalman_filter import Series
from likely.statespace.linear.kalman_smoother import smooth_part
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import (
    COVARIANCES,
    Structure,
    along_support,
    covariance_from,
    matrix_from,
    on_support,
)

ME = "LinearGaussian"


def e_step(model: Any, series: Series, weight: Any) -> LinearStats:
    """E-step over all sequences; those that do not determine a diffuse initial state are left out, with a warning."""
    return _total(_e_step, model, series, _weights(series, weight))


def e_step_of_means(model: Any, series: Series, weight: Any) -> LinearStats:
    """Moments of the posterior means alone; the difference to the E-step's moments is the posterior variance."""
    with warnings_discarded():  # the E-step before has warned
        return _total(partial(_e_step, means_only=True), model, series, _weights(series, weight))


def _weights(series: Series, weight: Any) -> Array:
    w = weights(weight, len(series.offsets) - 1, ME)
    w = np.ones(len(series.offsets) - 1) if w is None else w
    if w.ndim != 1:
        raise ShapeError(sentence(ME, "weights must be one per sequence", w.shape))
    return w


def _total(collect: Any, model: Any, series: Series, w: Array) -> LinearStats:
    def part(part_series: Series, before: int) -> LinearStats:
        with np.errstate(all="ignore"):  # `fit` reports overflow
            stats: LinearStats = collect(model, part_series, before, w[before : before + len(part_series.offsets) - 1])
            return stats

    try:
        found = passes.map_parts(part, series)
    except DataError:
        unknown = initial_undetermined(model, series)
        if not unknown.any():
            raise
        return _total(collect, model, _without(series, unknown), w[~unknown])
    return reduce(add, found) if found else part(series, 0)


def initial_undetermined(model: Any, series: Series) -> NDArray[np.bool_]:
    """Mask (n,) of sequences that do not determine a diffuse initial state: their states cannot be smoothed.

    A warning gives their number; it is an error if there is no other sequence.
    """
    lengths = np.diff(series.offsets)
    if model.diffuse is None or not len(lengths):
        return np.zeros(len(lengths), dtype=bool)
    diffuse_end = passes.map_parts(lambda part, _: passes.filter_part(model, part, keeps=False).diffuse_end, series)
    unknown: NDArray[np.bool_] = (np.concatenate(diffuse_end) == lengths) & (lengths > 0)
    n = int(unknown.sum())
    if n and (unknown | (lengths == 0)).all():
        remedy = "give the model an initial covariance, or longer sequences"
        expected = "a diffuse initial state must be determined by at least one sequence"
        raise DataError(sentence(ME, expected, f"{n} that do not", remedy))
    if n:
        message = f"{n} of {len(unknown)} sequences do not determine the diffuse initial state and are left out"
        warn(f"{ME}: {message}; give the model an initial covariance to use them")
    return unknown


def _without(series: Series, gone: NDArray[np.bool_]) -> Series:
    lengths = np.diff(series.offsets)
    frames = np.repeat(~gone, lengths)
    inputs = None if series.inputs is None else series.inputs[frames]
    intercept = series.intercept if series.inputs is None else np.ascontiguousarray(series.intercept[frames])
    offsets = np.concatenate([[0], np.cumsum(lengths[~gone])]).astype(series.offsets.dtype)
    return Series(np.ascontiguousarray(series.y[frames]), offsets, intercept, inputs)


def _e_step(model: Any, series: Series, before: int, w: Array, means_only: bool = False) -> LinearStats:
    filtered, mean, cov, lag = smooth_part(model, series, before)
    lengths = np.diff(series.offsets)
    t = np.arange(len(series.y)) - np.repeat(series.offsets[:-1], lengths)
    path = moments.SmoothedPath(mean, cov, lag, np.repeat(w, lengths), t)
    path = path.without_covariance() if means_only else path
    process, observation = (
        moments.transition_moments(model, series, path),
        moments.observation_moments(model, series, path),
    )
    nonempty = lengths > 0
    at, first = series.offsets[:-1][nonempty], w[nonempty]
    off = mean[at] - model.initial_mean
    scatter = (first[:, None] * off).T @ off + np.tensordot(first, path.covariance[at], axes=1)
    stats = LinearStats.trusted(
        n_initial=np.asarray(first.sum()),
        initial_sum=first @ off,
        initial_scatter=spd.symmetric(scatter),
        n_transitions=np.asarray(process.count),
        process_scatter=process.scatter,
        transition_cross=process.cross,
        transition_gram=process.gram,
        n_observed=np.asarray(observation.count),
        observation_scatter=observation.scatter,
        observation_cross=observation.cross,
        observation_gram=observation.gram,
        initial_mean=model.initial_mean,
        transition=side_by_side(model, "transition", "control"),
        observation=side_by_side(model, "observation", "feedthrough"),
        whitened_scatter=np.stack([process.whitened, observation.whitened]),
        entropy=np.asarray(0.0),
        n_frames=np.asarray(path.weight.sum()),
    )
    found = (
        float((w * filtered.total).sum()) if (w > 0).all() else float((w * np.where(w > 0, filtered.total, 0.0)).sum())
    )
    return stats.replace(entropy=np.asarray(found - expected_log_prob(model, stats)))


def side_by_side(model: Any, state: str, inputs: str) -> Array:
    """[A F], or [C G]: the constant matrices of state and inputs side by side; zeros for time-varying ones."""
    a, b = getattr(model, state), getattr(model, inputs)
    rows, k = a.shape[-2], model.n_inputs
    left = a if a.ndim == 2 else np.zeros(a.shape[-2:])
    right = np.zeros((rows, k)) if b is None or b.ndim == 3 else b
    return np.array(left) if not k else np.hstack([left, right])


def about_model(model: Any, stats: LinearStats) -> LinearStats:
    """The statistics with this model's matrices as the reference of residuals."""
    return stats.about(
        model.initial_mean,
        side_by_side(model, "transition", "control"),
        side_by_side(model, "observation", "feedthrough"),
    )


def expected_log_prob(model: Any, stats: LinearStats) -> float:
    """Expected complete-data log-likelihood; a diffuse initial state contributes nothing."""
    with np.errstate(all="ignore"):
        return _expected(model, about_model(model, stats))


def _expected(model: Any, own: LinearStats) -> float:
    none = moments.CONSTANT
    process, observation = own.whitened_scatter
    initial = (
        0.0
        if model.diffuse is not None
        else _gaussian(model.initial_covariance, own.initial_scatter, own.n_initial, none)
    )
    return (
        initial
        + _gaussian(model.process_covariance, own.process_scatter, own.n_transitions, process)
        + _gaussian(model.observation_covariance, own.observation_scatter, own.n_observed, observation)
    )


def _gaussian(covariance: Array, scatter: Array, count: Any, white: Array) -> float:
    """Expected Gaussian log-density of residuals with this scatter; up to a constant for a time-varying covariance."""
    if covariance.ndim == 3:
        size = max(moments.mean_variance(covariance), 1e-300)
        return -0.5 * float(white[1] * np.log(size) + white[0] / size)
    inv, logdet, rank = moments.pinv_logdet_rank(covariance)
    return -0.5 * float(count * (rank * LOG_2PI + logdet) + (inv * scatter).sum())


def objective(model: Any, stats: LinearStats, prior: Any) -> float:
    """EM objective (evidence lower bound) plus the log prior; at the model of the E-step it equals log p(y)."""
    value = expected_log_prob(model, stats) + float(stats.entropy)
    return value if prior is None else value + prior.log_density(model)


def all_parameters(model: Any) -> Structure:
    """All learnable parameters, without constraints."""
    return Structure.of(model)


def m_step(model: Any, stats: LinearStats, prior: Any, structure: Structure) -> Any:
    """M-step: first the matrices, by weighted regressions, then the covariances of the residuals."""
    both = stats if prior is None else stats + prior.stats
    with np.errstate(all="ignore"):
        own = about_model(model, both)
        parts: dict[str, Any] = _start(model, own, structure)
        parts |= _regression(model, own, structure, ("transition", "control"), "process_covariance")
        parts |= _regression(model, own, structure, ("observation", "feedthrough"), "observation_covariance")
    return model.replace(**parts)


def _start(model: Any, own: LinearStats, structure: Structure) -> dict[str, Array]:
    parts: dict[str, Array] = {}
    if own.n_initial <= 0:
        return parts
    shift = np.zeros(model.states)
    if "initial_mean" in structure.learn:
        shift = along_support(model.initial_covariance, own.initial_sum / own.n_initial)
    if "initial_mean" in structure.learn:
        parts["initial_mean"] = model.initial_mean + shift
    if "initial_covariance" in structure.learn:
        off = own.initial_scatter / own.n_initial
        mean = own.initial_sum / own.n_initial
        about = off - np.outer(mean, shift) - np.outer(shift, mean) + np.outer(shift, shift)
        parts["initial_covariance"] = on_support(model.initial_covariance, spd.symmetric(about))
    return parts


def _regression(
    model: Any, own: LinearStats, structure: Structure, names: tuple[str, str], of: str
) -> dict[str, Array]:
    """Regression of the residuals on (x, u) for two matrices side by side, then the covariance `of` the residuals."""
    state, covariance = names[0] == "transition", getattr(model, of)
    base, cross, gram = (
        (own.transition, own.transition_cross, own.transition_gram)
        if state
        else (own.observation, own.observation_cross, own.observation_gram)
    )
    parts: dict[str, Array] = {}
    if any(name in structure.learn for name in names):
        made = matrix_from(base, cross, gram, covariance, structure.labels(model, names))
        transition, observation = (made, own.observation) if state else (own.transition, made)
        own = own.about(own.initial_mean, transition, observation)
        d = model.states
        parts = {n: a for n, a in zip(names, (made[:, :d], made[:, d:]), strict=True) if n in structure.learn}
        parts = {n: np.ascontiguousarray(a) for n, a in parts.items()}
    if of in structure.learn:
        scatter, count, whitened = (
            (own.process_scatter, own.n_transitions, own.whitened_scatter[0])
            if state
            else (own.observation_scatter, own.n_observed, own.whitened_scatter[1])
        )
        form = structure.form.get(of, "full")
        parts[of] = covariance_from(covariance, scatter, float(count), whitened, form)
    return parts


@dataclass(frozen=True, eq=False)
class LinearPrior(Value):
    """Conjugate prior given by pseudo-observations: statistics that add to those of the data.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> earlier = LinearPrior(walk.collect([[0.0, 1.0, 0.5]]) * 0.1)
    >>> walk.refit(walk.collect([[0.0, 4.0]]), earlier).process_covariance.round(2)
    array([[1.97]])
    """

    stats: Annotated[LinearStats, declared.of_class("LinearStats")]

    def log_density(self, model: Any) -> float:
        """Log of the prior at a model, up to a constant."""
        return expected_log_prob(model, self.stats)

    def update(self, stats: LinearStats) -> LinearPrior:
        """Prior with these statistics added; approximate, since states are not observed."""
        return LinearPrior(self.stats + stats)

    def point(self, which: PointRule = "mode") -> NoReturn:
        """Always an error: the mode depends on what the model fixes; `model.refit(stats, prior)` gives it.

        Parameters
        ----------
        which : {"mode", "mean", "median"}
            Not used.
        """
        expected = "the mode needs a model that specifies the fixed parameters"
        raise DomainError(sentence("LinearPrior", expected, which, "call model.refit(stats, prior)"))


def weak_prior(model: Any, stats: LinearStats) -> LinearPrior:
    """Prior of one pseudo-observation: the average frame of the first E-step, with diagonal scatters.

    It keeps variances above 0. None is less than a hundredth of the model's own, since a constant column would give 0.
    """

    def one(scatter: Array, count: Array, least: Array | float = 0.0) -> Array:
        return np.diag(np.maximum(np.diagonal(scatter) / max(float(count), 1e-300), least))

    s = about_model(model, stats)
    none, counts = np.zeros(()), [[float(s.n_transitions)], [float(s.n_observed)]]
    low = {n: 0.01 * np.diagonal(getattr(model, n)) if getattr(model, n).ndim == 2 else 0.0 for n in COVARIANCES}
    return LinearPrior.trusted(
        stats=s.replace(
            n_initial=np.asarray(1.0), initial_sum=np.zeros_like(s.initial_sum),
            initial_scatter=one(s.initial_scatter, s.n_initial),
            n_transitions=np.asarray(min(float(s.n_transitions), 1.0)),
            process_scatter=one(s.process_scatter, s.n_transitions, low["process_covariance"]),
            transition_cross=np.zeros_like(s.transition_cross),
            transition_gram=one(s.transition_gram, s.n_transitions),
            n_observed=np.asarray(min(float(s.n_observed), 1.0)),
            observation_scatter=one(s.observation_scatter, s.n_observed, low["observation_covariance"]),
            observation_cross=np.zeros_like(s.observation_cross),
            observation_gram=one(s.observation_gram, s.n_observed),
            whitened_scatter=s.whitened_scatter / np.maximum(counts, 1e-300), entropy=none, n_frames=none,
        )
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ConstrainedLinearGaussian(Value):
    """Linear-Gaussian model with a choice of learned parameters and constraints on them: the argument of `fit`.

    Parameters
    ----------
    model : LinearGaussian
        The model.
    structure : Structure
        Learned parameters and their constraints, as `of` makes them.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> nile = np.array([1120.0, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140])
    >>> level = lk.LinearGaussian.local_level(level_variance=1000.0, observation_variance=10000.0)
    >>> report = lk.fit(ConstrainedLinearGaussian.of(level, ["observation_covariance"]), lk.Ragged.of(nile))
    >>> report.converged, report.model.model.process_covariance.item()
    (True, 1000.0)
    """

    model: Annotated[Any, declared.of_class("LinearGaussian")]
    structure: Annotated[Structure, declared.of_class("Structure")]

    of_sequences = True
    takes_parts = True
    members = None

    def __post_init__(self) -> None:
        self._set(structure=Structure.of(self.model, self.structure.learn, self.structure.form))

    @classmethod
    def of(cls, model: Any, learn: Any = None, form: Any = None) -> ConstrainedLinearGaussian:
        """Model with a choice of learned parameters.

        Parameters
        ----------
        model : LinearGaussian
            The model.
        learn : sequence of str, optional
            Names of learned parameters, such as ["process_covariance"]; None: all that can be.
        """
        return cls.trusted(model=model, structure=Structure.of(model, learn, form))

    @property
    def dim(self) -> int:
        """Number of observed columns."""
        return int(self.model.dim)

    @property
    def n_parameters(self) -> int:
        """Number of learned parameters."""
        return self.structure.n_parameters(self.model)

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the process and observation covariances."""
        return float(self.model.smallest_eigenvalue)

    def log_prob(self, y: SequencesLike) -> Array:
        """Log-likelihood log p(y) per sequence."""
        return self.model.log_prob(y)

    def sample(self, n: int, rng: Generator, **how: Any) -> Ragged:
        """Draw n sequences.

        Parameters
        ----------
        n : int
            Number of sequences.
        **how : settings
            Arguments of `LinearGaussian.sample`.

        Returns
        -------
        Ragged
            Sequences.
        """
        return self.model.sample(n, rng, **how)

    def collect(self, y: SequencesLike, weight: ArrayLike | None = None) -> LinearStats:
        """E-step: expected sufficient statistics."""
        return self.model.collect(y, weight)

    def refit(self, stats: LinearStats, prior: AnyPrior | None = None) -> ConstrainedLinearGaussian:
        """M-step for the learned parameters."""
        return self.replace(model=m_step(self.model, stats, prior, self.structure))

    def objective(self, stats: LinearStats, prior: AnyPrior | None = None) -> float:
        """EM objective (evidence lower bound) plus the log prior."""
        return objective(self.model, stats, prior)

    def weak_prior(self, stats: LinearStats) -> LinearPrior:
        """Weak prior: the statistics of one average frame of the first E-step."""
        return weak_prior(self.model, stats)
