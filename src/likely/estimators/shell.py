"""The scikit-learn face of a density: one shell, and each estimator says only what is its own."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from copy import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from likely.core.blocks import Blocks
from likely.core.engine import Threads
from likely.core.learn import Stop, fit, gather, resolve_prior
from likely.core.notes import said_once, tell, unheard
from likely.core.report import FitReport
from likely.core.value import Value
from likely.errors import DataError, DomainError, sentence
from likely.estimators.fast import is_plain
from likely.estimators.outward import filled_in
from likely.families.law import Law
from likely.families.unseen import never_observed, nothing_seen, unseen_columns
from likely.models.imputing import impute
from likely.models.softening import softened

TAKES_TEXT = "leave the column out, or use NaiveBayes or CategoricalDensity, which take categories"
PRIOR = [StrOptions({"weak"}), HasMethods(["update", "point"]), None]
EM = {
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


class DensityEstimator(DensityMixin, BaseEstimator):
    """Learns a density: `model_` is the value, `stats_` what was learnt, `report_` how it went.

    A subclass gives `_blank` (a first model for some rows) and may refine `_rows` (the border), `_prior_rule` and
    `_finish` (from what was learnt to what scores: a blend, a predictive law; what learns on is then `learnt_`).
    Missing entries are NaN; `partial_fit` adds statistics, so chunks equal the batch (with gaps it is one step
    of EM).
    """

    # what a model file keeps of a fitted estimator
    _saved: tuple[str, ...] = (
        "model_", "learnt_", "stats_", "prior_", "n_iter_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d); `y` is ignored."""
        self._validate_params()
        X, weight = self._checked(X, sample_weight, reset=True)
        with self._named_columns():
            self._look_for_gaps(Blocks.of(X, weight))
            report = fit(
                self._first(X, weight), Blocks.of(X, weight), prior=self._prior_rule(),
                stop=Stop(self.max_iter, self.tol),
            )  # fmt: skip
        if not report.converged:
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        return self._adopt(report)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: their statistics are added to those of all rows before."""
        self._validate_params()
        first = not hasattr(self, "model_")
        X, weight = self._checked(X, sample_weight, reset=first)
        model, known = (self._first(X, weight), None) if first else self._grown(self._learnt, self.stats_, X)
        new = Threads().total(lambda block: gather(model, block), Blocks.of(X, weight))
        stats = new if known is None else known + new
        with self._named_columns():
            prior = resolve_prior(model, stats, self._prior_rule())
            model = model.refit(stats, prior)
        reason = "closed form: nothing was hidden" if stats.complete else "one step of EM for each call of partial_fit"
        return self._adopt(FitReport(model, stats, prior, stats.complete, reason, [model.objective(stats, prior)]))

    def score_samples(self, X: Any) -> Any:
        """log p(x) of each row (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._rows(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log p(x) of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Rows drawn from the learnt density; `random_state` is an int, a Generator or None."""
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
        from likely.estimators.summary import Summary

        check_is_fitted(self)
        return Summary.of(self, level)

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.files import save

        save(self, path)

    # ------------------------------------------------------------ for subclasses

    def _blank(self, X: Any, members: int | None = None) -> Any:
        """A first model for rows like these; a stack of so many members for a classifier."""
        raise NotImplementedError  # every subclass has its own

    def _blank_for(self, X: Any, members: int | None, weight: Any) -> Any:
        """The same for rows with weights, where a first look counts rows."""
        return self._blank(X, members)

    _tells_of_gaps = True  # its law says itself which columns were never observed

    def _look_for_gaps(self, data: Blocks) -> None:
        """A table of nothing but gaps is refused, unless a prior has a law to offer."""
        never, d = unseen_columns(data)
        own = self.prior is not None and not isinstance(self.prior, str)
        if d and len(never) == d and not own:
            raise nothing_seen(type(self).__name__)
        if len(never) and not self._tells_of_gaps:
            tell(never_observed(type(self).__name__, never, self.prior))

    _looks_once = True  # a first model needs a look at some rows only, not at all of them
    _hides_labels = False  # True where a start must tell parts apart, because nothing in the rows does

    def _first(self, X: Any, weight: Any) -> Any:
        """The model that learning begins with."""
        return self._blank_for(X, None, weight)

    def _started(self, blank: Any, X: Any, owner: Any, weight: Any) -> list[Any]:
        """First models for a stack whose members own rows, one for each start."""
        return [self._started_once(blank, X, owner, weight, np.random.default_rng(0))]

    def _started_once(self, blank: Any, X: Any, owner: Any, weight: Any, rng: Any) -> Any:
        """A stack whose members learnt from the rows they own; with weak priors where there are none: it is a start."""
        other = copy(self)
        if other.prior is None:
            other.prior = "weak"
        with unheard():
            stats = blank.collect(X, weight, owner=owner)
            return blank.refit(stats, resolve_prior(blank, softened(stats, 1), other._prior_rule()))

    def _climbs(self) -> bool:
        """Whether learning is dear, and `_near` knows what a few rows fewer would have taught."""
        return False

    def _near(self, model: Any, now: tuple[Any, Any], before: tuple[Any, Any]) -> Any:
        """What statistics and prior `now` would teach, a little other than those `before`, which taught the model."""
        return model.refit(*now)

    def _finish(self, model: Any, stats: Any, prior: Any) -> Any:
        """What scores: the model that was learnt, or one made of it and its statistics."""
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
        refuse_dates(X, type(self).__name__)
        try:
            return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False)
        except ValueError as error:
            if "could not convert" in str(error):
                raise _text_among(X, type(self).__name__, getattr(self, "_for_text", TAKES_TEXT)) from error
            raise

    _for_text = TAKES_TEXT  # what to do with words

    # ------------------------------------------------------------------- inside

    def _checked(self, X: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any]:
        X = self._rows(X, reset=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            counts = sample_weight > 0
            if not counts.all():  # a row without weight is a row that is not there: no level, no column's range
                X, sample_weight = X[counts], sample_weight[counts]
        return X, sample_weight

    def _adopt(self, report: FitReport) -> Self:
        self.report_ = report
        self.stats_, self.prior_ = report.stats, report.prior
        self.n_iter_ = max(report.iterations, 1)
        self._keep(report.model, self._finish(report.model, report.stats, report.prior))
        return self

    def _keep(self, learnt: Any, model: Any) -> None:
        """What scores is `model_`; what learns on is kept beside it only where it is another."""
        self.model_ = model
        self.__dict__.pop("learnt_", None)
        if learnt is not model:
            self.learnt_ = learnt

    @property
    def _learnt(self) -> Any:
        return getattr(self, "learnt_", self.model_)

    def _check_state(self) -> None:
        """After a file was read: what was learnt must be a density with statistics of its width, and nothing else."""
        model: Any = getattr(self, "model_", None)
        stats = getattr(self, "stats_", None)
        if model is None and stats is None:
            return
        width = getattr(self, "n_features_in_", None)
        names = getattr(self, "feature_names_in_", None)
        sound = isinstance(model, Law) and isinstance(stats, Value) and hasattr(stats, "total_weight")
        sound = sound and type(width) is int and (names is None or len(names) == width)
        learnt = getattr(self, "learnt_", model)
        sound = sound and type(getattr(self, "n_iter_", 1)) is int and self._fits(learnt, width)
        sound = sound and (model is learnt or (model.dim == width and model.members == learnt.members))
        try:
            with np.errstate(all="ignore"):
                sound = sound and isinstance(learnt.objective(stats), float)  # statistics of such a model
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "what was learnt must fit together", type(model).__name__))

    def _fits(self, model: Any, width: Any, members: int | None = None) -> bool:
        """True if a model read from a file is one that this estimator could have learnt."""
        return isinstance(model, self._model_types) and model.dim == width and model.members == members

    _model_types: Any = (Law,)

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _named_columns(self) -> AbstractContextManager[None]:
        """Warnings speak of columns by number, and of the law: say the columns' names, and whose it is."""
        laws = "|".join({"Gaussian", *(law.__name__ for law in self._model_types)})
        mine = re.compile(rf"({laws})\b")  # only where a note begins: later it may name what to use instead
        return said_once(reworded=lambda text: _renamed(mine, type(self).__name__, self._in_names(text)))

    def _in_names(self, text: str) -> str:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return text
        return re.sub(r"column ([\d, ]+) is", lambda m: f"column {_named(m[1], names)} is", text)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def predictive(model: Any, stats: Any, prior: Any, whose: str) -> Any:
    """The law of the next row with the parameters integrated out."""
    if prior is None:
        remedy = 'give one, or prior="weak"'
        raise DomainError(sentence(whose, "integrating the parameters out needs a prior", "None", remedy))
    return prior.update(stats).predictive()


def refuse_dates(X: Any, whose: str, columns: Any = None) -> None:
    """Dates and durations are no numbers, whatever a library would make of them."""
    if hasattr(X, "columns"):
        there = list(X.columns)  # asked for once: a frame makes the list anew each time
        asked = there if columns is None else [c for c in columns if c in set(there)]
        kinds = {str(c): str(X[c].dtype) for c in asked}
    else:
        kinds = {"X": str(getattr(X, "dtype", ""))}
    for name, kind in kinds.items():
        if kind.lower().startswith(("date", "time", "duration")):
            remedy = "leave it out, or turn it into a number that means something"
            raise DataError(sentence(whose, f"column {name!r} must be numbers", kind, remedy))


def _text_among(X: Any, whose: str, remedy: str = TAKES_TEXT) -> DataError:
    """Which cell is no number."""
    frame = hasattr(X, "columns")
    names = [str(c) for c in X.columns] if frame else None
    table = np.asarray(X, dtype=object)
    for (i, j), cell in np.ndenumerate(table):
        try:
            float(cell)
        except (TypeError, ValueError):
            where = repr(names[j]) if names else j
            return DataError(sentence(whose, f"column {where} must be numbers", f"{cell!r} at row {i}", remedy))
    return DataError(sentence(whose, "rows must be numbers", "text"))


def _renamed(whose: re.Pattern[str], name: str, text: str) -> str:
    """A note that begins with whose it is, in another name."""
    found = whose.match(text)
    return text if found is None else name + text[found.end() :]


def _named(numbers: str, names: Any) -> str:
    return ", ".join(repr(str(names[int(i)])) for i in numbers.split(","))
