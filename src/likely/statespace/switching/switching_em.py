"""Approximate EM for switching linear-Gaussian models: smoothed regimes weight the statistics of each regime.

The E-step is approximate, so the (approximate) evidence need not increase at every step; `fit` stops before it would
decrease, and returns the best model. If the regimes of all frames are given the E-step is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, SequencesLike, weights
from likely.core.em_loop import StoppingRule, fit
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import AnyPrior, PointRule
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.core.warnings import warn
from likely.hmm.hmm import masks
from likely.numerics import spd
from likely.statespace.linear import linear_e_step, linear_em
from likely.statespace.linear.kalman_filter import Series
from likely.statespace.linear.linear_em import LinearPrior, side_by_side
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import INITIAL, Structure
from likely.statespace.switching import switching_filter as passes
from likely.statespace.switching.switching_stats import SwitchingStats

ME = "SwitchingLinearGaussian"
CHAIN = ("transition", "initial")


# ------------------------------------------------------------------ expectation


def e_step(model: Any, y: Any, weight: Any, log_mask: Any, inputs: Any = None) -> SwitchingStats:
    """Approximate E-step over all sequences."""
    seqs = Ragged.of(y)
    mask = None if log_mask is None else known_regimes(log_mask, seqs, model.n_regimes).values
    series = passes.switched(model, y, inputs, mask)
    n = len(series.offsets) - 1
    w = weights(weight, n, ME)
    w = np.ones(n) if w is None else w
    if w.ndim != 1:
        raise ShapeError(sentence(ME, "weights must be one per sequence", w.shape))
    found = passes.map_parts(lambda ab: _e_step(model, series.cut(*ab), w[ab[0] : ab[1]], ab[0]), series, model)
    return reduce(add, found)


def known_regimes(given: Any, seqs: Ragged, K: int, whose: str = ME) -> Ragged:
    """Known regimes as log-masks (T, K), from regime numbers, −1 where unknown, or from log-masks.

    >>> known_regimes([[1, -1]], Ragged.of([[0.0, 0.0]]), 2).values.tolist()
    [[-inf, 0.0], [0.0, 0.0]]
    """
    known = Ragged.of(given)
    if known.offsets.shape != seqs.offsets.shape or (known.offsets != seqs.offsets).any():
        expected = "regimes must be given for every frame of every sequence, −1 where unknown"
        raise ShapeError(sentence(whose, expected, f"{known!r} for {seqs!r}"))
    values = np.asarray(known.values)
    numbers = values.ndim == 1 and values.dtype.kind in "iu"
    if values.size and numbers and not -1 <= values.min() <= values.max() < K:
        outside = int(values.max() if values.max() >= K else values.min())
        raise DomainError(sentence(whose, f"regimes must lie in 0 … {K - 1}, or be −1 where unknown", outside))
    if values.size and not numbers and not (values.dtype.kind == "f" and values.shape[1:] == (K,)):
        expected = f"regimes must be integers, one per frame, or log-masks of {K} columns"
        raise DomainError(sentence(whose, expected, f"{values.dtype} {values.shape}"))
    return masks(known, seqs, K)


def _e_step(model: Any, series: passes.Switched, w: Array, before: int) -> SwitchingStats:
    kept = passes.forward(model.stack, series, both=True)
    bad = np.flatnonzero(np.isneginf(kept.total) & (w > 0))
    if len(bad):
        expected = "every sequence must have positive density in some path of regimes"
        q = int(bad[0])
        f = int(np.argmax(np.isneginf(kept.increments[series.offsets[q] :])))  # of that sequence: it has one
        got = f"density 0 of sequence {before + q} at frame {f}"
        raise DataError(sentence(ME, expected, got, _remedy(series, int(series.offsets[q]) + f)))
    found = passes.backward(model.stack, series, kept)
    frames = np.repeat(w, np.diff(series.offsets))
    first = series.offsets[:-1][np.diff(series.offsets) > 0]
    share = found.share * frames[:, None]
    each = tuple(_of_regime(model.regimes[k], k, series, found, frames, first) for k in range(model.n_regimes))
    stats = SwitchingStats.trusted(
        regimes=each, initial=share[first].sum(axis=0), transition=np.tensordot(frames, found.joint, axes=1),
        counts=share.sum(axis=0), entropy=np.asarray(0.0),
    )  # fmt: skip
    evidence = float(w[w > 0] @ kept.total[w > 0])
    return stats.replace(entropy=np.asarray(evidence - expected_log(model, stats)))


def _remedy(series: passes.Switched, f: int) -> str:
    """Remedy for a frame of density 0 in every regime."""
    if len(series.mask) > 1 and np.isneginf(series.mask[f]).any():
        return "correct the regimes given for it, or add noise to the model"
    return "replace the outlier by NaN, or add noise to the model"


def _of_regime(
    m: Any, k: int, series: passes.Switched, found: passes.RegimeMoments, w: Array, first: Any
) -> LinearStats:
    """Statistics of one regime: observations of its frames, and transitions into it from any regime."""
    own, roots = series.each[k], found.roots[:, k]
    cov = np.swapaxes(roots, 1, 2) @ roots
    t = np.zeros(len(w), np.intp)
    none = np.empty((0, m.states, m.states))
    share = found.share[:, k] * w
    observation = linear_e_step.observation_moments(
        m, own, linear_e_step.SmoothedPath(found.means[:, k], cov, none, share, t)
    )
    process = linear_e_step.transition_moments(m, *_transitions_into(k, own, found, cov, w))
    start = share[first]
    off = found.means[first, k] - m.initial_mean
    scatter = (start[:, None] * off).T @ off + np.tensordot(start, cov[first], axes=1)
    return LinearStats.trusted(
        n_initial=np.asarray(start.sum()), initial_sum=start @ off, initial_scatter=spd.symmetric(scatter),
        n_transitions=np.asarray(process.count), process_scatter=process.scatter, transition_cross=process.cross,
        transition_gram=process.gram, n_observed=np.asarray(observation.count),
        observation_scatter=observation.scatter, observation_cross=observation.cross,
        observation_gram=observation.gram, initial_mean=m.initial_mean,
        transition=side_by_side(m, "transition", "control"),
        observation=side_by_side(m, "observation", "feedthrough"),
        whitened_scatter=np.stack([process.whitened, observation.whitened]), entropy=np.asarray(0.0),
        n_frames=np.asarray(share.sum()),
    )  # fmt: skip


def _transitions_into(
    k: int, own: Series, found: passes.RegimeMoments, cov: Array, w: Array
) -> tuple[Series, linear_e_step.SmoothedPath]:
    """Each transition (f, j → k) as a sequence of two frames, in the form of the linear E-step."""
    f, j = np.nonzero(found.joint[:, :, k] > 0)
    d = cov.shape[1]
    mean, covariance, lag = np.zeros((len(f), 2, d)), np.zeros((len(f), 2, d, d)), np.zeros((len(f), 2, d, d))
    mean[:, 0], mean[:, 1] = found.left[f, j, k], found.means[f, k]
    covariance[:, 0], covariance[:, 1] = found.left_cov[f, j, k], cov[f]
    lag[:, 1] = found.lag[f, j, k]
    count = np.repeat(found.joint[f, j, k] * w[f], 2)
    two = np.repeat(f, 2)
    inputs = None if own.inputs is None else own.inputs[two]
    intercept = own.intercept if own.inputs is None else own.intercept[two]
    path = linear_e_step.SmoothedPath(
        mean.reshape(-1, d), covariance.reshape(-1, d, d), lag.reshape(-1, d, d), count, np.tile([0, 1], len(f))
    )
    return Series(own.y[two], 2 * np.arange(len(f) + 1), intercept, inputs), path


def expected_log(model: Any, stats: SwitchingStats) -> float:
    """Expected complete-data log-likelihood of regimes, states and observations."""
    each = [linear_em.expected_log_prob(m, s) for m, s in zip(model.regimes, stats.regimes, strict=True)]
    return sum(each) + _cross(stats.initial, model.initial) + _cross(stats.transition, model.transition)


def _cross(counts: Array, probs: Array) -> float:
    """Σ n log p, where 0 log 0 = 0."""
    some = counts > 0
    with np.errstate(divide="ignore"):
        return float((counts[some] * np.log(probs[some])).sum())


def objective(model: Any, stats: SwitchingStats, prior: Any) -> float:
    """Approximate EM objective plus the log prior; at the model of the E-step it is the approximate log p(y)."""
    value = expected_log(model, stats) + float(stats.entropy)
    return value if prior is None else value + prior.log_density(model)


# ----------------------------------------------------------------- maximization


def structures(model: Any, learn: Any = None, form: Any = None) -> tuple[Structure, ...]:
    """Learned parameters per regime: the same for all, or one entry each; None: all but the initial distribution."""
    each = [learn] * model.n_regimes if learn is None or not _one_each(learn) else list(learn)
    forms = list(form) if isinstance(form, list | tuple) else [form] * model.n_regimes
    if len(each) != model.n_regimes or len(forms) != model.n_regimes:
        expected = f"learn and form must be for all regimes, or one entry per regime ({model.n_regimes})"
        raise DomainError(sentence(ME, expected, (len(each), len(forms))))
    return tuple(_structure(m, a, b) for m, a, b in zip(model.regimes, each, forms, strict=True))


def _one_each(learn: Any) -> bool:
    return not isinstance(learn, str) and any(not isinstance(entry, str) for entry in learn)


def _structure(m: Any, learn: Any, form: Any) -> Structure:
    if learn is None:
        learn = [name for name in Structure.of(m).learn if name not in INITIAL]
    names = [learn] if isinstance(learn, str) else list(learn)
    return Structure.of(m, names, form)


def m_step(
    model: Any, stats: SwitchingStats, prior: Any, what: tuple[Structure, ...], chain: tuple[str, ...] = CHAIN
) -> Any:
    """M-step: each regime from its weighted statistics, transition and initial probabilities from counts."""
    priors = (None,) * model.n_regimes if prior is None else prior.regimes
    regimes = [
        linear_em.m_step(m, s, p, w) for m, s, p, w in zip(model.regimes, stats.regimes, priors, what, strict=True)
    ]
    parts: dict[str, Any] = {"regimes": tuple(regimes if prior is not None else _off_singular(regimes, stats, what))}
    for name in chain:
        counts = getattr(stats, name) + (0.0 if prior is None else getattr(prior, name))
        total = counts.sum(axis=-1, keepdims=True)
        parts[name] = np.where(total > 0, counts / np.where(total > 0, total, 1.0), getattr(model, name))
    return model.replace(**parts)


FLOOR = 1e-9  # of a column's residual variance over all regimes, as in `distributions.gaussian.variance_floors`


def _off_singular(regimes: list[Any], stats: SwitchingStats, what: tuple[Structure, ...]) -> list[Any]:
    """Regimes whose learned observation covariance is not singular.

    By maximum likelihood a regime with few frames explains them exactly. Under such a model its own frames would be
    possible or impossible by rounding alone, and so would the whole sequence.
    """
    scatter = np.sum([np.diagonal(s.observation_scatter) for s in stats.regimes], axis=0)
    floor = FLOOR * scatter / max(sum(float(s.n_observed) for s in stats.regimes), 1e-300)
    unit = 1 / np.sqrt(np.where(floor > 0, floor, 1.0))
    out = []
    for k, (m, structure) in enumerate(zip(regimes, what, strict=True)):
        S, form = m.observation_covariance, structure.form.get("observation_covariance", "full")
        free = "observation_covariance" in structure.learn and S.ndim == 2 and isinstance(form, str) and form != "scale"
        if free and (floor > 0).any() and np.linalg.eigvalsh(unit[:, None] * S * unit).min() < 1:
            warn(
                f"{ME}: the observation covariance of regime {k} is singular, its frames are too few: "
                f"{FLOOR:g} of each column's variance was added; a prior avoids this"
            )
            m = m.replace(
                observation_covariance=S + np.diag(floor if form != "spherical" else np.full_like(floor, floor.max()))
            )
        out.append(m)
    return out


@dataclass(frozen=True, eq=False)
class SwitchingPrior(Value):
    """Conjugate prior of pseudo-observations: statistics per regime, pseudo-counts of transitions and initial regimes.

    Parameters
    ----------
    regimes : sequence of LinearPrior or None
        Prior of each regime.
    initial : array-like (K,)
        Pseudo-counts of initial regimes.
    transition : array-like (K, K)
        Pseudo-counts of transitions.

    Examples
    --------
    >>> import likely as lk
    >>> m = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> jump = lk.SwitchingLinearGaussian([m, m], [[0.9, 0.1], [0.1, 0.9]])
    >>> stats = jump.collect([[0.0, 1.0, 0.5]], log_mask=[[0, 0, 1]])
    >>> jump.refit(stats, lk.priors.SwitchingPrior((None, None), [1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]])).transition
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    regimes: Annotated[tuple[LinearPrior | None, ...], declared.items(declared.maybe(declared.of_class("LinearPrior")))]
    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,)
    transition: Annotated[Array, declared.numbers("K K", 0)]  # (K, K)

    def log_density(self, model: Any) -> float:
        """Log of the prior at a model, up to a constant."""
        each = [0.0 if p is None else p.log_density(m) for p, m in zip(self.regimes, model.regimes, strict=True)]
        return sum(each) + _cross(self.initial, model.initial) + _cross(self.transition, model.transition)

    def update(self, stats: SwitchingStats) -> SwitchingPrior:
        """Prior with these statistics added; approximate, since regimes and states are not observed."""
        pairs = zip(self.regimes, stats.regimes, strict=True)
        regimes = tuple(LinearPrior(s) if p is None else p.update(s) for p, s in pairs)
        return SwitchingPrior(regimes, self.initial + stats.initial, self.transition + stats.transition)

    def point(self, which: PointRule = "mode") -> NoReturn:
        """Always an error: the mode depends on what the model fixes; `model.refit(stats, prior)` gives it.

        Parameters
        ----------
        which : {"mode", "mean", "median"}
            Not used.
        """
        expected = "the mode needs a model that specifies the fixed parameters"
        raise DomainError(sentence("SwitchingPrior", expected, which, "call model.refit(stats, prior)"))

    def draw(self, rng: Generator) -> NoReturn:
        """Always an error: pseudo-observations give no normalized distribution of parameters."""
        self._refuse("draw")

    def predictive(self) -> NoReturn:
        """Always an error: pseudo-observations give no normalized distribution of parameters."""
        self._refuse("predictive")

    def _refuse(self, verb: str) -> NoReturn:
        raise DomainError(sentence(f"SwitchingPrior.{verb}", "this needs a normalized prior", "pseudo-observations"))


