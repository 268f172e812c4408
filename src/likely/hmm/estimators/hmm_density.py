"""Estimator of hidden Markov models: Baum–Welch (EM) on sequences, generalized EM where transitions have covariates."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, NoReturn, Self, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, Seed, SequencesLike, Targets, in_memory
from likely.core.blocks import Block
from likely.core.covariates import apart, features, has_covariates, with_covariates, with_optional_covariates
from likely.core.description import Description
from likely.core.em_loop import StoppingRule, best_of, fit, resolve_prior
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import PriorLike
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.categorical.categorical import is_missing
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.stacks.stack import Stack
from likely.distributions.stacks.tied import Tied, untied
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, a_density
from likely.estimation.fit_blocks import evenly, fit_members, keeper, seed_of
from likely.estimation.imputed_sequences import filled_sequences
from likely.estimation.novelty.held_out_frames import enough, later_half_rate, left_out_frames, supported_share
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.partial_fit import one_step
from likely.estimation.scikit_learn import clone, get_tags
from likely.estimation.sequence_validation import (
    cut,
    refuse_infinite_frames,
    refuse_what_holds_none,
    table_of_frames,
    warn_of_codes,
    warn_of_empty,
)
from likely.hmm.decoding import Forecast
from likely.hmm.estimators.hmm_description import states_table, topology_words
from likely.hmm.estimators.hmm_initialization import ChainStarts, Initialization
from likely.hmm.forward_backward import log_likelihoods
from likely.hmm.hmm import HMM
from likely.hmm.logistic_transition import LogisticPrior, LogisticTransition
from likely.hmm.priors import HMMPrior
from likely.hmm.topology import Topology, TopologyLike, of_higher_order, on_transitions, with_durations
from likely.imputation.impute import impute

SMALL_STEPS = 5  # iterations of generalized EM for one of EM: steps of coefficients maximize a bound
LEAST = 1e-6  # smallest initial probability of a possible transition with covariates
SHORTLY = 1e-4  # gain per frame at which the HMM of their initialization is good enough
MOST_FRAMES = 1e9  # of a sequence: a file that claims more is no file of ours

Emit = Literal["states", "transitions"]


class HMMDensity(ChainStarts, DensityEstimator):
    """Hidden Markov model fitted to sequences by EM (Baum–Welch).

    Sequences are a `Ragged`, a list of arrays (T_i, D) or (T_i,), or one array (T, D), which `lengths` may cut. Missing
    entries and frames are NaN. Weights are one per sequence.

    With `covariates` in `fit` (one row per frame, in the same form as X, or together with it: `with_covariates(X, U)`),
    transitions depend on them: `model_.transition` is a `LogisticTransition`, and the density is p(frames |
    covariates). An HMM without covariates is fitted first, as the initialization; then generalized EM, whose steps of
    the coefficients maximize a lower bound and are small: it may take a few hundred where plain EM takes a few dozen.
    "weak" expects that one standard deviation of a covariate changes log-odds by about 2.5. Covariates are standardized
    internally, so that their units do not matter; `coefficients_` are those of unstandardized (1, u). Sequences may
    stop anywhere; null states, `order`, `durations` and `emit="transitions"` need constant transitions.

    Blocks of frames, or sequences, are held out once each to estimate the surprisal of new frames
    (`held_out_novelty_`). `supported_rate_` is the largest false-alarm rate on new normal frames of a live stream that
    these do not exclude where one in n / 3τ lines or more is requested (95 % confidence; n held-out frames, of which τ
    count as one because of autocorrelation): 7.75 τ / n. It is None where there are too few of them, or covariates.
    `later_half_rate_` is the share of the later halves of fewer than 5 sequences that are as rare as the rarest tenth
    of held-out frames, by the earlier halves alone: above 0.3 where the level drifts.

    Parameters
    ----------
    component : DensityEstimator, optional
        Estimator of the emission density, any density: Gaussian, categorical, a mixture (`tie="all"` in it makes the
        states share its components), products of different streams. None: `GaussianDensity()`.
    n_states : int, default 1
        Number of states K.
    topology : str, sequence of int, array-like of bool (K, K) or Topology, default "ergodic"
        "ergodic", "left-to-right", "cyclic", "parallel", a tuple of allowed steps such as (0, 1, 2), a mask of possible
        transitions, or a `Topology`, which may have null states. Impossible transitions stay so.
    final : bool, optional
        Whether the end of a sequence is part of the model (final probabilities), so that lengths count. None: as in the
        topology (left-to-right and parallel ones end in their last states).
    tie : array-like of int (K,), optional
        One number per state; states with the same number share one density.
    order : int, default 1
        Order of the Markov chain. It, `durations` and `emit` are expanded into more states; `topology_.original` is the
        original state of each of them.
    durations : int, optional
        Longest stay in a state, if the duration distribution is to be learned rather than geometric.
    emit : {"states", "transitions"}, default "states"
        What emits; with "transitions" each transition has a density of its own.
    prior : {"weak"}, float, HMMPrior, LogisticPrior or None, default "weak"
        "weak" regularizes the emissions and adds one pseudo-count per state to the transitions; None is maximum
        likelihood; a number α ≥ 1 is a Dirichlet prior of transitions, α − 1 pseudo-counts each. A `LogisticPrior` is
        that of the coefficients of covariates, and leaves the rest weak.
    init : {"auto", "segments", "clusters", "random"} or HMM, default "auto"
        "segments" (equal segments of each sequence), "clusters" (similar frames), "random", or an `HMM`. "auto":
        segments where states follow in order, else clusters.
    max_iter : int, default 100
        Largest number of iterations; five times as many with covariates.
    tol : float, default 1e-5
        Iterations end when the objective rises by less, in nats per frame.
    hard : bool, default False
        Viterbi training: use the best path alone.

    Attributes
    ----------
    model_ : HMM
        The fitted model.
    component_ : DensityEstimator
        Estimator of the emission density.
    topology_ : Topology
        Possible transitions, with `order`, `durations` and `emit` expanded.
    later_half_rate_ : float
        Share of later halves that are rare by the earlier halves alone; above 0.3 where the level drifts.
    n_covariates_in_ : int
        Number of covariates.

    See Also
    --------
    HMM : The model.
    BayesClassifier : Classifies sequences by one HMM per class.

    References
    ----------
    Rabiner (1989); Bishop (2006), chapter 13; Murphy (2012), chapter 17; Ney, lecture notes, 7.4.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = [np.concatenate([rng.normal(m, 1.0, (20, 1)) for m in (0.0, 8.0)]) for _ in range(5)]
    >>> h = lk.HMMDensity(lk.GaussianDensity(), n_states=2, topology="left-to-right").fit(x)
    >>> h.model_.viterbi(x[0]).states.tolist() == [0] * 20 + [1] * 20
    True
    """

    _default_parts: ClassVar[dict[str, Any]] = {"component": GaussianDensity}
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "component": [a_density("GaussianDensity() in HMMDensity(GaussianDensity(), n_states=3)"), None],
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "topology": [str, "array-like", Topology],
        "final": ["boolean", None],
        "tie": ["array-like", None],
        "order": [Interval(Integral, 1, None, closed="left")],
        "durations": [Interval(Integral, 1, None, closed="left"), None],
        "emit": [StrOptions(set(get_args(Emit)))],
        "prior": [*PRIOR, LogisticPrior, Interval(Real, 1, None, closed="left")],
        "init": [StrOptions(set(get_args(Initialization))), HasMethods(["log_prob", "viterbi"])],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "hard": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, component: DensityEstimator | None = None, n_states: int = 1, *, topology: TopologyLike = "ergodic",
        final: bool | None = None, tie: ArrayLike | None = None, order: int = 1, durations: int | None = None,
        emit: Emit = "states", prior: PriorLike | LogisticPrior | float = "weak", init: Initialization | HMM = "auto",
        n_init: int = 1, max_iter: int = 100, tol: float = 1e-5, hard: bool = False, random_state: Seed = None,
    ) -> None:  # fmt: skip
        self.component = component
        self.n_states = n_states
        self.topology = topology
        self.final = final
        self.tie = tie
        self.order = order
        self.durations = durations
        self.emit = emit
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.hard = hard
        self.random_state = random_state

    saved_attributes = (
        *DensityEstimator.saved_attributes,
        "component_",
        "topology_",
        "is_online_",
        "mean_length_",
        "held_out_novelty_",
        "later_half_rate_",
        "n_covariates_in_",
    )
    model_types = (HMM,)
    member_noun = "state"

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        covariates: SequencesLike | None = None, lengths: ArrayLike | None = None, states: Any = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:  # fmt: skip
        """Fit to sequences by EM.

        With all states known, and without covariates, one pass suffices. With covariates, an interrupted fit resumes
        after the HMM without them, which comes first and is fitted again.

        Parameters
        ----------
        y : ignored
            For the interface of scikit-learn.
        covariates : sequences, optional
            One row per frame of each sequence; transitions then depend on them.
        lengths : array-like of int, optional
            Frames per sequence, where X is one long array (in hmmlearn the second argument).
        states : sequences of int, optional
            Known states, one number per frame of each sequence, −1 where unknown.
        """
        self._validate_params()
        states = None if states is None else _known_states(states, lengths)
        X, weight, states = self._with_states(
            with_optional_covariates(X, covariates, lengths), y, sample_weight, states
        )
        frames = _apart(X)[0]
        with self._named_columns():
            if frames is X:
                report = self.run_em(X, weight, states, checkpoint)
            else:
                report = self._learn_coefficients(X, weight, states, checkpoint)
        self._tell_of(report)
        self.is_online_ = False
        self._note_lengths(X, weight)
        self._adopt(report)
        held_out = states is None and frames is X
        self.held_out_novelty_ = left_out_frames(self, X, weight) if held_out else np.empty((3, 0))
        self.later_half_rate_ = later_half_rate(self, X, weight, self.held_out_novelty_) if frames is X else 0.0
        return self

    @property
    def supported_rate_(self) -> float | None:
        """The largest false-alarm rate on new frames that held-out frames do not exclude; None if unknown."""
        held_out_novelty = vars(self).get("held_out_novelty_", np.empty((3, 0)))
        return (
            supported_share(held_out_novelty, vars(self).get("later_half_rate_", 0.0))
            if enough(held_out_novelty)
            else None
        )

    def _with_states(
        self, X: Any, y: Any, sample_weight: Any, states: Ragged | None
    ) -> tuple[Ragged, Any, Ragged | None]:
        if states is None:
            return *self._require_observed(*self.checked_rows(X, sample_weight, reset=True, y=y)), None
        if sample_weight is not None:
            keep = np.asarray(sample_weight) > 0
            states = states[keep] if keep.shape == (len(states),) else states
        X, weight = self._require_observed(*self.checked_rows(X, sample_weight, reset=True, y=y))
        return X, weight, self._masks(states, X)

    def _require_observed(self, X: Ragged, weight: Any) -> tuple[Ragged, Any]:
        """Require that at least one entry was observed."""
        frames = _apart(X)[0].values
        if isinstance(frames, np.ndarray) and frames.dtype.kind == "f" and np.isnan(frames).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere" if len(X) else "no sequence"))
        return X, weight

    def _masks(self, given: Ragged, X: Ragged) -> Ragged:
        """Known states as log-masks over the expanded states."""
        from likely.hmm.hmm import masks

        known = masks(given, X, int(self.topology_.original.max()) + 1)
        return known.map(lambda mask: mask[:, self.topology_.original])

    def _note_lengths(self, X: Ragged, weight: Any) -> None:
        """Store the mean length of a sequence, for `sample`."""
        self.mean_length_ = float(np.average(X.lengths, weights=weight)) if len(X) else 0.0

    def _tell_of(self, report: FitReport) -> None:
        if not (report.converged or report.stopped_early):
            warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        visits = np.bincount(self.topology_.original, report.stats.counts)
        never = np.flatnonzero(visits <= 1e-9 * max(report.stats.total_weight, 1e-300)).tolist()
        if never:
            message = f"state {', '.join(map(str, never))} was never visited, and keeps its transition probabilities"
            warn(f"{type(self).__name__}: {message}: use fewer states")

    def run_em(self, X: Ragged, weight: ArrayLike, given: Ragged | None = None, checkpoint: Any = None) -> FitReport:
        rng = np.random.default_rng(seed_of(self.random_state))
        data = evenly(X, weight, log_mask=given)
        prior, stop = self.prior_rule(), StoppingRule(self.max_iter, self.tol)
        blank = self.blank_model(X, None, weight)
        self._refuse_contradiction(blank, X, given)

        def learn(i: int, start: HMM) -> FitReport:
            kept = keeper(checkpoint, i, self.n_init)
            return fit(start, data, prior=prior, stop=stop, hard=self.hard, checkpoint=kept)

        return best_of(self._starts(blank, X, weight, rng, given), learn)

    def _learn_coefficients(
        self, X: Ragged, weight: Any, given: Ragged | None, checkpoint: Any, prior: Any = None
    ) -> FitReport:
        """Generalized EM for transitions with covariates, from an HMM without them."""
        plain, (frames, u) = copy(self), _apart(X)
        logistic = isinstance(self.init, HMM) and self.init.is_logistic
        plain.max_iter, plain.tol = SMALL_STEPS * self.max_iter, max(self.tol, SHORTLY)
        plain.init = "auto" if logistic else self.init
        plain.prior = "weak" if isinstance(self.prior, HMMPrior) else self.prior
        with warnings_discarded():  # this one warns itself
            first = plain.run_em(frames, weight, given)
        emission = None if first.prior is None else first.prior.emission
        model = first.model
        start = self._given_coefficients(model, u) if logistic else self._no_effects(model, frames, u, weight)
        prior = PriorOfHMM(self.component_, self.prior, emission) if prior is None else prior
        return fit(
            start, evenly(X, weight, log_mask=given), prior=prior,
            stop=StoppingRule(SMALL_STEPS * self.max_iter, self.tol), hard=self.hard,
            checkpoint=keeper(checkpoint, 0, 1),
        )  # fmt: skip

    def _given_coefficients(self, plain: HMM, u: Any) -> HMM:
        wanted = (plain.states, plain.dim, u.values.shape[1])
        given = (self.init.states, self.init.dim, self.init.transition.n_covariates)
        if given != wanted:
            expected = f"init must have {wanted[0]} states, {wanted[1]} columns and {wanted[2]} covariates"
            raise DomainError(sentence(type(self).__name__, expected, given))
        return self.init

    def _no_effects(self, plain: HMM, frames: Ragged, u: Any, weight: Any) -> HMM:
        """An HMM as one with covariates that have no effect yet."""
        possible, units = self.topology_.transition, _units(frames, u.values, weight)
        coefficients = np.zeros((*possible.shape, 1 + units.shape[1]))
        coefficients[:, :, 0] = np.where(possible, np.log(np.maximum(plain.transition, LEAST)), 0.0)
        return HMM(plain.initial, LogisticTransition(coefficients, possible, units), plain.emission)

    # ---------------------------------------------------------------- streaming

    def partial_fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """One EM step with more sequences; the first ones are fitted as by `fit`.

        After `fit`, sufficient statistics add. In a stream from the beginning, early statistics are discounted slowly.
        """
        seqs = cut(X, lengths)
        if has_covariates(seqs) or vars(self).get("n_covariates_in_", 0):
            self._refuse_parts()
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight, lengths=lengths)
            self.is_online_ = True
            return self
        self._validate_params()
        rows, weight = self.checked_rows(seqs, sample_weight, reset=False, y=y)
        self._refuse_short(rows)
        return self._adopt(one_step(self, rows, weight))

    def _refuse_parts(self) -> NoReturn:
        expected = "with covariates all sequences are needed at once: statistics at other coefficients do not add"
        raise DomainError(sentence(type(self).__name__, expected, "partial_fit", "call fit with all of them"))

    # --------------------------------------------------------------- validation

    def validate_rows(self, X: Rows, reset: bool = False) -> Ragged:
        """Validate sequences: all frames are validated by the component at once; covariates stay with them."""
        name, X = type(self).__name__, in_memory(X)
        refuse_what_holds_none(X, name)
        seqs, u = _apart(Ragged.of(X))
        if u is not None:
            X = seqs
        if reset:
            self._shared_prior = None
            self.component_ = GaussianDensity() if self.component is None else clone(self.component)
            if isinstance(self.component_, HMMDensity):
                expected = "component must be a density of frames"
                raise DomainError(sentence(name, expected, "HMMDensity, a density of sequences"))
            if self.component is None:
                warn_of_codes(seqs.values, name)
            self.component_._validate_params()
            self.n_covariates_in_ = 0 if u is None else int(u.values.shape[1])
            if u is not None:
                features(u.values, None, seqs.offsets)  # raises for missing covariates, by sequence and frame
            self.topology_ = self._expanded()
            self._refuse_short(seqs)
            warn_of_empty(seqs, name)
        width = None if reset else self.component_.n_features_in_
        rows = self._frames(table_of_frames(X, seqs, seqs.values, width, name), reset)
        if reset:
            refuse_infinite_frames(
                rows, seqs.offsets, name
            )  # before initialization shuffles frames, so the position can be named
            self.n_features_in_ = self.component_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self.component_, "feature_names_in_"):
                self.feature_names_in_ = self.component_.feature_names_in_
        return _rejoined(Ragged.trusted(values=rows, offsets=seqs.offsets), u)

    def _frames(self, frames: Any, reset: bool) -> Any:
        """Validate frames by the component, with this estimator's name in messages."""
        if (
            not reset
            and isinstance(frames, np.ndarray)
            and not len(frames)
            and frames.shape[1:] == (self.n_features_in_,)
        ):
            return frames
        try:
            return self.component_.validate_rows(frames, reset)
        except ValueError as error:
            inner = type(self.component_).__name__
            if f"but {inner} is expecting" not in str(error):
                raise
            raise ShapeError(str(error).replace(inner, type(self).__name__)) from None

    def _refuse_contradiction(self, blank: HMM, X: Ragged, given: Ragged | None) -> None:
        """Require that known states are a possible path of the topology."""
        if given is None:
            return
        with np.errstate(all="ignore"):
            log_probs = log_likelihoods([blank.chains[0].summed], given.values.copy(), X.offsets)[:, 0]
        if np.isneginf(log_probs).any():
            place = f"sequence {int(np.isneginf(log_probs).argmax())} makes an impossible transition"
            expected = "known states must be possible in this topology"
            raise DataError(sentence(type(self).__name__, expected, place, "correct them, or allow the transition"))

    def _base(self) -> Topology:
        """The requested topology, with ties."""
        topology = Topology.of(self.topology, self.n_states, False if self.n_covariates_in_ else self.final)
        if self.n_covariates_in_:
            topology = topology.replace(final=None)
        return topology if self.tie is None else topology.tied(self.tie)

    def _expanded(self) -> Topology:
        """The topology with memory, durations and ties expanded."""
        topology = self._base()
        if self.n_covariates_in_:
            self._refuse_expansions(topology)
        n_requested = (self.order > 1) + (self.durations is not None) + (self.emit == "transitions")
        if n_requested > 1:
            raise DomainError(sentence(type(self).__name__, "only one of order, durations and emit can be set", "more"))
        if self.order > 1:
            return of_higher_order(topology, self.order)
        if self.durations is not None:
            return with_durations(topology, self.durations)
        return on_transitions(topology) if self.emit == "transitions" else topology

    def _refuse_expansions(self, topology: Topology) -> None:
        """Transitions with covariates are those of emitting states alone."""
        asked = {
            "null states": len(topology.initial) > topology.states, "an expanded topology": topology.origin is not None,
            "final": bool(self.final), "order": self.order > 1, "durations": self.durations is not None,
            'emit="transitions"': self.emit == "transitions",
        }  # fmt: skip
        wrong = [name for name, is_asked in asked.items() if is_asked]
        if wrong:
            expected, remedy = "transitions with covariates need a topology of emitting states alone", "omit them"
            raise DomainError(sentence(type(self).__name__, expected, ", ".join(wrong), remedy))

    def _refuse_short(self, seqs: Ragged) -> None:
        if not len(seqs) or not len(seqs.values):
            raise DataError(
                sentence(type(self).__name__, "at least one frame is needed", "0 sample(s)", "(shape=(0, 0))")
            )
        if self.topology_.final is None:
            return  # a chain without final probabilities may stop anywhere, before the first frame too
        least = self.topology_.min_length
        short = np.flatnonzero(seqs.lengths < least)
        if len(short):
            expected = f"sequences must have at least {least} frames to pass through this topology"
            got = f"{seqs.lengths[short[0]]} in sequence {short[0]}"
            remedy = "use fewer states, steps that skip such as (0, 1, 2), or final=False"
            raise DataError(sentence(type(self).__name__, expected, got, remedy))

    def blank_model(self, X: Ragged, members: int | None = None, weight: ArrayLike | None = None) -> Any:
        if has_covariates(X):  # coefficients have no stacked form: members are HMMs of their own
            frames, u = _apart(X)
            one = self._no_effects(self.blank_model(frames, None, weight), frames, u, weight)
            return one if members is None else Stack.trusted(components=(one,) * members)
        topology, C = self.topology_, members or 1
        K, D = topology.states, topology.densities
        frames = None if weight is None else np.repeat(weight, X.lengths)
        emission = self.component_.blank_model(X.values, C * D, frames)
        if D < K or (topology.density != np.arange(K)).any():
            index = (np.arange(C)[:, None] * D + topology.density).ravel()
            emission = Tied(emission, index)
        lengths = X.lengths[X.lengths > 0]  # empty sequences have no transitions
        stay = float(np.clip(1.0 - K / max(float(lengths.mean()) if len(lengths) else K, 1.0), 0.3, 0.9))
        initial, transition, final = topology.probabilities(stay)
        if members is None:
            return HMM.trusted(initial=initial, transition=transition, final=final, emission=emission)
        tiled = [None if a is None else np.repeat(a[None], C, axis=0) for a in (initial, transition, final)]
        return HMM.trusted(initial=tiled[0], transition=tiled[1], final=tiled[2], emission=emission)

    def check_state(self) -> None:
        super().check_state()
        held_out_novelty = vars(self).get("held_out_novelty_", np.empty((3, 0)))
        sound = (
            isinstance(held_out_novelty, np.ndarray)
            and held_out_novelty.dtype == np.float64
            and held_out_novelty.ndim == 2
            and len(held_out_novelty) == 3
        )
        if not (sound and np.isfinite(held_out_novelty).all() and (held_out_novelty[1] > 0).all()):
            got = getattr(held_out_novelty, "shape", type(held_out_novelty).__name__)
            raise DataError(
                sentence(type(self).__name__, "held_out_novelty_ must be finite numbers (3, m), weights above 0", got)
            )
        later = vars(self).get("later_half_rate_", 0.0)
        if not (isinstance(later, float) and 0 <= later <= 1):
            raise DataError(sentence(type(self).__name__, "later_half_rate_ must lie between 0 and 1", later))

    # ---------------------------------------------------- delegated to the component

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Sequences with latent states; sketchable if the component is."""
        component: Any = getattr(self, "component_", None)
        return Traits(sequences=True, latent=True, sketchable=component is None or component.traits.sketchable)

    def prior_rule(self) -> Any:
        return PriorOfHMM(self.component_, self.prior, shared=self._shared_prior)

    def initialize(self, blank: Any, X: Any, labels: ArrayLike, weight: Any, rng: Generator, run: int = 0) -> Any:
        """Initial models; with covariates each member is fitted to its own sequences."""
        if not isinstance(blank, Stack):
            return super().initialize(blank, X, labels, weight, rng, run)
        learner, one = copy(self), blank.components[0]
        learner.random_state = int(rng.integers(2**31))
        with warnings_discarded():
            prior = resolve_prior(one, one.collect(X, weight), PriorOfHMM(self.component_, self.prior))
            self._shared_prior = prior
            return fit_members(
                blank, X, labels, weight, lambda _, own, w: learner._learn_coefficients(own, w, None, None, prior).model
            )

    _shared_prior: Any = None  # of members with covariates

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Block | None = None, choose: bool = True) -> Any:
        if isinstance(model, Stack):
            parts = zip(model.components, stats.components, strict=True)
            return Stack.trusted(components=tuple(self.scoring_model(*part, prior) for part in parts))
        inner = untied(model.emission)
        emission_prior = None if prior is None else prior.emission
        emission = self.component_.scoring_model(inner, stats.emission, emission_prior)
        if emission is inner:
            return model
        return model.replace(
            emission=emission if inner is model.emission else model.emission.replace(components=emission)
        )

    def extend_model(self, model: Any, stats: Any, X: Ragged) -> tuple[Any, Any]:
        if isinstance(model, Stack):
            self._refuse_parts()
        inner = untied(model.emission)
        emission, emission_prior = self.component_.extend_model(inner, stats.emission, X.values)
        emission = emission if inner is model.emission else model.emission.replace(components=emission)
        return model.replace(emission=emission), stats.replace(emission=emission_prior)

    def mask_unknown(self, X: Ragged, model: Any) -> tuple[Any, dict[str, Any]]:
        """Frames with unseen categories set to missing, and which sequences had one."""
        seqs, u = _apart(X)
        one = model.components[0] if isinstance(model, Stack) else model  # all know the same categories
        frames, unseen = self.component_.mask_unknown(seqs.values, untied(one.emission))
        if not unseen:
            return X, {}
        nonempty = np.flatnonzero(X.lengths > 0)
        found = {}
        for name, mask in unseen.items():
            found[name] = np.zeros(len(X), dtype=bool)
            found[name][nonempty] = np.logical_or.reduceat(mask, X.offsets[:-1][nonempty])
        return _rejoined(Ragged.trusted(values=frames, offsets=X.offsets), u), found

    def column_names(self) -> list[str]:
        return self.component_.column_names()

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        if not isinstance(rows, Ragged):
            return self.component_.decode_rows(rows, like)
        rows, u = _apart(rows)
        if u is not None:
            frames = self.decode_rows(rows, None if like is None else _apart(like)[0])
            return _rejoined(frames, u)
        if like is None:
            return rows.map(lambda frames: self.component_.decode_rows(frames))
        return filled_sequences(self.component_, like, rows)

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        if isinstance(model, Stack):
            parts = [self.accepts_model(part, width) and part.is_logistic for part in model.components]
            return model.members == members and all(parts)
        component: Any = getattr(self, "component_", None)
        topology: Any = getattr(self, "topology_", None)
        sound = isinstance(model, HMM) and isinstance(component, DensityEstimator) and isinstance(topology, Topology)
        if not sound or model.members != members or model.states != topology.states:
            return False
        length = getattr(self, "mean_length_", 0.0)
        same_size = model.initial.shape[-1] == len(topology.initial) and (model.final is None) == (
            topology.final is None
        )
        if not same_size or type(length) is not float or not 0 <= length < MOST_FRAMES:
            return False
        if getattr(component, "n_features_in_", None) != width:  # it validates the frames
            return False
        if getattr(self, "n_covariates_in_", 0) != (model.transition.n_covariates if model.is_logistic else 0):
            return False
        inner = untied(model.emission)
        return component.accepts_model(inner, width, inner.members)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(GaussianDensity() if self.component is None else self.component).input_tags
        tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, False
        return tags

    # -------------------------------------------------------------------- in use

    def in_words(self, model: Any) -> str:
        return f"a hidden Markov model of {topology_words(self)}; each state emits {model.emission.in_words()}"

    def describe(self, level: float = 0.95) -> Description:
        """The density, its topology, and its states with shares, durations, next states and emissions."""
        found = super().describe(level)
        if not hasattr(self, "model_"):
            return found
        emits = f"each state emits: {self.model_.emission.in_words()}"
        text = [f"a hidden Markov model of {topology_words(self)}", emits]
        found = found.plus(facts={"sequences": float(self.stats_.sequences)})
        return replace(found, text=text, tables=[states_table(self), *found.tables])

    @property
    def coefficients_(self) -> Array:
        """Coefficients β of unstandardized (1, u) (K, K, p + 1), where transitions depend on covariates."""
        if not vars(self).get("n_covariates_in_", 0):
            raise AttributeError(f"{type(self).__name__} has no coefficients_: it was fitted without covariates")
        return self.model_.transition.raw_coefficients()

    def score_samples(
        self, X: Rows, lengths: ArrayLike | None = None, *, covariates: SequencesLike | None = None
    ) -> Array:
        """Log-likelihood of each sequence (n,), given its covariates where the model has some.

        Returns
        -------
        ndarray (n,)
            Log-likelihood per sequence.
        """
        check_is_fitted(self)
        return self.model_.log_prob(self.validate_rows(with_optional_covariates(X, covariates, lengths), reset=False))

    def score(
        self, X: Rows, y: Targets | None = None, lengths: ArrayLike | None = None, *,
        covariates: SequencesLike | None = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood per sequence; `y` is ignored."""
        return super().score(with_optional_covariates(X, covariates, lengths), y)

    def predict(self, X: Rows, lengths: ArrayLike | None = None, *, covariates: SequencesLike | None = None) -> Any:
        """Viterbi path, in states of the requested topology: (T,) for one sequence, else a Ragged.

        Returns
        -------
        ndarray of int (T,) or Ragged
            States; a Ragged for many sequences.
        """
        check_is_fitted(self)
        path = self.model_.viterbi(
            self.validate_rows(with_optional_covariates(X, covariates, lengths), reset=False)
        ).states
        path = path.map(lambda states: np.where(states < 0, -1, self.topology_.original[states]))
        return path[0] if is_single_sequence(X) and lengths is None else path

    def predict_proba(
        self, X: Rows, lengths: ArrayLike | None = None, lag: int | None = None, *,
        covariates: SequencesLike | None = None,
    ) -> Any:  # fmt: skip
        """Posterior probabilities p(state | sequence) of each frame; with a `lag`, from frames up to `lag` later.

        Returns
        -------
        ndarray (T, K) or Ragged
            Probabilities of the states; a Ragged for many sequences.
        """
        check_is_fitted(self)
        probs = self.model_.posterior(
            self.validate_rows(with_optional_covariates(X, covariates, lengths), reset=False), lag
        )
        sums = np.eye(int(self.topology_.original.max()) + 1)[self.topology_.original]
        probs = probs if self.topology_.origin is None else probs.map(lambda p: p @ sums)
        return probs[0] if is_single_sequence(X) and lengths is None else probs

    def forecast(
        self, X: Rows, steps: int = 1, *, covariates: SequencesLike | None = None,
        past: SequencesLike | None = None,
    ) -> Forecast:  # fmt: skip
        """Forecast after one sequence (T, d), as `HMM.forecast`; `covariates` (steps, p) to come, `past` those of X.

        Parameters
        ----------
        X : array-like (T, d)
            One sequence.
        covariates : array-like (steps, p), optional
            Covariates to come.
        past : array-like (T, p), optional
            Covariates of X, unless X has its own.
        """
        check_is_fitted(self)
        return self.model_.forecast(
            self.validate_rows(with_optional_covariates(X, past, None), reset=False), steps, covariates
        )

    def impute(self, X: Rows, random_state: Seed = None, *, covariates: SequencesLike | None = None) -> Any:
        """Sequences with missing values imputed: by expectation, or with `random_state` by sampling.

        Parameters
        ----------
        X : sequences
            A Ragged, a list of arrays (T_i, d), or one array (T, d); NaN is a missing value.
        """
        if covariates is None and not has_covariates(X):
            return super().impute(X, random_state)
        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        filled, u = _apart(
            impute(self.model_, self.validate_rows(with_optional_covariates(X, covariates, None), reset=False), rng)
        )
        frames = filled_sequences(self.component_, X if covariates is not None else _apart(X)[0], filled)
        return frames if covariates is not None else _rejoined(frames, u)

    def sample(
        self, n_samples: int = 1, random_state: Seed = None, length: ArrayLike | None = None, *,
        covariates: SequencesLike | None = None,
    ) -> Any:  # fmt: skip
        """Sample sequences; without final probabilities, of the mean length in training.

        With covariates, n_samples of them (T_i, p) or one (T, p) for all; both are returned together.

        Parameters
        ----------
        covariates : sequences, optional
            Covariates (T_i, p) of each sequence, or (T, p) for all.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        if self.model_.is_logistic:
            return self.decode_rows(self.model_.sample(n_samples, rng, length, covariates=covariates))
        if length is None and self.model_.final is None:
            length = max(round(self.mean_length_), 1)
        return self.decode_rows(self.model_.sample(n_samples, rng, length))


class PriorOfHMM:
    """Callable that builds the prior of transitions and emissions once there are statistics; called by `fit`.

    Where transitions have covariates, `emission` is the emissions' prior in the HMM of the initialization, and `shared`
    the prior of all members of a stack.
    """

    def __init__(self, component: Any, prior: Any, emission: Any = None, shared: Any = None) -> None:
        self.component, self.prior, self.emission, self.shared = component, prior, emission, shared

    def __call__(self, model: Any, stats: Any) -> Any:
        if isinstance(self.prior, HMMPrior):
            return self.prior
        if isinstance(model, Stack):
            return self.shared
        emission = self.emission
        if emission is None:
            outer = None if self.prior is None else "weak"
            emission = resolve_prior(untied(model.emission), model.for_prior(stats), self._emission_prior(outer))
        if self.prior is None:
            return None if emission is None else HMMPrior(None, None, None, emission)
        if isinstance(self.prior, Real):
            return HMMPrior.symmetric(model, float(self.prior), emission, stats)
        weak = HMMPrior.weak(model, emission, stats=stats)
        of_coefficients = isinstance(self.prior, LogisticPrior) and model.is_logistic
        return weak.replace(transition=self.prior) if of_coefficients else weak

    def _emission_prior(self, outer: Any) -> Any:
        """The component's own prior; its "weak" follows the setting of the HMM."""
        component = copy(self.component)
        if isinstance(component.prior, str):
            component.prior = outer
        return component.prior_rule()


