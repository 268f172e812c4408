"""DensityEstimator: the scikit-learn interface of densities (fit, partial_fit, score_samples, sample, impute)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, Seed, Targets
from likely.core.blocks import Block, Blocks
from likely.core.description import Description
from likely.core.docstrings import complete
from likely.core.em_loop import StoppingRule, fit, gather, reached, resolve_prior
from likely.core.engine import Threads
from likely.core.errors import DataError, DomainError, LikelyError, sentence
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.core.warnings import Note, warn, warnings_discarded, warnings_once
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.tied import one_covariance
from likely.distributions.unobserved_columns import never_observed, nothing_seen, unseen_columns
from likely.estimation.array_fast_path import is_plain
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.input_validation import TAKES_TEXT, numeric_rows, row_weights
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.sequence_validation import refuse_other_y


def a_density(example: str = "GaussianDensity()") -> HasMethods:
    """Parameter constraint: an instance of a density estimator, not a class; with an example."""
    return HasMethods(["fit", "score_samples", "blank_model"], f"an estimator of densities (such as {example})")


PRIOR = [StrOptions({"weak"}), HasMethods(["update", "point"]), None]
EM = {
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


@complete
class DefaultParts:
    """Mixin for estimators with a nested estimator parameter, None for a default: its parameters can be set.

    `set_params(density__covariance="pooled")` with density None first sets the default density,
    so that a search can vary its parameters.
    """

    _default_parts: ClassVar[dict[str, Callable[[], Any]]] = {}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also nested ones and those of a default estimator."""
        for name, make in self._default_parts.items():
            if params.get(name, getattr(self, name)) is None and any(key.startswith(f"{name}__") for key in params):
                params[name] = make()
        super().set_params(**params)  # type: ignore[misc]
        return self


