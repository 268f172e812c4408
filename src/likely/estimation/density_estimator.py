"""DensityEstimator: the scikit-learn interface of densities (fit, partial_fit, score_samples, sample, impute)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likely.core.blocks import Block, Blocks
from likely.core.em_loop import Stop, fit, gather, reached, resolve_prior
from likely.core.engine import Threads
from likely.core.errors import DataError, DomainError, by_name, sentence
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.core.warnings import said_once, tell, unheard
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.tied import one_covariance
from likely.distributions.unobserved_columns import never_observed, nothing_seen, unseen_columns
from likely.estimation.array_fast_path import is_plain
from likely.estimation.base_estimator import BaseEstimator
from likely.estimation.imputed_rows import filled_in
from likely.estimation.input_validation import TAKES_TEXT, numeric_rows, row_weights
from likely.estimation.sequence_validation import refuse_other_y
from likely.imputation.impute import impute


class ADensity(HasMethods):
    """Parameter constraint: an instance of a density estimator, not a class; with an example."""

    def __init__(self, example: str = "GaussianDensity()") -> None:
        super().__init__(["fit", "score_samples", "_blank_for"])
        self.example = example

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a value satisfies the constraint."""
        return not isinstance(val, type) and bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        return f"an estimator of densities (such as {self.example})"


PRIOR = [StrOptions({"weak"}), HasMethods(["update", "point"]), None]
EM = {
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


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


class DensityEstimator(DefaultParts, DensityMixin, BaseEstimator):
    """Density estimator: `model_` is the fitted value, `stats_` its statistics, `report_` the fit report.

    A subclass implements `_blank` (an initial model for some rows) and may override `_rows` (input validation),
    `_prior_rule` and `_finish` (from the fitted model to the one that scores, such as a posterior predictive
    distribution; the point estimate is then `point_model_`). Missing entries are NaN; `partial_fit` adds statistics, so
    chunks equal the batch (with missing values it is one EM step).
    """

    # fitted attributes stored in a model file
    _saved: tuple[str, ...] = (
        "model_", "point_model_", "stats_", "prior_", "n_iter_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the density to rows X (n, d); `y` is ignored."""
        self._validate_params()
        X, weight = self._checked(X, sample_weight, reset=True, y=y)
        with self._named_columns():
            self._look_for_gaps(Blocks.of(X, weight))
            report = fit(
                self._first(X, weight), Blocks.of(X, weight), prior=self._prior_rule(),
                stop=Stop(self.max_iter, self.tol),
            )  # fmt: skip
        if not report.converged:
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        return self._adopt(report, Block(X, weight))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update with more rows: their statistics are added to those of all rows before."""
        self._validate_params()
        first = not hasattr(self, "model_")
        X, weight = self._checked(X, sample_weight, reset=first, y=y)
        model, known = (self._first(X, weight), None) if first else self._grown(self._learned, self.stats_, X)
        new: Any = Threads().total(lambda block: gather(model, block), Blocks.of(X, weight))
        if first and getattr(new, "filled", False):  # no model yet to impute missing values: fit it to these rows
            stop = Stop(self.max_iter, self.tol)
            with unheard():
                learned = fit(model, Blocks.of(X, weight), prior=self._prior_rule(), stop=stop)
            model, new = learned.model, learned.stats
        stats = new if known is None else known + new
        with self._named_columns():
            prior = resolve_prior(model, stats, self._prior_rule())
            model = model.refit(stats, prior)
        reason = "closed form: nothing was hidden" if stats.complete else "one step of EM for each call of partial_fit"
        return self._adopt(FitReport(model, stats, prior, stats.complete, reason, [reached(model, stats, prior)]))

    def score_samples(self, X: Any) -> Any:
        """Log-density log p(x) of each row (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._rows(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows; `y` is ignored."""
        if y is not None and self._of_sequences:
            self._check_y(y, Ragged.of(X))
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Samples from the fitted density; `random_state` is an int, a Generator or None."""
        check_is_fitted(self)
        return self._outward(self.model_.sample(n_samples, np.random.default_rng(random_state)))

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Rows with missing values imputed: by conditional expectation, or with `random_state` by a draw.

        The result has the type of the input (a data frame, an array, `Columns`), and observed values are unchanged.
        """
        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        return self._outward(impute(self.model_, self._rows(X, reset=False), rng), X)

    def summary(self, level: float = 0.95) -> Any:
        """Parameters with intervals, log-likelihood, AIC and BIC, as text, HTML or JSON."""
        from likely.estimation.density_summary import Summary

        check_is_fitted(self)
        return Summary.of(self, level)

    def save(self, path: Any) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    # ------------------------------------------------------------ for subclasses

    def _blank(self, X: Any, members: int | None = None) -> Any:
        """An initial model for rows like these; for a classifier a stack of `members`."""
        raise NotImplementedError  # abstract

    def _blank_for(self, X: Any, members: int | None, weight: Any) -> Any:
        """The same for rows with weights."""
        return self._blank(X, members)

    _tells_of_gaps = True  # the distribution itself reports columns without observed values

    def _look_for_gaps(self, data: Blocks) -> None:
        """Raise an error if all entries are missing, unless a prior gives a distribution."""
        never, d = unseen_columns(data)
        own = self.prior is not None and not isinstance(self.prior, str)
        if d and len(never) == d and not own:
            raise nothing_seen(type(self).__name__)
        if len(never) and not self._tells_of_gaps:
            tell(never_observed(type(self).__name__, never, self.prior))

    _looks_once = True  # an initial model needs a subset of the rows only
    _hides_labels = False  # True if the initialization must break the symmetry of components
    _of_sequences = False  # True if a row is a sequence, as in a Ragged

    def _first(self, X: Any, weight: Any) -> Any:
        """The initial model."""
        return self._blank_for(X, None, weight)

    def _started(self, blank: Any, X: Any, labels: Any, weight: Any) -> list[Any]:
        """Initial models for a stack whose members have labeled rows, one per run."""
        return [self._started_once(blank, X, labels, weight, np.random.default_rng(0))]

    def _started_once(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any) -> Any:
        """Initial stack: each member learned from its labeled rows, with weak priors if no prior is set."""
        other = copy(self)
        if other.prior is None:
            other.prior = "weak"
        with unheard():
            stats = blank.collect(X, weight, labels=labels)
            scaled = softened(stats, 1, one_covariance(blank))
            return blank.refit(stats, resolve_prior(blank, scaled, other._prior_rule()))

    def _as_chosen(self, model: Any) -> Self:
        """An estimator with the hyperparameters chosen for a model: folds need not choose again."""
        return self

    def _climbs(self) -> bool:
        """Whether fitting is expensive, and `_near` gives an approximate refit without a few rows."""
        return False

    def _near(self, model: Any, now: tuple[Any, Any], before: tuple[Any, Any]) -> Any:
        """The approximate refit for statistics and prior `now`, close to those `before` of the fitted model."""
        return model.refit(*now)

    _wants_rows = False  # True if `_look_again` needs a second pass over the rows

    def _look_again(self, model: Any, stats: Any, prior: Any, rows: Block | None) -> None:
        """Hyperparameters chosen after fitting, before `_finish`; `rows` is None if the rows are not available."""

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
        """The model that scores: the fitted one, or one derived from it and its statistics."""
        return model

    def _known(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        """Rows with unknown levels replaced by missing values, and the mask of such rows (n,) by column."""
        return X, {}

    def _prior_rule(self) -> Any:
        """The prior argument of `core.fit`: a Prior, "weak", None, or a function of (model, stats)."""
        return self.prior

    def _grown(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        """The model and statistics so far, extended for new levels or columns in X."""
        return model, stats

    def _told(self, rows: Any) -> Any:
        """Decode rows of the model: level codes become labels."""
        return rows

    def _outward(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model in the form of the input: the inverse of `_rows`; `like` are the imputed rows."""
        return rows if like is None else filled_in(like, rows)

    def _rows(self, X: Any, reset: bool) -> Any:
        """Validated rows in the form of the model; infinities raise an error later, by row and column."""
        if not reset and is_plain(X, self):
            return X
        return numeric_rows(self, X, reset, getattr(self, "_for_text", TAKES_TEXT))

    _for_text = TAKES_TEXT  # remedy for strings

    # ------------------------------------------------------------------- inside

    def _checked(self, X: Any, sample_weight: Any, reset: bool, y: Any = None) -> tuple[Any, Any]:
        X = self._rows(X, reset=reset)
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

    def _adopt(self, report: FitReport, rows: Block | None = None) -> Self:
        self.report_ = report
        self.stats_, self.prior_ = report.stats, report.prior
        self.n_iter_ = max(report.iterations, 1)
        self._look_again(report.model, report.stats, report.prior, rows)
        self._keep(report.model, self._finish(report.model, report.stats, report.prior))
        return self

    def _keep(self, learned: Any, model: Any) -> None:
        """Set `model_`, and `point_model_` if the model that learns is another one."""
        self.model_ = model
        self.__dict__.pop("point_model_", None)
        if learned is not model:
            self.point_model_ = learned

    @property
    def _learned(self) -> Any:
        return getattr(self, "point_model_", self.model_)

    def _check_state(self) -> None:
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
        sound = sound and type(getattr(self, "n_iter_", 1)) is int and self._fits(learned, width)
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

    def _fits(self, model: Any, width: Any, members: int | None = None) -> bool:
        """True if a model read from a file is one that this estimator could have fitted."""
        return isinstance(model, self._model_types) and model.dim == width and model.members == members

    _model_types: Any = (Distribution,)

    _titles: list[str] | None = None  # names of its columns, if it is a part of another estimator
    _chosen = False  # True if it was chosen for certain columns: values outside its support then raise an error

    def _column_names(self) -> list[str]:
        if self._titles is not None:
            return self._titles
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _unsuited(self, X: Any, odd: Any, expected: str, remedy: str = "") -> DataError:
        """The error for the first entry (i, j) outside the support of the distribution, by column name."""
        i, j = (int(k) for k in np.argwhere(odd)[0])
        numbered = self._titles is None and not hasattr(self, "feature_names_in_")
        column = j if numbered else repr(self._column_names()[j])
        return DataError(sentence(type(self).__name__, expected, f"{X[i, j]:g} at row {i}, column {column}", remedy))

    def _named_columns(self) -> AbstractContextManager[None]:
        """Context manager: messages name columns instead of numbers, and this estimator instead of the distribution."""
        distributions = "|".join({"Gaussian", *(distribution.__name__ for distribution in self._model_types)})
        mine = re.compile(
            rf"({distributions})\b"
        )  # only at the beginning of a message: later it may name an alternative
        return said_once(reworded=lambda text: _renamed(mine, type(self).__name__, self._in_names(text)))

    def _in_names(self, text: str) -> str:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return text
        return by_name(text, "column", lambda j: repr(str(names[j])))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def tell_of_strangers(strange: Mapping[str, Any], whose: str) -> None:
    """Warn of columns with levels that did not occur in training."""
    if strange:
        verb = "holds" if len(strange) == 1 else "hold"
        note = f"{', '.join(map(repr, strange))} {verb} values that did not occur in training: they count as missing"
        tell(f"{whose}: {note}")


def predictive(model: Any, stats: Any, prior: Any, whose: str) -> Any:
    """The posterior predictive distribution (parameters integrated out)."""
    if prior is None:
        remedy = 'pass one, or prior="weak"'
        raise DomainError(sentence(whose, "integrating the parameters out needs a prior", "None", remedy))
    return prior.update(stats).predictive()


def _renamed(whose: re.Pattern[str], name: str, text: str) -> str:
    """A message under another name."""
    found = whose.match(text)
    return text if found is None else name + text[found.end() :]
