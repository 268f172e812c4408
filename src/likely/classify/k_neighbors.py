"""KNeighborsClassifier: k-nearest-neighbor classification."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.classify.numeric_classifier_mixin import NumericClassifierMixin
from likely.classify.numeric_rows import plain_rows, row_weights, sound_rules
from likely.core.arrays import Array, Index, Mask, Rows, Targets
from likely.core.errors import DataError, DomainError, sentence
from likely.core.warnings import warn, warnings_renamed
from likely.decision.cost import Cost, CostLike
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_state
from likely.estimation.class_labels import checked_labels, encoded, labels_among, warn_of_labels
from likely.estimation.decision_mixin import NOVELTY, RULES, UNIFORM, ClassPriorLike
from likely.estimation.novelty.novelty_score import alarm
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.neighbors.distances import Metric, MetricName, metric_words
from likely.neighbors.editing import condensed_nearest_neighbor, edited_nearest_neighbors
from likely.neighbors.nearest_neighbors import NeighborSearch
from likely.neighbors.voting import Voters, VoteWeights

SelectionCriterion = Literal["errors", "log"]  # of the leave-one-out choice of k
PrototypeSelection = Literal["edited", "condensed"]
CHOICES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 45, 70, 100)  # candidates of "leave-one-out"
EQUAL = 1e-12  # tolerance for equal costs
VOTES = 2**22  # entries in memory while k is chosen
LEFT_OUT = 10_000  # maximum number of rows for leave-one-out: evenly spaced over all


class KNeighborsClassifier(NumericClassifierMixin, BaseEstimator):
    """Classifier by the k nearest neighbors: p(c | x) ∝ p(c) k_c / N_c   (Ney 5.3; Cover and Hart 1967).

    Of k neighbors within a volume V, k_c belong to class c, which has N_c rows in all: p(x | c) = k_c / (N_c V). The
    search is exact, and ties go to the first row. A weight of w is w copies: k counts units of weight.

    Missing values (NaN): two rows are compared over the columns that both have, and the sum is scaled to all columns;
    neighbors with no column in common have no vote. Squared Mahalanobis distances are expectations under
    one Gaussian of all rows, fitted by EM; "correlation" needs complete rows.

    Parameters
    ----------
    n_neighbors : int, "leave-one-out" or sequence of int
        The number k; "leave-one-out" takes the k of 1, 2, … 100 (or of the given numbers) with the best leave-one-out
        result.
    metric : {"l1", "l2", "linf", "lp", "scaled", "mahalanobis", "correlation"}
        The distance: "lp" with the exponent `p`, "scaled" (columns over their standard deviation within classes),
        "mahalanobis" (rows whitened by the covariance within classes), "correlation" (1 − r of two rows).
    p : float
        Exponent of the metric "lp".
    scale : array-like (d,) or (d, d), optional
        Standard deviations, or a covariance, of the metric instead of estimated ones.
    weights : {"uniform", "distance"}
        Weights of votes: equal, or 1 / distance.
    criterion : {"errors", "log"}
        The criterion of leave-one-out: "errors" (with `cost` or `reject_cost`, the cost of decisions; ties by mean
        log p(c | x)), or "log", the largest mean log p(c | x): for probabilities, mostly with more neighbors, since a
        class without a vote costs much.
    smoothing : float
        Total number of pseudo-votes, distributed in proportion to the class frequencies; so no posterior is 0, and
        ties go to the more frequent class.
    prototypes : {"edited", "condensed"}, optional
        "edited" drops rows that their 3 nearest others contradict (`lk.neighbors.edited_nearest_neighbors`),
        "condensed" keeps a consistent subset for one neighbor (`lk.neighbors.condensed_nearest_neighbor`; these rows
        mark decision boundaries, not probabilities, so each has one vote, whatever its weight). N_c counts the kept
        rows.
    class_prior : "uniform", array-like (C,) or dict, optional
        Class probabilities p(c); None: relative frequencies.
    novelty : float, optional
        A false-alarm rate: a row is novel if its k-th neighbor is farther away than for all but that share of training
        rows.

    Attributes
    ----------
    distribution_ : Gaussian
        The Gaussian of all rows, of the metric "mahalanobis".
    labels_ : ndarray of int (n,)
        Class of each stored row, from 0 in the order of `classes_`.
    left_out_scores_ : ndarray (m, 3)
        One row per number that was tried: k, mean cost and mean log p(c | x) by leave-one-out.
    n_neighbors_ : int
        The number k that is used.
    prototype_indices_ : ndarray of int (m,)
        The stored rows that vote.
    rows_ : ndarray (n, d)
        Training rows with positive weight.
    scale_ : ndarray (d,) or (d, d)
        Standard deviations, or the covariance, of the metric, where it has any.
    weight_ : ndarray (n,)
        Weight of each stored row.

    Examples
    --------
    >>> import likely as lk
    >>> m = lk.KNeighborsClassifier(3, metric="l1").fit([[0.0], [1.0], [2.0], [8.0], [9.0]], ["a", "a", "a", "b", "b"])
    >>> m.predict([[1.4], [7.0]]).tolist(), m.predict_proba([[7.0]]).round(2).tolist()
    (['a', 'b'], [[0.4, 0.6]])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"leave-one-out"}), "array-like"],
        "metric": [StrOptions(set(get_args(MetricName)))],
        "p": [Interval(Real, 1, 64, closed="both")],
        "scale": ["array-like", None],
        "weights": [StrOptions(set(get_args(VoteWeights)))],
        "criterion": [StrOptions(set(get_args(SelectionCriterion)))],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "prototypes": [StrOptions(set(get_args(PrototypeSelection))), None],
        "class_prior": [UNIFORM, "array-like", dict, None],
        **RULES, **NOVELTY,
    }  # fmt: skip
    _keeps_rows = True
    saved_attributes: tuple[str, ...] = (
        "rows_", "labels_", "weight_", "classes_", "prototype_indices_", "n_neighbors_", "left_out_scores_", "scale_",
        "distribution_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, n_neighbors: int | Literal["leave-one-out"] | Sequence[int] = 5, metric: MetricName = "l2", *,
        p: float = 2.0, scale: ArrayLike | None = None,
        weights: VoteWeights = "uniform", criterion: SelectionCriterion = "errors", smoothing: float = 1.0,
        prototypes: PrototypeSelection | None = None,
        class_prior: ClassPriorLike = None, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None,
    ) -> None:  # fmt: skip
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.scale = scale
        self.weights = weights
        self.criterion = criterion
        self.smoothing = smoothing
        self.prototypes = prototypes
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty

    # ----------------------------------------------------------------- learning

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Store rows X (n, d) and their labels y (n,)."""
        self._validate_params()
        if y is None:
            checked_labels(y, 0, type(self).__name__)
        x = plain_rows(self, X, reset=True)
        targets = checked_labels(y, len(x), type(self).__name__)
        w = row_weights(self, sample_weight, x)
        here = w > 0
        self.classes_, labels = encoded(targets[here])
        warn_of_labels(self.classes_, labels, type(self).__name__)
        self._store_rows(x[here], labels, w[here])
        self._warn_of_novelty()
        return self

    def partial_fit(
        self, X: Rows, y: Targets, classes: Sequence[object] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Store more rows. The first call may name all `classes`."""
        self._validate_params()
        first = not hasattr(self, "rows_")
        x = plain_rows(self, X, reset=first)
        targets = checked_labels(y, len(x), type(self).__name__)
        w = row_weights(self, sample_weight, x)
        if first:
            named = targets if classes is None else checked_labels(classes, len(classes), type(self).__name__)
            self.classes_ = encoded(named)[0]
        labels = labels_among(targets, self.classes_, type(self).__name__)
        warn_of_labels(self.classes_, labels, type(self).__name__)
        here = w > 0
        x, labels, w = x[here], labels[here], w[here]
        if not first:
            x = np.concatenate([self.rows_, x])
            labels, w = np.concatenate([self.labels_, labels]), np.concatenate([self.weight_, w])
        return self._store_rows(x, labels, w)

    def _store_rows(self, x: Array, labels: Index, weight: Array) -> Self:
        self.rows_, self.labels_, self.weight_ = x, labels.astype(np.int64), weight
        with warnings_renamed(type(self).__name__, "Gaussian"):
            metric = Metric.learned(self.metric, x, weight, labels, p=self.p, scale=self.scale)
        for name in ("scale_", "distribution_"):
            self.__dict__.pop(name, None)
        if metric.scale is not None:
            self.scale_ = np.array(metric.scale)
        if metric.distribution is not None:
            self.distribution_ = metric.distribution
        self.prototype_indices_ = self._selected_prototypes(metric)
        self._build(metric)
        self._check_priors()
        self.__dict__.pop("left_out_scores_", None)
        self.n_neighbors_ = self._requested_k()
        total = float(self._voters.weight.sum())
        if total < self.n_neighbors_:
            warn(f"{type(self).__name__}: all rows vote: their total weight is {total:g}, k is {self.n_neighbors_}")
        return self

    def _selected_prototypes(self, metric: Metric) -> Index:
        """The kept rows."""
        if self.prototypes is None or len(np.unique(self.labels_)) < 2:
            return np.arange(len(self.rows_), dtype=np.int64)
        choose = edited_nearest_neighbors if self.prototypes == "edited" else condensed_nearest_neighbor
        return choose(self.rows_, self.labels_, metric=metric, weight=self.weight_).astype(np.int64)

    def _build(self, metric: Metric) -> None:
        """Build the search structures, which are not stored in files."""
        at = self.prototype_indices_
        search = NeighborSearch.of(self.rows_[at], metric, whose=type(self).__name__)
        self._voters = Voters.trusted(
            search=search, labels=self.labels_[at], weight=self._prototype_weight(), classes=len(self.classes_)
        )
        self._training_reach: dict[int, Array] = {}  # distances to the k-th neighbor in training, by k

    def _prototype_weight(self) -> Array:
        """Votes of the kept rows: their weights, or one each after condensing."""
        return (
            np.ones(len(self.prototype_indices_))
            if self.prototypes == "condensed"
            else self.weight_[self.prototype_indices_]
        )

    def _requested_k(self) -> int:
        asked = self.n_neighbors
        if isinstance(asked, Integral):
            return int(asked)
        choices = CHOICES if isinstance(asked, str) else _candidate_numbers(asked, type(self).__name__)
        total = self._voters.weight.sum()
        choices = [k for k in choices if k < total] or [min(choices)]
        costs, logs = self._left_out_scores(choices)
        self.left_out_scores_ = np.stack([choices, costs, logs], axis=1)
        best = costs <= costs.min() + EQUAL * np.abs(costs).max() if self.criterion == "errors" else costs == costs
        return choices[int(np.argmax(np.where(best, logs, -np.inf)))]

    def _left_out_scores(self, choices: list[int]) -> tuple[Array, Array]:
        """Leave-one-out cost and log-posterior of training rows for each k (K,)."""
        n, C = len(self.rows_), len(self.classes_)
        asked = np.unique(np.linspace(0, n - 1, min(n, LEFT_OUT)).astype(np.intp))
        judging = self.weight_ * (self.class_prior_ / self._shares)[self.labels_]  # at the expected class frequencies
        asked = asked[judging[asked] > 0] if judging[asked].any() else asked
        step = max(64, VOTES // (len(choices) * C))
        total = np.zeros((2, len(choices)))
        for start in range(0, len(asked), step):
            total += self._leave_one_out_sums(choices, asked[start : start + step], judging)
        costs, logs = total / (judging[asked].sum() or self.weight_[asked].sum())
        return costs, logs

    def _leave_one_out_sums(self, choices: list[int], at: Index, judging: Array) -> Array:
        """Σ of costs and log-posteriors (2, K) of some rows, kept ones by leave-one-out.

        Class frequencies include the row: otherwise ties of even votes would always go against its class.
        """
        votes, place = (
            np.empty((len(choices), len(at), len(self.classes_))),
            np.searchsorted(self.prototype_indices_, at),
        )
        stayed = self.prototype_indices_[np.minimum(place, len(self.prototype_indices_) - 1)] == at
        by_distance = self.weights == "distance"
        if stayed.any():
            votes[:, stayed] = self._voters.left_out_for_each(choices, by_distance, place[stayed])[0]
        if not stayed.all():
            votes[:, ~stayed] = self._voters.votes_for_each(self.rows_[at[~stayed]], choices, by_distance)[0]
        truth, weight = self.labels_[at], judging[at] if judging[at].any() else self.weight_[at]
        out = []
        for each in votes:
            logs = self._posterior(each)
            out.append([weight @ self._decision_costs(logs, truth), weight @ logs[np.arange(len(at)), truth]])
        return np.transpose(out)

    def _decision_costs(self, logs: Array, truth: Index) -> Array:
        """The cost of the decision about each row (n,), given its true class; without costs, 0/1 loss."""
        if self.cost is None and self.reject_cost is None:
            return (logs.argmax(axis=1) != truth).astype(np.float64)
        cost = Cost.of(self.cost, self.classes_)
        cost = cost if self.reject_cost is None else cost.with_reject(self.reject_cost)
        return np.asarray(cost.table[cost.expected_of(np.exp(logs)).argmin(axis=1), truth])

    # ----------------------------------------------------------------------- prediction

    def _log_joint(self, rows: Array) -> Array:
        return self._posterior(
            self._voters.votes(rows, self.n_neighbors_, self.weights == "distance", type(self).__name__)[0]
        )

    def kneighbors(self, X: Rows | None = None, n_neighbors: int | None = None) -> tuple[Array, Index]:
        """Distances and indices of the nearest training rows, nearest first.

        Parameters
        ----------
        X : array-like (n, d), optional
            Rows; None: each kept row among the others.
        n_neighbors : int, optional
            Number of neighbors; None: `n_neighbors_`.

        Returns
        -------
        distances : ndarray (n, n_neighbors)
            Distances to the neighbors.
        indices : ndarray of int (n, n_neighbors)
            The neighbors, counted among the rows with positive weight that were passed to `fit`.
        """
        check_is_fitted(self)
        search, whose = self._voters.search, type(self).__name__
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        if X is None:
            away, rows = search.nearest_others(k, whose=whose)
        else:
            away, rows = search.nearest(plain_rows(self, X, reset=False), k, whose)
        return away, self.prototype_indices_[rows]

    def leave_one_out(self) -> Array:
        """Leave-one-out log p(c | x) of each kept training row."""
        check_is_fitted(self)
        votes = self._voters.votes_left_out(self.n_neighbors_, self.weights == "distance")[0]
        at = np.arange(len(self.prototype_indices_))
        return self._posterior(votes, self._shares_without(self._voters.labels, self._voters.unit(at)))

    @property
    def class_count_(self) -> Array:
        """Weight of each class in training (C,)."""
        return np.bincount(self.labels_, self.weight_, len(self.classes_)).astype(np.float64)

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self._shares if self.class_prior is None else self._prior_for(self.class_prior)

    # ------------------------------------------------------------------- inside

    @property
    def _shares(self) -> Array:
        """Class frequencies among the voting rows; a named class without rows has a small share."""
        return _floored_frequencies(self._counts)

    @property
    def _counts(self) -> Array:
        """Weight of each class (C,) among the voting rows."""
        return np.asarray(np.bincount(self._voters.labels, self._voters.weight, len(self.classes_)), dtype=np.float64)

    def _shares_without(self, labels: Index, left: Array) -> Array:
        """The same (m, C) for rows left out of their class with the given weight."""
        counts = self._counts
        return _floored_frequencies(counts - left[:, None] * (np.arange(len(counts)) == labels[:, None]))

    def _posterior(self, votes: Array, shares: Array | None = None) -> Array:
        """Log-posteriors from votes: (k_c + a N_c/N) / (k + a) for the prior N_c/N; others by Bayes' theorem."""
        shares = self._shares if shares is None else shares
        logs = np.log(votes + self.smoothing * shares)
        if self.class_prior is not None:
            with np.errstate(divide="ignore"):
                logs = logs + np.log(self.class_prior_ / shares)
        logs = logs - logs.max(axis=1, keepdims=True)
        out: Array = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return out

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        limit = alarm(self.held_out_novelty_scores(), rate, type(self).__name__)
        x = plain_rows(self, X, reset=False)
        reach = self._voters.votes(x, self.n_neighbors_)[1]
        beyond = f"beyond {limit:.3g} of all but {100 * rate:g} % of training rows"
        text = f"neighbor {self.n_neighbors_} is {{:.3g}} away, {beyond}"
        return reach > limit, lambda i: text.format(reach[i])

    def held_out_novelty_scores(self) -> Array:
        """Leave-one-out distances of training rows to the k-th neighbor, and weights (2, m)."""
        if self.n_neighbors_ not in self._training_reach:
            n = len(self.prototype_indices_)
            at = np.unique(np.linspace(0, n - 1, min(n, LEFT_OUT)).astype(np.intp))
            reach = self._voters.votes_left_out(self.n_neighbors_, of=at)[1]
            self._training_reach[self.n_neighbors_] = np.stack([reach, self._voters.weight[at]])
        return self._training_reach[self.n_neighbors_]

    def _compares(self) -> list[str]:
        by = "lowest error or cost" if self.criterion == "errors" else "largest mean log-posterior"
        chosen = f", chosen by leave-one-out cross-validation: {by}" if hasattr(self, "left_out_scores_") else ""
        left = "" if self.prototypes is None else f" ({self.prototypes}, of {len(self.rows_):,})"
        votes = "count 1 / distance" if self.weights == "distance" else "count alike"
        rows = f"the nearest of {len(self.prototype_indices_):,} rows{left}"
        return [
            f"It compares with {rows}: k = {self.n_neighbors_}{chosen}",
            f"distance: {metric_words(self.metric, self.p)}",
            f"votes {votes}, and {self.smoothing:g} more is shared as the classes are among all rows",
        ]

    def check_state(self) -> None:
        """After loading a file: the fitted attributes must be consistent; then the search is built."""
        asked, smoothing = self.n_neighbors, self.smoothing
        sound = (
            sound_rules(self)
            and self.weights in ("uniform", "distance")
            and self.prototypes in (None, "edited", "condensed")
        )
        sound = sound and self.criterion in ("errors", "log")
        sound = sound and (
            type(asked) is int
            or isinstance(asked, list | tuple | np.ndarray)
            or (isinstance(asked, str) and asked == "leave-one-out")
        )
        sound = sound and type(smoothing) in (int, float) and 0 < smoothing < np.inf
        if not sound:
            raise DataError(sentence(type(self).__name__, "parameters must be valid"))
        if not whole_state(self, "left_out_scores_", "scale_", "distribution_"):
            return
        arrays: list[NDArray[Any]] = [self.rows_, self.labels_, self.weight_, self.prototype_indices_, self.classes_]
        sound = all(isinstance(a, np.ndarray) and a.ndim for a in arrays) and self.rows_.dtype == np.float64
        n = len(self.rows_) if sound else 0
        sound = sound and self.rows_.shape == (n, self.n_features_in_) and self.rows_.size > 0
        sound = sound and self.labels_.shape == self.weight_.shape == (n,) and self.weight_.dtype == np.float64
        sound = (
            sound and self.labels_.dtype.kind == self.prototype_indices_.dtype.kind == "i" and self.classes_.ndim == 1
        )
        sound = sound and bool((self.weight_ > 0).all() and np.isfinite(self.weight_.sum()))
        sound = sound and bool(0 <= self.labels_.min() and self.labels_.max() < len(self.classes_))
        sound = (
            sound
            and self.prototype_indices_.ndim == 1
            and 0 < len(self.prototype_indices_)
            and type(self.n_neighbors_) is int
            and self.n_neighbors_ > 0
        )
        sound = sound and bool(
            0 <= self.prototype_indices_.min()
            and self.prototype_indices_.max() < n
            and (np.diff(self.prototype_indices_) > 0).all()
        )
        distribution = getattr(self, "distribution_", None)
        sound = sound and (
            distribution is None
            or (isinstance(distribution, Gaussian) and distribution.mean.shape == (self.n_features_in_,))
        )
        if not sound:
            raise DataError(sentence(type(self).__name__, "the fitted attributes must be consistent"))
        self._build(Metric(self.metric, self.p, getattr(self, "scale_", None), distribution))
        self._check_priors()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.metric != "correlation"
        return tags


def _floored_frequencies(counts: Array) -> Array:
    """Shares of counts (..., C), at least a thousandth of an even share."""
    shares = np.maximum(counts / counts.sum(axis=-1, keepdims=True), 1e-3 / counts.shape[-1])
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def _candidate_numbers(asked: Any, whose: str) -> list[int]:
    """Candidate numbers of neighbors."""
    try:
        asked = np.ravel(asked).tolist()
    except ValueError as error:
        raise DomainError(sentence(whose, "n_neighbors must be a number, or numbers to choose from", asked)) from error
    if not asked:
        raise DomainError(sentence(whose, "n_neighbors must be a number, or numbers to choose from", "an empty list"))
    return [_positive_integer(k, whose) for k in asked]


def _positive_integer(k: Any, whose: str) -> int:
    if isinstance(k, bool) or not isinstance(k, Real) or k != k // 1 or k < 1:
        raise DomainError(sentence(whose, "n_neighbors must be integers above 0", k))
    return int(float(k))
