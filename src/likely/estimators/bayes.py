"""A classifier is a mixture whose labels were seen: one density a class, and Bayes' theorem."""

from __future__ import annotations

import re
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from likely.core.arrays import Array, Index, Mask, n_rows
from likely.core.blocks import Blocks
from likely.core.engine import Threads, map_rows
from likely.core.learn import FitReport, Stop, fit, gather, resolve_prior
from likely.core.notes import said_once, tell
from likely.errors import DataError, sentence
from likely.estimators import alarms
from likely.estimators import novelty as novelties
from likely.estimators.deciding import RULES, Deciding, class_probabilities
from likely.estimators.gaussian import GaussianDensity
from likely.estimators.labels import checked_labels, encoded, owners_among
from likely.models.mixture import Mixture
from likely.models.mixture_prior import MixturePrior
from likely.priors.dirichlet import Dirichlet


class BayesClassifier(Deciding, BaseEstimator):
    """Decide between classes, each with its own density: p(c | x) ∝ p(c) p(x | c)   (Ney 2, Herbst 4.2).

    - **density**: the estimator of p(x | c), any density; None: `GaussianDensity()`. `model_` is a `Mixture` with one
      part a class. Missing entries of X (NaN, None) are integrated out.
    - **class_prior**: None: relative frequencies; "uniform", numbers in the order of `classes_`, or a dict by
      label: fixed; a number a or a `Dirichlet`: the frequencies' mean after a fictitious rows of each class.
    - **cost**: (A, C), rows are actions, columns true classes in the order of `classes_`; a `Cost`, a data frame or
      {action: {class: cost}} may name them. None: every mistake costs 1.
    - **reject_cost, reject_below, novelty**: when `decide` refuses (see there). `predict` never does.

    >>> import likely as lk, numpy as np
    >>> X, y = [[0.0], [1.0], [9.0], [11.0], [np.nan]], ["low", "low", "high", "high", "high"]
    >>> clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y)
    >>> clf.predict([[2.0], [8.0]]), clf.decide([[5.2]], reject_below=0.9)
    (array(['low', 'high'], dtype=object), array([REJECT], dtype=object))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "density": [HasMethods(["fit", "score_samples", "_blank"]), None],
        "class_prior": [
            StrOptions({"uniform"}), "array-like", dict, HasMethods(["update", "point"]),
            Interval(Real, 0, None, closed="neither"), None,
        ],
        **RULES, "novelty": [Interval(Real, 0, 1, closed="neither"), None],
    }  # fmt: skip

    _saved: tuple[str, ...] = (
        *("density_", "classes_", "model_", "learnt_", "stats_", "prior_", "calm_"),
        *("n_iter_", "n_features_in_", "feature_names_in_"),
    )

    def __init__(
        self, density: Any = None, class_prior: Any = None, cost: Any = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None,
    ) -> None:  # fmt: skip
        self.density = density
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty

    # ----------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) with labels y (n,): strings, numbers or booleans."""
        self._validate_params()
        self.density_ = self._fresh_density(X)
        self.density_._validate_params()
        X, y, weight = self._checked(X, y, sample_weight, reset=True)
        self.classes_, owner = encoded(y)
        blank, data = self._blank(X), Blocks.of(X, weight, owner=owner)
        stop = Stop(self.density_.max_iter, self.density_.tol)
        with self._in_words():
            report = fit(blank, data, prior=self._prior_rule, stop=stop)
            self._adopt(report)
        if not report.converged:
            tell(f"{type(self).__name__}: not converged: {report.reason}", stacklevel=2)
        self._warn_of_small_classes(n_rows(X))
        self._check_cost()
        self.calm_ = alarms.left_out(self, X, owner, weight) if self._alarms else np.empty((3, 0))
        return self

    _alarms = True  # whoever asks for posteriors only, as folds do, need not know what is novel

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: statistics are added. The first call may name all `classes` that will ever come."""
        self._validate_params()
        first = not hasattr(self, "model_")
        if first:
            self.density_ = self._fresh_density(X)
            self.density_._validate_params()
        X, y, weight = self._checked(X, y, sample_weight, reset=first)
        if first:
            self.classes_ = encoded(
                checked_labels(
                    y if classes is None else classes, len(classes if classes is not None else y), type(self).__name__
                )
            )[0]
        owner = owners_among(y, self.classes_, type(self).__name__)
        before = None if first else surprise_of(self, X)
        model, known = (self._blank(X), None) if first else self._grown(X)
        new = Threads().total(lambda block: gather(model, block), Blocks.of(X, weight, owner=owner).whole())
        stats = new if known is None else known + new
        with self._in_words():
            prior = resolve_prior(model, stats, self._prior_rule)
            model = model.refit(stats, prior)
            reason = (
                "closed form: nothing was hidden" if stats.complete else "one step of EM for each call of partial_fit"
            )
            self._adopt(FitReport(model, stats, prior, stats.complete, reason, [model.objective(stats, prior)]))
        self._check_cost()
        if before is None:
            self.calm_ = alarms.left_out(self, X, owner, weight)
        else:  # rows that the model had not seen when it was asked about them
            self.calm_ = alarms.streamed(self.calm_, before, weight, self.stats_.total_weight)
        return self

    def _fresh_density(self, X: Any) -> Any:
        return GaussianDensity() if self.density is None else clone(self.density)

    def _blank(self, X: Any) -> Mixture:
        C = len(self.classes_)
        return Mixture.trusted(weights=np.full(C, 1.0 / C), parts=self.density_._blank(X, C))

    def _grown(self, X: Any) -> tuple[Mixture, Any]:
        """The model and statistics so far, made wide enough for levels that are new in X."""
        model, stats = self._learnt, self.stats_
        parts, of_parts = self.density_._grown(model.parts, stats.parts, X)
        return model.replace(parts=parts), stats.replace(parts=of_parts)

    def _prior_rule(self, model: Mixture, stats: Any) -> MixturePrior:
        parts = resolve_prior(model.parts, stats.parts, self.density_._prior_rule())
        return MixturePrior.trusted(weights=self._class_prior_law(), parts=parts)

    def _class_prior_law(self) -> Dirichlet | None:
        """The prior of the class probabilities, where they are learnt with one."""
        if isinstance(self.class_prior, Real):
            return Dirichlet.symmetric(len(self.classes_), float(self.class_prior))
        return self.class_prior if isinstance(self.class_prior, Dirichlet) else None

    def _adopt(self, report: FitReport) -> None:
        learnt, stats, prior = report.model, report.stats, report.prior
        parts = self.density_._finish(learnt.parts, stats.parts, prior.parts)
        weights = self._final_weights(learnt, stats)
        same = parts is learnt.parts and weights is learnt.weights
        self.report_, self.stats_, self.prior_ = report, stats, prior
        self.n_iter_ = max(report.iterations, 1)
        self.__dict__.pop("learnt_", None)
        self.model_ = learnt if same else Mixture.trusted(weights=np.array(weights), parts=parts)
        if not same:
            self.learnt_ = learnt

    def _final_weights(self, learnt: Mixture, stats: Any) -> Array:
        law = self._class_prior_law()
        if law is not None:  # the mean of the posterior: what the next row's class is expected by
            alpha = law.alpha + stats.counts
            return alpha / alpha.sum()
        if self.class_prior is None:
            return learnt.weights
        return class_probabilities(self.class_prior, self.classes_, type(self).__name__)

    @property
    def _learnt(self) -> Any:
        return getattr(self, "learnt_", self.model_)

    # -------------------------------------------------------------------- border

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, Any]:
        if y is None:
            checked_labels(y, 0, type(self).__name__)
        X = self.density_._rows(X, reset=reset)
        if reset:
            self.n_features_in_ = self.density_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self.density_, "feature_names_in_"):
                self.feature_names_in_ = self.density_.feature_names_in_
        y = checked_labels(y, n_rows(X), type(self).__name__)
        if sample_weight is None:
            return X, y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counts = weight > 0
        if not counts.any():
            raise DataError(
                sentence(type(self).__name__, "some row must have a weight above 0", "sample_weight all zero")
            )
        return (X, y, weight) if counts.all() else (X[counts], y[counts], weight[counts])

    def _rows(self, X: Any) -> Any:
        """Foreign rows as the model takes them; what was never seen counts as unobserved."""
        if "model_" not in self.__dict__:  # asking scikit-learn costs as much as a decision
            check_is_fitted(self)
        X = self.density_._rows(X, reset=False)
        return self.density_._known(X, self._learnt.parts)[0]

    def _column_names(self) -> list[str]:
        return self.density_._column_names()

    # ----------------------------------------------------------------------- use

    def log_posterior(self, X: Any) -> Array:
        """log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        rows = self._rows(X)
        return self.model_.log_posterior(rows)

    def predict_proba(self, X: Any) -> Array:
        """p(c | x) of each row (n, C), columns in the order of `classes_`."""
        rows = self._rows(X)
        return self.model_.posterior(rows)

    def predict(self, X: Any) -> Any:
        """The class of least expected cost among the classes (n,): it never refuses; `decide` may."""
        rows, table = self._rows(X), self._cost_of(None)

        def best(block: Any) -> Index:
            if table is None:
                return self.model_.most_probable(block)
            return (self.model_._shares(self.model_._joint(block)) @ table.T).argmin(axis=1)

        small = np.min_scalar_type(len(self.classes_))  # a place takes a byte: no second column of eight bytes a row
        return self.classes_[map_rows(best, rows, None, small)]

    def decide(self, X: Any, *, class_prior: Any = None, **how: Any) -> Any:
        """The cheapest action for each row, or a refusal: see `Deciding.decide`; a `class_prior` changes p(x), too."""
        if class_prior is not None:
            check_is_fitted(self)
            return self.with_class_prior(class_prior).decide(X, **how)
        return super().decide(X, **how)

    def score_samples(self, X: Any) -> Array:
        """log p(x) of each row (n,), whatever its class."""
        rows = self._rows(X)
        return self.model_.log_prob(rows)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Any]:
        """Rows and their labels drawn from what was learnt."""
        check_is_fitted(self)
        X, owner = self.model_.sample_labelled(n_samples, np.random.default_rng(random_state))
        return X, self.classes_[owner]

    def with_class_prior(self, class_prior: Any) -> Self:
        """A copy that expects classes with other probabilities; everything else stays as it was learnt."""
        check_is_fitted(self)
        other = copy(self)
        other.model_ = self.model_.with_weights(self._prior_for(class_prior))
        other.learnt_ = self._learnt
        other.class_prior = class_prior
        return other

    def surprise(self, X: Any) -> Array:
        """How unlike training each row is (n,): the median of log p over the model's own draws with the same gaps,
        minus log p(x), in units of their interquartile range; infinite where a level was never seen."""
        check_is_fitted(self)
        return surprise_of(self, self.density_._rows(X, reset=False))

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """log p(c | x) of each row (n, C) under a classifier learnt from all the others: fast, for statistics subtract.

        A row and its copies are left out together. Settings are this classifier's; what it learnt is not used.
        """
        from likely.estimators.leave_one_out import leave_one_out

        return leave_one_out(self, X, y, sample_weight)[0]

    def explain(self, X: Any) -> Any:
        """Why each row is decided as it is: log-odds by column, and what each column saves (`Explanation`)."""
        from likely.estimators.explain import Explanation

        check_is_fitted(self)
        return Explanation.of(self, X)

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.files import save

        save(self, path)

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self.model_.weights

    @property
    def class_count_(self) -> Array:
        """Weight of each class in training (C,)."""
        return self.stats_.counts

    # ------------------------------------------------------------------- novelty

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        limit = novelties.alarm(self.calm_, rate, type(self).__name__)
        rows = self.density_._rows(X, reset=False)
        strange = self.density_._known(rows, self._learnt.parts)[1]
        found = surprise_of(self, rows)
        return found > limit, _Why(found, limit, rate, strange, rows)

    # -------------------------------------------------------------------- inside

    def _check_cost(self) -> None:
        self._cost_of(None)

    def _warn_of_small_classes(self, rows: int) -> None:
        single = [repr(c) for c, n in zip(self.classes_.tolist(), self.class_count_, strict=True) if n <= 1]
        if single and rows > 2 * self.stats_.total_weight:
            text = f"weights sum to {self.stats_.total_weight:.3g} for {rows} rows, so the prior outweighs them"
            tell(f"{type(self).__name__}: {text}: a weight counts rows, multiply them", stacklevel=3)
        elif single:
            text = f"class {', '.join(single)} has one row: its spread is what the prior says"
            text = (
                text.replace("class ", "classes ", 1).replace("has one row: its", "have one row each: their", 1)
                if len(single) > 1
                else text
            )
            tell(f"{type(self).__name__}: {text}", stacklevel=3)
        for c, columns in self._constant_columns():
            text = f"class {c!r} does not vary in {', '.join(map(repr, columns))}"
            tell(f"{type(self).__name__}: {text}: its spread there is what the prior says", stacklevel=3)

    def _constant_columns(self) -> list[tuple[Any, list[str]]]:
        """Classes of several rows with columns that vary elsewhere, but not within them."""
        variance = _variances(self.stats_.parts)
        if variance is None:
            return []
        still = (variance == 0) & (variance > 0).any(axis=0) & (self.class_count_ > 1)[:, None]
        names = self._column_names()
        return [
            (self.classes_.tolist()[k], [names[j] for j in np.flatnonzero(still[k])][:5])
            for k in np.flatnonzero(still.any(axis=1))
        ]

    def _in_words(self) -> Any:
        """Warnings speak of members and columns by number: say the classes' and columns' names, and whose it is."""
        return said_once(2, self._reworded)

    def _reworded(self, text: str) -> str:
        names = [repr(c) for c in self.classes_.tolist()]
        text = re.sub(
            r"\(member ([\d, ]+)\)", lambda m: f"(class {', '.join(names[int(i)] for i in m[1].split(','))})", text
        )
        return self.density_._in_names(text).replace("Gaussian", type(self).__name__, 1)

    def _check_state(self) -> None:
        """After a file was read: what was learnt must fit together."""
        if not hasattr(self, "model_"):
            return
        C, width = len(getattr(self, "classes_", ())), getattr(self, "n_features_in_", None)
        learnt, calm = self._learnt, getattr(self, "calm_", np.empty((3, 0)))
        sound = all(isinstance(m, Mixture) and m.size == C for m in (self.model_, learnt)) and type(width) is int
        sound = sound and self.density_.__dict__.get("n_features_in_") == width and self.model_.dim == learnt.dim
        sound = sound and self.density_._fits(learnt.parts, width, C) and self.stats_.counts.shape == (C,)
        sound = sound and isinstance(calm, np.ndarray) and calm.ndim == 2 and len(calm) == 3
        try:
            with np.errstate(all="ignore"):
                sound = sound and isinstance(learnt.objective(self.stats_), float)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "what was learnt must fit together"))
        self._check_cost()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        density = getattr(self, "density", None)
        inner = get_tags(GaussianDensity() if density is None else density).input_tags
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
        tags.classifier_tags.poor_score = inner.positive_only or inner.categorical  # on the checks' real numbers
        return tags


