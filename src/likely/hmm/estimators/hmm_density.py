"""A hidden Markov model learnt from sequences: which state a frame came from is hidden, and EM finds out."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_loop import Stop, best_of, fit
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.warnings import tell
from likely.distributions.categorical.categorical import is_missing
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.stacks.tied import Shared, untied
from likely.estimation.density_estimator import EM, PRIOR, ADensity, DensityEstimator
from likely.estimation.novelty.left_out_frames import enough, later_half_rate, left_out_frames, supported_share
from likely.estimation.partial_fit import one_step
from likely.estimation.restore_sequences import filled_sequences
from likely.estimation.sequence_validation import (
    cut,
    refuse_infinite_frames,
    refuse_what_holds_none,
    table_of_frames,
    tell_of_codes,
    tell_of_empty,
)
from likely.estimation.workload import evenly, keeper, seed_of
from likely.hmm.decoding import is_one
from likely.hmm.estimators.hmm_initialization import STARTS, ChainStarts
from likely.hmm.estimators.hmm_prior_rule import PriorOfHMM
from likely.hmm.forward_backward import log_likelihoods
from likely.hmm.hmm import HMM
from likely.hmm.state_expansion import of_higher_order, on_moves, with_durations
from likely.hmm.topology import Topology

MOST_FRAMES = 1e9  # of a sequence: a file that claims more is no file of ours


class HMMDensity(ChainStarts, DensityEstimator):
    """Learn a density of sequences by EM (Baum and Welch): `model_` is an `HMM`   (Herbst 9.7, Ney 7.4).

    - **component**: the estimator of what a state emits, any density: Gaussian, categorical, a mixture
      (`tie="all"` in it makes the states share its parts), products of unlike streams. None: `GaussianDensity()`.
    - **states**: number of states K.
    - **topology**: "ergodic", "left-to-right", "cyclic", "parallel", a tuple of allowed steps such as (0, 1, 2), a mask
      (K, K) of possible moves, or a `Topology`, which may have null states. What is impossible stays so.
    - **ends**: whether the end of a sequence is part of the model, so that lengths count. None: as the topology has it
      (left-to-right and parallel ones end in their last states).
    - **tie**: a number for each state; states with the same number share one density.
    - **order**: how many states back the chain remembers. **durations**: the longest stay in a state, if its law is to
      be learnt rather than geometric. **emit**: "states", or "moves": each move has a density of its own. All three are
      written out as more states; `topology_.original` says which state each of them stands for.
    - **prior**: "weak" keeps emissions regular, and adds one fictitious move from each state; None is maximum
      likelihood; a number a ≥ 1 is a Dirichlet law over arcs, a − 1 fictitious moves each; or an `HMMPrior`.
    - **start**: "segments" (equal shares of each sequence), "clusters" (frames that are alike), "random", or an `HMM`.
      "auto": segments where states follow each other, else clusters.
    - **restarts, max_iter, tol, hard, random_state**: as in `MixtureDensity`; `hard` is Viterbi re-estimation, `tol` is
      a gain a frame.

    Sequences are a `Ragged`, a list of arrays (T_i, D) or (T_i,), or one array (T, D), which `lengths` may cut. Missing
    entries and frames are NaN. Weights are one per sequence.

    Blocks of frames, or sequences, are left out once each to learn how surprising new frames are (`calm_`).
    `supported_rate_` is the largest share of new normal frames with a false alarm of a live feed that these do not
    exclude where one in n / 3τ lines or more is asked for (95 % confidence; n frames left out, τ of which count as one
    as they depend on each other): 7.75 τ / n. It is None where there are too few of them.
    `later_half_rate_` is the share of the later halves of fewer than 5 sequences that are as rare as the rarest tenth
    of frames left out, by the earlier halves alone: above 0.3 where the level drifts.

    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = [np.concatenate([rng.normal(m, 1.0, (20, 1)) for m in (0.0, 8.0)]) for _ in range(5)]
    >>> h = lk.HMMDensity(lk.GaussianDensity(), states=2, topology="left-to-right").fit(x)
    >>> h.model_.viterbi(x[0]).states.tolist() == [0] * 20 + [1] * 20
    True
    """

    _default_parts: ClassVar[dict[str, Any]] = {"component": GaussianDensity}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "component": [ADensity("GaussianDensity() in HMMDensity(GaussianDensity(), states=3)"), None],
        "states": [Interval(Integral, 1, None, closed="left")],
        "topology": [str, "array-like", Topology],
        "ends": ["boolean", None],
        "tie": ["array-like", None],
        "order": [Interval(Integral, 1, None, closed="left")],
        "durations": [Interval(Integral, 1, None, closed="left"), None],
        "emit": [StrOptions({"states", "moves"})],
        "prior": [*PRIOR, Interval(Real, 1, None, closed="left")],
        "start": [StrOptions(set(STARTS)), HasMethods(["log_prob", "viterbi"])],
        "restarts": [Interval(Integral, 1, None, closed="left")],
        "hard": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, component: Any = None, states: int = 1, *, topology: Any = "ergodic", ends: bool | None = None,
        tie: Any = None, order: int = 1, durations: int | None = None, emit: str = "states", prior: Any = "weak",
        start: Any = "auto", restarts: int = 1, max_iter: int = 100, tol: float = 1e-5, hard: bool = False,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.component = component
        self.states = states
        self.topology = topology
        self.ends = ends
        self.tie = tie
        self.order = order
        self.durations = durations
        self.emit = emit
        self.prior = prior
        self.start = start
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.hard = hard
        self.random_state = random_state

    _saved = (*DensityEstimator._saved, "component_", "topology_", "streamed_", "lengths_", "calm_", "later_half_rate_")
    _model_types = (HMM,)
    _hides_labels = True
    _of_sequences = True

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None, given: Any = None,
        checkpoint: Any = None,
    ) -> Self:  # fmt: skip
        """Learn from sequences; `y` is ignored. `lengths` cut one long array X (elsewhere often the second argument).

        `given`: states that are known, for each frame of each sequence its number, −1 where it is not. With all of
        them known learning takes one pass. `checkpoint` is a file name: a fit cut off goes on from there.
        """
        self._validate_params()
        given = None if given is None else _known_states(given, lengths)
        X, weight, given = self._with_states(cut(X, lengths), y, sample_weight, given)
        with self._named_columns():
            report = self._learn(X, weight, given, checkpoint)
        self._tell_of(report)
        self.streamed_ = False
        self._note_lengths(X, weight)
        self._adopt(report)
        self.calm_ = np.empty((3, 0)) if given is not None else left_out_frames(self, X, weight)
        self.later_half_rate_ = later_half_rate(self, X, weight, self.calm_)
        return self

    @property
    def supported_rate_(self) -> float | None:
        """The share of new frames with a false alarm that is not excluded where few are asked for; None if unknown."""
        calm = vars(self).get("calm_", np.empty((3, 0)))
        return supported_share(calm, vars(self).get("later_half_rate_", 0.0)) if enough(calm) else None

    def _with_states(
        self, X: Any, y: Any, sample_weight: Any, given: Ragged | None
    ) -> tuple[Ragged, Any, Ragged | None]:
        if given is None:
            return *self._seen(*self._checked(X, sample_weight, reset=True, y=y)), None
        if sample_weight is not None:
            keep = np.asarray(sample_weight) > 0
            given = given[keep] if keep.shape == (len(given),) else given
        X, weight = self._seen(*self._checked(X, sample_weight, reset=True, y=y))
        return X, weight, self._masks(given, X)

    def _seen(self, X: Ragged, weight: Any) -> tuple[Ragged, Any]:
        """The same, if anything was observed at all."""
        if isinstance(X.values, np.ndarray) and X.values.dtype.kind == "f" and np.isnan(X.values).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere" if len(X) else "no sequence"))
        return X, weight

    def _masks(self, given: Ragged, X: Ragged) -> Ragged:
        """What is known of the states as log-masks over the states of the expansion."""
        from likely.hmm.hmm import masks

        known = masks(given, X, int(self.topology_.original.max()) + 1)
        return known.map(lambda mask: mask[:, self.topology_.original])

    def _note_lengths(self, X: Ragged, weight: Any) -> None:
        """The mean length of a sequence, so that `sample` can make such."""
        self.lengths_ = float(np.average(X.lengths, weights=weight)) if len(X) else 0.0

    def _tell_of(self, report: FitReport) -> None:
        if not (report.converged or report.stopped_early):
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        visits = np.bincount(self.topology_.original, report.stats.counts)
        never = np.flatnonzero(visits <= 1e-9 * max(report.stats.total_weight, 1e-300)).tolist()
        if never:
            told = f"state {', '.join(map(str, never))} was never visited, and keeps its ways on"
            tell(f"{type(self).__name__}: {told}: fewer states would do")

    def _learn(self, X: Ragged, weight: Any, given: Ragged | None = None, checkpoint: Any = None) -> FitReport:
        rng = np.random.default_rng(seed_of(self.random_state))
        data = evenly(X, weight, given=given)
        prior, stop = self._prior_rule(), Stop(self.max_iter, self.tol)
        blank = self._blank_for(X, None, weight)
        self._refuse_contradiction(blank, X, given)

        def learn(i: int, start: HMM) -> FitReport:
            kept = keeper(checkpoint, i, self.restarts)
            return fit(start, data, prior=prior, stop=stop, hard=self.hard, checkpoint=kept)

        return best_of(self._starts(blank, X, weight, rng, given), learn)

    # ---------------------------------------------------------------- streaming

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None) -> Self:
        """One step of EM with more sequences; the first ones are learnt as by `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, what early models saw is forgotten slowly.
        """
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight, lengths=lengths)
            self.streamed_ = True
            return self
        self._validate_params()
        X, weight = self._checked(cut(X, lengths), sample_weight, reset=False, y=y)
        self._refuse_short(X)
        return self._adopt(one_step(self, X, weight))

    # ------------------------------------------------------------------- border

    def _rows(self, X: Any, reset: bool) -> Ragged:
        """Foreign sequences as the model takes them: all frames cross the component's border at once."""
        me = type(self).__name__
        refuse_what_holds_none(X, me)
        seqs = Ragged.of(X)
        if reset:
            self.component_ = GaussianDensity() if self.component is None else clone(self.component)
            if isinstance(self.component_, HMMDensity):
                expected = "component must be a density of frames"
                raise DomainError(sentence(me, expected, "HMMDensity, a density of sequences"))
            if self.component is None:
                tell_of_codes(seqs.values, me)
            self.component_._validate_params()
            self.topology_ = self._expanded()
            self._refuse_short(seqs)
            tell_of_empty(seqs, me)
        width = None if reset else self.component_.n_features_in_
        rows = self._frames(table_of_frames(X, seqs, seqs.values, width, me), reset)
        if reset:
            refuse_infinite_frames(rows, seqs.offsets, me)  # before a start shuffles frames, so the place can be named
            self.n_features_in_ = self.component_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self.component_, "feature_names_in_"):
                self.feature_names_in_ = self.component_.feature_names_in_
        return Ragged.trusted(values=rows, offsets=seqs.offsets)

    def _frames(self, frames: Any, reset: bool) -> Any:
        """Frames across the component's border, in whose messages this estimator is named."""
        if (
            not reset
            and isinstance(frames, np.ndarray)
            and not len(frames)
            and frames.shape[1:] == (self.n_features_in_,)
        ):
            return frames
        try:
            return self.component_._rows(frames, reset)
        except ValueError as error:
            inner = type(self.component_).__name__
            if f"but {inner} is expecting" not in str(error):
                raise
            raise ShapeError(str(error).replace(inner, type(self).__name__)) from None

    def _refuse_contradiction(self, blank: HMM, X: Ragged, given: Ragged | None) -> None:
        """Known states must be a path that the topology has."""
        if given is None:
            return
        with np.errstate(all="ignore"):
            ways = log_likelihoods([blank.chains[0].summed], given.values.copy(), X.offsets)[:, 0]
        if np.isneginf(ways).any():
            came = f"sequence {int(np.isneginf(ways).argmax())} makes a move that is not"
            expected = "given states must be possible in this topology"
            raise DataError(sentence(type(self).__name__, expected, came, "correct them, or allow the move"))

    def _base(self) -> Topology:
        """The topology as it was asked for, with ties."""
        topology = Topology.of(self.topology, self.states, self.ends)
        return topology if self.tie is None else topology.tied(self.tie)

    def _expanded(self) -> Topology:
        """The topology with memory, durations and ties written out."""
        topology = self._base()
        asked = (self.order > 1) + (self.durations is not None) + (self.emit == "moves")
        if asked > 1:
            raise DomainError(
                sentence(type(self).__name__, "one of order, durations and emit can be asked for", "more")
            )
        if self.order > 1:
            return of_higher_order(topology, self.order)
        if self.durations is not None:
            return with_durations(topology, self.durations)
        return on_moves(topology) if self.emit == "moves" else topology

    def _refuse_short(self, seqs: Ragged) -> None:
        if not len(seqs) or not len(seqs.values):
            raise DataError(
                sentence(type(self).__name__, "at least one frame is needed", "0 sample(s)", "(shape=(0, 0))")
            )
        if self.topology_.ends is None:
            return  # a chain without ends may stop anywhere, before the first frame too
        least = self.topology_.shortest
        short = np.flatnonzero(seqs.lengths < least)
        if len(short):
            expected = f"sequences must have at least {least} frames to pass through this topology"
            came = f"{seqs.lengths[short[0]]} in sequence {short[0]}"
            remedy = "use fewer states, steps that skip such as (0, 1, 2), or ends=False"
            raise DataError(sentence(type(self).__name__, expected, came, remedy))

    def _blank(self, X: Ragged, members: int | None = None) -> HMM:
        return self._blank_for(X, members, None)

    def _blank_for(self, X: Ragged, members: int | None, weight: Any) -> HMM:
        topology, C = self.topology_, members or 1
        K, D = topology.states, topology.densities
        frames = None if weight is None else np.repeat(weight, X.lengths)
        emissions = self.component_._blank_for(X.values, C * D, frames)
        if D < K or (topology.density != np.arange(K)).any():
            index = (np.arange(C)[:, None] * D + topology.density).ravel()
            emissions = Shared(emissions, index)
        there = X.lengths[X.lengths > 0]  # what is empty stays nowhere
        stay = float(np.clip(1.0 - K / max(float(there.mean()) if len(there) else K, 1.0), 0.3, 0.9))
        starts, moves, ends = topology.probabilities(stay)
        if members is None:
            return HMM.trusted(starts=starts, moves=moves, ends=ends, emissions=emissions)
        tiled = [None if a is None else np.repeat(a[None], C, axis=0) for a in (starts, moves, ends)]
        return HMM.trusted(starts=tiled[0], moves=tiled[1], ends=tiled[2], emissions=emissions)

    def _check_state(self) -> None:
        super()._check_state()
        calm = vars(self).get("calm_", np.empty((3, 0)))
        sound = isinstance(calm, np.ndarray) and calm.dtype == np.float64 and calm.ndim == 2 and len(calm) == 3
        if not (sound and np.isfinite(calm).all() and (calm[1] > 0).all()):
            came = getattr(calm, "shape", type(calm).__name__)
            raise DataError(sentence(type(self).__name__, "calm_ must be finite numbers (3, m), weights above 0", came))
        later = vars(self).get("later_half_rate_", 0.0)
        if not (isinstance(later, float) and 0 <= later <= 1):
            raise DataError(sentence(type(self).__name__, "later_half_rate_ must lie between 0 and 1", later))

    # -------------------------------------------------------- what components say

    @property
    def _looks_once(self) -> bool:  # type: ignore[override]
        return bool(self.component_._looks_once)

    def _prior_rule(self) -> Any:
        return PriorOfHMM(self.component_, self.prior)

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
        inner = untied(model.emissions)
        of_parts = None if prior is None else prior.parts
        self.component_._look_again(inner, stats.parts, of_parts, None)
        parts = self.component_._finish(inner, stats.parts, of_parts)
        if parts is inner:
            return model
        return model.replace(emissions=parts if inner is model.emissions else model.emissions.replace(parts=parts))

    def _grown(self, model: Any, stats: Any, X: Ragged) -> tuple[Any, Any]:
        inner = untied(model.emissions)
        parts, of_parts = self.component_._grown(inner, stats.parts, X.values)
        parts = parts if inner is model.emissions else model.emissions.replace(parts=parts)
        return model.replace(emissions=parts), stats.replace(parts=of_parts)

    def _known(self, X: Ragged, model: Any) -> tuple[Any, dict[str, Any]]:
        """Frames with levels that were never seen as missing, and which sequences had one."""
        frames, strange = self.component_._known(X.values, untied(model.emissions))
        if not strange:
            return X, {}
        there = np.flatnonzero(X.lengths > 0)
        found = {}
        for name, mask in strange.items():
            found[name] = np.zeros(len(X), dtype=bool)
            found[name][there] = np.logical_or.reduceat(mask, X.offsets[:-1][there])
        return Ragged.trusted(values=frames, offsets=X.offsets), found

    def _column_names(self) -> list[str]:
        return self.component_._column_names()

    def _in_names(self, text: str) -> str:
        return self.component_._in_names(text).replace("(member", "(state").replace("(component", "(state")

    def _outward(self, rows: Any, like: Any = None) -> Any:
        if not isinstance(rows, Ragged):
            return self.component_._outward(rows, like)
        if like is None:
            return rows.map(lambda frames: self.component_._outward(frames))
        return filled_sequences(self.component_, like, rows)

    def _fits(self, model: Any, width: Any, members: int | None = None) -> bool:
        component: Any = getattr(self, "component_", None)
        topology: Any = getattr(self, "topology_", None)
        sound = isinstance(model, HMM) and isinstance(component, DensityEstimator) and isinstance(topology, Topology)
        if not sound or model.members != members or model.states != topology.states:
            return False
        length = getattr(self, "lengths_", 0.0)
        same_size = model.starts.shape[-1] == len(topology.starts) and (model.ends is None) == (topology.ends is None)
        if not same_size or type(length) is not float or not 0 <= length < MOST_FRAMES:
            return False
        inner = untied(model.emissions)
        return component._fits(inner, width, inner.members)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(GaussianDensity() if self.component is None else self.component).input_tags
        tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, False
        return tags

    # -------------------------------------------------------------------- in use

    def score_samples(self, X: Any, lengths: Any = None) -> Array:
        """log p of each sequence (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._rows(cut(X, lengths), reset=False))

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Mean log p per sequence; `y` is ignored."""
        return super().score(cut(X, lengths), y)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The best path of states, in numbers of the topology asked for: (T,) for one sequence, else a Ragged."""
        check_is_fitted(self)
        X = cut(X, lengths)
        path = self.model_.viterbi(self._rows(X, reset=False)).states
        path = path.map(lambda states: np.where(states < 0, -1, self.topology_.original[states]))
        return path[0] if is_one(X) else path

    def predict_proba(self, X: Any, lengths: Any = None, lag: int | None = None) -> Any:
        """p(state | sequence) of each frame: (T, K), or a Ragged; with a `lag`, from frames up to so many later."""
        check_is_fitted(self)
        X = cut(X, lengths)
        shares = self.model_.posterior(self._rows(X, reset=False), lag)
        sums = np.eye(int(self.topology_.original.max()) + 1)[self.topology_.original]
        shares = shares if self.topology_.origin is None else shares.map(lambda p: p @ sums)
        return shares[0] if is_one(X) else shares

    def sample(self, n_samples: int = 1, random_state: Any = None, length: Any = None) -> Any:
        """Sequences drawn from the learnt density; where it does not say when to end, of the training's mean length."""
        check_is_fitted(self)
        if length is None and self.model_.ends is None:
            length = max(round(self.lengths_), 1)
        return self._outward(self.model_.sample(n_samples, np.random.default_rng(random_state), length))


def _known_states(given: Any, lengths: Any) -> Ragged:
    """States that are known, one sequence after another; NaN and None are unknown, as −1 is."""
    known = Ragged.of(given, lengths if lengths is not None and not isinstance(given, Ragged | list | tuple) else None)
    values = known.values
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        return known
    if values.dtype == object:
        values = np.array([np.nan if is_missing(v) else v for v in values.tolist()], dtype=object)
        if any(isinstance(v, str) for v in values):
            remedy = "number them 0, 1, …; lk.SequenceDensity takes names"
            raise DataError(sentence("HMMDensity", "given states must be numbers", "names", remedy))
        values = values.astype(np.float64)
    if values.dtype.kind == "U":
        remedy = "number them 0, 1, …; lk.SequenceDensity takes names"
        raise DataError(sentence("HMMDensity", "given states must be numbers", "names", remedy))
    if values.dtype.kind == "f" and (np.isnan(values) | (values == np.floor(values))).all():
        values = np.where(np.isnan(values), -1, values).astype(np.intp)
    return Ragged.trusted(values=values, offsets=known.offsets)
