"""Estimator of switching linear-Gaussian models by approximate EM, with regimes known, hidden, or partly known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, Seed, SequencesLike, Targets
from likely.core.blocks import Block, Blocks
from likely.core.covariates import frames_of, n_covariates, with_optional_covariates
from likely.core.description import Description
from likely.core.em_loop import StoppingRule, resolve_prior
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import PriorLike
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.stats import Stats
from likely.core.warnings import warn, warnings_discarded
from likely.decision.cost import Cost
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.stacks.stack import Stack
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.density_description import convergence, parameter_table, prior_words, total_weight
from likely.estimation.density_estimator import EM, DensityEstimator
from likely.estimation.fit_blocks import fit_members, seed_of
from likely.estimation.input_validation import row_weights
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.parameter_intervals import Row
from likely.estimation.partial_fit import one_step
from likely.estimation.sequence_validation import validated_frames
from likely.hmm.estimators.hmm_density import HMMDensity, _known_states
from likely.hmm.hmm import masks
from likely.statespace.estimators.linear_gaussian_density import entry_rows
from likely.statespace.linear.subspace_identification import free_form, initial_model
from likely.statespace.switching.fault_alarms import Alarms, fault_alarms
from likely.statespace.switching.imm_filter import IMMFilter
from likely.statespace.switching.switching_em import (
    CHAIN,
    ConstrainedSwitchingLinearGaussian,
    SwitchingPrior,
    fit_switching,
    known_regimes,
    structures,
)
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian

NOTES = (
    "Regimes and states are hidden, and the log-likelihood is approximate: estimates have no intervals.",
    "lk.statespace.RaoBlackwellizedFilter(model_, …).run(y).log_evidence estimates the exact one, without bias.",
)
STAY = 0.95  # initial probability to stay, if no transition matrix is given
MOST_FRAMES = 1e9  # frames of a sequence: a file that claims more is invalid
FIRST = 5  # EM iterations with the initial labels of regimes, before they are hidden again

Initialization = Literal["auto", "given", "windows"]
WIDTH = 7  # frames per window: long enough for a variance, shorter than a typical regime


class SwitchingDensity(DensityEstimator):
    """Switching linear-Gaussian model of sequences, fitted by EM: parameters per regime and transition matrix.

    With known `regimes` of all frames, EM is exact (de Freitas 12). Otherwise the E-step is approximate (that of
    `smooth`); the fit stops before the approximate evidence would decrease, and returns the best model.

    Parameters
    ----------
    n_regimes : int, sequence of LinearGaussian or SwitchingLinearGaussian, default 2
        A list of initial models, one per regime; or a `SwitchingLinearGaussian`. A number: that many regimes, each of
        one state beside the means of the columns, initialized from the data by windows.
    transition : array-like (K, K), optional
        Initial transition matrix; None: 0.95 on the diagonal.
    learn : sequence, optional
        Names such as ["process_covariance", "observation_covariance"] for all regimes, or one such list per regime;
        None: all but the initial state.
    form : dict or sequence of dict, optional
        Constraints of learned parameters, as in `LinearGaussianDensity`.
    chain : sequence of str, default ("transition", "initial")
        Which of the transition matrix and the initial distribution of the regimes are learned.
    prior : {"weak"}, SwitchingPrior or None, default "weak"
        "weak": one average frame of the first E-step per regime, and one transition; None: maximum likelihood.
    init : {"auto", "given", "windows"}, default "auto"
        "given": the regimes as given; "windows": initial labels of the frames from level, slope and roughness in a
        short window (by a hidden Markov model), and EM from these; "auto": "windows" if all regimes are equal, which EM
        could not separate.

    Attributes
    ----------
    model_ : SwitchingLinearGaussian
        The fitted model.

    See Also
    --------
    SwitchingLinearGaussian : The model.
    IMMFilter : Filters frame by frame.

    References
    ----------
    Murphy (2012), chapter 18; de Freitas, lecture notes, 12.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.1, 20.0))
    >>> jump = lk.SwitchingLinearGaussian([quiet, wild], [[0.95, 0.05], [0.05, 0.95]])
    >>> z, x, y = jump.simulate(5, np.random.default_rng(0), 200)
    >>> est = SwitchingDensity([quiet, wild], learn=["process_covariance"]).fit(y)
    >>> bool(np.mean(est.predict(y).values == z.values) > 0.85)
    True
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_regimes": [list, tuple, SwitchingLinearGaussian, Interval(Integral, 1, None, closed="left")],
        "transition": ["array-like", None],
        "learn": [list, tuple, str, None],
        "form": [dict, list, tuple, None],
        "chain": [list, tuple, str],
        "prior": [StrOptions({"weak"}), SwitchingPrior, None],
        "init": [StrOptions(set(get_args(Initialization)))],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, n_regimes: Any = 2, transition: Any = None, *, learn: Any = None, form: Any = None, chain: Any = CHAIN,
        prior: PriorLike = "weak", init: Initialization = "auto", max_iter: int = 100, tol: float = 1e-5,
        random_state: Seed = None,
    ) -> None:  # fmt: skip
        self.n_regimes = n_regimes
        self.transition = transition
        self.learn = learn
        self.form = form
        self.chain = chain
        self.prior = prior
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    saved_attributes = (*DensityEstimator.saved_attributes, "mean_length_", "is_online_")
    model_types = (SwitchingLinearGaussian,)
    is_online_ = False  # files of earlier versions do not say so
    hard = False
    traits = Traits(sequences=True)

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        inputs: SequencesLike | None = None, lengths: ArrayLike | None = None, regimes: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit to sequences by EM.

        Parameters
        ----------
        y : ignored
            For the interface of scikit-learn.
        regimes : sequences of int, optional
            Known regimes, one number per frame, −1 where unknown.
        """
        self._validate_params()
        rows, weight = self._training_sequences(X, y, sample_weight, inputs, lengths, reset=True)
        frames = frames_of(rows)
        with np.errstate(all="ignore"):  # overflow is reported by messages
            first = self._first_model(frames, weight, n_covariates(rows))
            known = None if regimes is None else self._known_regimes(regimes, lengths, frames, first.n_regimes)
            report = self.run_em(first, rows, weight, known)
        if not report.converged and not report.reason.startswith("the approximate evidence"):  # the usual end here
            warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        self.is_online_, self.mean_length_ = False, max(float(frames.lengths.mean()), 1.0)
        return self._adopt(report)

    def partial_fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        inputs: SequencesLike | None = None, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """One step of (approximate) online EM with more sequences; the first call is a `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, what early models saw is forgotten slowly.
        """
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight, inputs=inputs, lengths=lengths)
            self.is_online_ = True
            return self
        self._validate_params()
        rows, weight = self._training_sequences(X, y, sample_weight, inputs, lengths, reset=False)
        with np.errstate(all="ignore"):
            report = one_step(self, rows, weight)
        return self._adopt(replace(report, model=report.model.model))

    @property
    def learned_model_(self) -> ConstrainedSwitchingLinearGaussian:
        return self._learner(self.model_)

    def _learner(self, model: SwitchingLinearGaussian) -> ConstrainedSwitchingLinearGaussian:
        return ConstrainedSwitchingLinearGaussian.of(model, self.learn, self._form(model), self.chain)

    def _known_regimes(self, given: Any, lengths: Any, frames: Ragged, K: int) -> Ragged:
        return known_regimes(_known_states(given, lengths), frames, K, type(self).__name__)

    def run_em(self, first: SwitchingLinearGaussian, rows: Ragged, weight: Any, known: Any) -> FitReport:
        learner = self._learner(first)
        if known is None and self._guesses(first):
            frames = frames_of(rows)
            guess = guessed_regimes(frames, weight, first.n_regimes, seed_of(self.random_state))
            data = Blocks.of(rows, weight, log_mask=masks(guess, frames, first.n_regimes))
            learner = learner.replace(model=fit_switching(learner, data, self.prior, StoppingRule(FIRST, 0.0)).model)
        return fit_switching(
            learner, Blocks.of(rows, weight, log_mask=known), self.prior, StoppingRule(self.max_iter, self.tol)
        )

    def _guesses(self, first: SwitchingLinearGaussian) -> bool:
        if self.init != "auto":
            return self.init == "windows"
        alike = all(_same(first.regimes[0], m) for m in first.regimes[1:])
        return first.n_regimes > 1 and alike

    def _first_model(self, frames: Ragged, weight: Any, n_inputs: int) -> SwitchingLinearGaussian:
        model = self.n_regimes
        if not isinstance(model, SwitchingLinearGaussian):
            plain = isinstance(model, Integral)
            regimes = (initial_model(frames, 1, n_inputs, weight),) * int(model) if plain else tuple(model)
            model = SwitchingLinearGaussian(
                regimes, sticky(len(regimes)) if self.transition is None else self.transition
            )
        elif self.transition is not None:
            model = SwitchingLinearGaussian(model.regimes, self.transition)
        if model.dim != self.n_features_in_:
            expected = f"frames must have {model.dim} columns, as the regimes do"
            raise ShapeError(sentence(type(self).__name__, expected, self.n_features_in_))
        return model

    def _form(self, first: SwitchingLinearGaussian) -> Any:
        """Constraints; of regimes initialized from the data all entries but those of the constant state are free."""
        if not isinstance(self.n_regimes, Integral) or not (self.form is None or isinstance(self.form, dict)):
            return self.form
        asked = structures(first, self.learn)[0].learn
        return {n: f for n, f in free_form(1, first.n_inputs).items() if n in asked} | (self.form or {})

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        if members is not None:
            several = isinstance(model, Stack) and model.members == members
            return several and all(
                isinstance(p, ConstrainedSwitchingLinearGaussian) and p.dim == width for p in model.components
            )
        length = getattr(self, "mean_length_", 1.0)
        sound = type(length) is float and 0 < length < MOST_FRAMES and type(self.is_online_) is bool
        return sound and super().accepts_model(model, width, members)

    # ------------------------------------------------------------------- border

    def _training_sequences(
        self, X: Any, y: Any, weight: Any, inputs: Any, lengths: Any, reset: bool
    ) -> tuple[Ragged, Any]:
        """Training sequences with their inputs, and weights."""
        rows = self.validate_rows(with_optional_covariates(X, inputs, lengths), reset=reset)
        self._check_y(y, rows)
        if weight is not None:
            weight = row_weights(weight, rows)
        frames = frames_of(rows)
        counts = np.ones(len(frames.values)) if weight is None else np.asarray(frames.weights(weight))
        if np.isnan(np.asarray(frames.values, dtype=np.float64)[counts > 0]).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere"))
        return rows, weight

    def validate_rows(self, X: Rows, reset: bool = False) -> Ragged:
        """Input sequences converted to the form that the model takes, with their inputs if any."""
        return validated_frames(X, reset, self, super().validate_rows)

    def _ready(self, X: Any, inputs: Any, lengths: Any) -> Ragged:
        """Sequences with their inputs for prediction."""
        check_is_fitted(self)
        return self.validate_rows(with_optional_covariates(X, inputs, lengths), reset=False)

    # --------------------------------------------------------- inside another model

    def blank_model(self, X: Ragged, members: int | None = None, weight: ArrayLike | None = None) -> Any:
        one = self._learner(self._first_model(frames_of(X), None, n_covariates(X)))
        return one if members is None else Stack.trusted(components=(one,) * members)

    def initialize(self, blank: Any, X: Any, labels: ArrayLike, weight: Any, rng: Generator, run: int = 0) -> Any:
        """Each member fitted to its own sequences: with known labels this is the result."""
        if labels is None:
            return blank
        learner, one = copy(self), blank.components[0]
        learner.random_state = int(rng.integers(2**31))
        with warnings_discarded():
            self._shared_prior = learner.prior = resolve_prior(one, one.collect(X, weight), self.prior)
            return fit_members(
                blank, X, labels, weight, lambda m, own, w: self._learner(learner.run_em(m.model, own, w, None).model)
            )

    _shared_prior: Any = None

    def prior_rule(self) -> Any:
        """A `SwitchingPrior`, None, or a rule that gives one prior shared by all members."""
        return self._prior_of if self.prior == "weak" else self.prior

    def _prior_of(self, model: Any, stats: Any) -> SwitchingPrior:
        return self._shared_prior if isinstance(model, Stack) else model.weak_prior(stats)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        if isinstance(model, Stack):
            return Stack.trusted(components=tuple(part.model for part in model.components))
        return model

    def describe(self, level: float = 0.95) -> Description:
        """Regimes, transition matrix, learned parameters, and the model; no standard errors (approximate evidence)."""
        if not hasattr(self, "model_"):
            return super().describe()
        model, stats, learner = self.model_, self.stats_, self.learned_model_
        facts = {
            "frames": total_weight(self), "sequences": float(stats.initial.sum()), "columns": self.n_features_in_,
            "regimes": model.n_regimes, "states": model.states, "learned": _learned_words(learner),
            "parameters": learner.n_parameters, "log-likelihood": float(learner.objective(stats)),
            "prior": prior_words(None) if self.prior_ is None else type(self.prior_).__name__,
            "passes": self.n_iter_, **convergence(self),
        }  # fmt: skip
        rows = [row for k in range(model.n_regimes) for row in _regime_rows(model, stats, learner, k)]
        title = f"{type(self).__name__}: {type(model).__name__}"
        return Description(title, (), facts, [parameter_table(rows, level)], NOTES, [model.describe()])

    def impute(self, X: Rows, random_state: Seed = None) -> Any:
        """Not available: missing values depend on the regime."""
        expected, remedy = "a switching model does not impute", "see model_.smooth(X) for states and regimes"
        raise DomainError(sentence(type(self).__name__, expected, "impute", remedy))

    # -------------------------------------------------------------------- in use

    def score_samples(self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None) -> Array:
        """Approximate log-likelihood per sequence (n,)."""
        return self.model_.log_prob(self._ready(X, inputs, lengths))

    def score(
        self, X: Rows, y: Targets | None = None, inputs: SequencesLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood per sequence; `y` is ignored."""
        rows = self._ready(X, inputs, lengths)
        self._check_y(y, rows)
        return float(np.mean(self.model_.log_prob(rows)))

    def predict_proba(
        self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None,
        live: bool = False,
    ) -> Any:  # fmt: skip
        """Posterior probabilities of the regimes per frame.

        Parameters
        ----------
        live : bool, default False
            Filtered instead of smoothed probabilities.

        Returns
        -------
        ndarray (T, K) or Ragged
            Probabilities; a Ragged for many sequences.
        """
        rows = self._ready(X, inputs, lengths)
        states = self.model_.filter(rows) if live else self.model_.smooth(rows)
        return states.regimes[0] if is_single_sequence(X) and lengths is None and len(rows) else states.regimes

    def predict(
        self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None,
        live: bool = False,
    ) -> Any:  # fmt: skip
        """Most probable regime per frame.

        Parameters
        ----------
        live : bool, default False
            From filtered instead of smoothed probabilities.

        Returns
        -------
        ndarray of int (T,) or Ragged
            Regimes; a Ragged for many sequences.
        """
        shares = self.predict_proba(X, inputs, lengths, live)
        return shares.map(_best) if isinstance(shares, Ragged) else _best(shares)

    def alarms(
        self, X: Rows, cost: Cost | ArrayLike | Mapping[Any, Any] | None = None,
        inputs: SequencesLike | None = None, hold: int = 1,
    ) -> Alarms:  # fmt: skip
        """Actions per frame of one sequence, from filtered regimes: see `fault_alarms`.

        Parameters
        ----------
        X : array-like (T, p)
            One sequence; NaN is a missing value.
        cost : Cost, matrix or dict, optional
            Cost of each action (row) for each regime (column); 0–1 by default.
        hold : int, default 1
            An action is changed once another one was cheapest for so many frames in a row.

        Returns
        -------
        Alarms
            The actions, and their expected costs.
        """
        check_is_fitted(self)
        if not is_single_sequence(X):
            raise ShapeError(sentence(type(self).__name__, "one sequence is needed", "several"))
        return fault_alarms(self.predict_proba(X, inputs, live=True), cost, hold=hold)

    def follow(self) -> IMMFilter:
        """Online filter of the learned model, for `lk.follow`.

        Returns
        -------
        IMMFilter
            The filter.
        """
        check_is_fitted(self)
        return IMMFilter(self.model_, "gpb2")

    def sample(self, n_samples: int = 1, random_state: Seed = None, length: ArrayLike | None = None) -> Ragged:
        """Draw sequences from the learned model, by default of the mean length of the training sequences."""
        check_is_fitted(self)
        length = round(self.mean_length_) if length is None else length
        return self.model_.sample(n_samples, np.random.default_rng(seed_of(random_state)), length)


def _best(shares: Array) -> Any:
    return shares.argmax(axis=1)


def _same(a: Any, b: Any) -> bool:
    names = ("transition", "process_covariance", "observation", "observation_covariance", "control", "feedthrough")
    pairs = [(getattr(a, n), getattr(b, n)) for n in names]
    return all((x is None and y is None) or np.array_equal(x, y) for x, y in pairs)


def sticky(K: int) -> Array:
    """Transition matrix (K, K) with 0.95 on the diagonal.

    >>> sticky(2).tolist()
    [[0.95, 0.05], [0.05, 0.95]]
    """
    return np.where(np.eye(K, dtype=bool), STAY, round(1.0 - STAY, 12) / max(K - 1, 1)) if K > 1 else np.ones((1, 1))


def _learned_words(learner: Any) -> str:
    """Names of the learned parameters; by regime if they differ."""
    chain, each = list(learner.chain), [list(s.learn) for s in learner.structures]
    if all(names == each[0] for names in each):
        return ", ".join([*each[0], *chain]) or "nothing"
    lines = [f"regime {k}: {', '.join(names) or 'nothing'}" for k, names in enumerate(each)]
    return "; ".join([*lines, ", ".join(chain)] if chain else lines)


def _regime_rows(model: Any, stats: Any, learner: Any, k: int) -> Iterator[Row]:
    """Share of frames, mean duration, transitions and learned matrices of one regime, as parameters."""
    stay, total = float(model.transition[k, k]), max(float(stats.total_weight), 1e-300)
    own = {"share of frames": float(stats.counts[k]) / total, "begins": float(model.initial[k])}
    own |= {"mean stay, in frames": float(np.inf) if stay >= 1.0 else 1.0 / (1.0 - stay)}
    own |= {f"moves to {j}": float(p) for j, p in enumerate(model.transition[k])}
    yield from (Row(f"regime {k}", name, value, None, None) for name, value in own.items())
    for matrix in learner.structures[k].learn:
        yield from (row._replace(column=f"regime {k}") for row in entry_rows(model.regimes[k], matrix))


# -------------------------------------------------------------- initialization


def guessed_regimes(X: Ragged, weight: Any, K: int, random_state: Any) -> Ragged:
    """Initial regimes (T,) per sequence, by a hidden Markov model of level, slope and roughness in a window."""
    features = Ragged.trusted(values=windows(X), offsets=X.offsets)
    chain = HMMDensity(GaussianDensity("diagonal"), K, init="clusters", n_init=3, max_iter=30, tol=1e-3,
                       random_state=random_state)  # fmt: skip
    with warnings_discarded():
        found = chain.fit(features, sample_weight=weight).predict(features)
    return Ragged.trusted(values=np.asarray(found.values, dtype=np.intp), offsets=X.offsets)


def windows(X: Ragged) -> Array:
    """Level, slope and log-roughness in a window about each frame (T, 3 p), NaN where a window is empty.

    >>> windows(Ragged.from_list([np.arange(7.0)[:, None]]))[3, :2].tolist()
    [3.0, 1.0]
    """
    y = np.asarray(X.values, dtype=np.float64).reshape(len(X.values), -1)
    step = np.full_like(y, np.nan)
    step[1:] = y[1:] - y[:-1]
    step[X.offsets[:-1][X.lengths > 0]] = np.nan
    parts = [_smoothed(a, X) for a in (y, step, step**2)]
    rough = np.maximum(parts[2] - parts[1] ** 2, 0.0)
    seen = np.isfinite(step)
    least = np.square(np.where(seen, step, 0.0)).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.hstack([parts[0], parts[1], np.log(rough + 1e-6 * np.where(least > 0, least, 1.0))])


def _smoothed(a: Array, X: Ragged) -> Array:
    """Mean of the observed entries in a window about each frame, within its sequence."""
    seen = np.isfinite(a)
    sums = np.vstack([np.zeros((1, a.shape[1])), np.cumsum(np.where(seen, a, 0.0), axis=0)])
    counts = np.vstack([np.zeros((1, a.shape[1])), np.cumsum(seen, axis=0)])
    t, half = np.arange(len(a)), WIDTH // 2
    low = np.maximum(t - half, np.repeat(X.offsets[:-1], X.lengths))
    high = np.minimum(t + half + 1, np.repeat(X.offsets[1:], X.lengths))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums[high] - sums[low]) / (counts[high] - counts[low]))
