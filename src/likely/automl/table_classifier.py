"""TableClassifier: a classifier with named, typed columns and a model card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from likely.automl.typed_models import TypedClassifier, TypedModel
from likely.classify.calibration.calibration_maps import Calibration
from likely.core.arrays import Mask, Rows, unmasked
from likely.core.description import Description, DescriptionTable
from likely.core.errors import DataError, sentence
from likely.decision.cost import CostLike
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.decision_mixin import ClassPriorLike

Schema = dict[str, dict[str, Any]]  # column → {"kind": ..., "levels": [...]}
WORDS = ("binary", "category")  # kinds of columns with levels
SHOWN = 20  # maximum number of column names in a message


class TableModel(TypedModel):
    """Base of models of a table: the training columns by name, and conversion of new rows.

    Frames and dicts give columns by name. An array has no names: its columns are those of the training table, in its
    order, including excluded ones.
    """

    schema_: str  # JSON: type and levels of each feature, in the order of the inner model
    columns_: str  # JSON: names of all columns of the training table, in its order

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns of the training table in its order, including excluded ones."""
        check_is_fitted(self, "schema_")
        return np.array(json.loads(self.columns_), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training table, required of an array."""
        return len(self.feature_names_in_)

    def frame(self, X: Rows) -> Any:
        """Rows in the form of the inner model.

        Returns
        -------
        polars.DataFrame
            The features, in the order of the inner model.
        """
        from likely.data.table import Table

        if isinstance(X, Typed):
            return X.frame
        named = with_names(X, self.feature_names_in_.tolist(), type(self).__name__)
        return laid_out(Table.like(self.schema, named, whose=type(self).__name__).frame, list(self.schema))

    def unseen_categories(self, frame: Any) -> dict[str, Mask]:
        """Mask of rows (n,) of a typed frame with unknown levels, by column; only columns that have some."""
        import polars as pl

        found = {}
        for name, entry in self.schema.items():
            if entry["kind"] in WORDS:
                unseen = ~(
                    frame[name].is_in(pl.Series(entry["levels"], dtype=pl.String).implode()) | frame[name].is_null()
                )
                if unseen.any():
                    found[name] = unseen.to_numpy()
        return found

    def _know(self, schema: Schema, columns: Sequence[str] | None) -> None:
        """Store the features, and all columns of the training table; None: the features are all."""
        self.schema_, self.columns_ = json.dumps(schema), json.dumps(list(schema if columns is None else columns))

    def _sound_columns(self) -> bool:
        """After loading a file: whether schema and columns are valid."""
        schema, columns = self.schema, json.loads(self.columns_)
        sound = isinstance(schema, dict) and bool(schema) and _are_texts(columns)
        sound = sound and set(schema) <= set(columns) and len(set(columns)) == len(columns)
        kinds = ("real", "count", *WORDS)
        sound = sound and all(isinstance(e, dict) and e.get("kind") in kinds for e in schema.values())
        return sound and all(_are_texts(e.get("levels")) for e in schema.values() if e["kind"] in WORDS)


class TableClassifier(TableModel, TypedClassifier):
    """Classifier of table rows with named columns: a data frame, a dict of columns, a file.

    Columns may come in any order, others are ignored, cells may be missing. An array has no names: its columns must be
    `feature_names_in_`, all columns of the training table in its order. An unknown level counts as
    missing (see `unseen`). `likely fit` writes this model.

    Parameters
    ----------
    classifier : classifier, optional
        A `BayesClassifier` or similar; None: naive Bayes with a distribution for each column's type.
    kinds : dict, optional
        Types given by the user, {name: "real", "count", "binary", "category" or "ignore"}.
    calibrate : bool, default False
        Whether `fit` calibrates posteriors on out-of-fold ones where that helps, as `likely fit` does. It is set in a
        classifier that `likely fit` has calibrated, so that clones are calibrated, too.

    Examples
    --------
    >>> X = {"size": [1.0, 1.2, 3.0, 3.1], "color": ["red", "red", "blue", None]}
    >>> clf = TableClassifier().fit(X, ["a", "a", "b", "b"])
    >>> clf.predict({"color": ["green"], "size": [2.9]}).tolist(), clf.unseen({"color": ["green"], "size": [2.9]})
    (['b'], {'color': array([ True])})
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        **TypedClassifier._parameter_rules, "kinds": [dict, None]
    }  # fmt: skip
    saved_attributes: tuple[str, ...] = ("classifier_", "schema_", "columns_", "card_", "calibration_")

    def __init__(self, classifier: Any = None, kinds: Mapping[str, str] | None = None, calibrate: bool = False) -> None:
        self.classifier = classifier
        self.kinds = kinds
        self.calibrate = calibrate

    def _know_columns_of(self, X: Any) -> Any:
        from likely.data.table import Table

        table = Table.of(with_names(X, None, "TableClassifier"), kinds=self.kinds, whose="TableClassifier")
        schema = arranged_schema(table.schema())
        self._know(schema, table.names)
        return laid_out(table.frame, list(schema))

    def _rows(self, X: Any) -> Any:
        return self.frame(X)

    def _usual(self) -> Any:
        return naive_bayes({name: entry["kind"] for name, entry in self.schema.items()})

    @classmethod
    def from_fitted(
        cls, classifier: Any, schema: Schema, calibration: Calibration | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:  # fmt: skip
        """A fitted classifier combined with the columns that it was fitted to, in that order.

        Parameters
        ----------
        classifier : classifier
            The fitted classifier.
        schema : dict
            Type and levels of each column, {name: {"kind": …, "levels": […]}}.
        calibration : calibration map, optional
            The map of its posteriors to calibrated ones.
        columns : sequence of str, optional
            All columns of the training table in its order, if there were others or another order.
        """
        made = cls._around(classifier, calibration)
        made._know(schema, columns)
        return made

    def decide(
        self, X: Any, *, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None, class_prior: ClassPriorLike = None,
        full: bool = False,
    ) -> Any:  # fmt: skip
        """Decide about each row of a table: the action of smallest expected cost, or a rejection.

        `BayesClassifier.decide` describes the rules in full.
        """
        return super().decide(
            cast(Any, Typed(self.frame(X))), cost=cost, reject_cost=reject_cost, reject_below=reject_below,
            novelty=novelty, class_prior=class_prior, full=full,
        )  # fmt: skip

    def unseen(self, X: Rows) -> dict[str, Mask]:
        """Rows with unknown levels, by column."""
        return self.unseen_categories(self.frame(X))

    def _sound(self) -> bool:
        sound, names = super()._sound() and self._sound_columns(), list(self.schema)
        inside = (self.classifier_, getattr(self.classifier_, "density_", None))
        given = [found for model in inside if (found := getattr(model, "feature_names_in_", None)) is not None]
        return sound and all(list(found) == names for found in given)

    def describe(self) -> Description:
        """Training data, selection, classes, columns and decision rule; of an unfitted one, its settings."""
        if not hasattr(self, "classifier_"):
            return super().describe()
        found, card = self.classifier_.describe(), self.card
        text = [f"model: {type(self.classifier_).__name__}"]
        if card:
            learned = f"learned from {', '.join(card['source'])}: {card['rows']:,} rows, target {card['target']}"
            text = [learned, card["verdict"], f"{text[0]} ({card['what'].rstrip('.')})"]
        calibrated = [f"Probabilities were {card['calibrated']} on held-out rows."] if card.get("calibrated") else []
        found = found.plus(title=type(self).__name__, tables=[column_table(self.schema)], notes=calibrated)
        return replace(found, text=[*text, *found.text])


def column_table(schema: Schema) -> DescriptionTable:
    """The columns with their kinds and levels."""
    each = ((name, one["kind"], one.get("levels")) for name, one in schema.items())
    rows = [(name, kind, None if levels is None else ", ".join(levels)) for name, kind, levels in each]
    return DescriptionTable("columns", ("column", "kind", "levels"), rows, noun="columns")


class Typed:
    """Validated rows."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame


def naive_bayes(kinds: dict[str, str]) -> Any:
    """Naive Bayes, with the distribution of each column's type."""
    from likely.automl.candidates import model_candidates

    return next(
        candidate.estimator for candidate in model_candidates(kinds) if candidate.key in ("naive-bayes", "diagonal")
    )


def arranged_schema(schema: Schema) -> Schema:
    """Columns in the order of the candidate models."""
    from likely.automl.candidates import arranged

    order = arranged({name: entry["kind"] for name, entry in schema.items()})
    return {name: schema[name] for name in order}


def laid_out(frame: Any, names: list[str]) -> Any:
    """Columns in that order, numbers as Float64, missing values as null."""
    import polars as pl
    import polars.selectors as cs

    return frame.select(names).with_columns(cs.numeric().cast(pl.Float64))


def with_names(X: Any, names: list[str] | None, whose: str) -> Any:
    """Columns of arrays by name, in that order, or as x0, x1, …; frames, dicts and `Columns` have names."""
    parts = getattr(X, "components", None)
    if isinstance(parts, Mapping):
        return dict(parts)
    if isinstance(X, list | np.ndarray) and not (isinstance(X, list) and all(isinstance(x, str) for x in X)):
        a = np.asarray(unmasked(X), dtype=object if isinstance(X, list) else None)
        if a.ndim != 2 or (names is not None and a.shape[1] != len(names)):
            raise _without_names(a, names, whose)
        return {name: a[:, j] for j, name in enumerate(names or [f"x{j}" for j in range(a.shape[1])])}
    return X


def _without_names(a: NDArray[Any], names: list[str] | None, whose: str) -> DataError:
    """The error for an array whose columns cannot be identified."""
    remedy = "pass a data frame, whose columns have names"
    if names is None:
        return DataError(sentence(whose, "an array must have rows and columns", f"shape {a.shape}", remedy))
    more = f" … {names[-1]}" if len(names) > SHOWN else ""
    expected = f"an array must have the {len(names)} columns of training, in that order: {', '.join(names[:SHOWN])}"
    return DataError(sentence(whose, expected + more, f"shape {a.shape}", remedy))


def _are_texts(levels: Any) -> bool:
    return isinstance(levels, list) and all(isinstance(level, str) for level in levels)