def weak_prior(model: Any, stats: SwitchingStats) -> SwitchingPrior:
    """Weak prior: one average frame per regime, one initial regime, and one transition from each regime."""
    each = tuple(linear_em.weak_prior(m, s) for m, s in zip(model.regimes, stats.regimes, strict=True))
    return SwitchingPrior.trusted(regimes=each, initial=model.initial.copy(), transition=model.transition.copy())


@dataclass(frozen=True, eq=False)
class ConstrainedSwitchingLinearGaussian(Value):
    """Switching model with a choice of learned parameters: the argument of `lk.fit`.

    Parameters
    ----------
    model : SwitchingLinearGaussian
        The model.
    structures : sequence of Structure
        Learned parameters of each regime and their constraints, as `of` makes them.
    chain : sequence of str, default ("transition", "initial")
        Which of the transition matrix and the initial distribution of the regimes are learned.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> wild = walk.replace(process_covariance=np.array([[9.0]]))
    >>> jump = lk.SwitchingLinearGaussian([walk, wild], [[0.9, 0.1], [0.1, 0.9]])
    >>> learner = ConstrainedSwitchingLinearGaussian.of(jump, ["process_covariance"], chain=())
    >>> learner.refit(learner.collect([[0.0, 1.0, 0.5, 8.0]])).model.transition.tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """

    model: Annotated[Any, declared.of_class("SwitchingLinearGaussian")]
    structures: Annotated[tuple[Structure, ...], declared.items(declared.of_class("Structure"))]
    chain: Annotated[tuple[str, ...], declared.texts] = CHAIN

    of_sequences = True
    takes_parts = True
    members = None

    def __post_init__(self) -> None:
        again = self.of(self.model, [s.learn for s in self.structures], [s.form for s in self.structures], self.chain)
        self._set(structures=again.structures)

    @classmethod
    def of(
        cls, model: Any, learn: Any = None, form: Any = None, chain: Any = CHAIN
    ) -> ConstrainedSwitchingLinearGaussian:
        """Switching model with a choice of learned parameters.

        Parameters
        ----------
        model : SwitchingLinearGaussian
            The model.
        learn : sequence, optional
            Names of learned parameters for all regimes, or a list per regime.
        chain : sequence of str, default ("transition", "initial")
            Which of the transition matrix and the initial distribution of the regimes are learned.
        """
        chain = (chain,) if isinstance(chain, str) else tuple(chain)
        if any(name not in CHAIN for name in chain):
            raise DomainError(sentence(ME, f"chain must be some of {', '.join(CHAIN)}", chain))
        return cls.trusted(model=model, structures=structures(model, learn, form), chain=chain)

    @property
    def dim(self) -> int:
        """Number of observed columns."""
        return int(self.model.dim)

    @property
    def n_parameters(self) -> int:
        """Number of learned parameters."""
        n_transition = (
            np.maximum((self.model.transition > 0).sum(axis=1) - 1, 0).sum() if "transition" in self.chain else 0
        )
        begin = (self.model.initial > 0).sum() - 1 if "initial" in self.chain else 0
        each = sum(s.n_parameters(m) for s, m in zip(self.structures, self.model.regimes, strict=True))
        return int(each + n_transition + begin)

    def log_prob(self, y: SequencesLike) -> Array:
        """Approximate log-likelihood log p(y) per sequence."""
        return np.asarray(self.model.log_prob(y))

    def sample(self, n: int, rng: Generator, **how: Any) -> Ragged:
        """Draw n sequences.

        Parameters
        ----------
        n : int
            Number of sequences.
        **how : settings
            Arguments of `SwitchingLinearGaussian.sample`.

        Returns
        -------
        Ragged
            Sequences.
        """
        return self.model.sample(n, rng, **how)

    def collect(
        self, y: SequencesLike, weight: ArrayLike | None = None, log_mask: ArrayLike | None = None
    ) -> SwitchingStats:
        """The approximate E-step."""
        return e_step(self.model, y, weight, log_mask)

    def refit(self, stats: SwitchingStats, prior: AnyPrior | None = None) -> ConstrainedSwitchingLinearGaussian:
        """M-step for the learned parameters."""
        return self.replace(model=m_step(self.model, stats, prior, self.structures, self.chain))

    def objective(self, stats: SwitchingStats, prior: AnyPrior | None = None) -> float:
        """Approximate EM objective plus the log prior."""
        return objective(self.model, stats, prior)

    def weak_prior(self, stats: SwitchingStats) -> SwitchingPrior:
        """Weak prior: the statistics of one average frame per regime."""
        return weak_prior(self.model, stats)


def fit_switching(
    learner: ConstrainedSwitchingLinearGaussian, data: Any, prior: Any = None, stop: StoppingRule | None = None
) -> FitReport:
    """`fit`, whose report says what a fall means here: where the expectation is approximate, no step may help."""
    report = fit(learner, data, prior=prior, stop=stop)
    model = report.model.model
    if not report.reason.startswith("the next step would be worse"):
        return replace(report, model=model)
    reason = "the approximate evidence would fall at the next step, which exact EM never does: the best model is kept"
    return replace(report, model=model, converged=False, reason=reason)
