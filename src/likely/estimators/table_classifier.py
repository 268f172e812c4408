"""A classifier that knows its table: columns by name, their kinds and levels, and how it came about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from likely.core.arrays import Array, Mask
from likely.decisions.calibrators import Calibration, IsotonicMap, LogisticMap, Temperature
from likely.errors import DataError, DomainError, sentence
from likely.estimators.contest import calibration_of
from likely.estimators.deciding import Deciding
from likely.estimators.explain import Explanation
from likely.estimators.ladder import WORDS, arranged, ladder
from likely.estimators.recalibrated import applied

Schema = dict[str, dict[str, Any]]  # column → {"kind": ..., "levels": [...]}


class TableClassifier(Deciding, BaseEstimator):
    """Decide about rows of a table with named columns: a data frame, a dict of columns, a file.

    Columns may come in any order, others are ignored, cells may be missing. A word that training never saw counts as
    missing, and `unseen` tells of it. This is what `likely fit` writes.

    - **classifier**: a `BayesClassifier` or its like; None: naive Bayes with a law for each column's kind.
    - **kinds**: the user's word on columns, {name: "real", "count", "binary", "category" or "ignore"}.
    - **calibrate**: whether `fit` calibrates posteriors on out-of-fold ones where that helps, as `likely fit` does. A
      classifier that `likely fit` has calibrated has it set, so that copies of it are calibrated, too.

    >>> X = {"size": [1.0, 1.2, 3.0, 3.1], "colour": ["red", "red", "blue", None]}
    >>> clf = TableClassifier().fit(X, ["a", "a", "b", "b"])
    >>> clf.predict({"colour": ["green"], "size": [2.9]}).tolist(), clf.unseen({"colour": ["green"], "size": [2.9]})
    (['b'], {'colour': array([ True])})
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "classifier": [HasMethods(["fit", "decide"]), None], "kinds": [dict, None], "calibrate": ["boolean"],
    }  # fmt: skip
    _saved: tuple[str, ...] = ("classifier_", "schema_", "card_", "calibration_")
    _added: ClassVar[dict[str, Any]] = {"calibrate": False}  # what older files do not say
    card_: str = ""  # JSON: how it came about
    calibration_: Calibration | None = None  # from the classifier's log-posteriors to those that it gives

    def __init__(self, classifier: Any = None, kinds: Any = None, calibrate: bool = False) -> None:
        self.classifier = classifier
        self.kinds = kinds
        self.calibrate = calibrate

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find out what the columns of X are, and learn from them with labels y (n,)."""
        from likely.data.table import Table

        self._validate_params()
        table = Table.of(_named(X, None), kinds=self.kinds)
        schema = arranged_schema(table.schema())
        kinds = {name: entry["kind"] for name, entry in schema.items()}
        model = naive_bayes(kinds) if self.classifier is None else clone(self.classifier)
        self.classifier_ = model.fit(laid_out(table.frame, list(schema)), y, sample_weight)
        self.schema_ = json.dumps(schema)
        frame = laid_out(table.frame, list(schema))
        self.calibration_ = calibration_of(model, frame, y, sample_weight) if self.calibrate else None
        return self

    @classmethod
    def around(cls, classifier: Any, schema: Schema, calibration: Calibration | None = None) -> Self:
        """A fitted classifier together with the columns that it was fitted to, in that order."""
        made = cls(clone(classifier), calibrate=calibration is not None)
        made.classifier_, made.schema_ = classifier, json.dumps(schema)
        made.calibration_ = calibration
        return made

    # ----------------------------------------------------------------------- facts

    @property
    def schema(self) -> Schema:
        """Kind of each column, and levels of those that are words."""
        check_is_fitted(self, "classifier_")
        found: Schema = json.loads(self.schema_)
        return found

    @property
    def card(self) -> dict[str, Any]:
        """How the model came about, as plain values: data, ladder, figures, costs."""
        found: dict[str, Any] = json.loads(self.card_ or "{}")
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes (C,)."""
        check_is_fitted(self, "classifier_")
        return self.classifier_.classes_

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        return self.classifier_.class_prior_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns that it needs."""
        return np.array(list(self.schema), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns it needs."""
        return len(self.schema)

    # ------------------------------------------------------------------------- use

    def frame(self, X: Any) -> Any:
        """Rows as the classifier takes them: a Polars frame of the learnt columns, numbers and words."""
        from likely.data.table import Table

        if isinstance(X, Typed):
            return X.frame
        return laid_out(Table.like(self.schema, _named(X, list(self.schema))).frame, list(self.schema))

    def log_posterior(self, X: Any) -> Array:
        """log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        return applied(self.calibration_, self.classifier_.log_posterior(self.frame(X)))

    def decide(self, X: Any, **how: Any) -> Any:
        """The cheapest action for each row, or a refusal (see `BayesClassifier.decide`)."""
        return super().decide(Typed(self.frame(X)), **how)

    def unseen(self, X: Any) -> dict[str, Mask]:
        """Which rows (n,) hold a word that training never saw, by column; only columns that have some."""
        return self._unseen(self.frame(X))

    def _unseen(self, frame: Any) -> dict[str, Mask]:
        import polars as pl

        found = {}
        for name, entry in self.schema.items():
            if entry["kind"] in WORDS:
                strange = ~(
                    frame[name].is_in(pl.Series(entry["levels"], dtype=pl.String).implode()) | frame[name].is_null()
                )
                if strange.any():
                    found[name] = strange.to_numpy()
        return found

    def explain(self, X: Any) -> Any:
        """Why each row is decided as it is: log-odds by column, and what each column saves (`Explanation`)."""
        if not hasattr(self.classifier_, "explain"):
            expected, remedy = "there is nothing to explain", "it decides by class frequencies and looks at no column"
            raise DomainError(sentence(type(self.classifier_).__name__, expected, remedy=remedy))
        return Explanation.of(self.classifier_, self.frame(X), self.calibration_)

    # ---------------------------------------------------------------------- inside

    # how to decide is the classifier's own affair
    cost = property(lambda self: self.classifier_.cost)
    reject_cost = property(lambda self: self.classifier_.reject_cost)
    reject_below = property(lambda self: self.classifier_.reject_below)
    novelty = property(lambda self: self.classifier_.novelty)

    def _novel(self, X: Any, rate: float) -> tuple[Mask | None, Any]:
        return self.classifier_._novel(self.frame(X), rate)

    def _check_state(self) -> None:
        """After a file was read: texts are JSON, and the classifier is one for these columns."""
        if not hasattr(self, "classifier_"):
            return
        schema, card = _json(self.schema_, "schema_"), _json(self.card_ or "{}", "card_")
        kinds = ("real", "count", *WORDS)
        sound = bool(schema) and isinstance(card, dict) and isinstance(self.classifier_, Deciding)
        sound = sound and all(isinstance(e, dict) and e.get("kind") in kinds for e in schema.values())
        sound = sound and all(_are_texts(e.get("levels")) for e in schema.values() if e["kind"] in WORDS)
        map = self.calibration_
        known = isinstance(map, Temperature | LogisticMap | IsotonicMap)
        sound = sound and (map is None or (known and map.classes == len(self.classifier_.classes_)))
        for learnt in (self.classifier_, getattr(self.classifier_, "density_", None)):
            names = getattr(learnt, "feature_names_in_", None)
            sound = sound and (names is None or list(names) == list(schema))
        if not sound:
            raise DataError(sentence("TableClassifier", "schema, card and classifier must fit together"))


class Typed:
    """Rows that have crossed the border already."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame


