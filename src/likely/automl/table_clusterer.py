"""TableClusterer: mixture clustering of table rows with named, typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin

from likely.automl.table_classifier import (
    Schema,
    TableModel,
    Typed,
    arranged_schema,
    column_table,
    laid_out,
    with_names,
)
from likely.automl.table_mixture import MOST, ChosenMixture, ClusterCriterion, discover
from likely.core.arrays import Array, Index
from likely.core.description import Description, DescriptionTable
from likely.core.warnings import warnings_renamed
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.density_estimator import warn_of_unseen_categories
from likely.estimation.novelty.mixture_novelty_score import held_out_novelty_scores
from likely.estimation.novelty.novelty_threshold import MANY
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.mixture.estimators.mixture_density import MixtureDensity

ROWS_A_CLUSTER = 3  # minimum number of distinct rows per cluster when the number is chosen


PROFILE = "what makes it different"


class TableClusterer(ClusterMixin, TableModel):
    """Mixture clustering of table rows with named columns: a data frame, a dict of columns, a file.

    Real columns have a joint Gaussian in each cluster, counts are Poisson, categories categorical; cells
    may be missing. An array has no names: its columns must be `feature_names_in_`, in that order. Clusters are numbered
    from 1, the largest first. `likely cluster` writes this model.

    Parameters
    ----------
    n_components : int, optional
        Number of clusters; None chooses it.
    criterion : {"bic", "held-out", "prior"}
        How it is chosen: "bic", "held-out" (likelihood of held-out rows) or "prior" (a sparse Dirichlet prior of the
        weights empties superfluous components).
    kinds : dict, optional
        Types given by the user, {name: "real", "count", "binary", "category" or "ignore"}.
    n_init : int
        Number of random initializations.
    max_components : int
        Largest number of clusters that is tried; at most one per three distinct rows.

    Attributes
    ----------
    found_ : ChosenMixture
        The mixture and what was compared in the choice of the number of clusters.
    held_out_novelty_ : ndarray (3, m)
        Novelty score, weight and training weight of held-out training rows: the reference for novelty.
    labels_ : ndarray of int (n,)
        Cluster of each training row, from 1.
    mixture_ : MixtureDensity
        The fitted mixture.
    order_ : ndarray of int (K,)
        Component of each cluster, the largest weight first.

    Examples
    --------
    >>> X = {"size": [1.0, 1.1, 0.9, 1.2, 7.0, 7.2, 6.9, 7.1], "color": ["red"] * 4 + ["blue"] * 4}
    >>> TableClusterer(2).fit(X).predict({"color": [None, "red"], "size": [7.0, 1.0]}).shape
    (2,)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "criterion": [StrOptions(set(get_args(ClusterCriterion)))],
        "kinds": [dict, None], "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }  # fmt: skip
    _inner_name = "mixture_"
    saved_attributes: tuple[str, ...] = ("mixture_", "schema_", "columns_", "card_", "order_", "held_out_novelty_")

    def __init__(
        self, n_components: int | None = None, *, criterion: ClusterCriterion = "bic",
        kinds: Mapping[str, str] | None = None, n_init: int = 3, max_components: int = MOST, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.criterion = criterion
        self.kinds = kinds
        self.n_init = n_init
        self.max_components = max_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Infer the column types of X, and find clusters; `y` is ignored."""
        from likely.data.table import Table

        self._validate_params()
        table = Table.of(with_names(X, None, "TableClusterer"), kinds=self.kinds, whose="TableClusterer")
        schema = arranged_schema(table.schema())
        frame = laid_out(table.frame, list(schema))
        with self._whole_or_nothing(), warnings_renamed("TableClusterer", "MixtureDensity"):
            self.found_ = discover(
                frame, {name: entry["kind"] for name, entry in schema.items()}, self.n_components,
                criterion=self.criterion, weight=sample_weight, n_init=self.n_init,
                max_components=most_clusters(frame, self.max_components, sample_weight), seed=self.random_state,
            )  # fmt: skip
            self._adopt(self.found_, schema, table.names, frame, sample_weight)
            self.labels_ = self.predict(Typed(frame))
        return self

    @classmethod
    def from_fitted(
        cls, found: ChosenMixture, schema: Schema, frame: Any, weight: ArrayLike | None = None,
        columns: Sequence[str] | None = None, **settings: Any,
    ) -> Self:  # fmt: skip
        """A mixture found in a frame of typed columns, combined with these.

        Parameters
        ----------
        found : ChosenMixture
            The mixture, and how it was chosen.
        schema : dict
            Type and levels of each column, {name: {"kind": …, "levels": […]}}.
        frame : polars.DataFrame
            The training rows.
        columns : sequence of str, optional
            All columns of the training table in its order, if there were others or another order.
        **settings : settings
            Parameters of the clusterer other than `n_components`.
        """
        made = cls(int(found.mixture.model_.size), **settings)
        made._adopt(found, schema, columns, frame, weight)
        return made

    def _adopt(
        self, found: ChosenMixture, schema: Schema, columns: Sequence[str] | None, frame: Any, weight: Any
    ) -> None:
        self.mixture_ = found.mixture
        self._know(schema, columns)
        self.order_ = np.argsort(-found.mixture.model_.weights, kind="stable").astype(np.int64)
        self.held_out_novelty_ = held_out_novelty_scores(found.mixture, frame, weight)

    # ----------------------------------------------------------------------- facts

    @property
    def n_components_(self) -> int:
        """Number of clusters."""
        return len(self.order_)

    @property
    def weights_(self) -> Array:
        """Weight of each cluster (K,), the largest first."""
        return np.asarray(self.mixture_.model_.weights[self.order_])

    # ------------------------------------------------------------------------- use

    def rows(self, X: Any) -> Any:
        """Validated rows with unknown levels as missing.

        Returns
        -------
        Columns
            Rows as the mixture takes them.
        """
        mixture = self.mixture_
        rows, unseen = mixture.mask_unknown(mixture.validate_rows(self.frame(X), reset=False), mixture.learned_model_)
        warn_of_unseen_categories(unseen, "TableClusterer")
        return rows

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities p(cluster | x) of each row.

        Returns
        -------
        ndarray (n, K)
            Probabilities, the largest cluster first.
        """
        check_is_fitted(self, "mixture_")
        return self.mixture_.model_.posterior(self.rows(X))[:, self.order_]

    def predict(self, X: Any) -> Index:
        """The most probable cluster of each row (n,), numbered from 1."""
        return self.predict_proba(X).argmax(axis=1) + 1

    def score_samples(self, X: Any) -> Array:
        """Log-density log p(x) of each row."""
        check_is_fitted(self, "mixture_")
        return self.mixture_.model_.log_prob(self.rows(X))

    def _sound(self) -> bool:
        mixture = self.mixture_
        sound = self._sound_columns() and isinstance(mixture, MixtureDensity) and self.held_out_novelty_.shape[0] == 3
        sound = sound and sorted(self.order_.tolist()) == list(range(mixture.model_.size))
        return sound and list(mixture.feature_names_in_) == list(self.schema)

    def describe(self) -> Description:
        """Training data, clusters, parameters and columns; of an unfitted one, its settings."""
        if not hasattr(self, "mixture_"):
            return super().describe()
        from likely.estimation.density_description import distributions_table

        card, text = self.card, []
        if card:
            text = [f"learned from {', '.join(card['source'])}: {card['rows']:,} rows", card["why"]]
        if dense := card.get("task") == "density":
            text.insert(0, "a density of reference rows for outlier detection: `likely novelty --model`")
            text[-1] = f"a mixture of {text[-1]}"
            text.append(f"the threshold of the alarm is set by {threshold_words(self)}")
        profiles = {c["cluster"]: ", ".join(c["profile"]) for c in card.get("clusters", [])}
        rows = [(k, share, profiles.get(k)) for k, share in enumerate(self.weights_.tolist(), 1)]
        what = "part" if dense else "cluster"
        table = DescriptionTable(f"{what}s", (what, "share", PROFILE), rows, {"share": ".4f"}, f"{what}s")
        parameters = distributions_table(self.mixture_.model_.components)
        return Description(type(self).__name__, text, tables=[table, parameters, column_table(self.schema)])


def most_clusters(frame: Any, most: int, weight: Any = None) -> int:
    """The largest number of clusters to try: at most one per three distinct rows of positive weight, at least 1.

    >>> import polars as pl
    >>> most_clusters(pl.DataFrame({"a": [1.0, 2.0, 3.0]}), 10), most_clusters(pl.DataFrame({"a": range(100)}), 10)
    (1, 10)
    """
    counted = frame if weight is None else frame.filter(np.asarray(weight) > 0)
    enough = ROWS_A_CLUSTER * most
    distinct = counted.head(10 * enough).n_unique()  # usually enough
    if distinct < enough:
        distinct = counted.n_unique()
    return int(max(min(most, distinct // ROWS_A_CLUSTER), 1))


def threshold_words(model: TableClusterer) -> str:
    """How the threshold of the novelty score was set."""
    rows = model.held_out_novelty_.shape[1]
    if not rows:
        return "samples from the model, for lack of held-out rows: the rate holds only if the model fits"
    if model.card["rows"] > MANY:
        return f"{rows:,} of the training rows; with so many, the influence of each is negligible"
    return f"{rows:,} held-out rows (cross-validation)"
