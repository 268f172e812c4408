"""Learning a linear-Gaussian model: the smoother expects, regressions maximize   (Shumway and Stoffer 1982)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from likely.core.arrays import Array, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import tell, unheard
from likely.numerics import spd
from likely.numerics.special import LOG_2PI
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_e_step as moments
from likely.statespace.linear.kalman_filter import Series
from likely.statespace.linear.kalman_smoother import smoothed
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import SPREADS, Structure, along_flat, matrix_from, on_flat, spread_from

ME = "LinearGaussian"


def collected(model: Any, series: Series, weight: Any) -> LinearStats:
    """The E-step over all sequences; those that do not determine a diffuse start are left out, with a note."""
    return _total(_collected, model, series, _weights(series, weight))


def explained(model: Any, series: Series, weight: Any) -> LinearStats:
    """The E-step's moments of what is expected, as if it were known; what they lack of all moments is uncertain."""
    with unheard():  # whoever asks has collected before
        return _total(partial(_collected, known=True), model, series, _weights(series, weight))


def _weights(series: Series, weight: Any) -> Array:
    w = weights(weight, len(series.offsets) - 1, ME)
    w = np.ones(len(series.offsets) - 1) if w is None else w
    if w.ndim != 1:
        raise ShapeError(sentence(ME, "weights must be one per sequence", w.shape))
    return w


def _total(collect: Any, model: Any, series: Series, w: Array) -> LinearStats:
    def part(some: Series, before: int) -> LinearStats:
        with np.errstate(all="ignore"):  # what leaves the range of numbers, `fit` says in words
            stats: LinearStats = collect(model, some, before, w[before : before + len(some.offsets) - 1])
            return stats

    try:
        found = passes.in_parts(part, series)
    except DataError:
        unknown = start_unknown(model, series)
        if not unknown.any():
            raise
        return _total(collect, model, _without(series, unknown), w[~unknown])
    return reduce(add, found) if found else part(series, 0)


def start_unknown(model: Any, series: Series) -> NDArray[np.bool_]:
    """Which sequences (n,) do not determine a diffuse start: of these no states can be smoothed.

    A note tells how many they are; an error, if no other is there.
    """
    lengths = np.diff(series.offsets)
    if model.diffuse is None or not len(lengths):
        return np.zeros(len(lengths), dtype=bool)
    tied = passes.in_parts(lambda part, _: passes.filtered(model, part, keeps=False).tied, series)
    unknown: NDArray[np.bool_] = (np.concatenate(tied) == lengths) & (lengths > 0)
    n = int(unknown.sum())
    if n and (unknown | (lengths == 0)).all():
        remedy = "give the model a covariance of its first state, or longer sequences"
        raise DataError(sentence(ME, "a diffuse start must be determined by some sequence", f"{n} that do not", remedy))
    if n:
        told = f"{n} of {len(unknown)} sequences do not determine the diffuse start and are left out of learning"
        tell(f"{ME}: {told}; with a covariance of the first state they would count")
    return unknown


def _without(series: Series, gone: NDArray[np.bool_]) -> Series:
    lengths = np.diff(series.offsets)
    frames = np.repeat(~gone, lengths)
    inputs = None if series.inputs is None else series.inputs[frames]
    push = series.push if series.inputs is None else np.ascontiguousarray(series.push[frames])
    offsets = np.concatenate([[0], np.cumsum(lengths[~gone])]).astype(series.offsets.dtype)
    return Series(np.ascontiguousarray(series.y[frames]), offsets, push, inputs)


def _collected(model: Any, series: Series, before: int, w: Array, known: bool = False) -> LinearStats:
    kept, mean, cov, lag = smoothed(model, series, before)
    lengths = np.diff(series.offsets)
    t = np.arange(len(series.y)) - np.repeat(series.offsets[:-1], lengths)
    path = moments.Path(mean, cov, lag, np.repeat(w, lengths), t)
    path = path.of_means() if known else path
    moved, seen = moments.moves(model, series, path), moments.observations(model, series, path)
    there = lengths > 0
    at, first = series.offsets[:-1][there], w[there]
    off = mean[at] - model.initial_mean
    scatter = (first[:, None] * off).T @ off + np.tensordot(first, path.covariance[at], axes=1)
    stats = LinearStats.trusted(
        n_initial=np.asarray(first.sum()),
        first=first @ off,
        first_scatter=spd.symmetric(scatter),
        n_transitions=np.asarray(moved.count),
        noise=moved.scatter,
        noise_by=moved.cross,
        before=moved.of,
        seen=np.asarray(seen.count),
        observed=seen.scatter,
        observed_by=seen.cross,
        states=seen.of,
        mean=model.initial_mean,
        move=beside(model, "transition", "control"),
        emit=beside(model, "observation", "feedthrough"),
        white=np.stack([moved.white, seen.white]),
        entropy=np.asarray(0.0),
        frames=np.asarray(path.weight.sum()),
    )
    found = float((w * kept.total).sum()) if (w > 0).all() else float((w * np.where(w > 0, kept.total, 0.0)).sum())
    return stats.replace(entropy=np.asarray(found - expected(model, stats)))


