"""A switching linear model learned from sequences: which regime made a frame is given, hidden, or both."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.columns import Columns
from likely.core.covariates import COVARIATES, table, with_covariates
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_loop import Stop
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.warnings import tell
from likely.estimation.density_estimator import EM, DensityEstimator
from likely.estimation.input_validation import row_weights
from likely.estimation.partial_fit import one_step
from likely.estimation.sequence_validation import (
    cut,
    refuse_infinite_frames,
    refuse_what_holds_none,
    table_of_frames,
    tell_of_empty,
)
from likely.estimation.workload import seed_of
from likely.hmm.decoding import is_one
from likely.hmm.estimators.hmm_density import _known_states
from likely.hmm.hmm import masks
from likely.statespace.estimators.regime_initialization import guessed_regimes
from likely.statespace.linear.subspace_identification import first_guess, free_form
from likely.statespace.switching.fault_alarms import Alarms, fault_alarms
from likely.statespace.switching.imm_filter import IMMFilter
from likely.statespace.switching.switching_em import (
    MOVES,
    SwitchingLearner,
    SwitchingPrior,
    known_regimes,
    learned,
    structures,
)
from likely.statespace.switching.switching_linear import SwitchingLinearGaussian

STAY = 0.95  # to begin with, if moves are not given
MOST_FRAMES = 1e9  # of a sequence: a file that claims more is no file of ours
FIRST = 5  # refits with guessed regimes, before they are hidden again


class SwitchingDensity(DensityEstimator):
    """Learn a `SwitchingLinearGaussian` by EM: parameters of each regime, and the chain between them   (de Freitas 12).

    - **n_regimes**: a list of `LinearGaussian` to begin with, one per regime; or a `SwitchingLinearGaussian`. A number:
      so many regimes, each of one state beside the columns' levels, guessed from the data and told apart by windows.
    - **transition**: probabilities (K, K) to begin with; None: stay with 0.95.
    - **learn**: names such as ["process_covariance", "observation_covariance"] for all regimes, or a list of such a
      regime; None: all but the distribution of the first state. "transition" and "initial" are learned unless **chain**
      leaves them out.
    - **form**: the form of what is learned, as in `LinearGaussianDensity`.
    - **prior**: "weak": one frame of each regime as the first pass sees it, and one move; None: maximum likelihood.
    - **init**: "given": begin with the regimes as they are; "windows": first guess the regimes of frames from level,
      slope and roughness in a short window (a hidden Markov model of them), and learn from that; "auto": "windows" if
      regimes are all the same, so that nothing would tell them apart.

    With the regimes of all frames `given`, EM is exact and climbs. Otherwise the expectation is approximate (that of
    `smooth`); the approximate evidence is watched, and the best model is kept when it would fall.

    >>> import likely as lk, numpy as np
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.1, 20.0))
    >>> jump = lk.SwitchingLinearGaussian([quiet, wild], [[0.95, 0.05], [0.05, 0.95]])
    >>> z, x, y = jump.simulate(5, np.random.default_rng(0), 200)
    >>> est = SwitchingDensity([quiet, wild], learn=["process_covariance"]).fit(y)
    >>> bool(np.mean(est.predict(y).values == z.values) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_regimes": [list, tuple, SwitchingLinearGaussian, Interval(Integral, 1, None, closed="left")],
        "transition": ["array-like", None],
        "learn": [list, tuple, str, None],
        "form": [dict, list, tuple, None],
        "chain": [list, tuple, str],
        "prior": [StrOptions({"weak"}), SwitchingPrior, None],
        "init": [StrOptions({"auto", "given", "windows"})],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, n_regimes: Any = 2, transition: Any = None, *, learn: Any = None, form: Any = None, chain: Any = MOVES,
        prior: Any = "weak", init: str = "auto", max_iter: int = 100, tol: float = 1e-5, random_state: Any = None,
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

    _saved = (*DensityEstimator._saved, "mean_length_", "is_online_")
    _model_types = (SwitchingLinearGaussian,)
    is_online_ = False  # files of earlier versions do not say so
    hard = False
    _of_sequences = True

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, inputs: Any = None, lengths: Any = None,
        regimes: Any = None,
    ) -> Self:  # fmt: skip
        """Learn from sequences X; `y` is ignored, weights are one per sequence, `inputs` are given as X is.

        `given`: regimes that are known, for each frame its number, −1 where it is not.
        """
        self._validate_params()
        frames, rows, weight = self._seen(X, y, sample_weight, inputs, lengths, reset=True)
        with np.errstate(all="ignore"):  # what leaves the range of numbers is said in words
            first = self._first_model(frames, weight, _width_of_inputs(rows))
            known = None if regimes is None else self._known_regimes(regimes, lengths, frames, first.n_regimes)
            report = self._learn(first, rows, frames, weight, known)
        if not report.converged and not report.reason.startswith("the approximate evidence"):  # the usual end here
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        self.is_online_, self.mean_length_ = False, max(float(frames.lengths.mean()), 1.0)
        return self._adopt(report)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, inputs: Any = None, lengths: Any = None
    ) -> Self:
        """One step of (approximate) EM with more sequences; the first ones are learned as by `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, what early models saw is forgotten slowly.
        """
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight, inputs=inputs, lengths=lengths)
            self.is_online_ = True
            return self
        self._validate_params()
        _, rows, weight = self._seen(X, y, sample_weight, inputs, lengths, reset=False)
        with np.errstate(all="ignore"):
            report = one_step(self, rows, weight)
        return self._adopt(replace(report, model=report.model.model))

    @property
    def _learned(self) -> SwitchingLearner:
        return self._learner(self.model_)

    def _learner(self, model: SwitchingLinearGaussian) -> SwitchingLearner:
        return SwitchingLearner.of(model, self.learn, self._form(model), self.chain)

    def _known_regimes(self, given: Any, lengths: Any, frames: Ragged, K: int) -> Ragged:
        return known_regimes(_known_states(given, lengths), frames, K, type(self).__name__)

    def _learn(
        self, first: SwitchingLinearGaussian, rows: Ragged, frames: Ragged, weight: Any, known: Any
    ) -> FitReport:
        learner = self._learner(first)
        if known is None and self._guesses(first):
            guess = guessed_regimes(frames, weight, first.n_regimes, seed_of(self.random_state))
            data = Blocks.of(rows, weight, log_mask=masks(guess, frames, first.n_regimes))
            learner = learner.replace(model=learned(learner, data, self.prior, Stop(FIRST, 0.0)).model)
        return learned(learner, Blocks.of(rows, weight, log_mask=known), self.prior, Stop(self.max_iter, self.tol))

    def _guesses(self, first: SwitchingLinearGaussian) -> bool:
        if self.init != "auto":
            return self.init == "windows"
        alike = all(_same(first.regimes[0], m) for m in first.regimes[1:])
        return first.n_regimes > 1 and alike

    def _first_model(self, frames: Ragged, weight: Any, n_inputs: int) -> SwitchingLinearGaussian:
        model = self.n_regimes
        if not isinstance(model, SwitchingLinearGaussian):
            plain = isinstance(model, Integral)
            regimes = (first_guess(frames, 1, n_inputs, weight),) * int(model) if plain else tuple(model)
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
        """What is free; of regimes guessed from the data all but the state that carries the levels."""
        if not isinstance(self.n_regimes, Integral) or not (self.form is None or isinstance(self.form, dict)):
            return self.form
        asked = structures(first, self.learn)[0].learn
        return {n: f for n, f in free_form(1, first.n_inputs).items() if n in asked} | (self.form or {})

    def _fits(self, model: Any, width: Any, members: int | None = None) -> bool:
        length = getattr(self, "mean_length_", 1.0)
        sound = type(length) is float and 0 < length < MOST_FRAMES and type(self.is_online_) is bool
        return sound and super()._fits(model, width, members)

    # ------------------------------------------------------------------- border

    def _seen(self, X: Any, y: Any, weight: Any, inputs: Any, lengths: Any, reset: bool) -> tuple[Ragged, Ragged, Any]:
        """Sequences to learn from, the same beside their inputs, and weights."""
        frames = self._rows(cut(X, lengths), reset=reset)
        self._check_y(y, frames)
        if weight is not None:
            weight = row_weights(weight, frames)
        counts = np.ones(len(frames.values)) if weight is None else np.asarray(frames.weights(weight))
        if np.isnan(np.asarray(frames.values, dtype=np.float64)[counts > 0]).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere"))
        known = None if inputs is None else Ragged.of(inputs, _lengths_for(inputs, lengths))
        return frames, frames if known is None else with_covariates(frames, known), weight

    def _rows(self, X: Any, reset: bool) -> Ragged:
        """Foreign sequences as the model takes them."""
        me = type(self).__name__
        refuse_what_holds_none(X, me)
        seqs = Ragged.of(X)
        if not len(seqs) or not len(seqs.values):
            if reset:
                expected, came = "at least one frame is needed", "0 sample(s)"
                raise DataError(sentence(type(self).__name__, expected, came, "(shape=(0, 0))"))
            return seqs
        if reset:
            tell_of_empty(seqs, me)
        width = None if reset else self.n_features_in_
        rows = super()._rows(table_of_frames(X, seqs, seqs.values, width, me), reset)
        refuse_infinite_frames(rows, seqs.offsets, me)
        return Ragged.trusted(values=rows, offsets=seqs.offsets)

    def _ready(self, X: Any, inputs: Any, lengths: Any) -> tuple[Ragged, Any]:
        """Sequences, and their inputs, to answer about."""
        check_is_fitted(self)
        rows = self._rows(cut(X, lengths), reset=False)
        return rows, None if inputs is None else Ragged.of(inputs, _lengths_for(inputs, lengths))

    def _blank(self, X: Any, members: int | None = None) -> Any:
        remedy = "fit one on the sequences of each class, and compare their score_samples"
        raise DomainError(sentence(type(self).__name__, "this density stands alone", "inside another model", remedy))

    def summary(self, level: float = 0.95) -> Any:
        """Regimes, moves and what was learned of each, on one page; there are no errors of an approximate evidence."""
        from likely.statespace.estimators.switching_summary import switching_summary

        check_is_fitted(self)
        return switching_summary(self, level)

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Refused: what is missing depends on the regime."""
        expected, remedy = "gaps of a switching model are not filled", "see model_.smooth(X) for states and regimes"
        raise DomainError(sentence(type(self).__name__, expected, "impute", remedy))

    # -------------------------------------------------------------------- in use

    def score_samples(self, X: Any, inputs: Any = None, lengths: Any = None) -> Array:
        """The approximate log p of each sequence (n,)."""
        rows, known = self._ready(X, inputs, lengths)
        return self.model_.log_prob(rows, known)

    def score(self, X: Any, y: Any = None, inputs: Any = None, lengths: Any = None) -> float:
        """Mean log p per sequence; `y` is ignored."""
        rows, known = self._ready(X, inputs, lengths)
        self._check_y(y, rows)
        return float(np.mean(self.model_.log_prob(rows, known)))

    def predict_proba(self, X: Any, inputs: Any = None, lengths: Any = None, live: bool = False) -> Any:
        """p(regime | sequence) of each frame: (T, K), or a Ragged; `live`: from the frames up to it alone."""
        rows, known = self._ready(X, inputs, lengths)
        states = self.model_.filter(rows, known) if live else self.model_.smooth(rows, known)
        return states.regimes[0] if is_one(X) and lengths is None and len(rows) else states.regimes

    def predict(self, X: Any, inputs: Any = None, lengths: Any = None, live: bool = False) -> Any:
        """The likeliest regime of each frame: (T,), or a Ragged."""
        shares = self.predict_proba(X, inputs, lengths, live)
        return shares.map(_best) if isinstance(shares, Ragged) else _best(shares)

    def alarms(self, X: Any, cost: Any = None, inputs: Any = None, hold: int = 1) -> Alarms:
        """What to do after each frame of one sequence, from the frames up to it: see `fault_alarms`."""
        check_is_fitted(self)
        if not is_one(X):
            raise ShapeError(sentence(type(self).__name__, "alarms are those of one sequence", "several"))
        return fault_alarms(self.predict_proba(X, inputs, live=True), cost, hold=hold)

    def follow(self) -> IMMFilter:
        """The live filter of what was learned, for `lk.follow`."""
        check_is_fitted(self)
        return IMMFilter(self.model_, "gpb2")

    def sample(self, n_samples: int = 1, random_state: Any = None, length: Any = None) -> Ragged:
        """Sequences drawn from the learned model, as long as those of training were on average."""
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
    """Moves (K, K) that stay with 0.95.

    >>> sticky(2).tolist()
    [[0.95, 0.05], [0.05, 0.95]]
    """
    return np.where(np.eye(K, dtype=bool), STAY, round(1.0 - STAY, 12) / max(K - 1, 1)) if K > 1 else np.ones((1, 1))


def _lengths_for(inputs: Any, lengths: Any) -> Any:
    return None if isinstance(inputs, Ragged | list | tuple) else lengths


def _width_of_inputs(rows: Ragged) -> int:
    return int(table(rows.values[COVARIATES]).shape[1]) if isinstance(rows.values, Columns) else 0
