"""scikit-learn classifiers and regressors as reference models for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from likely.automl.candidates import Candidate, Kinds
from likely.automl.table_classifier import WORDS
from likely.classify.calibration.calibrated import CalibratedClassifier

MOST_LEVELS = 250  # levels of a category in boosting, which has 255 bins; rarer ones are merged
NOTE = "for comparison; cannot be written to a model file"


def baselines(kinds: Kinds, rules: Mapping[str, Any] | None = None, seed: int = 0) -> list[Candidate]:
    """Gradient boosting, random forest and logistic regression, with encodings and calibrated posteriors.

    >>> [candidate.key for candidate in baselines({"size": "real", "color": "category"})]
    ['boosting', 'forest', 'logistic']
    """
    numbers = [name for name, kind in kinds.items() if kind not in WORDS]
    words = [name for name, kind in kinds.items() if kind in WORDS]
    rules = {name: rule for name, rule in (rules or {}).items() if name in ("cost", "reject_cost", "reject_below")}
    at = list(range(len(numbers), len(numbers) + len(words)))  # positions of the categories after `_ordinal`
    found = (
        ("boosting", "gradient boosting", "Sequentially fitted trees (scikit-learn).",
         Pipeline([("encode", _ordinal(numbers, words)),
                   ("learn", HistGradientBoostingClassifier(categorical_features=at or None, random_state=seed))])),
        ("forest", "random forest", "Trees fitted to bootstrap samples (scikit-learn).",
         Pipeline([("encode", _ordinal(numbers, words)),
                   ("learn", RandomForestClassifier(min_samples_leaf=2, random_state=seed))])),
        ("logistic", "logistic regression", "Linear log-odds (scikit-learn).",
         Pipeline([("encode", _scaled(numbers, words)), ("learn", LogisticRegression(max_iter=1000))])),
    )  # fmt: skip
    return [
        Candidate(
            key, name, what, 1000 + i, CalibratedClassifier(pipeline, cv=3, random_state=seed, **rules), baseline=True
        )
        for i, (key, name, what, pipeline) in enumerate(found)
    ]


def regression_baselines(kinds: Kinds, seed: int = 0) -> list[Candidate]:
    """Gradient boosting and random forest; their density is that of their held-out residuals.

    >>> [candidate.key for candidate in regression_baselines({"size": "real", "color": "category"})]
    ['boosting', 'forest']
    """
    numbers = [name for name, kind in kinds.items() if kind not in WORDS]
    words = [name for name, kind in kinds.items() if kind in WORDS]
    at = list(range(len(numbers), len(numbers) + len(words)))
    found = (
        ("boosting", "gradient boosting", "Sequentially fitted trees (scikit-learn).",
         HistGradientBoostingRegressor(categorical_features=at or None, random_state=seed)),
        ("forest", "random forest", "Trees fitted to bootstrap samples (scikit-learn).",
         RandomForestRegressor(random_state=seed)),
    )  # fmt: skip
    return [
        Candidate(
            key, name, what, 1000 + i, Pipeline([("encode", _ordinal(numbers, words)), ("learn", learner)]),
            baseline=True,
        )
        for i, (key, name, what, learner) in enumerate(found)
    ]  # fmt: skip


def _ordinal(numbers: list[str], words: list[str]) -> Any:
    """Levels as integers; missing and unknown ones as NaN, which trees accept."""
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan,
        max_categories=MOST_LEVELS,
    )  # fmt: skip
    return ColumnTransformer([("numbers", "passthrough", numbers), ("words", encoder, words)])


def _scaled(numbers: list[str], words: list[str]) -> Any:
    """Numbers imputed and standardized; levels as indicators."""
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False)
    return ColumnTransformer([("numbers", filled, numbers), ("words", encoder, words)])