def beside(model: Any, state: str, inputs: str) -> Array:
    """[A F], or [C G]: a matrix that does not change, beside that of the inputs; zeros for one that does."""
    a, b = getattr(model, state), getattr(model, inputs)
    rows, k = a.shape[-2], model.n_inputs
    left = a if a.ndim == 2 else np.zeros(a.shape[-2:])
    right = np.zeros((rows, k)) if b is None or b.ndim == 3 else b
    return np.array(left) if not k else np.hstack([left, right])


def at_model(model: Any, stats: LinearStats) -> LinearStats:
    """The statistics about this model's own matrices."""
    return stats.about(
        model.initial_mean, beside(model, "transition", "control"), beside(model, "observation", "feedthrough")
    )


def expected(model: Any, stats: LinearStats) -> float:
    """Expected log-likelihood of states and observations together; of a diffuse start nothing is expected."""
    with np.errstate(all="ignore"):
        return _expected(model, at_model(model, stats))


def _expected(model: Any, own: LinearStats) -> float:
    none = moments.STILL
    start = (
        0.0
        if model.diffuse is not None
        else _gaussian(model.initial_covariance, own.first_scatter, own.n_initial, none)
    )
    return start + _gaussian(model.process_covariance, own.noise, own.n_transitions, own.white[0]) + _gaussian(
        model.observation_covariance, own.observed, own.seen, own.white[1]
    )  # fmt: skip


def _gaussian(covariance: Array, scatter: Array, count: Any, white: Array) -> float:
    """E log N of residuals with this scatter; of a covariance that changes, up to what only time decides."""
    if covariance.ndim == 3:
        size = max(moments.size(covariance), 1e-300)
        return -0.5 * float(white[1] * np.log(size) + white[0] / size)
    inv, logdet, rank = moments.inverse(covariance)
    return -0.5 * float(count * (rank * LOG_2PI + logdet) + (inv * scatter).sum())


def objective(model: Any, stats: LinearStats, prior: Any) -> float:
    """The free energy: at the model that looked it is log p(y), plus the log prior."""
    value = expected(model, stats) + float(stats.entropy)
    return value if prior is None else value + prior.log_density(model)


def everything(model: Any) -> Structure:
    """All that can be learned, without structure."""
    return Structure.of(model)


def refitted(model: Any, stats: LinearStats, prior: Any, structure: Structure) -> Any:
    """The M-step: first matrices, by weighted regressions, then the covariances of what they leave."""
    both = stats if prior is None else stats + prior.stats
    with np.errstate(all="ignore"):
        own = at_model(model, both)
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
        shift = along_flat(model.initial_covariance, own.first / own.n_initial)
    if "initial_mean" in structure.learn:
        parts["initial_mean"] = model.initial_mean + shift
    if "initial_covariance" in structure.learn:
        off = own.first_scatter / own.n_initial
        mean = own.first / own.n_initial
        about = off - np.outer(mean, shift) - np.outer(shift, mean) + np.outer(shift, shift)
        parts["initial_covariance"] = on_flat(model.initial_covariance, spd.symmetric(about))
    return parts


def _regression(
    model: Any, own: LinearStats, structure: Structure, names: tuple[str, str], of: str
) -> dict[str, Array]:
    state = names[0] == "transition"
    base, cross = (own.move, own.noise_by) if state else (own.emit, own.observed_by)
    hidden, spread = (own.before, getattr(model, of)) if state else (own.states, getattr(model, of))
    parts: dict[str, Array] = {}
    if any(name in structure.learn for name in names):
        made = matrix_from(base, cross, hidden, spread, structure.labels(model, names))
        own = own.about(own.mean, made, own.emit) if state else own.about(own.mean, own.move, made)
        d = model.states
        parts = {n: a for n, a in zip(names, (made[:, :d], made[:, d:]), strict=True) if n in structure.learn}
        parts = {n: np.ascontiguousarray(a) for n, a in parts.items()}
    if of in structure.learn:
        scatter, count = (own.noise, own.n_transitions) if state else (own.observed, own.seen)
        white = own.white[0 if state else 1]
        parts[of] = spread_from(spread, scatter, float(count), white, structure.form.get(of, "full"))
    return parts