def naive_bayes(kinds: dict[str, str]) -> Any:
    """Independent columns, each with the law of its kind."""
    return next(rung.estimator for rung in ladder(kinds) if rung.key in ("naive-bayes", "diagonal"))


def arranged_schema(schema: Schema) -> Schema:
    """Columns in the order of the ladder's models."""
    order = arranged({name: entry["kind"] for name, entry in schema.items()})
    return {name: schema[name] for name in order}


def laid_out(frame: Any, names: list[str]) -> Any:
    """Columns in that order, numbers as Float64, gaps as null."""
    import polars as pl
    import polars.selectors as cs

    return frame.select(names).with_columns(cs.numeric().cast(pl.Float64))


def _named(X: Any, names: list[str] | None) -> Any:
    """Arrays get names for their columns; `Columns` and dicts and frames have them."""
    parts = getattr(X, "parts", None)
    if isinstance(parts, Mapping):
        return dict(parts)
    if isinstance(X, list | np.ndarray) and not (isinstance(X, list) and all(isinstance(x, str) for x in X)):
        a = np.asarray(X, dtype=object if isinstance(X, list) else None)
        if a.ndim != 2 or (names is not None and a.shape[1] != len(names)):
            expected = "rows must be a table with named columns" if names is None else f"rows need columns {names}"
            raise DataError(sentence("TableClassifier", expected, f"an array {a.shape}", "pass a data frame"))
        return {name: a[:, j] for j, name in enumerate(names or [f"x{j}" for j in range(a.shape[1])])}
    return X


def _json(text: Any, name: str) -> Any:
    try:
        found = json.loads(text)
    except (TypeError, ValueError) as error:
        raise DataError(sentence("TableClassifier", f"{name} must be JSON", str(error))) from error
    if not isinstance(found, dict):
        raise DataError(sentence("TableClassifier", f"{name} must be a JSON object", type(found).__name__))
    return found


def _are_texts(levels: Any) -> bool:
    return isinstance(levels, list) and all(isinstance(level, str) for level in levels)
