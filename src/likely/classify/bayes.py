"""Bayes classifier: one density per class (Gaussian: LDA, QDA); semi-supervised where labels are missing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.classify.calibration.calibration_maps import IsotonicMap, LogisticMap, MethodChoice, Temperature
from likely.classify.calibration.probability_floor import Floor
from likely.classify.small_classes import notes_on_classes
from likely.core.arrays import Array, Index, Mask, Rows, Seed, Targets, in_memory, n_rows
from likely.core.blocks import Block, Blocks
from likely.core.columns import Columns
from likely.core.description import Description
from likely.core.em_loop import StoppingRule, best_of, fit, gather, reached, resolve_prior
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import AnyPrior
from likely.core.ragged import Ragged
from likely.core.sketch import Sketch
from likely.core.warnings import Note, warn, warnings_discarded, warnings_once
from likely.decision.combine import change_log_prior
from likely.decision.cost import CostLike
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.distribution import Distribution
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_state
from likely.estimation.class_labels import (
    checked_labels,
    encoded_with_gaps,
    labeled_things,
    labels_among,
    missing_labels,
    warn_of_labels,
)
from likely.estimation.decision_mixin import (
    NO_DENSITY,
    NOVELTY,
    RULES,
    UNIFORM,
    ClassPriorLike,
    Deciding,
    class_probabilities,
)
from likely.estimation.density_estimator import (
    DefaultParts,
    DensityEstimator,
    a_density,
    named_note,
    warn_of_unseen_categories,
)
from likely.estimation.fit_blocks import seed_of
from likely.estimation.foreign_tables import as_table, take_rows
from likely.estimation.input_validation import row_weights
from likely.estimation.novelty import novelty_threshold
from likely.estimation.novelty.novelty_score import alarm, exceeds
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.scikit_learn import clone, get_tags
from likely.estimation.sequence_validation import cut
from likely.mixture.fixed_weights import FixedWeights
from likely.mixture.mixture import Mixture
from likely.mixture.priors import MixturePrior

REJECT_RULES = ("reject_cost", "reject_below")
OF_SOME = (  # fitted attributes that not every classifier has
    *("point_model_", "prior_", "held_out_novelty_", "n_iter_", "calibration_", "floor_", "calibration_prior_"),
)


def refuse_distributions(density: Any, whose: str) -> None:
    """Raise an error for a class or a distribution where an estimator instance is needed."""
    kind = density if isinstance(density, type) else type(density)
    if not isinstance(density, type) and not isinstance(density, Distribution):
        return
    name = f"{kind.__name__}Density" if issubclass(kind, Distribution) else kind.__name__
    got = f"the {'distribution' if issubclass(kind, Distribution) else 'class'} {kind.__name__}"
    raise DomainError(sentence(whose, "density must be an estimator of densities", got, f"use {name}()"))


Map = Temperature | LogisticMap | IsotonicMap  # calibration methods of posteriors, fitted to held-out ones


class BayesClassifier(DefaultParts, Deciding, BaseEstimator):
    """Bayes classifier with one density per class: p(c | x) ∝ p(c) p(x | c)   (Ney 2, Herbst 4.2).

    `model_` is a `Mixture` with one component per class. Missing entries of X (NaN, None) are integrated out.
    `reject_cost`, `reject_below` and `novelty` say when `decide` rejects; `predict` never does.

    Parameters
    ----------
    density : density estimator, optional
        The estimator of p(x | c), any density; None: `GaussianDensity()`.
    class_prior : "uniform", array-like (C,), dict, float or Dirichlet, optional
        None: relative frequencies; "uniform", numbers in the order of `classes_`, or a dict by label: fixed; a number α
        or a `Dirichlet`: the posterior mean of the frequencies with α pseudo-counts per class.
    cost : Cost, matrix (A, C), data frame or dict, optional
        Rows are actions, columns true classes in the order of `classes_`; a `Cost`, a data frame or
        {action: {class: cost}} may name them. None: 0/1 loss.
    calibration : {"temperature", "logistic", "isotonic", "auto"}, optional
        None: posteriors from Bayes' theorem; "temperature": temperature scaling with a lapse rate, fitted to held-out
        rows of five folds, as by `CalibratedClassifier(..., method="temperature")`; the most probable class is
        unchanged. Sequences need it: their frames are correlated, which makes posteriors far overconfident. "logistic",
        "isotonic" and "auto" as in `CalibratedClassifier`: these may change the most probable class, and with hundreds
        of sequences per class they often correct it.

    See Also
    --------
    NaiveBayes : One distribution per column.
    CalibratedClassifier : Calibrated posteriors of any classifier.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X, y = [[0.0], [1.0], [9.0], [11.0], [np.nan]], ["low", "low", "high", "high", "high"]
    >>> clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y)
    >>> clf.predict([[2.0], [8.0]]), clf.decide([[5.2]], reject_below=0.9)
    (array(['low', 'high'], dtype=object), array([REJECT], dtype=object))
    """

    _default_parts: ClassVar[dict[str, Any]] = {"density": GaussianDensity}
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "density": [a_density(), None],
        "class_prior": [
            UNIFORM, "array-like", dict, HasMethods(["update", "point"]),
            Interval(Real, 0, None, closed="neither"), None,
        ],
        **RULES, **NOVELTY, "calibration": [StrOptions(set(get_args(MethodChoice))), None],
    }  # fmt: skip

    saved_attributes: tuple[str, ...] = (
        *("density_", "classes_", "model_", "point_model_", "stats_", "prior_", "held_out_novelty_"),
        *("n_iter_", "n_features_in_", "feature_names_in_", "calibration_", "floor_", "calibration_prior_"),
    )
    report_: FitReport
    calibration_: Map | None = None  # map of log-posteriors under `calibration_prior_` to calibrated ones

    def __init__(
        self, density: DensityEstimator | None = None, class_prior: ClassPriorLike | AnyPrior = None,
        cost: CostLike | None = None, reject_cost: float | None = None, reject_below: float | None = None,
        novelty: float | None = None, calibration: MethodChoice | None = None,
    ) -> None:  # fmt: skip
        self.density = density
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty
        self.calibration = calibration

    # ----------------------------------------------------------------- learning

    @property
    def _fit_calibrates(self) -> bool:
        """Whether each fit learns its own calibration map."""
        return self.calibration is not None

    def fit(
        self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit to rows X (n, d) with labels y (n,): strings, numbers or booleans.

        Rows with a missing label (None, NaN, `pd.NA`) are unlabeled data, used by EM (semi-supervised learning).
        For a density of sequences, a row is a sequence: `lengths` split one long array X, here and in all other
        methods.
        """
        self._validate_params()
        X = self._cut(in_memory(X), lengths)
        self.density_ = self._fresh_density(X)
        self.density_._validate_params()
        given = X, y, sample_weight
        X, targets, weight = self._checked(X, y, sample_weight, reset=True)
        self.classes_, labels = encoded_with_gaps(targets)
        warn_of_labels(self.classes_, labels, type(self).__name__, labeled_things(X))
        with self._in_words():
            report = self.run_em(X, labels, weight)
            self._adopt(report, self._seen_rows(X, labels, weight))
        if not (report.converged or report.stopped_early):
            warn(f"{type(self).__name__}: not converged: {report.reason}")
        for note in notes_on_classes(self, n_rows(X)):
            warn(f"{type(self).__name__}: {note}")
        self._check_cost()
        self.__dict__.pop("held_out_novelty_", None)
        self._novelty_rows = novelty_threshold.rows_needed(X, labels, weight, report.stats.complete)
        self._warn_of_novelty()
        self._learn_calibration(*given)
        return self

    def _learn_calibration(self, X: Any, y: Any, sample_weight: Any) -> None:
        """The calibration map from posteriors of held-out rows; unlabeled rows are ignored."""
        for name in ("calibration_", "floor_", "calibration_prior_"):
            self.__dict__.pop(name, None)
        if self.calibration is None or len(self.classes_) < 2:
            return
        from likely.classify.calibration.calibrated import CalibratedClassifier

        labels = checked_labels(y, len(y), type(self).__name__, allow_missing=True)
        X, there = as_table(X), np.flatnonzero(~missing_labels(labels))
        if len(there) < len(labels):
            X, y = take_rows(X, there), labels[there]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[there]
        wrapped = CalibratedClassifier(clone(self).set_params(calibration=None), method=self.calibration)
        self.calibration_, self.floor_ = wrapped.learned_map(X, y, sample_weight)
        self.calibration_prior_ = np.array(self.class_prior_)

    def _validate_params(self) -> None:
        refuse_distributions(getattr(self, "density", None), type(self).__name__)
        super()._validate_params()

    def partial_fit(
        self, X: Rows, y: Targets, classes: Sequence[object] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Update with more rows: statistics are added. The first call may name all `classes`."""
        self._validate_params()
        if self.calibration is not None:
            expected, remedy = (
                "calibration needs all rows at once",
                'use fit, or lk.CalibratedClassifier(…, cv="prefit")',
            )
            raise DomainError(sentence(type(self).__name__, expected, "partial_fit", remedy))
        first, rows = not hasattr(self, "model_"), self._cut(in_memory(X), lengths)
        if not first and not self.stats_.total_weight > 0:
            expected = "partial_fit needs the statistics of the rows before"
            raise DomainError(sentence(type(self).__name__, expected, "a converted model, without any", "use fit"))
        if first:
            self.density_ = self._fresh_density(rows)
            self.density_._validate_params()
        rows, targets, weight = self._checked(rows, y, sample_weight, reset=first)
        if first:
            named = targets if classes is None else checked_labels(classes, len(classes), type(self).__name__)
            self.classes_ = encoded_with_gaps(named)[0]
        labels = labels_among(targets, self.classes_, type(self).__name__)
        warn_of_labels(self.classes_, labels, type(self).__name__, labeled_things(rows))
        judged = not first and novelty_threshold.is_known(rows)
        before = novelty_threshold.novelty_scores(self, rows)[0] if judged else None
        hidden = self.density_.traits.latent or bool((labels < 0).any())
        if first:  # latent labels need more than one pass
            model = self.run_em(rows, labels, weight).model if hidden else self.blank_mixture(rows, weight)
            known = None
        else:
            model, known = self._grown(rows)
        new: Any = Threads().total(
            lambda block: gather(model, block, self.is_hard), self.blocks_of(rows, labels, weight).whole()
        )
        if first and not hidden and getattr(new, "filled", False):  # no model yet to impute missing values
            with warnings_discarded():
                learned = self.run_em(rows, labels, weight)
            model, new = learned.model, learned.stats
        stats = new if known is None else known + new
        with self._in_words():
            self._adopt(self.refit_once(model, stats))
        self._check_cost()
        if before is None:
            needed = novelty_threshold.rows_needed(rows, labels, weight, stats.complete)
            self.held_out_novelty_ = novelty_threshold.left_out(self, needed)
        else:  # prequential: scored before learning
            self.held_out_novelty_ = novelty_threshold.streamed(
                self.held_out_novelty_, before, weight, self.stats_.total_weight
            )
        return self

    def _fresh_density(self, X: Any) -> Any:
        return GaussianDensity() if self.density is None else clone(self.density)

    def blank_mixture(self, X: Any, weight: Any = None) -> Mixture:
        C = len(self.classes_)
        return Mixture.trusted(weights=np.full(C, 1.0 / C), components=self.density_.blank_model(X, C, weight))

    def _grown(self, X: Any) -> tuple[Mixture, Any]:
        """The model and statistics so far, extended for new levels in X."""
        model, stats = self.learned_model_, self.stats_
        parts, of_parts = self.density_.extend_model(model.components, stats.components, X)
        return model.replace(components=parts), stats.replace(components=of_parts)

    def _prior_rule(self, model: Mixture, stats: Any) -> MixturePrior:
        parts = resolve_prior(model.components, stats.components, self.density_.prior_rule())
        weights: Any = self._class_prior_distribution()
        if (
            weights is None and self.class_prior is not None and not stats.seen
        ):  # used for the posteriors of missing labels
            weights = FixedWeights(self._fixed_shares())
        return MixturePrior.trusted(weights=weights, components=parts)

    def _fixed_shares(self) -> Array:
        return class_probabilities(self.class_prior, self.classes_, type(self).__name__)

    def _class_prior_distribution(self) -> Dirichlet | None:
        """The prior distribution of the class probabilities, if they are estimated with one."""
        if isinstance(self.class_prior, Real):
            return Dirichlet.symmetric(len(self.classes_), float(self.class_prior))
        return self.class_prior if isinstance(self.class_prior, Dirichlet) else None

    def _adopt(self, report: FitReport, rows: Block | None = None) -> None:
        self.report_, self.stats_, self.prior_ = report, report.stats, report.prior
        self.n_iter_ = max(report.iterations, 1)
        self.model_ = self._scoring(report, self.density_, rows)
        self.__dict__.pop("point_model_", None)
        if self.model_ is not report.model:
            self.point_model_ = report.model

    def _scoring(self, report: FitReport, density: Any, rows: Block | None = None, choose: bool = True) -> Mixture:
        """The model that scores: class probabilities as requested, components by `density.scoring_model`."""
        learned, stats, prior = report.model, report.stats.components, report.prior.components
        parts = density.scoring_model(learned.components, stats, prior, rows, choose)
        weights = self._final_weights(learned, report.stats)
        same = parts is learned.components and weights is learned.weights
        return learned if same else Mixture.trusted(weights=np.array(weights), components=parts)

    def refit_once(self, model: Any, stats: Any) -> FitReport:
        """A model after one `refit`; final for complete data."""
        prior = resolve_prior(model, stats, self._prior_rule)
        model = model.refit(stats, prior)
        reason = "closed form: no latent variables" if stats.complete else "one step of EM for each call of partial_fit"
        return FitReport(model, stats, prior, stats.complete, reason, [reached(model, stats, prior)])

    def run_em(self, X: Any, labels: Index, weight: Any, max_iter: int | None = None) -> FitReport:
        """Fit to validated rows."""
        data = self.blocks_of(X, labels, weight)
        stop = StoppingRule(max_iter or self.density_.max_iter, self.density_.tol)

        def learn(i: int, start: Mixture) -> FitReport:
            return fit(start, data, prior=self._prior_rule, stop=stop, hard=self.is_hard)

        return best_of(self._starts(X, labels, weight), learn)

    @property
    def is_hard(self) -> bool:
        return bool(getattr(self.density_, "hard", False)) and self.density_.traits.latent

    def blocks_of(self, X: Any, labels: Index, weight: Any) -> Blocks:
        """Rows with their labels; if some are missing, with masks of possible labels."""
        if not (labels < 0).any():
            return Blocks.of(X, weight, labels=labels)
        C = len(self.classes_)
        table = np.where(np.eye(C, dtype=bool), 0.0, -np.inf)
        return Blocks.of(X, weight, log_mask=np.concatenate([table, np.zeros((1, C))])[labels])

    def _starts(self, X: Any, labels: Index, weight: Any) -> list[Mixture]:
        """Initial models: a blank one if one pass is enough, else fitted to the labeled rows."""
        hidden = self.density_.traits.latent or bool((labels < 0).any())
        sketched = hidden and self.density_.traits.sketchable
        sketch = Sketch.of(X, weight, whose=type(self.density_).__name__) if sketched else None
        blank = self.blank_mixture(X, weight) if sketch is None else self.blank_mixture(sketch.rows, sketch.weight)
        if not (self.density_.traits.latent or (labels < 0).any()):
            return [blank]
        mine = np.flatnonzero(labels >= 0)
        w = None if weight is None else weight[mine]
        counts = np.bincount(labels[mine], w, len(self.classes_))
        counts = np.maximum(counts, 1e-3 * counts.sum())  # a named class without rows may still occur
        rng = np.random.default_rng(seed_of(getattr(self.density_, "random_state", 0)))
        runs = range(getattr(self.density_, "n_init", 1))
        parts = [self.density_.initialize(blank.components, X[mine], labels[mine], w, rng, run) for run in runs]
        fixed = self.class_prior is not None and self._class_prior_distribution() is None
        shares = self._fixed_shares() if fixed else counts / counts.sum()
        return [Mixture.trusted(weights=np.array(shares), components=p) for p in parts]

    def _seen_rows(self, X: Any, labels: Index, weight: Any) -> Block | None:
        """Rows for a second pass, if all labels are known."""
        return None if (labels < 0).any() else Block(X, weight, labels=labels)

    def scoring_model_of(self, report: FitReport, rows: Block | None = None) -> Mixture:
        """The scoring model of another fit; hyperparameters are kept, or chosen again from `rows`."""
        if rows is None or not self.density_.traits.second_pass:
            return self._scoring(report, copy(self.density_), choose=False)
        return self._scoring(report, deepcopy(self.density_), rows)

    def _final_weights(self, learned: Mixture, stats: Any) -> Array:
        distribution = self._class_prior_distribution()
        if distribution is not None:  # the posterior mean: the predictive class probabilities
            alpha = distribution.alpha + stats.counts
            return alpha / alpha.sum()
        if self.class_prior is None:
            return learned.weights
        return self._fixed_shares()

    @property
    def learned_model_(self) -> Any:
        return getattr(self, "point_model_", self.model_)

    # -------------------------------------------------------------------- validation

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, Any]:
        if y is None:
            checked_labels(y, 0, type(self).__name__)
        X = self.density_.validate_rows(X, reset=reset)
        if reset:
            self.n_features_in_ = self.density_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self.density_, "feature_names_in_"):
                self.feature_names_in_ = self.density_.feature_names_in_
        if isinstance(X, Ragged) and len(X) == 1 and np.ndim(y) == 1 and len(y) > 1:
            remedy = "give lengths= of the sequences, or pass a list of arrays"
            expected = f"one sequence has one label, but there are {len(y)}"
            raise DataError(sentence(type(self).__name__, expected, "an array that is one sequence", remedy))
        more: Any = {
            "allow_missing": True,
            "none": not reset,
            "each": labeled_things(X),
        }  # in later calls, classes are known
        y = checked_labels(y, n_rows(X), type(self).__name__, **more)
        if sample_weight is None:
            return X, y, None
        weight = row_weights(sample_weight, X)
        counts = weight > 0
        if not counts.any():
            raise DataError(
                sentence(type(self).__name__, "some row must have a weight above 0", "sample_weight all zero")
            )
        return (X, y, weight) if counts.all() else (X[counts], y[counts], weight[counts])

    def _cut(self, X: Any, lengths: Any) -> Any:
        """Sequences split by `lengths` out of one array; without lengths, X unchanged."""
        if lengths is None:
            return X
        density: Any = self.__dict__.get("density_", getattr(self, "density", None))
        return cut(X, lengths, type(self).__name__, density is not None and density.traits.sequences)

    def _rows(self, X: Any) -> Any:
        """Validated rows in the form of the model; unknown levels count as missing."""
        if "model_" not in self.__dict__:  # scikit-learn's validation costs as much as a decision
            check_is_fitted(self)
        rows = self.density_.validate_rows(X)
        rows, unseen = self.density_.mask_unknown(rows, self.learned_model_.components)
        warn_of_unseen_categories(unseen, type(self).__name__)
        return rows

    def _decoded(self, rows: Any) -> Any:
        """Validated rows with labels in place of level codes; components of a product stay apart."""
        density = getattr(self.density_, "component_", self.density_)
        if isinstance(rows, Columns):
            return Columns({name: part.decode_rows(rows[name]) for name, part, _ in density.densities_})
        return self.density_.decode_rows(rows)

    def _log_joint(self, rows: Any) -> Array:
        return self.model_.log_joint(rows)

    def column_names(self) -> list[str]:
        return self.density_.column_names()

    # ----------------------------------------------------------------------- prediction

    def log_posterior(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Logarithms of the posterior probabilities, log p(c | x), of each row."""
        rows = self._rows(self._cut(X, lengths))
        if self.calibration_ is not None:
            return self._calibrated(rows, self.calibration_)
        return self._plain_log_posterior(rows)

    def _plain_log_posterior(self, rows: Any) -> Array:
        if self._positive_everywhere:
            return self.model_.log_posterior(rows)
        return self._of_joint(rows, self.model_.log_responsibilities, len(self.classes_), np.float64)

    def _calibrated(self, rows: Any, calibration: Map) -> Array:
        """Calibrated under the class probabilities of training, then converted to other ones."""
        trained, now = self.calibration_prior_, self.class_prior_
        if np.array_equal(trained, now):
            return calibration.log_posterior(self.floor_.applied(self._plain_log_posterior(rows)))
        raw = self.with_class_prior(trained)._plain_log_posterior(rows)
        return change_log_prior(calibration.log_posterior(self.floor_.applied(raw)), trained, now)

    def predict_log_proba(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Logarithms of the posterior probabilities, log p(c | x), of each row."""
        return self.log_posterior(X, lengths)

    def predict_proba(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Posterior probabilities p(c | x) of each row."""
        if self.calibration_ is not None:
            return np.exp(self.log_posterior(X, lengths))
        rows = self._rows(self._cut(X, lengths))
        if self._positive_everywhere:
            return self.model_.posterior(rows)
        return self._of_joint(rows, self.model_._shares, len(self.classes_), np.float64)

    def predict(self, X: Rows, lengths: ArrayLike | None = None) -> Any:
        """The class of smallest expected cost (n,), without the reject option; see `decide`."""
        if self.calibration_ is not None:
            return super().predict(self._cut(X, lengths))
        rows, cost = self._rows(self._cut(X, lengths)), self._cost_of(None)

        def best(block: Any) -> Index:
            if cost is None:
                return self.model_.most_probable(block)
            return cost.predicted(self.model_._shares(self.model_.log_joint_block(block)))

        def cheapest(joint: Array) -> Index:
            if cost is not None:
                return cost.predicted(self.model_._shares(joint))
            top = joint.argmax(axis=1)
            top[np.isneginf(joint.max(axis=1))] = self.model_.weights.argmax()
            return top

        small = np.min_scalar_type(
            len(self.classes_)
        )  # an index takes one byte: no second column of eight bytes per row
        if self._positive_everywhere:
            return self.classes_[map_rows(best, rows, None, small)]
        return self.classes_[self._of_joint(rows, cheapest, None, small)]

    @property
    def _positive_everywhere(self) -> bool:
        """Whether every class has a positive density everywhere."""
        return not isinstance(self.model_, Mixture) or isinstance(self.model_.components, Gaussian)

    def _of_joint(self, rows: Any, use: Any, columns: int | None, dtype: Any) -> Any:
        """`use` of log p(c) p(x | c) of each block of rows, with a warning for rows of density 0 under every class."""
        lost: list[int] = []

        def used(block: Any) -> Any:
            joint = self.model_.log_joint_block(block)
            lost.append(int(np.isneginf(joint.max(axis=1)).sum()))
            return use(joint)

        out = map_rows(used, rows, columns, dtype)
        if sum(lost) and self.novelty is None:
            text = f"{sum(lost)} of {n_rows(rows)} rows {NO_DENSITY}"
            warn(f"{type(self).__name__}: {text}; use a density with unbounded support, or novelty=")
        return out

    def decide(
        self, X: Rows, *, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None, class_prior: ClassPriorLike = None,
        full: bool = False, lengths: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Decide about each row: the action of smallest expected cost, or a rejection.

        The expected cost of action a is Σ_c cost[a, c] p(c | x). Arguments that are None default to the parameters of
        the classifier; without costs the loss is 0/1, so that the most probable class is chosen.

        Parameters
        ----------
        X : array-like (n, d) or sequences
            Samples, one per row.
        cost : Cost, matrix (A, C), data frame or dict, optional
            Rows are actions, columns true classes in the order of `classes_`; a `Cost`, a data frame or
            {action: {class: cost}} may name them. Further actions beyond the classes are possible, such as "ask".
        reject_cost : float, optional
            Cost of rejection: a row is rejected if every action has a larger expected cost.
        reject_below : float, optional
            A row is rejected if its largest posterior is smaller than this probability.
        novelty : float, optional
            A false-alarm rate: a row is novel (an outlier) if p(x) is smaller than for all but this share of held-out
            training rows, and wherever p(x) = 0.
        class_prior : "uniform", array-like (C,) or dict, optional
            Class probabilities in place of those of training: "uniform", numbers in the order of `classes_`, or a dict
            by label. It changes p(x), and so what is novel, too.
        full : bool, default False
            True gives a `Decisions` instead: choices with expected costs, posteriors, runner-up and reasons.

        Returns
        -------
        ndarray of object (n,) or Decisions
            A label of `classes_`, the name of a further action, `lk.REJECT` for a rejected row, or `lk.NOVEL` for an
            outlier.

        Examples
        --------
        >>> import likely as lk, numpy as np
        >>> x, y = np.random.default_rng(0).normal(size=(400, 1)), np.repeat(["a", "b"], 200)
        >>> clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(x + 4 * (y == "b")[:, None], y)
        >>> X = [[0.0], [1.8], [60.0]]
        >>> clf.decide(X).tolist(), clf.decide(X, reject_below=0.9, novelty=0.01).tolist()
        (['a', 'a', 'b'], ['a', REJECT, NOVEL])
        >>> clf.decide(X, cost={"a": {"a": 0, "b": 9}, "b": {"a": 1, "b": 0}}).tolist()  # to miss a b is dear
        ['a', 'b', 'b']
        >>> clf.decide(X, cost={"a": {"a": 0, "b": 9}, "b": {"a": 1, "b": 0}, "ask": {"a": 0.2, "b": 0.2}}).tolist()
        ['a', 'ask', 'b']
        """
        check_is_fitted(self)
        X = self._cut(X, lengths)
        how: dict[str, Any] = {
            "cost": cost, "reject_cost": reject_cost, "reject_below": reject_below, "novelty": novelty, "full": full,
        }  # fmt: skip
        if class_prior is not None:
            return self.with_class_prior(class_prior).decide(X, **how)
        rules = [how[name] if how[name] is not None else getattr(self, name) for name in REJECT_RULES]
        if any(rule is not None for rule in rules) and self.calibration_ is None and self.density_.traits.sequences:
            text = "posteriors of sequences are too overconfident for a reject rule"
            warn(f'{type(self).__name__}: {text}; set calibration="temperature", or wrap it in lk.CalibratedClassifier')
        return super().decide(X, **how)

    def score_samples(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Marginal log-density log p(x) of each row (n,)."""
        rows = self._rows(self._cut(X, lengths))
        return self.model_.log_prob(rows)

    def sample(self, n_samples: int = 1, random_state: Seed = None, **how: Any) -> tuple[Any, Any]:
        """Rows and labels sampled from the fitted model.

        Parameters
        ----------
        **how : settings
            Settings of the densities' `sample`, such as the `length` of HMMs without final probabilities.

        Returns
        -------
        X : ndarray (n, d) or sequences
            Rows.
        y : ndarray (n,)
            Their classes.
        """
        check_is_fitted(self)
        X, labels = self.model_.sample_labeled(n_samples, np.random.default_rng(random_state), **how)
        return X, self.classes_[labels]

    def with_class_prior(self, class_prior: ClassPriorLike) -> Self:
        """A copy with other class probabilities."""
        check_is_fitted(self)
        other = copy(self)
        other.model_ = self.model_.with_weights(self._prior_for(class_prior))
        other.point_model_ = self.learned_model_
        other.class_prior = class_prior
        if "held_out_novelty_" not in vars(self):
            other._novelty_rows, other._novelty_of = None, self
        return other

    def novelty_score(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Novelty score of each row, from its log-density; larger is more unusual.

        It is the median of log p over the model's samples with the same missing entries, minus log p(x), in units of
        their interquartile range; infinite for an unknown level.

        Returns
        -------
        ndarray (n,)
            Novelty scores.
        """
        check_is_fitted(self)
        return novelty_threshold.novelty_scores(self, self.density_.validate_rows(self._cut(X, lengths), reset=False))[
            0
        ]

    def leave_one_out(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Array:
        """Leave-one-out log p(c | x) per row: fast, as statistics subtract.

        Of duplicates, and of an integer weight, one is left out. Only the parameters of this classifier are used.
        """
        from likely.classify.leave_one_out import leave_one_out

        return leave_one_out(self, X, y, sample_weight)[0]

    def score(
        self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None, lengths: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Accuracy; rows with a missing label are ignored."""
        x = self._cut(in_memory(X), lengths)
        labels = checked_labels(y, n_rows(x), type(self).__name__, allow_missing=True, each=labeled_things(x))
        there = np.flatnonzero(~missing_labels(labels))
        if len(there) == len(labels):
            return float(super().score(x, y, sample_weight))
        rows = x.iloc[there] if hasattr(x, "iloc") else x[there] if hasattr(x, "shape") else [x[i] for i in there]
        weight = None if sample_weight is None else np.asarray(sample_weight)[there]
        return float(np.average(self.predict(rows) == labels[there], weights=weight))

    def explain(self, X: Rows) -> Any:
        """Explanation of each decision: log-odds by column, and the value of each column (`Explanation`)."""
        from likely.classify.explanation import Explanation

        check_is_fitted(self)
        return Explanation.of(self, X, self.calibration_)

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self.model_.weights

    @property
    def class_count_(self) -> Array:
        """Weight of each class in training (C,)."""
        return self.stats_.counts

    # ------------------------------------------------------------------- novelty

    _novelty_rows: novelty_threshold.RowsNeeded | None = None  # copies of training rows, until they were held out
    _novelty_of: BayesClassifier | None = None  # the classifier whose class probabilities this one has changed

    @cached_property
    def held_out_novelty_(self) -> Array:
        """Novelty score, weight and training weight (3, m) of held-out training rows: the reference for novelty.

        It takes ten refits, so it is computed when `novelty` is set, and else when it is first needed.
        """
        if self._novelty_of is not None:
            return self._novelty_of.held_out_novelty_
        rows = self.__dict__.pop("_novelty_rows", None)
        return np.empty((3, 0)) if rows is None else novelty_threshold.left_out(self, rows)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold no training rows: what these are needed for is computed first."""
        if self._novelty_rows is not None or self._novelty_of is not None:
            self.held_out_novelty_  # noqa: B018
        state: Any = super().__getstate__()
        return {name: part for name, part in state.items() if name not in ("_novelty_rows", "_novelty_of")}

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def held_out_novelty_scores(self) -> Array:
        return self.held_out_novelty_

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        with warnings_discarded():  # warnings on these rows are issued by the decision
            rows = self.density_.validate_rows(X, reset=False)
        found, unseen = novelty_threshold.novelty_scores(self, rows)
        limit = alarm(self.held_out_novelty_, rate, type(self).__name__)
        return exceeds(found, limit), novelty_threshold.Why(found, limit, rate, unseen)

    # -------------------------------------------------------------------- inside

    def _check_cost(self) -> None:
        self._cost_of(None)

    def _in_words(self) -> Any:
        """Context manager: messages use names of classes and columns instead of numbers, and of this estimator."""

        def named(note: Note) -> Note:
            note = named_note(self.density_, note).with_members("class", self.classes_.tolist())
            return note.called(type(self).__name__, "Gaussian")

        return warnings_once(named)

    def describe(self) -> Description:
        """Classes, class densities, and the decision rule; of an unfitted classifier, its settings."""
        if not hasattr(self, "model_"):
            return super().describe()
        from likely.estimation.classifier_description import class_table
        from likely.estimation.density_description import distributions_table

        found, components = super().describe(), self.model_.components
        classes = class_table(self, [components.member_facts(k) for k in range(len(self.classes_))])
        text = [f"It is generative, with one density per class: {self.density_.in_words(components)}"]
        return replace(found, text=text, tables=[classes, distributions_table(components)])

    def check_state(self) -> None:
        """After loading a file: rules must be numbers, and the fitted attributes consistent."""
        for rule in ("reject_cost", "reject_below", "novelty"):
            if not isinstance(getattr(self, rule), Real | None):
                came = type(getattr(self, rule)).__name__
                raise DataError(sentence(type(self).__name__, f"{rule} must be a number or None", came))
        if not whole_state(self, *OF_SOME):
            return
        C, width = len(self.classes_), self.n_features_in_
        learned, held_out_novelty = self.learned_model_, vars(self).get("held_out_novelty_", np.empty((3, 0)))
        mixtures = (self.model_, learned)
        sound = all(isinstance(m, Mixture) and m.members is None and m.size == C for m in mixtures)
        sound = sound and type(width) is int and isinstance(self.density_, DensityEstimator)
        sound = sound and getattr(self.density_, "n_features_in_", None) == width and self.model_.dim == learned.dim
        counts: Any = getattr(self.stats_, "counts", 0.0)
        sound = sound and self.density_.accepts_model(learned.components, width, C) and np.shape(counts) == (C,)
        sound = (
            sound
            and isinstance(held_out_novelty, np.ndarray)
            and held_out_novelty.ndim == 2
            and len(held_out_novelty) == 3
        )
        if self.calibration_ is not None:
            map: Any = self.calibration_
            prior: Any = self.__dict__.get("calibration_prior_")
            sound = sound and isinstance(map, Map) and map.classes == C
            sound = sound and isinstance(self.__dict__.get("floor_"), Floor) and np.shape(prior) == (C,)
        try:
            with np.errstate(all="ignore"):
                sound = sound and isinstance(learned.objective(self.stats_), float)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "the fitted attributes must be consistent"))
        self._check_cost()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        density = getattr(self, "density", None)
        inner = get_tags(GaussianDensity() if density is None else density).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
        tags.input_tags.sparse = inner.sparse
        tags.classifier_tags.poor_score = inner.positive_only or inner.categorical  # on the checks' real numbers
        return tags