def _apart(X: Any) -> tuple[Any, Any]:
    """Sequences of frames, and of covariates, or None."""
    if not has_covariates(X):
        return X, None
    frames, u = apart(X)
    return frames, Ragged.trusted(values=u, offsets=frames.offsets)


def _rejoined(frames: Any, u: Any) -> Any:
    return frames if u is None else with_covariates(frames, u)


def _units(frames: Ragged, u: Array, weight: Array | None) -> Array:
    """Mean and standard deviation of the covariates after first frames (2, p); a constant has scale 1."""
    after_first = np.ones(len(u), dtype=bool)
    after_first[frames.offsets[:-1][frames.lengths > 0]] = False
    later, p = u[after_first], u.shape[1]
    if not len(later):
        return np.stack([np.zeros(p), np.ones(p)])
    w = None if weight is None else np.repeat(weight, frames.lengths)[after_first]
    mean = np.average(later, axis=0, weights=w)
    scale = np.sqrt(np.average((later - mean) ** 2, axis=0, weights=w))
    return np.stack([mean, np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0)])


def _known_states(given: Any, lengths: Any) -> Ragged:
    """Known states of all sequences; NaN and None are unknown, as −1 is."""
    known = Ragged.of(given, lengths if lengths is not None and not isinstance(given, Ragged | list | tuple) else None)
    values = known.values
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        return known
    if values.dtype == object:
        values = np.array([np.nan if is_missing(v) else v for v in values.tolist()], dtype=object)
        if any(isinstance(v, str) for v in values):
            remedy = "number them 0, 1, …; lk.automl.SequenceDensity takes names"
            raise DataError(sentence("HMMDensity", "known states must be numbers", "names", remedy))
        values = values.astype(np.float64)
    if values.dtype.kind == "U":
        remedy = "number them 0, 1, …; lk.automl.SequenceDensity takes names"
        raise DataError(sentence("HMMDensity", "known states must be numbers", "names", remedy))
    if values.dtype.kind == "f" and (np.isnan(values) | (values == np.floor(values))).all():
        values = np.where(np.isnan(values), -1, values).astype(np.intp)
    return Ragged.trusted(values=values, offsets=known.offsets)