@dataclass(frozen=True, eq=False)
class LinearPrior(Value):
    """A prior is data that came before: moments that add to those of the data, up to a constant of the density.

    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> earlier = LinearPrior(walk.collect([[0.0, 1.0, 0.5]]) * 0.1)
    >>> walk.refit(walk.collect([[0.0, 4.0]]), earlier).process_covariance.round(2)
    array([[1.97]])
    """

    stats: LinearStats

    def log_density(self, model: Any) -> float:
        """Log of the prior at a model, up to a constant."""
        return expected(model, self.stats)

    def update(self, stats: LinearStats) -> LinearPrior:
        """What came before, and now also these moments; what the states were stays hidden, so they are a guess."""
        return LinearPrior(self.stats + stats)

    def point(self, which: str = "mode") -> NoReturn:
        """An error: moments alone say nothing of what is fixed; `model.refit(stats, prior)` gives the mode."""
        expected = "the mode needs a model that says what is fixed"
        raise DomainError(sentence("LinearPrior", expected, which, "call model.refit(stats, prior)"))


def weak_prior(model: Any, stats: LinearStats) -> LinearPrior:
    """One frame that looks like the average one of the first pass, its columns unrelated: variances stay above 0.

    None is less than a hundredth of the model's own, where a column that never changes would leave nothing.
    """

    def one(scatter: Array, count: Array, least: Array | float = 0.0) -> Array:
        return np.diag(np.maximum(np.diagonal(scatter) / max(float(count), 1e-300), least))

    s = at_model(model, stats)
    none = np.zeros(())
    low = {n: 0.01 * np.diagonal(getattr(model, n)) if getattr(model, n).ndim == 2 else 0.0 for n in SPREADS}
    return LinearPrior.trusted(
        stats=s.replace(
            n_initial=np.asarray(1.0), first=np.zeros_like(s.first), first_scatter=one(s.first_scatter, s.n_initial),
            n_transitions=np.asarray(min(float(s.n_transitions), 1.0)),
            noise=one(s.noise, s.n_transitions, low["process_covariance"]),
            noise_by=np.zeros_like(s.noise_by),
            before=one(s.before, s.n_transitions), seen=np.asarray(min(float(s.seen), 1.0)),
            observed=one(s.observed, s.seen, low["observation_covariance"]),
            observed_by=np.zeros_like(s.observed_by), states=one(s.states, s.seen),
            white=s.white / np.maximum([[float(s.n_transitions)], [float(s.seen)]], 1e-300), entropy=none, frames=none,
        )
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LinearLearner(Value):
    """A linear-Gaussian model of which some is learned, perhaps with structure: what `fit` improves.

    >>> import likely as lk, numpy as np
    >>> nile = np.array([1120.0, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140])
    >>> level = lk.LinearGaussian.local_level(level_variance=1000.0, observation_variance=10000.0)
    >>> report = lk.fit(LinearLearner.of(level, ["observation_covariance"]), lk.Ragged.of(nile))
    >>> report.converged, report.model.model.process_covariance.item()
    (True, 1000.0)
    """

    model: Any
    structure: Structure

    of_sequences = True
    takes_parts = True
    members = None

    def __post_init__(self) -> None:
        self._set(structure=Structure.of(self.model, self.structure.learn, self.structure.form))

    @classmethod
    def of(cls, model: Any, learn: Any = None, form: Any = None) -> LinearLearner:
        """`learn`: names of parameters, such as ["process_covariance"]; `form`: the form of each, see `Structure`."""
        return cls.trusted(model=model, structure=Structure.of(model, learn, form))

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(self.model.dim)

    @property
    def n_parameters(self) -> int:
        """Numbers that are learned."""
        return self.structure.n_parameters(self.model)

    @property
    def smallest_eigenvalue(self) -> float:
        """The least variance of noise and observation in any direction."""
        return float(self.model.smallest_eigenvalue)

    def log_prob(self, y: Any) -> Array:
        """log p(y) of each sequence."""
        return self.model.log_prob(y)

    def sample(self, n: int, rng: Generator, **how: Any) -> Any:
        """n sequences of the model as it is."""
        return self.model.sample(n, rng, **how)

    def collect(self, y: Any, weight: Any = None) -> LinearStats:
        """The E-step."""
        return self.model.collect(y, weight)

    def refit(self, stats: LinearStats, prior: Any = None) -> LinearLearner:
        """The M-step for what is learned."""
        return self.replace(model=refitted(self.model, stats, prior, self.structure))

    def objective(self, stats: LinearStats, prior: Any = None) -> float:
        """The free energy."""
        return objective(self.model, stats, prior)

    def weak_prior(self, stats: LinearStats) -> LinearPrior:
        """One frame's worth of what the first pass saw."""
        return weak_prior(self.model, stats)
