"""DTWClassifier: k-nearest-neighbors classification of series under dynamic time warping."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.alignment.bands import BandLike, band_of
from likely.alignment.local_costs import LocalCost, MetricLike, local_cost
from likely.alignment.nearest_series import NearestSeries, nearest
from likely.alignment.pairwise_dtw import Rules
from likely.alignment.series import Series, all_series
from likely.alignment.step_patterns import StepPatternLike, step_pattern_of
from likely.core.arrays import Array, Index, Mask, SequencesLike
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.decision.cost import CostLike
from likely.decision.decide import decisions_from
from likely.estimation.base_estimator import BaseEstimator, ClassifierMixin, check_is_fitted, whole_state
from likely.estimation.class_labels import checked_labels, encoded, warn_of_labels
from likely.estimation.novelty.novelty_score import alarm
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.sequence_validation import cut
from likely.neighbors.voting import VoteWeights

SHARES = tuple(i / 100 for i in range(21))  # candidate bands of "best"


class DTWClassifier(ClassifierMixin, BaseEstimator):
    """Nearest-neighbor classifier of sequences under dynamic time warping.

    Sequences are a list of arrays (T,) or (T, D), a `Ragged`, rows of equal length (n, T), or an array (n, T, D). So
    an array (n, T) is n series of one column here; for functions of one series, as `dtw`, it is n frames. The
    search is exact: lower bounds and early abandoning skip only what cannot be a neighbor; of equals the first wins.
    Missing values are NaN, as in `dtw`; then all distances are computed.

    Parameters
    ----------
    n_neighbors : int, default 1
        Number of neighbors. Posterior probabilities are shares of votes: with one neighbor they are 0 or
        1, without a measure of uncertainty.
    metric : str, tuple or callable, default "sqeuclidean"
        Local cost of two frames, as in `dtw`.
    step_pattern : str or StepPattern, default "unweighted"
        Step pattern as in `dtw`. Series that cannot be aligned are no neighbors. Other patterns than "unweighted", and
        metrics that are functions, compute all distances.
    band : float, int, str, tuple or array-like, optional
        Band as in `dtw`. "best" tries shares 0, 0.01, … 0.2 and takes the narrowest with the fewest
        errors when each training series is classified by the others.
    weights : {"uniform", "distance"}, default "uniform"
        With "distance", votes count 1 / distance.

    Attributes
    ----------
    band_ : band
        The band that is used.
    class_prior_ : ndarray (C,)
        Shares of the classes in the training data.
    frames_ : ndarray (N, D)
        Frames of all training sequences, one below the other.
    labels_ : ndarray of int (n,)
        Class of each training sequence, as an index of `classes_`.
    left_out_errors_ : ndarray (21,)
        Leave-one-out error of each share 0, 0.01, … 0.2, where band is "best".
    offsets_ : ndarray of int (n + 1,)
        Where each training sequence begins in `frames_`.

    See Also
    --------
    dtw : The alignment of two series.

    References
    ----------
    Sakoe and Chiba (1978); Rakthanmanon et al. (2012).

    Examples
    --------
    >>> slow, fast = np.sin(np.linspace(0, 6, 60)), np.sin(np.linspace(0, 6, 25))
    >>> m = DTWClassifier().fit([slow, -slow], ["up", "down"])
    >>> m.predict([fast, -fast]).tolist()
    ['up', 'down']
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": "no_validation",
        "step_pattern": "no_validation",
        "band": "no_validation",
        "weights": [StrOptions(set(get_args(VoteWeights)))],
    }
    saved_attributes: tuple[str, ...] = (
        "frames_", "offsets_", "labels_", "classes_", "class_prior_", "band_", "left_out_errors_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self,
        n_neighbors: int = 1,
        *,
        metric: MetricLike = "sqeuclidean",
        step_pattern: StepPatternLike = "unweighted",
        band: BandLike | Literal["best"] | None = None,
        weights: VoteWeights = "uniform",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.step_pattern = step_pattern
        self.band = band
        self.weights = weights

    def fit(self, X: SequencesLike, y: ArrayLike, *, lengths: ArrayLike | None = None) -> Self:
        """Store the training sequences X and their labels y (n,).

        `lengths` split one long array X of frames, (T,) or (T, D), into sequences, here and in the other methods.
        """
        self._validate_params()
        series = all_series(cut(X, lengths), "DTWClassifier")
        self._frame_cost.prepare(series, "DTWClassifier")  # validates X for this cost
        step_pattern_of(self.step_pattern, "DTWClassifier")
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.pop("_reach", None)
        if series.names is not None:
            self.feature_names_in_ = np.array(series.names, dtype=object)
        self.classes_, self.labels_ = encoded(checked_labels(y, len(series), "DTWClassifier", each="sequence"))
        warn_of_labels(self.classes_, self.labels_, "DTWClassifier")
        if self.n_neighbors > len(series):
            expected = f"n_neighbors must not be above the number of sequences ({len(series)})"
            raise DomainError(sentence("DTWClassifier", expected, self.n_neighbors))
        self.frames_, self.offsets_ = series.values.copy(), series.offsets.copy()
        self.class_prior_ = np.bincount(self.labels_) / len(series)
        self.__dict__.pop("left_out_errors_", None)
        self.band_ = self._best_band(series) if isinstance(self.band, str) and self.band == "best" else self.band
        band_of(self.band_, "DTWClassifier", '"best", ')
        return self

    def predict(self, X: SequencesLike, lengths: ArrayLike | None = None) -> NDArray[Any]:
        """The class with most votes (n,); of equals the first in `classes_`."""
        return self.classes_[self.predict_proba(X, lengths).argmax(axis=1)]

    def score(
        self, X: SequencesLike, y: ArrayLike, sample_weight: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> float:
        """Accuracy: the share of sequences that are classified correctly."""
        checked_labels(y, None, "DTWClassifier", each="sequence")
        return float(super().score(cut(X, lengths), y, sample_weight))

    def predict_proba(self, X: SequencesLike, lengths: ArrayLike | None = None) -> Array:
        """Posterior probabilities as shares of the votes (n, C), columns in the order of `classes_`."""
        check_is_fitted(self)
        return self._votes(self._nearest(self._series(X, lengths), self.n_neighbors))

    def log_posterior(self, X: SequencesLike, lengths: ArrayLike | None = None) -> Array:
        """Logarithms of `predict_proba` (n, C): −inf for a class without a vote."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths))

    predict_log_proba = log_posterior

    def decide(
        self, X: SequencesLike, *, cost: CostLike | None = None,
        reject_cost: float | None = None, reject_below: float | None = None, novelty: float | None = None,
        full: bool = False, lengths: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """The action of least expected cost by the shares of votes, or `lk.REJECT`; `cost` is as in `lk.decide`.

        `novelty` is a false-alarm rate: a series is `lk.NOVEL` if its k-th neighbor is farther than those of all but
        this share of training series, each among the others.
        """
        check_is_fitted(self)
        found = self._nearest(self._series(X, lengths), self.n_neighbors)
        novel, why = (None, None) if novelty is None else self._novel(found.distances[:, -1], novelty)
        return decisions_from(
            self._votes(found), self.classes_, cost=cost, reject_cost=reject_cost, reject_below=reject_below,
            novel=novel, why_novel=why, full=full,
        )  # fmt: skip

    def kneighbors(
        self, X: SequencesLike | None = None, n_neighbors: int | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Array, Index]:
        """The nearest training sequences, nearest first; of equals the first comes first.

        Parameters
        ----------
        X : sequences, optional
            Sequences; None: each training sequence among the others.
        n_neighbors : int, optional
            Number of neighbors; None is that of the classifier.

        Returns
        -------
        distances : ndarray (n, n_neighbors)
            Distances.
        indices : ndarray of int (n, n_neighbors)
            Numbers of the training sequences.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        others = len(self.labels_) - (X is None)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= others:
            raise DomainError(sentence("DTWClassifier", f"n_neighbors must be an integer from 1 to {others}", k))
        found = self._nearest(None if X is None else self._series(X, lengths), int(k))
        return found.distances, found.indices

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    @property
    def sequences_(self) -> Ragged:
        """The training sequences."""
        return Ragged(self.frames_, self.offsets_)

    # ----------------------------------------------------------------- internal

    @property
    def _frame_cost(self) -> LocalCost:
        return local_cost(self.metric, "DTWClassifier")

    def _rules(self, band: Any) -> Rules:
        rule, limits = step_pattern_of(self.step_pattern, "DTWClassifier"), band_of(band, "DTWClassifier")
        return Rules.of(self._frame_cost, self.frames_.shape[1], steps=rule, band=limits, whose="DTWClassifier")

    def _series(self, X: Any, lengths: Any = None) -> Series:
        series, D = all_series(cut(X, lengths), "DTWClassifier"), self.frames_.shape[1]
        if series.values.shape[1] != D:
            got = series.values.shape[1]
            raise ShapeError(sentence("DTWClassifier", f"frames must have {D} entries, as in fit", got))
        learned = getattr(self, "feature_names_in_", None)
        if learned is not None and series.names is not None and series.names != tuple(learned):
            expected, got = f"frames must have the columns {', '.join(learned)}, as in fit", ", ".join(series.names)
            raise DataError(sentence("DTWClassifier", expected, got, "choose and order them alike"))
        return series

    def _novel(self, reach: Array, rate: float) -> tuple[Mask, Any]:
        """Novelty mask (n,): series with farther neighbors than in training, and the explanation."""
        if len(self.labels_) <= self.n_neighbors:
            expected = f"novelty needs more than k = {self.n_neighbors} sequences"
            raise DomainError(sentence("DTWClassifier", expected, len(self.labels_)))
        if "_reach" not in self.__dict__:  # k-th neighbor distances of training series among the others
            self._reach = self._nearest(None, self.n_neighbors).distances[:, -1]
        limit = alarm(np.stack([self._reach, np.ones(len(self._reach))]), rate, "DTWClassifier")
        usual = f"beyond {limit:.3g} of all but {100 * rate:g} % of training series"
        return reach > limit, lambda i: f"its {self.n_neighbors} nearest series reach {reach[i]:.3g}, {usual}"

    def _nearest(self, queries: Series | None, k: int) -> NearestSeries:
        """Neighbors of some series, or without any of each training series among the others."""
        known = self._frame_cost.prepare(all_series(self.sequences_, "DTWClassifier"), "DTWClassifier")
        queries_ = known if queries is None else self._frame_cost.prepare(queries, "DTWClassifier")
        return nearest(queries_, known, k, self._rules(self.band_), leave_out=queries is None)

    def _votes(self, found: NearestSeries) -> Array:
        vote = np.ones(found.distances.shape)
        if self.weights == "distance":
            least = found.distances[:, :1]  # relative to the nearest, against overflow
            vote = np.where(least == 0, found.distances == 0, least / np.where(least == 0, 1.0, found.distances))
        votes = np.zeros((len(vote), len(self.classes_)))
        np.add.at(votes, (np.arange(len(vote))[:, None], self.labels_[found.indices]), vote)
        return votes / votes.sum(axis=1, keepdims=True)

    def _best_band(self, series: Series) -> float:
        """The narrowest band with the fewest leave-one-out errors."""
        if len(series) <= self.n_neighbors:
            expected = f'band="best" needs more than k = {self.n_neighbors} sequences'
            raise DataError(sentence("DTWClassifier", expected, len(series)))
        prepared = self._frame_cost.prepare(series, "DTWClassifier")
        errors: dict[float, float] = {}
        known: dict[int, float] = {}
        for share in SHARES:
            rules = self._rules(share)
            radius = rules.band.frames(int(series.lengths.max()))
            if radius not in known or len(set(series.lengths.tolist())) > 1:
                known[radius] = self._left_out_error(prepared, rules)
            errors[share] = known[radius]
        self.left_out_errors_ = np.array(list(errors.values()))
        if not np.isfinite(self.left_out_errors_).any():
            expected, remedy = (
                "some band up to a share of 0.2 must leave a path for series of all lengths",
                "use band=None, or a radius",
            )
            raise DomainError(sentence("DTWClassifier", expected, "none", remedy))
        return SHARES[int(np.nanargmin(self.left_out_errors_))]

    def _left_out_error(self, series: Series, rules: Rules) -> float:
        """Leave-one-out error rate; NaN where the band is too narrow for unequal lengths."""
        try:
            found = nearest(series, series, self.n_neighbors, rules, leave_out=True)
        except DomainError:
            if len(set(series.lengths.tolist())) == 1:
                raise
            return np.nan
        return float(np.mean(self._votes(found).argmax(axis=1) != self.labels_))

    def check_state(self) -> None:
        """Validate the fitted state after a file was read."""
        _ = self._frame_cost
        if not whole_state(self, "left_out_errors_"):
            return
        band_of(self.band_, "DTWClassifier")
        frames, labels, classes = self.frames_, self.labels_, self.classes_
        valid = all(isinstance(x, np.ndarray) for x in (frames, labels, classes, self.class_prior_))
        valid = valid and frames.dtype == np.float64 and frames.ndim == 2 and labels.dtype.kind == "i"
        valid = valid and labels.shape == (len(self.sequences_),) and classes.shape == self.class_prior_.shape
        valid = valid and bool(self.n_neighbors <= len(labels) and 0 <= labels.min() and labels.max() < len(classes))
        if not valid:
            raise DataError(sentence("DTWClassifier", "the fitted attributes must be consistent"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags
