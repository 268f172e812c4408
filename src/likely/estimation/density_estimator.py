"""The scikit-learn face of a density: one shell, and each estimator says only what is its own."""

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
from likely.core.engine import Threads
from likely.core.errors import DataError, DomainError, by_name, sentence
from likely.core.fit_loop import Stop, fit, gather, reached, resolve_prior
from likely.core.fit_report import FitReport
from likely.core.ragged import Ragged
from likely.core.value import Value
from likely.core.warnings import said_once, tell, unheard
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.tied import one_covariance
from likely.distributions.unobserved_columns import never_observed, nothing_seen, unseen_columns
from likely.estimation.base_estimator import BaseEstimator
from likely.estimation.input_validation import TAKES_TEXT, numeric_rows, row_weights
from likely.estimation.plain_arrays import is_plain
from likely.estimation.restore_rows import filled_in
from likely.estimation.sequence_validation import refuse_other_y
from likely.imputation.impute import impute


class ADensity(HasMethods):
    """The constraint of a setting that must be an estimator of densities, made and not the class; with an example."""

    def __init__(self, example: str = "GaussianDensity()") -> None:
        super().__init__(["fit", "score_samples", "_blank"])
        self.example = example

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a value is one."""
        return not isinstance(val, type) and bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        return f"an estimator of densities (such as {self.example})"


PRIOR = [StrOptions({"weak"}), HasMethods(["update", "point"]), None]
EM = {
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


class DefaultParts:
    """For estimators with a setting that is an estimator, None for a default: parameters of the default can be set.

    `set_params(density__covariance="pooled")` of one whose density is None first makes that density the default one,
    so that a search may go over its settings.
    """

    _default_parts: ClassVar[dict[str, Callable[[], Any]]] = {}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also nested ones; those of a default estimator as well."""
        for name, make in self._default_parts.items():
            if params.get(name, getattr(self, name)) is None and any(key.startswith(f"{name}__") for key in params):
                params[name] = make()
        super().set_params(**params)  # type: ignore[misc]
        return self


