"""Estimator of hidden Markov models with covariate-dependent transitions: a plain HMM first, then generalized EM."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likely.core.arrays import Array
from likely.core.covariates import Driven, apart, features, with_covariates
from likely.core.em_loop import Stop, fit
from likely.core.errors import DomainError, sentence
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.warnings import tell, unheard
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, ADensity, DensityEstimator
from likely.estimation.fit_blocks import evenly, keeper
from likely.estimation.imputed_sequences import filled_sequences
from likely.estimation.input_validation import row_weights
from likely.estimation.sequence_validation import tell_of_codes
from likely.hmm.decoding import Forecast, is_one
from likely.hmm.driven.driven_hmm import DrivenHMM
from likely.hmm.driven.driven_prior import EFFECT, DrivenPrior
from likely.hmm.estimators.hmm_density import HMMDensity
from likely.hmm.estimators.hmm_initialization import STARTS
from likely.hmm.hmm import masks
from likely.hmm.topology import Topology
from likely.imputation.impute import impute

LEAST = 1e-6  # smallest initial probability of a possible transition
SHORTLY = 1e-4  # gain per frame at which the plain HMM of the initialization is good enough


class DrivenHMMDensity(DensityEstimator):
    """HMM with covariate-dependent transitions, fitted by generalized EM: `model_` is a `DrivenHMM`.

    Its density is p(frames | covariates).

    - **component, n_states, topology, init, n_init, random_state**: as in `HMMDensity`; the topology says which
      transitions are possible, and sequences may stop anywhere. A plain HMM is fitted first (`plain_`, with its
      restarts) as the initialization; `init` may be a `DrivenHMM` instead.
    - **prior**: "weak" regularizes the emissions, adds one pseudo-count per state, and expects that one standard
      deviation of a covariate changes log-odds by about 2.5; a number sets another size; None is maximum
      likelihood; or a `DrivenPrior`.
    - **hard, tol**: as in `HMMDensity`. **max_iter**: more than there, because steps of the coefficients maximize a
      lower bound and are small: a fit may take a few hundred where plain EM takes a few dozen.

    Covariates are passed separately, in the same form as the frames (a list of arrays (T_i, p), a `Ragged`, one array),
    or together with them: `with_covariates(X, U)`. They are standardized internally, so that their units do not matter;
    `coefficients_` are those of unstandardized (1, u). Only differences of coefficients between targets are identified.

    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = [rng.normal(size=(50, 1)) for _ in range(20)]
    >>> x = [5.0 * (v + rng.logistic(size=v.shape) > 0) + rng.normal(size=v.shape) for v in u]
    >>> h = DrivenHMMDensity(lk.GaussianDensity(), n_states=2, random_state=0).fit(x, covariates=u)
    >>> bool(h.forecast(x[0], 1, covariates=[2.0], past=u[0]).mean > 3)
    True
    """

    _default_parts: ClassVar[dict[str, Any]] = {"component": GaussianDensity}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "component": [ADensity(), None],
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "topology": [str, "array-like", Topology],
        "prior": [StrOptions({"weak"}), Interval(Real, 0, None, closed="neither"), DrivenPrior, None],
        "init": [StrOptions(set(STARTS)), DrivenHMM],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "hard": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, component: Any = None, n_states: int = 1, *, topology: Any = "ergodic", prior: Any = "weak",
        init: Any = "auto", n_init: int = 1, max_iter: int = 500, tol: float = 1e-5, hard: bool = False,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.component = component
        self.n_states = n_states
        self.topology = topology
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.hard = hard
        self.random_state = random_state

    saved_attributes = (*DensityEstimator.saved_attributes, "plain_", "n_covariates_in_")
    model_types = (DrivenHMM,)
    traits = Traits(sequences=True)

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, covariates: Any = None, lengths: Any = None,
        states: Any = None, checkpoint: Any = None,
    ) -> Self:  # fmt: skip
        """Fit to sequences X with their covariates; `y` is ignored, weights are one per sequence.

        `lengths` split one long array X, and the covariates alike. `states`: known states, one number per frame of each
        sequence, −1 where unknown. `checkpoint` is a file name: an interrupted fit resumes from there (the plain HMM,
        which comes first, is fitted again).
        """
        self._validate_params()
        driven, weight, known = self._driven(X, y, covariates, sample_weight, lengths, states)
        units = _units(driven, weight)
        self.n_covariates_in_ = driven.covariates.shape[1]
        self.plain_ = self._plain(driven.frames, weight, known)
        self.n_features_in_ = self.plain_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(self.plain_, "feature_names_in_"):
            self.feature_names_in_ = self.plain_.feature_names_in_
        rows = self.plain_.validate_rows(driven.frames, reset=False)
        data = evenly(with_covariates(rows, _like(driven)), weight, log_mask=known)
        with self._named_columns():
            report = fit(
                self._first_model(units), data, prior=self.prior_rule(), stop=Stop(self.max_iter, self.tol),
                hard=self.hard, checkpoint=keeper(checkpoint, 0, 1),
            )  # fmt: skip
        self._tell_of(report)
        return self._adopt(report)

    def _tell_of(self, report: FitReport) -> None:
        if not report.converged:
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        never = np.flatnonzero(report.stats.counts <= 1e-9 * max(report.stats.total_weight, 1e-300)).tolist()
        if never:
            message = f"state {', '.join(map(str, never))} was never visited, and keeps its transition probabilities"
            tell(f"{type(self).__name__}: {message}: use fewer states")

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Not available: statistics of logistic transitions do not add over changing coefficients."""
        expected = "all sequences are needed at once: statistics of transitions do not add over changing coefficients"
        raise DomainError(sentence(type(self).__name__, expected, "partial_fit", "call fit with all of them"))

    def _driven(
        self, X: Any, y: Any, covariates: Any, sample_weight: Any, lengths: Any, states: Any
    ) -> tuple[Driven, Array | None, Ragged | None]:
        """Sequences with positive weight, and their known states."""
        driven = apart(X, covariates, lengths)
        self._check_y(y, driven.frames)
        if self.component is None:
            tell_of_codes(driven.frames.values, type(self).__name__)
        features(driven.covariates, None, driven.frames.offsets)  # raises for missing covariates, by sequence and frame
        known = None if states is None else Ragged.of(states, None if isinstance(states, Ragged) else lengths)
        if known is not None:
            masks(known, driven.frames, self.n_states)  # raises if they do not fit, before sequences are dropped
        if sample_weight is None:
            return driven, None, known
        weight = row_weights(sample_weight, driven.frames)
        keep = np.flatnonzero(weight > 0)
        both = with_covariates(driven.frames, _like(driven))[keep]
        return apart(both), weight[keep], None if known is None else known[keep]

    def _plain(self, frames: Ragged, weight: Array | None, known: Ragged | None) -> HMMDensity:
        """The HMM without covariates of the initialization."""
        topology = Topology.of(self.topology, self.n_states, False).replace(final=None)
        if len(topology.initial) != topology.states or topology.origin is not None:
            expected = "a topology of emitting states alone is needed"
            raise DomainError(sentence(type(self).__name__, expected, "null states, or an expansion"))
        prior = None if self.prior is None else "weak"
        start = self.init if isinstance(self.init, str) else "auto"
        plain = HMMDensity(
            self.component, self.n_states, topology=topology, prior=prior, init=start, n_init=self.n_init,
            max_iter=self.max_iter, tol=max(self.tol, SHORTLY), hard=self.hard,
            random_state=self.random_state,
        )  # fmt: skip
        with unheard():  # this estimator warns itself
            return plain.fit(frames, sample_weight=weight, states=known)

    def _first_model(self, units: Array) -> DrivenHMM:
        """The plain HMM as a DrivenHMM with zero covariate effects."""
        plain = self.plain_.learned_model_
        if isinstance(self.init, DrivenHMM):
            wanted = (plain.states, plain.dim, units.shape[1])
            given = (self.init.states, self.init.dim, self.init.n_covariates)
            if given != wanted:
                expected = f"init must have {wanted[0]} states, {wanted[1]} columns and {wanted[2]} covariates"
                raise DomainError(sentence(type(self).__name__, expected, given))
            return self.init
        possible = self.plain_.topology_.transition
        intercepts = np.where(possible, np.log(np.maximum(plain.transition, LEAST)), 0.0)
        coefficients = np.zeros((*possible.shape, 1 + units.shape[1]))
        coefficients[:, :, 0] = intercepts
        return DrivenHMM(plain.initial, coefficients, plain.emission, possible, units)

    def prior_rule(self) -> Any:
        """A `DrivenPrior` once there are statistics; emissions have the prior of the plain HMM."""
        if isinstance(self.prior, DrivenPrior):
            return self.prior
        emission = None if self.plain_.prior_ is None else self.plain_.prior_.emission
        if self.prior is None:
            p = self.n_covariates_in_
            return None if emission is None else DrivenPrior(0.0, np.zeros(p), np.zeros(p), emission)
        effect = float(self.prior) if isinstance(self.prior, Real) else EFFECT
        return lambda model, stats: DrivenPrior.weak(stats.curvature, emission, effect)

    # ----------------------------------------------------------------- internal

    def validate_rows(self, X: Any, reset: bool = False, covariates: Any = None, lengths: Any = None) -> Ragged:
        if reset:
            self.blank_model(X)
        driven = apart(X, covariates, lengths)
        return with_covariates(self.plain_.validate_rows(driven.frames, reset=False), _like(driven))

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Any:
        remedy = "fit one on the sequences of each class, and compare their score_samples"
        raise DomainError(
            sentence(
                type(self).__name__, "this density cannot be part of another model", "inside another model", remedy
            )
        )

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        return self.plain_.scoring_model(model, stats, prior)

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        driven = apart(rows)
        return with_covariates(self.plain_.decode_rows(driven.frames), _like(driven))

    def column_names(self) -> list[str]:
        return self.plain_.column_names()

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        plain: Any = getattr(self, "plain_", None)
        sound = isinstance(model, DrivenHMM) and isinstance(plain, HMMDensity) and members is None
        sound = sound and model.n_covariates == getattr(self, "n_covariates_in_", None) and model.dim == width
        return bool(sound and getattr(plain, "n_features_in_", None) == width and model.states == self.n_states)

    # -------------------------------------------------------------------- in use

    def summary(self, level: float = 0.95) -> Any:
        """Parameters, log-likelihood, AIC and BIC: prints as text, shows as HTML, gives JSON."""
        from likely.hmm.estimators.driven_summary import driven_summary

        check_is_fitted(self)
        return driven_summary(self, level)

    @property
    def coefficients_(self) -> Array:
        """Coefficients β of unstandardized (1, u) (K, K, p + 1)."""
        return self.model_.raw_coefficients()

    def score_samples(self, X: Any, covariates: Any = None, lengths: Any = None) -> Array:
        """Conditional log-likelihood log p(frames | covariates) of each sequence (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self.validate_rows(X, False, covariates, lengths))

    def score(self, X: Any, y: Any = None, covariates: Any = None, lengths: Any = None) -> float:
        """Mean conditional log-likelihood per sequence; `y` is ignored."""
        check_is_fitted(self)
        rows = self.validate_rows(X, False, covariates, lengths)
        self._check_y(y, rows)
        return float(np.mean(self.model_.log_prob(rows)))

    def predict(self, X: Any, covariates: Any = None, lengths: Any = None) -> Any:
        """Viterbi path: (T,) for one sequence, a Ragged for several."""
        check_is_fitted(self)
        path = self.model_.viterbi(self.validate_rows(X, False, covariates, lengths)).states
        return path[0] if is_one(X) and lengths is None else path

    def predict_proba(self, X: Any, covariates: Any = None, lengths: Any = None, lag: int | None = None) -> Any:
        """p(state | sequence) of each frame: (T, K), or a Ragged; with a `lag`, from frames up to `lag` later."""
        check_is_fitted(self)
        probs = self.model_.posterior(self.validate_rows(X, False, covariates, lengths), lag)
        return probs[0] if is_one(X) and lengths is None else probs

    def forecast(self, X: Any, steps: int = 1, covariates: Any = None, past: Any = None) -> Forecast:
        """Forecast after one sequence (T, d), given covariates (steps, p) to come; `past` (T, p) are those of X."""
        check_is_fitted(self)
        return self.model_.forecast(self.validate_rows(X, False, past), steps, covariates)

    def impute(self, X: Any, random_state: Any = None, covariates: Any = None) -> Any:
        """Sequences with missing values imputed: by expectation, or with `random_state` by sampling."""
        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        filled = apart(impute(self.model_, self.validate_rows(X, False, covariates), rng))
        given = X if covariates is not None else apart(X).frames
        frames = filled_sequences(self.plain_.component_, given, filled.frames)
        return frames if covariates is not None else with_covariates(frames, _like(filled))

    def sample(self, n_samples: int = 1, random_state: Any = None, covariates: Any = None) -> Any:
        """Sample sequences given covariates, n_samples of (T_i, p) or one (T, p) for all; returned together."""
        check_is_fitted(self)
        return self.decode_rows(self.model_.sample(n_samples, np.random.default_rng(random_state), covariates))


def _like(driven: Driven) -> Ragged:
    """The covariates as sequences."""
    return Ragged.trusted(values=driven.covariates, offsets=driven.frames.offsets)


def _units(driven: Driven, weight: Array | None) -> Array:
    """Mean and standard deviation of the covariates after first frames (2, p); a constant has scale 1."""
    after_first = np.ones(len(driven.covariates), dtype=bool)
    after_first[driven.frames.offsets[:-1][driven.frames.lengths > 0]] = False
    u, p = driven.covariates[after_first], driven.covariates.shape[1]
    if not len(u):
        return np.stack([np.zeros(p), np.ones(p)])
    w = None if weight is None else np.repeat(weight, driven.frames.lengths)[after_first]
    mean = np.average(u, axis=0, weights=w)
    scale = np.sqrt(np.average((u - mean) ** 2, axis=0, weights=w))
    return np.stack([mean, np.where(scale > 1e-12 * np.maximum(np.abs(mean), 1e-300), scale, 1.0)])