def surprise_of(clf: BayesClassifier, rows: Any) -> Array:
    """Surprise of rows that have crossed the border; infinite where a level was never seen."""
    known, strange = clf.density_._known(rows, clf._learnt.parts)
    out = novelties.surprise(clf.model_, known)
    for mask in strange.values():
        out[mask] = np.inf
    return out


class _Why:
    """Why a row is novel, in words, when somebody asks."""

    def __init__(self, surprise: Array, limit: float, rate: float, strange: dict[str, Any], rows: Any) -> None:
        self.surprise, self.limit, self.rate, self.strange = surprise, limit, rate, strange

    def __call__(self, i: int) -> str:
        columns = [repr(name) for name, mask in self.strange.items() if mask[i]]
        if columns:
            return f"a value of {', '.join(columns)} was not seen in training"
        share = f"{100 * self.rate:g} % of training rows lie beyond {self.limit:.3g}"
        return f"p(x) is too small: its surprise is {self.surprise[i]:.3g}, {share}"


def _variances(stats: Any) -> Any:
    """Variance of each column within each class (C, d), where all columns are numbers."""
    if hasattr(stats, "parts") and hasattr(stats, "names"):
        each = [_variances(s) for _, s in stats.parts]
        return None if any(v is None for v in each) else np.concatenate(each, axis=1)
    return getattr(stats, "variance", None)