class DensityEstimator(DefaultParts, DensityMixin, BaseEstimator):
    """Learns a density: `model_` is the value, `stats_` what was learned, `report_` how it went.

    A subclass gives `_blank` (a first model for some rows) and may refine `_rows` (the border), `_prior_rule` and
    `_finish` (from what was learned to what scores: a blend, a predictive distribution; what learns on is then
    `point_model_`). Missing entries are NaN; `partial_fit` adds statistics, so chunks equal the batch (with gaps it is
    one step of EM).
    """

    # what a model file keeps of a fitted estimator
    _saved: tuple[str, ...] = (
        "model_", "point_model_", "stats_", "prior_", "n_iter_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d); `y` is ignored."""
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
        """Learn from more rows: their statistics are added to those of all rows before."""
        self._validate_params()
        first = not hasattr(self, "model_")
        X, weight = self._checked(X, sample_weight, reset=first, y=y)
        model, known = (self._first(X, weight), None) if first else self._grown(self._learned, self.stats_, X)
        new: Any = Threads().total(lambda block: gather(model, block), Blocks.of(X, weight))
        if first and getattr(new, "filled", False):  # nothing is known yet to fill gaps by: learn it from these rows
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
        """log p(x) of each row (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._rows(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log p(x) of the rows; `y` is ignored."""
        if y is not None and self._of_sequences:
            self._check_y(y, Ragged.of(X))
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Rows drawn from the learned density; `random_state` is an int, a Generator or None."""
        check_is_fitted(self)
        return self._outward(self.model_.sample(n_samples, np.random.default_rng(random_state)))

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Rows with their gaps filled: by conditional expectation, or with `random_state` by a draw.

        They come back as they came in (a data frame, an array, `Columns`), and what was seen is untouched.
        """
        check_is_fitted(self)
        rng = None if random_state is None else np.random.default_rng(random_state)
        return self._outward(impute(self.model_, self._rows(X, reset=False), rng), X)

    def summary(self, level: float = 0.95) -> Any:
        """Parameters with intervals, log-likelihood, AIC and BIC: prints as text, shows as HTML, gives JSON."""
        from likely.estimation.density_summary import Summary

        check_is_fitted(self)
        return Summary.of(self, level)

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    # ------------------------------------------------------------ for subclasses

    def _blank(self, X: Any, members: int | None = None) -> Any:
        """A first model for rows like these; a stack of so many members for a classifier."""
        raise NotImplementedError  # every subclass has its own

    def _blank_for(self, X: Any, members: int | None, weight: Any) -> Any:
        """The same for rows with weights, where a first look counts rows."""
        return self._blank(X, members)

    _tells_of_gaps = True  # its distribution says itself which columns were never observed

    def _look_for_gaps(self, data: Blocks) -> None:
        """A table of nothing but gaps is refused, unless a prior has a distribution to offer."""
        never, d = unseen_columns(data)
        own = self.prior is not None and not isinstance(self.prior, str)
        if d and len(never) == d and not own:
            raise nothing_seen(type(self).__name__)
        if len(never) and not self._tells_of_gaps:
            tell(never_observed(type(self).__name__, never, self.prior))

    _looks_once = True  # a first model needs a look at some rows only, not at all of them
    _hides_labels = False  # True where a start must tell parts apart, because nothing in the rows does
    _of_sequences = False  # True where a row is a sequence, as in a Ragged

    def _first(self, X: Any, weight: Any) -> Any:
        """The model that learning begins with."""
        return self._blank_for(X, None, weight)

    def _started(self, blank: Any, X: Any, labels: Any, weight: Any) -> list[Any]:
        """First models for a stack whose members own rows, one for each start."""
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
        """An estimator that takes over what was chosen for a model: folds of its rows need not choose again."""
        return self

    def _climbs(self) -> bool:
        """Whether learning is dear, and `_near` knows what a few rows fewer would have taught."""
        return False

    def _near(self, model: Any, now: tuple[Any, Any], before: tuple[Any, Any]) -> Any:
        """What statistics and prior `now` would teach, a little other than those `before`, which taught the model."""
        return model.refit(*now)

    _wants_rows = False  # True where `_look_again` needs a second pass over the rows

    def _look_again(self, model: Any, stats: Any, prior: Any, rows: Block | None) -> None:
        """Before `_finish`: settings that are chosen after learning; `rows` is None where the rows are gone."""

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
        """What scores: the model that was learned, or one made of it and its statistics."""
        return model

    def _known(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        """Rows with levels that were never seen as missing, and which rows (n,) had one, by column."""
        return X, {}

    def _prior_rule(self) -> Any:
        """What `core.fit` takes as prior: a Prior, "weak", None, or a function of (model, stats)."""
        return self.prior

    def _grown(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        """The model and statistics so far, made wide enough for what is new in X."""
        return model, stats

    def _told(self, rows: Any) -> Any:
        """Rows of the model as people know them: words where the model has numbers for them."""
        return rows

    def _outward(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model for those outside: the inverse of `_rows`; `like` are rows whose gaps they fill."""
        return rows if like is None else filled_in(like, rows)

    def _rows(self, X: Any, reset: bool) -> Any:
        """Foreign rows as the model takes them; infinities are refused later, by row and column."""
        if not reset and is_plain(X, self):
            return X
        return numeric_rows(self, X, reset, getattr(self, "_for_text", TAKES_TEXT))

    _for_text = TAKES_TEXT  # what to do with words

    # ------------------------------------------------------------------- inside

    def _checked(self, X: Any, sample_weight: Any, reset: bool, y: Any = None) -> tuple[Any, Any]:
        X = self._rows(X, reset=reset)
        if y is not None:
            self._check_y(y, X)
        if sample_weight is not None:
            sample_weight = row_weights(sample_weight, X)
            counts = sample_weight > 0
            if not counts.all():  # a row without weight is a row that is not there: no level, no column's range
                X, sample_weight = X[counts], sample_weight[counts]
        return X, sample_weight

    def _check_y(self, y: Any, rows: Any) -> None:
        """Where rows are sequences, `y` is no place for their lengths; anywhere else, whatever it is is ignored."""
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
        """What scores is `model_`; what learns on is kept beside it only where it is another."""
        self.model_ = model
        self.__dict__.pop("point_model_", None)
        if learned is not model:
            self.point_model_ = learned

    @property
    def _learned(self) -> Any:
        return getattr(self, "point_model_", self.model_)

    def _check_state(self) -> None:
        """After a file was read: what was learned must be a density with statistics of its width, and nothing else."""
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
                sound = sound and isinstance(learned.objective(stats), float)  # statistics of such a model
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "what was learned must fit together", type(model).__name__))

    def _fits(self, model: Any, width: Any, members: int | None = None) -> bool:
        """True if a model read from a file is one that this estimator could have learned."""
        return isinstance(model, self._model_types) and model.dim == width and model.members == members

    _model_types: Any = (Distribution,)

    _titles: list[str] | None = None  # what its columns are called outside, where it is a part of something
    _chosen = False  # True where it was chosen for certain columns: then what its distribution cannot hold is refused

    def _column_names(self) -> list[str]:
        if self._titles is not None:
            return self._titles
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _unsuited(self, X: Any, odd: Any, expected: str, remedy: str = "") -> DataError:
        """The error of the first entry (i, j) that the distribution cannot hold, by the name of its column."""
        i, j = (int(k) for k in np.argwhere(odd)[0])
        numbered = self._titles is None and not hasattr(self, "feature_names_in_")
        column = j if numbered else repr(self._column_names()[j])
        return DataError(sentence(type(self).__name__, expected, f"{X[i, j]:g} at row {i}, column {column}", remedy))

    def _named_columns(self) -> AbstractContextManager[None]:
        """Warnings speak of columns by number, and of the distribution: say the columns' names, and whose it is."""
        distributions = "|".join({"Gaussian", *(distribution.__name__ for distribution in self._model_types)})
        mine = re.compile(rf"({distributions})\b")  # only where a note begins: later it may name what to use instead
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
    """Say in which columns there were levels that training never saw."""
    if strange:
        verb = "holds" if len(strange) == 1 else "hold"
        told = f"{', '.join(map(repr, strange))} {verb} values that training never saw: they count as missing"
        tell(f"{whose}: {told}")


def predictive(model: Any, stats: Any, prior: Any, whose: str) -> Any:
    """The distribution of the next row with the parameters integrated out."""
    if prior is None:
        remedy = 'give one, or prior="weak"'
        raise DomainError(sentence(whose, "integrating the parameters out needs a prior", "None", remedy))
    return prior.update(stats).predictive()


def _renamed(whose: re.Pattern[str], name: str, text: str) -> str:
    """A note that begins with whose it is, in another name."""
    found = whose.match(text)
    return text if found is None else name + text[found.end() :]
