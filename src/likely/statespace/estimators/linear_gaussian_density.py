"""Estimator of linear-Gaussian state-space models: all parameters, or some, by EM and BFGS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, Seed, SequencesLike, Targets
from likely.core.blocks import Block
from likely.core.covariates import COVARIATES, frames_of, n_covariates, table, with_optional_covariates
from likely.core.description import Description
from likely.core.em_loop import StoppingRule, fit, resolve_prior
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import PriorLike
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.stats import Stats
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.stacks.stack import Stack
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.density_description import convergence, goodness, parameter_table, prior_words, total_weight
from likely.estimation.density_estimator import EM, DensityEstimator
from likely.estimation.fit_blocks import evenly, fit_members, keeper
from likely.estimation.imputed_rows import filled_in
from likely.estimation.imputed_sequences import filled_sequences
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.parameter_intervals import Row
from likely.estimation.partial_fit import one_step
from likely.estimation.sequence_validation import validated_frames
from likely.statespace.linear.forecast import StateForecast
from likely.statespace.linear.kalman_filter import Smoothed, States, series_of
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian, LinearPrior, initial_undetermined
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.linear.linear_structure import COVARIANCES, Structure
from likely.statespace.linear.predicted_observations import imputed
from likely.statespace.linear.quasi_newton import SINGULAR, check_converged, fit_quasi_newton
from likely.statespace.linear.standard_errors import StandardErrors, standard_errors
from likely.statespace.linear.subspace_identification import free_form, initial_model

SINGULAR_BELOW = 1e-6  # smallest eigenvalue, with columns scaled to variance 1, below which a covariance is singular
DETERMINED = 0.1  # nats per frame that a tenth of a variance must cost if the frames determine it
MOST_FRAMES = 1e9  # frames of a sequence: a file that claims more is invalid


class LinearGaussianDensity(DensityEstimator):
    """Linear-Gaussian state-space model of sequences, fitted by EM and quasi-Newton steps.

    A sequence that does not determine a diffuse initial state, as one frame does not determine a velocity, is left out
    with a warning. A variance stuck near 0 is raised if that increases log p.

    Sequences are a `Ragged`, a list of arrays (T_i, p) or (T_i,), or one array, which `lengths` may split; NaN marks
    missing values. `inputs` have the same form. Weights are one per sequence.

    Parameters
    ----------
    model : LinearGaussian, optional
        Initial model. None: one with `n_states` states, initialized from the data by a subspace method, beside a
        constant state that carries the means of the columns.
    learn : sequence of str, optional
        Names of the learned parameters, such as ["process_covariance", "observation_covariance"], or "initial" for the
        mean and covariance of the initial state. None: all that can be learned.
    form : dict, optional
        Constraints by name: of a matrix an array of its shape (False or 0: fixed, True: free, equal integers: shared),
        of a covariance "full", "diagonal", "spherical", "scale", labels of its variances, or blocks with a form each,
        as [("scale", [0, 1]), ("full", [2]), ("fixed", [3, 4])], for sums of models.
    prior : {"auto", "weak"}, LinearPrior or None, default "auto"
        None is maximum likelihood; "weak" adds one average frame as pseudo-observation. "auto": None if a model is
        given (unless a covariance tends to a singular one: then, with a warning, "weak"), and "weak" if everything is
        learned.
    n_states : int, optional
        Number of states where no model is given; None is 1.
    max_iter : int, default 500
        Largest number of passes over the data.
    tol : float, default 1e-8
        Gain per frame at which the fit has converged.
    accelerate : bool, default True
        EM is slow for variances, so after ten passes BFGS steps with the exact gradient follow, each accepted only if
        log p increases; False is EM alone (Shumway and Stoffer 1982).

    Attributes
    ----------
    model_ : LinearGaussian
        The fitted model.
    structure_ : Structure
        Learned parameters and their constraints.

    See Also
    --------
    LinearGaussian : The model.
    standard_errors : Standard errors of the learned parameters.

    References
    ----------
    Shumway and Stoffer (1982); Durbin and Koopman (2012); Murphy (2012), chapter 18.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> level = lk.LinearGaussian.local_level(level_variance=0.1, observation_variance=1.0)
    >>> tracks = level.sample(5, np.random.default_rng(0), length=200)
    >>> level = lk.LinearGaussian.local_level(1.0, 1.0)
    >>> est = LinearGaussianDensity(level, ["process_covariance", "observation_covariance"]).fit(tracks)
    >>> est.model_.process_covariance.round(2), est.model_.observation_covariance.round(2)
    (array([[0.09]]), array([[1.08]]))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "model": [LinearGaussian, None],
        "learn": [str, list, tuple, None],
        "form": [dict, None],
        "prior": [StrOptions({"auto", "weak"}), LinearPrior, None],
        "n_states": [Interval(Integral, 1, None, closed="left"), None],
        "accelerate": ["boolean"],
        **EM,
    }

    def __init__(
        self,
        model: Any = None,
        learn: Any = None,
        *,
        form: Any = None,
        prior: Literal["auto"] | PriorLike = "auto",
        n_states: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-8,
        accelerate: bool = True,
    ) -> None:
        self.model = model
        self.learn = learn
        self.form = form
        self.prior = prior
        self.n_states = n_states
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate

    saved_attributes = (*DensityEstimator.saved_attributes, "structure_", "is_online_", "mean_length_")
    model_types = (LinearGaussian,)
    traits = Traits(sequences=True, latent=True, sketchable=False)  # the initialization uses all frames
    hard = False

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        inputs: SequencesLike | None = None, lengths: ArrayLike | None = None, checkpoint: Any = None,
    ) -> Self:  # fmt: skip
        """Fit to sequences; `y` is ignored. `checkpoint` is a file name: an interrupted fit continues from there.

        It goes on to the same bits where EM is alone, and in its first ten passes; later to the same maximum.
        """
        self._validate_params()
        rows, weight = self.checked_rows(with_optional_covariates(X, inputs, lengths), sample_weight, reset=True, y=y)
        self._refuse_nothing(rows)
        learner = self._initial_model(rows, weight)
        self.structure_ = learner.structure
        with self._named_columns(), np.errstate(all="ignore"):  # overflow is reported by messages
            report = self.run_em(learner, rows, weight, self.prior_rule(), keeper(checkpoint, 0, 1))
        if self.prior == "auto" and self._collapsed(learner, report, rows, weight) and not _never_changing(rows):
            report = self._held(learner, rows, weight)
        if not report.converged:
            warn(f"{type(self).__name__}: not converged: {report.reason}{self._remedy(report, rows)}")
        self.is_online_ = False
        self.mean_length_ = float(np.average(rows.lengths, weights=weight))
        return self._adopt(report)

    def _held(self, learner: ConstrainedLinearGaussian, X: Ragged, weight: Any) -> FitReport:
        """Fit again with a weak prior: the likelihood has no maximum if a covariance becomes singular."""
        message = 'a covariance tends to a singular one, so a weak prior was added; a form, as "scale", may fit better'
        warn(f"{type(self).__name__}: {message}")
        with self._named_columns(), np.errstate(all="ignore"):
            return self.run_em(learner, X, weight, self._weak)

    def _remedy(self, report: FitReport, X: Ragged) -> str:
        """Additional remedy if the fit did not converge."""
        flat = _never_changing(X) if report.prior is None else []
        if flat:
            which = self._constant_column(flat[0])
            return f'; {which}, so its variances have no maximum above 0: give prior="weak"'
        return "; raise max_iter, or tol" if report.reason.startswith(f"{self.max_iter} ") else ""

    def _constant_column(self, j: int) -> str:
        named = hasattr(self, "feature_names_in_")
        return f"column {repr(self.column_names()[j]) if named else j} is the same in all frames"

    def run_em(
        self, learner: ConstrainedLinearGaussian, X: Ragged, weight: ArrayLike, prior: Any, checkpoint: Any = None
    ) -> FitReport:
        X, weight = self._with_known_start(learner, X, weight)
        try:
            return self._climb(learner, evenly(X, weight), prior, checkpoint)
        except DomainError as error:
            flat = [] if prior is not None else _never_changing(X)
            if not flat:
                raise
            expected = f"{self._constant_column(flat[0])}, so its variances have no maximum"
            remedy = 'give prior="weak", fix its observation, or leave the column out'
            raise DomainError(sentence(type(self).__name__, expected, "variances that go to 0", remedy)) from error

    def _climb(self, learner: ConstrainedLinearGaussian, data: Any, prior: Any, checkpoint: Any) -> FitReport:
        stop = StoppingRule(self.max_iter, self.tol)
        if self.accelerate:
            return fit_quasi_newton(learner, data, prior, stop, checkpoint)
        return check_converged(fit(learner, data, prior=prior, stop=stop, checkpoint=checkpoint), data, self.tol)

    def _with_known_start(self, learner: ConstrainedLinearGaussian, X: Ragged, weight: Any) -> tuple[Ragged, Any]:
        """Sequences that determine a diffuse initial state, checked once; a warning gives the number of the others."""
        if learner.model.diffuse is None:
            return X, weight
        kept = ~initial_undetermined(learner.model, series_of(learner.model, X))
        return (X, weight) if kept.all() else (X[np.flatnonzero(kept)], None if weight is None else weight[kept])

    def partial_fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        inputs: SequencesLike | None = None, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """One step of online EM with more sequences; the first call is a `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, what early models saw is forgotten slowly.
        """
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight, inputs=inputs, lengths=lengths)
            self.is_online_ = True
            return self
        self._validate_params()
        rows, weight = self.checked_rows(with_optional_covariates(X, inputs, lengths), sample_weight, reset=False, y=y)
        self._refuse_nothing(rows)
        return self._adopt(one_step(self, rows, weight))

    def _adopt(self, report: FitReport, rows: Block | None = None) -> Self:
        return super()._adopt(replace(report, model=report.model.model), rows)

    @property
    def learned_model_(self) -> ConstrainedLinearGaussian:
        return ConstrainedLinearGaussian.trusted(model=self.model_, structure=self.structure_)

    def _initial_model(self, X: Ragged, weight: Any) -> ConstrainedLinearGaussian:
        if self.model is None:
            k = n_covariates(X)
            states = self.n_states or 1
            model = initial_model(frames_of(X), states, k, weight)
            return ConstrainedLinearGaussian.trusted(
                model=model, structure=self._structure(model, free_form(states, k))
            )
        if self.model.dim != self.n_features_in_:
            expected = f"a model of {self.model.dim} columns needs frames of {self.model.dim} columns"
            raise ShapeError(sentence(type(self).__name__, expected, self.n_features_in_))
        return ConstrainedLinearGaussian.trusted(model=self.model, structure=self._structure(self.model, {}))

    def _structure(self, model: LinearGaussian, forms: dict[str, Any]) -> Structure:
        asked = Structure.of(model, self.learn)
        return Structure.of(model, self.learn, {n: f for n, f in forms.items() if n in asked.learn} | (self.form or {}))

    def prior_rule(self) -> Any:
        """A `LinearPrior`, None, or a rule that gives one prior shared by all members."""
        if self.prior == "weak" or (self.prior == "auto" and self.model is None):
            return self._weak
        return None if isinstance(self.prior, str) else self.prior

    def _collapsed(self, start: ConstrainedLinearGaussian, report: FitReport, X: Ragged, weight: Any) -> bool:
        """Whether maximum likelihood led a full covariance of several columns to a singular one (unbounded likelihood).

        How close to it the steps end hangs on rounding: some stop at a variance of 1e-9 of the others and gain no more.
        Then the likelihood hardly falls where that variance is a tenth of it; at a maximum it does, with every frame.
        """
        sizes = {"process_covariance": start.model.states, "observation_covariance": start.model.dim}
        forms = {n: self.structure_.form.get(n, "full") for n in sizes if n in self.structure_.learn and sizes[n] > 1}
        full = [name for name, form in forms.items() if isinstance(form, str) and form == "full"]
        if report.prior is not None or not full:
            return False
        stuck = report.reason == SINGULAR or report.reason.startswith("a variance near 0 should be greater")
        if stuck and not report.converged:
            return True
        found, rows = report.model.model, np.ones(len(X)) if weight is None else weight
        for name in full:
            if _thinnest(getattr(found, name)) < SINGULAR_BELOW <= _thinnest(getattr(start.model, name)):
                thinner = found.replace(**{name: _thinned(getattr(found, name))})
                lost = found.log_prob(X) - thinner.log_prob(X)
                if not float(rows @ lost) > DETERMINED * float(rows @ X.lengths):
                    return True
        return False

    def _weak(self, model: Any, stats: Any) -> LinearPrior:
        """Weak prior: one average frame as pseudo-observation; members share it."""
        if not isinstance(model, Stack):
            return model.weak_prior(stats)
        return (
            model.components[0].weak_prior(sum(stats.components)) if self._shared_prior is None else self._shared_prior
        )

    # -------------------------------------------------------- inside a classifier

    def blank_model(self, X: Ragged, members: int | None = None, weight: ArrayLike | None = None) -> Any:
        one = self._initial_model(X, None)
        return one if members is None else Stack.trusted(components=(one,) * members)

    def initialize(self, blank: Any, X: Any, labels: ArrayLike, weight: Any, rng: Generator, run: int = 0) -> Any:
        """Each member fitted to its own sequences, with one prior for all: with known labels this is the maximum."""
        if labels is None:
            return blank
        with warnings_discarded():
            prior = resolve_prior(blank, blank.collect(X, weight, labels=labels), self.prior_rule())
            self._shared_prior = prior
            return fit_members(blank, X, labels, weight, lambda part, own, w: self.run_em(part, own, w, prior).model)

    _shared_prior: Any = None

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        if isinstance(model, Stack):
            return Stack.trusted(components=tuple(part.model for part in model.components))
        return model

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        if members is not None:
            several = isinstance(model, Stack) and model.members == members
            return several and all(
                isinstance(p, ConstrainedLinearGaussian) and p.dim == width for p in model.components
            )
        if not isinstance(model, LinearGaussian) or model.dim != width:
            return False
        structure: Any = getattr(self, "structure_", None)
        if not isinstance(structure, Structure) or type(getattr(self, "is_online_", False)) is not bool:
            return False
        Structure.of(model, structure.learn, structure.form)  # an error, if it is not that of such a model
        length = getattr(self, "mean_length_", 0.0)
        return type(length) is float and 0 <= length < MOST_FRAMES

    # ------------------------------------------------------------------- input validation

    def validate_rows(self, X: Rows, reset: bool = False) -> Ragged:
        """Input sequences converted to the form that the model takes, with their inputs if any."""
        if reset:
            self._shared_prior = None
        return validated_frames(X, reset, self, super().validate_rows)

    def _refuse_nothing(self, X: Ragged) -> None:
        if not len(X) or np.isnan(frames_of(X).values).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere" if len(X) else "no sequence"))

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return rows if like is None else filled_sequences(_Plain, like, rows)

    def _answer(self, verb: str, X: Any, inputs: Any, lengths: Any, **how: Any) -> Any:
        """Result of the model for the sequences; for one sequence, that of one."""
        check_is_fitted(self)
        rows = self.validate_rows(with_optional_covariates(X, inputs, lengths), reset=False)
        one = lengths is None and is_single_sequence(X)
        return getattr(self.model_, verb)(rows[0] if one and len(rows) else rows, **how)

    # -------------------------------------------------------------------- prediction

    def score_samples(self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None) -> Array:
        """Log-likelihood per sequence (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self.validate_rows(with_optional_covariates(X, inputs, lengths), reset=False))

    def score(
        self, X: Rows, y: Targets | None = None, inputs: SequencesLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood per sequence; `y` is ignored."""
        return super().score(with_optional_covariates(X, inputs, lengths), y)

    def predict(self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None) -> Any:
        """Smoothed signal E[C x + G u | whole sequence] per frame: (T, p), or a Ragged.

        Returns
        -------
        ndarray (T, p) or Ragged
            The signal; a Ragged for many sequences.
        """
        check_is_fitted(self)
        rows = self.validate_rows(with_optional_covariates(X, inputs, lengths), reset=False)
        signal = Ragged.trusted(values=self._signal(self.model_.smooth(rows).mean, rows), offsets=rows.offsets)
        return signal[0] if lengths is None and is_single_sequence(X) else signal

    def _signal(self, states: Ragged, rows: Ragged) -> Array:
        m, t = self.model_, np.arange(len(states.values)) - np.repeat(states.offsets[:-1], states.lengths)
        C = m.matrices.C[np.minimum(t, len(m.matrices.C) - 1)]
        out = np.matmul(C, states.values[:, :, None])[:, :, 0]
        if m.feedthrough is not None:
            G = m.feedthrough.reshape(-1, *m.feedthrough.shape[-2:])
            out = out + np.einsum("fpk,fk->fp", G[np.minimum(t, len(G) - 1)], table(rows.values[COVARIATES]))
        return out.astype(np.float32) if frames_of(rows).dtype == np.float32 else out

    def smooth(
        self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None,
        lag: int | None = None,
    ) -> Smoothed | States:  # fmt: skip
        """Smoothed states p(x_t | all frames), as `LinearGaussian.smooth`."""
        return self._answer("smooth", X, inputs, lengths, lag=lag)

    def filter(self, X: Rows, inputs: SequencesLike | None = None, lengths: ArrayLike | None = None) -> States:
        """Filtered states p(x_t | y_1 … y_t), as `LinearGaussian.filter`."""
        return self._answer("filter", X, inputs, lengths)

    def forecast(
        self, X: Rows, steps: int = 1, inputs: SequencesLike | None = None, future: SequencesLike | None = None
    ) -> StateForecast:
        """Forecast 1 … steps frames after one sequence, with intervals; `future` (steps, k) are their inputs.

        Parameters
        ----------
        X : array-like (T, p)
            One sequence; NaN is a missing value.
        inputs : array-like (T, k), optional
            Known inputs of X.

        Returns
        -------
        StateForecast
            Distributions of states and observations, with intervals.
        """
        return self._answer("forecast", X, inputs, None, steps=steps, future=future)

    def impute(self, X: Rows, random_state: Seed = None, inputs: SequencesLike | None = None) -> Any:
        """Sequences with missing values imputed: by their conditional expectation, or with `random_state` by a draw.

        Parameters
        ----------
        X : sequences
            A Ragged, a list of arrays (T_i, p), or one array (T, p); NaN is a missing value.
        """
        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        rows = self.validate_rows(with_optional_covariates(X, inputs, None), reset=False)
        return self.decode_rows(imputed(self.model_, rows, None, rng), X)

    def sample(
        self, n_samples: int = 1, random_state: Seed = None, length: ArrayLike | None = None,
        inputs: SequencesLike | None = None,
    ) -> Ragged:  # fmt: skip
        """Draw sequences from the learned density; by default of the mean length of the training sequences."""
        check_is_fitted(self)
        if length is None and inputs is None:
            length = max(round(self.mean_length_), 1)
        return self.model_.sample(n_samples, np.random.default_rng(random_state), length, inputs)

    def standard_errors(
        self, X: Rows, sample_weight: ArrayLike | None = None, *, inputs: SequencesLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> StandardErrors:  # fmt: skip
        """Standard errors of all learned parameters, given the training sequences: see `standard_errors`.

        Returns
        -------
        StandardErrors
            Standard errors by parameter name.
        """
        check_is_fitted(self)
        rows, weight = self.checked_rows(with_optional_covariates(X, inputs, lengths), sample_weight, reset=False)
        s = self.structure_
        return standard_errors(self.model_, rows, s.learn, s.form, weight=weight, prior=self.prior_)

    def describe(self, level: float = 0.95) -> Description:
        """Learned parameters, log-likelihood, AIC and BIC, and the model; `standard_errors` needs the sequences."""
        if not hasattr(self, "model_"):
            return super().describe()
        learn = self.structure_.learn
        facts = {
            "frames": total_weight(self), "columns": self.n_features_in_, "states": self.model_.states,
            "learned": ", ".join(learn) or "nothing", "parameters": self.learned_model_.n_parameters,
            **goodness(self), "prior": prior_words(self.prior_), **convergence(self),
        }  # fmt: skip
        notes = [
            "States are hidden: standard_errors(X) gives standard errors of the estimates, from the curvature of log p."
        ]
        if "observation" in learn and {"transition", "process_covariance"} & set(learn):
            free = "Unconstrained states can be rotated and scaled without a change of log p"
            notes.append(f"{free}: fewer parameters are determined than are counted, so AIC and BIC penalize too much.")
        rows = [row for name in learn for row in entry_rows(self.model_, name)]
        title = f"{type(self).__name__}: {type(self.model_).__name__}"
        return Description(title, (), facts, [parameter_table(rows, level)], notes, [self.model_.describe()])


class _Plain:
    """Convert frames back to the form of the input."""

    @staticmethod
    def decode_rows(rows: Any, like: Any) -> Any:
        return filled_in(like, rows)


def entry_rows(model: Any, name: str) -> Iterator[Row]:
    """The entries of a matrix of a linear model, of a covariance the upper triangle, as parameters."""
    a = getattr(model, name)
    if a.ndim == 3:
        yield Row("", f"mean variance of {name}", float(np.diagonal(a, axis1=1, axis2=2).mean()), None, None)
        return
    for at in np.ndindex(a.shape):
        if not (name in (*COVARIANCES, "initial_covariance") and at[0] > at[1]):
            yield Row("", f"{name}[{', '.join(map(str, at))}]", float(a[at]), None, None)


def _thinnest(covariance: Array) -> float:
    """Smallest eigenvalue with columns scaled to variance 1; the smallest of several covariances."""
    found = _in_units(covariance)
    return 0.0 if found is None else float(found[0].min())


def _thinned(covariance: Array) -> Array:
    """The same covariance with a tenth of its smallest eigenvalue."""
    found = _in_units(covariance)
    assert found is not None
    values, axes = found[0].copy(), found[1]
    values[..., 0] /= 10.0
    return np.asarray((axes * values[..., None, :]) @ np.swapaxes(axes, -1, -2))


def _in_units(covariance: Array) -> tuple[Array, Array] | None:
    """Eigenvalues in ascending order with columns scaled to variance 1, and axes that restore the covariance."""
    deviation = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    if not (deviation > 0).all():
        return None
    values, axes = np.linalg.eigh(covariance / (deviation[..., :, None] * deviation[..., None, :]))
    return np.maximum(values, 0.0), deviation[..., :, None] * axes


def _never_changing(X: Ragged) -> list[int]:
    """Columns that are constant within every sequence."""
    each = [np.fmax.reduce(x, axis=0) > np.fmin.reduce(x, axis=0) for x in frames_of(X) if len(x)]
    return np.flatnonzero(~np.any(each, axis=0)).tolist()