class DensityEstimator(DefaultParts, BaseEstimator):
    """Density estimator: `model_` is the fitted value, `stats_` its statistics, `report_` the fit report.

    A subclass implements `blank_model` and may override the other methods of `Component`: `validate_rows`,
    `prior_rule`, `scoring_model` (such as a posterior predictive distribution; the point estimate is then
    `point_model_`). Missing entries are NaN; `partial_fit` adds statistics, so chunks equal the batch (with missing
    values it is one EM step).
    """

    traits = Traits()
    report_: FitReport
    prior: Any = None
    max_iter: int = 100
    tol: float = 1e-6
    _parameter_rules: ClassVar[dict[str, Any]] = {}

    # fitted attributes stored in a model file
    saved_attributes: tuple[str, ...] = (
        "model_", "point_model_", "stats_", "prior_", "n_iter_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)  # a density inside a classifier knows its columns, but has no model

    def fit(self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the density to rows X (n, d); `y` is ignored."""
        self._validate_params()
        rows, weight = self.checked_rows(X, sample_weight, reset=True, y=y)
        with self._named_columns():
            self._look_for_unobserved(Blocks.of(rows, weight))
            report = fit(
                self._initial_model(rows, weight), Blocks.of(rows, weight), prior=self.prior_rule(),
                stop=StoppingRule(self.max_iter, self.tol),
            )  # fmt: skip
        if not report.converged:
            warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        return self._adopt(report, Block(rows, weight))

    def partial_fit(self, X: Any, y: Targets | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update with more rows: their statistics are added to those of all rows before."""
        self._validate_params()
        first = not hasattr(self, "model_")
        rows, weight = self.checked_rows(X, sample_weight, reset=first, y=y)
        if first:
            model, known = self._initial_model(rows, weight), None
        else:
            model, known = self.extend_model(self.learned_model_, self.stats_, rows)
        new: Any = Threads().total(lambda block: gather(model, block), Blocks.of(rows, weight))
        if first and getattr(new, "filled", False):  # no model yet to impute missing values: fit it to these rows
            stop = StoppingRule(self.max_iter, self.tol)
            with warnings_discarded():
                learned = fit(model, Blocks.of(rows, weight), prior=self.prior_rule(), stop=stop)
            model, new = learned.model, learned.stats
        stats = new if known is None else known + new
        with self._named_columns():
            prior = resolve_prior(model, stats, self.prior_rule())
            model = model.refit(stats, prior)
        reason = "closed form: no latent variables" if stats.complete else "one step of EM for each call of partial_fit"
        return self._adopt(FitReport(model, stats, prior, stats.complete, reason, [reached(model, stats, prior)]))

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood log p(X), of a fit with a given conjugate prior to rows without hidden parts.

        A prior that the data scale ("weak") gives none: they would be counted twice.
        """
        name = type(self).__name__
        if isinstance(self.prior, str | None) or not hasattr(self, "stats_"):
            raise AttributeError(f"{name} has log_evidence_ after a fit with a conjugate prior: prior=…")
        try:
            return float(np.sum(self.prior_.log_evidence(self.stats_)))
        except (LikelyError, NotImplementedError) as error:
            raise AttributeError(f"{name} has no log_evidence_: {error}") from error

    def score_samples(self, X: Rows) -> Array:
        """Log-density log p(x) of each row (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self.validate_rows(X, reset=False))

    def score(self, X: Rows, y: Targets | None = None) -> float:
        """Mean log-likelihood of the rows; `y` is ignored."""
        if y is not None and self.traits.sequences:
            self._check_y(y, Ragged.of(X))
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Samples from the fitted density; `random_state` is an int, a Generator or None."""
        check_is_fitted(self)
        return self.decode_rows(self.model_.sample(n_samples, np.random.default_rng(random_state)))

    def impute(self, X: Rows, random_state: Seed = None) -> Any:
        """Rows with missing values imputed: by conditional expectation, or with `random_state` by a draw.

        The result has the type of the input (a data frame, an array, `Columns`), and observed values are unchanged.
        """
        from likely.imputation.impute import impute

        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        return self.decode_rows(impute(self.model_, self.validate_rows(X, reset=False), rng), X)

    def describe(self, level: float = 0.95) -> Description:
        """Parameters with intervals of that level, log-likelihood, AIC and BIC; of an unfitted one, its settings."""
        from likely.estimation.density_description import density_description

        return density_description(self, level) if hasattr(self, "model_") else super().describe()

    def in_words(self, model: Any) -> str:
        """The kind of a model that it has fitted, or of the members of a stack."""
        return str(model.in_words())

    def summary(self, level: float = 0.95) -> Description:
        """The same as `describe`, of a fitted density only."""
        check_is_fitted(self)
        return self.describe(level)

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    # ---------------------------------------------------- the component protocol

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Any:
        """A model for rows like these before fitting, or a stack of `members`."""
        raise NotImplementedError  # abstract

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any, run: int = 0) -> Any:
        """The blank model; of a stack, each member fitted to its labeled rows, with weak priors if no prior is set."""
        if labels is None:
            return blank
        other = copy(self)
        if other.prior is None:
            other.prior = "weak"
        with warnings_discarded():
            stats = blank.collect(X, weight, labels=labels)
            scaled = softened(stats, 1, one_covariance(blank))
            return blank.refit(stats, resolve_prior(blank, scaled, other.prior_rule()))

    def prior_rule(self) -> Any:
        """The prior argument of `core.fit`: a Prior, "weak", None, or a function of (model, stats)."""
        return self.prior

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Block | None = None, choose: bool = True) -> Any:
        """The model that scores: the fitted one, or one derived from it and its statistics."""
        return model

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        """Rows with unknown levels replaced by missing values, and the mask of such rows (n,) by column."""
        return X, {}

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        """The model and statistics so far, extended for new levels or columns in X."""
        return model, stats

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model in the form of the input; `like` are the rows that were imputed."""
        if like is None:
            return rows
        from likely.estimation.imputed_rows import filled_in

        return filled_in(like, rows)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        """Validated rows in the form of the model; infinities raise an error later, by row and column."""
        if not reset and is_plain(X, self):
            return X
        return numeric_rows(self, X, reset, getattr(self, "_for_text", TAKES_TEXT))

    _for_text = TAKES_TEXT  # remedy for strings

    # ------------------------------------------------------------------- inside

    def _initial_model(self, X: Any, weight: Any) -> Any:
        return self.initialize(self.blank_model(X, None, weight), X, None, weight, np.random.default_rng(0))

    def checked_rows(self, X: Any, sample_weight: Any, reset: bool, y: Any = None) -> tuple[Any, Any]:
        X = self.validate_rows(X, reset=reset)
        if y is not None:
            self._check_y(y, X)
        if sample_weight is not None:
            sample_weight = row_weights(sample_weight, X)
            counts = sample_weight > 0
            if not counts.all():  # rows of weight 0 are dropped: they add neither levels nor ranges
                X, sample_weight = X[counts], sample_weight[counts]
        return X, sample_weight

    def _check_y(self, y: Any, rows: Any) -> None:
        """For sequences, check that `y` does not hold lengths; otherwise `y` is ignored."""
        if y is not None and isinstance(rows, Ragged):
            refuse_other_y(y, rows, type(self).__name__)

    def _look_for_unobserved(self, data: Blocks) -> None:
        """Raise an error if all entries are missing, unless a prior gives a distribution."""
        never, d = unseen_columns(data)
        own = self.prior is not None and not isinstance(self.prior, str)
        if d and len(never) == d and not own:
            raise nothing_seen(type(self).__name__)
        if len(never) and not self.traits.reports_unobserved:
            warn(never_observed(type(self).__name__, never, self.prior))

    def _adopt(self, report: FitReport, rows: Block | None = None) -> Self:
        self.report_ = report
        self.stats_, self.prior_ = report.stats, report.prior
        self.n_iter_ = max(report.iterations, 1)
        self._keep(report.model, self.scoring_model(report.model, report.stats, report.prior, rows))
        return self

    def _keep(self, learned: Any, model: Any) -> None:
        """Set `model_`, and `point_model_` if the model that learns is another one."""
        self.model_ = model
        self.__dict__.pop("point_model_", None)
        if learned is not model:
            self.point_model_ = learned

    @property
    def learned_model_(self) -> Any:
        return getattr(self, "point_model_", self.model_)

    def check_state(self) -> None:
        """After loading a file: the fitted attributes must be a density with statistics of its dimension."""
        model: Any = getattr(self, "model_", None)
        stats = getattr(self, "stats_", None)
        if model is None and stats is None:
            return
        width = getattr(self, "n_features_in_", None)
        names = getattr(self, "feature_names_in_", None)
        sound = isinstance(model, Distribution) and isinstance(stats, Value) and hasattr(stats, "total_weight")
        sound = sound and type(width) is int and (names is None or len(names) == width)
        learned = getattr(self, "point_model_", model)
        sound = sound and type(getattr(self, "n_iter_", 1)) is int and self.accepts_model(learned, width)
        sound = sound and (model is learned or (model.dim == width and model.members == learned.members))
        try:
            with np.errstate(all="ignore"):
                sound = sound and isinstance(learned.objective(stats), float)  # statistics of this model
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(
                sentence(type(self).__name__, "the fitted attributes must be consistent", type(model).__name__)
            )

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        """True if a model read from a file is one that this estimator could have fitted."""
        return isinstance(model, self.model_types) and model.dim == width and model.members == members

    model_types: Any = (Distribution,)

    column_titles: list[str] | None = None  # names of its columns, if it is a part of another estimator
    member_noun = "member"  # what a member of the stack of its component is
    strict_support = False  # True if it was chosen for certain columns: values outside its support then raise an error

    def column_names(self) -> list[str]:
        if self.column_titles is not None:
            return self.column_titles
        return super().column_names()

    def _unsuited(self, X: Any, odd: Any, expected: str, remedy: str = "") -> DataError:
        """The error for the first entry (i, j) outside the support of the distribution, by column name."""
        i, j = (int(k) for k in np.argwhere(odd)[0])
        numbered = self.column_titles is None and not hasattr(self, "feature_names_in_")
        column = j if numbered else repr(self.column_names()[j])
        return DataError(sentence(type(self).__name__, expected, f"{X[i, j]:g} at row {i}, column {column}", remedy))

    def _named_columns(self) -> AbstractContextManager[None]:
        """Context manager: notes name columns instead of numbers, and this estimator instead of the distribution."""
        own = {"Gaussian", *(distribution.__name__ for distribution in self.model_types)}
        return warnings_once(lambda note: named_note(self, note).called(type(self).__name__, *own))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.input_tags.allow_nan = True
        return tags


def warn_of_unseen_categories(unseen: Mapping[str, Any], whose: str) -> None:
    """Warn of columns with levels that did not occur in training."""
    if unseen:
        verb = "holds" if len(unseen) == 1 else "hold"
        note = f"{', '.join(map(repr, unseen))} {verb} values that did not occur in training: they count as missing"
        warn(f"{whose}: {note}")


def predictive(model: Any, stats: Any, prior: Any, whose: str) -> Any:
    """The posterior predictive distribution (parameters integrated out)."""
    if prior is None:
        remedy = 'pass one, or prior="weak"'
        raise DomainError(sentence(whose, "integrating the parameters out needs a prior", "None", remedy))
    return prior.update(stats).predictive()


def named_note(estimator: Any, note: Note) -> Note:
    """A note with the column names of this estimator, and its noun for the members of its component."""
    component = vars(estimator).get("component_")
    if component is not None:
        return named_note(component, note).with_members(estimator.member_noun)
    parts = {name: part for name, part, _ in vars(estimator).get("densities_", ())}
    if note.parts and note.parts[0] in parts:
        return note.with_columns(parts[note.parts[0]].column_titles or ())
    names = None if parts else getattr(estimator, "feature_names_in_", None)
    return note if names is None else note.with_columns(names)
